from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from datakit.dedup.alarms import MOST
from datakit.dedup.config import DedupConfig
from datakit.dedup.minhash import shingle_sets, signatures
from datakit.dedup.saved import saved_signatures
from datakit.errors import ConfigError
from tests.dedup.conftest import documents
from tests.dedup.test_minhash import datasketch_values, row

RunDedup = Callable[..., Any]


def sourced(texts: list[str], sources: list[str], langs: list[str | None]) -> pa.RecordBatch:
    batch = documents(texts)
    return batch.append_column("source", pa.array(sources)).append_column("lang", pa.array(langs, pa.string()))


def words(seed: int) -> str:
    return " ".join(f"w{seed}x{n}" for n in range(30))


def test_sources_and_languages_that_are_lost_are_told(run_dedup: RunDedup) -> None:
    texts = [words(n % 40) for n in range(120)]
    batch = sourced(texts, ["a"] * 40 + ["b"] * 80, ["en"] * 40 + ["de"] * 60 + ["fr"] * 19 + [None])
    outcome = run_dedup(batch, cut=50)
    assert outcome.facts["alarms"] == [
        "the source 'b' loses 80 of its 80 rows (100.0%; max_source_loss is 75.0%); `datakit pairs` shows for which "
        "rows",
        "the language 'de' vanishes: each of its 60 rows is dropped as the duplicate of a row in another language",
    ]
    assert run_dedup(batch, max_source_loss=1.0, min_alarm_rows=61).facts["alarms"] == []


def test_the_worst_of_many_are_told_and_the_others_counted(run_dedup: RunDedup) -> None:
    texts = [words(n // 3) for n in range(3 * (MOST + 4))]
    alarms = run_dedup(texts, max_cluster_rows=2).facts["alarms"]
    assert len(alarms) == MOST + 1
    assert alarms[0].startswith("3 rows count as one: all but '0' ")
    assert alarms[-1] == "4 more rows stand for more rows than that"


def test_saved_signatures_hold_the_values_of_each_row() -> None:
    import datasketch

    texts = [words(1), "short", words(2)]
    config = DedupConfig(num_bands=2, rows_per_band=3, seed=9)
    saved = saved_signatures(documents(texts), config).to_pylist()
    sets = shingle_sets(pa.array(texts), 5)
    assert saved[1] is None
    for i in (0, 2):
        found = datasketch.LeanMinHash.deserialize(saved[i], "<")
        assert found.hashvalues.tolist() == datasketch_values(row(sets, i), 6, 9) == signatures(sets, 6, 9)[i].tolist()
        assert (found.seed, found.scheme) == (9, "affine32")


@pytest.mark.parametrize(
    "values",
    [{"max_source_loss": 1.1}, {"min_alarm_rows": 0}, {"max_num_perm": 1}, {"max_num_perm": 128, "num_bands": 3}],
)
def test_senseless_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        DedupConfig(**values)
