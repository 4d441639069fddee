"""Evaluation sets as they come: files of any layout to items, and the texts of each item.

JSON lines, JSON (arrays, objects with lists inside, columns), Parquet, Arrow, CSV, text; compressed or not, or folders.
No names of fields are known: each text of an item with five words or more is a part of it, at whatever depth it stands.
A text that stands in more than 1% of a file's items, and in three or more, is an instruction and does not count. Where
that is wrong (a field holds a passage from a web page, say), `fields` names the fields that count. What cannot be read
or searched is counted, and is an alarm.
"""

import csv
import functools
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from datakit.config import file_mark
from datakit.errors import ConfigError, InputError
from datakit.read.find import UNKNOWN, Skipped, find, suffixes_of
from datakit.read.streams import read_whole
from datakit.storage import is_url
from datakit.text.words import hash_words

MIN_WORDS: Final = 5
"""Words of a text that make it a part of its item."""
MAX_INSTRUCTION_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an evaluation set."""

    name: str
    """`<file>:<record>`, records counted from 0."""
    parts: tuple[tuple[str, str], ...]
    """(field, text): the field's names with dots between them (`choices.text`)."""


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationSets:
    """The items of all files, and what was found in them. Equal only to itself: an index can be cached for it."""

    items: tuple[Item, ...]
    digests: dict[str, str]
    """SHA-256 of each file, by its name."""
    read: int
    """Items, those without text included."""
    without_text: int
    unreadable: int
    """Lines that are not JSON."""
    lines: tuple[str, ...]
    """About the fields of each file, for people."""
    alarms: tuple[str, ...]


def evaluation_sets(inputs: tuple[str, ...], fields: tuple[str, ...]) -> EvaluationSets:
    """Read evaluation sets; read again only if a file changed. `fields`: those that count; none: all.

    Raises:
        ConfigError: `fields` names one that no file has.
        InputError: a file that is missing, cannot be read, or has no item with text.
    """
    files, skipped = find(inputs)
    marks = tuple("" if is_url(path) else tuple(file_mark(Path(path))) for path, _, _ in files)
    return _evaluation_sets(tuple(files), tuple(skipped), fields, marks)


@functools.lru_cache(maxsize=4)
def _evaluation_sets(
    files: tuple[tuple[str, str, int], ...], skipped: tuple[Skipped, ...], fields: tuple[str, ...], _marks: Any
) -> EvaluationSets:
    found = [_File(name, path, fields) for path, name, _ in files]
    seen = {name for file in found for name in file.seen}
    if unused := [name for name in fields if not any(_is_in(field, (name,)) for field in seen)]:
        raise ConfigError(
            f"eval_fields names {unused[0]!r}, which no evaluation file has; their fields are {', '.join(sorted(seen))}"
        )
    unread = [s for s in skipped if s.why == UNKNOWN and not re.search(r"(?i)(^|/)(readme|licen[cs]e)[^/]*$", s.path)]
    return EvaluationSets(
        items=tuple(item for file in found for item in file.items),
        digests={file.name: file.digest for file in found},
        read=sum(file.read for file in found),
        without_text=sum(file.read - len(file.items) for file in found),
        unreadable=sum(file.unreadable for file in found),
        lines=tuple(file.line() for file in found),
        alarms=(
            *(f"{s.path}: not read as an evaluation set ({s.why})" for s in unread),
            *(alarm for file in found for alarm in file.alarms()),
        ),
    )


