"""Private values: mail and IP addresses, phones, cards, bank accounts, national numbers, keys, passwords in URLs.

Values are replaced by a tag (`<EMAIL>`, `<PHONE>`, ...). All text of a row is searched, whatever its column, but for
the columns that `exclude` names; in JSON (`extra`, tool calls) the keys, the strings and long numbers one by one, with
the names of their fields beside them. An `id` that holds a value becomes `<source>:<record>`: a hash could be reversed.
What is counted is what was replaced. Names and addresses of people are not searched: that takes a model. RE2 finds the
lines that may hold a value; only these are searched in Python.

What is private is a table of kinds, each with the shape of its values and a check:

| kind | shape | check | source |
| --- | --- | --- | --- |
| password | between ":" and "@" of a URL | it is no variable of a template | RFC 3986 |
| key | the prefixes of services; a name like `api_key`, a sign, a token; private keys | it looks random | gitleaks |
| email | RFC 5321, ASCII or international | no domain that is reserved for examples | RFC 2606, RFC 6761 |
| iban | country, check digits, account | modulo 97, length and account of the country | python-stdnum |
| card | 13 to 19 digits | range of an issuer, Luhn's check digit | ISO/IEC 7812 |
| national_id | a number beside a word that names it | check digits, dates, ranges | python-stdnum |
| ip | IPv4, IPv6 | public; small numbers, as versions have, only beside a word for addresses | RFC 6890 |
| phone | `+` and a country's code, or the grouping of a region | valid there | phonenumbers |
| | 7 to 15 digits behind a word for phones | | E.164 |

A value stands in one line. Each pattern is bounded, so that the time is linear in the text.
"""

import functools
import importlib
import ipaddress
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import JSON_FIELDS, RECORD_BITS, Bools, Integers, edit_whole_rows
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Edits, Resources, RuleSet

# The kinds.

_BEFORE, _AFTER = 40, 24
"""Characters beside a value where a word may name it."""

_SEPARATORS: Final = " \u00a0-./()"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of private value."""

    hint: str
    """For Python's `re` and for RE2: a line where it does not match has no such value."""
    pattern: re.Pattern[str]
    """A candidate; its first group, if it has one, is the value."""
    valid: Callable[[str, str], bool]
    """(value, the text before it, a zero, the text after it) -> whether it is one."""
    grouped: bool = False
    """The value has groups: a candidate that fails is tried without its last ones, then from its second group on."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the values are in a line, in order."""
        at = 0 if re.search(self.hint, text) else len(text)
        while match := self.pattern.search(text, at):
            begin, end = match.span(match.lastindex or 0)
            before = text[max(0, begin - _BEFORE) : begin]
            gaps = [i for i in range(begin + 1, end) if text[i] in _SEPARATORS] if self.grouped else []
            ends = [end, *(i for i in reversed(gaps) if text[i - 1] not in _SEPARATORS)]
            beside = ((stop, f"{before}\0{text[stop : stop + _AFTER]}") for stop in ends)
            stop = next((stop for stop, around in beside if self.valid(text[begin:stop], around)), 0)
            if stop:
                yield begin, stop
            at = stop or (gaps[0] if gaps else end)


# Passwords and keys.


def _is_password(value: str, _: str) -> bool:
    return not re.search(r"[\[\]{}<>$*%]", value)


