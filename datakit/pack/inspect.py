"""Inspection of packed sets: peek shows a row as text, lint counts wrong labels, unpack restores texts, and `prove`
compares a packed set with the tokens that were packed.

All of them read a set as `Block`s of rows, in any format: lint many rows at a time, peek and the others one.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datakit.data import RECORD_BITS
from datakit.errors import ManifestError
from datakit.manifest import Count, Manifest, check_shards, data_dir, load
from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import Bools, Int32, Int64, Packed, Records, headers

MAX_PIECE = 8
"""Maximum of tokens in a piece; the bytes of one character (at most four) never need more."""
BLOCK_ROWS = 4096
"""Number of packed rows that lint checks at once."""
PIECE = [(name, "<u8") for name in ("key", "side", "start", "end", "number")]
"""A packed sequence: key and side of its row, its first and last token there, and its place among all sequences."""


def headers_of(manifest: Manifest, where: str) -> list[dict[str, Any]]:
    """The header of each part of each set in a pack manifest: training sets by row length, then validation sets.

    Raises:
        ManifestError: it is not the manifest of a pack stage.
    """
    if manifest.stage != "pack" or "packed" not in manifest.facts:
        raise ManifestError(f"{where}: expected the manifest of a pack stage, found {manifest.stage!r}")
    return [*headers(manifest.facts, "packed"), *headers(manifest.facts, "validation")]


def open_all(path: Path) -> tuple[list[Packed], ChatTokenizer]:
    """Every part of every set in a pack manifest, and the tokenizer stored with them.

    Raises:
        ManifestError: it is not the manifest of a pack stage, or names no tokenizer.
        IntegrityError: a file is missing or changed.
        ModelError: the tokenizer cannot be used.
    """
    manifest = load(path)
    folder = data_dir(path, manifest)
    named = headers_of(manifest, str(path))
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda shard: check_shards(folder, [shard]), manifest.of_role("kept")))
    files = manifest.facts.get("tokenizer", {}).get("files")
    if not files:
        raise ManifestError(f"{path}: names no tokenizer files; pack the set again")
    sets = [Packed.open(folder / header["prefix"]) for header in named]
    return sets, ChatTokenizer.load((folder / files[0]).parent)


# ---------------------------------------------------------------------- peek


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The fewest tokens that decode to whole characters: usually one token."""

    text: str
    ids: tuple[int, ...]
    added: bool
    """True for an added token (`<|im_end|>`, `<think>`)."""
    learnt: bool
    """True if the tokens are labels."""


@dataclass(frozen=True, slots=True)
class LabelRun:
    """Consecutive tokens of one sequence that are all labels, or all no labels."""

    learnt: bool
    pieces: tuple[TextPiece, ...]


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """One sequence of a packed row."""

    row_key: int
    """The key of the dataset's row that it comes from."""
    start: int
    """Offset of its first token in the tokens of that row."""
    tokens: int
    labels: int
    """Number of label tokens."""
    runs: tuple[LabelRun, ...]


@dataclass(frozen=True, slots=True)
class PackedRow:
    """A packed row."""

    row: int
    """Index of the row in its set."""
    sequences: tuple[PackedSequence, ...]
    padding: int

    @property
    def tokens(self) -> int:
        """Number of real tokens."""
        return sum(s.tokens for s in self.sequences)

    @property
    def labels(self) -> int:
        """Number of label tokens."""
        return sum(s.labels for s in self.sequences)


def peek(rows: Packed, tokenizer: ChatTokenizer, row: int) -> PackedRow:
    """A packed row, decoded, with its sequences in order.

    Raises:
        IndexError: the set has no such row.
    """
    if not 0 <= row < len(rows):
        raise IndexError(f"row {row} of {len(rows)}")
    block, sequences = rows.block(row, row + 1), []
    for source, start, length in zip(block.sources, block.starts.tolist(), block.lengths.tolist(), strict=True):
        own = slice(start, start + length)
        found = pieces(tokenizer, block.ids[own].tolist(), block.learnt[own].tolist())
        runs = tuple(LabelRun(learnt, tuple(run)) for learnt, run in groupby(found, key=lambda piece: piece.learnt))
        labels = int(block.learnt[own].sum())
        sequences.append(PackedSequence(int(source["row_key"]), int(source["start"]), length, labels, runs))
    padding = rows.header.stride - len(block.ids) if rows.header.padded else 0
    return PackedRow(row, tuple(sequences), padding)


