"""The table of what fits: its formula beside the bytes of the tensors of a step."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from train.engine.device import autocast
from train.engine.optim import OptimConfig, make_optimizer
from train.memory import METHODS, Counts, Memory, MemoryConfig, Method, main, memory, rows_that_fit
from train.model import lora
from train.model.attention import Segments, auto_attention
from train.model.decoder import PRESETS, CausalLM, ModelConfig
from train.model.lora import LoraConfig, LoraLinear
from train.model.loss import chunked_loss, head_loss

LLAMA = replace(
    PRESETS["26m"], vocab_size=2048, hidden_size=256, num_layers=4, num_heads=4, head_dim=64, intermediate_size=704
)
QWEN3 = replace(LLAMA, qk_norm=True, tied_embeddings=False, num_kv_heads=4)
GEMMA = replace(LLAMA, norm_at="around", num_kv_heads=1, activation="gelu_tanh")
RUN = MemoryConfig(seq_len=544, batch_rows=2, lora_rank=8)  # too long for products that keep scores


def measured(config: ModelConfig, method: Method, run: MemoryConfig) -> Memory:
    """Bytes of the tensors at the end of a forward pass, and after a step."""
    model = CausalLM(config)
    model.init_weights(torch.Generator().manual_seed(0))
    model.checkpoint_every = run.checkpoint_every
    if method.adapters:
        adapters = LoraConfig(lora_rank=run.lora_rank, qlora=method.packed)
        lora.attach(model, adapters, torch.Generator().manual_seed(0))
    own = lora.trained(model) if method.adapters else {}
    if method.weights == 2:
        for name, p in model.named_parameters():
            p.data = p.data if name in own or not p.is_floating_point() else p.data.bfloat16()
    name = method.flags.split()[1] if method.flags.startswith("--optimizer") else "adamw"
    optimizer = make_optimizer(model, OptimConfig(optimizer=name, lr=1e-3))
    parameters = {p.untyped_storage().data_ptr(): p.nbytes for p in model.parameters()}
    packings = [m.packing for m in model.modules() if isinstance(m, LoraLinear) and m.packing is not None]
    tables = sum(p.absmax.nbytes + p.state2.absmax.nbytes for p in packings)
    saved: dict[int, Tensor] = {}

    def keep(x: Tensor) -> Tensor:
        if x.untyped_storage().data_ptr() not in parameters:
            saved[x.untyped_storage().data_ptr()] = x
        return x

    tokens = run.seq_len * run.batch_rows
    segments = Segments.of([[0, run.seq_len]] * run.batch_rows, run.seq_len)
    ids_BT = torch.zeros(run.batch_rows, run.seq_len, dtype=torch.int64)
    labels_L = torch.zeros(tokens, dtype=torch.int64)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x), autocast(torch.device("cpu"), run.dtype):
        hidden = model(ids_BT, segments.positions_BT, auto_attention(segments)).flatten(0, 1)
        if run.loss_chunk:
            loss, _ = chunked_loss(hidden, model.lm_head, labels_L, run.loss_chunk)
        else:
            loss, _ = head_loss(hidden, model.lm_head, labels_L)
    activations = sum(x.untyped_storage().nbytes() for x in saved.values())
    loss.backward()
    optimizer.step()
    gradients = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
    states = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, Tensor) and v.ndim]
    return Memory(sum(parameters.values()) + tables, gradients, sum(v.nbytes for v in states), activations)


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.flags)
def test_the_formula_is_within_a_tenth_of_the_tensors(method: Method, dtype: str) -> None:
    if ("8bit" in method.flags or method.packed) and find_spec("bitsandbytes") is None:
        pytest.skip("bitsandbytes is not installed")
    if dtype == "fp32" and method.weights == 2:
        pytest.skip("weights in bf16 are for arithmetic in bf16")
    run = replace(RUN, dtype=dtype)
    found, expected = measured(LLAMA, method, run), memory(LLAMA, Counts.of(LLAMA), method, run)
    for part, value in found._asdict().items():
        assert getattr(expected, part) == pytest.approx(value, rel=0.1), part
    assert sum(expected) == pytest.approx(sum(found), rel=0.1)


@pytest.mark.parametrize("config", [QWEN3, GEMMA], ids=["qwen3", "gemma"])
@pytest.mark.parametrize("more", [{}, {"loss_chunk": 64}], ids=["plain", "chunks"])
def test_other_families_too(config: ModelConfig, more: dict[str, int]) -> None:
    run = replace(RUN, **more)
    found, expected = measured(config, METHODS[0], run), memory(config, Counts.of(config), METHODS[0], run)
    assert expected.activations == pytest.approx(found.activations, rel=0.1)
    assert sum(expected) == pytest.approx(sum(found), rel=0.1)


def test_activations_computed_again_are_not_kept() -> None:
    """The forward pass keeps what enters a layer; the formula also has the one layer that is computed again."""
    run, fewer = replace(RUN, checkpoint_every=1), replace(LLAMA, num_layers=3)
    found, expected = (f(LLAMA, *x, METHODS[0], run) for f, x in ((measured, ()), (memory, (Counts.of(LLAMA),))))
    plain = [memory(c, Counts.of(c), METHODS[0], RUN).activations for c in (LLAMA, fewer)]
    assert expected.activations - (plain[0] - plain[1]) == pytest.approx(found.activations, rel=0.1)


def test_the_rows_that_fit_are_the_most_that_fit() -> None:
    counts = Counts.of(LLAMA)
    for method in METHODS:
        n = rows_that_fit(LLAMA, counts, method, RUN, 8)
        sizes = [sum(memory(LLAMA, counts, method, replace(RUN, batch_rows=rows))) for rows in (n, n + 1)]
        assert sizes[0] <= 8 * 2**30 * 0.9 - 2**30 < sizes[1]
    assert rows_that_fit(replace(LLAMA, num_layers=4000), Counts.of(LLAMA), METHODS[0], RUN, 8) == 0


def test_the_command_prints_a_table_of_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seq-len", "2048"]) == 0
    said = capsys.readouterr().out
    assert "depth 26" in said and said.count("--lora-rank 16 --qlora --weights-dtype bf16") == 6