SECRETS: Final = (
    (r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)", r"[A-Z0-9]{16}"),  # AWS
    (r"gh[pousr]_", r"[0-9A-Za-z]{36,251}"), (r"github_pat_", r"\w{36,90}"),
    (r"gl(?:pat|ptt|rt|dt|soat|agent)-", r"[\w-]{20,128}"),
    (r"xox[abeoprs]-", r"[\w-]{10,250}"), (r"https://hooks\.slack\.com/", r"[\w+/-]{20,200}"),
    (r"sk-", r"[\w-]{20,250}"),  # OpenAI, Anthropic and others
    (r"hf_", r"[0-9A-Za-z]{34,40}"), (r"AIza", r"[\w-]{35}"), (r"ya29\.", r"[\w-]{20,250}"),  # Google
    (r"[sr]k_(?:live|test|prod)_", r"[0-9A-Za-z]{10,99}"), (r"npm_", r"[0-9A-Za-z]{36}"),
    (r"pypi-", r"[\w-]{50,250}"), (r"SG\.", r"[\w-]{16,32}\.[\w-]{32,64}"), (r"SK[0-9a-f]", r"[0-9a-f]{31}"),
    (r"shp(?:at|ca|pa|ss)_", r"[0-9A-Fa-f]{32}"), (r"do[opr]_v1_", r"[0-9a-f]{64}"),
    (r"\d{8,10}:", r"[\w-]{35}"),  # Telegram
    (r"hv[sb]\.", r"[\w-]{24,160}"), (r"eyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),  # JSON web token
)  # fmt: skip
"""What the keys of services begin with, and what follows: from the rules of gitleaks (MIT)."""
_NAMED: Final = (
    r"(?i:(?:api|access|auth|secret|account|private|signing|encryption)[ _.-]?key|secret|token|credentials?)"
    r"[\w.-]{0,20}[\"'\]]{0,2}\s{0,3}(?:=>|:=|=|:)\s{0,3}[\"'`]?(?i:bearer )?"
)
"""What may stand before a key without a prefix."""
_PREFIXED: Final = "|".join(f"{prefix}{rest}" for prefix, rest in SECRETS)
_KEY: Final = rf"(?<![\w-])(?=[\w.:/+-]{{14}})(?:{_PREFIXED})(?![\w-])|(?<![A-Za-z]){_NAMED}([\w./+=~-]{{16,512}})"

BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\w+/=\\\s:,.()]|-(?!-))*(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
"""A private key (RFC 7468, RFC 4880), over several lines; one without an end reaches to the end of its Base64."""


def _is_random(value: str, _: str) -> bool:
    """Whether a text was rather made by a machine: 3 bits a character or more, capitals and small letters or digits."""
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
    digits = sum(c.isdigit() for c in value)
    kinds = digits >= 2 or (value.lower() != value and value.upper() != value and re.match(r"[A-Za-z]+[_-]", value))
    made_up = re.search(r"(?i)example|x{4}|0{6}|\*{3}|your", value)
    path = re.fullmatch(r"(?:[a-z_]+[./-])+[a-z_]+", value)
    return bits >= 3 and digits < len(value) and bool(kinds) and not made_up and not path


# Addresses. In languages written with spaces a word may be part of an address, in others it stands beside one.

_LETTER: Final = r"[^\W\u0e00-\u0eff\u1000-\u109f\u2e80-\u9fff\uac00-\ud7af]"
_EMAIL: Final = (
    rf"(?<![.%+-])(?<!{_LETTER}){_LETTER}(?:{_LETTER}|[.%+'-]){{0,63}}@(?:(?:{_LETTER}|-){{1,63}}\.){{1,8}}"
    rf"(?:(?!\d){_LETTER}){{2,24}}(?!{_LETTER}|@)"
)
_RESERVED: Final = re.compile(r"(?i)[@.](?:example|test|invalid|localhost|local|example\.(?:com|org|net|edu))$|@\dx\.")
"""Domains for examples; and the names of images for screens of higher resolution, image@2x.png."""


def _is_email(value: str, _: str) -> bool:
    return not _RESERVED.search(value) and not value.startswith("git@")  # git@host:path has no person


_IP: Final = (
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d|-\w)"
    r"|(?<![\w:.])[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,34}(?:[0-9A-Fa-f]|::)(?![\w:])"
)
_NAMES_ADDRESS: Final = re.compile(
    r"(?i)(?<![a-z])(?:ip|ipv4|addr|address|host|server|dns|gateway|ping|ssh)(?![a-z])|://"
)


def _is_ip(value: str, around: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    looks_like_version = address.version == 4 and max(address.packed) < 100
    if looks_like_version or re.search(r"[^:/]/\0|[-^~=]\0", around):  # Chrome/76.0.3809.146, numpy==1.2.3.4
        return bool(_NAMES_ADDRESS.search(around))
    return True


# Numbers.

_NUMBER_ENDS: Final = r"(?![\w/]|-\w|[.,]\d)"
_CARD: Final = (
    r"(?<![\w./-])(?<!\d,)(?:\d{13,19}|\d{4}(?:[ -]\d{4}){2}(?:[ -]\d{1,4}){1,2}|\d{4}[ -]\d{6}[ -]\d{4,5})"
    rf"{_NUMBER_ENDS}"
)
_ISSUED: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Visa, Mastercard
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|4[4-9]\d|5\d\d|2\d\d)\d{12,15}|220[0-4]\d{12}"  # others
)
_IBAN: Final = r"(?<!\w)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?!\w)"


