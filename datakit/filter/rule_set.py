"""What texts are measured by, and the base class of rule sets, which say what measurements drop a row.

One pass over a batch counts the *signals* that all rule sets share. Words are white-space tokens with their
punctuation, as in Rae et al. (2021); each character of a script written without spaces is a word of its own. Lines end
where `str.splitlines` ends them and count only if they hold more than white space; paragraphs are lines between blank
lines. A character is a code point.

A *rule set* is a frozen dataclass of thresholds that subclasses `RuleSet`, in a file of its own; `RULE_SETS` in
`filter.stage` lists them. The name of a threshold says how it decides: `min_words` drops rows that measure less,
`max_words` drops rows that measure more.
"""

import dataclasses
import functools
import importlib.metadata
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.data import On, string_buffers, view, whole_rows
from datakit.errors import ConfigError
from datakit.text import words
from datakit.text.words import BREAKS, QUOTES, TERMINALS, hash_words, split_words

Counts = NDArray[np.int64]
Ratios = NDArray[np.float64]

SPACE, BREAK, LETTER, MARK, NUMBER, SPACELESS, TERMINAL, QUOTE = (1 << bit for bit in range(8))
"""Flags of a character in `character_classes`; the kernels repeat them, and a test compares the two."""

_SHARED_FLAGS = {
    SPACE: words.SPACE,
    LETTER: words.LETTER,
    MARK: words.MARK,
    NUMBER: words.NUMBER,
    SPACELESS: words.SPACELESS,
}


@functools.cache
def character_classes() -> NDArray[np.uint8]:
    """uint8[0x110000], read-only: the flags of every code point.

    SPACELESS characters are the letters, marks and numbers of scripts written without spaces, the same ones as in
    dedup.
    """
    shared = words.character_table()
    flat = shared.entries.reshape(-1, 256)[shared.pages].reshape(-1)
    table = np.zeros(flat.size, np.uint8)
    for flag, source in _SHARED_FLAGS.items():
        table[(flat & source) != 0] |= flag
    for flag, marks in ((BREAK, BREAKS), (TERMINAL, TERMINALS), (QUOTE, QUOTES)):
        table[[ord(c) for c in marks]] |= flag
    table.setflags(write=False)
    return table


@dataclass(frozen=True, slots=True)
class Signals:
    """Counts of each row, int64[N] each, by name; `_kernels_signals.SIGNALS` says what the shared ones count."""

    counts: Mapping[str, Counts]

    def __getitem__(self, name: str) -> Counts:
        return self.counts[name]

    def ratio(self, part: str, whole: str) -> Ratios:
        """part / whole of each row, 0 where the whole is 0, rounded to 1e-3."""
        return ratio(self[part], self[whole])

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> "Signals":
        """The signals that are columns of `batch`: all columns of type int64."""
        names = [f.name for f in batch.schema if pa.types.is_int64(f.type)]
        return cls({n: batch.column(n).to_numpy(zero_copy_only=False) for n in names})


def count_signals(texts: pa.Array) -> Signals:
    """Count all shared signals of a string array in one pass; a null counts as an empty text."""
    from datakit.filter import _kernels_signals

    data, offsets = string_buffers(texts)
    counted = _kernels_signals.measure(data, offsets, character_classes())
    return Signals(dict(zip(_kernels_signals.SIGNALS, counted, strict=True)))


def ratio(part: Counts, whole: Counts) -> Ratios:
    """part / whole, 0 where the whole is 0, rounded to 1e-3 like everything that decides."""
    shares: Ratios = np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)
    return np.round(shares, 3)


# Stop words of languages other than English: how many different ones of its own language a row has.
#
# The lists are those of stopwords-iso (MIT), from the package stopwordsiso; its version is among the filter stage's
# resources. A language that is written without spaces has no list here: whole words cannot be found in it. Words are
# those of dedup (letters, marks and digits, case-folded), so that "l'eau" has "l" and "eau".

_LEFT_OUT: Final = frozenset({"en", "ja", "th", "zh", "ku"})
"""English has Gopher's list. The list of Kurdish is for Sorani, and models write `ku` for Kurmanji, too."""

