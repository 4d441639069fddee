"""Headers known from another turn: the same labels as from rendering before every turn, in few renderings."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.pack import labels
from datakit.pack.chat import ChatTokenizer
from datakit.pack.labels import RowError, label
from tests.pack.by_hand import MARKERS, SYSTEM, says, user
from tests.pack.known_templates import KNOWN
from tests.pack.test_known_templates import write

CALLS = json.dumps([{"type": "function", "function": {"name": "f", "arguments": {"x": "1"}}}])
TEXTS = st.sampled_from(["a", "", " b", "\n", "same", "same", MARKERS])
MESSAGES = st.one_of(
    TEXTS.map(user),
    TEXTS.map(says),
    TEXTS.map(lambda text: says(text, reasoning_content="hm")),
    TEXTS.map(lambda text: says(text, tool_calls=CALLS)),
    TEXTS.map(lambda text: {"role": "tool", "content": text}),
)
ROWS = st.builds(lambda first, rest: first + rest, st.sampled_from([[], [SYSTEM]]), st.lists(MESSAGES, max_size=9))


@pytest.fixture(scope="module", params=[*KNOWN, "real minimind", "real qwen2"])
def tokenizer(request, trained, load, tmp_path_factory):
    if request.param.startswith("real "):
        return load(request.getfixturevalue("real")(request.param.removeprefix("real ")))
    folder = tmp_path_factory.mktemp("known")
    write(KNOWN[request.param], trained, folder)
    return ChatTokenizer.load(folder)


class Always(labels._Turns):
    """Renders what comes before every turn."""

    def _found(self, i):
        return self._start(i)


def outcome(tokenizer, row):
    try:
        return label(tokenizer, row)
    except RowError as e:
        return e.reason


@settings(max_examples=25)
@given(row=ROWS)
def test_labels_are_those_of_rendering_before_every_turn(tokenizer, row):
    with pytest.MonkeyPatch.context() as patch:
        found = outcome(tokenizer, row)
        patch.setattr(labels, "_Turns", Always)
        assert found == outcome(tokenizer, row)


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
