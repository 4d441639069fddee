"""Rows that bring their token ids: nothing to encode, everything to check."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.stage import Decision


@dataclass(frozen=True, slots=True)
class CheckIds:
    """Checks ids against a vocabulary and label spans against the ids."""

    vocab_size: int
    min_label_tokens: int

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Drop rows whose ids or spans are out of range."""
        reasons: list[str | None] = [None] * batch.num_rows
        details: list[str | None] = [None] * batch.num_rows
        for ids_name, spans_name in (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")):
            if ids_name in batch.schema.names:
                spans = batch.column(spans_name).to_pylist()
                for i, problem in enumerate(self._problems(batch.column(ids_name), spans)):
                    if problem and reasons[i] is None:
                        reasons[i], details[i] = problem
        source = batch.column("segment_source")
        return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()), {"segment_source": source})

    def _problems(self, ids: pa.Array, spans: list[Any]) -> Iterator[tuple[str, str] | None]:
        lengths, flat = pc.list_value_length(ids).to_numpy(zero_copy_only=False), ids.flatten().to_numpy()
        ends = np.cumsum(lengths)
        bad = np.add.accumulate(np.concatenate([[0], (flat < 0) | (flat >= self.vocab_size)]), dtype=np.int64)
        for length, end, row_spans in zip(lengths, ends, spans, strict=True):
            yield self._problem(flat[end - length : end], bool(bad[end] - bad[end - length]), row_spans)

    def _problem(self, ids: npt.NDArray[np.int32], outside: bool, spans: Any) -> tuple[str, str] | None:
        if not len(ids):
            return "empty", "no ids"
        if outside:
            worst = ids.max() if ids.max() >= self.vocab_size else ids.min()
            return "id_out_of_vocabulary", f"id {worst}; the tokenizer's vocabulary has {self.vocab_size}"
        if spans is None:
            return None
        edges = [0, *(e for s in spans for e in (s["start"], s["end"])), len(ids)]
        if edges != sorted(edges):
            return "bad_label_spans", f"label spans are not in order or leave the {len(ids)} ids"
        if sum(s["end"] - max(s["start"], 1) for s in spans) < self.min_label_tokens:
            return "no_labels", f"fewer than {self.min_label_tokens} label tokens"
        return None
