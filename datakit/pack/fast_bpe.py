"""The ids that the `tokenizers` library gives, many times faster: a byte-level BPE in compiled kernels.

Text is split as the tokenizer's regex does, and each distinct piece is merged once: words repeat, so nearly every piece
comes from a cache of fixed size. Rows that NFC would change are normalised by the library first. Whether a tokenizer
can be had this way is decided by `recognise`; for any other, `FastBpe.of` returns None and the library encodes.
"""

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Tokenizer, normalizers

from datakit.pack import bpe_characters
from datakit.pack._kernels_bpe import (
    LONG_WORDS,
    MISSES,
    PIECES,
    SHORT_WORDS,
    Cache,
    Whole,
    encode,
    whole_table,
)
from datakit.pack._kernels_bpe_merge import NO_RANK, SCAN_BYTES, MergeTables, pair_table
from datakit.pack._kernels_bpe_seams import (
    BITS_A_PAIR,
    CODE_POINTS,
    FLAGS,
    SeamTables,
    count_seams,
    fill_seams,
    ids_alone,
    list_seams,
)
from datakit.pack._kernels_bpe_split import SplitTables
from datakit.pack.bpe_pipeline import IN_UTF8, NotRecognised, Pipeline, inert, recognise
from datakit.text.characters import string_array, string_buffers
from datakit.text.normal_form import may_not_be_nfc

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

SHORT_SLOTS, LONG_SLOTS = 1 << 17, 1 << 14
"""Slots of a cache: 8 and 2 MB for each thread that encodes at the same time."""


@dataclass(slots=True)
class Tally:
    """How encoded text was come by."""

    pieces: int = 0
    """Pieces encoded by the kernels."""
    misses: int = 0
    """Of them, or of parts of long ones, those that were not in the cache."""
    library_rows: int = 0
    library_ids: int = 0
    """Rows that the library had to encode, and their ids: no fewer than they have pieces."""

    @property
    def fast_share(self) -> float:
        """Share of pieces that did not need the library; at least."""
        return self.pieces / max(self.pieces + self.library_ids, 1)

    def add(self, other: "Tally") -> None:
        """Count another's too."""
        self.pieces += other.pieces
        self.misses += other.misses
        self.library_rows += other.library_rows
        self.library_ids += other.library_ids


