"""The words of politeness: what people write around a question or an answer, and what changes neither.

`alike` leaves these words out before it compares two turns, and never tolerates a difference in `STRICT` words. The
lists are our own. `a (b|c|) d` stands for `a b d`, `a c d` and `a d`. Contractions are written out as the kernel reads
them ("i would", "do not"; "is" and "am" of "it's" and "I'm" vanish), and 你 stands for 您.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from datakit.dedup.lookalikes import WORDS
from datakit.text.words import split_words

FORMULA, AT_START, LIGHT, SOFT, MARKER, STRICT, JOINS, AT_EDGE, GREETING = 1, 2, 4, 8, 16, 32, 64, 128, 256
KNOWN = 512
"""Bits of a node: a formula ends here, anywhere, only at the start of a sentence, only at the start or the end of a
clause, only at its start; and what kind of word it is. KNOWN: one of `lookalikes`."""

_LIGHT = "a an the is are am be to of do does just me 的 地 得 吗 呢 吧 啊 呀 哦 嘛 嗎"
"""Words that carry no meaning by themselves; they do not count."""

_STRICT = """
not no never none nothing nobody nowhere neither nor without unless except hardly cannot
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion
half third quarter first second fourth fifth sixth seventh eighth ninth tenth
不 没 沒 无 無 非 未 别 別 勿 莫 否 零 一 二 三 四 五 六 七 八 九 十 百 千 万 萬 亿 億 两 兩 半
ne pas jamais sans aucun nunca sin jamás nicht kein keine keinen keiner nie ohne não nem sem non mai senza не нет ни без
никогда لا ليس لم لن नहीं मत 안 못 không chưa tidak bukan değil
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

_ANYWHERE = """
please
kindly
pls
plz
请
请你
请问
请问一下
请教
请教一下
请教你
请告诉我
请帮我
请帮忙
(想|我想|我想要|想要|我需要|我希望)(问|请问|问一下|请教|请教一下|咨询|咨询一下|知道|了解|了解一下|知道一下|请教你)
(你|)(能|能否|能不能|可以|可否|可不可以|是否可以|是否能|会不会)(请|)(帮我|告诉我|帮忙|给我|帮助我|为我|)
你能
你能不能
你可以
你好
大家好
早上好
上午好
下午好
晚上好
嗨
哈喽
嘿
(谢谢|多谢|感谢|非常感谢|十分感谢|谢谢你|感谢你|多谢你|非常感谢你)(了|的帮助|帮助|的帮忙|提问|的提问|的回答|的解答|的耐心|)
先谢谢了
先谢过了
提前谢谢
提前感谢
谢啦
谢了
(麻烦|劳驾|拜托|烦请|有劳)(你|)(了|帮我|帮忙|告诉我|请|一下|给我|)
(不好意思|抱歉|对不起|打扰了|打扰一下|打扰你了|冒昧|冒昧问一下|冒昧打扰)
帮我
帮忙
告诉我
一下
(我|)有(个|一个|一些|个小|一个小)(问题|疑问)(想|)(问|请教|咨询|)(你|)
我的问题是
问题是
(好的|好|当然|当然可以|没问题|可以的|可以|明白了|明白|收到|不客气|很高兴|乐意效劳|很乐意|当然了|没关系)(，|)
(很高兴|很乐意|我很高兴|我很乐意|乐意)(能|)(为你|帮助你|帮你|回答你|为你解答|为你服务|回答你的问题|帮助)
(以下是|下面是)(我的|)(回答|答案|解答|答复)
(希望|但愿)(这|以上|这些|我的回答|这个回答|上述|)(内容|信息|回答|解答|)(能|能够|可以|会|)(对你|对你的|)(有|有所|能有)(帮助|用)(了|)
(希望|但愿)(这|以上|这些|我的回答|这个回答|上述|)(内容|信息|回答|解答|)(能|能够|可以|会|)(帮到|帮助到|帮助)(你|)
(感激不尽|辛苦了|拜托了|劳驾了)
(如果|如|若)(你|)(还|)有(任何|其他|其它|别的|什么|更多)(问题|疑问|需要)(请|)(随时|)(告诉我|联系我|提问|问我|告知|)
(随时|欢迎随时)(告诉我|联系我|提问|问我)
这是(一个|)(好|很好的|非常好的|不错的)问题
(万分感谢|感激之至|非常乐意|好问题)
(请问|)(还|)有(什么|其他|其它|别的)(我|)(可以|能|能够)(帮|帮助|帮到|为)(你|)(的|做的|效劳的|)
祝你(生活愉快|好运|一切顺利|有美好的一天|愉快|今天愉快)
すみません(が|)
こんにちは
お願いします
お願い致します
よろしくお願いします
教えてください
教えて
ください
ありがとうございます
ありがとう
por favor
s il (vous|te) plaît
bitte
per favore
пожалуйста
من فضلك
कृपया
làm ơn
tolong
lütfen
pretty please
si us plau
proszę
proszę cię
prosím
vennligst
vänligen
alstublieft
alsjeblieft
per cortesia
si possibile
se possível
si es posible
si possible
wenn möglich
亲
"""
"""Formulas, wherever they stand."""

