"""Formulas of politeness, and other forms of a word, by language.

`a (b|c|) d` stands for `a b d`, `a c d` and `a d`. No word goes across a bracket. Contractions are written out as the
kernel reads them ("i would", "do not"; "is" and "am" of "it's" and "I'm" vanish). Apostrophes are white space.
你 stands for 您. A formula may follow another one. The lists are our own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Formulas:
    """The formulas of a language, one a line. `politeness` says when they count as such."""

    anywhere: str = ""
    """Wherever they stand."""
    at_edges: str = ""
    """At the start or the end of a clause. Inside of it they are what it is about: "a letter that says sorry"."""
    at_clause_start: str = ""
    """Greetings. At the end of a clause they are what it is about, too: "the origin of hello"."""
    at_sentence_start: str = ""
    """Mostly of answers."""
    whole_clause: str = ""
    """Wishes, and words that mean something else beside others: "How does one say good luck?"."""
    same: str = ""
    """`a b = c`: a and b are forms of c: spellings, and how somebody is asked to do something."""


LANGUAGES: dict[str, Formulas] = {
    "English": Formulas(
        anywhere="""
please
kindly
pls
plz
pretty please
""",
        at_edges="""
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
thx (a lot|so much|)
sorry for the (silly|stupid|basic|dumb|quick|simple|late|long) question (but|)
quick question
you (could|can|would) (please|kindly|possibly|) (help me|tell me|show me|)
if you (could|can|would) (please|kindly|possibly|) (help me|tell me|show me|)
i would (really|very much|greatly|) appreciate it if you (could|can|would) (please|) (help me|tell me|show me|)
(i would|i will) be (very|so|really|) (grateful|thankful) if you (could|can|would) (please|) (help me|tell me|)
(i would|i will) be (very|so|really|) (grateful|thankful) if you (could|can|would) (please|) (show me)
(i would|i will) be (very|so|really|) (glad|obliged) if you (could|can|would) (please|) (help me|tell me|show me|)
(could|can) (you|u) (possibly|perhaps|maybe) (please|) (tell me|help me|show me|)
(best|kind|warm|many) (regards|wishes|greetings)
(yours|) (sincerely|faithfully|truly)
(i am|) (so|very|really|) sorry for the (inconvenience|delay|trouble|confusion|wait|late reply)
(apologies|sorry) for the (wait|delay|inconvenience|trouble|confusion|late reply|late answer)
thank you for (contacting us|reaching out|reaching out to us|waiting|your patience|your message)
thank you for (your question|asking|getting in touch|your interest|writing|writing to us|calling)
thanks for (contacting us|reaching out|waiting|your patience|your message)
thanks for (your question|asking|getting in touch|writing|calling|letting us know)
is there anything else (i|we) can (help you with|do for you|help with|assist you with)
can i help you with anything else
(would|do) you mind (telling|showing|letting) (me|us) (know|)
(would you|could you|can you) (please|kindly|) (be a dear and|do me a favor and|do me a favour and) (tell me|)
(hope|i hope) (this|that|it) (helps|helped|is helpful|is useful|was useful|clears it up|clarifies things)
(a|one) (quick|short|small|simple) (question|one)
(i|) (just|) (want|wanted|need|needed|like) to (know|ask)
(do|does) (anyone|anybody|you|someone) (happen to|) know
(appreciate it|ta|tia|ty|tysm|thank u|thanks a ton|thanks a bunch|thanks heaps|many thanks indeed|cheers in advance)
(let|just let) me know if (you have|there is|you need) (any|anything|) (questions|other questions)
(let|just let) me know if (you have|there is|you need) (any|anything|) (more questions|further questions)
(let|just let) me know if (you have|there is|you need) (any|anything|) (else|more help|anything else)
""",
        at_clause_start="""
good (morning|afternoon|evening)
(hi|hello|hey|hiya|greetings|hallo) (there|all|everyone|everybody|folks|again|dear|my friend|friend|sir)
(hi|hello|hey|hiya|greetings|hallo) (madam|assistant|dear assistant|doctor|doc|team|guys|chatgpt|gpt|)
good (morning|afternoon|evening|day) (dear assistant|dear|everyone|all|team|doctor|sir|madam|)
cheers mate
""",
        at_sentence_start="""
tell me
(sure|certainly|absolutely|definitely|gladly|okay|ok|alright|understood|of course) (thing|)
(sure|certainly|absolutely|definitely) here (is|are) (the|your|my|) (answer|solution|response|)
(okay|ok|of course|great) here (is|are) (the|your|my|) (answer|solution|response|)
here (is|are) (the|your|my|a|an|one|) (answer|response|reply|solution|explanation) (to your question|for you|)
(that is|what|) (a|) (good|great|excellent|interesting|nice) question
dear (assistant|sir|madam|sir or madam|friend|all|ai|chatgpt|team|doctor|customer)
(sure|certainly|absolutely|of course|okay|ok|) here you (go|are)
(of course|absolutely|certainly|sure) i would be (happy|glad|delighted) to (help|assist) (you|) (with that|with this|)
(i am|we are|) (so|very|really|) sorry to hear (that|this|about that)
(yes|yep|yeah|yup) (sure|of course|certainly|absolutely)
(happy|glad|pleased) to (help|assist|explain|answer)
(that|this) is (a|an) (really|very|) (good|great|excellent|interesting|fantastic) (question|one)
""",
        whole_clause="""
have a (good|great|nice|lovely|wonderful) (day|one|weekend|evening|time)
all the best
(enjoy|bon appétit|safe travels|happy cooking|happy coding|happy learning|happy reading)
(enjoy|have a) (your|good|safe|great|nice|pleasant) (meal|trip|flight|stay|journey)
(enjoy|have a) (your|good|safe|great|nice|pleasant) (holiday|vacation|rest of your day|one)
(good luck|best of luck|all the best) (with (it|that|this|everything|your exam|your project|your studies)|)
(good luck|best of luck) (with it|with that|with this|to you|)
(great|perfect|nice|cool|got it|yes|yeah|yep|no problem)
""",
        same="""
explaining = explain
summarizing summarising summarise = summarize
describing = describe
translating = translate
recommending = recommend
metre = meter
metres = meters
centimetre = centimeter
centimetres = centimeters
millimetre = millimeter
millimetres = millimeters
kilometre = kilometer
kilometres = kilometers
litre = liter
litres = liters
millilitre = milliliter
millilitres = milliliters
centre = center
centres = centers
fibre = fiber
fibres = fibers
theatre = theater
theatres = theaters
sabre = saber
sabres = sabers
calibre = caliber
calibres = calibers
spectre = specter
spectres = specters
lustre = luster
lustres = lusters
sombre = somber
sombres = sombers
grey = gray
doughnut doughnuts = donut
defence = defense
offence = offense
licence = license
practise = practice
pretence = pretense
programme = program
programmes = programs
catalogue = catalog
dialogue = dialog
analogue = analog
aluminium = aluminum
mould = mold
plough = plow
draught = draft
cheque = check
tyre = tire
tyres = tires
sceptical = skeptical
pyjamas = pajamas
moustache = mustache
cosy = cozy
jewellery = jewelry
ageing = aging
enrol = enroll
fulfil = fulfill
instalment = installment
skilful = skillful
sulphur = sulfur
sulphate = sulfate
sulphide = sulfide
sulphuric = sulfuric
anaemia = anemia
leukaemia = leukemia
haemoglobin = hemoglobin
haemorrhage = hemorrhage
anaesthesia = anesthesia
anaesthetic = anesthetic
paediatric = pediatric
orthopaedic = orthopedic
gynaecology = gynecology
oestrogen = estrogen
oesophagus = esophagus
foetus = fetus
oedema = edema
diarrhoea = diarrhea
manoeuvre = maneuver
encyclopaedia = encyclopedia
hypoglycaemia = hypoglycemia
hyperglycaemia = hyperglycemia
whilst = while
amongst = among
towards = toward
learnt = learned
burnt = burned
spelt = spelled
dreamt = dreamed
maths = math
mum = mom
ok = okay
dont doesnt isnt arent aint = not
cant = cannot
whats = what
hows = how
wheres = where
thats = that
im = i
youre = you
""",
    ),
    "Chinese": Formulas(
        anywhere="""
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
(谢谢|多谢|感谢|非常感谢|十分感谢)(了|的帮助|帮助|的帮忙|提问|的提问|的回答|的解答|的耐心|)
(谢谢你|感谢你|多谢你|非常感谢你)(了|的帮助|帮助|的帮忙|提问|的提问|的回答|的解答|的耐心|)
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
(希望|但愿)(这|以上|这些|我的回答|这个回答|上述|)(内容|信息|回答|解答|)(能|可以|会|)(对你|)(有|有所|能有)(帮助|用)
(感激不尽|辛苦了|拜托了|劳驾了)
(如果|如|若)(你|)(还|)有(任何|其他|其它|别的|什么|更多|)(问题|疑问|需要|不明白的地方)
(请|欢迎|可以|)随时(告诉我|联系我|提问|问我|告知)
(随时|欢迎随时)(告诉我|联系我|提问|问我)
这是(一个|)(好|很好的|非常好的|不错的)问题
(万分感谢|感激之至|非常乐意|好问题)
(还|)有(什么|其他|其它|别的)(我|)(可以|能|能够)(帮|帮助|帮到|为)(你|)(的|做的|效劳的|)
亲
""",
        at_edges="""
