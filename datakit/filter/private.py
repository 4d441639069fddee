"""Private data: e-mail and IP addresses, phones, cards, bank accounts, national ids, keys; replaced or dropped.

A value must pass its own check: cards Luhn (ISO/IEC 7812) and a known prefix, IBANs modulo 97 (ISO 13616), Chinese,
French and Spanish ids their check characters. IP addresses must be public and not look like version numbers. Phone
numbers must have the international or the North American form, or follow a word like "phone". Addresses that are
reserved for examples (RFC 2606, RFC 5737) and made-up keys stay. Private keys (PEM) are found over several lines, all
other values within one line.

Placeholders are `<EMAIL>`, `<IP>`, `<PHONE>`, `<CARD>`, `<IBAN>`, `<NATIONAL_ID>`, `<KEY>`. In conversations, contents
and reasoning are searched, tool calls and tool schemas are not. The ledger notes how many values of each type were
replaced. Names and addresses of people are not searched: that takes a model. Only texts and lines that a fast regular
expression finds suspicious are searched, in plain Python.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.data import On
from datakit.errors import ConfigError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals

Span = tuple[int, int]

_EXAMPLE_DOMAIN = re.compile(
    r"(?:^|\.)(?:example|test|invalid|localhost|example\.(?:com|org|net|edu))$"  # RFC 2606
    r"|\.(?:png|jpe?g|gif|svg|webp|ico|css|js|ts|json|html?|md|py|so|jar)$",  # image@2x.png
    re.I,
)
_EMAIL = re.compile(
    r"(?<![\w.%+-])[A-Za-z0-9][\w.%+-]{0,63}@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24})(?![\w@])",
    re.ASCII,
)
_IPV4 = re.compile(r"(?<![\w.:/=<>~^-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)", re.ASCII)
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:{1,2}){3,7}[0-9A-Fa-f]{1,4}(?![\w:])", re.ASCII)
_SAYS_VERSION = re.compile(r"\b(?:v|ver|version|release|rev|build|since|chapter|section|fig|figure)\.? *$", re.I)
_SAYS_ADDRESS = re.compile(
    r"\b(?:ip|ips|addr|address|host|server|dns|gateway|ping|ssh|client|remote)\b[^.;\n]{0,24}$", re.I
)
_CARD = re.compile(r"(?<![\w.,/=-])\d(?:[ -]?\d){12,18}(?![\w/-]|[.,]\d)", re.ASCII)
_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Visa, Mastercard
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|4[4-9]\d|5\d\d|2\d\d)\d{12,15}"  # Amex, Diners, ...
)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", re.ASCII)
_CHINESE_ID = re.compile(
    r"(?<![\w.])[1-8]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?!\w)", re.ASCII
)
_CHINESE_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_FRENCH_ID = re.compile(
    r"(?<![\w.])[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?!\w|[.,]\d)", re.ASCII
)
_SPANISH_ID = re.compile(r"(?<!\w)(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z](?!\w)", re.ASCII)
_PHONE = re.compile(
    r"(?<![\w.+/=-])(?:"
    r"\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,5}\)[ .-]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,5}"  # international
    r"|(?:1[ .-])?\([2-9]\d{2}\)[ .-]?[2-9]\d{2}[ .-]\d{4}|(?:1[ .-])?[2-9]\d{2}([.-])[2-9]\d{2}\1\d{4}"  # American
    r"|1[3-9]\d{9}"  # China, mobile
    r"|0\d{1,4}[ /-]\d{2,4}(?:[ -]?\d{2,4}){1,3}"  # national, with the trunk's 0
    r")(?![\w/-]|[.,]\d)",
    re.ASCII,
)
_SAYS_PHONE = re.compile(
    r"(?:tel|phone|fon|fax|mobile|mobil|cell|call|whatsapp|hotline|tél|telefon|电话|手机|電話|тел)\w*[^\w\n]{0,6}$",
    re.I,
)
_KEY = re.compile(
    r"(?<![\w-])(?:"
    r"(?:AKIA|ASIA)[0-9A-Z]{16}"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_\w{60,90}|glpat-[\w-]{20,}"  # GitHub, GitLab
    r"|xox[abeoprs]-[\w-]{10,250}"  # Slack
    r"|sk-(?:ant-|proj-)?[\w-]{32,200}|hf_[A-Za-z0-9]{34,}"  # OpenAI, Anthropic, Hugging Face
    r"|AIza[\w-]{35}|(?:sk|rk)_live_[0-9A-Za-z]{16,}|npm_[A-Za-z0-9]{36}|SG\.[\w-]{22}\.[\w-]{43}"  # Google, Stripe
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"  # JSON web token
    r")(?![\w-])",
    re.ASCII,
)
_MADE_UP = re.compile(r"example|x{6}|0{8}|1234567|abcdefg", re.I)


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812)."""
    total = 0
    for i, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + i % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def _emails(line: str) -> Iterator[Span]:
    for found in _EMAIL.finditer(line):
        if not _EXAMPLE_DOMAIN.search(found[1]) and not found[0].startswith("git@"):
            yield found.span()