_ISO_639_3: Final = {
    "afr": "af", "arb": "ar", "ara": "ar", "bul": "bg", "ben": "bn", "bre": "br", "cat": "ca", "ces": "cs", "dan": "da",
    "deu": "de", "ell": "el", "epo": "eo", "spa": "es", "est": "et", "ekk": "et", "eus": "eu", "fas": "fa", "pes": "fa",
    "fin": "fi", "fra": "fr", "gle": "ga", "glg": "gl", "guj": "gu", "hau": "ha", "heb": "he", "hin": "hi", "hrv": "hr",
    "hun": "hu", "hye": "hy", "ind": "id", "ita": "it", "kor": "ko", "lat": "la", "lit": "lt", "lav": "lv",
    "lvs": "lv", "mar": "mr", "msa": "ms", "zsm": "ms", "nld": "nl", "nor": "no", "nob": "no", "nno": "no", "nn": "no",
    "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl", "som": "so", "sot": "st", "swe": "sv",
    "swa": "sw", "swh": "sw", "tgl": "tl", "fil": "tl", "tur": "tr", "ukr": "uk", "urd": "ur", "vie": "vi", "yor": "yo",
    "zul": "zu", "eng": "en", "zho": "zh", "cmn": "zh", "jpn": "ja", "tha": "th",
}  # fmt: skip
"""Other codes of models for languages with lists."""

UNKNOWN_LANGUAGE, NO_LIST = -1, -2
"""In place of a language's number: the language is unknown; it is English, or has no list."""


@dataclass(frozen=True, slots=True)
class StopWords:
    """The words of all lists, in a hash table: `masks[i]` has the languages in which word i is a stop word, as bits."""

    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    masks: NDArray[np.uint64]


def stop_words_version() -> str | None:
    """The version of the lists; None without the package."""
    return importlib.metadata.version("stopwordsiso") if _stopwordsiso() else None


@functools.cache
def stop_word_languages() -> tuple[str, ...]:
    """The languages with a list, English left out; none without the package."""
    return tuple(sorted(set(_stopwordsiso().langs()) - _LEFT_OUT)) if _stopwordsiso() else ()


def language_of(label: str | None) -> str | None:
    """The language of a model's label, as the lists name it: "deu_Latn" is "de"; None for a language without a list."""
    code = short_code(label or "")
    return code if code in stop_word_languages() else None


def short_code(label: str) -> str:
    """A language's label without script and region, in two letters where it has such a code: "deu_Latn" is "de"."""
    code = re.split("[_-]", label)[0].lower()
    return _ISO_639_3.get(code, code)


def count_stop_words(texts: pa.Array, labels: pa.Array) -> NDArray[np.int64]:
    """int64[N]: how many different stop words of its language each row has; 0 for English and languages without a list.

    `labels` is string[N], the rows' languages. A row without one counts for the language that it has most words of.
    """
    from datakit.filter import _kernels_lookup

    numbers = language_numbers(labels)
    of, counts = np.flatnonzero(numbers != NO_LIST), np.zeros(len(texts), np.int64)
    if len(of) and stop_word_languages():
        known = stop_word_lists()
        words, starts = hash_words(texts.take(pa.array(of)) if len(of) < len(texts) else texts)
        counts[of] = _kernels_lookup.count_stop_words(
            words, starts, numbers[of], known.slots, known.numbers, known.masks
        )
    return counts


def language_numbers(labels: pa.Array) -> NDArray[np.int64]:
    """int64[N]: the index of each label's language in `stop_word_languages()`, or UNKNOWN_LANGUAGE, or NO_LIST."""
    encoded = pc.dictionary_encode(labels.cast(pa.string()))
    known = {name: place for place, name in enumerate(stop_word_languages())}
    numbers = [known.get(language_of(label) or "", NO_LIST) for label in encoded.dictionary.to_pylist()]
    of = np.array([*numbers, UNKNOWN_LANGUAGE])
    return np.asarray(of[pc.fill_null(encoded.indices, len(of) - 1).to_numpy(zero_copy_only=False)])


def check_stop_words(names: tuple[str, ...]) -> None:
    """Check that there are stop words for the languages that a config names ("all", "en" or one of the lists).

    Raises:
        ConfigError: a language without a list.
    """
    known = stop_word_languages()
    for name in names:
        if name not in ("all", "en", *known):
            there = f"there are lists for en, {', '.join(known)}" if known else "install stopwordsiso"
            raise ConfigError(f"stop_words: there is no list of stop words for {name!r}; {there}")


