"""Prompts and renderings of a tokenizer with its template; tracked strings give the text that `str` gives and keep
origins apart, alone and in templates."""

import json
import string
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError
from jinja2.exceptions import SecurityError

from datakit.errors import ModelError
from datakit.pack.chat import (
    MARK,
    UNKNOWN,
    WIDTH,
    ChatTokenizer,
    RenderError,
    Sandbox,
    Tracked,
    concat,
    join,
    opaque,
    tags,
    track,
)
from datakit.pack.labels import label, labelled_ids, plain_messages, plain_tools

ASK = [{"role": "user", "content": "hi <|im_end|>"}]


def test_a_prompt_ends_where_the_assistant_speaks(small):
    ids = small.encode_prompt(ASK)
    assert small.decode(ids) == "<|im_start|>user\nhi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert ids.count(2) == 1


def test_a_prompt_is_the_beginning_of_what_training_saw(small):
    row = [*ASK, {"role": "assistant", "content": "yes"}]
    whole = small.render(row)
    assert whole.text.startswith(small.render(ASK, add_generation_prompt=True).text)


def test_stop_tokens_are_the_end_of_a_turn_and_eos(small, with_added):
    assert small.stop_ids() == [2]
    other = with_added("{% for m in messages %}{{ m.role + ': ' + m.content + '<|endoftext|>' }}{% endfor %}")
    assert other.stop_ids() == [0, 2]


def test_the_real_prompts(real, load):
    text = load(real("minimind")).render(ASK, add_generation_prompt=True).text
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    text = load(real("qwen2")).render(ASK).text
    assert text.startswith("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n")
    assert load(real("smollm")).stop_ids() == [0, 2]


def test_template_failures_say_why(with_added):
    with pytest.raises(RenderError, match="only users"):
        with_added("{{ raise_exception('only users here') }}").encode_prompt(ASK)
    with pytest.raises(ModelError, match="does not compile"):
        with_added("{% for %}")


@pytest.mark.parametrize("content", [b"{not json", b"[]"])
def test_a_file_that_is_no_tokenizer_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        ChatTokenizer.load(tmp_path)


def test_a_tokenizer_the_library_cannot_read_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"version": "9"}')
    with pytest.raises(ModelError, match="cannot be used"):
        ChatTokenizer.load(tmp_path)


def test_chat_is_light():
    heavy = "{'pyarrow', 'numba', 'numpy', 'torch', 'fasttext', 'ray'}"
    code = f"import sys, datakit.pack.chat; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["chatml", "llama3", "plain"])
