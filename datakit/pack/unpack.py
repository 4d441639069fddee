"""A packed set back into the tokens of its rows, and the proof that they are all there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.manifest import Count
from datakit.pack.chat import ChatTokenizer
from datakit.pack.peek import learnt_of
from datakit.pack.rows import Rows

Int32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of one row's tokens, where a set holds it."""

    start: int
    """Its first token within the row's tokens."""
    ids: Int32
    learnt: Bools
    """Whether each token is a target; the first one never is."""


class Index:
    """Where each row's tokens are, over all sets of a pack manifest: 24 bytes a sequence in memory."""

    def __init__(self, sets: Sequence[Rows]) -> None:
        self.sets = sets
        which = [np.full(len(s.sources), i, np.int64) for i, s in enumerate(sets)]
        at = [np.arange(len(s.sources)) for s in sets]
        keys, side, start = (
            [np.asarray(s.sources[name]).astype(np.uint64) for s in sets] for name in ("row_key", "row", "start")
        )
        sides = [r % np.uint64(s.header.rows_per_unit) for r, s in zip(side, sets, strict=True)]
        empty = [np.empty(0, np.uint64)]
        joined = [np.concatenate(a) for a in (keys + empty, sides + empty, start + empty)]
        order = np.lexsort(joined[::-1])
        self.keys, self.side = joined[0][order], joined[1][order]
        self._which, self._at = (np.concatenate([*a, np.empty(0, np.int64)])[order] for a in (which, at))

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Iterator[tuple[int, int, list[Piece]]]:
        """Every row that has tokens: key, side (1 is a pair's rejected one) and pieces in order; by key and side."""
        new = np.append(True, (self.keys[1:] != self.keys[:-1]) | (self.side[1:] != self.side[:-1]))
        edges = np.append(np.flatnonzero(new), len(self.keys)).tolist() if len(self.keys) else [0]
        for a, b in pairwise(edges):
            yield int(self.keys[a]), int(self.side[a]), [self._piece(i) for i in range(a, b)]

    def _piece(self, i: int) -> Piece:
        rows = self.sets[self._which[i]]
        source = rows.sources[self._at[i]]
        row, segment = int(source["row"]), int(source["segment"])
        bounds = rows.segments_of(row)
        a, b = int(bounds[segment]), int(bounds[segment + 1])
        return Piece(int(source["start"]), np.asarray(rows.ids_of(row)[a:b], np.int32), learnt_of(rows, row)[a:b])


def texts(index: Index, tokenizer: ChatTokenizer) -> Iterator[dict[str, Any]]:
    """Each row as text: `{"row_key", "side", "text", "learnt", "tokens", "missing"}`.

    `learnt` lists the stretches that the model must produce, null for plain text; of plain text the end token that
    tokenizing added is left out, so that the text is the document's. `missing` counts the tokens that lie before or
    between the pieces; what was cut off behind the last one cannot be told from the set.
    """
    plain = not any(s.header.labelled for s in index.sets)
    for key, side, pieces in index.rows():
        ids = np.concatenate([p.ids for p in pieces])
        ends = pieces[-1].start + len(pieces[-1].ids)
        shown = ids[:-1] if plain and len(ids) and ids[-1] == tokenizer.eos_id else ids
        shown = shown[1:] if plain and len(shown) and shown[0] == tokenizer.bos_id else shown
        yield {
            "row_key": key,
            "side": side,
            "text": tokenizer.decode(shown.tolist()),
            "learnt": None if plain else [tokenizer.decode(s) for p in pieces for s in _stretches(p)],
            "tokens": len(ids),
            "missing": ends - len(ids),
        }


def _stretches(piece: Piece) -> Iterator[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], piece.learnt, [False]]).astype(np.int8)))
    for a, b in edges.reshape(-1, 2):
        yield piece.ids[a:b].tolist()


@dataclass(slots=True)
class Proof:
    """What a comparison of a packed set with the tokens that went in found."""

    rows: int = 0
    """Rows of the tokenized set."""
    tokens: int = 0
    found: int = 0
    """Tokens of theirs that are packed, under their id, with their label."""
    dropped_rows: int = 0
    """Rows without any packed token."""
    dropped_tokens: int = 0
    cut: int = 0
    """Tokens of kept rows that are not packed."""


