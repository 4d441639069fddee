"""Words that are one letter away from another word, so that neither is a typing error of the other: house and horse.

Counted in books, documentation and sentences that people wrote in forty languages: words of at least four letters that
stand in several texts, and of which `edits_of_spelling` would take one for the other.
"""

WORDS = """
abajo abide abiding abiertas abiertos ability abode abort abound about above absent abuse abused abusing accent accents
accept accepts acces accesos access accursed accused aceasta aceeași același aceleași acesta acestea ached aches aching
acid acidity acknowledgement acknowledgment acres acrid acted acting action active activée actual adakah adalah
adapting added adding adicionadas adicionado adicionados adicionamos adicionando admirers admires adopting adore adored
adoring adorned adorning adresinde adresine adventurers adventures adverse advice advise advisers advisors adımda adına
adında affiche affichée afore after again agility agin aglow agone aground agua ague aguja aide aided aiding aika aikaa
aikaan aikana ailed ailing aimed aiming ainsi airde aire airing aiuto ajaks ajili ajoute ajoutée ajoutées ajoutés ajtót
ajutor akan akaun akiknek akinek aking akong alacak alang alarak alas alders alert algum alguém alias alien alight
align alike alive allas allay alledged alleged allein allen allers alley alleys allons allow allows alloy allsa alluded
alluding allured alluring ally almak alone along alta alten alter alteration altercation alternativas alternativos
alters altitude alto altor altra altro alwayes always alți alții aman ambalo ambao ambapo ambayo ambazo ambitions
ambitious amelyben amelyen amiable amicable aming amkan among amphitheater amphitheatre ample amply amuse amused
amusing anang anay ancient andare andate anderes anders anelmad angay angel angels angle angles ankaŭ ankle ankles
anlama anlaşma anong ansi antaŭ antient ants antíng apakah aplicacion aplicación apologies apologise appealed appealing
appeals appeared appearing appears appeased appel appelle appelée appelées appelés apple apples applies apply après
aptitude arahan arahkan araks arama arasında arasındaki araya araçlara araçlarla arbour arched archers arches arching
ardor ardour area arena argue argumentos arguments arid aright arkasında arkasındaki armas armed armor armour arose
around arouse arter arvas ascent asegurarse asegurarte aselmad asgjë ashes aside asili asnjë assent assented assenting
assert asserted asserting asserts asses assess asset assets associées associés assume assumed assuming assure assured
assuring atajo ating atone attached attaching attacked attacking atteindre attendre attitude atual atíng auction aunts
auprès aurez auriez auslesen auslösen automáticas automáticos autor autorisées autorisés autót avait avancées avancés
avant avenge avenue avere averred averse avert averted avete avez avidity aviez avions avons avuto await awake aware
ayant açmak babae babaye babbling babes babies back backed backing backs backward backyard bacon bade badge bagay
bahasa bahawa bahay bahaya baik bail bairn bake baked baker bakes baking balach balang bales balik ballach balls banco
band banded bandeja bandera bands banged banging banho bank banked banker banking banks banner banter barber barco bare
bared barely barest barge barked barking barks barley barn barns baron baronet barred barring bars barter base baseadas
baseados based basely baser bases basest basics basil basis basking bass bast basta basée basés bata batang batch
batean baten bath baths bats batter battered bauð baying bayonet bağlantısı bağlantıyı başa başka başla başlamadan
başlamak başlatmadan başlatmak başlatıp başlayıp başqa başta beach beaches beacon beads beag beak beaks beamed beaming
beams bean beans beards bearer bearing bears beast beasts beat beating beats beaver bedding beder bedre beds bedside
beech began beget beginnen begonnen begs behoved being beings bekerja beklediği beklendiği beklenen bekleyen beleeved
beleid belgeleme belgelere belie believed believers believes belle bells beloved below belts benar bench benches bend
bending bends benötigen benötigten berada berapa berasa berbagai berbagi bereid bergs berkerja berre besar beset beside
best bestaand bestand beste besten bete beten beter betre better bettered betting bhalach bhalaich bheag bhean bheidh
bheith bhith bhliadhna bhruidhinn bhùth biadh biasa biaya bibim bicicleta bicileta bidding bide bidh bidim bids bieten
bikes bikim biking bilgisi bilgiyi bilir bilirəm biliyorsanız bilmir bilmirəm bilmiyorsanız bilər bilərəm binaires
binaries binarios bind binding binds bins birch birds birinde birine birth bisa bisan bites bith biting bits bitten
biçim black blacks blade blades blame blamed blaming bland blandly blank blankly blast blasted blasting blasts blaze
blazed blazes blazing bleak bleating bled bleed bleeding blend blending blest bliadhna blight blind blinded blinding
blinds blink blinked blinking bloated blogs blond blood bloom bloomed blooming bloot blot blotted blow blowing blown
blows bluish blunt blunted blurred blurted blush blushed blushes blushing boarders boast boasted boasting boasts boat
boats bodde boding boiled boiling boils bolder bolster bolt bolts bond bonding bonds bone bones bonus book booked
booking books boom boomed booming boos boost booster boot booths boots borde border borders bore bored bores boring
borne boros bosom both bother bought boulder bounced bound bounded bounding bounds bowed bowels bower bowers bowing
bowling bowls bows boxed boxer boxes brace braced braided braids brains brake brakes brand branded brands brass brauð
brave braved bravely braver bravery braves breach breaches bread breadth breagha break breaks breast breasts breath
breathes breaths bred breeches breed breeding brewed bribe brick bride bridge bridged bridges bridle bridled bridles
brig bright bring brings brink brisk briskly bristly broiled broma brood brook brooks broom brosa broth brother brought
brown brows bruidhinn brunt brush brushed brushes brushing bræður brèagha bróður bubbling buhaton buháton bukan bulan
bulbs bulig bulky bulls bully bulun bunu bunun burada buraya burda buried burly burned burning burnt burnu burnumu
burnunu burst bursts bury burying buses bush bushes bushy busied bust busts busy butang butler butter buttered butáng
buying buys bálung báyung bísan bölümde bölüme bölümlerde bölümlere bölümünde bölümüne búlig cache cachée cackling
cadea cadra cafe cafea cafes cages caife cailín caite cakes calea called caller calling calls calmed calmer calming
calms calves camada camped camps canal canceled cancelled cancer candies candles cando cane canes cannon canoe canon
canso canst canta canter canyon cape capped caps caption cara carbon card cards care cared cares caress cargado
cargando caring carnal carne caro carr carriers carries carro cars cart carta carte carton carts carve carved carving
casa case cases cash casks caso casse cast caste casting castle casts cata categories cater cates cathair catro cats
cattle catégories causa cause causes caution caută cauză cave caves ceannach ceară cease ceased ceases ceasing ceist
celebrity celerity center centered centers centre centred centres cerca cero cerro certa certaines certainly certains
certainty certificates certificats chafe chafed chafing chailín chain chains chair chairs chaise chamada chamadas
chamado chamados chamando chamber chance chanced chances change changeable changed changement changer changes changing
changé chant chanted chanting chaos chap chaps chapter char chara charge chargeable charged chargement charger charges
charging chargé chargée charity charm charmed charming charms charr charred chars chart charts chase chased chasing
chasm chasms chaste chat chathair chatted chatter chattered chattering chatting cheannach cheannaich cheap cheat
cheated cheating check checks cheek cheeks cheer cheers cheery chef cheist cher cherry chesnut chess chest chestnut
chests chide chiedere chief chile chime chin chink chinks chins chipped chips chiudere chiudi chiusi choir choke choked
choking choose chopped chopping chops chor chord chords chores chorus chose chuck chucked chuckled chuimhne chuir chung
chunk chur chuyến chuyền chuyển chuyện chòir chóir chónaí chúng chœur chẳng chồng civil civill clamber clan clanged
clank clanking clap clapped clapping clar clare clarify clarity clară clase clases clash clashing clasp clasped
clasping class classe classed clatter clattered clattering clause clave claves claws clean cleaned cleaner cleaning
cleanly cleansed cleansing clear cleared clearer clearing clearly clergyman clergymen click clicking climbs clime
climes clinging clink clinking clipped cloak cloaked cloaks clock clocks clods clone close closer closest closet
clothes cloths clouds clover clown clubs clues clutch coachman coachmen coal coals coast coasting coasts coat coated
coats coaxed cock cocked codes coding coils coincidan coinciden coins cold colon colores colors colts combing combs
comedy comely comer comers comes comet comic comical coming commanded commence commenced commended commented commerce
comming commune commute companiei companii compete competing compilar compiled compiler complejas complejo complejos
complement complete completing completion completo complexas complexe complexion complexo complexos complied compliment
comply complète componentes components composing composting compute computers computes computing comunicarse
comunicarte comunități comunității concave conceit conceited conceits conceived concept conceptos concepts concerned
concerns concert concerted concerts concession concessions conclave concussion condole cone cones confession
confessions confidant confide confided confident confiding configurado configurando confine confined confining conflict
conflit congested conical conmigo connu cons consectetuer consectetur consent consented consents console consome const
consumers consumes conta contact contar contato contatto contended contendo content contented contention contentions
contents contenus contest contested contests context contexts conteúdo contient contigo contiguous continent contingent
continual continuall continuous contra contract contracted contracting contracts contrast contrasted contrasting
contrasts contrato contratto contribue contribuie contribuire contribuito contribute contributo contributori
contributorii contribuție control controles controls controul convened convent convention conventions converging
conversed conversing convert converted converties converting convertis converts conveyed conçu cook cooked cooking
cooled cooling coon cope copies copii copiii coping copse copses copying coral cord cords cores corner coroner corps
corpse corpses corral correctas correctos corredor correspondant correspondent corretas corretos corridor cors cosa
cosey cosmic cost costa costing costs cosy couch couched cough coughed could counsel counsell counsellor counselor
count counted counters countess counties counting countless countries country countryman countrymen counts county
courier cours course courser coursers courses coursing court courted courtier courting courtly courts cout cover
covered covering covers covert covet coveted cowed cowered cowering cows crabs crack cracked cracking crackled
crackling crags crammed cramped craned cranes crank crape crash crashing crate crater crates crave craved craving
crazed creado creaked creaking creando crear create created creates creating creation creek creeks creeps creezi crept
crest crested crests crezi criado criando cries crime crimes cringing croak croaked croaking crook crooked cropped
cropping crops cross crouch crouched crowd crowded crowding crowds crowed crowing crown crowned crowning crowns crows
cruelly cruelty crumbled crumpled crushing crutch création crée créée créées créés cuando cuanto cuarto cubes cues
cuidao cuidáo cuimhne cunele cunese cunesos cuneste cunestos curate cure cured cures curing curled curling curls curly
curse cursed curses cursing curt curtly curtsey curtsy curve curved curves curving cussed cónaí cœur cœurs dacht dagang
dagger daggers dahil daily dairy damage dames dammage damned damped damps dams dancer dancers dances danger dangers
danh dank daran darbo dared dares daring darling darned daro darted darting darts datang dated dates daukat dauzkat
dawn dawned dayen dazed daɣen ddydd ddysgu deach dead deadly deagh dealer deals dearer dearly dears deary death deaths
debased debated debera deberea debeva debounce decay decayed decaying decease deceased deceit decent decided decision
decisive decks declamation declaradas declarado declarados declaramos declarando declaration declare decorador
decorator decrease decreased decree decrees dedicate deduce deer default defaut defeat defeats defect defective defects
defence defenceless defences defend defended defending defends defense defenseless defenses defer deferred defied
defile defiled define defined definidas definido definidos definieren definierten definimos definindo defying defòra
degree degrees dehen deign deigned deigning deirfiúr deist deit deitu dejected dejection deklare deklarieren
deklarierten dela delay delayed delaying delen deleted delicate delicious delirious delude deluge demandojn demandon
demedhys demselben demòra denen denial denied denken denn denote denoted denounce denselben dental denying department
depend depended dependencias dependencies depending depends depleted deplored deployed deportment depot depots depraved
deprive deprived depriving depth depths deren derided derision derisive derive derived derives deriving dernière
derrière derselben descends descent descents deschide deschise described descried desde desee desen desert deserted
deserting deserved deserving design designed designing desks despatch despatched despise despite despot despots despues
después dessa desse desselben dessert dessous dessus desta deste detail detailed detailing details detained detaining
detect detected detection detective deter determine deterred detest detested detour deuce devedhys devez device devise
devote devoted devotee devour devrez devriez devuelvas devuelves dezakegu dezakezu değerlere değerleri değerlerini
değerlerle değilseniz değilsiniz dheirfiúr dhwygh dhywgh dhèanamh dhéanamh dialogo diary dicht dicit died dies diets
different différence différences différent différente différentes différents digest digested diho dilo dimes dined
dingen dinhi dining dink dino dioho diolo dipped dipping dira direct direito direkt direto dirua disco discount
discounted disido disio dismount dismounted dispatch dispatched dispense dispensed disperse dispersed displaced
displayed disso distract district diti ditu ditut dive dived divers diversas diversos divert diverted dives divest
divested divide divided dividing divine divined diving divining dixit dizimi dizini dizut diálogo diğerleri diğerlerini
diňleýärdiňmi diňleýärsiňmi doanh dobar dobra dobre dobrze docks docs doctoro documentacion documentación documentation
documentos documents dodged doelen does dogged doiho doing doino doit doiti doktoro dokümanlarına dokümanlarında
dokümantasyon dokümantasyonu dokümantasyonuna dokümantasyonunda doll dolor domaines domains domes domum donde done
donne donnée donum doodbleven doodblieven door dose doses dost dosyada dosyası dosyasına dosyasında dosyaya dosyayı
dots douar doubled doubling doubted doubting dour dove doves down downy dowry dozing doğrulaması doğrulamayı dragh
dragon dragons dragoon dragoons drags drain dran drank draughts drawing drawling drawn draws dread dreaded dreading
dreads dreamed dreamily dreaming dreams dreamy drearily dreary dregs dress dried drily drink dripped dripping drive
drivers drives driving droit droll drone droning droop drooped drooping drop dropped dropping droughts drove drown
drowning drugs drums drying drëch dröffst dröfft duela duels dues duhet duket dullness dully dulness duly durst dusky
dust dusty duty duuhia duutia dwingen dydd dying dysgu dâhil dèanamh déanamh débogage déboggage déboggueur déboguer
débogueur déclarées déclarés déclenche déclenchée défaut définies définis déplace déplacée désactive désactivée détail
détails détermine développer développeur dërch dínhi dóctor dóktor dónde dökümantasyon dökümantasyonu döndürecek
döndüren döndürerek döndürün dücht dźěćo dźěło earls earnings earns earrings ears earthly earthy ease easie east eats
edecek ederek edersek ederseniz edersiniz edhe edict edirəm edit editar edited editing editor editör ediyor edərəm
effect effet egingo egoism egotism eigin einige einigen einzige einzigen either ejecutable ejecutado ejecutan
ejecutando ejecute ejecuten ekledi eklendi eklenti elect elected election elections electron electrons elementos
elements eles eliminadas eliminados else ematen embowered emits empfehlen empfohlen empire employees employers
empowered enact enacted ended endued endure endured endures enduring engaged engin enginn enjoy enjoys enmity enraged
ensue ensued ensuing ensure ensures ensuring entender enter entera entered entfernen entfernten entice entire entirely
entirety entity entra entrada entre entred então enviado enviando envoy envoys envoyées envoyés envy equal equall eraan
erase erdhe erect erected erection erlauben erlaubten ernst errores errors erros erst erstellen erstellten ervan esas
esaten escola escolha escribas escribes esos especifica especificado especificando especifico específica específicas
específico específicos espera esperado esperando esperia espeta essera esserea esses esseva estas estender estes estos
estrada están estás estão estén estés eternal eternall eternally ether etmedi etmemi etmenin etmesi etmeyi etmeyin
etxea etxera evacuated evacuation evaluated evaluation eventos events evil evill evitar exact exacted exalt exaltation
exalted examples excel excelled excited exciting executable executadas executado executados executando execute exemples
exert exhort exhorted exiled exist existance existed existence existing exists exit exited exiting exits expanded
expect expects expel expelled expend expended expensive expert experts expire explode exploded explore explored
explorers explores expone export exported expose expressely expressly extend extended extension extensiones extensions
extensive extensión external externall externally externas externos extorted extra exultation exécutable exécutant
exécute exécutent exécutée exécutées exécutés ezingo faca face faced facera faces faceva facie facing facite faction
factions facts faculty fada faded fades fading fahren faible faicinn fail failed failing fails faint fairly fairy faisg
fait faithful faithfull fala falha falling fallo falls false falso falta falter faltered faltering fame famed fangs
fanning fans farce fare fared faria farklı farkı farming farre farther farthest fase fast fastened faster fasting fated
fates father fathers fats fattened faulty favor favored favors favour fawning fazo fear feare feared fearing fearr
fears feast feasting feasts feat feather feathers feats feed feeding feeds feeling feels fees feet feint femeie femeile
fenetre fenêtre ferme fermée fete feum fever fewer fhaca fhada fhaicinn fhaisg fheum fhios fhois fhuar fiable fiber
fibre fibres ficar fiction fictions field fields fiend fiends fiery fifth fight fights fiind filed files filing filled
filling fills films filter filtered filtering filth financer financier find finds finely finer finery finger fios fire
fired fires firing firs first fisherman fishermen fist fists fits fitted fitter fitting fixar fixed fixes fixing
flagrant flags flakes flame flamed flames flaming flank flanks flare flared flaring flashing flask flasks flat flats
flattened flattered flattering flavor flavored flavors flavour flaws flayed fled fleeing fleet fleeting flesh fleshly
fleshy flies flight flights fling flint flirt flirted flirting flit flitted flitting float floats flock flocks floes
flood flooding floods flooring floors flour flown flows fluit flushing flustered fluttered fluttering flying foamed
foaming focus fodder foeman foes fokus folder folds folks folly fonction fonctions fond fonder font fontes fonts food
foods fooling fools football footfall footing fora forage foram forbore forborne force forced forcing fore forem
foreman forge forged forked forks forky form forma forme formed forming forms forse forta forte forth forts forty
foully found founder founding four fournies fournis fours fowls foxes fraction fractions frage fragrant fragte frail
frame framed frames framing frank frati frayed frazi frazo freed freeing freezing freight freighted fresh freshest
freshet freshly fria friction fridge fried friend friends fries fright frighted fringe frock frocks from front fronted
frost frosted froth frown fuar fuera fuerza fuit fulfil fulfill fulfillment fulfilment fullness fully fulness function
functions fund funding furs furthest fyrir fyrr føre førre fühlen führen gabh gable gables gaden gain gains gale gales
gallantly gallantry gallery galley gallons gallows gals games gaming gamle ganet ganit gansa gant gaol gaout gape gaped
gaping gaps garage garb garbage garsa gases gasp gasped gasping gasps gate gates gati gatoi gauge gaunt gauze gave
gaven gavout gayot gayót gaze gazed gazes gazing geben gedaan gedacht gedoen gedra geen gegaan gegen gehen gehst geht
geihst geiht gelag gelees gelesen gelmek gemacht gems general generall generic generieren generierten genetic gentleman
gentlemen gently gentry gerai geratu gerek germs gertatu gerti gerçek gesoen geven gevra gewag gewees gewesen gewinnen
gewonnen geçici geçişi geçmek ghabh giant giants gilded gilding gilt ginawo ginayo girded girt gjatë gjere gjerne gjeve
gjuhë gjumë glade glades glare glared glass glasses glassy glazed glide glided glides gliding globais globales globals
globe globes gloom glory gloss glove gloved gloves glowed glowing glows gnats goal goals goats godly gods golly goodly
goods gore gorge gory gown grab grabs grace graced graceful gracefully graces gradation grade graders grades graduation
grain grains grams grander grandeur grant granted granting grants grape grapes grasp grasped grasping grasps grass
grasses grassy grate grated grateful gratefully grating gratë grave graves graze grazed grazing grime grimly grimy grin
grinding grinning gripe grisly grit groan groom groped groping gross grouped grove groves growing growling grown grows
grunt grunting guess guest guests guide guided guides guiding guile guileless guilt guiltless guise gust gusts guts
gweles gweres gyveni gyventi görünmüyor görünüyor gösteren gösterin gözlə gözəl gəlir gəlmir habari habent haber habera
haberea habet habeva habla habría había hacer hacerse hacerte hadde hadst hafi hafta hafði haitoshi hala halda halde
hale halfway halka hallowed halls hallway halnya halted halten halting halts halua haluaa halved halving hamil hammer
hammered hamper hampered hana handa handed handing handled handlers handles handling hands handy hanged hanging hangs
hansı hanya hanı haply happy hard hardest hardly hardness hardy hares harness harps harsh harvest hash hasil hast haste
használd használnod használod hata hatari hatası hatayı hatch hate hated hates hath hatia hating hatred hats hatta
hatte hatten hatua haunt haunted haunting haunts hautoshi havde have haven haver having hawks hawss head headed header
headers heading headless heads healed healing health heaped heaps heard hearer hearers hearing hears heart hearted
hearth hearts heat heated heath heating heats heave heaved heaven heavens heaves heaving heed heedless heel heerd heile
heime heirs hele helped helps helst helt helyet helyett helyzet herbe herbs herd herds hereby heresy hers heróe hest
hides hiding higher hiking himself hinting hints hires hiring hisself hither hits hitta hitting hivyo hiyo hoard hoarse
hoist hoisted holds holes hollowed holy homeless homes homoj honestly honesty hooded hoofs hooked hooks hooting hoped
hopeless hopes hoping hopped hopping horde hordes horiek horoj horrek horse horseman horsemen horses hose hoss host
hosted hosting hosts hotel hotels hotly house houses hovel hovels huduma hujan humidity humility hunger hunt hunted
hunter hunting hunts huntsman huntsmen hurling hurting hurtling hurts huruma husky hussy hutan huts hver hwath hyvä
hyvää häneltä hänestä hätte hätten hætta høre hørte høyre ibang iconic iconos icons ideals ideas identifiers identifies
identify identity ifstream igen ihnen ihren ihtiyacımız ihtiyacınız iiwanan ilang ileri ileride ilian ilin iliyo
imagens images immense immerse immoral immorality immortal immortality immovable immoveable immunity impact impacted
impart imparted imparting imperious impervious importas imported importing imports imposts imprudence imprudent
impudence impudent impunity impurity inakuwa incense incited incline include incluidas incluidos inclure incluye
incluídas incluídos indebted inden indented indicado indicador indicando indicator indolence indolent inert infect
infected infections infectious infer inferior infernal inferred infested inflamed inflated influencers influences ingen
ingenious ingenuous inig ining injure injured inlaid inland inline inmate innate innen inner insect insert inserted
insidious insolence insolent inspect installieren installierten insure integradas integrados integration integração
integrieren integrierten intends intense intent intention intentions intents interação interior interjected internal
internas internos interred intersected interval into intro intégration intégrées intégrés inured invent invented
inventing invention inventions inventor inverted invest invested investing investor invidious invited inyong iostream
iring irmáns irmás ironic irons irrigation irritation isang ishe ishte isido isio isiyo island isles islets istediğimiz
istediğiniz isterseniz istersiniz istəmir istəmirəm istəyir istəyirəm itakuwa items itens itong iwanan iyong izin izni
içeride içinde içine işlemi işleri jaten jatuh jauh jealously jealousy jednym jedynym jest jests jeton jets jetën
joaten joins joints joka jotain jotakin jotka jouer jour jsem jsme judgement judgements judgment judgments jugar jumis
jums juzgar kaagu kaanu kabar kabila kadar kahon kamar kanila kanilang kaninang kanssani kanssasi kantang kanu kanya
kanyang kanyán kanán kaon karar karon karuyag karúyag kavagu kavahu kawagu kaya kayang kaysa keel keener keeper kein
keine keinen kennel kennen keras kernel kertas kertoa kertoja khiến khoác khác không khủng kids kindled kindly kindred
kinds kingly kings kishe kishte kiujn kiun kiến kjøpe kjøper kjøpt kjøpte kjører kjøtt klein kleine kleinen kneel knobs
knots knows kobohingkaangan kobohingkangan koda kodda kodieren kodlu kodu kodun kodunuzda kodunuzla koen koiho koiso
komen komencis komendis kommst kommt kompatibel kompatible komprenas komprenis kone konnte konnten konusu konuyu kopen
kopieren kopio kopiro koritapui koyun który którzy kuanza kuanzia kubwa kuelewa kueleza kuelezea kufikia kufunga
kufungua kuja kujua kukua kukuza kullanacak kullanan kullanarak kullandığımız kullandığınız kullanması kullanmayı
kullanıcı kullanılacak kullanılarak kullanımı kullanın kullanırsanız kullanırsınız kuna kunde kuona kuritapui kurudi
kusikia kusudi kutoa kutoka kutumia kutumika kuvuta kuvutia kuwa kwako kwanza kwao kwarta kwárta kände kékang kéndi
kéni kérdést kérést kétang können könnte könnten közönséget közösségek közösséget közösségnek kısmı kısım labas labeled
labelled labs lace laced laces lacked lacks ladder laden lads lair lakes lambent lambs lament lamps lance lancer lances
lanceur lands lane lanes langen lannen lapped lapping laps lapsed lapsing larch larder larger lashed lashing lass last
lasted lasting lasts latch latent later latest lather latter laual laufen laula launch launched launches lauten lave
laved lavorando lavorano lawer lawful lawfull lawns lawr laws lawyer lawyers layer layers laying leabhair leabhar
leaden leading leads leaked leaking leaks lean leaned leaning leant leaped leaping leaps leapt learn learned learning
learnt lease least leather leave leaven leaving leben leden leeft leer leert leest legale legali legate legati lege
leiden lejuar lending lendo lends lenge lens lent lento leren lese lesen lesse lest leste lets lette lettre leven lever
lexuar lezen liar liberal liberally libre libro librum libum licence licences licencre license licenses licențe licked
licking lieben liebt lied liegt liekas lien liens lies liesen lietas lieth lifelong lifted lifting lifts lightening
lighting lightning ligne lignes lijkt lijst liked likelihood likely likes liking limites limits limitées line linea
lineas lined lines lining linked linking links linn linting lions lire list liste listed listing lists lite liter
literacy literal literally literary litter lived livelier liveliest livelihood liveliness livelong lively liver livery
lives liveth living liwat liwát liées liés ljubi ljudi llamadas llamado llamados llamando llame llave llawr llegar
llegá llevar llevá llibre llibres lliure lliures llygad llygaid loading loads loafing loans loath loaves local locally
locked locking locks lodged lodger lodgers lodges lodging lodgings logged logging logo logos logs loins loiter
loneliness lonely longas longed longer longing longings longo longs looked looking looks loomed looming looped loops
loose loosed looting lordly lords lose loses losing loss losses lost loth lots loudly lounged lounging lovelier
loveliest loveliness lovely lover lovers loves loving lower loyal loyally loyalty lucid lunch lunched lunches lungo
luogo lurch lurched lured lurer lurid luring lurked lurking lying länge längre lære lærer lærte léinn líbro límites
línea líneas lösen löven lưng lương lượng maakst maakt maaram mabuhat mabuk macam mache machen madly madogo madra
magada magama maganda magbuhat mainly mair maith maize majeures majeurs major makes makina making makita maklik maksma
maksta makubwa malam malaman male males malyári mama mamma manager managers manages manche manchen maneja manejado
manejando manera manes manger manis mankas manlik manly manner manor manque mans mantel manter mantle manufacturers
manufactures manure many manákit manĝas maong maono maple maples mapya march marched marches marching mare mares marked
markers markets marking marks marque marred married marry mars marsh marshes marveled marvelled marvellous marvelous
mary masam masked masks masquén masquín mass massed mast master mastered masterly masters mastery masther masts masuk
masákit matanda match matched matches matching material maternal mates math maths matka matre mats matter mattered
matters mature maupay mayaman mayest mayor mayst mayári maze mazes mazuri maáram maður maúpay mačka mchango mdogo meal
meals meanly means meant meat meats mecum medals media mediaeval mediation medication medico medida medieval medio
meditation meer meeting meets meie meile meilleures meilleurs meitä mejor melio melting melts membaca membawa membeli
memberi membri membrii membuatku membuatmu mena mengatakan mengenai mengenali menial menja menor menos mens mental
mente mentre menus menyatakan menús mercy mere merge merry mesa mesma meta metal metals meteor meter metin metni meum
mfano mhadra mhaith mhath mhúinteoir miaka miar michango midday midst midway mien mifano mikubwa mikutano miles mills
minat minding minds mine miners mines mingi mingine mining minta minus miongozo mipaka miradi miser mislead misled miss
missed missile missive missä mist mister mists mistä mitawlí mitindo mitä mixing mkono mkubwa mkutano mmoja moaning
moans mochte mocks modale models modes modest modestly modesty modo module modules modulo modèle modèles moest moet
moginum mogium moins mois moist moja mojem mold molest monato mondo money mong monginum monkey monks mono monon monter
month months monto monton montre montrer montée mony moods moons moor moors moral morality morally morals morem morning
mortal mortality mortally mortals most moth motor motors mould mound mounds mount mounts mouse moustache moustaches
mout mouth mouths move moved moves movie movies moving mowed mowing mpya mradi msingi mtindo mudah muista multiples
multiplies mumis mums mundi muni murah muse musst must musta mustache mustaches muster mustered mutta mutter muttered
mutual mutuall muuta mwingi mwingine mwongozo mzuri mâine média mítawlí módulo móður möchte møtet møtt múinteoir
múltiplas múltiplos müssen müssten naive naked named namin naming namon nani natin nating native naton natural naturall
nave ndani ndivyo ndiyo nearby nearly nearness neatly neatness neben necesarias necesarios necesitas necesites
necessárias necessários need needles needless neigh neither neked nesnesi nesneyi nesse nest neste nested nestled nests
nether nets nettled neuen neuer neural neutral never newer ngaavi ngadi nganhi ngani ngavi nghiên ngoài ngoại ngumu
nguvu ngưng nhiên nhiêu nhiều nhưng những niajn nian nice nicely nicety niche niece niekto nigh nikto nilang ninety
nitong niyang niyong niên niḍen njeri njëri nniḍen nobleman noblemen nodes nodi nodii nods noise noises noivo noopo
noose nopo nosas nose noses note noter notes nothing notice noting notre nouns nova novac novaca novas novca novice
novo nowise nuestras nuestros nultempe numero nunca nunha nuns nuntempe nákung nánung número oameni oamenii oaths oats
object objects objet objets observers observes oder odpowiedni odpowiedzi offence offense officers offices oileanach
oileanaich olacak olamaz olarak olası older olduğuna olduğunca olduğunda oleme olete olmadan olmalı olmanız olmasa
olması olmaya olmayan olmaz olsanız olsun olun olurdu oluşturduğumuz oluşturduğunuz omens omternt omtrent once onder
onely only opcional opens operation operations optional opération opérations order original originall orohian orotian
osaa ostaa otce otec other ottaa otter oturdu ounce outer outlet outline outlined outlive outlived outset ouvertes
ouverts overcame overcome overhead overheard overlook oversatte oversette overtook owed owing owned owning pace paced
paces pacing packed packing packs padėjo pagar page pages pagina pagkaon pagkáon pagong paid pails pain pained pains
paint painted painter painters painting paints paired pairs pakaazan pakazaan palace palaces palate paled paler pallor
palm palms paltry panahon panahón pane panels panes pangs pans panted panting pantry pants paper parameter parametre
parametresi parametresinde parametresine parametreyi parar parce parched parches pardon pare parece parede parent
parentheses parenthesis pares parked parking parks parla parlar parle parles parlor parmi parola parolar parse parsed
parsen parser parsing parson parsonage parte parted partes parti parting partly parto parts party parve paròla pasa
pasada pasado pasando pasar pasea paseá pasos pass passado passados passamos passando passe passed passen passer passes
passing passwd paste pasá patch patched patches pate patent path pathos paths patient patre patro patted patting pauper
paura pausa pausada pause paused pauses pausing paved paving paying payong pays peace peach peaches peaked peaks peal
pealed peals pearl pearls pears peas peasant peasantry peeling peeped peeping peered peering pegar peke pekee pelted
pena pence penna pensa penso peor pequeñas pequeños peran perch perforce performanslı performansı performe permettant
permettent perna pero perpetual perpetuall perro perso personage personalizadas personalizados personnalisées
personnalisés pesan pesar pescao pescáo pessoais pessoas petals pets petted petty phase phases phone phonograph
photograph phrase phrases piazza pick picked picking pickled piece pierce pies piety pije pikes piled piles piling
pills pilot pilots pinch pinched pinching pines pining pins pint pints piped pipes piping pitch pitched pitching pitied
pitkä pits pitted pity pitää pivot pixeles pizza place placed places placid placing plage plaid plain plainer plains
plait plaited plan plane planes planet planets plank planks planned planner planning plans plant planted planter
planting plants plaster plate plated plates played player players playing plays pleaded pleading pleasant pleasantly
pleasantry pleased pleasing pliant plied plorant plorat plot plots plumes plump plums plus plush plying poder podr
podrá poems poets point pointed pointer pointers pointing points poise poised poison poisons poked poker poking polar
poles police policeman policemen polite pomoc pomóc pond ponder pondered pondrá ponds poner pont ponto pontos poplar
popped popular porch poring portent porters portion portions ports pose posed poses posible poslati possible posso post
postati posted posters posting posto posts potent potera poteva potion potions pots pouch pounced pound pounded pounds
pouring pourrez pourriez pouting povis powder powdered power powered poñer praca prace practice practiced practicing
practise practised practising pradėjo prank pranks prawa prawdopodobne prawdopodobnie prayed prayer prayers praying
prays preach preachers preaches precious precipe precize preclude pregui preguntá prelude premises prenar presar
presence presences present presented presenting presents pretence pretences pretense pretty prevent prevented
preventing prevents previous preying price priced prices pricing prick pricked pricking pride prided priguntá prije
prime primeras primeros primes prince princes princess print printed printer printing prints prise prison prisons prize
prized prizes probe probed probing proces procesos process processed processes processing procession processions
processor processos processus prod produces product products produit profess professed professes professing profession
professions professor profound proiect project projected projecting projection projectors projects projede projekt
projektbe projektben projektből projektedet projektedhez projektek projekteket projektekhez projekten projektnek
projektre projektről projelerde projelere projenizde projenize projesi projet projets projeye projeyi projeyle promises
promoted promoting prompted prompting prone pront pronto prontos proper properly property propound propped prose
prosper protect protected protecting protection protectors protects protest protested protesting protests protocoles
protocolos protocols proud prove proved providers provides proving provis prowess prying prègui précédentes précédents
présent próprias próprios próximas próximos prøvde prøve psalm psalms publiczne publicznie pudo puedo puhu puhuu
puissant puissent pulse pulses pump pumps pumunta pups pupunta purchasers purchases pure purer purge purged purify
purity purr purse pursed purses pursue pursued pursuers pursues push página päivä päivää péngari péngári píxeles přijel
přišel quadro quali qualify quality quando quanto quarreled quarrelled quarto quasi quatro quienes quieres quiet
quieted quilt quilts quit quite quits quitted rabble raced races racing racked racking radio rafts rage raged ragged
raging raid raids railing rails rained raining rains raise raised raises raising raked rally ramble rambling rampant
rampart random range ranged ranging ranked ranking ransom rapid rapids rapine rated rates rating ratings ratio rats
ratón raved ravine ravines raving ravings razón reached react reacted reactor reader readers reading real reall really
reaped reared rearing reater rebel rebelled rebels rebound recall recent recevez recevrez recht recipe recite
recommande recommandée recommenced recommended rect rector redder redress reeds reefs reeking reel reeling refactor
reference referenced refined refining refuge refuse refused refute refuted regain regained regaining regal regard
regardas regarded regarding regardis regards register registre reign reigned reigning reigns rein reined reins rejoiced
rejoined related relating relaxed relaxing relay relent relenting relics relied relies religions religious rely relying
remain remainder remained remaining remains reminder remote remove remplace remplacée render renders rending rendre
rented rents repay repeat repeated repel repelled repent repented repining replace replied replies reply replying
report reported reporting reports representado representando repress reprieve repulsion repute reputed requiere require
requite resaltado researchers researches resent resented resenting reset reside residue resign resigned resigning
resolution resolutions resolve resolved resolves resolving resort resorted resorting resorts resound resource resources
ressource ressources rest rested rester restrains restraints rests resultado retain retained retaining retains retard
retarded retornado retornando retornara retornava retort retorted retourne retournée retrieve reuse reveal revealed
reveals revel revelled revels revenge revenue revered reverence reverenced reverend reverie reveries reverse reversed
reverses reverted revile revive revolted revolting revolution revolutions revolve revolved revolvers revolves revolving
revulsion reward rewarded rewarding rewards reykir reyktir rico rics ride rider riders rides ridge ridges riding rife
rifle rigged rigging ringed ringing rinsed ripen riper ripped rippled risc risco rise risen rises rising risking risks
rites river rivers roads roamed roaming roared roaring roars robes robot robots rocks rods roles rolls roofed roofs
rooks rooms root rooted roots ropes rose roses rotted rotting rotund roubles rouge round rouse roused rousing route
routed router routers routes routeur routeurs routing roved roving rowed rowing royally royalty rubles ruining ruins
rulers rules rumbled rumbling rumpled running runs ruse rushed rust rusted rustled ruts récent részt részét rôles saam
saan saber sabia sable sabre sack sacked sacks sacred sadly safely safer safest safety sage sagely sagen sages sagten
saiba said sailed sailing saint saith sake sakes sale sales sallow sally salmon salon saloon salt salvage salve same
sana sand sandals sands sang sanoi saor sapling sartain sartin sarve sash sate satin satoi satu savage savagely
savagery save saved saves saving savings saviour savour sawed sayd sayed sayes sayest saying sayings says sağlanan
sağlayan scale scales scalps scandals scanf scant scanty scarce scare scared scarf scarred scars scatter scattered
scattering scenes scent scents scepter sceptical sceptre schema schemas schlafen schlagen schon schätzen schéma schémas
schön schützen scola scold scoop scope score scored scores scoring scorn scorned scour scoured scourged scout scouted
scouting scouts scrap scrape scrapes scraps scrawled scream screamed screaming screams screw screwed scroll scrub
scuffle scurry scurvy seal sealed sealing seals seam seamed seams sean searched searchers searches seas seat seated
seating seats sebarang sebelah sebenar sebentar seberang secondes seconds sects sedan sedang sedate seed seeds seeing
seek seeking seeks seeming seems seen seer sees seguindo segundo sehen seien sein seine seinn seize seized seizes sejak
sekarang seker selection self selge sell selle selling sells selves semak semper sempre semua semula semver senado
senang senate send sender sending sendo sends senior senor senso sent sentado sentient sentiment sepak sepan separadas
separados sera serape serge series serve served server servers serves serveur serveurs service servido servie servile
serviço serão sería setelah sets setting settlers settles settling sevel seven sever several severall sewed sewing sewn
sexes seção sgàth sgìth shade shaded shades shading shady shaft shake shaken shakes shaking shaky shall shallow
shallows shalt shame shamed shameless shanty shaor shape shaped shapeless shapes shaping share shared shares sharing
shark sharks shatter shattered shattering shave shaved shaven shaving shavings shawl shears sheaves shed sheds sheen
sheep sheer sheet sheets shelf shell shells sheltering shelves shewed shewing shewn shews shied shield shift shifts
shine shines shingle shipped shipping ships shirt shirts shkruar shkuar shock shocking shocks shoe shoes shone shook
shoot shooting shoots shopping shops shore shores shorn short shorts shot shots shouldering shouldest shouldst shout
shouted shouting shouts shove shoved shoving showed shower showing shown shows showy shred shreds shrewd shriek
shrieking shrieks shrine shrines shrink shrinking shrinks shriveled shrivelled shrub shtëpinë shtëpisë shuffle shunned
shuns shut shuts shuttered shyly siajn siamo sian sick side sides siege siehst sieht sieve sighed sighing sighs sight
sighted sighting sights sign signe signed signes signing signs sigur siitä silang silks sill siltä simmer simulate
since sinde sine sing singed singer singers singing single singled sings singur sink sinking sinks sinn sinned sinner
sinners sinning sins sinulla sinulta sinusta sipped sipping sire siste site sites sitisin sits sitting sitä siyang size
sized sizes skaam skeptical skies skiff skilful skilfully skill skilled skillful skillfully skimming skinned skins
skipped skipping skips skirt skirts skogen skolen skolo skopo skoven skule skulle skunk slack slain slang slant slapped
slapping slash slashed slate slave slaves slaying sleek sleep sleeping sleeps sleet slender slept slice slices slicing
slid slide sliding slight slighted slime sling slipped slipping slips slit sloop slope sloped sloping slowed slower
slowing slums slung slunk slyly smack smacked small smart smarting smash smashed smear smell smelled smelling smells
smile smiled smiling smite smith smiting smoke smooth smoothed smoothing smote smouldering snack snacks snake snakes
snapped snapping snare snares snart sneak sneakers sneaking sneden sneen sneer sneered sneering sneezed sniff sniffing
snore snoring snort snorted snorting snorts snout snowed snowing snows snowy snuff snuffed snuffing snug soaked soaking
soar soared soaring socks sodas soever sofas soil soiled sola solar sold soldierly soldiery sole solely soles
solicitors solicitous solid sollen sollten solve sona songs sonra sons soon soot sooth soothed soothing soportadas
soportados sore sorelh sorely sores sort sorte sorted sortie sorting sorts soruları sorunları sorèlh sour sourly sowed
sowing sown space spacious spade spake span spans spare spared sparing spark sparks spars spawn speak speakers speaking
speaks spear spears special speciall specially specialty specious speck specks sped speed speeding speeds speel spel
spell spelling spells spend spending spends spent spesso spice spices spied spies spike spikes spille spilled spillede
spilt spine spines spinning spire spires spise spiste spit spite spitting splash splashed split splitting spoil spoiled
spoilt spoke spoon sport sported sporting sports sposa spot spots spotted spouting sprawled spray spring springs sprite
sprouting sprung spurned spurning spurred spurring spying spécifie spécifiée spécifiées spécifiés squeaking squealing
sstream staat stable stack stacked stacks stade stage stages stagger staggering stags stai staid stain stained stains
stair stairs stake staked stakes stale stalk stalked stalks stall stalls stamp stamped stamps stand stands staple star
starched stare stared stares staring stark starring stars start started starting startled startling starts starve
starved starving stat stata state stated states statesman statesmen stati stating stats statue statues stature status
statute statutes stava staves stay stayed staying stays stdin stdio stdout steak steaks steal stealing steals steam
steamed steamers steaming steed steeds steek steely steep steeped steeply steeps steer steered steering steers stehen
steht stem stems step stepped stepping steps sterk sterling stesso stevel stew stewed stiamo stick sticking stiff
stifle stifled stile still stille stilled stillede stimulate stimulated sting stinging stings stink stinking stint
stipulated stir stirring stirs stisin stitch stitched stock stocking stocks stole stolen stolid stone stoned stones
stony stoop stooped stooping stop stopped stopping stops store stored stores storey stories storing stormed storming
storms stormy story stout stove stoves stowed strada straggled straggling strain strained strains straits strana strand
strands strange stranger strangest strangle strangled strangling strap strapped strapping straps straws stray strayed
straying streak streaked streaks stream streamed streamers streaming streams strew strewed strftime stride strides
striding strife strike strikes striking string strings stripe striped stripes stripling stripped stripping strips
strive strives striving strlen strode stroke stroking stroll stronger strongest strove strptime struck struggled
struggling strung stubble stuck studded studied studio study stuff stuffed stuffing stumble stung stunned stunted
sturdy stále suai suatu suave submit subset subtile subtle suck sudah suelo sueño sugod suis suite suits suivantes
suivants summit sums sung sunk sunod suns sunset suot super supernatural supernaturall superstitions superstitious
suportadas suportados suposa supot supper supporte supports supportée supportées supportés supprime supprimée
supprimées supprimés sure surely surer surety surge surly susah suspicions suspicious suwai svart svojou svoju svært
swagger swaggering swains swallow swallows swam swamp swamped swamps swans swap swapped swaps swarm swayed swaying
swear swearing swears sweat sweating sweep sweeping sweeps sweet sweets swell swelled swelling swells sweltering swept
swerved swift swimmer swimming swine swing swinging swings switch switched swoon swoop swooped swooping swore sworn
swung swydd sydd symboles symbols sympathies sympathise sådan sécurisé sécurité sélection séparées séparés süreci
süresi sürümünde sürümüne table tables tablets tacit tack tacked tact tager tail tails taint tainted take takes takie
taking tako takvo także talde tale taler tales talked talker talking talks taller tambahan tambahkan tamben tamed
tanben tanda tanezzayt tangaanak tanganak tank tanks tanong tanpa tanımlanan tanımlarsanız tanımlarsınız tanımlayan
tanımlayın tanımlı tanımı taong tapped taps tardy tarry tasked tasks tasted tattered taunt taut taxed taxes teach
teachers teaches teams tearing tears tease teasing tebbid tebɣid tech tecla teens teeth teir tejto tela tells tellus
temos tempat templat tend tending tendr tends tener tenets tenga tens tense tentar tente tenth tento tents tenía tepat
terme termo termos terms terre terão testar teste testes testify testily tests texte texts thanh thank thanking thanks
theater theaters theatre theatres thee theer theft theme then there thern these thet thick thicker thickest thicket
thickets thighinn thing things think thinker thinking thinks thinner thinning thirsty thirty thiết thiếu thiệu thoil
thong thongs thorn thorough though thread threading threads threat threats three threes thrice thrive throes throned
throng thronged through throws thrust thrusting thuaj thump thuyết thuốc thuộc thành tháng thèid thông thương thường
thắng thống tian ticas tick ticket tickets ticking tickle tickled tickling tide tides tied tiers ties tiger tigers
tighinn tikelt tikkelt tile tiles tilid tilted timber timbers timed timeless timer timers times timing tinan tinge
tinged tingle tingled tingling tinkle tinkled tinkling tins tint tinted tints tipe tipped tips tipte tired tireless
tires tiring title titled titles titre tiujn tiun tiết tlid tnezzayt toen toes toget toil tokudi tokuudi tomado tomando
tomto tonen tones tongs toniini tonini tons tooth topic topics topped toppled torch torches torment torments torn torna
torrent torrents torta tosto toto tottered touch touches tough tout towels towers towns toxic trabalhar trace traced
traces tracing track tracked tracking tracks tract tractor tracts trade traded traders trades tradesman tradesmen
trading trail trailed trailing trails train trained training trains trait traitor traits tramp tramped tramping
trampled trampling trance trang tranh tranquility tranquillity transit transmit trap trapped traps traveled traveler
travelers traveling travelled traveller travellers travelling trays tread treading treat treaties treating treatise
treats treble tree trees tremble trend trending trends trial trials tribalhar tribes tricas trick trickle trickled
trickling tried tries trifle trifled triple tripled tripped trips trong tropics trot trotar troth trough trout trouve
trouvée trovano trovar trovato truce truck trucks true truest truet trump trung trunk trunks trust trusting truḥeḍ
trying træet træt trình trông trương trường trưởng trắng trọng trống tuaj tubes tubig tubs tuck tuga tugna tuig tuned
tunes turime turite turned tutorial tutoriel tutubpoon tutumpoon tuyết tuyệt tveir twain twigs twin twinkle twinkled
twinkling twins txeddmeḍ txedmeḍ txemmeḍ tying typing támung táung tässä tästä tätä tåget tèid tình tướng tưởng tượng
tṛuḥeḍ uang ukahitaji ukataka ulang umulan umuulan unable unahitaji unang unarmed unataka unavyofanya unayofanya
unbending unbounded uncaught uncertainly uncertainty under undergone undertone undeserved unduly unele unelte unending
unfit unfold unfounded ungraceful ungrateful unharmed unicorn union unison unit united unkind unlawful unlawfull unload
unreasonable unreserved unruly unseasonable unser untaught unter untied until untold untried unwanted unwind unwonted
upang upload usabas usable usadas usado usados usamos usando used user users uses usted utahitaji util utilisait
utilisant utilise utilisent utiliserez utiliseriez utilisée utilisées utilisés utilizadas utilizado utilizados
utilizamos utilizando utilizatori utilizatorii utilizzando utilizzano utilizzato uvicorn uygulamada uygulamanıza
uygulamanızda uygulaması uygulamasına uygulamasında uygulamaya uygulamayı vacation vague valaki valakit valami valamit
vale vales valge valiant valides validées valor valour value values valve vamos vanished vapor vapour variant varios
various varnished vases vaulted vaunted veamos vegen veidi veils veini veins veist veit veken vekis vendte vendu vendé
venen veneramur venerantur veneratur venis venn vente venu vené vera veraltet verda verdi vereisen vereisten verge veri
verify verily verirseniz verirsiniz verisi veritabanına veritabanında veriyi verið verka verle verme vero verse version
versiones versions versión verso verwaltet verð verða vial vice vices vidar vidas video vider vidit vidéo vidět vielh
vier vila vilja vilje villagers villages villainy villany ville vines vinnur vinur violent violet visai viselkedést
viselkedését visi visita viską vista viste visą vita vital vite vivar vivas viver vixit vièlh viņai viņi vjeter vjetër
vocation voegen voelen voice voices voire volgen vore vorte vote voted voters votes votre vowed vuelta vuelva vàser
vége végre véser vôtre vědět waaraan waarvan waded wading wafted waged wager wages wagged waggon waggons wagon wagons
wailed wailing waist wait waited waiter waiters waiting waits waked waken wakened wakes waking walked walking walks
walled walls wand wander wandered wandering waned waning wanted wanting wants waray warder ware waren wares warily
warmed warmer warming warmly warned warning warp warped warre warring wars warten wary waráy washed washes washing wast
wasted wastes wasting watchers watches water watered watering waters watts wave waved waver wavered wavering waves
waving waxed waxen wayes ways weak weaken weakened weaker wearer wearily wearing wears weary weave weaver weaving
wedded wedding weder wedged weeds weegt weeks weeps weer weet weier weighed weighs weight weighted weights weit weißt
welded welled wench wending werde werden were weren werken werte werven wesen west weten what wheat whenever where
wherever whet while whiles whilest whilst whimpering whims whine whips whirling whirring whiskers whiskey whisky
whispering whispers whist whit white whiter whites whither whole wholly whomsoever whore whose whosoever wicked widely
wider widest widow widows width widźeć wieder wield wielded wight wigs wild wilder wildest wilds wiles wills wince
winced wincing winder winding window windows winds wine wines wing winged wings winked winking winner winners winning
wins winter winters wiped wired wires wisely wiser wisest witch with withal withall withdraw withdrew wither withheld
withhold wits wives wiźeś women wondered wondering wood wooded wooden woods wooed woolen woollen woolly woord woorden
word worded worden wording words wore worked working works world worlds worms worse would wound woven wrap wrath wreak
wreath wreck wrench wrenched wrest wrested wrestled wretch wretched wring wrist writ write writer writers writes writhe
writhing writing wurde wurden wären würde würden wědźeć wěźeś xeddmeɣ xedmeɣ yakın yapabilirsiniz yapan yapar
yaparsınız yapma yapmak yapman yapmanız yapmaya yapın yapıyor yarar yards yardım yarn yarns yatdım yatmaya yatıyor
yazabilirsiniz yazar yazarsınız yazma yazmak yazmanız yazın yaşıyor yearn yebda yebɣa yedda yedrimen yelhan yellan
yelled yelling yelped yelping yerde yere yerinde yerine yidrimen yoxa yoxsa zato zeer zeker zenbait zerbait zlato
znaczenie znacznie znamo znao znati znači zuen zuten çalışan çalışması çalışmayı çalıştıran çalıştırın çalışın écrire
écrite értem érzem était étant état întreținători întreținătorii örnekle örnekte üles ütles üzerinde üzerine þone þonne
þætti þótti şeması şemasına şemasında şemayı şifreli şifresi şifreyi šalia šalta ženou ženu əlində əslində άδειας
άδειες άλλες άλλον άλλος άλλους άλλων αδελφός αδερφές αδερφός ανοίγετε ανοίξετε ανοικτού ανοικτό ανοικτός ανοιχτού
ανοιχτό ανοιχτός αντιμετωπίζετε αντιμετωπίσετε απαιτήσεις απαντήσεις απασχολημένες απασχολημένος αυτές αυτόν αυτός
αυτών γράφετε γράψετε δημιουργήσετε δημιουργήστε δώσετε δώστε είμαι είναι είσαι είστε είτε εξετάσετε εξετάστε εξηγήσετε
εξηγήστε εργασίας εργασίες εταιρείας εταιρείες θέλατε θέλετε κάνετε κάντε καθένας κανένας κοινότητάς κοινότητας
κοινότητες μέλος μέρος μπορούμε μπορούσε νέος νέους ξεκινήσετε ξεκινήστε προγραμματιστές προγραμματιστής στόχος στόχους
συνεισφοράς συνεισφορές συνεργάτες συνεργάτης συντηρητές συντηρητής τρόπος τρόπους υπάρχον υπάρχουν χρήσης χρήστες
χρήστης χρησιμοποιήσετε χρησιμοποιήστε όλους όρος όρους όσους автентифікацію автентифікацією автоматический
автоматической автоматичний автоматичній адказаць адказваць адчуваць адчуваюць алган алман алмассызмы алмассыңмы
асинхронной асинхронный атрымліваць атрымліваюць базуються базується байна байнга барды бармы бары бирде бирле боддог
болады болгон болдог болды болно болон болоо болуы больше большое босдог будет будзеце будзьце будут була булды булса
булуы бъдете бъдеще бўлади бўлди бѫдеть бѫдєть вашем вашим введення ведаць ведаюць вечера вечерва вземе виведення видео
видно видѣти визначати визначили визначити виключення виконає виконуються виконує виконується використанні використані
використовували використовувати використовуватиметься використовуватимуться використовуйте використовуються
використовуєте використовується виходу вихідних вихідні вказали вказати включает включати включать включают включення
включено включити включить включно внешнем внешним вносит вносят внутренне внутренней внутренние внутренний
возвращаемое возвращаемые возвращает возвращают возен возын време встановили встановити входа входных входу вхідних
вхідні выбирать выбрать вывода вызвать вызывать выкарыстоўваеце выкарыстоўваецца выкарыстоўвайце выкарыстоўваць
выкарыстоўваюцца выкарыстоўваюць выполнить выполняется выполнять выполняются выхода выходных відкрийте відкриєте
відповідні відповіді вѣдѣти говорит говорят греши грешки дапамагаць дапамагаюць дапамога дапаможа делает делают денет
дечат дечет добри додайте додамо додано додаємо додаєте документацію документацією дополнительное дополнительной
дополнительные дополнительный дори доступа доступна дочернее дочерние другие другим другое другом дєвѧть дєсѧть дѣıати
дѣлати зависит зависят займацца займаюцца залежать залежить заменить заметить замінити запускает запускают запустить
запустіть земли змяняць змяніць зміна змінити змінна знадобитися знадобиться знаеме знает знаеше знайти знати
знаходзяць знаходзіць знают зємли иддэг изменить изменять използвайте използвате изучать изучить имеет имеют
импортируете импортируйте ирдэг используемой используемый использует используете используется используйте используют
используются йодын йомын йӧратат йӧратет каждой каждый каза казва какво какие какое както кара карта като келді келеді
келмеді келмейді кертыда кертына киеп килде килеп китап китеп клиентам клиентом клієнтам клієнтом кнагам книгам когда
кода кодиране кодирате което кожлаште които който коклаште командной командой конкретное конкретной конкретные
конкретный коса коска которое которой котором которые который которым кочкаш кочкеш кошташ коштеш която краху кращу
крити кѹрити күккә күледі күпкә көлде көтеп лектын лийынат лийыныт лицензией лицензий лудаш лудеш луктын лучше лучшие
любое любом любые любым ліцэнзій ліцэнзіяй майже майте мала марла маєте мейнтэйнер менiң мене менше менің многие многое
мога могла модаш модель моделі модуль модулі модыш можа можах можех можна молода молока моцна мэйнтэйнер містить
містять мүмкiн мүмкін надалі надані надходить надходять намного направете направите насколько наскільки насочете
насочите настолько настільки находится находиться находятся некогаш некоторое некоторые немного несколько нешто никога
никогаш никой ништо новое новой новые новый нужное нужные някога някой обоих обрабатывается обрабатываются образи
образу обрати общих объявляете объявляйте обычное обычной обычные обычный обяснете обясните оголосили оголосити
оголошували оголошувати огыда огына одним одном одразу ожидает ожидают означает означают окно окном окон оксам омсам
операцией операций операцію операцією опиционально определить определять опционально опцію опцією основні основі
остальное остальные ответа отворете отворите откроете откройте открытом открытым относится относиться отправляет
отправляют отримали отримати отримає отримаємо отримаєте отримує отримуємо отримуєте отчета официальной официальный
пайшоў парла парола перевірите перевірити перевірте перевіряти передайте передані передаст передачі передаёт передаёте
передаєте перейдите перейдёте переопределить переопределять побачили побачити повернули повернути повертаються
повертається поддерживает поддерживается поддерживают поддерживаются поддържане поддържате подобаються подобається
позволяет позволяют пойти поле получает получать получают получить пользователем пользовательские пользовательское
пользователям помислете помислите помогает помогают помочь помощь понадобится понадобиться понадобятся после потому
потрібен потрібне почти поэтому появится появятся права правы прайшоў праца працы предоставить предоставляет
представить представляет предыдущей предыдущий придется придётся приемане приемате приемете приложением приложениям
применяется применяются принимает принимают присутствует присутствуют проверить проверять продакшені продакшні
проследяване проследявате простое простые прыйшоў путям путём работает работают работиме работите рабіць развертывание
развертывания развёртывание развёртывания ранее раннее рахмет рақмет решать решить робили робити роботи робяць робіць
розглянемо розгляньмо рівні різні сабой сайнд самай самий самое самой самом самые самый самым самій санд сапраўдны
сапраўды своей своем своим свой свою своём своєю своєї свої сгенерированной сгенерированный серверну серверу сказали
сказати сколько следующее следующей следующем следующие следующий следующим сложнее сложные служи случи слушал слышал
собственное собственные содержат содержащей содержащий содержит создайте создаст создаёт создаёте соответствует
соответствуют сохранить сохранять споделите споделяте спробуйте спробує спробуєте спрощує срок стана стандартной
стандартну стандартный стандарту становится становятся становяцца становіцца стаць стаіць створили створити створить
створіть стиль столь столько стосуються стосується страна строк существует существуют сөйледі сөйлейді также такие
таким такое таком текущей текущий телем телим тидым тидын типам типом требует требуют тугай тудым тудын тулды тулы
тунемаш тунемеш турыда турында тушко тушто тыгай уверете уверите уйлаган укажете укажите указанной указанный улаан
улыда улына умеет умеют урлаган ухаан участникам участником функцией функций функцію функцією хареса харесва хочеши
хочєши читали читати шартлады шартлары шкемын шкетын шого шоҥго ыштат ыштет является являются імпортуйте імпортуєте
інформацію інформацією інший іншій ўдзельнічаць ўдзельнічаюць ўносяць ўносіць өдөр өндөр այդքան այնտեղ այնքան այստեղ
այսքան անել անում առնել ասում ատում երբեք երեք լինեի լինի կարդում կարծում համար հիմար մասին միասին նրանից նրանց ուզում
ուտում
"""
