"""What texts are measured by, and the base class of rule sets, which say what measurements drop a row.

One pass over a batch counts the *signals* that all rule sets share. Words are white-space tokens with their
punctuation, as in Rae et al. (2021); each character of a script written without spaces is a word of its own. Lines end
where `str.splitlines` ends them and count only if they hold more than white space; paragraphs are lines between blank
lines. A character is a code point.

A *rule set* is a frozen dataclass of thresholds that subclasses `RuleSet`, in a file of its own; `RULE_SETS` in
`filter.stage` lists them. The name of a threshold says how it decides: `min_words` drops rows that measure less,
`max_words` drops rows that measure more. A rule set has five hooks, each with a default: `signals` counts what it needs
besides the shared signals, `measures` compares, `edit` changes what stays, `resources` loads files, `report` tells.
`__post_init__` of a subclass checks values that make no sense, after `RuleSet.__post_init__(self)`.

Among the signals are *stop words* of languages other than English: how many different ones of its own language a row
has. The lists are those of stopwords-iso (MIT), from the package stopwordsiso; its version is among the filter stage's
resources. A language that is written without spaces has no list here: whole words cannot be found in it. Words are
those of dedup (letters, marks and digits, case-folded), so that "l'eau" has "l" and "eau".
"""

import dataclasses
import functools
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import resolved
from datakit.data import Bools, Floats, Hashes, Integers, Numbers, On, string_buffers, view, whole_rows
from datakit.errors import ConfigError
from datakit.text import words
from datakit.text.words import compose, hash_words, split_words

SPACE, BREAK, LETTER, MARK, NUMBER, UNSEGMENTED, TERMINAL, QUOTE = (1 << bit for bit in range(8))
"""Flags of a character in `character_classes`; the kernels repeat them, and a test compares the two."""


@functools.cache
def character_classes() -> NDArray[np.uint8]:
    """uint8[0x110000], read-only: the flags of every code point.

    UNSEGMENTED characters are the letters, marks and numbers of scripts written without spaces, the same ones as in
    dedup.
    """
    shared = words.character_table()
    flat = shared.entries.reshape(-1, 256)[shared.pages].reshape(-1)
    table = np.zeros(flat.size, np.uint8)
    sources = (words.SPACE, words.LETTER, words.MARK, words.NUMBER, words.SPACELESS)
    for flag, source in zip((SPACE, LETTER, MARK, NUMBER, UNSEGMENTED), sources, strict=True):
        table[(flat & source) != 0] |= flag
    for flag, marks in ((BREAK, words.BREAKS), (TERMINAL, words.TERMINALS), (QUOTE, words.QUOTES)):
        table[[ord(c) for c in marks]] |= flag
    table.setflags(write=False)
    return table


class NotMeasuredError(LookupError):
    """A rule set needs what the saved signals do not tell: `tune` says so of it."""


class Signals(dict[str, Integers]):
    """Integers of each row, int64[N] each, by name; `_kernels_signals.SIGNALS` says what the shared ones count."""

    def __missing__(self, name: str) -> Integers:
        raise NotMeasuredError(name)

    def ratio(self, part: str, whole: str) -> Floats:
        """part / whole of each row, 0 where the whole is 0, rounded to 1e-3."""
        return ratio(self[part], self[whole])


def count_signals(texts: pa.Array) -> Signals:
    """Count all shared signals of a string array in one pass; a null counts as an empty text."""
    from datakit.filter import _kernels_signals

    data, offsets = string_buffers(texts)
    counted = _kernels_signals.measure(data, offsets, character_classes())
    return Signals(zip(_kernels_signals.SIGNALS, counted, strict=True))


def ratio(part: Integers, whole: Integers) -> Floats:
    """part / whole, 0 where the whole is 0, rounded to 1e-3 like everything that decides."""
    shares: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)
    return np.round(shares, 3)