_AT_EDGES = """
thank you (so much|very much|a lot|kindly|for your help|for your time|) (in advance|)
thanks (so much|very much|a lot|a million|for your help|for your time|) (in advance|)
many thanks
(could|can|would|will|might) (you|u) (please|kindly|possibly|perhaps|maybe|) (help me|tell me|show me|let me know|)
(could|can|would|will) (you|u) (please|) help me (to|with|out with|understand|figure out|find out|know|)
(could|can|would|will) (you|u) (please|) be (so kind as to|so kind and) (please|) (tell me|help me|)
(could|can|would|will) (you|u) (please|) be (kind enough to|able to) (please|) (tell me|help me|)
would you mind (telling me|helping me|letting me know|)
(would|will) it be possible (for you|) to (tell me|help me|)
is it possible (for you|) to (tell me|help me|)
do you mind (telling me|helping me)
do you (happen to|) know
(if|whether) you (could|can|would) (please|) (help me|help me with|tell me|let me know|explain to me|)
i (would|) (really|very much|) (like|love|want|need|wish) (you|) to (know|ask you|ask|tell me|find out|understand|)
i would (be|) (really|very|so|) (grateful|thankful|glad|happy|obliged) if
i would (really|very much|greatly|) appreciate (it|) (if|)
i (really|greatly|) appreciate (it|your help|any help|)
(i|) (was|am|) (just|) wondering (if|whether|)
i (was|am) hoping (that|)
i (just|) have (a|one|another) (quick|short|simple|small|) question (for you|about this|)
(my|here is my|the|) question (for you|) is
(may|can|could|might) i (please|) ask (you|)
let me ask you
i need (your|some|) help (with|)
help me (out|) (with|to|understand|)
(tell|show|explain to) me
let me know
excuse me (but|)
pardon me (but|)
sorry (to bother you|for the trouble|for bothering you|to disturb you|) (but|)
if you (do not|would not|) mind
if (it is|) (possible|not too much trouble|not too much to ask)
if you (have|can spare) (a|) (moment|minute|time)
when you have (a|) (moment|minute|time)
at your (earliest|) convenience
any help (would|will|) (be|is) (much|greatly|really|highly|) appreciated
your help (would|will|) (be|is) (much|greatly|really|highly|) appreciated
much appreciated
thanks and regards
(best|kind|warm) regards
have a (good|great|nice|lovely|wonderful) (day|one|weekend|evening|time)
you (re|are|) (very|most|) welcome
no problem (at all|)
no worries (at all|)
my pleasure
nice to meet you
how are you (doing|today|doing today|)
happy to (help|assist|be of help) (you|) (with that|with this|)
glad to (help|assist) (you|) (with that|with this|)
(i|) hope (that|this|it) (helps|helped|is helpful|was helpful|answers your question|makes sense) (you|)
do not hesitate to (ask|contact me|reach out|let me know)
feel free to (ask|contact me|reach out|let me know)
if you have any (other|further|more|additional|) questions
if (there is|you need) anything else
is there anything else
안녕하세요
감사합니다
부탁드립니다
부탁드려요
알려 (주세요|주시겠어요|줘)
알려주세요
(muchas|mil|) gracias (de antemano|por su ayuda|por tu ayuda|)
disculpe
perdón
merci (beaucoup|d avance|)
danke (schön|sehr|)
vielen dank (im voraus|)
obrigado
obrigada
grazie (mille|)
спасибо (большое|заранее|)
(подскажите|скажите) (пожалуйста|)
(не|) (могли бы вы|можете ли вы) (мне|) (сказать|помочь|)
شكرا
धन्यवाद
cảm ơn
terima kasih
teşekkürler
teşekkür ederim
thx (a lot|so much|)
sorry for the (silly|stupid|basic|dumb|quick|simple|late|long) question (but|)
quick question
you (could|can|would) (please|kindly|possibly|) (help me|tell me|show me|)
if you (could|can|would) (please|kindly|possibly|) (help me|tell me|show me|)
i would (really|very much|greatly|) appreciate it if you (could|can|would) (please|) (help me|tell me|show me|)
(i would|i will) be (very|so|really|) (grateful|thankful) if you (could|can|would) (please|) (help me|tell me|show me|)
(i would|i will) be (very|so|really|) (glad|obliged) if you (could|can|would) (please|) (help me|tell me|show me|)
(could|can) (you|u) (possibly|perhaps|maybe) (please|) (tell me|help me|show me|)
(best|kind|warm|many) (regards|wishes|greetings)
(yours|) (sincerely|faithfully|truly)
all the best
(i am|) (so|very|really|) sorry for the (inconvenience|delay|trouble|confusion|wait|late reply)
(apologies|sorry) for the (wait|delay|inconvenience|trouble|confusion|late reply|late answer)
thank you for (contacting us|reaching out|reaching out to us|waiting|your patience|your message)
thank you for (your question|asking|getting in touch|your interest|writing|writing to us|calling)
thanks for (contacting us|reaching out|waiting|your patience|your message)
thanks for (your question|asking|getting in touch|writing|calling|letting us know)
is there anything else (i|we) can (help you with|do for you|help with|assist you with)
can i help you with anything else
(podría|podrías|puede|puedes|podria) (por favor|) (decirme|ayudarme|ayudarme a|)
(quisiera|me gustaría) (saber|preguntar|)
(muchas|mil|muchísimas|) gracias (de antemano|por su ayuda|por tu ayuda|por su tiempo|por todo|)
(perdón|perdona|perdone|disculpa|disculpe|lo siento) (por la molestia|la molestia|pero|)
(un|) (saludo|saludos|cordial saludo)
espero que (esto|te|le|) (ayude|sirva)
(pouvez|pourriez|peux|pourrais) (vous|tu) (s il vous plaît|s il te plaît|) (me dire|m aider|m aider à|)
(je voudrais|j aimerais) savoir
merci (beaucoup|bien|infiniment|) (d avance|par avance|pour votre aide|pour ton aide|docteur|)
(excusez|excuse) moi (mais|)
(désolé|désolée|pardon) (de vous déranger|mais|)
(bien|) cordialement
(bonne|belle) (journée|soirée)
n hésitez pas si vous avez d autres questions
j espère que (cela|ça) (vous|t|) aide
(könnten|können|würden) sie (mir|uns|) (bitte|) (sagen|helfen|)
(kannst|könntest|würdest) du (mir|uns|) (bitte|) (sagen|helfen|)
(vielen|herzlichen|besten|tausend) dank (im voraus|für die hilfe|für ihre hilfe|für deine hilfe|)
danke (schön|sehr|im voraus|dir|ihnen|euch|für die hilfe|)
(mit|) (freundlichen|besten|herzlichen|lieben|vielen) grüßen
(viele|liebe|beste|herzliche|schöne) grüße
(entschuldigung|entschuldige|entschuldigen sie|sorry|verzeihung) (die störung|bitte|aber|)
ich (würde|möchte) gerne wissen
ich hoffe das hilft
(você|tu|) (pode|poderia|podes|podia) (por favor|) (me dizer|me ajudar|dizer me|)
(muito|) obrigado (pela ajuda|desde já|)
(muito|) obrigada (pela ajuda|desde já|)
(atenciosamente|cumprimentos|abraços)
(desculpe|desculpa) (incomodar|mas|)
(puoi|potresti|può|potrebbe) (per favore|) (dirmi|aiutarmi|)
grazie (mille|tante|in anticipo|per l aiuto|)
(scusa|scusi|scusate) (il disturbo|ma|)
(cordiali saluti|buona giornata|buona serata)
(большое|огромное|) спасибо (заранее|большое|за помощь|)
(извините|простите) (за беспокойство|но|)
с уважением
(شكرا|شكرا جزيلا|جزيل الشكر|شكرا لك|شكرا لكم|مع جزيل الشكر|جزاك الله خيرا) (مقدما|على المساعدة|)
(لو سمحت|لو سمحتم|رجاء|أرجو|الرجاء)
(عذرا|آسف|المعذرة) (على الإزعاج|)
(هل يمكنك|هل بإمكانك|هل تستطيع) (أن|) (تخبرني|تساعدني|)
(مع تحياتي|تحياتي|مع أطيب التحيات)
(बहुत बहुत|बहुत|आपका) (धन्यवाद|शुक्रिया|आभार)
(धन्यवाद|शुक्रिया|आभार) (जी|)
(माफ़ कीजिए|क्षमा करें|माफ करना|माफ़ करना) (लेकिन|)
(dzięki|dziękuję|děkuji|tack|takk|dank je|dank u|bedankt|sağ ol|sağ olun|ευχαριστώ|תודה|ممنون|متشکرم)
"""
"""Formulas at the start or the end of a clause. Inside of it they are what it is about: "a letter that says sorry"."""