(如果|如|若)(你|)(还|)有(任何|其他|其它|别的|什么|更多|)(问题|疑问|需要|不明白的地方)
(请|欢迎|可以|)随时(告诉我|联系我|提问|问我|告知)
(希望|但愿)(能|可以|)有(所|)帮助
(能|可以|可否|能否)(麻烦|)(你|)(说说|讲讲|说一说|讲一讲|说一下|讲一下)
(我|)(有点|有些|)(好奇|想知道|想了解)
""",
        at_sentence_start="""
(当然可以|没问题|好呀|好的呢|嗯|是的|可以呀)
(这个|你的|)(问题|提问)(很好|非常好|很棒)
(以下是|下面是|这是)(我的|详细的|)(回答|答案|解答|答复)
""",
        whole_clause="""
(祝你|祝)(学习|工作|身体|用餐|旅途|考试|阅读|购物)(愉快|顺利|进步|健康|好运)
(早安|晚安|您好|再见|拜拜|各位好|老师好|亲爱的助手|你好呀|在吗)
祝你(生活愉快|好运|一切顺利|有美好的一天|愉快|今天愉快)
""",
    ),
    "Japanese": Formulas(
        anywhere="""
すみません(が|けど|けれど|)
(恐れ入り|恐縮|申し訳ありません|申し訳ございません)(ますが|ですが|が|)
(突然|初歩的な質問|変な質問|お忙しいところ)(で|)(すみません|申し訳ありません|恐縮ですが)(が|)
(どうか|どうぞ|ぜひ|是非)
(お願い|お願い致|お願いいた|よろしくお願い)(します|できますか|いたします|)
(よろしくお願いいた|どうぞよろしくお願い|宜しくお願い|宜しくお願い致)(します|できますか|いたします|)
(どうも|誠に|本当に|いつも|)(ありがとう|有難う|感謝)(ございます|ございました|します|いたします|)
(を|に|)(教えて|おしえて)(いただけますか|いただけませんか|いただけますでしょうか|もらえますか|)
(を|に|)(教えて|おしえて)(もらえませんか|くれますか|くれませんか)
(を|に|)(教えて|おしえて)(ください|下さい|くださいませんか|ほしいです|欲しいです|ほしい)
(いただけますか|いただけませんか|いただけますでしょうか|もらえますか|もらえませんか|くれますか|くれませんか)
(ください|下さい|くださいませんか|くださいますか|いただきたいです|ほしいのですが|もらえる)
(お役に立て|お役に立ち|参考になれ)(ば|ましたら|ましたか|れば)(幸いです|嬉しいです|うれしいです|)
(ご参考になれ|参考になり|お力になれ)(ば|ましたら|ましたか|れば)(幸いです|嬉しいです|うれしいです|)
(何か|他に|ほかに|また|)(ご不明な点|ご質問|質問)(が|などが|)(あれば|ありましたら|ございましたら)
(何か|他に|ほかに|また|)(わからないこと|分からないこと)(が|などが|)(あれば|ありましたら|ございましたら)
(お気軽に|いつでも|遠慮なく|また)(お知らせ|お聞き|ご連絡|聞いて|お問い合わせ|お尋ね|質問して|)(ください|下さい|)
(いつも|大変|)(お世話になって|お世話になり)(おります|います|ます)
""",
        at_edges="""
(ちょっと|少し|一つ|ひとつ|いくつか|)(質問|お聞きしたいこと|聞きたいこと)(が|を|)(あります|ございます)
(ちょっと|少し|一つ|ひとつ|いくつか|)(質問|お聞きしたいこと|聞きたいこと)(が|を|)(あるのですが|あるんですが)
(ちょっと|少し|一つ|ひとつ|いくつか|)(お尋ねしたいこと|伺いたいこと)(が|を|)(あります|ございます)
(ちょっと|少し|一つ|ひとつ|いくつか|)(お尋ねしたいこと|伺いたいこと)(が|を|)(あるのですが|あるんですが)
(ちょっと|少し|一つ|ひとつ|いくつか|)(質問|お聞きしたいこと|聞きたいこと)(が|を|)(ありますが|です)
(ちょっと|少し|一つ|ひとつ|いくつか|)(質問|お聞きしたいこと|聞きたいこと)(が|を|)(よろしいですか|いいですか)
(ちょっと|少し|一つ|ひとつ|いくつか|)(お尋ねしたいこと|伺いたいこと)(が|を|)(ありますが|です)
(ちょっと|少し|一つ|ひとつ|いくつか|)(お尋ねしたいこと|伺いたいこと)(が|を|)(よろしいですか|いいですか)
(お聞きしたい|お尋ねしたい|伺いたい|聞きたい|質問したい|知りたい)(のですが|んですが|です|と思います)
(が|を|)(知りたい|お聞きしたい|聞きたい)(です|のですが|んですが)
(です|でしょう|なのでしょう|なんでしょう|なのです|なんです)(か|)
(それでは|では|さて|ところで)
""",
        at_clause_start="""
(皆さん|みなさん|皆様|)(こんにちは|こんばんは|おはよう|おはようございます|初めまして|はじめまして|やあ|もしもし)
(お疲れ様|おつかれさま)(です|でございます|)
""",
        at_sentence_start="""
(はい|ええ|もちろん|もちろんです|承知しました|承知いたしました|かしこまりました)
(了解です|了解しました|わかりました|分かりました|喜んで|いいですよ)
(とても|)(良い|いい|よい|素晴らしい)(ご質問|質問)(です|ですね)
(喜んで|)(お答え|お手伝い|ご説明)(します|いたします|しましょう)
(お問い合わせ|ご質問)(いただき|)(ありがとうございます)
以下(が|は)(回答|答え)(です|になります)
""",
        whole_clause="""
助かります
""",
    ),
    "Korean": Formulas(
        anywhere="""
부디
혹시
""",
        at_edges="""
(안녕하세요|안녕하십니까|안녕|반갑습니다|여보세요) (여러분|선생님|)
(정말|대단히|너무|미리|진심으로|) (감사합니다|감사드립니다|고맙습니다|고마워요|고마워|감사해요)
(도와주셔서|답변|도움|시간|질문해) (주셔서|내주셔서|) (감사합니다|고맙습니다|감사드립니다)
(잘|) (부탁드립니다|부탁드려요|부탁합니다|부탁해요|부탁해)
(죄송합니다만|죄송하지만|죄송한데|실례합니다|실례지만|실례합니다만|미안하지만|미안한데|번거로우시겠지만|죄송합니다)
(좀|) (알려|말해|가르쳐|말씀해) (주세요|주시겠어요|주실래요|주십시오|줘)
(좀|) (알려|말해|가르쳐|말씀해) (줄래|줄래요|줘요|주시겠습니까|주시면 감사하겠습니다)
(좀|) (알려|말해|가르쳐|말씀해) (줄 수 있나요|주실 수 있나요|주실 수 있을까요)
(좀|) (알려|말해|가르쳐|말씀해) (줄 수 있어요|줄 수 있어|주실 수 있습니까)
(좀|) (알려주세요|알려주시겠어요|알려줘|알려줄래|알려줘요|말해주세요)
(좀|) (말해줘|가르쳐주세요|가르쳐줘|알려주십시오|알려주실래요|말씀해주세요)
(좀|) (알려주실|알려줄|말해줄|말해주실|가르쳐주실|가르쳐줄) 수 (있나요|있을까요|있어요|있어|있습니까)
(좀|) (주세요|주시겠어요|주실래요|주십시오|줘|줄래|줄래요|줘요|주시겠습니까|주시면 감사하겠습니다)
(주실|줄) 수 (있나요|있을까요|있어요|있어|있습니까)
(질문이|질문|궁금한 게|궁금한 것이) (하나|있습니다|있어요|있는데요|있는데) (있습니다|있어요|)
(여쭤볼 게|물어볼 게|여쭤보고 싶은 게) (하나|있습니다|있어요|있는데요|있는데) (있습니다|있어요|)
(궁금합니다|궁금해요|알고 싶습니다|알고 싶어요|알고 싶은데요|궁금한데요)
(이|) (도움이|답변이) (도움이|) (되었기를|되길|되셨기를|되기를) (바랍니다|바라요)
도움이 되었으면 (좋겠습니다|합니다|해요)
(다른|추가|더|또|) (궁금한 점이|질문이|궁금하신 점이) (있으시면|있으면|더 있으시면)
(언제든지|언제든) (말씀해|물어봐|문의해|알려) (주세요|주십시오)
""",
        at_sentence_start="""
(네|예|물론이죠|물론입니다|물론이에요|그럼요|알겠습니다|당연하죠|좋습니다)
(좋은|훌륭한) (질문입니다|질문이에요|질문이네요)
(기꺼이|) (도와드리겠습니다|답변드리겠습니다|설명해 드리겠습니다|알려드리겠습니다)
""",
        whole_clause="""
(좋은 하루|즐거운 하루) (되세요|보내세요)
""",
        same="""
설명해주세요 설명해줘 설명해주시겠어요 설명해줄래 설명해주십시오 = 설명해
작성해주세요 작성해줘 작성해주시겠어요 작성해주십시오 = 작성해
번역해주세요 번역해줘 번역해주시겠어요 번역해주십시오 = 번역해
요약해주세요 요약해줘 요약해주시겠어요 요약해주십시오 = 요약해
추천해주세요 추천해줘 추천해주시겠어요 = 추천해
비교해주세요 비교해줘 = 비교해
소개해주세요 소개해줘 = 소개해
써주세요 써줘 써주시겠어요 = 써
만들어주세요 만들어줘 만들어주시겠어요 = 만들어
뭐예요 뭐야 뭔가요 무엇인가요 무엇입니까 무엇이에요 뭐지 뭡니까 뭐죠 = 무엇인가
""",
    ),
    "Arabic": Formulas(
        anywhere="""
