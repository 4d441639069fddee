"""Evaluation sets as they come: files of any layout to items with a question, choices, an answer and a passage.

JSON lines, JSON (arrays, objects with lists inside, columns), Parquet, Arrow, CSV, text; compressed or not, or folders.
The part of an item that a field holds is known by the field's name, whatever its case and punctuation: `ROLES` has the
names of the usual suites. A field of another name with five words or more is searched too, as the question where an
item has none: nothing that holds text is left out without a word. What cannot be read or searched is counted, and is an
alarm with the names of the fields that were found.
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

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from datakit.config import file_mark
from datakit.errors import ConfigError, InputError
from datakit.read.find import UNKNOWN, Skipped, find, suffixes_of
from datakit.read.streams import read_whole
from datakit.storage import is_url

PARTS: Final = ("question", "choices", "answer", "passage", "other")

_NAMES: Final = {
    "question": (
        "question questions questionstem questiontext questioncontent questionbody stem problem "
        "problems problemstatement prompt prompts instruction instructions query queryoriginal input "
        "inputs inputtext text goal ctx ctxa ctxb sentence sentence1 sentence2 premise hypothesis "
        "turns task tasks description content user completeprompt instructprompt question1 question2 "
        "claim statement puzzle utterance messages conversation conversations 问题 题目 题干 提问 质问 質問 問題 질문 "
        "pregunta pergunta frage вопрос"
    ),
    "choices": (
        "choices choice options option endings candidates sol a b c d e f g h i j answera answerb "
        "answerc answerd answere incorrectanswer incorrectanswers distractor distractors "
        "multiplechoicetargets mc1targets mc2targets ending choicea choiceb choicec choiced optiona "
        "optionb optionc optiond wronganswer wronganswers 选项"
    ),
    "answer": (
        "answer answers bestanswer correctanswer correctanswers goldanswer output outputs completion "
        "response responses solution solutions target targets canonicalsolution code reference "
        "references referenceanswer explanation rationale patch testpatch test tests testlist "
        "testsetupcode challengetestlist finalanswer expected expectedoutput cotcontent gold "
        "reasoning chosen value aliases summary highlights 答案 解析 答え 回答 답변 respuesta resposta antwort "
        "ответ"
    ),
    "passage": (
        "passage passages context contexts article story document documents background paragraph "
        "support evidence dialogue facts fact1 lecture hint system excerpt 文章 材料"
    ),
    "": (
        "id qid uid uuid guid key questionid taskid problemid index idx ind docid hash sha sha256 url urls link "
        "source sourceid split subset category categories subcategory subject subjects topic level difficulty "
        "type tags domain subdomain lang language license date year author authors canary canarystring entrypoint "
        "label labels answerkey answeridx answerindex correctindex instructionidlist kwargs activitylabel "
        "splittype metadata version dataset task_id answerstart turnid role from name high-level-domain"
    ),
}
ROLES: Final = {
    name.replace("-", "").replace("_", ""): part for part, names in _NAMES.items() for name in names.split()
}
"""Field name (lower case, letters and digits only) -> part of the item; "": says something about the item."""

_TURNS: Final = {"user": "question", "human": "question", "assistant": "answer", "gpt": "answer"}
_LEAST_WORDS: Final = 5
"""Words of a field with an unknown name that make it a part of the question."""
_EXAM: Final = ("question", "A", "B", "C", "D", "answer")
"""The columns of MMLU's CSV files, which have no header."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an item: its question, its choices, its passage, or one field of an answer or of another kind."""

    kind: str
    """One of `PARTS`."""
    texts: tuple[str, ...]
    """In the item's order: the turns of a question, each choice by itself."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an evaluation set."""

    name: str
    """`<file>:<record>`, records counted from 0."""
    parts: tuple[Part, ...]


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
    """Read evaluation sets. `fields` ("question=Frage", "Frage") name fields with their part, question without one.

    Read again only if a file changed.

    Raises:
        ConfigError: `fields` names a part that there is none of, or a field that no file has.
        InputError: a file that is missing, cannot be read, or has no item with text.
    """
    files, skipped = find(inputs)
    marks = tuple("" if is_url(path) else tuple(file_mark(Path(path))) for path, _, _ in files)
    return _evaluation_sets(tuple(files), tuple(skipped), fields, marks)


@functools.lru_cache(maxsize=4)
def _evaluation_sets(
    files: tuple[tuple[str, str, int], ...], skipped: tuple[Skipped, ...], fields: tuple[str, ...], _marks: Any
) -> EvaluationSets:
    named = _named_fields(fields)
    found = [_File(name, path, named) for path, name, _ in files]
    alarms = [
        f"{s.path}: not read as an evaluation set ({s.why})"
        for s in skipped
        if s.why == UNKNOWN and _holds_data(s.path)
    ]
    for file in found:
        alarms += file.alarms()
    unused = set(named) - {name for file in found for name in file.used}
    if unused:
        there = ", ".join(sorted({name for file in found for name in file.seen}))
        raise ConfigError(
            f"eval_fields names {sorted(unused)[0]!r}, which no evaluation file has; their fields are {there}"
        )
    return EvaluationSets(
        items=tuple(item for file in found for item in file.items),
        digests={file.name: file.digest for file in found},
        read=sum(file.read for file in found),
        without_text=sum(file.without_text for file in found),
        unreadable=sum(file.unreadable for file in found),
        lines=tuple(file.line() for file in found),
        alarms=tuple(alarms),
    )


