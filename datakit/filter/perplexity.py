"""The perplexity stage: how well a language model predicts a row, compared with the other rows of its language.

Wenzek et al. 2020, CCNet: n-gram models (KenLM, Heafield 2011) of well-written text, one for each language. Their
perplexity divides the rows of a language into head (up to the 30th percentile), middle (up to the 60th) and tail.

As in CCNet, each line is a sentence for the model, and a row's perplexity is 10 ** (-score / length) over all its
lines; the length counts the words and one end for each line. Texts are simplified first: lower case, no accents, digits
as 0, ASCII punctuation, no control characters (`text = "plain"`). CCNet's own models read the pieces of a SentencePiece
model, which is named beside them. CCNet computes its percentiles on a sample of one crawl, this stage on all its rows.

A model may also be the result of `datakit perplexity train`: its manifest says how texts are read.
"""

import functools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import file_mark, option, sha256_file
from datakit.data import view
from datakit.errors import ConfigError, MissingExtraError, ModelError
from datakit.filter import ranking
from datakit.manifest import data_dir, is_manifest
from datakit.manifest import load as load_manifest
from datakit.stage import Decision, Stage

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BUCKETS = ("head", "middle", "tail")
UNKNOWN = "unknown"
"""The language of rows whose `lang` is null."""

STAGE: Final = "perplexity_model"
"""The stage that trains models, which are `MODEL`, with `TOKENIZER` where ids count as words."""
MODEL: Final = "kept/model.arpa"
TOKENIZER: Final = "kept/tokenizer.json"

_PUNCTUATION = (
    {"，": ",", "、": ",", "。": ".", "．": ". ", "：": ":", "∶": ":", "；": ";", "？": "?", "！": "!", "…": "...",
     "（": "(", "）": ")", "【": "[", "】": "]", "〈": "<", "〉": ">", "％": "%", "～": "~", "–": "-", "—": " - ",
     "━": "-", "►": "-", "’": "'", "´": "'"} | dict.fromkeys("„“”«»「」《》", '"')
)  # fmt: skip
_ASCII_PLAIN: Final = bytes(0x30 if 0x30 <= b <= 0x39 else b + 32 if 0x41 <= b <= 0x5A else b for b in range(256))
_CONTROLS: Final = bytes(b for b in (*range(0x20), 0x7F) if b != 0x0A)


@dataclass(frozen=True, kw_only=True, slots=True)
class PerplexityConfig:
    """Which models compute perplexities, and which rows stay."""

    models: tuple[str, ...] = option(
        (),
        "KenLM models, or folders that `perplexity train` made, each LANGUAGE=FILE with the language as in `lang`; a "
        "FILE alone is for all others",
        path=True,
    )
    sentencepiece: tuple[str, ...] = option(
        (), "the same for SentencePiece models, whose pieces count as words", path=True
    )
    text: Literal["plain", "raw"] = option("plain", "what models read: lower case, digits as 0, ..., or rows as is")
    head_percentile: int = option(30, "rows of a language up to this percentile of perplexity are `head`")
    middle_percentile: int = option(60, "rows above `head` up to this percentile are `middle`, all others `tail`")
    keep: tuple[str, ...] = option(("head", "middle"), "the buckets that stay")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a row to look at")
    include_system: bool = option(False, "look at system prompts, tool schemas and tool results too")

    def __post_init__(self) -> None:
        for name in self.keep:
            if name not in BUCKETS:
                raise ConfigError(f"keep: unknown bucket {name!r}; there are {', '.join(BUCKETS)}")
        if not self.keep:
            raise ConfigError(f"keep: no bucket would stay; there are {', '.join(BUCKETS)}")
        if not 0 < self.head_percentile <= self.middle_percentile < 100:
            raise ConfigError(
                f"head_percentile = {self.head_percentile}, middle_percentile = {self.middle_percentile}: expected "
                "1 to 99, and head not above middle"
            )
        extra = sorted(by_language(self.sentencepiece).keys() - by_language(self.models).keys())
        if extra:
            raise ConfigError(f"sentencepiece: {extra[0] or 'a file for all languages'}: there is no such model")