def _ips(line: str) -> Iterator[Span]:
    for found in (*_IPV4.finditer(line), *_IPV6.finditer(line)):
        try:
            address = ipaddress.ip_address(found[0])
        except ValueError:
            continue
        before = line[max(0, found.start() - 40) : found.start()]
        public = address.is_global and not address.is_multicast and not address.is_reserved
        if not public or _SAYS_VERSION.search(before):
            continue
        small = address.version == 4 and max(address.packed) < 100  # 5.0.71.32 is rather a version
        if not small or _SAYS_ADDRESS.search(before):
            yield found.span()


def _cards(line: str) -> Iterator[Span]:
    for found in _CARD.finditer(line):
        digits = re.sub(r"\D", "", found[0])
        if _ISSUED.fullmatch(digits) and len(set(digits)) > 1 and luhn(digits):
            yield found.span()


def _ibans(line: str) -> Iterator[Span]:
    for found in _IBAN.finditer(line):
        code = found[0].replace(" ", "")
        if 15 <= len(code) <= 34 and int("".join(str(int(c, 36)) for c in code[4:] + code[:4])) % 97 == 1:
            yield found.span()


def _national_ids(line: str) -> Iterator[Span]:
    for found in _CHINESE_ID.finditer(line):
        total = sum(int(d) * w for d, w in zip(found[0], _CHINESE_WEIGHTS, strict=False))
        if "10X98765432"[total % 11] == found[0][-1].upper():  # GB 11643
            yield found.span()
    for found in _FRENCH_ID.finditer(line):
        digits = found[0].replace(" ", "").replace("2A", "19").replace("2B", "18")
        if 97 - int(digits[:-2]) % 97 == int(digits[-2:]):
            yield found.span()
    for found in _SPANISH_ID.finditer(line):
        code = found[0].replace("-", "")
        number = int(code[:-1].translate(str.maketrans("XYZ", "012")))
        if "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == code[-1]:
            yield found.span()


def _phones(line: str) -> Iterator[Span]:
    for found in _PHONE.finditer(line):
        digits = re.sub(r"\D", "", found[0])
        bare = found[0].isdigit() or found[0].startswith("0")  # could be any number
        fictional = re.search(r"555\D?01\d\d$", found[0])
        if not 8 <= len(digits) <= 15 or fictional or len(set(digits)) < 3:
            continue
        if not bare or _SAYS_PHONE.search(line[max(0, found.start() - 24) : found.start()]):
            yield found.span()


def _keys(line: str) -> Iterator[Span]:
    for found in _KEY.finditer(line):
        if not _MADE_UP.search(found[0]) and len(set(found[0])) >= 10:
            yield found.span()


FINDERS: Final[dict[str, Callable[[str], Iterator[Span]]]] = {
    "key": _keys,
    "email": _emails,
    "iban": _ibans,
    "national_id": _national_ids,
    "card": _cards,
    "ip": _ips,
    "phone": _phones,
}
"""By type. Where two types match the same characters, the first one in this order has them."""


