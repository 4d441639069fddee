"""Private values: mail and IP addresses, phones, cards, bank accounts, national numbers, keys, passwords.

A value must pass a check of its own. Cards: Luhn (ISO/IEC 7812) and a known prefix. IBANs: modulo 97 (ISO 13616) and
the length of the country. National numbers of 40 countries: python-stdnum checks them; `private_numbers.py` has their
shapes. Telephone numbers: phonenumbers (the rules of libphonenumber) checks them for their region; they must have the
international form, a form that only phones have, or follow a word like "phone". IP addresses must be public and not
look like version numbers. Keys have the prefix of a known service, or follow a name like `api_key =` and look random.
Values that are reserved for examples (RFC 2606, RFC 5737, 555-0100) stay.

Replaced by a tag (`<EMAIL>`, `<PHONE>`, ...), or by made-up values that are the same for the same value. All text of a
row is searched: see `data.edit_whole_rows`; in JSON (`extra`, tool calls) the strings one by one, with their names, and
long numbers. What is counted is what was replaced. Names and addresses of people are not searched: that takes a model.
A kernel finds the lines that may hold a value; only these are searched in Python.
"""

import hashlib
import ipaddress
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.data import JSON_FIELDS, edit_whole_rows, string_buffers
from datakit.errors import ConfigError
from datakit.filter.private_numbers import is_pattern, is_phone, national_numbers
from datakit.filter.rule_set import Measure, MeasuredRows, RowEdits, RuleSet, Signals

Span = tuple[int, int]

# Keys and passwords.

