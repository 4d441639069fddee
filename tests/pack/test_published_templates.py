"""The chat templates that the trl package carries, and their variants for training: ids and labels of conversations.

Templates with `{% generation %}` are compared with the masks of transformers, the others with the difference of its
renderings with and without a turn. Nothing of the package is imported: its template files are read.
"""

import datetime
import functools
import importlib.util
import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import Shapes
from datakit.pack.marks import RenderError, plain_messages, plain_tools
from tests.files import says, user
from tests.pack.by_hand import SYSTEM, added, label, labelled_ids, labelled_rows, labeller, outcome, saved


def published() -> dict[str, Path]:
    spec = importlib.util.find_spec("trl")
    places = spec.submodule_search_locations or [] if spec else []
    return {f.stem: f for place in places for f in sorted(Path(place).glob("chat_templates/*.jinja"))}


TEMPLATES = published()
pytestmark = pytest.mark.skipif(not TEMPLATES, reason="the package trl, which carries the templates, is not installed")

NAMES = {"weather": {"city": "Köln"}, "time": {"zone": "CET"}}
CALLS = [
    {"id": f"abcdefgh{i}", "type": "function", "function": {"name": name, "arguments": given}}
    for i, (name, given) in enumerate(NAMES.items(), start=1)
]


def tool(name: str, given: dict) -> dict:
    values = {"type": "object", "properties": {key: {"type": "string", "description": "what"} for key in given}}
    return {"type": "function", "function": {"name": name, "description": "Looks it up", "parameters": values}}


TOOLS = [tool(*named) for named in NAMES.items()]


def result(i: int, text: str) -> dict:
    return {"role": "tool", "content": text, "tool_call_id": CALLS[i]["id"], "name": CALLS[i]["function"]["name"]}


def thought(text: str) -> str:
    return f"<think>\n{text}\n</think>\n\n"


CONVERSATIONS = {
    "one turn": [user("Hi?"), says("Hello!")],
    "system": [SYSTEM, user("Hi?"), says("Hello!")],
    "empty system": [{"role": "system", "content": ""}, user("Hi?"), says("Hello!")],
    "two turns": [user("a?"), says("b!"), user("c?"), says("d!")],
    "three turns": [SYSTEM, user("a?"), says("b!"), user("c?"), says("d!"), user("e?"), says("f!")],
    "begins with an answer": [says("Welcome."), user("a?"), says("b!")],
    "two answers in turn": [user("a?"), says("b!"), says("c!"), user("d"), says("e")],
    "two questions in turn": [user("a?"), user("b?"), says("c!")],
    "ends with a question": [user("a?"), says("b!"), user("c?")],
    "thought": [user("a?"), says("b!", reasoning_content="hmm one")],
    "thought in content": [user("a?"), says(thought("hmm one") + "b!")],
    "two thoughts": [
        user("a?"), says("b!", reasoning_content="hmm one"), user("c?"), says("d!", reasoning_content="hmm two"),
    ],
    "two thoughts in content": [
        user("a?"), says(thought("hmm one") + "b!"), user("c?"), says(thought("hmm two") + "d!"),
    ],
    "tool": [user("w?"), says("", tool_calls=CALLS[:1]), result(0, "12 C"), says("It is 12 C.")],
    "two tools": [
        SYSTEM, user("w?"), says("", tool_calls=CALLS), result(0, "12 C"), result(1, "9:00"), says("12 C, 9:00."),
    ],
    "tool and thought": [
        user("w?"), says("Let me look.", tool_calls=CALLS[:1], reasoning_content="need it"), result(0, "12 C"),
        says("It is 12 C.", reasoning_content="done"),
    ],
    "empty answer": [user("a?"), says(""), user("b?"), says("c")],
    "white space": [user("  a?\n"), says("\n  b!  \n"), user("c"), says("d\n\n")],
    "other scripts": [user("你好"), says("世界 🦊 e\u0301"), user("שלום"), says("สวัสดี\n\n- x")],
    "the same again": [user("same"), says("same"), user("same"), says("same")],
}  # fmt: skip
UNPLANNED = ("diffusion_gemma", "gemma4", "nemotron_3")
"""Templates that transform contents with filters, or take characters out of them: they are rendered row by row."""
REASONS = {"template_error", "template_drops_tools", "template_drops_message", "labels_uncertain"}
TODAY = {"today": datetime.date.today().isoformat()}

