"""A fourth set of strings for `bench/private.py`: telephone numbers and passwords, the two types that the third set
missed most, in 14 regions, and lines that look like them.

It was written before its author had read a finder; `bench/LOG.md` has its first figures. A value stands between ⟦ and ⟧.
"""

# ruff: noqa: E501 (sentences of the benchmark)

import re

from bench.private_halves import Case

POSITIVES = {
    "phone": """
Rufen Sie mich unter ⟦0171 2345678⟧ an, abends ab sechs.
Büro Hamburg, Durchwahl ⟦040 42838-2233⟧
Tel.: ⟦+49 (0)89 1234 5678⟧, Fax auf Anfrage
Mon portable c'est le ⟦06 71 22 83 94⟧, bises
Standard : ⟦01.44.27.13.55⟧ (8h30-17h)
Llámame al ⟦612 34 87 65⟧ cuando llegues
Teléfono fijo: ⟦91 432 18 76⟧, preguntar por Lola
Cell. ⟦347 128 4590⟧, chiedere di Marco
Ufficio di Roma: ⟦06 6982 4410⟧
Whatsapp me on ⟦+44 7911 234987⟧ pls
The surgery's number is ⟦020 7946 8123⟧, ask for Dr Patel
call mum ⟦07700 912384⟧ about sunday
My direct line is ⟦(617) 253-4210⟧
cell: ⟦917.862.3391⟧ (text only)
Reach her at ⟦+1 416-978-2011⟧ in Toronto
Ligue para ⟦(11) 98765-4329⟧ depois das 18h
telefone ⟦+55 21 2334 0876⟧
मेरा नंबर ⟦98201 43567⟧ है
Mob. ⟦+91 99305 21478⟧ (Rakesh, plumber)
电话：⟦138 1234 6789⟧，微信同号
手机号⟦13912345678⟧，联系人王先生
請撥⟦02-2736-8189⟧分機 12
携帯 ⟦090-3421-8867⟧ までご連絡ください
電話番号：⟦03-3581-4111⟧
연락처 ⟦010-4823-9917⟧ 입니다
Позвоните мне: ⟦8 (916) 234-56-78⟧
моб. ⟦+7 903 112 44 09⟧, Сергей
Zadzwoń: ⟦601 234 891⟧, Kasia
tel. stacjonarny ⟦22 628 31 44⟧
Bel me op ⟦06-23489917⟧ of mail
Ring mig på ⟦070-341 22 87⟧ efter jobbet
للتواصل: ⟦+971 50 431 8876⟧
رقم الهاتف ⟦0100 234 8871⟧
Beni ⟦0532 417 23 98⟧ numaradan ara
{"name": "Ana", "phone": "⟦+351 912 345 871⟧"}
<a href="tel:⟦+46702318845⟧">ring</a>
Ms Chen;Taipei;⟦+886 912 345 671⟧;active
phone_number=⟦+12125517788⟧&ok=1
""",
    "password": """
the wifi password is ⟦Blaubeere!77⟧
pw: ⟦kN8$wqzT⟧
login: anna / passwort: ⟦Sommer2019#⟧
mot de passe : ⟦Tr0ub4dor&3⟧
contraseña: ⟦Gat0Negro_55⟧
hasło: ⟦zielonyKot9!⟧
пароль: ⟦Zima2020vesna⟧
密码：⟦qwe!2345RT⟧
パスワードは ⟦Sakura-4417⟧ です
비밀번호: ⟦hanguk88!!⟧
DB_PASSWORD=⟦x7!pLm29vQ⟧
export PGPASSWORD='⟦s3cr3t-Pg-91⟧'
mysql -u root -p⟦Hu7sdf33x⟧ shop
spring.datasource.password=⟦Wq3.zz8Tn⟧
password: "⟦f00B@r_2021⟧"
"passwd": "⟦9uYt-bb21⟧",
postgres://app:⟦Zk92mQpl⟧@db.internal:5432/app
ftp://upload:⟦Gr33nH4t⟧@files.example.org/in
curl -u admin:⟦Lk2!mnB7⟧ https://api.example.org
sshpass -p '⟦Rt55-uuZq⟧' ssh deploy@host
<password>⟦hGt6_pol1⟧</password>
redis-cli -a ⟦Vv81kkPqz⟧ ping
smtp_pass = ⟦mm7Xc!kd⟧
requirepass ⟦J8skd02kLm⟧
Your temporary password is ⟦Wolf-Tree-881⟧, change it soon.
user=bob;pwd=⟦Xo9_kk3⟧;timeout=30
senha: ⟦Cachoeira#12⟧
wachtwoord: ⟦Fiets_2280⟧
şifre: ⟦Ankara06*x⟧
password for the router: ⟦tQ9-vvb2⟧
--password=⟦Ni3ce.Try⟧ --host db
ADMIN_PASS: ⟦u8Jk#lop2⟧
""",
}

NEGATIVES = """
Forgot your password? Click here to reset it.
password: required, at least 8 characters
The password field must not be empty.
passwort: siehe Handbuch
if password != confirm_password: raise ValueError
password = os.environ["DB_PASSWORD"]
password=${DB_PASSWORD}
pw: <your password>
const password = getPassword(user);
password: string;
-p 8080:80 nginx
curl -u $USER:$TOKEN https://api.example.org
mot de passe oublié ?
密码必须包含数字和字母
The order 601234891 was shipped on 2021-03-04.
ISBN 978-3-16-148410-0
Release 20.7.9468 of the driver
x = 0171 * 2345678
2021-03-04 12:33:51,402 INFO worker 7 started
Table 4: 612 34 87 65 total 798
bytes 0100 2348 871f
sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709
Rows 90-3421 to 90-8867 were deleted
commit 98201435
pages 347-128, 4590 words
The population grew from 1,381,234 to 6,789,000.
lat 48.137154, lon 11.576124
RFC 2736, section 8.1.8
version 3.3581.4111
12 34 56 78 90 11 13 15
Invoice no. 0044279113
EUR 6.982,44 and USD 2,533.10
"""


def strings() -> tuple[list[Case], list[str]]:
    """(values in their sentences, strings without private values)."""
    positives = [
        (kind, re.sub("[⟦⟧]", "", line), line[line.index("⟦") + 1 : line.index("⟧")])
        for kind, lines in POSITIVES.items()
        for line in lines.strip().splitlines()
    ]
    return positives, NEGATIVES.strip().splitlines()