@dataclass(frozen=True, slots=True)
class Measure:
    """The values that one threshold is compared with."""

    threshold: str
    """The field of the rule set, `min_...` or `max_...`; the rest of the name says what was measured."""
    values: NDArray[Any]
    """int64[N] or float64[N], floats rounded to 1e-3."""
    applies: Bools | None = None
    """bool[N]: False for rows that the threshold does not judge; None: it judges all rows."""
    label: str = ""
    """The name of a user's list or pattern: reasons have it in place of the threshold's."""
    describe: Callable[[Integers], list[str]] | None = None
    """For people, of some rows, in place of the measured value and the limit."""

    def fails(self, limit: float) -> Bools:
        """bool[N]: the rows on the wrong side of the limit."""
        wrong = self.values < limit if self.threshold.startswith("min_") else self.values > limit
        return np.asarray(wrong if self.applies is None else wrong & self.applies)

    def details(self, limit: float, rows: Integers) -> list[str]:
        """For people, of some rows: the measured value and the limit, or what the rule set says."""
        if self.describe is not None:
            return self.describe(rows)
        what, sign = self.threshold[4:], "<" if self.threshold.startswith("min_") else ">"
        return [f"{what} {value} {sign} {limit}" for value in self.values[rows].tolist()]


@dataclass(frozen=True, slots=True)
class Resources:
    """The files that a rule set works with, and what people should know of them before any row is read."""

    digests: dict[str, Any] = field(default_factory=dict)
    """By name, with SHA-256 or version, as JSON: they shape the result."""
    lines: tuple[str, ...] = ()
    """Printed when the stage begins."""
    counters: dict[str, int] = field(default_factory=dict)
    """Integers for the ledger that do not depend on rows."""
    alarms: tuple[str, ...] = ()
    """Sentences about what the rule set cannot do; with `--strict` they end the command."""


@dataclass(frozen=True, slots=True)
class Edits:
    """What a rule set changes in a table."""

    columns: dict[str, pa.Array]
    changed: Bools
    """bool[N]"""
    counters: dict[str, int] = field(default_factory=dict)
    """For the ledger."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a rule set tells about a batch besides the reasons."""

    counters: dict[str, int] = field(default_factory=dict)
    """For the ledger."""
    tables: dict[str, pa.RecordBatch] = field(default_factory=dict)
    """Written beside the rows, by role."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSet:
    """Base class of rule sets. A subclass declares its thresholds as fields and overrides what it needs."""

    name: ClassVar[str]
    """What recipes, `--set` and reasons call the rule set."""
    shared: ClassVar[bool] = False
    """True for a rule set that measures by the shared signals; they are counted only where such a one is active."""
    ratios: ClassVar[dict[str, tuple[str, str]]] = {}
    """Thresholds that are compared with one shared signal as a share of another: (part, whole)."""
    measured_with: ClassVar[tuple[str, ...] | None] = None
    """The fields that shape what `signals` counts (files are among the resources); None: all fields may.

    Where these are the same in a later run, the counts of the earlier one decide, and `datakit tune` tells of them. It
    leaves out a rule set whose `measures` read texts instead of signals.
    """

    def __post_init__(self) -> None:
        """Check that every `*_ratio` lies in 0..1, no other number is negative, no minimum exceeds its maximum."""
        values = dataclasses.asdict(self)
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
        for name, value in numbers.items():
            if not 0 <= value < math.inf or (name.endswith("_ratio") and value > 1):
                raise ConfigError(
                    f"{name} = {value}: expected {'a share from 0 to 1' if '_ratio' in name else '0 or more'}"
                )
            if name.startswith("min_") and value > numbers.get("max_" + name[4:], value):
                raise ConfigError(f"{name} = {value} is more than max_{name[4:]} = {numbers['max_' + name[4:]]}")

    def resources(self) -> Resources:
        """Load what the work needs, once per process; raise a clear error for files that are missing or unusable."""
        return Resources()

    def signals(self, rows: "MeasuredRows") -> Signals:
        """The rule set's own signals of rows; they are saved with the shared ones."""
        return Signals()

    def measures(self, rows: "MeasuredRows") -> Iterator[Measure]:
        """One `Measure` for each threshold, in the order in which the thresholds decide. Default: those of `ratios`."""
        for threshold, (part, whole) in self.ratios.items():
            yield Measure(threshold, rows.signals.ratio(part, whole))

    def judged(self, rows: "MeasuredRows") -> "Iterator[tuple[str, float, Measure]]":
        """(the reason that a threshold gives, its limit, what is compared with it), in the order of `measures`."""
        limits = dataclasses.asdict(self)
        for measure in self.measures(rows):
            yield f"{self.name}.{measure.label or measure.threshold}", limits[measure.threshold], measure

    def edit(self, table: pa.RecordBatch, stays: Bools) -> Edits | None:
        """New columns of a table: of the rows, with the edits of earlier rule sets, then of each table beside them.

        `stays` (bool[N]) has the rows that no rule set drops. What does not change must come back byte for byte.
        """
        return None

    def report(self, rows: "MeasuredRows", stays: Bools) -> Report:
        """Counters and tables about a batch."""
        return Report()

    @property
    def counts(self) -> bool:
        """Whether it has signals of its own."""
        return type(self).signals is not RuleSet.signals

    def settings(self) -> dict[str, Any]:
        """The options in `measured_with`: if one changes, texts must be read again. Of a file only its name counts."""
        values, wanted = resolved(self), self.measured_with
        return values if wanted is None else {name: value for name, value in values.items() if name in wanted}