class FastBpe:
    """A recognised tokenizer as tables for the kernels. Any number of threads may encode at once."""

    def __init__(self, pipeline: Pipeline, library: Tokenizer) -> None:
        self.library, self.nfc = library, pipeline.nfc
        self.split = _split_tables(pipeline, library)
        self.merges = _merge_tables(pipeline)
        self.seams = _seam_tables(pipeline, self.merges)
        self.whole = _whole(pipeline)
        self.token_bytes = _token_bytes(pipeline, library)
        """int32: bytes of text that each id stands for."""
        self._added = () if inert(pipeline.added) else pipeline.added
        if self.nfc:
            bpe_characters.nfc_entries()
        self.tally, self._lock = Tally(), threading.Lock()
        self._caches: queue.SimpleQueue[Cache] = queue.SimpleQueue()

    @classmethod
    def of(cls, spec: Mapping[str, Any], library: Tokenizer) -> "FastBpe | NotRecognised":
        """The fast path of a parsed `tokenizer.json` that `library` was made from; or why there is none."""
        try:
            return cls(recognise(spec), library)
        except NotRecognised as e:
            return e

    def encode(self, texts: pa.Array, before: Sequence[int] = (), after: Sequence[int] = ()) -> tuple[Int32, Int64]:
        """Ids of each text, added tokens recognised, with ids put before and after each that is not empty.

        `texts` is a string array; nulls count as "". Returns ids int32 and where each row begins in them, int64
        (rows + 1).
        """
        ids, offsets, _ = self._encode(texts, before, after)
        return ids, offsets

    def encode_aligned(self, texts: pa.Array) -> tuple[Int32, Int64, Int64, npt.NDArray[np.bool_]]:
        """Ids and rows as `encode` gives them, where in its text each id ends, and for which rows that is known.

        It is not where the text has bytes that the vocabulary lacks, or is normalised: such a row gets no ids. Ends are
        int64, in bytes.
        """
        ids, offsets, altered = self._encode(texts, (), (), as_it_is=True)
        begins = string_buffers(texts)[1]
        ends = np.cumsum(self.token_bytes[ids], dtype=np.int64)
        until = np.concatenate([[0], ends])[offsets]
        aligned = ~altered & (np.diff(until) == np.diff(begins))
        return ids, offsets, ends - np.repeat(until[:-1], np.diff(offsets)), aligned

    def _encode(
        self, texts: pa.Array, before: Sequence[int], after: Sequence[int], *, as_it_is: bool = False
    ) -> tuple[Int32, Int64, npt.NDArray[np.bool_]]:
        """Ids, where rows begin in them, and which texts are normalised (and `as_it_is` not encoded)."""
        texts, alone, altered = self._normalised(texts)
        skip = altered if as_it_is else alone
        data, offsets = string_buffers(texts)
        most = int(offsets[-1] - offsets[0]) + len(texts) * (len(before) + len(after))
        out, out_offsets = np.empty(most, np.int32), np.empty(len(texts) + 1, np.int64)
        edges = np.array(before, np.int32), np.array(after, np.int32)
        cache = self._take(int(np.diff(offsets).max(initial=0)))
        encode(data, offsets, skip, *edges, self.split, self.merges, self.seams, self.whole, cache, out, out_offsets)
        self._give(cache)
        ids = out[: out_offsets[-1]].copy()
        if alone.any() and not as_it_is:
            ids, out_offsets = self._by_library(texts, alone, ids, out_offsets, edges)
        return ids, out_offsets, altered

    def forget(self) -> None:
        """Empty the caches, for who measures."""
        self._caches = queue.SimpleQueue()

    def counted(self) -> Tally:
        """The tally, which begins anew."""
        with self._lock:
            tally, self.tally = self.tally, Tally()
        return tally

    def _take(self, longest: int) -> Cache:
        """A cache that no other thread has, with room for a row of so many bytes."""
        try:
            cache = self._caches.get_nowait()
        except queue.Empty:
            cache = Cache(
                short=np.zeros((SHORT_SLOTS, SHORT_WORDS), np.uint64),
                long=np.zeros((LONG_SLOTS, LONG_WORDS), np.uint64),
                counts=np.zeros(2, np.int64),
                ids=np.empty(SCAN_BYTES + 1, np.int32),
                ranks=np.empty(SCAN_BYTES + 1, np.int32),
                **_room_for(0),
            )
        # Pages that no piece needs are never touched, so this is address space.
        return cache._replace(**_room_for(longest))

    def _give(self, cache: Cache) -> None:
        with self._lock:
            self.tally.pieces += int(cache.counts[PIECES])
            self.tally.misses += int(cache.counts[MISSES])
        cache.counts[PIECES] = cache.counts[MISSES] = 0
        self._caches.put(cache._replace(**_room_for(0)))

    def _normalised(self, texts: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """The texts in the tokenizer's normal form, which ones the library must encode, and which NFC changes."""
        alone, altered = np.zeros(len(texts), np.bool_), np.zeros(len(texts), np.bool_)
        if not self.nfc:
            return texts, alone, altered
        data, offsets = string_buffers(texts)
        table = bpe_characters.nfc_entries()
        suspect = np.flatnonzero(may_not_be_nfc(data, offsets, table.pages, table.entries))
        changed = {}
        for row, text in zip(suspect.tolist(), texts.take(pa.array(suspect)).to_pylist(), strict=True):
            made = normalizers.NFC().normalize_str(text)
            if made != text:
                altered[row] = True
                # Added tokens are found in the text as it is: before, where they could compose with what follows.
                alone[row] = any(token in text or token in made for token in self._added)
                if not alone[row]:
                    changed[row] = made
        return _replaced(data, offsets, changed) if changed else texts, alone, altered

    def _by_library(
        self, texts: pa.Array, alone: npt.NDArray[np.bool_], ids: Int32, offsets: Int64, edges: tuple[Int32, Int32]
    ) -> tuple[Int32, Int64]:
        """Put the rows in that the library must encode."""
        rows = np.flatnonzero(alone).tolist()
        given = texts.take(pa.array(rows)).to_pylist()
        found = self.library.encode_batch_fast(given, add_special_tokens=False)
        parts = [ids[offsets[r] : offsets[r + 1]] for r in range(len(texts))]
        for row, encoding in zip(rows, found, strict=True):
            parts[row] = np.concatenate([edges[0], np.array(encoding.ids, np.int32), edges[1]])
        with self._lock:
            self.tally.library_rows += len(rows)
            self.tally.library_ids += sum(len(encoding.ids) for encoding in found)
        return np.concatenate(parts), np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _room_for(longest: int) -> dict[str, Any]:
    return {"links": np.empty((longest, 4), np.int32), "heap": np.empty(3 * longest, np.int64)}


def _replaced(data: npt.NDArray[np.uint8], offsets: Int64, rows: dict[int, str]) -> pa.Array:
    """The texts with some of them replaced."""
    parts, at = [], 0
    lengths = np.diff(offsets)
    for row, text in sorted(rows.items()):
        made = np.frombuffer(text.encode(), np.uint8)
        parts += [data[offsets[at] : offsets[row]], made]
        lengths[row], at = len(made), row + 1
    parts.append(data[offsets[at] : offsets[-1]])
    return string_array(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))


