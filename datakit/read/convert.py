"""One parsed record into the sink: as a row of its file's layout, or into quarantine with what is wrong with it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from datakit import schema
from datakit.layouts.recognise import BY_NAME, Choice
from datakit.layouts.record import Fields, InexactNumbersError, MisfitError, name_of, text_of, to_json
from datakit.read.sink import Sink

Members = Callable[[], Iterable[tuple[str, str]]]
"""The members of a record's object in the order they stand, keys decoded, values as the JSON text the user wrote."""

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
        self.convert = BY_NAME[layout].convert if layout else None

    def add(
        self, fields: Any, record: int, members: Members, exact: Callable[[], Fields], size: int, repeated: bool
    ) -> None:
        """Add one record.

        Raises:
            MisfitError: it does not fit the file's layout.
        """
        if type(fields) is not dict:
            raise MisfitError("not_an_object", f"a record should be an object, found {name_of(fields)}")
        try:
            content, used, left = self._content(fields)
        except InexactNumbersError:
            content, used, left = self._content(exact())
        given = fields.get(self.id_field)
        if type(given) is not str or not given:
            given = self._number_id(given, members)
        if given is not None:
            used = (*used, self.id_field)
        extra = None
        if len(fields) > len(used) or left or repeated:
            extra = self._extra(members, used, left)
            if repeated:
                self.sink.note("repeated_keys")
        name = self.source.name
        self.sink.row(self.first_key + record, given or f"{name}:{record}", name, extra, content, size)

    def _content(self, fields: Fields) -> tuple[Any, tuple[str, ...], str]:
        """The row's content, the fields that it took, and what is left inside them as JSON members."""
        if self.convert is not None:
            content = self.convert(fields)
            left = getattr(content, "left", None)
            inner = ",".join(f"{to_json(k)}:{to_json(v)}" for k, v in left.items()) if left else ""
            return content, content.used, inner
        field = self.source.choice.text_field
        if self.source.choice.other_kind:
            raise MisfitError(
                "other_kind", f"the file holds {self.source.choice.other_kind} rows, the dataset another kind"
            )
        text = fields.get(field)
        if type(text) is str:
            return text, (field,), ""
        if not field:
            raise MisfitError("no_layout", "none of the file's first records could be read, so its layout is unknown")
        if field not in fields:
            raise MisfitError("missing_field", f"{field} should be there; the fields are {', '.join(fields) or 'none'}")
        return text_of(text, field), (field,), ""

    def _number_id(self, given: Any, members: Members) -> str | None:
        """A numeric id with all its digits; None where there is no usable id."""
        if type(given) is int:
            return str(given)
        if type(given) is float:
            written = next((v for k, v in members() if k == self.id_field), "")
            return written if written.lstrip("-").isdigit() else None
        return None

    def _extra(self, members: Members, used: tuple[str, ...], left: str) -> str | None:
        """All members without a column, as written, as a JSON object; None without any.

        Of a key that stands twice the last is the value, as parsers have it; the earlier ones are kept here.
        """
        written = list(members())
        last = {k: i for i, (k, _) in enumerate(written)}
        kept = [f"{to_json(k)}:{v}" for i, (k, v) in enumerate(written) if k not in used or last[k] != i]
        if left:
            kept.append(left)
        return "{" + ",".join(kept) + "}" if kept else None