def find(line: str, types: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """(begin, end, type) of the private values in a line, in order and without overlaps."""
    taken: list[tuple[int, int, str]] = []
    for name in FINDERS:
        if name in types:
            for begin, end in FINDERS[name](line):
                if all(end <= a or begin >= b for a, b, _ in taken):
                    taken.append((begin, end, name))
    return sorted(taken)


_SUSPICIOUS = (
    r"[A-Za-z0-9]@[A-Za-z0-9]|\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d[ ().-]{0,2}\d"
    r"|\d\.\d{1,3}\.\d{1,3}\.\d|[0-9A-Fa-f]:[0-9A-Fa-f:]*:|[A-Z]{2}\d\d[ A-Z0-9]{6}"
    r"|A[KS]IA|gh[pousr]_|github_pat|glpat|xox|sk-|hf_|AIza|k_live_|npm_|SG\.|eyJ"
)
"""RE2: every line with a private value has a match."""
_PEM = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.{40,8000}?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Private(RuleSet):
    """What is private, and what happens to it."""

    name: ClassVar[str] = "private"
    counts: ClassVar[bool] = True
    edits: ClassVar[bool] = True
    on: ClassVar[On | None] = "all"

    types: tuple[str, ...] = option(tuple(FINDERS), "the types of values to look for")
    action: Literal["replace", "drop"] = option("replace", "replace values by placeholders, or drop rows with them")
    max_values: int = option(0, "with drop: drop rows with more values")

    def check(self) -> None:
        """Refuse unknown types, and none at all."""
        unknown = [t for t in self.types if t not in FINDERS]
        if unknown or not self.types:
            raise ConfigError(f"types = {list(self.types)}: expected some of {', '.join(FINDERS)}")

    def counted_with(self) -> dict[str, Any]:
        """The types of values."""
        return {"types": self.types}

    def count(self, texts: pa.Array) -> Signals:
        """The number of values of each type in each text."""
        counts = {f"private_{name}": np.zeros(len(texts), np.int64) for name in self.types}
        for row, text in _suspects(texts):
            for name, found in replace(text, self.types)[1].items():
                counts[f"private_{name}"][row] += found
        return Signals(counts)

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The number of values, where rows with too many are dropped."""
        counts = rows.counted(self)
        total = np.sum([counts[f"private_{name}"] for name in self.types], axis=0)
        yield Measure("max_values", total, None if self.action == "drop" else np.zeros(len(total), np.bool_))

    def edit(self, texts: pa.Array, kind: str) -> pa.Array:
        """The texts with placeholders for private values."""
        if self.action == "drop":
            return texts
        mask, made = np.zeros(len(texts), np.bool_), []
        for row, text in _suspects(texts):
            changed, found = replace(text, self.types)
            if found:
                mask[row] = True
                made.append(changed)
        return pc.replace_with_mask(texts, pa.array(mask), pa.array(made, pa.string()))

    def notes(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> dict[str, int]:
        """The number of values of each type in the rows that stay."""
        counts = rows.counted(self)
        return {f"private_{name}": int(counts[f"private_{name}"][stays].sum()) for name in self.types}


def replace(text: str, types: tuple[str, ...]) -> tuple[str, dict[str, int]]:
    """(the text with placeholders, the number of values by type)."""
    counts: dict[str, int] = {}
    if "key" in types and "PRIVATE KEY-----" in text:
        text, found = _PEM.subn("<KEY>", text)
        counts |= {"key": found} if found else {}
    lines = text.split("\n")
    suspicious = pc.match_substring_regex(pa.array(lines, pa.string()), _SUSPICIOUS).to_numpy(zero_copy_only=False)
    for i in np.flatnonzero(suspicious).tolist():
        for begin, end, name in reversed(find(lines[i], types)):
            lines[i] = f"{lines[i][:begin]}<{name.upper()}>{lines[i][end:]}"
            counts[name] = counts.get(name, 0) + 1
    return "\n".join(lines), counts


def _suspects(texts: pa.Array) -> Iterator[tuple[int, str]]:
    """(row, text) of the texts that may hold a private value."""
    suspicious = pc.match_substring_regex(texts, f"{_SUSPICIOUS}|PRIVATE KEY")
    rows = np.flatnonzero(pc.fill_null(suspicious, False).to_numpy(zero_copy_only=False))
    yield from zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True)
