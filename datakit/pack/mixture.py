"""Which rows of each source are packed: at most so many tokens of a source, and sources in given shares of all tokens.

The rows of a source are taken in the order of a hash of their content, until the tokens are reached. So the choice does
not depend on the order of the files, rows of equal content are taken or left together, and a larger limit keeps every
row that a smaller one keeps. With weights the packed set is the largest one with these shares in which no row is used
twice. Repeated rows are the trainer's (`--weights` for several manifests).

The price: the token rows are read once more, in work units. Each writes group, hash and tokens of its rows (`Keyed`, 24
bytes a row) to a file. `Mixture.of` reads these files one after another, and keeps sums over `BINS` equal ranges of the
hashes for each group, and the rows of the one range in which a limit is reached.
"""

from binascii import unhexlify
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import splitmix64, string_buffers
from datakit.errors import ConfigError
from datakit.pack.format import Int64
from datakit.stage import Decision

Keyed = npt.NDArray[np.int64]
"""int64 (3, rows): the group of each row (the number of its pattern), its place in the order of hashes, its tokens."""

BINS = 1 << 12
ORDER_BITS = 63
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
    """No row with a larger hash is taken; -1: no row is."""
    reason: str
    """Why the other rows are not taken."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """The choice of rows, by group of sources (a name, or a pattern such as `code/*`)."""

    shares: Mapping[str, Share]

    @classmethod
    def of(
        cls, files: Sequence[Path], sources: Iterable[str], max_tokens: Mapping[str, int], weights: Mapping[str, float]
    ) -> "Mixture":
        """Choose the rows of a dataset from files of `keyed` rows, and its sources.

        Raises:
            ConfigError: a pattern matches no source, or weights are given and a source matches none of them.
        """
        names = sorted(sources)
        if not names:
            return cls({})
        patterns = patterns_of(max_tokens, weights)
        _check(names, patterns, weights)
        sums = _sums(files, len(patterns))
        most = [max_tokens.get(name, np.inf) for name in patterns]
        shares = dict(zip(patterns, _taken(files, sums, most, OVER_MAX_TOKENS), strict=True))
        total = min((shares[name].kept_tokens / weight for name, weight in weights.items()), default=0)
        most = [int(total * weights[name]) if name in weights else np.inf for name in patterns]
        fewer = zip(patterns, _taken(files, sums, most, OVER_WEIGHT), strict=True)
        return cls(shares | {name: new for name, new in fewer if new.kept_tokens < shares[name].kept_tokens})

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Which rows are left out, why, and the numbers behind it."""
        order, which = order_of(batch.column("content_hash")), _groups_of(batch, list(self.shares))
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


def patterns_of(max_tokens: Mapping[str, int], weights: Mapping[str, float]) -> list[str]:
    """The groups of sources, in the order of their numbers."""
    return list(dict.fromkeys([*weights, *max_tokens]))


def keyed(batches: Iterable[pa.RecordBatch], patterns: list[str]) -> tuple[Keyed, set[str]]:
    """The rows that belong to a pattern, for `Mixture.of`, and the sources of all rows; batches have the `COLUMNS` that
    there are."""
    found, sources = [np.empty((3, 0), np.int64)], set[str]()
    for batch in batches:
        sources.update(batch.column("source").fill_null("").unique().to_pylist())
        rows = np.stack([_groups_of(batch, patterns), order_of(batch.column("content_hash")), token_counts(batch)])
        found.append(rows[:, rows[0] >= 0])
    return np.concatenate(found, axis=1), sources


def order_of(content_hash: pa.Array) -> Int64:
    """The place of rows in the order that they are taken in, int64 (rows,), from hashes of at least 16 hex digits.

    63 bits of SplitMix64, so that the validation set, which has the rows with the smallest content hashes, is a sample
    of each source.
    """
    data, offsets = string_buffers(pc.utf8_slice_codeunits(content_hash, 0, 16))
    numbers = np.frombuffer(unhexlify(data[offsets[0] : offsets[-1]].data), ">u8").astype(np.uint64)
    return (splitmix64(numbers) >> np.uint64(64 - ORDER_BITS)).astype(np.int64)


def token_counts(batch: pa.RecordBatch) -> Int64:
    """Tokens of each row, int64 (rows,); of both sides for preference pairs."""
    columns = [batch.column(name) for name in ("input_ids", "rejected_ids") if name in batch.schema.names]
    lengths = (pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False) for column in columns)
    return sum(lengths, np.zeros(batch.num_rows, np.int64))


def _group(source: str, patterns: Iterable[str]) -> str:
    """The first pattern that matches a source; a pattern that is the very name comes first. "" if none does."""
    matching = [p for p in patterns if p == source or fnmatchcase(source, p)]
    return source if source in matching else next(iter(matching), "")


def _groups_of(batch: pa.RecordBatch, patterns: list[str]) -> Int64:
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


def _table(file: Path) -> Keyed:
    """The `keyed` rows in a file."""
    return np.fromfile(file, np.int64).reshape(3, -1)


def _bin_of(order: Int64) -> Int64:
    """The range of hashes that each one is in, int64 (rows,)."""
    return order // ((1 << ORDER_BITS) // BINS)


def _sums(files: Iterable[Path], groups: int) -> Int64:
    """Rows and tokens of each group in each range of hashes, int64 (2, groups, BINS)."""
    sums = np.zeros((2, groups * BINS), np.int64)
    for which, order, tokens in map(_table, files):
        at = which * BINS + _bin_of(order)
        sums[0] += np.bincount(at, minlength=groups * BINS)
        sums[1] += np.bincount(at, tokens, groups * BINS).astype(np.int64)  # sums below 2**53 are exact
    return sums.reshape(2, groups, BINS)


def _taken(files: Iterable[Path], sums: Int64, limits: Sequence[float], reason: str) -> list[Share]:
    """Of each group the rows with the smallest hashes that have at most `limit` tokens together; equal hashes stay
    together."""
    ends = np.pad(sums.cumsum(axis=2), ((0, 0), (0, 0), (1, 0)))  # what is before each range, and at last all
    # the range in which each group's limit is passed; BINS: none, so that no row of the group is looked at
    cut = np.array([np.searchsorted(end, limit, side="right") - 1 for end, limit in zip(ends[1], limits, strict=True)])
    found = [np.empty((3, 0), np.int64)]
    for table in map(_table, files if (cut < BINS).any() else ()):
        found.append(table[:, _bin_of(table[1]) == cut[table[0]]])
    near, shares = np.concatenate(found, axis=1), []
    for group, (rows, tokens) in enumerate(ends[:, :, -1].T.tolist()):
        kept_rows, kept_tokens = ends[:, group, cut[group]].tolist()
        last = (1 << ORDER_BITS) - 1
        if cut[group] < BINS:
            order, sizes = near[1:, near[0] == group]
            by = np.argsort(order, kind="stable")
            sums_here = kept_tokens + np.cumsum(sizes[by])
            first_out = order[by[np.searchsorted(sums_here, limits[group], side="right")]]
            kept_rows += int((order < first_out).sum())
            kept_tokens += int(sizes[order < first_out].sum())
            last = int(first_out) - 1
        shares.append(Share(rows, tokens, kept_rows, kept_tokens, last, reason))
    return shares
