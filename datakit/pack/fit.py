"""Rows of token ids -> sequences that fit into packed rows -> packed rows.

**Cutting.** Whatever is longer than a row is cut, and every lost token is counted. Plain text is cut into pieces.
Conversations are cut between turns, in front of a user's turn: the column `turn_starts` of token rows says where these
begin (see `tokenize`). What stands before the first user's turn (the system prompt, the tools) is repeated in each
piece without labels, so nothing is learned twice. The model sees each piece as it would see a conversation that begins
with that turn. A template that writes the system prompt into the first user's turn (Gemma's, Mistral's) has nothing
before it to repeat.

All sequences of a batch are windows over flat arrays of ids and labels; pieces with repeated tokens are appended to
them.

**Fitting.** `packing = "best_fit"` uses best-fit decreasing (Johnson 1973; for training data: Ding et al. 2024, "Fewer
Truncations Improve Language Modeling"): the longest sequence first, each into the fullest row that still has space for
it. If a set has no short sequences that fill gaps, this leaves 4% or more of the space empty. So rows are also filled
one by one with pairs that fit exactly (a minimum bin slack heuristic after Gupta and Ho 1999, on a histogram of
lengths), and the denser result is used. If both need clearly more rows than a lower bound, sequential value correction
is tried, too (Mukhacheva and Zalgaller 1993; Belov, Scheithauer and Mukhacheva 2008). It is for sets with few short
sequences, where the best way to fill one row may leave lengths that fit nowhere. So each length has a value, at first a
power of the length. A row starts with the longest sequence that is left, and takes those that add the most value.
Lengths in rows with much waste gain value, so the next round uses them earlier. Exponents are multiples of 1/4: such
powers need square roots only, which all machines round in the same way.

Sequences are fitted within a window of a bounded number of tokens, so memory does not grow with the dataset. A window
ends after the sequence that fills it, so the result does not depend on the size of the input batches.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import TURN_STARTS
from datakit.kernels import kernel
from datakit.pack.format import (
    SOURCE_DTYPE,
    Block,
    Bools,
    Int32,
    Overflow,
    PackedWriter,
    Packing,
    Records,
    gather,
    starts_of,
)
from datakit.stage import Decision

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]
Float = npt.NDArray[np.float64]

STARTS = "sequence_starts"
EMPTY, TOO_LONG, NO_LABELS, SAME = "empty", "too_long", "no_labels", "same_answers"
TRUNCATED, LONG_PROMPT = "truncated", "long_prompt"
MIN_ANSWER_TOKENS = 16
"""An answer is split only if a row has so many tokens for a piece of it, beside its prompt."""


SEQUENCE = np.dtype([("start", "<i8"), ("length", "<i8"), ("row_key", "<u8"), ("offset", "<i8"), ("head", "<i8")])
"""A sequence: its first token in flat arrays, and the number of its tokens; the row that it comes from; the place, in
the tokens of that row, of its first token behind its head; how many tokens at its start are the head, which repeats
earlier ones of the row."""


@dataclass(frozen=True, slots=True)
class TokenSequences:
    """Sequences over flat arrays of tokens. A sequence is packed in one piece, except with `wrap`."""

    ids: Int32
    mask: Mask
    """Aligned with `ids`: 1 for tokens that are labels (in plain text all of them)."""
    table: Records
    """`SEQUENCE` records."""

    def __len__(self) -> int:
        return len(self.table)

    def take(self, which: Bools | Int64 | slice) -> "TokenSequences":
        """Some of the sequences, over the same flat arrays."""
        return TokenSequences(self.ids, self.mask, self.table[which])

    def parts(self, which: Int64, offset: Int64, length: Int64) -> "TokenSequences":
        """Parts of the sequences `which`: their first token there, and their number of tokens."""
        table = self.table[which]
        table["start"] += offset
        table["offset"] += offset
        table["length"] = length
        return TokenSequences(self.ids, self.mask, table)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> "TokenSequences":
        """The sequences of all parts, in order, over the smallest flat arrays that have all their tokens."""
        ids, masks, tables, base = [np.empty(0, np.int32)], [np.empty(0, np.uint8)], [np.empty(0, SEQUENCE)], 0
        for part in (p for p in parts if len(p)):
            table = part.table.copy()
            first, last = int(table["start"].min()), int((table["start"] + table["length"]).max())
            table["start"] += base - first
            base += last - first
            ids.append(part.ids[first:last])
            masks.append(part.mask[first:last])
            tables.append(table)
        return TokenSequences(np.concatenate(ids), np.concatenate(masks), np.concatenate(tables))


@dataclass(kw_only=True, slots=True)
class Cutter:
    """Cuts sequences that are too long for a row, and counts what becomes of their tokens."""

    labelled: bool
    """False for plain text, whose tokens are all labels."""
    stride: int
    """Tokens in a row; with several row lengths, in the longest."""
    overflow: Overflow
    max_doc_tokens: int
    drop_long: bool
    lost: Counter[str] = field(default_factory=Counter)
    """Dropped tokens by reason, of kept and of dropped rows."""
    tokens: int = 0
    """Tokens of all rows."""
    repeated: int = 0
    """Tokens in heads: system prompts, and prompts of long answers."""
    beyond: int = 0
    """Tokens of sequences with labels that are lost because rows are too short."""

    def cut(self, batch: pa.RecordBatch) -> tuple[TokenSequences, Decision]:
        """Cut the rows of a batch into sequences, and decide which rows stay. The two sequences of a preference pair
        are next to each other: chosen, rejected.

        A row is dropped if it is empty, if both sides of a pair are the same after cutting, or if one of its sides is
        too long (`overflow = "drop"`, `drop_long`) or has no label token left. One side of a pair may be empty. If a
        row is split, its pieces without label tokens are dropped. A row of several sequences is dropped if all of
        these are.
        """
        flat, rows = sequences_of(batch)
        size, sides = flat.table["length"], 2 if "rejected_ids" in batch.schema.names else 1
        cap = self.max_doc_tokens or int(size.max(initial=0))
        length = np.minimum(size, cap)
        reasons = np.full(len(flat), "", object)  # "" keeps a sequence

        def drop(bad: Bools, reason: str) -> Bools:
            """Drop sequences, of pairs with the other side."""
            of_units = bad.reshape(-1, sides).any(axis=1).repeat(sides)
            gone: Bools = of_units & (reasons == "")
            reasons[gone] = reason
            return gone

        drop((size.reshape(-1, sides) == 0).all(axis=1).repeat(sides), EMPTY)
        if sides == 2:
            same = drop(same_sides(flat, np.minimum(length, self.stride if self.overflow == "truncate" else cap)), SAME)
            self.lost[SAME] += int(size[same].sum())
        too_long = drop(self.drop_long & (size > cap), TOO_LONG)
        labels = count_labels(flat.mask, flat.table["start"], length) if self.labelled else length
        fair = (labels > 0) & (reasons == "")
        self.beyond += int(length[fair].sum())
        too_long |= drop((self.overflow == "drop") & (length > self.stride), TOO_LONG)
        if self.overflow == "truncate":
            length = np.minimum(length, self.stride)
        kept = reasons == ""
        self.lost += Counter({TOO_LONG: int(size[too_long].sum()), TRUNCATED: int((size - length)[kept].sum())})

        by_turns, why = np.zeros(len(flat), bool), np.full(len(flat), NO_LABELS, object)
        if self.overflow == "split_turns":
            has_turns = batch.column("label_spans").is_valid().to_numpy(zero_copy_only=False)[rows]
            by_turns = kept & (length > self.stride) & has_turns
        others = np.flatnonzero(kept & ~by_turns)
        splits = self.overflow in ("split", "split_turns")  # else each sequence is one piece, however long
        most = self.stride if splits else int(length.max(initial=1))
        number = np.maximum(-(-length[others] // most), 1)
        which, offset = others.repeat(number), (np.arange(number.sum()) - starts_of(number).repeat(number)) * most
        pieces = flat.parts(which, offset, np.minimum(length[which] - offset, most))
        if by_turns.any():
            more, of_more = self._cut_turns(flat, length, np.flatnonzero(by_turns), turn_starts(batch), why)
            which = np.concatenate([which, of_more])
            order = np.argsort(which, kind="stable")
            pieces, which = TokenSequences.join([pieces, more]).take(order), which[order]

        table = pieces.table
        own = table["length"] - table["head"]  # tokens that are in no other piece
        alive = np.ones(len(pieces), bool)
        if self.labelled and self.overflow != "stream":
            says = count_labels(pieces.mask, table["start"], table["length"]) > 0
            silent = np.bincount(which[says], minlength=len(flat)) == 0
            gone = drop(silent & (size > 0), NO_LABELS)
            reasons[gone] = why[gone]
            alive = ~gone[which] & (says | (own == 0))  # an empty side of a pair stays
            self.lost[NO_LABELS] += int(own[~alive].sum())
        self.tokens += int(size.sum())
        self.repeated += int(table["head"][alive].sum())
        self.beyond -= int(own[alive & fair[which]].sum())
        return pieces.take(alive), self._of_rows(batch.num_rows, rows, reasons, size, sides)

    def _cut_turns(
        self, flat: TokenSequences, length: Int64, long: Int64, turns: Int64, why: npt.NDArray[np.object_]
    ) -> tuple[TokenSequences, Int64]:
        """Pieces of the conversations `long`, and the conversation of each; `turns` are `turn_starts`. Writes into
        `why` for what most tokens of a conversation are lost."""
        ranges, table, which, at = list[tuple[int, int]](), [], [], 0
        for k in long.tolist():
            start, _, key, offset, _ = flat.table[k].tolist()
            end = start + int(length[k])
            starts = turns[(turns >= start) & (turns < end)] - start
            pieces, gone = split_turns(flat.mask[start:end] > 0, starts, self.stride)
            self.lost.update(gone)
            if gone:
                why[k] = max(gone, key=lambda reason: gone[reason])
            for piece in pieces:
                ranges += [(start + a, b - a) for a, b in piece]
                size, own = sum(b - a for a, b in piece), piece[-1][1] - piece[-1][0]
                table.append((at, size, key, offset + piece[-1][0], size - own))
                which.append(k)
                at += size
        tokens = np.array(ranges, np.int64).reshape(-1, 2).T
        made = TokenSequences(gather(flat.ids, *tokens), gather(flat.mask, *tokens), np.array(table, SEQUENCE))
        # A head has no labels, and the first token behind it is no target: what stands before is not what it follows.
        for sequence in made.table[made.table["head"] > 0].tolist():
            made.mask[sequence[0] : sequence[0] + sequence[4] + 1] = 0
        return made, np.array(which, np.int64)

    def _of_rows(
        self, num_rows: int, rows: Int64, reasons: npt.NDArray[np.object_], size: Int64, sides: int
    ) -> Decision:
        """The reason and the detail of each row: it is dropped if all its sequences are."""
        kept = np.bincount(rows[reasons == ""], minlength=num_rows) > 0
        found, details = np.full((2, num_rows), None, object)
        for k in np.flatnonzero(~kept[rows]).tolist():
            row = rows[k]
            sizes = size[rows == row] if sides == 2 else size[[k]]
            by_cap = self.drop_long and reasons[k] == TOO_LONG and size[k] > self.max_doc_tokens
            limit = f"max_doc_tokens is {self.max_doc_tokens}" if by_cap else f"a row holds {self.stride}"
            found[row] = reasons[k]
            tokens = f"{' and '.join(map(str, sizes))} tokens"
            details[row] = f"{tokens}: nothing to prefer" if reasons[k] == SAME else f"{tokens}; {limit}"
        return Decision(pa.array(found, pa.string()), pa.array(details, pa.string()))


def same_sides(flat: TokenSequences, length: Int64) -> Bools:
    """Of the first tokens of each sequence: whether both sides of its pair have the same tokens and labels.

    DPO's loss of such a pair is log 2 whatever the model, so it teaches nothing.
    """
    sizes, starts = length.reshape(-1, 2), flat.table["start"].reshape(-1, 2)
    found = sizes[:, 0] == sizes[:, 1]
    for k in np.flatnonzero(found).tolist():
        one, other = (slice(start, start + sizes[k, 0]) for start in starts[k])
        found[k] = all(np.array_equal(values[one], values[other]) for values in (flat.ids, flat.mask))
    both: Bools = found.repeat(2)
    return both


def count_labels(mask: Mask, start: Int64, length: Int64) -> Int64:
    """Label tokens of each window of a mask; the first token of a sequence is never a target."""
    before = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    counts: Int64 = before[start + length] - before[start + np.minimum(length, 1)]
    return counts


# ---------------------------------------------------------------------- conversations, between turns

Piece = tuple[tuple[int, int], ...]
"""A part of a conversation as ranges of its tokens: those that are repeated before it, then its own."""


def split_turns(learnt: Bools, starts: Int64, stride: int) -> tuple[list[Piece], Counter[str]]:
    """Pieces of at most `stride` tokens of a conversation whose users' turns begin at `starts`; the tokens that are in
    none, by reason. `learnt`, bool (tokens,), says which tokens are labels.

    Whole exchanges (a user's turn up to the next) are joined while they fit. An exchange longer than a row is split
    behind its prompt, which each piece repeats. It is dropped as `long_prompt` where the prompt leaves no space for an
    answer. Where no turn is known, the row is truncated.
    """
    if not len(starts):
        return [((0, stride),)], Counter({TRUNCATED: len(learnt) - stride})
    edges = [*starts.tolist(), len(learnt)]
    first = edges[0]
    head: Piece = ((0, first),) if first else ()
    pieces, lost, at = list[Piece](), Counter[str](), 0
    while at < len(starts):
        fits = int(np.searchsorted(edges, edges[at] + stride - first, side="right")) - 1
        after = max(fits, at + 1)
        if fits > at:  # whole exchanges
            pieces.append((*head, (edges[at], edges[after])))
        elif made := list(_long(learnt, head, edges[at], edges[after], stride)):
            pieces += made
        else:
            lost[LONG_PROMPT] += edges[after] - edges[at]
        at = after
    if pieces and pieces[0][-1][0] == first:  # the head is the first piece's own
        pieces[0] = ((0, pieces[0][-1][1]),)
    else:  # what stands before the first exchange is lost with it
        lost[LONG_PROMPT] += first
    return pieces, +lost


def _long(learnt: Bools, head: Piece, start: int, end: int, stride: int) -> Iterator[Piece]:
    """The pieces of one exchange that is longer than a row; none if its prompt leaves no space for an answer."""
    labels = np.flatnonzero(learnt[start:end])
    if not len(labels):
        return
    answer = start + int(labels[0])
    space = stride - sum(b - a for a, b in head) - (answer - start)
    if space < min(MIN_ANSWER_TOKENS, max(stride // 4, 1)):
        return
    yield (*head, (start, min(answer + space, end)))
    for at in range(answer + space, end, space):
        yield (*head, (start, answer), (at, min(at + space, end)))


# ---------------------------------------------------------------------- from Arrow


def sequences_of(batch: pa.RecordBatch) -> tuple[TokenSequences, Int64]:
    """The sequences of a batch before cutting, and the row of each, int64. For pairs, chosen and rejected alternate."""
    ids, spans, rows = batch.column("input_ids"), batch.column("label_spans"), np.arange(batch.num_rows)
    if "rejected_ids" in batch.schema.names:
        rows = rows.repeat(2)
        alternate = pa.array(np.arange(2 * len(ids)).reshape(2, -1).T.ravel())
        ids = pa.concat_arrays([ids, batch.column("rejected_ids")]).take(alternate)
        spans = pa.concat_arrays([spans, batch.column("rejected_label_spans")]).take(alternate)
    table = np.zeros(len(rows), SEQUENCE)
    table["length"] = list_lengths(ids)
    table["start"] = starts_of(table["length"])
    table["row_key"] = batch.column("row_key").to_numpy(zero_copy_only=False)[rows]
    tokens = ids.flatten().to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    flat = TokenSequences(tokens, _mask(spans, table), table)
    if STARTS in batch.schema.names:  # the tokenize stage puts the sequences of a row one after the other
        column = batch.column(STARTS)
        rows = rows.repeat(list_lengths(column))
        offset = column.flatten().to_numpy().astype(np.int64)
        flat = flat.parts(rows, offset, offset)
        flat.table["length"] = np.diff(np.append(flat.table["start"], len(tokens)))
    return flat, rows


def _mask(spans: pa.Array, table: Records) -> Mask:
    """1 for each label token. All tokens of a row without spans (plain text) are labels."""
    start, length = table["start"], table["length"]
    if spans.null_count == len(spans):
        return np.ones(int(length.sum()), np.uint8)
    base = np.repeat(start, list_lengths(spans))
    first, last = (spans.flatten().field(i).to_numpy(zero_copy_only=False) + base for i in (0, 1))
    whole = spans.is_null().to_numpy(zero_copy_only=False)
    changes = np.zeros(int(length.sum()) + 1, np.int8)  # spans of a row neither overlap nor repeat
    np.add.at(changes, np.concatenate([first, start[whole]]), 1)
    np.add.at(changes, np.concatenate([last, (start + length)[whole]]), -1)
    return np.cumsum(changes[:-1], dtype=np.int8).view(np.uint8)


def turn_starts(batch: pa.RecordBatch) -> Int64:
    """The tokens, among all of a batch, at which users' turns begin; ascending."""
    if TURN_STARTS not in batch.schema.names:
        return np.empty(0, np.int64)
    column, rows = batch.column(TURN_STARTS), starts_of(list_lengths(batch.column("input_ids")))
    found: Int64 = rows.repeat(list_lengths(column)) + column.flatten().to_numpy(zero_copy_only=False)
    return found


def list_lengths(lists: pa.Array) -> Int64:
    """The lengths of lists, int64; 0 for null."""
    found: Int64 = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


# ---------------------------------------------------------------------- into rows

CLOSE = 1.005
"""A result with at most this many times the lower bound of rows is accepted."""
QUARTERS, FIRST_ROUNDS, ROUNDS, PROMISING = (1, 2, 3, 4, 6, 8), 2, 12, 2
"""Else sequential value correction: start with length ** (1 + quarters / 4), `FIRST_ROUNDS` rounds for each number of
quarters, then `ROUNDS` rounds for the `PROMISING` best."""
BLOCK_TOKENS = 1 << 18
"""Tokens that are laid out and written at once, at most: so few that their copies stay in the processor's cache."""

PLACE = np.dtype([("sequence", "<i8"), ("offset", "<i8"), ("length", "<i8"), ("row", "<i8")])
"""A piece of a sequence in a row: the index of the sequence, the piece's first token in it, its tokens, and the row."""


def fit(lengths: Int64, stride: int, packing: Packing, align_bos: bool = False) -> Records:
    """Fit sequences of `lengths`, int64, into rows of `stride` tokens: `PLACE` records by row; rows are numbered from 0
    without gaps. `wrap` cuts sequences; `best_fit` and `pad` need lengths <= stride.

    With `align_bos`, each row of `wrap` starts with the start of a sequence; tokens cut off at a row's end are left
    out.
    """
    if packing == "wrap":
        return _aligned(lengths, stride) if align_bos else _joined(lengths, stride)
    everything = np.arange(len(lengths))
    if packing == "pad":
        return _places(everything, 0, lengths, everything)
    bins = best_bins(lengths, stride)
    # Number the rows by their first sequence, and keep the order of sequences in a row: close to the order of the data.
    _, first, row = np.unique(bins, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    order = np.argsort(rank[row], kind="stable")
    return _places(order, 0, lengths[order], rank[row][order])


def best_bins(lengths: Int64, stride: int) -> Int64:
    """The bin of each sequence, int64, in the densest packing that is found."""
    longest_first = np.argsort(-lengths, kind="stable")
    tries = [way(longest_first, lengths, stride) for way in (best_fit, paired_fit)]
    if min(bins.max(initial=-1) + 1 for bins in tries) > CLOSE * fewest_rows(lengths, stride):
        found = {q: valued_fit(longest_first, lengths, stride, FIRST_ROUNDS, q) for q in QUARTERS}
        promising = sorted(found, key=lambda q: int(found[q].max()))[:PROMISING]
        tries += found.values()
        tries += [valued_fit(longest_first, lengths, stride, ROUNDS, q) for q in promising]
    return min(tries, key=lambda bins: int(bins.max(initial=-1)))


def fewest_rows(lengths: Int64, stride: int) -> int:
    """A lower bound on the rows of `stride` tokens that uncut sequences need: the bound L2 of Martello and Toth (1990).

    For each k up to stride / 2, sequences shorter than k are ignored. Sequences longer than stride / 2 need a row each.
    The others need further rows for the tokens that do not fit next to the sequences of (stride / 2, stride - k].
    """
    count = np.bincount(lengths, minlength=stride + 1)
    number, tokens = (np.concatenate([[0], np.cumsum(c)]) for c in (count, count * np.arange(stride + 1)))
    k, half = np.arange(stride // 2 + 1), stride // 2
    large = number[-1] - number[half + 1]
    beside = (number[stride - k + 1] - number[half + 1]) * stride - (tokens[stride - k + 1] - tokens[half + 1])
    small = tokens[half + 1] - tokens[k]
    return int(large + np.maximum(-(-(small - beside) // stride), 0).max(initial=0))


def _joined(lengths: Int64, stride: int) -> Records:
    """Join the sequences, and cut them where a row is full."""
    starts, total = starts_of(lengths), int(lengths.sum())
    cuts = np.union1d(starts[lengths > 0], np.arange(0, total, stride))
    sequence = np.searchsorted(starts, cuts, side="right") - 1
    return _places(sequence, cuts - starts[sequence], np.diff(np.append(cuts, total)), cuts // stride)


def _aligned(lengths: Int64, stride: int) -> Records:
    """Join the sequences; the sequence at a row's end is truncated, and the next one starts the next row."""
    ends, fitted, row = np.cumsum(lengths), lengths.copy(), np.zeros_like(lengths)
    first = number = 0
    while first < len(lengths):
        full = int(ends[first] - lengths[first]) + stride
        after = min(int(np.searchsorted(ends, full)) + 1, len(lengths))
        row[first:after] = number
        fitted[after - 1] -= max(int(ends[after - 1]) - full, 0)
        first, number = after, number + 1
    return _places(np.arange(len(lengths)), 0, fitted, row)


def _places(sequence: Int64, offset: Int64 | int, length: Int64, row: Int64) -> Records:
    made = np.empty(len(sequence), PLACE)
    made["sequence"], made["offset"], made["length"], made["row"] = sequence, offset, length, row
    return made


class Packer:
    """Collects the sequences of one split into windows and writes the rows of each window.

    With several writers (in order of ascending row length), the longest rows are filled first, and shorter sequences
    fill their gaps. A row without any sequence longer than the next shorter row length is not written: its sequences go
    to the shorter rows.
    """

    def __init__(
        self, writers: Sequence[PackedWriter], packing: Packing, window_tokens: int, align_bos: bool, lost: Counter[str]
    ) -> None:
        self.sides = writers[0].header.rows_per_unit
        self.packing: Packing = "pad" if self.sides == 2 else packing
        self.writers, self.window_tokens, self.align_bos, self.lost = writers, window_tokens, align_bos, lost
        self._waiting: list[TokenSequences] = []
        self._tokens = 0

    def add(self, sequences: TokenSequences) -> None:
        """Add sequences. A window ends after the sequence (of pairs: after the pair) that reaches `window_tokens`."""
        while len(sequences):
            ends = self._tokens + np.cumsum(sequences.table["length"])
            count = int(np.searchsorted(ends, self.window_tokens)) + 1
            count = min(-(-count // self.sides) * self.sides, len(sequences))
            self._waiting.append(sequences.take(slice(0, count)))
            self._tokens = int(ends[count - 1])
            sequences = sequences.take(slice(count, None))
            if self._tokens >= self.window_tokens:
                self.flush(final=False)

    def flush(self, final: bool) -> None:
        """Write the rows of the window. With `wrap`, the tokens of a partly filled last row go to the next window,
        unless this is the `final` one."""
        if not self._waiting:
            return
        window = TokenSequences.join(self._waiting)
        self._waiting, self._tokens = [], 0
        for writer, places in self._fitted(window):
            if self.packing == "wrap" and not final:
                stride = writer.header.stride
                full = np.bincount(places["row"], places["length"])[places["row"]] == stride
                rest = places[~full]
                self._waiting = [TokenSequences.join([window.parts(rest["sequence"], rest["offset"], rest["length"])])]
                self._tokens = int(rest["length"].sum())
                places = places[full]
            _write(writer, window, places)

    def _fitted(self, window: TokenSequences) -> Iterator[tuple[PackedWriter, Records]]:
        """The `PLACE` records of each writer, the longest row length first."""
        length, left = window.table["length"], np.arange(len(window))
        unit = length.reshape(-1, self.sides).max(axis=1, initial=0).repeat(self.sides)  # a pair goes to one writer
        for shorter, writer in zip([None, *self.writers][-2::-1], self.writers[::-1], strict=True):
            places = fit(length[left], writer.header.stride, self.packing, self.align_bos)
            cut_off = int(length[left].sum() - places["length"].sum())
            self.lost.update({TRUNCATED: cut_off} if cut_off else {})
            places["sequence"] = left[places["sequence"]]
            if shorter is not None:
                long = unit[places["sequence"]] > shorter.header.stride
                stays = np.isin(places["row"], places["row"][long])
                left = np.sort(places["sequence"][~stays])
                places = places[stays]
                places["row"] = np.unique(places["row"], return_inverse=True)[1]
            yield writer, places


def _write(writer: PackedWriter, window: TokenSequences, places: Records) -> None:
    """Write rows, in blocks of `BLOCK_TOKENS`."""
    num_rows = int(places["row"].max(initial=-1)) + 1
    size = max(1, BLOCK_TOKENS // writer.header.stride)
    for first in range(0, num_rows, size):
        rows = min(size, num_rows - first)
        a, b = np.searchsorted(places["row"], [first, first + rows])
        some = places[a:b][places["length"][a:b] > 0]  # the missing side of a pair is a row without a sequence
        table, row = window.parts(some["sequence"], some["offset"], some["length"]).table, some["row"] - first
        sources = np.empty(len(some), SOURCE_DTYPE)
        sources["row_key"], sources["start"], sources["tokens"] = table["row_key"], table["offset"], table["length"]
        sources["row"], sources["head"] = writer.num_rows + row, table["head"]
        sources["segment"] = np.arange(len(some)) - np.searchsorted(row, row)
        learnt = gather(window.mask, table["start"], table["length"]).astype(bool)
        learnt[starts_of(table["length"])] = False  # nothing predicts the first token of a sequence
        ids, counts = gather(window.ids, table["start"], table["length"]), np.bincount(row, minlength=rows)
        writer.append(Block(ids, learnt, table["length"].copy(), counts, sources))


# ---------------------------------------------------------------------- kernels

LEARNING_RATE = 0.3


@kernel
def best_fit(order: Int64, lengths: Int64, capacity: int) -> Int64:
    """Best fit: the bin of each sequence, int64. In the given `order`, each goes to the fullest bin that fits.

    No sequence is longer than `capacity`. Bins are in stacks by remaining space: `head[space]` is the last one,
    `below[bin]` the one below it. The search goes through the spaces upwards, and skips 64 at a time where no bin has
    one of these: O(capacity / 64) for a sequence in the worst case, and usually a few steps.
    """
    bins = np.empty(len(lengths), np.int64)  # no more bins than sequences, which bounds `below`, too
    head = np.full(capacity + 1, -1, np.int64)
    below = np.empty(len(lengths), np.int64)
    filled = np.zeros(capacity // 64 + 1, np.int64)  # how many bins have one of 64 spaces
    count = 0
    for i in order:
        space = lengths[i]
        while space <= capacity and head[space] < 0:  # a full bin is in no stack
            space += 64 if space % 64 == 0 and filled[space // 64] == 0 else 1
        if space <= capacity:
            taken = head[space]
            head[space] = below[taken]
            filled[space // 64] -= 1
        else:
            taken, space = count, capacity
            count += 1
        bins[i] = taken
        left = space - lengths[i]
        if left > 0:
            below[taken] = head[left]
            head[left] = taken
            filled[left // 64] += 1
    return bins


@kernel
def paired_fit(order: Int64, lengths: Int64, capacity: int) -> Int64:
    """The bin of each sequence, int64. Bins are filled one by one: the longest sequence first, then the one or two that
    fill the bin best. Lengths are from 1 to `capacity`; `order` has the longest first.

    Best-fit decreasing leaves gaps when no short sequences are left. This one saves short sequences: of the pairs that
    fill a bin exactly, it takes the one with the smallest difference. Sequences of one length are used in `order`.
    """
    bins = np.empty(len(lengths), np.int64)
    count = np.zeros(capacity + 1, np.int64)
    for length in lengths:
        count[length] += 1
    count[0] = 1  # length 0 is always left, so every search ends
    at = np.cumsum(count[::-1])[::-1] - count  # index in `order` of the next sequence of a length
    shorter = np.arange(capacity + 1)
    for length in range(1, capacity + 1):
        if count[length] == 0:
            shorter[length] = length - 1
    made, left = 0, capacity
    for _ in range(len(lengths)):
        length = _most(shorter, left)
        if length == 0:
            made, left = made + 1, capacity
            length = _most(shorter, left)
        elif length < left < capacity:
            length = _first_of_two(count, shorter, length, left)
        bins[order[at[length]]] = made
        at[length] += 1
        left -= length
        count[length] -= 1
        if count[length] == 0:
            shorter[length] = length - 1
    return bins


@kernel(inner=True)
def _most(shorter: Int64, length: int) -> int:
    """The greatest length <= `length` that is left, or 0: union-find with path halving over the used lengths."""
    while shorter[length] != length:
        shorter[length] = shorter[shorter[length]]
        length = shorter[length]
    return length


@kernel(inner=True)
def _first_of_two(count: Int64, shorter: Int64, single: int, space: int) -> int:
    """The longer of the two lengths that fill a space best, or `single`, the longest that fits, if that is better."""
    if 2 * single < space:
        return single
    longer = (space + 1) // 2
    while longer <= single:
        other = space - longer
        if count[longer] > 0 and other > 0 and count[other] > (longer == other):
            return longer
        longer += 1
    best, taken, longer = single, single, single
    while longer > 0 and 2 * longer > best:
        other = _most(shorter, min(space - longer, longer))
        if other == longer and count[other] == 1:
            other = _most(shorter, longer - 1)
        if other > 0 and longer + other >= best:
            best, taken = longer + other, longer
        longer = _most(shorter, longer - 1)
    return taken


@kernel
def valued_fit(order: Int64, lengths: Int64, capacity: int, rounds: int, quarters: int) -> Int64:
    """Sequential value correction: the bin of each sequence, int64, in the best of several rounds.

    Values start as length ** (1 + quarters / 4). Sequences of one length are used in `order`, which has the longest
    first; lengths are from 1 to `capacity`. A round takes O(capacity) for each two sequences of a row, but equal rows
    are made together.
    """
    count = np.zeros(capacity + 1, np.int64)
    for length in lengths:
        count[length] += 1
    first = np.empty(capacity + 1)
    for length in range(capacity + 1):
        first[length] = length
        for _ in range(quarters):
            first[length] *= np.sqrt(np.sqrt(length))
    value = first.copy()
    bins, tried, fewest = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64), len(lengths) + 1
    for _ in range(rounds):
        made = _fill(order, count, first, value, capacity, tried)
        if made < fewest:
            bins, tried, fewest = tried, bins, made
    return bins


@kernel
def _fill(order: Int64, count: Int64, first: Float, value: Float, capacity: int, bins: Int64) -> int:
    """Fill rows until no sequence is left, correct the values, and return the number of rows.

    `count` has the sequences of each length, `first` the values at the beginning; `value` is corrected, `bins` filled.
    """
    left = count.copy()
    at = np.cumsum(count[::-1])[::-1] - count  # index in `order` of the next sequence of a length
    worthiest, row = np.zeros(capacity + 1, np.int64), np.empty(capacity + 1, np.int64)
    made, top, remaining = 0, capacity, len(order)
    while remaining > 0:
        while left[top] == 0:
            top -= 1
        space, n = _row(left, value, worthiest, capacity, top, row)
        times = _times(left, row[:n])
        for _ in range(times):
            for length in row[:n]:
                bins[order[at[length]]] = made
                at[length] += 1
            made += 1
        remaining -= times * n
        for length in row[:n]:
            left[length] -= times
            share = min(1.0, LEARNING_RATE * times / count[length])
            corrected = first[length] * capacity / (capacity - space)
            value[length] = (1 - share) * value[length] + share * corrected
    return made


@kernel
def _row(left: Int64, value: Float, worthiest: Int64, capacity: int, top: int, row: Int64) -> tuple[int, int]:
    """Write the lengths of a row that starts with `top` into `row`; returns the remaining space and their number.

    `left` has the sequences of each length and is as it was in the end; `worthiest` is scratch.
    """
    row[0], n, space = top, 1, capacity - top
    left[top] -= 1
    while space > 0:
        longer, other = _worthiest(left, value, worthiest, space)
        if longer == 0:
            break
        for length in (longer, other):
            if length > 0:
                row[n] = length
                left[length] -= 1
                space -= length
                n += 1
    for length in row[:n]:
        left[length] += 1
    return space, n


@kernel(inner=True)
def _worthiest(left: Int64, value: Float, worthiest: Int64, space: int) -> tuple[int, int]:
    """The one or two lengths of most value that fit into a space; 0 stands for none.

    `worthiest[n]` becomes the length of most value up to n; `worthiest[0]` stays 0.
    """
    best, most = 0, 0.0
    for length in range(1, space + 1):
        if left[length] > 0 and value[length] >= most:
            best, most = length, value[length]
        worthiest[length] = best
    longer, other = best, 0
    for length in range(space - 1, space // 4, -1):  # the longer one: two of up to a quarter leave half empty
        if left[length] == 0:
            continue
        second = worthiest[min(space - length, length)]
        if second == length and left[length] == 1:
            second = worthiest[length - 1]
        if second > 0 and value[length] + value[second] > most:
            longer, other, most = length, second, value[length] + value[second]
    return longer, other


@kernel(inner=True)
def _times(left: Int64, row: Int64) -> int:
    """How often to repeat a row: half as often as the remaining sequences allow."""
    times = int(left[row[0]])
    for length in row:
        times = min(times, int(left[length]) // int(np.sum(row == length)))
    return max(1, times // 2) if times > 2 else times
