"""Comparison of recipes: what is drawn, scored, computed, refused, and kept when a comparison is killed."""

import html
import json
import math
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datakit.errors import ConfigError, InputError, ManifestError, UsageError
from datakit.pack.chat import ChatTokenizer
from tests.files import write_rows
from tests.processes import python
from tests.train.runs import logits, small_model
from train import compare, flags
from train.compare import CompareConfig, HeldOut, open_arms, paired, plan, prepare
from train.config import SizesConfig
from train.loop import Fit
from train.start import Trainer

TINY = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64}
WORDS = ["alpha", "river", "stone", "light", "carry", "forest", "window", "bright", "morning", "paper", "engine",
         "water", "silver", "quiet", "table"]  # fmt: skip

DOCS = 300


def text(seed: int) -> str:
    """Sentences in which every word follows from the one before."""
    rng, said = random.Random(seed), []
    for _ in range(8):
        at = rng.randrange(15)
        said.append(" ".join(WORDS[(at + 4 * j) % 15] for j in range(7)) + f" {rng.randrange(1000)}.")
    return " ".join(said)


def shuffled(said: str, seed: int) -> str:
    words = said.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


def written(path: Path, texts: list[str]) -> Path:
    return write_rows(path, ({"text": one} for one in texts))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    written(folder / "pool.jsonl", [text(i) for i in range(DOCS)])
    written(folder / "noise.jsonl", [text(i) for i in range(3000, 3000 + DOCS)])
    written(folder / "held.jsonl", [text(i) for i in range(1000, 1062)] + [text(3)])
    return folder


@pytest.fixture(scope="module")
def packed(place: Path, tokenizer_folder: Path) -> Callable[..., Path]:
    def make(name: str, out: str, *options: str) -> Path:
        flags = ("--tokenizer", tokenizer_folder, "--seq-len", "64", "--output", place / out, *options)
        python("-m", "datakit", "pack", place / name, *flags)
        return place / out / "manifest.json"

    return make


@pytest.fixture(scope="module")
def arms(packed: Callable[..., Path]) -> dict[str, Path]:
    """The same documents in other rows, and other documents."""
    return {
        "clean": packed("pool.jsonl", "clean"),
        "rows": packed("pool.jsonl", "rows", "--packing", "wrap"),
        "noise": packed("noise.jsonl", "noise"),
    }


def config_of(place: Path, arms: dict[str, Path], *names: str, **options: Any) -> CompareConfig:
    given = tuple(f"{name}={arms[name]}" for name in names)
    sizes = SizesConfig(**TINY)
    held = (f"own={place / 'held.jsonl'}",)
    return CompareConfig(arms=given, heldout=held, sizes=sizes, **{"rates": False, "aa": 0} | options)


# ---------------------------------------------------------------------- documents and draws


def test_a_document_is_whole_again_whatever_the_packing(place, arms):
    clean, rows = open_arms(config_of(place, arms, "clean", "rows"))
    assert len(clean.docs) == DOCS
    assert {k: v.tolist() for k, v in clean.docs.items()} == {k: v.tolist() for k, v in rows.docs.items()}
    tokenizer = ChatTokenizer.load(clean.data.tokenizer_files[0].parent)
    assert sorted(tokenizer.encoder.decode(v.tolist()) for v in clean.docs.values()) == sorted(map(text, range(DOCS)))


def test_a_cluster_is_drawn_whole_and_in_the_order_of_all_arms(place, arms):
    clean, rows = open_arms(config_of(place, arms, "clean", "rows"))
    names = sorted(clean.docs)
    clusters = [names[:3], *([name] for name in names[3:])]
    few = replace(rows, docs={name: ids for name, ids in rows.docs.items() if name not in names[10:20]})
    start, count = 2, 4
    one, same, other = (compare.draw(clean, clusters, seed, count, start) for seed in (0, 0, 1))
    assert one.packed.ids.tolist() == same.packed.ids.tolist() != other.packed.ids.tolist()
    order = np.random.default_rng(0).permutation(len(clusters))
    for arm in (clean, few):
        docs = [name for i in order for name in clusters[i] if name in arm.docs]
        expected = np.concatenate([np.append(start, arm.docs[name]) for name in docs])[: count * 65]
        drawn = compare.draw(arm, clusters, 0, count, start)
        assert np.concatenate([drawn.packed.ids_of(i) for i in range(count)]).tolist() == expected.tolist()
        for row in range(count):
            bounds = drawn.packed.segments_of(row)
            assert bounds[0] == 0
            assert bounds[-1] == 65
            assert all(drawn.packed.ids_of(row)[b] == start for b in bounds[1:-1])