_GREETINGS = """
good (morning|afternoon|evening)
hola
buenos días
buenas (tardes|noches)
bonjour
bonsoir
salut
hallo
guten (tag|morgen|abend)
olá
bom dia
boa (tarde|noite)
ciao
buongiorno
здравствуйте
привет
добрый (день|вечер)
доброе утро
مرحبا
السلام عليكم
नमस्ते
xin chào
halo
merhaba
(hi|hello|hey|hiya|greetings|hallo) (there|all|everyone|everybody|folks|again|dear|my friend|friend|sir)
(hi|hello|hey|hiya|greetings|hallo) (madam|assistant|dear assistant|doctor|doc|team|guys|chatgpt|gpt|)
good (morning|afternoon|evening|day) (dear assistant|dear|everyone|all|team|doctor|sir|madam|)
cheers mate
hola (a todos|de nuevo|buenos días|buenas tardes|)
saludos
(bonjour|bonsoir) (à tous|docteur|madame|monsieur|)
(hallo|guten tag|guten morgen|guten abend|servus|moin|grüß gott) (zusammen|an alle|)
(oi|olá) (tudo bem|pessoal|)
(buonasera|salve)
(добрый день|здравствуйте|привет) (всем|доктор|)
(أهلا|أهلا وسهلا|مرحبا بك|صباح الخير|مساء الخير|السلام عليكم ورحمة الله وبركاته|تحية طيبة)
(नमस्कार|प्रणाम|सुप्रभात|नमस्ते जी)
(cześć|dzień dobry|ahoj|dobrý den|hej|god dag|goedemorgen|goedendag|selam)
(günaydın|iyi günler|καλημέρα|γεια σας|שלום|سلام|chào bạn|selamat pagi|안녕)
"""
"""Formulas at the start of a clause; at its end they are what it is about, too: "the origin of hello"."""

