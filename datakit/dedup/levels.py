"""What the stages that deduplicate at another level than the document can be told."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from datakit.config import option
from datakit.errors import ConfigError

_LOSS = "raise an alarm where a source loses more than this share of its words"
_MEMORY = "memory in MB for comparing all rows; what takes more is put on the disk, with the same result"


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlsConfig:
    """Rows with the URL of an earlier row are dropped."""

    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    same: Literal["page", "exact"] = option(
        "page", "page: URLs that lead to one page are the same (scheme, fragment, tracking, ...); exact: equal ones"
    )
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this have one URL")
    max_source_loss: float = option(0.75, "raise an alarm where a source loses more than this share of its rows")
    memory_mb: int = option(1024, _MEMORY, result=False)

    def __post_init__(self) -> None:
        if not all(self.field.split(".")):
            raise ConfigError(
                f"field names a column or a field of extra, such as url or meta.url; found {self.field!r}"
            )
        _check(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinesConfig:
    """Lines or paragraphs that stand in an earlier row, or earlier in their row, are cut out of the text."""

    unit: Literal["line", "paragraph"] = option("line", "what is compared; a paragraph ends at a blank line")
    min_words: int = option(5, "leave units of fewer words alone: headings, brackets, code that all files share")
    digits: Literal["as_written", "zero"] = option("as_written", "zero: units that differ in digits alone are the same")
    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_source_loss: float = option(0.75, _LOSS)
    memory_mb: int = option(1024, _MEMORY, result=False)

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpansConfig:
    """Runs of sentences that stand in an earlier row, or earlier in their row, are cut out of the text."""

    span_sentences: int = option(3, "sentences in a row that are compared as one")
    min_words: int = option(10, "leave spans of fewer words alone")
    digits: Literal["as_written", "zero"] = option("as_written", "zero: spans that differ in digits alone are the same")
    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_source_loss: float = option(0.75, _LOSS)
    memory_mb: int = option(1024, _MEMORY, result=False)

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class NgramsConfig:
    """Rows, and lines or paragraphs of texts, whose n-grams stand in earlier rows are dropped and cut."""

    ngram_words: int = option(13, "words in an n-gram")
    threshold: float = option(0.8, "least share of n-grams that stand in earlier rows")
    remove: Literal["auto", "document", "parts", "both"] = option(
        "auto", "rows whole, parts of their texts, or either as its share is; auto: both for texts, else document"
    )
    part: Literal["line", "paragraph"] = option("line", "what is cut; n-grams do not reach from one part into the next")
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    false_positive_rate: float = option(0.001, "share of new n-grams that the full filter takes for known ones")
    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_source_loss: float = option(0.75, _LOSS)
    memory_mb: int = option(1024, _MEMORY, result=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0 or round(self.threshold, 3) != self.threshold:
            raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {self.threshold}")
        if not 1e-9 <= self.false_positive_rate <= 0.5:
            raise ConfigError(f"false_positive_rate must lie in [1e-9, 0.5], found {self.false_positive_rate}")
        _check(self)

    @property
    def least(self) -> Fraction:
        """The threshold as the exact ratio that counts of n-grams are compared with."""
        return Fraction(round(self.threshold * 1000), 1000)


_LEAST = {
    "min_words": 1,
    "min_words_left": 0,
    "span_sentences": 1,
    "ngram_words": 1,
    "max_cluster_rows": 1,
    "memory_mb": 1,
}


def _check(config: Any) -> None:
    for name, least in _LEAST.items():
        if getattr(config, name, least) < least:
            raise ConfigError(f"{name} must be at least {least}, found {getattr(config, name)}")
    if not 0.0 <= config.max_source_loss <= 1.0:
        raise ConfigError(f"max_source_loss is a share and lies in [0, 1], found {config.max_source_loss}")
