"""Dedup by meaning: vectors beside plain Python, cells beside all pairs, what must be equal."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from datakit.dedup import embedding
from datakit.dedup.embedding import load_model
from datakit.dedup.semantic import DedupSemantic, SemanticConfig, number_of_cells
from datakit.errors import ConfigError, InputError, MissingExtraError, ModelError
from tests.dedup.conftest import Messages, Outcome, conversations, documents, run_stage, talk
from tests.files import says, user

WORDS = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60)]


def spelled(text: str) -> str:
    """Text whose w1, w2, ... are the words of the model: so that the tokenizer knows them."""
    return re.sub(r"w(\d+)", lambda m: WORDS[int(m[1])], text)


def tokenizer_json(words: list[str]) -> str:
    vocab = {w: n for n, w in enumerate(["[UNK]", *words])}
    made = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    return made.to_str()


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A static model: words w2k and w2k+1 are nearly synonyms."""
    folder = tmp_path_factory.mktemp("static")
    rng = np.random.default_rng(5)
    table = rng.normal(size=(61, 24)).astype(np.float32)
    table[2::2] = table[1:-1:2] + 0.05 * table[2::2]
    save_file({"embeddings": table.astype(np.float16)}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(tokenizer_json(WORDS))
    return str(folder)


def run(rows: pa.RecordBatch | list[str], model: str, *, cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
    """The stage over rows, `cut` of them in each shard; `rows` has (reason, duplicate_of, similarity)."""
    batch = rows if isinstance(rows, pa.RecordBatch) else documents([spelled(text) for text in rows])
    return run_stage(DedupSemantic(SemanticConfig(model=model, **config)), batch, cut=cut, workers=workers)


def sentences(count: int, seed: int = 1) -> list[str]:
    """Random texts, and for half of them one with the synonyms of some words, or one other word."""
    rng, made = random.Random(seed), list[str]()
    while len(made) < count:
        words = [rng.randrange(60) for _ in range(rng.randrange(3, 9))]
        made.append(" ".join(f"w{w}" for w in words))
        if rng.random() < 0.5:
            made.append(" ".join(f"w{w ^ (rng.random() < 0.4)}" for w in words))
    rng.shuffle(made)
    return made[:count]


def all_pairs(texts: list[str], model: str, threshold: float) -> dict[str, tuple[str, int]]:
    """The star over all pairs, by the means of the words' vectors."""
    table = load_file(Path(model) / "model.safetensors")["embeddings"].astype(np.float64)
    known = {word: n + 1 for n, word in enumerate(WORDS)}
    return star([np.mean([table[known[w]] for w in spelled(text).split()], axis=0) for text in texts], threshold)


def star(vectors: Sequence[np.ndarray], threshold: float) -> dict[str, tuple[str, int]]:
    """By row that goes: the first near row that stays, and a thousand times their cosine, in double precision."""
    kept, stay, found = list[int](), np.empty((len(vectors), len(vectors[0]))), dict[str, tuple[str, int]]()
    for row, vector in enumerate(vectors):
        stay[len(kept)] = vector / np.linalg.norm(vector)
        cosines = stay[: len(kept)] @ stay[len(kept)]
        alike = np.flatnonzero(cosines >= threshold - 0.0005)
        if len(alike):
            found[str(row)] = str(kept[alike[0]]), round(cosines[alike[0]] * 1000)
        else:
            kept.append(row)
    return found


def test_decisions_are_those_of_all_pairs_in_double_precision(static):
    texts = sentences(700)
    outcome = run(texts, static, threshold=0.95)
    expected = all_pairs(texts, static, 0.95)
    assert len(expected) > 150
    assert outcome.dropped_for == {row: of for row, (of, _) in expected.items()}
    assert all(abs(1000 * outcome.rows[row][2] - expected[row][1]) < 1.5 for row in expected)


def test_cells_find_nearly_all_and_more_with_more_probes(static):
    texts = sentences(700)
    everything = run(texts, static, threshold=0.95).rows
    found = [run(texts, static, threshold=0.95, cells=20, probes=probes) for probes in (1, 4, 20)]
    assert found[0].facts["pairs_compared"] < found[2].facts["pairs_compared"] / 4
    assert len(found[1].rows) >= 0.97 * len(everything)
    assert found[2].rows == everything


def test_bytes_are_equal_for_any_workers_shards_and_blocks(static, monkeypatch):
    texts = sentences(400)
    one = run(texts, static, threshold=0.95, cells=8, workers=1, cut=100)
    assert one.rows
    for workers in (2, 7):
        again = run(texts, static, threshold=0.95, cells=8, workers=workers, cut=100)
        assert (again.decisions, again.facts) == (one.decisions, one.facts)
    monkeypatch.setattr("datakit.dedup.semantic._BLOCK_ROWS", 50)
    assert run(texts, static, threshold=0.95, cells=8, cut=37, memory_mb=1).rows == one.rows


def spelled_out(rows: list[Messages]) -> pa.RecordBatch:
    return conversations(*([turn | {"content": spelled(turn["content"])} for turn in row] for row in rows))


def test_question_and_answer_and_every_turn_must_be_alike(static):
    rows = [
        talk("w1 w7 w9", "w20 w30 w40"),
        talk("w0 w6 w8", "w21 w31 w41"),  # the same in other words
        talk("w1 w7 w9", "w3 w13 w50"),  # another answer
        talk("w33 w2 w11", "w20 w30 w40"),  # another question
        talk("w1 w7 w9", "w20 w30 w40", system="w5"),
        talk("w0 w6 w8", "w21 w31 w41", system="w4"),  # another system prompt
        talk("w1 w7 w9", "w20 w30 w40", "w2 w11", "w3 w13"),
        talk("w0 w6 w8", "w21 w31 w41", "w3 w10", "w2 w12"),
        talk("w1 w7 w9", "w3 w13", "w2 w11", "w20 w30 w40"),  # the answers of two turns changed places
        [says("w1 w7 w9"), user("w20 w30 w40")],
    ]
    found = run(spelled_out(rows), static, threshold=0.95)
    assert found.dropped_for == {"1": "0", "7": "6"}
    one, other, both = (talk(system=text) for text in ("w5", "w6", "w5 system w6"))
    two = [[*one, *other, *rows[0]], [*both, *rows[0]]]
    assert run(spelled_out(two), static).kept == ["0", "1"], "two system prompts are not one that says the same"


def test_a_column_of_vectors_stands_in_for_a_model():
    vectors = [[1.0, 0.0, 0.0], [0.99, 0.1, 0.0], [0.0, 1.0, 0.0], None, [0.0, 0.0, 0.0], [2.0, 0.02, 0.0]]
    rows = documents([str(n) for n in range(6)], v=pa.array(vectors, pa.list_(pa.float32())))
    found = run(rows, "", column="v", threshold=0.95, cut=2)
    near = {"1": ("semantic_duplicate", "0", 0.995), "5": ("semantic_duplicate", "0", 1.0)}
    assert found.rows == near and found.facts["rows_not_read"] == 2
    assert run(rows.slice(3, 1), "", column="v").kept == ["3"]
    with pytest.raises(InputError, match="the column 'text' must hold a list of numbers in each row; it is string"):
        run(rows, "", column="text")
    short = documents(["a", "b"], v=pa.array([[1.0], [1.0, 2.0]]))
    with pytest.raises(InputError, match="have 1 and 2 numbers"):
        run(short, "", column="v")
    for strange in (None, float("nan"), float("inf")):
        rows = documents(["a", "b"], v=pa.array([[1.0, 0.0], [1.0, strange]]))
        with pytest.raises(InputError, match="the row '1': expected finite numbers in the column 'v'"):
            run(rows, "", column="v")


def test_a_text_that_the_model_cannot_read_stays_and_is_counted_and_many_raise_an_alarm(static):
    outcome = run(["unknown words only", "unknown words only", "w1 w2", "w0 w3", "", "  "], static, threshold=0.9)
    assert outcome.rows.keys() == {"3"}
    assert outcome.facts["rows_not_read"] == 4
    assert run([], static).kept == [] and run(["w1"], static).kept == ["0"]
    assert run(["其他 语言"] * 30, static).facts["alarms"] == [
        "30 of 30 rows are not compared: they have no text, or the model does not know a quarter of their tokens. "
        "Name a model for their languages (model)"
    ]


def test_model2vec_weights_and_mapping_count(tmp_path):
    table = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    weights, mapping = np.linspace(0.5, 2, 64).astype(np.float32), (np.arange(64) % 4).astype(np.int64)
    save_file({"embeddings": table, "weights": weights, "mapping": mapping}, tmp_path / "model.safetensors")
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(WORDS).replace('"wch":60', '"wch":63'))  # a gap
    found = load_model(str(tmp_path)).embed([spelled("w4 w5 w5")])[0][0]
    expected = weights[5] * table[mapping[5]] + 2 * weights[6] * table[mapping[6]]
    assert np.abs(found[:8] - 32767 * expected / np.linalg.norm(expected)).max() <= 1
    assert not found[8:].any()


def test_missing_and_unknown_models_are_clear_errors(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match="expected a folder with a static model"):
        DedupSemantic(SemanticConfig(model=str(tmp_path / "none"))).check()
    with pytest.raises(ModelError, match=r"found no model\.safetensors"):
        DedupSemantic(SemanticConfig(model=str(tmp_path))).check()
    (tmp_path / "model.safetensors").write_bytes(b"\x05\x00")
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(WORDS))
    with pytest.raises(ModelError, match="cannot be read as a safetensors file"):
        DedupSemantic(SemanticConfig(model=str(tmp_path))).check()
    save_file({"layer": np.zeros(3, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"expected the table of a static model \(embeddings\), found layer"):
        DedupSemantic(SemanticConfig(model=str(tmp_path))).check()
    table, mapping = np.zeros((4, 8), np.float32), np.arange(61) % 4 - 1
    save_file({"embeddings": table, "mapping": mapping}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="has 4 vectors, expected one for each of 61 tokens"):
        DedupSemantic(SemanticConfig(model=str(tmp_path))).check()
    monkeypatch.setattr(embedding, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"install datakit\[semantic\]"):
        DedupSemantic().check()


def test_values_are_checked_and_cells_follow_the_rows():
    wrong = {"threshold": {"threshold": 1.2}, "probes": {"probes": 0}, "from one of": {"model": "m", "column": "v"}}
    for said, values in wrong.items():
        with pytest.raises(ConfigError, match=said):
            SemanticConfig(**values)
    assert [number_of_cells(n, 0) for n in (0, 8192, 100_000, 10_000_000)] == [1, 1, 97, 1024]
    assert number_of_cells(10, 50) == 10


def test_where_more_rows_stay_than_one_is_compared_with_they_are_divided(static, monkeypatch):
    texts = sentences(700)
    everything = run(texts, static, threshold=0.95)
    for name, value in {"_FEW_ROWS": 60, "_CELL_ROWS": 8, "_BLOCK_ROWS": 50}.items():
        monkeypatch.setattr(f"datakit.dedup.semantic.{name}", value)
    found = run(texts, static, threshold=0.95, cells=1)
    assert found.facts["pairs_compared"] < everything.facts["pairs_compared"] / 2
    assert 0.97 * len(everything.rows) <= len(found.rows) <= len(everything.rows)
    assert set(found.dropped_for.values()) <= set(found.kept)


def test_on_real_questions_cells_find_what_all_pairs_find(shared):
    pytest.importorskip("wordllama")
    files = sorted((shared / "corpora/sft/gpteacher").glob("*.json"))
    rows = [row for file in files for row in json.loads(file.read_text())[:1600]]
    texts = [" ".join([text for text in row.values() if isinstance(text, str)][:2]) for row in rows]
    dropped = star(load_model("").embed(texts)[0].astype(np.float64), 0.9)
    found = run_stage(DedupSemantic(SemanticConfig(cells=12)), documents(texts))
    same = sum(dropped.get(row, ("",))[0] == of for row, of in found.dropped_for.items())
    assert len(dropped) > 1000 and found.facts["cells"] == 12
    assert same >= 0.995 * len(dropped) and len(found.rows) <= 1.005 * len(dropped)
