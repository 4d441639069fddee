"""A third set of strings for `bench/private.py`: sentences, logs, forms and files of 30 countries, one line each.

It was written before its author had read a finder, so its first figures in `bench/LOG.md` are a true test. A value stands
between ⟦ and ⟧. `%{maker}` makes a part that needs check digits or must look random; everything else is as written.
"""

# ruff: noqa: E501 (sentences of the benchmark)

import base64
import random
import re
import string
import uuid
from collections.abc import Callable

from bench.private_halves import (
    Case,
    aadhaar,
    bsn,
    card,
    chinese,
    cpf,
    digits,
    french,
    grouped,
    luhn,
    pesel,
    spanish,
    ssn,
    swedish,
    token,
    weighted,
)

POSITIVES = {
    "email": """
Please cc ⟦maria.gonzalez@telefonica-ventas.es⟧ on the invoice.
⟦j.smith+newsletter@lancashire.ac.uk⟧ unsubscribed on Tuesday
mailto:⟦office@rechtsanwalt-huber.at⟧?subject=Termin
From: "Piotr Zieliński" <⟦piotr.zielinski@wp.pl⟧>
联系人：王芳，邮箱：⟦wangfang1987@163.com⟧，欢迎来信。
お問い合わせは⟦tanaka@kaisha.co.jp⟧まで
문의: ⟦minsu.kim@naver.com⟧로 보내 주세요
Écrivez à ⟦camille.dubois@orange.fr⟧!
{"user":"rk","email":"⟦rkumar_84@rediffmail.com⟧","active":true}
Scrivimi a ⟦l.bianchi@studio-bianchi.it⟧, grazie
git commit --author="Ana <⟦ana.souza@uol.com.br⟧>"
Пишите на ⟦ivan.petrov@yandex.ru⟧ в любое время
İletişim: ⟦ayse.yilmaz@hotmail.com.tr⟧
Neem contact op met ⟦info@bakkerij-devries.nl⟧.
⟦first.last@sub.department.university.edu⟧
E-post: ⟦anders.lund@telia.se⟧ / mobil på begäran
email=⟦kofi%40mensah@africaonline.com.gh⟧&next=1
(⟦nguyen.van.an@vnu.edu.vn⟧)
to:⟦O'Brien@dublincity.ie⟧;subject:minutes
reply-to ⟦support@xn--mller-kva.de⟧ only
My address is ⟦jonathan_r@pm.me⟧ since last year
⟦a@b-c.io⟧ is the shortest one we have on file
<a href="mailto:⟦kontakt@zahnarzt-lindner.de⟧">Mail</a>
ERROR 550 5.1.1 <⟦h.nakamura@ocn.ne.jp⟧>: user unknown
user ⟦thabo.m@vodamail.co.za⟧ logged in from the portal
Correo: ⟦luis_hernandez@prodigy.net.mx⟧
| Zoë | ⟦zoe.peeters@skynet.be⟧ | Gent |
// maintained by ⟦dkowalski@interia.pl⟧ until 2021
לפניות: ⟦dana.levi@walla.co.il⟧
للتواصل: ⟦ahmed.hassan@link.net⟧
⟦JEAN.TREMBLAY@VIDEOTRON.CA⟧ A DEMANDÉ UN REMBOURSEMENT
Kindly mail to ⟦priya.sharma@gov.in⟧, or visit the counter
""",
    "phone": """
Call me at ⟦(617) 555-2143⟧ after six.
Phone: ⟦312.867.5309⟧
My cell is ⟦+1 646 222 8190⟧, text is fine
US office ⟦1-800-273-8255⟧ toll free
Ring ⟦020 8946 2271⟧ and ask for Margaret
mob ⟦07700 912 345⟧
Tel. ⟦+44 (0)161 496 0821⟧
Rufen Sie mich an: ⟦0171 3345678⟧
Telefon ⟦+49 (0)89 / 5527 1138⟧
Fax: ⟦040-3344-5567⟧ Tel: ⟦040-3344-5566⟧
Tél. : ⟦04 91 33 58 21⟧
Joignable au ⟦+33 (0)7 81 22 94 05⟧ le soir
portable : ⟦0612345678⟧
Llámame al ⟦655 123 478⟧ mañana
Teléfono de contacto: ⟦+34 93 402 11 00⟧
Cell. ⟦+39 333 481 2207⟧
Telefono ⟦02 7641 2398⟧ (ore ufficio)
Bel ⟦06 41 22 87 93⟧ voor een afspraak
⟦+31 (0)10 217 7200⟧ is het kantoor in Rotterdam
Zadzwoń: ⟦512 634 987⟧
tel. kom. ⟦+48 693 221 045⟧
Ligue para ⟦(11) 98765-4321⟧ ou mande zap
WhatsApp: ⟦+55 21 99876 5544⟧
Contact no. ⟦98450 12345⟧
Call ⟦+91-98201 45678⟧ for site visit
Landline: ⟦022-2659 8001⟧
手机：⟦13811223344⟧
客服电话⟦010-62751234⟧转分机
请拨打⟦+86 138 0013 8000⟧联系我
携帯 ⟦090-3344-5566⟧
電話番号：⟦03-3581-4321⟧
TEL ⟦06(6341)8877⟧
휴대폰 ⟦010-4321-8765⟧
전화번호: ⟦02-739-7000⟧
Тел.: ⟦8 (495) 123-45-67⟧
звоните ⟦+7 916 234-56-78⟧
Cep: ⟦0532 456 78 90⟧
telefon: ⟦+90 212 293 41 00⟧
Cel ⟦55 5512 3478⟧, Ciudad de México
⟦+52 1 33 3825 4411⟧ (WhatsApp)
Ring ⟦08-508 290 00⟧ för bokning
mobil: ⟦070-234 56 78⟧
call ⟦082 555 0192⟧ in Cape Town
phone ⟦(02) 9374 4000⟧, Sydney
mobile ⟦0412 345 678⟧
Mob: ⟦+61 4 9157 0156⟧
tel:⟦+41446681800⟧
Tel ⟦044 668 18 00⟧ (Zürich)
هاتف: ⟦+20 2 2792 1100⟧
טלפון: ⟦03-6241111⟧
{"phone": "⟦+12065552182⟧"}
phone_number,⟦2065552147⟧
Öffnungszeiten 9-17 Uhr, Telefon ⟦0043 1 58858 0⟧
Τηλ: ⟦210 324 5678⟧
SĐT: ⟦0903 123 456⟧
contact me on viber ⟦+380 67 123 4567⟧
""",
    "ip": """
Connection from ⟦203.0.114.77⟧ port 51422
Failed password for root from ⟦185.220.101.47⟧ port 40022 ssh2
⟦91.198.174.192⟧ - - [10/Oct/2023:13:55:36 +0000] "GET / HTTP/1.1" 200 2326
ping ⟦1.0.0.1⟧
curl http://⟦45.33.32.156⟧/index.html
nameserver ⟦9.9.9.9⟧
server=⟦51.15.43.212⟧:27015
ssh deploy@⟦138.68.81.12⟧
{"remote_addr":"⟦78.46.90.11⟧"}
Mein Server hat die Adresse ⟦88.198.24.108⟧.
l'adresse IP ⟦62.210.16.61⟧ a été bloquée
IP地址为⟦114.114.115.119⟧的用户
来自⟦223.5.5.5⟧的请求
アクセス元: ⟦133.242.0.3⟧
⟦2001:4860:4860::8844⟧
AAAA ⟦2606:4700:4700::1111⟧
http://[⟦2a01:4f8:c17:b0f::2⟧]:8080/health
inet6 ⟦2a02:8109:9a40:1a2c:5d3e:7f11:22ab:9c01⟧/64 scope global
X-Forwarded-For: ⟦81.2.69.142⟧, 10.0.0.3
deny from ⟦45.155.205.0⟧/24;
client_ip='⟦102.129.224.3⟧'
banned ⟦177.54.144.99⟧ for 600 seconds
адрес ⟦95.163.36.4⟧ не отвечает
DB_HOST=⟦34.90.12.201⟧
A record -> ⟦104.21.45.9⟧
(⟦190.2.149.20⟧)
<⟦46.101.221.90⟧> wrote to channel
peer ⟦2804:14c:5bb1::a⟧ timed out
traceroute: 7  ⟦72.14.215.85⟧  12.4 ms
IP: ⟦41.79.78.2⟧, Lagos
""",
    "card": """
Visa ⟦%{card:4556:16}⟧ exp 09/27
card number: ⟦%{card4:5191:16}⟧
Charge my Amex ⟦%{amex:3714:15}⟧ please
CC=⟦%{card:4024:16}⟧;CVV=123
Kreditkarte: ⟦%{card4:4917:16}⟧
Numéro de carte ⟦%{card4:4970:16}⟧
tarjeta ⟦%{card-:5449:16}⟧ a nombre de Luis
carta di credito n. ⟦%{card:4000:16}⟧
Kaartnummer ⟦%{card4:5299:16}⟧
karta ⟦%{card:4200:16}⟧ zablokowana
cartão final, número completo ⟦%{card4:5502:16}⟧
信用卡号⟦%{card:6222:16}⟧，请核对
银行卡：⟦%{card:622848:19}⟧
カード番号 ⟦%{card-:3566:16}⟧
카드번호: ⟦%{card-:9410:16}⟧
номер карты ⟦%{card4:2200:16}⟧
kart no ⟦%{card4:9792:16}⟧
{"pan":"⟦%{card:5413:16}⟧"}
my card is ⟦%{card4:6011:16}⟧, code 456
Diners ⟦%{card:3056:14}⟧
RuPay debit ⟦%{card4:6521:16}⟧
JCB ⟦%{card:3530:16}⟧
Maestro ⟦%{card:6759:16}⟧
<input value="⟦%{card:4111:16}⟧" name="ccnum">
paid with ⟦%{amex:3782:15}⟧ at the desk
Kortnummer: ⟦%{card4:4571:16}⟧
credit card ⟦%{card:2720:16}⟧ declined
the number on the front reads ⟦%{card4:5333:16}⟧
order 88213, ⟦%{card-:4485:16}⟧, 2 items
payment: mastercard,⟦%{card:5105:16}⟧,12/26
""",
    "iban": """
IBAN: ⟦DE89 3704 0044 0532 0130 00⟧
Überweisen Sie auf ⟦DE75512108001245126199⟧
pay ⟦GB29 NWBK 6016 1331 9268 19⟧ by Friday
mon RIB : ⟦FR14 2004 1010 0505 0001 3M02 606⟧
cuenta ⟦ES91 2100 0418 4502 0005 1332⟧
coordinate bancarie ⟦IT60X0542811101000000123456⟧
Rekening ⟦NL91ABNA0417164300⟧ t.n.v. De Vries
⟦NL20 INGB 0001 2345 67⟧
nr konta: ⟦PL61 1090 1014 0000 0712 1981 2874⟧
conta ⟦BR18 0036 0305 0000 1000 9795 493C 1⟧
hesap no ⟦TR33 0006 1005 1978 6457 8413 26⟧
kontonummer ⟦SE45 5000 0000 0583 9825 7466⟧
⟦CH93 0076 2011 6238 5295 7⟧ (PostFinance)
IBAN ⟦AT611904300234573201⟧, BIC BKAUATWW
rekeningnummer ⟦BE68 5390 0754 7034⟧
⟦PT50 0002 0123 1234 5678 9015 4⟧
⟦NO93 8601 1117 947⟧ for the deposit
til konto ⟦DK50 0040 0440 1162 43⟧
tilinumero ⟦FI21 1234 5600 0007 85⟧
⟦IE29AIBK93115212345678⟧
λογαριασμός ⟦GR16 0110 1250 0000 0001 2300 695⟧
účet ⟦CZ65 0800 0000 1920 0014 5399⟧
számlaszám: ⟦HU42 1177 3016 1111 1018 0000 0000⟧
cont ⟦RO49 AAAA 1B31 0075 9384 0000⟧
{"iban":"⟦LU280019400644750000⟧"}
⟦SA03 8000 0000 6080 1016 7519⟧ الحساب
⟦AE07 0331 2345 6789 0123 456⟧
рахунок ⟦UA21 3223 1300 0002 6007 2335 6600 1⟧
račun ⟦HR12 1001 0051 8630 0016 0⟧
iban=⟦SK31-1200-0000-1987-4263-7541⟧
""",
    "national_id": """
SSN: ⟦%{ssn}⟧
Her social security number is ⟦%{ssn}⟧.
{"ssn":"⟦%{ssn9}⟧"}
SIN ⟦130 692 544⟧ (Canada)
National Insurance number ⟦AB 12 34 56 C⟧
NINO: ⟦JG103759A⟧
NHS number ⟦943 476 5919⟧
Steuer-ID: ⟦36 574 261 809⟧
Steueridentifikationsnummer ⟦36574261809⟧
Sozialversicherungsnummer ⟦1237 010180⟧ (Wien)
numéro de sécurité sociale : ⟦%{nir}⟧
NIR ⟦%{nirs}⟧
DNI ⟦%{dni}⟧
NIE: ⟦X2482300W⟧
codice fiscale ⟦RSSMRA85T10A562S⟧
C.F. ⟦RCCMNL83S18D969H⟧
BSN ⟦%{bsn}⟧
burgerservicenummer: ⟦1112.22.333⟧
PESEL ⟦%{pesel}⟧
numer PESEL: ⟦%{pesel}⟧, Kraków
CPF: ⟦%{cpf}⟧
meu cpf é ⟦%{cpfp}⟧
Aadhaar ⟦%{aadhaar}⟧
PAN card: ⟦ACUPA7085R⟧
身份证号：⟦%{chinese}⟧
身份证⟦%{chinese}⟧，男
マイナンバー：⟦%{mynumber}⟧
個人番号 ⟦%{mynumber}⟧
주민등록번호 ⟦%{rrn}⟧
주민번호: ⟦%{rrn}⟧
СНИЛС ⟦112-233-445 95⟧
TC Kimlik No: ⟦10000000146⟧
CURP: ⟦BOXW310820HNERXN09⟧
personnummer ⟦%{swedish}⟧
personnr: ⟦%{swedishd}⟧
henkilötunnus ⟦131052-308T⟧
fødselsnummer ⟦%{norwegian}⟧
ID number ⟦%{southafrican}⟧ (South Africa)
TFN ⟦123 456 782⟧
AHV-Nr. ⟦756.9217.0769.85⟧
Rijksregisternummer ⟦85.07.30-033.28⟧
RUT ⟦12.531.909-2⟧
rodné číslo ⟦710319/2745⟧
CNP ⟦1630615123457⟧
身分證字號 ⟦A123456789⟧
HKID: ⟦G123456(A)⟧
isikukood ⟦36805280109⟧
CUIT ⟦20-05536168-2⟧
""",
    "key": """
aws_access_key_id = ⟦AKIA%{upper:16}⟧
aws_secret_access_key = ⟦%{b64:40}⟧
AWS_SECRET_ACCESS_KEY: "⟦%{b64:40}⟧"
export GITHUB_TOKEN=⟦ghp_%{alnum:36}⟧
remote set-url origin https://⟦github_pat_%{alnum:22}_%{alnum:59}⟧@github.com/x/y
GITLAB_TOKEN=⟦glpat-%{alnum:20}⟧
SLACK_BOT_TOKEN=⟦xoxb-%{digits:12}-%{digits:12}-%{alnum:24}⟧
https://hooks.slack.com/services/⟦T%{upper:8}/B%{upper:8}/%{alnum:24}⟧
stripe.api_key = "⟦sk_live_%{alnum:24}⟧"
rk = ⟦rk_live_%{alnum:32}⟧
key=⟦AIza%{urlsafe:35}⟧
openai.api_key = '⟦sk-%{alnum:48}⟧'
OPENAI_API_KEY=⟦sk-proj-%{urlsafe:74}T3BlbkFJ%{urlsafe:40}⟧
ANTHROPIC_API_KEY=⟦sk-ant-api03-%{urlsafe:93}AA⟧
login(token="⟦hf_%{letters:34}⟧")
//registry.npmjs.org/:_authToken=⟦npm_%{alnum:36}⟧
password = ⟦pypi-AgEIcHlwaS5vcmc%{urlsafe:120}⟧
SENDGRID ⟦SG.%{urlsafe:22}.%{urlsafe:43}⟧
TWILIO_ACCOUNT_SID=AC… TWILIO_AUTH_TOKEN=⟦%{hex:32}⟧
mailgun: ⟦key-%{hex:32}⟧
bot token ⟦%{digits:10}:AA%{urlsafe:33}⟧
https://discord.com/api/webhooks/%{digits:18}/⟦%{urlsafe:68}⟧
DISCORD_TOKEN=⟦M%{alnum:25}.G%{alnum:5}.%{urlsafe:38}⟧
⟦dop_v1_%{hex:64}⟧
SHOPIFY_TOKEN: ⟦shpat_%{hex:32}⟧
Authorization: Bearer ⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIx%{urlsafe:40}.%{urlsafe:43}⟧
DefaultEndpointsProtocol=https;AccountName=st1;AccountKey=⟦%{b64:86}==⟧;EndpointSuffix=core.windows.net
heroku api key ⟦%{uuid}⟧
datadog_api_key: ⟦%{hex:32}⟧
DATABRICKS_TOKEN=⟦dapi%{hex:32}⟧
VAULT_TOKEN=⟦hvs.%{urlsafe:90}⟧
⟦AGE-SECRET-KEY-1%{bech:58}⟧
GRAFANA: ⟦glsa_%{alnum:32}_%{hex:8}⟧
⟦NRAK-%{upper:27}⟧ is the New Relic key
Authorization: Basic ⟦%{basic}⟧
DOCKER_PAT=⟦dckr_pat_%{urlsafe:27}⟧
⟦PMAK-%{hex:24}-%{hex:34}⟧
FIGMA_TOKEN=⟦figd_%{urlsafe:40}⟧
jira token ⟦ATATT3xFfGF0%{urlsafe:170}=%{upper:8}⟧
⟦lin_api_%{alnum:40}⟧
groq: ⟦gsk_%{alnum:52}⟧
REPLICATE_API_TOKEN=⟦r8_%{alnum:37}⟧
阿里云 AccessKeyId: ⟦LTAI5t%{alnum:18}⟧
AccessKeySecret：⟦%{alnum:30}⟧
腾讯云 SecretId=⟦AKID%{alnum:32}⟧
client_secret: "⟦%{alnum:32}⟧"
x-api-key: ⟦%{alnum:40}⟧
apikey=⟦%{hex:40}⟧&format=json
const SECRET_KEY = '⟦%{urlsafe:50}⟧';
private_key: ⟦-----BEGIN RSA PRIVATE KEY-----\\n%{b64:64}\\n%{b64:64}\\n%{b64:32}==\\n-----END RSA PRIVATE KEY-----⟧
⟦-----BEGIN OPENSSH PRIVATE KEY-----\n%{b64:70}\n%{b64:70}\n%{b64:20}=\n-----END OPENSSH PRIVATE KEY-----⟧
⟦-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n%{b64:64}\n%{b64:64}\n=%{b64:4}\n-----END PGP PRIVATE KEY BLOCK-----⟧
access_token=⟦ya29.%{urlsafe:120}⟧
refresh_token: ⟦1//0%{urlsafe:60}⟧
"auth_token": "⟦%{hex:64}⟧"
""",
    "password": """
password: ⟦Tr0ub4dor&3⟧
Password = "⟦hunter2-Xk9⟧"
DB_PASSWORD=⟦p@ssw0rdF0rPg⟧
postgres://app:⟦s3cr3tPg77⟧@db.internal:5432/prod
mysql -u root -p⟦Qx7!nightOwl⟧ shop
mongodb+srv://admin:⟦Zv8kLm22qq⟧@cluster0.mongodb.net
redis://:⟦r3d1sPw_91⟧@cache:6379/0
https://bob:⟦w1nterIsHere⟧@example.org/feed
my password is ⟦Sunflower_1984⟧
Passwort: ⟦Blaubeere#77⟧
Das Passwort lautet ⟦Kaffee2Go!⟧
Kennwort: ⟦Sommer2023$⟧
mot de passe : ⟦Chaton!2020⟧
Mon mot de passe est ⟦Soleil75013⟧
contraseña: ⟦Madrid_2022x⟧
La clave es ⟦Toledo#1492⟧
senha: ⟦Flamengo10!⟧
minha senha é ⟦C4fezinho99⟧
hasło: ⟦Zubr2021!⟧
wachtwoord: ⟦Fiets!4521⟧
la password è ⟦Gatto_1990⟧
密码：⟦Aa123456!⟧
密码是⟦qwe!2345zx⟧
パスワード：⟦Sakura#2019⟧
パスワードは⟦neko_Neko77⟧です
비밀번호: ⟦gamja!2345⟧
비밀번호는 ⟦Hanguk77!⟧
пароль: ⟦Moskva_812⟧
Пароль — ⟦zima2020X⟧
şifre: ⟦Ankara.06x⟧
lösenord: ⟦Fika!2024⟧
adgangskode: ⟦Hygge#2021⟧
passwd=⟦l0calAdm1n⟧
{"username":"root","password":"⟦Vq9#mmTz⟧"}
<password>⟦Kp2!rrLm8⟧</password>
user: anna / pass: ⟦b1rdsong_X4⟧
PGPASSWORD=⟦elephantQ88⟧ psql -h db
wifi password ⟦CoffeeHouse2021!⟧
pwd: ⟦N3tw0rk$22⟧
sshpass -p '⟦T0pS3cret!x⟧' ssh root@host
""",
}  # fmt: skip
"""By kind: one string a line, its value (sometimes two) between ⟦ and ⟧. "\\n" is a line break."""