من (فضلك|فضلكم)
""",
        at_edges="""
(شكرا|وشكرا|أشكرك|أشكركم|نشكرك) (جزيلا|كثيرا|لك|لكم|جدا|سلفا|مقدما|)
(شكرا|وشكرا|أشكرك|أشكركم|نشكرك) (على المساعدة|على مساعدتك|على سؤالك|على وقتك|لك مقدما|جزيلا لك|جزيلا لكم)
(ألف|مع|لك|لكم) (شكر|الشكر|جزيل الشكر|خالص الشكر)
(جزيل الشكر|مع جزيل الشكر|جزاك الله خيرا|جزاكم الله خيرا|بارك الله فيك|تسلم|مشكور)
(لو سمحت|لو سمحتم|إذا سمحت|إن أمكن|إذا أمكن|رجاء|أرجو|الرجاء|أرجوك|أرجو منك|يرجى|بعد إذنك) (أن|)
(أرجو أن|يرجى|الرجاء) (تخبرني|إخباري|مساعدتي)
(عذرا|آسف|المعذرة|عفوا|اعذرني|أعتذر) (على الإزعاج|عن الإزعاج|للإزعاج|لكن|ولكن|)
(هل|) (يمكنك|بإمكانك|تستطيع|يمكن|ممكن|يمكنكم|تقدر) (أن|من فضلك|لو سمحت|) (تخبرني|إخباري|تساعدني|) (في|ب|)
(هل|) (يمكنك|بإمكانك|تستطيع|يمكن|ممكن|يمكنكم|تقدر) (أن|من فضلك|لو سمحت|) (مساعدتي|تقول لي|تقول) (في|ب|)
(أريد|أود|أحب|أرغب) (أن|في|) (أعرف|معرفة|أسأل|أسألك)
(أخبرني|أخبريني|قل لي|خبرني|أعلمني)
(لدي|عندي) (سؤال|سؤال سريع|سؤال بسيط|استفسار)
(مع تحياتي|تحياتي|مع أطيب التحيات|أطيب التحيات|مع السلامة|دمتم بخير)
(أتمنى|آمل|أرجو) أن (يفيدك|يساعدك|يكون|تكون|أكون) (هذا|ذلك|هذا مفيدا|قد أفدتك|مفيدا|هذه مفيدة|هذا الجواب مفيدا|)
(أتمنى|آمل|أرجو) أن (يفيدك هذا|يساعدك هذا|يكون هذا مفيدا|أكون قد أفدتك|أكون قد ساعدتك|تكون الإجابة مفيدة)
(إذا|إن) (كان|كانت) (لديك|عندك) (أي|أية|) (سؤال|أسئلة|أسئلة أخرى) (فلا تتردد|لا تتردد|) (في السؤال|في طرحها|)
(إذا|إن) (كان|كانت) (لديك|عندك) (أي|أية|) (سؤال آخر|استفسار) (فلا تتردد|لا تتردد|) (في السؤال|في طرحها|)
لا تتردد في (السؤال|طرح أي سؤال|التواصل|سؤالي)
""",
        at_clause_start="""
(مرحبا|أهلا|أهلا وسهلا|مرحبا بك|مرحبا بكم|هلا|صباح الخير|صباح النور) (جميعا|دكتور|أستاذ|)
(مساء الخير|السلام عليكم|سلام عليكم|وعليكم السلام) (جميعا|دكتور|أستاذ|)
(السلام عليكم ورحمة الله|السلام عليكم ورحمة الله وبركاته|تحية طيبة|يا هلا) (جميعا|دكتور|أستاذ|)
""",
        at_sentence_start="""
(بالتأكيد|طبعا|بكل سرور|بالطبع|بكل تأكيد|أكيد|نعم|حسنا|على الرحب والسعة|يسعدني ذلك|يسعدني مساعدتك)
(هذا|إنه) (سؤال جيد|سؤال رائع|سؤال ممتاز)
(إليك|هذه|هذا هو|هذه هي) (الإجابة|الجواب|إجابتك)
(شكرا|شكرا لك) (على سؤالك|على السؤال)
سؤال (جيد|رائع|ممتاز|جيد جدا)
""",
        whole_clause="""
(يوما سعيدا|أتمنى لك يوما سعيدا|بالتوفيق)
""",
        same="""
تعطيني اعطيني تعطي اعطي = أعطني
أشرح تشرح شرح اشرحي = اشرح
تكتب اكتبي كتابة = اكتب
تترجم ترجمة = ترجم
تلخص تلخيص = لخص
""",
    ),
    "Hindi": Formulas(
        anywhere="""
(कृपया|कृपा करके|कृपा कर|प्लीज|प्लीज़|मेहरबानी करके)
""",
        at_edges="""
(बहुत बहुत|बहुत|आपका|आपका बहुत|आपका बहुत बहुत|) (धन्यवाद|शुक्रिया|आभार|थैंक्स|थैंक यू) (जी|आपका|सर|)
(अग्रिम|सहायता के लिए|मदद के लिए|पहले से) (धन्यवाद|शुक्रिया|आभार|थैंक्स|थैंक यू) (जी|आपका|सर|)
(माफ़ कीजिए|माफ़ कीजिएगा|क्षमा करें|क्षमा कीजिए|माफ करना|माफ़ करना|माफ़ करें|परेशान करने के लिए माफ़ी) (लेकिन|पर|)
(क्या|) (आप|तुम) (मुझे|मुझको|हमें|) (बता|समझा) (सकते|सकती) (हैं|हो) (कि|)
(क्या|) (आप|तुम) (मेरी|) (मदद कर|सहायता कर) (सकते|सकती) (हैं|हो) (कि|)
(मुझे|हमें|जरा|ज़रा|) (बताइए|बताएं|बताएँ|बताओ|बता दीजिए|बता दें|बताइये|बताएंगे|बता दो) (कि|)
(मैं|) (जानना|पूछना) (चाहता|चाहती|चाहते|चाहूँगा|चाहूंगा|चाहूँगी) (हूँ|हूं|हैं|था|थी|) (कि|)
(मुझे|) (जानना|पूछना) (है|था) (कि|)
(मेरा|मेरे पास|मेरा एक|एक) (एक|) (सवाल|प्रश्न) (है|था)
(आशा|उम्मीद) है (कि|) (इससे|यह|इस से|ये|आपको) (आपको|आपकी|) (मदद|सहायता|लाभ|मददगार|उपयोगी) (मिलेगी|मिली होगी|होगी|होगा)
(आशा|उम्मीद) है (कि|) (इससे|यह|इस से|ये|आपको) (आपको|आपकी|) (मदद|सहायता|लाभ|मददगार|उपयोगी) (लगेगा|मिलेगा|हुई होगी)
(अगर|यदि) (आपके|आपका|आपको) (कोई|पास कोई|) (और|अन्य|) (सवाल|प्रश्न) (हो|हों|है|हैं) (तो|)
(बेझिझक|ज़रूर|जरूर) (पूछें|पूछिए|बताएं)
""",
        at_clause_start="""
(नमस्ते|नमस्कार|प्रणाम|सुप्रभात|शुभ प्रभात|शुभ संध्या|हैलो|हेलो|हाय|राम राम) (जी|सर|दोस्तों|आप सभी को|)
""",
        at_sentence_start="""
(ज़रूर|जरूर|बिल्कुल|अवश्य|बेशक|हाँ|हां|जी हाँ|जी हां|जी|ठीक है|हाँ जी|निश्चित रूप से|हाँ ज़रूर)
(यह|ये|) (एक|) (बहुत|) (अच्छा|बढ़िया|बेहतरीन) (सवाल|प्रश्न) (है|)
(यह|ये) (रहा|रही|है) (आपका|आपके सवाल का|) (उत्तर|जवाब)
""",
        whole_clause="""
(आपका दिन शुभ हो|शुभकामनाएँ|शुभकामनाएं|आपका स्वागत है)
""",
        same="""
समझाएं समझाएँ समझाओ समझाइये समझाना = समझाइए
लिखें लिखो लिखिये लिखना = लिखिए
""",
    ),
    "Russian": Formulas(
        anywhere="""
пожалуйста
будьте (добры|любезны)
""",
        at_edges="""
