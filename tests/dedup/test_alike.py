"""Conversations: which differences count, prefixes, answers of one prompt."""

import random
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.data import MESSAGES
from datakit.dedup._kernels_alike import edits_of_spelling
from datakit.dedup.alike import Longer, segments, streams
from datakit.dedup.cluster import star
from datakit.dedup.exact import Memory
from datakit.dedup.formulas import LANGUAGES
from datakit.dedup.minhash import find_buckets
from datakit.dedup.politeness import phrase_table, word_hash
from datakit.dedup.spelling import spelled_out
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.errors import ConfigError

RunDedup = Callable[..., Any]
Messages = list[dict[str, Any]]


def talk(*turns: str, system: str = "") -> Messages:
    made: Messages = [{"role": "system", "content": system}] if system else []
    return made + [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(turns)]


def rows_of(*rows: Messages, **columns: Any) -> pa.RecordBatch:
    keys = pa.array(range(len(rows)), pa.uint64())
    ids = [str(i) for i in range(len(rows))]
    return pa.record_batch({"row_key": keys, "id": ids, "messages": pa.array(rows, MESSAGES)} | columns)


def words_that_count(text: str, compare: str = "auto") -> str:
    """The words of a turn that count, for people."""
    made = streams(segments(rows_of(talk(text)), DedupConfig()), compare)
    stream = made.values.tobytes().rstrip(b"\0").decode()
    words = (word.lstrip("\x04\x05\x06\x07\x08\x09") for word in stream.split(" ")[1:])
    return " ".join(word[5:] if word[0] in "\x0a\x0b" else word for word in words)


SAME = [
    ("What is the capital of France?", "Paris."),
    ("Hello! Could you please tell me what the capital of France is? Thanks in advance!", "Sure! Paris."),
    ("  what's the CAPITAL of\n\nFrance ", "Paris. I hope this helps!"),
    ("What is the captial of France", "paris"),
    ("What is the capital of France? Good morning!", "Of course: Paris"),
]
OTHERS = [
    ("What is the capital of Germany?", "Paris."),
    ("What is the capital of France?", "Lyon."),
    ("What is not the capital of France?", "Paris."),
    ("What is the capital of France?", "Not Paris."),
    ("What is the capital of southern France?", "Paris."),
    ("Paris.", "What is the capital of France?"),
]
CHINESE_SAME = [
    ("法国的首都是哪里?", "巴黎。"),
    ("您好，请问法国的首都是哪里呢？谢谢！", "好的，巴黎"),
    ("法国首都是哪里", "巴黎，希望对您有帮助！"),
]
CHINESE_OTHERS = [("德国的首都是哪里?", "巴黎。"), ("法国的首都不是哪里?", "巴黎。"), ("法国的首都是哪里?", "里昂。")]


def test_what_does_not_count_makes_duplicates_and_what_counts_does_not(run_dedup: RunDedup) -> None:
    pairs = [*SAME, *OTHERS, *CHINESE_SAME, *CHINESE_OTHERS]
    dropped = run_dedup(rows_of(*(talk(*pair) for pair in pairs))).rows
    assert set(dropped) == {"1", "2", "3", "4", "12", "13"}
    assert {of for _, of, _ in dropped.values()} == {"0", "11"}
    assert dropped["3"][2] == round(1 - 1 / len("whatcapitalfrance"), 3), "short turns are compared by letters"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Please don't translate 'please' and \"thank you\"!", "not translate please and thank you"),
        ("I'd like to know: can't it be 1,000.50 km/h?", "cannot it 1000.50 km h"),
        ("From 10-20 to -5, 3 * 4 well-known C# and C++", "from 10 - 20 - 5 3 * 4 well - known c # and c + +"),
        ("Solve f(x) = x² + ２; x[0] != ½.", "solve f ( x ) = x ^ 2 + 2 ; x [ 0 ] ! = 1 ⁄ 2"),
        ("麻烦您帮我算一下，小明有３个苹果吗？谢谢！", "算 小 明 有 3 个 苹 果"),
        ("Thank you so much!", "thank you so much"),
        ("Sing I hope you are doing well.", "sing"),
        ("Translate to German: good morning", "translate german good morning"),
        ("Thanks for coming! Hello: sing", "sing"),
        ("Translate.\nI hope you is well", "translate i hope you well"),
        ("Plan a trip, thanks for making it cheap.", "plan trip for making it cheap"),
        ("Hello, my friend.", "hello my friend"),
        ("See [the page][one] (a long text) or [two](x.md).", "see page one long text or two x md"),
    ],
)
def test_the_words_that_count(text: str, counts: str) -> None:
    assert words_that_count(text) == counts


