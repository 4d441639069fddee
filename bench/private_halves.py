"""The development half and the held-out half of `bench/private.py`: values of 16 regions in the sentences around them.

Values are made from a seed: numbers get their check digits here, by code that shares nothing with the rule set.
"""

# ruff: noqa: E501 (sentences of the benchmark)

import random
import string
from collections.abc import Callable, Iterator

Case = tuple[str, str, str]
"""(type, sentence, the value in it)"""


def digits(rng: random.Random, n: int) -> str:
    return "".join(rng.choices(string.digits, k=n))


def token(rng: random.Random, n: int, letters: str = string.ascii_letters + string.digits) -> str:
    made = "".join(rng.choices(letters, k=n - 3)) + rng.choice("bcdfgh") + digits(rng, 2)
    return made


def luhn(body: str) -> str:
    total = sum(sum(divmod(int(d) * (2 - i % 2), 10)) for i, d in enumerate(reversed(body)))
    return body + str(-total % 10)


def weighted(body: str, weights: tuple[int, ...], modulus: int) -> int:
    return sum(int(d) * w for d, w in zip(body, weights, strict=False)) % modulus


def iban(country: str, account: str) -> str:
    number = int("".join(str(int(c, 36)) for c in f"{account}{country}00"))
    return f"{country}{98 - number % 97:02d}{account}"


def grouped(text: str, *sizes: int, by: str = " ") -> str:
    out, at = [], 0
    for size in sizes:
        out.append(text[at : at + size])
        at += size
    return by.join(out)


def cpf(rng: random.Random) -> str:
    body = digits(rng, 9)
    for n in (10, 11):
        rest = weighted(body, tuple(range(n, 1, -1)), 11)
        body += str(0 if rest < 2 else 11 - rest)
    return body


def chinese(rng: random.Random) -> str:
    body = f"{rng.choice(('110105', '310115', '440305', '510104'))}19{rng.randint(60, 99)}{rng.randint(1, 12):02d}"
    body += f"{rng.randint(1, 28):02d}{digits(rng, 3)}"
    return body + "10X98765432"[weighted(body, (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2), 11)]


def french(rng: random.Random) -> str:
    body = f"{rng.choice('12')}{rng.randint(40, 99)}{rng.randint(1, 12):02d}{rng.randint(10, 89)}{digits(rng, 6)}"
    return f"{body}{97 - int(body) % 97:02d}"


def pesel(rng: random.Random) -> str:
    body = f"{rng.randint(50, 99)}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}{digits(rng, 4)}"
    return body + str(-weighted(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10) % 10)


def bsn(rng: random.Random) -> str:
    while True:
        body = f"{rng.randint(1, 2)}{digits(rng, 7)}"
        last = weighted(body, (9, 8, 7, 6, 5, 4, 3, 2), 11)
        if last < 10:
            return body + str(last)


def spanish(rng: random.Random) -> str:
    body = f"{rng.randint(10_000_000, 79_999_999)}"
    return body + "TRWAGMYFPDXBNJZSQVHLCKE"[int(body) % 23]


def swedish(rng: random.Random) -> str:
    return luhn(f"{rng.randint(50, 99)}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}{digits(rng, 3)}")


def aadhaar(rng: random.Random) -> str:
    d = [[(i + j) % 5 if i < 5 and j < 5 else 0 for j in range(10)] for i in range(10)]
    for i in range(10):
        for j in range(10):
            a, b = i % 5, j % 5
            if i < 5:
                d[i][j] = (a + b) % 5 + (5 if j >= 5 else 0)
            else:
                d[i][j] = (a - b) % 5 + (0 if j >= 5 else 5)
    p, body = [list(range(10)), [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]], f"{rng.randint(2, 9)}{digits(rng, 10)}"
    while len(p) < 8:
        p.append([p[-1][p[1][i]] for i in range(10)])
    check = 0
    for i, c in enumerate(reversed(body)):
        check = d[check][p[(i + 1) % 8][int(c)]]
    return body + str(d[check].index(0))


def ssn(rng: random.Random) -> str:
    return f"{rng.choice((212, 331, 402, 518, 604, 711)):03d}-{rng.randint(11, 98)}-{rng.randint(1000, 9998)}"