def by_language(files: Sequence[str]) -> dict[str, str]:
    """{language: file} of LANGUAGE=FILE; "" is the language of a file alone.

    Raises:
        ConfigError: two files of one language.
    """
    found: dict[str, str] = {}
    for text in files:
        named = re.fullmatch(r"([A-Za-z]{2,3}(?:[_-]\w+)*)=(.+)", text)
        language, file = (named[1], named[2]) if named else ("", text)
        if language in found:
            raise ConfigError(f"two models for {language or 'all languages'}: {found[language]} and {file}")
        found[language] = file
    return found


@dataclass(frozen=True, slots=True)
class Perplexity(Stage):
    """Fills `perplexity`, rounded to 1e-3, and `perplexity_bucket`; drops the rows in buckets that are not kept.

    Reasons: `perplexity.middle`, `perplexity.tail`, `perplexity.head`. Rows of a language without a model, and rows
    without a word, have neither value and stay; the ledger counts them. `cut` is the file that `reduce` wrote.
    """

    name: ClassVar[str] = "perplexity"
    help: ClassVar[str] = (
        "N-gram models of each language measure the rows, as in CCNet. Run the language stage first. `datakit "
        "perplexity train` makes a model of your own text."
    )
    Config: ClassVar[type] = PerplexityConfig
    holds_gil: ClassVar[bool] = True
    compares_rows: ClassVar[bool] = True

    config: PerplexityConfig = field(default_factory=PerplexityConfig)
    cut: Path | None = None

    def resources(self) -> dict[str, Any]:
        """Name and SHA-256 of the models by language, and the Unicode version where the text depends on it.

        Raises:
            MissingExtraError: the package kenlm is not installed.
            ConfigError: no model is named.
            ModelError: a file does not exist.
        """
        if not self.config.models:
            raise ConfigError(
                "models: the perplexity stage needs KenLM models, as --models en=en.arpa.bin; `datakit perplexity "
                "train` makes one"
            )
        _kenlm()
        named = by_language(self.config.models)
        models = {language: ModelFiles.of(file, language) for language, file in named.items()}
        for language in by_language(self.config.sentencepiece):
            if models[language].tokenizer:
                raise ConfigError(f"sentencepiece: {language or 'a file for all languages'}: the model has a tokenizer")
        found = {
            "models": {language: model.digests() for language, model in models.items()},
            "sentencepiece": _digests(self.config.sentencepiece),
        }
        plain = "plain" in {model.text or self.config.text for model in models.values()}
        return found | ({"unicode": unicodedata.unidata_version} if plain else {})

    def open(self) -> None:
        """Load the models, once per process.

        Raises:
            ModelError: a file that is no such model.
        """
        for language in by_language(self.config.models):
            self._model(language)

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Language and perplexity of each row; NaN for a row without one."""
        texts, languages = view(batch, self.config.on, self.config.include_system), _languages(batch)
        named = by_language(self.config.models)
        found = np.full(batch.num_rows, np.nan)
        for i, (text, language) in enumerate(zip(texts.to_pylist(), languages.to_pylist(), strict=True)):
            key = language if language in named else ""
            if key in named:
                found[i] = perplexity(text, *self._model(key))
        return pa.record_batch({"row_key": batch.column("row_key"), "lang": languages, "score": pa.array(found)})

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write to `out` the perplexities of all rows and, by language, the highest one in head and in middle."""
        rows = ranking.read_sketches(sketches)
        found, cuts, rest = rows["score"].to_numpy(), {}, {}
        for language in sorted(pc.unique(rows["lang"]).to_pylist()):
            of = found[pc.equal(rows["lang"], language).to_numpy()]
            values = np.sort(of[~np.isnan(of)])
            if len(values) < len(of):
                rest[language] = len(of) - len(values)
            if len(values):
                percentiles = (self.config.head_percentile, self.config.middle_percentile)
                cuts[language] = [float(values[math.ceil(p * len(values) / 100) - 1]) for p in percentiles]
        ranking.save(out, rows["row_key"].to_numpy(), found, cuts)
        limits = {language: dict(zip(BUCKETS, cut, strict=False)) for language, cut in cuts.items()}
        return {"perplexity": {"up_to": limits, "not_measured": rest}}

    def bind(self, out: Path) -> Self:
        """The stage that decides by the cuts in `out`."""
        return replace(self, cut=out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Compare the sketched perplexities with the cuts of the rows' languages."""
        assert self.cut is not None, "decide needs what reduce wrote: call bind first"
        found, cuts = ranking.saved_scores(self.cut, batch.column("row_key").to_numpy()), ranking.saved_cut(self.cut)
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

    def decided_about(self, row_keys: npt.NDArray[np.uint64]) -> pa.RecordBatch:
        """The perplexities of the rows, and the cuts of all languages."""
        assert self.cut is not None, "call bind first"
        cuts = json.dumps(ranking.saved_cut(self.cut), sort_keys=True)
        found = ranking.saved_scores(self.cut, row_keys)
        return pa.record_batch({"score": found, "cuts": [cuts] * len(found)})

    def _model(self, language: str) -> tuple[Any, "Reader"]:
        """The model of a language, and how it reads texts. Called for every row."""
        model = _files(by_language(self.config.models)[language], language)
        pieces = by_language(self.config.sentencepiece).get(language)
        return _load(str(model.file)), _reader(model.text or self.config.text, model.tokenizer, pieces)


# Models.


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's file and, if `perplexity train` made it, how it reads texts."""

    file: Path
    text: Literal["plain", "raw"] | None = None
    """None: as the stage's config says."""
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
            raise ModelError(f"{name}: the model for {language or 'all languages'} is not there")
        if not is_manifest(path):
            return cls(path)
        manifest = load_manifest(path)
        if manifest.stage != STAGE:
            raise ModelError(f"{path}: expected a model of `perplexity train`, found the stage {manifest.stage}")
        folder, config = data_dir(path, manifest), manifest.config
        tokenizer = storage.here(folder / TOKENIZER) if config["tokenizer"] else None
        return cls(storage.here(folder / MODEL), config["text"], tokenizer)

    def digests(self) -> dict[str, str]:
        """Names and SHA-256 of the files, and how texts are read."""
        found = {"name": self.file.name, "sha256": sha256_file(self.file)}
        if self.text:
            found["text"] = self.text
        if self.tokenizer:
            found["tokenizer"] = sha256_file(self.tokenizer)
        return found


@functools.cache
def _files(name: str, language: str) -> ModelFiles:
    return ModelFiles.of(name, language)


def _ranges(limits: npt.NDArray[np.float64], bucket: npt.NDArray[np.int64]) -> pa.Array:
    """string[N]: the range of each row's bucket, whose `limits` are float64[N, 2], for people."""
    rows = np.arange(len(bucket))
    below, above = limits[rows, np.maximum(bucket - 1, 0)], limits[rows, np.minimum(bucket, 1)]
    text = [
        f" <= {high:g}" if i == 0 else f" > {low:g}" if i == 2 else f" in {low:g} to {high:g}"
        for i, low, high in zip(bucket.tolist(), below.tolist(), above.tolist(), strict=True)
    ]
    return pa.array(text, pa.string())


Reader = Callable[[str], str]
"""From a text to its sentences: one a line, words between spaces."""


def sentence_reader(text: str, tokenizer: Path | None) -> Reader:
    """How a model reads texts: made `plain` or `raw`, and as the ids of a tokenizer if there is one."""
    read: Reader = plain_text if text == "plain" else raw_text
    if tokenizer is None:
        return read
    encode = load_tokenizer(tokenizer).encode_batch_fast

    def ids(text: str) -> str:
        lines = [line for line in read(text).split("\n") if line.strip()]
        return "\n".join(" ".join(map(str, found.ids)) for found in encode(lines, add_special_tokens=False))

    return ids


@functools.cache
def _reader(text: str, tokenizer: Path | None, pieces: str | None) -> Reader:
    read = sentence_reader(text, tokenizer)
    if not pieces:
        return read
    encode = _pieces(pieces).encode_as_pieces
    return lambda text: "\n".join(" ".join(encode(line.strip())) for line in read(text).split("\n"))


def perplexity(text: str, model: Any, read: Reader) -> float:
    """The perplexity of a text under a KenLM model, rounded to 1e-3; NaN for a text without a word."""
    score, length = 0.0, 0
    for line in read(text).split("\n"):
        words = line.split()
        if words:
            score += model.score(" ".join(words))
            length += len(words) + 1
    return round(10.0 ** min(-score / length, 300), 3) if length else math.nan


def plain_text(text: str) -> str:
    """A text as CCNet's models read it: lower case, no accents, digits as 0, ASCII punctuation, no controls.

    Lines end in a new line, whatever ended them, and white space between words is a space; a tab is a control character
    and goes, as in CCNet.
    """
    lines = "\n".join(text.splitlines())
    if lines.isascii():
        return lines.encode().translate(_ASCII_PLAIN, _CONTROLS).decode()
    return unicodedata.normalize("NFD", lines.lower()).translate(_plain_characters())


def raw_text(text: str) -> str:
    """A text as it is, but lines end in a new line, and white space and zero bytes between words are a space."""
    lines = (" ".join(line.replace("\0", " ").split()) for line in text.splitlines())
    return "\n".join(lines)


@functools.cache
def _plain_characters() -> dict[int, str | None]:
    """What `plain_text` makes of characters: combining marks and controls go, digits are 0."""
    found: dict[int, str | None] = {ord(one): other for one, other in _PUNCTUATION.items()}
    found |= dict.fromkeys((c for c in (*range(0x20), *range(0x7F, 0xA0)) if c != 0x0A), None)
    for code in range(0x80, 0x110000):
        kind = unicodedata.category(chr(code))
        if kind == "Mn":
            found[code] = None
        elif kind == "Nd":
            found[code] = "0"
        elif kind == "Zs":
            found[code] = " "
    return found | dict.fromkeys(range(0x30, 0x3A), "0")


def _languages(batch: pa.RecordBatch) -> pa.Array:
    if "lang" not in batch.schema.names:
        return pa.repeat(UNKNOWN, batch.num_rows)
    return pc.fill_null(batch.column("lang").cast(pa.string()), UNKNOWN)


def _digests(files: Sequence[str]) -> dict[str, dict[str, str]]:
    found = {}
    for language, file in by_language(files).items():
        path = storage.here(file)
        if not path.is_file():
            raise ModelError(f"{file}: the model for {language or 'all languages'} is not there")
        found[language] = {"name": path.name, "sha256": sha256_file(path)}
    return found


def _kenlm() -> Any:
    try:
        import kenlm
    except ImportError:
        raise MissingExtraError(
            "the perplexity stage needs the package kenlm: install datakit[kenlm] (it is built from source: a C++ "
            "compiler and cmake must be there)"
        ) from None
    return kenlm


def load_tokenizer(path: Path) -> "Tokenizer":
    """The tokenizer of a tokenizer.json.

    Raises:
        ModelError: the file is no tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as e:  # the library raises the base class
        raise ModelError(f"{path}: expected a tokenizer.json, found: {e}") from None


def _load(file: str) -> Any:
    """A KenLM model, read once per process, and again where the file changed."""
    return _loaded(file, *file_mark(Path(file)))


@functools.lru_cache(maxsize=64)
def _loaded(file: str, *_mark: int) -> Any:
    kenlm = _kenlm()
    settings = kenlm.Config()
    settings.show_progress, settings.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(file, settings)
    except (OSError, RuntimeError) as e:
        raise ModelError(f"{file}: expected a KenLM model (ARPA or binary), found: {e}") from None


@functools.cache
def _pieces(file: str) -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise MissingExtraError("SentencePiece models need the package sentencepiece: install datakit[kenlm]") from None
    try:
        return sentencepiece.SentencePieceProcessor(model_file=file)
    except (OSError, RuntimeError) as e:
        raise ModelError(f"{file}: expected a SentencePiece model, found: {e}") from None
