"""Conversations: labelled pairs, and how many of them each way of deduplication calls duplicates.

    python bench/turns.py CORPORA/sft [--half development|held-out] [--peer PYTHON] [--datatrove PYTHON]
    python bench/turns.py CORPORA/sft --misses 20        # the pairs that datakit gets wrong, to read
    python bench/turns.py --half unseen                  # 415 pairs of turns_unseen.tsv
    python bench/turns.py --half fresh                   # 498 pairs of turns_fresh.tsv
    python bench/turns.py --half third                   # 318 pairs of turns_third.tsv

A pair is a conversation of a real set, or of the sets that this file writes, and an edit of it. Duplicates differ in
politeness, punctuation, spelling, white space, full-width letters or the place of a greeting. Non-duplicates have other
numbers, names, negations, operators, questions, answers, system prompts, tool results or roles, or another order of
turns. A prefix is right if it is reported as `prefix`, or not dropped. The two halves have other sources, other
formulas and other kinds of typing errors; everything was tuned on the first half only. (An earlier held-out list of
formulas became part of the development half after it was used once; see bench/LOG.md.)

turns_unseen.tsv was written by somebody who had not read the lists and rules: traps in 16 languages, code, mathematics,
medicine, support. A line is a label, a domain, what differs, and two conversations: turns that `||` divides, user and
assistant in turn or S:, U:, A:, T: for roles; `=` is the turn of the first one, `{name}` a passage.
turns_fresh.tsv has the same form and was written in the same way later: half duplicates, half not, in twelve languages;
law, medicine, cooking, programming in nine languages, chemistry, units, tool calls, mathematics.
turns_third.tsv has it too: half duplicates, half not, in twenty languages, mathematics, code and chat.

All rows are one dataset. A pair counts as found where one row is dropped for the other one, or both for a third.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Messages = list[dict[str, Any]]
WRITTEN = ["unseen", "fresh", "third"]


@dataclass(frozen=True)
class Pair:
    kind: str
    label: str  # duplicate, different, prefix
    one: Messages
    other: Messages


# Formulas and spellings of the two halves: (English, Chinese) each.

OPENINGS = {
    "development": (
        ["Hello! ", "Hi there, ", "Please ", "Could you please help me with this? ", "Good morning. ",
         "I have a question: ", "I hope you are doing well. ", "Excuse me, ", "Hey! Quick question. ",
         "Greetings! ", "Good evening, dear assistant. ", "Kindly help me out here. ",
         "Sorry to bother you, but ", "I would really appreciate your help with this one. ",
         "Would you be so kind as to help me? ", "Hi again! ", "If you have a moment: ",
         "I'd love to get your assistance. "],
        ["你好，", "您好！", "请问，", "请帮我一下：", "麻烦您，", "我想请教一下，", "早上好，",
         "不好意思打扰了，", "嗨，", "下午好！", "劳驾，", "拜托了，", "打扰一下，", "我有个问题想问您：",
         "大家好，", "能麻烦您帮个忙吗？"],
    ),
    "held-out": (
        ["Hey everybody! ", "Dear friend, ", "Pardon the interruption. ", "Would you mind helping me out? ",
         "I was wondering if you could assist me with something. ", "Hope all is well with you! ",
         "May I ask you something? ", "Please be so kind and answer this: ",
         "Thank you for taking the time. "],
        ["您好呀，", "请教一个问题：", "不好意思，", "想请您帮帮忙，", "老师好，", "抱歉打扰您了，",
         "能帮帮我吗？", "请告诉我，"],
    ),
}  # fmt: skip
CLOSINGS = {
    "development": (
        [" Thanks!", " Thank you very much.", " Please help.", " Thanks in advance!",
         " I appreciate your help.", " Many thanks in advance.", " Any help would be greatly appreciated!",
         " Cheers!", " Thank you so much for your time.", " Looking forward to your answer."],
        ["谢谢！", "多谢。", "非常感谢您的帮助。", "麻烦了。", "感激不尽！", "先谢谢了。", "十分感谢！",
         "辛苦了。"],
    ),
    "held-out": (
        [" Thank you kindly!", " I'd be very grateful for any help.", " Much appreciated.",
         " Thanks a bunch, have a nice day!", " Please and thank you."],
        ["谢谢您的耐心解答！", "万分感谢。", "拜托您了！", "先谢过了。"],
    ),
}  # fmt: skip
ANSWER_OPENINGS = {
    "development": (
        ["Sure! ", "Of course. ", "Certainly! Here is the answer: ", "Great question! ", "Happy to help. ",
         "Absolutely! ", "No problem at all. ", "Thanks for your question! ",
         "I'd be glad to assist you with that. ", "Sure thing, here you go: "],
        ["好的，", "当然可以！", "没问题。", "很高兴为您解答。", "好的！", "这是一个很好的问题。", "当然，",
         "感谢您的提问。"],
    ),
    "held-out": (
        ["Okay! ", "With pleasure. ", "Good question, and thanks for asking! ",
         "Of course, I can help you with that. ", "Hello! I am glad that you asked. "],
        ["可以的，", "非常乐意为您解答！", "您好，", "好问题！"],
    ),
}  # fmt: skip
ANSWER_CLOSINGS = {
    "development": (
        [" I hope this helps!", " Let me know if you have any questions.",
         " Feel free to ask if you need anything else.", " Hope that was helpful to you.",
         " If you have any further questions, don't hesitate to reach out!", " Have a wonderful day!"],
        ["希望对您有帮助！", "如果您还有其他问题，请随时告诉我。", "希望以上回答能帮到你。",
         "欢迎随时提问。", "祝您生活愉快！"],
    ),
    "held-out": (
        [" I hope that answers your question.", " Please let me know if anything is unclear.",
         " Good luck!", " Is there anything else that I can do for you?"],
        ["希望这些信息对您有所帮助。", "还有什么可以帮您的吗？", "祝您一切顺利！"],
    ),
}  # fmt: skip
BRITISH = {
    "development": [("color", "colour"), ("favorite", "favourite"), ("organize", "organise"), ("center", "centre")],
    "held-out": [("behavior", "behaviour"), ("analyze", "analyse"), ("traveling", "travelling"), ("theater", "theatre"),
                 ("realize", "realise"), ("neighbor", "neighbour")],
}  # fmt: skip
NAMES = {
    "development": ["Natalia", "Peter", "Olga", "Samir", "Ingrid", "Hugo"],
    "held-out": ["Beatrice", "Kenji", "Fatima", "Douglas", "Yolanda", "Marek"],
}
CJK = re.compile(r"[\u4e00-\u9fff]")


def chinese(text: str) -> int:
    return int(len(CJK.findall(text)) * 4 > len(text))


def talk(*turns: str, system: str = "") -> Messages:
    made: Messages = [{"role": "system", "content": system}] if system else []
    return made + [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(turns)]


def with_turn(rows: Messages, role: str, change: Callable[[str], str | None], last: bool = False) -> Messages | None:
    """The conversation with its first (or last) turn of a role changed; None where it would be as it was."""
    at = [i for i, m in enumerate(rows) if m["role"] == role]
    if not at:
        return None
    i = at[-1 if last else 0]
    changed = change(rows[i]["content"])
    if not changed or changed == rows[i]["content"]:
        return None
    return [*rows[:i], rows[i] | {"content": changed}, *rows[i + 1 :]]


# What makes duplicates.


def lower_first(text: str) -> str:
    return text if text[:2].isupper() or text[:2] in ("I ", "I'") else text[:1].lower() + text[1:]


def misspelled(text: str, rng: random.Random, half: str) -> str | None:
    """One typing error for about ten words, in words of at least five lower-case letters."""
    found = list(re.finditer(r"(?<![\w'$\\.<])[a-z]{5,}(?![\w'(=.])", text))
    if not found:
        return None
    for m in sorted(rng.sample(found, max(1, min(len(found) // 10, 6))), key=lambda m: -m.start()):
        word = m.group()
        k = rng.randrange(1, len(word) - 2)
        ways = {
            "development": [word[:k] + word[k + 1] + word[k] + word[k + 2 :], word[:k] + word[k] + word[k:]],
            "held-out": [word[:k] + word[k + 1 :], word[:k] + rng.choice("aeinrst") + word[k:],
                         word[:k] + rng.choice("aeinrst") + word[k + 1 :]],
        }[half]  # fmt: skip
        text = text[: m.start()] + rng.choice(ways) + text[m.end() :]
    return text


def punctuated(text: str, rng: random.Random) -> str:
    if chinese(text):
        return text.translate(str.maketrans("，。？！：", ",.?!:")).rstrip(".。") + rng.choice(["", "！", "..."])
    made = re.sub(r"(?<=[a-z]),(?= )", rng.choice(["", " -", ";"]), text)
    return made.rstrip(".?! ") + rng.choice(["", " ...", "!", "."]) if rng.random() < 0.7 else made.replace(". ", "; ")


def spaced(text: str, rng: random.Random) -> str:
    return (
        "  "
        + re.sub(r" ", lambda _: rng.choice([" ", "  ", "\u00a0", "\n"]) if rng.random() < 0.3 else " ", text)
        + "\n"
    )


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isdigit() or c in "+=%" else c for c in text)


def duplicates(row: Messages, rng: random.Random, half: str) -> Iterator[tuple[str, Messages | None]]:
    def polite(text: str) -> str:
        which = chinese(text)
        opening = rng.choice(OPENINGS[half][which])
        text = opening + (lower_first(text) if opening.endswith((", ", "Please ", "but ")) else text)
        return text + rng.choice(CLOSINGS[half][which]) if rng.random() < 0.5 else text

    def polite_answer(text: str) -> str:
        which = chinese(text)
        if rng.random() < 0.5:
            return rng.choice(ANSWER_OPENINGS[half][which]) + text
        return (
            text
            + ("" if text.endswith(tuple(".!?。！？`")) else "。" if which else ".")
            + rng.choice(ANSWER_CLOSINGS[half][which])
        )

    def spelled(text: str) -> str | None:
        for american, british in BRITISH[half]:
            text = re.sub(american, british, text)
        return misspelled(text, rng, half)

    yield "politeness asked", with_turn(row, "user", polite)
    yield "politeness answered", with_turn(row, "assistant", polite_answer, last=True)
    both = with_turn(row, "user", polite)
    yield "politeness both", both and with_turn(both, "assistant", polite_answer, last=True)
    greeting = rng.choice(OPENINGS[half][chinese(row[-2]["content"])]) if len(row) > 1 else ""
    before = with_turn(row, "user", lambda t: greeting + t)
    after = with_turn(row, "user", lambda t: t + (" " if t[-1:].isascii() else "") + greeting.strip(" ,，:："))
    if before and after and greeting.strip()[-1:] in "!.！。？?":
        yield "order of greeting", [{"pair": [before, after]}]
    yield "punctuation", with_turn(row, "user", lambda t: punctuated(t, rng))
    yield "white space", with_turn(row, "assistant", lambda t: spaced(t, rng) if "```" not in t else None)
    yield "spelling asked", with_turn(row, "user", spelled)
    yield "spelling answered", with_turn(row, "assistant", spelled)
    yield "full width", with_turn(row, "user", full_width)
    yield "letter case", with_turn(row, "user", lambda t: lower_first(t) if half == "development" else t.upper())


# What makes other conversations.


def other_number(text: str, rng: random.Random) -> str | None:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return None
    m = rng.choice(found)
    return text[: m.start()] + str(int(m.group()[:15]) + rng.choice([1, 2, 7, 10])) + text[m.end() :]


def other_name(text: str, rng: random.Random, half: str) -> str | None:
    found = list(re.finditer(r"(?<=[a-z,] )[A-Z][a-z]{2,}", text))
    if chinese(text):
        found = list(re.finditer(r"北京|上海|小明|小红|中国|美国|张三|李四|日本|英国|法国|苹果|红色|春天|夏天", text))
    if not found:
        return None
    old = rng.choice(found).group()
    new = rng.choice(["广州", "小刚", "德国", "王五"] if chinese(text) else NAMES[half])
    return text.replace(old, new)


def negated(text: str, rng: random.Random) -> str | None:
    if chinese(text):
        found = list(re.finditer(r"(?<!不)(?=是(?!否|不)|能(?!否|不)|会(?!不)|可以|需要|应该)", text))
        word = "不"
    else:
        found = list(re.finditer(r"\b(?:is|are|can|was|will|should|would) (?!not\b)(?=[a-z])", text))
        word = "not "
    if not found:
        return None
    at = rng.choice(found).end()
    return text[:at] + word + text[at:]


def other_operator(text: str, rng: random.Random) -> str | None:
    found = list(re.finditer(r"(?<=\d)( ?)([+*/-])(?=\1[\d(])", text))
    if not found:
        return None
    m = rng.choice(found)
    return text[: m.start(2)] + rng.choice([o for o in "+-*/" if o != m.group(2)]) + text[m.end() :]


def different(
    row: Messages, stranger: Messages, rng: random.Random, half: str
) -> Iterator[tuple[str, Messages | None]]:
    for role, what in (("user", "asked"), ("assistant", "answered")):
        yield f"number {what}", with_turn(row, role, lambda t: other_number(t, rng))
        yield f"name {what}", with_turn(row, role, lambda t: other_name(t, rng, half))
        yield f"negation {what}", with_turn(row, role, lambda t: negated(t, rng))
        yield f"operator {what}", with_turn(row, role, lambda t: other_operator(t, rng))
    strange = {m["role"]: m["content"] for m in stranger}
    yield "other answer", with_turn(row, "assistant", lambda _: strange.get("assistant"), last=True)
    yield "other question", with_turn(row, "user", lambda _: strange.get("user"))
    yield "other tool result", with_turn(row, "tool", lambda t: other_number(t, rng) or t[::-1])
    calls = [i for i, m in enumerate(row) if m.get("tool_calls")]
    if calls:
        made = other_number(row[calls[0]]["tool_calls"], rng)
        yield "other arguments", made and [*row[: calls[0]], row[calls[0]] | {"tool_calls": made}, *row[calls[0] + 1 :]]  # type: ignore[misc]
    prompts = ["You are a helpful assistant.", "Answer like a pirate.", "你是一个诗人。", "Be brief. Answer in French."]
    yield "other system prompt", [{"role": "system", "content": rng.choice(prompts)}, *row]
    yield (
        "roles changed",
        [m | {"role": {"user": "assistant", "assistant": "user"}.get(m["role"], m["role"])} for m in row],
    )
    if len(row) >= 4 and {m["role"] for m in row} == {"user", "assistant"}:
        yield "turns in another order", [*row[2:4], *row[:2], *row[4:]]


# The sources.


def of_shared(folder: Path, half: str) -> Iterator[Messages]:
    """Conversations of real sets."""

    def rows(name: str) -> list[dict[str, Any]]:
        text = (folder / name).read_text(encoding="utf-8")
        return json.loads(text) if text[0] == "[" else [json.loads(line) for line in text.splitlines()]

    if half == "development":
        for r in rows("gsm8k/train.jsonl")[:400]:
            yield talk(r["question"], r["answer"])
        for name in ("llamafactory/alpaca_en_demo.json", "llamafactory/alpaca_zh_demo.json"):
            for r in rows(name)[:350]:
                yield talk("\n".join(filter(None, (r["instruction"], r["input"]))), r["output"])
        sharing = rows("llamafactory/glaive_toolcall_en_demo.json")[:150]
    else:
        for r in (
            rows("gpteacher/codegen-instruct.json")[:250]
            + rows("gpteacher/roleplay-simple-deduped-roleplay-instruct.json")[:300]
        ):
            yield talk("\n".join(filter(None, (r["instruction"], r["input"]))), r["response"])
        for r in rows("gsm8k/test.jsonl")[:300]:
            yield talk(r["question"], r["answer"])
        sharing = rows("llamafactory/glaive_toolcall_zh_demo.json")[:150] + rows("sharegpt_zh_1k.jsonl")[:250]
    roles = {"human": "user", "gpt": "assistant", "observation": "tool", "function_call": "assistant"}
    for r in sharing:
        turns = r["conversations"][:6]
        yield [
            {"role": roles[t["from"]], "content": ""}
            | {"tool_calls" if t["from"] == "function_call" else "content": t["value"]}
            for t in turns
        ]


def written(half: str, rng: random.Random) -> Iterator[Messages]:
    """Conversations of our own: short facts, sums and equations, a paragraph with several questions."""
    people = NAMES[half]
    things = {"development": ["apples", "books", "candles"], "held-out": ["stamps", "bottles", "tickets"]}[half]
    for n in range(200):
        who, what, a, b = rng.choice(people), rng.choice(things), rng.randrange(3, 90), rng.randrange(3, 90)
        sign = rng.choice("+-*")
        if n % 4 == 0:
            yield talk(f"What is {a} {sign} {b} * {n}?", str(eval(f"{a}{sign}{b}*{n}")))
        elif n % 4 == 1:
            yield talk(f"Yesterday {who} had {a} {what} and bought {b} more of them, plus {n}. How many are there now?",
                       f"{who} has {a} + {b} + {n} = {a + b + n} {what}.")  # fmt: skip
        elif n % 4 == 2:
            yield talk(f"Solve {a}*x {sign} {b} = {n}.", f"x = ({n} - {b})/{a}")
        else:
            yield talk(
                f"小明有{a}个苹果，又买了{b}个，后来吃了{n}个。他现在有多少个苹果？", f"他现在有{a + b - n}个苹果。"
            )


def contexts(half: str, rng: random.Random) -> Iterator[Pair]:
    """Several questions about one paragraph, each with a short answer: all differ."""
    streets = {
        "development": "mill harbour station market tower",
        "held-out": "bridge chapel quarry school lighthouse",
    }[half]
    for place in range(24):
        facts = [(thing, 1700 + rng.randrange(250), rng.choice(NAMES[half])) for thing in streets.split()]
        text = " ".join(
            f"The {thing} of town number {place} was built in {year} by {who}, and for a long time nobody knew that "
            f"the stones had been carried over the hills in winter, when the roads were frozen."
            for thing, year, who in facts
        )
        asked = [(f"When was the {t} built?", str(y)) for t, y, _ in facts] + [
            (f"Who built the {t}?", w) for t, _, w in facts
        ]
        rng.shuffle(asked)
        for (q, a), (other, b) in zip(asked[::2], asked[1::2], strict=False):
            yield Pair(
                "question about one context", "different", talk(f"{text}\n\n{q}", a), talk(f"{text}\n\n{other}", b)
            )
        q, a = asked[0]
        yield Pair(
            "the same question twice",
            "duplicate",
            talk(f"{text} {place}\n\n{q}", a),
            talk(f"{text} {place}\n\n{q} ", a),
        )


def pairs(folder: Path, half: str, seed: int = 1) -> list[Pair]:
    """The labelled pairs of one half. Each row of a source is in one pair, so that pairs do not meet."""
    rng = random.Random(f"{half} {seed}")
    rows, seen = [], set[str]()
    for row in [*of_shared(folder, half), *written(half, rng)]:
        key = json.dumps([m["content"] for m in row if m["role"] == "user"][:1])
        if key not in seen and sum(len(m["content"]) for m in row) < 6000 and len(row) > 1 and row[0]["content"]:
            seen.add(key)
            rows.append(row)
    rng.shuffle(rows)
    made, used = list(contexts(half, rng)), Counter[str]()
    strangers = rows[1:] + rows[:1]
    for row, stranger in zip(rows, strangers, strict=True):
        for _ in range(2):
            choices = [("duplicate", *c) for c in duplicates(row, rng, half)]
            choices += [("different", *c) for c in different(row, stranger, rng, half)]
            if len(row) >= 4 and row[2]["role"] == "user":
                choices.append(("prefix", "prefix", row[:2]))
            label, kind, other = min((c for c in choices if c[2]), key=lambda c: (used[c[1]], c[1]))
            one, other = other[0].get("pair", (row, other))
            made.append(Pair(kind, label, one, other))
            used[kind] += 1
            number = f" Case {len(made)}." if not chinese(row[0]["content"]) else f"第{len(made)}例。"
            row = with_turn(row, "user", lambda t, number=number: f"{number.strip()}\n{t}") or row  # type: ignore[misc]
    return made


def listed(name: str) -> list[Pair]:
    """The pairs of turns_NAME.tsv."""
    passages: dict[str, str] = {}
    made = []

    def conversation(text: str, first: Messages) -> Messages:
        turns = text.split("||")
        roles = {"S:": "system", "U:": "user", "A:": "assistant", "T:": "tool"}
        named = turns[0][:2] in roles
        found: Messages = []
        for n, turn in enumerate(turns):
            if turn == "=":
                found.append(first[n])
                continue
            role, said = (roles[turn[:2]], turn[2:]) if named else (("user", "assistant")[n % 2], turn)
            said = said.replace("\\\\", "\0").replace("\\r\\n", "\r\n").replace("\\n", "\n").replace("\0", "\\")
            for key, passage in passages.items():
                said = said.replace("{" + key + "}", passage)
            found.append({"role": role, "content": said})
        return found

    for line in (Path(__file__).parent / f"turns_{name}.tsv").read_text(encoding="utf-8").split("\n")[:-1]:
        label, *cells = line.split("\t")
        if label == "passage":
            passages[cells[0]] = cells[1].replace("\\n", "\n")
            continue
        domain, what, one, other = cells
        first = conversation(one, [])
        made.append(Pair(f"{domain}: {what}", label, first, conversation(other, first)))
    return made


# The ways to find duplicates.


def write_rows(made: list[Pair], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for n, pair in enumerate(made):
            for side, messages in (("a", pair.one), ("b", pair.other)):
                file.write(json.dumps({"id": f"{n}{side}", "messages": messages}, ensure_ascii=False) + "\n")


def by_datakit(path: Path) -> dict[str, tuple[str, str]]:
    import datakit

    result = datakit.dedup(str(path))
    columns = [result.dropped.column(c).to_pylist() for c in ("id", "duplicate_of", "reason")]
    return {i: (of, why) for i, of, why in zip(*columns, strict=True)}


def by_peer(python: str, name: str, path: Path) -> dict[str, tuple[str, str]]:
    script = Path(__file__).parent / "peers" / "turns.py"
    done = subprocess.run([python, str(script), name, str(path)], check=True, capture_output=True, text=True)
    return {i: (of, "") for i, of in json.loads(done.stdout.splitlines()[-1]).items()}


def scores(made: list[Pair], dropped: dict[str, tuple[str, str]]) -> tuple[float, float, list[Pair], Counter[str]]:
    """(precision, recall, pairs that were judged wrongly, drops by a row of no pair)."""

    def root(name: str) -> str:
        while name in dropped:
            name = dropped[name][0]
        return name

    found, right, wrong, total = 0, 0, [], 0
    for n, pair in enumerate(made):
        one, other = f"{n}a", f"{n}b"
        same = root(one) == root(other)
        prefix = same and "prefix" in (dropped.get(one, ("", ""))[1], dropped.get(other, ("", ""))[1])
        total += pair.label == "duplicate"
        if pair.label == "prefix" and (prefix or not same):
            continue
        found += same
        right += same and pair.label == "duplicate"
        if same != (pair.label == "duplicate"):
            wrong.append(pair)
    strays = Counter(why for name, (of, why) in dropped.items() if name[:-1] != of[:-1])
    return right / max(found, 1), right / max(total, 1), wrong, strays


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--half", choices=["development", "held-out", *WRITTEN])
    parser.add_argument("--misses", type=int, default=0, help="print so many wrong pairs of each kind")
    parser.add_argument("--peer", help="python with semhash, wordllama and datasketch")
    parser.add_argument("--datatrove", help="python with datatrove")
    asked = parser.parse_args()
    halves = ["development", "held-out", *WRITTEN] if asked.folder else WRITTEN
    for half in [asked.half] if asked.half else halves:
        made = listed(half) if half in WRITTEN else pairs(asked.folder, half)
        labels = Counter(p.label for p in made)
        print(f"{half}: {len(made)} pairs, {', '.join(f'{n} {label}' for label, n in labels.items())}", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "rows.jsonl"
            write_rows(made, path)
            ways: list[tuple[str, str]] = [("datakit", "")]
            ways += [(name, asked.peer) for name in ("minhash", "semhash") if asked.peer]
            ways += [("datatrove", asked.datatrove)] if asked.datatrove else []
            for name, python in ways:
                dropped = by_peer(python, name, path) if python else by_datakit(path)
                precision, recall, wrong, strays = scores(made, dropped)
                print(
                    f"  {name:<20} precision {precision:.4f}  recall {recall:.4f}  between pairs {sum(strays.values())}"
                )
                if name == "datakit":
                    show(made, wrong, asked.misses)
    return 0


def show(made: list[Pair], wrong: list[Pair], misses: int) -> None:
    total, bad = Counter(p.kind for p in made), Counter(p.kind for p in wrong)
    for kind, count in sorted(bad.items(), key=lambda item: -item[1]):
        print(f"    {kind:<28} {count} of {total[kind]} wrong")
        for pair in [p for p in wrong if p.kind == kind][:misses]:
            for m, o in zip(pair.one, pair.other, strict=False):
                if m != o:
                    print(f"      {m['role']}: {m.get('tool_calls') or m['content']!r}"[:900])
                    print(f"      {o['role']}: {o.get('tool_calls') or o['content']!r}"[:900])


if __name__ == "__main__":
    sys.exit(main())
