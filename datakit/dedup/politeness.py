"""The words of politeness: what people write around a question or an answer, and what changes neither.

`alike` leaves these words out before it compares two turns, and never tolerates a difference in `STRICT` words. The
lists are our own. Formulas of many words stand in `formulas`, by language.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from datakit.dedup.formulas import LANGUAGES
from datakit.dedup.lookalikes import lookalikes
from datakit.dedup.spelling import as_compared
from datakit.text.words import split_words

FORMULA, AT_START, LIGHT, SOFT, MARKER, STRICT, JOINS, AT_EDGE, GREETING = 1, 2, 4, 8, 16, 32, 64, 128, 256
KNOWN, WHOLE = 512, 1024
"""Bits of a node: a formula ends here, anywhere, only at the start of a sentence, only at the start or the end of a
clause, only at its start; and what kind of word it is. KNOWN: one of `lookalikes`. WHOLE: a formula that is a whole
clause."""

_LIGHT = "a an the is are am be to of do does just me moi mir мне 的 地 得 吗 呢 吧 啊 呀 哦 嘛 嗎"
"""Words that carry no meaning by themselves; they do not count."""

_STRICT = """
not no never none nothing nobody nowhere neither nor without unless except hardly cannot
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion
half third quarter first second fourth fifth sixth seventh eighth ninth tenth
不 没 沒 无 無 非 未 别 別 勿 莫 否 零 一 二 三 四 五 六 七 八 九 十 百 千 万 萬 亿 億 两 兩 半
ne pas jamais sans aucun nunca sin jamás nicht kein keine keinen keiner nie ohne não nem sem non mai senza не нет ни без
никогда لا ليس لم لن नहीं मत 안 못 không chưa tidak bukan değil
nichts niemand niemals weder noch kaum rien personne aucune nada nadie tampoco ninguno ninguna ningún nenhum nenhuma
niente nulla nessuno nessuna né никто ничего ни нельзя غير بدون بلا ليست ولا न बिना ない なし ません не hiç yok
jangan belum đừng chẳng niet geen nooit zonder nie bez żaden nigdy inte ingen aldrig utan ikke ei não
null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn
achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend
cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho
diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien ciento mil doscientos trescientos
seiscientos setecientos zéro deux trois quatre cinq huit neuf dix onze douze treize quatorze quinze seize vingt trente
quarante cinquante soixante cent mille due tre quattro cinque sette otto nove dieci undici dodici tredici
quattordici quindici sedici diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta settanta ottanta
novanta cento dois três quatro sete oito dez doze treze catorze dezesseis dezessete dezoito dezenove vinte
quarenta cinquenta sessenta oitenta cem один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать
тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать сорок пятьдесят
шестьдесят семьдесят восемьдесят девяносто сто тысяча bir iki üç dört beş altı yedi sekiz dokuz yirmi otuz kırk
elli altmış yetmiş seksen doksan yüz bin satu tiga empat lima enam tujuh delapan sembilan sepuluh
"""
"""Negations, and numbers in words. A difference in one of them is a difference."""

_SOFT = """
i you your my we us our it this that these those there here have has had having will would could can may might should
so very really truly much many more any some all every with for in on at by as if and or but too also now today again
further other anything something everything else time day morning afternoon evening night week weekend moment minute
wish helping helps helpful helped assisting support answers reply request message email ask asking asked wonder know let
tell feel free hesitate reach out contact happy pleased delighted pleasure good great nice wonderful lovely excellent
fantastic awesome amazing kind friendly dear sir madam doctor friend friends team everyone everybody folks guys bother
trouble disturb inconvenience best yours ahead advance quick quickly little bit lot doing going find finds well fine ok
okay alright indeed understood noted
perfect possible convenience attention patience effort efforts need want like love try
give take clear useful interesting luck from about provide
me am is are be been being was were do does did done get gets got getting go goes come coming make making made put say
see look looking forward hear hearing out up off over into than then them they he she his her their its one ones thing
things something while when before after such each both few lots tons since because however always ever still already
soon later tomorrow tonight yesterday spare share sharing guidance advice input thoughts insight insights expertise
stuck struggling confused trouble having issue issues problem problems task favor favour hand lend honored worries
worry use using back own only even maybe perhaps possibly busy sake care long short small big huge deal mind minding
human ai bot assistant chatgpt gpt well bunch buddy pal mate anyone someone everyone who which whatever whenever
taking interrupt interrupting interruption intrude intruding intrusion disturbing disturbance answering
replying reading listening consideration cooperation understanding unclear confusing clearer begin start begins
concerning regarding part pass turn turns around working work works
我 你 能 可 以 会 要 想 帮 忙 助 个 有 问 题 点 些 下 一 这 那 很 非 常 真 太 好 们 大 家 了 就 还 再 先 来
给 为 对 于 和 与 到 是 在 也 都 更 多 少 询 咨 解 答 回 复 案 建 议 支 持 耐 心 时 间 抽 空 百 之 中 指 教
导 赐 关 照 随 联 系 告 诉 知 道 希 望 愿 祝 生 活 愉 快 顺 利 天 早 晚 上 午 安 您 期 待 什 么 怎 样 呀 老 师
"""

_MARKER = """
hi hello hey hiya greetings thanks thank thx please pls plz kindly sorry excuse pardon apologies apologize appreciate
appreciated appreciating grateful gratitude hope hoping glad welcome regards cheers sincerely goodbye bye sure certainly
absolutely definitely gladly luck pleasure 谢 歉 祝 help
assist assistance question questions wondering curious answer response
"""
"""A clause of soft words, light words and formulas that has at least one marker or formula is politeness as a whole."""

_JOINS = "but and so well now then also 那 那么 但 所以"
"""Words that may join a clause of politeness to what follows; they go with it."""


def _alternatives(line: str) -> list[list[list[str]]]:
    """The alternatives of each part of a line, as words. No word goes across a bracket."""
    return [
        [split_words(as_compared(words)) for words in part.split("|")] for part in line.replace(")", "(").split("(")
    ]


@dataclass(frozen=True, slots=True)
class PhraseTable:
    """A trie of words by hash. The next state is the value of the key `mix(state, hash of the word)`, found by linear
    probing; `bits` uint16 (states,) says what ends there. Keys are uint64, 0 where free; values int32. `same` int32
    (states,): where in `forms` uint8 the word begins that the word of this state is a form of, up to a zero; -1: none.
    """

    keys: npt.NDArray[np.uint64]
    values: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint16]
    same: npt.NDArray[np.int32]
    forms: npt.NDArray[np.uint8]


_MASK = (1 << 64) - 1


def word_hash(word: str) -> int:
    """FNV-1a of the UTF-8 bytes, as the kernel hashes a word."""
    h = 0xCBF29CE484222325
    for byte in word.encode():
        h = (h ^ byte) * 0x100000001B3 & _MASK
    return h


def _key(state: int, word: int) -> int:
    mixed = (word ^ state * 0x9E3779B97F4A7C15) * 0xFF51AFD7ED558CCD & _MASK
    return max(mixed ^ mixed >> 32, 1)


@lru_cache(maxsize=1)
def phrase_table() -> PhraseTable:
    """The table of all lists above. Treat its arrays as read-only."""
    light = set(_LIGHT.split())
    bits, edges = [0], dict[tuple[int, str], int]()
    formulas = [
        (lines, bit)
        for language in LANGUAGES.values()
        for lines, bit in (
            (language.anywhere, FORMULA),
            (language.at_edges, AT_EDGE),
            (language.at_clause_start, GREETING),
            (language.at_sentence_start, AT_START),
            (language.whole_clause, WHOLE),
        )
    ]

    def after(state: int, words: Iterable[str]) -> int:
        for word in words:
            if (state, word) not in edges:
                edges[state, word] = len(bits)
                bits.append(0)
            state = edges[state, word]
        return state

    same, forms, form_of = dict[int, int](), bytearray(), dict[str, str]()
    for language in LANGUAGES.values():
        for line in filter(None, language.same.splitlines()):
            others, word = as_compared(line).split("=")
            same |= {after(0, (other,)): len(forms) for other in others.split()}
            form_of |= dict.fromkeys(others.split(), word.strip())
            forms += word.strip().encode() + b"\0"
    kinds = (
        (_LIGHT, LIGHT),
        (_STRICT, STRICT),
        (_SOFT, SOFT),
        (_MARKER, SOFT | MARKER),
        (_JOINS, JOINS),
        (lookalikes(), KNOWN),
    )
    for listed, bit in kinds:
        for word in as_compared(listed).split():
            bits[after(0, (word,) if bit == KNOWN else split_words(word))] |= bit
    for lines, bit in formulas:
        for line in filter(None, lines.splitlines()):
            # what the parts so far lead to: (state, words, words that are not light); 2 stands for more. Phrases that
            # begin alike are walked once: the lines stand for 26,000 of them
            front = {(0, 0, 0)}
            for part in _alternatives(line):
                counting = [(words, [form_of.get(w, w) for w in words if w not in light]) for words in part]
                front = {
                    (after(state, counted), min(2, said + len(words)), min(2, heavy + len(counted)))
                    for state, said, heavy in sorted(front)
                    for words, counted in counting
                }
            for state, said, heavy in front:
                if heavy and (bit in (AT_START, WHOLE) or heavy > 1 or said == 1):
                    bits[state] |= bit
    size = 1
    while size < 3 * len(edges):
        size *= 2
    keys, values = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    hashes = {word: word_hash(word) for _, word in edges}
    for (state, word), following in edges.items():
        key = _key(state, hashes[word])
        slot = key & (size - 1)
        while keys[slot]:
            slot = (slot + 1) & (size - 1)
        keys[slot], values[slot] = key, following
    targets = np.full(len(bits), -1, np.int32)
    targets[list(same)] = list(same.values())
    return PhraseTable(keys, values, np.array(bits, np.uint16), targets, np.frombuffer(bytes(forms), np.uint8))


@lru_cache(maxsize=1)
def lists_digest() -> str:
    """A hash that changes when any of the lists does."""
    table = phrase_table()
    total = hashlib.sha256()
    for part in (table.keys, table.values, table.bits, table.same, table.forms):
        total.update(part.tobytes())
    return total.hexdigest()[:16]