_AT_START = """
(sure|certainly|absolutely|definitely|gladly|okay|ok|alright|understood|of course) (thing|)
(sure|certainly|absolutely|definitely|okay|ok|of course|great) here (is|are) (the|your|my|) (answer|solution|response|)
here (is|are) (the|your|my|a|an|one|) (answer|response|reply|solution|explanation) (to your question|for you|)
(that is|what|) (a|) (good|great|excellent|interesting|nice) question
dear (assistant|sir|madam|sir or madam|friend|all|ai|chatgpt|team|doctor|customer)
(sure|certainly|absolutely|of course|okay|ok|) here you (go|are)
(of course|absolutely|certainly|sure) i would be (happy|glad|delighted) to (help|assist) (you|) (with that|with this|)
(i am|we are|) (so|very|really|) sorry to hear (that|this|about that)
(gerne|natürlich|selbstverständlich|klar|sicher|aber gern|na klar)
(gute|tolle|sehr gute) frage
hier ist (die|deine|ihre) antwort
(claro|claro que sí|por supuesto|con gusto|desde luego|con mucho gusto)
(buena|excelente) pregunta
(bien sûr|avec plaisir|certainement|volontiers|d accord)
(bonne|excellente) question
(claro|com certeza|com prazer|certamente)
(certo|certamente|volentieri|con piacere|naturalmente)
(конечно|разумеется|с удовольствием)
(хороший|отличный) вопрос
(بالتأكيد|طبعا|بكل سرور|بالطبع|بكل تأكيد)
(سؤال جيد|سؤال رائع)
(ज़रूर|जरूर|बिल्कुल|अवश्य|बेशक)
(अच्छा|बढ़िया) सवाल है
(oczywiście|jasne|tabii|tabii ki|elbette|もちろんです|물론입니다|물론이죠)
"""


