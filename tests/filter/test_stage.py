"""The filter stage: which rules decide about which rows, and what they say."""

import json
import pickle

import pyarrow as pa
import pytest

import datakit
from datakit.config import build, options, resolved
from datakit.data import MESSAGES
from datakit.errors import ConfigError, InputError
from datakit.filter import web_rules
from datakit.filter.rule_set import count_signals
from datakit.filter.stage import FilterConfig
from datakit.stage import split
from tests.files import says, user
from tests.filter.rows import conversations, documents, filter_of

PROSE = (
    "The river had been rising since the morning, and the people of the lower town were carrying what they could up to "
    "the square. Nobody knew how long the old bridge would hold. In the evening a boy came running with news that the "
    "dam above the mill stood firm, so they lit fires, shared bread and waited for the water to turn back to its bed."
)


def preferences(*rows: tuple[list, list, list]) -> pa.RecordBatch:
    columns = zip(("prompt", "chosen", "rejected"), zip(*rows, strict=True), strict=True)
    return pa.record_batch({name: pa.array(sides, MESSAGES) for name, sides in columns})


def verdicts(batch: pa.RecordBatch, **values) -> list[tuple]:
    decision = filter_of(**values).decide(batch)
    return list(zip(decision.reasons.to_pylist(), decision.detail.to_pylist(), strict=True))


def test_symbols_count_as_words_unless_told_otherwise():
    rows, rules = documents("the of garden " * 17 + "| " * 10), ["gopher_quality"]
    assert verdicts(rows, rules=rules, gopher_quality={"min_words": 55}) == [(None, None)]
    ignored = verdicts(rows, rules=rules, gopher_quality={"min_words": 55, "symbol_words": "ignore"})
    assert ignored == [("gopher_quality.min_words", "words 51 < 55")]


REPETITION = {
    "max_dup_line_ratio": "\n".join(["a line", "one", "two"] + ["a line"] * 2),
    "max_dup_paragraph_ratio": "\n\n".join(f"heading\n{w}" for w in "ab") + "\n\nsame\n\nsame\n\nsame",
    "max_dup_line_char_ratio": "x\ny\nz\n" + "a longer line that comes twice\n" * 2,
    "max_top_2gram_char_ratio": "good morning x good morning y good morning z good morning",
    "max_dup_5gram_char_ratio": " ".join(f"{w} all of these five words {w * 2}" for w in ("k", "m", "n")),
}


@pytest.mark.parametrize("threshold", REPETITION)
def test_a_repetition_rule_drops_its_row(threshold):
    ratios = [o.name for o in options(web_rules.GopherRepetition) if o.type is float]
    rules = {name: 1.0 for name in ratios if name != threshold}
    ((reason, said),) = verdicts(documents(REPETITION[threshold]), rules=["gopher_repetition"], gopher_repetition=rules)
    assert reason == f"gopher_repetition.{threshold}"
    assert said.startswith(threshold[4:] + " 0.")


MEASURED = {
    "gopher_quality.min_words": ("Too short to say much.", "words 5 < 50"),
    "gopher_quality.min_mean_word_chars": ("to be of it a " * 20, "mean_word_chars 1.8 < 3.0"),
    "gopher_quality.max_mean_word_chars": (
        "antidisestablishment and " * 30 + "internationalisation " * 30, "mean_word_chars 14.333 > 10.0"),
    "gopher_quality.max_hash_word_ratio": (PROSE + " #tag" * 10, "hash_word_ratio 0.13 > 0.1"),
    "gopher_quality.max_ellipsis_word_ratio": (PROSE.replace(" ", "... ", 9), "ellipsis_word_ratio 0.134 > 0.1"),
    "gopher_quality.max_bullet_line_ratio": (
        "\n".join(f"- {w} followed and the others" for w in PROSE.split()), "bullet_line_ratio 1.0 > 0.9"),
    "gopher_quality.max_ellipsis_line_ratio": (
        f"{PROSE}\nand then...\n{PROSE[::-1]}", "ellipsis_line_ratio 0.333 > 0.3"),
    "gopher_quality.min_alpha_word_ratio": (PROSE + " 1923" * 30, "alpha_word_ratio 0.691 < 0.8"),
    "gopher_quality.min_stop_words": ("Fresh summer market salad recipe. " * 12, "stop_words 0 < 2"),
    "fineweb.min_lines": (" \n\n", "lines 0 < 1"),
    "fineweb.min_terminal_line_ratio": (
        "no line of this\nends as a sentence does\n" + PROSE[:-1], "terminal_line_ratio 0.0 < 0.12"),
    "fineweb.max_short_line_ratio": ("Home.\nAbout.\nNews.\n" + PROSE, "short_line_ratio 0.75 > 0.67"),
    "fineweb.max_dup_line_char_ratio": (f"{PROSE}\n{PROSE}", "dup_line_char_ratio 0.5 > 0.01"),
    "fineweb.max_line_breaks_per_word": (
        "\n".join(f"{i} and the unmistakeable rest of it." for i in range(20)) + "\n" * 50,
        "line_breaks_per_word 0.493 > 0.3"),
}  # fmt: skip