def test_a_cluster_that_would_fill_much_of_the_budget_is_drawn_in_pieces(place, arms):
    """The sizes are those of the first arm that has a document, so all arms draw the same pieces."""
    arm = open_arms(config_of(place, arms, "clean", "rows"))[0]
    names = sorted(arm.docs)
    clean, few = (replace(arm, docs={n: np.ones(100) for n in some}) for some in (names[:18], names[10:]))
    clusters = [names[:7], names[7:20], [names[20]]]
    found = [*compare.pieces(clusters, [clean, few], 250)]
    assert found == [
        names[:3], names[3:6], names[6:7], *(names[i : min(i + 3, 20)] for i in (7, 10, 13, 16, 19)), [names[20]],
    ]  # fmt: skip
    assert [*compare.pieces(clusters, [clean], 2000)] == clusters


def test_overlap_with_an_arm_leaves_the_held_out_set_and_is_counted(place, arms):
    config = config_of(place, arms, "clean", "rows")
    opened = open_arms(config)
    tokenizer = ChatTokenizer.load(opened[0].data.tokenizer_files[0].parent)
    clusters, (held,) = prepare(config, opened, tokenizer)
    assert sorted(name for cluster in clusters for name in cluster) == sorted(opened[0].docs)
    assert held.removed == 1
    assert held.bytes.tolist() == [len(text(i)) for i in range(1000, 1062)]


# ---------------------------------------------------------------------- bits per byte


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 96, 97, 300])
def test_windows_score_every_token_once_with_half_a_window_before_it(length):
    found = compare.windows(length, 64)
    assert [i for _, stop, done in found for i in range(done, stop)] == list(range(length))
    assert all(stop - first <= 64 for first, stop, _ in found)
    assert all(done - first >= 31 for first, _, done in found[1:])


def test_bits_equal_a_plain_computation(place, arms):
    header = open_arms(config_of(place, arms, "clean", "rows"))[0].data.header
    model = small_model(1, vocab_size=320).eval()
    ids, start = np.random.default_rng(0).integers(3, 300, 150), 2
    expected, whole = [], [start, *ids.tolist()]
    for i in range(len(ids)):
        first = next(f for f, stop, done in compare.windows(len(ids), header.seq_len) if done <= i < stop)
        logp = logits(model, torch.tensor([whole[first : i + 1]]))[0, -1].log_softmax(-1)
        expected.append(-float(logp[whole[i + 1]]) / math.log(2))
    assert compare.bits_of(model, ids, start, header).tolist() == pytest.approx(expected, rel=0.02)


# ---------------------------------------------------------------------- statistics


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 30, 99])
def test_student_s_t_is_scipy_s(df):
    stats = pytest.importorskip("scipy.stats")
    for t in (0.0, 0.3, 1.0, 2.5, 20.0):
        assert compare.t_within(t, df) == pytest.approx(1 - 2 * stats.t.sf(t, df), abs=1e-12)
    for within in (0.6, 0.95, 0.99):
        assert compare.t_quantile(within, df) == pytest.approx(stats.t.ppf((1 + within) / 2, df))


def test_holm_multiplies_by_the_number_that_is_left_and_keeps_the_order():
    assert compare.holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert compare.holm([]) == []


