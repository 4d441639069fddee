"""Cutting plain files at line ends without keeping them gives the cuts of the stream that is kept."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.read import units
from datakit.read.files import SourceFile
from datakit.read.units import BOM, Segment, cut_lines, cut_stream, line_end


@settings(max_examples=300)
@given(st.lists(st.sampled_from([b"a", b"\n", b"bcd", b"\r\n", BOM]), max_size=40), st.lists(st.integers(-1, 12)))
@example([b"a"] * 9 + [b"\n"], [3])
@example([BOM], [])
@example([BOM, b"\n", b"a"], [1])
def test_a_plain_file_is_cut_where_a_stream_is(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], rooms: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(b"".join(pieces))
    file = SourceFile(str(path), path.name, "jsonl", "", path.stat().st_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "_PIECE", 4)
        assert _cuts(cut_lines, file, rooms) == _cuts(partial(cut_stream, find=line_end), file, rooms)


def _cuts(cutter, file: SourceFile, rooms: list[int]) -> list[Segment]:
    """The segments where the room is another one for each of them."""
    found: list[Segment] = []
    for segment in cutter(file, 3, lambda: rooms[len(found)] if len(found) < len(rooms) else 5):
        found.append(segment)
    return found


def test_the_room_is_reached_and_nothing_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b"x" * (n % 700) + b"\n" for n in range(3000)))
    file = SourceFile(str(path), path.name, "jsonl", "", path.stat().st_size)
    found = list(cut_lines(file, 0, lambda: 10_000))
    assert [s.start for s in found] == [0, *(s.stop for s in found[:-1])]
    assert found[-1].stop == path.stat().st_size
    assert all(10_000 <= s.bytes < 10_701 for s in found[:-1])
    assert [s.first_record for s in found] == [path.read_bytes()[: s.start].count(b"\n") for s in found]
