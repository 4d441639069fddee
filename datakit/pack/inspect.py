"""Inspection of packed sets: peek shows a row as text, lint counts wrong labels, unpack restores texts, and `prove`
compares a packed set with the tokens that were packed.

All of them read a set through `PackedSet`, in any format: rows of real tokens over memory-mapped arrays.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.data import RECORD_BITS
from datakit.errors import InputError, ManifestError
from datakit.manifest import Count, Manifest, check_shards, data_dir, load
from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import IDS, IGNORED, Header, Packed, map_file, total, training_table
from datakit.pack.labels import RowError, label, labelled_ids

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_PIECE = 8
"""Maximum of tokens in a piece; the bytes of one character (at most four) never need more."""
BLOCK_ROWS = 4096
"""Number of packed rows that lint checks at once."""


@dataclass(frozen=True, slots=True)
class PackedSet:
    """The rows of one packed set, over flat arrays (memory-mapped, if the format allows).

    The index arrays have shape (rows, 2): offset and count, in elements.
    """

    name: str
    """The last part of the set's prefix: `train`, `validation`, `train-256`."""
    header: Header
    ids: npt.NDArray[Any]
    """int32 or uint16."""
    id_index: Int64
    """The real tokens of each row, without padding."""
    segments: npt.NDArray[np.int32]
    segment_index: Int64
    labels: npt.NDArray[np.int32] | None
    """Label positions, as in bin2d; None for plain text."""
    label_index: Int64 | None
    sources: npt.NDArray[Any]
    """SOURCE_DTYPE records in order of (row, segment)."""

    def __len__(self) -> int:
        return len(self.id_index)

    def ids_of(self, row: int) -> npt.NDArray[Any]:
        """The real tokens of a row."""
        return _part(self.ids, self.id_index, row)

    def segments_of(self, row: int) -> npt.NDArray[np.int32]:
        """Boundaries of a row's sequences: the first is 0, the last is the number of real tokens."""
        return _part(self.segments, self.segment_index, row)

    def labels_of(self, row: int) -> npt.NDArray[np.int32] | None:
        """Label positions of a row, ascending; None for plain text."""
        if self.labels is None or self.label_index is None:
            return None
        return _part(self.labels, self.label_index, row)

    def padding_of(self, row: int) -> int:
        """Number of padding tokens in a row; 0 in formats without padding."""
        return self.header.stride - int(self.id_index[row, 1]) if self.header.format == "bin2d" else 0


def _part(values: npt.NDArray[Any], index: Int64, row: int) -> npt.NDArray[Any]:
    offset, count = map(int, index[row])
    return values[offset : offset + count]


def headers(manifest: Manifest, where: str) -> Iterator[dict[str, Any]]:
    """The header of each set in a pack manifest: training sets by row length, then validation sets by row length.

    Raises:
        ManifestError: it is not the manifest of a pack stage.
    """
    if manifest.stage != "pack" or "packed" not in manifest.facts:
        raise ManifestError(f"{where}: expected the manifest of a pack stage, found {manifest.stage!r}")
    for name in ("packed", "validation"):
        packed = manifest.facts.get(name)
        if packed is not None:
            yield from packed.get("buckets", [packed])


def open_rows(folder: Path, header: dict[str, Any]) -> PackedSet:
    """Open the set of a header in a manifest; `folder` is the manifest's data folder.

    Raises:
        InputError: a file is missing, or its size does not match the header.
    """
    prefix = folder / header["prefix"]
    if header["format"] == "bin2d":
        return _bin2d(prefix)
    if header["format"] not in IDS:
        raise InputError(f"{prefix}: expected a format of {', '.join(IDS)}, found {header['format']!r}")
    known = Header.from_json(header, f"{prefix}.meta.json", header["format"])
    return _parquet(prefix, header, known) if known.format == "parquet" else _flat(prefix, header, known)


