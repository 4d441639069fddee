"""Runs against earlier ones: what they skip, and that their results equal one run over all rows."""

import hashlib
import os
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from datakit.dedup.index import INDEX_VERSION
from datakit.dedup.repeats import DedupRepeats, RepeatsConfig
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.dedup.urls import DedupUrls, UrlsConfig
from datakit.errors import ConfigError, IntegrityError
from tests.dedup.conftest import compare, conversations, documents, preferences, talk
from tests.dedup.runs import DEDUP, Runs, jointly_and_apart, rows
from tests.dedup.test_stage import families, prose
from tests.files import flip

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


def in_paragraphs(text: str) -> str:
    words = text.split()
    return ".\n\n".join(" ".join(words[n : n + 15]) for n in range(0, len(words), 15))


@pytest.mark.parametrize("level", LEVELS)
def test_many_rows_cut_anywhere_end_like_one_run(level):
    texts = [in_paragraphs(text) for text in families(25, 500, seed=1)]
    cuts = sorted(random.Random(1).sample(range(len(texts)), 2))
    parts = [texts[: cuts[0]], texts[cuts[0] : cuts[1]], texts[cuts[1] :]]
    joint, apart = jointly_and_apart(parts, 41, LEVELS[level])
    assert apart == joint and len(joint) > 200
    assert any(name.startswith("2:") and any(str(v).startswith("0:") for v in fate) for name, fate in apart.items())


def test_crowded_buckets_of_old_rows_end_like_one_run():
    """Hundreds of kept rows share a band, so that their duplicates are looked up in the index of rare shingles."""
    base, rng = prose(5, 30), random.Random(5)
    flood = [" ".join([*base[:15], f"x{i}", *base[16:]]) for i in range(500)]
    flood += [f"{text} {rng.choice(base)}" for text in rng.sample(flood, 60)]
    rng.shuffle(flood)
    joint, apart = jointly_and_apart([flood[:300], flood[300:]], cut=41)
    assert apart == joint and len(joint) >= 30
    assert any(of.startswith("0:") and name.startswith("1:") for name, (_, of, _) in apart.items())


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_index_is_refused_before_it_is_used(tmp_path, damage):
    runs = Runs(tmp_path, DEDUP)
    runs.add(rows(families(3, 30), "old"))
    file = runs.done[0].folder / runs.done[0].shards[1].path
    {"changed": flip, "cut": lambda file: os.truncate(file, 100), "gone": os.remove}[damage](file)
    with pytest.raises(IntegrityError, match=f"{file}.*run 0"):
        runs.add(rows(["new"], "new"))


def test_alarms_of_a_run_against_another_count_its_own_rows(tmp_path):
    texts = [" ".join(prose(seed)) for seed in range(50)]
    runs = Runs(tmp_path, DEDUP)
    runs.add(rows(texts[:30], "0:"))
    new = rows(texts[10:], "1:").append_column("source", pa.array(["a"] * 20 + ["b"] * 20))
    _, facts = compare(replace(DEDUP, earlier=runs.done), [new], tmp_path, 1)
    whole, source = facts["alarms"]
    assert whole.startswith("20 of all 40 rows are lost") and "'0:10' 1" in whole
    assert source.startswith("the source 'a' loses 20 of its 20 rows") and facts["largest_cluster_rows"] == 2


def test_old_rows_are_not_compared_with_each_other(tmp_path):
    words = prose(1, 300)
    old = [" ".join([*words[:30], f"n{i}", *words[30:]]) for i in range(50)]
    runs = Runs(tmp_path, Dedup(DedupConfig(threshold=1.0)))
    assert runs.add(rows(old, "old")) == {}
    stage = replace(runs.stage, earlier=runs.done)
    _, facts = compare(stage, [rows([old[7], "short", "another row of more than five words"], "new")], tmp_path, 1)
    assert facts["candidates"]["pairs_compared"] == facts["candidates"]["entries_visited"] == 0


def test_neither_an_index_nor_a_run_against_one_goes_with_another_rule():
    for name, value in (("save_index", True), ("against", "m.json")):
        for config, policy in ((DedupConfig, "longest"), (UrlsConfig, "highest:score")):
            with pytest.raises(ConfigError, match=f"{name}.*{policy}"):
                config(**{name: value, "policy": policy})


SHORT = (
    "The quick brown fox jumps over the lazy dog, and then: it does so again! Straße, ﬁne, I\u0307stanbul 2026 \u00bd",
    "我们正在寻找一种更好的方法 ภาษาไทยเขียนติดกัน 日本語の文章も一文字ずつ カタカナ ကမ္ဘာ ភាសាខ្មែរ ພາສາລາວ",
    "كلمةٌ عربية طويلة جدا في جملة واحدة e\u0301te\u0301 हिन्दी में लिखा हुआ एक वाक्य है",
    "for Row in rows:\n    if Row.ok and x != -1:\n        Sum += f(*args) ** 2\n        log('-C', $HOME, a?.b ?? X)\n",
)
LONG = [f"{text} And so it goes on, as before. Then 1, 2, 3 more!" for text in SHORT * 2]
PROBES = [*SHORT, "too short", "\n\n".join(LONG)]
URLS = [
    "HTTP://www.Example.org:80/a/../b%7e/?utm_source=x&b=2&a=1#part", "//e.org", " ", "https://müller.example/ä b;s=7",
    "https://example.org/Case/?Q=A", "https://www.example.org/index.html?PHPSESSID=1",
]  # fmt: skip
TALKS = [talk(text, text[::-1]) for text in PROBES]
BATCHES = {
    "document": documents(PROBES, url=pa.array(URLS)),
    "conversation": conversations(*TALKS),
    "preference": preferences([(one[:1], one[1:], other[1:]) for one, other in zip(TALKS, TALKS[::-1], strict=True)]),
}
HELD = {
    ("document", "documents"): "3a128f9e", ("document", "urls"): "8f23261a", ("document", "paragraphs"): "1c19f183",
    ("document", "tokens"): "b5de1133", ("conversation", "near"): "ca6885d8", ("preference", "near"): "9ccf91c1",
    ("preference", "lines"): "c6107873",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "level"), HELD)
def test_an_index_holds_what_its_version_says(kind, level):
    """Where this fails, earlier indexes fit no more: raise INDEX_VERSION, and write here what they hold now."""
    stage = LEVELS.get(level, Dedup(DedupConfig(match="near"))).for_kind(kind)
    made = repr(stage.sketch(BATCHES[kind]).to_pydict())
    assert hashlib.sha256(made.encode()).hexdigest()[:8] == HELD[kind, level] and INDEX_VERSION == 3
