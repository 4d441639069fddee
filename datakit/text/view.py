"""The text of a row that language, dedup and the filters look at, computed for a whole batch in Arrow."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

On = Literal["all", "prompt", "answer"]

SEPARATOR = "\n\n"
_ANSWER_ROLES = ("assistant",)
_CONTEXT_ROLES = ("system", "developer", "tool", "function")  # instructions and tool results


def view(
    batch: pa.RecordBatch, on: On = "all", include_system: bool = False, *, include_calls: bool = False
) -> pa.Array:
    """One text per row (string array, never null), its parts joined by a blank line.

    document: `text`, whatever `on` is. conversation: "prompt" is the user turns, "answer" the assistant turns with
    their reasoning, "all" both in order. preference: "prompt" is the prompt's turns, "answer" chosen then rejected.
    System prompts, tool results and tool schemas are left out unless `include_system`; the tool calls of the
    assistant, which are JSON and not prose, unless `include_calls`.

    Raises:
        KeyError: the batch has none of the columns that hold text.
    """
    return _joined(_parts(batch, on, include_system, include_calls))


def sides(
    batch: pa.RecordBatch, on: On = "all", include_system: bool = False, *, include_calls: bool = False
) -> list[pa.Array]:
    """What is compared with its like: [what stands before the answers, chosen, rejected] of preference pairs, unless
    `on` is "prompt"; of all other rows their `view` alone.
    """
    parts = _parts(batch, on, include_system, include_calls)
    if on == "prompt" or {"text", "messages"} & set(batch.schema.names):
        return [_joined(parts)]
    before = parts[:-2] or [pa.array([""] * batch.num_rows, pa.string())]
    return [_joined(before), *(_joined([answer]) for answer in parts[-2:])]


def _parts(batch: pa.RecordBatch, on: On, include_system: bool, include_calls: bool) -> list[pa.Array]:
    """The texts that a row's view is joined of; both answers of a preference pair come last."""
    names = batch.schema.names
    if "text" in names:
        return [batch.column("text").cast(pa.string())]
    if "messages" in names:
        parts = [_turns(batch.column("messages"), on, include_system, include_calls)]
    elif "chosen" in names:
        prompt = [] if on == "answer" else ["prompt"]
        answer = [] if on == "prompt" else ["chosen", "rejected"]
        parts = [_turns(batch.column(name), "all", include_system, include_calls) for name in prompt + answer]
    else:
        raise KeyError(f"rows with the columns {', '.join(names)} have no text to look at")
    if include_system and "tools" in names:
        parts.insert(0, batch.column("tools"))
    return parts


def _turns(messages: pa.Array, on: On, include_system: bool, include_calls: bool) -> pa.Array:
    """The turns that `on` asks for of a list<struct> column, joined per row."""
    turns = messages.flatten()
    role = pc.struct_field(turns, "role")
    answers = pc.is_in(role, pa.array(_ANSWER_ROLES))
    context = pc.is_in(role, pa.array(_CONTEXT_ROLES))
    prompts = pc.invert(pc.or_(answers, context))
    wanted = {"all": pc.or_(prompts, answers), "prompt": prompts, "answer": answers}[on]
    if include_system:
        wanted = pc.or_(wanted, context)
    names = ["reasoning_content", "content"] + (["tool_calls"] if include_calls else [])
    present = {field.name for field in turns.type}
    texts = _joined([pc.struct_field(turns, name) for name in names if name in present])
    wanted = pc.and_(wanted, pc.greater(pc.binary_length(texts), 0))
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(messages)), lengths)[wanted.to_numpy(zero_copy_only=False)]
    offsets = np.searchsorted(row, np.arange(len(messages) + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts.filter(wanted))
    return pc.binary_join(lists, SEPARATOR)


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Element-wise join of string arrays; nulls and empty texts leave no separator behind."""
    joined = pc.fill_null(parts[0], "")
    for part in parts[1:]:
        text = pc.fill_null(part, "")
        both = pc.and_(pc.greater(pc.binary_length(joined), 0), pc.greater(pc.binary_length(text), 0))
        separator = pc.if_else(both, pa.scalar(SEPARATOR), pa.scalar(""))
        # not with null_handling="skip": Arrow then loses elements that are null in every part
        joined = pc.binary_join_element_wise(joined, separator, text, pa.scalar(""))
    return joined