def pieces(tokenizer: ChatTokenizer, ids: list[int], learnt: list[bool]) -> Iterator[TextPiece]:
    """Decode ids as pieces of whole characters. A piece ends where labels begin or end, even if this splits a
    character.

    A piece is decoded together with the previous piece, because some decoders change the first token of a text.
    """
    known = frozenset(tokenizer.added.values())
    before, own = list[int](), list[int]()
    for at, token in enumerate(ids, 1):
        own.append(token)
        added = token in known
        text = tokenizer.token(token) if added else tokenizer.decode(before + own)[len(tokenizer.decode(before)) :]
        text = text or ""
        torn = text.endswith("\ufffd") and len(own) < MAX_PIECE  # more tokens may complete the character
        last = at == len(ids) or ids[at] in known or learnt[at] != learnt[at - 1]
        if added or last or not torn:
            yield TextPiece(text, tuple(own), added, learnt[at - 1])
            before, own = own, []


# ---------------------------------------------------------------------- lint


@dataclass(slots=True)
class LintCounts:
    """What lint counted in the sequences of one source."""

    sequences: int = 0
    """Packed sequences: a row of the dataset, a piece of a row, or one side of a pair."""
    tokens: int = 0
    labels: int = 0
    rows_without_labels: int = 0
    """Rows of the dataset (or sides of a pair) without any label token."""
    stop_not_labelled: int = 0
    """Labelled runs that end before the end of their sequence, and not with a special token."""
    labels_on_padding: int = 0
    labels_across_sequences: int = 0
    """Labels on the first token of a sequence, which would be predicted from another sequence."""
    doubled_bos: int = 0
    ids_outside_vocabulary: int = 0
    truncated_answers: int = 0
    """Rows with a labelled run that is cut off: their packed tokens end inside the run, without a special token."""

    @property
    def label_share(self) -> float:
        """Share of the real tokens that are labels, rounded to four digits."""
        return round(self.labels / self.tokens, 4) if self.tokens else 0.0

    def to_json(self) -> dict[str, Any]:
        """Every count, and `label_share`."""
        return asdict(self) | {"label_share": self.label_share}


WRONG = (
    "rows_without_labels",
    "stop_not_labelled",
    "labels_on_padding",
    "labels_across_sequences",
    "doubled_bos",
    "ids_outside_vocabulary",
)
"""The fields of `LintCounts` that are 0 in a correct set."""


def lint_rows(sets: Sequence[Packed], tokenizer: ChatTokenizer) -> dict[int, LintCounts]:
    """Count problems by input file: index of the file (the high bits of a row key) -> its `LintCounts`."""
    special = np.zeros(max(tokenizer.vocab_size, 1), bool)
    special[[i for i in (*tokenizer.special.values(), tokenizer.eos_id) if i is not None]] = True
    blocks = [
        _lint_block(rows, first, special, tokenizer.bos_id)
        for rows in sets
        for first in range(0, len(rows), BLOCK_ROWS)
    ]
    if not blocks:
        return {}
    pieces, firsts = by_row(sets)
    counts = {name: np.concatenate([block[name] for block in blocks])[pieces["number"]] for name in blocks[0]}
    # Two counts need all pieces of a row, and are its first piece's: rows without labels, and truncated answers.
    goes_on = np.append(pieces["start"][1:] <= pieces["end"][:-1], False)
    goes_on[firsts[1:] - 1] = False
    for name, of_pieces, is_problem in (
        ("rows_without_labels", counts.pop("learnt"), np.equal),
        ("truncated_answers", counts.pop("unfinished") * ~goes_on, np.greater),
    ):
        counts[name] = np.zeros(len(pieces), np.int64)
        counts[name][firsts] = is_problem(np.add.reduceat(of_pieces, firsts), 0)
    files = pieces["key"] >> np.uint64(RECORD_BITS)
    return {
        file: LintCounts(**{name: int(values[files == file].sum()) for name, values in counts.items()})
        for file in np.unique(files).tolist()
    }


