"""One runner for every kind of stage, tried with small stages that use one hook after another."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pytest

from datakit.config import option
from datakit.data import of_kind, quarantine
from datakit.engine.executors import Local, Progress
from datakit.engine.runner import Run, run_stage
from datakit.engine.store import OutputLayout
from datakit.errors import AlarmError, UsageError
from datakit.manifest import Count, Ledger, data_dir, load, tables
from datakit.stage import Decision, Extras, Parent, RawBatch, RawGroup, Stage
from tests.engine.corpus import Shuffled
from tests.files import rows_of

UNITS = 5
ROWS = 20
"""Rows of a unit; every tenth record of the raw input cannot be read."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No options."""


@dataclass(frozen=True)
class Numbers(Stage):
    """Makes rows from nothing: the text of row n is n % 30 in words."""

    config: Nothing = field(default_factory=Nothing)
    name: ClassVar[str] = "ingest"
    Config: ClassVar[type] = Nothing
    work_unit: ClassVar[Literal["shard", "raw", "all"]] = "raw"
    output_kind = "document"

    def raw_groups(self) -> Sequence[RawGroup]:
        return [RawGroup(0, (), None)]

    def raw_units(self, group: RawGroup) -> Iterator[Any]:
        return iter(range(0, UNITS * ROWS, ROWS))

    def read(self, unit: int) -> Iterator[RawBatch]:
        for start in range(unit, unit + ROWS, 10):
            keys = list(range(start, start + 9))
            rows = {"row_key": keys, "id": [f"r{k}" for k in keys], "content_hash": [f"{k % 30:032x}" for k in keys]}
            rows |= {"source": ["s"] * 9, "text": [f"text {k % 30}" for k in keys]}
            columns = {f.name: pa.array(rows.get(f.name, [None] * 9), f.type) for f in of_kind("document")}
            bad = {"file": "f", "line": start + 10, "byte_offset": 0, "reason": "bad_row", "detail": "x", "raw": b"?"}
            made = pa.RecordBatch.from_pylist([bad], quarantine())
            yield RawBatch(pa.RecordBatch.from_pydict(columns, of_kind("document")), made, {"read": 9, "never": 0})

    def decide(self, batch: pa.RecordBatch) -> Decision:
        return Decision(reasons=pa.nulls(batch.num_rows, pa.string()))


@dataclass(frozen=True, slots=True)
class EvenConfig:
    """What stays."""

    divisor: int = option(2, "keep rows whose number can be divided by it")
    buffer_rows: int = option(7, "how many rows are looked at together", result=False)


@dataclass(frozen=True)
class Even(Stage):
    """Keeps the rows whose number can be divided; counts its calls."""

    config: EvenConfig = field(default_factory=EvenConfig)
    loses_rows: bool = False
    calls: ClassVar[list[int]] = []
    name: ClassVar[str] = "even"
    Config: ClassVar[type] = EvenConfig
    note_lines: ClassVar[dict[str, str]] = {"seen": "rows were seen"}

    def decide(self, batch: pa.RecordBatch) -> Decision:
        numbers = batch.column("row_key").to_pylist()
        self.calls.append(numbers[0])
        stays = [n % self.config.divisor == 0 for n in numbers]
        return Decision(
            reasons=pa.array([None if s else "odd" for s in stays][: -1 if self.loses_rows else None], pa.string()),
            detail=pa.array([str(n) for n in numbers]),
            columns={"number": pa.array(numbers, pa.int64())},
            drop_columns={"rest": pa.array([n % self.config.divisor for n in numbers], pa.int64())},
            side_tables={"signals": pa.record_batch({"number": pa.array(numbers, pa.int64())})},
            notes={"seen": len(numbers), "none": 0},
            edited=pa.array([n % 3 == 0 for n in numbers]),  # some of those that go, too
            kept_columns=[*(n for n in batch.schema.names if n != "extra"), "number"],
        )

    def extras(self, ledger: Ledger) -> Extras:
        return Extras({"divisor": self.config.divisor}, files={"kept/words/list.txt": b"one\n"})

    def resources(self) -> dict[str, Any]:
        return {"words": "1" * 64}


