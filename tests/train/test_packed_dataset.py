"""Our packed rows in loops of others: the losses of each batch are ours."""

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch.utils.data import DataLoader

from datakit.errors import ConfigError
from tests.train.runs import small_model
from train import hf, weights
from train.attention import masked_attention
from train.data import DataConfig, PackedDataset, PackedSet, StepStream
from train.eval import evaluate, total
from train.loss import chunked_loss
from train.model import CausalLM


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[CausalLM, Path]:
    made, folder = small_model(), tmp_path_factory.mktemp("model")
    hf.write_model(folder, made, (), {"eos_token_id": 2, "pad_token_id": 0, "bos_token_id": None})
    return made, folder


def first(items: list[Any]) -> Any:
    """The collator of a loader whose items are whole micro-batches."""
    return items[0]


def our_losses(model: CausalLM, manifest: Path, config: DataConfig, count: int) -> list[float]:
    """Loss a label of the first micro-batches of our own loop."""
    found = []
    for (batch,) in itertools.islice(StepStream(PackedDataset(manifest).data, config, seed=0), count):
        with torch.no_grad():
            attend, positions = masked_attention(batch.segments), batch.segments.positions_BT
            hidden = model(batch.ids_BT, positions, attend, batch.label_pos_L)
            loss_sum = chunked_loss(hidden, model.lm_head, batch.targets_L, 64)
        found.append(float(loss_sum) / batch.labels)
    return found


def test_an_item_says_what_its_rows_say(pack, random_rows):
    """In the form of FlashAttention; masks have our losses, below."""
    rows, config = random_rows(9, 48), DataConfig(batch_rows=4, shuffle_buffer=0, bucket_sizes=(48,))
    for number, item in enumerate(PackedDataset(pack(rows, seq_len=48), config=config, boundaries="flash")):
        pieces = [piece for row in rows[4 * number : 4 * number + 4] for piece in row]
        lengths = [len(ids) for ids, _ in pieces]
        assert item["input_ids"].tolist() == [[i for ids, _ in pieces for i in ids]]
        assert item["position_ids"].tolist() == [[p for length in lengths for p in range(length)]]
        labels = [t if p - 1 in learnt else -100 for ids, learnt in pieces for p, t in enumerate(ids)]
        assert item["labels"].tolist() == [labels]
        assert item["cu_seq_lens_q"].tolist() == np.cumsum([0, *lengths]).tolist()
        assert item["cu_seq_lens_k"] is item["cu_seq_lens_q"] and item["max_length_q"] == max(lengths)
        assert item["cu_seq_lens_q"].dtype == torch.int32


@pytest.mark.parametrize(("attention", "boundaries"), [("sdpa", "mask"), ("sdpa", "additive"), ("eager", "additive")])
def test_a_plain_loop_with_a_model_of_transformers_has_our_losses(models, manifest, attention, boundaries):
    ours, folder = models
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation=attention)
    config = DataConfig(batch_rows=4)
    expected = our_losses(ours, manifest, config, 6)
    loader = DataLoader(PackedDataset(manifest, config=config, boundaries=boundaries), batch_size=None)
    for mode in (theirs.train, theirs.eval):  # in eval a cache is made by default
        mode()
        with torch.no_grad():
            found = [float(theirs(**item).loss) for item in itertools.islice(loader, 6)]
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("library", ["transformers", "trl"])
def test_trainers_of_others_have_our_losses(models, manifest, tmp_path, library):
    pytest.importorskip("accelerate")
    (ours, folder), config = models, DataConfig(batch_rows=4)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    dataset, expected = PackedDataset(manifest, config=config), our_losses(ours, manifest, config, 99)
    options = {
        "output_dir": str(tmp_path), "max_steps": 4, "learning_rate": 0.0, "logging_steps": 1, "report_to": [],
        "save_strategy": "no", "remove_unused_columns": False, "per_device_train_batch_size": 1,
        "per_device_eval_batch_size": 1, "disable_tqdm": True, "use_cpu": True, "weight_decay": 0.0,
    }  # fmt: skip
    if library == "transformers":
        arguments = transformers.TrainingArguments(**options)
        trainer = transformers.Trainer(theirs, arguments, first, dataset, dataset)
    else:
        trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
        arguments = trl.SFTConfig(**options, bf16=False, dataset_kwargs={"skip_prepare_dataset": True})
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(manifest.parent / "kept" / "tokenizer" / "tokenizer.json"), eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
        )  # fmt: skip
        rows = datasets.IterableDataset.from_generator(dataset.__iter__)
        trainer = trl.SFTTrainer(theirs, arguments, first, rows, processing_class=tokenizer)
    trainer.train()
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert logged == pytest.approx(expected[:4], abs=1e-4)
    if library == "transformers":  # a mean of means
        found = trainer.evaluate()["eval_loss"]
        assert found == pytest.approx(np.mean(expected[: len(dataset)]), abs=1e-4)