def _lint_block(rows: Packed, first: int, special: Bools, bos: int | None) -> dict[str, Int64]:
    """Count the problems of each sequence in `BLOCK_ROWS` rows: int64 (sequences,) by field of `LintCounts`, besides
    `learnt`, its label tokens (of plain text all), and `unfinished`, 1 if it ends inside a labelled run, without a
    special token."""
    block = rows.block(first, first + BLOCK_ROWS)
    ids, learnt, start = block.ids, block.learnt, block.starts

    def sums(flags: Bools) -> Int64:
        """The number of set flags in each sequence."""
        counts: Int64 = np.add.reduceat(flags, start, dtype=np.int64)
        return counts

    on_padding, across = np.zeros(len(start), np.int64), learnt[start]
    if rows.label_index is not None:  # what the rows have and their tokens do not; counted for a row's last sequence
        stored = rows.label_index[first : first + BLOCK_ROWS, 1].astype(np.int64)
        in_rows = np.bincount(np.arange(len(stored)).repeat(block.counts), sums(learnt), len(stored))
        np.add.at(on_padding, np.cumsum(block.counts) - 1, stored - in_rows.astype(np.int64))
    learnt[start] = False
    known = (ids >= 0) & (ids < len(special))
    is_special = known & special[np.where(known, ids, 0)]
    goes_on = learnt & np.append(learnt[1:], False)[: len(learnt)]
    unstopped = learnt & ~goes_on & ~is_special
    unfinished = unstopped[start + block.lengths - 1]
    second = np.minimum(start + 1, len(ids) - 1)
    return {
        "sequences": np.ones(len(start), np.int64),
        "tokens": block.lengths,
        "labels": sums(learnt),
        "stop_not_labelled": sums(unstopped) - unfinished,
        "labels_on_padding": on_padding,
        "labels_across_sequences": across,
        "doubled_bos": (block.lengths > 1) & (ids[start] == bos) & (ids[second] == bos),
        "ids_outside_vocabulary": sums(~known),
        "learnt": sums(learnt) if rows.header.labelled else block.lengths,
        "unfinished": unfinished,
    }


def training_tables(rows: Packed) -> Iterator[pa.Table]:
    """The rows of a set as tables, `BLOCK_ROWS` at a time."""
    for first in range(0, len(rows), BLOCK_ROWS):
        yield rows.block(first, first + BLOCK_ROWS).table()


# ---------------------------------------------------------------------- from packed rows back to the dataset's


@dataclass(frozen=True, slots=True)
class Fragment:
    """A packed sequence of one row of the dataset."""

    start: int
    """Offset of its first token in the tokens of the row."""
    ids: Int32
    learnt: Bools
    """True for label tokens."""
    head: Int32
    """Repeated tokens that stand before it in the packed sequence."""

    @property
    def end(self) -> int:
        """Offset behind its last token."""
        return self.start + len(self.ids)


def by_row(sets: Sequence[Packed]) -> tuple[Records, Int64]:
    """The packed sequences of all sets by row, side and place; `number` counts them through all sets. And the first one
    of each row, or side of a pair. Memory: 40 bytes per sequence."""
    parts, number = [np.empty(0, PIECE)], 0
    for rows in sets:
        own, sources = np.empty(len(rows.sources), PIECE), rows.sources
        own["key"], own["side"] = sources["row_key"], sources["row"] % rows.header.rows_per_unit
        own["start"], own["end"] = sources["start"], sources["start"] + sources["tokens"] - sources["head"]
        own["number"] = np.arange(number, number + len(own))
        number += len(own)
        parts.append(own)
    pieces = np.concatenate(parts)
    pieces.sort(order=("key", "side", "start"))
    return pieces, np.unique(pieces[["key", "side"]], return_index=True)[1]


def packed_rows(sets: Sequence[Packed]) -> Iterator[tuple[int, int, list[Fragment]]]:
    """Every row that has packed tokens: key, side (1: the rejected side of a pair), and its sequences in order.

    Sorted by key and side.
    """
    before = np.cumsum([0] + [len(rows.sources) for rows in sets])

    def fragment(number: int) -> Fragment:
        of_set = int(np.searchsorted(before, number, "right")) - 1
        rows = sets[of_set]
        source = rows.sources[number - before[of_set]]
        row, segment, head = (int(source[name]) for name in ("row", "segment", "head"))
        a, b = rows.segments_of(row)[segment : segment + 2].tolist()  # a `Block` of one row takes five times as long
        ids, labels = np.asarray(rows.ids_of(row)[a:b], np.int32), rows.labels_of(row)
        targets = np.arange(a + 1, b) if labels is None else np.asarray(labels) + 1
        learnt = np.zeros(len(ids), bool)
        learnt[targets[(targets >= a) & (targets < b)] - a] = True
        return Fragment(int(source["start"]), ids[head:], learnt[head:], ids[:head])

    for (key, side), own in groupby(by_row(sets)[0].tolist(), key=itemgetter(0, 1)):
        yield key, side, [fragment(piece[4]) for piece in own]