def prove(index: Index, batches: Iterable[pa.RecordBatch], rows: Count, tokens: Count) -> Iterator[str]:
    """Compare the packed tokens with the rows of the tokenized set, in order; yields what differs.

    Every packed token must be its row's, with its label, and packed once; what is missing must be what the ledger says
    was cut or dropped.
    """
    proof, packed = Proof(), index.rows()
    ahead = next(packed, None)
    for batch in batches:
        for key, row_id, sides in _given(batch):
            proof.rows += 1
            pieces: list[list[Piece]] = [[] for _ in sides]
            while ahead is not None and ahead[0] == key and ahead[1] < len(sides):
                pieces[ahead[1]] = ahead[2]
                ahead = next(packed, None)
            for (ids, learnt), own in zip(sides, pieces, strict=True):
                yield from (f"row {row_id}: {problem}" for problem in _compare(ids, learnt, own, proof))
            if not any(pieces):
                proof.dropped_rows += 1
                proof.dropped_tokens += sum(len(ids) for ids, _ in sides)
    if ahead is not None:
        yield f"row key {ahead[0]}: is packed, and no row of the tokenized set has it, or not in that place"
    yield from _accounts(proof, rows, tokens)


def _accounts(proof: Proof, rows: Count, tokens: Count) -> Iterator[str]:
    lost = sum(tokens.dropped.values())
    for name, expected, found in (
        ("rows in", rows.into, proof.rows),
        ("rows dropped", sum(rows.dropped.values()), proof.dropped_rows),
        ("tokens in", tokens.into, proof.tokens),
        ("tokens kept", tokens.kept, proof.found),
        ("tokens dropped or cut", lost, proof.dropped_tokens + proof.cut),
    ):
        if expected != found:
            yield f"{name}: the ledger says {expected:,}, a comparison token by token finds {found:,}"


def _given(batch: pa.RecordBatch) -> Iterator[tuple[int, str, list[tuple[Int32, Bools | None]]]]:
    """Each row of the tokenized set: key, id, and the ids and labels of its sides."""
    names = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")]
    sides = [_columns(batch, *n) for n in names if n[0] in batch.schema.names]
    keys, ids = batch.column("row_key").to_pylist(), batch.column("id").to_pylist()
    for key, row_id, *given in zip(keys, ids, *sides, strict=True):
        yield key, row_id, given


def _columns(batch: pa.RecordBatch, ids: str, spans: str) -> Iterator[tuple[Int32, Bools | None]]:
    for i, row_spans in enumerate(batch.column(spans).to_pylist()):
        values = batch.column(ids)[i].values
        tokens = np.empty(0, np.int32) if values is None else values.to_numpy()
        learnt = None if row_spans is None else np.zeros(len(tokens), bool)
        for span in row_spans or ():
            assert learnt is not None
            learnt[span["start"] : span["end"]] = True
        yield tokens, learnt


def _compare(ids: Int32, learnt: Bools | None, pieces: list[Piece], proof: Proof) -> Iterator[str]:
    """Check a row's pieces against its tokens."""
    at = found = 0
    for piece in pieces:
        end = piece.start + len(piece.ids)
        if piece.start < at:
            yield f"tokens {piece.start} to {min(at, end)} are packed twice"
        elif end > len(ids) or not np.array_equal(ids[piece.start : end], piece.ids):
            yield f"tokens {piece.start} to {end} are packed under other ids"
        elif not np.array_equal(_targets(learnt, piece), piece.learnt):
            yield f"tokens {piece.start} to {end} have other labels than they were given"
        else:
            found += len(piece.ids)
        at = max(at, end)
    proof.tokens += len(ids)
    proof.found += found
    proof.cut += len(ids) - found if pieces else 0


def _targets(learnt: Bools | None, piece: Piece) -> Bools:
    end = piece.start + len(piece.ids)
    wanted = np.ones(len(piece.ids), bool) if learnt is None else learnt[piece.start : end].copy()
    wanted[:1] = False  # the first token of a sequence is given, never a target
    return wanted
