"""Rows that hold items of evaluation sets are dropped.

Each text of an item (`evaluation.Item`) is compared by itself. What counts is the share of its words that lie in
n-grams of 5 words that the row has, too, by their weights: rare words have 1, stop words and numbers of up to four
digits 0.25, characters of scripts without spaces 0.4, and all of them less in n-grams that many items share. A row is
judged by its best text, but only if the matched words weigh enough, or if the row holds little else: eight common words
say nothing about a long text. A changed word costs its own weight, so that slightly reworded items are found. (Weighing
by rarity and by parts: allenai/decon, 2025, which requires an item's answer near the question, and skips items of fewer
than 20 tokens.) These are copies, not paraphrases; texts of fewer than five words are not searched.

Words are those of dedup (NFC; letters, marks and digits, case-folded; punctuation and white space do not matter). The
whole row is searched: documents, all turns with system prompts and tool results, tool-call arguments, `extra`. Texts
with escapes (JSON inside a text) are searched a second time without them. Every row and item that match are listed in
the table `matches/` beside the rows: item, part, overlap, passage.

Evaluation sets are read as they come, by the readers of ingest: JSON lines, JSON (arrays, objects with lists inside,
columns), Parquet, Arrow, CSV, text; compressed or not, or folders. No names of fields are known: each text of an item
with five words or more is a part of it, at whatever depth it stands. A text that stands in more than 1% of a file's
items, and in three or more, is an instruction and does not count. Where that is wrong (a field holds a passage from a
web page, say), `eval_fields` names the fields that count. What cannot be read or searched is counted, and is an alarm.
"""

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import file_mark, option
from datakit.data import Bools, Floats, Hashes, Integers, Numbers
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Measure, MeasuredRows, Report, Resources, RuleSet, Signals, common_words
from datakit.read.find import UNKNOWN, Skipped, find
from datakit.read.streams import RecordError, open_binary
from datakit.storage import is_url
from datakit.text.words import compose, hash_words, spaceless_words

