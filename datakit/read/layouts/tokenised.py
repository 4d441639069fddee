"""Token layouts: records that hold token ids, with an optional loss mask."""

from array import array
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from datakit.read.layouts.record import Fields, MisfitError, name_of
from datakit.read.layouts.turns import PLAIN, Reading, first_of

IDS: Final = ("input_ids", "ids")
MASKS: Final = ("loss_mask", "assistant_masks", "completion_mask", "labels")
IGNORED: Final = -100
"""The label of tokens that are not learned, PyTorch's default `ignore_index`."""

Ids: TypeAlias = list[int]
Spans: TypeAlias = list[tuple[int, int]]


class Tokens(NamedTuple):
    """Token ids and the spans to learn (None: all of them); for a pair also those of the rejected answer."""

    input_ids: Ids
    label_spans: Spans | None
    rejected_ids: Ids | None
    rejected_label_spans: Spans | None
    used: tuple[str, ...]
    left: Fields


def is_ids(value: Any) -> bool:
    """Whether a value looks like token ids."""
    return type(value) is list and len(value) > 0 and type(value[0]) is int and type(value[-1]) is int


def from_ids(fields: Fields, _: Reading = PLAIN) -> Tokens:
    """`input_ids` or `ids`, with a mask of 0 and 1 for each id, or with `labels`: -100 for ids that are not learned."""
    key = first_of(IDS, fields)
    if not key:
        raise MisfitError("missing_field", f"ids or input_ids should be there; the fields are {', '.join(fields)}")
    ids = _ids(fields[key], key)
    mask = first_of(MASKS, fields)
    spans = _spans(fields[mask], mask, ids) if mask else None
    return Tokens(ids, spans, None, None, (key, mask) if mask else (key,), {})


def from_id_pair(fields: Fields, _: Reading = PLAIN) -> Tokens:
    """`chosen_ids` and `rejected_ids`, which follow `prompt_ids`; without it their common beginning is the prompt."""
    names: tuple[str, ...] = ("chosen_ids", "rejected_ids")
    if any(n not in fields for n in names):
        raise MisfitError(
            "missing_field", f"chosen_ids and rejected_ids should be there; the fields are {', '.join(fields)}"
        )
    chosen, rejected = (_ids(fields[n], n) for n in names)
    if "prompt_ids" in fields:
        prompt = _ids(fields["prompt_ids"], "prompt_ids")
        chosen, rejected, names = prompt + chosen, prompt + rejected, (*names, "prompt_ids")
        shared = len(prompt)
    else:
        limit = min(len(chosen), len(rejected)) - 1
        shared = next((i for i in range(limit) if chosen[i] != rejected[i]), max(limit, 0))
    return Tokens(chosen, [(shared, len(chosen))], rejected, [(shared, len(rejected))], names, {})


def _ids(value: Any, where: str) -> Ids:
    if type(value) is not list or not value:
        raise MisfitError("bad_ids", f"{where} should be a list of token ids, found {name_of(value)}")
    try:
        array("i", value)  # checks in C that all are integers of at most 31 bits
    except (TypeError, OverflowError) as e:
        raise MisfitError("bad_ids", f"{where} should hold token ids below 2**31: {e}") from None
    if min(value) < 0:
        raise MisfitError("bad_ids", f"{where} should hold token ids, found {min(value)}")
    return value


def _spans(mask: Any, where: str, ids: Ids) -> Spans:
    """The runs of ids to learn, as half-open ranges."""
    if type(mask) is not list or len(mask) != len(ids):
        found = f"{len(mask)} of them" if type(mask) is list else name_of(mask)
        raise MisfitError("bad_mask", f"{where} should be a list of {len(ids)} values, one per token id, found {found}")
    if where == "labels":
        if any(label not in (IGNORED, token) for label, token in zip(mask, ids, strict=True)):
            raise MisfitError("bad_mask", f"labels should repeat the token ids or be {IGNORED}, aligned with them")
        mask = [label != IGNORED for label in mask]
    elif any(m not in (0, 1) for m in mask):
        raise MisfitError("bad_mask", f"{where} should hold 0 and 1 only")
    edges = [i for i, (a, b) in enumerate(pairwise([0, *mask, 0])) if bool(a) != bool(b)]
    return list(zip(edges[::2], edges[1::2], strict=True))
