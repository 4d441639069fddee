"""Limits of the user. `lengths`: rows that are too short or too long. `sample`: a share of the rows.

Characters, words and tokens are those of the part of a row that the stage looks at (`on`), turns those of the whole
conversation: a turn is a message of the user or the assistant. A character is a code point; words are Gopher's. Tokens
are the ids of a tokenizer, without special tokens and without a chat template.

A sample is drawn by the hash of each row's content and the seed alone. So more rows, other files or another order
change nothing for a row; a smaller share is part of a larger one; and rows of equal content stay or go together. It is
a draw of rows: sources of long rows keep about the same share of text, not exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.data import splitmix64
from datakit.errors import ConfigError
from datakit.filter.rule_set import Measure, MeasuredRows, Report, Resources, RuleSet, Signals
from datakit.text.ids import open_tokenizer, tokenizer_digest
from datakit.text.words import binary_digest, stated_digest

NO_LIMIT: Final = 10**9
"""More than any row has."""

_BITS: Final = 53
"""Of a draw: as many as a float holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lengths(RuleSet):
    """The shortest and the longest rows; nothing is limited by default."""

    name: ClassVar[str] = "lengths"
    shared: ClassVar[bool] = True
    measured_with: ClassVar[tuple[str, ...]] = ("tokenizer",)

    min_chars: int = option(0, "drop rows with fewer characters")
    max_chars: int = option(NO_LIMIT, "drop rows with more characters")
    min_words: int = option(0, "drop rows with fewer words")
    max_words: int = option(NO_LIMIT, "drop rows with more words")
    min_tokens: int = option(0, "drop rows with fewer tokens")
    max_tokens: int = option(NO_LIMIT, "drop rows with more tokens")
    min_turns: int = option(0, "drop conversations with fewer turns")
    max_turns: int = option(NO_LIMIT, "drop conversations with more turns")
    tokenizer: str = option("", "a tokenizer.json or its folder; what tokens are counted with", path=True)

    def check(self) -> None:
        """Refuse limits on tokens without a tokenizer."""
        if (self.min_tokens > 0 or self.max_tokens < NO_LIMIT) and not self.tokenizer:
            raise ConfigError("min_tokens and max_tokens need a tokenizer: name its tokenizer.json or folder")

    def resources(self) -> Resources:
        """The tokenizer.

        Raises:
            ModelError: the file is missing or no tokenizer.
        """
        return Resources({"lengths_tokenizer": tokenizer_digest(self.tokenizer)} if self.tokenizer else {})

    def signals(self, rows: MeasuredRows) -> Signals:
        """`lengths_tokens` where there is a tokenizer, `lengths_turns` of rows with turns."""
        counts = Signals()
        if self.tokenizer:
            found = open_tokenizer(self.tokenizer).encode_batch_fast(rows.texts.to_pylist(), add_special_tokens=False)
            counts["lengths_tokens"] = np.array([len(one) for one in found], np.int64)
        for name in [n for n in ("messages", "prompt") if n in rows.batch.schema.names]:
            column = rows.batch.column(name)
            said = pc.is_in(pc.struct_field(column.flatten(), "role"), pa.array(["user", "assistant"]))
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
            row = np.repeat(np.arange(len(column)), lengths)[said.to_numpy(zero_copy_only=False)]
            turns = np.bincount(row, minlength=len(column)).astype(np.int64)
            counts["lengths_turns"] = turns + (name == "prompt")  # the answers of a preference pair are one turn
        return counts

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields."""
        counts = rows.counted(self)
        lengths = {"chars": rows.signals["chars"], "words": rows.signals["words"]}
        lengths |= {n: counts[f"lengths_{n}"] for n in ("tokens", "turns") if f"lengths_{n}" in counts}
        for what, values in lengths.items():
            yield Measure(f"min_{what}", values)
            yield Measure(f"max_{what}", values)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSample(RuleSet):
    """How large the share is."""

    name: ClassVar[str] = "sample"
    measured_with: ClassVar[tuple[str, ...]] = ("seed",)

    share: float = option(1.0, "the share of rows that stays")
    sources: dict[str, float] = option({}, "source = share, for sources with a share of their own")
    seed: int = option(0, "another seed draws other rows")

    def check(self) -> None:
        """Refuse what is no share."""
        for name, share in {"share": self.share, **{f"sources.{n}": s for n, s in self.sources.items()}}.items():
            if not 0 <= share <= 1:
                raise ConfigError(f"{name} is a share and lies in [0, 1], found {share}")

    def signals(self, rows: MeasuredRows) -> Signals:
        """`sample_draw`: an integer below 2**53 for each row, as likely as any other."""
        if "content_hash" in rows.batch.schema.names:
            digests = stated_digest(rows.batch.column("content_hash"))
        else:
            digests = binary_digest(rows.whole_rows)
        words = np.frombuffer(digests.buffers()[1], np.uint64)[::2][: len(digests)]
        return Signals(sample_draw=(_mixed(words, self.seed) >> np.uint64(64 - _BITS)).astype(np.int64))

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The draws, as numbers above 0 and at most 1. A row of a source with its own share counts as 0 or 2."""
        draws = (rows.counted(self)["sample_draw"] + 1) / 2**_BITS
        values, details = draws.copy(), [f"draw {draw:.6f} > {self.share}" for draw in draws.tolist()]
        for source, share in self.sources.items():
            of = pc.fill_null(pc.equal(rows.batch.column("source"), source), False).to_numpy(zero_copy_only=False)
            values[of] = np.where(draws[of] <= share, 0, 2)
            for row in np.flatnonzero(of).tolist():
                details[row] = f"draw {draws[row]:.6f} > {share}, the share of {source}"
        yield Measure("share", values, describe=lambda which: [details[row] for row in which.tolist()])

    def report(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> Report:
        """The rows of each source with a share of its own: 0 shows a misspelt name."""
        sources = rows.batch.column("source") if self.sources else None
        return Report({f"sample_rows_of_{n}": pc.sum(pc.equal(sources, n)).as_py() or 0 for n in self.sources})


def _mixed(words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Words that depend on every bit of the given ones and of the seed."""
    golden = 0x9E3779B97F4A7C15
    return splitmix64((words ^ np.uint64(seed * golden % 2**64)) - np.uint64(golden))  # which adds that number first
