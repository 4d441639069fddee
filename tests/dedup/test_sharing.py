"""The rows that share a value are found in work units: no others are decided about, and none of them is missed."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import datakit.dedup.sharing as sharing
from datakit.dedup.repeats import DedupRepeats, RepeatsConfig
from datakit.dedup.sharing import SharingStage, share
from datakit.dedup.shuffle import Memory
from datakit.dedup.urls import DedupUrls
from datakit.errors import IntegrityError
from datakit.stage import CompareUnits, SketchFile
from tests.dedup.conftest import documents, run_level, write

STAGES = [
    DedupRepeats(RepeatsConfig(min_words=1, min_words_left=3)),
    DedupRepeats(RepeatsConfig(unit="sentence", window=2, min_words=2, min_words_left=3)),
    DedupRepeats(RepeatsConfig(unit="token", window=6, min_words_left=3)),
    DedupRepeats(RepeatsConfig(unit="token", window=6, max_repeated_share=0.6)),
    DedupUrls(),
]


def pages(rows: int, seed: int) -> pa.RecordBatch:
    """Texts of a few lines, of which many stand in another row or twice in one; URLs, some of them again or none."""
    picks = random.Random(seed)
    known = [" ".join(f"w{picks.randrange(900)}" for _ in range(8)) + "." for _ in range(rows)]
    texts = ["\n".join(picks.choices(known, k=picks.randrange(1, 5))) for _ in range(rows)]
    texts = [picks.choice(texts[:n]) if n and picks.random() < 0.1 else text for n, text in enumerate(texts)]
    urls = [picks.choice([None, f"https://example.org/{picks.randrange(rows)}"]) for _ in range(rows)]
    batch = documents(texts)
    return batch.append_column("url", pa.array(urls, pa.string()))


def files_of(stage: SharingStage, batch: pa.RecordBatch, cut: int, folder: Path) -> list[SketchFile]:
    folder.mkdir()
    stage.open()
    parts = [batch.slice(begin, cut) for begin in range(0, batch.num_rows, cut)]
    return [SketchFile.of(write(stage.sketch(part), folder / f"{i}.arrow")) for i, part in enumerate(parts)]


@pytest.mark.parametrize("stage", STAGES, ids=["lines", "sentences", "tokens", "shares", "urls"])
def test_the_gathered_rows_are_those_with_a_value_that_occurs_again(
    stage: SharingStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "RANGE_VALUES", 64)
    batch = pages(300, 1)
    files = files_of(stage, batch, 70, tmp_path / "sketches")
    found = share(stage, files, CompareUnits(tmp_path, 2))
    rows = found.rows(Memory(1 << 28, tmp_path))
    values, owners = stage.values(stage.sketch(batch))
    times = Counter(values.tolist())
    expected = {row for value, row in zip(values.tolist(), owners.tolist(), strict=True) if times[value] > 1}
    assert rows.numbers.tolist() == sorted(expected) and 0 < len(expected) < 300
    own = np.arange(len(rows))
    assert rows.ids(own).to_pylist() == [str(row) for row in rows.among_all(own).tolist()]
    assert found.values == len(values) and found.amounts().total() == stage.amounts(stage.sketch(batch)).sum()


@pytest.mark.parametrize("stage", STAGES, ids=["lines", "sentences", "tokens", "shares", "urls"])
def test_neither_ranges_nor_shards_change_a_decision(stage: SharingStage, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pages(300, 2)
    whole = run_level(stage, batch, cut=300, workers=1)
    assert whole.dropped
    for size, cut, workers in ((1, 300, 1), (64, 41, 3), (1 << 20, 7, 2)):
        monkeypatch.setattr(sharing, "RANGE_VALUES", size)
        made = run_level(stage, batch, cut=cut, workers=workers)
        assert (made.kept, made.dropped, made.facts) == (whole.kept, whole.dropped, whole.facts)
        assert sorted(map(str, made.cuts)) == sorted(map(str, whole.cuts))


def test_a_file_that_changed_is_found(tmp_path: Path) -> None:
    stage = STAGES[0]
    files = files_of(stage, pages(50, 3), 50, tmp_path / "sketches")
    units = CompareUnits(tmp_path, 1)
    wrong = replace(files[0], sha256="0" * 64)
    with pytest.raises(IntegrityError):
        share(stage, [wrong], units)
    share(stage, files, units)
    made = tmp_path / ".work/compared/values-00000.bin"
    before = made.read_bytes()
    made.write_bytes(before[:20] + b"?" + before[21:])
    sort = {"files": [[".work/compared/values-00000.bin", len(before), ""]], "parts": []}
    part = (sort["files"][0][0], 0, len(before) // 12 * 12, 0)
    with pytest.raises(IntegrityError):
        sharing.match_unit(tmp_path, 1 << 20, 0, [(0, part)])
