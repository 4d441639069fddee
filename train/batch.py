"""A micro-batch, as it travels and as the model takes it.

Shapes: B rows, T positions (the row's bucket), N = B*T flat positions, L labels, S sequences, R runs of labels.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from train.attention import Groups, Segments, repeated
from train.loss import IGNORED
from train.order import Int64


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch. Tensors are int64."""

    ids_BT: Tensor
    segments: Segments
    label_pos_L: Tensor
    """Flat positions into (B, T) whose next token is a target, each at most once."""
    targets_L: Tensor
    """What each must predict; -100 where `label_bucket_sizes` asked for more than there are."""
    labels: int
    """Targets that count; they come first."""
    rows: Int64
    """The packed rows, for messages."""
    real_tokens: int
    """Input positions that are not padding."""

    @property
    def counted(self) -> tuple[Tensor, Tensor]:
        """`label_pos_L` and `targets_L` without the filling."""
        return self.label_pos_L[: self.labels], self.targets_L[: self.labels]

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device."""
        moved = {n: getattr(self, n).to(device) for n in ("ids_BT", "label_pos_L", "targets_L")}
        return replace(self, segments=self.segments.to(device), **moved)


@dataclass(frozen=True, slots=True)
class Packet:
    """A micro-batch as it travels to the device: little more than what is stored."""

    ids_BS: Tensor
    """(B, T + 1), of the stored dtype."""
    sequences_S4: Tensor
    """As `attention.arranged` has them."""
    groups: Groups
    tokens: int
    runs_R2: Tensor | None
    """Flat start and count of runs of labels; of plain text, where they are all but a sequence's last token."""
    label_pos_L: Tensor | None
    """Otherwise the labels' flat positions, the filling last."""
    labels: int
    rows: Int64

    def to(self, device: torch.device | str) -> Batch:
        """The micro-batch, unfolded on the device; from pinned memory nothing waits for the copies."""
        (rows, width), ids_BS = self.ids_BS.shape, self.ids_BS.to(device, non_blocking=True).long()
        pos_L = self._positions(device)
        targets_L = ids_BS[:, 1:].flatten().index_select(0, pos_L)
        targets_L[self.labels :] = IGNORED
        table = self.sequences_S4.to(device, non_blocking=True)
        return Batch(
            ids_BT=ids_BS[:, :-1].contiguous(),
            segments=Segments.unfolded(table, self.groups, self.tokens, rows, width - 1),
            label_pos_L=pos_L, targets_L=targets_L, labels=self.labels, rows=self.rows, real_tokens=self.tokens,
        )  # fmt: skip

    def _positions(self, device: torch.device | str) -> Tensor:
        if self.label_pos_L is not None:
            return self.label_pos_L.to(device, non_blocking=True).long()
        assert self.runs_R2 is not None
        starts, counts = self.runs_R2.to(device, non_blocking=True).unbind(1)
        before = repeated(starts - (counts.cumsum(0) - counts), counts, self.labels)
        return before + torch.arange(self.labels, device=before.device)
