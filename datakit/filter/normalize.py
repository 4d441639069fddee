"""The normalize stage: repairs Unicode normal form (NFC), encodings, control characters and white space.

It comes before all other stages, changes texts and drops no row. The ledger counts the changed rows by kind of change.
Encodings are repaired by ftfy (Speer 2019), an optional extra: it undoes UTF-8 that was read in another encoding
("schÃ¶n" for "schön") where that explains the text. A text that needs no repair comes back byte for byte.
"""

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.errors import ConfigError
from datakit.filter.stage import edit_rows
from datakit.stage import Decision, Stage
from datakit.text.words import compose

_MOJIBAKE = (
    "[\u0080-\u009f\ufffd]|[ÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑØÙà-ïðА-Яа-яΓβ][\u0080-\u00bf‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ€°±²³´µ¶·¸¹º»¼½¾¿╔]"
)
"""RE2: traces of UTF-8 that was read as Latin-1, Windows or Cyrillic code pages. ftfy decides whether it is."""
_CONTROL = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u2060\ufeff\ufff9-\ufffc]|\\x{e0001}"
"""Control characters other than tab, line breaks and U+0085; byte order marks, word joiners, annotations. Zero-width
spaces and joiners stay: Khmer, Persian and emoji need them."""
_LINES = "\r|\u0085|[ \t\u00a0\u3000]+(?:\n|$)|\n\n\n\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizeConfig:
    """What is repaired."""

    nfc: bool = option(True, "compose characters (Unicode NFC)")
    encoding: Literal["fix", "keep"] = option("fix", "undo mistaken encodings; needs ftfy")
    control: Literal["drop", "keep"] = option("drop", "what happens to control characters and byte order marks")
    white_space: Literal["lines", "keep"] = option(
        "lines", "make line breaks new lines; remove white space at line ends, and more than two blank lines in a row"
    )


@dataclass(frozen=True, slots=True)
class Normalize(Stage):
    """Repairs texts; keeps every row."""

    name: ClassVar[str] = "normalize"
    help: ClassVar[str] = "Every row stays; rows whose text changes are counted as edited."
    Config: ClassVar[type] = NormalizeConfig
    holds_gil: ClassVar[bool] = True

    config: NormalizeConfig = field(default_factory=NormalizeConfig)

    def resources(self) -> dict[str, Any]:
        """The Unicode version, and that of ftfy where it is used."""
        versions = {"unicode": unicodedata.unidata_version}
        return versions | ({"ftfy": _ftfy().__version__} if self.config.encoding == "fix" else {})

    def open(self) -> None:
        """Import ftfy where it is used.

        Raises:
            ConfigError: ftfy is not installed.
        """
        if self.config.encoding == "fix":
            _ftfy()

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Repair the texts of each row: encodings first, since they hide the other faults."""
        changed: dict[str, pa.Array] = {}
        stays, made = pa.array(np.ones(batch.num_rows, np.bool_)), batch
        for name, edit in self._edits():
            columns, which = edit_rows(made, stays, [edit])
            for column, values in columns.items():
                made = made.set_column(made.schema.get_field_index(column), made.schema.field(column), values)
            changed[name] = which
        edited = functools.reduce(pc.or_, changed.values(), pa.array(np.zeros(batch.num_rows, np.bool_)))
        return Decision(
            reasons=pa.nulls(batch.num_rows, pa.string()),
            columns={n: made.column(n) for n in batch.schema.names if not made.column(n).equals(batch.column(n))},
            notes={f"normalize_{name}": pc.sum(which).as_py() or 0 for name, which in changed.items()},
            edited=edited,
        )

    def _edits(self) -> list[tuple[str, Callable[[pa.Array], pa.Array]]]:
        chosen = {
            "encoding": self.config.encoding == "fix",
            "control": self.config.control == "drop",
            "nfc": self.config.nfc,
            "white_space": self.config.white_space == "lines",
        }
        return [(name, _EDITS[name]) for name, wanted in chosen.items() if wanted]


def _ftfy() -> Any:
    try:
        import ftfy
    except ImportError:
        raise ConfigError(
            'normalize.encoding = "fix" needs the package ftfy: install datakit[normalize], or set encoding = "keep"'
        ) from None
    return ftfy


def _each(texts: pa.Array, pattern: str, repair: Callable[[str], str]) -> pa.Array:
    """The texts, with those that match an RE2 pattern repaired one by one."""
    mask = pc.match_substring_regex(texts, pattern)
    made = [repair(text) for text in texts.filter(mask).to_pylist()]
    return pc.replace_with_mask(texts, mask, pa.array(made, pa.string()))


def _encoding(texts: pa.Array) -> pa.Array:
    return _each(
        texts, _MOJIBAKE, lambda t: "".join(_ftfy().fix_encoding(line) for line in t.splitlines(keepends=True))
    )


def _control(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, _CONTROL, "")


def _white_space(texts: pa.Array) -> pa.Array:
    return _each(texts, _LINES, _lines)


def _lines(text: str) -> str:
    lines = re.split("\r\n|[\r\n\u0085\u2028\u2029]", text)
    return re.sub("\n{4,}", "\n\n\n", "\n".join(line.rstrip() for line in lines))


# Not pyarrow's utf8_normalize: before pyarrow 26 it returns NFD for NFC (apache/arrow#51225).
_EDITS = {"encoding": _encoding, "control": _control, "nfc": compose, "white_space": _white_space}