def test_below_five_seeds_there_is_no_interval_and_from_five_on_one_of_t():
    assert paired([0.1, 0.2, 0.1, 0.2])["interval"] is None
    found = paired([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found["interval"] == pytest.approx([3 - 1.963243, 3 + 1.963243])
    assert paired([0.0] * 5)["p"] == 1
    assert found["smallest_effect"] > 1.963243


def test_the_interval_over_documents_weighs_by_bytes():
    low, high = compare.over_documents(np.array([2.0, 4.0, 6.0]), np.array([1, 2, 3]))
    assert low == high == pytest.approx(2)


def test_arms_that_are_not_past_local_statistics_are_not_ranked():
    found = paired([-1.0, -1.1, -1.0, -0.9, -1.0])
    assert compare.verdict(found, True, True).startswith("better")
    assert "not ranked" in compare.verdict(found, False, True)
    same = paired([-1.0, 1.0, 0.5, -0.5, 0.1])
    assert compare.verdict(same, True, True).startswith("no difference seen; likely to be seen from")


# ---------------------------------------------------------------------- whole comparisons


def test_the_figures_name_a_sign_that_turns_and_correct_all_but_the_primary_comparison(place, arms):
    config = config_of(place, arms, "clean", "rows", "noise", unpaired=True, tokens="3k", aa=1, rates=True)
    config = replace(config, primary="rows:own")
    opened = open_arms(config)
    held = HeldOut("own", [np.arange(3)] * 60, np.full(60, 10), 0)
    runs = list(plan(config, opened, [[name] for arm in opened for name in arm.docs], [held], 2))
    assert Counter(run.kind for run in runs) == {"main": 15, "aa": 1, "x0.333": 4, "x3": 4}

    def result(run: compare.Run) -> dict[str, Any]:
        """Ten bytes a document: `noise` costs a bit a byte more, less at the high rate."""
        more = {"clean": 0.0, "rows": 0.01 * (-1) ** run.seed, "noise": 1 + 0.01 * run.seed}[run.arm]
        bits = 20 + 10 * (-more if run.kind == "x3" else more)
        local = {"clean": 3.0, "rows": 3.0, "noise": 2.5}[run.arm] * 600
        return {"arm": run.arm, "seed": run.seed, "kind": run.kind, "bits": {"own": [bits] * 60},
                "local_bits": {"own": local}, "curve": [[1000, 700], [3000, bits * 60]]}  # fmt: skip

    found = compare.summary(config, opened, [held], runs, list(map(result, runs)))
    (own,) = found["sets"]
    rows, noise = (own["arms"][name]["difference"] for name in ("rows", "noise"))
    assert own["sign_turns"] and own["not_past_local"] == ["noise"]
    assert noise["mean"] == pytest.approx(1.02)
    assert noise["p_holm"] == noise["p"] and "p_holm" not in rows
    said = compare.table(found)
    assert "no difference seen" in said and "not past local statistics: not ranked" in said
    shown = html.unescape(compare.page(found))
    assert "the sign turns" in said and said in shown
    assert shown.count("<polyline") == shown.count("<polygon") == 3 and "3,000 tokens" in shown
    (begin, at_first), (end, at_last) = own["arms"]["noise"]["curve"]
    assert (begin, end, at_first) == (1000, 3000, [700 / 600] * 5)
    assert at_last == pytest.approx(own["arms"]["noise"]["bits_per_byte"])


@pytest.mark.campaign
def test_shuffled_words_are_found_and_permuted_rows_are_not(place, arms):
    """The words of every document are shuffled, behind the same ids, as in an arm that a recipe made from the pool."""
    config = config_of(place, arms, "clean", "rows", tokens="24k", batch_rows=4)
    config = replace(config, sizes=SizesConfig(hidden_size=64, num_layers=2, num_heads=2, intermediate_size=128))
    clean, rows = open_arms(config)
    tokenizer = ChatTokenizer.load(clean.data.tokenizer_files[0].parent)
    said = {name: tokenizer.encoder.decode(ids.tolist()) for name, ids in clean.docs.items()}
    noise = {name: np.array(tokenizer.encode_text(shuffled(text, i))) for i, (name, text) in enumerate(said.items())}
    opened = [clean, rows, replace(clean, name="noise", docs=noise)]
    clusters, held = prepare(config, opened, tokenizer)
    bits: dict[str, list[float]] = {arm.name: [] for arm in opened}
    for run in plan(config, opened, clusters, held, 2):
        if run.arm == "rows" and run.seed:  # once is enough: the drawn rows are the same
            continue
        bits[run.arm].append(sum(run.result()["bits"]["own"]) / held[0].bytes.sum())
    clean_bits = np.array(bits["clean"])
    assert bits["rows"] == bits["clean"][:1]
    found = paired((np.array(bits["noise"]) - clean_bits).tolist())
    assert found["interval"][0] > 0, found


def children(pid: int) -> list[int]:
    """The processes of one, but for the one that watches over shared resources."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in found if b"resource_tracker" not in Path(f"/proc/{p}/cmdline").read_bytes()]


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    until = time.monotonic() + 60
    while time.monotonic() < until and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    return not Path(f"/proc/{pid}").exists()


def test_a_killed_comparison_goes_on_and_the_same_command_gives_the_same_bytes(place, arms):
    sizes = [part for k, v in TINY.items() for part in (f"--{k.replace('_', '-')}", str(v))]
    command = ["-m", "train.compare", "--arms", f"a={arms['clean']}", f"b={arms['rows']}", "--no-rates",
               "--heldout", f"own={place / 'held.jsonl'}", "--seeds", "2", "--aa", "1", "--tokens", "3k", "--jobs", "1",
               "--batch-rows", "4", *sizes, "--out"]  # fmt: skip
    killed, lines = place / "killed", place / "killed" / "runs.jsonl"
    with subprocess.Popen([sys.executable, *command, str(killed)], stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 120
        while time.monotonic() < until and not (lines.is_file() and lines.read_bytes().count(b"\n")):
            time.sleep(0.05)
        (worker,) = children(process.pid)
        process.send_signal(signal.SIGKILL)
    assert gone(worker)
    kept = lines.read_bytes()
    assert 1 <= kept.count(b"\n") < 5
    with lines.open("ab") as f:
        f.write(b'{"key": "to')  # a line that was not finished
    said = python(*command, killed).stdout
    done = kept.count(b"\n")
    assert f"5 runs, {done} of them finished earlier" in said
    assert lines.read_bytes().startswith(kept)
    python(*command, place / "whole")
    for name in ("compare.json", "compare.html"):
        assert (killed / name).read_bytes() == (place / "whole" / name).read_bytes()
    found = json.loads((killed / "compare.json").read_bytes())
    (own,) = found["sets"]
    assert own["arms"]["b"]["difference"]["by_seed"] == [0, 0]
    # a few steps: counts of the same tokens predict better, and the arms are not ranked
    assert own["not_past_local"] == ["a", "b"] and said.count("not past local statistics") == 2
    for row in own["arms"].values():
        assert all(local < bits for local, bits in zip(row["local"], row["bits_per_byte"], strict=True))
        assert [bits for _, bits in row["curve"]][-1] == row["bits_per_byte"]
    assert len(found["sets"][0]["aa"]) == 1


def test_a_run_that_a_signal_stopped_has_no_result(place, arms, monkeypatch):
    config = config_of(place, arms, "clean", "rows", tokens="3k")
    opened = open_arms(config)
    held = HeldOut("own", [np.arange(3)] * 60, np.full(60, 10), 0)
    run = next(plan(config, opened, [[name] for name in opened[0].docs], [held], 2))
    monkeypatch.setattr(Trainer, "fit", lambda self: Fit(self.model, [], 1, signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        run.result()


# ---------------------------------------------------------------------- refusals


def test_arms_without_common_ids_are_refused_with_the_way_out(place, arms):
    with pytest.raises(InputError, match=r"no document in common.*--unpaired"):
        open_arms(config_of(place, arms, "clean", "noise"))
    clean, noise = open_arms(config_of(place, arms, "clean", "noise", unpaired=True))
    assert len(clean.docs) == len(noise.docs) == DOCS
    assert not clean.docs.keys() & noise.docs.keys()


def test_another_tokenizer_is_refused(place, arms, packed, tokenizer_folder):
    other = place / "tokenizer"
    shutil.copytree(tokenizer_folder, other)
    spec = json.loads((other / "tokenizer.json").read_bytes())
    spec["model"]["merges"].pop()
    (other / "tokenizer.json").write_text(json.dumps(spec))
    given = {**arms, "other": packed("pool.jsonl", "other", "--tokenizer", str(other))}
    with pytest.raises(ManifestError, match="one tokenizer"):
        open_arms(config_of(place, given, "clean", "other"))


@pytest.mark.parametrize(("seeds", "left"), [(range(2000, 2059), 59), ([], 0), (range(9), 0)])
def test_a_small_held_out_set_is_refused_before_anything_trains(place, arms, seeds, left):
    """Too few texts, none, and texts that the arms have, too."""
    few = written(place / "few.jsonl", [text(i) for i in seeds])
    given = {"clean": arms["clean"], "rows": arms["rows"]}
    with pytest.raises(InputError, match=f"few.jsonl: has {left} documents"):
        compare.compare_arms(given, {"own": few}, out=str(place / "refused"))
    assert not (place / "refused" / "runs.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"arms": ("a=x",), "heldout": ("h=y",)}, UsageError),
        ({"arms": ("a=x", "a=y"), "heldout": ("h=y",)}, UsageError),
        ({"arms": ("a=x", "b=y"), "heldout": ("h=y",), "primary": "a:h"}, ConfigError),
        ({"arms": ("a=x", "b=y"), "heldout": ("h=y",), "tokens": "many"}, ConfigError),
    ],
)
def test_options_that_do_not_fit_are_refused(options, error):
    with pytest.raises(error):
        CompareConfig(**options)


@pytest.mark.parametrize(
    "given", ["--arms a=x b=y --seeds 3", "--arms a=x,b=y --seeds 3", "--seeds=3 --arms=a=x b=y",
              "--arms a=x --seeds 3 --arms b=y"],
)  # fmt: skip
def test_values_of_a_list_stand_behind_one_option_or_more(given):
    assert flags.given(CompareConfig, "compare", None, given.split()) == {"arms": ("a=x", "b=y"), "seeds": 3}
    with pytest.raises(UsageError, match="unexpected extra argument"):
        flags.given(CompareConfig, "compare", None, [*given.split(), "--no-rates", "4"])


def test_a_budget_may_have_a_unit():
    assert [compare.budget_of(t) for t in ("3M", "1.5m", "500k", "200", "")] == [3_000_000, 1_500_000, 500_000, 200, 0]
