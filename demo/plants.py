"""The faults that are planted in the demo's data, and the plan that lists them.

Every planted row has an id of its own, so that the rows that stages drop can be compared with the plan.
"""

import json
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Row = dict[str, Any]

SHINGLE_WORDS: Final = 5
SURE: Final = 0.9
"""Planted near duplicates are more similar than this: 14 bands of 8 rows find them with a probability above 0.999."""
SURE_TURN: Final = 0.78
"""So is each of their turns to its copy: the least similar turn decides, and the dedup stage's threshold is 0.75."""
MIN_NEAR_WORDS: Final = 110
"""Rows with fewer words do not become near duplicates: one word would change too many of their shingles."""

EXACT: Final = 30
NEAR: Final = 20


@dataclass(slots=True)
class Plan:
    """What was planted: written to `planted.json`, printed, and compared with what was found."""

    exact_duplicates: list[dict[str, str]] = field(default_factory=list)
    """Copies: `id`, and `of`, the id of the row that must stay."""
    near_duplicates: list[dict[str, Any]] = field(default_factory=list)
    """The same, and their `similarity`."""
    other_languages: list[str] = field(default_factory=list)
    boilerplate: list[str] = field(default_factory=list)
    broken_lines: list[dict[str, Any]] = field(default_factory=list)
    """`file`, `line` (the first is 1) and `why`."""


def turns(row: Row) -> list[tuple[str, str]]:
    """(role, content) of a row in any of the layouts that the demo uses."""
    if "instruction" in row:
        asked = "\n".join(part for part in (row["instruction"], row["input"]) if part)
        return [("user", asked), ("assistant", row["output"])]
    if "question" in row:
        return [("user", row["question"]), ("assistant", row["answer"])]
    names = {"human": "user", "gpt": "assistant"}
    said = row.get("messages") or row["conversations"]
    return [(names.get(t["from"], t["from"]), t["value"]) if "from" in t else (t["role"], t["content"]) for t in said]


def text(row: Row) -> str:
    """What the user and the assistant say."""
    return "\n\n".join(content or "" for role, content in turns(row) if role in ("user", "assistant"))


def conversation(ident: str, said: Sequence[tuple[str, str]]) -> Row:
    """A row in the OpenAI layout."""
    return {"id": ident, "messages": [{"role": role, "content": content} for role, content in said]}


def words(said: str) -> list[str]:
    """Case-folded runs of letters, marks and digits; a character of Chinese or Japanese is a word of its own."""
    letters = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in said)
    return re.sub(r"([\u3040-\u9fff])", r" \1 ", letters).casefold().split()


def jaccard(one: str, other: str) -> float:
    """The Jaccard similarity of two texts: shared shingles, divided by all shingles of both."""
    first, second = shingles(one), shingles(other)
    return len(first & second) / len(first | second)


def shingles(said: str) -> set[tuple[str, ...]]:
    """The sequences of `SHINGLE_WORDS` words in a text."""
    found = words(said)
    return set(zip(*(found[i:] for i in range(SHINGLE_WORDS)), strict=False))


def copies(rows: Sequence[Row], rng: random.Random, plan: Plan) -> list[Row]:
    """Exact and near duplicates of some rows, always in the OpenAI layout."""
    plain = [r for r in rows if "tools" not in r]
    same = rng.sample(plain, EXACT)
    long = [r for r in plain if r not in same and len(words(text(r))) >= MIN_NEAR_WORDS]
    made = [_exact(row, i, plan) for i, row in enumerate(same, 1)]
    made += [_near(row, i, rng, plan) for i, row in enumerate(rng.sample(long, NEAR), 1)]
    rng.shuffle(made)
    return made


def _exact(row: Row, i: int, plan: Plan) -> Row:
    """The same words; every second copy has other white space, which does not count."""
    ident = f"copy-exact-{i:02d}"
    plan.exact_duplicates.append({"id": ident, "of": row["id"]})
    around = "{}" if i % 2 else "  {}\n"
    return conversation(ident, [(role, around.format(content)) for role, content in turns(row)])


def _near(row: Row, i: int, rng: random.Random, plan: Plan) -> Row:
    """The row without one word of its longest answer; every second copy lacks two, if it stays similar enough."""
    ident = f"copy-near-{i:02d}"
    copy = conversation(ident, _without_a_word(turns(row), rng))
    shorter = conversation(ident, _without_a_word(turns(copy), rng))
    if i % 2 and _is_sure(row, shorter):
        copy = shorter
    assert _is_sure(row, copy), f"{row['id']} makes no sure near duplicate"
    similarity = round(jaccard(text(row), text(copy)), 3)
    plan.near_duplicates.append({"id": ident, "of": row["id"], "similarity": similarity})
    return copy


def _is_sure(row: Row, copy: Row) -> bool:
    """Whether the dedup stage must find the copy."""
    pairs = zip(turns(row), turns(copy), strict=True)
    changed = [jaccard(one, other) for (_, one), (_, other) in pairs if one != other]
    return jaccard(text(row), text(copy)) > SURE and min(changed) > SURE_TURN


def _without_a_word(said: Sequence[tuple[str, str]], rng: random.Random) -> list[tuple[str, str]]:
    """Remove one word between two spaces from the longest answer; in a script without spaces, one character."""
    longest = max((i for i, (role, _) in enumerate(said) if role == "assistant"), key=lambda i: len(said[i][1]))
    role, content = said[longest]
    found = list(re.finditer(r"(?<= )[a-z]+ ", content)) or list(re.finditer(r"[\u4e00-\u9fff]", content))
    gone = found[rng.randrange(len(found))]
    return [*said[:longest], (role, content[: gone.start()] + content[gone.end() :]), *said[longest + 1 :]]


DAMAGE: Final[tuple[tuple[str, Callable[[bytes], bytes]], ...]] = (
    ("cut off in the middle", lambda line: line[: len(line) // 2]),
    ("a byte that is not UTF-8", lambda line: line[:-6] + b"\xff" + line[-6:]),
    ("a number where text belongs", lambda line: json.dumps({"messages": [{"role": "user", "content": 42}]}).encode()),
    ("no JSON at all", lambda line: b"id: 17, question: how are you?, answer: fine"),
    ("a list instead of an object", lambda line: b"[" + line + b"]"),
    ("no messages", lambda line: json.dumps({"id": "nothing", "note": "exported without the text"}).encode()),
    ("messages that are no list", lambda line: json.dumps({"messages": "Hello! How can I help you?"}).encode()),
    ("a comma too many", lambda line: line[:-1] + b",}"),
    ("half of a surrogate pair", lambda line: rb'{"messages": [{"role": "user", "content": "\ud83d"}]}'),
    ("two records in one line", lambda line: line + line),
)
"""Why a line is broken, and the function that breaks a good line in this way."""


def broken(good: Sequence[Row], file: str, plan: Plan) -> bytes:
    """JSON lines in which a damaged line follows each of the first good rows; these are added to the plan."""
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in good]
    made: list[bytes] = []
    for i, line in enumerate(lines):
        made.append(line)
        if i < len(DAMAGE):
            why, damage = DAMAGE[i]
            made.append(damage(line))
            plan.broken_lines.append({"file": file, "line": len(made), "why": why})
    return b"\n".join(made) + b"\n"