def _bin2d(prefix: Path) -> PackedSet:
    packed = Packed.open(prefix)
    index = np.asarray(packed.segment_index).astype(np.int64)
    lengths = np.asarray(packed.segments)[index.sum(1) - 1].astype(np.int64) if len(index) else np.empty(0, np.int64)
    starts = np.arange(len(index)) * packed.header.stride
    return PackedSet(
        name=prefix.name,
        header=packed.header,
        ids=packed.ids.reshape(-1),
        id_index=np.stack([starts, lengths], axis=1),
        segments=packed.segments,
        segment_index=index,
        labels=packed.labels,
        label_index=None if packed.label_index is None else np.asarray(packed.label_index).astype(np.int64),
        sources=packed.sources,
    )


def _flat(prefix: Path, meta: dict[str, Any], header: Header) -> PackedSet:
    """Open a set in format bin or megatron: the ids are flat, the other files are the same as in bin2d."""
    segments, segment_index = _ragged(prefix.parent, meta["segments"], header.num_samples)
    labels, label_index = _ragged(prefix.parent, meta["labels"], header.num_samples) if header.labelled else (None,) * 2
    lengths = np.asarray(segments[segment_index.sum(1) - 1]).astype(np.int64)
    id_index = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
    ids = map_file(prefix.parent / meta["ids"]["bin"], header.dtype, (int(lengths.sum()),))
    sources = np.load(prefix.parent / meta["sources"], mmap_mode="r", allow_pickle=False)
    return PackedSet(prefix.name, header, ids, id_index, segments, segment_index, labels, label_index, sources)


def _ragged(folder: Path, files: dict[str, str], rows: int) -> tuple[npt.NDArray[np.int32], Int64]:
    index = map_file(folder / files["idx"], "<u8", (rows, 2))
    return map_file(folder / files["bin"], "<i4", (total(index),)), np.asarray(index).astype(np.int64)


def _parquet(prefix: Path, meta: dict[str, Any], header: Header) -> PackedSet:
    """Open a set in format parquet; the table is loaded into memory."""
    file = prefix.parent / meta["ids"]["parquet"]
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as e:
        raise InputError(f"{file}: cannot read the packed table ({e}); pack the set again") from None
    ids, targets, lengths = (table.column(c).combine_chunks() for c in ("input_ids", "labels", "seq_lens"))
    id_index, flat = _index(pc.list_value_length(ids).to_numpy()), ids.flatten().to_numpy()
    counts = pc.list_value_length(lengths).to_numpy()
    segment_index = _index(counts + 1)
    ends = np.cumsum(lengths.flatten().to_numpy()) - np.repeat(id_index[:, 0], counts)
    segments = np.insert(ends, np.cumsum(counts) - counts, 0).astype(np.int32)
    labels = label_index = None
    if header.labelled:
        learnt = targets.flatten().to_numpy() != IGNORED
        row = np.repeat(np.arange(len(id_index)), id_index[:, 1])[learnt]
        labels = (np.flatnonzero(learnt) - id_index[row, 0] - 1).astype(np.int32)
        label_index = _index(np.bincount(row, minlength=len(id_index)))
    sources = np.load(prefix.parent / meta["sources"], mmap_mode="r", allow_pickle=False)
    return PackedSet(prefix.name, header, flat, id_index, segments, segment_index, labels, label_index, sources)


def _index(counts: npt.NDArray[Any]) -> Int64:
    lengths = counts.astype(np.int64)
    return np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)


