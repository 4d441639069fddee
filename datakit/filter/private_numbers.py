"""National numbers of people and telephone numbers: their shapes, and which library checks them.

A national number with a shape of its own (`123-45-6789`, `123.456.789-09`, letters at fixed places) counts where its
check digits and dates are right. One that is a plain run of digits counts only behind a word that says what it is.
"""

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Number:
    """A kind of national number."""

    shape: re.Pattern[str]
    valid: Callable[[str], bool]
    says: re.Pattern[str] | None = None
    """What must stand before it; None: nothing."""
    form: str = ""
    words: str = ""
    """The shape, and what says it, without what is around them."""


def _by(module: str) -> Callable[[str], bool]:
    """The check of a module of python-stdnum."""

    def valid(text: str) -> bool:
        return bool(importlib.import_module(f"stdnum.{module}").is_valid(text))

    return valid


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def is_pattern(text: str) -> bool:
    """Whether a number is one that people write to show the form: each group of its digits is one digit repeated."""
    return all(len(set(group)) == 1 for group in re.findall(r"\d+", text))


_SHOWN: Final = ("123456789", "078051120", "219099999")
"""Social security numbers that were printed as examples."""


def _ssn(text: str) -> bool:
    if _digits(text) in _SHOWN:
        return False
    area, group, serial = re.split(r"[- ]", text) if len(text) == 11 else (text[:3], text[3:5], text[5:])
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _date(text: str, order: str = "ymd") -> bool:
    """Whether six digits can be a date, in the order of year, month and day."""
    part = {letter: int(text[2 * i : 2 * i + 2]) for i, letter in enumerate(order)}
    return 1 <= part["m"] <= 12 and 1 <= part["d"] <= 31


