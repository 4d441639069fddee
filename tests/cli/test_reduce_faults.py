"""The phase that compares all rows, at every level of dedup: given a corrupted file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from datakit.engine import executors as work
from tests.cli.test_levels import LEVELS, write_project
from tests.engine.corpus import results


@pytest.mark.parametrize("after", ["sketch", "reduce"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_bit_that_flips_between_two_phases_of_one_run_is_noticed_and_repaired_by_the_next_run(
    datakit: Callable, project: Path, monkeypatch: pytest.MonkeyPatch, level: str, after: str
) -> None:
    write_project(project, rows=60)
    assert datakit("run", "--dataset", "d", "--until", level).code == 0
    whole = results(project)
    for path in (project / f"manifests/d/{level}.json", *project.glob(f"data/d/{level}/*")):
        path.rename(project / f"aside-{path.name}")
    units = work.Work.units

    def corrupted(self: work.Work, name: str, *args: object, **more: object) -> list[work.Result]:
        made = units(self, name, *args, **more)  # type: ignore[arg-type]
        if name == after and self.data.parent.name == level:
            file = self.data / made[0]["files"][0][0]
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 4
            file.write_bytes(data)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(work.Work, "units", corrupted)
        said = datakit("run", "--dataset", "d", "--until", level)
    assert said.code == 1 and "changed after datakit wrote it" in said.err
    assert ("sketches/part-00000.arrow" if after == "sketch" else "decisions.arrow") in said.err
    assert not (project / f"manifests/d/{level}.json").exists()
    assert datakit("run", "--dataset", "d", "--until", level).code == 0
    assert results(project) == whole