def texts(sets: Sequence[Packed], tokenizer: ChatTokenizer) -> Iterator[dict[str, Any]]:
    """Each row as text: `{"row_key", "side", "text", "learnt", "tokens", "missing"}`.

    `learnt` lists the labelled runs as text; it is None for plain text. In plain text, the bos and eos token around the
    document are left out, so the text is that of the document. `missing` is the number of tokens before and between the
    packed sequences of the row; the set does not know of tokens that were cut off after the last one.
    """
    plain = not any(s.header.labelled for s in sets)
    for key, side, fragments in packed_rows(sets):
        ids = np.concatenate([fragment.ids for fragment in fragments]).tolist()
        shown = ids[:-1] if plain and ids[-1:] == [tokenizer.eos_id] else ids
        shown = shown[1:] if plain and shown[:1] == [tokenizer.bos_id] else shown
        both = (zip(fragment.learnt.tolist(), fragment.ids.tolist(), strict=True) for fragment in fragments)
        runs = [[i for _, i in run] for own in both for learnt, run in groupby(own, itemgetter(0)) if learnt]
        yield {
            "row_key": key,
            "side": side,
            "text": tokenizer.decode(shown),
            "learnt": None if plain else [tokenizer.decode(run) for run in runs],
            "tokens": len(ids),
            "missing": fragments[-1].end - len(ids),
        }


def prove(sets: Sequence[Packed], batches: Iterable[pa.RecordBatch], rows: Count, tokens: Count) -> Iterator[str]:
    """Compare the packed tokens with the rows of the tokenized dataset, in order; yields a line for each difference.

    Every packed token must have the id and the label that it has in its row, and be packed once. The number of missing
    tokens must be what the ledger counts as cut or dropped.
    """
    num_rows = num_kept = num_tokens = num_packed = 0
    packed, last = packed_rows(sets), -1
    ahead = next(packed, None)
    for key, side, row_id, ids, learnt in (given for batch in batches for given in _given(batch)):
        num_rows += side == 0
        num_tokens += len(ids)
        if ahead is None or ahead[:2] != (key, side):
            continue
        num_kept += key != last
        at, last = 0, key
        for fragment in ahead[2]:
            if problem := _problem(ids, learnt, fragment, at):
                yield f"row {row_id}: tokens {fragment.start} to {fragment.end} {problem}"
            else:
                num_packed += len(fragment.ids)
            at = max(at, fragment.end)
        ahead = next(packed, None)
    if ahead is not None:
        yield f"row key {ahead[0]}: is packed, but the tokenized set has no row of that key at that place"
    for name, expected, counted in (
        ("rows in", rows.into, num_rows),
        ("rows dropped", sum(rows.dropped.values()), num_rows - num_kept),
        ("tokens in", tokens.into, num_tokens),
        ("tokens kept", tokens.kept, num_packed),
        ("tokens dropped or cut", sum(tokens.dropped.values()), num_tokens - num_packed),
    ):
        if expected != counted:
            yield f"{name}: the ledger says {expected:,}, a comparison token by token finds {counted:,}"


def _given(batch: pa.RecordBatch) -> Iterator[tuple[int, int, str, Int32, Bools]]:
    """Each row of the tokenized dataset, side by side: key, side, id, and the token ids and labels. Nothing here is
    shared with the code that packs."""
    names = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")]
    columns = [(batch.column(a), batch.column(b).to_pylist()) for a, b in names if a in batch.schema.names]
    keys = zip(batch.column("row_key").to_pylist(), batch.column("id").to_pylist(), strict=True)
    for at, (key, row_id) in enumerate(keys):
        for side, (ids, spans) in enumerate(columns):
            tokens = np.empty(0, np.int32) if ids[at].values is None else ids[at].values.to_numpy()
            learnt = np.full(len(tokens), spans[at] is None)
            for span in spans[at] or ():
                learnt[span["start"] : span["end"]] = True
            yield key, side, row_id, tokens, learnt


def _problem(ids: Int32, learnt: Bools, fragment: Fragment, at: int) -> str:
    """What is wrong with a packed sequence of a row, whose earlier ones end at token `at`; "" if nothing is."""
    start, end, head = fragment.start, fragment.end, fragment.head
    if start < at:
        return "are packed twice"
    if end > len(ids) or not np.array_equal(ids[start:end], fragment.ids):
        return "are packed with other ids"
    wanted = learnt[start:end].copy()
    wanted[:1] = False  # the first token of a sequence, or behind a repeated prompt, is never a target
    if not np.array_equal(wanted, fragment.learnt):
        return "are packed with other labels"
    # A head is the beginning of its row, and then earlier tokens of the row in one run.
    shared = int(np.argmin(np.append(head == ids[: len(head)], False)))
    rest = head[shared:]
    again = np.flatnonzero(ids[:start] == rest[0]).tolist() if len(rest) else []
    if len(rest) and not any(np.array_equal(ids[a : a + len(rest)], rest) for a in again):
        return f"follow {len(head)} tokens that are not in the row before them"
    return ""