def _chinese(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # GB 11643
    return "10X98765432"[sum(int(d) * w for d, w in zip(text, weights, strict=False)) % 11] == text[-1].upper()


def _hong_kong(text: str) -> bool:
    code = text.replace("(", "").replace(")", "").rjust(9)
    values = [36 if c == " " else int(c, 36) for c in code[:-1]]
    check = (11 - sum(v * (9 - i) for i, v in enumerate(values)) % 11) % 11
    return code[-1] == ("A" if check == 10 else str(check))


def _taiwan(text: str) -> bool:
    first = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(text[0]) + 10
    values = [first // 10, first % 10, *map(int, text[1:])]
    return sum(v * w for v, w in zip(values, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def _singapore(text: str) -> bool:
    total = sum(int(d) * w for d, w in zip(text[1:8], (2, 7, 6, 5, 4, 3, 2), strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(text[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "G": "XWUTRQPNMLK", "M": "KLJNPQRTUWX"}
    at = 10 - total % 11 if text[0] == "M" else total % 11
    return letters[text[0]][at] == text[8]


def _snils(text: str) -> bool:
    code = _digits(text)
    total = sum(int(d) * (9 - i) for i, d in enumerate(code[:9])) % 101
    return total % 100 == int(code[9:])


def _my_number(text: str) -> bool:
    code = _digits(text)
    total = sum(int(d) * (i + 2 if i < 6 else i - 4) for i, d in enumerate(reversed(code[:11])))
    return (0 if total % 11 <= 1 else 11 - total % 11) == int(code[11])


def _medicare(text: str) -> bool:
    code = _digits(text)
    return sum(int(d) * w for d, w in zip(code, (1, 3, 7, 9, 1, 3, 7, 9), strict=False)) % 10 == int(code[8])


def _n(shape: str, valid: Callable[[str], bool], says: str = "") -> _Number:
    said = re.compile(rf"(?i)(?:{says})[^\n]{{0,24}}$") if says else None
    return _Number(_bounded(shape), valid, said, shape, says)


def _bounded(shape: str) -> re.Pattern[str]:
    return re.compile(rf"(?a:(?<![\w.+/-])(?:{shape})(?![\w/]|-\w|[.,]\d))")


_TAX = r"tax|\btin\b|fiscal|steuer|\bid\b"

NUMBERS: Final = (
    _n(r"\d{3}-\d{2}-\d{4}", _ssn),  # United States
    _n(r"\d{3} \d{2} \d{4}|\d{9}", _ssn, r"\bssn\b|social security"),
    _n(r"9\d\d-\d\d-\d{4}", _by("us.itin")),
    _n(
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", lambda t: t[:2] not in ("BG", "GB", "NK", "ZZ")
    ),
    _n(r"\d{3}[ -]?\d{3}[ -]?\d{4}", _by("gb.nhs"), r"\bnhs\b"),
    _n(r"\d{3}[ -]?\d{3}[ -]?\d{3}", _by("ca.sin"), r"\bsin\b|social insurance|\bnas\b"),
    _n(r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d", _by("fr.nir")),
    _n(r"\d\d ?\d{3} ?\d{3} ?\d{3}", _by("de.idnr"), r"steuer|idnr|identifikationsnummer|\btin\b"),
    _n(
        r"\d\d ?\d{6} ?[A-Z] ?\d{3}", lambda t: _date(re.sub(r"\D", "", t)[2:8], "dmy"), r"versicherung|sozial|\brvnr\b"
    ),
    _n(r"\d{8}-?[A-HJ-NP-TV-Z]", _by("es.dni")),
    _n(r"[XYZ]-?\d{7}-?[A-Z]", _by("es.nie")),
    _n(r"[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]", _by("it.codicefiscale")),
    _n(r"\d{9}|\d{4}\.\d\d\.\d{3}", _by("nl.bsn"), r"\bbsn\b|burgerservice|sofi"),
    _n(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", _by("be.nn")),
    _n(r"\d{11}", _by("be.nn"), r"rijksregister|registre national|nationalregister"),
    _n(r"\d{11}", _by("pl.pesel"), "pesel"),
    _n(r"(?:19|20)?\d{6}[-+]\d{4}", _by("se.personnummer")),
    _n(r"(?:19|20)?\d{10}", _by("se.personnummer"), "personnummer"),
    _n(r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]", _by("fi.hetu")),
    _n(r"\d{6}-?\d{4}", lambda t: _date(t[:6], "dmy"), r"\bcpr\b|personnummer"),
    _n(r"\d{6} ?\d{5}", _by("no.fodselsnummer"), r"f[øo]dsels|personnummer|\bfnr\b"),
    _n(r"\d{3} ?\d{3} ?\d{3}", _by("pt.nif"), r"\bnif\b|contribuinte"),
    _n(r"756\.?\d{4}\.?\d{4}\.?\d\d", _by("ch.ssn")),
    _n(r"\d{7}[A-W][A-IW]?", _by("ie.pps"), r"\bpps"),
    _n(r"\d{4} ?\d{6}", _by("at.vnr"), r"\bsvnr|versicherungsnummer|\bsv-"),
    _n(r"[1-8]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx]", _chinese),
    _n(r"[A-Z]{1,2}\d{6}\([0-9A]\)", _hong_kong),
    _n(r"[A-Z][1289]\d{8}", _taiwan),
    _n(r"[STFGM]\d{7}[A-Z]", _singapore),
    _n(r"\d{6}-[1-8]\d{6}", lambda t: _date(t[:6])),  # Korea
    _n(r"\d{4}[ -]?\d{4}[ -]?\d{4}", _my_number, r"マイナンバー|個人番号|my number"),
    _n(r"[2-9]\d{3}([ -])\d{4}\1\d{4}", _by("in_.aadhaar")),
    _n(r"[2-9]\d{11}", _by("in_.aadhaar"), r"a{1,2}dha{1,2}r|uidai|आधार"),
    _n(r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", _by("in_.pan")),
    _n(r"\d-\d{4}-\d{5}-\d\d-\d", _by("th.pin")),
    _n(r"\d{13}", _by("th.pin"), r"บัตรประชาชน|thai id|national id"),
    _n(r"\d{3}\.\d{3}\.\d{3}-\d\d", _by("br.cpf")),
    _n(r"\d{11}|\d{9}-\d\d", _by("br.cpf"), r"\bcpf\b"),
    _n(r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d", _by("mx.curp")),
    _n(r"[A-ZÑ&]{4}\d{6}[A-Z0-9]{3}", lambda t: _date(t[4:10]), r"\brfc\b"),
    _n(r"\d\d-\d{8}-\d", _by("ar.cuit")),
    _n(r"\d{1,2}\.?\d{3}\.?\d{3}", _by("ar.dni"), r"\bdni\b"),
    _n(r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]", _by("cl.rut")),
    _n(r"\d{7,8}-[\dkK]", _by("cl.rut"), r"\brut\b"),
    _n(r"\d{1,3}(?:\.\d{3}){2,3}|\d{6,10}", lambda t: True, r"c[eé]dula|\bc\.?c\.?\b"),
    _n(r"\d{6} ?\d{4} ?\d{3}", _by("za.idnr"), r"\bid\b|identity|\brsa\b|south african"),
    _n(r"\d{11}", _by("tr.tckimlik"), r"\bt\.?c\.?\b|kimlik|\btckn"),
    _n(r"\d{3}-\d{3}-\d{3}[ -]\d\d", _snils),
    _n(r"\d{11}", _snils, r"снилс|snils"),
    _n(r"\d{12}", _by("ru.inn"), r"инн|\binn\b"),
    _n(r"\d{4} ?\d{6}|\d\d \d\d \d{6}", lambda t: True, r"паспорт"),
    _n(r"\d{9}", _by("il.idnr"), r"\bid\b|teudat|תעודת|ת\.ז|מספר זהות"),
    _n(r"\d{3} ?\d{3} ?\d{3}", _by("au.tfn"), r"\btfn\b|tax file"),
    _n(r"[2-6]\d{3} ?\d{5} ?\d", _medicare, "medicare"),
    _n(r"\d{2,3}-?\d{3}-?\d{3}", _by("nz.ird"), r"\bird\b"),
    _n(r"[1-9]\d{12}", _by("ro.cnp"), r"\bcnp\b|cod numeric"),
    _n(r"\d{10}", _by("bg.egn"), r"\begn\b|егн"),
    _n(r"\d{6}/\d{4}", _by("cz.rc")),
    _n(r"[1-8]\d{10}", _by("ee.ik"), "isikukood"),
    _n(r"[1-8]\d{10}", _by("lt.asmens"), "asmens kod"),
    _n(r"\d{6}-\d{5}", lambda t: _date(t, "dmy"), "personas kod"),
    _n(r"\d{6}-?\d{4}", _by("is_.kennitala"), "kennitala"),
    _n(r"\d{13}", _by("si.emso"), r"em[sš]o|jmbg|embg"),
    _n(r"\d{11}", _by("gr.amka"), r"amka|αμκα"),
    _n(r"\d{11}", _by("hr.oib"), r"\boib\b"),
    _n(r"\d{10}", _by("ua.rntrc"), r"рнокпп|\bінн\b|іпн|rntrc"),
    _n(r"\d{6}-\d\d-\d{4}", _by("my.nric")),
    _n(r"\d{16}", lambda t: 1 <= int(t[6:8]) % 40 <= 31 and 1 <= int(t[8:10]) <= 12, r"\bnik\b|ktp|kependudukan"),
    _n(r"\d{5}-\d{7}-\d", lambda t: True, r"cnic|nadra"),
    _n(
        r"[A-Z]{1,3}\d{6,9}[A-Z]?\d?|\d{9}",
        lambda t: True,
        r"passport|reisepass|passeport|pasaporte|护照|パスポート|여권",
    ),
)
"""The numbers of about 45 countries."""

_FORMS: Final = _bounded("|".join(n.form for n in NUMBERS if not n.says and r"\1" not in n.form))
_GROUPS_OF_FOUR: Final = re.compile(r"\d{4}[ -]\d{4}[ -]\d{4}")
"""The shapes of all numbers without a word before them."""
_SAYING: Final = {word for n in NUMBERS if n.says for word in n.words.split("|")}
_WHOLE_WORDS: Final = frozenset(word[2:-2].casefold() for word in _SAYING if re.fullmatch(r"\\b\w+\\b", word))
_PARTS: Final = tuple(
    sorted({word.removeprefix(r"\b").casefold() for word in _SAYING if re.fullmatch(r"(?:\\b)?[\w -]+", word)})
)
_ASCII_PARTS: Final = tuple(filter(str.isascii, _PARTS))
_OTHERS: Final = re.compile(
    "|".join(sorted(w for w in _SAYING if not re.fullmatch(r"\\b\w+\\b|(?:\\b)?[\w -]+", w))), re.I
)
"""The words that say what a number is: those that stand alone, parts of words, patterns."""
_FOUR_DIGITS: Final = re.compile(r"\d(?:\D*\d){3}")
_ISLAND: Final = re.compile(r"\d[0-9A-Z .()/+:-]{2,60}", re.I)
_SHAPES: Final = re.compile(r"\d{6}|\d[ .-]\d|[A-Z]\d{4}|\d[A-Z]|[A-Z]{2} \d\d")


def national_numbers(text: str) -> Iterator[Span]:
    """Where national numbers are in a line."""
    done = 0
    for island in _ISLAND.finditer(text):
        if _FOUR_DIGITS.match(island[0]):
            low, high = max(done, island.start() - 58), min(len(text), island.end() + 3)
            yield from ((low + a, low + b) for a, b in _numbers_in(text[low:high]))
            done = island.end()


def _numbers_in(text: str) -> Iterator[Span]:
    if not _SHAPES.search(text):
        return
    said_any, bare = _says_number(text), _FORMS.search(text) or _GROUPS_OF_FOUR.search(text)
    for number in NUMBERS:
        if not (said_any if number.says else bare):
            continue
        for found in number.shape.finditer(text):
            if is_pattern(found[0]):
                continue
            said = number.says is None or number.says.search(text[max(0, found.start() - 48) : found.start()])
            if said and number.valid(found[0]):
                yield found.span()


def _says_number(text: str) -> bool:
    """Whether any word in a text may say what a number is; to look for words takes a tenth of one pattern's time."""
    folded = text.casefold().replace("i\u0307", "i").replace("ı", "i")
    parts = _ASCII_PARTS if text.isascii() else _PARTS
    if any(part in folded for part in parts) or not _WHOLE_WORDS.isdisjoint(re.findall(r"\w+", folded)):
        return True
    return bool(_OTHERS.search(text))


REGIONS: Final = (
    "US", "GB", "FR", "DE", "ES", "IT", "IN", "CN", "JP", "KR", "BR", "MX", "RU", "AU", "CA", "NL", "BE", "CH",
    "AT", "PL", "SE", "NO", "DK", "FI", "PT", "IE", "TR", "ZA", "SG", "HK", "TW", "MY", "ID", "PH", "TH", "VN",
    "AR", "CL", "CO", "PE", "EG", "SA", "AE", "IL", "NG", "KE", "PK", "BD", "UA", "RO", "CZ", "GR", "HU", "NZ",
)  # fmt: skip
"""Where a telephone number without a country's code may be from, if a word says that it is one."""

_OWN_FORMS: Final = (
    (
        re.compile(r"(?:1[ .-]?)?\(\d{3}\)[ .-]?\d{3}[ .-]\d{4}|(?:1[ .-])?[2-9]\d\d([.-])[2-9]\d\d\1\d{4}"),
        ("US", "MX"),
    ),
    (re.compile(r"0[1-9]([ .-])\d\d\1\d\d\1\d\d\1\d\d"), ("FR",)),
    (re.compile(r"\(0\d{1,4}\)[ -]?\d{2,4}[ -]?\d{3,6}"), ("GB", "AU", "DE", "JP", "RU", "IN")),
    (re.compile(r"0\d{1,3}-\d{3,4}[- ]\d{4}|0\d{1,3}\(\d{2,4}\)\d{4}"), ("JP", "KR", "CN", "IN")),
    (re.compile(r"0\d{2,4} \d{3,4} \d{3,4}"), ("GB", "AU", "ZA", "NZ")),
    (re.compile(r"0\d{4} \d{6}"), ("GB",)),
    (re.compile(r"1[3-9]\d([ -])\d{4}\1\d{4}"), ("CN",)),
    (re.compile(r"[78] ?\(\d{3}\) ?\d{3}[- ]\d\d[- ]\d\d"), ("RU",)),
    (re.compile(r"\(\d\d\) ?9?\d{4}-\d{4}"), ("BR",)),
    (re.compile(r"05\d\d \d{3} \d\d \d\d"), ("TR",)),
)
"""Forms that are hardly anything but telephone numbers, with their regions."""


def is_phone(value: str, digits: str, said: bool) -> bool:
    """Whether a text of digits and separators is a telephone number; `said`: a word like "phone" is before it."""
    if value[0] == "+" or (value.startswith("00") and (said or not value.isdigit())):
        return _international(value, digits[2:] if value[0] == "0" else digits, said)
    for form, regions in _OWN_FORMS:
        if form.fullmatch(value) and any(_valid(digits, region) for region in regions):
            return True
    return said and any(_valid(digits, region) for region in REGIONS)


def _international(value: str, digits: str, said: bool) -> bool:
    phonenumbers = _library()
    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return False
    code = str(number.country_code)
    begins = re.match(r"(?:\+|00)[ (]{0,2}" + code, value)  # x = +3 1234 5678 splits a code
    if not begins:
        return False
    if phonenumbers.is_valid_number(number) or (code == "52" and digits[2] == "1" and _valid(digits[3:], "MX")):
        return True  # Mexico's mobile numbers had a 1 until 2019
    grouped = re.search(r"\d[ ().\-\u00a0]+\d", value[begins.end() - 1 :])
    return bool(grouped or said) and bool(phonenumbers.is_possible_number(number)) and len(digits) >= 10


@functools.lru_cache(maxsize=1 << 14)
def _valid(digits: str, region: str) -> bool:
    phonenumbers = _library()
    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(digits, region)))
    except phonenumbers.NumberParseException:
        return False


@functools.cache
def _library() -> Any:
    import phonenumbers

    return phonenumbers