@dataclass(frozen=True)
class MeasuredRows:
    """A batch as rule sets see it: its rows and their signals. Signals are counted when they are first asked for."""

    batch: pa.RecordBatch
    on: On = "all"
    """The part of each row that the shared signals look at."""
    include_system: bool = False
    saved: pa.RecordBatch | None = None
    """Signals of these rows that a run saved, for `tune`; then no text is read."""
    _counted: dict[str, Signals] = field(default_factory=dict)

    @property
    def languages(self) -> pa.Array:
        """string[N]: the language of each row, null where it is unknown."""
        if "lang" in self.batch.schema.names:
            return self.batch.column("lang").cast(pa.string())
        return pa.nulls(self.batch.num_rows, pa.string())

    def unmeasured(self) -> pa.RecordBatch:
        """The rows themselves.

        Raises:
            NotMeasuredError: there are only signals, which an earlier run saved.
        """
        if self.saved is self.batch:
            raise NotMeasuredError("the rows")
        return self.batch

    @functools.cached_property
    def texts(self) -> pa.Array:
        """string[N]: the part of each row that the stage looks at."""
        return view(self.unmeasured(), self.on, self.include_system)

    @functools.cached_property
    def whole_rows(self) -> pa.Array:
        """string[N]: all text of each row."""
        return whole_rows(self.unmeasured())

    @functools.cached_property
    def signals(self) -> Signals:
        """The signals that all rule sets share; where they were saved, those of each rule set too."""
        if self.saved is not None:
            names = [f.name for f in self.saved.schema if pa.types.is_int64(f.type)]
            return Signals({n: self.saved.column(n).to_numpy(zero_copy_only=False) for n in names})
        own = {"own_stop_words": count_stop_words(self.texts, self.languages)}
        return Signals(count_signals(self.texts) | own)

    def counted(self, rule_set: RuleSet) -> Signals:
        """The signals that a rule set counts by itself."""
        if self.saved is not None:
            return self.signals
        if rule_set.name not in self._counted:
            self._counted[rule_set.name] = rule_set.signals(self)
        return self._counted[rule_set.name]


# Stop words.

_LEFT_OUT: Final = frozenset({"en", "ja", "th", "zh", "ku"})
"""English has Gopher's list. The list of Kurdish is for Sorani, and models write `ku` for Kurmanji, too."""