_PREFIXED = re.compile(
    r"\b(?=[\w.:+/=-]{13})(?<![A-Za-z0-9_-])(?:"  # what all keys begin with: few places come as far as their names
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_\w{60,90}|gl(?:pat|dt|rt|ptt|soat|agent)-[\w-]{20,}"
    r"|xox[abeoprs]-[\w-]{10,250}|xapp-\d-[\w-]{20,}"
    r"|sk-(?:ant-|proj-|or-v1-|svcacct-|admin-)?[\w-]{20,250}|hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}|r8_\w{30,}"
    r"|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}|nvapi-[\w-]{40,}"
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{24,}"
    r"|(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[A-Za-z0-9+/=]{24,}|sq0(?:atp|csp)-[\w-]{22,}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}|SG\.[\w-]{16,}\.[\w-]{32,}|dckr_pat_[\w-]{20,}"
    r"|SK[0-9a-f]{32}|key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|do[op]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|EAA[A-Za-z0-9]{40,}|(?:ntn|secret)_[A-Za-z0-9]{40,}|lin_api_\w{32,}"
    r"|hv[sb]\.[\w-]{24,}|glsa_\w{32,}|PMAK-[\w-]{30,}|NRAK-[A-Z0-9]{27}|figd_[\w-]{30,}|ATATT3[\w=-]{50,}"
    r"|AGE-SECRET-KEY-1[0-9A-Z]{58}|sbp_[a-f0-9]{40}|tfp_\w{40,}|rubygems_[a-f0-9]{48}|dp\.pt\.\w{40,}"
    r"|\d{8,10}:[A-Za-z0-9_-]{35}"  # Telegram
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"  # JSON web token
    r")(?![A-Za-z0-9_-])",
    re.ASCII,
)
_KEY_BEGINNINGS = (
    "akia", "asia", "abia", "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-",
    "glptt-", "glsoat-", "glagent-", "xox", "xapp-", "hf_", "gsk_", "r8_", "xai-", "pplx-", "nvapi-", "aiza", "ya29.",
    "gocspx-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "sq0atp-", "sq0csp-", "npm_", "pypi-", "sg.",
    "dckr_pat_", "eaa", "ntn_", "secret_", "lin_api_", "hvs.", "hvb.", "glsa_", "pmak-", "figd_", "atatt3", "tfp_",
    "dp.pt.", "age-secret-k", "sbp_", "eyj",
)  # fmt: skip
"""What those of these keys begin with that may have letters only, in small letters."""
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}"
    r"|(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"
    r"|[\w-]+\.webhook\.office\.com/[\w@/-]{30,}|api\.telegram\.org/bot\d{8,10}:[\w-]{35})",
    re.ASCII,
)
_ASSIGNED = re.compile(
    r"(?i)(?:api[ _.-]?key|apikey|secret|token|access[ _.-]?key|account[ _.-]?key|private[ _.-]?key"
    r"|encryption[ _.-]?key|signing[ _.-]?key|auth[ _.-]?key|credential|client[ _.-]?id[ _.-]?secret)s?"
    r"[\w.-]{0,20}[\"'\]]{0,2}\s{0,3}(?:=>|:=|=|:|：|\bis\b)\s{0,3}[\"'`]?(?:Bearer )?([A-Za-z0-9_\-./+=~]{16,512})"
)
_BEARER = re.compile(
    r"(?i)\b(?:bearer|basic|token|(?:api|secret|access)[ _-]?key)\s{1,3}([A-Za-z0-9_\-.~+/]{20,2048}={0,2})(?![\w-])"
)
_BLOCK = re.compile(
    r"-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY|PGP (?:PRIVATE KEY BLOCK|PUBLIC KEY BLOCK|MESSAGE))-----"
    r"(?:.{0,20000}?-----END \1-----|[A-Za-z0-9+/=\s\\:,.()-]{40,20000})",
    re.DOTALL,
)
_MADE_UP = re.compile(r"(?i)example|x{5}|0{8}|\*{3}|\.\.\.|your|placeholder|changeme|redacted|<|dummy")
_SCHEME = re.compile(r"(?<!\w)[a-zA-Z][a-zA-Z0-9+.-]{1,20}$")
_IN_URL = re.compile(r"://[^\s:/@\"'<>]{0,64}:([^\s/@\"'<>]{3,128})@[\w\[.-]")
_PASSWORD = re.compile(
    r"(?i)(?:password|passwd|passwort|kennwort|passphrase|passcode|\bpwd|(?<![a-z])pass(?![a-z])|\bpw(?![a-z])|contraseña|\bclave"
    r"|senha|mot de passe|\bmdp|wachtwoord|hasło|şifre|lösenord|adgangskode|passord|salasana|\bheslo|jelszó"
    r"|пароль|密码|密碼|口令|パスワード|비밀번호|암호|סיסמה|كلمة المرور|mật khẩu)"
    r"[\w.-]{0,12}?[\"'\]]{0,2}(?:\s(?:for|of|on|to|für|zum|zur|vom|de|du|del|para|da)\s[^\n:=]{1,30}?(?=\s?[:=]))?\s{0,3}"
    r"(?:(=>|->|→|:=|=|:|：|—|–|\b(?:is|ist|lautet|est|es|é|è|är|er|jest|это)\b|是|为|は|는|은)"
    r"\s{0,3}|(?<=\s))[\"'`「“]?([^\s\"'`,;，。」”<\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{6,256})"
)
"""The sign between the word and the value, if there is one; the value."""
_PASSWORD_FLAG = re.compile(
    r"\bsshpass\s+-p\s{0,2}[\"']?([^\s\"']{6,128})"
    r"|\b(?:mysql(?:dump|admin)?|mariadb)\b[^\n|;]{0,80}?\s-p[\"']?([^\s\"']{6,128})"
    r"|\bcurl\b[^\n|;]{0,80}?\s(?:-u|--user)\s*[\"']?[^\s:\"']{1,64}:([^\s\"']{6,128})"
    r"|\bredis-cli\b[^\n|;]{0,80}?\s-a\s{1,2}[\"']?([^\s\"']{6,128})|\brequirepass\s+[\"']?([^\s\"']{6,128})"
    r"|<\w*(?:[Pp]assword|[Pp]asswd|[Pp]wd)>([^<\s]{6,128})</"
)
"""Options of programs, and elements of XML."""
_PLACEHOLDER = re.compile(
    r"(?i)^(?:\W*(?:password|passwd|passwort|pass|pwd|secret|token|user|null|none|true|false|string|str|required|hidden)\d{0,3}\W*"
    r"|[\W_]*|x+|\*+)$|[(){}<>\[\]]|^\$|(?-i:\$\w*[A-Z_]{3})|^%|%[sd]\b|^[a-z_]+\.[a-z_.]+$|env\b|\.\.\."
)


