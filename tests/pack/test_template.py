"""The sandbox of chat templates: what is followed, what is opaque, and what templates may not do."""

import pytest
from jinja2 import TemplateError
from jinja2.exceptions import SecurityError

from datakit.pack.template import MARK, Sandbox
from datakit.pack.tracked import UNKNOWN, WIDTH, Tracked, track


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
