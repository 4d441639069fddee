"""The normalize stage: repairs Unicode normal form (NFC), encodings, control characters and white space.

It comes before all other stages, changes texts and drops no row. The ledger counts the changed rows by kind of change.
Encodings are repaired by ftfy (Speer 2019), an optional extra: it undoes UTF-8 that was read in another encoding
("schÃ¶n" for "schön") where that explains the text. A text that needs no repair comes back byte for byte.

White space at the end of a line goes wherever it stands: the two spaces with which Markdown breaks a line, too.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import Integers, edit_whole_rows
from datakit.errors import ConfigError
from datakit.stage import Decision, Stage
from datakit.text.words import compose, with_hashes

Edit = Callable[[pa.Array], pa.Array]
"""Texts to texts, string[N]; a null stays one."""

_PROSE = ("text", "content", "reasoning_content")
"""The fields of a row and of its messages that are prose."""

_MOJIBAKE = (
    "[\u0080-\u009f\ufffd]|[ÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑØÙà-ïðА-Яа-яΓβ][\u0080-\u00bf‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ€°±²³´µ¶·¸¹º»¼½¾¿╔]"
)
"""RE2: traces of UTF-8 that was read as Latin-1, Windows or Cyrillic code pages. ftfy decides whether it is."""
_ANSI = (
    "(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\u009d)[^\x07\x1b\n\u009c]*(?:\x07|\x1b\\\\|\u009c)?"
    "|\x1b[ -/]*[0-Z\\\\^-~]"
)
"""Escape sequences of terminals (ECMA-48): colours, movements, titles; whole, so that no "[31m" remains."""
_CONTROL = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u2060\ufeff\ufff9-\ufffc]|\\x{e0001}"
"""Control characters other than tab and line breaks; byte order marks, word joiners, annotations. Zero-width
spaces and joiners stay: Khmer, Persian and emoji need them."""
_BREAKS = "\r\n?|[\x0b\x0c\u0085\u2028\u2029]"
_LINE_ENDS = r"[\p{Zs}\t]+(\n|\z)"


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizeConfig:
    """What is repaired."""

    nfc: bool = option(True, "compose characters (Unicode NFC)")
    encoding: Literal["fix", "keep"] = option("fix", "undo mistaken encodings; needs ftfy")
    control: Literal["drop", "keep"] = option(
        "drop", "what happens to control characters, escape sequences of terminals and byte order marks"
    )
    white_space: Literal["lines", "keep"] = option(
        "lines", "make line breaks new lines; remove white space at line ends, and more than two blank lines in a row"
    )


@dataclass(frozen=True, slots=True)
class Normalize(Stage):
    """Repairs texts; keeps every row."""

    name: ClassVar[str] = "normalize"
    help: ClassVar[str] = "Every row stays; rows whose text changes are counted as edited."
    Config: ClassVar[type] = NormalizeConfig
    holds_gil = True

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
        chosen = asdict(self.config)
        edits = {name: edit for name, edit in _EDITS.items() if chosen[name] not in ("keep", False)}
        changed = {name: np.zeros(batch.num_rows, np.bool_) for name in edits}

        def prose(texts: pa.Array, rows: Integers, field: str) -> pa.Array:
            for name, edit in edits.items() if field in _PROSE else ():
                made = edit(texts)
                which = pc.fill_null(pc.not_equal(made, texts), False).to_numpy(zero_copy_only=False)
                changed[name][rows[which]] = True
                texts = made if which.any() else texts
            return texts

        names = [n for n in ("text", "messages", "prompt", "chosen", "rejected") if n in batch.schema.names]
        columns = edit_whole_rows(batch.select(names), prose)
        edited = pa.array(sum(changed.values(), np.zeros(batch.num_rows, np.bool_)))
        return Decision(
            reasons=pa.nulls(batch.num_rows, pa.string()),
            columns=with_hashes(batch, columns, edited),
            notes={f"normalize_{name}": int(rows.sum()) for name, rows in changed.items()},
            edited=edited,
        )


def _ftfy() -> Any:
    try:
        import ftfy
    except ImportError:
        raise ConfigError(
            'normalize.encoding = "fix" needs the package ftfy: install datakit[normalize], or set encoding = "keep"'
        ) from None
    return ftfy


def _encoding(texts: pa.Array) -> pa.Array:
    """The texts, with ftfy's repair of those lines that may need it."""
    mask, fix = pc.match_substring_regex(texts, _MOJIBAKE), _ftfy().fix_encoding
    made = ["".join(map(fix, text.splitlines(keepends=True))) for text in texts.filter(mask).to_pylist()]
    return pc.replace_with_mask(texts, mask, pa.array(made, pa.string()))


def _control(texts: pa.Array) -> pa.Array:
    escapes = pc.replace_substring_regex(texts, _ANSI, "")
    return pc.replace_substring_regex(escapes, _CONTROL, "")


def _white_space(texts: pa.Array) -> pa.Array:
    lines = pc.replace_substring_regex(texts, _BREAKS, "\n")
    trimmed = pc.replace_substring_regex(lines, _LINE_ENDS, r"\1")
    return pc.replace_substring_regex(trimmed, "\n{4,}", "\n\n\n")


# In order. Not pyarrow's utf8_normalize: before pyarrow 26 it returns NFD for NFC (apache/arrow#51225).
_EDITS: Final[dict[str, Edit]] = {
    "encoding": _encoding,
    "control": _control,
    "nfc": compose,
    "white_space": _white_space,
}