@pytest.mark.parametrize("threshold", MEASURED)
def test_a_rule_drops_its_row_and_says_what_it_measured(threshold):
    (text, said), rules = MEASURED[threshold], [threshold.partition(".")[0]]
    found = verdicts(documents(text, PROSE), rules=rules)
    assert found == [(threshold, said), (None, None)]
    assert found == [verdicts(documents(alone), rules=rules)[0] for alone in (text, PROSE)]  # whatever the batch


def test_the_rules_that_decide_are_written_into_the_config():
    config = filter_of().for_kind("conversation").config
    assert (config.rules, config.on) == (("empty_answer", "loops"), "answer")
    config = filter_of(c4={"min_sentences": 2}).for_kind("document").config
    assert config.rules == ("gopher_quality", "gopher_repetition", "c4")
    assert {"c4", "gopher_quality", "gopher_repetition", "fineweb"} & set(resolved(config)) == set(config.rules)
    batch = conversations([user("Hi"), says("Hi!")])
    assert verdicts(batch, gopher_quality={"min_words": 5}) == [("gopher_quality.min_words", "words 1 < 5")]
    again = build(FilterConfig, resolved(config), "filter")
    assert again == config and filter_of("c4").config.c4 is None


LANGUAGES = {
    "en": PROSE,
    "ru": "Рано утром старый рыбак спустился к гавани, где лодки ещё стояли в тумане. Он проверил сети, поговорил с "
    "соседями о погоде и подождал, пока солнце поднимется над крышами. Потом он вышел в море так далеко, что с берега "
    "можно было увидеть только маленькую тёмную точку на воде, а к вечеру вернулся домой с хорошим уловом и новостями.",
    "hi": "सुबह-सुबह बूढ़ा मछुआरा बंदरगाह की ओर गया, जहाँ नावें अब भी कोहरे में खड़ी थीं। उसने "
    "अपने जाल देखे, पड़ोसियों से मौसम के बारे में बात की और तब तक रुका रहा जब तक सूरज छतों "
    "के ऊपर न आ गया। फिर वह समुद्र में इतनी दूर चला गया कि किनारे से पानी पर केवल एक छोटा "
    "काला धब्बा दिखाई देता था, और शाम को वह अच्छी मछलियाँ और दूर की ख़बरें लेकर घर लौट "
    "आया।",
    "ko": "이른 아침 늙은 어부는 항구로 내려갔고 배들은 아직 안개 속에 서 있었다. 그는 그물을 살피고 이웃과 날씨 "
    "이야기를 나눈 뒤 해가 지붕 위로 떠오를 때까지 기다렸다. 그리고 그는 배를 타고 아주 먼 바다로 나가 "
    "뭍에서는 물 위의 작고 검은 점 하나만 보일 뿐이었다. 그러나 저녁이 되자 그는 좋은 고기와 먼 곳의 새 "
    "소식을 함께 싣고 집으로 돌아왔다.",
    "zh": "清晨，老渔夫走到港口，船还停在雾里。他检查了渔网，和邻居谈论天气，一直等到太阳升到屋顶上方。然后他驾船出海，"
    "走得那么远，从岸边只能看见水面上一个小小的黑点。傍晚时分，他带着满舱的鱼和远方的消息回到了家。",
    "th": "เช้าตรู่ชาวประมงชราเดินลงไปที่ท่าเรือ เรือยังจอดอยู่ในหมอก เขาตรวจดูอวน พูดคุยกับเพื่อนบ้านเรื่องอากาศ แล้วรอจนดวงอาทิตย์"
    "ขึ้นเหนือหลังคา จากนั้นเขาแล่นเรือออกไปไกลจนมองจากฝั่งเห็นเป็นเพียงจุดเล็กๆ สีดำบนผิวน้ำ",
}  # fmt: skip


@pytest.mark.parametrize("known", [True, False])
def test_prose_in_any_language_and_text_of_few_words_stay(known):
    langs = [lang if known else None for lang in LANGUAGES]
    assert verdicts(documents(*LANGUAGES.values(), lang=langs)) == [(None, None)] * len(LANGUAGES)
    assert verdicts(documents("", "ok", "two words", "é", "😀"), rules=["gopher_repetition"]) == [(None, None)] * 5
    lines = LANGUAGES["zh"].replace("。", "。\n"), LANGUAGES["th"].replace(" ", "\n")
    assert verdicts(documents(*lines), rules=["fineweb"]) == [(None, None)] * 2