def test_signs_count_always_or_never_on_request() -> None:
    assert words_that_count("12 - 30 = x; so?", "words") == "12 30 x so"
    assert words_that_count("(Well), so?", "characters") == "( well ) so"


def test_superscripts_and_fractions_do_not_join_the_digits_beside_them() -> None:
    assert spelled_out(pa.array(["5²", "1½", "ﬁne", "plain"])).to_pylist() == ["5^2", "1 1⁄2", "fine", "plain"]


def edits(a: str, b: str) -> int:
    """`edits_of_spelling` of words that no list knows, in plain Python."""
    if len(a) < len(b):
        a, b = b, a
    if a == b or len(b) < 4:
        return 0 if a == b else -1
    differ = [i for i in range(len(b)) if a[i] != b[i]]
    if len(a) == len(b) and all({a[i], b[i]} == {"e", "é"} and i < len(a) - 1 for i in differ):
        return 0
    first = differ[0] if differ else len(b)
    if not first or len(a) > len(b) + 1:
        return -1
    if len(a) > len(b):
        fits, umlaut = a[:first] + a[first + 1 :] == b, a[first - 1 : first + 1] == "ae"
        missing = first < len(b) and a[first] != "中" and not umlaut
        return 1 if fits and (a[first] == a[first - 1] or missing) else -1
    if a[first + 1 : first + 2] + a[first] == b[first : first + 2] and a[first + 2 :] == b[first + 2 :]:
        return 1
    vowels = {a[first], b[first]} <= set("ae") and len(a) < 8
    right = len(differ) == 1 and first < len(a) - 1 and len(a) >= 5 and (a[first] + b[first]).isascii()
    return 1 if right and not vowels else -1


def spelling(a: str, b: str) -> int:
    one, other = (np.frombuffer(word.encode() + b"\0", np.uint8) for word in (a, b))
    return int(edits_of_spelling(one, 0, len(one) - 1, other, 0, len(other) - 1))


@settings(max_examples=1000, deadline=None)
@given(st.text("abeé中", min_size=1, max_size=9), st.data())
def test_spellings_are_those_of_plain_python(word: str, data: st.DataObject) -> None:
    other = list(word)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(other)))
        change = data.draw(st.sampled_from(["add", "drop", "swap", "set"]))
        letter = data.draw(st.sampled_from("abeé中"))
        if change == "add":
            other.insert(at, letter)
        elif at < len(other) and change in ("drop", "set"):
            other[at : at + 1] = [letter] if change == "set" else []
        elif at + 1 < len(other):
            other[at], other[at + 1] = other[at + 1], other[at]
    changed = "".join(other) or "a"
    assert spelling(word, changed) == spelling(changed, word) == edits(word, changed)


def test_a_word_that_is_another_word_is_no_typing_error() -> None:
    others = [("a house", "a horse"), ("a form", "a from"), ("a desert", "a dessert"), ("typical", "atypical")]
    others += [("the latter one", "the later one"), ("gültig", "ungültig"), ("pêcher", "pécher")]
    same = [("organise colours", "organize colors"), ("días", "dias"), ("a musée", "a musee"), ("horsse", "horse")]
    for pairs, survivor in ((others, -1), (same, 0)):
        for one, other in pairs:
            rows = [talk(f"Write about {text} for my good old grandmother", "It is done.") for text in (one, other)]
            assert decisions(rows, 64)[0] == [-1, survivor], (one, other)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Hello, write a letter that says sorry to Ann, thanks!", "write letter that says sorry ann"),
        ("What is the origin of the word hello?", "what origin word hello"),
        ("Comment dit-on « merci » ?", "comment dit on merci"),
        ("Translate into Italian: please wait here", "translate into italian please wait here"),
        ("S'il vous plaît, expliquez. ¡Gracias!", "expliquer"),
        ("Is 7! divisible by 5, if (!ready) *.log?", "7 ! divisible by 5 if ( ! ready ) * . log"),
        ("مَا هُوَ أَطْوَلُ الصبـــر", "ما هو اطول الصبر"),
    ],
)
def test_politeness_and_signs_inside_of_a_sentence_count(text: str, counts: str) -> None:
    assert words_that_count(text) == counts


