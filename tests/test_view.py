import pyarrow as pa
import pytest

from datakit.data import MESSAGES, view
from tests.files import says, user

TALK = [{"role": "system", "content": "Be brief."}, user("Weather?"), says(None, tool_calls='[{"name": "weather"}]')]
TALK += [{"role": "tool", "content": "12 degrees"}, says("Cold.", reasoning_content="12 is low.")]


def conversations(*rows: list[dict[str, str | None]] | None) -> pa.RecordBatch:
    tools = pa.array(["[schema]"] + [None] * (len(rows) - 1), pa.string())
    return pa.record_batch({"messages": pa.array(rows, MESSAGES), "tools": tools})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"on": "all"}, "Weather?\n\n12 is low.\n\nCold."),
        ({"on": "prompt"}, "Weather?"),
        ({"on": "answer"}, "12 is low.\n\nCold."),
        ({"include_system": True}, "[schema]\n\nBe brief.\n\nWeather?\n\n12 degrees\n\n12 is low.\n\nCold."),
        ({"include_calls": True}, 'Weather?\n\n[{"name": "weather"}]\n\n12 is low.\n\nCold.'),
    ],
)
def test_a_conversation_is_what_its_sides_say_and_the_rest_only_when_asked(asked, expected):
    assert view(conversations(TALK), **asked).to_pylist() == [expected]


def test_rows_without_turns_are_empty_and_stay_in_place():
    batch = conversations([], TALK, None, [user(""), user("Hi")], [])
    expected = ["", "Weather?", "", "Hi", ""]
    assert view(batch, "prompt").to_pylist() == expected
    assert view(batch.slice(1, 3), "prompt").to_pylist() == expected[1:4]
    assert view(batch.slice(0, 0), "prompt").to_pylist() == []


def test_a_preference_pair_is_one_row_with_both_answers():
    sides = {"prompt": "Q", "chosen": "good", "rejected": "bad"}
    batch = pa.record_batch({k: pa.array([[user(v)], []], MESSAGES) for k, v in sides.items()})
    assert view(batch).to_pylist() == ["Q\n\ngood\n\nbad", ""]
    assert view(batch, "prompt").to_pylist() == ["Q", ""]
    assert view(batch, "answer").to_pylist() == ["good\n\nbad", ""]


def test_a_document_is_its_text_whatever_is_asked():
    batch = pa.record_batch({"text": pa.array(["a\n", None])})
    assert view(batch, "answer", include_system=True).to_pylist() == ["a\n", ""]


def test_rows_without_text_are_refused_by_their_columns():
    with pytest.raises(KeyError, match="input_ids"):
        view(pa.record_batch({"input_ids": pa.array([[1]])}))