def card(rng: random.Random, prefix: str = "", size: int = 16) -> str:
    prefix = prefix or rng.choice(("4539", "4716", "5211", "5425", "2223", "6011"))
    return luhn(prefix + digits(rng, size - 1 - len(prefix)))


PHONES = {
    "US": ("(212) 736-4{3}", "415-867-5{3}", "+1 650 253 {4}", "+1-303-499-7{3}"),
    "GB": ("+44 20 7946 0{3}", "020 7831 {4}", "07911 12{4}", "+44 7700 90{4}"),
    "FR": ("06 12 34 {2} {2}", "+33 1 42 68 {2} {2}", "01.45.67.{2}.{2}", "+33 6 98 76 {2} {2}"),
    "DE": ("+49 30 901820{2}", "+49 151 2345 {4}", "030 9018{4}", "0151 2345{4}"),
    "ES": ("+34 612 34 {2} {2}", "+34 912 345 {3}", "612 345 {3}", "91 234 {2} {2}"),
    "IT": ("+39 06 6982 {4}", "+39 347 123 {4}", "347 123 {4}", "06 6982 {4}"),
    "NL": ("+31 6 1234 {4}", "+31 20 624 1{3}", "06-1234{4}", "020 624 1{3}"),
    "PL": ("+48 601 234 {3}", "+48 22 625 {2} {2}", "601 234 {3}", "22 625 {2} {2}"),
    "IN": ("+91 98765 4{4}", "+91-22-2345-{4}", "98765 4{4}", "987654{4}"),
    "CN": ("+86 138 0013 {4}", "138-0013-{4}", "1380013{4}", "+86 10 6552 {4}"),
    "JP": ("+81 90-1234-{4}", "090-1234-{4}", "03-3224-{4}", "+81 3 3224 {4}"),
    "KR": ("+82 10-2345-{4}", "010-2345-{4}", "02-2345-{4}", "+82 2 2345 {4}"),
    "BR": ("+55 11 91234-{4}", "(11) 91234-{4}", "11 91234-{4}", "+55 21 2345-{4}"),
    "RU": ("+7 912 345-{2}-{2}", "8 (912) 345-{2}-{2}", "+7 (495) 123-{2}-{2}", "8 912 345 {2} {2}"),
    "AU": ("+61 412 345 {3}", "0412 345 {3}", "(02) 9374 {4}", "+61 2 9374 {4}"),
    "MX": ("+52 55 1234 {4}", "55 1234 {4}", "+52 33 3123 {4}", "(55) 1234-{4}"),
}
SAYS = {
    "US": "Call me at {}", "GB": "Phone: {}", "FR": "Tél. {}", "DE": "Telefon: {}", "ES": "Teléfono: {}", "IT": "Cellulare: {}",
    "NL": "Telefoon {}", "PL": "Telefon: {}", "IN": "Mobile: {}", "CN": "电话：{}", "JP": "電話番号：{}", "KR": "전화 {}",
    "BR": "Telefone: {}", "RU": "Телефон: {}", "AU": "My number is {}", "MX": "Tel: {}",
}  # fmt: skip
SAYS_HELD_OUT = {
    "US": "you can reach me at {} after five", "GB": "give us a ring on {}", "FR": "Mon portable : {}",
    "DE": "Meine Handynummer ist {}", "ES": "mi móvil es {}, llámame", "IT": "telefono ufficio {} (dalle 9)",
    "NL": "mobiel: {}", "PL": "mój numer to {}", "IN": "WhatsApp {} for details", "CN": "请联系手机{}，谢谢",
    "JP": "携帯は{}です", "KR": "연락처: {}", "BR": "ligue para {} hoje", "RU": "звоните {} вечером",
    "AU": "text me on {}", "MX": "mi celular {}",
}  # fmt: skip


def phones(rng: random.Random, says: dict[str, str]) -> Iterator[Case]:
    for region, forms in PHONES.items():
        for form in forms:
            value = form
            for n in (2, 3, 4):
                while f"{{{n}}}" in value:
                    value = value.replace(f"{{{n}}}", f"{rng.randint(10 ** (n - 1), 10**n - 1)}", 1)
            yield "phone", says[region].format(value), value


