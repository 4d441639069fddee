"""The classify stage: a fastText model scores every row; rows above a threshold stay, or the best share of all.

As DCLM (Li et al. 2024) keeps the best tenth by a classifier's score. Any fastText model serves whose labels hold the
one asked for; `datakit classifier train` makes one from examples.

Trains a fastText model that tells wanted texts from others, and measures it on texts that it has not seen.

Joulin et al. 2016, Bag of Tricks for Efficient Text Classification. As a filter for pretraining data: DCLM (Li et al.
2024); trained from the scores of a larger model: SIEVE (Zhang et al. 2024).

The module trains, in a process of its own. With one thread it leaves nine tenths of its input matrix as it finds the
memory, so that two runs differ and some end in not-a-number: that process gets zeroed memory (glibc's
`MALLOC_PERTURB_`), and then equal texts give equal bytes.
"""

import difflib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TextIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.data import read_shard, view
from datakit.errors import ConfigError, InputError, ModelError, UsageError
from datakit.filter import fasttext_model, models, ranking
from datakit.manifest import Count, data_dir, is_manifest, load, tables
from datakit.read.files import open_binary
from datakit.read.planning import Plan, plan, read_unit, units
from datakit.read.stage import IngestConfig
from datakit.stage import Decision, Made, Parent, RawFile, Stage

if TYPE_CHECKING:
    from datakit.filter.fasttext_model import FastTextModel


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifyConfig:
    """Which model scores the rows, and which of them stay."""

    model: str = option("", "a fastText model's file, or the manifest that `classifier train` wrote", path=True)
    label: str = option("positive", "the label whose probability is a row's score")
    min_score: float | None = option(None, "drop rows whose score is lower; none: 0.5, with top no such threshold")
    top: float = option(0.0, "keep the best share of all rows, as 0.1; 0: by min_score alone")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a row to look at")
    include_system: bool = option(False, "look at system prompts, tool schemas and tool results too")
    sample_bytes: int = option(
        0, "of rows with more bytes than this, read the first, the middle and the last third of so many; 0: read all"
    )

    def __post_init__(self) -> None:
        if self.min_score is not None and not 0 <= self.min_score <= 1:
            raise ConfigError(f"min_score = {self.min_score}: expected a score from 0 to 1")
        if not 0 <= self.top <= 1:
            raise ConfigError(f"top = {self.top}: expected a share from 0 to 1, as 0.1 for the best tenth")
        if self.sample_bytes < 0:
            raise ConfigError(f"sample_bytes = {self.sample_bytes}: expected 0 (no limit) or more")

    @property
    def least(self) -> float:
        """The threshold that counts: the best tenth of all rows may well be below 0.5."""
        return self.min_score if self.min_score is not None else 0.0 if self.top else 0.5


@dataclass(frozen=True, slots=True)
class Classify(Stage):
    """Fills `classifier_score`, rounded to 1e-3, and drops the rows that score less than the threshold.

    Reason: `classifier.min_score`. With `top` it is `ClassifyTop` that must be run: `for_kind` gives it.
    """

    Config: ClassVar[type] = ClassifyConfig
    name: ClassVar[str] = "classify"
    holds_gil: ClassVar[bool] = False

    config: ClassifyConfig = field(default_factory=ClassifyConfig)

    def for_kind(self, kind: str) -> "Classify":
        """The stage that looks at all rows before it decides about any, where a share of them is to stay."""
        return ClassifyTop(config=self.config) if self.config.top else self

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the model.

        Raises:
            ConfigError: no model is named.
            ModelError: the model is not there.
        """
        path = self._path()
        return {"model": {"name": path.name, "sha256": models.sha256(path)}}

    def open(self) -> None:
        """Load the model, once a process, and compile what reads it.

        Raises:
            ModelError: the file is no model that classifies.
            ConfigError: no model is named, or it has no such label.
        """
        model = self._model()
        if self.config.label not in model.labels:
            near = difflib.get_close_matches(self.config.label, model.labels, n=3, cutoff=0.4) or model.labels[:5]
            raise ConfigError(
                f"label: the model {self._path().name} has no label {self.config.label!r}; it has {', '.join(near)}"
            )
        model.probability(pa.array(["a"]), self.config.label)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Score the rows, and hold the scores against the threshold."""
        return self._decide(self._scores(batch), np.zeros(batch.num_rows, np.bool_))

    def _decide(self, found: NDArray[np.float64], behind: NDArray[np.bool_]) -> Decision:
        low = found < self.config.least
        reasons = np.full(len(found), None, object)
        reasons[behind], reasons[low] = "classifier.top", "classifier.min_score"
        details = pc.binary_join_element_wise("score", pa.array(found).cast(pa.string()), " ")
        drops = pa.array(low | behind)
        return Decision(
            reasons=pa.array(reasons, pa.string()),
            detail=pc.if_else(drops, details, None),
            columns={"classifier_score": pa.array(found, pa.float32())},
        )

    def _scores(self, batch: pa.RecordBatch) -> NDArray[np.float64]:
        """float64[N], rounded to 1e-3 as everything that decides."""
        texts = view(batch, self.config.on, self.config.include_system)
        found = self._model().probability(texts, self.config.label, self.config.sample_bytes)
        return np.asarray(np.minimum(found.astype(np.float64), 1.0).round(3))

    def _path(self) -> Path:
        if not self.config.model:
            raise ConfigError("model: the classify stage needs a model; `datakit classifier train` makes one")
        return models.find(self.config.model)

    def _model(self) -> "FastTextModel":
        from datakit.filter import fasttext_model  # numba takes a while to import: not before there is a model

        return fasttext_model.load(self._path())


