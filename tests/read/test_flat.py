"""Documents that the kernel reads are what the parser makes of the same lines; what it leaves is the parser's."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.read.flat import MAX_MEMBERS, flat_records
from datakit.read.planning import plan, read_unit, units
from datakit.read.row_builder import Converter
from datakit.read.stage import IngestConfig


def read(path: Path, *, kernel: bool) -> tuple[tuple[pa.Table, pa.Table, Counter], int]:
    """(rows, quarantined records, notes) of a file, and how many rows came from the kernel."""
    taken, flat = 0, Converter.add_flat

    def counted(self: Converter, *args: object) -> int:
        nonlocal taken
        found = flat(self, *args) if kernel else 0
        taken += found
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Converter, "add_flat", counted)
        planned = plan([str(path)], IngestConfig(kind="text"))
        found = [batch for unit in units(planned) for batch in read_unit(unit, planned)]
    rows, bad = (pa.Table.from_batches(t) for t in zip(*((b.rows, b.quarantined) for b in found), strict=True))
    return (rows.combine_chunks(), bad.combine_chunks(), sum((Counter(b.notes) for b in found), Counter())), taken


def spans(lines: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = b"\n".join(lines)
    stops = np.cumsum([len(line) + 1 for line in lines]) - 1
    return np.frombuffer(data, np.uint8), stops - [len(line) for line in lines], stops


def taken(*lines: bytes) -> list[tuple[str, str | None, str | None]]:
    found = flat_records(*spans(list(lines)), "text", "id")
    return list(zip(*(x.to_pylist() for x in (found.texts, found.ids, found.extras)), strict=True))


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
SCALARS = TEXTS | st.integers(-(10**20), 10**20) | st.floats(allow_nan=True) | st.booleans() | st.none()
RECORDS = st.fixed_dictionaries(
    {"text": TEXTS | SCALARS},
    optional={"id": SCALARS, "a": SCALARS, "b\n": SCALARS, "Ä": st.lists(SCALARS, max_size=2), "": TEXTS},
)


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(RECORDS, st.booleans(), st.sampled_from([(",", ":"), (" , ", "\t: "), (", ", ": ")])), max_size=6
    )
)
def test_every_record_becomes_the_row_that_the_parser_makes(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[dict, bool, tuple[str, str]]]
) -> None:
    path = tmp_path_factory.mktemp("flat") / "a.jsonl"
    first = '{"text": "one"}'
    lines = [json.dumps(r, ensure_ascii=escaped, separators=separators) for r, escaped, separators in records]
    path.write_text("\n".join([first, *lines]) + "\n", encoding="utf-8")
    by_kernel, _ = read(path, kernel=True)
    by_parser, none = read(path, kernel=False)
    assert by_kernel == by_parser
    assert none == 0


@settings(max_examples=300)
@given(st.binary(max_size=12), st.integers(0, 40))
@example(b"\\ud83d\\ude00", 12)
def test_what_it_takes_is_what_json_loads_makes_of_any_bytes(noise: bytes, at: int) -> None:
    line = b'{"id": "x1", "text": "some\\ttext \xc3\xa4", "n": 12}'
    line = (line[:at] + noise + line[at:]).strip(b" \t\r")
    for text, name, extra in taken(line) if b"\n" not in line else []:
        fields = json.loads(line)
        assert fields["text"] == text
        assert str(fields.get("id")) == str(name)
        del fields["text"]
        if name is not None:
            del fields["id"]
        assert fields == json.loads(extra or "{}")


def test_it_takes_flat_records_and_keeps_the_rest_as_it_was_written() -> None:
    lines = [
        b'{"text": "a\\u00e4\\ud83d\\ude00\\/\\"\\b"}',
        b'{"id":7,"text":"","x" : 1.50 ,"y":[]}'.replace(b',"y":[]', b',"y":null'),
        '{"text": "日本語 ไทย", "url": "a\\nb", "id": "Ä"}'.encode(),
    ]
    assert taken(*lines) == [
        ('aä😀/"\b', None, None),
        ("", "7", '{"x" : 1.50,"y":null}'),
        ("日本語 ไทย", "Ä", '{"url": "a\\nb"}'),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"{}", b'{"text": 1}', b'{"text": null}', b'{"id": "a"}', b'{"text": "a", "text": "b"}',
        b'{"text": "a", "id": null}', b'{"text": "a", "id": ""}', b'{"text": "a", "id": 1.5}',
        b'{"text": "a", "id": 01}',
        b'{"text": "a", "id": -1}', b'{"text": "a", "x": {}}', b'{"text": "a", "x": [1]}', b'{"text": "a", "x": 1e5}',
        b'{"text": "a", "x": NaN}', b'{"text": "a", "x": 1234567890123456789}', b'{"text": "a", "x": .5}',
        b'{"text": "a", "x": 1.}', b'{"text": "a", "x": tru}', b'{"text": "a",}', b'{"text": "a"', b'{"text": "a"}}',
        b'{"text": "a" "x": 1}', b'{"te\\u0078t": "a"}', b'{"text": "\\ud83d"}', b'{"text": "\\ude00\\ud83d"}',
        b'{"text": "\\x"}', b'{"text": "\\u12g4"}', b'{"text": "a\tb"}', b'{"text": "\xff"}', b'{"text": "\xc3"}',
        b'{"text": "\xc0\x80"}', b'{"text": "\xed\xa0\x80"}', b'{"text": "\xf4\x90\x80\x80"}',
        b'{"text": "\xe0\x80\x80"}',
        b'{"text": "a}', b'{text: "a"}', b"{'text': 'a'}", b'{"text": "a", "x": }', b'{"text": "a"} x',
    ],
)  # fmt: skip
def test_what_parsers_judge_is_left_to_them(line: bytes) -> None:
    good = b'{"text": "good"}'
    assert taken(good, line, good) == [("good", None, None)]


def test_a_record_of_many_members_is_left_to_the_parser() -> None:
    members = [f'"k{n}": {n}' for n in range(MAX_MEMBERS - 1)]
    line = "{" + ", ".join(members) + ', "text": "t"}'
    assert taken(line.encode())[0][0] == "t"
    assert taken(line.replace("{", '{"more": 1, ').encode()) == []


def test_lines_taken_and_lines_left_stay_in_their_order(tmp_path: Path) -> None:
    lines = []
    for n in range(60_000):
        more = ', "m": {"n": 1}' if n % 9000 == 5 else ""
        lines.append("broken" if n % 20_000 == 7 else f'{{"text": "row {n} is here"{more}}}')
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    by_kernel, took = read(tmp_path / "a.jsonl", kernel=True)
    by_parser, _ = read(tmp_path / "a.jsonl", kernel=False)
    assert by_kernel == by_parser
    assert 50_000 < took < 60_000 - 9
    rows, quarantined, _ = by_kernel
    assert (rows.num_rows, quarantined.num_rows) == (59_997, 3)
    assert rows.column("row_key").to_pylist() == sorted(rows.column("row_key").to_pylist())


def test_real_files_give_the_rows_of_the_parser(shared: Path) -> None:
    for name in ("rust_book_en.jsonl.zst", "react_docs_zh.jsonl.zst"):
        by_kernel, took = read(shared / "corpora/web" / name, kernel=True)
        by_parser, _ = read(shared / "corpora/web" / name, kernel=False)
        assert by_kernel == by_parser
        assert took == by_kernel[0].num_rows