если (возникнут|появятся|есть|останутся|будут) (ещё|другие|дополнительные|какие либо|) вопросы
(большое|огромное|заранее|вам|тебе|) (спасибо|благодарю|благодарен) (заранее|большое|огромное|вам|тебе|за помощь|)
(большое|огромное|заранее|вам|тебе|) (признателен|благодарна) (заранее|большое|огромное|вам|тебе|за помощь|)
(большое|огромное|заранее|вам|тебе|) (спасибо|благодарю|благодарен) (за ответ|за внимание|вам за помощь)
(большое|огромное|заранее|вам|тебе|) (спасибо|благодарю|благодарен) (вас|вам большое)
(большое|огромное|заранее|вам|тебе|) (признателен|благодарна) (за ответ|за внимание|вам за помощь|вас|вам большое)
заранее (вам|) (большое|огромное|) (спасибо|благодарю|благодарен|благодарна|признателен)
спасибо (за вопрос|за ваш вопрос|что спросили|за обращение|за ожидание)
(извините|простите|прошу прощения|извини|прости) (за беспокойство|что беспокою|пожалуйста|но|меня|)
(не|) (могли бы вы|мог бы ты|могла бы ты) (мне|ли вы|пожалуйста|) (сказать|подсказать|помочь|рассказать мне|)
(не|) (можете|можешь) (мне|ли вы|пожалуйста|) (сказать|подсказать|помочь|рассказать мне|)
(не|) (можете ли вы|можешь ли ты) (мне|ли вы|пожалуйста|) (сказать|подсказать|помочь|рассказать мне|)
(не|) (сможете|не могли бы) (мне|ли вы|пожалуйста|) (сказать|подсказать|помочь|рассказать мне|)
(подскажите|скажите|подскажи|скажи|расскажите мне|расскажи мне) (мне|нам|) (пожалуйста|)
(помогите|помоги) (мне|) (пожалуйста|) (понять|разобраться|узнать|)
(я|мы|) (хотел|хотела|хочу|хотелось|хотели) (бы|) (узнать|спросить|знать)
(у меня|есть|у меня есть|у меня к вам|к вам) (есть|) (вопрос|один вопрос|небольшой вопрос|простой вопрос)
(будь|был бы|была бы|буду|) (добр|признателен|очень признателен|благодарен|благодарна|очень благодарен) (если|)
если (не сложно|можно|вам не трудно|не трудно|возможно)
(я|) надеюсь (что|) (это|мой ответ|ответ|я) (вам|тебе|) (поможет|помогло|помог|был полезен)
(я|) надеюсь (что|) (это|мой ответ|ответ|я) (вам|тебе|) (полезно|помогла|будет полезно|будет полезен)
(если|) (у вас|у тебя) (есть|возникнут|остались) (ещё|другие|) (вопросы|вопрос) (обращайтесь|спрашивайте|)
(если|) (у вас|у тебя) (есть|возникнут|остались) (дополнительные) (вопросы|вопрос) (обращайтесь|спрашивайте|)
(если|) (у вас|у тебя) (есть|возникнут|остались) (какие-либо) (вопросы|вопрос) (обращайтесь|спрашивайте|)
(если|) (у вас|у тебя) (будут|появятся) (ещё|другие|) (вопросы|вопрос) (обращайтесь|спрашивайте|)
(если|) (у вас|у тебя) (будут|появятся) (дополнительные|какие-либо) (вопросы|вопрос) (обращайтесь|спрашивайте|)
(если|) (у вас|у тебя) (есть|возникнут|остались) (ещё|другие|) (вопросы|вопрос) (пишите|дайте знать)
(если|) (у вас|у тебя) (есть|возникнут|остались) (дополнительные|какие-либо) (вопросы|вопрос) (пишите|дайте знать)
(если|) (у вас|у тебя) (будут|появятся) (ещё|другие|дополнительные|какие-либо|) (вопросы|вопрос) (пишите|дайте знать)
(обращайтесь|спрашивайте|дайте знать) (если|) (что|у вас есть вопросы|возникнут вопросы|)
""",
        at_clause_start="""
(здравствуйте|здравствуй|привет|приветствую) (всем|доктор|друзья|вам|)
(доброе утро|доброго дня|доброго времени суток|салют) (всем|доктор|друзья|вам|)
добрый (день|вечер) (всем|доктор|друзья|)
""",
        at_sentence_start="""
(помогите|помоги|расскажите|расскажи|скажите|скажи|подскажите|подскажи) мне
(конечно|разумеется|с удовольствием|да|хорошо|да конечно|конечно же|безусловно|ладно|понятно)
(очень|это|) (хороший|отличный|интересный|очень хороший|прекрасный) вопрос
(вот|) (ваш|мой|) (ответ|ответ на ваш вопрос)
(с радостью|рад|буду рад|рада) (помогу|помочь|отвечу|ответить)
""",
        whole_clause="""
(с уважением|всего доброго|всего хорошего|до свидания|хорошего дня|удачи|желаю удачи|приятного аппетита|на здоровье)
(обращайтесь|рад помочь|рада помочь|всегда рад помочь|не за что)
""",
        same="""
объясни объяснить = объясните
переведи перевести = переведите
напиши написать = напишите
назови назвать = назовите
опиши описать = опишите
перечисли перечислить = перечислите
покажи показать = покажите
посоветуй посоветовать = посоветуйте
реши решить = решите
составь составить = составьте
приведи привести = приведите
""",
    ),
    "Spanish": Formulas(
        anywhere="""
por favor
(porfa|porfavor|porfis)
si (es|fuera) posible
""",
        at_edges="""
espero (haberte|haberle|haberos) (ayudado|sido útil|sido de ayuda|servido)
(muchas|mil|muchísimas|) gracias (de antemano|por su ayuda|por tu ayuda|por su tiempo|)
(muchas|mil|muchísimas|) gracias (por tu tiempo|por todo|por la ayuda)
(muchas|mil|muchísimas|) gracias (por preguntar|por tu pregunta|por su pregunta)
(muchas|mil|muchísimas|) gracias (por adelantado|por contactarnos|a todos)
(te|le|os|les|) (agradezco|agradecería|lo agradezco) (de antemano|mucho|tu ayuda|su ayuda|la ayuda|si me ayudas|)
(te|le|os|les|) (lo agradecería|estaría muy agradecido) (de antemano|mucho|tu ayuda|su ayuda|la ayuda|si me ayudas|)
(podría|podrías|puede|puedes|podria|podrias) (usted|por favor|) (decirme|decir|ayudarme|ayudarme a|ayudarme con|)
(podría|podrías|puede|puedes|podria|podrias) (usted|por favor|) (ayudar|ayudar a|contarme|indicarme|explicarme)
(podéis|pueden|me podrías) (usted|por favor|) (decirme|decir|ayudarme|ayudarme a|ayudarme con|)
(me podría|me puedes|me puede) (usted|por favor|) (decirme|decir|ayudarme|ayudarme a|ayudarme con|)
(podéis|pueden|me podrías) (usted|por favor|) (ayudar|ayudar a|contarme|indicarme|explicarme)
(me podría|me puedes|me puede) (usted|por favor|) (ayudar|ayudar a|contarme|indicarme|explicarme)
(sería|serías|es) (tan amable de|posible que me diga|posible) (decirme|ayudarme|)
(quisiera|me gustaría|querría|quiero|quería|necesito|deseo) (saber|preguntar|preguntarte)
(quisiera|me gustaría|querría|quiero|quería|necesito|deseo) (preguntarle|que me digas|que me diga)
(dime|dígame|decidme|díganme|cuéntame)
(tengo|tenía) (una|) (pregunta|duda|consulta) (rápida|sencilla|para ti|para usted|sobre esto|)
(una|mi) (pregunta|duda|consulta) (rápida|es|)
(me preguntaba|sabes|sabe|sabrías|sabría|sabéis) (si|usted|)
(perdón|perdona|perdone|disculpa|disculpe|lo siento|perdonad|disculpen) (por la molestia|la molestia|por molestar|)
(perdón|perdona|perdone|disculpa|disculpe|lo siento|perdonad|disculpen) (por las molestias|que te moleste|pero)
(un|) (saludo|saludos|cordial saludo|abrazo) (cordiales|a todos|)
(espero|ojalá) (que|) (esto|te|le|os|esto te|) (ayude|sirva|haya ayudado|sea útil|sea de ayuda)
(espero|ojalá) (que|) (esto le|mi respuesta|la respuesta|haber) (ayude|sirva|haya ayudado|sea útil|sea de ayuda)
(espero|ojalá) (que|) (esto|te|le|os|esto te|) (ayudado|sirva de ayuda|haya servido|sea de utilidad)
(espero|ojalá) (que|) (esto le|mi respuesta|la respuesta|haber) (ayudado|sirva de ayuda|haya servido|sea de utilidad)
si (tienes|tiene|necesitas|necesita) (otra|alguna|más|algo) (otra|más|) (pregunta|duda|preguntas|dudas|)
(avísame|dímelo|aquí estoy)
no (dudes|dude) en (preguntar|preguntarme|consultar|contactarme|contactarnos|decírmelo|escribirme)
(hay algo más|algo más) en (lo|) que pueda (ayudarte|ayudarle)
""",
        at_clause_start="""
(hola|holi|buenas|buenos días|buen día|muy buenas) (a todos|de nuevo|buenos días|buenas tardes|buenas noches|)
(hola|holi|buenas|buenos días|buen día|muy buenas) (amigo|amiga|doctor|doctora|qué tal)
buenas (tardes|noches) (a todos|doctor|doctora|)
(estimado|estimada|estimados|querido|querida) (asistente|amigo|amiga|doctor|doctora|equipo|señor|señora)
saludos
""",
        at_sentence_start="""
(claro|claro que sí|por supuesto|con gusto|desde luego|con mucho gusto)
(sí|de acuerdo|cómo no|faltaría más|encantado|encantada)
(muy|qué|es una|es una muy|) (buena|excelente|gran|interesante) (pregunta)
(aquí|esta|ésta|esta es) (tienes|está|es|tiene|va|) (la|tu|su|mi|una) (respuesta|solución)
(estaré|estoy) (encantado|encantada|feliz) de (ayudarte|ayudarle|ayudar)
gracias por (preguntar|tu pregunta|su pregunta)
""",
        whole_clause="""
