"""The perplexity stage: how well a language model predicts a row, compared with the other rows of its language.

Wenzek et al. 2020, CCNet: n-gram models (KenLM, Heafield 2011) of well-written text, one for each language. Their
perplexity divides the rows of a language into head (up to the 30th percentile), middle (up to the 60th) and tail.

As in CCNet, each line is a sentence for the model, and a row's perplexity is 10 ** (-score / length) over all its
lines; the length counts the words and one end for each line. Texts are simplified first: lower case, no accents, digits
as 0, ASCII punctuation, no control characters (`text = "plain"`). CCNet's own models read the pieces of a SentencePiece
model, which is named beside them. CCNet computes its percentiles on a sample of one crawl, this stage on all its rows.
"""

import functools
import json
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, sha256_file
from datakit.data import view
from datakit.errors import ConfigError, MissingExtraError, ModelError
from datakit.filter import ranking
from datakit.stage import Decision, Stage

BUCKETS = ("head", "middle", "tail")
UNKNOWN = "unknown"
"""The language of rows whose `lang` is null."""

_PUNCTUATION = str.maketrans(
    {"，": ",", "、": ",", "。": ".", "．": ". ", "：": ":", "∶": ":", "；": ";", "？": "?", "！": "!", "…": "...",
     "（": "(", "）": ")", "【": "[", "】": "]", "〈": "<", "〉": ">", "％": "%", "～": "~", "–": "-", "—": " - ",
     "━": "-", "►": "-", "’": "'", "´": "'"} | dict.fromkeys("„“”«»「」《》", '"')
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PerplexityConfig:
    """Which models compute perplexities, and which rows stay."""

    models: tuple[str, ...] = option(
        (), "KenLM models, each LANGUAGE=FILE with the language as in `lang`; a FILE alone is for all others", path=True
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
    help: ClassVar[str] = "N-gram models of each language measure the rows, as in CCNet. Run the language stage first."
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
            raise ConfigError("models: the perplexity stage needs KenLM models, as --models en=en.arpa.bin")
        _kenlm()
        found = {"models": _digests(self.config.models), "sentencepiece": _digests(self.config.sentencepiece)}
        return found | ({"unicode": unicodedata.unidata_version} if self.config.text == "plain" else {})

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
                found[i] = perplexity(text, *self._model(key), plain=self.config.text == "plain")
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
        details = pc.binary_join_element_wise("perplexity", values.cast(pa.string()), " ")
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

    def _model(self, language: str) -> tuple[Any, Any]:
        pieces = by_language(self.config.sentencepiece).get(language)
        return _load(by_language(self.config.models)[language]), _pieces(pieces) if pieces else None


def perplexity(text: str, model: Any, pieces: Any, *, plain: bool) -> float:
    """The perplexity of a text under a KenLM model, rounded to 1e-3; NaN for a text without a word."""
    score, length = 0.0, 0
    for line in text.splitlines():
        read = plain_text(line) if plain else line.strip()
        words = pieces.encode_as_pieces(read) if pieces else read.split()
        if words:
            score += model.score(" ".join(words))
            length += len(words) + 1
    return round(10.0 ** min(-score / length, 300), 3) if length else math.nan


def plain_text(line: str) -> str:
    """A line as CCNet's models read it: lower case, no accents, digits as 0, ASCII punctuation, no controls."""
    parts = unicodedata.normalize("NFD", line.strip().lower())
    bare = re.sub(r"\d", "0", "".join(c for c in parts if unicodedata.category(c) != "Mn"))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", bare.translate(_PUNCTUATION))


def _languages(batch: pa.RecordBatch) -> pa.Array:
    if "lang" not in batch.schema.names:
        return pa.repeat(UNKNOWN, batch.num_rows)
    return pc.fill_null(batch.column("lang").cast(pa.string()), UNKNOWN)


def _digests(files: Sequence[str]) -> dict[str, dict[str, str]]:
    found = {}
    for language, file in by_language(files).items():
        path = Path(file)
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


@functools.cache
def _load(file: str) -> Any:
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