POLITE = [
    ("English", "Would you mind explaining what a gerund is? Thanks a ton!", "Explain what a gerund is."),
    ("Chinese", "晚上好！请问黄山在哪个省？谢谢您！", "黄山在哪个省？"),
    ("Japanese", "すみませんが、畳の寸法を教えていただけますか。", "畳の寸法を教えて。"),
    ("Korean", "안녕하세요! 부디 서울의 인구를 알려 주시겠어요?", "서울의 인구를 알려 줘."),
    ("Arabic", "السلام عليكم، هل يمكنك أن تخبرني متى بنيت الأهرامات؟ شكرا جزيلا لك", "متى بنيت الأهرامات؟"),
    ("Hindi", "नमस्ते जी! कृपया गाँव का अर्थ बताइए। बहुत-बहुत धन्यवाद!", "गांव का अर्थ बताइए।"),
    ("Russian", "Добрый вечер! Скажите, пожалуйста, сколько ног у паука? Заранее спасибо!", "Сколько ног у паука?"),
    ("Spanish", "¡Hola! ¿Podrías traducir la palabra lluvia? Mil gracias.", "Traduce la palabra lluvia."),
    ("Portuguese", "Bom dia! Você poderia me dizer qual é a moeda de Angola?", "Qual é a moeda de Angola?"),
    ("French", "Bonjour, dites-moi, s'il vous plaît, où est le cœur. Merci beaucoup !", "où est le coeur"),
    ("German", "Könnten Sie mir bitte sagen, wann der Flieder blüht? Vielen Dank!", "Wann der Flieder blueht"),
    ("Italian", "Buonasera, potresti dirmi quando è nato Dante? Grazie mille!", "Quando è nato Dante?"),
    ("Turkish", "Merhaba, lütfen üç göl say. Şimdiden teşekkürler.", "Üç göl say."),
    ("Vietnamese", "Xin chào, làm ơn cho tôi biết phở gồm những gì?", "Phở gồm những gì?"),
    (
        "Indonesian",
        "Selamat pagi, tolong jelaskan apa itu angklung. Terima kasih banyak!",
        "Jelaskan apa itu angklung.",
    ),
    ("Dutch", "Hallo, hoe bak ik poffertjes? Alvast bedankt!", "Hoe bak ik poffertjes?"),
    ("Polish", "Dzień dobry, jak ugotować żurek? Z góry dziękuję.", "Jak ugotować żurek?"),
    ("other", "Hej! Vad heter berget? Tack på förhand!", "Vad heter berget?"),
]


def test_politeness_of_each_language_does_not_count() -> None:
    assert {language for language, _, _ in POLITE} == set(LANGUAGES)
    for language, polite, plain in POLITE:
        assert words_that_count(polite) == words_that_count(plain) != "", language


