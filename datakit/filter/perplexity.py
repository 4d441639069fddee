"""Perplexity: how well a language model predicts a row, compared with the other rows of its language; training models.

Wenzek et al. 2020, CCNet: n-gram models of well-written text, one for each language. Their perplexity divides the rows
of a language into head (up to the 30th percentile), middle (up to the 60th) and tail.

As in CCNet, each line is a sentence for the model, and a row's perplexity is 10 ** (-score / length) over all its
lines; the length counts the words and one end for each line. Texts are simplified first: lower case, no accents, digits
as 0, ASCII punctuation, no control characters. CCNet computes its percentiles on a sample of one crawl, this stage on
all its rows.

`datakit perplexity train` makes a model of the rows of a dataset (`ngram_model`), of words or of a tokenizer's ids. Any
other model in the ARPA format whose words are those of such texts can be named, too.
"""

import functools
import math
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import at_least, file_mark, option, sha256_file
from datakit.data import Floats, Integers, ViewOptions
from datakit.errors import ConfigError, ModelError
from datakit.filter.ranking import RankedStage
from datakit.manifest import Count, data_dir, is_manifest, tokenizer_file
from datakit.manifest import load as load_manifest
from datakit.stage import Decision, Made, Parent, Stage
from datakit.text.ids import open_tokenizer

if TYPE_CHECKING:
    from datakit.filter.ngram_model import NgramModel

BUCKETS = ("head", "middle", "tail")
UNKNOWN, ALL = "unknown", "all"
"""The language of rows whose `lang` is null; that of a model for languages without one of their own."""