def open_all(path: Path) -> tuple[list[PackedSet], ChatTokenizer]:
    """Every set in a pack manifest, and the tokenizer stored with them.

    Raises:
        ManifestError: it is not the manifest of a pack stage, or names no tokenizer.
        IntegrityError: a file is missing or changed.
        ModelError: the tokenizer cannot be used.
    """
    manifest = load(path)
    folder = data_dir(path, manifest)
    named = list(headers(manifest, str(path)))
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda shard: check_shards(folder, [shard]), manifest.of_role("kept")))
    sets = [open_rows(folder, header) for header in named]
    files = manifest.facts.get("tokenizer", {}).get("files")
    if not files:
        raise ManifestError(f"{path}: names no tokenizer files; pack the set again")
    return sets, ChatTokenizer.load((folder / files[0]).parent)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The fewest tokens that decode to whole characters: usually one token."""

    text: str
    ids: tuple[int, ...]
    added: bool
    """True for an added token (`<|im_end|>`, `<think>`)."""


@dataclass(frozen=True, slots=True)
class LabelRun:
    """Consecutive tokens of one sequence that are all labels, or all no labels."""

    segment: int
    """Index of the sequence in its packed row."""
    learnt: bool
    """True if the tokens are labels."""
    tokens: int
    pieces: tuple[TextPiece, ...]

    @property
    def text(self) -> str:
        """The tokens as text."""
        return "".join(p.text for p in self.pieces)


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


def peek(rows: PackedSet, tokenizer: ChatTokenizer, row: int) -> PackedRow:
    """A packed row, decoded, with its sequences in order.

    Raises:
        IndexError: the set has no such row.
    """
    if not 0 <= row < len(rows):
        raise IndexError(f"row {row} of {len(rows)}")
    ids, bounds, learnt = rows.ids_of(row), rows.segments_of(row), learnt_of(rows, row)
    first = int(np.searchsorted(rows.sources["row"], row))
    sources = rows.sources[first : first + len(bounds) - 1]
    sequences = [
        PackedSequence(
            int(source["row_key"]), int(source["start"]), int(b - a), int(learnt[a:b].sum()),
            tuple(_runs(tokenizer, i, ids[a:b], learnt[a:b])),
        )
        for i, (source, (a, b)) in enumerate(zip(sources, pairwise(bounds.tolist()), strict=True))
    ]  # fmt: skip
    return PackedRow(row, tuple(sequences), rows.padding_of(row))


def learnt_of(rows: PackedSet, row: int) -> npt.NDArray[np.bool_]:
    """Which real tokens of a row are labels, bool (tokens,)."""
    bounds, labels = rows.segments_of(row), rows.labels_of(row)
    learnt = np.full(int(bounds[-1]), labels is None)
    if labels is not None:
        learnt[labels + 1] = True
    learnt[bounds[:-1]] = False  # the first token of a sequence is never a target
    return learnt


def _runs(
    tokenizer: ChatTokenizer, segment: int, ids: npt.NDArray[np.int32], learnt: npt.NDArray[np.bool_]
) -> list[LabelRun]:
    changes = (np.flatnonzero(np.diff(learnt.astype(np.int8))) + 1).tolist()
    edges = [0, *changes, len(ids)]
    found = iter(pieces(tokenizer, ids.tolist(), frozenset(edges)))
    runs, at = [], 0
    for a, b in pairwise(edges):
        own = []
        while at < b:
            own.append(next(found))
            at += len(own[-1].ids)
        runs.append(LabelRun(segment, bool(learnt[a]), b - a, tuple(own)))
    return runs


def pieces(tokenizer: ChatTokenizer, ids: list[int], edges: frozenset[int] = frozenset()) -> list[TextPiece]:
    """Decode ids as pieces of whole characters. A piece ends at each of the `edges` (offsets in `ids`), even if this
    splits a character.

    A piece is decoded together with the previous piece, because some decoders change the first token of a text.
    """
    known = tokenizer.added_ids
    made: list[TextPiece] = []
    before: list[int] = []
    own: list[int] = []
    for at, token in enumerate(ids, 1):
        own.append(token)
        added = token in known
        text = (tokenizer.token(token) or "") if added else _continued(tokenizer, before, own)
        torn = text.endswith("\ufffd") and at < len(ids) and ids[at] not in known and len(own) < MAX_PIECE
        if added or not torn or at in edges:
            made.append(TextPiece(text, tuple(own), added))
            before, own = own, []
    return made


def _continued(tokenizer: ChatTokenizer, before: list[int], own: list[int]) -> str:
    return tokenizer.decode(before + own)[len(tokenizer.decode(before)) :]


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
    special_in_content: int = 0
    """Special tokens inside a labelled run, before its last token, that the template does not write there itself."""

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


@dataclass(slots=True)
class _Pieces:
    """All pieces of a set, for the counts that need all pieces of a row. One entry per piece."""

    unit: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    """Key of the row."""
    side: list[Int64] = field(default_factory=list)
    start: list[Int64] = field(default_factory=list)
    end: list[Int64] = field(default_factory=list)
    labels: list[Int64] = field(default_factory=list)
    open_end: list[Bools] = field(default_factory=list)
    """True if the last token is a label and no special token."""


def lint_rows(sets: Sequence[PackedSet], tokenizer: ChatTokenizer) -> dict[int, LintCounts]:
    """Count problems by input file: index of the file (the high bits of a row key) -> its `LintCounts`."""
    special = np.zeros(max(tokenizer.vocab_size, 1), bool)
    special[[i for i in (*tokenizer.special.values(), tokenizer.eos_id) if i is not None]] = True
    strange = special.copy()
    strange[sorted(_written_in_answers(tokenizer))] = False
    found: dict[int, LintCounts] = {}
    pieces = _Pieces()
    for rows in sets:
        for block in _blocks(rows):
            labels, open_end = _lint_block(block, special, strange, tokenizer.bos_id, found)
            _collect(pieces, block, labels if rows.header.labelled else block.end - block.start, open_end)
    if pieces.unit:
        _judge_rows(pieces, found)
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """Some packed rows: their real tokens, flat, and one entry per sequence."""

    ids: npt.NDArray[Any]
    learnt: Bools
    start: Int64
    end: Int64
    keys: npt.NDArray[np.uint64]
    offset: Int64
    """Offset of a sequence's first token in the tokens of its row."""
    side: Int64
    """1 for the rejected side of a pair; else 0."""
    on_padding: Int64
    """Number of labels on padding, counted for the last sequence of their packed row."""
    across: Int64
    """1 if the first token of a sequence is labelled; else 0."""


