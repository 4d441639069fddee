"""Classifiers of texts: training one from examples, and the classify stage, which keeps the rows that score best.

A fastText model (Joulin et al. 2016, Bag of Tricks for Efficient Text Classification) tells wanted texts from others.
DCLM (Li et al. 2024) keeps the best tenth of its rows by such a score; SIEVE (Zhang et al. 2024) trains the model from
the scores of a larger one. The classify stage takes any fastText model with the label that is asked for; `datakit
classifier train` makes one.

The `fasttext` module trains, in a process of its own. With one thread it leaves nine tenths of its input matrix
uninitialized, so that two runs differ and some end in NaN. That process gets zeroed memory (glibc's `MALLOC_PERTURB_`);
then equal texts give equal bytes. Rows that are held out say what each threshold keeps, and how well; the model's
manifest has it, and the classify stage takes its threshold from there. A score is the model's probability as it is.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import datakit.storage as storage
from datakit.config import at_least, option, sha256_file, shares
from datakit.data import Bools, Floats, ViewOptions, view
from datakit.errors import ConfigError, InputError, ModelError
from datakit.filter.language import find
from datakit.filter.own_map import records_of
from datakit.filter.ranking import RankedStage
from datakit.manifest import Count, load
from datakit.stage import Decision, LossOptions, Made, Parent, Stage

POSITIVE: Final = "positive"
NEGATIVE: Final = "negative"

PIECE_CHARS: Final = 2000
MAX_PIECES: Final = 20
"""A classifier learns from pieces of rows: long rows count more, and none counts more than twenty times."""


# Classify: score rows with a model.


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyConfig(ViewOptions, LossOptions):
    """Which model scores the rows, and which of them stay."""

    model: str = option("", "a fastText model's file, or the manifest that `classifier train` wrote", path=True)
    label: str = option("positive", "the label whose probability is a row's score", advanced=True)
    min_score: float | None = option(
        None, "drop rows with a lower score; none: the best F1 of `classifier train`, else 0.5; no limit with `top`"
    )
    top: float = option(0.0, "keep the best share of all rows, as 0.1; 0: by min_score alone")

    def __post_init__(self) -> None:
        LossOptions.__post_init__(self)
        shares(self, "top", *(["min_score"] if self.min_score is not None else []))


@dataclass(frozen=True)
class Classify(Stage):
    """Fills `classifier_score`, rounded to 1e-3, and drops the rows that score less than the threshold.

    The score is the model's probability of the label. Reason: `classifier.min_score`. With `top`, `for_kind` gives a
    `ClassifyTop` instead, which must be run.
    """

    name: ClassVar[str] = "classify"
    help: ClassVar[str] = "Keeps rows above a score, or the best share of all rows (--top 0.1)."
    Config: ClassVar[type] = ClassifyConfig

    config: ClassifyConfig = field(default_factory=ClassifyConfig)

    def for_kind(self, kind: str) -> Self:
        """With `top`, the stage that scores all rows before it decides about any."""
        made: Any = ClassifyTop(config=self.config) if self.config.top else self
        found: Self = made
        return found

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the model, and the threshold that applies.

        Raises:
            ConfigError: no model is named.
            ModelError: the model does not exist.
        """
        path = self._path()
        return {"model": {"name": path.name, "sha256": sha256_file(path)}, "min_score": self.threshold}

    @property
    def threshold(self) -> float:
        """The score below which rows go. Of the best tenth of all rows, all may be below 0.5: `top` sets no limit.

        Without a score of the user's, it is the best F1 that `classifier train` found, and 0.5 for a model's file.
        """
        if self.config.min_score is not None:
            return self.config.min_score
        path = storage.here(self.config.model)
        path = path / "manifest.json" if path.is_dir() else path
        known = self.config.label == POSITIVE and path.suffix == ".json" and path.is_file()
        if self.config.top or not known:
            return 0.0 if self.config.top else 0.5
        dev = load(path).facts["classifier"]["dev"]
        return float(dev.get("best_f1", {}).get("min_score", 0.5))

    def open(self) -> None:
        """Load the model, once per process, and compile the kernels that read it.

        Raises:
            ModelError: the file is no model that classifies.
            ConfigError: no model is named, or it has no such label.
        """
        from datakit.filter import fasttext_model

        model = fasttext_model.load(self._path())
        model.check_labels([self.config.label], model.labels, f"label: the model {self._path().name}")

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Score the rows, and compare the scores with the threshold."""
        return self._decide(self._scores(batch), np.zeros(batch.num_rows, np.bool_), "")

    def _decide(self, scores: Floats, below_cut: Bools, cut: str) -> Decision:
        """`cut` is what the score of a row below the cut is compared with, for people."""
        low = scores < self.threshold
        reasons = np.full(len(scores), None, object)
        reasons[below_cut], reasons[low] = "classifier.top", "classifier.min_score"
        limits = np.where(low, f" < {self.threshold:g}", cut)
        details = pc.binary_join_element_wise("score ", pa.array(scores).cast(pa.string()), pa.array(limits), "")
        return Decision(
            reasons=pa.array(reasons, pa.string()),
            detail=pc.if_else(pa.array(low | below_cut), details, None),
            columns={"classifier_score": pa.array(scores, pa.float32())},
        )

    def _scores(self, batch: pa.RecordBatch) -> Floats:
        """float64[N]: the score of each row."""
        from datakit.filter import fasttext_model

        model = fasttext_model.load(self._path())
        return fasttext_model.rounded(model.predict(self.config.texts(batch), self.config.label)[1])

    def _path(self) -> Path:
        if not self.config.model:
            raise ConfigError("model: the classify stage needs a model; `datakit classifier train` makes one")
        return find(self.config.model)


@dataclass(frozen=True)
class ClassifyTop(RankedStage, Classify):
    """The same for the best share of all rows: each row is scored once, in the sketch phase.

    ceil(top * rows) rows stay: the best by score, of equal scores those that come first, without those below
    `min_score`. Reasons: `classifier.min_score`, `classifier.top`.
    """

    def for_kind(self, kind: str) -> Self:
        """This stage."""
        return self

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The score of each row."""
        return pa.record_batch({"row_key": batch.column("row_key"), "score": pa.array(self._scores(batch))})

    def rank(self, rows: pa.Table) -> tuple[dict[str, Any], dict[str, Any]]:
        """The score and the key of the last row that stays."""
        scores, keys = rows["score"].to_numpy(), rows["row_key"].to_numpy()
        if not len(keys):
            return {}, {}
        stays = max(1, int(np.ceil(round(self.config.top * len(keys), 6))))
        last = np.lexsort((keys, -scores))[stays - 1]
        cut = {"score": float(scores[last]), "key": int(keys[last])}
        return cut, {"classifier": {"top": self.config.top, "rows": stays, "last_score": cut["score"]}}

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Compare the sketched scores with the threshold and the cut."""
        keys = batch.column("row_key").to_numpy()
        scores, cut = self.ranked(keys)
        last, key = cut.get("score", 0.0), cut.get("key", 0)  # without rows there is none, and nobody asks
        below_cut = (scores < last) | ((scores == last) & (keys > np.uint64(key)))
        best = f"not among the best {self.config.top:.3g} of all rows; the last of them has {last:g}"
        return self._decide(scores, below_cut, f", {best}")


# What each threshold keeps of rows that the model has not seen, and how well.

Point = dict[str, Any]
"""A threshold with what it keeps of the held-out rows: see `point`."""


def point(scores: Floats, positive: Bools, min_score: float) -> Point:
    """What stays of rows that score at least `min_score`, of which some are `positive` (wanted).

    `kept`: the share of all rows that stays; `precision`: the share of wanted rows among those that stay, `recall`: the
    share of the wanted rows that stays, None where there is nothing to divide by; `f1`: their harmonic mean.
    """
    stays = scores >= min_score
    kept, wanted, right = int(stays.sum()), int(positive.sum()), int((stays & positive).sum())
    return {
        "min_score": min_score,
        "kept": kept / max(len(scores), 1),
        "precision": right / kept if kept else None,
        "recall": right / wanted if wanted else None,
        "f1": 2 * right / max(kept + wanted, 1),
    }


def auc(scores: NDArray[Any], positive: Bools) -> float | None:
    """The area under the ROC curve, rounded to 1e-4, equal scores as a half; None where a side has no rows.

    Mann and Whitney 1947: the share of pairs of a wanted and another row in which the wanted one scores higher.
    """
    wanted, other = scores[positive], np.sort(scores[~positive])
    if not len(wanted) or not len(other):
        return None
    lower, as_high = (int(np.searchsorted(other, wanted, side).sum()) for side in ("left", "right"))
    return round((lower + as_high) / 2 / (len(wanted) * len(other)), 4)


def best_f1(points: Sequence[Point]) -> Point:
    """The threshold with the highest F1; of equal ones the one in the middle, farthest from where rows change sides."""
    most = max(p["f1"] for p in points)
    equal = [p for p in points if p["f1"] == most]
    return equal[len(equal) // 2]


# Training: examples to a model, and its quality on rows that it has not seen.


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """Which rows are wanted, what model to train, and how it is measured."""

    positive: tuple[str, ...] = option(
        (), "sources of wanted rows: names of files, as the column source has them, or patterns; others are unwanted"
    )
    score_field: str = option("", "in place of positive: the field of rows with a score, of a larger model say")
    min_score: float = option(0.5, "rows with this score and more are wanted", acts_with={"score_field": ()})
    dev: float = option(0.1, "share of the rows to hold out for measuring; rows with equal text stay together")
    dim: int = option(32, "dimensions of the vectors")
    word_ngrams: int = option(2, "words in the longest n-gram that has a vector")
    bucket: int = option(200_000, "number of vectors for word n-grams, which share them by hash")
    epochs: int = option(10, "passes over the pieces")
    learning_rate: float = option(0.2, "the initial learning rate; it falls to 0")
    seed: int = option(0, "random seed of the initial vectors and of the held-out rows")

    def __post_init__(self) -> None:
        shares(self, "dev")
        at_least(self, 1, "dim", "word_ngrams", "bucket", "epochs")
        at_least(self, 0, "seed")
        if self.dev == 1 or self.learning_rate <= 0:
            raise ConfigError(
                f"dev = {self.dev}, learning_rate = {self.learning_rate}: expected less than 1, more than 0"
            )


@dataclass(frozen=True, slots=True)
class TrainClassifier(Stage):
    """Trains a fastText model that tells wanted rows from others, and measures it on rows that it held out.

    The result is `kept/model.bin`; its manifest is a `model` for the classify stage. Rows without a score are dropped.
    """

    name: ClassVar[str] = "classifier"
    Config: ClassVar[type] = TrainConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    makes_rows: ClassVar[bool] = False
    output_kind = "model"

    config: TrainConfig = field(default_factory=TrainConfig)

    def open(self) -> None:
        """Check that the config says which rows are wanted.

        Raises:
            ConfigError: it says nothing, or says it twice.
        """
        if bool(self.config.positive) == bool(self.config.score_field):
            raise ConfigError("positive, score_field: expected one of them, which says what rows are wanted")

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the training examples, train, and measure on the rows that were held out.

        Raises:
            InputError: a side without rows, or a score that is no number.
            ModelError: training failed.
        """
        lines, model, config = folder / "examples.txt", folder / "kept" / "model.bin", self.config
        total, counts = 0, {POSITIVE: 0, NEGATIVE: 0}
        dev: list[tuple[pa.Array, Bools]] = []
        with lines.open("w", encoding="utf-8") as out:
            for given in rows:
                scores = self._scores(given)
                total, known = total + given.num_rows, ~np.isnan(scores)
                batch, wanted = given.filter(pa.array(known)), scores[known] >= config.min_score
                counts[POSITIVE] += int(wanted.sum())
                counts[NEGATIVE] += int((~wanted).sum())
                held, texts = held_out(batch.column("content_hash"), config), view(batch)
                dev.append((texts.filter(pa.array(held)), wanted[held]))
                write_examples(texts.filter(pa.array(~held)), wanted[~held], out)
        for side, count in counts.items():
            if not count:
                raise InputError(
                    f"the classifier has no {side} rows to learn from, of {total} rows: {counts}; positive = "
                    f"{list(config.positive)}, score_field = {config.score_field!r}"
                )
        model.parent.mkdir(parents=True, exist_ok=True)
        train(lines, model, config)
        lines.unlink()
        kept = sum(counts.values())
        return Made(
            files=("kept/model.bin",),
            rows=Count(into=total, kept=kept, dropped={"no_score": total - kept} if total > kept else {}),
            facts={"classifier": {"labels": [POSITIVE, NEGATIVE], "rows": counts, "dev": measure(model, dev)}},
        )

    def _scores(self, batch: pa.RecordBatch) -> Floats:
        """float64[N]: the score of each row, or 1 and 0 by its source; NaN for a row without a score."""
        if self.config.score_field:
            return np.array([_score(row, self.config.score_field) for row in records_of(batch)], np.float64)
        sources = batch.column("source").to_pylist()
        wanted = [any(fnmatchcase(source or "", name) for name in self.config.positive) for source in sources]
        return np.array(wanted, np.float64)