MODEL: Final = "kept/model.arpa"
TOKENIZER: Final = "kept/tokenizer.json"
"""The files of a trained model; the second where the ids of a tokenizer count as words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PerplexityConfig(ViewOptions):
    """Which models compute perplexities, and which rows stay."""

    models: dict[str, str] = option(
        {},
        "language as in `lang` = an n-gram model (ARPA), or a folder that `perplexity train` made; all: for all others",
        path=True,
    )
    head_percentile: int = option(30, "rows of a language up to this percentile of perplexity are `head`")
    middle_percentile: int = option(60, "rows above `head` up to this percentile are `middle`, all others `tail`")
    keep: tuple[Literal["head", "middle", "tail"], ...] = option(("head", "middle"), "the buckets that stay")

    def __post_init__(self) -> None:
        if not self.keep:
            raise ConfigError(f"keep: no bucket would stay; there are {', '.join(BUCKETS)}")
        if not 0 < self.head_percentile <= self.middle_percentile < 100:
            raise ConfigError(
                f"head_percentile = {self.head_percentile}, middle_percentile = {self.middle_percentile}: expected "
                "1 to 99, and head not above middle"
            )
        for name in self.models:
            if not re.fullmatch(r"[A-Za-z]{2,3}(?:[-_]\w+)*", name):
                raise ConfigError(f"models: expected LANGUAGE=MODEL or {ALL}=MODEL, found {name!r} for a language")


@dataclass(frozen=True)
class Perplexity(RankedStage):
    """Fills `perplexity`, rounded to 1e-3, and `perplexity_bucket`; drops the rows in buckets that are not kept.

    Reasons: `perplexity.middle`, `perplexity.tail`, `perplexity.head`. Rows of a language without a model, and rows
    without a word, have neither value and stay; the ledger counts them.
    """

    name: ClassVar[str] = "perplexity"
    help: ClassVar[str] = (
        "N-gram models of each language measure the rows, as in CCNet. Run the language stage first. `datakit "
        "perplexity train` makes a model of your own text."
    )
    Config: ClassVar[type] = PerplexityConfig
    holds_gil = True

    config: PerplexityConfig = field(default_factory=PerplexityConfig)

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the models by language, and the Unicode version.

        Raises:
            ConfigError: no model is named.
            ModelError: a file does not exist.
        """
        if not self.config.models:
            raise ConfigError(
                "models: the perplexity stage needs n-gram models, as --models en=en.arpa; `datakit perplexity train` "
                "makes one"
            )
        models = {lang: ModelFiles.of(file, lang) for lang, file in self.config.models.items()}
        digests = {lang: model.digests() for lang, model in models.items()}
        return {"models": digests, "unicode": unicodedata.unidata_version}

    def open(self) -> None:
        """Load the models, once per process, and compile the kernels that read them.

        Raises:
            ModelError: a file that is no such model.
        """
        for language in self.config.models:
            perplexities(["a"], *self._model(language))

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Language and perplexity of each row; NaN for a row without one."""
        texts, languages = self.config.texts(batch), _languages(batch)
        named, found = self.config.models, np.full(batch.num_rows, np.nan)
        chosen = np.array([language if language in named else ALL for language in languages.to_pylist()])
        for language in named:
            rows = np.flatnonzero(chosen == language)
            if len(rows):
                found[rows] = perplexities(texts.take(pa.array(rows)).to_pylist(), *self._model(language))
        return pa.record_batch({"row_key": batch.column("row_key"), "lang": languages, "score": pa.array(found)})

    def rank(self, rows: pa.Table) -> tuple[dict[str, Any], dict[str, Any]]:
        """By language, the highest perplexity in head and in middle."""
        found, cuts, rest = rows["score"].to_numpy(), {}, {}
        for language in sorted(pc.unique(rows["lang"]).to_pylist()):
            of = found[pc.equal(rows["lang"], language).to_numpy()]
            values = np.sort(of[~np.isnan(of)])
            if len(values) < len(of):
                rest[language] = len(of) - len(values)
            if len(values):
                percentiles = (self.config.head_percentile, self.config.middle_percentile)
                cuts[language] = [float(values[math.ceil(p * len(values) / 100) - 1]) for p in percentiles]
        limits = {language: dict(zip(BUCKETS, cut, strict=False)) for language, cut in cuts.items()}
        return cuts, {"perplexity": {"up_to": limits, "not_measured": rest}}

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Compare the sketched perplexities with the cuts of the rows' languages."""
        found, cuts = self.ranked(batch.column("row_key").to_numpy())
        limits = np.array([cuts.get(name, (np.inf, np.inf)) for name in _languages(batch).to_pylist()]).reshape(-1, 2)
        measured = ~np.isnan(found)
        bucket = (found[:, None] > limits).sum(axis=1)
        goes = measured & ~np.isin(BUCKETS, self.config.keep)[bucket]
        buckets, drops = pa.array(np.array(BUCKETS)[bucket], pa.string(), mask=~measured), pa.array(goes)
        values = pa.array(found, mask=~measured)
        reasons = pc.binary_join_element_wise("perplexity", buckets, ".")
        details = pc.binary_join_element_wise("perplexity ", values.cast(pa.string()), _ranges(limits, bucket), "")
        return Decision(
            reasons=pc.if_else(drops, reasons, None),
            detail=pc.if_else(drops, details, None),
            columns={"perplexity": values, "perplexity_bucket": buckets},
            notes={"perplexity_not_measured": int((~measured).sum())},
        )

    def _model(self, language: str) -> tuple["NgramModel", "Reader"]:
        """The model of a language, and how it reads texts."""
        model = ModelFiles.of(self.config.models[language], language)
        return _loaded(model.file, *file_mark(model.file)), sentence_reader(model.tokenizer)


def _languages(batch: pa.RecordBatch) -> pa.Array:
    if "lang" not in batch.schema.names:
        return pa.repeat(UNKNOWN, batch.num_rows)
    return pc.fill_null(batch.column("lang").cast(pa.string()), UNKNOWN)


