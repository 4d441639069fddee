"""From encodings to ids: added tokens under their own numbers, labels from characters to tokens."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.pack.chat import FIRST_PRIVATE, PRIVATE, RESERVED, ChatTokenizer
from datakit.pack.labels import Labelled, RowError

Spans = list[tuple[int, int]]


def plain_ids(tokenizer: ChatTokenizer, text: str, ids: list[int]) -> list[int]:
    """The ids of a text, checked.

    Raises:
        RowError: there are none, or the text cannot be kept apart from added tokens.
    """
    if not ids:
        raise RowError("empty", "no text")
    if RESERVED in text:
        _refuse_reserved(text)
    if tokenizer.spelled_by_model:
        _refuse_spelled(tokenizer, ids)
    return ids


def _refuse_reserved(text: str) -> None:
    """The tokenizer's added tokens are spelled in code points that no text has: a text that has them is refused."""
    last = chr(FIRST_PRIVATE + PRIVATE)
    if any(chr(FIRST_PRIVATE) <= follower[:1] < last for follower in text.split(RESERVED)[1:]):
        raise RowError("reserved_code_point", "the text has U+FDD0 before a private-use character")


def _refuse_spelled(tokenizer: ChatTokenizer, ids: Sequence[int]) -> None:
    found = tokenizer.spelled_by_model.intersection(ids)
    if found:
        raise RowError("special_token_in_content", f"the model reads {tokenizer.token(min(found))!r} out of plain text")


def labelled_ids(
    tokenizer: ChatTokenizer, row: Labelled, encoding: Any, min_label_tokens: int
) -> tuple[npt.NDArray[np.int32], Spans]:
    """The ids of a rendered row and its label spans in tokens, from the library's encoding.

    Raises:
        RowError: too few labels, or text that cannot be kept apart from added tokens.
    """
    ids = np.array(encoding.ids, np.int32)
    added = _added(tokenizer, row, ids)
    spans = [_token_span(encoding, *span) for span in row.labels]
    return _settled(tokenizer, row, ids, added, spans, min_label_tokens)


def labelled_bytes(
    tokenizer: ChatTokenizer,
    row: Labelled,
    ids: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int64],
    min_label_tokens: int,
) -> tuple[npt.NDArray[np.int32], Spans]:
    """The same from ids, which are changed in place, and the byte of the row's text that each of them ends at.

    Raises:
        RowError: too few labels, or text that cannot be kept apart from added tokens.
    """
    added = _added(tokenizer, row, ids)
    starts = np.concatenate([[0], ends[:-1]])
    edges = _bytes_before(row.text, [c for span in row.labels for c in span])
    found: list[int] = np.searchsorted(starts, edges).tolist()
    spans = list(zip(found[::2], found[1::2], strict=True))
    return _settled(tokenizer, row, ids, added, spans, min_label_tokens)


def _bytes_before(text: str, characters: Sequence[int]) -> list[int]:
    """How many bytes of a text stand before each of ascending characters."""
    parts = (text[a:b] for a, b in pairwise([0, *characters]))
    return list(accumulate(len(part.encode()) for part in parts))


def _added(tokenizer: ChatTokenizer, row: Labelled, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Where added tokens stand: no more and no fewer than the template wrote."""
    added = np.flatnonzero(ids >= tokenizer.first_added)
    if len(added) != row.structural:
        reason = f"the template wrote {row.structural} added tokens, the text encodes to {len(added)}"
        raise RowError("reserved_code_point", reason)
    if tokenizer.spelled_by_model:
        _refuse_spelled(tokenizer, ids.tolist())
    return added


def _settled(
    tokenizer: ChatTokenizer,
    row: Labelled,
    ids: npt.NDArray[np.int32],
    added: npt.NDArray[np.int64],
    spans: Spans,
    min_label_tokens: int,
) -> tuple[npt.NDArray[np.int32], Spans]:
    """Added tokens under their own numbers, labels counted."""
    # The first token of a sequence is never a target.
    if sum(b - max(a, 1) for a, b in spans) < max(min_label_tokens, 0):
        raise RowError("no_labels", f"fewer than {min_label_tokens} label tokens in {len(row.labels)} labelled turns")
    ids[added] = [tokenizer.real_ids[i] for i in ids[added].tolist()]
    return ids, spans


def _token_span(encoding: Any, start: int, end: int) -> tuple[int, int]:
    """The tokens whose first character lies in [start, end), which ends with an end token's last character."""
    found = (encoding.char_to_token(c) for c in range(start, end))  # a tokenizer may skip white space
    first, last = next(t for t in found if t is not None), encoding.char_to_token(end - 1)
    return first + (encoding.token_to_chars(first)[0] < start), last + 1