NEGATIVES = """
The meeting is on 2023-10-14 at 10:30.
Version 10.4.2.1 fixes the crash on start.
Open section 4.3.2.1 of the manual
assembly version 2.0.50727.4927 was not found
pip install torch==2.1.0.1
The netmask is 255.255.255.0.
bind 0.0.0.0:8080
localhost is 127.0.0.1
router at 192.168.1.1
docker network 172.17.0.0/16
documentation uses 198.51.100.23
the prefix 2001:db8::1 is for examples
10:20:30:40 is a ratio of four
MAC 00:1A:2B:3C:4D:5E
std::vector<int>::iterator
Chapter 12: 34-36
a::b::c is a path in Rust
time 12:34:56.789
The sum is 1,234,567,890.
Total: 4 111 250 000 dollars
ISBN 978-3-16-148410-0
ISBN 0-306-40615-2
ISSN 0378-5955
EAN 4006381333931
UPC 036000291452
doi:10.1038/s41586-020-2649-2
PMID: 31452104
arXiv:2005.14165
PMC7759461
patent US 6285999 B1
RFC 2616 section 14.23
tracking 1Z999AA10123456784
order number 20231014-0001
Invoice 2023-000123
Rechnung Nr. 4711-2023
commande n° 100023456
pedido 4500123987
zamówienie 88/2021/KR
订单号：202310141234567890
订单编号 20231014000123
注文番号 250-1234567-8901234
주문번호 2023101412345
заказ № 1234567890
sipariş no 1234567890
case number 1:21-cv-01234
Az. 5 StR 123/21
BGBl. I S. 1234
AB 1234-56 is a train car type
HRB 123456 B
Art. 1240 du Code civil
loi n° 78-17 du 6 janvier 1978
Lei nº 13.709/2018
BOE núm. 294, de 06/12/2018
平成29年法律第41号
GB/T 22239-2019
ISO 9001:2015
DIN EN 60529
IEC 61131-3:2013
EN 55032:2015+A11:2020
part no. 123-4567-890
SKU 8800-4412-09
model XJ-900-4412
serial 5CG1234ABC
chassis WDB9634031L123456
VIN 1HGCM82633A004352
IMEI prefix 35-209900
license plate B-MW 1234
flight LH 1234 to FRA
train ICE 1234 at 12:34
room 1234, floor 12
postcode 90210-1234
ZIP 10115 Berlin
〒100-0001 東京都千代田区
邮编：100084
CEP 01310-100
PIN 560001 Bengaluru
SW1A 2AA London
coordinates 52.5200, 13.4050
40.7128° N, 74.0060° W
lat=48.8566&lon=2.3522
1234567890 bytes copied
1024 2048 4096 8192 16384
0x7ffeefbff5c8
segfault at 00007f8a1c2b3d40
uint64 18446744073709551615
INT_MAX is 2147483647
float 3.14159265358979
1.4142135623 7309504880
6.02214076e23
299792458 m/s
pi = 3.1415 9265 3589 7932
e = 2.7182818284 5904523536
Fibonacci: 1 1 2 3 5 8 13 21 34 55 89 144
primes 101 103 107 109 113 127 131
0.1 0.2 0.3 0.4 0.5 0.6
loss 0.4123 acc 0.8891 step 100000
epoch 12 1234/5678 00:12:34
[1/4] 1234 5678
bbox = [123, 456, 789, 1011]
rgb(123, 45, 67)
color: #1a2b3c4d
sha256:%{hex:64}
commit %{hex:40}
md5 %{hex:32}
etag "%{hex:32}"
id: %{uuid}
GUID {%{uuid}}
integrity="sha384-%{b64:64}"
"integrity": "sha512-%{b64:86}=="
blob %{hex:40} 100644
docker pull repo@sha256:%{hex:64}
sessionStorage.setItem('step', 4)
data:image/png;base64,iVBORw0KGgo%{b64:120}
-----BEGIN CERTIFICATE-----\n%{b64:64}\n-----END CERTIFICATE-----
-----BEGIN PUBLIC KEY-----\n%{b64:64}\n-----END PUBLIC KEY-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 is a public key type
ssh-rsa is deprecated
password: ********
password: <your password>
password = "changeme" is not allowed
Enter your password:
password must be at least 8 characters
The password is stored as a hash.
password = os.environ["DB_PASSWORD"]
password=${DB_PASSWORD}
password: {{ vault_password }}
def check_password(user, password):
if password == confirm_password:
Passwort vergessen?
Das Passwort muss geändert werden.
mot de passe oublié ?
Le mot de passe est obligatoire.
contraseña incorrecta
La contraseña es demasiado corta.
senha inválida
A senha é obrigatória
hasło jest nieprawidłowe
wachtwoord vergeten
la password è sbagliata
密码错误，请重试
密码是必填项
パスワードを入力してください
パスワードは8文字以上です
비밀번호를 입력하세요
비밀번호는 필수입니다
введите пароль
Пароль неверный
şifre yanlış
lösenord krävs
http://user:password@host/path is the syntax
https://example.com:8443/login
postgres://localhost:5432/test
token = tokenizer.next()
token: string
tokens: 1234567890
max_tokens=4096
api_key = getpass()
api_key="YOUR_API_KEY"
api_key: <API_KEY>
apiKey: process.env.API_KEY
secret = "xxxxxxxxxxxxxxxxxxxxxxxx"
SECRET_KEY = 'django-insecure'
secret: null
client_secret=REDACTED
Authorization: Bearer <token>
Authorization: Basic
Bearer of good news
the key = value pairs
key: "user.profile.settings.display.name"
keyboard-shortcuts-are-listed-here-for-everyone
sk-learn is spelled scikit-learn
sk_test is a prefix of Stripe
ghp_ tokens begin like this
AKIAIOSFODNN is cut here
hf_hub_download(repo_id="x/y")
hf_transfer speeds up downloads
npm_config_registry=https://registry.npmjs.org
pypi-server runs on port 8080
SG. stands for Singapore
xoxb means a bot token
AIzawa is a name
eyJ is how a JWT begins
git@github.com:torvalds/linux.git
user@host:~$ ls -la
root@ubuntu:/var/log#
@media (max-width: 600px)
@app.route("/users/<int:id>")
npm install @angular/core@15.2.0
actions/checkout@v4
foo@1.2.3
image@2x.png
icon@3x.webp
<script src="https://cdn.jsdelivr.net/npm/vue@3.2.47/dist/vue.js">
a@b is not an address
x @ y.T is a matrix product
email: [hidden]
email address required
user at example dot com
E-Mail-Adresse ungültig
请输入邮箱地址
メールアドレスを入力
scp file host:/tmp
name@localhost
Call 911 in an emergency
dial 112
numéro vert 15
Notruf 110
call the function 3 times
call 1-2-3 for help in the game
phone numbers have 10 digits
telephone exchange of 1878
phone book 1999-2005
Tel Aviv 2023
Telefon 4 Personen
tel que 12 345 678 euros
Mobile phones: 1,234,567,890 users in 2021
the phone costs 1299.00
iPhone 14 128 256 512
2021-2022-2023-2024
1990-1995 1996-2000
12-34-56 78-90-12
scores 21-19 19-21 21-17
2-1, 3-0, 4-4, 1-2
11:30-12:15, 13:00-14:45
100 000 000 000
population 1 380 004 385
GDP 25,462,700,000,000
¥1,234,567,890
€ 1.234.567,89
R$ 12.345.678,90
₹ 12,34,56,789
12.345.678 Einwohner
123 456 789 habitants
123.456.789 inwoners
人口1234567890人
面积9600000平方公里
1234567 8901234 5678901
table 4 row 3: 555 1234 777
555 1234 in an American film
Call me at (617) 555-0143 after six.
{"phone": "+12065550182"}
phone_number,2065550147
3 + 4 1234 5678
x = -3 1234 5678
+1 -1 +1 -1
+100 200 300 points
+5 strength, +12 dexterity
C++11 14 17 20
0 1 2 3 4 5 6 7 8 9
0123456789 are the digits
1111 2222 3333 4444
4444 3333 2222 1111
0000 0000 0000 0000
1234 5678 9012 3456
1234-5678-9012-3456
9999999999999999
card number: 4xxx xxxx xxxx 1234
ending in 4242
CARD 1234
17 digits: 12345678901234567
snowflake 1234567890123456789
tweet 1445078208190291973
timestamp 1697284800000
timestamp_us 1697284800123456
epoch_ns=1697284800123456789
order_id 4929123456789012 pending
steam id 76561198012345678
UPS 123456789012
ISBN-13: 9780131103627
GTIN 00012345600012
barcode 5901234123457
DE is a country code
DE 12 is a motorway number
IBAN has up to 34 characters
IBAN: DE00 0000 0000 0000 0000 00
GB 12 3456 sheep breeds
BE 0123 456 749
VAT DE123456788
USt-IdNr. DE136695976
TVA FR40303265045
NIP 526-000-12-46
CNPJ 11.222.333/0001-81
EIN 12-3456789
ABN 51 824 753 556
company number 01234567
SIRET 732 829 320 00074
統一編號 12345675
统一社会信用代码 91350100M000100Y43
ISIN US0378331005
CUSIP 037833100
SWIFT DEUTDEFF500
LEI 529900T8BM49AURSDO55
SSN is a nine-digit number
SSN: XXX-XX-XXXX
000-00-0000
123-45-6789 is the sample that everyone prints
PESEL ma 11 cyfr
CPF: 000.000.000-00
BSN heeft 9 cijfers
身份证号码是18位
AB123 is a class
passport required
ID 123456789
id=123456789&x=1
user_id: 987654321
customer 100200300
case-insensitive-sk-image-viewer-for-large-files
HTTP/1.1 200 OK
HTTP 404 403 500 502
port 8080 8443 9090
gcc 12.2.0-14
linux 6.1.0-13-amd64
Windows 10.0.19045.3570
Chrome/117.0.5938.132
Firefox 118.0.2.1
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36
JDK 11.0.20.1
node-v18.18.0-linux-x64
openssl 1.1.1.23
macOS 13.6.0.1
driver 531.79.0.2
Excel 16.0.16827.20130
com.example.app.settings.v2
a1b2c3d4e5f6
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
abcdefghijklmnopqrstuvwxyz0123456789
ABCDEFGHIJKLMNOPQRSTUVWXYZ234567
Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch
Donaudampfschifffahrtsgesellschaftskapitän
ACGTACGTTAGCTAGCTAACGGTACGATCGATCGTAGCTAGC
MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSG
/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30
C:\\Windows\\System32\\drivers\\etc\\hosts
https://www.youtube.com/watch?v=dQw4w9WgXcQ
https://docs.google.com/document/d/%{urlsafe:44}/edit
https://t.co/a1B2c3D4e5
https://example.com/?utm_source=mail&utm_id=1234567890
s3://bucket/key=2023/part-00000-%{uuid}.parquet
kubernetes pod web-7d4b9c6f5d-x2x7k
arn:aws:iam::123456789012:role/reader
projects/my-project-123456/secrets/db
4.5 von 5 Sternen (1.234 Bewertungen)
page 123-145, vol. 34(2), 2019
pp. 1234-1245
J. Chem. Phys. 123, 234102 (2005)
Mt 5:3-12; Lk 6:20-23
Psalm 119:105
BWV 1001-1006
K. 525, K. 550, K. 551
8.8.2021 war ein Sonntag
am 1.2.1990 geboren
le 03.04.1985
date 12.34.56.78
dewey 005.133 22
ratio 4:3:2:1
1.2.3.4.5
1.2.3
256.300.1.1
999.999.999.999
"""
"""One string a line that is nobody's: looks like a private value, and is none."""