@functools.cache
def stop_word_lists() -> StopWords:
    """All lists, read once per process. Entries that are several words in our sense are left out."""
    from datakit.filter import _kernels_lookup

    found: dict[str, int] = {}
    for place, language in enumerate(stop_word_languages()):
        for entry in _stopwordsiso().stopwords(language):
            words = split_words(entry)
            if len(words) == 1 and any(c.isalpha() for c in words[0]):
                found[words[0]] = found.get(words[0], 0) | 1 << place
    hashes, _ = hash_words(pa.array(sorted(found)))
    masks = np.array([found[word] for word in sorted(found)], np.uint64)
    slots, numbers = _kernels_lookup.table_of(hashes)
    return StopWords(slots, numbers, masks)


@functools.cache
def all_stop_words() -> NDArray[np.uint64]:
    """The hashes of the stop words of all languages, of single letters and of numbers with up to four digits."""
    lists = _stopwordsiso()
    entries = set().union(*(lists.stopwords(language) for language in lists.langs())) if lists else set()
    entries |= {chr(c) for c in range(ord("a"), ord("z") + 1)} | {
        f"{n:0{d}d}" for d in range(1, 5) for n in range(10**d)
    }
    hashes, starts = hash_words(pa.array(sorted(entries)))
    return np.unique(hashes[starts[:-1][np.diff(starts) == 1]])


def _stopwordsiso() -> Any:
    try:
        import stopwordsiso
    except ImportError:
        return None
    return stopwordsiso


# Rule sets.


@dataclass(frozen=True, slots=True)
class RowEdits:
    """What a rule set changes in the fields of rows."""

    columns: dict[str, pa.Array]
    changed: NDArray[np.bool_]
    """bool[N]"""
    counts: dict[str, int]
    """For the ledger."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The values that one threshold is compared with."""

    threshold: str
    """The field of the rule set, `min_...` or `max_...`; the rest of the name says what was measured."""
    values: NDArray[Any]
    """int64[N] or float64[N], floats rounded to 1e-3."""
    applies: NDArray[np.bool_] | None = None
    """bool[N]: False for rows that the threshold does not judge; None: it judges all rows."""
    label: str = ""
    """The name of a user's list or pattern: reasons have it in place of the threshold's."""
    says: Callable[[NDArray[np.int64]], list[str]] | None = None
    """For people, of some rows, in place of the measured value and the limit."""

    def fails(self, limit: float) -> NDArray[np.bool_]:
        """bool[N]: the rows on the wrong side of the limit."""
        wrong = self.values < limit if self.threshold.startswith("min_") else self.values > limit
        return np.asarray(wrong if self.applies is None else wrong & self.applies)

    def details(self, limit: float, rows: NDArray[np.int64]) -> list[str]:
        """For people, of some rows: the measured value and the limit, or what the rule set says."""
        if self.says is not None:
            return self.says(rows)
        what, sign = self.threshold[4:], "<" if self.threshold.startswith("min_") else ">"
        return [f"{what} {value} {sign} {limit}" for value in self.values[rows].tolist()]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSet:
    """Base class of rule sets. A subclass declares its thresholds as fields and overrides what it needs."""

    name: ClassVar[str]
    """What recipes, `--set` and reasons call the rule set."""
    counts: ClassVar[bool] = False
    """True for a rule set that counts signals of its own, with `count`."""
    shared: ClassVar[bool] = False
    """True for a rule set that measures by the shared signals; they are counted only where such a one is active."""
    edits: ClassVar[bool] = False
    """True for a rule set that changes the text of rows that stay, with `edit`."""
    on: ClassVar[On | None] = None
    """The part of a row that `count` looks at; None: the part that the stage looks at."""
    whole_row: ClassVar[bool] = False
    """True for a rule set whose `count` looks at all text of a row, whatever its field: see `data.whole_rows`."""

    def __post_init__(self) -> None:
        _check_thresholds(dataclasses.asdict(self))
        self.check()

    def check(self) -> None:
        """Raise ConfigError for values that make no sense. Shares, signs and minimum <= maximum are checked already."""

    def resources(self) -> dict[str, Any]:
        """Files that shape the result, by name and SHA-256, as JSON. Default: none."""
        return {}

    def open(self) -> None:
        """Load what the work needs, once per process. Default: nothing."""

    def describe(self) -> tuple[str, ...]:
        """Lines for people on what is about to happen, printed when the stage begins. Default: none."""
        return ()

    def ledger(self) -> dict[str, int]:
        """Counts for the ledger that do not depend on rows. Default: none."""
        return {}

    def alarms(self) -> Iterator[str]:
        """Sentences about what the rule set cannot do; with `--strict` they end the command. Default: none."""
        return iter(())

    def measure(self, rows: "MeasuredRows") -> Iterator[Measure]:
        """One `Measure` for each threshold, in the order in which the thresholds decide."""
        raise NotImplementedError(f"{type(self).__name__}.measure")

    def count(self, texts: pa.Array) -> Signals:
        """The rule set's own signals of some texts; they are saved with the shared ones."""
        raise NotImplementedError(f"{type(self).__name__}.count")

    def counted_with(self) -> dict[str, Any]:
        """The values that shape what `count` counts: with other values the texts must be read again. Default: none."""
        return {}

    def count_rows(self, rows: "MeasuredRows") -> Signals:
        """The same for rows, for a rule set that looks at their fields one by one. Default: `count` of their text."""
        return self.count(rows.texts_for(self))

    def edit_rows(self, batch: pa.RecordBatch, rows: "MeasuredRows") -> RowEdits | None:
        """New columns for all rows of `batch`, those that are dropped too, instead of `edit`.

        For a rule set that changes other fields than prose. `batch` is `rows.batch` with the changes of earlier rule
        sets. Default: None, `edit` is called.
        """
        return None

    def edit_text(self, texts: pa.Array) -> pa.Array:
        """The same for texts of side tables. Default: unchanged."""
        return texts

    def edit(self, texts: pa.Array, kind: str) -> pa.Array:
        """The new texts of rows that stay, string[N] to string[N]; unchanged texts must come back byte for byte."""
        return texts

    def side_tables(self, rows: "MeasuredRows") -> dict[str, pa.RecordBatch]:
        """Tables to write beside the rows, by role. Default: none."""
        return {}

    def notes(self, rows: "MeasuredRows", stays: NDArray[np.bool_]) -> dict[str, int]:
        """Counts for the ledger; `stays` (bool[N]) has the rows that no rule set drops. Default: none."""
        return {}


