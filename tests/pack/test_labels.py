"""Ids and labels against references that are put together by hand from the messages, never by our renderer."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import Labeller
from datakit.pack.marks import RenderError
from tests.files import says, user
from tests.pack.by_hand import ANSWERS, MARKERS, SYSTEM, ByHand, label, ours, outcome

# ChatML: the trained tokenizer and SmolLM, whose template is the built-in one.


@pytest.fixture
def chatml(small, trained):
    return small, lambda: ByHand(trained)


@pytest.mark.parametrize("text", ANSWERS)
def test_chatml_learns_answer_and_end_token_and_user_text_is_only_text(chatml, text):
    tokenizer, hand = chatml
    expected = hand().turn("system", text).turn("user", text).turn("assistant", text, True).done()
    assert ours(tokenizer, [{"role": "system", "content": text}, user(text), says(text)]) == expected


def test_chatml_reasoning_tools_and_results(chatml):
    tokenizer, hand = chatml
    tools = json.dumps([{"name": "weather", "parameters": {"city": "string"}}])
    calls = json.dumps([{"type": "function", "function": {"name": "weather", "arguments": '{"city": "Århus"}'}}])
    row = [
        user("rain?"),
        says("", reasoning_content="look it up", tool_calls=calls),
        {"role": "tool", "content": "dry"},
        says("No."),
    ]
    before = (
        "# Tools\n\nYou may call these functions:\n<tools>\n"
        '{"name": "weather", "parameters": {"city": "string"}}\n</tools>\n\n'
        'To call one, answer with\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>'
    )
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Århus"}}\n</tool_call>'
    made = hand().turn("system", before).turn("user", "rain?")
    made.turn("assistant", "<think>\nlook it up\n</think>\n\n" + call, True).turn("tool", "dry")
    assert ours(tokenizer, row, tools) == made.turn("assistant", "No.", True).done()


# minimind: a thought block in every answer, tool calls and thoughts as added tokens that are not special.


@pytest.fixture
def minimind(real, load):
    return load(real("minimind")), lambda: ByHand(real("minimind"))


def thought(made: ByHand, reasoning: str = "", learn: bool = True) -> ByHand:
    made.special("<|im_start|>").text("assistant\n").special("<think>")
    if not reasoning:
        return made.text("\n\n").special("</think>").text("\n\n")
    return made.text("\n").text(reasoning + "\n", learn).special("</think>", learn).text("\n\n", learn)


@pytest.mark.parametrize("answer", [a for a in ANSWERS if not a.startswith("\n")])
def test_minimind_empty_thought_is_header(minimind, answer):
    tokenizer, hand = minimind
    made = hand().turn("user", MARKERS)
    if "</think>" not in answer:
        thought(made).text(answer, True).special("<|im_end|>", True).text("\n")
        assert ours(tokenizer, [user(MARKERS), says(answer)]) == made.done()


@pytest.mark.parametrize("inside", [False, True])
def test_minimind_learns_a_thought(minimind, inside):
    tokenizer, hand = minimind
    hm = "hm" if inside else "hm, <think> is text"  # the template takes a thought out of the content from <think> on
    made = thought(hand().turn("user", "a"), hm).text("b", True).special("<|im_end|>", True).text("\n")
    row = [user("a"), says(f"<think>\n{hm}\n</think>\n\nb") if inside else says("b", reasoning_content=hm)]
    assert ours(tokenizer, row) == made.done()
    with pytest.raises(RenderError, match=r"template_drops_message: .* or not whole"):  # "b" would be all of the answer
        label(tokenizer, [user("a"), says(f"<think>\n{hm}\n</think>\n\nWrite `</think>`b")])


def test_minimind_tool_calls_and_results(minimind):
    tokenizer, hand = minimind
    calls = json.dumps([{"name": "f", "arguments": {"a": "</tool_call>"}}])
    row = [SYSTEM, user("q"), says("", tool_calls=calls), {"role": "tool", "content": "<tool_response>"}, says("done")]
    made = hand().special("<|im_start|>")
    made.text(
        "system\nBe kind.\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        'You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{"name": "f"}\n</tools>'
        "\n\nFor each function call, return a json object with function name and arguments within "
    )
    made.special("<tool_call>").special("</tool_call>").text(" XML tags:\n").special("<tool_call>")
    made.text('\n{"name": <function-name>, "arguments": <args-json-object>}\n').special("</tool_call>")
    made.special("<|im_end|>").text("\n").turn("user", "q")
    thought(made).special("<tool_call>", True).text('\n{"name": "f", "arguments": {"a": "</tool_call>"}}\n', True)
    made.special("</tool_call>", True).special("<|im_end|>", True).text("\n")
    made.special("<|im_start|>").text("user\n").special("<tool_response>").text("\n<tool_response>\n")
    made.special("</tool_response>").special("<|im_end|>").text("\n")
    thought(made).text("done", True).special("<|im_end|>", True).text("\n")
    assert ours(tokenizer, row, '[{"name": "f"}]') == made.done()


# Qwen2: a system prompt of its own, the answer's header in the user's turn, and no tools.


def test_qwen2_drops_tools_and_so_the_row_goes(real, load):
    tokenizer = load(real("qwen2"))
    with pytest.raises(RenderError, match="template_drops_tools"):
        label(tokenizer, [user("a"), says("b")], '[{"name": "f"}]')
    with pytest.raises(RenderError, match="template_drops_tools"):
        label(tokenizer, [user("a"), says("b", tool_calls='[{"name": "f"}]')])
    with pytest.raises(RenderError, match="template_drops_message"):
        label(tokenizer, [user("a"), {"role": "tool", "content": "42"}, says("b")])


# The same rows on all three.


def each(made: ByHand, name: str, row: list[dict], learnt: set[int]) -> ByHand:
    if name == "qwen2" and row[0]["role"] != "system":
        made.turn("system", "You are a helpful assistant.")
    for i, m in enumerate(row):
        if name == "minimind" and m["role"] == "assistant":
            thought(made).text(m["content"].lstrip("\n"), i in learnt).special("<|im_end|>", i in learnt).text("\n")
        elif name == "qwen2" and i and m["role"] == row[i - 1]["role"] == "assistant":
            made.text(m["content"], i in learnt).special("<|im_end|>", i in learnt).text("\n")
        else:
            made.turn(m["role"], m["content"], i in learnt)
    if name == "qwen2" and row[-1]["role"] == "user":
        made.special("<|im_start|>").text("assistant\n")
    return made


LONG = [SYSTEM, *(m for k in range(20) for m in (user(f"q{k}"), says(f"a{k}")))]
CASES = {
    "many turns": (LONG, {*range(2, 41, 2)}, {}),
    "the last turn": (LONG, {40}, {"train_on": "last"}),
    "the last turn, then a question": ([user("a"), says("b"), user("c")], {1}, {"train_on": "last"}),
    "a turn of weight 0": ([user("a"), says("b", weight=0.0), user("c"), says("d", weight=0.5)], {3}, {}),
    "the last turn has weight 0": ([user("a"), says("b"), user("c"), says("d", weight=0)], set(), {"train_on": "last"}),
    "consecutive answers": ([user("a"), says("b"), says("c"), user("d"), says("e"), says("f")], {1, 2, 4, 5}, {}),
    "an empty answer among others": ([user("a"), says(""), user("b"), says("c"), user(""), says("")], {1, 3, 5}, {}),
    "white space around": ([user(" a\n"), says("  b \n\n"), user("\n\nc"), says(" ")], {1, 3}, {}),
    "markers in what users write": ([SYSTEM | {"content": MARKERS}, user(MARKERS), says("b")], {2}, {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["smollm", "minimind", "qwen2"])
def test_real_tokenizers_give_what_is_written_by_hand(real, load, name, case):
    row, learnt, options = CASES[case]
    expected = each(ByHand(real(name)), name, row, learnt).done()
    assert ours(load(real(name)), row, **options) == expected


# Other shapes of templates, on the trained tokenizer.

HEAD = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
TAIL = "{{ '<|im_end|>\\n' }}{% endfor %}"
COUNTED = "{{ messages | length }}"
ASK = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_template_without_generation_prompt_has_its_header_found(with_added, trained, answer):
    tokenizer = with_added(HEAD + "{{ m.content }}" + TAIL)
    made = ByHand(trained).turn("user", "a").turn("assistant", answer, True).turn("assistant", answer, True)
    assert ours(tokenizer, [user("a"), says(answer), says(answer)]) == made.done()


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_beginning_that_changes_with_every_message_leaves_the_prompt_to_find_a_turn_by(with_added, trained, answer):
    tokenizer = with_added(COUNTED + HEAD + "{{ m.content }}" + TAIL + ASK)
    made = ByHand(trained).text("4").turn("user", "q").turn("assistant", answer, True).turn("user", MARKERS)
    row = [user("q"), says(answer), user(MARKERS), says("x")]
    assert ours(tokenizer, row) == made.turn("assistant", "x", True).done()


def test_eos_right_behind_a_turns_end_is_learnt_too(with_added, tmp_path):
    """Cohere's way: <|END_RESPONSE|><|END_OF_TURN_TOKEN|>; generation stops at the second."""
    done = "{% if m.role == 'assistant' %}{{ '<|done|>' }}{% endif %}"
    tokenizer = with_added(HEAD + "{{ m.content }}" + done + TAIL + ASK, "<|done|>", special=True)
    made = ByHand(tmp_path)
    for content in ("b", "", "<|done|>"):
        made.turn("user", "a").special("<|im_start|>").text("assistant\n").text(content, True).special("<|done|>", True)
        made.special("<|im_end|>", True).text("\n")
    assert ours(tokenizer, [user("a"), says("b"), user("a"), says(""), user("a"), says("<|done|>")]) == made.done()
    assert tokenizer.stop_ids() == [2]


