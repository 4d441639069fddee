"""Inspection of packed sets: peek shows a row as text, lint counts wrong labels, unpack restores texts, and `prove`
compares a packed set with the tokens that were packed.

All of them read a set through `Packed`, in any format. Lint works on blocks of rows as flat arrays; the others go
through one row of the dataset, or one packed row, at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.data import RECORD_BITS
from datakit.errors import ManifestError
from datakit.manifest import Count, Manifest, check_shards, data_dir, load
from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import Packed, training_table
from datakit.pack.labels import Labeller
from datakit.pack.marks import RESERVED_SPELLING, RenderError

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_PIECE = 8
"""Maximum of tokens in a piece; the bytes of one character (at most four) never need more."""
BLOCK_ROWS = 4096
"""Number of packed rows that lint checks at once."""


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


def open_all(path: Path) -> tuple[list[Packed], ChatTokenizer]:
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
    sets = [Packed.open(folder / header["prefix"]) for header in named]
    files = manifest.facts.get("tokenizer", {}).get("files")
    if not files:
        raise ManifestError(f"{path}: names no tokenizer files; pack the set again")
    return sets, ChatTokenizer.load((folder / files[0]).parent)


# ---------------------------------------------------------------------- peek


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


def peek(rows: Packed, tokenizer: ChatTokenizer, row: int) -> PackedRow:
    """A packed row, decoded, with its sequences in order.

    Raises:
        IndexError: the set has no such row.
    """
    if not 0 <= row < len(rows):
        raise IndexError(f"row {row} of {len(rows)}")
    ids, bounds, learnt = rows.ids_of(row), rows.segments_of(row), learnt_of(rows, row)
    first = int(np.searchsorted(rows.sources["row"], row))
    sources = rows.sources[first : first + len(bounds) - 1]
    sequences = []
    for i, (source, (a, b)) in enumerate(zip(sources, pairwise(bounds.tolist()), strict=True)):
        runs = tuple(_runs(tokenizer, i, ids[a:b], learnt[a:b]))
        sequences.append(
            PackedSequence(int(source["row_key"]), int(source["start"]), b - a, int(learnt[a:b].sum()), runs)
        )
    padding = rows.header.stride - len(ids) if rows.header.format == "bin2d" else 0
    return PackedRow(row, tuple(sequences), padding)


def learnt_of(rows: Packed, row: int) -> Bools:
    """Which real tokens of a row are labels, bool (tokens,)."""
    bounds, labels = rows.segments_of(row), rows.labels_of(row)
    learnt = np.full(int(bounds[-1]), labels is None)
    if labels is not None:
        learnt[labels + 1] = True
    learnt[bounds[:-1]] = False  # the first token of a sequence is never a target
    return learnt


def _runs(tokenizer: ChatTokenizer, segment: int, ids: npt.NDArray[Any], learnt: Bools) -> Iterator[LabelRun]:
    edges = [0, *(np.flatnonzero(np.diff(learnt.astype(np.int8))) + 1).tolist(), len(ids)]
    found = iter(pieces(tokenizer, ids.tolist(), frozenset(edges)))
    at = 0
    for a, b in pairwise(edges):
        own = []
        while at < b:
            own.append(next(found))
            at += len(own[-1].ids)
        yield LabelRun(segment, bool(learnt[a]), b - a, tuple(own))


def pieces(tokenizer: ChatTokenizer, ids: list[int], edges: frozenset[int] = frozenset()) -> list[TextPiece]:
    """Decode ids as pieces of whole characters. A piece ends at each of the `edges` (offsets in `ids`), even if this
    splits a character.

    A piece is decoded together with the previous piece, because some decoders change the first token of a text.
    """
    known = frozenset(tokenizer.added.values())
    made: list[TextPiece] = []
    before: list[int] = []
    own: list[int] = []
    for at, token in enumerate(ids, 1):
        own.append(token)
        added = token in known
        text = (
            tokenizer.token(token) or "" if added else tokenizer.decode(before + own)[len(tokenizer.decode(before)) :]
        )
        torn = text.endswith("\ufffd") and at < len(ids) and ids[at] not in known and len(own) < MAX_PIECE
        if added or not torn or at in edges:
            made.append(TextPiece(text, tuple(own), added))
            before, own = own, []
    return made


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


def lint_rows(sets: Sequence[Packed], tokenizer: ChatTokenizer) -> dict[int, LintCounts]:
    """Count problems by input file: index of the file (the high bits of a row key) -> its `LintCounts`."""
    special = np.zeros(max(tokenizer.vocab_size, 1), bool)
    special[[i for i in (*tokenizer.special.values(), tokenizer.eos_id) if i is not None]] = True
    strange = special.copy()
    strange[sorted(_written_in_answers(tokenizer))] = False
    found: dict[int, LintCounts] = {}
    told: list[npt.NDArray[Any]] = []
    for rows in sets:
        for first in range(0, len(rows), BLOCK_ROWS):
            told.append(_lint_block(rows, slice(first, first + BLOCK_ROWS), special, strange, tokenizer.bos_id, found))
    if told:
        _lint_rows_of_dataset(np.concatenate(told), found)
    return found


PIECE = np.dtype([("key", "<u8"), ("side", "<i8"), ("start", "<i8"), ("end", "<i8"), ("labels", "<i8"), ("open", "?")])
"""A packed sequence: its row and side; where its tokens are in that row; how many are labels; whether it ends inside a
labelled run, without a special token."""


def _lint_block(
    rows: Packed, some: slice, special: Bools, strange: Bools, bos: int | None, found: dict[int, LintCounts]
) -> npt.NDArray[Any]:
    """Count the problems of each sequence in some packed rows; returns them as `PIECE` records."""
    real = rows.real_tokens[some]
    length, base = real[:, 1], np.cumsum(real[:, 1]) - real[:, 1]
    a, b = np.searchsorted(rows.sources["row"], [some.start, some.start + len(real)])
    sources = rows.sources[a:b]
    which = sources["row"].astype(np.int64) - some.start
    bounds, of_bound = _gathered(rows.segments, rows.segment_index[some])
    new = np.append(True, of_bound[1:] != of_bound[:-1])
    start, end = (bounds + base[of_bound])[~np.append(new[1:], True)], (bounds + base[of_bound])[~new]
    ids = _gathered(rows.ids.reshape(-1), real)[0]
    learnt, on_padding = np.full(len(ids), rows.labels is None), np.zeros(len(start), np.int64)
    across = np.zeros(len(start), np.int64)
    if rows.labels is not None and rows.label_index is not None:
        at, of_label = _gathered(rows.labels, rows.label_index[some])
        inside = (at >= 0) & (at + 1 < length[of_label])
        final = np.flatnonzero(np.append(which[1:] != which[:-1], True))
        np.add.at(on_padding, final[of_label[~inside]], 1)
        learnt[(at + 1 + base[of_label])[inside]] = True
        across = learnt[start].astype(np.int64)
    learnt[start] = False
    known = (ids >= 0) & (ids < len(special))
    is_special, is_strange = (known & table[np.where(known, ids, 0)] for table in (special, strange))
    goes_on = learnt & np.append(learnt[1:], False)[: len(learnt)]  # a sequence's first token is never a label
    ends = np.flatnonzero(learnt & ~goes_on)
    of_end = np.searchsorted(start, ends, "right") - 1
    at_end, unstopped = ends == end[of_end] - 1, ~is_special[ends]

    def sums(flags: Bools) -> Int64:
        """The number of set flags in each sequence."""
        before = np.concatenate([[0], np.cumsum(flags)]).astype(np.int64)
        counts: Int64 = before[end] - before[start]
        return counts

    doubled = np.zeros(len(start), bool)
    if bos is not None and len(ids):
        second = np.minimum(start + 1, len(ids) - 1)
        doubled = (end - start > 1) & (ids[start] == bos) & (ids[second] == bos)
    made = np.zeros(len(start), PIECE)
    made["key"], made["side"] = sources["row_key"], sources["row"] % rows.header.rows_per_unit
    made["start"] = sources["start"].astype(np.int64) - sources["head"]
    made["end"], made["labels"] = made["start"] + end - start, sums(learnt)
    made["open"][of_end[at_end & unstopped]] = True
    _add(
        found,
        made["key"],
        sequences=np.ones(len(start), np.int64),
        tokens=end - start,
        labels=made["labels"],
        stop_not_labelled=np.bincount(of_end[unstopped & ~at_end], minlength=len(start)),
        labels_on_padding=on_padding,
        labels_across_sequences=across,
        doubled_bos=doubled,
        ids_outside_vocabulary=sums(~known),
        special_in_content=sums(is_strange & goes_on),
    )
    if not rows.header.labelled:
        made["labels"] = end - start
    return made


def _lint_rows_of_dataset(told: npt.NDArray[Any], found: dict[int, LintCounts]) -> None:
    """Add the counts that need all pieces of a row: rows without labels, and truncated answers."""
    told = np.sort(told, order=("key", "side", "start"))
    new = np.append(True, (told["key"][1:] != told["key"][:-1]) | (told["side"][1:] != told["side"][:-1]))
    firsts = np.flatnonzero(new)
    goes_on = np.append(~new[1:] & (told["start"][1:] <= told["end"][:-1]), False)  # less where a head repeats tokens
    truncated = np.add.reduceat((told["open"] & ~goes_on).astype(np.int64), firsts) > 0
    silent = np.add.reduceat(told["labels"], firsts) == 0
    _add(found, told["key"][firsts], rows_without_labels=silent, truncated_answers=truncated)


def _add(found: dict[int, LintCounts], keys: npt.NDArray[np.uint64], **counts: npt.NDArray[Any]) -> None:
    """Add counts of sequences to those of their input files."""
    files, which = np.unique(keys >> np.uint64(RECORD_BITS), return_inverse=True)
    for name, values in counts.items():
        for file, count in zip(files.tolist(), np.bincount(which, values, len(files)).tolist(), strict=True):
            own = found.setdefault(file, LintCounts())
            setattr(own, name, getattr(own, name) + int(count))


def _written_in_answers(tokenizer: ChatTokenizer) -> set[int]:
    """The special tokens that the template itself writes inside answers, as gpt-oss does; found with probes."""
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}
    thought, calls = {"reasoning_content": "hm"}, {"tool_calls": [call]}
    found: set[str] = set()
    for more in ({}, thought, calls, thought | calls | {"content": ""}):
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"} | more]
        try:
            row = Labeller(tokenizer).label(turns)
        except RenderError:
            continue
        for a, b in row.labels:
            found.update(token[0] for token in RESERVED_SPELLING.finditer(row.text, a, b) if token.end() < b)
    ids = (tokenizer.encoder.token_to_id(token) for token in found)
    return {token for token in ids if token is not None}


def training_tables(rows: Packed) -> Iterator[pa.Table]:
    """The rows of a set as tables with the columns of format parquet, `BLOCK_ROWS` at a time, whatever its format."""
    for first in range(0, len(rows), BLOCK_ROWS):
        some = slice(first, first + BLOCK_ROWS)
        labels, counts = None, None
        if rows.labels is not None and rows.label_index is not None:
            labels, counts = (
                _gathered(rows.labels, rows.label_index[some])[0],
                rows.label_index[some, 1].astype(np.int64),
            )
        segments = _gathered(rows.segments, rows.segment_index[some])[0]
        ids = _gathered(rows.ids.reshape(-1), rows.real_tokens[some])[0]
        yield training_table(ids, labels, counts, segments, rows.segment_index[some, 1].astype(np.int64))


def _gathered(values: npt.NDArray[Any], index: npt.NDArray[Any]) -> tuple[Int64, Int64]:
    """The values of some rows, flat, and for each value the index of its row in `index`."""
    start, count = index.astype(np.int64).T
    which = np.repeat(np.arange(len(index)), count)
    at = np.arange(len(which)) - (np.cumsum(count) - count)[which] + start[which]
    return np.asarray(values[at]).astype(np.int64), which


# ---------------------------------------------------------------------- from packed rows back to the dataset's


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

    @property
    def end(self) -> int:
        """Offset behind its last token."""
        return self.start + len(self.ids)


class TokenIndex:
    """Finds the tokens of each row of the dataset in all sets of a pack manifest. Memory: 32 bytes per sequence."""

    def __init__(self, sets: Sequence[Packed]) -> None:
        self.sets = sets
        dtype = [("key", "<u8"), ("side", "<u8"), ("start", "<u8"), ("set", "<u4"), ("at", "<u4")]
        found = [np.empty(0, dtype)]
        for number, rows in enumerate(sets):
            own = np.empty(len(rows.sources), dtype)
            own["key"], own["start"] = rows.sources["row_key"], rows.sources["start"]
            own["side"] = rows.sources["row"] % rows.header.rows_per_unit
            own["set"], own["at"] = number, np.arange(len(own))
            found.append(own)
        self.pieces = np.sort(np.concatenate(found), order=("key", "side", "start"))

    def __len__(self) -> int:
        return len(self.pieces)

    def rows(self) -> Iterator[tuple[int, int, list[Fragment]]]:
        """Every row that has packed tokens: key, side (1: the rejected side of a pair), and its sequences in order.

        Sorted by key and side.
        """
        keys, sides = self.pieces["key"], self.pieces["side"]
        new = np.flatnonzero((keys[1:] != keys[:-1]) | (sides[1:] != sides[:-1])) + 1
        for a, b in pairwise([0, *new.tolist(), len(self)] if len(self) else []):
            yield int(keys[a]), int(sides[a]), [self._piece(piece) for piece in self.pieces[a:b]]

    def _piece(self, piece: Any) -> Fragment:
        rows = self.sets[piece["set"]]
        source = rows.sources[piece["at"]]
        row, segment, head = (int(source[name]) for name in ("row", "segment", "head"))
        a, b = rows.segments_of(row)[segment : segment + 2].tolist()
        ids, learnt = np.asarray(rows.ids_of(row)[a:b], np.int32), learnt_of(rows, row)[a:b]
        return Fragment(int(source["start"]), ids[head:], learnt[head:], ids[:head])


def texts(index: TokenIndex, tokenizer: ChatTokenizer) -> Iterator[dict[str, Any]]:
    """Each row as text: `{"row_key", "side", "text", "learnt", "tokens", "missing"}`.

    `learnt` lists the labelled runs as text; it is None for plain text. In plain text, the bos and eos token around the
    document are left out, so the text is that of the document. `missing` is the number of tokens before and between the
    packed sequences of the row; the set does not know of tokens that were cut off after the last one.
    """
    plain = not any(s.header.labelled for s in index.sets)
    for key, side, fragments in index.rows():
        ids = np.concatenate([f.ids for f in fragments])
        shown = ids[:-1] if plain and len(ids) and ids[-1] == tokenizer.eos_id else ids
        shown = shown[1:] if plain and len(shown) and shown[0] == tokenizer.bos_id else shown
        runs = (run for f in fragments for run in _learnt_runs(f))
        yield {
            "row_key": key,
            "side": side,
            "text": tokenizer.decode(shown.tolist()),
            "learnt": None if plain else [tokenizer.decode(run) for run in runs],
            "tokens": len(ids),
            "missing": fragments[-1].end - len(ids),
        }


def _learnt_runs(fragment: Fragment) -> Iterator[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], fragment.learnt, [False]]).astype(np.int8)))
    for a, b in edges.reshape(-1, 2):
        yield fragment.ids[a:b].tolist()


def prove(index: TokenIndex, batches: Iterable[pa.RecordBatch], rows: Count, tokens: Count) -> Iterator[str]:
    """Compare the packed tokens with the rows of the tokenized dataset, in order; yields a line for each difference.

    Every packed token must have the id and the label that it has in its row, and be packed once. The number of missing
    tokens must be what the ledger counts as cut or dropped.
    """
    num_rows = num_tokens = num_packed = dropped_rows = 0
    packed = index.rows()
    ahead = next(packed, None)
    for batch in batches:
        for key, row_id, sides in _given(batch):
            num_rows += 1
            found: list[list[Fragment]] = [[] for _ in sides]
            while ahead is not None and ahead[0] == key and ahead[1] < len(sides):
                found[ahead[1]] = ahead[2]
                ahead = next(packed, None)
            for (ids, learnt), fragments in zip(sides, found, strict=True):
                num_tokens += len(ids)
                at = 0
                for fragment in fragments:
                    problem = _problem(ids, learnt, fragment, at)
                    num_packed += 0 if problem else len(fragment.ids)
                    at = max(at, fragment.end)
                    if problem:
                        yield f"row {row_id}: tokens {fragment.start} to {fragment.end} {problem}"
            dropped_rows += not any(found)
    if ahead is not None:
        yield f"row key {ahead[0]}: is packed, but the tokenized set has no row of that key at that place"
    for name, expected, counted in (
        ("rows in", rows.into, num_rows),
        ("rows dropped", sum(rows.dropped.values()), dropped_rows),
        ("tokens in", tokens.into, num_tokens),
        ("tokens kept", tokens.kept, num_packed),
        ("tokens dropped or cut", sum(tokens.dropped.values()), num_tokens - num_packed),
    ):
        if expected != counted:
            yield f"{name}: the ledger says {expected:,}, a comparison token by token finds {counted:,}"


def _given(batch: pa.RecordBatch) -> Iterator[tuple[int, str, list[tuple[Int32, Bools]]]]:
    """Each row of the tokenized dataset: key, id, and the token ids and labels of its sides."""
    names = [("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")]
    sides = [_columns(batch, *n) for n in names if n[0] in batch.schema.names]
    keys, ids = batch.column("row_key").to_pylist(), batch.column("id").to_pylist()
    for key, row_id, *given in zip(keys, ids, *sides, strict=True):
        yield key, row_id, given


def _columns(batch: pa.RecordBatch, ids: str, spans: str) -> Iterator[tuple[Int32, Bools]]:
    for row, row_spans in zip(batch.column(ids), batch.column(spans).to_pylist(), strict=True):
        tokens = np.empty(0, np.int32) if row.values is None else row.values.to_numpy()
        learnt = np.full(len(tokens), row_spans is None)
        for span in row_spans or ():
            learnt[span["start"] : span["end"]] = True
        yield tokens, learnt


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