(atentamente|cordialmente|buen día|feliz día|que tengas un buen día|que tenga un buen día)
(buena suerte|suerte|mucha suerte|buen provecho|que aproveche|buen viaje)
de nada
(vale|perfecto|suerte|claro)
""",
        same="""
escribe escriba escribas escribid escribirme escríbeme escríbame = escribir
explica explique expliques explícame explíqueme explicarme explicad = explicar
traduce traduzca traduzcas tradúceme traducirme = traducir
resume resuma resumas resúmeme resumirme = resumir
describe describa describas describirme descríbeme = describir
enumera enumere enumerad = enumerar
muestra muéstrame muéstreme mostrarme muestre = mostrar
recomienda recomiéndame recomiéndeme recomendarme recomiende = recomendar
calcula calcule calculad = calcular
que = qué
da dame deme darme dadme dé = dar
di dime diga = decir
""",
    ),
    "Portuguese": Formulas(
        anywhere="""
(por favor|por gentileza|se faz favor|faz favor)
se (possível|for possível|puder)
""",
        at_edges="""
espero ter (ajudado|ajudado você|sido útil)
(muito|muitíssimo|) (obrigado|obrigada|grato|grata|agradecido|agradecida) (pela ajuda|desde já|por tudo|)
(muito|muitíssimo|) (obrigado|obrigada|grato|grata|agradecido|agradecida) (pela atenção|pela sua ajuda)
(muito|muitíssimo|) (obrigado|obrigada|grato) (por perguntar|pela pergunta|antecipadamente|a todos)
(muito|muitíssimo|) (grata|agradecido|agradecida) (por perguntar|pela pergunta|antecipadamente|a todos)
(desde já|) (agradeço|agradecia) (a ajuda|desde já|a atenção|muito|)
(valeu|brigado|brigada)
(você|tu|o senhor|a senhora|) (me|) (pode|poderia|podes|podia) (por favor|me|) (dizer|ajudar|ajudar a|dizer-me|)
(você|tu|o senhor|a senhora|) (me|) (podias|poderias|consegue) (por favor|me|) (dizer|ajudar|ajudar a|dizer-me|)
(você|tu|o senhor|a senhora|) (me|) (pode|poderia|podes|podia) (por favor|me|) (ajudar com|contar|informar)
(você|tu|o senhor|a senhora|) (me|) (podias|poderias|consegue) (por favor|me|) (ajudar com|contar|informar)
(gostaria|queria|quero|eu gostaria|eu queria|eu quero|preciso) (de|) (saber|perguntar|que me dissesse)
(diga|diz|me diga|me diz|diga me|diz me|me fala|me conte) (por favor|)
(tenho|eu tenho) (uma|) (pergunta|dúvida|questão) (rápida|simples|)
(uma|minha|a minha) (pergunta|dúvida) (rápida|é|)
(você sabe|sabe me dizer|sabes|saberia me dizer)
(desculpe|desculpa|desculpem|perdão|com licença|me desculpe) (incomodar|o incômodo|pelo incômodo|por incomodar|mas|)
espero (que|ter) (isso|isto|a resposta|) (ajude|ajudado|te ajude|lhe ajude|seja útil|tenha ajudado|o ajude)
(se|caso) (você|) (tiver|precisar|tiveres) (mais|alguma|outra) (alguma|outra|mais|) (dúvida|pergunta|dúvidas)
(se|caso) (você|) (tiver|precisar|tiveres) (outras|de) (alguma|outra|mais|) (dúvida|pergunta|dúvidas)
(se|caso) (você|) (precisares|tenha) (mais|alguma|outra|outras|de) (alguma|outra|mais|) (dúvida|pergunta|dúvidas)
(se|caso) (você|) (tiver|precisar|tiveres) (mais|alguma|outra|outras|de) (alguma|outra|mais|) (perguntas|coisa|ajuda)
(se|caso) (você|) (precisares|tenha) (mais|alguma|outra|outras|de) (alguma|outra|mais|) (perguntas|coisa|ajuda)
(é só|) (perguntar|avisar|me avise|pergunte)
(não hesite|fique à vontade para|sinta se à vontade para) (em|) (perguntar|me perguntar)
""",
        at_clause_start="""
(oi|olá|ola|bom dia|opa|alô) (tudo bem|pessoal|a todos|gente|amigo|doutor|doutora|tudo bom|)
boa (tarde|noite) (a todos|pessoal|)
(caro|cara|prezado|prezada|prezados) (assistente|amigo|amiga|doutor|doutora|senhor|senhora|senhores)
saudações
""",
        at_sentence_start="""
(claro|com certeza|com prazer|certamente|sim|claro que sim|pois não)
(tudo bem|está bem|beleza|ok|sem problema|sem problemas)
(ótima|boa|excelente|que boa|muito boa|essa é uma ótima) pergunta
(aqui|esta|eis) (está|é|a|vai|) (a|sua|) (resposta|solução)
(fico feliz|ficarei feliz|terei prazer) em (ajudar|ajudá-lo)
""",
        whole_clause="""
(atenciosamente|cumprimentos|abraços|abraço|um abraço|tenha um bom dia)
(tenha um ótimo dia|boa sorte|bom apetite|bom proveito|boa viagem)
(de nada|por nada|às ordens)
""",
        same="""
escreve escreva escrevas = escrever
explica explique expliques = explicar
traduz traduza traduzas = traduzir
resume resuma resumas = resumir
descreve descreva descrevas = descrever
mostra mostre mostres = mostrar
recomenda recomende = recomendar
calcula calcule = calcular
""",
    ),
    "French": Formulas(
        anywhere="""
s il (vous|te) plaît
s il (vous|te) plait
(svp|stp)
si possible
""",
        at_edges="""
merci (beaucoup|bien|infiniment|d avance|) pour (votre|ton|cette) (aide|réponse|temps|attention|patience)
(un grand|mille|) (merci|mercis) (beaucoup|bien|infiniment|d avance|par avance|)
(un grand|mille|) (merci|mercis) (pour votre aide|pour ton aide|docteur|beaucoup d avance|à vous)
(un grand|mille|) (merci|mercis) (à tous|de votre aide|de ton aide|pour tout|de votre réponse)
(un grand|mille|) (merci|mercis) (pour votre question|pour ta question|d avoir posé la question)
(un grand|mille|) (merci|mercis) (mille fois|pour votre temps)
(je vous|je te|je) (remercie|suis reconnaissant) (d avance|beaucoup|par avance|pour votre aide|de votre aide|si|)
(je vous|je te|je) (serais reconnaissant|suis reconnaissante) (d avance|beaucoup|par avance|)
(je vous|je te|je) (serais reconnaissant|suis reconnaissante) (pour votre aide|de votre aide|si)
(pouvez|pourriez|peux|pourrais) (vous|tu) (s il vous plaît|s il te plaît|) (me dire|m aider|m aider à|m indiquer|)
(pouvez|pourriez|peux|pourrais) (vous|tu) (s il vous plaît|s il te plaît|) (me|m|nous)
(est ce que|) (vous|tu) (pouvez|pourriez|peux|pourrais) (me dire|m aider|m aider à|me|m|)
(auriez vous|aurais tu) (la gentillesse de|l amabilité de) (me dire|m|me|)
(je voudrais|j aimerais|je souhaite|je souhaiterais) (savoir|vous demander|te demander|demander)
(je veux|j aimerais bien|je voudrais bien) (savoir|vous demander|te demander|demander)
(dites|dis) (moi|nous) (s il vous plaît|)
(savez vous|sais tu|sauriez vous)
(j ai|j aurais|j avais) (une|) (question|petite question|question rapide|question simple)
(une|petite|ma) (question|petite question) (rapide|est|)
(excusez|excuse|pardonnez) moi (mais|de vous déranger|de te déranger|)
(désolé|désolée|pardon|navré) (de vous déranger|de te déranger|pour le dérangement|mais|)
(bien|très|) (cordialement|sincèrement|amicalement) (à vous|)
n (hésitez|hésite) pas (à|) (demander|me demander|à me contacter|me contacter|me le dire|)
n (hésitez|hésite) pas (à|) (poser d autres questions|si vous avez d autres questions)
n (hésitez|hésite) pas (à|) (si tu as d autres questions|revenir vers moi)
(si|) (vous avez|tu as) (d autres|des|d autre) questions (n hésitez pas|n hésite pas|)
(j espère|en espérant) que (cela|ça|ceci|ma réponse|cette réponse) (vous|t|te|) (aide|aidera|a aidé|sera utile)
(j espère|en espérant) que (cela|ça|ceci|ma réponse|cette réponse) (vous|t|te|) (est utile|sera utile|éclaire)
""",
        at_clause_start="""
(bonjour|bonsoir|salut|coucou|allô|rebonjour) (à tous|docteur|madame|monsieur|)
(bonjour|bonsoir|salut|coucou|allô|rebonjour) (à toutes et à tous|tout le monde|cher assistant)
(cher|chère|chers) (assistant|ami|amie|amis|monsieur|madame|docteur)
""",
        at_sentence_start="""
(dites|dis) moi
(bien sûr|avec plaisir|certainement|volontiers|d accord|oui|bien entendu)
(évidemment|absolument|pas de problème|pas de souci|entendu|oui bien sûr)
(c est une|très|) (bonne|excellente|très bonne) question
(voici|voilà) (la|ma|votre|ta|une|) (réponse|solution) (à votre question|à ta question|)
(je serais|je suis) (ravi|ravie|heureux|heureuse) de (vous|t) aider
""",
        whole_clause="""
