"""N-gram language models by interpolated modified Kneser-Ney smoothing, estimated on the disk and written as ARPA.

Kneser and Ney 1995; Chen and Goodman 1998 for three discounts an order, from the counts of counts; Heafield et al.
2013, Scalable Modified Kneser-Ney Language Model Estimation, for the order of the work and for what pruning does. The
model is that of KenLM's `lmplz`:

- Sentences begin with `<s>`, which is given, and end with `</s>`, which is predicted.
- The count of an n-gram below the highest order is the number of different words before it (n-grams that begin with
  `<s>` keep their own count).
- Discounts of 1, 2, 3 and more: k - (k + 1) Y t(k + 1) / t(k), Y = t1 / (t1 + 2 t2), where t(k) n-grams of the order
  have the count k. Where an order has no such counts, or a discount would be negative, its discounts are 0.5, 1, 1.5.
- p(w | context) = (count - discount) / total + backoff(context) * p(w | context without its first word). Below words is
  the uniform distribution over all words, `</s>` and `<unk>`; `<unk>` has that share alone.
- A pruned n-gram gives its whole count to the back-off weight of its context. Discounts come from all n-grams.

Steps: words become numbers; n-grams of the highest order are sorted by their ends, which gives the counts of all
orders; each order is sorted by contexts, which gives totals and back-off weights, and again by ends, to add the lower
order.
"""

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from datakit.errors import InputError
from datakit.filter import _kernels_kneser_ney as kernels
from datakit.filter.sorted_runs import Cursor, Records, SortedRuns, TableFile, Workspace

MARKS: Final = ("<unk>", "<s>", "</s>")
"""The first words of every vocabulary."""

FALLBACK: Final = (0.5, 1.0, 1.5)

_KEY_BITS: Final = 128
_PIECE_BYTES: Final = 1 << 20
_BLOCK: Final = 1 << 16
"""Records that pass through a kernel at once."""
_TEXT_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Model:
    """What an estimated model is, besides its file."""

    sentences: int
    words: int
    """Of the text, without the ends of sentences."""
    left_out: int
    """Words of the text that were one of `MARKS`."""
    ngrams: tuple[int, ...]
    """By order: how many are in the file."""
    discounts: tuple[tuple[float, float, float], ...]
    """By order: of counts of 1, 2, 3 and more."""
    fallback: tuple[int, ...]
    """The orders whose discounts are `FALLBACK`."""