MARKERS = re.compile(
    r"<\|[^|<>'\"\n{}]+\|>|<｜[^<>'\"]+?｜>|<[a-z]+_of_[a-z]+>|</?s>|\[/?[A-Z_]{3,}\]|<\|[a-z_]+>|<[a-z_]+\|>"
    r"|<[A-Z_]+_TOKEN\|?>"
)
ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|return|>", "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>", "<|endoftext|>",
)  # fmt: skip


@pytest.fixture(scope="module")
def with_template(trained, tmp_path_factory):
    """The small tokenizer with the special tokens that a template writes."""

    @functools.cache
    def make(name: str) -> ChatTokenizer:
        source = TEMPLATES[name].read_text(encoding="utf-8")
        spec = json.loads((trained / "tokenizer.json").read_bytes())
        known = {t["content"] for t in spec["added_tokens"]}
        special = sorted({*MARKERS.findall(source), "<bos>", "<eos>"} - known)
        tags = [t for t in ("<think>", "</think>", "<tool_call>", "</tool_call>") if t in source]
        more = [*added(*special, special=True), *added(*tags, special=False, first=320 + len(special))]
        eos = next((end for end in ENDS if end in source), "<eos>")
        named = {"chat_template": source, "bos_token": "<bos>", "eos_token": eos}
        return ChatTokenizer.load(saved(tmp_path_factory.mktemp("published"), spec, more, **named))

    return make


def rows(tokenizer: ChatTokenizer, conversations=tuple(CONVERSATIONS)):
    """(name, messages, tools, ids, label spans) of the conversations that the template takes."""
    for name in conversations:
        messages = CONVERSATIONS[name]
        tools = TOOLS if any("tool_calls" in m for m in messages) else None
        try:
            row = label(tokenizer, messages, tools, variables=TODAY)
        except RenderError as e:
            if e.reason not in REASONS:
                raise
            continue
        asked = [m["content"].strip() for m in messages if m["role"] == "user"]
        if tokenizer.probe.question_header and not tools:  # each may be the first of a piece
            pieces = [row.text[a:b] for a, b in pairwise([*row.turn_starts, None])]
            assert all(text in piece for text, piece in zip(asked, pieces, strict=True)), name
        yield name, messages, tools, *labelled_ids(tokenizer, row)


@functools.cache
def of_transformers(tokenizer: ChatTokenizer):
    from transformers import PreTrainedTokenizerFast

    named = {"bos_token": "<bos>", "eos_token": tokenizer.tokens["eos_token"]}
    made = PreTrainedTokenizerFast(tokenizer_file=tokenizer.where, **named)
    made.chat_template = tokenizer.template_source
    return made


def test_forty_templates_are_tried():
    assert len([name for name in TEMPLATES if not name.endswith("_training")]) >= 40


TRAINING = [n for n in TEMPLATES if n.endswith("_training")]


@pytest.mark.parametrize("name", TRAINING)
def test_labels_are_those_of_transformers_masks_without_the_templates_own_text(with_template, name):
    """A mask may also have the generation prompt, which the model is given, and white space after the end token.

    Each template has half of the conversations, the next one the other half: the template without a mask has them all.
    """
    tokenizer, tried = with_template(name), 0
    for which, messages, tools, ids, spans in rows(tokenizer, tuple(CONVERSATIONS)[TRAINING.index(name) % 2 :: 2]):
        shown = plain_messages(messages, tokenizer.traits)
        asked = {"tools": plain_tools(tools), "return_dict": True, "return_assistant_tokens_mask": True}
        theirs = of_transformers(tokenizer).apply_chat_template(shown, tokenize=True, **asked)
        assert theirs["input_ids"] == ids, which
        learnt = [any(a <= i < b for a, b in spans) for i in range(len(ids))]
        ours_alone = [ids[i] for i, mask in enumerate(theirs["assistant_masks"]) if learnt[i] and not mask]
        theirs_alone = [ids[i] for i, mask in enumerate(theirs["assistant_masks"]) if mask and not learnt[i]]
        # a mask that ends with a character of several tokens has only the first of them
        assert not tokenizer.decode(ours_alone).strip("\ufffd"), (which, tokenizer.decode(ours_alone))
        # the blocks of DeepSeek's begin before the header of the answer, which the generation prompt gives
        given = r"\s|</?think>|<\|end\|>|<\|endoftext\|>|<\|start\|>assistant|<｜Assistant｜>"
        rest = re.sub(given, "", tokenizer.decode(theirs_alone))
        assert not rest, (which, rest)
        tried += 1
    assert tried >= 4, f"only {tried} conversations were not refused"


