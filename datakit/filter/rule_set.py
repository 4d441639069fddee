"""What a rule set is, how it is found, and how its measures become reasons.

A rule set is a module of `datakit.filter` with two names: `Config`, a frozen dataclass of thresholds, and
`measure(rows, config)`, which yields one `Measure` for each threshold in the order in which they decide. The module's
name is the rule set's name in recipes and reasons: a file put into the folder is a rule set, with no list to enter.
A threshold's name says how it decides: `min_words` drops what measures less, `max_words` what measures more.

More names where a rule set needs them:
- `count(texts, config)` counts signals of its own (`COUNTING` are the fields of its config that shape them), which it
  asks for with `rows.counted(name)`; `SEES` is the view of a row that it counts in, whatever the stage's;
- `edit(texts, config, kind)` says what the texts of rows that stay become;
- `report(rows, texts, config)` makes tables to write beside the rows, `notes(rows, stays, config)` counts for the
  ledger; `resources(config)` and `prepare(config)` are a stage's `resources` and `open`.

Signals: what one pass over a batch of texts counts, for every rule set to put thresholds on.

Words are white-space tokens with their punctuation, as Rae et al. (2021) leave them; each character of a script written
without spaces is a word of its own. Lines end where `str.splitlines` ends them and count only if there is more than
white space in them; paragraphs are lines between blank lines. A character is a code point.
"""

import functools
import importlib
import math
import pkgutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import datakit.filter
from datakit.data import On, view
from datakit.errors import ConfigError, InputError
from datakit.filter import stop_words
from datakit.read.row_builder import conversation_view, preference_view
from datakit.text import characters
from datakit.text.characters import BREAKS, QUOTES, TERMINALS, string_buffers
from datakit.text.normal_form import digest, normalize

SPACE, BREAK, LETTER, MARK, NUMBER, SPACELESS, TERMINAL, QUOTE = (1 << bit for bit in range(8))

_KINDS = {"L": LETTER, "M": MARK, "N": NUMBER}


@functools.cache
def classes() -> NDArray[np.uint8]:
    """uint8[0x110000]: the flags of every code point; built once a process, in some 0.2 s. Read-only.

    SPACELESS characters are the letters, marks and numbers of scripts written without spaces, as dedup has them.
    """
    shared = characters.character_table()
    flat = shared.entries.reshape(-1, 256)[shared.pages].reshape(-1)
    table = np.zeros(flat.size, np.uint8)
    table[(flat & characters.SPACE) != 0] = SPACE
    for code in np.flatnonzero(flat & characters.WORD):
        table[code] = _KINDS[unicodedata.category(chr(code))[0]]
    table[(flat & characters.SPACELESS) != 0] |= SPACELESS
    for flag, marks in ((BREAK, BREAKS), (TERMINAL, TERMINALS), (QUOTE, QUOTES)):
        table[[ord(c) for c in marks]] |= flag
    table.setflags(write=False)
    return table


Counts = NDArray[np.int64]
Ratios = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Signals:
    """Counts of each row, all int64[N]; the names and what they count are those of `_kernels_signals.SIGNALS`."""

    counts: Mapping[str, Counts]

    def __getitem__(self, name: str) -> Counts:
        return self.counts[name]

    def ratio(self, part: str, whole: str) -> Ratios:
        """part / whole of each row, 0 where the whole is 0, rounded to 1e-3 as everything that decides."""
        return ratio(self[part], self[whole])

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> "Signals":
        """The signals that are columns of `batch`: those of integers."""
        names = [f.name for f in batch.schema if pa.types.is_int64(f.type)]
        return cls({n: batch.column(n).to_numpy(zero_copy_only=False) for n in names})


def count_signals(texts: pa.Array) -> Signals:
    """Count everything in one pass; a null is an empty text."""
    from datakit.filter import _kernels_signals  # numba takes a while to import: not before there is text

    data, offsets = string_buffers(texts)
    counted = _kernels_signals.measure(data, offsets, classes())
    return Signals(dict(zip(_kernels_signals.SIGNALS, counted, strict=True)))


def ratio(part: Counts, whole: Counts) -> Ratios:
    """part / whole, 0 where the whole is 0, rounded to 1e-3."""
    shares: Ratios = np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)
    return np.round(shares, 3)