def _split_tables(pipeline: Pipeline, library: Tokenizer) -> SplitTables:
    table = bpe_characters.classes(pipeline.isolate_digits)
    starts = np.zeros(256, np.bool_)
    states: list[dict[int, int]] = [{}]
    ends: list[int] = [-1]
    for token in pipeline.added:
        state = 0
        for byte in token.encode():
            if byte not in states[state]:
                states[state][byte] = len(states)
                states.append({})
                ends.append(-1)
            state = states[state][byte]
        starts[token.encode()[0]], ends[state] = True, _id(library, token)
    trie = np.zeros((len(states), 256), np.int32)
    for state, edges in enumerate(states):
        trie[state, list(edges)] = list(edges.values())
    return SplitTables(
        pipeline.pattern, pipeline.max_digits, table.pages, table.entries, bpe_characters.folds(), starts, trie,
        np.array(ends, np.int32),
    )  # fmt: skip


def _id(library: Tokenizer, token: str) -> int:
    found: int | None = library.token_to_id(token)
    assert found is not None, f"the library lost the added token {token!r}"
    return found


def _merge_tables(pipeline: Pipeline) -> MergeTables:
    tokens = pipeline.tokens
    pairs = np.array([(tokens[a], tokens[b]) for a, b in pipeline.merges], np.int32).reshape(-1, 2)
    products = np.array([tokens[a + b] for a, b in pipeline.merges], np.int32)
    table = _open(len(pairs))
    pair_table(pairs, table)
    byte_ids = np.array([tokens.get(bytes([b]), -1) for b in range(256)], np.int32)
    byte_ranks = np.full(1 << 16, NO_RANK, np.int32)
    for rank, (a, b) in enumerate(pipeline.merges):
        if len(a) == len(b) == 1:
            byte_ranks[a[0] << 8 | b[0]] = rank
    lacking = any(byte_ids[b] < 0 for b in IN_UTF8)
    return MergeTables(byte_ids, lacking, byte_ranks, table, products)


def _seam_tables(pipeline: Pipeline, merges: MergeTables) -> SeamTables:
    data, offsets = _joined([a + b for a, b in pipeline.merges])
    room, flags = count_seams(data, offsets), np.zeros(CODE_POINTS, np.uint8)
    pairs, joints = np.empty(room, np.uint64), np.empty(room, np.uint64)
    whole, part = list_seams(np.append(data, np.zeros(3, np.uint8)), offsets, pairs, joints, flags)
    pairs, joints = np.unique(pairs[:whole]), np.unique(joints[:part])
    bits, slots = np.zeros(_room(len(pairs) * BITS_A_PAIR // 128), np.uint64), _open(len(joints))
    fill_seams(pairs, joints, bits, slots)
    entries = flags.astype(np.int32)
    singles = {ord(c): number for token, number in pipeline.tokens.items() if (c := _character(token)) is not None}
    found = np.empty(len(singles), np.int32)
    ids_alone(*_joined([chr(c).encode() for c in singles]), merges, *np.empty((2, SCAN_BYTES + 1), np.int32), found)
    entries[list(singles)] |= (np.where(found == list(singles.values()), found, -1) + 1) << FLAGS
    table = bpe_characters.Paged.of(entries)
    return SeamTables(table.pages, table.entries, bits, slots)


def _character(token: bytes) -> str | None:
    """The one character that a token is."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) == 1 else None


def _room(keys: int) -> int:
    """Slots for an open-addressing table: a power of two, at least half of them empty."""
    return 1 << max(2 * keys, 1).bit_length()


def _open(keys: int) -> npt.NDArray[np.uint64]:
    return np.full(_room(keys), 0xFFFFFFFFFFFFFFFF, np.uint64)


def _joined(tokens: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Int64]:
    return np.frombuffer(b"".join(tokens), np.uint8), np.cumsum([0, *map(len, tokens)], dtype=np.int64)


def _whole(pipeline: Pipeline) -> Whole:
    known = pipeline.tokens if pipeline.ignore_merges else {}
    data, offsets = _joined(list(known))
    slots = np.full(_room(len(known)) if known else 0, -1, np.int32)
    if known:
        whole_table(data, offsets, slots)
    return Whole(slots, data, offsets, np.array(list(known.values()), np.int32))


def _token_bytes(pipeline: Pipeline, library: Tokenizer) -> Int32:
    lengths = {number: len(token) for token, number in pipeline.tokens.items()}
    lengths |= {_id(library, token): len(token.encode()) for token in pipeline.added}
    found = np.zeros(max(lengths, default=-1) + 1, np.int32)
    found[list(lengths)] = list(lengths.values())
    return found