def estimate(
    texts: Iterable[bytes],
    out: Path,
    *,
    order: int,
    min_pruned: tuple[int, ...] = (),
    folder: Path,
    memory_bytes: int,
    threads: int = 1,
) -> Model:
    """Write the model of texts to `out`: lines are sentences, words are between spaces, other white space is not there.

    `min_pruned[n - 1]` is the highest count at which an n-gram of order n goes; orders that it does not name have the
    last value, and words (order 1) never go. Temporary files in `folder` hold records of 24 bytes for the n-grams
    of every order, more than once; the vocabulary is in memory, beside `memory_bytes`. Neither memory nor threads
    change a byte of the result.

    Raises:
        InputError: there is no word, or there are more different words than a key of this order can hold.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        work = Workspace(folder, memory_bytes, pool, threads)
        vocabulary, ids = Vocabulary(), folder / "words.ids"
        sentences, left_out = _number(texts, vocabulary, ids)
        bits = (vocabulary.words - 1).bit_length()
        if not sentences:
            raise InputError("perplexity train: the rows hold no word to learn from")
        if bits * order > _KEY_BITS:
            raise InputError(
                f"perplexity train: {vocabulary.words:,} different words are too many for an order of {order} (most: "
                f"{1 << _KEY_BITS // order:,}); give a lower --order, or a --tokenizer whose ids count as words"
            )
        pruned = np.array([0, *itertools.islice(_padded(min_pruned), 1, order)], np.int64)
        words = ids.stat().st_size // 4 - sentences
        tables, totals = _count(ids, work, order, bits, pruned)
        ids.unlink()
        discounts = [discounts_of(totals[n]) for n in range(order)]
        values = [found or FALLBACK for found in discounts]
        probabilities, contexts = _probabilities(tables, work, bits, vocabulary.words, values)
        totals[0, 0] = vocabulary.words
        _write_arpa(out, probabilities, contexts, totals[:, 0], bits, vocabulary)
        return Model(
            sentences=sentences,
            words=words,
            left_out=left_out,
            ngrams=tuple(totals[:, 0].tolist()),
            discounts=tuple(values),
            fallback=tuple(n for n, found in enumerate(discounts, start=1) if found is None),
        )
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _padded(values: tuple[int, ...]) -> Iterator[int]:
    """The values, then the last one again and again; 0 where there is none."""
    yield from values
    yield from itertools.repeat(values[-1] if values else 0)


def discounts_of(counts: NDArray[np.int64]) -> tuple[float, float, float] | None:
    """The discounts of an order whose n-grams have the count k `counts[k]` times, k from 1 to 4; None: there are none.

    Chen and Goodman 1998, equation 26.
    """
    t = counts.astype(np.float64)
    if not t[1:4].all():
        return None
    y = t[1] / (t[1] + 2 * t[2])
    found = [float(k - (k + 1) * y * t[k + 1] / t[k]) for k in (1, 2, 3)]
    if any(not 0 <= d <= k for k, d in enumerate(found, start=1)):
        return None
    return found[0], found[1], found[2]


# Words.


@dataclass(slots=True)
class Vocabulary:
    """Words by number, in the order of their first occurrence; `MARKS` come first. Up to 2**31 words."""

    words: int = 0
    blob: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, np.int64))
    """Where each word begins and the last one ends; the very last entry holds how many words there are."""
    _hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    _table: NDArray[np.int32] = field(default_factory=lambda: np.full(1 << 10, -1, np.int32))
    _in_line: int = 0

    def __post_init__(self) -> None:
        self._grow(16)
        for mark in MARKS:
            self._add(mark.encode() + b" ")

    def numbers(self, text: bytes) -> tuple[NDArray[np.uint32], int]:
        """(the words' numbers and `END` for each end of a line, how many words were left out) of a part of a text.

        The text ends with a space or a new line; a line may go on in the next part.
        """
        self._grow(len(text))
        return self._add(text)

    def _add(self, text: bytes) -> tuple[NDArray[np.uint32], int]:
        data = np.frombuffer(text, np.uint8)
        ids = np.empty(len(data) + 1, np.uint32)
        count, self._in_line, left_out = kernels.add_words(
            data, self._in_line, self.blob, self.offsets, self._hashes, self._table, ids
        )
        self.words = int(self.offsets[-1])
        return ids[:count], left_out

    def _grow(self, text_bytes: int) -> None:
        """Make room for all words that so many bytes of text may bring."""
        most = self.words + text_bytes // 2 + 1
        used = int(self.offsets[self.words])
        if used + text_bytes > len(self.blob):
            self.blob = np.concatenate([self.blob[:used], np.empty(used + 2 * text_bytes, np.uint8)])
        if most + 2 > len(self.offsets):
            room = most + self.words
            self.offsets = np.concatenate([self.offsets[: self.words + 1], np.zeros(room + 1, np.int64)])
            self.offsets[-1] = self.words
            self._hashes = np.concatenate([self._hashes[: self.words], np.empty(room + 1, np.uint64)])
        if 2 * most > len(self._table):
            self._table = np.full(1 << (2 * most).bit_length(), -1, np.int32)
            kernels.enter(self._hashes, self.words, self._table)


def _number(texts: Iterable[bytes], vocabulary: Vocabulary, ids: Path) -> tuple[int, int]:
    """Write the numbers of all words to a file; returns (sentences, words that were left out)."""
    sentences = left_out = 0
    with ids.open("wb") as file:
        for piece in _pieces(texts):
            found, skipped = vocabulary.numbers(piece)
            sentences += int(np.count_nonzero(found == kernels.END))
            left_out += skipped
            file.write(found.data)
    return sentences, left_out


def _pieces(texts: Iterable[bytes]) -> Iterator[bytes]:
    """The texts, a new line after each, in parts of about `_PIECE_BYTES` that end between words."""
    held, size = list[bytes](), 0
    for text in texts:
        for begin in range(0, max(len(text), 1), _PIECE_BYTES):
            held.append(text[begin : begin + _PIECE_BYTES])
            size += len(held[-1])
            if size >= _PIECE_BYTES:
                joined = b"".join(held)
                cut = max(joined.rfind(b" "), joined.rfind(b"\n")) + 1
                if cut:
                    yield joined[:cut]
                held, size = [joined[cut:]], len(joined) - cut
        held.append(b"\n")
        size += 1
    yield b"".join(held)


# Counts and probabilities.


def _count(
    ids: Path, work: Workspace, order: int, bits: int, pruned: NDArray[np.int64]
) -> tuple[list[TableFile], NDArray[np.int64]]:
    """By order: the n-grams in suffix order with their counts; int64[order, 5]: see `totals` of `kernels.adjust`."""
    runs, key = SortedRuns(work, "counts", bits * order), np.zeros(2, np.uint64)
    with ids.open("rb") as file:
        while len(part := np.fromfile(file, np.uint32, _BLOCK)):
            while len(part):
                room = runs.room()[: len(part)]
                kernels.windows(part[: len(room)], key, order, bits, room)
                runs.wrote(len(room))
                part = part[len(room) :]
    tables = [TableFile(work.folder / f"counts.{n}") for n in range(1, order + 1)]
    out, sizes = np.empty((order, _BLOCK + 1, 3), np.uint64), np.zeros(order, np.int64)
    totals, state = np.zeros((order, 5), np.int64), np.zeros((4, order + 1), np.int64)

    def pass_on(block: Records, last: bool) -> None:
        kernels.adjust(block, last, order, bits, pruned, state, out, sizes, totals)
        for n, table in enumerate(tables):
            table.write(out[n, : sizes[n]])

    for records in runs.tables():
        for begin in range(0, len(records), _BLOCK):
            pass_on(records[begin : begin + _BLOCK], False)
    pass_on(np.empty((0, 3), np.uint64), True)
    return tables, totals


def _probabilities(
    tables: list[TableFile], work: Workspace, bits: int, words: int, discounts: list[tuple[float, float, float]]
) -> tuple[list[TableFile], list[TableFile]]:
    """(the n-grams of each order with their probabilities, the contexts of each order from 2 on with back-off weights);
    all in suffix order, with float64 values. `tables` are removed."""
    found, contexts = [_of_words(tables[0], work, words, discounts[0])], list[TableFile]()
    for order in range(2, len(tables) + 1):
        shares, weights = _shares(tables[order - 1], work, order, bits, discounts[order - 1])
        tables[order - 1].remove()
        contexts.append(weights)
        out, lower = TableFile(work.folder / f"probabilities.{order}"), Cursor(found[-1].blocks(_BLOCK))
        for upper in shares.tables():
            done = np.empty_like(upper)
            while len(upper):
                i, j = kernels.interpolate(
                    upper, upper.view(np.float32), lower.rest, lower.rest.view(np.float64), bits, done,
                    done.view(np.float64),
                )  # fmt: skip
                out.write(done[:i])
                upper = upper[i:]
                lower.use(j)
                assert lower.more or not len(upper), "an n-gram without its shorter end"
        found.append(out)
    tables[0].remove()
    return found, contexts


def _of_words(table: TableFile, work: Workspace, words: int, discounts: tuple[float, float, float]) -> TableFile:
    """The table of all words with their probabilities."""
    counts = np.zeros(words, np.int64)
    for block in table.blocks(_BLOCK):
        counts[block[:, 1].astype(np.int64)] = (block[:, 2] >> np.uint64(1)).astype(np.int64)
    taken = np.array([0.0, *discounts])[np.minimum(counts, 3)]
    total = counts.sum()
    found = (counts - taken) / total + taken.sum() / total / (words - 1)
    found[kernels.BEGIN] = 1.0
    records = np.zeros((words, 3), np.uint64)
    records[:, 1], records[:, 2] = np.arange(words), found.view(np.uint64)
    made = TableFile(work.folder / "probabilities.1")
    made.write(records)
    return made


def _shares(
    table: TableFile, work: Workspace, order: int, bits: int, discounts: tuple[float, float, float]
) -> tuple[SortedRuns, TableFile]:
    """(the n-grams that stay with their share before interpolation, the contexts with their back-off weights)."""
    by_context = SortedRuns(work, f"contexts.{order}", bits * order)
    for block in table.blocks(_BLOCK):
        while len(block):
            room = by_context.room()[: len(block)]
            kernels.to_contexts(block[: len(room)], order, bits, room)
            by_context.wrote(len(room))
            block = block[len(room) :]
    by_end, weights = SortedRuns(work, f"ends.{order}", bits * order), TableFile(work.folder / f"weights.{order}")
    taken = np.array([0.0, *discounts])
    rest = np.empty((0, 3), np.uint64)

    def pass_on(records: Records, last: bool) -> Records:
        out, groups = np.empty_like(records), np.empty_like(records)
        done, stay, contexts = kernels.discount(
            records, last, order, bits, taken, out, out.view(np.float32), groups, groups.view(np.float64)
        )
        weights.write(groups[:contexts])
        kept = out[:stay]
        while len(kept):
            room = by_end.room()[: len(kept)]
            room[:] = kept[: len(room)]
            by_end.wrote(len(room))
            kept = kept[len(room) :]
        return records[done:]

    for records in by_context.tables():
        for begin in range(0, len(records), _BLOCK):
            rest = pass_on(np.concatenate([rest, records[begin : begin + _BLOCK]]), False)
    pass_on(rest, True)
    return by_end, weights


# The file.


def _write_arpa(
    out: Path,
    tables: list[TableFile],
    contexts: list[TableFile],
    counts: NDArray[np.int64],
    bits: int,
    vocabulary: Vocabulary,
) -> None:
    """Write the model in the ARPA format; the tables are removed."""
    text = np.empty(_TEXT_BYTES, np.uint8)
    nothing = Cursor(iter(()))
    with out.open("wb") as file:
        file.write(b"\\data\\\n")
        file.writelines(b"ngram %d=%d\n" % (n, count) for n, count in enumerate(counts.tolist(), start=1))
        for order, table in enumerate(tables, start=1):
            file.write(b"\n\\%d-grams:\n" % order)
            with_weight = order < len(tables)
            weights = Cursor(contexts[order - 1].blocks(_BLOCK)) if with_weight else nothing
            grams = Cursor(table.blocks(_BLOCK))
            weights.use(0)
            grams.use(0)
            while len(grams.rest):
                i, j, size = kernels.arpa_lines(
                    grams.rest, grams.rest.view(np.float64), weights.rest, weights.rest.view(np.float64), weights.more,
                    order, bits, with_weight, vocabulary.blob, vocabulary.offsets, text,
                )  # fmt: skip
                file.write(text[:size].data)
                if not (i or j or size):  # a line that is longer than the buffer
                    text = np.empty(2 * len(text), np.uint8)
                grams.use(i)
                weights.use(j)
            table.remove()
            if with_weight:
                contexts[order - 1].remove()
        file.write(b"\n\\end\\\n")