_NGRAM_WORDS: Final = 5
_NGRAM_CHARACTERS: Final = 8
"""The same for texts in a script that is written without spaces."""
_COMMON: Final = 250
_CHARACTER: Final = 400
"""The weights of common words and of characters of such scripts, in thousandths of a rare word's."""
_SHARED_BY: Final = 100
"""An n-gram that so many items have weighs nothing."""
_LONG: Final = 300_000
"""No more than this weight (300 rare words) of a long text must be in a row."""
_MAX_PASSAGE_CHARS: Final = 300
_MIN_WORDS: Final = 5
"""Words of a text that make it a part of its item."""
_MAX_INSTRUCTION_SHARE: Final = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Contamination(RuleSet):
    """The evaluation sets, and how much of an item is too much."""

    name: ClassVar[str] = "contamination"
    measured_with: ClassVar[tuple[str, ...]] = ("eval_fields", "min_rare_words")

    eval: tuple[str, ...] = option((), "evaluation sets: files, folders, globs of any layout", path=True, flag="--eval")
    eval_fields: tuple[str, ...] = option(
        (), "fields of the items that count (question, choices.text); none: all", flag="--eval-field"
    )
    max_match_ratio: float = option(0.5, "drop rows that hold a larger share of a text of an item")
    min_rare_words: float = option(4.0, "rare words that must match, in rows with more than the item", advanced=True)

    def resources(self) -> Resources:
        """The evaluation files, by name and SHA-256; how their fields are read; what can be searched.

        Raises:
            ConfigError: no file is named.
            InputError: a file that is missing, cannot be read, or holds no item that is long enough to search.
        """
        if not self.eval:
            raise ConfigError("the rule set contamination is on, but contamination.eval names no evaluation files")
        return self._index().told

    def signals(self, rows: MeasuredRows) -> Signals:
        """The largest share of each row of any item's text, in thousandths, and the number of that item; -1: none."""
        _, (row, part, share, *_) = self._search(rows.whole_rows)
        best, item = np.zeros(rows.batch.num_rows, np.int64), np.full(rows.batch.num_rows, -1, np.int64)
        order = np.lexsort((-part, share))  # the largest is written last; of equals the first item
        best[row[order]], item[row[order]] = share[order], self._index().item_of[part[order]]
        return Signals(contamination_match=best, contamination_match_item=item)

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The share."""
        yield Measure("max_match_ratio", rows.counted(self)["contamination_match"] / 1000)

    def report(self, rows: MeasuredRows, stays: Bools) -> Report:
        """`matches`: one line for each row and part of an item that match."""
        hit, index = np.flatnonzero(rows.counted(self)["contamination_match_item"] >= 0), self._index()
        texts, (row, part, share, *places) = self._search(rows.whole_rows.take(pa.array(hit)))
        keys = [n for n in ("row_key", "id", "source") if n in rows.batch.schema.names]
        columns = {n: rows.batch.column(n).take(pa.array(hit[row])) for n in keys}
        passages = [_passage(texts[text].as_py(), first, last) for text, first, last in zip(*places, strict=True)]
        columns |= {
            "item": pa.array([index.items[i] for i in index.item_of[part]], pa.string()),
            "part": pa.array([index.fields[p] for p in part], pa.string()),
            "overlap": pa.array(np.round(share / 1000, 3), pa.float64()),
            "passage": pa.array(passages, pa.string()),
        }
        return Report(tables={"matches": pa.record_batch(columns)})

    def _index(self) -> "EvaluationIndex":
        """The index of the evaluation sets; read again only if a file changed."""
        files, skipped = find(self.eval)
        marks = tuple("" if is_url(path) else tuple(file_mark(Path(path))) for path, _, _ in files)
        return evaluation_index(tuple(files), tuple(skipped), self.eval_fields, marks)

    def _search(self, texts: pa.Array) -> tuple[pa.Array, Integers]:
        """What rows hold of items, in their texts as they are and without escapes: (all these texts, int64[6, H]).

        The columns are sorted by row and part: row, part, share in thousandths, the index of the text that was
        searched, and the first and the last matched word of that text.
        """
        from datakit.filter import _kernels_lookup as kernels

        plain, escaped = _unescaped(texts)
        every, index = compose(pa.concat_arrays([texts, plain])), self._index()
        words, starts = hash_words(every)
        hits = kernels.find(words, starts, np.unique(index.grams[0]), *index.table)
        hits = hits[np.argsort(hits[:, 2], kind="stable")]  # by place
        found = kernels.score(hits, starts, index.grams, index.parts, round(1000 * self.min_rare_words))
        text, part, share, first, last = found[np.lexsort((found[:, 0], -found[:, 2]))].T
        row = np.append(np.arange(len(texts)), escaped)[text]
        # Of a row and a part the best; of equals the text as it is, which comes before the one without escapes.
        once = np.unique(np.stack([row, part]), axis=1, return_index=True)[1]
        return every, np.stack([row, part, share, text, first - starts[text], last - starts[text]])[:, once]


def _passage(text: str, first: int, last: int) -> str:
    pieces = re.findall(r"\s*\S+", text)
    _, starts = hash_words(pa.array(pieces, pa.string()))
    begin, end = np.searchsorted(starts, [first, last], side="right") - 1
    passage = "".join(pieces[begin : end + 1]).strip()
    return passage if len(passage) <= _MAX_PASSAGE_CHARS else f"{passage[:_MAX_PASSAGE_CHARS]}..."


_ESCAPED: Final = r"\\(?:\"|u[0-9a-fA-F]{4})"
_ESCAPE: Final = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
"""With several backslashes in JSON inside of JSON, as in the arguments of a tool call."""


def _unescaped(texts: pa.Array) -> tuple[pa.Array, Integers]:
    """(the texts that have escapes of JSON, without them; the index of each)."""
    escaped = np.flatnonzero(pc.match_substring_regex(texts, _ESCAPED).to_numpy(zero_copy_only=False))
    plain = (_ESCAPE.sub(_character, text) for text in texts.take(pa.array(escaped)).to_pylist())
    # a character beyond U+FFFF has two escapes
    whole = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in plain]
    return pa.array(whole, pa.string()), escaped


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else {"n": "\n", "t": "\t", "r": "\r"}.get(escape[2], escape[2])


class EvaluationIndex(NamedTuple):
    """The words of all parts of all items, what each weighs, and their n-grams. Weights are in thousandths.

    Legend: K different n-grams, W words of items, P parts.
    """

    items: tuple[str, ...]
    """By item: its name, `<file>:<record>`, records counted from 0."""
    fields: tuple[str, ...]
    """By part: its field, with dots between the names (`choices.text`)."""
    table: tuple[Hashes, Numbers]
    """The n-grams, as `_kernels_lookup.table_of` makes it."""
    grams: tuple[Integers, Integers, Integers]
    """sizes int64[K] in words; where n-gram k begins in the items' words: starts int64[K+1] of the places."""
    parts: tuple[Integers, Integers, Integers, Integers]
    """weights and part_of int64[W], totals and item_of int64[P]."""
    told: Resources

    @property
    def item_of(self) -> Integers:
        """int64[P]: the item of each part."""
        return self.parts[3]