class Rows(Protocol):
    """What a rule set may look at."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows as they are."""

    @property
    def signals(self) -> Signals:
        """The signals of the rows' view, counted when first asked for."""

    def counted(self, rule_set: str) -> Signals:
        """The signals that a rule set counts by itself, by its config of these rows' stage."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a threshold is held against."""

    threshold: str
    """The config's field, `min_...` or `max_...`; the rest of the name is what was measured."""
    values: NDArray[Any]
    """int64[N] or float64[N], floats rounded to 1e-3."""
    applies: NDArray[np.bool_] | None = None
    """bool[N]: False where the rule says nothing about a row; None applies to all."""

    def fails(self, limit: float) -> NDArray[np.bool_]:
        """bool[N]: the rows on the wrong side of the limit."""
        wrong = self.values < limit if self.threshold.startswith("min_") else self.values > limit
        return np.asarray(wrong if self.applies is None else wrong & self.applies)

    def details(self, limit: float, rows: NDArray[np.int64]) -> list[str]:
        """For people, of some rows: what was measured, and the limit."""
        what, sign = self.threshold[4:], "<" if self.threshold.startswith("min_") else ">"
        return [f"{what} {value} {sign} {limit}" for value in self.values[rows].tolist()]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The first threshold that each row fails: object[N] of str, None for a row that passes."""

    reasons: NDArray[np.object_]
    details: NDArray[np.object_]


def available() -> tuple[str, ...]:
    """The names of the rule sets there are, sorted."""
    return tuple(_modules())


def config_class(name: str) -> type:
    """The class of a rule set's thresholds.

    Raises:
        ConfigError: there is no rule set of that name.
    """
    found: type = _module(name).Config
    return found


def measures(name: str, rows: Rows, config: Any) -> Iterator[Measure]:
    """What a rule set measures of rows, in the order in which its thresholds decide."""
    found: Iterator[Measure] = _module(name).measure(rows, config)
    return found


def has(name: str, function: str) -> bool:
    """Whether a rule set has one of the names that not all have."""
    return hasattr(_module(name), function)


def part(name: str, what: str) -> Any:
    """One of the names that not all rule sets have, of one that has it."""
    return getattr(_module(name), what)


def counting(name: str, config: Any) -> dict[str, Any]:
    """The values of a rule set's config that shape what it counts."""
    return {field: getattr(config, field) for field in _module(name).COUNTING}


def judge(rule_sets: Iterable[tuple[str, Any]], rows: Rows, count: int) -> Verdicts:
    """Hold the rows against (name, config) of each rule set, in that order; the first failure is a row's reason."""
    reasons, details = np.full(count, None, object), np.full(count, None, object)
    for name, config in rule_sets:
        for measure in measures(name, rows, config):
            limit = getattr(config, measure.threshold)
            failed = np.flatnonzero(measure.fails(limit) & (reasons == None))  # noqa: E711
            reasons[failed] = f"{name}.{measure.threshold}"
            details[failed] = measure.details(limit, failed)
    return Verdicts(reasons, details)


@functools.cache
def _modules() -> dict[str, ModuleType]:
    """Rule sets by name: the modules of this package that have a Config and a measure()."""
    names = sorted(m.name for m in pkgutil.iter_modules(datakit.filter.__path__) if not m.name.startswith("_"))
    found = {n: importlib.import_module(f"{datakit.filter.__name__}.{n}") for n in names if n != "stage"}
    return {n: m for n, m in found.items() if hasattr(m, "Config") and hasattr(m, "measure")}


def _module(name: str) -> ModuleType:
    if name not in _modules():
        raise ConfigError(f"unknown rule set {name!r}; there are {', '.join(available())}")
    return _modules()[name]


def labels(batch: pa.RecordBatch) -> pa.Array:
    """string[N]: the language of each row, null where it is not known."""
    return (
        batch.column("lang").cast(pa.string())
        if "lang" in batch.schema.names
        else pa.nulls(batch.num_rows, pa.string())
    )


def check_ratios(config: Any) -> None:
    """For `__post_init__`: every `*_ratio` lies in 0..1, no other number is negative, no minimum exceeds its maximum.

    Raises:
        ConfigError: a threshold that makes no sense.
    """
    values = {n: v for n in type(config).__slots__ if isinstance(v := getattr(config, n), int | float)}
    for name, value in values.items():
        if not 0 <= value < math.inf or (name.endswith("_ratio") and value > 1):
            raise ConfigError(
                f"{name} = {value}: expected {'a share from 0 to 1' if '_ratio' in name else '0 or more'}"
            )
        if name.startswith("min_") and value > values.get("max_" + name[4:], value):
            raise ConfigError(f"{name} = {value} is more than max_{name[4:]} = {values['max_' + name[4:]]}")


KEYS = ("row_key", "id", "source", "lang")
"""Columns that saved signals share with their rows."""


