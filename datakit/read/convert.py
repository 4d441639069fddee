"""One parsed record into the sink: as a row of its file's layout, or into quarantine with what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit import schema
from datakit.layouts.recognise import BY_NAME, Choice
from datakit.layouts.record import Fields, InexactNumbersError, MisfitError, name_of, to_json
from datakit.read.flat import flat_records
from datakit.read.sink import MAX_RECORD_BYTES, Sink
from datakit.text.characters import Bytes


class Original(Protocol):
    """A record as the user wrote it."""

    def value(self, key: str) -> str:
        """The JSON text of a top-level field, "" without it."""

    def without(self, used: tuple[str, ...]) -> list[str]:
        """The JSON text of every `"key": value` but the last of each used key, in the order they stand.

        Of a key that stands twice the last is the value, as parsers have it; the earlier ones are not lost here.
        """

    def exact(self) -> Fields:
        """The fields once more, numbers that a float or an int64 cannot hold exactly as `Number`."""


ID: Final = "id"


@dataclass(frozen=True, slots=True)
class Source:
    """One file as the rows of it need it: its place in the list, its name, its layout, the field of the user's ids."""

    index: int
    name: str
    choice: Choice
    id_field: str = ""


class Converter:
    """Turns the records of one file into rows of a sink."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self.source = source
        self.sink = sink
        self.id_field = source.id_field or ID
        self.first_key = schema.row_key(source.index, 0)
        layout = source.choice.layout
        self.text_field = source.choice.text_field
        self.text_used: tuple[str, ...] = (self.text_field,)
        self.convert = BY_NAME[layout].convert if layout else None

    def add(self, fields: Any, record: int, original: Original, size: int, repeated: bool) -> None:
        """Add one record; `repeated` tells that one of its keys stands twice.

        Raises:
            MisfitError: it does not fit the file's layout.
        """
        if type(fields) is not dict:
            raise MisfitError("not_an_object", f"a record should be an object, found {name_of(fields)}")
        left = ""
        if self.convert is None:
            content, used = fields.get(self.text_field), self.text_used
            if type(content) is not str:
                raise self._no_text(fields)
        else:
            content, used, left = self._content(fields, original)
        given = fields.get(self.id_field)
        if given is not None:
            given = self._id(given, original)
            used = used if given is None else (*used, self.id_field)
        extra = None
        if len(fields) > len(used) or left or repeated:
            kept = original.without(used)
            if left:
                kept.append(left)
            extra = "{" + ",".join(kept) + "}" if kept else None
            if repeated:
                self.sink.note("repeated_keys")
        name = self.source.name
        self.sink.row(self.first_key + record, given or f"{name}:{record}", name, extra, content, size)

    def add_flat(
        self, array: Bytes, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], records: Sequence[int]
    ) -> int:
        """Add the first records of a block, as far as they are documents that need no parser; returns how many.

        They become the rows that `add` makes of them.
        """
        other = self.convert is not None or not self.text_field or self.text_field == self.id_field
        if other or int((stops - starts).max()) > MAX_RECORD_BYTES:
            return 0
        found = flat_records(array, starts, stops, self.text_field, self.id_field)
        rows, name, ids = len(found.texts), self.source.name, found.ids
        if rows == 0:
            return 0
        if ids.null_count:
            ids = pc.coalesce(ids, pa.array([f"{name}:{record}" for record in records[:rows]]))
        keys = np.asarray(records[:rows], np.uint64) + np.uint64(self.first_key)
        size = int((stops[:rows] - starts[:rows]).sum())
        self.sink.documents(keys, ids, name, found.extras, found.texts, size)
        return rows

    def _content(self, fields: Fields, original: Original) -> tuple[Any, tuple[str, ...], str]:
        """The row's content, the fields that it took, and what is left inside them as JSON members."""
        assert self.convert is not None
        try:
            content = self.convert(fields)
            left = _members_of(content.left) if content.left else ""
        except InexactNumbersError:
            content = self.convert(original.exact())
            left = _members_of(content.left) if content.left else ""
        return content, content.used, left

    def _no_text(self, fields: Fields) -> MisfitError:
        """Why a record of a file of documents is none."""
        field, other = self.text_field, self.source.choice.other_kind
        if other:
            return MisfitError("other_kind", f"the file holds {other} rows, the dataset another kind")
        if not field:
            return MisfitError("no_layout", "none of the file's first records could be read: its layout is unknown")
        if field not in fields:
            return MisfitError(
                "missing_field", f"{field} should be there; the fields are {', '.join(fields) or 'none'}"
            )
        return MisfitError("not_text", f"{field} should be a string, found {name_of(fields[field])}")

    def _id(self, given: Any, original: Original) -> str | None:
        """The user's id: a string, or a whole number with all its digits; None for what is neither."""
        if type(given) is str:
            return given or None
        if type(given) is int:
            return str(given)
        written = original.value(self.id_field) if type(given) is float else ""
        return written if written.lstrip("-").isdigit() else None


def _members_of(left: Fields) -> str:
    return ",".join(f"{to_json(k)}:{to_json(v)}" for k, v in left.items())