(bonne|belle|excellente) (journée|soirée|chance|continuation|fin de journée) (à vous|à tous|)
(bon appétit|bon courage|bon voyage|à bientôt|au revoir|salutations|mes salutations|meilleures salutations)
(je vous en prie|de rien|avec plaisir|je t en prie)
(parfait|super|entendu)
""",
        same="""
écris écrivez = écrire
explique expliquez = expliquer
traduis traduisez = traduire
résume résumez = résumer
décris décrivez = décrire
montre montrez = montrer
donne donnez = donner
propose proposez = proposer
calcule calculez = calculer
cite citez = citer
""",
    ),
    "German": Formulas(
        anywhere="""
bitte (schön|sehr|)
wenn möglich
falls möglich
""",
        at_edges="""
(ich|) hoffe (das|dies|es) hilft (ihnen|dir|euch|) weiter
(ich|) hoffe (dass|) (das|dies|es) (ihnen|dir|) (weiter|) (hilft|geholfen hat|weiterhilft)
(vielen|herzlichen|besten|tausend|schönen|lieben) dank (im voraus|schon mal|schonmal|dafür|)
(vielen|herzlichen|besten|tausend|schönen|lieben) dank (für die hilfe|für ihre hilfe|für deine hilfe)
(vielen|herzlichen|besten|tausend|schönen|lieben) dank (für die frage|für ihre frage|für ihre zeit)
(vielen|herzlichen|besten|tausend|schönen|lieben) dank (euch allen|dir|ihnen)
(ich|wir|) (danke|danken|bedanke mich) (schön|sehr|im voraus|dir|ihnen|euch|für die hilfe|für deine hilfe|)
(ich|wir|) (danke|danken|bedanke mich) (für ihre hilfe|schon mal|vielmals|für die frage)
(ich|wir|) (danke|danken|bedanke mich) (für die antwort|ihnen im voraus|dir im voraus)
(könnten|können|würden|könntet|könnt) (sie|ihr) (mir|uns|) (bitte|) (sagen|helfen|verraten|mitteilen|)
(kannst|könntest|würdest|magst) du (mir|uns|) (bitte|) (sagen|helfen|verraten|mitteilen|)
(wären|wärst) (sie|du) so (nett|freundlich|lieb) (mir|und|) (zu sagen|zu helfen|)
(sag|sagen sie|sage|sagt|verrate|verraten sie|helfen sie|hilf) (mir|uns) (bitte|)
(ich|wir) (würde|möchte|möchten|würden|will|wollte|hätte) (gerne|gern|) (wissen|fragen|erfahren|gewusst)
(ich|) (habe|hätte|hab) (da|) (eine|mal eine|noch eine|eine kurze|eine einfache) frage (an sie|an dich|dazu|)
(kurze|meine|eine|einfache) frage (ist|)
(weißt du|wissen sie|weiß jemand)
(entschuldigung|entschuldige|entschuldigen sie|sorry) (die störung|für die störung|bitte|dass ich störe|aber|)
(verzeihung|verzeihen sie|tut mir leid) (die störung|für die störung|bitte|dass ich störe|aber|)
(mit|) (freundlichen|besten|herzlichen|lieben|vielen) grüßen
(viele|liebe|beste|herzliche|schöne|freundliche) grüße
(ich|) hoffe (das|dass|dies|die antwort|es) (das|dies|ihnen|dir|) (ihnen|dir|) (hilft|geholfen hat)
(ich|) hoffe (das|dass|dies|die antwort|es) (das|dies|ihnen|dir|) (ihnen|dir|) (weiterhilft|hilft weiter)
(ich|) hoffe (das|dass|dies|die antwort|es) (das|dies|ihnen|dir|) (ihnen|dir|) (konnte helfen|war hilfreich)
(ich|) hoffe (das|dass|dies|die antwort|es) (das|dies|ihnen|dir|) (ihnen|dir|) (ist hilfreich)
(ich|) hoffe ich konnte (ihnen|dir|) (weiterhelfen|helfen)
(falls|wenn) (sie|du) (noch|) (weitere|) fragen (haben|hast)
(bei|) (weiteren|) fragen (gern|gerne|einfach|jederzeit) (fragen|melden)
(melden sie sich|melde dich|frag|fragen sie) (gern|gerne|jederzeit|einfach) (bei mir|)
""",
        at_clause_start="""
(hallo|guten tag|guten morgen|guten abend|servus|moin) (zusammen|an alle|leute|allerseits|lieber assistent|)
(grüß gott|hi|hey|tag|grüezi|liebe grüße) (zusammen|an alle|leute|allerseits|lieber assistent|)
(liebe|lieber|sehr geehrte|sehr geehrter) (assistent|alle|freunde|damen und herren|herr doktor|frau doktor|team)
""",
        at_sentence_start="""
(sag|sagen sie|sage|sagt|verrate|verraten sie|hilf|helfen sie) mir
(gerne|natürlich|selbstverständlich|klar|sicher|aber gern|na klar|ja)
(ja gerne|sehr gerne|okay|kein problem|klar doch|mit vergnügen|aber sicher|alles klar)
(das ist eine|) (gute|tolle|sehr gute|ausgezeichnete|interessante) frage
hier (ist|kommt) (die|deine|ihre|eine|meine) (antwort|lösung)
(ich|) (helfe|erkläre) (ihnen|dir|das|) (gerne|gern) (weiter|)
danke (für die frage|für ihre frage|für deine frage|der nachfrage)
""",
        whole_clause="""
(mfg|lg|vg)
(einen|) (schönen|guten) (tag|abend|appetit) (noch|wünsche ich|)
(viel|) (erfolg|glück|spaß) (dabei|damit|)
(guten appetit|gute reise|gutes gelingen|alles gute)
(gern geschehen|keine ursache|nichts zu danken)
(gut|schön|perfekt|super)
""",
        same="""
schreib schreiben schreibt = schreibe
erklär erklären = erkläre
übersetz übersetzen = übersetze
nenn nennen = nenne
zeig zeigen = zeige
beschreib beschreiben = beschreibe
""",
    ),
    "Italian": Formulas(
        anywhere="""
(per favore|per cortesia|per piacere)
(cortesemente|gentilmente)
se possibile
""",
        at_edges="""
spero di (esserti|esserle|essere) stato (utile|di aiuto|d aiuto)
grazie (mille|tante|in anticipo|per l aiuto|infinite|per la domanda|per il tuo aiuto|)
grazie (per il suo aiuto|per la disponibilità|di tutto|a tutti|molte|di cuore)
(ti|vi|la|) ringrazio (in anticipo|molto|per l aiuto|)
(puoi|potresti|può|potrebbe|potreste) (per favore|) (dirmi|aiutarmi|aiutarmi a|dire|aiutare|aiutare a|indicarmi|)
(mi puoi|mi potresti|mi può|mi potrebbe) (per favore|) (dirmi|aiutarmi|aiutarmi a|dire|aiutare|aiutare a|indicarmi|)
(sapresti|saprebbe|sai|sa) (dirmi|dire)
(vorrei|mi piacerebbe|volevo|desidero|desidererei) (sapere|chiedere|chiederti|chiederle)
(dimmi|mi dica|ditemi|mi dici|raccontami)
(ho|avrei|avevo) una (domanda|domanda veloce|curiosità|breve domanda)
(una|la mia|breve|piccola) (domanda|domanda è|curiosità)
(scusa|scusi|scusate|scusami|mi scusi|chiedo scusa|mi dispiace) (il disturbo|per il disturbo|se ti disturbo|ma|)
spero (che|di) (questo|ciò|la risposta|ti|esserti|essere|sia) (ti|sia|le|) (aiuti|sia utile|utile|possa aiutare)
spero (che|di) (questo|ciò|la risposta|ti|esserti|essere|sia) (ti|sia|le|) (stato utile|di aiuto|d aiuto)
(se|per) (hai|ha|avete|altre|qualsiasi) (altre|) (domande|dubbi|domanda) (chiedi pure|fammi sapere|)
(se|per) (hai|ha|avete|altre|qualsiasi) (altre|) (domande|dubbi|domanda) (non esitare a chiedere)
(se|per) (hai|ha|avete|altre|qualsiasi) (altre|) (domande|dubbi|domanda) (sono qui|chieda pure)
non (esitare|esiti) a (chiedere|contattarmi|chiedermi)
""",
        at_clause_start="""
(ciao|buongiorno|buonasera|salve|buon pomeriggio|buondì) (a tutti|dottore|dottoressa|di nuovo|ragazzi|)
(gentile|caro|cara|egregio) (assistente|amico|amica|dottore|dottoressa|signore|signora)
""",
        at_sentence_start="""
(certo|certamente|volentieri|con piacere|naturalmente|sì|ok|va bene)
(d accordo|assolutamente|nessun problema|certo che sì|ma certo|senz altro|sicuro)
(ottima|bella|buona|ottima|che bella|è un ottima) domanda
(ecco|questa è) (la|una|la mia|qui la) (risposta|soluzione)
(sono|sarò|sarei) (felice|lieto|lieta) di (aiutarti|aiutarla)
""",
        whole_clause="""
(cordiali saluti|distinti saluti|buona giornata|buona serata|un saluto|saluti)
(buon appetito|buona fortuna|buon viaggio|a presto|arrivederci|buon lavoro)
(prego|di niente|di nulla|figurati)
""",
        same="""