def _blocks(rows: PackedSet) -> Iterator[_Block]:
    for first in range(0, len(rows), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(rows))
        a, b = np.searchsorted(rows.sources["row"], [first, last])
        yield _block(rows, first, last, rows.sources[a:b])


def _block(rows: PackedSet, first: int, last: int, sources: npt.NDArray[Any]) -> _Block:
    length = rows.id_index[first:last, 1]
    base = np.cumsum(length) - length
    which = sources["row"].astype(np.int64) - first
    bounds, of_bound = _gathered(rows.segments, rows.segment_index[first:last])
    first_of_row = np.append(True, of_bound[1:] != of_bound[:-1])
    last_of_row = np.append(of_bound[1:] != of_bound[:-1], True)
    start, end = (bounds + base[of_bound])[~last_of_row], (bounds + base[of_bound])[~first_of_row]
    ids, _ = _gathered(rows.ids, rows.id_index[first:last])
    learnt, on_padding, across = np.ones(len(ids), bool), np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    if rows.labels is not None and rows.label_index is not None:
        at, of_label = _gathered(rows.labels, rows.label_index[first:last])
        inside = (at >= 0) & (at + 1 < length[of_label])
        final = np.flatnonzero(np.append(which[1:] != which[:-1], True))
        np.add.at(on_padding, final[of_label[~inside]], 1)
        target = (at + 1 + base[of_label])[inside]
        learnt = np.zeros(len(ids), bool)
        learnt[target] = True
        across = learnt[start].astype(np.int64)
    learnt[start] = False
    side = (sources["row"] % rows.header.rows_per_unit).astype(np.int64)
    return _Block(ids, learnt, start, end, sources["row_key"],
                  sources["start"].astype(np.int64) - sources["head"], side,
                  on_padding, across)  # fmt: skip