def _entropy(text: str) -> float:
    """Bits per character of the distribution of characters."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _is_random(text: str) -> bool:
    """Whether a text is rather made by a machine: digits among letters, many different characters, no words."""
    digits = sum(c.isdigit() for c in text)
    if _MADE_UP.search(text) or not 2 <= digits < len(text) or _entropy(text) < 3:
        return False
    words = re.findall(r"[A-Za-z]{4,}", text)
    plain = sum(len(w) for w in words if w.islower() or w.istitle() or w.isupper())
    return digits >= len(text) / 25 and (plain < 0.6 * len(text) or digits >= len(text) / 8)


def _keys(text: str) -> Iterator[Span]:
    for found in _PREFIXED.finditer(text):
        value = found[0]
        if value[:4] in ("AKIA", "ASIA", "ABIA", "ACCA"):
            good = "EXAMPLE" not in value and len(set(value)) >= 8
        elif value.startswith("sk-"):
            good = _is_random(value[3:])
        else:
            good = not _MADE_UP.search(value) and len(set(value)) >= 10
        if good:
            yield found.span()
    if "https://" in text:
        yield from (found.span() for found in _WEBHOOK.finditer(text) if not _MADE_UP.search(found[0]))
    named = _has(text.lower(), _KEY_WORDS)
    for pattern, words in ((_ASSIGNED, _ASSIGNED_WORDS), (_BEARER, _BEARER_WORDS)) if named else ():
        for found in _beginning(words, pattern, text):
            value = found[1].rstrip(".=-")
            if _is_random(value) and not re.fullmatch(
                r"[\w-]+(?:\.[A-Za-z_]\w*)+|(?:\.{0,2}/)?[a-z][a-z0-9_.-]*(?:/[a-z0-9_.-]+)+", value
            ):
                yield found.start(1), found.start(1) + len(found[1].rstrip(".-"))


_PASSWORD_WORDS = (
    "pass", "mot de passe", "kennwort", "pwd", "pw", "contraseña", "clave", "senha", "mdp", "wachtwoord", "hasło",
    "şifre", "lösenord", "adgangskode", "salasana", "heslo", "jelszó", "пароль", "密码", "密碼", "口令", "パスワード",
    "비밀번호", "암호", "סיסמה", "كلمة المرور", "mật khẩu",
)  # fmt: skip
_FLAG_WORDS = ("mysql", "mariadb", "curl", "redis-cli", "requirepass", "sshpass", "assword>", "asswd>", "wd>")
_KEY_WORDS = ("key", "secret", "token", "credential", "client", "bearer", "basic")
"""Words of the patterns: a text without any of them is not searched; to find a word takes a hundredth of the time."""
_ASSIGNED_WORDS = (
    "api", "secret", "token", "access", "account", "private", "encryption", "signing", "auth", "credential", "client",
)  # fmt: skip
_BEARER_WORDS = ("bearer", "basic", "token", "api", "secret", "access")
"""The words that the patterns begin with, in small letters."""


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _passwords(text: str) -> Iterator[Span]:
    for found in _IN_URL.finditer(text):
        known = _SCHEME.search(text[max(0, found.start() - 22) : found.start()])
        if known and not _PLACEHOLDER.search(found[1]) and not found[1].isdigit():
            yield found.span(1)
    for found in _beginning(_PASSWORD_WORDS, _PASSWORD, text):
        value = found[2].rstrip(".!?):")
        if _is_password(found[2] if not found[1] else value, said=bool(found[1])):
            yield found.start(2), found.start(2) + len(value)
    for found in _PASSWORD_FLAG.finditer(text) if _has(text, _FLAG_WORDS) else ():
        which = found.lastindex or 0
        if _is_password(found[which], said=True):
            yield found.span(which)


@lru_cache
def _ascii(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(str.isascii, words))


def _beginning(words: tuple[str, ...], pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begins with one of the words: it is tried only where one does."""
    lower = text.lower()
    if len(lower) != len(text) or "ſ" in lower:  # a few capitals have two small letters, and s has two
        yield from pattern.finditer(text)
        return
    starts = list[int]()
    for word in _ascii(words) if text.isascii() else words:
        at = lower.find(word)
        while at >= 0:
            starts.append(at)
            at = lower.find(word, at + 1)
    done = 0
    for at in sorted(starts):
        if at >= done and (found := pattern.match(text, at)):
            done = found.end()
            yield found


def _is_password(value: str, *, said: bool) -> bool:
    """Whether a word is rather a password than prose; more is asked where no sign before it says so."""
    signs = (str.isalpha, str.isdigit, lambda c: not c.isalnum() and c != "_")
    kinds = sum(any(test(c) for c in value) for test in signs)
    digits, marks = any(c.isdigit() for c in value), re.search(r"[!@#^&*+?$]", value)
    strong = kinds >= 2 and (digits or marks) if said else kinds == 3 and digits and marks and len(value) >= 8
    return bool(strong) and len(value) >= 6 and not _PLACEHOLDER.search(value) and "://" not in value