def test_the_first_rule_in_the_recipes_order_is_the_reason():
    text = "again and again\n" * 10
    one, other = "gopher_quality", "gopher_repetition"
    assert verdicts(documents(text), rules=[one, other])[0][0] == "gopher_quality.min_words"
    assert verdicts(documents(text), rules=[other, one])[0][0] == "gopher_repetition.max_dup_line_ratio"


def test_the_missing_side_of_a_judged_answer_is_no_empty_answer():
    whole, blank = [says("a")], [says("")]
    sides = [(whole, []), ([], whole), (whole, blank), ([], blank), ([], [])]
    batch = preferences(*(([user("q")], *both) for both in sides))
    stays = [reason is None for reason, _ in verdicts(batch, rules=["empty_answer"])]
    assert stays == [True, True, False, False, False]


def test_conversations_without_an_answer_go():
    call = '[{"name": "clock", "arguments": {}}]'
    rows = [
        [user("Hello?")], [user("Hello?"), says("  \n")], [user("Hello?"), says(None)],
        [user("a"), says("b"), user("c"), says("")], [],
        [user("Time?"), says("", tool_calls=call), {"role": "tool", "content": "9:00"}, says("Nine.")],
        [user("Time?"), says("", tool_calls=call)],
    ]  # fmt: skip
    empty = ("empty_answer.min_answer_chars", "answer_chars 0 < 1")
    assert verdicts(conversations(*rows)) == [empty] * 5 + [(None, None)] * 2
    assert verdicts(conversations(*rows).slice(3), rules=["empty_answer"]) == [empty] * 2 + [(None, None)] * 2
    none = [[user("?"), says("", tool_calls=calls)] for calls in ("", "[]", " [ ] ", "null")]
    assert verdicts(conversations(*none)) == [empty] * 4
    answers = ("The answer is 4.", "The answer is 5."), ("yes", ""), (" ", "no")
    pairs = preferences(*(([user("q")], [says(one)], [says(other)]) for one, other in answers))
    assert [bool(reason) for reason, _ in verdicts(pairs)] == [False, True, True]


@pytest.mark.parametrize(
    ("answer", "stays"),
    [("<think>Hm, 2 + 2.</think>", False), ("\n<think>\nand so on\n</think>\n\u200b\n", False),
     ("<think>no end", False),
     ("\u200b\u2060\ufeff", False), ("\u3164\u00a0\u00ad", False), ("<think>a</think>4", True), ("\u200b4\u200b", True),
     ("The tag <think> begins it.", True), ("👩\u200d🚀", True), ("so 4\n</think>\n", False), ("so 4</think>4", True),
     ("4 <think>a</think>", True),
     ("<think>a</think>\n<think>b</think>", False), ("<think>a</think> <think>b</think>c", True),
     ("\u200b<think>a</think>\u200b", False)],
)  # fmt: skip
def test_reasoning_alone_and_invisible_characters_are_no_answer(answer, stays):
    rows = conversations([user("2 + 2?"), says(answer)])
    assert verdicts(rows, rules=["empty_answer"])[0][0] == (None if stays else "empty_answer.min_answer_chars")


WORK = "There are 3 x 4 = <<3*4=12>>12 eggs in the boxes.\nThere are 12 + 5 = <<12+5=17>>17 eggs in all.\n#### 17"
VERSES = "\n".join(f"Verse of the {w}\n" + "Oh when the saints go marching in\n" * 3 for w in ("sun", "sea"))
TABLE = "\n".join("| " + " | ".join(str((n * 7 + k) % 3) for k in range(8)) + " |" for n in range(9))


@pytest.mark.parametrize(
    ("answer", "stays"),
    [(WORK, True), (VERSES, True), (TABLE, True),
     ("a" * 3000, False), ("hahaha" * 200, False), ("😀" * 800, False), ("Sure! " + "abc123" * 100, False),
     ("哈" * 300, False), ("ha" * 40, True), ("-" * 80 + "\n| a | b |\n" + "-" * 80, True),
     ("A line.\n" + "=" * 250 + "\n" + " ".join(f"word{n}" for n in range(200)), True)],
)  # fmt: skip
def test_loops_of_a_few_characters_go(answer, stays):
    rows = conversations([user("Say it."), says(answer)])
    reasons = [reason for reason, _ in verdicts(rows, rules=["loops"])]
    assert (reasons == [None]) == stays
    if answer.isascii() and not stays:
        assert reasons == ["loops.max_loop_char_ratio"]