def strings(rng: random.Random) -> tuple[list[Case], list[str]]:
    """(the values in their lines, the lines without one); a line with two values gives two cases."""
    cases: list[Case] = []
    for kind, block in POSITIVES.items():
        for line in block.strip("\n").split("\n"):
            text = _filled(line, rng)
            plain = text.replace("⟦", "").replace("⟧", "")
            cases += [(kind, plain, value) for value in re.findall("⟦(.*?)⟧", text, re.DOTALL)]
    return cases, [_filled(line, rng) for line in NEGATIVES.strip("\n").split("\n")]


def _filled(line: str, rng: random.Random) -> str:
    made = re.sub(r"%\{([a-z0-9-]+?)((?::\d+)*)\}", lambda m: _made(m[1], m[2], rng), line)
    return made.replace("\\n", "\n").replace("\\\n", "\\n").replace("\\\\", "\\")


def _made(maker: str, sizes: str, rng: random.Random) -> str:
    numbers = [size for size in sizes.split(":") if size]
    if maker in ALPHABETS:
        return "".join(rng.choices(ALPHABETS[maker], k=int(numbers[0])))
    if numbers:
        number = card(rng, numbers[0], int(numbers[1]))
        return {
            "card": number,
            "card4": grouped(number, 4, 4, 4, 4),
            "card-": grouped(number, 4, 4, 4, 4, by="-"),
            "amex": grouped(number, 4, 6, 5),
        }[maker]
    return MAKERS[maker](rng)


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _basic(rng: random.Random) -> str:
    return base64.b64encode(f"deploy:{token(rng, 18)}".encode()).decode()