def _score(row: dict[str, Any], field: str) -> float:
    score = row.get(field)
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise InputError(f"the row {row.get('id')!r}: {field}: expected a number, found {str(score)[:80]!r}")
    return np.nan if score is None else float(score)


def held_out(content_hashes: pa.Array, config: TrainConfig) -> Bools:
    """bool[N]: the rows that only measure. They depend on each row's content and the seed alone."""
    places = np.array([int(h[:8], 16) for h in content_hashes.to_pylist()], np.uint64)
    mixed = (places + np.uint64(config.seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    shares = (mixed >> np.uint64(40)).astype(np.float64) / 2**24
    return np.asarray(shares < config.dev)


def pieces(text: str, piece_chars: int = PIECE_CHARS, max_pieces: int = MAX_PIECES) -> Iterator[str]:
    """The parts of a text to train on: its words on one line, at most `max_pieces` pieces, spread evenly over it."""
    line = " ".join(text.split())
    count = -(-len(line) // piece_chars)
    wanted = min(count, max_pieces)
    for i in range(wanted):
        start = i * count // wanted * piece_chars
        yield line[start : start + piece_chars]


def write_examples(texts: pa.Array, positive: Bools, out: TextIO) -> None:
    """Write the pieces of texts, with their labels, as the fasttext module reads them."""
    from datakit.filter.fasttext_model import LABEL

    for text, wanted in zip(texts.to_pylist(), positive.tolist(), strict=True):
        for piece in pieces(text):
            # a label, or the mark of a line's end, would be read as one
            clean = piece.replace(LABEL, " ").replace("</s>", " ")
            out.write(f"{LABEL}{POSITIVE if wanted else NEGATIVE} {clean}\n")


_TRAIN_SCRIPT: Final = """
import json, sys, fasttext
lines, out, options = json.loads(sys.argv[1])
fasttext.train_supervised(lines, **options).save_model(out)
"""


def train(lines: Path, out: Path, config: TrainConfig) -> None:
    """Train on a file of `write_examples` and save the model to `out`.

    Raises:
        ModelError: training failed, or ended in NaN.
    """
    options: dict[str, Any] = {
        "dim": config.dim,
        "wordNgrams": config.word_ngrams,
        "bucket": config.bucket,
        "epoch": config.epochs,
        "lr": config.learning_rate,
        "thread": 1,  # with more, every run would give another model
        "seed": config.seed,
        "verbose": 0,
    }
    done = subprocess.run(
        [sys.executable, "-c", _TRAIN_SCRIPT, json.dumps([str(lines), str(out), options])],
        env=os.environ | {"MALLOC_PERTURB_": "255"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not out.is_file():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ModelError(f"training the classifier failed: {last}; a smaller learning_rate helps against NaN")


def measure(model: Path, dev: Sequence[tuple[pa.Array, Bools]]) -> dict[str, Any]:
    """How good a model is on held-out (texts, which are positive), each text read whole as in classify; as JSON.

    `thresholds` has points from 0 to 1 in steps of 0.05, `best_f1` is the best of steps of 0.01. Without rows of both
    sides there is neither.
    """
    from datakit.filter import fasttext_model

    loaded = fasttext_model.read(model)
    raw = np.concatenate([np.empty(0, np.float32), *(loaded.predict(texts, POSITIVE)[1] for texts, _ in dev)])
    positive = np.concatenate([np.empty(0, np.bool_), *(wanted for _, wanted in dev)])
    scores, found = fasttext_model.rounded(raw), {"rows": len(raw), "auc": auc(raw, positive)}
    if not positive.any() or positive.all():
        return found
    points = [point(scores, positive, n / 100) for n in range(101)]
    return found | {
        "best_f1": _in_manifest(best_f1(points)),
        "thresholds": [_in_manifest(p) for p in points[::5]],
    }


def _in_manifest(p: Point) -> Point:
    return {name: value if value is None else round(value, 3) for name, value in p.items()}