def test_wishes_count_inside_of_a_clause() -> None:
    assert words_that_count("Rinse it first. Enjoy your meal!") == words_that_count("Rinse it first.")
    assert words_that_count("¿Cómo se dice buena suerte?") != words_that_count("¿Cómo se dice buen provecho?")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Is f' positive at 2?", "Is f'' positive at 2?", False),
        ("Is f′ positive, f″(x)?", "Is f' positive, f''(x)?", True),
        ("A board of 5' is cut", 'A board of 5" is cut', False),
        ("Say 'x' or \"y\" aloud", "Say x or y aloud", True),
        ("What does σ stand for?", "What does Σ stand for?", False),
        ("ΠΟΙΑ ΕΙΝΑΙ Η ΠΡΩΤΕΥΟΥΣΑ;", "Ποια είναι η πρωτεύουσα;", True),
        ("हिन्दी में 25 स्वर", "हिंदी में २५ स्वर", True),
        ("ﾊﾟｿｺﾝが起動しません", "パソコンが起動しません", True),
        ("Why dont spiders stick?", "Why don't spiders stick?", True),
        ("Analyse the grey catalogue of a traveller", "Analyze the gray catalog of a traveler", True),
        ("Ask John Gray about it", "Ask John Grey about it", False),
        ("Was heißt schon auf Englisch", "Was heißt schön auf Englisch", False),
        ("a casual model of it", "a causal model of it", False),
        ("Escribe sesenta en binario", "Escribe setenta en binario", False),
    ],
)
def test_marks_forms_and_spellings(one: str, other: str, same: bool) -> None:
    assert decisions([talk(one, "It is done."), talk(other, "It is done.")], 64)[0] == [-1, 0 if same else -1]


def test_the_last_letter_of_a_word_is_grammar() -> None:
    for one, other in (("movie", "movies"), ("amigo", "amiga"), ("guter", "gutes"), ("книга", "книги")):
        assert spelling(one, other) == spelling(other, one) == -1
    assert spelling("movies", "moveis") == spelling("movies", "movis") == spelling("movie", "moviee") == 1


def test_names_and_numbers_in_words_are_not_misspelled_into_others() -> None:
    name, count = "\x05", "\x08"
    assert spelling(f"{name}natalia", f"{name}natalie") == spelling(f"{name}hanna", f"{name}hannah") == -1
    assert spelling(f"{name}natalia", f"{name}natalai") == 1 and spelling(f"{name}hanna", f"{name}hana") == -1
    assert spelling(f"{count}sixty", f"{count}sixth") == -1 and spelling(f"{count}three", "thhree") == -1
    assert spelling("\x041234", "\x041243") == -1


ESSAY = " ".join(
    random.Random(3).sample([f"{a}{b}ing" for a in "bdfgklmnprst" for b in ("alm", "ork", "ink", "ept")], 48)
)


def test_a_long_answer_may_lack_a_word_but_a_question_may_not(run_dedup: RunDedup) -> None:
    gone = " ".join(w for n, w in enumerate(ESSAY.split()) if n != 20)
    three_gone = " ".join(w for n, w in enumerate(ESSAY.split()) if n not in (10, 20, 30))
    answers = [ESSAY, gone, three_gone, f"{ESSAY} 7", f"never {ESSAY}"]
    assert run_dedup(rows_of(*(talk("Why?", a) for a in answers))).kept == ["0", "2", "3", "4"]
    assert run_dedup(rows_of(*(talk(a, "Yes.") for a in answers))).rows == {}


def test_a_paragraph_with_many_questions_keeps_all_of_them(run_dedup: RunDedup) -> None:
    things = ["mill", "harbour", "station", "market", "tower", "bridge", "chapel", "quarry", "school", "well"]
    asked = [f"{ESSAY * 5}\n\n{who} built the {thing}?" for thing in things for who in ("Who", "When was it that they")]
    rows = rows_of(*(talk(question, "Yes.") for question in [*asked, f"{asked[4]} "]))
    assert run_dedup(rows).rows == {"20": ("exact_duplicate", "4", 1.0)}


def test_system_prompts_tools_calls_and_roles_count(run_dedup: RunDedup) -> None:
    call = '[{"name": "up", "arguments": {"by": 1}}]'
    said = [
        *talk("Go up"),
        {"role": "assistant", "content": "", "tool_calls": call},
        {"role": "tool", "name": "up", "content": "now at 2"},
    ]
    rows = [
        said,
        [*said[:2], said[2] | {"content": "now at 3"}],
        [said[0], said[1] | {"tool_calls": call.replace("1", "2")}, said[2]],
        [{"role": "system", "content": "Be brief."}, *said],
        [said[0] | {"role": "assistant"}, *said[1:]],
        [said[0], said[1] | {"tool_calls": call.replace(" ", "")}, said[2]],
    ]
    tools = pa.array([None, None, None, None, None, None], pa.string())
    assert run_dedup(rows_of(*rows, tools=tools)).kept == ["0", "1", "2", "3", "4"]
    assert run_dedup(rows_of(*rows, tools=tools), include_system=False).kept == ["0", "2", "4"]
    assert run_dedup(rows_of(said, said, tools=pa.array(['[{"name": "up"}]', None]))).rows == {}