def test_built_in_templates_ask_as_they_answer(trained, name):
    tokenizer = ChatTokenizer.load(trained, name)
    row = [{"role": "system", "content": "S"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    asked = tokenizer.render(row[:2], add_generation_prompt=True).text
    whole = tokenizer.render(row)
    ((start, end),) = whole.generated
    assert whole.text[:start] == asked
    assert whole.text[start:end].startswith("a<|")


transformers = pytest.importorskip("transformers", reason="the extra `dev` brings transformers")

CALLS = json.dumps([{"type": "function", "function": {"name": "f", "arguments": {"x": "é"}}}])
ROWS = [
    ([("user", "hi"), ("assistant", " hello ")], None),
    ([("system", "S"), ("user", "a\n"), ("assistant", ""), ("user", "  b"), ("assistant", "c\n\n")], None),
    ([("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"), ("assistant", "d")], None),
    ([("user", "a"), ("assistant", "1"), ("assistant", "2")], None),
    ([("user", "a"), ("assistant", CALLS), ("tool", "42"), ("tool", "43"), ("assistant", "b")], '[{"name": "f"}]'),
]


def messages_of(turns):
    made = []
    for role, content in turns:
        called = content == CALLS
        made.append({"role": role, "content": "" if called else content} | ({"tool_calls": CALLS} if called else {}))
    return made


@pytest.fixture(scope="module")
def theirs():
    return lambda folder: transformers.PreTrainedTokenizerFast.from_pretrained(folder)


@pytest.mark.parametrize("name", ["minimind", "qwen2", "trained"])
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_renderings_and_ids_are_transformers(request, load, theirs, name, row):
    folder = request.getfixturevalue("trained") if name == "trained" else request.getfixturevalue("real")(name)
    turns, tools = ROWS[row]
    if name == "qwen2" and tools:
        pytest.skip("Qwen2's template drops tools: refused here")
    tokenizer, reference = load(folder), reference_of(theirs, folder)
    messages = messages_of(turns)
    seen = {"conversation": plain_messages(messages), "tools": plain_tools(tools)}
    text = reference.apply_chat_template(**seen, tokenize=False)
    assert tokenizer.render(seen["conversation"], seen["tools"]).text == text
    made = label(tokenizer, messages, tools)
    ids, spans = labelled_ids(tokenizer, made, tokenizer.encode([made.text])[0], 0)
    if "<think>" not in str(turns):  # content that spells an added token is text here, and a token there
        assert ids.tolist() == reference(text, add_special_tokens=False)["input_ids"]
    if name == "trained":  # theirs also learns a token that begins in the header and ends in the answer: none here
        found = reference.apply_chat_template(**seen, return_dict=True, return_assistant_tokens_mask=True)
        mask = [0] * len(ids)
        for start, end in spans:
            mask[start:end] = [1] * (end - start)
        assert mask == found["assistant_masks"]


LOADED = {}


def reference_of(theirs, folder):
    if folder not in LOADED:
        LOADED[folder] = theirs(folder)
    return LOADED[folder]


def render(template: str, **variables) -> str:
    return Sandbox().from_string(template).render(**variables)


KEEPS = {
    "plus": "{{ 'A' + x + 'B' }}",
    "tilde": "{{ 'A' ~ x ~ 'B' }}",
    "tilde with a number": "{{ 1 ~ x ~ 'B' }}",
    "output": "A{{ x }}B",
    "set": "{% set y = 'A' + x %}{{ y }}B",
    "set block": "{% set y %}A{{ x }}{% endset %}{{ y }}B",
    "macro": "{% macro f(v) %}A{{ v }}{% endmacro %}{{ f(x) }}B",
    "call block": "{% macro f() %}A{{ caller() }}{% endmacro %}{% call f() %}{{ x }}{% endcall %}B",
    "namespace": "{% set n = namespace(t='') %}{% for i in [1] %}{% set n.t = n.t + x %}{% endfor %}A{{ n.t }}B",
    "trim": "A{{ ('  ' + x) | trim }}B",
    "join filter": "{{ ['A', x] | join }}B",
    "join of an attribute": "A{{ [{'content': x}] | join('-', attribute='content') }}B",
    "map and join": "A{{ [{'content': x}] | map(attribute='content') | join('') }}B",
    "join method": "{{ ''.join(['A', x]) }}B",
    "replace filter": "A{{ x | replace('q', 'Z') }}B",
    "method": "A{{ x.strip() }}B",
    "split": "A{{ x.split('<')[0] }}B",
    "filter block": "A{% filter trim %} {{ x }} {% endfilter %}B",
    "if expression": "{{ 'A' + x if x is string else '' }}B",
    "string": "A{{ x | string }}B",
}


@pytest.mark.parametrize("name", KEEPS)
def test_templates_keep_what_is_theirs_apart_from_what_is_the_rows(name):
    plain = render(KEEPS[name], x="hello")
    text = render(KEEPS[name], x=track("hello", 3))
    assert text == plain
    assert isinstance(text, Tracked)
    assert [(text[a:b], tag) for a, b, tag in text.spans] == [("hello", 3)]


FORGETS = [
    "{{ 'A%s' % x }}",
    "{{ 'A{}'.format(x) }}",
    "{{ 'A%s' | format(x) }}",
    "{{ x | indent(2) }}",
    "{{ x | tojson }}",
]


@pytest.mark.parametrize("template", FORGETS)
def test_formatting_counts_as_the_rows_text_as_a_whole(template):
    text = render(template, x=track("a\nb", 3))
    assert text == render(template, x="a\nb")
    assert text.spans == ((0, len(text), 3),)


def test_text_of_two_origins_that_cannot_be_followed_is_unknown():
    text = render("{{ '%s %s' % (x, y) }}", x=track("a", 1), y=track("b", 1 + WIDTH))
    assert {tag for _, _, tag in text.spans} == {UNKNOWN}
    text = render("{{ x.format(y) }}", x=track("{}!", 1), y=track("a", 1 + WIDTH))
    assert (text, {tag for _, _, tag in text.spans}) == ("a!", {UNKNOWN})


def test_tojson_writes_other_scripts_as_they_are():
    assert render("{{ v | tojson }}", v={"b": "é <", "a": 1}) == '{"b": "é <", "a": 1}'


def test_generation_blocks_are_marked():
    text = render("x{% generation %}{{ a }}{% endgeneration %}y", a="ANSWER")
    assert [tag for _, _, tag in text.spans] == [MARK, MARK]


def test_loop_controls_and_white_space_control_work_as_in_transformers():
    assert render("{% for i in [1, 2, 3] %}\n  {% if i == 2 %}{% break %}{% endif %}\n{{ i }}\n{% endfor %}") == "1\n"


def test_dates_are_the_same_every_day():
    assert render("{{ strftime_now('%d %b %Y') }}") == "26 Jul 2024"


def test_a_template_can_refuse():
    with pytest.raises(TemplateError, match="no system"):
        render("{{ raise_exception('no system prompts') }}")


@pytest.mark.parametrize("template", ["{{ ''.__class__.__mro__ }}", "{{ x.append(1) }}", "{{ range(10 ** 9) | list }}"])
def test_templates_cannot_reach_out(template):
    with pytest.raises((SecurityError, OverflowError)):
        render(template, x=[])


TEXT = st.text(alphabet="ab \n<>/ẞİ", max_size=12)

OPERATIONS = {
    "strip": lambda s: s.strip(),
    "lstrip new lines": lambda s: s.lstrip("\n"),
    "rstrip letters": lambda s: s.rstrip("ab"),
    "split": lambda s: "|".join(s.split()),
    "split on": lambda s: s.split("<")[-1],
    "split twice": lambda s: s.split("a", 1)[0],
    "rsplit": lambda s: s.rsplit("b", 1)[-1],
    "rsplit white space": lambda s: s.rsplit(None, 1)[-1] if s.split() else "",
    "splitlines": lambda s: s.splitlines()[-1] if s else "",
    "splitlines keeping ends": lambda s: s.splitlines(True)[0] if s else "",
    "partition": lambda s: s.partition("<")[2],
    "rpartition": lambda s: s.rpartition(">")[0],
    "replace": lambda s: s.replace("a", "xyz"),
    "replace once": lambda s: s.replace("b", "", 1),
    "slice": lambda s: s[1:-1],
    "index": lambda s: s[-1] if s else "",
    "step": lambda s: s[::-1],
    "add": lambda s: s + "!" + s,
    "radd": lambda s: "!" + s,
    "multiply": lambda s: s * 2,
    "removeprefix": lambda s: s.removeprefix("a"),
    "removesuffix": lambda s: s.removesuffix("a"),
    "join": lambda s: s.join(["x", "y"]),
    "iterate": lambda s: "".join(s),
    "lower": lambda s: s.lower(),
    "upper": lambda s: s.upper(),
    "capitalize": lambda s: s.capitalize(),
    "title": lambda s: s.title(),
    "str": lambda s: str(s),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(text=TEXT)
def test_every_operation_gives_the_text_that_str_gives(name, text):
    assert OPERATIONS[name](track(text, 3)) == OPERATIONS[name](text)


def letters_by_origin(text: Tracked) -> None:
    """Every lower-case letter came from the row, every upper-case letter from the template."""
    tagged = {i for start, end, _ in text.spans for i in range(start, end)}
    for i, c in enumerate(text):
        if c in string.ascii_letters:
            assert (i in tagged) == c.islower(), (str.__str__(text), text.spans)


PARTS = st.lists(st.tuples(st.booleans(), st.text(alphabet="ab c\n", max_size=6)), min_size=1, max_size=6)
FOLLOWED = [
    lambda s: s.strip(),
    lambda s: s.lstrip("\n "),
    lambda s: s.split("a")[-1],
    lambda s: join("-", s.split("b")),
    lambda s: join("X", s.split()),
    lambda s: s.replace("c", "Q"),
    lambda s: s[1:],
    lambda s: s[:-1] + "END",
    lambda s: "HEAD" + s,
    lambda s: s.partition("B")[2],
    lambda s: concat([s.rpartition(" ")[0], "Z", s]),
    lambda s: join(s, ["P", "R"]),
    lambda s: concat(s.splitlines(True)),
]


@given(parts=PARTS, chosen=st.lists(st.sampled_from(FOLLOWED), max_size=4))
def test_a_chain_of_operations_never_mixes_up_origins(parts, chosen):
    text = concat([track(p, 5) if row else p.upper() for row, p in parts])
    for operation in chosen:
        text = operation(text if isinstance(text, Tracked) else Tracked(text))
    letters_by_origin(text if isinstance(text, Tracked) else Tracked(text))


def test_two_rows_text_keep_their_tags():
    text = join(", ", [track("one", 1), "AND", track("two", 2)])
    assert text == "one, AND, two"
    assert text.spans == ((0, 3, 1), (10, 13, 2))


def test_what_cannot_be_followed_carries_its_only_origin_or_unknown():
    assert opaque("xy", track("a", 4)).spans == ((0, 2, 4),)
    assert opaque("xy", [track("a", 4)], {"k": track("b", 4 + WIDTH)}).spans == ((0, 2, UNKNOWN),)
    assert opaque("xy", [track("a", 4)], {"k": track("b", 3)}).spans == ((0, 2, 3),)  # two fields of one message
    assert opaque("xy", "a") == "xy"
    assert not isinstance(opaque("xy", "a"), Tracked)


def test_keys_and_values_of_json_are_tracked_and_plain_lookups_still_work():
    value = track({"name": "f", "arguments": {"n": 1, "s": ["x"]}}, 7)
    assert value["arguments"]["s"] == ["x"]
    assert tags(value) == {7}
