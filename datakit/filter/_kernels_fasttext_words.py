"""From UTF-8 bytes to the rows of a fastText model's input matrix: words, their character n-grams, the dictionary.

Bojanowski et al. 2017, Enriching Word Vectors with Subword Information; hashes are 32-bit FNV-1a. A row of text is one
line: white space and new lines of every kind separate words, and so does the text `</s>`, fastText's end-of-line mark,
which would end the reading. A word that came before in the same call is not looked up again.
"""

import numpy as np
from numba import njit

_FNV_BASIS, _FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)
_MIX = np.uint64(0x9E3779B97F4A7C15)
LESS, GREATER, SLASH, S = 0x3C, 0x3E, 0x2F, 0x73
CACHE_BITS = 13
LONG_BYTES = 1 << 9


@njit(cache=True, nogil=True, forceinline=True)
def _step(h, byte):  # type: ignore[no-untyped-def]
    """One byte of FNV-1a as fastText has it: bytes are signed, so the high ones flip the upper bits too."""
    return np.uint32((h ^ np.uint32(np.int8(byte))) * _FNV_PRIME)


@njit(cache=True, nogil=True, forceinline=True)
def separator(data, i, end):  # type: ignore[no-untyped-def]
    """Bytes of the separator at byte i, which `Arrays.marks` holds for possible; 0 where a word goes on."""
    byte = data[i]
    if byte == LESS:
        mark = i + 4 <= end and data[i + 1] == SLASH and data[i + 2] == S and data[i + 3] == GREATER
        return 4 if mark else 0
    if byte == 0xC2:
        return 2 if i + 2 <= end and data[i + 1] == 0x85 else 0
    if byte == 0xE2:
        return 3 if i + 3 <= end and data[i + 1] == 0x80 and data[i + 2] & 0xFE == 0xA8 else 0
    return 1


@njit(cache=True, nogil=True)
def possible_separators():  # type: ignore[no-untyped-def]
    """bool[256]: the bytes that a separator can begin with."""
    marks = np.zeros(256, np.bool_)
    for byte in (0, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, LESS, 0xC2, 0xE2):
        marks[byte] = True
    return marks


@njit(cache=True, nogil=True)
def parse_entries(data, start, count):  # type: ignore[no-untyped-def]
    """The dictionary of a model file: (where each entry begins, word bytes, counts, kinds, where the dictionary ends).

    An entry is a word, a zero byte, its count (int64) and its kind (int8: 0 word, 1 label). The end is -1 where the
    data ends first.
    """
    begins, sizes = np.empty(count, np.int64), np.empty(count, np.int64)
    counts, kinds = np.empty(count, np.int64), np.empty(count, np.int8)
    at, size = start, len(data)
    for i in range(count):
        begins[i] = at
        while at < size and data[at] != 0:
            at += 1
        if at + 10 > size:
            return begins, sizes, counts, kinds, -1
        sizes[i] = at - begins[i]
        value = np.uint64(0)
        for k in range(8):
            value |= np.uint64(data[at + 1 + k]) << np.uint64(8 * k)
        counts[i] = np.int64(value)
        kinds[i] = np.int8(data[at + 9])
        at += 10
    return begins, sizes, counts, kinds, at


@njit(cache=True, nogil=True)
def build_table(blob, word_offsets, table):  # type: ignore[no-untyped-def]
    """Enter every word into `table` (int32, a power of two, all -1)."""
    mask = np.int64(len(table) - 1)
    for word in range(len(word_offsets) - 1):
        h = _FNV_BASIS
        for i in range(word_offsets[word], word_offsets[word + 1]):
            h = _step(h, blob[i])
        slot = np.int64(h) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = word


@njit(cache=True, nogil=True, forceinline=True)
def find(blob, word_offsets, table, data, begin, end, h):  # type: ignore[no-untyped-def]
    """The number of a word, -1 for one that the model does not know."""
    mask = np.int64(len(table) - 1)
    slot = np.int64(h) & mask
    while True:
        word = np.int64(table[slot])
        if word < 0:
            return word
        at = word_offsets[word]
        size = word_offsets[word + 1] - at
        if size == end - begin:
            same = 0
            while same < size and blob[at + same] == data[begin + same]:
                same += 1
            if same == size:
                return word
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True, forceinline=True)
def labelled(data, begin, end):  # type: ignore[no-untyped-def]
    """Whether a word begins like a label, `__label__`: fastText then reads it as one."""
    prefix = (0x5F, 0x5F, 0x6C, 0x61, 0x62, 0x65, 0x6C, 0x5F, 0x5F)
    same = 0
    while same < len(prefix) and begin + same < end and data[begin + same] == prefix[same]:
        same += 1
    return same == len(prefix)


@njit(cache=True, nogil=True, forceinline=True)
def fnv(data, begin, end):  # type: ignore[no-untyped-def]
    h = _FNV_BASIS
    for i in range(begin, end):
        h = _step(h, data[i])
    return h


@njit(cache=True, nogil=True, forceinline=True)
def _modulo(h, magic, bucket):  # type: ignore[no-untyped-def]
    """h % bucket without a division (Lemire, Kaser and Kurz 2019); magic = 2**64 // bucket + 1, h and bucket uint32."""
    low = np.uint64(magic * np.uint64(h))
    high = (low >> np.uint64(32)) * bucket + ((low & np.uint64(0xFFFFFFFF)) * bucket >> np.uint64(32))
    return np.int64(high >> np.uint64(32))


@njit(cache=True, nogil=True, forceinline=True)
def hashed_row(num_words, seen, kept, bucket):  # type: ignore[no-untyped-def]
    """The input row of a hashed n-gram, -1 where it was pruned."""
    if len(kept) == 0:
        return num_words + bucket
    if seen[bucket >> 3] >> (bucket & 7) & 1 == 0:
        return np.int64(-1)
    return num_words + np.int64(kept[bucket])


