"""Ingest: what is to be read and how (`plan`), in which pieces (`units`), and a piece's rows (`read_unit`)."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from datakit.config import option
from datakit.errors import ConfigError, InputError
from datakit.layouts.recognise import BY_NAME, Choice
from datakit.layouts.record import MisfitError
from datakit.read import columnar, csv_rows, json_values, jsonl, text
from datakit.read.convert import Converter, Source
from datakit.read.files import SourceFile, open_binary
from datakit.read.folders import Skipped
from datakit.read.sink import Batch, Place, Sink
from datakit.read.units import Cutter, Segment, Unit, assemble

_END = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestConfig:
    """What shapes the rows that are read."""

    kind: Literal["auto", "text", "sft", "preference"] = option(
        "auto", "the kind of every row; auto: what all files have in common"
    )
    layout: str = option(
        "auto", "the layout of every file by name; auto: each file's own, from the fields of its records"
    )
    text_split: Literal["file", "line", "paragraph"] = option("file", "what is one document in plain text files")
    text_field: str = option("", "the field that holds a document's text; empty: text, content, markdown and the like")
    id_field: str = option("", "the field that holds a record's id; empty: id")
    other_kinds: Literal["refuse", "quarantine"] = option(
        "refuse", "what becomes of files of another kind than the one asked for"
    )
    shard_mb: int = option(16, "uncompressed MiB of input per unit of work, and so per shard")

    def __post_init__(self) -> None:
        if self.layout != "auto" and self.layout not in BY_NAME:
            raise ConfigError(f"layout is {self.layout!r}; known layouts are auto, {', '.join(BY_NAME)}")
        if self.shard_mb < 1:
            raise ConfigError(f"shard_mb is {self.shard_mb}; it should be at least 1")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read: the sorted files, each one's layout, and the kind of row that all of them make."""

    files: tuple[SourceFile, ...]
    layouts: tuple[Choice, ...]
    kind: str
    segment_source: str
    config: IngestConfig
    skipped: tuple[Skipped, ...]
    """Files and folders in the given folders that are not read, and why."""
    summary: tuple[str, ...]
    """Lines that tell people what was found."""


def plan(inputs: Sequence[str], config: IngestConfig) -> Plan:
    """Find the files and decide their layouts, from the first records of each.

    Raises:
        InputError: no input, a missing or unreadable file, a file of an unknown format.
        LayoutError: records that fit no layout, or files of different kinds.
    """
    from datakit.read.planning import make_plan

    return make_plan(inputs, config)


def units(plan: Plan) -> Iterator[Unit]:
    """The work units of a plan in order: a function of the files' bytes and the configuration alone.

    Plain files are read once to find record ends and numbers; compressed ones are decompressed, and their bytes travel
    in the unit.
    """
    return assemble([(f, cutter(f, plan.config)) for f in plan.files], plan.config.shard_mb << 20)


def cutter(file: SourceFile, config: IngestConfig) -> Cutter:
    """How a file of this format is cut."""
    cutters: dict[str, Cutter] = {
        "jsonl": jsonl.cut,
        "json": json_values.cut_array,
        "json_objects": json_values.cut_objects,
        "csv": csv_rows.cut,
        "text": partial(text.cut, split=config.text_split),
    }
    return cutters.get(file.format, columnar.cut)


def read_unit(unit: Unit, plan: Plan) -> Iterator[Batch]:
    """The rows of a unit and the records that could not become rows, in order, in batches cut by the data alone.

    Raises:
        InputError: a file changed or vanished since it was planned.
    """
    sink = Sink(plan.kind, plan.segment_source)
    for segment in unit.segments:
        file = plan.files[segment.file]
        source = Source(segment.file, file.name, plan.layouts[segment.file], plan.config.id_field)
        sink.ends_badly = False
        steps = _records(segment, file, plan, Converter(source, sink))
        while _advance(steps):
            if sink.full:
                yield sink.take()
        if segment.failure:
            end = Place(segment.first_record, segment.first_line, segment.stop)
            sink.broken_off(file.name, end, MisfitError(*segment.failure))
    if not sink.empty:
        yield sink.take()


def _advance(steps: Iterator[None]) -> bool:
    """One step with the cycle collector paused: it would walk a million live tuples again and again, none a cycle."""
    paused = gc.isenabled()
    gc.disable()
    try:
        return next(steps, _END) is None
    finally:
        if paused:
            gc.enable()


def _records(segment: Segment, file: SourceFile, plan: Plan, converter: Converter) -> Iterator[None]:
    if segment.groups is not None:
        return columnar.read(file, segment, converter)
    data = _bytes(segment, file)
    if file.format == "jsonl":
        return jsonl.read(data, segment, converter)
    if file.format == "csv":
        return csv_rows.read(file, data, segment, converter)
    if file.format == "text":
        return text.read(data, segment, converter, plan.config.text_split)
    return json_values.read(data, segment, converter)


def _bytes(segment: Segment, file: SourceFile) -> bytes:
    if segment.data is not None:
        return segment.data
    with open_binary(file.path) as opened:
        opened.seek(segment.start)
        data = opened.read(segment.bytes)
    if len(data) != segment.bytes:
        raise InputError(
            f"{file.path}: it changed while it was being read: bytes {segment.start} to {segment.stop} are gone"
        )
    return data