# Addresses.

_EXAMPLE_DOMAIN = re.compile(
    r"(?:^|\.)(?:example|test|invalid|localhost|example\.(?:com|org|net|edu))$"  # RFC 2606
    r"|\.(?:png|jpe?g|gif|svg|webp|ico|css|js|ts|json|html?|md|py|so|jar)$",  # image@2x.png
    re.I,
)
_EMAIL = re.compile(
    r"(?<![\w.%+-])[A-Za-z0-9_][\w.%+'-]{0,63}@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24})(?![\w@])"
    r"|(?<![\w.%+-])[A-Za-z0-9][\w.%+-]{0,63}\s?[(\[{]\s?at\s?[)\]}]\s?"
    r"([A-Za-z0-9-]{1,40}(?:\s?(?:[(\[{]\s?dot\s?[)\]}]|\.)\s?[A-Za-z]{2,24}){1,3})(?!\w)",
    re.ASCII,
)
_EMAIL_ANY = re.compile(r"(?<![\w.%+-])[\w][\w.%+-]{0,63}@((?:[^\W_][\w-]{0,61}\.)+[^\W\d_]{2,24})(?![\w@])")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d|-\w)", re.ASCII)
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,34}[0-9A-Fa-f:](?![\w])", re.ASCII)
_SAYS_VERSION = re.compile(
    r"(?:\b(?:v|ver|version|release|rev|revision|build|since|chapter|section|sec|fig|figure|firmware|driver|update|patch"
    r"|kb|oid|clause|article|step|table|sdk|kernel|python|java|chrome|safari|edge|firefox|版本|версия)\.?[\s:=\"'(]{0,4}"
    r"(?:to |is |from )?$"
    r"|(?:[=<>!~^]=|[~^])\s?[\"']?$)",
    re.I,
)
_SAYS_ADDRESS = re.compile(
    r"(?:(?:\b|_)(?:ipv4|ip|ips|addr|address|host|hosts|server|dns|gateway|ping|ssh|client|remote|peer|from|nameserver|rdp|vpn|proxy)\b"
    r"|_ip\b|://|@|IP地址|地址|服务器|адрес)[^.;\n]{0,24}$",
    re.I,
)


def _emails(text: str) -> Iterator[Span]:
    patterns = (_EMAIL,) if text.isascii() else (_EMAIL, _EMAIL_ANY)
    for found in (f for pattern in patterns for f in pattern.finditer(text)):
        domain = next(group for group in found.groups() if group)
        if not _EXAMPLE_DOMAIN.search(domain) and not found[0].startswith("git@"):
            yield found.span()


def _ips(text: str) -> Iterator[Span]:
    for found in (*_IPV4.finditer(text), *_IPV6.finditer(text)):
        value = found[0].rstrip(":") if not found[0].endswith("::") else found[0]
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            continue
        before = text[max(0, found.start() - 40) : found.start()]
        public = address.is_global and not address.is_multicast and not address.is_reserved
        if not public or _SAYS_VERSION.search(before):
            continue
        says = bool(_SAYS_ADDRESS.search(before))
        if address.version == 4:
            alone = before[-1:] == "<" and text[found.end() : found.end() + 1] == ">"
            if before[-1:] in ("/", "-", "<", "^", "~") and not before.endswith("//") and not alone:
                continue  # Chrome/76.0.3809.146
            if before[-1:] == ">" and not re.search(r"<[^<>]*>$", before):
                continue
            if max(address.packed) < 100 and not says:  # 5.0.71.32 is rather a version
                continue
        yield found.start(), found.start() + len(value)


# Numbers.