_NAMES_OF_LISTS: Final = {"nb": "no", "nn": "no", "fil": "tl"}
"""ISO 639 codes of languages whose list has another code: one list for both forms of Norwegian; Filipino as Tagalog."""

UNKNOWN_LANGUAGE, NO_LIST = -1, -2
"""In place of a language's number: the language is unknown; it is English, or has no list."""


@functools.cache
def stop_word_languages() -> tuple[str, ...]:
    """The languages with a list, English left out."""
    import stopwordsiso

    return tuple(sorted(set(stopwordsiso.langs()) - _LEFT_OUT))


@functools.cache
def short_code(label: str) -> str:
    """A language's label as the lists name it: "deu_Latn" is "de", "cmn" is "zh" (IANA's registry, from langcodes)."""
    from langcodes import standardize_tag

    code = re.split("[_-]", label)[0].lower()
    try:
        code = standardize_tag(code, macro=True)
    except ValueError:  # no code of a language: the name of a user's list, say
        return code
    return _NAMES_OF_LISTS.get(code, code)


def count_stop_words(texts: pa.Array, labels: pa.Array) -> Integers:
    """int64[N]: how many different stop words of its language each row has; 0 for English and languages without a list.

    `labels` is string[N], the rows' languages. A row without one counts for the language that it has most words of.
    """
    from datakit.filter import _kernels_lookup

    numbers = language_numbers(labels)
    of, counts = np.flatnonzero(numbers != NO_LIST), np.zeros(len(texts), np.int64)
    if len(of):
        words, starts = hash_words(compose(texts.take(pa.array(of)) if len(of) < len(texts) else texts))
        counts[of] = _kernels_lookup.count_stop_words(words, starts, numbers[of], *stop_word_lists())
    return counts


def language_numbers(labels: pa.Array) -> Integers:
    """int64[N]: the index of each label's language in `stop_word_languages()`, or UNKNOWN_LANGUAGE, or NO_LIST."""
    encoded = pc.dictionary_encode(labels.cast(pa.string()))
    known = {name: place for place, name in enumerate(stop_word_languages())}
    numbers = [known.get(short_code(label), NO_LIST) for label in encoded.dictionary.to_pylist()]
    of = np.array([*numbers, UNKNOWN_LANGUAGE])
    return np.asarray(of[pc.fill_null(encoded.indices, len(of) - 1).to_numpy(zero_copy_only=False)])


@functools.cache
def stop_word_lists() -> tuple[Hashes, Numbers, Hashes]:
    """All lists, read once per process: (slots, numbers, masks), the hash table of their words (`table_of`), and for
    each word the languages in which it is a stop word, as bits. Entries that are several words for us are left out."""
    import stopwordsiso

    from datakit.filter import _kernels_lookup

    found: dict[str, int] = {}
    for place, language in enumerate(stop_word_languages()):
        for entry in stopwordsiso.stopwords(language):
            words = split_words(unicodedata.normalize("NFC", entry))
            if len(words) == 1 and any(c.isalpha() for c in words[0]):
                found[words[0]] = found.get(words[0], 0) | 1 << place
    hashes, _ = hash_words(pa.array(sorted(found)))
    masks = np.array([found[word] for word in sorted(found)], np.uint64)
    return *_kernels_lookup.table_of(hashes), masks


@functools.cache
def common_words() -> Hashes:
    """The hashes of the stop words of all languages, of single letters and of numbers with up to four digits."""
    import stopwordsiso

    entries = set().union(*(stopwordsiso.stopwords(language) for language in stopwordsiso.langs()))
    entries |= {chr(c) for c in range(ord("a"), ord("z") + 1)}
    entries |= {f"{n:0{d}d}" for d in range(1, 5) for n in range(10**d)}
    hashes, starts = hash_words(compose(pa.array(sorted(entries))))
    return np.unique(hashes[starts[:-1][np.diff(starts) == 1]])