scrivi scriva scrivere = scrivimi
spiega spieghi spiegarmi spiegami = spiegare
traduci traduca = tradurre
riassumi riassuma = riassumere
descrivi descriva = descrivere
elenca elenchi = elencare
consiglia consigliami consigliarmi = consigliare
calcola calcoli = calcolare
""",
    ),
    "Turkish": Formulas(
        anywhere="""
lütfen
""",
        at_edges="""
(çok|şimdiden|yardımın için|yardımınız için|) (teşekkürler|teşekkür ederim|teşekkür ederiz) (şimdiden|)
(çok|şimdiden|yardımın için|yardımınız için|) (sağ ol|sağ olun) (şimdiden|)
(çok|şimdiden|yardımın için|yardımınız için|) (sağolun|sağol|minnettarım|eyvallah) (şimdiden|)
(yardımınız|yardımın|cevabınız) için (çok|şimdiden|) (teşekkürler|teşekkür ederim|teşekkür ederiz|sağ olun)
(sorunuz|ilginiz|desteğiniz) için (çok|şimdiden|) (teşekkürler|teşekkür ederim|teşekkür ederiz|sağ olun)
(bana|) (söyleyebilir|anlatabilir|yardım edebilir|yardımcı olabilir|söyler) (misin|misiniz|mi)
(söyle|söyleyin|söyler misin|söyler misiniz)
(öğrenmek|sormak|bilmek) (istiyorum|isterim|istiyordum|istedim)
(bir|küçük bir|kısa bir|size bir|sana bir) (sorum|soru|şey soracağım) (var|vardı|olacak|sormak istiyorum|)
(özür dilerim|kusura bakmayın|kusura bakma|affedersiniz|affedersin|pardon|rahatsız ettiğim için özür dilerim) (ama|)
(umarım|inşallah) (bu|) (yardımcı|işe|işinize|size|faydalı|işine) (yardımcı|) (olur|olmuştur|yarar|olmuşumdur)
(başka|) (bir|) (sorunuz|sorun|sorularınız) (olursa|varsa) (sorabilirsiniz|sormaktan çekinmeyin|bana sorun|)
(başka|) (bir|) (sorunuz|sorun|sorularınız) (olursa|varsa) (çekinmeden sorun|lütfen sorun)
""",
        at_clause_start="""
(merhaba|merhabalar|selam|selamlar|selamün aleyküm) (arkadaşlar|herkese|hocam|)
(günaydın|iyi günler|iyi akşamlar|alo|hey) (arkadaşlar|herkese|hocam|)
sayın (yetkili|hocam)
""",
        at_sentence_start="""
(tabii|tabii ki|elbette|tabi|tabi ki|evet|tamam|memnuniyetle|peki|olur|kesinlikle|hay hay)
(çok|bu|) (iyi|güzel|harika) (bir|) soru
(işte|) cevabınız
(size|sana|) (yardımcı olmaktan|yardım etmekten) (mutluluk duyarım|memnuniyet duyarım)
""",
        whole_clause="""
(saygılarımla|selamlar|iyi çalışmalar|kolay gelsin|iyi günler|iyi akşamlar)
(hoşça kalın|iyi şanslar|afiyet olsun|bol şans|sevgiler)
rica ederim
""",
        same="""
açıklayın açıkla = açıklayınız
yazın = yazınız
çevirin çevir = çeviriniz
özetleyin özetle = özetleyiniz
listeleyin listele = listeleyiniz
""",
    ),
    "Vietnamese": Formulas(
        anywhere="""
(làm ơn|vui lòng|xin vui lòng)
""",
        at_edges="""
(xin|) (cảm ơn|cám ơn) (bạn|nhiều|rất nhiều|bạn nhiều|bạn rất nhiều|anh|)
(xin|) (cảm ơn|cám ơn) (chị|trước|bạn trước|vì đã hỏi|bạn đã hỏi|vì câu hỏi)
(xin|) (chân thành|) cảm ơn
(bạn|anh|chị) (có thể|có thể vui lòng|làm ơn|) (cho tôi biết|cho mình biết|cho em biết)
(bạn|anh|chị) (có thể|có thể vui lòng|làm ơn|) (nói cho tôi biết|giúp tôi|giúp mình)
(bạn|anh|chị) có thể (giúp tôi|)
(cho|hãy cho|xin cho) (tôi|mình|em) (biết|hỏi) (với|)
(hãy nói cho tôi biết|nói cho tôi biết|xin hỏi|cho hỏi)
(tôi|mình|em) (muốn|cần) (biết|hỏi)
(tôi|mình|em) có (một|) câu hỏi
(xin lỗi|thành thật xin lỗi) (đã làm phiền|vì làm phiền|vì đã làm phiền|nhưng|)
(hy vọng|mong rằng|tôi hy vọng) (điều này|câu trả lời này|) (sẽ|) (giúp ích|hữu ích|có ích|giúp được) (cho bạn|bạn|)
(hy vọng|mong rằng|tôi hy vọng) (câu trả lời|thông tin này) (sẽ|) (giúp ích|hữu ích|có ích|giúp được) (cho bạn|bạn|)
nếu (bạn|) (có|còn|cần) (thêm|bất kỳ|) (câu hỏi|thắc mắc) (nào|khác|nào khác|) (hãy hỏi tôi|cứ hỏi|hãy cho tôi biết|)
nếu (bạn|) (có|còn|cần) (thêm|bất kỳ|) (câu hỏi|thắc mắc) (nào|khác|nào khác|) (xin cứ hỏi|đừng ngại hỏi)
""",
        at_clause_start="""
(xin chào|chào|chào bạn|chào buổi sáng|chào buổi tối) (mọi người|các bạn|)
(chào buổi chiều|chào anh|chào chị|kính chào|alo) (mọi người|các bạn|)
""",
        at_sentence_start="""
(vâng|dạ|chắc chắn rồi|tất nhiên|tất nhiên rồi|được|được chứ|dĩ nhiên|có chứ|rất sẵn lòng)
(đó là|đây là|) (một|) câu hỏi (hay|rất hay|tuyệt vời)
(đây là|sau đây là) câu trả lời
(tôi|) rất (vui|sẵn lòng) (được|) giúp (bạn|)
""",
        whole_clause="""
(trân trọng|thân ái|chúc bạn một ngày tốt lành|chúc một ngày tốt lành)
(chúc may mắn|chúc bạn may mắn|tạm biệt|chúc ngon miệng)
không có gì
""",
    ),
    "Indonesian": Formulas(
        anywhere="""
(tolong|mohon|silakan|silahkan|harap)
""",
        at_edges="""