def _ranges(limits: Floats, bucket: Integers) -> pa.Array:
    """string[N]: the range of each row's bucket, whose `limits` are float64[N, 2], for people."""
    rows = zip(bucket.tolist(), limits.tolist(), strict=True)
    return pa.array([(f" <= {a:g}", f" in {a:g} to {b:g}", f" > {b:g}")[i] for i, (a, b) in rows], pa.string())


# Training.


@dataclass(frozen=True, kw_only=True, slots=True)
class NgramModelConfig(ViewOptions):
    """What the model learns from, and what it stores."""

    order: int = option(5, "words of the longest n-gram, 2 to 5")
    prune: tuple[int, ...] = option(
        (), "by order, drop n-grams that occur at most so often; the last one is for higher orders: 0,0,1 as lmplz's"
    )
    tokenizer: str = option("", "a tokenizer.json, or its folder; then its ids count as words", path=True)
    memory_mb: int = option(4096, "refuse text that needs more (100 MB take about 2,500)", result=False, advanced=True)

    def __post_init__(self) -> None:
        at_least(self, 1, "memory_mb")
        if not 2 <= self.order <= 5:
            raise ConfigError(f"order = {self.order}: expected 2 to 5 words")
        if len(self.prune) > self.order or any(b < a for a, b in zip((0, *self.prune), self.prune, strict=False)):
            raise ConfigError(
                f"prune = {list(self.prune)}: expected up to {self.order} counts, none lower than the one before it"
            )
        if self.prune[:1] > (0,):
            raise ConfigError(f"prune = {list(self.prune)}: words are never dropped; expected 0 first, as in 0,0,1")


@dataclass(frozen=True, slots=True)
class TrainNgramModel(Stage):
    """Estimates an n-gram model from all rows: `kept/model.arpa`, and `kept/tokenizer.json` if words are ids."""

    name: ClassVar[str] = "perplexity_model"
    help: ClassVar[str] = (
        "The result is a folder with model.arpa and the settings of its text. Name the folder in `datakit perplexity "
        "--models en=FOLDER`; KenLM and other tools read the file, too."
    )
    Config: ClassVar[type] = NgramModelConfig
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "all"
    makes_rows: ClassVar[bool] = False
    output_kind = "model"

    config: NgramModelConfig = field(default_factory=NgramModelConfig)

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the tokenizer.

        Raises:
            ModelError: it does not exist.
        """
        path = self._tokenizer()
        return {"tokenizer": {"name": path.name, "sha256": sha256_file(path)}} if path else {}

    def open(self) -> None:
        """Load the tokenizer.

        Raises:
            ModelError: the file is no tokenizer.
        """
        sentence_reader(self._tokenizer())

    def make(self, rows: Iterator[pa.RecordBatch], folder: Path, parents: Sequence[Parent]) -> Made:
        """Write the model.

        Raises:
            InputError: the rows hold no word, or do not fit into `memory_mb`.
        """
        from datakit.filter.ngram_model import estimate

        config, tokenizer, files = self.config, self._tokenizer(), [MODEL]
        read = sentence_reader(tokenizer)
        texts = (text for batch in rows for text in config.texts(batch).to_pylist())
        (folder / MODEL).parent.mkdir(parents=True, exist_ok=True)
        found = estimate(
            (read(text) for text in texts if text),
            folder / MODEL,
            order=config.order,
            min_pruned=config.prune,
            memory_bytes=config.memory_mb << 20,
        )
        if tokenizer:
            shutil.copyfile(tokenizer, folder / TOKENIZER)
            files.append(TOKENIZER)
        count = parents[0].manifest.ledger.rows.kept
        return Made(files=tuple(files), rows=Count(into=count, kept=count), facts={"ngram_model": found})

    def _tokenizer(self) -> Path | None:
        return tokenizer_file(self.config.tokenizer) if self.config.tokenizer else None


# Models.


def perplexities(texts: Sequence[str], model: "NgramModel", read: "Reader") -> list[float]:
    """The perplexity of each text, rounded to 1e-3; NaN for a text without a word."""
    found = model.score([read(text) for text in texts])
    pairs = zip(*(values.tolist() for values in found), strict=True)
    return [round(10.0 ** min(-log / length, 300), 3) if length else math.nan for log, length in pairs]


class ModelFiles(NamedTuple):
    """A model's file, and the tokenizer whose ids are its words."""

    file: Path
    tokenizer: Path | None = None

    @classmethod
    def of(cls, name: str, language: str) -> "ModelFiles":
        """The model of a file, or of a folder or manifest of `perplexity train`.

        Raises:
            ModelError: it does not exist, or the manifest is that of another stage.
        """
        path = storage.here(name)
        path = path / "manifest.json" if path.is_dir() else path
        if not path.is_file():
            raise ModelError(f"{name}: the model for {language} is not there")
        if not is_manifest(path):
            return cls(path)
        manifest = load_manifest(path)
        if manifest.stage != TrainNgramModel.name:
            raise ModelError(f"{path}: expected a model of `perplexity train`, found the stage {manifest.stage}")
        folder, config = data_dir(path, manifest), manifest.config
        tokenizer = storage.here(folder / TOKENIZER) if config["tokenizer"] else None
        return cls(storage.here(folder / MODEL), tokenizer)

    def digests(self) -> dict[str, str]:
        """The model's name, and the SHA-256 of the files."""
        found = {"name": self.file.name, "sha256": sha256_file(self.file)}
        return found | ({"tokenizer": sha256_file(self.tokenizer)} if self.tokenizer else {})


