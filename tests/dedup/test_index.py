"""Runs against earlier ones: what they skip, and that their results equal one run over all rows."""

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.dedup.index import fingerprint
from datakit.dedup.repeats import DedupRepeats, RepeatsConfig
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.dedup.urls import DedupUrls, UrlsConfig
from datakit.errors import ConfigError, IntegrityError
from tests.dedup.conftest import compare
from tests.dedup.runs import DEDUP, Runs, jointly_and_apart, rows
from tests.dedup.test_stage import families, prose

LEVELS = {
    "documents": DEDUP,
    "documents, one value a band": Dedup(DedupConfig(num_bands=40, rows_per_band=1)),
    "urls": DedupUrls(UrlsConfig()),
    "lines": DedupRepeats(RepeatsConfig(min_words_left=12, min_words=2)),
    "paragraphs": DedupRepeats(RepeatsConfig(min_words_left=30, unit="paragraph", digits="zero")),
    "sentences": DedupRepeats(RepeatsConfig(min_words_left=12, min_words=4, unit="sentence")),
    "tokens": DedupRepeats(RepeatsConfig(min_words_left=12, window=9, unit="token")),
    "shares": DedupRepeats(RepeatsConfig(max_repeated_share=0.6, window=5, unit="token")),
}


sentences = [f"{' '.join(prose(seed, 6))}." for seed in range(9)]
parts = st.sampled_from([*sentences, "Short.", "\n", "\n\n", "我们正在寻找一种更好的方法。"])
texts = st.lists(parts, max_size=9).map(" ".join) | st.sampled_from([*families(6, 40, seed=2), "short", "Short", ""])


@pytest.mark.parametrize("level", LEVELS)
@given(st.lists(st.lists(texts, max_size=8), min_size=2, max_size=4))
@settings(max_examples=8)
def test_runs_against_each_other_end_like_one_over_all_rows(level: str, parts: list[list[str]]) -> None:
    if level == "urls" and not all(any(len(text) % 3 for text in part) for part in parts if part):
        return  # a run over rows without any URL is refused
    joint, apart = jointly_and_apart(parts, cut=3, stage=LEVELS[level])
    assert apart == joint


def in_paragraphs(text: str) -> str:
    words = text.split()
    return ".\n\n".join(" ".join(words[n : n + 15]) for n in range(0, len(words), 15))


@pytest.mark.parametrize("level", LEVELS)
def test_many_rows_cut_anywhere_end_like_one_run(level: str) -> None:
    texts = [in_paragraphs(text) for text in families(25, 500, seed=1)]
    cuts = sorted(random.Random(1).sample(range(len(texts)), 2))
    parts = [texts[: cuts[0]], texts[cuts[0] : cuts[1]], texts[cuts[1] :]]
    joint, apart = jointly_and_apart(parts, 41, LEVELS[level])
    assert apart == joint and len(joint) > 200
    assert any(name.startswith("2:") and any(str(v).startswith("0:") for v in fate) for name, fate in apart.items())


def test_crowded_buckets_of_old_rows_end_like_one_run() -> None:
    """Hundreds of kept rows share a band, so that their duplicates are looked up in the index of rare shingles."""
    base, rng = prose(5, 30), random.Random(5)
    flood = [" ".join([*base[:15], f"x{i}", *base[16:]]) for i in range(500)]
    flood += [f"{text} {rng.choice(base)}" for text in rng.sample(flood, 60)]
    rng.shuffle(flood)
    joint, apart = jointly_and_apart([flood[:300], flood[300:]], cut=41)
    assert apart == joint and len(joint) >= 30
    assert any(of.startswith("0:") and name.startswith("1:") for name, (_, of, _) in apart.items())


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_index_is_refused_before_it_is_used(tmp_path: Path, damage: str) -> None:
    runs = Runs(tmp_path, DEDUP)
    runs.add(rows(families(3, 30), "old"))
    file = runs.done[0].folder / runs.done[0].shards[1].path
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.unlink()
    if damage != "gone":
        file.write_bytes(data if damage == "changed" else data[:-8])
    with pytest.raises(IntegrityError, match=f"{file}.*run 0"):
        runs.add(rows(["new"], "new"))


def test_alarms_of_a_run_against_another_count_its_own_rows(tmp_path: Path) -> None:
    texts = [" ".join(prose(seed)) for seed in range(50)]
    runs = Runs(tmp_path, DEDUP)
    runs.add(rows(texts[:30], "0:"))
    new = rows(texts[10:], "1:").append_column("source", pa.array(["a"] * 20 + ["b"] * 20))
    _, facts = compare(replace(DEDUP, earlier=runs.done), [new], tmp_path, 1)
    whole, source = facts["alarms"]
    assert whole.startswith("20 of all 40 rows are lost") and "'0:10' 1" in whole
    assert source.startswith("the source 'a' loses 20 of its 20 rows") and facts["largest_cluster_rows"] == 2


def test_old_rows_are_not_compared_with_each_other(tmp_path: Path) -> None:
    words = prose(1, 300)
    old = [" ".join([*words[:30], f"n{i}", *words[30:]]) for i in range(50)]
    runs = Runs(tmp_path, Dedup(DedupConfig(threshold=1.0)))
    assert runs.add(rows(old, "old")) == {}
    stage = replace(runs.stage, earlier=runs.done)
    _, facts = compare(stage, [rows([old[7], "short", "another row of more than five words"], "new")], tmp_path, 1)
    assert facts["candidates"]["pairs_compared"] == facts["candidates"]["entries_visited"] == 0


def test_the_fingerprint_follows_what_rows_are_compared_by() -> None:
    plain = fingerprint(Dedup(DedupConfig()))
    assert fingerprint(Dedup(DedupConfig(max_loss=0.9, max_cluster_rows=3))) == plain
    others = [DedupConfig(seed=2), DedupConfig(shingle_words=4), DedupConfig(num_bands=13), DedupConfig(on="prompt")]
    assert len({plain, *(fingerprint(Dedup(config)) for config in others)}) == 5


def test_neither_an_index_nor_a_run_against_one_goes_with_another_rule() -> None:
    for name, value in (("save_index", True), ("against", "m.json")):
        for config, policy in ((DedupConfig, "longest"), (UrlsConfig, "highest:score")):
            with pytest.raises(ConfigError, match=f"{name}.*{policy}"):
                config(**{name: value, "policy": policy})


@pytest.mark.parametrize("level", LEVELS)
def test_the_fingerprint_of_a_level_follows_its_settings(level: str) -> None:
    other = {"urls": {"same": "exact"}, "tokens": {"unit": "line"}, "shares": {"unit": "line"}}
    other |= {"paragraphs": {"digits": "as_written"}} | {name: {"seed": 2} for name in LEVELS if "documents" in name}
    stage, config = LEVELS[level], LEVELS[level].config
    changed = replace(config, **other.get(level, {"digits": "zero"}))
    assert fingerprint(replace(stage, config=replace(config, max_loss=0.9))) == fingerprint(stage)
    assert fingerprint(replace(stage, config=changed)) != fingerprint(stage)