def _is_card(value: str, _: str) -> bool:
    digits = re.sub(r"\D", "", value)
    repeated = all(len(set(group)) == 1 for group in re.findall(r"\d+", value))  # 4444 4444 4444 4448 shows the form
    return bool(_ISSUED.fullmatch(digits)) and not repeated and _checked("luhn", digits)


def _is_iban(value: str, _: str) -> bool:
    return _checked("iban", value.replace("-", ""))


def _checked(module: str, value: str) -> bool:
    """Whether a module of python-stdnum calls a number valid."""
    return bool(importlib.import_module(f"stdnum.{module}").is_valid(value))


NATIONAL_NUMBERS: Final = {
    "us.ssn": r"ssn|social security", "ca.sin": r"sin|social insurance", "gb.nhs": r"nhs",
    "fr.nir": r"nir|insee|s[ée]curit[ée] sociale", "de.idnr": r"idnr|steuer\w*", "it.codicefiscale": r"codice fiscale",
    "es.dni": r"dni|nif", "es.nie": r"nie", "nl.bsn": r"bsn|burgerservicenummer", "be.nn": r"rijksregister\w*|niss",
    "pl.pesel": r"pesel", "se.personnummer": r"personnummer", "fi.hetu": r"hetu|henkil[öo]tunnus",
    "tr.tckimlik": r"t\.?c\.? kimlik|tckn", "br.cpf": r"cpf", "mx.curp": r"curp", "za.idnr": r"south african id|rsa id",
    "in_.aadhaar": r"aadhaar|आधार", "cn.ric": r"身份证\w*|resident identity", "kr.rrn": r"주민등록번호|rrn",
}  # fmt: skip
"""Module of python-stdnum -> the words that name the number: its names in the module's own documentation, and in the
country's language."""
_NAMES: Final = re.compile(rf"(?<!\w)(?:{'|'.join(f'({words})' for words in NATIONAL_NUMBERS.values())})(?!\w)", re.I)
"""One group for each module, in their order."""
_NATIONAL: Final = rf"(?<![\w.+/-])(?=\w{{0,24}}\d)\w{{1,24}}(?:[ ./-]\w{{1,24}}){{0,7}}{_NUMBER_ENDS}"


def _is_national(value: str, around: str) -> bool:
    if sum(c.isdigit() for c in value) < 6 or len(value) > 30:
        return False
    modules = tuple(NATIONAL_NUMBERS)
    return any(_checked(modules[(match.lastindex or 0) - 1], value) for match in _NAMES.finditer(around))


_PHONE: Final = (
    rf"(?<![\w./=-])(?<!\d,)\+?(?:\d{{1,15}}|\(\d{{1,5}}\))"
    rf"(?:(?:[ \u00a0./-]{{1,2}}|(?<=\)))(?:\d{{1,9}}|\(\d{{1,5}}\))){{0,7}}{_NUMBER_ENDS}"
)
_NAMES_PHONE: Final = re.compile(
    r"(?i)(?<![a-z])(?:t[eé]l(?:[eé](?:fon|ph)\w*)?|\w*phone|fax|mobile?|handy|cell|whatsapp|тел\w*)(?![a-z])"
    r"|[电電][话話]|手机|携帯|전화|☎|📞"
)


@functools.lru_cache(maxsize=1 << 14)
def _is_number_of(value: str, region: str | None) -> bool:
    """Whether phonenumbers calls a text valid; with a region, its groups must be those that are usual there."""
    import phonenumbers

    try:
        number = phonenumbers.parse(value, region)
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number(number):
        return False
    usual = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return region is None or re.findall(r"\d+", usual) == re.findall(r"\d+", value)


