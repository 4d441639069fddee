import random
from dataclasses import replace

import orjson
import pyarrow as pa
import pytest

from datakit.dedup.stage import Dedup, DedupConfig, chosen_bands
from datakit.errors import ConfigError
from datakit.report.compare import text_similarity
from datakit.stage import MAX_ALARMS, split
from tests.dedup.conftest import compare, deduplicate, documents

WORDS = [f"word{i}" for i in range(3000)]


def prose(seed: int, words: int = 120) -> list[str]:
    return random.Random(seed).choices(WORDS, k=words)


def edited(words: list[str], changes: int, seed: int) -> str:
    rng = random.Random(seed)
    words = list(words)
    for at in rng.sample(range(len(words)), changes):
        words[at] = f"new{rng.randrange(10**9)}"
    return " ".join(words)


def families(count: int, rows: int, seed: int = 0) -> list[str]:
    """Rows that descend from `count` texts by edits of every strength, with exact copies among them."""
    rng = random.Random(seed)
    made = [edited(prose(rng.randrange(count)), rng.choice([0, 0, 1, 2, 4, 8]), rng.randrange(50)) for _ in range(rows)]
    return made + [rng.choice(made).replace(" ", "\n  ", 3) for _ in range(rows // 5)]


def test_equal_and_near_texts_are_dropped_for_the_first_that_stays():
    text, near = " ".join(prose(1)), edited(prose(1), 1, seed=3)
    outcome = deduplicate([text, "other", f"  {text}\n", text.replace(" ", "\u3000"), near, near], cut=1)
    equal, similar = ("exact_duplicate", "0", 1.0), ("near_duplicate", "0", 0.917)
    assert outcome.rows == {"2": equal, "3": equal, "4": similar, "5": similar}
    assert outcome.kept == ["0", "1"]


def test_every_drop_names_a_row_that_stays_and_is_similar_enough():
    texts = families(12, 400)
    outcome = deduplicate(texts)
    assert len(outcome.rows) > 200
    for row, (reason, of, similarity) in outcome.rows.items():
        assert of in outcome.kept
        assert reason == ("exact_duplicate" if texts[int(row)].split() == texts[int(of)].split() else "near_duplicate")
        assert similarity == text_similarity(texts[int(row)], texts[int(of)], 5) >= 0.75


def test_rows_that_come_out_of_order_are_compared_in_the_order_of_their_keys():
    texts = families(10, 100, seed=5)
    rows = documents(texts)
    mixed = rows.take(pa.array(random.Random(1).sample(range(len(texts)), len(texts))))
    assert deduplicate(mixed, cut=50).decisions == deduplicate(rows).decisions


def test_the_policy_says_which_row_stays():
    words = prose(1)
    outcome = deduplicate([" ".join(words[:-2]), " ".join(words), " ".join(words[1:])], policy="longest")
    assert outcome.kept == ["1"] and set(outcome.dropped_for.values()) == {"1"}
    text, scores = " ".join(words), [None, 2, 3.5, 3.5]
    extra = [orjson.dumps({"score": score}).decode() if score else None for score in scores]
    rows = documents([text, text, edited(words, 1, 2), text], extra=pa.array(extra), stars=pa.array(scores))
    for policy in ("highest:score", "highest:stars"):  # a field of the user's, a column
        for cut in (1, 4):
            assert deduplicate(rows, cut=cut, policy=policy).kept == ["2"]
        assert deduplicate(rows.slice(0, 2), policy=policy).rows == {"0": ("exact_duplicate", "1", 1.0)}
    # as ingest has it
    late = documents([text, text], extra=pa.array([None, '{"stars": 9.5}']), stars=pa.array([3, None]))
    assert deduplicate(late, policy="highest:stars").kept == ["1"]


def test_rows_with_fewer_words_than_a_shingle_are_duplicates_only_of_equal_ones():
    rows = ["Yes.", "yes", "Yes. ", "", "  ", "...", "No.", "Increase the pressure", "Decrease the pressure"]
    rows += ["Increase\n the pressure"]
    equal = {"2": "0", "4": "3", "9": "7"}
    assert deduplicate(rows).rows == {n: ("exact_duplicate", of, 1.0) for n, of in equal.items()}
    assert deduplicate(["one two three four", "one two three, four"]).rows == {}
    near = deduplicate(["one two three four five", "one two three, four five"])
    assert near.rows == {"1": ("near_duplicate", "0", 1.0)}


def test_facts_hold_the_curve_and_are_json():
    facts = deduplicate(["a b c d e f"]).facts
    assert facts["lsh"]["candidate_probability"]["0.80"] == 0.924
    assert facts["lsh"]["expected_recall"] == {"0.75": 0.772}
    assert list(facts["lsh"]["candidate_probability"]) == [f"{s / 20:.2f}" for s in range(21)]
    assert orjson.loads(orjson.dumps(facts)) == facts
    assert facts["alarms"] == []


@pytest.mark.parametrize(
    "values",
    [
        {"threshold": 0.0}, {"threshold": 1.1}, {"threshold": 0.7501}, {"shingle_words": 0}, {"rows_per_band": -1},
        {"num_bands": -1}, {"seed": -1}, {"policy": "best"}, {"policy": "highest:"}, {"max_cluster_rows": 0},
        {"max_loss": 1.1}, {"memory_mb": 0},
    ],
)  # fmt: skip
def test_senseless_configuration_is_refused(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        DedupConfig(**values)


@pytest.mark.parametrize(
    ("given", "bands"),
    [
        ({}, (14, 8)), ({"num_bands": 20}, (20, 8)), ({"threshold": 0.5}, (47, 4)), ({"threshold": 0.01}, (299, 1)),
        ({"threshold": 0.5, "num_bands": 23}, (23, 3)), ({"threshold": 0.5, "rows_per_band": 2}, (11, 2)),
        ({"threshold": 1.0, "rows_per_band": 5}, (1, 5)),
        ({"threshold": 0.6, "num_bands": 3, "rows_per_band": 2}, (3, 2)),
    ],
)  # fmt: skip
def test_bands_follow_the_threshold(given, bands):
    config = DedupConfig(**given)
    assert (config.num_bands, config.rows_per_band) == bands
    assert replace(config) == config


@pytest.mark.parametrize("thousandths", [*range(10, 750, 111), *range(755, 1001, 98)])
def test_chosen_bands_find_what_they_promise_with_few_values(thousandths):
    threshold = thousandths / 1000
    bands, rows = chosen_bands(threshold)
    assert 1 - (1 - threshold**rows) ** bands >= 0.95 - 1e-9
    assert rows == 1 or bands * rows <= 256
    assert bands == 1 or 1 - (1 - threshold**rows) ** (bands - 1) < 0.95, "one band less is too few"
    assert DedupConfig(threshold=threshold).expected_recall().startswith(f"{bands} bands of {rows} MinHash values: ")


def test_bands_that_cannot_serve_the_threshold_are_warned_of():
    (line,) = Dedup(DedupConfig(threshold=0.5, num_bands=14, rows_per_band=8)).describe()
    assert "WARNING: 14 bands of 8 MinHash values find too few pairs for the threshold 0.5" in line
    assert "expected recall 0.053 at similarity 0.5, 0.111 at similarity 0.55" in line and "(47 and 4 are" in line
    (line,) = Dedup(DedupConfig()).describe()
    assert line == (
        "dedup: 14 bands of 8 MinHash values: expected recall 0.772 at similarity 0.75, 0.924 at similarity 0.8, "
        "0.988 at similarity 0.85"
    )


def test_kept_rows_know_what_they_stand_for(tmp_path):
    texts = [numbered(n) for n in (3, 4, 3, 5, 3, 5)]
    assert deduplicate(texts, cut=4).facts["cluster_sizes"] == {"1": 1, "2": 1, "3": 1}
    rows, stage = documents(texts), Dedup(DedupConfig(save_duplicates=True))
    bound, _ = compare(stage, [rows], tmp_path, 1)
    kept, dropped, *_ = split(rows, bound.decide(rows), stage.name)
    assert kept.select(["id", "cluster_size", "duplicates"]).to_pylist() == [
        {"id": "0", "cluster_size": 3, "duplicates": ["2", "4"]},
        {"id": "1", "cluster_size": 1, "duplicates": None},
        {"id": "3", "cluster_size": 2, "duplicates": ["5"]},
    ]
    assert dropped.column("cluster_size").null_count == 3


def numbered(seed: int) -> str:
    return " ".join(f"w{seed}x{n}" for n in range(30))


def test_sources_and_languages_that_are_lost_are_told():
    texts = [numbered(n % 40) for n in range(120)]
    langs = ["en"] * 40 + ["de"] * 60 + ["fr"] * 19 + [None]
    batch = documents(texts, source=pa.array(["a"] * 40 + ["b"] * 80), lang=pa.array(langs, pa.string()))
    outcome = deduplicate(batch, cut=50)
    whole, source, language = outcome.facts["alarms"]
    assert whole.startswith("80 of all 120 rows are lost (66.7%; max_loss is 30.0%). Most rows are lost for: '0' 2,")
    assert "'1' 2, '2' 2. Check with `datakit pairs`" in whole, "three survivors, and what to do"
    assert source == "the source 'b' loses 80 of its 80 rows (100.0%; max_loss is 30.0%)"
    gone = "vanishes: each of its 60 rows is dropped as the duplicate of a row in another language"
    assert language == f"the language 'de' {gone}"
    assert deduplicate(batch.slice(0, 80), max_loss=1.0).facts["alarms"] == [language.replace("60", "40")]


def test_the_worst_of_many_are_told_and_the_others_counted():
    texts = [numbered(n // 3) for n in range(3 * (MAX_ALARMS + 4))]
    alarms = deduplicate(texts, max_cluster_rows=2, max_loss=1.0).facts["alarms"]
    assert len(alarms) == MAX_ALARMS + 1
    assert alarms[0].startswith("3 rows count as one: all but '0' ")
    assert alarms[-1] == "4 more rows stand for more rows than that"