def test_an_assistant_that_says_the_same_turn_again_and_again_is_a_loop():
    def said(*answers):
        return conversations([m for a in answers for m in (user("And now?"), says(a))])

    again = "I do not know what you mean."
    for rows, stays in [
        (said(again, again, again), True),
        (said(again, "First, open it.", again, again.replace(" ", "  "), again), False),
        (said(*["Yes."] * 8), True),
        (conversations([user(again)] * 8 + [says("Then ask in other words.")]), True),
    ]:
        assert verdicts(rows, rules=["loops"])[0][0] == (None if stays else "loops.max_equal_turns")


def test_answers_that_repeat_themselves_go_and_questions_may():
    same = "Here we go again my friend. " * 20
    rows = [user("Go on"), says(same)], [user(same), says("A poem about a train.")]
    assert [bool(reason) for reason, _ in verdicts(conversations(*rows))] == [True, False]
    assert [bool(reason) for reason, _ in verdicts(conversations(*rows), on="prompt")] == [False, True]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gopher_quality": {"min_alpha_word_ratio": 1.5}}, "min_alpha_word_ratio = 1.5: expected a share"),
        ({"gopher_quality": {"min_words": -1}}, "min_words = -1"),
        ({"gopher_quality": {"max_hash_word_ratio": float("nan")}}, "expected a finite number, found nan"),
        ({"gopher_quality": {"min_words": 60, "max_words": 50}}, "min_words = 60 is more than max_words = 50"),
        ({"rules": ["c4"], "gopher_quality": {"min_words": 5}}, r"gopher_quality.*leaves it out"),
        ({"rules": ["gofer"]}, "unknown rule set 'gofer'; there are c4, .*fineweb, gopher_quality"),
        ({"gofer": {"min_words": 1}}, "c4, .*fineweb, gopher_quality"),
        ({"private": {"types": ["name"]}}, "types: unknown 'name'; expected some of card, email"),
        ({"private": {"types": []}}, r"types = \[\]"),
        ({"private": {"phone_regions": ["XX"]}}, "phone_regions: unknown 'XX'"),
        ({"private": {"patterns": {"a": "("}}}, "no regular expression"),
        ({"private": {"patterns": {"a": "b*"}}}, "needs a character"),
        ({"private": {"patterns": {"email": "b"}}}, "a new name"),
    ],
)
def test_senseless_values_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        filter_of(**values)


def test_rows_without_text_are_refused_and_no_rows_are_no_trouble():
    with pytest.raises(InputError, match="before the tokenize stage"):
        filter_of().decide(pa.record_batch({"input_ids": pa.array([[1]])}))
    assert verdicts(documents()) == verdicts(conversations()) == []


def test_saved_signals_are_those_that_decided():
    batch = documents(PROSE, "short", "")
    decision = filter_of().decide(batch)
    kept, dropped = split(batch, decision, "filter")
    assert kept.num_rows + dropped.num_rows == 3
    assert kept.schema == batch.schema
    words = decision.side_tables["signals"].column("words").to_pylist()
    assert words == count_signals(batch["text"])["words"].tolist() == [67, 1, 0]
    assert filter_of(signals=False).decide(batch).side_tables == {}
    assert pickle.loads(pickle.dumps(filter_of())) == filter_of()


def test_an_edited_row_has_the_hash_that_ingest_would_give_it(tmp_path):
    said = {"messages": [user("Hi"), says("Please write to {}.")]}
    for name, who in (("raw", "joe@firma.de"), ("fresh", "<EMAIL>")):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(said).replace("{}", w) for w in (who, "nobody")))
    edited = datakit.filter(datakit.ingest(str(tmp_path / "raw.jsonl")), rules=["private"]).kept
    fresh = datakit.ingest(str(tmp_path / "fresh.jsonl")).kept
    assert edited["content_hash"].to_pylist() == fresh["content_hash"].to_pylist()


AWKWARD = ["", " ", "\n" * 5000, "\r\n" * 50, "a", "😀", "😀" * 5000, "\u200d", "{" * 3000, "[" * 3000, "." * 3000,
           "@" * 3000, "x" * 300_000, "a " * 100_000, "字" * 50_000, "1" * 50_000, "\x00", "\u2028" * 100,
           "e\u0301" * 1000]  # fmt: skip


@pytest.mark.filterwarnings("error")
def test_awkward_rows_are_no_trouble_to_any_rule(tmp_path):
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": "a " * 20}))
    names = ["gopher_quality", "gopher_repetition", "c4", "fineweb", "loops", "empty_answer", "contamination"]
    about = {"contamination": {"eval": [str(tmp_path / "items.jsonl")]}}
    about["gopher_quality"] = {"min_words": 0, "max_words": 10**9}
    for rules in [*([name] for name in names), ["private"], [*names, "private"]]:
        made = filter_of(rules=rules, **{name: about[name] for name in rules if name in about})
        assert len(made.decide(documents(*AWKWARD)).reasons) == len(AWKWARD)
        assert made.decide(documents(None, "")).reasons is not None