@functools.lru_cache(maxsize=64)
def _loaded(file: Path, *_mark: int) -> "NgramModel":
    from datakit.filter.ngram_model import read_arpa

    return read_arpa(file)


# Texts.

Reader = Callable[[str], str]
"""From a text to its sentences: one a line, words between spaces."""

_PUNCTUATION: Final = (
    {"，": ",", "、": ",", "。": ".", "．": ". ", "：": ":", "∶": ":", "；": ";", "？": "?", "！": "!", "…": "...",
     "（": "(", "）": ")", "【": "[", "】": "]", "〈": "<", "〉": ">", "％": "%", "～": "~", "–": "-", "—": " - ",
     "━": "-", "►": "-", "’": "'", "´": "'"} | dict.fromkeys("„“”«»「」《》", '"')
)  # fmt: skip
"""CCNet's table: `UNICODE_PUNCT` in cc_net/text_normalizer.py. Its models know no other punctuation."""


@functools.cache
def sentence_reader(tokenizer: Path | None = None) -> Reader:
    """How a model reads texts: made plain, then perhaps as the ids of a tokenizer.

    Raises:
        ModelError: the file is no tokenizer.
    """
    if not tokenizer:
        return plain_text
    model = open_tokenizer(str(tokenizer))

    def words(text: str) -> str:
        lines = [line for line in plain_text(text).split("\n") if line.strip()]
        found = model.encode_batch_fast(lines, add_special_tokens=False)
        return "\n".join(" ".join(map(str, line.ids)) for line in found)

    return words


def plain_text(text: str) -> str:
    """A text as CCNet's models read it: lower case, no accents, digits as 0, ASCII punctuation, no controls.

    Lines end in a new line, whatever ended them, and white space between words is a space; a tab is a control character
    and goes, as in CCNet.
    """
    lines = "\n".join(text.splitlines()).lower()
    return unicodedata.normalize("NFD", lines).translate(_plain_characters())


@functools.cache
def _plain_characters() -> dict[int, str | None]:
    """What `plain_text` makes of characters: combining marks and controls go, digits are 0."""
    made = {"Mn": None, "Cc": None, "Nd": "0", "Zs": " "}
    kinds = ((code, unicodedata.category(chr(code))) for code in range(0x110000))
    found = {code: made[kind] for code, kind in kinds if kind in made and code != ord("\n")}
    return found | str.maketrans(_PUNCTUATION)