def _is_phone(value: str, around: str, regions: tuple[str, ...]) -> bool:
    digits = re.sub(r"\D", "", value)
    if not 7 <= len(digits) <= 15 or len(set(digits)) < 3:
        return False
    if re.search(r"[2-9]\d\d\D*555\D?01\d\d$", value):  # numbers of films in North America
        return False
    if value[0] == "+":
        return _is_number_of(value, None)
    if _NAMES_PHONE.search(around.partition("\0")[0]):
        return True
    return not value.isdigit() and any(_is_number_of(value, region) for region in regions)


_KEY_HINT: Final = (
    f"{'|'.join(prefix for prefix, _ in SECRETS)}|(?i:key|secret|token|credential)[\\w.'\"\\] -]{{0,24}}[=:]"
)
_MANY_DIGITS: Final = "(?:[0-9][ \u00a0()./-]{0,4}){7}"

NAMING: Final = re.compile(rf"{_NAMES.pattern}|{_NAMES_PHONE.pattern[4:]}|key|secret|token|credential|addr", re.I)
"""Names of fields that are a word beside the value in them."""

KINDS: Final = {
    "password": Kind(r"://[^\s/@]*@", re.compile(r"://[^\s:/@\"'<>]{0,64}:([^\s/@\"'<>]{3,128})@"), _is_password),
    "key": Kind(_KEY_HINT, re.compile(_KEY, re.ASCII), _is_random),
    "email": Kind("@", re.compile(_EMAIL), _is_email),
    "iban": Kind(r"[A-Z]{2}\d{2}[ -]?[A-Z0-9]{4}", re.compile(_IBAN), _is_iban, grouped=True),
    "card": Kind(_MANY_DIGITS, re.compile(_CARD), _is_card, grouped=True),
    "national_id": Kind(
        f"(?i)(?:^|[^a-z])(?:{'|'.join(NATIONAL_NUMBERS.values())})(?:[^a-z]|$)",
        re.compile(_NATIONAL),
        _is_national,
        grouped=True,
    ),
    "ip": Kind(r"(?:\d{1,3}\.){3}\d|[0-9A-Fa-f]:[0-9A-Fa-f]{0,4}:", re.compile(_IP, re.ASCII), _is_ip),
    "phone": Kind(_MANY_DIGITS, re.compile(_PHONE), lambda value, around: False, grouped=True),
}
"""By name. Where two kinds match the same characters, the first one in this order has them."""


# The engine.

_STRING: Final = r'"(?P<string>(?:[^"\\]|\\.)*)"(?P<colon>\s*:)?'
_LITERAL: Final = re.compile(rf"{_STRING}|(?<![\w.+-])(?P<number>\d{{7,19}})(?![\w.])", re.DOTALL)
"""Of JSON: a string, with a colon behind it if it is a key, or a long number."""


Found = Counter[str]
"""How many values of each kind a text has."""