@dataclass(frozen=True)
class Repeats(Stage):
    """Drops the rows whose text an earlier row has: map -> reduce -> map."""

    config: Nothing = field(default_factory=Nothing)
    found: tuple[str, ...] = ()
    dropped: frozenset[int] | None = None
    decided: ClassVar[list[int]] = []
    name: ClassVar[str] = "repeats"
    Config: ClassVar[type] = Nothing
    compares_rows: ClassVar[bool] = True

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["row_key", "text"])

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        seen: set[str] = set()
        dropped = []
        for path in sketches:
            for row in pa.ipc.open_file(path).read_all().to_pylist():
                if row["text"] in seen:
                    dropped.append(row["row_key"])
                seen.add(row["text"])
        out.write_text(json.dumps(dropped))
        return {"groups": len(seen)} | ({"alarms": list(self.found)} if self.found else {})

    def bind(self, out: Path) -> "Repeats":
        return replace(self, dropped=frozenset(json.loads(out.read_text())))

    def decided_about(self, row_keys: Any) -> pa.RecordBatch:
        assert self.dropped is not None
        return pa.record_batch({"dropped": [True if key in self.dropped else None for key in row_keys.tolist()]})

    def decide(self, batch: pa.RecordBatch) -> Decision:
        assert self.dropped is not None
        keys = batch.column("row_key").to_pylist()
        self.decided.append(keys[0])
        return Decision(reasons=pa.array(["repeat" if k in self.dropped else None for k in keys], pa.string()))