def _alternatives(line: str) -> list[list[list[str]]]:
    """The alternatives of each part of a line, as words. No word goes across a bracket."""
    return [[split_words(words) for words in part.split("|")] for part in line.replace(")", "(").split("(")]


@dataclass(frozen=True, slots=True)
class PhraseTable:
    """A trie of words by hash. The next state is the value of the key `mix(state, hash of the word)`, found by linear
    probing; `bits` uint16 (states,) says what ends there. Keys are uint64, 0 where free; values int32."""

    keys: npt.NDArray[np.uint64]
    values: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint8]


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
    formulas = ((_ANYWHERE, FORMULA), (_AT_EDGES, AT_EDGE), (_GREETINGS, GREETING), (_AT_START, AT_START))

    def after(state: int, words: Iterable[str]) -> int:
        for word in words:
            if (state, word) not in edges:
                edges[state, word] = len(bits)
                bits.append(0)
            state = edges[state, word]
        return state

    kinds = (
        (_LIGHT, LIGHT),
        (_STRICT, STRICT),
        (_SOFT, SOFT),
        (_MARKER, SOFT | MARKER),
        (_JOINS, JOINS),
        (WORDS, KNOWN),
    )
    for listed, bit in kinds:
        for word in listed.split():
            bits[after(0, split_words(word))] |= bit
    for lines, bit in formulas:
        for line in filter(None, lines.splitlines()):
            # what the parts so far lead to: (state, words, words that are not light); 2 stands for more. Phrases that
            # begin alike are walked once: the lines stand for 26,000 of them
            front = {(0, 0, 0)}
            for part in _alternatives(line):
                counting = [(words, [w for w in words if w not in light]) for words in part]
                front = {
                    (after(state, counted), min(2, said + len(words)), min(2, heavy + len(counted)))
                    for state, said, heavy in sorted(front)
                    for words, counted in counting
                }
            for state, said, heavy in front:
                if heavy and (bit == AT_START or heavy > 1 or said == 1):
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
    return PhraseTable(keys, values, np.array(bits, np.uint16))