@njit(cache=True, nogil=True, forceinline=True)
def ngram_hashes(padded, total, i, min_chars, max_chars, hashes):  # type: ignore[no-untyped-def]
    """Hash the n-grams that begin at byte i of `padded` and after, while there is room. Returns (next i, hashes).

    Of the single characters, `<` and `>` are none.
    """
    n = np.int64(0)
    while i < total and n + max_chars <= len(hashes):
        h = _step(_FNV_BASIS, padded[i])
        j = i + 1
        while padded[j] & 0xC0 == 0x80:  # a zero byte stands behind the last one
            h = _step(h, padded[j])
            j += 1
        following = j
        if min_chars <= 1 and i > 0 and j < total:
            hashes[n] = h
            n += 1
        for chars in range(2, max_chars + 1):
            if j >= total:
                break
            h = _step(h, padded[j])
            j += 1
            while padded[j] & 0xC0 == 0x80:
                h = _step(h, padded[j])
                j += 1
            hashes[n] = h
            n += np.int64(chars >= min_chars)
        i = following
    return i, n


@njit(cache=True, nogil=True, forceinline=True)
def hashed_rows(hashes, found, magic, bucket, num_words, seen, kept, chosen, rows, n):  # type: ignore[no-untyped-def]
    """Append the rows of hashed n-grams to `rows`, which has room; their number now."""
    if len(kept) == 0:
        for k in range(found):
            rows[n + k] = num_words + _modulo(hashes[k], magic, bucket)
        return n + found
    count = np.int64(0)
    for k in range(found):
        at = _modulo(hashes[k], magic, bucket)
        chosen[count] = at
        count += np.int64(seen[at >> 3] >> (at & 7) & 1)
    for k in range(count):
        rows[n + k] = num_words + np.int64(kept[chosen[k]])
    return n + count


@njit(cache=True, nogil=True, forceinline=True)
def _same_head(data, a, b, size):  # type: ignore[no-untyped-def]
    """Whether `size` bytes at a and at b are the same."""
    same = 0
    while same < size and data[a + same] == data[b + same]:
        same += 1
    return same == size


@njit(cache=True, nogil=True)
def word_rows(  # type: ignore[no-untyped-def]
    data, begin, end, marks, blob, word_offsets, table, num_words, min_chars, max_chars, bucket, magic, seen, kept,
    rows, hashes, num_hashes, padded, ngrams, chosen, cache, pool, used,
):  # fmt: skip
    """Fill `rows` with the rows of the words from `begin` on: (where it stopped, rows, hashes).

    It stops at the end, before a word of more than `LONG_BYTES`, or when there may be no room for one more word. An
    entry of the cache is a word's last 16 bytes (a word holds no zero byte, so that shorter ones differ too), where it
    stands, its size (0: no entry), its rows' place in the pool and number, its hash. Arrays come one by one, and what
    is called is inlined: else numba would count references for every word.
    """
    n, i = 0, begin
    room = len(rows) - (LONG_BYTES + 2) * max_chars - 1
    while i < end and n <= room:
        skip = separator(data, i, end) if marks[data[i]] else 0
        if skip > 0:
            i += skip
            continue
        start, high, low = i, np.uint64(0), np.uint64(0)
        while i < end:
            if marks[data[i]] and separator(data, i, end) > 0:
                break
            high = high << np.uint64(8) | low >> np.uint64(56)
            low = low << np.uint64(8) | np.uint64(data[i])
            i += 1
        size = i - start
        if size > LONG_BYTES:
            return start, n, num_hashes
        slot = np.int64((high * _MIX ^ low) * _MIX >> np.uint64(64 - CACHE_BITS))
        cached = cache[slot, 3] == size and cache[slot, 0] == np.int64(high) and cache[slot, 1] == np.int64(low)
        if cached and (size <= 16 or _same_head(data, cache[slot, 2], start, size - 16)):
            at, count = cache[slot, 4], cache[slot, 5]
            for k in range(count):
                rows[n + k] = pool[at + k]
            n += count
            hashes[num_hashes] = np.int32(cache[slot, 6])
            num_hashes += len(hashes) > 1
            continue
        h = fnv(data, start, i)
        word = find(blob, word_offsets, table, data, start, i, h)
        if word >= num_words or (word < 0 and labelled(data, start, i)):
            continue
        first = n
        if word >= 0:
            rows[n] = word
            n += 1
        if max_chars > 0:
            padded[0], padded[size + 1], padded[size + 2] = LESS, GREATER, 0
            for k in range(size):
                padded[k + 1] = data[start + k]
            _, found = ngram_hashes(padded, size + 2, 0, min_chars, max_chars, ngrams)
            n = hashed_rows(ngrams, found, magic, bucket, num_words, seen, kept, chosen, rows, n)
        hashes[num_hashes] = np.int32(h)
        num_hashes += len(hashes) > 1
        count = n - first
        if used[0] + count > len(pool):
            for k in range(len(cache)):
                cache[k, 3] = 0
            used[0] = 0
        at = used[0]
        for k in range(count):
            pool[at + k] = rows[first + k]
        used[0] = at + count
        cache[slot, 0], cache[slot, 1], cache[slot, 2], cache[slot, 3] = np.int64(high), np.int64(low), start, size
        cache[slot, 4], cache[slot, 5], cache[slot, 6] = at, count, np.int64(h)
    return i, n, num_hashes


@njit(cache=True, nogil=True)
def word_end(marks, data, i, end):  # type: ignore[no-untyped-def]
    while i < end and not (marks[data[i]] and separator(data, i, end) > 0):
        i += 1
    return i