NAMES = [
    "maria.lopez",
    "j.smith",
    "anna_k",
    "li.wei",
    "takeshi99",
    "o.petrov",
    "sara-m",
    "kim.js",
    "fatima.z",
    "nguyen_t",
    "b.kowalski",
    "tom.o'neil",
]
HOSTS = [
    "gmail.com",
    "yahoo.co.jp",
    "web.de",
    "orange.fr",
    "uni-koeln.de",
    "qq.com",
    "mail.ru",
    "naver.com",
    "uol.com.br",
    "rediffmail.com",
    "wp.pl",
    "bbc.co.uk",
]
SECRETS: dict[str, Callable[[random.Random], str]] = {
    "AWS access key": lambda r: "AKIA" + token(r, 16, string.ascii_uppercase + "234567").upper(),
    "GitHub": lambda r: "ghp_" + token(r, 36),
    "GitHub, fine": lambda r: f"github_pat_{token(r, 22)}_{token(r, 59)}",
    "GitLab": lambda r: "glpat-" + token(r, 20),
    "Slack": lambda r: f"xoxb-{digits(r, 12)}-{digits(r, 12)}-{token(r, 24)}",
    "Slack webhook": lambda r: (
        f"https://hooks.slack.com/services/T{token(r, 8).upper()}/B{token(r, 8).upper()}/{token(r, 24)}"
    ),
    "Stripe": lambda r: "sk_live_" + token(r, 24),
    "Stripe test": lambda r: "sk_test_" + token(r, 24),
    "OpenAI": lambda r: "sk-" + token(r, 48),
    "OpenAI project": lambda r: "sk-proj-" + token(r, 64),
    "Anthropic": lambda r: f"sk-ant-api03-{token(r, 80)}",
    "Google": lambda r: "AIza" + token(r, 35),
    "Hugging Face": lambda r: "hf_" + token(r, 34),
    "npm": lambda r: "npm_" + token(r, 36),
    "SendGrid": lambda r: f"SG.{token(r, 22)}.{token(r, 43)}",
    "Telegram": lambda r: f"{r.randint(10**8, 10**10 - 1)}:AA{token(r, 33)}",
    "Twilio": lambda r: "SK" + "".join(r.choices("0123456789abcdef", k=32)),
    "Mailgun": lambda r: "key-" + "".join(r.choices("0123456789abcdef", k=32)),
    "Shopify": lambda r: "shpat_" + "".join(r.choices("0123456789abcdef", k=32)),
    "DigitalOcean": lambda r: "dop_v1_" + "".join(r.choices("0123456789abcdef", k=64)),
    "JWT": lambda r: f"eyJ{token(r, 33)}.eyJ{token(r, 60)}.{token(r, 43)}",
    "Discord webhook": lambda r: f"https://discord.com/api/webhooks/{digits(r, 18)}/{token(r, 68)}",
}


def numbers(rng: random.Random) -> dict[str, tuple[str, ...]]:
    """National numbers by region, with what people write before them."""
    c, a, p = cpf(rng), aadhaar(rng), pesel(rng)
    return {
        "US": (f"SSN {ssn(rng)}", f"his social is {ssn(rng)}", f"ssn: {ssn(rng).replace('-', '')}"),
        "GB": (f"NI number AB {rng.randint(10, 99)} {rng.randint(10, 99)} {rng.randint(10, 99)} C", f"NINO: JG{digits(rng, 6)}A"),
        "CA": (f"SIN {grouped(luhn('4' + digits(rng, 7)), 3, 3, 3)}", f"my SIN is {grouped(luhn('6' + digits(rng, 7)), 3, 3, 3, by='-')}"),
        "FR": (f"numéro de sécu {french(rng)}", f"NIR : {grouped(french(rng), 1, 2, 2, 2, 3, 3, 2)}"),
        "ES": (f"DNI {spanish(rng)}", f"con documento {spanish(rng)} en mano"),
        "NL": (f"BSN {bsn(rng)}", f"burgerservicenummer: {bsn(rng)}"),
        "PL": (f"PESEL {p}", f"mój pesel to {pesel(rng)}"),
        "SE": (f"personnummer {grouped(swedish(rng), 6, 4, by='-')}", f"pnr {grouped(swedish(rng), 6, 4, by='-')}"),
        "CN": (f"身份证号：{chinese(rng)}", f"ID {chinese(rng)}"),
        "KR": (f"주민등록번호 {rng.randint(60, 99)}0{rng.randint(1, 9)}1{rng.randint(0, 9)}-1{digits(rng, 6)}",),
        "IN": (f"Aadhaar {grouped(a, 4, 4, 4)}", f"aadhar no. {aadhaar(rng)}", f"PAN: ABCP{rng.choice('KLMRS')}{rng.randint(1000, 9999)}F"),
        "BR": (f"CPF {grouped(c, 3, 3, 3, by='.')}-{c[9:]}", f"cpf: {cpf(rng)}"),
    }  # fmt: skip


