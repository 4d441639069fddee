"""Which rows of each source are packed: at most so many tokens of a source, and sources in given shares of all tokens.

The rows of a source are taken in the order of a hash of their content, until the tokens are reached. So the choice does
not depend on the order of the files, rows of equal content are taken or left together, and a larger limit keeps every
row that a smaller one keeps. With weights the packed set is the largest one with these shares in which no row is used
twice. Repeated rows are the trainer's (`--weights` for several manifests).

The price: the token rows are read once more, and 16 bytes of memory for each row.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import splitmix64
from datakit.errors import ConfigError
from datakit.pack.format import Int64
from datakit.stage import Decision

UInt64 = npt.NDArray[np.uint64]

OVER_MAX_TOKENS, OVER_WEIGHT = "over_max_tokens", "over_weight"
COUNTS = ("rows", "kept_rows", "tokens", "kept_tokens")
COLUMNS = ("source", "content_hash", "input_ids", "rejected_ids")


@dataclass(frozen=True, slots=True)
class Share:
    """What is taken of one group of sources."""

    rows: int
    tokens: int
    kept_rows: int
    kept_tokens: int
    last: int
    """The largest hash that is taken; -1: no row is."""
    reason: str
    """Why the other rows are not taken."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """The choice of rows, by group of sources (a name, or a pattern such as `code/*`)."""

    shares: Mapping[str, Share]

    @classmethod
    def of(
        cls, batches: Iterable[pa.RecordBatch], max_tokens: Mapping[str, int], weights: Mapping[str, float]
    ) -> "Mixture":
        """Choose the rows of a dataset; the batches have the `COLUMNS` that there are.

        Raises:
            ConfigError: a pattern matches no source, or weights are given and a source matches none of them.
        """
        patterns, sources = list(dict.fromkeys([*weights, *max_tokens])), set[str]()
        parts = [(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64))]
        for batch in batches:
            sources.update(batch.column("source").fill_null("").unique().to_pylist())
            parts.append((_patterns_of(batch, patterns), order_of(batch.column("content_hash")), token_counts(batch)))
        if not sources:
            return cls({})
        _check(sorted(sources), patterns, weights)
        which, order, tokens = (np.concatenate(part) for part in zip(*parts, strict=True))
        found = {name: (order[which == n], tokens[which == n]) for n, name in enumerate(patterns)}
        shares = {name: _taken(*found[name], max_tokens.get(name), OVER_MAX_TOKENS) for name in patterns}
        total = min((shares[name].kept_tokens / weight for name, weight in weights.items()), default=0)
        for name, weight in weights.items():
            if total * weight < shares[name].kept_tokens:
                shares[name] = _taken(*found[name], int(total * weight), OVER_WEIGHT)
        return cls(shares)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Which rows are left out, why, and the numbers behind it."""
        order, which = order_of(batch.column("content_hash")).astype(np.int64), _patterns_of(batch, list(self.shares))
        reasons, details = np.full((2, batch.num_rows), None, object)
        for n, (name, share) in enumerate(self.shares.items()):
            left_out = (which == n) & (order > share.last)
            reasons[left_out] = share.reason
            details[left_out] = f"{share.kept_tokens:,} of the {share.tokens:,} tokens of {name!r} are taken"
        return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()))

    @property
    def tokens_left_out(self) -> int:
        """Tokens of the rows that are left out."""
        return sum(share.tokens - share.kept_tokens for share in self.shares.values())

    def taken(
        self, batches: Iterable[pa.RecordBatch], rows: Counter[str], tokens: Counter[str]
    ) -> Iterator[pa.RecordBatch]:
        """The batches without the rows that are left out, which are counted with their tokens, by reason."""
        for batch in batches:
            reasons, counts = self.decide(batch).reasons, token_counts(batch)
            for reason in reasons.drop_null().unique().to_pylist():
                left_out = pc.equal(reasons, reason).fill_null(False).to_numpy(zero_copy_only=False)
                rows[reason] += int(left_out.sum())
                tokens[reason] += int(counts[left_out].sum())
            yield batch.filter(pc.is_null(reasons))

    def facts(self) -> dict[str, Any]:
        """For the manifest: rows and tokens by group, taken and in all, and each group's share of the taken tokens."""
        total = max(sum(share.kept_tokens for share in self.shares.values()), 1)
        return {
            name: {count: getattr(share, count) for count in COUNTS} | {"share": round(share.kept_tokens / total, 4)}
            for name, share in self.shares.items()
        }

    def alarms(self) -> list[str]:
        """Groups of which nothing is taken."""
        return [
            f"no row of {name!r} is packed: its first row has more tokens than its limit or weight allows"
            for name, share in self.shares.items()
            if share.rows and not share.kept_rows
        ]


