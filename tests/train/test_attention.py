import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.train.runs import small_model
from train import attention
from train.attention import Scores, Segments, grouped_attention, masked_attention, move_rows
from train.serve.batching import Slot, SlotCache


def qkv(rows: int, width: int, heads: int = 4, kv_heads: int = 2, size: int = 8) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(rows, width, h, size) for h in (heads, kv_heads, kv_heads)]
    return [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


def plain(q: Tensor, k: Tensor, v: Tensor, bounds: list[np.ndarray], how: Scores = Scores()) -> Tensor:  # noqa: B008
    """Position by position, straight from the definition."""
    out = torch.zeros_like(q)
    shared = q.shape[2] // k.shape[2]
    for row, edges in enumerate(bounds):
        for begin, end in itertools.pairwise(edges):
            for t in range(begin, min(end, q.shape[1])):
                for h in range(q.shape[2]):
                    seen = slice(max(begin, t + 1 - how.window) if how.window else begin, t + 1)
                    scores = k[row, seen, h // shared] @ q[row, t, h] / q.shape[3] ** 0.5
                    out[row, t, h] = scores.softmax(0) @ v[row, seen, h // shared]
    return out


@pytest.mark.parametrize("product_width", [0, 64, 1000])  # SDPA for all groups, for some, for none
@pytest.mark.parametrize("scores", [Scores(), Scores(0, 7), Scores(0, 33)])
def test_windows_are_the_definition_with_its_gradients(scores, product_width, monkeypatch):
    monkeypatch.setattr(attention, "PRODUCT_WIDTH", product_width)
    monkeypatch.setattr(attention, "HALF_PRODUCT_WIDTH", product_width)  # of all dtypes but fp32
    bounds = [np.array([0, 5, 6, 47, 90]), np.array([0, 33]), np.array([0, 1, 2, 3, 80])]
    segments = Segments.of(bounds, 90)
    real = (segments.sequence_BT > 0)[..., None, None]
    weight = torch.arange(90.0, dtype=torch.float64)[:, None, None]
    found = []
    for make in (lambda s: lambda q, k, v, scores: plain(q, k, v, bounds, scores), grouped_attention, masked_attention):
        inputs = qkv(3, 90)
        out = make(segments)(*inputs, scores) * real
        found.append([out, *torch.autograd.grad((out * weight).sum(), inputs)])
    for other in found[1:]:
        for mine, expected in zip(other, found[0], strict=True):
            torch.testing.assert_close(mine, expected)


def test_a_long_sequence_leaves_no_score_matrix_for_the_backward_pass():
    """The bytes that autograd keeps for a row of 2,048 tokens, beside those of SDPA itself."""
    width, saved = 2048, []
    for attend in (grouped_attention(Segments.of([[0, width]], width)), sdpa):
        q, k, v = (x.detach().float().requires_grad_() for x in qkv(1, width))
        kept: dict[int, int] = {}

        def keep(t: Tensor, kept: dict[int, int] = kept) -> Tensor:
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
            return t

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            attend(q, k, v, Scores())
        saved.append(sum(kept.values()))
    assert saved[0] <= 1.3 * saved[1]


def sdpa(q: Tensor, k: Tensor, v: Tensor, scores: Scores) -> Tensor:
    moved = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*moved, is_causal=True, enable_gqa=True).transpose(1, 2)


def test_positions_restart_with_each_sequence_and_padding_has_none():
    segments = Segments.of([np.array([0, 2, 5]), np.array([0, 3]), [0, 0]], 6)
    assert segments.positions_BT.tolist() == [[0, 1, 0, 1, 2, 0], [0, 1, 2, 0, 0, 0], [0] * 6]
    assert segments.sequence_BT.tolist() == [[1, 1, 2, 2, 2, 0], [1, 1, 1, 0, 0, 0], [0] * 6]
    assert segments.groups == ((3, 32),), "a sequence without an input position is in no group"


def test_a_batch_of_nothing_but_padding_is_finite():
    segments = Segments.of([[0, 0], [0, 0]], 8)
    for attend in (grouped_attention(segments), masked_attention(segments)):
        assert attend(*qkv(2, 8), Scores()).isfinite().all()


def test_moving_rows_has_the_gradient_of_indexing():
    x = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    source, target = torch.tensor([5, 0, 2]), torch.tensor([1, 3, 0])
    assert torch.autograd.gradcheck(lambda t: move_rows(t, source, target, 4), (x,))
    moved = move_rows(x, source, target, 4)
    assert (moved[2] == 0).all()
    torch.testing.assert_close(moved[target], x[source])


@pytest.mark.parametrize("cuts", [[1] * 12, [5, 4, 3], [12]])
def test_cached_attention_in_pieces_is_causal_attention_at_once(cuts):
    q, k, v = qkv(1, 12)
    expected = masked_attention(Segments.of([np.array([0, 12])], 12))(q, k, v, Scores())
    model = small_model(num_layers=1, num_heads=q.shape[2], num_kv_heads=k.shape[2], head_dim=q.shape[3])
    cache, slot, found = SlotCache(model.double(), 2, 12), Slot(1), []
    for piece in zip(*(x.split(cuts, 1) for x in (q, k, v)), strict=True):
        new = piece[0].shape[1]
        found.append(cache.attention([slot], new)(*piece, Scores()))
        slot.ids += [0] * new
    torch.testing.assert_close(torch.cat(found, 1), expected)