@functools.lru_cache(maxsize=4)
def evaluation_index(
    paths: tuple[tuple[str, str, int], ...], skipped: tuple[Skipped, ...], fields: tuple[str, ...], _marks: Any
) -> EvaluationIndex:
    """The index of evaluation sets. `fields`: those that count; none: all.

    Raises:
        ConfigError: `fields` names one that no file has.
        InputError: a file that is missing, cannot be read, or has no item that is long enough to search.
    """
    from datakit.filter import _kernels_lookup as kernels

    files = [EvaluationFile.of(file, fields) for file in paths]
    seen = frozenset[str]().union(*(file.seen for file in files))
    if unused := [name for name in fields if not any(_is_in(field, (name,)) for field in seen)]:
        raise ConfigError(
            f"eval_fields names {unused[0]!r}, which no evaluation file has; their fields are {', '.join(sorted(seen))}"
        )
    items = [item for file in files for item in file.items]
    parts = [(number, field, text) for number, (_, own) in enumerate(items) for field, text in own]
    item_of = np.array([number for number, _, _ in parts], np.int64)
    words, starts = hash_words(compose(pa.array([text for _, _, text in parts], pa.string())))
    counts = np.diff(starts)
    part_of = np.repeat(np.arange(len(parts)), counts)
    unsegmented = np.isin(words, spaceless_words())
    dense = 2 * np.bincount(part_of, unsegmented, len(parts)) > counts
    sizes = np.where(dense, _NGRAM_CHARACTERS, _NGRAM_WORDS).astype(np.int64)
    grams = kernels.grams_of(words, starts, sizes)
    places = np.flatnonzero(grams)
    # An n-gram that many items have says little about each: df items, weight 1 - ln(df) / ln(_SHARED_BY).
    pairs = np.unique(np.stack([grams[places], item_of[part_of[places]].astype(np.uint64)]), axis=1)[0]
    keys, shared = np.unique(pairs, return_counts=True)
    rarity = np.zeros(len(words))
    rarity[places] = np.maximum(0, 1 - np.log(shared) / np.log(_SHARED_BY))[np.searchsorted(keys, grams[places])]
    base = np.where(unsegmented, _CHARACTER, 1000)
    base[np.isin(words, common_words())] = _COMMON
    weights = np.round(base * _spread(rarity, sizes[part_of])).astype(np.int64)
    totals = np.bincount(part_of, weights, minlength=len(parts)).astype(np.int64)
    places = places[rarity[places] > 0]
    keys, first, number, times = np.unique(grams[places], return_index=True, return_inverse=True, return_counts=True)
    begins, order = np.append(0, np.cumsum(times)), np.argsort(number, kind="stable")
    searched = np.bincount(item_of, totals, len(items)) > 0
    return EvaluationIndex(
        items=tuple(name for name, _ in items),
        fields=tuple(field for _, field, _ in parts),
        table=kernels.table_of(keys),
        grams=(sizes[part_of[places[first]]], begins, places[order].astype(np.int64)),
        parts=(weights, part_of, np.minimum(totals, _LONG), item_of),
        told=_told(files, skipped, [name for (name, _), found in zip(items, searched, strict=True) if not found]),
    )


def _spread(values: Floats, sizes: Integers) -> Floats:
    """float64[W]: the largest value of the n-grams that cover each word; `values` has them where n-grams begin."""
    out = np.zeros(len(values))
    for size in (_NGRAM_WORDS, _NGRAM_CHARACTERS):
        of_size = np.where(sizes == size, values, 0)
        for k in range(min(size, len(values))):  # an n-gram ends in its own text
            out[k:] = np.maximum(out[k:], of_size[: len(values) - k])
    return out


def _told(files: Sequence["EvaluationFile"], skipped: Sequence[Skipped], short: Sequence[str]) -> Resources:
    """What there is to say about evaluation files; `short`: the items that cannot be found.

    Raises:
        InputError: no item can be found.
    """
    read, items = sum(file.read for file in files), sum(len(file.items) for file in files)
    if len(short) == items:
        raise InputError(f"{files[0].name}: no evaluation item in it is long enough to search: {files[0].line}")
    alarms = [f"{s.path}: not read as an evaluation set ({s.why})" for s in skipped if s.why == UNKNOWN
              and not re.search(r"(?i)(^|/)(readme|licen[cs]e)[^/]*$", s.path)]  # fmt: skip
    for file in files:
        if without := file.read - len(file.items):
            alarms.append(
                f"{without} of {file.read} items of {file.name} have no text of {_MIN_WORDS} words in a field that "
                f"counts; the fields are {', '.join(sorted(file.seen))}"
            )
        if file.unreadable:
            alarms.append(
                f"{file.unreadable} lines of {file.name} are not JSON, or have not the cells of the header; they were "
                "not searched"
            )
    if short:
        alarms.append(
            f"{len(short)} of {read} evaluation items are too short or too common to search ({short[0]}"
            f"{', ...' if len(short) > 1 else ''}): rows that hold them stay"
        )
    return Resources(
        digests={"evaluation": {file.name: file.digest for file in files}},
        lines=tuple(file.line for file in files),
        counters={
            "evaluation_items_read": read,
            "evaluation_items_searched": items - len(short),
            "evaluation_items_too_short": len(short),
            "evaluation_items_without_text": read - items,
            "evaluation_lines_unreadable": sum(file.unreadable for file in files),
        },
        alarms=tuple(alarms),
    )


