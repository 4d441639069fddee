"""Rows that are too short or too long: in characters, words, tokens or turns.

Characters, words and tokens are those of the part of a row that the stage looks at (`on`), turns those of the whole
conversation: a turn is a message of the user or the assistant. A character is a code point; words are Gopher's. Tokens
are the ids of a tokenizer, without special tokens and without a chat template.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.errors import ConfigError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals
from datakit.text.ids import open_tokenizer, tokenizer_digest

NO_LIMIT: Final = 10**9
"""More than any row has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lengths(RuleSet):
    """The shortest and the longest rows; nothing is limited by default."""

    name: ClassVar[str] = "lengths"
    counts: ClassVar[bool] = True
    shared: ClassVar[bool] = True

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

    def resources(self) -> dict[str, Any]:
        """The tokenizer.

        Raises:
            ModelError: the file is missing or no tokenizer.
        """
        return {"lengths_tokenizer": tokenizer_digest(self.tokenizer)} if self.tokenizer else {}

    def counted_with(self) -> dict[str, Any]:
        """Whether tokens are counted; the tokenizer itself is among the resources."""
        return {"tokens": bool(self.tokenizer)}

    def count_rows(self, rows: MeasuredRows) -> Signals:
        """`lengths_tokens` where there is a tokenizer, `lengths_turns` of rows with turns."""
        counts = {}
        if self.tokenizer:
            found = open_tokenizer(self.tokenizer).encode_batch_fast(
                pc.fill_null(rows.texts, "").to_pylist(), add_special_tokens=False
            )
            counts["lengths_tokens"] = np.array([len(one) for one in found], np.int64)
        fields = [n for n in ("messages", "prompt") if n in rows.batch.schema.names]
        if fields:  # the answers of a preference pair are one turn
            counts["lengths_turns"] = _turns(rows.batch.column(fields[0])) + (fields[0] == "prompt")
        return Signals(counts)

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields."""
        counts = rows.counted(self).counts
        lengths = {"chars": rows.signals["chars"], "words": rows.signals["words"]}
        lengths |= {n: counts[f"lengths_{n}"] for n in ("tokens", "turns") if f"lengths_{n}" in counts}
        for what, values in lengths.items():
            yield Measure(f"min_{what}", values)
            yield Measure(f"max_{what}", values)


def _turns(messages: pa.ListArray) -> NDArray[np.int64]:
    """int64[N]: the messages of the user or the assistant in each list<message>."""
    said = pc.is_in(pc.struct_field(messages.flatten(), "role"), pa.array(["user", "assistant"]))
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(messages)), lengths)
    return np.bincount(row[said.to_numpy(zero_copy_only=False)], minlength=len(messages)).astype(np.int64)