def ids_of(items: Any) -> list[list]:
    return [item["input_ids"].tolist() for item in items]


def test_epochs_ranks_workers_and_states(manifest):
    config = DataConfig(batch_rows=4)
    dataset = PackedDataset(manifest, config=config)
    whole = ids_of(dataset)
    assert len(whole) == len(dataset) and ids_of(dataset) == whole, "an iteration is one epoch"
    assert ids_of(DataLoader(dataset, batch_size=None, num_workers=2)) == whole
    walked = iter(dataset)
    begun = [next(walked)["input_ids"].tolist() for _ in range(3)]
    other = PackedDataset(manifest, config=config)
    other.load_state_dict(dataset.state_dict())
    assert begun + ids_of(other) == whole
    shares = [ids_of(PackedDataset(manifest, config=config, rank=rank, ranks=3)) for rank in range(3)]
    assert len({len(share) for share in shares}) == 1, "no rank waits for another"
    seen = [row for share in shares for item in share for row in item if set(row) != {0}]
    assert sorted(seen) == sorted(row for item in whole for row in item if set(row) != {0})
    other.set_epoch(1)
    second = ids_of(other)
    assert second != whole
    assert sorted(r for i in second for r in i if set(r) != {0}) == sorted(r for i in whole for r in i if set(r) != {0})


def test_what_it_does_not_know_and_states_of_another_order_are_refused(manifest):
    unknown = [{"split": "test"}, {"boundaries": "masks"}, {"rank": 2, "ranks": 2}]
    for values in unknown:
        with pytest.raises(ConfigError, match=f"{next(iter(values))}: expected one of"):
            PackedDataset(manifest, **values)
    state = PackedDataset(manifest).state_dict()
    others = [{"seed": 1}, {"ranks": 2}, {"config": DataConfig(batch_rows=4)}]
    for values in others:
        with pytest.raises(ConfigError, match="of another config, seed or number of ranks"):
            PackedDataset(manifest, **values).load_state_dict(state)


def test_a_mix_and_the_validation_split_are_read_too(pack, random_rows):
    one = pack(random_rows(8, 32), seq_len=32, validation=random_rows(3, 32, seed=4))
    two = pack(random_rows(8, 32, seed=7), seq_len=32)
    mixed = PackedDataset(one, two, config=DataConfig(batch_rows=2, weights=(1.0, 1.0)))
    assert len(list(mixed)) == len(mixed) == 8
    assert sum(len(item["input_ids"]) for item in PackedDataset(one, split="validation")) >= 3


DOCS = Path(__file__).parents[2] / "docs" / "training.md"
EXAMPLES = [block for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S) if "PackedDataset" in block]


@pytest.mark.parametrize("example", EXAMPLES, ids=["loop", "transformers", "trl"])
def test_the_examples_of_the_docs_run(
    example, models, pack, random_rows, tokenizer_folder, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("accelerate")
    folder = shutil.copytree(models[1], tmp_path / "model")
    shutil.copytree(tokenizer_folder, folder, dirs_exist_ok=True)
    manifest = pack(random_rows(30, 48), seq_len=48, validation=random_rows(5, 48, seed=4))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "1")
    names: dict[str, Any] = {}
    exec(example.replace("manifests/mydata/pack.json", str(manifest)).replace("MODEL", str(folder)), names)
    if "trainer" in names:
        assert names["trainer"].state.global_step == 5
        return
    sets = PackedSet.open_all(manifest, "validation")
    with torch.no_grad():
        names["model"].save_pretrained(tmp_path / "trained")
        score = total(evaluate(weights.read_model(tmp_path / "trained"), sets, DataConfig(), "fp32"))
    assert f"loss per label {score.loss:.4f}" in capsys.readouterr().out