_CARD = re.compile(r"(?<![\w./-])(?<!\d,)\d(?:[ -]?\d){12,18}(?![\w/]|-\d|\.\d|,\d{3}(?!\d))", re.ASCII)
_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Visa, Mastercard
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|4[4-9]\d|5\d\d|2\d\d)\d{12,15}"  # Amex, Diners, ...
    r"|220[0-4]\d{12}|9792\d{12}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}"  # Mir, Maestro
)
_GROUPED_CARD = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}")
_SAYS_CARD = re.compile(
    r"(?i)(?:card|kartennummer|visa|master|amex|american express|\bcc\b|credit|debit|\bpan\b|kreditkarte|karte"
    r"|carte|\bkart|kort|tarjeta|cart[aã]o|carta|карт|卡|カード|카드)[^\n]{0,30}$"
)
_SAYS_OTHER = re.compile(
    r"(?i)(?:\bid|order|invoice|serial|tracking|isbn|imei|ean|sku|timestamp|time|hash|ticket|ref|batch|uuid)\w*\W{0,4}$"
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])", re.ASCII
)


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812)."""
    total = 0
    for i, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + i % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def _cards(text: str) -> Iterator[Span]:
    for found in _CARD.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        before = text[max(0, found.start() - 40) : found.start()]
        grouped = _GROUPED_CARD.fullmatch(found[0])
        issued = _ISSUED.fullmatch(digits) or (grouped and _SAYS_CARD.search(before))  # issuers at home have others
        if not issued or is_pattern(found[0]) or not luhn(digits):
            continue
        if (
            _SAYS_CARD.search(before)
            or (grouped and before[-1:] != "=")
            or (found[0].isdigit() and before[-1:] != "=" and not _SAYS_OTHER.search(before))
        ):
            yield found.span()


def _ibans(text: str) -> Iterator[Span]:
    for found in _IBAN.finditer(text):
        code = re.sub("[ -]", "", found[0])
        for end in range(len(code), 14, -1):  # a word in capitals may follow
            if end <= 34 and int("".join(str(int(c, 36)) for c in code[4:end] + code[:4])) % 97 == 1:
                stop, left = found.start(), end
                while left:
                    left -= text[stop] not in " -"
                    stop += 1
                if text[stop : stop + 1] in ("", " ", "-") or stop == found.end():
                    yield found.start(), stop
                break


_PHONE = re.compile(
    r"(?=[+(\d])(?<![\w./-])(?:"  # what all forms begin with
    r"(?<==)\+[1-9]\d{9,14}(?!\d)"
    r"|(?<![\w+.,/=-])(?:\+|00)[(]?[1-9]\d{0,2}[)]?(?:[ \u00a0./-]{0,3}[(]?\d{1,9}[)]?){1,7}"  # international
    r"|(?<![\w+./-])(?<!\d,)(?:\(0?\d{1,5}\)|\d{1,5})(?:(?:[ \u00a0./-]{1,3}[(]?|[(]|(?<=\)))\d{1,9}[)]?){1,6}"
    r"|(?<![\w+./-])(?<!\d,)\d{7,12})",
    re.ASCII,
)
_NO_PHONE = re.compile(
    r"\D{0,2}(?:1\D{0,2})?[2-9]\d\d\D{0,2}555\D?01\d\d$|(?:19|20)\d\d[ /-]{1,3}(?:19|20)\d\d$|\d{5}-\d{3}$|\d+ / \d+$"
)
"""Numbers of films (555-0100 to 555-0199 of North America), pairs of years, postcodes of Brazil, divisions."""
_AMOUNT = re.compile(r"\s?(?:euros?\b|eur\b|usd\b|dollar|€|\$|£|%|kr\b|zł|руб|元|円|원)", re.I)
_EXTENSION = re.compile(r" ?(?:ext\.?|extension|x|poste|durchwahl|доб\.?|#) ?\d{1,6}\b", re.I)
_SAYS_PHONE = re.compile(
    r"(?:\b(?:tel|phone|telephone|fon|fax|mobile|mobil|mob|cell|cellphone|call|calling|ring|dial|text|sms|whatsapp|viber"
    r"|telegram|signal|hotline|contact|reach|handy|rufnummer|durchwahl|anrufen|rufen sie|landline|cep"
    r"|ufficio|bel me op|bel ons op"
    r"|telefon|telefono|teléfono|telefone|celular|móvil|movil|cel|fono"
    r"|tél|téléphone|portable|appelez|mobiel|telefoon|gsm|komórka|mój numer|puhelin|telp|no\. hp|zadzwoń|chiama"
    r"|cellulare|llámame|llama|ligue|ruf|(?:my|your|his|her|their|phone|contact) number)"
    r"|טלפון|נייד|τηλ|κιν|тел|телефон|звоните|моб|номер|电话|手机|電話|携帯|联系|聯絡|号码|微信|전화|연락처|핸드폰|휴대폰|फ़ोन|फोन|मोबाइल|नंबर|संपर्क|هاتف|جوال|موبايل|تلفن"
    r"|điện thoại|sđt|โทร|☎|📞|📱)\w{0,8}(?:[^\w\n;]{1,4}[^\W\d]{1,14}){0,2}[^\w\n;]{0,6}$",
    re.I,
)


def _phones(text: str) -> Iterator[Span]:
    for found in _PHONE.finditer(text):
        value, begin = found[0], found.start()
        if value.count(")") > value.count("("):
            value = value[: value.rindex(")")]
        elif value.count("(") > value.count(")"):  # 01.44.27.13.55 (8h30-17h)
            value = value[: value.rindex("(")].rstrip()
        after = text[begin + len(value) : begin + len(value) + 9]
        if re.match(r"[A-Za-z0-9_]|[.,]\d|[-/%]\w", after) and not _EXTENSION.match(text, begin + len(value)):
            continue
        digits = re.sub(r"\D", "", value)
        if not 7 <= len(digits) <= 15 or len(set(digits)) < 3 or _NO_PHONE.match(value) or _AMOUNT.match(after):
            continue
        said = bool(_SAYS_PHONE.search(text[max(0, begin - 48) : begin]))
        if is_phone(value, digits, said):
            end = begin + len(value)
            extension = _EXTENSION.match(text, end)
            yield begin, extension.end() if extension else end


FINDERS: Final[dict[str, Callable[[str], Iterator[Span]]]] = {
    "password": _passwords,
    "key": _keys,
    "email": _emails,
    "iban": _ibans,
    "card": _cards,
    "national_id": national_numbers,
    "ip": _ips,
    "phone": _phones,
}
"""By type. Where two types match the same characters, the first one in this order has them."""

_NUMBERS: Final = ("iban", "national_id", "card", "phone")
_SIGNS: Final = {"password": 32 | 4, "key": 2 | 32, "email": 4, "ip": 8 | 16} | dict.fromkeys(_NUMBERS, 1)
"""By type: the signs of `_kernels_private` that a line with such a value has."""
_WORDS: Final = (
    *_PASSWORD_WORDS, *_FLAG_WORDS, *_KEY_BEGINNINGS, "hooks.slack", "webhook", "bearer",
)  # fmt: skip
_ALL_SIGNS: Final = 63


def find(line: str, types: tuple[str, ...], context: str = "", signs: int = _ALL_SIGNS) -> list[tuple[int, int, str]]:
    """(begin, end, type) of the private values in a line, in order and without overlaps.

    `context` is the name of the field that holds the line: "phone", "password". `signs` has those of the line.
    """
    before = f"{context}: " if context else ""
    text, taken = before + line, list[tuple[int, int, str]]()
    for name in FINDERS:
        if name in types and _SIGNS[name] & signs:
            for begin, end in FINDERS[name](text):
                if begin >= len(before) and all(end <= a or begin >= b for a, b, _ in taken):
                    taken.append((begin, end, name))
    return sorted((a - len(before), b - len(before), name) for a, b, name in taken)


# Rows.


@dataclass(frozen=True, kw_only=True, slots=True)
class Private(RuleSet):
    """What is private, and what happens to it."""

    name: ClassVar[str] = "private"
    counts: ClassVar[bool] = True
    edits: ClassVar[bool] = True
    whole_row: ClassVar[bool] = True

    types: tuple[str, ...] = option(tuple(FINDERS), "the types of values to look for")
    action: Literal["replace", "drop"] = option("replace", "replace values, or drop rows with them")
    replacement: Literal["tag", "fake"] = option("tag", "tag: <EMAIL>; fake: made-up values, equal for equal values")
    seed: int = option(0, "of the made-up values")
    max_values: int = option(0, "with drop: drop rows with more values")

    def check(self) -> None:
        """Refuse unknown types, and none at all."""
        unknown = [t for t in self.types if t not in FINDERS]
        if unknown or not self.types:
            raise ConfigError(f"types = {list(self.types)}: expected some of {', '.join(FINDERS)}")

    def resources(self) -> dict[str, Any]:
        """The versions of the libraries that check numbers."""
        return {"private_numbers": {name: version(name) for name in ("phonenumbers", "python-stdnum")}}

    def describe(self) -> tuple[str, ...]:
        """Where the raw values remain."""
        if self.action == "drop":
            return ("private: dropped/ holds the rows with private values as they were",)
        return (
            "private: values are replaced in all that this stage writes; earlier stages (parents/ beside "
            "an --output, data/DATASET/ in a project: shards, quarantine/, pairs/) still hold them",
        )

    def counted_with(self) -> dict[str, Any]:
        """The types of values."""
        return {"types": self.types}

    def count_rows(self, rows: MeasuredRows) -> Signals:
        """The number of values of each type in each row, in all of its text."""
        rows.found[self.name] = self._edited(rows.batch)
        return Signals(rows.found[self.name][1])

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The number of values, where rows with too many are dropped."""
        counts = rows.counted(self)
        total = np.sum([counts[f"private_{name}"] for name in self.types], axis=0)
        yield Measure("max_values", total, None if self.action == "drop" else np.zeros(len(total), np.bool_))

    def edit_rows(self, batch: pa.RecordBatch, rows: MeasuredRows) -> RowEdits | None:
        """All rows without private values, those that other rules drop too."""
        if self.action == "drop":
            return None
        unchanged = batch is rows.batch and self.name in rows.found
        columns, counts = rows.found[self.name] if unchanged else self._edited(batch)
        changed = np.sum(list(counts.values()), axis=0) > 0
        return RowEdits(columns, changed, {name: int(values.sum()) for name, values in counts.items()})

    def notes(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> dict[str, int]:
        """With `drop`, the number of values of each type in the rows that stay."""
        if self.action == "replace":
            return {}
        counts = rows.counted(self)
        return {f"private_{name}": int(counts[f"private_{name}"][stays].sum()) for name in self.types}

    def edit_text(self, texts: pa.Array) -> pa.Array:
        """Texts of side tables (passages), without private values."""
        if self.action == "drop":
            return texts
        return edit_whole_rows(pa.record_batch({"text": texts}), self._editor({})).get("text", texts)

    def _edited(self, batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], dict[str, NDArray[np.int64]]]:
        counts = {f"private_{name}": np.zeros(batch.num_rows, np.int64) for name in self.types}
        return edit_whole_rows(batch, self._editor(counts)), counts

    def _editor(self, counts: dict[str, NDArray[np.int64]]) -> Callable[[pa.Array, NDArray[np.int64], str], pa.Array]:
        def edit(texts: pa.Array, rows: NDArray[np.int64], name: str) -> pa.Array:
            mask, made = np.zeros(len(texts), np.bool_), []
            for at, (changed, found) in self._replaced(texts, name):
                if found:
                    mask[at] = True
                    made.append(changed)
                    for kind, number in found.items() if counts else ():
                        counts[f"private_{kind}"][rows[at]] += number
            return pc.replace_with_mask(texts, pa.array(mask), pa.array(made, texts.type)) if made else texts

        return edit

    def _replaced(self, texts: pa.Array, name: str) -> Iterator[tuple[int, tuple[str, dict[str, int]]]]:
        """(index, what `replace` returns) of the texts of a field that may hold private values."""
        context = "" if name in _PROSE else name
        if name in JSON_FIELDS or _CONTEXT.search(context):
            for at in np.flatnonzero(pc.is_valid(texts).to_numpy(zero_copy_only=False)).tolist():
                text = texts[at].as_py()
                yield at, self.replace_json(text) if name in JSON_FIELDS else self.replace(text, context)
            return
        blocks = pc.fill_null(pc.match_substring(texts, "-----BEGIN"), False).to_numpy(zero_copy_only=False)
        lines = _candidates(texts)
        for at in np.union1d(np.unique(lines[:, 0]), np.flatnonzero(blocks)).tolist():
            if blocks[at]:
                yield at, self.replace(texts[at].as_py())
            else:
                begin, end = np.searchsorted(lines[:, 0], [at, at + 1])
                yield at, self._replaced_lines(texts[at].as_buffer(), lines[begin:end, 1:].tolist())

    def _replaced_lines(self, text: pa.Buffer, lines: list[list[int]]) -> tuple[str, dict[str, int]]:
        """`replace`, where the lines that may hold values are known: first byte, last byte + 1, signs."""
        counts: Counter[str] = Counter()
        data, pieces, done = memoryview(text), [], 0
        for first, last, signs in lines:
            line = str(data[first:last], "utf-8")
            found = find(line, self.types, "", signs)
            if found:
                for begin, end, name in reversed(found):
                    line = f"{line[:begin]}{self._instead(name, line[begin:end])}{line[end:]}"
                    counts[name] += 1
                pieces += [str(data[done:first], "utf-8"), line]
                done = last
        return "".join([*pieces, str(data[done:], "utf-8")]) if pieces else "", dict(counts)

    def replace(self, text: str, context: str = "") -> tuple[str, dict[str, int]]:
        """(the text without private values, the number of values by type); `context` is the name of its field."""
        counts: Counter[str] = Counter()
        if "key" in self.types and "-----BEGIN" in text:
            text, found = _BLOCK.subn(lambda m: self._instead("key", m[0]), text)
            counts.update({"key": found} if found else {})
        lines = text.split("\n")
        for i, line in enumerate(lines):
            for begin, end, name in reversed(find(line, self.types, context)):
                lines[i] = f"{lines[i][:begin]}{self._instead(name, lines[i][begin:end])}{lines[i][end:]}"
                counts[name] += 1
        return "\n".join(lines), dict(counts)

    def replace_json(self, text: str) -> tuple[str, dict[str, int]]:
        """The same for JSON: its strings and long numbers, each by itself; all other bytes stay."""
        counts: Counter[str] = Counter()

        def literal(found: re.Match[str]) -> str:
            key, value = found["key"] or "", found["value"] or found["alone"]
            if not value:
                return found[0]
            try:
                plain = json.loads(value) if value[0] == '"' else value
                name = json.loads(key) if key else ""
            except ValueError:
                return found[0]
            if plain[:1] in ("{", "["):
                made, seen = self.replace_json(plain)
            else:
                made, seen = self.replace(plain, name)
            counts.update(seen)
            escaped = json.dumps(made, ensure_ascii="\\u" in value)
            return f"{found['before'] or ''}{escaped}" if seen else found[0]

        if text.lstrip()[:1] not in ("{", "["):
            return self.replace(text)
        return _LITERAL.sub(literal, text), dict(counts)

    def _instead(self, kind: str, value: str) -> str:
        return f"<{kind.upper()}>" if self.replacement == "tag" else fake(kind, value, self.seed)