@dataclass(frozen=True, slots=True)
class ClassifyTop(Classify):
    """The same for the best share of all rows: each is scored once, in the sketch phase.

    ceil(top * rows) rows stay: the best by score, of equal scores those that came first, less those under `min_score`.
    Reasons: `classifier.min_score`, `classifier.top`. `cut` is the file that `reduce` wrote, in the stage that `bind`
    returns.
    """

    compares_rows: ClassVar[bool] = True

    cut: Path | None = None

    def for_kind(self, kind: str) -> Self:
        """This stage."""
        return self

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The score of each row."""
        return pa.record_batch({"row_key": batch.column("row_key"), "score": pa.array(self._scores(batch))})

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write all scores, and the score and the key of the last row that stays, to `out`."""
        rows = ranking.read(sketches)
        found, keys = rows["score"].to_numpy(), rows["row_key"].to_numpy()
        stays = int(np.ceil(round(self.config.top * len(found), 6)))
        last = np.lexsort((keys, -found))[max(stays - 1, 0) : stays]
        cut = {"score": found[last].tolist(), "key": keys[last].tolist()}
        ranking.save(out, keys, found, cut)
        if not stays:
            return {}
        return {"classifier": {"top": self.config.top, "rows": stays, "last_score": cut["score"][0]}}

    def bind(self, out: Path) -> Self:
        """The stage that carries out the cut in `out`."""
        return replace(self, cut=out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Hold the scores that were sketched against the threshold and the cut."""
        assert self.cut is not None, "decide needs what reduce wrote: call bind first"
        keys, cut = batch.column("row_key").to_numpy(), ranking.cut(self.cut)
        found = ranking.saved(self.cut, keys)
        behind = np.ones(len(found), np.bool_)
        for last_score, last_key in zip(cut["score"], cut["key"], strict=True):  # none, where there are no rows
            behind = (found < last_score) | ((found == last_score) & (keys > np.uint64(last_key)))
        return self._decide(found, behind)


POSITIVE: Final = "positive"
NEGATIVE: Final = "negative"

_SCRIPT: Final = """
import json, sys, fasttext
lines, out, options = json.loads(sys.argv[1])
fasttext.train_supervised(lines, **options).save_model(out)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """What model to train, and how it is measured."""

    dev: float = option(0.1, "share of the rows that are held out to measure; rows with equal text stay together")
    piece_chars: int = option(2000, "train on pieces of at most so many characters, so that long rows teach more")
    max_pieces: int = option(20, "of each row, train on at most so many pieces, spread over it")
    dim: int = option(32, "dimensions of the vectors")
    word_ngrams: int = option(2, "the longest run of words with a vector of its own")
    bucket: int = option(200_000, "vectors that runs of words share by their hash")
    epochs: int = option(10, "passes over the pieces")
    learning_rate: float = option(0.2, "the step at the beginning; it falls to 0")
    threads: int = option(1, "training threads; more than one give another model each time")
    seed: int = option(0, "of the first vectors, and of which rows are held out")

    def __post_init__(self) -> None:
        if not 0 <= self.dev < 1:
            raise ConfigError(f"dev = {self.dev}: expected a share from 0 to below 1")
        for name in ("piece_chars", "max_pieces", "dim", "word_ngrams", "bucket", "epochs", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: expected 1 or more")
        if self.learning_rate <= 0 or self.seed < 0:
            raise ConfigError(
                f"learning_rate = {self.learning_rate}, seed = {self.seed}: expected more than 0, 0 or more"
            )


def held_out(content_hashes: pa.Array, config: TrainConfig) -> NDArray[np.bool_]:
    """bool[N]: the rows that only measure. A function of each row's content and the seed alone."""
    places = np.array([int(h[:8], 16) for h in content_hashes.to_pylist()], np.uint64)
    mixed = (places + np.uint64(config.seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    shares = (mixed >> np.uint64(40)).astype(np.float64) / 2**24
    return np.asarray(shares < config.dev)


def pieces(text: str, config: TrainConfig) -> Iterator[str]:
    """What a text is trained on: its words on one line, at most `max_pieces` pieces of `piece_chars` evenly over it."""
    line = " ".join(text.split())
    count = -(-len(line) // config.piece_chars)
    wanted = min(count, config.max_pieces)
    for i in range(wanted):
        start = i * count // wanted * config.piece_chars
        yield line[start : start + config.piece_chars]


def write_examples(texts: pa.Array, positive: NDArray[np.bool_], config: TrainConfig, out: TextIO) -> int:
    """Write the pieces of texts as the module reads them; how many."""
    from datakit.filter.fasttext_model import LABEL

    written = 0
    for text, wanted in zip(texts.to_pylist(), positive.tolist(), strict=True):
        for piece in pieces(text, config):
            # a text that holds a label, or the end of a line, would be read as one
            clean = piece.replace(LABEL, " ").replace("</s>", " ")
            out.write(f"{LABEL}{POSITIVE if wanted else NEGATIVE} {clean}\n")
            written += 1
    return written


def train(lines: Path, out: Path, config: TrainConfig) -> None:
    """Train on a file of `write_examples` and save the model to `out`.

    Raises:
        ModelError: training failed, or ended in not-a-number.
    """
    options: dict[str, Any] = {
        "dim": config.dim,
        "wordNgrams": config.word_ngrams,
        "bucket": config.bucket,
        "epoch": config.epochs,
        "lr": config.learning_rate,
        "thread": config.threads,
        "seed": config.seed,
        "verbose": 0,
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps([str(lines), str(out), options])],
        env=os.environ | {"MALLOC_PERTURB_": "255"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not out.is_file():
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ModelError(f"training the classifier failed: {last}; a smaller learning_rate helps against NaN")


@dataclass(frozen=True, slots=True)
class Quality:
    """How a model does on rows whose side is known, at the threshold 0.5."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    def to_json(self) -> dict[str, Any]:
        """The counts, and precision and recall rounded to 1e-3; null where there is nothing to divide by."""
        found, wanted = self.true_positive + self.false_positive, self.true_positive + self.false_negative
        return {
            "true_positive": self.true_positive,
            "false_positive": self.false_positive,
            "false_negative": self.false_negative,
            "true_negative": self.true_negative,
            "precision": round(self.true_positive / found, 3) if found else None,
            "recall": round(self.true_positive / wanted, 3) if wanted else None,
        }


def quality(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Quality:
    """Count what scores of 0.5 and more find."""
    said = scores >= 0.5
    return Quality(
        true_positive=int((said & positive).sum()),
        false_positive=int((said & ~positive).sum()),
        false_negative=int((~said & positive).sum()),
        true_negative=int((~said & ~positive).sum()),
    )


# Training from examples.

MODEL: Final = "kept/model.bin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """What a classifier learns from: two sides, or rows and a score for each."""

    positive: tuple[str, ...] = ()
    """Files, folders, globs, or one manifest."""
    negative: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    scores: str = ""
    """JSON lines with `id` and `score`, of `rows`."""
    min_score: float = 0.5
    """Rows with this score and more are positive."""

    def __post_init__(self) -> None:
        if bool(self.scores) == bool(self.positive or self.negative) or bool(self.scores) != bool(self.rows):
            raise UsageError("give --positive and --negative, or input files and --scores for their rows")
        if not self.scores and not (self.positive and self.negative):
            raise UsageError("a classifier needs both sides: --positive and --negative")


@dataclass(frozen=True)
class TrainClassifier(Stage):
    """Trains a classifier from rows of both sides, and measures it on held-out rows."""

    name: ClassVar[str] = "classifier"
    Config: ClassVar[type] = TrainConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    makes_rows: ClassVar[bool] = False

    config: TrainConfig
    examples: Examples = field(default_factory=lambda: Examples(positive=("",), negative=("",)))

    def sides(self) -> list["_Side"]:
        """Positive and negative rows, or the rows that have scores."""
        given = self.examples
        return [_Side(i) for i in (given.positive, given.negative, given.rows) if i]

    def parents(self) -> list[Parent]:
        """The manifests among the examples."""
        return [Parent(side.path, side.manifest) for side in self.sides() if side.manifest is not None]

    def sources(self) -> tuple[RawFile, ...]:
        """The raw files among the examples, and the file of scores.

        Raises:
            UsageError: a file is remote.
        """
        files = [file for side in self.sides() for file in side.files()]
        if self.examples.scores:
            path = Path(self.examples.scores)
            files.append(RawFile(path.name, str(path), path.stat().st_size))
        return tuple(files)

    def resources(self) -> dict[str, Any]:
        """The score that makes a row positive, where rows have scores."""
        return {"min_score": self.examples.min_score} if self.examples.scores else {}

    def output_kind(self, kind: str) -> str:
        """A model."""
        return "model"

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the examples, train, measure.

        Raises:
            InputError: no rows on a side, no row that a score is for, or a malformed line in the file of scores.
            ModelError: training failed.
        """
        scores = _scores(Path(self.examples.scores)) if self.examples.scores else None
        lines, total, counts = folder / "examples.txt", 0, {"positive": 0, "negative": 0}
        dev: list[tuple[pa.Array, NDArray[np.bool_]]] = []
        with lines.open("w", encoding="utf-8") as out:
            for batch, positive in _labelled(self.sides(), scores, self.examples.min_score):
                total += batch.num_rows
                known = positive >= 0
                batch, wanted = batch.filter(pa.array(known)), positive[known] == 1
                counts["positive"] += int(wanted.sum())
                counts["negative"] += int((~wanted).sum())
                out_of, texts = held_out(batch.column("content_hash"), self.config), view(batch)
                dev.append((texts.filter(pa.array(out_of)), wanted[out_of]))
                write_examples(texts.filter(pa.array(~out_of)), wanted[~out_of], self.config, out)
        for side, count in counts.items():
            if not count:
                raise InputError(f"the classifier has no {side} rows to learn from, of {total} rows: {counts}")
        model = folder / MODEL
        model.parent.mkdir()
        train(lines, model, self.config)
        lines.unlink()
        used = sum(counts.values())
        return Made(
            files=(MODEL,),
            rows=Count(into=total, kept=used, dropped={"no_score": total - used} if total > used else {}),
            facts={
                "classifier": {
                    "labels": ["positive", "negative"],
                    "rows": counts,
                    "dev": _measure(model, dev).to_json(),
                }
            },
        )


class _Side:
    """The rows of some inputs: a manifest's kept rows, or raw files read as ingest reads them."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.path = Path(inputs[0])
        self.manifest = load(self.path) if len(inputs) == 1 and is_manifest(self.path) else None
        self.plan: Plan | None = None if self.manifest else plan(inputs, IngestConfig(other_kinds="quarantine"))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in their order."""
        if self.manifest is not None:
            for shard in tables(self.manifest, "kept"):
                yield from read_shard(data_dir(self.path, self.manifest) / shard.path)
        elif self.plan is not None:
            for unit in units(self.plan):
                yield from (batch.rows for batch in read_unit(unit, self.plan))

    def files(self) -> list[RawFile]:
        """The raw files.

        Raises:
            UsageError: a file is remote.
        """
        found = [] if self.plan is None else [RawFile(f.name, f.path, f.bytes, f.is_local) for f in self.plan.files]
        for file in found:
            if not file.is_local:
                raise UsageError(f"{file.name}: is remote; ingest it first, and give its manifest")
        return found


def _labelled(
    sides: Sequence[_Side], scores: Mapping[str, float] | None, min_score: float
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int8]]]:
    """Batches, and for each row 1 positive, 0 negative, -1 unknown."""
    if scores is None:
        for wanted, side in zip((1, 0), sides, strict=True):
            for batch in side.batches():
                yield batch, np.full(batch.num_rows, wanted, np.int8)
        return
    for batch in itertools.chain.from_iterable(side.batches() for side in sides):
        found = [scores.get(i) for i in batch.column("id").to_pylist()]
        yield batch, np.array([-1 if s is None else int(s >= min_score) for s in found], np.int8)


def _measure(model: Path, dev: Sequence[tuple[pa.Array, NDArray[np.bool_]]]) -> Quality:
    """The model on the rows that were held out, each read whole, as the classify stage reads it."""
    loaded = fasttext_model.read(model)
    scored = [loaded.probability(texts, POSITIVE) for texts, _ in dev]
    empty = np.empty(0, np.float32)
    return quality(
        np.minimum(np.concatenate([empty, *scored]).astype(np.float64), 1.0).round(3),
        np.concatenate([np.empty(0, np.bool_), *(positive for _, positive in dev)]),
    )


def _scores(path: Path) -> dict[str, float]:
    """The scores of a file of JSON lines, by row id.

    Raises:
        InputError: the file is missing, or a line holds no id and number.
    """
    found: dict[str, float] = {}
    try:
        with open_binary(str(path)) as file:
            data = file.read()
    except OSError as e:
        raise InputError(f"{path}: cannot read the scores: {e}") from None
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            value = orjson.loads(line) if line.strip() else None
            if value is not None:
                found[str(value["id"])] = float(value["score"])
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f'{path}, line {number}: expected an id and a number, as {{"id": "a.jsonl:7", "score": 0.8}}, '
                f"found {line[:80].decode(errors='replace')}"
            ) from None
    return found
