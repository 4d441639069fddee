"""Right on CUDA by construction: the forward pass of each model on fake tensors of a device that is not here.

Fake tensors have shapes, dtypes and devices and no values, so CUDA's autocast can be traced on any machine. What the
kernels compute is not tested here (`test_cuda.py`, `bench/gpu.py`).
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from train.attention import Scores, Segments
from train.config import MoeConfig
from train.loss import chunked_loss, head_loss
from train.model import PRESETS, CausalLM, ModelConfig
from train.rope import frequencies

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "scaled_dot_product", "_grouped_mm", "linear", "matmul")
WAITS = ("_local_scalar_dense", "nonzero.default", "bincount", "_to_copy_host", "masked_select", "unique")
"""Operations for which the host waits for the device."""
MODELS = PRESETS | {
    "experts": replace(PRESETS["tiny"], moe=MoeConfig(num_experts=4, experts_per_token=2)),
    "gemma": replace(PRESETS["tiny"], norm_at="around", norm_offset=1.0, embedding_scale=11.3, logit_softcap=30.0),
}  # fmt: skip


class Trace(TorchDispatchMode):
    """Notes products with an input in fp32, and operations that wait for the device."""

    def __init__(self) -> None:
        super().__init__()
        self.wide: list[str] = []
        self.waits: list[str] = []
        self.products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = str(func), [a for a in torch.utils._pytree.tree_leaves(args) if isinstance(a, torch.Tensor)]
        on_device = [a for a in given if a.device.type == "cuda"]
        if any(f".{p}" in name for p in PRODUCTS) and on_device:
            self.products += 1
            self.wide += [name] * any(a.dtype == torch.float32 for a in on_device)
        if any(w in name for w in WAITS) and on_device:
            self.waits.append(name)
        if "_to_copy" in name and on_device and torch.device((kwargs or {}).get("device") or "cuda").type == "cpu":
            self.waits.append(name)
        return func(*args, **(kwargs or {}))


def indexed(x: torch.Tensor, index: Any) -> torch.Tensor:
    """`x[index]` by plain operations: torch's own needs the device's library, which is not linked here."""
    index = index if isinstance(index, tuple) else (index,)
    taken = sum(i is not None and i is not Ellipsis for i in index)
    dim = 0
    for i in index:
        if i is Ellipsis:
            dim += x.ndim - dim - (taken - dim)
        elif i is None:
            x, dim, taken = x.unsqueeze(dim), dim + 1, taken + 1
        elif isinstance(i, slice):
            assert i.step is None
            size = x.shape[dim]
            begin, end, _ = i.indices(size)
            x, dim = torch.narrow(x, dim, begin, max(0, end - begin)), dim + 1
        elif isinstance(i, int):
            x, taken = torch.select(x, dim, i), taken - 1
        else:
            x, dim = torch.index_select(x, dim, i), dim + 1
    return x


def fake(model: CausalLM) -> CausalLM:
    """The model with fake parameters on "cuda"."""
    for module in model.modules():
        for name, p in list(module.named_parameters(recurse=False)):
            module._parameters[name] = torch.nn.Parameter(torch.empty(p.shape, device="cuda"), requires_grad=False)
    model.tie()
    return model


@pytest.fixture(autouse=True)
def a_device_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    own = torch.Tensor.__getitem__
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))  # Ampere
    monkeypatch.setattr(
        torch.Tensor, "__getitem__", lambda x, i: indexed(x, i) if x.device.type == "cuda" else own(x, i)
    )


def traced(c: ModelConfig) -> tuple[Trace, torch.Tensor]:
    frequencies.cache_clear()
    with torch.device("meta"):
        model = CausalLM(c)
    real = Segments.of([[0, 5, 20], [0, 17]], 32)
    with FakeTensorMode(), torch.no_grad():
        fake(model)
        moved = {n: torch.empty(getattr(real, n).shape, dtype=torch.int64, device="cuda")
                 for n in real.__slots__ if n != "groups"}  # fmt: skip
        segments = replace(real, **moved)
        ids, at = (torch.empty(shape, dtype=torch.int64, device="cuda") for shape in ((2, 32), (11,)))

        def attend(q_BTHE: torch.Tensor, k_BTKE: torch.Tensor, v_BTKE: torch.Tensor, scores: Scores) -> torch.Tensor:
            trace.wide += [f"attention of {x.dtype}" for x in (q_BTHE, k_BTKE, v_BTKE) if x.dtype != torch.bfloat16]
            return torch.empty_like(q_BTHE)

        torch.set_autocast_dtype("cuda", torch.bfloat16)
        torch.set_autocast_enabled("cuda", True)
        try:
            with Trace() as trace:
                where = ids, segments.positions_BT, attend
                hidden = model(*where).flatten(0, 1)[:11] if c.moe.num_experts else model(*where, at)
                head_loss(hidden, model.lm_head, at)
                chunked_loss(hidden, model.lm_head, at, 4)
        finally:
            torch.set_autocast_enabled("cuda", False)
            frequencies.cache_clear()  # it holds fake tensors now
        return trace, hidden


@pytest.mark.parametrize("name", MODELS)
def test_bf16_stays_bf16_along_the_whole_path_and_the_host_does_not_wait_for_the_device(name):
    c = replace(MODELS[name], vocab_size=400)
    trace, hidden = traced(c)
    assert trace.products > 4 * c.num_layers and trace.wide == [] and trace.waits == []
    assert hidden.dtype == torch.bfloat16
