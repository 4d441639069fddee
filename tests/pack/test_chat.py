"""Prompts and renderings of a tokenizer with its template."""

import pytest

from datakit.errors import ConfigError, ModelError
from datakit.pack.chat import ChatTokenizer
from datakit.pack.marks import RenderError
from tests.files import says, user

ASK = [user("hi <|im_end|>")]


def test_a_prompt_ends_where_the_assistant_speaks(small):
    ids = small.encode_prompt(ASK)
    assert small.decode(ids) == "<|im_start|>user\nhi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert ids.count(2) == 1


def test_a_variable_that_the_template_never_reads_is_refused_with_those_that_it_reads(trained, tmp_path):
    template = tmp_path / "own.jinja"
    turns = "{% for m in messages %}{% set t = m.content %}<|im_start|>{{ m.role }}\n{{ t }}<|im_end|>{% endfor %}"
    template.write_text("{% if mood is not defined %}{% set mood = 'calm' %}{% endif %}{{ mood }}" + turns)
    with pytest.raises(ConfigError, match=r"has no variable moood .*; it reads mood$"):
        ChatTokenizer.load(trained, str(template), {"moood": "glad"})
    made = ChatTokenizer.load(trained, str(template), {"mood": "glad", "today": "2025-01-01"})
    assert made.render(ASK).text.startswith("glad")


def test_stop_tokens_are_the_end_of_a_turn_and_eos(small, with_added):
    assert small.stop_ids() == [2]
    other = with_added("{% for m in messages %}{{ m.role + ': ' + m.content + '<|endoftext|>' }}{% endfor %}")
    assert other.stop_ids() == [0, 2]


def test_the_real_prompts(real, load):
    text = load(real("minimind")).render(ASK, add_generation_prompt=True).text
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert load(real("smollm")).stop_ids() == [0, 2]


def test_template_failures_say_why(with_added):
    with pytest.raises(RenderError, match="only users"):
        with_added("{{ raise_exception('only users here') }}").encode_prompt(ASK)
    with pytest.raises(ModelError, match="does not compile"):
        with_added("{% for %}")


@pytest.mark.parametrize("content", [b"{not json", b"[]", b'{"version": "9"}'])
def test_a_file_that_is_no_tokenizer_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        ChatTokenizer.load(tmp_path)


@pytest.mark.parametrize("name", ["chatml", "llama3", "plain"])
def test_built_in_templates_ask_as_they_answer(trained, name):
    tokenizer = ChatTokenizer.load(trained, name)
    row = [{"role": "system", "content": "S"}, user("q"), says("the")]
    whole = tokenizer.render(row)
    ((start, end),) = whole.generated
    assert whole.text[:start] == tokenizer.render(row[:2], add_generation_prompt=True).text
    assert whole.text[start:end].lstrip().startswith("the<|")
    assert start in [a for a, _ in tokenizer.encode([whole.text])[0].offsets]  # else its first token is not learned