def _holds_data(path: str) -> bool:
    return not re.search(
        r"(?i)(^|/)(readme|license|licence|changelog|citation|dataset_infos)[^/]*$|\.(py|pyc|lock|sha256)$", path
    )


def _named_fields(fields: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for given in fields:
        part, _, name = given.rpartition("=")
        if (part or "question") not in PARTS:
            raise ConfigError(f"eval_fields: {given!r} names the part {part!r}; there are {', '.join(PARTS)}")
        named[name] = part or "question"
    return named


_Texts = dict[tuple[str, str], list[str]]
"""(part, field) -> texts; the field is "" where all fields of a part are one text."""


class _File:
    """The items of one file."""

    def __init__(self, name: str, path: str, named: dict[str, str]) -> None:
        self.name, self.named = name, named
        self.items: list[Item] = []
        self.read = self.without_text = self.unreadable = 0
        self.seen: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.unknown: set[str] = set()
        data = read_whole(path)
        self.digest = hashlib.sha256(data[0]).hexdigest()
        for number, record in enumerate(self._records(data[1], path)):
            self._add(number, record)
        if not self.items:
            there = f"; its fields are {', '.join(self.seen)}" if self.seen else ""
            raise InputError(f"{path}: no record has text to search{there}; name the fields with --eval-field")

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
                yield from _csv_records(data.decode("utf-8-sig"), path)
            elif form == "text" and data.lstrip()[:1] not in (b"{", b"["):
                yield from (p for p in re.split(r"\n\s*\n", data.decode("utf-8-sig")) if p.strip())
            else:
                yield from self._json_records(data.removeprefix(b"\xef\xbb\xbf"), path)
        except (UnicodeDecodeError, pa.ArrowException, csv.Error) as e:
            raise InputError(f"{path}: cannot be read as an evaluation set: {e}") from None

    def _json_records(self, data: bytes, path: str) -> Iterator[Any]:
        try:
            yield from _unpacked(orjson.loads(data))
            return
        except orjson.JSONDecodeError:
            pass
        good = 0
        for line in data.splitlines():
            if line.strip():
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError:
                    self.unreadable += 1
                    continue
                good += 1
                yield record
        if not good:
            raise InputError(f"{path}: cannot be read as JSON lines or JSON, though it is no other known format")

    def _add(self, number: int, record: Any) -> None:
        made = list(self._items_of(record, []))
        for place, texts in enumerate(made):
            self.read += 1
            name = f"{self.name}:{number}" + (f".{place}" if len(made) > 1 else "")
            parts = tuple(Part(kind, tuple(dict.fromkeys(held))) for (kind, _), held in texts.items() if held)
            if parts:
                self.items.append(Item(name, parts))
            else:
                self.without_text += 1

    def _items_of(self, record: Any, passage: list[str]) -> Iterator[_Texts]:
        """The texts of each item in a record: lists of questions make one item each, with the passage above them."""
        texts: _Texts = {(part, ""): [] for part in ("question", "choices", "passage")}
        texts["passage", ""] += passage
        inner: list[Any] = []
        if isinstance(record, dict):
            for key, value in record.items():
                if _is_many(key, value):
                    inner += value
                else:
                    self._collect(key, key, value, None, texts)
        else:
            self._collect("", "", record, "question", texts)
        for value in inner:
            yield from self._items_of(value, texts["passage", ""])
        others = {key: held for key, held in texts.items() if key[0] == "other"}
        short = {key: held for key, held in texts.items() if key[0] == "short"}
        texts = {key: held for key, held in texts.items() if key not in short}
        if not texts["question", ""] and not inner:
            known = {key: held for key, held in texts.items() if key not in others}
            taken = others or ({} if any(known.values()) else short)
            self.unknown |= {path for _, path in taken}
            texts = known
            texts["question", ""] = [text for held in taken.values() for text in held] or texts.pop(("passage", ""))
        if texts["question", ""] or not inner:
            yield texts

    def _collect(self, key: str, path: str, value: Any, part: str | None, texts: _Texts) -> None:
        """Add the strings of a value to the texts of their part."""
        if value is None or value == "":
            return
        part = self._part_of(key, path, part)
        if isinstance(value, str) and part and value.lstrip()[:1] in ("[", "{"):
            value = _parsed(value)
        if isinstance(value, dict):
            role = _TURNS.get(str(value.get("role", value.get("from"))).lower())
            if role or {"role", "content"} <= value.keys():
                self._collect("", path, value.get("content", value.get("value")), role or "passage", texts)
                return
            for name, inner in value.items():
                self._collect(name, f"{path}.{name}", inner, part, texts)
        elif isinstance(value, list | tuple):
            for inner in value:
                self._collect("", path, inner, part, texts)
        elif isinstance(value, str) or (part in ("answer", "choices") and not isinstance(value, bool)):
            text = str(value)
            self.seen[path] += 1
            if part:
                self.used[path] += 1
            elif part is None and _words(text) >= _LEAST_WORDS:
                self.unknown.add(path)
                part = "other"
            elif part is None:
                part = "short"
            if part:
                texts.setdefault((part, path if part in ("answer", "other", "short") else ""), []).append(text)

    def _part_of(self, key: str, path: str, above: str | None) -> str | None:
        """The part that a field holds: as named by the user, by its name, or that of the field around it."""
        if path in self.named or key in self.named:
            name = path if path in self.named else key
            self.used[name] += 1
            return self.named[name]
        known = ROLES.get(re.sub(r"[\W_]", "", key.lower()) or " ")
        if known is None:
            known = ROLES.get(re.sub(r"[\W_]|\d+$", "", key.lower()) or " ")
        if above and known != "" and (above != "question" or known in (None, "question")):
            return above
        return above if known is None else known

    def line(self) -> str:
        """What the fields were taken for."""
        unknown = f"; searched too, though their names are not known: {', '.join(sorted(self.unknown))}"
        fields = ", ".join(name for name in self.used if name not in self.unknown)
        return f"{self.name}: {self.read} items; fields {fields or '-'}" + (unknown if self.unknown else "")

    def alarms(self) -> Iterator[str]:
        """Sentences about what cannot be searched."""
        if self.without_text:
            yield (
                f"{self.without_text} of {self.read} items of {self.name} have no text in a field that is known; the "
                f"fields are {', '.join(self.seen)}: name them with --eval-field"
            )
        if self.unreadable:
            yield f"{self.unreadable} lines of {self.name} are not JSON, and were not searched"


def _csv_records(text: str, path: str) -> Iterator[dict[str, str]]:
    delimiter = "\t" if ".tsv" in path else ","
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    if not rows:
        return
    header = rows[0]
    known = [len(cell) > 1 and ROLES.get(re.sub(r"[\W_]", "", cell.lower())) is not None for cell in header]
    if not any(known) or any(len(cell) > 60 for cell in header):  # MMLU's files begin with an item
        header = list(_EXAM) if len(header) == len(_EXAM) else [f"column {n}" for n in range(len(header))]
        rows = [[], *rows]
    for row in rows[1:]:
        yield dict(zip(header, row, strict=False))


def _unpacked(value: Any) -> Iterable[Any]:
    """The records of a JSON value: a list, an object with lists of records inside, or columns."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    if any(_is_question(key, v) for key, v in value.items()):
        return [value]
    if value and all(isinstance(v, list) for v in value.values()):
        columns = [v for v in value.values() if v and not isinstance(v[0], dict)]
        if len(columns) == len(value) and len({len(v) for v in columns}) == 1 and len(value) > 1:
            return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    lists = [v for v in value.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if lists:
        return [record for records in lists for record in records]
    if value and all(isinstance(v, dict) for v in value.values()):
        inner = [list(_unpacked(v)) for v in value.values()]
        return [record for records in inner for record in records]
    return [value]


def _is_question(key: str, value: Any) -> bool:
    """Whether an object with this field is one item, and no collection of items."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return bool({"role", "from"} & value[0].keys())
    name = re.sub(r"[\W_]", "", key.lower())
    return name == "turns" or (isinstance(value, str) and ROLES.get(name) == "question")


def _is_many(key: str, value: Any) -> bool:
    """Whether a field holds several items: a list of questions, or of records with questions."""
    if not isinstance(value, list) or not value:
        return False
    name = re.sub(r"[\W_]", "", key.lower())
    if isinstance(value[0], str):
        return name in ("questions", "problems", "prompts", "tasks") and len(value) > 1
    if not isinstance(value[0], dict) or {"role", "content"} <= value[0].keys() or {"from", "value"} <= value[0].keys():
        return False
    if ROLES.get(name) in ("choices", "answer", ""):
        return False
    return name == "questions" or any(_asks(v) for v in value[0].items())


def _asks(entry: tuple[str, Any]) -> bool:
    key, value = entry
    name = re.sub(r"[\W_]", "", key.lower())
    return (ROLES.get(name) == "question" and name not in ("turns", "text", "content")) or _is_many(key, value)


def _words(text: str) -> float:
    """About how many words a text has; two characters of a script without spaces are one."""
    return len(text.split()) + len(re.findall(r"[\u3040-\u9fff\u0e00-\u0eff]", text)) / 2


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