def test_the_beginning_of_a_conversation_is_its_prefix_and_the_longer_one_stays(run_dedup: RunDedup) -> None:
    turns = ["Hello there, what is rain?", "Water.", "And snow?", "Frozen water.", "And fog?", "A cloud."]
    rows = [
        talk(*turns[:2]),
        talk(*turns[:4]),
        talk(*turns),
        talk("What is rain", *turns[1:4]),
        talk(*turns[2:4], *turns[:2]),
    ]
    outcome = run_dedup(rows_of(*rows), cut=2)
    assert outcome.rows == dict.fromkeys("013", ("prefix", "2", 1.0))
    assert run_dedup(rows_of(*rows), on="answer").kept == ["0", "1", "2", "4"], "answers of other counts differ"


def test_the_best_answers_of_each_prompt_stay(run_dedup: RunDedup) -> None:
    rows = [talk("Why is it blue?", f"Answer {n}.") for n in range(6)] + [
        talk("why is it blue", "Answer 5."),
        talk("How?", "So."),
    ]
    batch = rows_of(*rows, score=pa.array([1.0, 5, 3, 4, 2, 9, 8, 0]))
    found = run_dedup(batch, on="prompt", keep_per_prompt=3, policy="highest:score")
    assert found.kept == ["1", "5", "6", "7"] or found.kept == ["1", "3", "5", "7"]
    assert {of for _, of, _ in found.rows.values()} == {"5"}
    assert run_dedup(batch, on="prompt", policy="highest:score").kept == ["5", "7"]
    with pytest.raises(ConfigError, match="keep_per_prompt"):
        DedupConfig(keep_per_prompt=2)


def test_workers_and_shards_change_no_byte(run_dedup: RunDedup) -> None:
    rng = random.Random(5)
    rows = []
    for _ in range(600):
        asked, said = (
            f"Question {rng.randrange(90)} about {ESSAY[: 40 + rng.randrange(3)]}",
            f"Reply {rng.randrange(3)}. {ESSAY}",
        )
        rows.append(
            talk(*[rng.choice(["Hello! ", ""]) + asked, said, "And then?", "Nothing."][: rng.choice([2, 2, 4])])
        )
    one = run_dedup(rows_of(*rows), workers=1)
    for workers, cut in ((2, 77), (7, 13)):
        other = run_dedup(rows_of(*rows), workers=workers, cut=cut)
        assert (other.decisions, other.facts) == (one.decisions, one.facts)
    kept = set(one.kept)
    assert one.rows and all(of in kept for _, of, _ in one.rows.values())
    assert {"prefix", "near_duplicate", "exact_duplicate"} == {why for why, _, _ in one.rows.values()}


def test_chains_are_refused_for_conversations(run_dedup: RunDedup) -> None:
    with pytest.raises(ConfigError, match="star"):
        Dedup(DedupConfig(cluster="components")).for_kind("conversation")
    with pytest.raises(ConfigError, match="star"):
        run_dedup(rows_of(talk("a", "b")), cluster="components")


def test_the_phrase_table_hashes_words_as_the_kernel_does() -> None:
    table = phrase_table()
    assert word_hash("") == 0xCBF29CE484222325 and len(table.keys) & (len(table.keys) - 1) == 0
    assert 3 * (table.keys != 0).sum() <= len(table.keys)


def test_real_conversations_are_only_dropped_for_a_row_that_asks_the_same(run_dedup: RunDedup, shared: Path) -> None:
    import json

    lines = (shared / "corpora/sft/gsm8k/train.jsonl").read_text(encoding="utf-8").splitlines()[:1500]
    rows = [json.loads(line) for line in lines]
    made = run_dedup(rows_of(*(talk(r["question"], r["answer"]) for r in rows)))
    assert made.rows == {}


# Floods: many conversations of one bucket.