def _my_number(rng: random.Random) -> str:
    body = f"{rng.randint(1, 9)}{digits(rng, 10)}"
    rest = weighted(body, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11)
    return body + str(0 if rest < 2 else 11 - rest)


def _resident(rng: random.Random) -> str:
    """South Korea's number: born in the last century, with the check digit of numbers before 2020."""
    body = f"{rng.randint(60, 99)}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}{rng.choice('12')}{digits(rng, 5)}"
    check = (11 - weighted(body, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), 11)) % 10
    return f"{body[:6]}-{body[6:]}{check}"


def _norwegian(rng: random.Random) -> str:
    while True:
        body = f"{rng.randint(1, 28):02d}{rng.randint(1, 12):02d}{rng.randint(50, 89)}{rng.randint(100, 499)}"
        first = -weighted(body, (3, 7, 6, 1, 8, 9, 4, 5, 2), 11) % 11
        second = -weighted(f"{body}{first}", (5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11) % 11
        if first < 10 and second < 10:
            return f"{body}{first}{second}"


def _born(rng: random.Random) -> str:
    return f"{rng.randint(50, 99)}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"


ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "letters": string.ascii_letters,
    "upper": string.ascii_uppercase + "234567",
    "urlsafe": string.ascii_letters + string.digits + "-_",
}
MAKERS: dict[str, Callable[[random.Random], str]] = {
    "aadhaar": lambda r: grouped(aadhaar(r), 4, 4, 4),
    "basic": _basic,
    "bsn": bsn,
    "chinese": chinese,
    "cpf": cpf,
    "cpfp": lambda r: (lambda c: f"{grouped(c, 3, 3, 3, by='.')}-{c[9:]}")(cpf(r)),
    "dni": spanish,
    "mynumber": _my_number,
    "nir": lambda r: grouped(french(r), 1, 2, 2, 2, 3, 3, 2),
    "nirs": french,
    "norwegian": _norwegian,
    "pesel": pesel,
    "rrn": _resident,
    "southafrican": lambda r: luhn(f"{_born(r)}{digits(r, 4)}08"),
    "ssn": ssn,
    "ssn9": lambda r: ssn(r).replace("-", ""),
    "swedish": lambda r: (lambda n: f"{n[:6]}-{n[6:]}")(swedish(r)),
    "swedishd": lambda r: "19" + (lambda n: f"{n[:6]}-{n[6:]}")(swedish(r)),
    "uuid": _uuid,
}