@dataclass(frozen=True)
class Measured:
    """The rows of a batch under the config of a filter stage (`Rows`)."""

    batch: pa.RecordBatch
    config: Any
    """`FilterOptions` with the rules and the view of the rows' kind."""
    saved: pa.RecordBatch | None = None
    """What `table` made of these rows."""

    @functools.cached_property
    def texts(self) -> pa.Array:
        """string[N]: the part of each row that is looked at."""
        return view(self.batch, cast(On, self.config.on), self.config.include_system)

    def texts_for(self, rule_set: str) -> pa.Array:
        """The same for a rule set that may look at another part than the stage."""
        return view(self.batch, part(rule_set, "SEES")) if has(rule_set, "SEES") else self.texts

    @functools.cached_property
    def signals(self) -> Signals:
        """The signals that all rule sets share."""
        if self.saved is not None:
            return Signals.from_batch(self.saved)
        own = {"own_stop_words": stop_words.count(self.texts, labels(self.batch))}
        return Signals(dict(count_signals(self.texts).counts) | own)

    @functools.cached_property
    def _counted(self) -> dict[str, Signals]:
        return {}

    def counted(self, rule_set: str) -> Signals:
        """The signals that a rule set counts by itself."""
        if self.saved is not None:
            return self.signals
        if rule_set not in self._counted:
            count = part(rule_set, "count")
            self._counted[rule_set] = count(self.texts_for(rule_set), getattr(self.config, rule_set))
        return self._counted[rule_set]

    def table(self) -> pa.RecordBatch:
        """The signals as columns, those of the active rule sets that count by themselves too, beside the rows' keys."""
        columns = {n: self.batch.column(n) for n in KEYS if n in self.batch.schema.names}
        own = [self.counted(n) for n in self.config.rules if has(n, "count")]
        for signals in (self.signals, *own):
            columns |= {n: pa.array(values) for n, values in signals.counts.items()}
        return pa.record_batch(columns)


def kind_of(batch: pa.RecordBatch) -> str:
    """The kind of a batch's rows.

    Raises:
        InputError: the rows are tokens, which have no text.
    """
    for column, kind in (("text", "document"), ("messages", "conversation"), ("chosen", "preference")):
        if column in batch.schema.names:
            return kind
    raise InputError(
        f"the filter stage reads text, but these rows have only {', '.join(batch.schema.names)}: filter before the "
        "tokenize stage"
    )


Edit = Callable[[pa.Array], pa.Array]
"""Texts to texts, string[N] without nulls each."""

SPOKEN = ("content", "reasoning_content")
"""The parts of a message that are prose."""


def apply(batch: pa.RecordBatch, stays: pa.Array, edits: Sequence[Edit]) -> tuple[dict[str, pa.Array], pa.Array]:
    """Edit the rows that stay, by each edit in turn.

    `stays` is bool[N]. Returns the columns that changed, `content_hash` among them, and bool[N]: which rows did.
    """
    changed = pa.array(np.zeros(batch.num_rows, np.bool_))
    columns: dict[str, pa.Array] = {}
    for name in ("text", "messages", "prompt", "chosen", "rejected"):
        if name in batch.schema.names and edits:
            column = batch.column(name)
            made, which = _text(column, stays, edits) if name == "text" else _messages(column, stays, edits)
            if pc.any(which).as_py():
                columns[name] = made
                changed = pc.or_(changed, which)
    if columns and "content_hash" in batch.schema.names:
        columns["content_hash"] = pc.replace_with_mask(
            batch.column("content_hash"), changed, _hashes(batch, columns, changed)
        )
    return columns, changed


def _hashes(batch: pa.RecordBatch, columns: dict[str, pa.Array], changed: pa.Array) -> pa.Array:
    """`content_hash` of the rows that changed, as ingest makes it."""
    if "text" in columns:
        return digest(normalize(columns["text"].filter(changed)))
    names = [n for n in ("messages", "prompt", "chosen", "rejected", "tools") if n in batch.schema.names]
    rows = pa.table({n: columns.get(n, batch.column(n)) for n in names}).filter(changed).to_pylist()
    views = []
    for row in rows:
        tools = row.pop("tools", None)
        sides = [[list(message.values()) for message in row[n] or ()] for n in row]
        views.append(conversation_view(sides[0], tools) if "messages" in row else preference_view(sides, tools))
    return digest(normalize(pa.array(views, pa.string())))


def _text(texts: pa.Array, stays: pa.Array, edits: Sequence[Edit]) -> tuple[pa.Array, pa.Array]:
    """(the texts, which of them changed); texts of rows that do not stay are as they were."""
    mask = pc.and_(stays, pc.is_valid(texts))
    made = before = texts.filter(mask)
    for edit in edits:
        made = edit(made)
    which = pc.not_equal(made, before)
    changed = np.zeros(len(texts), np.bool_)
    changed[np.flatnonzero(mask.to_numpy(zero_copy_only=False))] = which.to_numpy(zero_copy_only=False)
    return pc.replace_with_mask(texts, pa.array(changed), made.filter(which)), pa.array(changed)


def _messages(messages: pa.Array, stays: pa.Array, edits: Sequence[Edit]) -> tuple[pa.Array, pa.Array]:
    """The same for list<struct>: every message of a row that stays."""
    turns = messages.flatten()
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(messages)), lengths)
    turn_stays = pc.take(stays, pa.array(row))
    fields, changed = [], np.zeros(len(messages), np.bool_)
    for field in turns.type:
        column = pc.struct_field(turns, field.name)
        if field.name in SPOKEN:
            column, which = _text(column, turn_stays, edits)
            changed[row[which.to_numpy(zero_copy_only=False)]] = True
        fields.append(column)
    made = pa.StructArray.from_arrays(fields, fields=list(turns.type))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    nulls = {"mask": pc.is_null(messages)} if messages.null_count else {}
    return pa.ListArray.from_arrays(offsets, made, type=messages.type, **nulls), pa.array(changed)