FLOOD_WORDS = [
    *("house", "horse", "hose", "wireless", "wirless", "protable", "portable", "coat", "boat", "coast", "cost", "lamp"),
    *("lamps", "the", "of", "to", "not", "12", "13", "very", "verry", "hello", "helllo", "Maria", "Marai", "café"),
    *("cafe", "colour", "color", "法", "国", "hyperthyroidism", "hyperthyroidsm"),
]


def decisions(rows: list[Messages], index_threshold: int, keep: int = 1, block_rows: int = 64) -> tuple[list[int], int]:
    """(who stays for each row if all share one bucket, comparisons)."""
    made = streams(segments(rows_of(*rows), DedupConfig()), "auto")
    none = np.zeros(len(rows), np.int64)
    memory = Memory(1 << 30, Path(tempfile.gettempdir()))
    found = star(
        find_buckets(lambda _: np.ones(len(rows), np.uint64), 1, len(rows), memory),
        made.values.ctypes.data + 8 * made.starts[:-1].astype(np.uint64), np.diff(made.starts), Fraction(3, 4), memory,
        index_threshold, longer=Longer(none, none, np.empty(0, np.int32)), short_words=5, keep=keep, workers=2,
        block_rows=block_rows,
    )  # fmt: skip
    return found.survivor.tolist(), found.pairs_compared


@pytest.mark.parametrize("keep", [1, 2])
def test_the_index_of_a_flood_decides_as_comparing_all_rows_does(keep: int) -> None:
    rng = random.Random(keep)
    for words in (3, 5, 9):
        template = rng.choices(FLOOD_WORDS, k=words)
        rows = []
        for _ in range(400):
            asked = [rng.choice(FLOOD_WORDS) if rng.random() < 0.25 else word for word in template]
            said = "it is " + " ".join(rng.choices(FLOOD_WORDS[:4], k=rng.randrange(1, 3)))
            rows.append(talk(" ".join(asked), said))
        expected, compared = decisions(rows, 1 << 30, keep)
        assert any(survivor >= 0 for survivor in expected)
        for index_threshold in (0, 8):
            found, fewer = decisions(rows, index_threshold, keep)
            assert found == expected
            assert fewer <= compared


def test_a_flood_takes_comparisons_in_proportion_to_its_rows() -> None:
    rng = random.Random(7)
    names = sorted({"".join(rng.choices("bdklmnrstv", k=7)) for _ in range(4000)})
    rows = [talk(f"Describe the following product: {name}", "A handy device for every day.") for name in names]
    survivors, compared = decisions(rows, 64, block_rows=1 << 14)
    assert survivors.count(-1) > 0.9 * len(rows)
    assert compared < 10 * len(rows), "of 8,000,000 pairs"


LOOP = "Fix it:\nfor n in data:\n    total += n\n    print(total)"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (LOOP, LOOP.replace("    print", "print"), False),
        (LOOP, LOOP.replace("    ", "  "), True),
        (LOOP, LOOP.replace("    ", "\t"), True),
        (LOOP, LOOP.replace("Fix", "Please fix") + "\nThanks!", True),
        ("What does this print? type(List)", "What does this print? type(list)", False),
        ("Run `tar -c /srv` for me", "Run `tar -C /srv` for me", False),
        ("Does grep -v foo log help?", "Does grep -V foo log help?", False),
        ("Solve x + X = 4 for x", "Solve x + X = 4 for X", False),
        ("Explain `ls` now", "explain ls NOW", True),
        ("What is Co used for?", "What is CO used for?", False),
        ("What is nacl?", "What is NaCl?", True),
        ("WHO IS THE HEAD OF THE EU", "Who is the head of the EU?", True),
        ("if (a & b) return 1;", "if (a && b) return 1;", False),
        ("  A note:\n  rain and wind tomorrow", "A note:\nrain and wind tomorrow", True),
    ],
)
def test_capitals_and_indentation_count_in_code_and_not_in_prose(
    run_dedup: RunDedup, one: str, other: str, same: bool
) -> None:
    dropped = run_dedup(rows_of(talk(one, "Here it is."), talk(other, "Here it is."))).rows
    assert len(dropped) == same