def _tag(kind: str) -> str:
    return f"<{kind.upper()}>"


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Takes private values out of texts."""

    kinds: dict[str, Kind]
    hint: str
    """For RE2, that of all kinds: a line where it does not match holds none of their values."""

    def column(self, texts: pa.Array, name: str) -> tuple[pa.Array, dict[int, Found]]:
        """(the texts of a field without private values, by index what was found in the texts that had some).

        Prose is cut into lines in Arrow, and only lines where the hint matches are searched in Python. Where the name
        of the field is a word beside the value ("phone"), or a sign may hide behind an escape of JSON, all texts are.
        """
        context, made, found = name if NAMING.search(name) else "", dict[int, str](), defaultdict[int, Found](Counter)
        whole = texts.is_valid()
        if not context and name not in JSON_FIELDS:
            whole = pc.fill_null(pc.match_substring(texts, "PRIVATE KEY-----"), False)
            hit = pc.fill_null(pc.match_substring_regex(texts, self.hint), False)
            of = pc.indices_nonzero(pc.and_not(hit, whole))
            lists = pc.split_pattern(texts.take(of), "\n")
            lines, begins = lists.flatten(), lists.offsets.to_pylist()
            hits = pc.match_substring_regex(lines, self.hint).to_pylist()
            pairs = list(zip(lines.to_pylist(), hits, strict=True))
            for at, begin, end in zip(of.to_pylist(), begins, begins[1:], strict=False):
                made[at] = "\n".join(self.line(line, found[at]) if hit else line for line, hit in pairs[begin:end])
        for at in pc.indices_nonzero(whole).to_pylist():
            text, values = texts[at].as_py(), found[at]
            made[at] = self.json(text, values) if name in JSON_FIELDS else self.text(text, values, context)
        changed = {at: values for at, values in sorted(found.items()) if values.total()}
        if not changed:
            return texts, changed
        mask = np.zeros(len(texts), np.bool_)
        mask[list(changed)] = True
        new = pa.array([made[at] for at in changed], texts.type)
        return pc.replace_with_mask(texts, pa.array(mask), new), changed

    def find(self, line: str, context: str = "") -> list[tuple[int, int, str]]:
        """(begin, end, kind) of the values in a line, in order and without overlaps.

        `context` is the name of the field that holds the line ("phone"): a word beside the value.
        """
        before = f"{context}: " if context else ""
        text, found = before + line, list[tuple[int, int, str]]()
        taken = bytearray(len(text))
        for name, kind in self.kinds.items():
            for begin, end in kind.spans(text):
                if begin >= len(before) and not any(taken[begin:end]):
                    taken[begin:end] = b"\1" * (end - begin)
                    found.append((begin - len(before), end - len(before), name))
        return sorted(found)

    def line(self, line: str, found: Found, context: str = "") -> str:
        """A line without private values, which are added to `found`; `context` is the name of its field."""
        pieces, done = [], 0
        for begin, end, kind in self.find(line, context):
            pieces += [line[done:begin], _tag(kind)]
            done = end
            found[kind] += 1
        return "".join([*pieces, line[done:]])

    def text(self, text: str, found: Found, context: str = "") -> str:
        """The same for a text of several lines."""

        if "key" in self.kinds and "PRIVATE KEY" in text:
            text, blocks = BLOCK.subn(_tag("key"), text)
            found["key"] += blocks
        return "\n".join(self.line(line, found, context) for line in text.split("\n"))

    def value(self, value: Any) -> Any:
        """A value of a row, as JSON has them, without private values in its strings."""
        if isinstance(value, str):
            return self.json(value, Found())
        if isinstance(value, dict):
            return {key: self.value(inner) for key, inner in value.items()}
        return [self.value(inner) for inner in value] if isinstance(value, list) else value

    def json(self, text: str, found: Found) -> str:
        """The same for JSON: its keys, strings and long numbers, each by itself; all other bytes stay."""
        context, keys = "", Counter[str]()

        def literal(match: re.Match[str]) -> str:
            nonlocal context
            before, is_key = found.total(), bool(match["colon"])
            try:
                plain = match["number"] or json.loads(f'"{match["string"]}"', strict=False)
            except ValueError:
                return match[0]
            nested = plain.lstrip()[:1] in ("{", "[")
            made = self.json(plain, found) if nested else self.text(plain, found, "" if is_key else context)
            context = plain if is_key else context
            if found.total() == before:
                return match[0]
            if is_key:  # two keys of one object must not become one
                keys[made] += 1
                made = made if keys[made] == 1 else f"{made}#{keys[made]}"
            return json.dumps(made, ensure_ascii="\\u" in match[0]) + (match["colon"] or "")

        return _LITERAL.sub(literal, text) if text.lstrip()[:1] in ("{", "[") else self.text(text, found)


@functools.lru_cache(maxsize=8)
def cleaner(types: tuple[str, ...], patterns: tuple[tuple[str, str], ...], regions: tuple[str, ...]) -> Cleaner:
    """A cleaner of these kinds, and of the user's own patterns, which are checked by nothing else.

    Raises:
        ConfigError: an unknown kind or region, a pattern that is none or matches an empty text.
    """
    import phonenumbers

    for wanted, known, what in ((types, KINDS, "types"), (regions, phonenumbers.SUPPORTED_REGIONS, "phone_regions")):
        if unknown := [name for name in wanted if name not in known]:
            raise ConfigError(f"{what}: unknown {unknown[0]!r}; expected some of {', '.join(sorted(known))}")
    kinds = {name: _own(name, pattern) for name, pattern in patterns}
    kinds |= {name: kind for name, kind in KINDS.items() if name in types}
    if "phone" in kinds:
        kinds["phone"] = replace(KINDS["phone"], valid=functools.partial(_is_phone, regions=regions))
    return Cleaner(kinds, "|".join(f"(?:{kind.hint})" for kind in kinds.values()))


def _own(name: str, pattern: str) -> Kind:
    try:
        compiled = re.compile(pattern)
    except re.error as e:
        raise ConfigError(f"patterns.{name} = {pattern!r}: is no regular expression ({e})") from None
    if compiled.search("") or not re.fullmatch(r"[a-z]\w*", name) or name in KINDS:
        raise ConfigError(
            f"patterns.{name} = {pattern!r}: expected a new name in small letters, and a pattern that needs a character"
        )
    return Kind("", compiled, lambda value, around: True)


def _names_in(field: pa.Field) -> Iterator[str]:
    """The names of a field and of those inside it."""
    yield field.name
    for i in range(field.type.num_fields):
        yield from _names_in(field.type.field(i))


# The rule set.


@dataclass(frozen=True, kw_only=True, slots=True)
class Private(RuleSet):
    """What is private; it is replaced by tags."""

    name: ClassVar[str] = "private"

    types: tuple[str, ...] = option(tuple(KINDS), "the types of values to look for")
    exclude: tuple[str, ...] = option((), "columns that stay as they are, whatever they hold")
    patterns: dict[str, str] = option({}, "name = a regular expression: values of your own, replaced by <NAME>")
    phone_regions: tuple[str, ...] = option(
        ("US",), "countries whose numbers are found without a country's code and without a word for phones before them"
    )

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        if not self.cleaner.kinds:
            raise ConfigError(f"types = []: expected some of {', '.join(KINDS)}")

    def resources(self) -> Resources:
        """The versions of the libraries that check numbers; where the raw values remain."""
        return Resources(
            digests={"private_numbers": {name: version(name) for name in ("phonenumbers", "python-stdnum")}},
            lines=(
                "private: values are replaced in all that this stage writes; earlier stages (parents/ beside an "
                "--output, data/DATASET/ in a project: shards, quarantine/, pairs/) still hold them",
            ),
        )

    def edit(self, table: pa.RecordBatch, stays: Bools) -> Edits | None:
        """All rows without private values, those that other rules drop too."""
        columns, counts = self._cleaned(table)
        changed = np.asarray(np.sum(list(counts.values()), axis=0) > 0)
        return Edits(columns, changed, {name: int(values.sum()) for name, values in counts.items()})

    @property
    def cleaner(self) -> Cleaner:
        """What takes these values out of texts."""
        return cleaner(self.types, tuple(self.patterns.items()), self.phone_regions)

    def _cleaned(self, table: pa.RecordBatch) -> tuple[dict[str, pa.Array], dict[str, Integers]]:
        """(the columns that change, how many values of each type each row has)."""
        made_by = self.cleaner
        counts = {f"private_{name}": np.zeros(table.num_rows, np.int64) for name in made_by.kinds}

        def edit(texts: pa.Array, rows: Integers, name: str) -> pa.Array:
            made, found = made_by.column(texts, name)
            for at, values in found.items():
                for kind, number in values.items():
                    counts[f"private_{kind}"][rows[at]] += number
            return made

        names = [name for name in table.schema.names if name not in self.exclude]
        for number, name in enumerate(names):
            if found := [kind for own in _names_in(table.schema.field(name)) for *_, kind in made_by.find(own)]:
                raise InputError(
                    f"private: the name of column {number + 1}, or of a field in it, holds a value ({found[0]}): "
                    'set columns = "json" in [ingest] (keys of JSON are replaced), or exclude the column'
                )
        columns = edit_whole_rows(table.select(names), edit)
        if {"id", "row_key", "source"} <= set(names):
            ids = table.column("id")
            private = pc.not_equal(edit(ids, np.arange(len(ids)), "id"), ids)
            if pc.any(private).as_py():
                record = pc.bit_wise_and(table.column("row_key"), pa.scalar((1 << RECORD_BITS) - 1, pa.uint64()))
                names_of_rows = pc.binary_join_element_wise(table.column("source"), record.cast(pa.string()), ":")
                columns["id"] = pc.if_else(private, names_of_rows, ids)
        return columns, counts
