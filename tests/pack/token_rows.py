"""Token rows made up for packing: the ids of a row tell the row and the place."""

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from datakit.data import tokens
from datakit.pack.format import Packed, headers, set_of
from datakit.pack.stage import Pack, PackConfig
from datakit.stage import Made

ROW = st.tuples(st.integers(1, 60), st.lists(st.integers(0, 60), max_size=6, unique=True).map(sorted))
"""(length, edges of label spans)"""
ROWS = st.lists(ROW, min_size=1, max_size=25)
fast = settings(max_examples=25)
FACTS = {"vocab_size": 1000, "pad_id": 0, "eos_id": 2}


def batch_of(rows, labelled=True, first_key=0, rejected=None) -> pa.RecordBatch:
    """Packed of (length, edges of label spans)."""
    count = len(rows)
    schema = tokens(preference=bool(rejected))
    columns = {
        "row_key": pa.array(range(first_key, first_key + count), pa.uint64()),
        "id": [f"r{first_key + i}" for i in range(count)],
        "content_hash": [hash_of(first_key + i) for i in range(count)],
        "source": ["s"] * count,
        "input_ids": [ids_of(first_key + i, n) for i, (n, _) in enumerate(rows)],
        "label_spans": [spans_of(n, e) if labelled else None for n, e in rows],
        "segment_source": ["conversation" if labelled else "text"] * count,
    }
    if rejected:
        columns["rejected_ids"] = [ids_of(first_key + i, n, 500) for i, (n, _) in enumerate(rejected)]
        columns["rejected_label_spans"] = [spans_of(n, e) for n, e in rejected]
    return pa.record_batch([pa.array(columns.get(f.name, [None] * count), f.type) for f in schema], schema=schema)


def hash_of(row: int) -> str:
    return hashlib.blake2b(str(row).encode(), digest_size=16).hexdigest()


def ids_of(row: int, length: int, base: int = 1) -> list[int]:
    return [base + (row * 41 + t) % 499 for t in range(length)]


def spans_of(length: int, edges: list[int]) -> list[dict]:
    edges = [e for e in edges if e <= length]
    return [{"start": a, "end": b} for a, b in zip(edges[::2], edges[1::2], strict=False)]


def pack_rows(out: Path, batches, **config: Any) -> tuple[Made, dict[str, Packed]]:
    """Pack as one part; the ledger must balance. Returns the sets by name too."""
    stage = Pack(PackConfig(**config)).prepare(iter(batches))
    result = stage.run(iter(batches), out, FACTS)
    result = replace(result, facts=stage.joined([result.facts]))
    assert result.rows.balance == 0
    assert result.tokens.balance == 0
    found = [Packed.open(out / h["prefix"]) for name in ("packed", "validation") for h in headers(result.facts, name)]
    return result, {set_of(rows.name): rows for rows in found}


def found_tokens(rows: Packed) -> dict[tuple[int, int, int], tuple[int, bool, int]]:
    """(row key, side, place in its row's tokens) -> (id, is it a target that counts, packed row).

    Each label is the place before a token that counts: none is on padding, or before the first token of a sequence.
    """
    found = {}
    source = iter(rows.sources)
    for row in range(len(rows)):
        ids, bounds, labels = rows.ids_of(row), rows.segments_of(row), rows.labels_of(row)
        assert bounds[0] == 0 and bounds[-1] == len(ids)
        if rows.header.format == "bin2d":
            assert (rows.ids[row, len(ids) :] == rows.header.pad_id).all()
        counting = 0
        for a, b in pairwise(bounds):
            piece = next(source)
            assert (piece["row"], piece["tokens"]) == (row, b - a)
            for t in range(a, b):
                key = (int(piece["row_key"]), row % rows.header.rows_per_unit, int(piece["start"]) + int(t - a))
                assert key not in found
                found[key] = (int(ids[t]), bool(t > a and (labels is None or t - 1 in labels)), row)
                counting += found[key][1]
        assert labels is None or len(labels) == counting
    assert next(source, None) is None
    return found
