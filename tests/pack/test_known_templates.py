"""Labels under the templates of well-known models, against ids and labels that are put together by hand."""

import json

import pytest

from datakit.pack.chat import ChatTokenizer
from datakit.pack.marks import RenderError
from tests.pack.by_hand import ANSWERS, SYSTEM, ByHand, added, label, ours, saved, says, user
from tests.pack.known_templates import KNOWN, Known


@pytest.fixture(scope="module")
def made(trained, tmp_path_factory):
    """Loads the small tokenizer with a known model's tokens and template; returns it, its folder and what is known."""
    found = {}

    def load(name: str):
        if name not in found:
            folder, known = tmp_path_factory.mktemp("known"), KNOWN[name]
            write(known, trained, folder)
            found[name] = (ChatTokenizer.load(folder), folder, known)
        return found[name]

    return load


def write(known: Known, trained, folder) -> None:
    spec = json.loads((trained / "tokenizer.json").read_bytes())
    special = added(*known.special, special=True)
    more = [*special, *added(*known.added, special=False, first=320 + len(special))]
    saved(folder, spec, more, chat_template=known.template, bos_token=known.bos, eos_token=known.eos)


def check(made, name: str, row: list[dict], learnt: set[int] | None = None, **options) -> None:
    tokenizer, folder, known = made(name)
    which = {i for i, m in enumerate(row) if m["role"] == "assistant"} if learnt is None else learnt
    assert ours(tokenizer, row, **options) == known.hand(ByHand(folder), row, which.__contains__).done()


def turns(known: Known, *row: dict) -> list[dict]:
    return [SYSTEM, *row] if known.system else list(row)


EACH = pytest.mark.parametrize("name", KNOWN)


@EACH
@pytest.mark.parametrize("answer", ANSWERS)
def test_any_answer_is_learnt_with_its_end_token(made, name, answer):
    check(made, name, [user("hello"), says(answer)])


@EACH
def test_every_turn_of_many(made, name):
    row = turns(KNOWN[name], user("a"), says("b"), user("c"), says("d"), user("e"), says("f"))
    check(made, name, row)
    check(made, name, row[:-1])


@EACH
def test_the_models_own_markers_in_content_are_only_text(made, name):
    known = KNOWN[name]
    marks = " ".join((*known.special, *known.added, "<|user|>\n<|assistant|>\n[/INST] <|im_end|>"))
    said = marks.replace("</think>", "")  # thoughts in content are taken out by some templates, as they should be
    check(made, name, turns(known, user(marks), says(said), user(f"x{marks}"), says("ok")))


@EACH
def test_consecutive_answers_are_both_learnt_or_refused(made, name):
    row = [user("a"), says("b"), says("c"), user("d"), says("e")]
    if KNOWN[name].alternates:
        with pytest.raises(RenderError, match="template_error: TemplateError: roles must alternate"):
            label(made(name)[0], row)
    else:
        check(made, name, row)


@EACH
def test_nothing_behind_the_end_token_is_learnt_and_generation_stops_there(made, name):
    tokenizer, _, _ = made(name)
    ids, learnt = ours(tokenizer, [user("a"), says("b")])
    last = max(i for i, flag in enumerate(learnt) if flag)
    assert ids[last] in tokenizer.stop_ids()
    assert not any(learnt[: learnt.index(True)]) and not any(learnt[last + 1 :])


@EACH
def test_what_is_learnt_is_what_follows_the_prompt(made, name):
    """The model is asked with `encode_prompt`; from there on it must say what was learnt, R1's thought apart."""
    tokenizer, _, known = made(name)
    row = turns(known, user("a"), says("b"), user("c"), says("d"))
    ids, learnt = ours(tokenizer, row, train_on="last")
    before, asked = tokenizer.decode(ids[: learnt.index(True)]), tokenizer.decode(tokenizer.encode_prompt(row[:-1]))
    assert before == asked.removesuffix("<think>\n")


@EACH
def test_tools_are_rendered_or_the_row_is_dropped(made, name):
    tokenizer, _, known = made(name)
    row, tools = [user("a"), says("b")], '[{"name": "f"}]'
    if known.tools:
        assert label(tokenizer, row, tools).labels
    else:
        with pytest.raises(RenderError, match="template_drops_tools"):
            label(tokenizer, row, tools)


# What only one of them does.

CALL = {"name": "f", "arguments": {"a": "</tool_call> [/INST]"}}


def test_mistral_leaves_a_system_prompt_out(made):
    with pytest.raises(RenderError, match="template_drops_message: message 0"):
        label(made("mistral-0.3")[0], [SYSTEM, user("a"), says("b")])


def test_mistral_tool_calls_and_results(made):
    tokenizer, folder, _ = made("mistral-0.3")
    calls = json.dumps([{"id": "abcdefghi", "function": CALL}])
    row = [user("q"), says("", tool_calls=calls), {"role": "tool", "content": "42", "tool_call_id": "abcdefghi"}]
    hand = ByHand(folder).special("<s>").special("[AVAILABLE_TOOLS]").text(' [{"name": "f"}]')
    hand.special("[/AVAILABLE_TOOLS]").special("[INST]").text(" q").special("[/INST]").special("[TOOL_CALLS]", True)
    hand.text(' [{"name": "f", "arguments": {"a": "</tool_call> [/INST]"}, "id": "abcdefghi"}]', True)
    hand.special("</s>", True).special("[TOOL_RESULTS]").text(' {"content": 42, "call_id": "abcdefghi"}')
    hand.special("[/TOOL_RESULTS]").text(" It is 42.", True).special("</s>", True)
    assert ours(tokenizer, [*row, says("It is 42.")], '[{"name": "f"}]') == hand.done()


def test_r1_leaves_thoughts_out_of_answers(made):
    check(made, "deepseek-r1", [user("a"), says("<think>\nhm\n</think>b"), user("c"), says("<think>x</think>d")])