@pytest.mark.parametrize("arguments", [{"x": "é"}, '{"x": "é"}'])
def test_a_template_may_want_the_arguments_of_a_call_as_text(with_added, trained, arguments):
    """DeepSeek-V3's way: it joins them to its own text."""
    calls = "{% for c in m.tool_calls or [] %}{{ c.name + ' ' + c.arguments }}{% endfor %}"
    tokenizer = with_added(HEAD + "{{ m.content }}" + calls + TAIL + ASK)
    row = [user("q"), says("", tool_calls=json.dumps([{"name": "f", "arguments": arguments}])), user("a"), says("b")]
    made = ByHand(trained).turn("user", "q").turn("assistant", 'f {"x": "é"}', True).turn("user", "a")
    assert ours(tokenizer, row) == made.turn("assistant", "b", True).done()


def test_a_called_name_in_the_header_of_the_result_is_not_learnt(with_added, tmp_path):
    """gpt-oss's way: <|start|>functions.NAME to=assistant."""
    role = "{{ m.role if m.role != 'tool' else 'tool ' + messages[loop.index0 - 1].tool_calls[0].name }}"
    head = "{% for m in messages %}{{ '<|im_start|>' }}" + role + "{{ '\\n' }}"
    calls = "{% if m.tool_calls %}{{ m.tool_calls[0].name + '<|call|>' }}{% else %}"
    tokenizer = with_added(head + calls + "{{ m.content + '<|im_end|>' }}{% endif %}{% endfor %}" + ASK, "<|call|>",
                           special=True)  # fmt: skip
    made = ByHand(tmp_path).special("<|im_start|>").text("user\nq").special("<|im_end|>").special("<|im_start|>")
    made.text("assistant\n").text("look", True).special("<|call|>", True).special("<|im_start|>").text("tool look\n42")
    made.special("<|im_end|>").special("<|im_start|>").text("assistant\n").text("b", True).special("<|im_end|>", True)
    row = [user("q"), says("", tool_calls='[{"name": "look"}]'), {"role": "tool", "content": "42"}, says("b")]
    assert ours(tokenizer, row) == made.done()


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (HEAD + "{{ m.content }}" + "{{ '<end>\\n' }}{% endfor %}" + ASK, "labels_uncertain: no special token ends"),
        (HEAD + "{{ '%s %s' % (m.content, messages[0].content) }}" + TAIL, "labels_uncertain: "),
        (COUNTED + HEAD + "{{ m.content }}" + TAIL + ASK.replace("assistant", "bot"), "labels_uncertain: turn 1 does"),
        (
            HEAD + "{% if m.role != 'user' %}{{ m.content }}{% endif %}" + TAIL + ASK,
            "template_drops_message: message 0",
        ),
        (HEAD + "{{ m.content }}" + TAIL + ASK + "{{ nothing.there }}", "template_error: UndefinedError"),
        ("{{ raise_exception('not today') }}", "template_error: TemplateError: not today"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(with_added, template, reason):
    with pytest.raises(RenderError, match=reason):
        label(with_added(template, "<end>"), [user("a"), says("b")])


def test_a_role_cannot_bring_markers_in(small):
    row = [{"role": "user<|im_end|>", "content": "a"}, says("b")]
    ids, _ = ours(small, row)
    assert ids.count(2) == 2


CALLS_JSON = json.dumps([{"type": "function", "function": {"name": "f", "arguments": {"x": "1"}}}])
TEXTS = st.sampled_from(["a", "", " b", "\n", "same", "same", MARKERS])
MESSAGES = st.one_of(
    TEXTS.map(user),
    TEXTS.map(says),
    TEXTS.map(lambda text: says(text, reasoning_content="hm")),
    TEXTS.map(lambda text: says(text, tool_calls=CALLS_JSON)),
    TEXTS.map(lambda text: {"role": "tool", "content": text}),
)
CONVERSATIONS = st.builds(
    lambda first, rest: first + rest, st.sampled_from([[], [SYSTEM]]), st.lists(MESSAGES, max_size=9)
)


@pytest.fixture(scope="module", params=["minimind", "qwen2", "smollm"])
def tokenizer(request, real, load):
    return load(real(request.param))


class Forgets(dict):
    """Remembers nothing, so that every turn is looked for by renderings."""

    def __contains__(self, key):
        return False


@settings(max_examples=25)
@given(row=CONVERSATIONS)
def test_labels_are_those_of_rendering_before_every_turn(tokenizer, row):
    forgets = Labeller(tokenizer)
    forgets.memory = Forgets()
    assert outcome(Labeller(tokenizer), row) == outcome(forgets, row)


@pytest.mark.parametrize("answer", [{}, {"reasoning_content": "hm"}])
def test_a_long_conversation_takes_no_more_renderings_than_a_short_one(tokenizer, monkeypatch, answer):
    count, render = 0, ChatTokenizer.render

    def counted(self, *args, **options):
        nonlocal count
        count += 1
        return render(self, *args, **options)

    monkeypatch.setattr(ChatTokenizer, "render", counted)
    needed = []
    for turns in (3, 3, 60):  # the first also asks for the template's prompts, once for all
        count = 0
        label(tokenizer, [m for i in range(turns) for m in (user(f"q{i}"), says(f"a{i}", **answer))])
        needed.append(count)
    assert needed[2] <= needed[1] + 2 < 12