@pytest.mark.parametrize("name", [n for n in TEMPLATES if not n.endswith("_training")])
def test_labels_are_the_difference_of_renderings(with_template, name):
    tokenizer, tried = with_template(name), 0
    rendered = of_transformers(tokenizer).apply_chat_template
    for which, messages, tools, ids, spans in rows(tokenizer):
        shown, given = plain_messages(messages, tokenizer.traits), {"tools": plain_tools(tools), "tokenize": False}
        theirs = of_transformers(tokenizer)(rendered(shown, **given), add_special_tokens=False)
        assert tokenizer.decode(ids) == tokenizer.decode(theirs["input_ids"]), which
        answers = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        assert len(spans) == len(answers), which
        last = answers[-1]
        if last == len(messages) - 1 and last:
            whole = rendered(shown, **given)
            asked = rendered(shown[:last], add_generation_prompt=True, **given)
            learnt = tokenizer.decode(ids[slice(*spans[-1])])
            if whole.startswith(asked):
                said = whole[len(asked) :]
                before, found, _ = said.partition(learnt)
                assert found and before.strip() in tokenizer.probe.answer_header, (which, said, learnt)
                rest = re.sub(r"<\|end\|>|<\|endoftext\|>|<eos>", "", said[said.index(learnt) + len(learnt) :])
                assert not rest.strip(), (which, rest)
        for i, (a, b) in zip(answers, spans, strict=True):
            text = tokenizer.decode(ids[a:b], skip_special_tokens=True)
            if "thought" not in which and "tool" not in which and i:  # the same as where the conversation ends with it
                row = label(tokenizer, messages[: i + 1], variables=TODAY)
                shorter, of_shorter = labelled_ids(tokenizer, row)
                both = shorter[slice(*of_shorter[-1])], ids[a:b]
                header = tokenizer.probe.answer_header.strip()
                assert not header or header not in tokenizer.decode(ids[a:b]), which
                wanted, learnt = (tokenizer.decode(part, skip_special_tokens=True) for part in both)
                wanted, learnt = (re.sub(r"</?think>|\s", "", said) for said in (wanted, learnt))
                assert wanted == learnt, which  # an empty thought may stand in the last turn alone
            said = messages[i]["content"].rpartition("</think>")[2].strip()
            assert said in text, (which, i, text)
            others = {m["content"].strip() for k, m in enumerate(messages) if k != i and m["role"] != "assistant"}
            assert not any(o and o in text and o not in said for o in others), (which, i, text)
        tried += 1
    assert tried >= 8, f"only {tried} conversations were not refused"