(terima kasih|terimakasih|makasih|trims|thanks) (banyak|sebelumnya|atas bantuannya|atas bantuan anda|)
(terima kasih|terimakasih|makasih|trims|thanks) (atas pertanyaannya|atas pertanyaan anda|ya|sudah bertanya)
(bisakah|dapatkah|bisa|dapat|maukah|bolehkah) (anda|kamu|kau|saya) (tolong|) (memberi tahu saya|beri tahu saya|)
(bisakah|dapatkah|bisa|dapat|maukah|bolehkah) (anda|kamu|kau|saya) (tolong|) (membantu saya|bantu saya)
(bisakah|dapatkah|bisa|dapat|maukah|bolehkah) (anda|kamu|kau|saya) (tolong|) (memberitahu saya|menolong saya|bertanya)
(beri tahu|beritahu|katakan kepada|kasih tahu|jelaskan kepada) (saya|aku)
(saya|aku) (ingin|mau|hendak) (tahu|bertanya|tanya|mengetahui|menanyakan)
(saya|aku) (punya|ada|memiliki) (satu|sebuah|) pertanyaan
(maaf|mohon maaf|permisi|maaf mengganggu|maaf merepotkan) (mengganggu|tapi|sebelumnya|ya|)
semoga (ini|jawaban ini|bermanfaat) (membantu|bermanfaat|dapat membantu|bisa membantu|berguna|)
semoga (membantu|penjelasan ini|informasi ini) (membantu|bermanfaat|dapat membantu|bisa membantu|berguna|)
(jika|kalau|apabila) (anda|kamu|) (ada|punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (silakan tanya|)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (silakan tanya|)
(jika|kalau|apabila) (anda|kamu|) (ada|punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (jangan ragu untuk bertanya)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan) (lain|lagi|) (jangan ragu untuk bertanya)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan lain) (lain|lagi|) (jangan ragu untuk bertanya)
(jika|kalau|apabila) (anda|kamu|) (ada|punya|memiliki|masih punya) (pertanyaan lainnya) (lain|lagi|) (silakan tanya|)
(jika|kalau|apabila) (anda|kamu|) (ada|punya) (pertanyaan lainnya) (lain|lagi|) (jangan ragu untuk bertanya)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan lainnya) (lain|lagi|) (jangan ragu untuk bertanya)
(jika|kalau|apabila) (anda|kamu|) (ada|punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (silakan bertanya)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (silakan bertanya)
(jika|kalau|apabila) (anda|kamu|) (ada|punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (beri tahu saya)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan|pertanyaan lain) (lain|lagi|) (beri tahu saya)
(jika|kalau|apabila) (anda|kamu|) (ada|punya) (pertanyaan lainnya) (lain|lagi|) (silakan bertanya)
(jika|kalau|apabila) (anda|kamu|) (memiliki|masih punya) (pertanyaan lainnya) (lain|lagi|) (silakan bertanya)
(jika|kalau|apabila) (anda|kamu|) (ada|punya|memiliki|masih punya) (pertanyaan lainnya) (lain|lagi|) (beri tahu saya)
jangan (ragu|sungkan) (untuk|) (bertanya|menghubungi saya)
""",
        at_clause_start="""
(halo|hai|selamat pagi|selamat siang|selamat sore) (semua|semuanya|teman teman|dok|pak|bu|)
(selamat malam|assalamualaikum|hei|salam) (semua|semuanya|teman teman|dok|pak|bu|)
""",
        at_sentence_start="""
(tentu|tentu saja|baik|baiklah|ya|pasti|oke|siap|dengan senang hati|boleh|ya tentu)
(itu|ini|) pertanyaan (yang|) (bagus|menarik|sangat bagus|baik|bagus sekali)
(berikut|ini) (adalah|) (jawabannya|jawaban saya|jawaban anda)
(saya|) (senang|dengan senang hati) (bisa|dapat|akan|) membantu (anda|)
""",
        whole_clause="""
(salam|hormat saya|salam hormat|semoga berhasil|semoga harimu menyenangkan)
(sampai jumpa|selamat makan|selamat menikmati|semoga sukses)
sama sama
""",
        same="""
menjelaskan terangkan = jelaskan
menuliskan menulis tulis = tuliskan
menerjemahkan = terjemahkan
menyebutkan = sebutkan
meringkas = ringkas
""",
    ),
    "Dutch": Formulas(
        anywhere="""
(alstublieft|alsjeblieft|aub|graag gedaan)
""",
        at_edges="""
(hartelijk|heel erg|alvast|vriendelijk|) (bedankt|dank je|dank u|dank je wel) (alvast|voor je hulp|voor uw hulp|)
(hartelijk|heel erg|alvast|vriendelijk|) (dank u wel|dankjewel|dank) (alvast|voor je hulp|voor uw hulp|)
(hartelijk|heel erg|alvast|vriendelijk|) (bedankt|dank je|dank u|dank je wel) (voor de hulp|voor de vraag)
(hartelijk|heel erg|alvast|vriendelijk|) (bedankt|dank je|dank u|dank je wel) (bij voorbaat)
(hartelijk|heel erg|alvast|vriendelijk|) (dank u wel|dankjewel|dank) (voor de hulp|voor de vraag|bij voorbaat)
(kun|kan|kunt|zou|zou je) (je|u|jij) (mij|me|) (alstublieft|alsjeblieft|) (vertellen|helpen|zeggen|)
(kun|kan|kunt|zou|zou je) (je|u|jij) (mij|me|) (alstublieft|alsjeblieft|) (kunnen vertellen|kunnen helpen)
(ik|) (heb|had) een (vraag|vraagje|korte vraag)
(ik zou graag willen|ik wil graag|ik wil) weten
(sorry|excuseer|pardon|neem me niet kwalijk) (dat ik stoor|voor het storen|maar|)
(ik|) hoop dat (dit|het) (helpt|je helpt|nuttig is|u helpt)
(vertel|zeg) (me|mij)
""",
        at_clause_start="""
(hallo|hoi|goedemorgen|goedemiddag|goedenavond|goedendag|dag|beste) (allemaal|iedereen|assistent|)
""",
        at_sentence_start="""
(natuurlijk|zeker|graag|uiteraard|ja|prima|oké|met plezier)
(goede|uitstekende|dat is een goede) vraag
hier is (het|een|je) antwoord
""",
        whole_clause="""
(met vriendelijke groet|met vriendelijke groeten|groetjes|groeten|fijne dag)
(fijne dag nog|succes|eet smakelijk|prettige dag)
""",
    ),
    "Polish": Formulas(
        anywhere="""
(proszę|proszę cię|proszę bardzo|proszę państwa)
""",
        at_edges="""
(z góry|bardzo|serdecznie|wielkie|) (dziękuję|dzięki|dziękujemy) (bardzo|z góry|za pomoc|za odpowiedź|)
(z góry|bardzo|serdecznie|wielkie|) (dziękuję|dzięki|dziękujemy) (za pytanie|serdecznie|pięknie)
(czy|) (możesz|mógłbyś|mogłabyś|może pan) (mi|proszę|) (powiedzieć|pomóc|)
(czy|) (może pani|mógłby pan|mogłaby pani|moglibyście) (mi|proszę|) (powiedzieć|pomóc|)
(powiedz|powiedz mi|proszę mi powiedzieć|proszę powiedzieć)
(chciałbym|chciałabym|chcę) (wiedzieć|się dowiedzieć|zapytać|spytać)
mam (pytanie|jedno pytanie|krótkie pytanie)
(przepraszam|wybacz|sorki) (że przeszkadzam|za kłopot|ale|)
mam nadzieję że (to|) (pomoże|pomogło|pomogłem|się przyda)
""",
        at_clause_start="""
(cześć|dzień dobry|dobry wieczór|witam|witaj|hej|siema) (wszystkim|państwu|)
""",
        at_sentence_start="""
(oczywiście|jasne|pewnie|tak|dobrze|z przyjemnością|chętnie|naturalnie)
(dobre|świetne|to dobre) pytanie
(oto|to) (odpowiedź|moja odpowiedź)
""",
        whole_clause="""
(pozdrawiam|z poważaniem|miłego dnia|powodzenia|smacznego|do widzenia|pozdrowienia)
""",
    ),
    "other": Formulas(
        anywhere="""
(prosím|vennligst|vänligen|venligst|si us plau|var snäll och|παρακαλώ|будь ласка|моля|בבקשה)
(لطفا|لطفاً|กรุณา|ช่วย|ole hyvä|kérem|kérlek|vă rog|te rog)
亲
""",
        at_edges="""
(mange|många|tusen|hjertelig|) (tack|takk|tak) (så mycket|på förhand|skal du ha|för hjälpen|for hjelpen|for hjælpen|)
(děkuji|děkuju|díky|ďakujem|hvala|благодаря) (předem|moc|mnogo|lepa|много|дуже|frumos|anticipat|szépen|)
(дякую|хвала|mulțumesc|mersi|köszönöm) (předem|moc|mnogo|lepa|много|дуже|frumos|anticipat|szépen|)
(děkuji|děkuju|díky|ďakujem|hvala|благодаря) (előre is|paljon|etukäteen|πολύ|εκ των προτέρων|רבה|מראש|sana|po)
(дякую|хвала|mulțumesc|mersi|köszönöm) (előre is|paljon|etukäteen|πολύ|εκ των προτέρων|רבה|מראש|sana|po)
(kiitos|kiitoksia|ευχαριστώ|תודה|תודה רבה) (předem|moc|mnogo|lepa|много|дуже|frumos|anticipat|szépen|)
(ممنون|متشکرم|با تشکر|asante|salamat) (předem|moc|mnogo|lepa|много|дуже|frumos|anticipat|szépen|)
(kiitos|kiitoksia|ευχαριστώ|תודה|תודה רבה) (előre is|paljon|etukäteen|πολύ|εκ των προτέρων|רבה|מראש|sana|po)
(ممنون|متشکرم|با تشکر|asante|salamat) (előre is|paljon|etukäteen|πολύ|εκ των προτέρων|רבה|מראש|sana|po)
(kan|kunne|skulle) (du|ni|dere|i) (snälla|vänligen|vennligst|) (säga mig|si meg|berätta för mig|fortelle meg|)
(kan|kunne|skulle) (du|ni|dere|i) (snälla|vänligen|vennligst|) (fortælle mig|hjälpa mig|hjelpe meg)
(můžete|můžeš|mohl byste|mohla byste|poți) (mi|prosím|říct|să|să îmi|spui|spuneți|)
(puteți|ai putea|megmondanád|meg tudnád mondani) (mi|prosím|říct|să|să îmi|spui|spuneți|)
(voitko kertoa|voisitko kertoa|μπορείς να μου πεις|μπορείτε να μου πείτε) (mi|prosím|říct|să|să îmi|spui|spuneți|)
(чи можете ви|чи не могли б ви|האם תוכל לומר לי|אפשר לדעת) (mi|prosím|říct|să|să îmi|spui|spuneți|)
(omlouvám se|promiňte|ursäkta|unnskyld|undskyld|anteeksi|elnézést|scuze|îmi pare rău|вибачте|συγγνώμη|סליחה|ببخشید)
(ครับ|ค่ะ|คะ|ขอบคุณ|ขอบคุณครับ|ขอบคุณค่ะ)
""",
        at_clause_start="""
(ahoj|dobrý den|hej|hejsan|god dag|god morgen|god morgon|hei|moi|terve|szia)
(helló|jó napot|jó reggelt|salut|bună|bună ziua|bună dimineața|вітаю|добрий день|доброго дня)
(привіт|здравейте|здраво|добър ден|καλημέρα|καλησπέρα|γεια|γεια σας|γεια σου|שלום)
(סלאם|سلام|درود|สวัสดี|สวัสดีครับ|สวัสดีค่ะ|habari|jambo|kumusta|magandang araw)
""",
        at_sentence_start="""
(samozřejmě|jistě|självklart|selvfølgelig|naturligtvis|ja visst|persze|természetesen|desigur|sigur|bineînțeles)
(tietysti|totta kai|звичайно|разбира се|βεβαίως|φυσικά|בטח|כמובן|البته|حتما|แน่นอน)
""",
        whole_clause="""
(med vänlig hälsning|med venlig hilsen|med vennlig hilsen|s pozdravem|cu stimă|üdvözlettel|ystävällisin terveisin)
""",
    ),
}