def order_of(content_hash: pa.Array) -> UInt64:
    """The place of rows in the order that they are taken in, uint64 (rows,), from hashes of at least 16 hex digits.

    63 bits of SplitMix64, so that the validation set, which has the rows with the smallest content hashes, is a sample
    of each source.
    """
    digits = pc.utf8_slice_codeunits(content_hash, 0, 16).to_pylist()
    return splitmix64(np.array([int(d, 16) for d in digits], np.uint64)) >> np.uint64(1)


def token_counts(batch: pa.RecordBatch) -> Int64:
    """Tokens of each row, int64 (rows,); of both sides for preference pairs."""
    columns = [batch.column(name) for name in ("input_ids", "rejected_ids") if name in batch.schema.names]
    lengths = (pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False) for column in columns)
    return sum(lengths, np.zeros(batch.num_rows, np.int64))


def _group(source: str, patterns: Iterable[str]) -> str:
    """The first pattern that matches a source; a pattern that is the very name comes first. "" if none does."""
    matching = [p for p in patterns if p == source or fnmatchcase(source, p)]
    return source if source in matching else next(iter(matching), "")


def _patterns_of(batch: pa.RecordBatch, patterns: list[str]) -> Int64:
    """The number of the pattern that each row belongs to, int64 (rows,); -1: none."""
    encoded = batch.column("source").fill_null("").dictionary_encode()
    groups = [_group(source, patterns) for source in encoded.dictionary.to_pylist()]
    numbers = np.array([patterns.index(group) if group else -1 for group in groups], np.int64)
    rows: Int64 = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
    return rows


def _check(sources: list[str], patterns: list[str], weights: Mapping[str, float]) -> None:
    """Refuse a source without a weight, and a pattern without a source."""
    taken = {source: _group(source, patterns) for source in sources}
    named = f"the sources are {', '.join(map(repr, sources[:10]))}{' and others' if len(sources) > 10 else ''}"
    if missing := [source for source in sources if weights and taken[source] not in weights]:
        raise ConfigError(f"pack: weights: the source {missing[0]!r} has no weight; give each source one; {named}")
    for pattern in (p for p in patterns if p not in taken.values()):
        others = {taken[source] for source in sources if fnmatchcase(source, pattern)}
        why = f"matches no source but those of {min(others)!r}, which comes first" if others else "matches no source"
        raise ConfigError(f"pack: {pattern!r} {why} (weights before max_tokens); {named}")


def _taken(hashes: UInt64, tokens: Int64, limit: int | None, reason: str) -> Share:
    """The rows with the smallest hashes that have at most `limit` tokens together; equal hashes stay together."""
    order = np.argsort(hashes, kind="stable")
    ordered, sums = hashes[order], np.cumsum(tokens[order])
    whole = int(tokens.sum())
    count = int(np.searchsorted(sums, whole if limit is None else limit, side="right"))
    if count < len(ordered):
        count = int(np.searchsorted(ordered, ordered[count], side="left"))
    kept, last = (int(sums[count - 1]), int(ordered[count - 1])) if count else (0, -1)
    return Share(len(hashes), whole, count, kept, last, reason)