TEXTS = [
    "Hi?", "Hello!", "a <b> c", "<|im_end|>", "<think>\nhm\n</think>\n\nyes", "  led", "trailed \n", " ",
    "<think>", "\n",
    "你好 🦊", "a\n\nb", "<tool_response>\nx\n</tool_response>", "assistant", "<|im_start|>assistant\n", "Hi?",
    "</think>",
    "[INST] x [/INST]", "[TOOL_CALLS]", "<|channel|>final<|message|>", "None", "system\n", "/think", "\u3000x\x1c",
    "\ufdd30\ufdd4",
]  # fmt: skip
ROLES = ["ua", "sua", "uaua", "suauaua", "aua", "uaa", "uaUa", "uaAua", "Sua", "uua", "uau"]
"""The first letters of the roles; a capital has no content."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_conversations_of_one_shape_are_joined_to_what_the_template_renders(with_template, conversations, name):
    tokenizer, named = with_template(name), {"u": "user", "a": "assistant", "s": "system"}
    rng, given = random.Random(name), []
    for shape in ROLES:
        for k in range(6):
            texts = ["" if r.isupper() else TEXTS[0] if k < 3 else rng.choice(TEXTS) for r in shape]
            given.append([{"role": named[r.lower()], "content": t} for r, t in zip(shape, texts, strict=True)])
    column = conversations(given).column("messages")
    shapes = Shapes(labeller(tokenizer))
    made = labelled_rows(shapes, column, [None] * len(given), [{}] * len(given))
    for row, found in zip(given, made, strict=True):
        assert found == outcome(labeller(tokenizer), row), row
    assert shapes.joined >= 9 or name.startswith(UNPLANNED)


def test_a_default_system_prompt_is_never_a_label(with_template):
    """Qwen2.5-VL's template adds one before a conversation that begins with an answer."""
    tokenizer = with_template("qwen2_5_vl")
    row = label(tokenizer, CONVERSATIONS["begins with an answer"])
    assert [row.text[a:b].startswith(("Welcome", "b!")) for a, b in row.labels] == [True, True]
    assert "You are a helpful assistant" in row.text[: row.labels[0][0]]


@pytest.mark.parametrize(
    ("name", "which", "lost", "stripped"),
    [
        ("qwen3", "two thoughts", 0, 1), ("qwen3", "two thoughts in content", 0, 1), ("gptoss", "two thoughts", 0, 1),
        ("gptoss", "two thoughts in content", 0, 1), ("qwen2_5", "two thoughts", 2, 0), ("llama3_1", "one turn", 0, 0),
        ("qwen2_5", "two thoughts in content", 0, 0), ("deepseekv3", "two thoughts", 2, 0),
        ("deepseekv3", "two thoughts in content", 2, 0), ("muse_glimmer", "two thoughts", 0, 0),
        ("qwen3", "then a question", 1, 1), ("qwen3", "the first begun by the prompt", 0, 1),
    ],
)  # fmt: skip
def test_thoughts_that_are_not_rendered_are_counted(with_template, name, which, lost, stripped):
    begun = [user("a?"), says("hmm one\n</think>\n\nb!"), *CONVERSATIONS["two thoughts"][2:]]
    more = {"then a question": [*CONVERSATIONS["two thoughts"], user("e?")], "the first begun by the prompt": begun}
    row = label(with_template(name), (CONVERSATIONS | more)[which])
    assert (row.thoughts_not_rendered, row.thoughts_stripped) == (lost, stripped)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking", "content"])
@pytest.mark.parametrize("name", ["qwen3", "gptoss", "glm4moe", "nemotron_3_nano", "qwen3_8", "muse_glimmer"])
def test_thoughts_of_any_name_give_the_same_rendering(with_template, name, key):
    said = says(thought("hm") + "!") if key == "content" else says("!", **{key: "hm"})
    wanted = label(with_template(name), [user("?"), says("!", reasoning_content="hm")])
    assert label(with_template(name), [user("?"), said]) == wanted


def test_parallel_calls_of_which_the_template_renders_the_first_alone_are_refused(with_template):
    with pytest.raises(RenderError, match="has 2 calls, and the template leaves out number 2"):
        label(with_template("gptoss"), CONVERSATIONS["two tools"], TOOLS)
    label(with_template("gptoss"), CONVERSATIONS["tool"], TOOLS)


def test_an_empty_answer_before_another_one_has_no_label(with_template):
    """GLM-4.5's answers end with the header of what follows, so that such an answer has nothing of its own."""
    tokenizer = with_template("glm4moe")
    row = label(tokenizer, [user("a?"), says(""), says("b", tool_calls=CALLS[:1]), result(0, "12"), says("c!")], TOOLS)
    ids, spans = labelled_ids(tokenizer, row)
    assert [tokenizer.decode(ids[a:b]).strip() for a, b in spans][-1].endswith("c!")


def test_glm_ends_an_answer_with_the_next_question(with_template):
    row = label(with_template("glm4moe"), CONVERSATIONS["two turns"])
    (_, first), (_, last) = row.labels
    assert not row.ended and last == len(row.text) and first > row.text.index("b!") + 2