# Evaluation sets as they come.


class EvaluationFile(NamedTuple):
    """The items of one file, and what was found in it."""

    name: str
    digest: str
    """SHA-256 of its bytes."""
    items: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """(name, parts) of each item with text, a part as (field, text)."""
    read: int
    """Items, those without text included."""
    unreadable: int
    """Records that cannot be read."""
    seen: frozenset[str]
    """All its fields."""
    line: str
    """What is searched, for people."""

    @classmethod
    def of(cls, file: tuple[str, str, int], fields: tuple[str, ...]) -> "EvaluationFile":
        """Read a file that `find` found.

        Raises:
            InputError: it cannot be read, or has no item with text.
        """
        (path, name, _), records = file, _records(file)
        leaves = [list(dict.fromkeys(_leaves(record, ""))) for record in records if record is not _UNREADABLE]
        held = Counter(text for found in leaves for text in {text for _, text in found})
        _, starts = hash_words(pa.array(list(held), pa.string()))
        often = max(2, _MAX_INSTRUCTION_SHARE * len(leaves))
        long = [text for text, words in zip(held, np.diff(starts), strict=True) if words >= _MIN_WORDS]
        counts = {text for text in long if held[text] <= often}
        parts = [
            tuple((f, text) for f, text in found if text in counts and (not fields or _is_in(f, fields)))
            for found in leaves
        ]
        items = tuple((f"{name}:{number}", own) for number, own in enumerate(parts) if own)
        seen = frozenset(field for found in leaves for field, _ in found)
        if not items:
            raise InputError(
                f"{path}: no record has a text of {_MIN_WORDS} words to search; its fields are "
                f"{', '.join(sorted(seen)) or '-'}"
            )
        searched = ", ".join(dict.fromkeys(field for _, own in items for field, _ in own if field))
        line = f"{name}: {len(leaves)} items; fields {searched or '-'}"
        if common := len(long) - len(counts):
            line += f"; {common} texts stand in many items and do not count"
        with open_binary(path) as opened:
            digest = hashlib.sha256(opened.read()).hexdigest()
        return cls(name, digest, items, len(leaves), len(records) - len(leaves), seen, line)


_UNREADABLE: Final[Any] = object()
"""In place of a record that cannot be read."""


def _records(found: tuple[str, str, int]) -> list[Any]:
    """The records of a file, whatever its format; of plain text its paragraphs.

    Raises:
        InputError: the file, or all of it, cannot be read.
    """
    from datakit.read.planning import records_of
    from datakit.read.record import Record, parse  # here, since its kernels need numba

    def value(record: Record) -> Any:
        if isinstance(record.fields, RecordError):  # a list or a text is no row for ingest, and an item here
            return parse(record.raw) if record.fields.reason == "not_an_object" else _UNREADABLE
        return record.fields

    file, read = records_of(found, "paragraph")
    records = [value(record) for record in read]
    if all(record is _UNREADABLE for record in records) and not file.header:
        raise InputError(
            f"{file.path}: cannot be read as an evaluation set: it is {file.format} without a whole record"
        )
    if any(len(cell.split()) >= _MIN_WORDS for cell in file.header):  # an item: the table has no header
        rows = [file.header, *(record if record is _UNREADABLE else record.values() for record in records)]
        return [row if row is _UNREADABLE else {f"column {n}": cell for n, cell in enumerate(row)} for row in rows]
    return list(_items_of(records[0])) if len(records) == 1 and file.format != "json" else records


def _items_of(document: Any) -> Iterable[Any]:
    """The items of a JSON document: of an object with lists of objects, of columns, or itself."""
    if isinstance(document, dict):
        values = list(document.values())
        if lists := [v for v in values if isinstance(v, list) and v and isinstance(v[0], dict)]:
            return [record for records in lists for record in records]
        if values and all(isinstance(v, list) and len(v) == len(values[0]) for v in values):
            return [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]
    return [document]


def _leaves(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """(field, text) of all strings of a value; a string that is JSON itself is taken apart."""
    if isinstance(value, str):
        inner = _parsed(value.encode(errors="replace")) if value.lstrip()[:1] in ("{", "[") else None
        if inner is not None:
            yield from _leaves(inner, field)
        elif value.strip():
            yield field, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{field}.{name}" if field else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, field)


def _is_in(field: str, names: tuple[str, ...]) -> bool:
    """Whether a field is one of those named, or lies in one."""
    return any(field == name or field.startswith(f"{name}.") for name in names)


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
