"""Where lines, paragraphs, sentences and tokens lie in texts, and texts without some of them.

- A line ends where `str.splitlines` ends one, a paragraph at a blank line.
- A sentence ends at a mark of any script (Unicode's Sentence_Terminal) with the quotes and brackets after it, before
  white space, and at the end of its line. Marks of scripts written without spaces need no space after them. Thai and
  Lao mark no end of a sentence: there it is a line. So an abbreviation ends a sentence too. Equal texts are divided
  alike whatever the rule, so that this makes some sentences shorter and hides no repeat.
- A token is a word, as dedup compares them (`text.words`).

A cut takes the white space around it along, so that the text reads as if the passage had never been there, and
punctuation goes with the unit that it follows. Each piece is kept with the byte where it was.
"""

import unicodedata
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import string_array, string_buffers
from datakit.text.words import BREAKS, TERMINALS, character_table, compose, hash_words, with_hashes

Unit = Literal["line", "paragraph", "sentence", "token"]

_MODES: Final = {"line": 0, "paragraph": 1, "sentence": 2}
_ALONE: Final = "\u104a\u104b\u17d4\u17d5\u3002\uff01\uff1f\uff61"  # terminals of Myanmar, Khmer, Chinese, Japanese


@lru_cache(maxsize=1)
def flags() -> npt.NDArray[np.uint8]:
    """uint8[0x110000]: what each code point is to the kernels. Read-only."""
    from datakit.dedup import _kernels_repeats as kernels

    table = np.zeros(0x110000, np.uint8)
    kinds = {
        "Pi": kernels.OPENS_QUOTE, "Pf": kernels.CLOSES_QUOTE, "Ps": kernels.OPENS_BRACKET, "Pe": kernels.CLOSES_BRACKET
    }  # fmt: skip
    for code in range(0x10000):  # there are none beyond
        table[code] = kinds.get(unicodedata.category(chr(code)), 0)
    table[[ord(c) for c in "¿¡"]] = kernels.OPENS_QUOTE
    table[[ord(c) for c in "\"'"]] = kernels.CLOSES_QUOTE
    table[[c for c in range(0x3001) if chr(c).isspace()]] |= np.uint8(kernels.SPACE)
    for flag, chars in ((kernels.BREAK, BREAKS), (kernels.TERMINAL, TERMINALS), (kernels.ALONE, _ALONE)):
        table[[ord(c) for c in chars]] |= np.uint8(flag)
    table.setflags(write=False)
    return table


class Bounds(NamedTuple):
    """Bytes of a string array's buffer that the units fill: unit u is `data[starts[u]:ends[u]]`.

    int64 each; those of row i are numbered from `row_starts[i]` to `row_starts[i + 1]`.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


def bounds(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unit: Unit) -> Bounds:
    """The units of texts, given as `string_buffers` gives them; tokens are words."""
    from datakit.dedup import _kernels_repeats as kernels

    most = offsets[-1] - offsets[0] + len(offsets)
    starts, ends, row_starts = np.empty(most, np.int64), np.empty(most, np.int64), np.empty_like(offsets)
    if unit == "token":
        table = character_table()
        kernels.find_words(data, offsets, table.pages, table.entries, starts, ends, row_starts)
    else:
        kernels.find_units(data, offsets, flags(), _MODES[unit], starts, ends, row_starts)
    return Bounds(starts[: row_starts[-1]].copy(), ends[: row_starts[-1]].copy(), row_starts)


def comparable(texts: pa.Array, unit: Unit) -> pa.Array:
    """The texts in NFC, whose units are compared. They have the same numbers in the texts as they are, which are cut.

    So a text that has another number of words in NFC stays as it is where words are compared (kana with a separate
    voicing mark are two words that NFC makes one).
    """
    composed = compose(texts)
    changed = pc.indices_nonzero(pc.not_equal(texts, composed)) if unit == "token" and composed is not texts else []
    if not len(changed):
        return composed
    counts = [np.diff(hash_words(some.take(changed))[1]) for some in (texts, composed)]
    keep = np.zeros(len(texts), np.bool_)
    keep[np.asarray(changed)[counts[0] != counts[1]]] = True
    return pc.if_else(pa.array(keep), texts, composed)


class Runs(NamedTuple):
    """Runs of units, in the order of rows: units `firsts[k]` up to `ends[k]` of the row `rows[k]`. int64 each."""

    rows: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


def decided_runs(decided: pa.RecordBatch) -> Runs:
    """The columns `cut` and `cut_end` of decisions, whose lists are null where nothing is cut."""
    lengths = pc.fill_null(pc.list_value_length(decided.column("cut")), 0).to_numpy(zero_copy_only=False)
    firsts, ends = (
        decided.column(name).flatten().to_numpy(zero_copy_only=False).astype(np.int64) for name in ("cut", "cut_end")
    )
    return Runs(np.repeat(np.arange(decided.num_rows), lengths), firsts, ends)


def cut_runs(texts: pa.Array, units: Bounds, runs: Runs) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]:
    """Cut runs of units out of texts; none of them may be empty.

    (the texts; the bytes of each run; for each run the byte of its row where they were)
    """
    from datakit.dedup import _kernels_repeats as kernels

    data, offsets = string_buffers(texts)
    size, run_starts = offsets[-1] - offsets[0], np.searchsorted(runs.rows, np.arange(len(texts) + 1))
    kept, gone = np.empty(size, np.uint8), np.empty(size, np.uint8)
    kept_offsets, gone_offsets = np.empty_like(offsets), np.zeros(len(runs.rows) + 1, np.int64)
    places = np.empty(len(runs.rows), np.int64)
    kernels.cut_runs(
        data, offsets, flags(), tuple(units), run_starts, runs.firsts, runs.ends,
        kept, kept_offsets, gone, gone_offsets, places,
    )  # fmt: skip
    made = string_array(kept[: kept_offsets[-1]], kept_offsets)
    return made, string_array(gone[: gone_offsets[-1]], gone_offsets), places


def edit(
    batch: pa.RecordBatch, decided: pa.RecordBatch, edited: pa.Array, unit: Unit
) -> tuple[dict[str, pa.Array], pa.RecordBatch]:
    """Cut what the decisions about the `edited` rows of a batch (bool) say: (the columns that change, the table
    `cuts`).

    The table has a row for each piece: `row_key`, `id`, `start` (the byte of the row's text where the piece was),
    `text` (the piece), `duplicate_of` (the id of the row that still has it) and `duplicate_in` (the version of that
    row's run, null for this one; only where there are earlier runs). With the pieces put back, the text is as it was.
    """
    texts, changed = batch.column("text").filter(edited), decided.filter(edited)
    units, runs = bounds(*string_buffers(texts), unit), decided_runs(changed)
    kept, pieces, places = cut_runs(texts, units, runs)
    text = pc.replace_with_mask(batch.column("text"), edited, kept)
    columns = with_hashes(batch, {"text": text}, edited)
    head = {name: batch.column(name).filter(edited).take(pa.array(runs.rows)) for name in ("row_key", "id")}
    survivors = {
        name: changed.column(column).flatten()
        for name, column in (("duplicate_of", "kept_in"), ("duplicate_in", "kept_in_run"))
        if column in changed.schema.names
    }
    return columns, pa.record_batch(head | {"start": pa.array(places), "text": pieces} | survivors)