class _File:
    """The items of one file."""

    def __init__(self, name: str, path: str, fields: tuple[str, ...]) -> None:
        self.name, self.unreadable = name, 0
        raw, data = read_whole(path)
        self.digest = hashlib.sha256(raw).hexdigest()
        leaves = [list(dict.fromkeys(_leaves(record, ""))) for record in self._records(data, path)]
        self.read = len(leaves)
        self.seen = {field for found in leaves for field, _ in found}
        texts = list(dict.fromkeys(text for found in leaves for _, text in found))
        _, starts = hash_words(pa.array(texts, pa.string()))
        long = {text for text, words in zip(texts, np.diff(starts).tolist(), strict=True) if words >= MIN_WORDS}
        held = Counter(text for found in leaves for text in {text for _, text in found})
        common = {text for text, items in held.items() if items > max(2, MAX_INSTRUCTION_SHARE * len(leaves))}
        self.common = len(common & long)
        parts = [
            tuple((f, text) for f, text in found if text in long - common and (not fields or _is_in(f, fields)))
            for found in leaves
        ]
        self.items = [Item(f"{name}:{number}", own) for number, own in enumerate(parts) if own]
        if not self.items:
            raise InputError(
                f"{path}: no record has a text of {MIN_WORDS} words to search; its fields are "
                f"{', '.join(sorted(self.seen)) or '-'}"
            )

    def _records(self, data: bytes, path: str) -> Iterator[Any]:
        form = suffixes_of(path)[0]
        try:
            if data[:4] == b"PAR1":
                yield from pq.read_table(pa.BufferReader(data)).to_pylist()
            elif data[:6] == b"ARROW1":
                yield from pa.ipc.open_file(pa.BufferReader(data)).read_all().to_pylist()
            elif data[:4] == b"\xff\xff\xff\xff":
                yield from pa.ipc.open_stream(pa.BufferReader(data)).read_all().to_pylist()
            elif form == "csv":
                yield from _csv_records(data.decode("utf-8-sig"), "\t" if ".tsv" in path else ",")
            elif form == "text" and data.lstrip()[:1] not in (b"{", b"["):
                yield from (p for p in re.split(r"\n\s*\n", data.decode("utf-8-sig")) if p.strip())
            else:
                yield from self._json_records(data.removeprefix(b"\xef\xbb\xbf"), path)
        except (UnicodeDecodeError, pa.ArrowException, csv.Error) as e:
            raise InputError(f"{path}: cannot be read as an evaluation set: {e}") from None

    def _json_records(self, data: bytes, path: str) -> Iterator[Any]:
        document = _parsed(data)
        if document is not None:
            yield from _items_of(document)
            return
        records = [_parsed(line) for line in data.splitlines() if line.strip()]
        self.unreadable = sum(record is None for record in records)
        if self.unreadable == len(records):
            raise InputError(f"{path}: cannot be read as JSON lines or JSON, though it is no other known format")
        yield from (record for record in records if record is not None)

    def line(self) -> str:
        """What is searched."""
        fields = ", ".join(dict.fromkeys(field for item in self.items for field, _ in item.parts if field))
        common = f"; {self.common} texts stand in many items and do not count" if self.common else ""
        return f"{self.name}: {self.read} items; fields {fields or '-'}{common}"

    def alarms(self) -> Iterator[str]:
        """Sentences about what cannot be searched."""
        if without := self.read - len(self.items):
            yield (
                f"{without} of {self.read} items of {self.name} have no text of {MIN_WORDS} words in a field that "
                f"counts; the fields are {', '.join(sorted(self.seen))}"
            )
        if self.unreadable:
            yield f"{self.unreadable} lines of {self.name} are not JSON, and were not searched"


def _csv_records(text: str, delimiter: str) -> Iterator[dict[str, str]]:
    """Rows by the names of a header; a first row with a cell of five words or more is none."""
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    header = rows[0] if rows else []
    if any(len(cell.split()) >= MIN_WORDS for cell in header):
        rows, header = [[], *rows], [f"column {number}" for number in range(len(header))]
    for row in rows[1:]:
        yield dict(zip(header, row, strict=False))


def _items_of(document: Any) -> Iterable[Any]:
    """The items of a JSON document: of a list, of an object with lists of objects, of columns, or itself."""
    if isinstance(document, list):
        return document
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