class Lines(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


Go = Callable[..., Path]


@pytest.fixture
def go(tmp_path: Path) -> Go:
    """Runs a stage in a project; `go.lines` are the lines of the last run."""

    def call(stage: Stage, *parents: Path, root: Path = tmp_path, workers: int = 1, strict: bool = False) -> Path:
        progress = Lines()
        call.lines = progress.lines  # type: ignore[attr-defined]
        layout = OutputLayout(root=root, dataset="d")
        pool = Shuffled(workers) if workers > 1 else Local(1)
        run = Run(layout=layout, executor=pool, progress=progress, strict=strict)
        return run_stage(run, stage, [Parent(path, load(path)) for path in parents]).path

    return call


@pytest.fixture
def numbers(go: Go) -> Path:
    Even.calls.clear()
    Repeats.decided.clear()
    return go(Numbers())


def ledger(path: Path) -> Count:
    return load(path).ledger.rows


def test_raw_files_become_rows_and_what_cannot_be_read_is_counted(go, numbers):
    assert ledger(numbers) == Count(into=100, kept=90, quarantined=10)
    assert [r["row_key"] for r in rows_of(numbers, "kept")] == [n for n in range(100) if n % 10 != 9]
    assert [r["line"] for r in rows_of(numbers, "quarantine")] == list(range(10, 101, 10))
    manifest = load(numbers)
    assert manifest.kind == "document" and manifest.ledger.notes == {"read": 90}
    assert any("10 records could not be read" in line for line in go.lines)  # type: ignore[attr-defined]
    assert len(tables(manifest, "kept")) == UNITS


def test_a_stage_decides_about_each_row(go, numbers):
    path = go(Even(), numbers)
    kept, dropped = rows_of(path, "kept"), rows_of(path, "dropped")
    assert [r["number"] for r in kept] == [n for n in range(100) if n % 10 != 9 and n % 2 == 0]
    assert {*kept[0]} == {*of_kind("document").names, "number"} - {"extra"}
    assert {r["stage"] for r in dropped} == {"even"} and {r["reason"] for r in dropped} == {"odd"}
    assert all(r["detail"] == str(r["number"]) and r["rest"] == 1 for r in dropped)
    assert [r["number"] for r in rows_of(path, "signals")] == [n for n in range(100) if n % 10 != 9]
    assert ledger(path) == Count(into=90, kept=50, dropped={"odd": 40}, edited=17)
    manifest = load(path)
    assert manifest.ledger.notes == {"seen": 90}
    assert manifest.facts == {"divisor": 2, "resources": {"words": "1" * 64}}
    assert manifest.config == {"divisor": 2}
    assert (data_dir(path, manifest) / "kept/words/list.txt").read_bytes() == b"one\n"
    assert "kept/words/list.txt" in {s.path for s in manifest.shards}
    assert "even: 90 rows were seen" in go.lines  # type: ignore[attr-defined]


def test_what_is_there_is_not_made_again(go, numbers):
    first = go(Even(), numbers)
    made = load(first).version
    Even.calls.clear()
    assert load(go(Even(EvenConfig(buffer_rows=99)), numbers)).version == made  # a value without effect on the result
    assert Even.calls == [] and go.lines == [f"even: up to date ({made})"]  # type: ignore[attr-defined]
    assert load(go(Even(EvenConfig(divisor=3)), numbers)).version != made
    assert len(Even.calls) == UNITS
    Even.calls.clear()
    assert load(go(Even(), numbers)).version == made  # the manifest is another one by now
    assert len(Even.calls) == UNITS
    shard = next(data_dir(first, load(first)).glob("kept/*.parquet"))
    shard.unlink()
    assert load(go(Even(), numbers)).version == made and shard.is_file()


def test_a_stage_that_loses_rows_is_a_mistake(go, numbers):
    """That a run goes on with the units that are missing is in test_work_records and test_bytes."""
    with pytest.raises(AssertionError, match="decisions"):
        go(Even(loses_rows=True), numbers)


def test_the_reduce_phase_compares_all_rows(go, numbers):
    path = go(Repeats(), numbers)
    assert Counter(r["text"] for r in rows_of(path, "kept")) == {f"text {n}": 1 for n in range(30) if n % 10 != 9}
    assert ledger(path) == Count(into=90, kept=27, dropped={"repeat": 63})
    assert load(path).facts == {"groups": 27}
    before, after = ([data_dir(p, load(p)) / s.path for s in tables(load(p), "kept")] for p in (numbers, path))
    assert Repeats.decided == [20, 40, 60, 80], "the first shard has no change: it is linked"
    assert before[0].samefile(after[0]) and not before[1].samefile(after[1])


def test_alarms_are_printed_and_with_strict_the_command_ends_there(go, numbers, tmp_path):
    with pytest.raises(AlarmError, match="f, line 10, byte 0: bad_row") as stopped:
        go(Numbers(), root=tmp_path / "other", strict=True)
    assert load(stopped.value.manifest).ledger.rows.quarantined == 10 and stopped.value.exit_code == 3
    with pytest.raises(AlarmError, match="half is gone"):
        go(Repeats(found=("half is gone",)), numbers, strict=True)
    assert load(tmp_path / "manifests/d/repeats.json").facts["alarms"] == ["half is gone"]
    (tmp_path / "manifests/d/repeats.json").unlink()
    path = go(Repeats(found=("half is gone",)), numbers)
    assert "ALARM repeats: half is gone" in go.lines  # type: ignore[attr-defined]
    assert load(path).facts["alarms"] == ["half is gone"]
    with pytest.raises(AlarmError, match="half is gone"):  # what is up to date is no excuse
        go(Repeats(), numbers, strict=True)


def test_the_folder_of_the_input_is_refused_as_output(go, numbers):
    manifest = load(numbers)
    folder = data_dir(numbers, manifest)
    layout = OutputLayout(root=folder, dataset="d", output=folder, final="even")
    with pytest.raises(UsageError, match="is the folder of the input"):
        run_stage(Run(layout=layout, executor=Local(1), progress=Progress()), Even(), [Parent(numbers, manifest)])
