"""JSON Lines: one record a line, numbered by its line; blank lines are no records."""

from collections.abc import Iterator

from datakit.read import json_records
from datakit.read.convert import Converter
from datakit.read.files import SourceFile
from datakit.read.scan import lines
from datakit.read.sink import Place
from datakit.read.units import Room, Segment, cut_lines


def cut(file: SourceFile, index: int, room: Room) -> Iterator[Segment]:
    """Cut at line ends."""
    return cut_lines(file, index, room)


def read(data: bytes, segment: Segment, converter: Converter) -> Iterator[None]:
    """Put the lines of a segment into the converter's sink."""
    starts, stops, numbers = lines(data)
    records = (numbers + segment.first_line).tolist()

    def place(i: int) -> Place:
        return Place(records[i], records[i], segment.start + int(starts[i]))

    return json_records.read(data, starts, stops, records, place, converter)
