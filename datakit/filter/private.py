"""Private values: mail and IP addresses, phones, cards, bank accounts, national numbers, keys, passwords in URLs.

`private_rules` has the table of what is private, with the check of each kind. Values are replaced by a tag (`<EMAIL>`,
`<PHONE>`, ...), or by made-up values that are the same for the same value. All text of a row is searched, whatever its
column, but for the columns that `exclude` names; in JSON (`extra`, tool calls) the keys, the strings and long numbers
one by one, with the names of their fields beside them. An `id` that holds a value becomes `<source>:<record>`: a hash
could be reversed. What is counted is what was replaced. Names and addresses of people are not searched: that takes a
model. RE2 finds the lines that may hold a value; only these are searched in Python.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.data import JSON_FIELDS, RECORD_BITS, edit_whole_rows
from datakit.errors import ConfigError
from datakit.filter.private_rules import BLOCK, KINDS, NAMING, Finder, finder
from datakit.filter.rule_set import Edits, Measure, MeasuredRows, Report, Resources, RuleSet, Signals


@dataclass(frozen=True, kw_only=True, slots=True)
class Private(RuleSet):
    """What is private, and what happens to it."""

    name: ClassVar[str] = "private"
    measured_with: ClassVar[tuple[str, ...]] = ("types", "action", "exclude", "patterns", "phone_regions")

    types: tuple[str, ...] = option(tuple(KINDS), "the types of values to look for")
    action: Literal["replace", "drop"] = option("replace", "replace values, or drop rows with them")
    replacement: Literal["tag", "pseudonymize"] = option(
        "tag", "tag: <EMAIL>; pseudonymize: made-up values, equal for equal values"
    )
    seed: int = option(0, "of the made-up values")
    max_values: int = option(0, "with drop: drop rows with more values")
    exclude: tuple[str, ...] = option((), "columns that stay as they are, whatever they hold")
    patterns: dict[str, str] = option({}, "name = a regular expression: values of your own, replaced by <NAME>")
    phone_regions: tuple[str, ...] = option(
        ("US",), "countries whose numbers are found without a country's code and without a word for phones before them"
    )

    def check(self) -> None:
        """Refuse unknown types and regions, unusable patterns, and nothing to look for."""
        if not finder(self.types, self.patterns, self.phone_regions).kinds:
            raise ConfigError(f"types = []: expected some of {', '.join(KINDS)}")

    def resources(self) -> Resources:
        """The versions of the libraries that check numbers; where the raw values remain."""
        return Resources(
            digests={"private_numbers": {name: version(name) for name in ("phonenumbers", "python-stdnum")}},
            lines=(
                "private: dropped/ holds the rows with private values as they were"
                if self.action == "drop"
                else "private: values are replaced in all that this stage writes; earlier stages (parents/ beside an "
                "--output, data/DATASET/ in a project: shards, quarantine/, pairs/) still hold them",
            ),
        )

    def signals(self, rows: MeasuredRows) -> Signals:
        """The number of values of each type in each row, in all of its text, where rows are dropped by it."""
        return Signals(self._cleaned(rows.batch)[1] if self.action == "drop" else {})

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The number of values, where rows with too many are dropped."""
        if self.action == "drop":
            counts = rows.counted(self)
            yield Measure("max_values", np.sum([counts[f"private_{name}"] for name in self._kinds()], axis=0))

    def edit(self, table: pa.RecordBatch, stays: NDArray[np.bool_]) -> Edits | None:
        """All rows without private values, those that other rules drop too."""
        if self.action == "drop":
            return None
        columns, counts = self._cleaned(table)
        changed = np.asarray(np.sum(list(counts.values()), axis=0) > 0)
        return Edits(columns, changed, {name: int(values.sum()) for name, values in counts.items()})

    def report(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> Report:
        """With `drop`, the number of values of each type in the rows that stay."""
        return Report({name: int(values[stays].sum()) for name, values in rows.counted(self).items()
                       if self.action == "drop" and name.startswith("private_")})  # fmt: skip

    def _kinds(self) -> tuple[str, ...]:
        return (*self.patterns, *(name for name in KINDS if name in self.types))

    def _cleaned(self, table: pa.RecordBatch) -> tuple[dict[str, pa.Array], dict[str, NDArray[np.int64]]]:
        """(the columns that change, how many values of each type each row has)."""
        counts = {f"private_{name}": np.zeros(table.num_rows, np.int64) for name in self._kinds()}
        cleaner = Cleaner(finder(self.types, self.patterns, self.phone_regions), self.replacement, self.seed)

        def edit(texts: pa.Array, rows: NDArray[np.int64], name: str) -> pa.Array:
            def count(at: int, found: Counter[str]) -> None:
                for kind, number in found.items():
                    counts[f"private_{kind}"][rows[at]] += number

            return cleaner.column(texts, name, count)

        names = [name for name in table.schema.names if name not in self.exclude]
        columns = edit_whole_rows(table.select(names), edit)
        if {"id", "row_key", "source"} <= set(names):
            ids = table.column("id")
            private = pc.not_equal(edit(ids, np.arange(len(ids)), "id"), ids)
            if pc.any(private).as_py():
                record = pc.bit_wise_and(table.column("row_key"), pa.scalar((1 << RECORD_BITS) - 1, pa.uint64()))
                names_of_rows = pc.binary_join_element_wise(table.column("source"), record.cast(pa.string()), ":")
                columns["id"] = pc.if_else(private, names_of_rows, ids)
        return columns, counts


_STRING: Final = r'"(?P<string>(?:[^"\\]|\\.)*)"(?P<colon>\s*:)?'
_LITERAL: Final = re.compile(rf"{_STRING}|(?<![\w.+-])(?P<number>\d{{7,19}})(?![\w.])", re.DOTALL)
"""Of JSON: a string, with a colon behind it if it is a key, or a long number."""


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Takes private values out of texts."""

    finder: Finder
    replacement: str
    seed: int

    def column(self, texts: pa.Array, name: str, count: Callable[[int, Counter[str]], None]) -> pa.Array:
        """The texts of a field without private values; `count` is told the index and the values of those that had any.

        Prose is cut into lines in Arrow, and only lines where the hint matches become Python's. Where the name of the
        field is a word beside the value ("phone"), or a sign may hide behind an escape of JSON, all texts do.
        """
        context = name if NAMING.search(name) else ""
        if context or name in JSON_FIELDS:
            made, whole = dict[int, str](), texts.is_valid()
        else:
            hit = pc.fill_null(pc.match_substring_regex(texts, self.finder.hint), False)
            whole = pc.fill_null(pc.match_substring(texts, "PRIVATE KEY-----"), False)
            made = self._lines(texts, pc.indices_nonzero(pc.and_not(hit, whole)), count)
        for at in pc.indices_nonzero(whole).to_pylist():
            text, found = texts[at].as_py(), Counter[str]()
            cleaned = self.json(text, found) if name in JSON_FIELDS else self.text(text, found, context)
            if found:
                made[at] = cleaned
                count(at, found)
        if not made:
            return texts
        mask = np.zeros(len(texts), np.bool_)
        mask[list(made)] = True
        return pc.replace_with_mask(texts, pa.array(mask), pa.array([made[at] for at in sorted(made)], texts.type))

    def _lines(self, texts: pa.Array, of: pa.Array, count: Callable[[int, Counter[str]], None]) -> dict[int, str]:
        """By index, the texts `of` those that change."""
        lists, made = pc.split_pattern(texts.take(of), "\n"), dict[int, list[str]]()
        lines, begins = lists.flatten(), lists.offsets.to_numpy()
        hits = np.flatnonzero(pc.match_substring_regex(lines, self.finder.hint).to_numpy(zero_copy_only=False))
        owners = np.searchsorted(begins, hits, side="right") - 1
        for line, owner, at in zip(lines.take(pa.array(hits)).to_pylist(), owners.tolist(), hits.tolist(), strict=True):
            found = Counter[str]()
            cleaned = self.line(line, found)
            if found:
                pieces = made.setdefault(owner, lists[owner].as_py() if owner not in made else [])
                pieces[at - begins[owner]] = cleaned
                count(of[owner].as_py(), found)
        return {of[owner].as_py(): "\n".join(pieces) for owner, pieces in made.items()}

    def line(self, line: str, found: Counter[str], context: str = "") -> str:
        """A line without private values, which are added to `found`; `context` is the name of its field."""
        pieces, done = [], 0
        for begin, end, kind in self.finder.find(line, context):
            pieces += [line[done:begin], self._instead(kind, line[begin:end])]
            done = end
            found[kind] += 1
        return "".join([*pieces, line[done:]])

    def text(self, text: str, found: Counter[str], context: str = "") -> str:
        """The same for a text of several lines."""

        def block(match: re.Match[str]) -> str:
            found["key"] += 1
            return self._instead("key", match[0])

        if "key" in self.finder.kinds and "PRIVATE KEY" in text:
            text = BLOCK.sub(block, text)
        return "\n".join(self.line(line, found, context) for line in text.split("\n"))

    def json(self, text: str, found: Counter[str]) -> str:
        """The same for JSON: its keys, strings and long numbers, each by itself; all other bytes stay."""
        context, keys = "", Counter[str]()

        def literal(match: re.Match[str]) -> str:
            nonlocal context
            before, is_key = found.total(), bool(match["colon"])
            try:
                plain = match["number"] or json.loads(f'"{match["string"]}"', strict=False)
            except ValueError:
                return match[0]
            nested = plain.lstrip()[:1] in ("{", "[")
            made = self.json(plain, found) if nested else self.text(plain, found, "" if is_key else context)
            context = plain if is_key else context
            if found.total() == before:
                return match[0]
            if is_key:  # two keys of one object must not become one
                keys[made] += 1
                made = made if keys[made] == 1 else f"{made}#{keys[made]}"
            return json.dumps(made, ensure_ascii="\\u" in match[0]) + (match["colon"] or "")

        return _LITERAL.sub(literal, text) if text.lstrip()[:1] in ("{", "[") else self.text(text, found)

    def _instead(self, kind: str, value: str) -> str:
        if self.replacement == "tag":
            return f"<{kind.upper()}>"
        return pseudonym(kind, value, self.seed)


def pseudonym(kind: str, value: str, seed: int) -> str:
    """A made-up value for a private one, the same for the same value and seed.

    Values that nobody has: domains of RFC 2606, addresses of RFC 5737, 555-0100 to 555-0199, wrong check digits.
    """
    digest = hashlib.blake2b(f"{seed}\0{kind}\0{value}".encode(), digest_size=16).digest()
    number = int.from_bytes(digest, "big")
    digits = f"{number:039d}"
    made_up = {
        "email": f"user{digits[-9:]}@example.com",
        "ip": f"203.0.113.{number % 256}" if ":" not in value else f"2001:db8::{number % 0xFFFF:x}",
        "phone": f"+1-{number % 700 + 200}-555-01{digits[-2:]}",
        "card": f"0000-{digits[:4]}-{digits[4:8]}-{digits[8:12]}",
        "iban": f"XX00{digits[:16]}",
        "national_id": f"000-00-{digits[:4]}",
    }
    return made_up.get(kind, f"EXAMPLE-{kind}-{digest.hex()[:20]}")