_PROSE: Final = ("text", "content", "reasoning_content")
_CONTEXT: Final = re.compile(
    r"(?i)pass|pwd|secret|token|key|phone|tel|mobile|fax|cell|contact|whatsapp|ssn|\bid\b|card|bsn|cpf|pesel|\bip\b|电话|手机|密码"
)
"""Names of fields whose values need no other sign that they are private."""
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_SCALAR: Final = rf"{_STRING}|(?<![\w.+-])\d{{7,19}}(?![\w.])"
_LITERAL: Final = re.compile(
    rf"(?P<before>(?P<key>{_STRING})\s*:\s*)(?P<value>{_SCALAR})?|(?P<alone>{_SCALAR})", re.DOTALL
)
"""Of JSON: a key with its value, if that is a string or a long number, or such a value in a list."""


def fake(kind: str, value: str, seed: int) -> str:
    """A made-up value for a private one, the same for the same value and seed.

    Values that nobody has: domains of RFC 2606, addresses of RFC 5737, 555-0100 to 555-0199, wrong check digits.
    """
    digest = hashlib.blake2b(f"{seed}\0{kind}\0{value}".encode(), digest_size=16).digest()
    number = int.from_bytes(digest, "big")
    digits = f"{number:039d}"
    if kind == "email":
        return f"user{digits[-9:]}@example.com"
    if kind == "ip":
        return f"203.0.113.{number % 256}" if ":" not in value else f"2001:db8::{number % 0xFFFF:x}"
    if kind == "phone":
        return f"+1-{number % 700 + 200}-555-01{digits[-2:]}"
    if kind == "card":
        return f"0000 {digits[:4]} {digits[4:8]} {digits[8:12]}"
    if kind == "iban":
        return f"XX00{digits[:16]}"
    if kind == "national_id":
        return f"000-00-{digits[:4]}"
    return f"EXAMPLE-{kind}-{digest.hex()[:20]}"


@cache
def _spellings() -> tuple[bytes, ...]:
    """The first 12 bytes of the words in small letters, in capitals, and with a capital first, in ascending order.

    The kernel knows capitals of ASCII by itself.
    """
    forms = (form for word in _WORDS for form in (word, word.upper(), word.capitalize()))
    return tuple(sorted({"".join(c.lower() if c.isascii() else c for c in form).encode()[:12] for form in forms}))


def _candidates(texts: pa.Array) -> NDArray[np.int64]:
    """int64[H, 4]: text, first byte, last byte + 1 (both within the text), signs of the lines that may hold values."""
    from datakit.filter import _kernels_private

    data, offsets = string_buffers(texts)
    words = np.array([word.ljust(12, b"\0") for word in _spellings()]).view(np.uint8).reshape(-1, 12)
    lines = _kernels_private.candidates(data, offsets, words)
    lines[:, 1:3] -= offsets[lines[:, 0], None]
    return np.asarray(lines)