@dataclass(frozen=True)
class MeasuredRows:
    """A batch as rule sets see it: its rows and their signals. Signals are counted when they are first asked for."""

    batch: pa.RecordBatch
    on: On = "all"
    """The part of each row that the shared signals look at."""
    include_system: bool = False
    saved: pa.RecordBatch | None = None
    """Signals of these rows that an earlier run saved; then no text is read."""
    _counted: dict[str, Signals] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    """What rule sets found when they counted, and need again when they edit; by their names."""

    @property
    def languages(self) -> pa.Array:
        """string[N]: the language of each row, null where it is unknown."""
        if "lang" in self.batch.schema.names:
            return self.batch.column("lang").cast(pa.string())
        return pa.nulls(self.batch.num_rows, pa.string())

    @functools.cached_property
    def texts(self) -> pa.Array:
        """string[N]: the part of each row that the stage looks at."""
        return view(self.batch, self.on, self.include_system)

    @functools.cached_property
    def whole_rows(self) -> pa.Array:
        """string[N]: all text of each row."""
        return whole_rows(self.batch)

    def texts_for(self, rule_set: RuleSet) -> pa.Array:
        """string[N]: the part of each row that a rule set looks at."""
        if rule_set.whole_row:
            return self.whole_rows
        return view(self.batch, rule_set.on) if rule_set.on else self.texts

    @functools.cached_property
    def signals(self) -> Signals:
        """The signals that all rule sets share."""
        if self.saved is not None:
            return Signals.from_batch(self.saved)
        own = {"own_stop_words": count_stop_words(self.texts, self.languages)}
        return Signals(dict(count_signals(self.texts).counts) | own)

    def counted(self, rule_set: RuleSet) -> Signals:
        """The signals that a rule set counts by itself."""
        if self.saved is not None:
            return self.signals
        if rule_set.name not in self._counted:
            self._counted[rule_set.name] = rule_set.count_rows(self)
        return self._counted[rule_set.name]


def _check_thresholds(values: dict[str, Any]) -> None:
    """Every `*_ratio` lies in 0..1, no other number is negative, no minimum exceeds its maximum.

    Raises:
        ConfigError: a threshold that makes no sense.
    """
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    for name, value in numbers.items():
        if not 0 <= value < math.inf or (name.endswith("_ratio") and value > 1):
            raise ConfigError(
                f"{name} = {value}: expected {'a share from 0 to 1' if '_ratio' in name else '0 or more'}"
            )
        if name.startswith("min_") and value > numbers.get("max_" + name[4:], value):
            raise ConfigError(f"{name} = {value} is more than max_{name[4:]} = {numbers['max_' + name[4:]]}")