def training_tables(rows: PackedSet) -> Iterator[pa.Table]:
    """The rows of a set as tables with the columns of format parquet, `BLOCK_ROWS` at a time, whatever its format."""
    for first in range(0, len(rows), BLOCK_ROWS):
        some = slice(first, first + BLOCK_ROWS)
        labels, counts = None, None
        if rows.header.labelled and rows.labels is not None and rows.label_index is not None:
            labels, counts = _gathered(rows.labels, rows.label_index[some])[0], rows.label_index[some, 1]
        segments, segment_counts = _gathered(rows.segments, rows.segment_index[some])[0], rows.segment_index[some, 1]
        yield training_table(_gathered(rows.ids, rows.id_index[some])[0], labels, counts, segments, segment_counts)


def _gathered(values: npt.NDArray[Any], index: Int64) -> tuple[npt.NDArray[Any], Int64]:
    """The values of some rows, flat, and for each value the index of its row in `index`."""
    count = index[:, 1]
    which = np.repeat(np.arange(len(index)), count)
    at = np.arange(len(which)) - (np.cumsum(count) - count)[which] + index[which, 0]
    gathered = np.asarray(values[at])
    return gathered.astype(np.int64) if gathered.dtype.kind == "i" else gathered, which


def _written_in_answers(tokenizer: ChatTokenizer) -> set[int]:
    """The special tokens that the template itself writes inside answers, as gpt-oss does; found with probes."""
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}
    thought, calls = {"reasoning_content": "hm"}, {"tool_calls": [call]}
    found: set[int] = set()
    for more in ({}, thought, calls, thought | calls | {"content": ""}):
        try:
            row = label(tokenizer, [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"} | more])
            ids, spans = labelled_ids(tokenizer, row, tokenizer.encode([row.text])[0], 0)
        except RowError:
            continue
        found.update(int(i) for a, b in spans for i in ids[a : b - 1])
    return found & tokenizer.structural_ids


def _lint_block(
    block: _Block, special: Bools, strange: Bools, bos: int | None, found: dict[int, LintCounts]
) -> tuple[Int64, Bools]:
    """Count the problems of each sequence; `strange` are the special tokens that no answer should have inside.

    Returns, by sequence: labels, int64; ends inside a labelled run, bool.
    """
    ids, learnt, start, end = block.ids.astype(np.int64), block.learnt, block.start, block.end
    known = (ids >= 0) & (ids < len(special))
    is_special = known & special[np.where(known, ids, 0)]
    stretch_goes_on = learnt & np.append(learnt[1:], False)  # a sequence's first token is never a label
    ends = np.flatnonzero(learnt & ~stretch_goes_on)
    of_end = np.searchsorted(start, ends, "right") - 1
    at_end = ends == end[of_end] - 1
    unstopped = ~is_special[ends]
    labels = _per_sequence(learnt, start, end)
    open_end = np.zeros(len(start), bool)
    open_end[of_end[at_end & unstopped]] = True
    counts = {
        "sequences": np.ones(len(start), np.int64),
        "tokens": end - start,
        "labels": labels,
        "stop_not_labelled": np.bincount(of_end[unstopped & ~at_end], minlength=len(start)),
        "labels_on_padding": block.on_padding,
        "labels_across_sequences": block.across,
        "doubled_bos": _doubled(ids, start, end, bos),
        "ids_outside_vocabulary": _per_sequence(~known, start, end),
        "special_in_content": _per_sequence(known & strange[np.where(known, ids, 0)] & stretch_goes_on, start, end),
    }
    _add(found, block.keys, counts)
    return labels, open_end


def _collect(pieces: _Pieces, block: _Block, labels: Int64, open_end: Bools) -> None:
    pieces.unit.append(np.array(block.keys))
    pieces.side.append(block.side)
    pieces.start.append(block.offset)
    pieces.end.append(block.offset + block.end - block.start)
    pieces.labels.append(labels)
    pieces.open_end.append(open_end)


def _per_sequence(flags: Bools, start: Int64, end: Int64) -> Int64:
    total: Int64 = np.concatenate([[0], np.cumsum(flags)]).astype(np.int64)
    sums: Int64 = total[end] - total[start]
    return sums


def _doubled(ids: Int64, start: Int64, end: Int64, bos: int | None) -> Int64:
    if bos is None or not len(ids):
        return np.zeros(len(start), np.int64)
    second = np.minimum(start + 1, len(ids) - 1)
    found: Int64 = ((end - start > 1) & (ids[start] == bos) & (ids[second] == bos)).astype(np.int64)
    return found


def _judge_rows(pieces: _Pieces, found: dict[int, LintCounts]) -> None:
    """Add the counts that need all pieces of a row: rows without labels, and truncated answers."""
    key, side, start, end, labels, open_end = (
        np.concatenate(getattr(pieces, n)) for n in ("unit", "side", "start", "end", "labels", "open_end")
    )
    order = np.lexsort((start, side, key))
    key, side, start, end, labels, open_end = (a[order] for a in (key, side, start, end, labels, open_end))
    new = np.append(True, (key[1:] != key[:-1]) | (side[1:] != side[:-1]))
    firsts = np.flatnonzero(new)
    goes_on = np.append(~new[1:] & (start[1:] <= end[:-1]), False)  # less where a head repeats tokens
    truncated = np.add.reduceat((open_end & ~goes_on).astype(np.int64), firsts)
    mute = np.add.reduceat(labels, firsts) == 0
    counts = {"rows_without_labels": mute.astype(np.int64), "truncated_answers": (truncated > 0).astype(np.int64)}
    _add(found, key[firsts], counts)


def _add(found: dict[int, LintCounts], keys: npt.NDArray[np.uint64], counts: dict[str, Int64]) -> None:
    files, which = np.unique(keys >> np.uint64(RECORD_BITS), return_inverse=True)
    for name, values in counts.items():
        sums = np.bincount(which, values, len(files))
        for file, n in zip(files.tolist(), sums.tolist(), strict=True):
            own = found.setdefault(file, LintCounts())
            setattr(own, name, getattr(own, name) + int(n))


@dataclass(frozen=True, slots=True)
class Fragment:
    """A packed sequence of one row of the dataset."""

    start: int
    """Offset of its first token in the tokens of the row."""
    ids: Int32
    learnt: Bools
    """True for label tokens; the first token never is one."""
    head: Int32
    """Repeated tokens that stand before it in the packed sequence."""


class TokenIndex:
    """Finds the tokens of each row of the dataset in all sets of a pack manifest. Memory: 32 bytes per sequence."""

    def __init__(self, sets: Sequence[PackedSet]) -> None:
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

    def rows(self) -> Iterator[tuple[int, int, list[Fragment]]]:
        """Every row that has packed tokens: key, side (1: the rejected side of a pair), and its sequences in order.

        Sorted by key and side.
        """
        new = np.append(True, (self.keys[1:] != self.keys[:-1]) | (self.side[1:] != self.side[:-1]))
        edges = np.append(np.flatnonzero(new), len(self.keys)).tolist() if len(self.keys) else [0]
        for a, b in pairwise(edges):
            yield int(self.keys[a]), int(self.side[a]), [self._piece(i) for i in range(a, b)]

    def _piece(self, i: int) -> Fragment:
        rows = self.sets[self._which[i]]
        source = rows.sources[self._at[i]]
        row, segment = int(source["row"]), int(source["segment"])
        bounds = rows.segments_of(row)
        a, b = int(bounds[segment]), int(bounds[segment + 1])
        ids, learnt, own = np.asarray(rows.ids_of(row)[a:b], np.int32), learnt_of(rows, row)[a:b], int(source["head"])
        return Fragment(int(source["start"]), ids[own:], learnt[own:], ids[:own])


def texts(index: TokenIndex, tokenizer: ChatTokenizer) -> Iterator[dict[str, Any]]:
    """Each row as text: `{"row_key", "side", "text", "learnt", "tokens", "missing"}`.

    `learnt` lists the labelled runs as text; it is None for plain text. In plain text, the bos and eos token around the
    document are left out, so the text is that of the document. `missing` is the number of tokens before and between the
    packed sequences of the row; the set does not know of tokens that were cut off after the last one.
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


def _stretches(piece: Fragment) -> Iterator[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], piece.learnt, [False]]).astype(np.int8)))
    for a, b in edges.reshape(-1, 2):
        yield piece.ids[a:b].tolist()


@dataclass(slots=True)
class Comparison:
    """Counts of a comparison of packed sets with the tokens that were packed."""

    rows: int = 0
    """Rows of the tokenized dataset."""
    tokens: int = 0
    """Tokens of these rows."""
    found: int = 0
    """Tokens that are packed with the same id and the same label."""
    dropped_rows: int = 0
    """Rows without any packed token."""
    dropped_tokens: int = 0
    cut: int = 0
    """Tokens of kept rows that are not packed."""


def prove(index: TokenIndex, batches: Iterable[pa.RecordBatch], rows: Count, tokens: Count) -> Iterator[str]:
    """Compare the packed tokens with the rows of the tokenized dataset, in order; yields a line for each difference.

    Every packed token must have the id and the label that it has in its row, and be packed once. The number of missing
    tokens must be what the ledger counts as cut or dropped.
    """
    proof, packed = Comparison(), index.rows()
    ahead = next(packed, None)
    for batch in batches:
        for key, row_id, sides in _given(batch):
            proof.rows += 1
            pieces: list[list[Fragment]] = [[] for _ in sides]
            while ahead is not None and ahead[0] == key and ahead[1] < len(sides):
                pieces[ahead[1]] = ahead[2]
                ahead = next(packed, None)
            for (ids, learnt), own in zip(sides, pieces, strict=True):
                yield from (f"row {row_id}: {problem}" for problem in _compare(ids, learnt, own, proof))
            if not any(pieces):
                proof.dropped_rows += 1
                proof.dropped_tokens += sum(len(ids) for ids, _ in sides)
    if ahead is not None:
        yield f"row key {ahead[0]}: is packed, but the tokenized set has no row of that key at that place"
    yield from _accounts(proof, rows, tokens)


def _accounts(proof: Comparison, rows: Count, tokens: Count) -> Iterator[str]:
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
    """Each row of the tokenized dataset: key, id, and the token ids and labels of its sides."""
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


def _compare(ids: Int32, learnt: Bools | None, pieces: list[Fragment], proof: Comparison) -> Iterator[str]:
    """Compare the packed sequences of one side of a row with its tokens."""
    at = found = 0
    for piece in pieces:
        end = piece.start + len(piece.ids)
        if piece.start < at:
            yield f"tokens {piece.start} to {min(at, end)} are packed twice"
        elif end > len(ids) or not np.array_equal(ids[piece.start : end], piece.ids):
            yield f"tokens {piece.start} to {end} are packed with other ids"
        elif not np.array_equal(_targets(learnt, piece), piece.learnt):
            yield f"tokens {piece.start} to {end} are packed with other labels"
        elif not _is_head(piece, ids):
            yield f"tokens {piece.start} to {end} follow {len(piece.head)} tokens that are not in the row before them"
        else:
            found += len(piece.ids)
        at = max(at, end)
    proof.tokens += len(ids)
    proof.found += found
    proof.cut += len(ids) - found if pieces else 0


def _targets(learnt: Bools | None, piece: Fragment) -> Bools:
    end = piece.start + len(piece.ids)
    wanted = np.ones(len(piece.ids), bool) if learnt is None else learnt[piece.start : end].copy()
    wanted[:1] = False  # the first token of a sequence, or after a repeated prompt, is never a target
    return wanted


def _is_head(piece: Fragment, ids: Int32) -> bool:
    """Whether the head of a fragment is the beginning of its row, and then earlier tokens of the row in one run."""
    shared = int(np.argmin(np.append(piece.head == ids[: len(piece.head)], False)))
    rest = piece.head[shared:]
    again = np.flatnonzero(ids[: piece.start] == rest[0]) if len(rest) else np.empty(0, np.int64)
    return not len(rest) or any(np.array_equal(ids[a : a + len(rest)], rest) for a in again.tolist())