def value_of(text: str) -> str:
    """The part of a national number's text from its first to its last digit, with letters of the number."""
    words = text.split()
    at = next(i for i, w in enumerate(words) if sum(c.isdigit() for c in w) >= 1 or w == "AB")
    end = max(i for i, w in enumerate(words) if any(c.isdigit() for c in w))
    if end + 1 < len(words) and len(words[end + 1]) == 1:
        end += 1
    return " ".join(words[at : end + 1]).split("：")[-1]


def positives(held_out: bool) -> list[Case]:
    rng = random.Random(77 if held_out else 7)
    cases: list[Case] = list(phones(rng, SAYS_HELD_OUT if held_out else SAYS))
    around = (
        ("contact {} today", "<{}>", '"owner": "{}"')
        if not held_out
        else ("{} wrote:", "mailto:{}?subject=x", "cc={};")
    )
    for i, name in enumerate(NAMES):
        for form in around:
            value = f"{name}{rng.randint(1, 99)}@{HOSTS[(i + held_out) % len(HOSTS)]}"
            cases.append(("email", form.format(value), value))
    around = ("login from {}", "ip={}", "http://{}:8080/x", "[{}] GET /") if not held_out else (
        "ssh root@{}", "blocked {} twice", "{} - - [12/Mar/2024", 'addr: "{}"', "X-Forwarded-For: {}")  # fmt: skip
    for form in around:
        for _ in range(7):
            value = f"{rng.choice((85, 93, 104, 151, 203, 212))}.{rng.randint(1, 254)}.{rng.randint(101, 254)}.{rng.randint(1, 254)}"
            value = value.replace("203.0.113", "203.9.113")
            cases.append(("ip", form.format(value), value))
    for n in range(12):
        value = ("2a00:1450:{:x}::{:x}" if n % 2 else "2606:4700:{:x}:0:0:0:{:x}:1").format(
            rng.randint(1, 65535), rng.randint(1, 65535)
        )
        cases.append(("ip", ("from {} port 22" if held_out else "peer [{}]:443").format(value), value))
    around = (
        ("card {}", "Visa: {} exp 04/27", "paid with {}")
        if not held_out
        else ("Kartennummer {}", "{} (Mastercard)", "卡号：{}。")
    )
    for form in around:
        for n in range(12):
            value = card(rng)
            value = (value, grouped(value, 4, 4, 4, 4), grouped(value, 4, 4, 4, 4, by="-"))[n % 3]
            cases.append(("card", form.format(value), value))
    for n in range(4):
        value = card(rng, "37", 15)
        cases.append(
            ("card", f"amex {value}", value)
            if n % 2
            else ("card", f"Amex {grouped(value, 4, 6, 5)}", grouped(value, 4, 6, 5))
        )
    sizes = {
        "DE": 18,
        "FR": 23,
        "ES": 20,
        "NL": 0,
        "GB": 0,
        "IT": 0,
        "PL": 24,
        "AT": 16,
        "BE": 12,
        "CH": 17,
        "PT": 21,
        "SE": 20,
        "DK": 14,
    }
    for country, size in sizes.items():
        for n in range(3):
            account = (
                digits(rng, size)
                if size
                else {"NL": "ABNA" + digits(rng, 10), "GB": "NWBK" + digits(rng, 14), "IT": "X" + digits(rng, 22)}[
                    country
                ]
            )
            value = iban(country, account)
            value = " ".join(value[i : i + 4] for i in range(0, len(value), 4)) if n % 2 else value
            cases.append(("iban", ("bitte auf {} überweisen" if held_out else "IBAN: {}").format(value), value))
    for _ in range(2):
        for texts in numbers(rng).values():
            cases += [("national_id", f"{t}, thanks" if held_out else t, value_of(t)) for t in texts]
    around = ("token: {}", "{}") if not held_out else ("export X={}", "curl -H 'Authorization: {}'")
    for make in SECRETS.values():
        for form in around:
            value = make(rng)
            cases.append(("key", form.format(value), value))
    b64 = string.ascii_letters + string.digits + "+/"
    for form in (("aws_secret_access_key = {}", "api_key='{}'", "Bearer {}") if not held_out else (
        'AWS_SECRET_ACCESS_KEY="{}"', "client_secret: {}", "authorization: bearer {}", 'x-api-key: "{}"')):  # fmt: skip
        for _ in range(4):
            value = token(rng, 40, b64 if "aws" in form.lower() else string.ascii_letters + string.digits)
            cases.append(("key", form.format(value), value))
    for _ in range(10):
        value = f"{rng.choice(('Sommer', 'tiger', 'Qwe', 'blue!'))}{rng.randint(10, 9999)}{rng.choice(('!', '#', 'x', '?z'))}"
        forms = ("postgres://app:{}@db.host.io/x", "password = {}", '"password": "{}"') if not held_out else (
            "ftp://ana:{}@files.site.org", "passwd: {}", "my password is {}", "Passwort: {}", "密码：{}")  # fmt: skip
        cases += [
            (
                "password",
                form.format(value),
                value.rstrip("!?") if not form.endswith(("@db.host.io/x", "@files.site.org")) else value,
            )
            for form in forms
        ]
    return cases


