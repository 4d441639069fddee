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
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import splitmix64
from datakit.errors import ConfigError
from datakit.stage import Decision

OVER_MAX_TOKENS, OVER_WEIGHT = "over_max_tokens", "over_weight"
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
        hashes: dict[str, list[npt.NDArray[np.uint64]]] = {}
        tokens: dict[str, list[npt.NDArray[np.int64]]] = {}
        for batch in batches:
            order, count = order_of(batch.column("content_hash")), token_counts(batch)
            for source, rows in _by_source(batch.column("source")):
                hashes.setdefault(source, []).append(order[rows])
                tokens.setdefault(source, []).append(count[rows])
        groups = _groups(sorted(hashes), max_tokens, weights)
        found = {
            name: (
                np.concatenate([part for s in members for part in hashes[s]]),
                np.concatenate([part for s in members for part in tokens[s]]),
            )
            for name, members in groups.items()
        }
        whole = {name: int(count.sum()) for name, (_, count) in found.items()}
        limits = {name: min(whole[name], max_tokens.get(name, whole[name])) for name in found}
        shares = {name: _taken(*found[name], limits[name], OVER_MAX_TOKENS) for name in found}
        if weights:
            total = min(shares[name].kept_tokens / weights[name] for name in found)
            for name in found:
                if total * weights[name] < shares[name].kept_tokens:
                    shares[name] = _taken(*found[name], int(total * weights[name]), OVER_WEIGHT)
        return cls(shares)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Which rows are left out, why, and the numbers behind it."""
        order = order_of(batch.column("content_hash"))
        reasons, details = np.full((2, batch.num_rows), None, object)
        for source, rows in _by_source(batch.column("source")):
            name = _group(source, self.shares)
            if name is None:
                continue
            share = self.shares[name]
            left_out = rows[order[rows].astype(np.int64) > share.last]
            reasons[left_out] = share.reason
            details[left_out] = f"{share.kept_tokens:,} of the {share.tokens:,} tokens of {name!r} are taken"
        return Decision(pa.array(reasons, pa.string()), pa.array(details, pa.string()))

    def taken(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches without the rows that are left out."""
        for batch in batches:
            yield batch.filter(pc.is_null(self.decide(batch).reasons)) if self.shares else batch

    def left_out(self, what: Literal["rows", "tokens"]) -> dict[str, int]:
        """Rows or tokens that are left out, by reason."""
        found = Counter[str]()
        for share in self.shares.values():
            rows = what == "rows"
            found[share.reason] += share.rows - share.kept_rows if rows else share.tokens - share.kept_tokens
        return dict(+found)

    def facts(self) -> dict[str, Any]:
        """For the manifest: rows and tokens by group, taken and in all, and each group's share of the taken tokens."""
        total = sum(share.kept_tokens for share in self.shares.values())
        return {
            name: {
                "rows": s.rows,
                "kept_rows": s.kept_rows,
                "tokens": s.tokens,
                "kept_tokens": s.kept_tokens,
                "share": round(s.kept_tokens / total, 4) if total else 0.0,
            }
            for name, s in self.shares.items()
        }

    def alarms(self) -> Iterable[str]:
        """Groups of which nothing is taken."""
        for name, share in self.shares.items():
            if share.rows and not share.kept_rows:
                yield f"no row of {name!r} is packed: its first row has more tokens than its limit or weight allows"


def order_of(content_hash: pa.Array) -> npt.NDArray[np.uint64]:
    """The place of rows in the order that they are taken in, uint64 (rows,), from hashes of at least 16 hex digits.

    63 bits of SplitMix64, so that the validation set, which has the rows with the smallest content hashes, is a sample
    of each source.
    """
    digits = pc.utf8_slice_codeunits(content_hash, 0, 16).to_pylist()
    return splitmix64(np.array([int(d, 16) for d in digits], np.uint64)) >> np.uint64(1)


def token_counts(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Tokens of each row, int64 (rows,); of both sides for preference pairs."""
    count = np.zeros(batch.num_rows, np.int64)
    for name in ("input_ids", "rejected_ids"):
        if name in batch.schema.names:
            count += pc.fill_null(pc.list_value_length(batch.column(name)), 0).to_numpy(zero_copy_only=False)
    return count


def _by_source(sources: pa.Array) -> Iterable[tuple[str, npt.NDArray[np.int64]]]:
    encoded = pc.fill_null(sources, "").dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        yield name, np.flatnonzero(codes == code)


def _group(source: str, patterns: Iterable[str]) -> str | None:
    """The first pattern that matches a source; a pattern that is the very name comes first."""
    known = list(patterns)
    return source if source in known else next((p for p in known if fnmatchcase(source, p)), None)


def _groups(sources: list[str], max_tokens: Mapping[str, int], weights: Mapping[str, float]) -> dict[str, list[str]]:
    """The sources of each pattern, in the order of the patterns."""
    patterns = list(dict.fromkeys([*weights, *max_tokens]))
    groups: dict[str, list[str]] = {p: [] for p in patterns}
    named = f"the sources are {', '.join(map(repr, sources[:10]))}{' and others' if len(sources) > 10 else ''}"
    for source in sources:
        pattern = _group(source, patterns)
        if pattern is not None:
            groups[pattern].append(source)
        if weights and pattern not in weights:
            raise ConfigError(f"pack: weights: the source {source!r} has no weight; give each source one; {named}")
    empty = [p for p, members in groups.items() if not members]
    hidden = [(p, _group(s, patterns)) for p in empty for s in sources if fnmatchcase(s, p)]
    if hidden:
        raise ConfigError(
            f"pack: all sources of {hidden[0][0]!r} belong to {hidden[0][1]!r}, which comes first (weights before "
            "max_tokens); name them in both with the same patterns"
        )
    if empty and sources:
        raise ConfigError(f"pack: {empty[0]!r} matches no source; {named}")
    return {p: members for p, members in groups.items() if members}


def _taken(hashes: npt.NDArray[np.uint64], tokens: npt.NDArray[np.int64], limit: int, reason: str) -> Share:
    """The rows with the smallest hashes that have at most `limit` tokens together; equal hashes stay together."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    count = int(np.searchsorted(np.cumsum(tokens[order]), limit, side="right"))
    if count < len(ordered):
        count = int(np.searchsorted(ordered, ordered[count], side="left"))
    last = int(ordered[count - 1]) if count else -1
    return Share(len(hashes), int(tokens.sum()), count, int(tokens[order[:count]].sum()), last, reason)