def negatives(held_out: bool) -> list[str]:
    rng = random.Random(99 if held_out else 9)
    r, hexes = rng.randint, "0123456789abcdef"

    def h(n: int) -> str:
        return "".join(rng.choices(hexes, k=n))

    development = (
        lambda: f"version {r(1, 9)}.{r(0, 20)}.{r(0, 99)}.{r(0, 9)}", lambda: f"Chrome/{r(60, 120)}.0.{r(1000, 6000)}.{r(10, 200)}",
        lambda: f"numpy=={r(1, 2)}.{r(10, 26)}.{r(0, 9)}", lambda: f"commit {h(40)}", lambda: f"sha256:{h(64)}",
        lambda: f"uuid {h(8)}-{h(4)}-4{h(3)}-a{h(3)}-{h(12)}", lambda: f"20{r(10, 29)}-0{r(1, 9)}-1{r(0, 9)}T1{r(0, 9)}:{r(10, 59)}:{r(10, 59)}",
        lambda: f"x = {r(1, 99)} + {r(1000, 9999)} {r(1000, 9999)}", lambda: f"ISBN 978-{r(0, 9)}-{r(10, 99)}-{r(100000, 999999)}-{r(0, 9)}",
        lambda: f"{r(1, 999)},{r(100, 999)},{r(100, 999)} people", lambda: f"127.0.0.{r(1, 9)}:{r(1000, 9999)}", lambda: f"192.168.{r(0, 9)}.{r(1, 254)}",
        lambda: f"user{r(1, 99)}@example.com", lambda: f"git@github.com:team{r(1, 99)}/repo.git", lambda: f"logo{r(1, 9)}@2x.png",
        lambda: f"timestamp {r(1500000000, 1700000000)}", lambda: f"id={r(10**15, 10**16 - 1)}", lambda: f"pi is 3.14159265358979{r(10, 99)}",
        lambda: f"sk-{rng.choice(('image', 'text'))}-segmentation-models-are-here-for-you", lambda: f"password = get_password({r(1, 9)})",
        lambda: "api_key = os.environ['SERVICE_API_KEY']", lambda: f"token_type = 'access_token_response_v{r(1, 3)}'",
        lambda: f"0x{h(16)}", lambda: f"rgb({r(0, 255)}, {r(0, 255)}, {r(0, 255)})", lambda: f"page {r(1, 99)} of {r(100, 999)}, section {r(1, 9)}.{r(1, 9)}.{r(1, 9)}.{r(1, 9)}",
        lambda: f"std::map<a::b, c::d> m{r(1, 9)}; {r(10, 23)}:{r(10, 59)}:{r(10, 59)}", lambda: f"lat {r(10, 89)}.{r(100000, 999999)}, lon -{r(10, 89)}.{r(100000, 999999)}",
        lambda: f"import {rng.choice(('a', 'b'))}.secret_key_manager.rotation", lambda: f"AB{r(10, 99)} CDEF GHIJ KLMN", lambda: f"call({r(1000000, 9999999)}.{r(10, 99)})",
    )  # fmt: skip
    unseen = (
        lambda: f"firmware {r(1, 9)}.{r(1, 9)}.{r(1, 9)}.{r(1, 9)} released", lambda: f"Mozilla/5.0 (X11) Gecko/20100101 Firefox/{r(60, 120)}.0",
        lambda: f"md5 {h(32)}  file.iso", lambda: f"order no. {r(10**11, 10**12 - 1)}", lambda: f"tracking 1Z{h(16).upper()}",
        lambda: f"The {r(1800, 2020)}-{r(10, 99)} season ended {r(1, 9)}-{r(1, 9)}", lambda: f"$ {r(1, 99)} 000 000 were spent in {r(1990, 2020)}",
        lambda: f"{r(10, 99)} 000 km, {r(100, 999)} 000 t", lambda: f"equation ({r(1, 9)}.{r(1, 99)}): a = {r(100, 999)} - {r(10, 99)} - {r(1000, 9999)}",
        lambda: f"seed={r(10**8, 10**9)}; steps={r(1000, 9999)}", lambda: f"fe80::{h(4)}:{h(4)}", lambda: f"MAC 00:1B:{h(2)}:{h(2)}:{h(2)}:{h(2)}",
        lambda: f"10.{r(0, 255)}.{r(0, 255)}.{r(0, 255)}/8", lambda: f"postgres://user:password@localhost:{r(5000, 5999)}/db", lambda: f"root@localhost:{r(1, 9)}#",
        lambda: f"@decorator{r(1, 9)}(name='x')", lambda: f"npm i @scope/pkg@{r(1, 9)}.{r(1, 9)}.{r(0, 9)}", lambda: "Enter your password: ********",
        lambda: "the secret ingredient is butter, and the token gesture was noticed", lambda: f"token count: {r(10000, 99999)} of {r(100000, 999999)}",
        lambda: f"doi:10.{r(1000, 9999)}/{r(100000, 999999)}.{r(1000000, 9999999)}", lambda: f"arXiv:{r(1000, 2400)}.{r(10000, 99999)}", lambda: f"RFC {r(1000, 9000)} section {r(1, 9)}.{r(1, 9)}",
        lambda: f"data: {r(10, 99)} {r(10, 99)} {r(10, 99)} {r(10, 99)} {r(10, 99)}", lambda: f"[{r(100, 999)}, {r(100, 999)}, {r(1000, 9999)}]", lambda: f"EUR {r(1, 9)}.{r(100, 999)}.{r(100, 999)},{r(10, 99)}",
        lambda: f"part number {r(10, 99)}-{r(1000, 9999)}-{r(10, 99)}", lambda: f"BASE64: {''.join(rng.choices(string.ascii_letters, k=60))}", lambda: f"key: {rng.choice(('title', 'footer'))}.navigation.items.label_{r(1, 9)}",
        lambda: f"第{r(100, 999)}页，共{r(1000, 9999)}页，2024年{r(1, 12)}月{r(1, 28)}日", lambda: f"ticket #{r(10**6, 10**7)} closed", lambda: f"v{r(1, 9)}.{r(1, 9)}.{r(1, 9)}-beta.{r(1, 9)}+build.{r(1000, 9999)}",
    )  # fmt: skip
    makers = unseen if held_out else development
    return [make() for make in makers for _ in range(11)]
