"""Words that are one letter away from another word, so that neither is a typing error of the other: house and horse.

Words of at least four letters of which `edits_of_spelling` would take one for the other. Counted in two ways: in
books, documentation and sentences that people wrote in forty languages, words that stand in several texts; and the
frequent words of twenty languages that spelling dictionaries know (frequencies of Speer's wordfreq, 2022: English from
0.4 in a million words, other languages from 2 to 16).
"""

WORDS = """
aalen aanbevolen aanbidden aanbieden aanbod aangeboden aangedaan aangegaan aangekomen aangemaakt aangenomen aangepakt
aangepast aangeraakt aangeraden aangereden aangetast aanhang aanklagen aankomen aankomst aankomt aankoop aankopen
aanloop aanmaken aanraden aanraken aanslagen aanspreken aantal aantallen aantrekt aanval aanvallen aanvang aarau aarde
aardse aargau aasian abad abade abadi abajo abalar abandonadas abandonado abandonados abandonan abandonando
abandonnant abandonne abandonnent abandonnée abandonnées abandonnés abang abate abattre abbandonando abbandonano
abbandonare abbandonate abbandonato abbau abbauen abbia abbiamo abbiano abbienti abbinamenti abbinamento abbonamenti
abbonamento abbracciato abeja abenteuer abenteurer aberta abertas aberto abertos abertura abete abfahrt abfall abflug
abgabe abgaben abgebaut abgeben abgefahren abgefangen abgeführt abgegeben abgegebenen abgehalten abgehen abgehoben
abgeht abgehängt abgehört abgelegt abgelehnt abgenommen abgeordnete abgeordneten abgerechnet abgerufen abgesagt
abgeschafft abgeschlossen abgeschlossenen abgeschossen abgeschrieben abgesehen abgesetzt abgesprochen abgestellt
abgewiesen abgezogen abgibt abhalten abheben abhängen abia abide abiding abiertas abierto abiertos abile abili ability
abilità abita abitano abitante abitanti abitare abitata abitate abitati abitato abitava abitazione abiti abito
abituali abituata abituati abituato abkehr abkommen ablak ablauf ableben ablegen ableger ablehnung ableitung ablesen
abnahme abnehmen abnimmt abode abogado abogados abondance abondante aborda abordado abordados abordam abordando
abordar abordare aborde abordou abords abordés abort abortar abound about abouti above abra abraçando abreise abres
abriendo abriga abrigos abrimos abrufen abruti abrégé abría absage absagen absatz abschaffen abschaffung abschluss
abschlüsse abschreiben abschuss absence absent absente absetzen absicht absichten absolvenți absolvieren absorbe
absorption absprache absprachen absprechen abstammung abstand absteigen abstellen abstieg abstimmung absurdas absurdos
absätze abtreten aburridos abusar abuse abused abusent abuser abusers abuses abusing abusé abwehr abweichen abwenden
abwesenheit abzeichen abziehen abzug abzugeben abzuhalten abzulegen abzunehmen abzusehen abzusetzen abzuwenden acaba
acababa acabada acabado acabados acabamos acabando acabar acabara acabaram acabaría acabava acabo academics academies
académicas académicos acadêmicas acadêmicos acaso acasă acatar accadde accade accademia accademica accadere accede
accedere accende accendere accendi accendo accenno accensione accent accented accenti accento accents accept acceptant
accepte accepted acceptent acceptes accepts acceptée acceptées acceptés accertare accertato acces accesa accese accesi
acceso accesos access accessi accesso accettando accettano accettare accettata accettate accettato accetti accetto
accolgono accolta accolte accolti accolto accompagnait accompagnano accompagnant accompagnare accompagnate
accompagnato accompagne accompagnent accompagnée accompagnées accompagnés acconto accordant accorde accordent accordi
accordo accords accordée accordées accordés accorge accorgi accorgo accorgono accorse accorsi accorta accorti accorto
accosta accroche accueillant accueille accueillent accueillie accurata accurato accursed accusando accusano accusant
accusata accusati accusato accuse accused accusent accusers accuses accusée acea aceasta această aced aceder aceea
aceeași aceia aceita aceitando aceitar aceitaram aceite aceitei aceito aceitos aceitou acela același acele acelea
aceleași acelerado acelor aceluiași acende acender acento acentos aceptaba aceptada aceptadas aceptado aceptados
aceptamos aceptando aceptar aceptaría acepte acepto acer acera acerca acercado acercando acercar acercarse acerco
acero acerta acertada acertado acertar acertei acerto acertou acervo aces acesa acessa acessado acessando acesso acest
acesta acestea acesteia acestuia acetic aceto achado achados achamos achando acharam achavam ached aches acheter
acheteur acheté achetée achetées achetés achever achevé achevée achievers achieves aching achse achsen achte achten
achteraan achterban achteren achterin achète achève acid acide acides acidity acidità acido acids acierto aciertos
acilen acima acker acknowledgement acknowledgment aclarado acompanhada acompanhadas acompanhado acompanhados
acompanhando acompanhava acompañaba acompañada acompañadas acompañado acompañados acompañando aconteceram acontecerem
acoperire acoperite acorda acordada acordado acordados acordar acordat acordate acordou acordó acorn acostado
acostarme acostarse acostumbrado acquisire acquisita acquisite acquisiti acquisito acquista acquistando acquistano
acquistare acquistate acquistato acquisti acquisto acre acreditam acreditavam acreditem acres acrescentado
acrescentando acrid acta actas acte acted actele acteren actes acteur acteurs actin acting action actions actitud
actitudes active activități activității activée actor actores actori actorii actorul actos actuado actual actualizado
actuando actueel actuele actul actúa acuario acude acuden acuerdas acuerdos acumulado acumulando acusa acusada acusado
acusando acusar acuta acuti acuto acuzat acțiuni acțiunii adada adakah adalah adam adama adamla adamlar adamları
adamların adamsın adamı adamın adana adaptada adaptado adaptados adapte adapters adapting adaption adaptive adaptée
adaptées adaptés adası adat adatok adattare adattato adaya adaylar adayları adayı added adder addiction addictions
addictive adding addio addition additions additive adecuadas adecuados adeguate adequadas adequados adern adeus adgang
adiada adiado adiar adicción adicionadas adicionado adicionados adicionamos adicionando adición adil adição adjuk
adják adler adli adligen adlı administrare administrativas administrativos admins admira admirado admire admirers
admires admiro admis admise admitido admitindo admito admits adnak adobe adolescence adolescente adolescents adom
adoptada adoptadas adoptado adoptados adoptando adoptant adoptarea adoptată adopte adoptent adopters adopting adoption
adoptive adoptée adoptées adoptés adora adoram adorando adorano adorar adorato adore adored adoring adorn adorned
adorning adorno adoro ados adota adotadas adotado adotados adotando adotar adotou adottando adottano adottare adottata
adottate adottati adottato adquiridas adquirido adquiridos adresinde adresine adressant adresse adressent adresser
adresses adressé adressée adressées adsorption adta adtak adták aduce aducă adulți adunk adună adunării aduse adusă
advent adventurers adventures adversas adverse adversos advert advertisers advertises advice advices advise advisers
advises adviseur advisors adım adımda adımı adın adına adında adını adının adıyla aerea aeree aerei aerial aesthetic
afaceri afară afastado afastados afastando afdeling afectadas afectado afectados afectando afectar afetadas afetado
afetados afetando affald affecte affectent affectée affectées affectés afferma affermando affermano affermare
affermato affermava afferra afferrare affet affichant affiche affichent affichée affidare affidate affidato affirmait
affirmant affirment affitto affrontando affrontano affrontare affrontate affrontato afgang afgelegd afgeleid afgerond
afgrond afholdt afiada afición afirmado afirmando afla aflau afleggen aflição aflu afonso afora afore aforo africaines
africains africanas africanos afrikassa afspraken afspreken afsted aftale aften after afwijking afwijzen afzeggen
again agape agarra agarrado agarrando agarrar agata agate agave ageing agencji agenda agendo agent agente agenti
agenți agenția agenții aggiornare aggiornate aggiunge aggiungere aggiungerei aggiungersi aggiungete aggiungi aggiungo
aggiunse aggiunte aggiunti aggiunto agile agility agin agindo aging agio agire agissait agissant agissent agita
agitata agitato agitazione agite agito agitée aglio aglow agneau agnelli agnello agone agora agosto agota agotado
agrada agradar agregado agregando agresivos agresser agresseur agressivos agressé agressée agro aground agrégé agua
aguardam aguardem aguas aguda agudo ague aguja agujas agung ahlak ahnen ahogado ahora ahorra ahorrado ahorrando aidant
aide aided aident aider aidera aiderait aides aidez aiding aids aidée aidés aient aies aigle aigles aiheesta aiheista
aiheita aihetta aiheuttaa aiheuttama aiheuttavat aika aikaa aikaan aikana aikansa aikoja aikojen aikuinen aikuisten
aile ailed aileden ailem ailenin ailes ailesi ailesine ailier ailing aille aimable aimait aimant aime aimed aiment
aimer aimerait aimes aimez aiming aimé aimée aimés aina ainda aineen aineet aineita ainetta aino ainoa ainsi aion
airde aire aired aires airing airliners airlines airs aise aisladas aislados aisé aisée aisés aito aitoa aiuta aiutaci
aiutami aiutando aiutano aiutante aiutarci aiutare aiutarli aiutarmi aiutarti aiutarvi aiutata aiutate aiutatemi
aiutati aiutato aiuti aiuto aivojen aivot ajaks ajalla ajalta ajang ajansı ajaran ajassa ajasta ajattele ajattelee
ajattelen ajattelin ajena ajenas ajetaan ajili ajoin ajoissa ajout ajoutait ajoutant ajoute ajoutent ajoutée ajoutées
ajoutés ajtót ajuda ajudado ajudando ajudaram ajudarem ajudo ajungă ajusta ajustada ajustado ajustar ajute ajutor
ajutorul ajută akadt akan akar akarja akarják akarnak akarok akart akarta akartak akarták akaun akbar akce akci akcie
akcií akcje akcji akcí akiket akikkel akiknek akinek aking akivel akla aklı aklıma aklımda aklımdan aklın aklına
aklını aklınıza akong akrab akseptere akte akten aktie aktien aktier aktion aktive aktiven aktivisten aktivity aktor
aktualnie aktywnie akurat akute akuten akzeptiere akzeptierte akıl akıllı akım akın akışı akşama alaa alabado alabilir
alacak alak alakalı alakası alakja alakul alakult alakú alalla alalım alam alan alana alanda alang alanlar alanlarda
alanları alanlarında alanı alanın alanına alanında alapja alapul alapuló alapított alapú alarak alarm alas alasan
alasannya alat alay alayım alba albay alben albergo albern albero albi albtraum album alcalde alcanza alcanzaba
alcanzado alcanzando alcança alcançado alcançando alcol alcool aldaar aldeia aldeias alder alderman aldermen alders
aldı aldılar aldım aldın aldığımız aldığını alea aleasă aleatórias aleatórios aleg alega alegando alegar alege alegeri
alegra alegria alegría aleja alejadas alejado alejados alejamiento alejar alejarme alejarse alejó alemanas alemanes
alemães alemãs alene alentar alergia alert alerta alertar alertas alerted alertou ales alese alet aleta aletaan aletas
alettiin alevi alexandra algas algemeen algemene algen algum alguém alheia aliada aliado alianza aliança alias alibi
alice alicia alien aliena alieno aliens alienta aliento alight align aligns alike aliment alimenta alimentado
alimentando alimentare alimentari alimentato alimente alimento alito alive alkaa alkuperäinen alkuperäisen alla allait
allan allant allarmi allas allay alle alleata alleati alleato alledged allee alleen allegati allegato allege alleged
alleges allegra allegria allein allele alleles allem allemandes allemands allen allena allenamenti allenamento
allenare allenato allenatori aller allerede allergia allergica allers allerta alles allevamenti allevamento allevatori
alleviare alley alleys allez allie allier allions allié alliée alliées alliés allocation allocution allonge allongée
allons allontanano allontanato allow allows alloy alloys allra alls allsa allude alluded alluding allume allumée
allure allured alluring alluvione ally allé allée allées allés almadan almak alman almas alması almasını almaya almayı
almaz almeno almıyor almış almıştı almıştır aloe aloha aloin alojamiento alone along alonso alpen alpha alpino
alptraum alquilar alquiler alright alta altaar altar altare altari altas alte altele altem alten alter altera alterado
alterando alteration altercation altern alterna alternativas alternativet alternativos alternativt alters altes alteza
altfel alti altitud altitude altitudes altitudine alto altor altos altra altre altri altro altrui altul alture altı
altın altına altıncı altında altını alude alueella alueelle alueelta alueilla alueille alueita aluetta aluksi alum
aluminium aluminum alussa alusta alvos alvás alwayes always alzando alzano alzar alzare alzarmi alzarsi alzate alzato
alıcı alım alın alınacak alınarak alındı alınması alıntı alırlar alırım alıyor alıyorum alıyoruz alți alții amaba
amacı amacıyla amada amado amados amal amamos aman amanda amando amanha amano amant amante amanti amants amar amara
amare amarelas amarelos amarga amargo amari amarillas amarillos amarlo amaro amarrado amarrar amarte amarti amas amat
amata amate amati amato amava amavo amazônia amazônica amaçla ambalo ambao ambapo ambas ambayo ambazo amber ambiance
ambiante ambience ambienti ambii ambiti ambities ambitieus ambitions ambitious ambito ambizioni ambiziosi ambos ambra
ambre ambulante ambulanze amca ameaçadas ameaçado ameaçados ameaçando amelyben amelyek amelyeket amelyen amelynek amen
amenant amenazada amenazadas amenazado amenazados amenazando amer american americanas americani americanii americanos
amerikan amerikanere amerikanerin amerikanern amerikkalainen amerikkalaisen amiable amiante amibe amiben amiből
amicable amical amico amie amies amigo amigão amihez amiket aminek aming amino amint amiral amire amiről amis amit
amitől amivel amkan ammazzano ammazzato among amora amores amorosos amos amour amparo amper amphitheater amphitheatre
ampia ampla ample amplia ampliado ampliando amplifiers amplifies amply ampua amtes amts amusant amuse amused amusent
amuser amusing amusé amène amère améliorant améliore améliorent améliorée américaines américains amına anaesthesia
anaesthetic anais anakku anaknya anal anales analisa analisado analisados analisando analisi analista analisti
analizado analizamos analizando analoga analoge analoghe analogia analogie analogies analogue analogues analyse
analysen analyses analysis analyste analysten analystes analysts anang anarchiste anasını anay anbau anbefale
anbelangt anbieten anbietern anbringen ancak ancaman ancha ancient ancla ancre ancrée anda andado andai andalan andam
andan andando andare andarmene andarsene andartene andas andata andate andati andato andava andavamo andavano andavo
ande andel anden ander andere anderen anderes andern anders andersson andes andet andra andrai andras andre andreas
andres andrò andò aneka anel anelli anello anelmad aner anerkannt anerkennt anesthesia anesthetic anfall anfang
anfassen anflug anfängen anfänger anfängt anführen angabe angaben angajați angay ange angebaut angeben angefahren
angefangen angefasst angefragt angeführt angegangen angegeben angegebenen angehalten angehen angehoben angeht
angehängt angehört angekommen angel angelangt angelegt angelehnt angelika angelina angelo angels angemacht angenommen
angeordneten angepasst angepisst anger angerechnet angeregt angers angerufen anges angesagt angeschafft angeschlagen
angeschlossen angeschlossenen angeschossen angeschrieben angesehen angesetzt angesprochen angestellt angestiegen
angetreten angewiesen angezogen anggaran anggur angibt angiver angka angkatan angkutan angle angler anglers angles
anglo angolo angra angrer angular angulo angår anhalt anhalten anhang anheben anholdt anhängen anhänger anhängern
anhören anima animadas animado animados animale animali animate animati anime animer animé animée animées animés anion
anise anita anjing anjos ankauf ankaŭ anker anklage anklagen ankle ankles ankom ankommen anladım anlage anlagen anlam
anlama anlamadım anlamak anlamaya anlamda anlamlı anlamı anlamına anlamında anlamıyorum anlamış anlar anlarsın anlat
anlatacak anlatan anlatmak anlatmaya anlatıyor anlauf anlayışı anlaşma anlaşması anlaşmaya anledning anlegen anleger
anlehnung anleitung anliegen anlık anlıyor anlıyorum anma anmäla annahme annahmen annak annali annals annan annans
annars annata annate anne anneau annehmen anneme annemin annenin annerledes annesi anni annie annimmt anno annonce
annonces annoncée annoncées annoncés annonçait annonçant announcers announces annuali annuals annuel annui annular
annule annulée annunciano annunciare annunciata annunciato annuncio annunziata annunzio annuo annál anode anomalia
anon anong anos anota anotado anotar anpassen anpfiff anregen anreise anrichten anruf anrufen ansa ansage ansagen
ansat ansatt ansatz anschaffen anschaffung anschluss anschlüsse anschreiben ansehen anser anses ansetzen ansi ansia
ansicht ansichten ansieht ansprache ansprechen anstalt anstand anstatt anstehen ansteht ansteigen anstellen anstieg
anställda ansätze ansåg antagelig antal antalet antall antar antatt antaŭ ante antecipado anteil antes anti anticipare
anticipate antico antient antigo antigos antiguas antiguos antik antingen antler antlers antoi antreten antro ants
antti antwortest antwortet antérieures antérieurs antíng anuais anual anuales anualmente anuario anul anula anular
anume anunciaba anunciada anunciadas anunciado anunciados anunciando anvende användas använde använder användes
används använt använts anwalt anwenden anwesend anwesenheit anwälten anwältin anya anyag anyagi anyja anyját anyám
anzeichen anziehen anzug anzugeben anzugehen anzulegen anzunehmen anzusehen anzuwenden anzuziehen anónimas anónimos
anônimos anılan anında aonde apaan apagado apagão apaixonado apaixonados apakah apanha aparate apare apareceram
aparecia aparecida apariției apart apartado aparte apară apego apelar apele apelo apelor apen apenas aperta apertada
apertado apertando apertar aperti aperto apertura apesar apesta apice apito apját aplicacion aplicación aplicadas
aplicado aplicados aplicando aplicare aplicate apodado apodo apoiada apoiado apoiados apoiando apoiaram apoio apolo
apologies apologise apologises apologists apologizes aponta apontada apontado apontados apontam apontando apontar
apontou aportado aportando aportar apos aposta apostando apostar aposto apoyaba apoyada apoyado apoyados apoyamos
apoyando apoyo apoyos apparaissait apparaissent appare apparence apparente apparenze apparse appart appartenait
appartenant apparus apparut apparve appealed appealing appeals appeared appearing appears appeased appel appelait
appelant appelle appels appelée appelées appelés appena appendere appesa appeso apple apples appli applicando
applicano applicare applicate applicato applies appliquant applique appliquent appliquée appliquées appliqués applis
apply appoggiano appoggiato apportant apportare apportate apporte apportent apporto apports apportée apportées
apportés apposita apposito apposta apposto apprenait apprenant apprendere appreso appresso apprezzano apprezzare
apprezzate apprezzato appris approchant approchent approda approdare approdo approfittando approfittato approfondire
approfondite appropriées appropriés approuve approuvée approva approvare approvate approvo apprécie appréciée appui
appuis apra apre aprecia aprendam aprendan aprendem aprendemos aprenden aprender aprendes aprendido aprendimos
apresentada apresentadas apresentado apresentados apresentam apresentamos apresentando apresentaram apresentarem
apresentava apresentem apretado aprile aprire aprite apriva aprobadas aprobados apropiadas apropiados apropriadas
aprovadas aprovados aprovechado aprovechan aprovechando aprovechen aproveitado aproveitam aproveitando aproveitem
aproximada aproximado aproximando aproximava aprueban après aptes aptitud aptitude aptitudes aptly apto aptos apua
apuesta apuntado apuntando apunto apurar apărea aquando aquele aquellas aquellos aquário arab araba arabası arabayı
aracı aracın arada aradan aradım aragão arah arahan arahkan araks aralar aralarında aralık arama aramaya aramızda
aranan aranha arany arap aras arası arasına arasında arasındaki arasından arata arate arată araya arayan arayın
araçlar araçlara araçlarla araçları arbeiten arbeitern arbeitest arbeitet arbejdede arbetade arbitrio arbitro arbor
arbour arbre arca arcade arcane arcar arcas arce arche arched archeologia archeologica archers arches arching
archéologie arcilla arcos arda ardent ardiendo ardor ardour ardı ardında ardından area areas aree areia areias arena
arenas ares arestat argent argentinas argentinos argile argo argon argue argues argumentos arguments argus aria arias
arica arid aright arise arkada arkadan arkadaşlarının arkadaşımın arkadaşımız arkadaşını arkadaşının arkasına
arkasında arkasındaki arkasından arkaya arkitektur arma armada armadas armadi armado armados armando armar armas
armata armate armati armato armată armazenados arme armed armee armeen armeija armeijan armele armen armeno armer
armes armi arming armonia armonica armor armour armádu armée armées armés armă arndt aroma aros arose around arouse
arpa arqueológicos arquiteto arrache arranca arrancado arrancar arrancou arranha arranja arranjar arranjo arrasar
arrasou arrastado arrastando arrastar arrastrado arrastrando arreglado arreglan arreglando arrestano arrestare
arrestate arrestato arresti arriendo arriscado arriva arrivait arrivando arrivano arrivant arrivare arrivata arrivate
arrivato arrivava arrive arrivent arrives arrivino arrivée arrivées arrivés arrogantie arroz arruda arruma arrumado
arrumando arrêtait arrêtant arrête arrêtent arrêtes arrêts arrêtée arrêtées arrêtés arse arsed arsenal arslan arson
arta artan arte artefact artefacts artei arten arter artes article artico artifact artifacts artigo artigos artis
artista artistas artiste artistes artisti artistic artists artiști artsy arttı arty artysta artísticas artísticos artă
artı artık artıyor artış arvas arvata arvio arvioidaan arvion arvo arvoa arvoinen arvoista arvoja arvon arvosta
arvostaa arvot arène arête arômes arăta arıyor arıyorum arıyoruz asado asal asalnya asalto asam asas ascent ascesa
ascetic asche ascolta ascoltando ascoltano ascoltare ascoltate ascoltato ascolti ascolto ascunde aseen aseguraba
asegurada asegurado aseguran asegurando asegurarse asegurarte aseita aselmad asema asemaa asemaan aseman asemassa
asentado asesinadas asesinado asesinados asesinato asesinatos asesora asesoría asettaa asfalto asgjë asher ashes
ashtray asia asiaa asiaan asiakkaalle asiakkaille asian asiassa asiasta aside asien asiens asienta asiento asignados
asigurare asil asile asili asilo asin asini asino asioissa asioista asioita asit asiáticos asker askere asla aslan
aslinya aslı aslında asma asnjë asociadas asociados asociației asociații aspas aspecto aspettando aspettano aspettarci
aspettare aspettarmi aspettarsi aspettarti aspettate aspettato aspettavamo aspettavano aspettavo aspetto aspira
asporto aspre assai assalito assalto assassinado assassinados assassinato assassinatos assassinio assassino assassinos
assassins assassinés assegnare assegnate assegurando assembles assemblies assemblées assen assent assente assented
assenting assentos assenze assert asserted asserting asserts asses assess assessoria asset assets assetto assi
assicurando assicurano assicurarsi assicurati assicurato assinada assinado assinala assinando assise assista
assistance assistant assistante assiste assistem assistenten assistentie assistentin assistia assistido assistindo
assistée associadas associados associant associare associate associe associent associée associées associés assolo
assolti assolto assoluti assoluto assorted asst assume assumed assument assumer assumes assumido assumindo assuming
assumé assunse assunte assuntos assurait assurant assure assured assurent assurer assures assureur assuring assuré
assurée assurés asta astea asteen astenersi astensione aster astetta astfel asti astra astral astratta astratto astray
astro astuu asua asui asuma asuminen asun asunnossa asunto asuntoa asuntoja asusta asustada asustado asustados asustan
asustar asuu asuva asıl ataca atacada atacado atacama atacando atacat atace atada atado atados atajo atama atan atanan
atandı atar atarak atare atas atasnya atem aten atenda atende atender atendeu atendidas atendidos atendo ateneo atent
atenta atentado atento atentos atenți atenția atenție atestado ateus ateşe ateşi ateşli atferd athen ating atinge
atingidas atingido atingidos atingindo atira atirando atirar atire atitude atitudine atitudinea ativa ativado ativar
atlas atleta atletas atma atmak atmaya atmen atmosféru atmış atome atomi atone ator atores atos atout atraco
atractivas atractivos atrajo atrapado atrapados atrapalhando atras atrasada atrasado atrasados atrasar atraso
atravesado atravesando atravessando atração atrações atrial atribuídas atribuídos atroz atta attaccando attaccano
attaccante attaccanti attaccare attaccate attaccati attaccato attache attached attaches attaching attachée attachés
attacked attacking attaquant attaque attaquent attaquée atteignait atteignant atteignent atteindra atteindre atteinte
atteintes atteints attendait attendant attende attendent attendo attendra attendre attends attendue attendus attenersi
attenta attentati attentato attente attentes attento atter attesa attesta attestato atteste attico attimi attimo
attira attirano attirant attirare attirato attire attirent attirée attitude attitudes attitudine attiva attivare
attivate attivato attivi attivo attore attori attratta attratto attraversando attraversano attraversato attrazione
attribue attribuire attribuite attribuiti attribuito attributi attribuée attribuées attribués attrice attuale attuare
attuazione attı attım attığı atuado atuais atual atualizadas atualizado atualizados atualizando atualmente atuam
atuando atuar atuação atuações atum atunci atya atâta atâtea atíng atılan atıldı atın atıyor atış auction auctions
aucunes aucuns audición audio audition auditions audição aufarbeitung aufbau aufbauen aufbrechen aufbruch aufeinander
aufenthaltes aufenthalts auffallen auffällt aufführen aufführung aufführungen aufgabe aufgaben aufgearbeitet aufgebaut
aufgeben aufgebracht aufgebraucht aufgebrochen aufgefallen aufgefangen aufgefasst aufgeführt aufgefüllt aufgegangen
aufgegeben aufgehalten aufgehen aufgeht aufgelegt aufgelöst aufgemacht aufgenommen aufgepasst aufgeregt aufgerufen
aufgeschlossen aufgeschrieben aufgesetzt aufgestellt aufgestellten aufgestiegen aufgesucht aufgetragen aufgetreten
aufgewacht aufgezeichnet aufgezogen aufgibt aufhalten aufheben aufkommen aufladen auflagen auflegen auflösen aufmachen
aufnahme aufnahmen aufnehmen aufregen aufrüstung aufschlag aufschluss aufsehen aufsetzen aufsicht aufstehen aufsteigen
aufstellen aufstellung aufstieg aufsuchen auftreten auftritt aufwachen aufwachsen aufweisen aufwendig aufwertung
aufwärts aufzeichnung aufzeichnungen aufziehen aufzubauen aufzug aufzugeben aufzuhalten aufzuheben aufzulösen augen
auger augmentant augmente augmentent augmentée augurio auguro augusztusban auktion aula aulas aumentada aumentado
aumentan aumentando aumentano aumentare aumentate aumentato aumente aunts auprès aura aurais auras aurez auriez
aurions aurons aurora ausarbeitung ausbau ausbauen ausbrechen ausbruch ausdruck auseinander ausente ausfahrt ausfallen
ausfällt ausführen ausführung ausführungen ausfüllen ausgabe ausgaben ausgearbeitet ausgebaut ausgeben ausgebrochen
ausgebucht ausgedacht ausgefallen ausgeführt ausgefüllt ausgegangen ausgegeben ausgehen ausgehenden ausgeht ausgelacht
ausgelegt ausgelöst ausgemacht ausgenommen ausgerufen ausgeschlossen ausgeschrieben ausgesetzt ausgestellt
ausgestellten ausgestiegen ausgesucht ausgetragen ausgetreten ausgeweitet ausgewertet ausgezahlt ausgezeichnet
ausgezogen ausgibt aushalten auskommen auslaufen ausleben auslegen auslesen auslösen auslöst ausmachen ausmacht
ausnahme ausnahmen ausreichen ausreise ausrichten ausrüstung ausschlag ausschluss ausschreibungen ausschreitungen
ausschuss aussehen aussetzen aussicht aussichten aussieht aussteigen ausstellen ausstellung ausstieg aussuchen
austragen austreten austritt austro ausweichen ausweisen ausweisung ausweitung auswendig auswertung auswärts
auszeichnung auszeichnungen ausziehen auszubauen auszug auszugeben auszugehen auszuhalten auszulösen auszusehen auta
auteur auteurs autisme autista autiste autistes autisti autistic auto autoa autofahren autoja automation automaton
automatycznie automáticas automáticos auton autonoma autonome autonomia autonomie autoon autor autora autorais autore
autorem autores autori autoria autorii autorisant autorise autorisé autorisée autorisées autorisés autoritate autorité
autorités autorități autoriza autorizadas autorizados autorizzare autorizzate autorka autors autorul autorului autorzy
autoría autorów autos autossa autosta autre autres autrice auténticas auténticos autók autónomas autónomos autót auzit
avaa avais avait avale avalia avaliadas avaliado avaliando avance avances avancée avancées avancés avant avante avanti
avanza avanzaba avanzada avanzadas avanzado avanzados avanzando avanzano avanzare avanzate avanzato avanzi avançadas
avançado avançados avançait avançando avata avatar aveam avem avena avendo avenge avente aventi aventurier avenue
averci avere avergli averla averle averli avermi averne averred aversa averse avert averted averti avervi avesse
avesso aveste avete aveva avevamo avevano avevi avez avholdt avid avide avidity avidità aviez avions avis avisado
avisando aviser avisé avocat avoid avoin avoinna avons avram avrei avremmo avremo avreste avresti avrete avsluta
avslutade avtal avtale avtalet avuksi avuta avute avuti avuto avvento avvenuto avverse avverso avverte avverto avvia
avviare avviate avviati avviato avvicinando avvicinano avvicinato avvio avvisa avvisare avvisato avviso avvistato
avère await awake awalnya aware axel axes axle axles ayahnya ayak ayakları ayakta ayant ayants ayar ayağı aydın aydır
aylar aylık ayna aynen ayni aynı ayons ayrı ayrılık ayrılır ayrımı ayrıntılı ayuda ayudaba ayudado ayudando ayudante
ayudara ayudarla ayudarle ayudarles ayudarlos ayudarme ayudarnos ayudarte ayudaría ayudas ayude ayuden ayudo ayuno
ayın ayında ayının azar azeite azonban aztán azután azından açacak açlık açmak açtım açtığı açıdan açık açıkladı
açıklamada açıklaması açıklandı açılan açıldı açılmış açılıyor açılış açın açısı ağacı ağlama ağrı ağrısı ağzı ağzına
ağzından ağzını ağır ağız aşama aşamasında aşağıda aşağıya aşkı aşkım aşkın aşık aşırı baart baas baat baba babae
babak babamın baban babanın babası babaye babbling babci babel babes babies bacaan bacana bacche bach bacia baciano
baciato bacino bacio back backa backed backen backer backers backing backs backward backyard bacon bacs bada badai
badan badannya bade baden bader badet badge badger badgers badges badia badly bagai bagaikan bagay bagel bagged
bagging bagi bagian bagiku bagimu baginya bags bague bagues bahan bahar bahas bahasa bahawa bahay bahaya bahis bahkan
bahnen baht bahwa bahçeli bahçesi baia baiana baie baies baik bail baila bailarinas bailarines baile bailed bailey
bailing bains bairn bairro bairros baise baiser baisse baisser baisses baissé baisé baita baited baiting baits baixa
baixado baixando baixe baja bajaba bajada bajado bajak bajan bajando bajar bajas bajista bajki bajom bajón bakal
bakalım bakan bakanlar bakanları bakanlık bakanlığı bakanı bakar bakarak bakat bake baked baker bakers bakes baking
bakje bakke bakken bakker bakma bakmak baksteen bakstenen bakterien baktı baktım baku bakım bakın bakınca bakıp bakır
bakıyor bakıyorum bakış bala balach balada balade balader balades balai balang balapan balas balasan balayer balcon
balcone balcones balconi balcão balcón balding baldness baleado baleia balen bales balia balik balise balkan balken
balkon balla ballach ballade ballando ballano ballare balle balled ballen balling ballo ballon balls bally balmy balon
balsa balzo balão balón balões balık balığı bambu bana banal banale banana bananas banane bananen banat banc banca
bancarias bancarios bancas banche banchi banco bancone bancos bancs bancárias bancários bancă band banda bandana
bandar bandas bande banded bandeira bandeja banden bandera bandet bandido bandidos bandiere banding bandire bandje
bando bandos bands bandung bandă bane banen bang bange banged bangen banger bangers bangga banging bangku bangs bangsa
banheira banho banhos bani banido banii banjir bank banka bankası banked banken banker bankers banki banking bankje
banks banku banky banned banner banners banning banque banques banquete bans bantal banter bantu bantuan banyo bapak
baptisms baptists bara baraj barang baraque barat barata baratas baratro barba barbare barbarie barbe barbed barber
barbiere barbone barbs barca barche barco barcone barconi barcos bard bardo bards bare bared barely bares barest barge
barges bari baril baring baris barked barker barking barks barley barman barn barne barnen barney barns barom baron
barone baronet baroni barons baroque barque barra barraco barras barre barred barreiro barriere barring barrio barrios
barro barros bars barter baru barunya barvu barvy barát barátai baráti barão barón barış basa basada basado basah
basal basan basano basata basati basato basco base baseada baseadas baseado baseados baseando based baseia basely
basen baseou baser bases basest bash bashed bashing basi basics basieren basil basing basins basique basiques basis
basket basking baskı baskın baskısı basque basques basquete bass bassa basse basses basset bassi bast basta bastano
bastato bastava basti bastión bastão bastón baszki basé basée basées basés basın basıncı bata batang batas batasan
batata batatas batch bate batean baten baterie bates bath bathe bathed bathing baths batia batida batido batik batista
batman baton bats batsman battait battant batte batted batter battere battered batteri batteria batterie batterien
battering batti batting battisti battiti battled battling battre battue battus batu batı bauch baue bauen bauer bauern
baume baut baute bauten bautista bautzen baux bauð bava bavit bawa bawah bawang bawling bayan bayangan bayangkan
bayanlar bayar bayağı bayer bayerische bayerischen baying bayonet bayrağı bayrischen bazat bazele bazen bazı bağlantı
bağlantılı bağlantısı bağlantıyı bağlayan bağlı bağı başa başak başardı başarı başarılar başarılı başarısı başarıya
başarıyla başka başkaları başkalarının başkan başkanları başkanlık başkanlığı başkanlığına başkanlığında başkanı
başkanımız başkası başkasına başkasını başkasının başla başladı başladım başladığı başladığında başlamadan başlamak
başlaması başlamış başlamıştır başlandı başlar başlarına başlatmadan başlatmak başlatıp başlayacak başlayan başlayarak
başlayıp başlı başlık başlıklı başlığı başqa başta baştan başvuru başı başıma başımıza başına başında başından başını
başınıza beach beached beaches beachte beachten beacon bead beaded beads beag beak beaker beaks beam beamed beamer
beaming beams beamte beamter bean beans beard bearded beards bearer bearers bearing bearings bears beast beasts beat
beata beate beater beaters beati beating beatings beats beauftragen beauftragten beaux beaver beavers beba bebas bebek
beben bebida bebis beboere beboerne becher becker beda bedacht bedah bedanke bedanken bedded bedden bedding bede
bedecken bedeckt bedekken bedekt bedeli bedelini beden bedenken bedenkt beder bedienen bedoelen bedragen bedre
bedreigen bedreigt bedriegen bedroeg bedrog bedrogen bedrohen bedrohten beds bedside bedst bedt beech beefing beek
beelden been beenden beendigung beep beeping beeps beer beerdigung beers bees beest beesten beet beetje beets befahren
befanden befassen befehlen befestigen befinden befohlen befragen befragten befreien befreit befreite befunden begab
began begangen begannen begeben begehen begehren begehrt begehrten begeht beget begeven begge beginnen begon begonnen
begravet begrenzen begrenzten begrijp begrijpen begrip begrippen begs begynde begyndte begynne begynte behaald
behaalde behalen beheben beheerd beheerst beheert beheren beherrschen behouden behoved behövs beichte beide beiden
beige beija beina beine beinen being beings beira beirat beisitzer beistand beitrag beitragen beitreten beitritt
beiträge beiträgt beja bejaarde bekannt bekannte bekannten bekas bekeken beken bekenden bekennen bekennt beker bekerja
bekken beklagen beklagten bekle beklediği bekleme beklemek beklendiği beklenen bekler bekleyen bekleyin bekliyor
bekliyorum bekommen bekommst bekommt bela beladen belah belahan belakang belanda belanden belang belangen belanja
belas belassen belasten belated belde beleben belebt beleef beleeft beleeved beleg belege belegen belegt belegte
belegten belehren belehrt beleid beleven belg belga belge belgeleme belgelere belgen belges belgesi belgi belgia
belgischen belicht belie belieben beliebt beliebten belief believed believers believes belirlenen belirli belirten
belirtti belki bella bellas belle bellen belles belli bellies bellow bells belogen belohnt belonen beloning beloofd
beloond beloved beloven below belted belting belts bemerken bemerkte bemessen bemutatja bemutatta bemühte benang
benannt benannte benannten benar bence bench benched benches bend benda bende benden bender bendiga bending bendita
bendito bends bene benedica benedito benefica beneficio benefico benen benennen benennt beni benim benimle benito
bennük bennünk benoemd benoemde benommen bensin bent bento benua benut benutze benutzen benutzte benutzten benzin
benötige benötigen benötigte benötigten bepaal bepaald bepaalde bepaalt bepalen bepaling bepalingen beperken beperking
beperkt beperkte beraber berada berangkat berani berapa beras berasa berasal berat berated beraten berawal berbagai
berbagi berbahasa berbahaya berbalik berbasis berbat berburu bercanda berdaya berdoa berdosa berdua berduka bere
bereaksi berechtigung beredd beredda bereft beregnet bereichen bereichern bereid bereiden bereidt bereiken bereikt
bereikten bereit bereite bereiten bereitet berekend berekenen beren berenang beret bereuen bereut bergab bergabung
bergaya berge bergen berger bergers berges bergischen bergs berhak berhati beri bericht berichte berief berikan
beriman berisik berjalan berjuang berkala berkas berkat berkata berkerja berkisar berks berkuasa berlaku berlalu
berlari bermula bernama berner beroemd beroemde beroerd beroofd beror berou berperan berperang berpisah berre bersama
bersamamu bersatu bersiap bersikap bert bertahan bertahun bertanding bertanya bertempat berti beru beruang berubah
berufen beruft beruhen beruht berulang berwenang berät berømt berømte berühmt berühmte berührt berührte besar besaran
besat besatzung bescheiden beschert beschissen beschloss beschlossen beschluss beschossen beschreiben beschrieben
beschränken beschränkten beschuss beschwerden beschweren beschwert beschädigen beschädigten beschäftige beschäftigen
beschäftigte beschäftigten besen besessen beset besetzen besetzten besetzung besichtigung beside besiedelt besiegelt
besiegen besiegten besin besitzen besitzer besitzerin besitzern beskrivs beslaat beslenme beslutet besok besonderes
besonders besorgen besorgten besprechen bespreken besprochen besproken bessen besser besseren bessern best besta
bestaand bestaat bestand bestanden beste bested besteden besteed bestehen besteld bestelle bestellen bestellte
bestellten bestemd bestemme bestemte besten bestens bester bestes bestille bestimmen bestimmte bestimmten bestonden
bestreden bestritt bestämma bestätigen bestätigt bestätigten bestätigung besuche besuchen besuchern besuchte besuchten
beszélek beszélgettünk beszélnek beszéltünk beszélünk besökte besøge besøgt besøgte besøke besøkt besøkte beta betaal
betaald betaalde betaalt betah betala betalat betale betalen betaling betalingen betalt betalte betapa bete betegek
beteiligen beteiligten betekend betekenen beten beter beters betet betjente beto beton betonen betonnen betoog betrag
betragen betrat betraut betre betreden betreffen betreiben betrekken betreten betreuen betreut betreuten betriebe
betrieben betriebes betriebs betritt betroffen betrogen betrokken betrugen beträge beträgt bets bett betteln betten
better bettered bettering betting betätigen betätigt betätigung beugen beugt beute bevalt bevara bevare bevat beve
bevel bevelen bevi bevidst beviel bevinden bevis bevisst bevonden bevorzuge bevorzugen bevorzugte bevorzugten bewaakt
bewaar bewaarde bewaart bewacht bewahre bewahren bewaken bewaking bewaren bewaring beweegt beweerd beweerde beweert
bewege bewegen beweging bewegingen bewegt bewegte bewegten bewegung beweis beweisen bewerben bewerbern bewerbung
bewerbungen beweren bewering bewerken bewerking bewerkt bewerkte bewerten bewertung bewertungen bewezen bewies
bewiesen bewirbt bewirken bewirkt bewogen bewohnt bewonder bewoner bewoond beworben bewust beyin beyler beyni beynin
bezahle bezahlen bezahlst bezahlt bezahlte bezahlten bezat bezel bezet bezetten bezirken bezitten bezogen bezpečnostní
bezpieczne bezpiecznie bezwaar bezwaren bezwingen bezwungen beğeni bhalach bhalaich bheag bhean bheidh bheith bhith
bhliadhna bhruidhinn bhùth biadh bianca bianche bianchi bianco biasa biasanya biased biases biaya biała biało biały
bibel biber bibim bible biblico bibliotecii bicara bicho bichos bicicleta bicileta bico bidang bidden bidder bidders
bidding bide bidh bidim bids bieden biedny biedt biegen biegt biel biella biene bienen bienveillance bienvenidos bier
biere bieren biest biete bieten bietet bight bigot bijak bijeen bijen bijou bijten biker bikers bikes bikim biking
bila bilang bilar bilda bilde bilden bildene bilder bildern bildet bildirdi bildiği bildiğimiz bildiğiniz bildung bile
bilemiyorum bilen bilene biler bilerek bileti bileyim bilge bilgi bilgisi bilgiyi bilico bilim bilimi bilimler
bilimleri bilin bilir bilirim bilirəm biliyor biliyorsanız biliyorsun biliyorsunuz biliyorum biliyoruz bill bille
billes billets bilmeden bilmek bilmem bilmeyen bilmez bilmir bilmirəm bilmiyor bilmiyorsanız bilmiyorum bilər bilərəm
binada binaires binaries binarios binası binatang bind binde binden binder binders bindet binding binds bindt bindung
bing binge bingen binnen binnenkomt binnenkort bins bintang biologia biologica biológicas biológicos bionic biopic
biotic birbirimize birbirimizi birch birde birden birding birds bire birer birgit birgt biridir birileri birilerini
birilerinin birim birimi birimleri birinci birinde birine birini birinin birisi birisini biriyim birleşik birlik birne
birnen birth bisa bisan bise biserici bisericii bises bisou bist bitar bitch bite bitecek biten biter bites bith
biting bitirdi bitiyor bitki bitmedi bitmiş bits bitte bitten bittet bitti biura biuro biurze bizde bizden bize bizim
bizlere biztosítja biçim biçimi bjørn blaas black blacked blacker blackish blacks blad blade bladed bladen blades
bladet blague blagues blame blamed blames blaming blanc blanca blancas blanche blanches blanco blancos blancs bland
blanda blande blandet blanding blandly blando blandos blandt blank blanken blankly blanks blant blaring blase blasen
blass blast blasted blasters blasting blasts blaue blauen blauer blaues blaze blazed blazen blazers blazes blazing
bleach bleached bleaching bleak bleating bled bleed bleeding bleeds bleef bleek bleep bleib bleibe bleiben bleibst
bleibt bleken blend blenden blender blending blends blesse blessée blessées blessés blest bleues bleus bleven blevet
bliadhna blicke blicken blickte blieb bliebe blieben blight blije blijft blijk blijken blijkt blijven blik blikk
blikken blimp blind blinde blinded blinden blinder blinders blinding blinds bling blink blinked blinking blinks blip
blisko blisters blitt bloated bloating blocca bloccando bloccano bloccare bloccate bloccato block blockade blockage
blocks blocs blocus blod bloed bloeden bloeiende bloeit bloem bloemen blog bloga blogged blogissa blogs blogu blogue
blogueiros blok bloke blokken bloku blomster blond blonde blondes blondie blondje blonds blood blooded bloodied bloods
bloom bloomed bloomer blooming blooms bloot bloque bloqueado bloqueando bloquent bloqueos bloques bloquée bloqués blot
blotted blow blower blowers blowing blown blows blues bluff bluffs bluish blume blumen blunders blunt blunted blurred
blurs blurted bluse blush blushed blushes blushing blussen bluten blutes blått blöden bløde blühen blüten board
boarder boarders boards boars boas boast boasted boasting boasts boat boate boating boato boats boba bobbing bobby
bobo bobs boca bocas bocca bocche boccia bock bocor boda bodas bodde bode bodem boden boding bodu body boede boeien
boeiende boeit boek boeken boekje boekt boem boende boer boeren boete boeven boga bogen bogged bogiem bogor bogs bogu
bogus bohatera bohlen bohnen bohong bohren boiled boiler boilers boiling boils boing boire bois boissons boisé boite
boites boken boksen boku bola bolas bold bolder boldness bolest boletos bolha bolhas boli bolii bolinhos bollente
boller bollette bolo bolos bolsa bolsas bolso bolsos bolster bolt bolted bolts bolu bomba bombardier bombası bombing
bombo bombs bomby bomen bommen bona bond bonde bonded bonden bonding bonds bone boneco boned bonen boner bones bong
bonitas bonito bonne bonnes bonnets bonny bono bonos bons bonte bonus bony boobies boobs booby bood booed booger
boogie booing book booked booker bookie bookies booking books boom boomed boomer booming booms boon boord boos boost
boosted booster boosting boosts boot boote booted booten booth booths booties booting boots booty bora borcu bord
borda bordado bordas borde borden border borders bordo bordée bore bored boren bores borgere borgerne borgmester borgo
boring boris born borne bornes boron boros borra borrado borrowing bors borsa borst borta borte boru bosom boson bossa
bosse bossen bosser bossé bosta boston bota botas bote boten boter botes both bother bothers boto bots botsen bott
botte botten bottes bottling botão bouche boucher bouches bouché bouchée boucle boucler boucles bouclier bouclé
bouddhisme bouddhiste boue bouffe bouffée bouge bought bougie bouillon boulder boule boules boulets bounced bouncers
bounces bouncing bouncy bound bounded bounding bounds bounty bourbon bourdon bourgeoise bourgeoisie bourges bourre
bourrée bourse bourses bouton bouts bouwden bouwen bouwt boven bowed bowel bowels bower bowers bowiem bowing bowl
bowled bowler bowlers bowling bowls bows bowser boxed boxen boxer boxers boxes boxeur boxing boyer boys boyu boyun
boyunca boyunda boyutlu bozen boşa brace braced braces brach brachen brachte brachten braci bracia bracing brackish
brad braga bragged bragging brags bragt braid braided braids brain brained brains braised brak brake braken brakes
braking braku bramki bran branca brancas branche branchen branches branco brancos brand branded branden brandes
branding brando brands brandão brani branku branky brano braque bras brasa brash brasil brasileiras brasileiro
brasileiros brasileirão brasileños brass brasse brata braten brats brauch brauche brauchen brauchst braucht brauchte
brauchten brauer braun braune braunen brauner braut brauð brava brave braved bravely braver bravery braves bravi
bravissimo bravo brawling brawn brawo brazo brazos breach breached breaches breaching bread breads breadth breagha
break breaker breaking breaks bream breast breasts breath breathed breathes breathing breaths bred bredde brede breder
bredt breech breeches breed breeding breeds breek breiden brein breit breite breiten breiter breitet breken bremen
bremsen brenne brent brett bretter breuk breve brevi brevissimo brewed bribe bribes bricht brick bride brides bridge
bridged bridges bridging bridle bridled bridles brie brief brig briga bright brilhar brill brillant brillantes
brillants brillar brille brillent brincar brindado brindando brine bring bringe bringen bringing brings bringst bringt
brink brisa brise briser brisk briskly brist brister bristle bristly brisé brisée brisés brite briten brits brittle
británicas británicos britânicas britânicos brně broad broche brocken broder brodo broeder broek broeken broer broiled
broiler broke broker broma bron bronnen brons bronzen brood brook brooks broom brooms bror bros brosa brosse brosser
brote brotes broth brothels brother brothers brott brought brouillon brousse brouwer brown browning browns brows
browser browsing bruch bruciando bruciano bruciare bruciate bruciato brudar brudd brudt brug bruge brugen bruger
brugere brugt brugte bruidhinn bruit bruits bruja brujo bruk brukade brukar bruke bruker brukere brukeren brukt brukte
brume brun bruna brunch brune brunes bruno bruns brunt brush brushed brushes brushing brust brut bruta brute brutes
bruto bruts brutt brutta brutti brutto bruxa bruxo bryde bryder bryta bryte bryter brzy brände bränna bränner bräuche
bräuchte brænde brændte bræður brèagha bróður bröst bröt brød brûle brûlée brûlés brüche brücke brühe brühl brüste
buahnya buang buat buatan buatmu buaya bubble bubbling buben bubuk bubur buch buchen buches buchs bucking buckling
bucks bucky bucura bucurie buda budaya bude budeme budete budge budou budovu budování budowie budu budur budzi buff
buffs bugger bugging bugia bugle bugüne bugünkü bugünlerde buhaton buháton buia buigen buigt buio buissons buit buiten
buizen bukan bukankah bukanlah bukannya bukit bukser bukti bukunya bula bulacak bulan bulanan bulat bulbs buldu
bulgarien bulge bulging bulig bulky bulles bulls bully bulmaya bulmuş bulto bulun bulunması bulunuyor bulur buluyorum
buluştu bumble bumbling bummed bummer bumped bumper bumps bums bumsen buna bunca bunch bunda bundan bunde bundes
bundestages bundestags bung bunga buni bunker bunks bunlara bunlarla buns bunt bunte bunter buntes bunting bunu bunuh
bunun bunuri buoi buona buoni buono buoys buque buques burada buralarda burası buraya burayı burcu burda buren burg
burger burgers burgess burguesa burguesia burguesía buried burla burley burly burned burner burners burning burns
burnt burnu burnumu burnunu burros burrowing bursa burst bursting bursts buruh buruk burun bury burying busana busby
buscado buscados buscamos buscando buscarle buscarme buscarte busch busco busen buses bush bushes bushy busied busier
businessman businessmen busque busques buss bussen bust busta buste buster busters busting bustling busto busts busty
busuk busy buta butang butch bute buter buteur butler buts butta buttando buttano buttare buttarsi buttate buttato
butte butter buttered butters butti butting butto butts butuh butáng buydu buyers buying buys buďte bycie byde byder
byer byers byes bygde bygga byggas byggde bygge byggeri byggeriet bygget bygging byggs byggt bygningen byta byte byter
bytes bytt bytte była byłaby byłby byłbym było byłoby były byłyby bálung bárki bárkit bármi bármit báyung bäder bände
bänden bänder bändi bänke bénéfice bénéficiant bénéficie bénéficient bíblia bíblica bíblicas bíblicos bírja bírom
bíróság bísan bízom böbrek böcek böden bögen bölge bölgede bölgelerde bölgelerinde bölgesi bölgesinde bölgesine
bölgeye bölgeyi bölümde bölüme bölümlerde bölümlere bölümü bölümünde bölümüne börja börse börsen böse bösen bøde bøger
bøgerne bøker bønder børn búlig bücher büchner bünyesinde büyüme büyüyen bývají băgat băiat băieți băieții băncii
bărbați bărbații bătut băut będzie bırakarak bırakın března bűnös cabal caballos cabang cabe cabello cabellos cabelo
cabelos cabem caben cabida cabina cabines cabinets cable cables cabling cabos cabra cabras cabrera cabrón cabs cacao
cacat cacca caccia cacciato cacciatore cacciatori cacería cacete cachait cachant cache cachent cacher caches cachet
caching cacho caché cachée cachées cachés cackling cada cadde caddy cade cadea cadeia cadeias cadeira cadeiras cadela
cadena cadenas cadence cadendo cadenza cadera caderas cadere cadou cadra cadre cadres cadru cadrul caduti caduto cadă
caem caen caería caes cafe cafea cafes cafetera cafetería caga cagada cagado cagan cagando cagar cagare cagas cagata
cagate cagato caged cages cagna cago cague cahier caia caife caiga caigan caigo cailín caindo caio cair cairo caisse
caisses caite caixa caixas cajas cajero cajeros caked cakes cala calada calado calados calar calare calata calato
calcaire calcare calce calci calciatore calciatori calcul calcule calculée calda caldas calde caldeira caldera
calderas caldi caldo caldă cale calea caleta calhar cali caliber calibre calice calidad caliente calientes calificare
caliper calitate calitatea calității calla callada callado callao callar callas calle called caller calles calling
callo calls calm calma calmado calmar calmare calme calmed calmer calmi calming calmo calms calmé calo calore calorie
calvaire calves calvi calvo calza calzada calzado calze calça calçada calçadas calçados calças calé cama camada
camadas camarão camas camber cambi cambiaba cambiado cambiamo cambiamos cambiando cambiano cambiante cambiara cambiare
cambiarme cambiarse cambiaría cambiaste cambiate cambiato cambiemos cambino cambio came camello camelo camels cameos
camere camicie camila camilla camilo camina caminaba caminata caminha caminhada caminho caminhão camino caminos camion
camisa camisas camión camminando camminano camminata camminato camminava cammino camp campagna campagne campaign
campana campane campanha campania campanie campaniei campanii campare campaña camped camper campers campesinas
campesinos campi camping campion campo camps campus cams camus camões cana canada canais canal canale canali canarias
canas cancel cancela canceled canceling cancella cancellare cancellate cancelled cancelling cancels cancer cancers
candado candela candid candidatas candidates candidatos candidats candied candies candles cando candor candy cane
caneca canela canes caneta cani canlı canna canne cannella cannon cannone cannoni cannons canny cano canoa canoas
canoe canoes canon canone canoni canons canos canot cans cansa cansada cansado cansados cansar cansei canso cansou
canst cant canta cantada cantadas cantado cantal cantando cantano cantante cantanti cantar cantaram cantare cantata
cantate cantato cantava cante canter cantera canti cantina cantități canto canton cantone cantoni cantons cantor
cantoras cantores cantos cantou cantón canvas canvases canvass canyon canyons canzone canzoni canções canı canımı
canın canını caos capa capas cape capela capelli capello capendo caper capers capes capete capi capilla capirai
capirci capire capisci capiscono capita capitale capitales capitali capitalisme capitaliste capitana capitanes
capitani capitano capitare capitata capitato capitava capite capiti capito capitole capitoli capitolul capiva capivo
capo capot capote cappa capped cappellano cappelli cappello capping cappuccino cappuccio capra capre capri capro caps
capta captar capte capter capteur caption captioned captions capturado capturados capul capului cara características
característicos caractérise caractérisée caralho caras carat carats caratterizzano caratterizzato carbide carbine
carbon carbone carboni carbs carbón card carded cardine cards cardul cardíacos care careca carece carecen carecía
cared career careers carence carente carentes carenza carenze carer carers cares caress careta carezze carga cargada
cargadas cargado cargados cargan cargando cargar cargas cargo cargos cargó cari carica caricare caricate carico
caridad caridade carina carine caring carinha carinho carini carino carità carl carla carlino carlo carmine carnal
carne carnea carni caro carol carola caron caros carota carote carotte carp carpa carpal carpe carpeta carpetas carpi
carr carrega carregada carregadas carregado carregados carregando carregava carreira carreiras carrello carrera
carreras carri carriere carriers carries carrinho carro carros cars cart carta cartas carte cartea carted carteira
carteiras cartel carteles cartelli cartello carter cartera carteras cartes cartier cartina cartofi carton cartone
cartoni cartons cartoon cartoons carts cartão cartón carvalho carve carved carver carving carvings carvão carácter
caráter casa casaco casacos casada casadas casado casados casais casal casale casam casan casando casar casaram
casarme casaron casarse casas casca cascada cascais casco cascos case casei caseira casele casello casera caserne
casero caseros caserío cases caseta casetta casette cash cashed cashing casi casier casilla casillas casing casings
casinha casini casino casinos casita casks caso casos casou caspita cassa cassano cassation cassazione casse cassent
casser casses cassetta cassette casseurs cassino cassé cassée cassés cast casta castanhos castas caste castel castelli
castello castelo caster casters castes castilla casting castings castle castles castor castro casts casual casuale
casuali casually casualty casó casă cata catalana catalanas catalanes catalina catalogne catalogue catalysis catalysts
catar catarina catchers catches catching cate categories categorii cater caters cates cathair cation catro cats cattle
catégories católicas católicos cauce caucho cauda caudal causa causada causadas causado causados causal causale causam
causan causando causano causar causaram causare causaron causas causate causato cause causent causer causes causing
causou causé causée causées causés causó caute caution cautioned cautions cautious caută cauza cauzat cauze cauză cava
cavaco cavaleiro cavalheiro cavalo cave caved caveira caverne caves cavi cavia cavidad cavidade caving cavità cavo
caxias cayera cazar cazas cazul cazzone caça caçada caças caía caída caños cała ceannach ceară cease ceased ceases
ceasing ceasul ceca ceco cede cedendo cedere cedo ceduto ceea cega cego cehenneme ceia ceist cejas cela celach celah
celal celana celas celda cele celebraba celebrada celebradas celebrado celebrados celebramos celebrando celebrare
celebrate celebrato celebre celebrity celebro celelalte celerity celia celku cella celles celo celos celou celso celta
cemal cement cemil cenar cenare cenas cendres cenere ceneri cenie cennete cenno cenou cenoura censo censored censura
censured censé censées censés centaine centaines center centered centerpiece centers centime centimeters centimetres
cento centrale centrală centre centred centrepiece centres centri centro centrée centura cenu ceny cenę cera cerah
cerca cercado cercana cercanas cercando cercano cercanos cercanía cercanías cercare cercas cercata cercate cercato
cercava cercavo cercetări cercetării cercetători cercetătorii cerco cerda cerdo cerdos cerebro cereja cerem cerise
cerises cerita cero ceros cerraba cerrada cerradas cerrado cerrados cerramos cerrando cerro cerros certa certaine
certaines certainly certains certainty certas certes certeza certi certificates certificats certo cerul cerut cerveja
cerveza cervi cervo cesar cesare cessare cessate cessation cessazione cesso cessé cesta cestas cesto cestou cestovní
cestování cestu ceti ceto cetățeni cetățenii cetății ceux cezası chaco chad chafe chafed chafing chagas chailín chain
chained chains chair chaire chaired chairman chairmen chairs chaise chaises challengers challenges chalon chama
chamada chamadas chamado chamados chamamos chamando chamaram chamas chamava chamavam chamber chame chameau chamo champ
champagne champaign champs chan chance chanced chancel chancer chances change changeable changeait changeant changed
changement changent changer changera changerait changers changes changing changé changée channel chant chantait
chantant chante chanted chantent chanter chanteur chantier chanting chants chanté chaos chap chapa chapada chapas
chapeau chapo chaps chapter chapters chaque char chara charco chard charge chargeable charged chargement chargent
charger chargers charges chargeur charging chargé chargée chargées chargés charity charla charm charme charmed charmer
charmes charming charms charr charred chars chart charte charted charter charters chartes charting charts chase chased
chasers chases chasing chasm chasms chasse chasser chasseur chasseurs chassé chassés chaste chat chata chathair chato
chaton chats chatte chatted chatter chattered chattering chatting chaude chaudes chauds chauffer chauffeur chauve
chauves chave chavo chceme chcete chciałabym chciałam chciałby chciałbym chciałbyś chciałem cheannach cheannaich cheap
cheaper cheat cheated cheater cheating cheats checar check checking checks cheek cheeks cheeky cheer cheers cheery
cheesy chef chefia chefs chega chegada chegado chegados chegamos chegando chegar chegaram chegarem chegarmos chegava
chegavam chego chegue cheia cheie cheile cheio cheios cheira cheiro cheist chenille cheque cher cherchait cherchant
cherchent chercher chercheur cherry chers chesnut chess chest chested chestnut chests cheville chevilles chews chia
chiama chiamami chiamando chiamano chiamare chiamarli chiamarmi chiamarsi chiamata chiamate chiamati chiamato chiamava
chiami chiamo chiant chiara chiare chiari chiaro chiave chiavi chica chicas chicha chick chicks chicle chico chicos
chide chido chie chieda chiede chiedendo chiederci chiedere chiederei chiederle chiedermi chiedersi chiederti
chiedervi chiederà chiedete chiedeva chiedi chiediamo chiedono chief chiefs chien chier chiesa chiese chiesi chiesta
chiesti chile chilenas chilenos chili chilli chime chimes chimice chimici chimp chimps chin china chinas chine
chinesas chineses ching chinga chingo chink chinks chino chinos chins chip chipped chipper chipping chips chique chirp
chirping chirurgia chirurgica chisme chismes chiste chistes chiuda chiude chiudendo chiudere chiudersi chiuderà
chiudete chiudi chiudiamo chiudo chiudono chiusa chiuse chiusi chiuso chivas chives chivo chlapce chlapec chlapi chlor
chlore chloride chlorine choca chock chocou chocs chodila choir choisies choisis choisissant choisissent choix choke
choked chokes choking cholernie cholery chomping choose choper chopped chopper chopping chops choque choquer choquée
chor chora choral chorar chord chords chore chores choro chorou chorro chorus chory chorégraphe chorégraphie chose
chota choto chouette chove christen christian christiane christina christine chuck chucked chucking chuckled chuckling
chucks chuffed chuimhne chuir chulo chump chung chunk chunks chunky chupa chupando chupar chur chutar chute chuva
chuyến chuyền chuyển chuyện chwili chwilę chybu chybí chystá chápu chère chères chèvre chèvres chòir chóir chónaí
chúng chłopca chłopców chœur chẳng chồng ciasto ciała cible cibles ciblée cicli ciclo ciclos ciddi cider cidre ciebie
cieca cieco ciego ciegos ciekawe ciekawie ciele cieli cielo cielos cien ciente cientes ciento cientos científicas
científicos cierra cierro cierta cierto ciertos ciervo cieszy cieszę cieux cilada cima ciment cimento cina cinch cinco
cinder cine cinema cinematografica cineva cinico cinta cintaku cintas cinto cinza cipta ciptakan circa circo
circondano circondato circostante circostanze circulant circulent circus cire cirrus cisco cisne ciszy cita citada
citado citados citando citano citare citas citate citato cite cites cities citra citrus citée citées cités ciuda
ciudad ciudadana ciudadanas ciudadanos ciudadanía ciuman civarında civica civici civico civil civile civiles civili
civill civils civilă clack claim claims clair claire claires clairs clam clamber clamp clamped clamping clamps clams
clan clanes clanged clank clanking clans clap clapped clapping claps claque claquer claqué clar clara claras clare
claridad clarify clarity claro claros clary clară clasa clase clasele clases clash clashed clashes clashing
clasificados clasp clasped clasping class classe classed classer classes classificadas classificado classificados
classificare classificate classifieds classifies classé classée classées classés clasă clatter clattered clattering
claude claus clause clauses clave claves clavo clavos claws clay clays clean cleaned cleaner cleanest cleaning cleanly
cleans cleansed cleanser cleansing clear cleared clearer clearest clearing clearly clears cleats cleaver clefs clement
clenched clergyman clergymen clero clever clica clicca cliccare cliccate click clicking clicks clics client cliente
clientes clients clienți clienții clima climactic climatic climbs clime climes climáticas clin clinch clinched cling
clinging clinica clinico clink clinking clipa clipe clipped clipper clipping clips clipă clique cloak cloaked cloaking
cloaks clocher clock clocked clocking clocks clods clogs clon clone cloned clones cloni cloning clope clopes clore
cloro clos close closed closer closes closest closet closets closing clot clothes clothing cloths clots clotting
clouds clous clout clove clover cloves clown clowning clowns cloître clube clubes clubs clues clump clunky cluster
clustered clutch clutches clutter cluttered clásicas clásicos clássicas clássicos clínicas clínico clínicos clădiri
clădirii coach coaches coaching coachman coachmen coada coadă coal coals coast coasta coaster coasters coasting coasts
coat coated coating coats coaxed cobertas cobertos cobra cobrado cobram cobran cobrando cobre cobrem cobrindo cobro
coca cocción cocher cocido cocina cocinando cocinas cock cocked cocker cocks cocoa cocok coda code coded coder coders
codes codici coding codos codul codziennie coed coerente coerenti cofano coffees coffers cofre cofres cogen coger
cogido cogiendo cogió cogli cogne cogner cogs cohete cohérence cohérente coil coiled coils coin coincidan coinciden
coined coins coinvolge coinvolte coitado coke coking cola colaborado colaborando colas cold colder colds cole
colectiva colectivas colectividad colectivo colectivos colecție colega colegi colegii colegiul colei coleira colera
coleta coletadas coletados colete coletiva coletivas coletivo coletivos colgado colgando colgar coli colic colima
colin colina colinas colis colisión colla collaborando collaborano collaborato collado collage collages collane collar
collard collare collared collated colle collectable collecter collectible collector collega collegano collegare
collegate collegato college colleges colleghe colleghi collegi coller collera collet colli collide collided collider
colliding collie collier collision collo collocare collocate collocato colluded colluding collusion collège collèges
collègue collègues collé colma colmare colmo colo coloana colocación colocada colocadas colocado colocados colocamos
colocando colocaram colocarem colocava colocação colombianas colombianos colon coloni colonia colonie colonies colonna
colonne colonnes coloración colorado coloranti colorare colorate colorati colorato coloração colores colori coloridas
colorido coloridos coloro colors colorées colorés colpa colpe colpi colpire colpite colpiti colpito colpo cols colt
colta colti coltivare coltivate colto colts coltura colui coluna colunista coma comandado comandant comandat comando
comas combattant combattent combien combinado combinados combinando combinare combinato combine combing combinée
combinés combo combos combs comece comecem comedy comely comemorado comemorando comen comencé comenta comentaba
comentado comentando comentar comentaron comente comentó comenzaba comenzado comenzando comenzar comenzara comenzaron
comenzó comer comerme comers comerse comerte comes comet cometa comete cometem cometidos comets começado começamos
começando começaram começarem comia comic comica comical comici comico comida comido comiendo comienzo comienzos
comigo cominci cominciamo cominciando cominciano cominciare cominciata cominciate cominciato cominciava coming comique
comisiei comisión comité comités comizi comió comma commande commanded commander commandeur commando commandos
commands commandée commas comme commence commenced commencer commences commencing commencé commencée commended comment
commentando commentano commentare commentato commentatore commente commented commenter commenting commenté commençait
commençant commerce commerces commerçant commessa commesso commet commies comming commits commossa commosso comms
commune communes communisme communiste communs commute commuted commuter commuters commutes commuting como compacto
compagine compagna compagne compagnia compagnie compaiono companheiros compania companie companiei companii companiile
compara comparada comparado comparados comparamos comparan comparando comparar compare comparou comparse comparso
comparta compartan comparte comparten compartidas compartidos compartilhadas compartilhado compartilhados compartilham
compartilhando compartilhem compartimos comparto compartía compartían comparve comparée comparó compatto compañeras
compañeros compete competed competente competenze competes competing competitivos competiției competiții compie
compiendo compilar compiled compiler compilers compiles compimento compiono compiti compito compiuti compiuto
complains complaint complaints compleet compleja complejas complejo complejos complement complementarias
complementarios complementary complemented complementing complemento complements complessa complesse complet completa
completado completando completare completas completato complete completed completes completing completion completo
completos complets completă complexa complexas complexe complexes complexion complexo complexos complexă compliant
complicadas complicados complied complies compliment complimentary complimented complimenting complimento compliments
complique compliquée compliquées compliqués comply complète compone componentes components compor comporta comportait
comportan comportano comportant comportato comportent comporti composant composantes composants compose composent
composing composta compostas composte composti composting compostos composée composées composés compra compraba
comprada comprado comprados compram compramos compran comprando comprano comprar compraram comprare comprarle
comprarme comprarse comprarte compraste comprata comprate comprato compre comprenait comprenant comprendo comprendrais
comprendras comprendía comprensione comprensión compresa comprese compresión compressa compresse compressione compri
comprida comprido comprimento compro comprometidos comprou compró comps comptait comptant compte comptent compter
comptes compteur compté comptés compuestas compuestos computadoras compute computed computer computers computes
computing compétence compétences compétent compétente compétentes compétents comte comtes comté comtés comun comuna
comune comunicado comunicano comunicare comunicarse comunicarte comunicato comunista comunitarias comunitarios
comunitate comunitárias comunitários comunități comunității comète comédiens comédies comía conca concave concebida
concebido conceder concedida concedido concedidos conceit conceited conceito conceitos conceits conceived conceição
concejo concejos concelho concentrado concentrando concentrano concentrare concentrarmi concentrarsi concentrate
concentrato concentre concentrée concept concepten conceptos concepts conceptul conceput concepção concernait
concernant concerne concerned concernent concerns concernée concernées concernés concert concerte concerted concerten
concerti concerto concertos concerts concertul concesiones concesión concessa concesse concessi concession concessione
concessioni concessions concesso concetti concetto concezione conch conciencia conclave concluant conclude conclue
conclure concluse concorda concordano concordato concorde concordi concordia concordo concorre concorsi concorso
concours concreet concret concretas concrete concreti concreto concretos concrets concurrents concussion concussions
condado condamne condamnée condamnées condamnés condannare conde condena condenado condenados condensado condesa
condessa condivide condividi condivido condivise condivisi condiviso condizionale condizionare condizione condição
condole condoms condones condos conduce conducive conduct conductas conductive conductos conducts conducă conduire
conduis conduisait conduisant conduisent conduit conduite conduites conduits condusă conduzido conduzidos conduzindo
conduzione condução condé condón cone conecta conectadas conectado conectados conectando conectividad conejo conejos
cones coney confer confermando confermano confermare confermate confermato conferme confers confesiones confesión
confess confessa confession confessione confessioni confessions confesso confezione confezioni confia confiado confiam
confiando confiar confida confidant confide confided confident confiding confie configurado configurando confine
confined confining confira confiram confirma confirmación confirmada confirmadas confirmado confirmados confirmam
confirman confirmando confirmant confirmar confirmation confirme confirmed confirment confirmer confirming confirms
confirmée confirmées confirmés confiée confiés conflict conflit confondues confondus conforma conformación conformada
conformado conforman conformar conformation conforme conformed conformer conformi conforming conforms confrère
confundido confus confusión confuso confusos confusão confère congedo congested congo congressman congressmen congé
conhecemos conheceram conhecia conhecida conhecidas conhecidos coni coniato conical conifers conigli coniglio
conjuntos conmigo connaissait connaissant connaisse connaissent connasse conne connecte connection connective
connectée connectés conned conner connessa connesse connessi connessione connessioni connesso conning connor connosco
connu connue connues connus cono conocemos conocerlos conocernos conocerse conocerte conocidas conocidos conocimos
conoscente conoscenti conoscenze conoscere conoscerti conoscete conosco conoscono conquis conquistado conquistando
cons consacre consacrée consacrées consacrés conscience consciencia consciente consectetuer consectetur consecutivas
consecutivos consegnare consegnate consegne consegue conseguente conseguenze conseguiam conseguido conseguimos
conseguindo conseguiram conseguirem conseguirmos consejera consejería consejo consejos conselho conselhos consent
consenta consented consentita consentiva consents consertar conserto conservado conservadoras conservadores
conservando conservano conservant conservar conservare conservate conservato conserve conservent conservée conservées
conservés consideraba considerada consideradas considerado considerados consideram consideramos consideran
considerando considerano consideraram considerare considerata considerate considerato considerava consideren
considérait considérant considérées considérés consiente consiga consigan consigas consigli consigliamo consigliano
consigliare consigliate consigliato consigliere consiglierei consiglieri consiglio consigna consignas consigo
consilieri consistait consistant consistent consistenza consoante console consome consomme consommée const consta
constam constance constant constante constantes constants constantă constar constat constatant constatar constate
constatée conste constituait constituant constitue constituent constituie constituée constituées constitués
constituție constricted constructed construcții construidas construidos construimos construire construite construites
construits construídas construídos constă consueta consueto consulado consulente consulenze consuls consulta
consultado consultar consulto consultor consultora consultoria consultoría consults consumano consumato consument
consumers consumes consumido conséquence cont conta contaba contaban contable contables contact contactar contacted
contacten contacter contacting contacto contactos contacts contacté contada contadas contado contados contam contamos
contando contano contant contante contanti contanto contar contaram contare contarle contarles contaron contarte
contará contas contatar contati contato contatos contatti contatto contava conte contea contei contemplado
contemporaines contemporains contemporáneas contemporáneos contemporâneas contemporâneos contenait contenant
contención contended contendenti contendo contends contenente contenenti contenga contenidas contenidos contenir
content contenta contentar contente contented contenter contenti contention contentions contento contentos contents
contenté contenu contenue contenues contenus contenuta contenuti contenuto contenção contes contesa contessa contest
contesta contestado contestando conteste contested contester contesti contesto contests contesté contestée context
contexte contexto contextos contexts conteúdo conti contida contidas contido contiene contiennent contient contigo
contiguous continent continente continenti contingent contingente continha continua continuaba continuada continuado
continuait continual continuall continuam continuamos continuando continuano continuant continuaram continuare
continuarem continuaremos continuas continuata continuate continuato continuava continuavam continue continuem
continuent continues continuino continuos continuous continúan continúen conto contou contours contra contrabando
contract contracted contracten contracter contracting contraction contracts contractul contracté contradictorias
contraintes contraints contrajo contraption contrarias contrarie contrarios contrarre contras contrast contrasta
contrasted contrasti contrasting contrasto contrasts contrata contratado contratar contrato contratos contratti
contratto contre contribuant contribue contribuent contribuie contribuire contribuito contribute contributo
contributori contributorii contribuyen contribuție contro control controlada controladas controlado controlados
controlando controleer controles controllando controllano controllare controllate controllato controller controllore
controls controul controversa controverse controversia controversie controversée contrárias contrários contrée
contrées contrôle contrôler contrôles contrôleur contrôlée contrôlées contrôlés contul contém contó convaincre
convaincue convection convective convenait convención convened convenga convening convenio convenios convenir convent
convention conventions convento conventos convenu convenzione convenzioni convenção converge converged converging
conversando converse conversed conversing conversão convert converted convertidos converties converting convertirse
convertis converts convey conveyed conveying conviction convida convidadas convidado convidados convidamos convidando
convido conviene conviennent convient conviertan convierten convince convincermi convinge convinti convinto
convinzione convinzioni convite convocados convoque convosco convém conçu conçues conçus cook cooked cooker cooking
cooks cool cooled cooler coolers cooling cools coon cooper cooperare coopers coordinare coordinate coos copa copaci
copado copas cope coped copia copiado copias copiato copie copied copier copies copii copiii copine copines coping
copo copos coppa coppe copped copper coppia coppie copping copre coprendo coprono cops copse copses copying coque
coquille coquilles cora coral corals coran corano coração cord corda cordas corde cordes cordone cordones cords cordón
core corea coreano coreanos coreia cores cori corna corne corned corneille corner cornes cornet corning corno corny
coro coroa coroas corona corone coroner coros corp corpi corpo corporal corporeal corpos corps corpse corpses corpul
corpului corpus corra corral corrales corran corre correa correctas correcte correctie correctos corredato corredo
corredor corredores correia correio correios correlato correm corremos corren correndo corrente correnti correo
correos correre correria corres corresponda correspondait correspondance correspondant correspondante corresponden
correspondent correspondía correta corretas correte correto corretor corretos corretta corrette corretti corretto
correzione corri corria corrida corridas corridoi corridor corridos corriere corrige corro corrono corrotta corrotti
corrotto corrupte corruptie corruptos corruzione corría cors corsa corse corses corset corsi corsia corsie corso corta
cortada cortadas cortado cortados cortam cortan cortando cortar cortaram cortaron cortas corte cortei cortejo corten
corteo cortes corti corto cortos cortou cortó coruja corvo cosa cosas cosce cosciente coscienze cose coser cosey cosi
cosmic cosmico cosmique cosmo cosmos coso cost costa costaba costado costados costando costano costante costanti
costar costard costare costará costas costata costato costaud costava coste costear costera costes costi costilla
costing costituire costituita costituite costituiva costo costole costoro costos costosa costose costoso costosos
costringe costruire costruite costruzione costs costui costuma costume costumes costumi costura costó costă cosy cota
cotado cotas cote cotes cotidianas cotidianos coto coton cotone cots cotta cotte cotti cotto cottura coté cotés coube
couch couche couched coucher couchée coude coudes coudre couette cough coughed couille couilles could coule coulent
couler couleur couleurs coulé coulée councillor councilor counsel counseling counsell counselling counsellor
counsellors counselor counselors count counted counters countess counties counting countless countries country
countryman countrymen countryside countrywide counts county coupant coupe coupent couper coupes couple couples couplet
coups coupure coupé coupée coupées coupés courait courant courantes courants courbe courbes courent coureur coureurs
courier couriers courir couro couronne couronnée courriels courrier courriers cours course courser coursers courses
coursing court courte courted courtes courtier courtiers courting courtly courts cousin cousins coussin coussins cout
couteaux couto coutume coutumes couture couvent couvert couvertes couverts couvrant couvre couvrent couvrir covas cove
cover covered covering covers covert covet coveted covey covo cowed cowered cowering cowok cows coxas cozido coûte
coûté crabe crabs crache cracher crack cracked cracking crackled crackling cracks craftsman craftsmen crags craie
craignait craignant craignent craint cram crammed cramming cramp cramped cramping cramps cran crane craned cranes
crank cranked cranking cranks crap crape craps craque craquer craqué crash crashed crashes crashing crass crasse crate
crater craters crates crato crave craved craves craving cravings cravo crawfish cray crayfish craze crazed crazy crea
creado creados creadă creaked creaking cream creamed creamos crean creando creano crear creare creas crească crease
creases creat creata create created creates creatine creating creation creativas creative creativos creato creatore
creature creată crece crecen crecer creces crecí crecía cred creda crede credeam credem credendo credente credenze
credere credete credi crediamo credimi credincioși crediti credo creduto cree creed creeds creek creeks creen creep
creeps creer creerse crees creezi crei creiamo creio crema cremated cremation creme crente crentes crença creo crepa
crepe crepes crept cresc cresceram cresci crescita cresciuta crespi crest cresta crested crests cresça creta creux
crews creyó crezi creí creía creían creías creído creó creșterii creștini criada criado criados criait criam criamos
criando criant crias criativas criativos cribs crick crie cried crient crier cries crime crimes crimineel criminele
criminosas criminosos crimp crimă cringing cris crise crises crisis crisp crisps criss cristiana cristianas cristianos
cristina cristo cristão cristãos cristãs criticada criticado criticando criticano criticare criticato critici
criticises criticisms critique critiquent critiquée criza criză croak croaked croaking croata croate crock crocker
croient croire crois croise croisent croissance croissante croisée croisées croisés croix crolla crollare crollo
cronache croniche crony crook crooked crooks crop cropped cropping crops croque croquer cross crosse crosta crotch
crouch crouched crowd crowded crowding crowds crowed crowing crown crowned crowning crowns crows croyait croyant
croître croûte crua cruce crucii crud cruda crudi crudo crue cruelly cruelty crues cruisers cruises crumbled crump
crumpled crunch crunches crus crusaders crusades crushing crutch crutches cruza cruzadas cruzado cruzados cruzando
crème crève création crée créée créées créés crêpe crêpes crête cría crías críticas críticos családja csalás csapata
csapatnak csináld csinálja csináljuk csinálják csinálnak csinálom csinálta csináltak csinálunk csirke csoportba
cuadrados cuadro cualidad cuan cuando cuanta cuanto cuantos cuantía cuarta cuartel cuarteles cuarto cuartos cuarzo
cuasi cuatro cuba cubano cubes cubicle cubiertas cubiertos cubos cubra cubre cubría cubs cuca cucchiaino cucchiaio
cucina cucine cucire cudowne cudownie cueca cuela cuelga cuenca cuencas cuenta cuentan cuentas cuente cuerda cuerno
cuernos cuero cuerpo cuerpos cuervo cuervos cues cuesta cuestan cuestas cueste cuestionado cueva cuevas cuffed cugina
cugino cuidad cuidado cuidando cuidao cuidarse cuido cuidáo cuimhne cuire cuisiner cuisinier cuite cuites cuiva cuivre
cujos culata culero culi culla culled culling culo culoare culori culos culpa culpado culpando culpo culta culte
cultes culti cultive cultivée cultivées cultivés culto cultos cults culturais culturale culturas cultureel culturele
culturels cultures culturi culturii cuman cumbre cumhuriyeti cumpla cumplidos cumplía cumprida cumprido cumprimento
cumprindo cumpăra cumva cuna cunele cunese cunesos cuneste cunestos cunt cunts cuochi cuoco cuoio cuore cuori cuota
cuplu cupo cupos cuprinde cuprinse cuprinsă cups cura curando curang curano curar curare curas curate curato curbed
curbing curbs curd curdi cure cured cures curia curie curing curiosos curled curling curls curly curro curry cursa
cursar curse cursed curses cursi cursing curso cursos cursă curt curta curtas curte curtea curtly curto curtos curtsey
curtsy curva curvas curve curved curves curving curvy curții cuscino cusp cussed cussing custa custas custo custos
cute cuter cuticle cutie cutler cuts cutter cuve cuvinte cuyas cuyos cuzco cuándo cuánto cyclisme cycliste cykel
czarny czasu czasy czasów czele czyli czymś czyni czysta czyta czytałam czytałem cárcel cártel câine câini câlin cânte
cântă câte câtă cédula cégek célba célja célra célula células címe címét cínico církev církve cítíte cívico cómica
cómico cómics cónaí călin călători călătoria călătorie călătorii cărți cărții căsătoria căsătorie căsătorit cœur cœurs
daad daag daagt daalt daaraan daardoor daarvan daarvoor daban dabei dacci dacht dachten dadas daddy dadelijk daden
dado dados daemon daerah daft daftar dagang dagarna dage dagen dagene dagens dager dages dagger daggers daging dagis
dagje dagli dags dahası daher dahil dahin dailies daily daima dairy daisies daisy dajcie dają daken dakikada dalarna
dale dalej dalen dales dalga dali daling dalla dalle dallo dally dalt dalı dalında dama damage damas dame damen damene
damer dames damla dammage dammen dammi damned damning damos damped damper damping damps dams damy dana dance dancer
dancers dances dando dandy dane danego danej danger dangers danh dania danie danificadas danificados dank danke danken
dankt dankte danne danneggiare danneggiate danneggiato danner dannet danno dano danos dans dansa danse dansen danser
danseres dansers danseur danska danske dansker danskere danskerne danst dansı dante dany danych danym danze dança
dançarinos danço daní daně dapat dapper dapur daquelas daqueles darah daran darat darauf daraus darbo darci dare dared
darei daremos dares dargli darimu darin daring darla darle darlehen darling darlo darm darme darmen darmi darne darned
darnos daro darse darsi darte darted darti darting darts darum darunter darvi darwin darüber dasar data dataa datang
datar datas datation datazione date dateci dated datei datemi daten dates dati dating datoria datorită datos datter
datti datum datée dauer daukat daumen dauzkat davası davids davis dawaj dawn dawna dawne dawned dawniej dawning dawno
dawns dawnych dayak dayalı dayanarak dayen dazed dağılımı dağıtım daɣen dcerou dceru ddydd ddysgu deach dead deadly
deaf deagh deal dealer deals deans dear dearer dearly dears dearth deary death deaths deba deban debased debat debate
debated debating debemos deben debera deberea deberes debes debeva debida debidas debido debiendo debieran debieron
debit debito debounce debs debt debts debut debutat debuting debuts debía debíamos debían decaf decal decals decay
decayed decaying decays decease deceased deceit decemberben decencia decenni decent decente decentes decenti decenza
dech decida decidas decide decided decidere decidi decidido decididos decidimos decidindo deciding decidiram decido
decile decima decime decimo decimos decina decine decirle decirme decirnos deciros decirse decirte decis decisa decise
decisi decision decisive deciso decizii deck decke decken decks deckt declamation declaraba declarada declaradas
declarado declarados declaramos declarando declaration declare decoding decolar decorado decorador decorar decorator
decoro decorso decrease decreased decree decrees decência decía decíamos decían decías decís dede deden dedi dedicaba
dedicada dedicadas dedicado dedicados dedicamos dedicando dedicano dedicare dedicarle dedicarse dedicarsi dedicat
dedicata dedicate dedicati dedicato dedicată dedico dedik dedikleri dediler dedim dedin dediniz dedizione dediği
dediğimiz dediğin dediğini dedos deduce deduced deducted deeds deelnamen deelnemen deem deems deer default defaut
defeat defeated defeats defect defected defection defective defector defectors defects defence defenceless defences
defend defenda defendant defende defended defendem defendendo defender defendia defendida defendiendo defending
defendo defends defendía defense defenseless defenses defensora defensoria defensoría defer deferred defiant defied
defienden defiendo defies defile defiled define defined definere defines definidas definido definidos definieren
definierten definimos definindo definire definirei definirsi definit definita definite definiva deflated deflect
deflected deflection deft defying defòra degelijk degelijke degen degene degenen degli degni degree degrees dehen
deign deigned deigning deine deinen deiner deirfiúr deist deit deita deitada deitado deitar deitou deitu deixa deixada
deixadas deixado deixados deixamos deixando deixar deixaram deixarem deixava deixavam deixe deixou dejaba dejaban
dejado dejalo dejame dejamos dejan dejando dejara dejaran dejarla dejarle dejarlo dejarlos dejarme dejarnos dejarse
dejarte dejaría dejarían dejaste dejected dejection dejemos dejen dejes dejta dejte dejun dekat deken dekken dekker
deklare deklarieren deklarierten dekt dela delar delas delay delayed delaying delays dele delectable delegada delegado
delegados delen deles delete deleted deleting deletion delft delgada delgadas delgado deli delicada delicadas delicado
delicados delicata delicate delicati delicato deliciosas deliciosos delicious delik delikatnie delirious dell della
dello dels delta deltagere deltakelse deltakere deltar delte delude deluge deluxe demandait demandant demande
demandent demander demandes demandeur demandojn demandon demandée demandées demandés demasiadas demasiados demedhys
demedim demek demencia demente demenza demeurant demeurent demir demise demiyorum demjenigen democráticas democráticos
demografica demokracji demokraten demon demons demonstrada demonstrado demonstrando demorado demorando demorar demos
demostrado demostrando demoted demotion demselben demuestran demuestren demut demência demòra denaro dene denedim
denen denetim deneyin dengan denganmu denge denial denied denier deniers denies denir denis denise deniyor deniz
denizde denize denizi denizli denjenigen denke denken denker denkst denkt denle denn denning dennis denominadas
denominados denote denoted denotes denoting denounce dens densa denselben denser dental dente dented dentes denti
dentre dentro dents denunciado denunciando denunciano denunciare denunciato denver denying deoparte deosebire
deosebite depan depanmu departe departed departing department depend dependant depende depended dependem dependencias
dependencies dependendo dependent depender dependiendo depending depends dependía deplete depleted depleting depletion
deplin deplored deployed deport deported deporting deportivas deportivos deportment deposito deposto depot depots
depraved deprivation deprive deprived depriving dept depth depths depto deputat derail derailed deram deras derby
derden derdi derdim derdin dere derecede derechas derechos derem deren deres dergelijk dergelijke dergi dergisi deri
derided derim derin derision derisive derivadas derivados derivano derivante derivanti derivare derivate derivati
derivation derivato derive derived derives deriving derjenigen derken derler dermed dernek derniers dernière deroga
derrière derrocar derrotado derrotar derrubado derse derselben dersi dersin dersiniz dersler dersleri derved
desaparecidas desaparecidos desarme desarrolladas desarrollado desarrollados desarrollamos desarrollan desarrollando
desarrollen descansan descansen descanso descarado descarga descargado descargar descargo descaro descarta descartado
descartar descaso desce descendance descendant descendent descendiente descends descenso descent descents deschide
deschis deschise deschisă descida descobertas descobertos descobriram descobrirem desconhecidas desconhecidos
desconocidas desconocidos descoperite described descrie descried descris descritas descritos descrição descubiertos
descubren desde deseaba deseada deseado deseados deseamos deseando desechos desee desejada desejado desejando desejar
desejava desejo desem desemnat desen desenhado desenhando desenvolveram desenvolvidas desenvolvidos desert deserta
deserted deserting deserts deserved deserving desesperados desfășurare desfășurate desiderano desiderare desiderata
desiderate desiderato desiderava desiderio desidero desierto desiertos design designar designed designer designing
desistindo deska desks desku desky desnudas desnudos despacho despacio despacito despatch despatched despedidas
despedidos despegar despejar despejo desperta despertado despertando despesa despierta despiertan despierten despierto
despiertos despise despite desplegar desportivos despot despots despues después dessa dessas desse dessein desselben
dessert desserts desses dessin dessine dessins dessiné dessinée dessinées dessous dessus desta destacada destacadas
destacado destacados destacando destas deste destek destekleyen destes destin destinadas destinados destinare
destinate destins destiné destinée destinées destinés destra destro destruidas destruidos destruídas destruídos detail
detailed detailing details detained detaining detalhadas detalladas detallados detaylı detección detect detectable
detectar detected detection detective detector detectors detects detecção detención detenidas detenidos detention
detentor detenção deter detergent determinadas determinado determinados determinando determinano determinante
determinanti determinare determinat determinate determinati determinato determine deterred deterrent detest detested
detetive detida detido detidos detour detsamma detta dettare dettate dette detti detto deuce deuda deudas deuren deusa
deuses deut deux deva devaient devais devait devamlı devamı devant devedhys devem devenait devenant devendo devenues
devenus dever deves devez devia deviam deviant device devida devido devient devine devint devions devis devise devlete
devono devons devote devoted devotee devotees devotes devoting devotion devoto devour devraient devrais devrait devre
devreye devrez devri devriez devrim devrimci devrions devrons devuelta devuelto devuelva devuelvan devuelvas devuelven
devuelves dewan dewar dewasa dexter deyin deyince deyip dezakegu dezakezu dezelfde dezesseis dezvoltare dezvoltate
değeri değerini değerlere değerleri değerlerini değerlerle değerli değilim değilse değilseniz değilsin değilsiniz
değişen değişim değişir değişiyor değişken değiştiren dheirfiúr dhwygh dhywgh dhèanamh dhéanamh diacono diadakan
diaframma diagnoses diagnosis diagramma diajak dialetto dialogo diamo dian diana diane diangkat diano diante diaper
diari diario diarrhea diarrhoea diary dias dibaca dibahas dibakar dibatasi dibawa dibayar dibebaskan dibeli diberi
dibesarkan dibiarkan dibine dibuat dibujado dibujando dicano dicas dicci diced dicendo diceritakan dices dicesse
dicevamo dicevano dicey dich dicha dichiarando dichiarano dichiarare dichiarata dichiarate dichiarato dichiarava dicht
dichters dici dicintai dicit diciéndole diciéndome dickey dicks dicky dico dicono dicta dictée didasarkan dido diebe
dieci died diede dieet diegene diegenen diego diem dienden diene dienen diener diens dienst dienste diensten dient
diente dienten diepe diepste diepte dier diera dieran dieren dieron dies diese diesen dieser dieta diete dieter diets
dieux dieven diezelfde difende difendere difendono difetti difetto different differente differenza differenze
differenzia differenziano diffuse diffuser diffuseur diffusée diffusées diffusés différence différences différencie
différends différent différente différentes différents diga digan diganti digas digest digested digli digna dignas
digne digno digo digs digue diharapkan diho diisi dijera dijeran dijeron dikalahkan dikkate dikkatini dikkatli dikke
diktator diktatur dilation dilde dildo dile dilek dilerim diles diletta dili diligencia dilihat dilin dilini diliyorum
dill dille dillo dilly dilo dilution dime dimensiuni dimenticando dimenticano dimenticare dimenticarsi dimenticate
dimenticati dimenticato dimenticavo dimes dimette diminuant diminuent dimisión dimly dimmelo dimmi dimos dimostrando
dimostrano dimostrare dimostrate dimostrato dina dinamakan dinamo dinanzi dine dined diner dineren diners ding dingen
dinger dinghy dings dingue dingy dinhi dini dining dink dinky dinle dinleme dinlemek dinler dinleyin dinliyorum dinner
dinners dino dintre dinyatakan dinámicas dinâmicas dinți dioho diolo dios dipende dipendente dipendenze dipendere
dipendono diperkenalkan dipinge dipinte dipisahkan diplomas diplomate diplomatie diplomats diplomáticas diplomáticos
diplôme diplômée dipped dipper dipping dips diputado dira dirai dirais dirait diras dirasakan dirci dire direbbero
direct directas directe directes directie directivas directivos directos directs direcției direi direita direito
direitos direk direkt direkter direktor direktorin dires diresse direta direte direto diretora diretoria diretos
diretta dirette diretti diretto dirgli diria diriam dirige dirigeait dirigeant dirigeants dirigencia dirigent
dirigenza dirigia dirigida dirigidas dirigido dirigidos dirigimos dirigindo dirigée dirigées dirigés diriku dirimu
diritti diritto dirle dirlo dirmi dirsi dirtelo dirti dirua dirvi disaient disais disait disant discesa disco discount
discounted discreet discrete discrição discs discus discuss discuta discutat discute discutent discuter discutere
discuterne discutido discutidos discutimos discutindo discuté disebabkan disebut disegnare disegnate diserahkan
disertai dises diseñadas diseñados disfrutado disfrutan disfrutando disfruten disfrutes disido disio disks diskuteras
diskutere diskutieren diskutierte diskutierten dismal dismount dismounted disons disparado disparando disparate
disparati dispares disparos disparte disparues disparus dispatch dispatched dispensa dispensar dispense dispensed
dispensing disperate disperati disperse dispersed dispersing dispersos dispersés displaced displacing displayed
displaying disponibilizadas disponibilizado disponibilizados disposait disposant disposent disposta dispostas
dispostos disposées disposés dispuestas dispuestos dispune disputado disputando dispute disputent disputer disputé
disputée diss dissect dissecting dissent dissenting dissesse dissi disso dista distal distance distant distante
distanti distanze distesa distinctes distincts distintas distinte distinti distintos disto distract distracts
distratta distratto distrazione distretti distretto distribue distribuidas distribuidos distribuire distribuite
distribuée distribuées distribués distribuídas distribuídos distribuție district districts distruge distrusă distrutta
distrutti distrutto distruzione dita ditado ditahan ditandai ditas dite ditelo diterapkan dites ditetapkan diti dito
dits ditt ditta dittatore dittature ditte ditu ditugaskan ditut diuji divadle divano divario dive dived diventa
diventando diventano diventare diventata diventate diventato diventava diventi diventino divento divenuta divenuti
divenuto diver diverge diverged diverging divers diversas diverse diversify diversity diverso diversos diversão divert
diverte diverted divertenti divertidas divertido divertidos divertindo diverting divertirmi divertirsi divertiti
diverto dives divest divested divida divide divided dividend divididas dividido divididos dividindo dividing diviene
divina divinas divine divined diving divining divino divisa divisas divise divisi división diviso divisée divisés
divulgadas divulgado divulgados divulgando dixit diyanet diyecek diyelim diyen diyerek diyorsun diyorum dizerem dizia
diziam dizide dizimi dizini dizinin dizisi dizisinde dizut diálogo diária diète diğerleri diğerlerini diňleýärdiňmi
diňleýärsiňmi dişi djupt dnech dneska dnia dnie doado doanh doar doare doba dobar dobou dobra dobre dobro dobrou dobry
dobrze dobu docce docela docencia docente docentes doces doch dochters docks docs doctor doctoro documentacion
documentación documentare documentari documentati documentation documentos documents dodaje dodelijk doden dodge
dodged dodgers dodges dodging dodgy doeken doelen doen doente doentes doers does doge dogged dogging doggy dogmi
dohodu doigt doiho doina doing doings doino dois doit doiti doive dojem dojść doktor doktoro dokud dokumenter
dokumentert dokuz dokážete dokážou dokážu dokümanlarına dokümanlarında dokümantasyon dokümantasyonu dokümantasyonuna
dokümantasyonunda dokąd dokładnie dolara doları dolayı dolce dolch doldu dole dolente dolgokat dolgozik dolgoznak
dolgozom dolgoztak doll dolní dolor dolu dolusu domaine domaines domains domed domem domenii domes dominado dominando
dominano dominant dominante dominantes dominants dominato domine dominent domingo domingos dominieren dominierten
dominio dominios domino dominée dommeren domnia domnul domu domum domuz domy domésticas domésticos domů dona donación
donado donar donare donas donata donati donation donations donato donazione donde donder dondurma done dones dong
dongen doni donker donna donnait donnant donne donned donner donnes donneur donning donnée données donnés donor donors
donos dons donum doodbleven doodblieven doomed door doorbreken doorgaan doorgang doors doorsnee doos dopage doped
doping dopravu dora dorada dorado dorados dorata dorati dorato dorazí dorea dores dori dorim doris dorit dorky dormait
dormant dorme dormi dormido dormidos dormimos dormindo dormito dormo dorp dorpen dors dorso dory dorée dorés dosage
dosar dose dosed doses dosing dosis dosso dost dostają dostaneme dostanete dostanou dostanu dostanę dostałam dostałem
dostępne dosud dosya dosyada dosyası dosyasına dosyasında dosyaya dosyayı dosáhl dosáhnout dotación dotado dotar
dotata dotate dotati dotation dotato dotazione doter dotes dots dotto doté dotée dotées dotés dotąd douar double
doubled doubling doublée doubted doubting douce douces douceur douche douches douleur dour dourado dourados douro
doused doute douter doutes doutor douté douze doué douée doués dove dovedi dovere doveri dovermi doversi doves dovessi
dovete dovette dovevamo dovevano dovevi dovezi dovrei dovremmo dovremo dovreste dovrete dowiedziałem down downed
downing downs downside downsize downy dowry dozen dozenten dozing dozvíte doğa doğdu doğmuş doğru doğrudan doğrulaması
doğrulamayı doğrusu doğruyu doğu doğum doğumlu dość dpto draad draag draagt draait draak drabbas drachten draden draft
drafting drage dragen dragging dragh dragi dragon dragons dragoon dragoons drags dragul dragă drain drake draken dram
drama dramas dramatisk drame dramen drames drammen drammi dramáticas dramáticos dran drang drank drape draper drar
dras dratt drauf draughts draus drawer drawing drawling drawn draws dread dreaded dreading dreads dream dreamed
dreamily dreaming dreams dreamy drearily dreary dreck dregs drehe drehen drehte drehten dreien dreier drepe dreper
drepte dress drevet drie dried drier dries drift drifting drijft drikker drill drily drin dringen dringt drink drinken
drinkt drinnen dripped dripping drips drit drite driter dritt dritta dritte drittens drittes dritti dritto driva drive
driver drivers drives driving drivs droeg droegen droga droge drogen drohen drohne drohnen drohte droit droites droits
droll dromen drone drones drong droni droning dronk dronken droog droop drooped drooping drop droppe dropped dropping
droughts drove droves drown drowned drowning drowns drugging drugs druhou druhu druhy druhů druiven drukke drukste
drukte drum drums drunk drunks drunter dryer drying drága dráhy dráma drängen drängten dræbe dræbte drëch dröffst
dröfft drømme drømmer drøyt drüber drücke drückte držet držte duarte duas dublu dubnu ducato duce ducha duchy duci
ducked ducking duckling ducks ducky ducts duda dudar dudas duden dudes duds duela duele duell duello duelo duels dues
duet dueto duets duetto duhet duiden duidt duif duiken duikt duimen duinen duiven dukes duket dukket dulce dulden
dullness dully dulness duly duma duman dumma dumme dummer dumna dumny dumped dumping dumpling dunas dunes dunk dunked
dunkel dunkeln dunking dunkle dunklen dunks dunning duped duplo duplos dura duram duran durano durante durar durare
duras durato durchbrechen durchbrochen durdu dure duren durere dureri dures duress durma durmadan durmak durmo duro
durs durst dursun durum duruma durumda durumlarda durumuna durumunda durumunu durun durup durur duruyor durven durão
durée durées dusky dust dusty dusun duta duty duuhia duutia duvar duvara duvet duwen duyan duyar duydum duyduğu duygu
duygularını duygusal duygusu duymak duyulan duyurdu duyuyorum duyuyoruz duzentos dużej dwaj dwang dwars dwell dwie
dwingen dwingt dwong dybe dydd dyeing dyer dyes dying dykes dypere dyre dyrene dyrere dyrke dyrt dysgu działa dzieci
dzieje dzieli dziennie dziesięciu dziesięć dziewczyna dziewczynka dziewczyną dziewczynę dziewięć dziwi dziwne dziwnie
dzięki dándole dándose dárek dárky dávky dávno dâhil dèanamh déanamh débarque débarquer débauche débit débits débogage
déboggage déboggueur déboguer débogueur débouche débutant débutent débuté décence déchet déchets déchire décide
décident décidée décision déclarait déclarant déclare déclarent déclarée déclarées déclarés déclenche déclencher
déclencheur déclenchée décolle décorer décors décoré découle découlent découpe découvertes découverts découvrant
découvrent décret décrets décrire décrite décrites décrits décrivant décrivent dédiées dédiés défaire défaite défaut
défend défendait défendant défendent défendre défendu défendue défense défenses déficit défier défiler définies
définis définissent définit défonce défoncer défoncé dégage dégagée déjame déjate délce déle délicates délice délices
délire délires délit délits délivre délivrée démarquer démence dément démocrate démocrates démocratie démocraties
démonter démontre démontrent démontrer dénonce dénoncer dénoncé dénouement dépassant dépasse dépassent dépassée dépend
dépendait dépendance dépendances dépendant dépendante dépendants dépendent dépendre dépense dépenses dépit déplace
déplacée déplacées déplacés déplaise déploie déplore déplorer déployer dépose déposée déposées déposés député dérision
dérive déroule déroulent déroulée déroute désactive désactivée désignant désigne désignent désignée désirant désire
désirent désirée désole désolée détache détachée détachées détachés détail détaille détaillée détaillées détaillés
détails détecte détecter détecteur détecteurs détection détecté détendre détendu détente détenteur détenteurs
détention détenu détenue détenues détenus déterminant détermine déterminée déterminées déterminés déteste détester
détesté détourne détruire détruisant détruisent détruite détruites détruits développant développe développent
développer développeur développée développées développés dévoile dévoilée dévorer dévouement dévoué dërch dígame
díganme díja díky díla dílny dílu díly dínhi dívku dívky dóctor dóktor dónde döda dökümantasyon dökümantasyonu döma
döndü döndüm döndürecek döndüren döndürerek döndürün dönem dönemde döneme dönemi döneminde dönemine dönemlerde dönen
dönme dönmek dönmesi dönmüş döntése döntést dönük dönüm dönüp dönüyor dönüş dönüştü dönüşü dövme dövüş døden dømme
dømt døre døren dørene dücht dünger dünn dünne dünnen dünner dünyada dünyası dünyasında dünyaya dünyayı düren dürfe
dürfen dürfte dürften dürre düzen düzeni düzenledi düzenlediği düzenlendi düzenlenen düzenli düzeyde düzeyi düşer
düşmüş düşük düşün düşünce düşüncesi düşünen düşünerek düşünme düşünmek düşünmeye düşünmüyorum düşünün düşünüp düşünür
düşünüyor düşünüyorum düşünüyoruz děláme děláte děti dětmi dětství dışarıda dışarıya dışı dışına dışında dłużej důkaz
důraz dźěćo dźěło eager eared earls earned earning earnings earns earring earrings ears earthly earthy ease eased
eases easie easing east eater eaters eating eats eaves eben eccellente eccellenze eccoci eccoli eccome eccomi eccone
eccoti eccovi echado echando echarle echarse eche echtheit echtzeit eclipse ecologia ecologica ecológicas ecológicos
economia economica economice economics economie economiei economies económicas económicos econômicas econômicos
edebiyatı edecek edel edelim edellinen edellisen edema eden edenler eder ederek ederim ederken ederler edersek
ederseniz edersiniz edessä edestä edeyim edhe edici edict edicts edildi edildiği edilecek edilemez edilen edilerek
ediliyor edilmesi edilmesine edilmiş edilmiştir edince edirəm edisi edit edita editado editar edited editing edito
editor editoras editores editou edits editör ediyor ediyorsun ediyorum ediții edle edlen edler eduard educados
educativas educativos edustaa edustaja edustajat edustajia edustavat edward edwin edərəm eender eenhoorn eentje eerder
eerst efectivas efectivos efecto efectos efeito efeitos efendi effect effectuant effectue effectuent effectuée
effectuées effectués effet effettuando effettuano effettuare effettuate effettuato efficiëntie efter egen eget egingo
egne egnet egoism egoismo egotism egyből egyelőre egyesek egyesület egyesült egyet egyetemen egymásra egyre egészen
egészében ehdolla ehen eher ehre ehren ehrungen ehti ehtii eich eier eiere eieren eifel eifer eigen eigenen eigener
eigenes eigens eigin eignen eihän eikel eiken eikös eile eilen eilig eimer einbezogen einbindung einbringen einde
eindringen einen einer eines eingeben eingefangen eingegangen eingehen eingeschlafen eingeschlagen eingesehen
eingestehen eingezogen einheiten einher einig einige einigen einiger einiges einladen einlagen einlegen einleiten
einnahmen einnehmen einrichten eins einschlafen einschlagen einschreiten einsehen einst einsteigen einstieg einstige
einstigen einweihung einzig einzige einzigen einziger einziges einzubringen einzugehen eisen eitel either eject
ejected ejection ejecutable ejecutado ejecutados ejecutan ejecutando ejecute ejecuten ejercido ejercito ejere ekel
ekibi ekkelt ekledi eklendi eklenti eklig ekmek ekonomiczne ekonomiky ekonomisi ekran ekrana eksempler eksisterende
elaboradas elaborado elaborados elaborare elaborate eladó elang elche elden elder elders eldre elección elect elected
electing election elections electo elector electos electro electron electrons electrónicas electrónicos elefant
elefante elefanten elefantes elefanti elegant elegante eleganten elegantes eleganti eleget elegidas elegidos elegimos
eleito eleitos eleje elején elektronisk elem eleme elementos elements elencare elencate eles eletrônicas eletrônicos
eletta eletto elevadas elevado elevados elevando elevare elevate eleve eleven elevene elever elevi elevii elezione
eleştiri elfen elfes elfogadta elften elhagyta eliberare elige eligen eligiendo eligieron eligió elija elijo elimde
elimden elime elimi eliminadas eliminado eliminados eliminando eliminare eliminate elimizde elimizden elin elina
elinde elindeki elinden eline elini elinizde elisa elise elite eliten eliyle elkezdtem ellen ellenben eller elleri
ellerinde ellerinden ellerine ellerini elles ellipse ellos elmenni elmondja elmondta elogiado elogiando elokuva
elokuvaa elokuvassa elokuvasta elokuvia elokuvissa elsa else elster elsőre eltelt eltern elven elves elveszett
elvesztette eläin elämä elämän elämäni elämänsä elämässä elämästä elämää elämään elämäänsä elävä elää eléctrica
eléctricas eléctricos eléri elérni elért elétrica elétricas elétrico elétricos előadása előadó előre email emang
ematen embere emberei emberek emberi embernek embowered emden emek emelt emerge emergente emergenze emersa emerse
emersi emerso emery emessa emesse emessi emesso emeği emigranti emigrate emigrati emil emin emine emir emirate emirati
emisiuni emisiunii emite emiten emitidas emitidos emits emlékeztet emlékszik emner emnet emosi emotioneel emotionele
emotive empate empece empezaba empezado empezando empezara empfehlen empfinden empfohlen empfunden empiece empire
empires empleadas empleado empleados empleando employees employer employers employeur employées employés
empoisonnement empoisonné emportant emporte emportent emporter empowered emprega empregadas empregado empregados
empreitada empresa empress empresta emprisonnement emprisonné emprunte emprunter emptive empujando empurrando
empêchait empêchant empêchent emri emílio enablers enables enact enacted enacting encajar encantaba encantada encanto
encarar encarga encargadas encargados encargar encarna encender encendida encendido encendió encerrada encerrado
encerrados encerrando encerrar enciende encierro encima enclave encode encontraba encontraban encontrada encontradas
encontrado encontrados encontram encontramos encontrando encontrara encontraram encontraran encontraras encontrarem
encontrarla encontrarle encontrarlos encontrarme encontrarnos encontraron encontrarse encontrarte encontraría
encontraste encontrava encontravam encontrem encontremos encore encourage encourageant encouragent encre encrusted
encuentran encuentras encuentren encuentres encuentros encyclopaedia encyclopedia ende ended endel enden ender enders
endes endre endrer endstand endte endued endure endured endures enduring enema enemigas enemigos energia energiaa
energiei energéticas energéticos enerjisi enero enfeksiyon enfermas enferme enfermeiros enfermera enfermería enfermos
enfermée enfers enfia enfiar enfin enforcers enforces enfrentado enfrentamos enfrentando enfuit engage engageant
engaged engagent engagieren engagierten engagée engagées engagés enganado enganar engañado engañando enge engedd
engedi engel engelen engelli engeln engels engen engendre enger enges engin enginn engraçadas engraçados enig enige
enighed enighet enjoy enjoys enkel enkelt enkle enlevées enlevés enmienda enmiendas enmity ennek ennemies ennemis
ennenkin ennenkuin enni ennyi enquire enquêter enquêteur enraged enregistre enregistrée enregistrées enregistrés enrol
enrolado enroll enrollment enrolment enseigne enseñado enseñando enseñarle enseño ensimmäinen ensimmäiseen ensimmäisen
ensimmäisessä ensimmäisestä ensimmäisiä ensimmäisten ensimmäistä ensin ensinado ensinando enslave ensue ensued ensues
ensueño ensuing ensuit ensure ensured ensures ensuring entame entanto entdecke entdecken entdeckte entdeckten ente
enten entenda entendait entendam entendant entende entendem entendendo entendent entender entenderam entenderem
entenderse entendeu entendia entendida entendido entendiendo entendieron entendió entendre entends entendue entendues
entendus entendía entente enter entera enterado enteramos enteran enterar enterarme enteraron enterarse enteras entere
entered entero enterrada enterrado enterrados enterrar enterrée enters enteré enteró entes entfallen entfalten
entfernen entfernte entfernten entgegen entgehen entgeht entgelt enthalten enthousiasme enthousiaste enti entice
entienda entiendan entiendas entiende entienden entiendes entier entierro entinen entire entirely entirety entisen
entities entitles entity entkommen entlassen entlassung entlasten entlastung entnommen entourage entourant entoure
entourent entourée entra entraba entrada entradas entrado entramos entran entrando entrano entrant entrar entrara
entraram entrare entrarem entraron entras entrata entrate entrato entrava entraînant entraîne entraînent entraîner
entraîneur entraînée entrañas entre entred entrega entregadas entregado entregados entregando entregar entregarle
entregarse entren entrena entrenado entrenados entrenando entrenar entrer entres entri entro entrusted entré entrée
entrées entrés entró entscheid entscheiden entscheidest entscheidet entschied entschieden entschloss entschluss
entschuldige entspannen entspannten entsprechen entstand entwerfen entworfen então envers envi envia enviada enviadas
enviado enviados enviamos enviando enviar envie envier envies enviou envisage envisagée envoi envoie envoies envois
envole envoler envolva envolvem envolvida envolvidas envolvidos envoy envoyait envoyant envoyer envoys envoyées
envoyés envy enään epica epico epoca epocă equal equaled equall equalled equated equipados equivocadas equivocados
equivocarse eraan eras erase erased erases erasing erben erbracht erbringen erbsen erdem erden erdhe erding erdoor
erdő erección erect erected erecting erection erections eredménye eredményt ereje erejéig erejét eren eretta eretto
erezione erfahren erfassen erfassten erfinden erfolge erfolgen erfolges erfolgs erfolgte erfolgten erfuhren erfunden
erfährst erfährt erfülle erfüllen erfüllte erfüllten ergaben ergeben ergebnis ergebnisse ergebnissen ergehen erging
erheben erhebt erhielt erhielten erhoben erhoffen erholen erhöhen erhöhten erica erich erigere erilainen erilaisia
erilaista erillinen erinnere erinnerst erinnert erinnerte erinomainen erityinen erityisen erkan erkannt erkannte
erkeklere erken erkennen erkennst erkennt erkennung erkläre erklären erklärt erklärte erklärten erkranken erkrankten
erkunden erlangen erlassen erlaube erlauben erlaubte erlaubten erlebe erleben erlebnis erlebnisse erlebnissen erlebt
erlebte erlebten erliegen ermeni ermöglichen ernaar ernannt ernannte ernennung ernst ernste ernsten ernster ernstes
ernte ernten ernährt eroa eroaa eroe eroica eroico eroilor eroina eroja eron eroon erota erotic erotica erotici
erotico erotische erre erred erregen erreiche erreichen erreicht erreichte erreichten errichten erringen errores
errors erros errungen erscheinen erschienen erschlossen erschossen erschrecken erschrocken erst erste erstellen
erstellten ersten erstens erster erstes ertesi ertrinken ertrunken eruzione ervaar ervan ervas erven ervoor erwachen
erwachsen erwartest erwartet erweisen erwerben erwiesen erwin erwischt erworben erwähnen erwähnt erwähnte erwähnten
erzeugen erzeugten erziehen erzielen erzielt erzielten erzogen erzähle erzählen erzählst erzählt erzählte erzählten
erän erässä erään erótica erótico erők erős erőt esagerare esagerate esalta esas esaten esatta esatte esatti escada
escadas escala escalade escalar escalas escalação escamas escapa escapado escapando escapar escapou escasa escasas
escaso escaño esclave esclavos esclude escluse escobar escocia escoge escola escolar escolas escolha escolhas
escolhidas escolhidos escolta escondida escondidas escondidos escoria escote escova escravos escreva escrevem escrevia
escriba escriban escribas escriben escribes escribo escribía escrita escritas escrito escritora escritores escritos
escritura escrituras escuchado escuchan escuchando escucharte escuchas escuchaste escuche escuchen escuches escudo
escudos escura escuras escuro escuros escuta escutado escutando escutas escuto eseguire eseguite események esen esenti
eser esercitando esercitano esercitato eserciti esercizi eseri eserler eset esetben esett esetében esetén esfera
esferas esigenze esigere esik esimerkkinä esista esistano esistono esitare esiti esito eski eskisi esmer esnasında
esordio esos esotici esotico espaciais espacial espaciales espada espadas espagnoles espagnols espalda espaldas
espalhadas espalhado espalhados espalhando españolas españoles especiais especial especiales especializadas
especializados especias especies especifica especificado especificando especifico específica específicas específico
específicos espejo espera esperaba esperada esperado esperados esperam esperamos esperando esperas esperava esperemos
esperia espero esperta esperti esperto espesa espeta espiar espinal espinhas espinhos espiral esplode esplora esplosa
esplose esportivas esportivos esprimersi espèce espère espérait espérant espíritos esquadra esquecidos esquire
essaient essaies essais essas essayait essayant essayent essen essendoci essendosi essera esserci essere esserea
esseri essermi esserne essersi esserti esservi esses esseva estaba estabas estabelecidas estabelecidos establecidas
establecidos estada estadia estadio estadios estado estados estadão estadía estadísticas estadísticos estafa estamos
estando estaremos estaria estarmos estarão estaría estas estasi estate estati estatua estatuas estatura estatus
estatísticas estatísticos estava este estende estendendo estender estendeu estendida estendido ester estera estere
esteri esterna esternamente esterne esterni esterno estero esters estes estesa estese estesi esteso estigma estilo
estima estimait estimant estimar estime estiment estimula estimulando estimée estimés estirar estivemos estiveram
estiverem estivermos estos estrada estradas estraga estragos estrangeiras estrangeiros estranhas estranhos estratega
estrategia estratos estratégia estratégias estratégica estratégicas estratégicos estrechas estrechos estreia estreita
estrela estrena estrenar estrictas estrictos estruturais estruturas estrés estuda estudada estudado estudando
estudantes estudantis estudava estudiaba estudiado estudiamos estudiando estudias estudios estudo estudos estufa
estuvieran estuvieron estádio estádios estágio estágios estáis están estás estão estä estää estén estére estés
estéticas estúpidas estúpidos eszem eszembe eszik etablere etablerte etablieren etablierten etage etape eteen etek
etelään etentje eterna eternal eternall eternally eternas eterni eterno eternos etero ether ethic ethically ethisch
ethische ethischen ethnic ethnically ethnische ethnischen etica etiche etici etico etik etikk etki etkiler etkileri
etkileyen etkili etkin etkisi etmeden etmedi etmek etmekte etmeli etmem etmemi etmenin etmesi etmeye etmeyen etmeyi
etmeyin etmiş etmiştir etnia etnica etniche etnici etnico etnik etnisch etnische etnisk etniske etrafında etsi etsii
etsimään etsin etsitään ettem etten etter ettik ettiler ettin ettiği ettiğimiz ettiğini ettiğiniz etua etudes etuja
etxea etxera euer eugen eulen eure euren eurer euroa euroja euron euroon euroopassa eurooppa eurooppaa europeas
europeni europeos euros evacuación evacuar evacuate evacuated evacuatie evacuating evacuation evacuations evaluación
evaluar evaluasi evaluate evaluated evaluatie evaluating evaluation evaluations evangélicos evdeki evden even evens
eventi evento eventos events eventueel eventuele every evict evidente evidenza evidenze evidenzia evidenziando
evidenziano evidenziato evil evill evim evimde evinde evine evinin evinizde evinize evita evitado evitando evitano
evitar evitare evitate evitato evite eviti evito evitou evler evleri evner evoca evolucionado evolucionando evrei
evreii evren evrim ewentualnie ewigen exact exacted exactes exacting exagerado exagerando exakt exalt exaltation
exalted examine examiners examines examples exaustão excedente excel excelente excelentes excelled excellence
excellente excellentes excellents excelling excels except excepto excepção excerpt excess exceto exceção exchangers
exchanges excise excite excited exciting excitée exclue exclure exclusivas exclusivos excluídos execs executable
executadas executado executados executando executar execute exemples exento exentos exerce exercida exercido exercée
exert exerts exes exhort exhorted exibe exibem exibida exibidas exibido exibidos exibindo exibir exige exigeant exigem
exigen exigent exigia exigido exigiendo exigindo exigir exigiu exigió exigé exija exijo exiled exilé exist exista
existait existam existan existance existant existantes existants existed existence existent existia existiam existido
existieren existieron existindo existing existiram existirem exists existía existían exit exited exiting exitosas
exitosos exits exotic exotische expandable expanded expandido expandindo expansive expect expects expediente expel
expelled expelling expend expendable expended expensas expensive experiente experimentado experimentando experimente
expert experten expertin experts expire expires explicado explicando explicarle explicarme explicat expliquait
expliquant explique expliquent expliquée exploatare explode exploded explodes exploding exploitant exploite exploits
exploitée exploitées exploités explora exploración explorado explorados explorando explorar explore explored explorer
explorers explores exploring exploré explose exploser explosé explota explotaciones explotación explotado explotar
expone export exported exporter exposant expose exposent exposer expostas expostos exposé exposée exposées exposés
expoziții expresa expresaba expresada expresado expresando express expressely expressly expresso expressão exprimait
exprimant exprime expriment exprimée exprimées exprimés expuestas expuestos expulso expulsão expuse extend extended
extender extenderse extendida extendido extendiendo extendió extendía extensas extension extensiones extensions
extensive extensión extenso extensos extensão extern externa external externall externally externas externo externos
externă extiende extienden extinde extort extorted extra extraire extrait extraite extranjeras extranjeros
extraordinarias extraordinarios extraordinárias extras extrañas extraños extreem extremas extreme extremos extrémiste
extérieures extérieurs exudes exultation exécutable exécutant exécute exécutent exécutée exécutées exécutés exílio
exóticas exótico eylem eylemi ezek ezekben ezekből ezeken ezen ezingo ezért eğitim eğitime eğitimi eğlenceli eşinin
eşlik eşliğinde faber fable fabled fabricadas fabricados fabrique fabriquée fabriquées fabriqués faca facadas facas
facce facci faccia facciale facciamo facciano facciate faccio facciones facción face faced facendogli facendoli
facendosi facera faces facet facets faceva facevamo facevano facevi fach fachada fachadas fache faciale facie facile
facilitado facilitando facing facite fact faction factional factions facto factoren factores factori factos facts
factura facturas facture factures faculty facultății fada fadas faded faden fader fades fading fads faeces faena faget
fagli faglig fagligt fags fahne fahnen fahre fahren fahrer fahrern fahrten fahrzeugs faible faibles faicinn fail
failed failing failings faille failles fails faint fair faire fairen fairer fairing fairly fairs fairy fais faisait
faisant faisg fait faite faites faithful faithfull faits faixa faixas fajna fajne fajnie fake faked fakes faking fakta
fakten faktor fala falada falado falam falamos falando falar falaram falas falava falavam falce falco fald falda
faldas falde falder faldet faldt fale falei falem falen falha falhar falharam falhas falhou falke falken falla fallado
fallan fallando fallar fallaron fallas fallback falle fallen falles falli falling fallo fallos falls falló falo falou
falsa falsas falsche falschen false falsi falsk falska falske falso falsos falt falta faltado faltam faltan faltando
faltar faltaron faltas faltava falte falten falter faltered faltering falto faltou faltó fame famed famigliare
famigliari familiare familiari familiei familiens familii familiile famille familles famine fammi fancy fanden fandt
fange fangen fanger fanget fango fangs fanning fanno fanns fanny fans fantasia fantasias fantasma fantasmas fanti
fantásticas fantásticos fara farai farbe farben farce farci fardo fare fared farei faremmo faremo faremos faren fares
fareste farete farge farger fargli fari faria fariam farias farine faring farklı farkı farkına farkında farla farle
farli farlig farlige farligt farlo farmacéuticos farmed farmi farming farmor farms farne faro farra farre fars farsa
farsi fart farta farted farten farther farthest farthing farti farting farto farts farve farver farvi farão fasce
fasci fascia fascino fascio fascisme fasciste fase fasen fases fasi fasse fassen fasses fasst fasste fast fasta faste
fasted fasten fastened fastening faster fastest fasting fata fatais fate fateci fated fatelo fatemi fates fatevi
father fathered fathers fatia fatigue fatiguée fato fator fatores fatos fats fatta fatte fattened fattening fatter
fattest fatti fatto fattore fattori fattorie fattura fatture fatura fată faucet faule faulen faulty faune fausse
fausses faust fausto faute fautori fauve faves favole favor favore favored favores favoring favorire favorisant
favorise favorisent favoritas favorite favoritos favors favour favoured favours fawning faydalı faydası faza fazem
fazemos fazermos fazes fazia faziam fazione fazioni fazo fază fazıl fear feare feared fearing fearr fears feast
feasting feasts feat feather feathered feathers feats febre fecal feccia feces fecha fechadas fechado fechados
fechando fechas fede feder federn fedi feds feed feeder feeders feeding feeds feeling feels feely fees feet fegato
fehle fehlen fehlern fehlte fehlten fehér feia feias feier feiern feiert feige feigen feilen feinde feinden feindes
feine feinen feiner feines feint feio feira feiras feire feita feitas feitiço feito feitos feje fejezet fejler
fejlesztése fejlett fejre fejében fejér fejét feladat feladata feladatok felder feldern felek felett felice fellas
felled felling fells felsen felső feltet feltétel felvenni felvett felvétel felvételt felében felét femei femeia
femeie femeii femeile femeninas femeninos femininas femininos femme femmes femte fences fend fender fenders fenetre
fenice fenster fent fenêtre fera ferais feral feras ferd fere ferez feriado feriados fericire fericit ferido feridos
ferie ferien feriez ferire ferite fermano fermarci fermare fermarmi fermarsi fermarti fermata fermate fermati fermato
ferme ferment fermer fermes fermez fermi fermier fermo fermé fermée fermées fermés ferne fernen ferner feroci feront
ferri ferro ferré ferrée fers fersen fertigen fervent fest festa festas feste festeggiamo festeggiando festeggiano
festeggiato festen fester festering festes festigen festnahmen festnehmen feta fetal fete feto fetta fette fetten
fetter fettes fetus fetzen feucht feudi feuds feuer feuern feuilles feum fever fewer fhaca fhada fhaicinn fhaisg fheum
fhios fhois fhuar fiable fiables fiance fiancee fianchi fianco fiancé fiancée fiança fiar fiasco fiat fiato fiber
fibers fibra fibre fibres fica ficado ficamos ficando ficar ficaram ficaremos ficariam ficarmos ficas ficavam ficción
ficha fichas fichi fick fico fiction fictional fictions fida fidarmi fidarsi fidarti fidati fidato fiecărei fiecărui
fiel field fields fielen fiend fiends fieno fier fiera fiere fiero fierro fiers fiery fies fifth fighi fight fights
figli figo figueira figurait figurant figuras figurent figyelem figyelembe figyelmen figyelni figyeltem fiica fiică
fiind fijar fijas fijne fijos fika fikir fikri fikrini fikse fila filan filas filato file filed filer files filet
filets filha filhas fili filiado filing filings fille filled filler fillers filles fillet fillets filling fillings
fills filmach filmado filmando filmar filmare filmati filmato filmde filme filmed filmek filmele filmen filmene filmer
filmerna filmes filmi filmie filminde filming filmje filmler filmou films filmu filmy filmé filmée filosofia
filosofica filosóficas fils filter filtered filtering filters filth filé fina finaaliin finais finale finalizado
finalizando finance financeiras financeiros financer finances financier financieras financieros financé financée
financés finanza finanzia finanziare finanziari finanziarie finanziati finanzieren finas finca fincas finch find finde
finden finder finders findest findet finds fine fined finely finendo finer finery fines finge fingen fingendo finger
fingern fingers fingre fini finie finire finis finisce finiscono finishers finishes finissant finisse finissent finita
finite finiti finito finiva finna finnas finne finnen finner finns fino finos fins finska fint finta finte finti finto
finzione fiore fiori fios fira firar fire firearms fireball fired firent fires firewall firing firma firmado firmados
firmando firmar firmare firmaron firmate firmati firmato firme firmen firmes firmie firmou firms firmu firmy firmó
firs first firsts firth fisch fische fischen fischer fischi fisco fished fisherman fishermen fishers fishes fishing
fisico fisiologia fisiologica fisk fiske fissando fissare fissate fissato fisso fist fisted fisting fists fita fitas
fits fitta fitted fitter fitting fitto fiul fiume fiumi fiver fives fixa fixade fixado fixar fixat fixe fixed fixer
fixes fixing fixos fixée fixées fixés fizemos fizesse fizeste fizetni fizica fizice fizică fizycznie fière fièvre
fjender fjerde fjerne fjernet fjord flach flache flachen flack flaco flad flade flagging flagrant flags flailing flair
flak flake flakes flame flamed flames flaming flanc flanco flancs flank flanke flanken flanks flapping flaps flare
flared flares flaring flasche flaschen flash flashing flask flaska flaske flasks flat flats flattened flattening
flatter flattered flattering flavor flavored flavoring flavors flavour flavoured flavours flawed flaws flayed flecha
flechas fled fleeing flees fleet fleeting fleets flemme fler fles flesh fleshly fleshy flest flesta fleste flexibel
flexible flexing flicka flicking flickor fliegen fliegt fliehen flieht fliers flies fliesen flight flights flinch
fling flings flint flipping flips flirt flirted flirting flit flitted flitting float floats flock flocking flocks
floden floes flogen flogging floja flok flood flooded flooding floods floored flooring floors flopping flops flora
flore flores florestais florestas flori floss flota flotte flou floue flounder flour flown flows flucht flue flugt
fluit fluke flukt flume fluoride fluorine flurry flushing flustered flute fluttered fluttering flydende flyer flyers
flyet flyga flyger flygte flygtede flying flykte flyktet flytende flytt flytta flytte flyttede flytter flyttet flyve
flyvende flyver flüchten flüge flügeln flügen flüssen foal foals foame foamed foaming foams foarte foca focado focal
focando focos focul focus focused focusing focussed focussing fodder foden foeman foes foetus fogadja fogadta fogalma
fogem foggia fogja fogják foglak foglalja fogli foglia foglie fogna fognak fogo fogod fogok fogos fogott fogueira
fogva fogão foie foiled foire fokus fokusere folder folds folga folge folgen folgst folgt folgte folgten folha folia
folic folie folien folies folk folkens folks folla folle folles folli follia folly folosite folto folyt folytatja
folytatta fome fomos fonce foncer foncier fonction fonctionnait fonctionnant fonctionnent fonctions foncé fond fondano
fondare fondate fondati fondato fonde fonden fonder fondi fondre fonds fondue fondé fondée fondées fondés fone fones
font fonte fontes fonti fontos fonts food foods fooled fooling fools football footed footer footfall footing footy
fora forage foraging foral foram forandret foray forbedre forberede forbi forbindelse forbore forborne forbud forbudt
forbundet forca force forced forcement forcent forceps forcer forces forcing forcé forcée forcées forcés ford fordel
fordelt fordere forderte fordi fords fordult fore forearms forego foreldre forem foreman foren forfait forfatteren
forgalom forge forged forger forges forgets forging forgo forgé fori forjado forked forklare forks forky forlag
forlatt form forma formaat formaba formada formadas formado formados formais formal formale formalen formali formam
formamos formando formano formant formar formare formaron formarsi formas forması format formata formate formaten
formati formato formatos formată forme formed formeel formel formele formell formeln formen forment former formes
forming formos formou forms formu formue formulae formulate formule formules formulieren formulée formulées formålet
formé formée formées formés formó fornecidas fornecidos forni fornire fornita fornite fornitore forniture forno foro
foros forro forros forrás forró forschen forschern forse forsiden forsker forskere forskning forslag forslaget forst
forsvant forsvare forsvaret forsøge forsøgt forsøgte forsøke forsøker forsøkt forsøkte fort forta fortalte forte
fortell fortelle fortement fortes forth forti forts fortsat fortsatt fortsatte fortsett fortsette fortsetter
fortsætter forty forud forum forums forvente forza forzada forzadas forzado forzados forzando forzar forzare forzata
forzati forzato forze forzó forår forældre força forçado forçados forçando forêt forêts fosse fossilen foste foster
fostering fostul foto fotografa fotografen fotografia fotografica fotografie fotografien fotografii fotografin fotos
fotoğrafı fotoğrafını fotte foudre fouet fouilles foule foules foully fouls foulée found founded founder founders
founding four fourmis fourni fournier fournies fournir fournis fournissant fournissent fourre fours fous fout foute
foutje foutre foutue fowls foxes foyer foyers fraca fracas fracciones fracción fracking fraco fracos fraction
fractional fractions fractura fracturas fracture fractures fraga frage fragen fragrant fragst fragt fragte fragten
frail frais fraise fraksi fram frame framed frames framing framover framtida framtiden frana franc franca francba
france francesas francesco franceses franchi franchise franchisee franchisees franchises francia francisco franco
francophone francophonie francos francs frane frango franja frank franke franken franks fransk frança frappant frappe
frappent frappée frasco frase frases frasi frat frate frati frattura fratture fratura frauen frauke fray frayed frazi
frazione frazioni frazo frați frații freccia fred freed freedman freeing freely freeman frees freezers freezes
freezing frega fregano fregare fregata fregato frego frei freiberg freiburg freien freier freies freight freighted
freiheit freio freios freira freiras freixo freizeit fremd fremde fremden fremover fremstår fremtiden fremtidige frena
frenare frenata freno frente frentes frequenta frequentando frequentano frequentare frequentata frequentate
frequentato frequentava frequente frequenza frequenze fresa fresas fresca frescas fresh freshen freshest freshet
freshly freshman freshmen fret frete frets fretta freud freude freuden freue freuen freund freunde freunden freundin
freust freut freute fria frias frica fricción fricking friction frică fridge fridges frie fried frieden friedlich
friedrich friend friends frieren fries fright frighted frigo frills fringe fringes frio frios fris frisch frische
frischen frischer frise friseur frisk friske frisst frist frisur frit frita fritas frites frito fritt fritta fritto
frizione froci frock frocks frodi froide froides froids frolic from fronde front fronte fronted fronterizas
fronterizos fronti fronting fronts frost frosted frosting froth frotte frotter frown frucht fruchtbaren fructe frugt
fruit fruizione frukt frunte frunze frust frusta fruto frutos frutta fryer frygt frygter frying frykter frère
fréquence fréquences fréquente fréquentes fréquents früchte früchten fuar fuego fuegos fueled fuelled fuente fuentes
fuera fueras fuere fuero fueros fuerte fuertes fuerza fuerzas fuese fugas fugge fughe fugindo fuient fuit fuite fuites
fula fuldt fulfil fulfill fulfillment fulfilment fulgt fulla fullback fullføre fullness fullt fully fulness fult fumar
fumato fume fument fumer fumes fumeur fumi fumier fuming fumée fumées funcionado funcionan funcionando funcionen
function functioneel functionele functions funcției funcții funcționare fund fundación fundadas fundamenteel
fundamentele fundação fundației funde funded fundera funderar funderat funders fundición fundierte funding fundo
fundos fune funge fungera fungerade fungerande fungerar fungere fungerte fungiert fungo fungos funka funkar funke
funky funnet funny funzionale funzionali funzionano funzionare funzionari funzionato funzione fuori furado furar furat
furba furbi furbo furcht furchtbar furchtbaren furent fureur furia furo furry furs furtado furthest furti furto fury
fuses fusi fusing fuso fuss fussing fusto fusão fusée fusées futbolcu futbolu futures futurs fylde fylder fylke fylker
fylla fylle fyller fylt fyre fyrir fyrr fysik fysikk fysisk fyzicky fájt fáze fäden fährst fährt fängt færre félek
félnek félre féminines féminins féminisme féministe férfiak férias föda födda föddes földre följer föra förare
förbereda förbi förbjuda förbjudet förbud förde före förening förlorade förra förslag förslaget först förstöra
försvann försvar försvara försvaret försvinna försökt försökte förut föräldrar förändras förändrats fødder føde føle
føler føles følge følgende følger følte føre fører førre først første ført førte fúria füge fügen fügte fühle fühlen
fühlst fühlt fühlte fühlten führe führen führer führt führte führten fülle füllen füllt füllte fürchte fürchten füssen
făcute fırtına gaaf gaan gaande gabe gaben gabh gable gables gade gaden gader gading gadis gado gafas gagal gage gages
gagging gagnait gagnant gagne gagnes gagnée gags gaia gain gained gains gaio gaita gajah gajos gala gale galen galera
galeria gales galette galho galhos galinha galip galla gallantly gallantry gallega gallen gallery galleta galley galli
gallo gallois gallons gallows galna galo gals galt galten gama gamba gambe gamble game gamers games gamin gaming
gamins gamla gamle gamma gamme gammes gana ganaba ganada ganadera ganaderos ganadería ganado ganadora ganadores
ganados ganamos ganando ganara ganarle ganarse ganaría ganas gancho ganda gander ganet gange gangen gangs ganha
ganhado ganhando ganharam ganho ganhos ganit ganja gano gans gansa ganska ganso gant gants ganz ganze ganzen gaol
gaout gape gaped gaping gaps gara garage garam garansi garant garanta garante garantia garantida garantido garanties
garantindo garantire garantis garantite garantizado garb garbage garda gardait gardant garde garden garder gardes
gardée gare garen garer gares garganta garip garis garner garnet garra garret gars garsa garten garter garuda garza
gase gases gasp gasped gasping gasps gass gasse gassed gassen gasses gassing gasta gastado gastando gasten gasto
gastos gata gatan gatas gate gated gaten gates gati gatilho gatinha gatinho gato gatoi gatos gatta gatte gatten gaucho
gauck gauge gauging gaule gaulois gaunt gauze gave gavel gaven gaver gaveta gavn gavout gawang gayet gayot gayret gays
gayót gaza gaze gazed gazes gazeta gazeteci gazetede gazetesi gazette gazing gazı gdzie geacht geachte gearing gebaar
gebak gebannt gebe gebed gebeden gebeld geben gebet gebete gebeten gebied gebieden gebiet gebiete gebieten gebietes
gebiets gebissen gebit gebleken gebleven geblockt geboden gebogen gebonden geboren geborgen gebot geboten gebracht
gebrannt gebrauchen gebraucht gebrauchten gebroken gebruiken gebruikten gebt gebucht gebunden gebundene gebäck gebührt
gece gecede gecelik gecenin gecesi geceyi gedaald gedaan gedacht gedachte gedachten gedanken gedeckt gedeelde gedeelte
gedekt gedenken gedenkt gedicht gedichte gedichten geding gedoen gedoopt gedra gedraag gedrag gedrukt gedrückt geduld
geduurd geduwd geeft geehrt geehrte geehrter geeinigt geeks geel geen geert gees geest geesten gefaald gefangen
gefasst gefecht gefeiert gefertigt gefestigt gefeuert geflogen geflohen gefunden gefundene gefährden gefährten gefühle
gefühlen gefühlt gefühlte gefühlten geführt geführte geführten gefüllt gefüllte gefüllten gegaan gegangen gegen
gegessen gegeten gegeven gegossen gegoten gehaald gehabt gehackt gehakt gehalt gehandeld gehandelt gehangen gehasst
gehauen gehecht geheel geheilt gehele gehen geheten gehoopt gehst geht gehuurd gehuwd gehöre gehören gehörst gehört
gehörte gehörten geier geige geiger geihst geiht geile geiler geist geiste geistern geit geiten gejaagd gejagt gejat
gekannt gekauft gekehrt gekeken gekend gekippt gekke gekken geklagt geklaut geklebt gekocht gekomen gekommen gekookt
gekost gekostet gekozen gekund gekämpft gekürt gekürzt gelacht gelada geladen gelado gelag geland gelang gelangen
gelangten gelap gelar gelas gelaten gelbe gelben gelber gelden gelder geldes geldi geldik geldim geldin geldiğinde
geldt gele gelebt gelebte gelecek geleceği geleceğin geleceğini geleden geleefd geleend geleerd gelees gelegd gelegen
gelegt gelehrt gelehrte gelehrter geleid geleistet geleitet gelekt gelen gelene gelenkt gelerek gelesen gelet geleverd
gelezen geliebt geliebte gelijkaardige gelijkwaardige gelin gelingen gelip gelir gelirim gelirken gelistet gelitten
geliyor gelişimi gelme gelmeden gelmedi gelmek gelmesi gelmeye gelmez gelmiyor gelmiş gelmişti gelockt gelogen gelohnt
gelopen gelosa gelosia geloven gelse gelsin gelte gelten gelukt gelungen gemaakt gemaakte gemacht gemak gemalt
gemarkeerd gemeen gemeinde gemeinden gemeine gemeinen gemeint gemeinte gemeld gemene gemerkt gemessen gemeten geminin
gemisi gemist gemme gemmer gemocht gempa gems gemt genaaid genaamd genannt genau genauen gendre gene genegeerd geneigt
genen generadas generado generados general generale generali generall generală generando generano generare generati
generato generații generi generic generica genericamente generiche generici generico generics generieren generierten
genes genesi genetic genetica geneticamente genetiche genetico genetics genezen geni genial geniale geniales geniali
genie genital genitale genitales genitali genius geniş gennemføre genome genomen genomes genomineerd genommen genoot
genossen genot genoten genre genres gens gent gente gentes genti gentile gentle gentleman gentlemen gently gentry
gents genua genul genunchi genus genuss genutzt genérica genérico genética genético genéticos geografia geografica
geográficas geográficos geologia geologica geometra geometria gepaard gepackt gepakt geparkeerd geparkt gepasst gepast
gepest gepland geplant geplukt gepost gepostet geputzt gepäck gera geraakt gerada gerade geraden gerado gerados gerai
gerakan gerald gerando gerannt gerar gerard geraten geratu geraucht gerbang gerber gerda gereageerd gerecht gerechte
gerechten gered gereden gereed geregeerd geregeld geregnet gereicht gereinigt gerek gerekend gerekiyor gerekli gereği
gerhard gerhardt geri gericht gerichte gerichten gerichtet gerichts geride geriet gerieten gering geringen gerissen
geritten geriye germani germs gerne geroepen gerookt gert gertatu gerti geruch geruchten gerust gerät geräumt gerçek
gerçekte gerçeği gerçi gerücht gerüchte gerückt gerührt gesagt gesamt gesandt gesang geschenken geschichte geschickt
geschikt geschissen geschlafen geschlagen geschlossen geschmissen geschockt geschokt geschonden geschonken geschopt
geschoren geschossen geschoten geschoven geschütze geschützte gescoord gesegnet gesehen gesendet gesenkt gesessen
gesetze gesetzen gesetzt gesetzte gesetzten gesicht gesichtet gesichts gesinnung geslaagd geslagen geslapen gesloten
gesoen gespaard gespalten gespeeld gespeld gespendet gespenst gespült gespürt gesso gesta gestalten gestaltet gestapt
gestart gestartet gestatten gestattet geste gesteckt gestehen gestein gesteld gestellt gestemd gesten gestern gesti
gestire gestita gestite gestiti gestito gestiva gesto gestoken gestolen gestoord gestoppt gestopt gestort gestreckt
gestreden gestrickt gestão gestürmt gestürzt gestützt gesucht gesuita gesuiti gesunden gesungen gesunken getal
getallen getarnt getauft geteilt getekend geteld getest getippt getir getirdi getirecek getirin getoond getreden
geträumt gets getta gettando gettare gettato getti gettito getto geuit gevaar geval gevallen gevangen gevaren gevecht
gevechten gevel geven gevlogen gevochten gevoed gevoegd gevoel gevoeld gevoerd gevolgd gevolgen gevonden gevra gevuld
gewacht gewag gewagt gewalt gewandeld gewandelt gewandert gewandt gewannen gewarnt gewartet gewebe geweckt gewees
geweest gewehrt geweiht geweint gewekt geweld gewend gewendet gewenst gewerbe geweren gewerkt gewertet gewesen gewest
geweten gewezen gewicht gewichte gewijd gewild gewinnen gewinnst gewinnt gewinnung gewiss gewissen gewissens gewisses
gewohnt gewollt gewond gewonde gewonden gewone gewonnen gewoond geworben geworden geworfen geworpen gewundert gewählt
gewählte gewährt gewährte gezag gezakt gezegd gezegend gezeigt gezet gezeten gezi gezicht gezichten gezien gezin
gezocht gezockt gezogen gezond gezonde gezonden gezongen gezonken gezählt geçecek geçerek geçerli geçici geçin geçirdi
geçiren geçit geçiyor geçiş geçişi geçme geçmeden geçmek geçmesi geçmiş geçmişe geçmişi geçmişte geçti geçtim geübt
ghabh gheață ghetto giada gialla gialli giallo giant giants gibi gibiyim gibst gibt gidecek gidelim giden gider
giderek giderim giderken giderse gidin gidip gidiyor gidiyorum gidiyoruz gier gieten gifte giften gigi gigli gilda
gilded gilding gill gilla gillar gilles gills gilt ginawo ginayo gioca giocando giocano giocare giocata giocate
giocato giocava giocavo gioco gioia gioie gioire giornale giornate giorni giova gira giran girando girano girare
girata girate girati girato girava girded girdi girdim girdiği girecek giren girer girerek girin girip giriyor giriş
girişi girişimi girls girme girmek girmesi girmeye girmiş giro gironi girt gist gitme gitmeden gitmek gitmesi gitmeye
gitmeyi gitmiyor gitmiş gitsin gittin giuda giudicando giudicano giudicare giudicate giudicato giudichi giudici
giudizi giunge giunse giunta giunte giunti giunto giura giurare giurati giurato giuria giuro giusta giuste giusti
giustificato giusto give givens giver givers gives giyen giyim gizemli gjatë gjelde gjemme gjennomføre gjennomførte
gjere gjerne gjest gjester gjeve gjuhë gjumë glace glacée glad glade glades glam gland glande glandes glands glans
glanz glare glared glaring glas glass glasses glassy glatte glatten glatze glaube glauben glaubst glaubt glaubte
glaubten glaze glazed glazen glazing gleam glean glebe glee gleich gleisen gleiten glemme glemmer glemt glemte glen
glens glich glide glided gliders glides gliding gliele gliene gloat globais globales globals globe globes gloom glory
gloss glossed glove gloved glover gloves glowed glowing glows glæde glæder glömde glömma glömmer glömt gmail gminie
gminy gnade gnats gnome gnomes goal goale goals goat goats gobernada gobernado gobernando goda goddess goden godermi
godersi godis goditi godless godly gods godziny goede goeie goers goes going gola golden golds gole goleada goles
golfe golfing golfo golly golo golos golpe golpeada golpeado golpeando golpes gols golven golü gondolat gondolja
gondolják gondolkodni gondolod gondolt gondolta gondot gong goodly goods goody gooey goofing goofy gooien gooit goons
gorda gordo gore gorge gorra gorro gorsza gorsze gory gospodarcze gospodarczy gospodarka gosse gosses gosta gostado
gostando gostaram gostariam gostas gota gotas gouden gouge gout gouvernance gouverner gouverneur governano governanti
governato gown gowns graad graaf graan grab graba grabada grabadas grabado grabados grabando grabe graben grabs grace
graced graceful gracefully graces gracht graciosas graciosos grad gradas gradation grade graded graden grader graders
grades gradi grading gradino gradins gradito grado grados grads graduation gradul graf grafen grafia grafica grafis
graft grafted grafting grafts grail grain grained graines grains grainy graisse graisses gram grama gramado gramme
grammes gramos grams gran grana granada granadas granados granata grand grandad granddad grande grander grandes
grandeur grandi grandis grandissant grandit grandma grandpa grands grange grani granica granice granit granito granizo
granja granne granny grano granos grant granted granting grants grape grapes graphisme graphiste graphs gras grasa
grasas grasp grasped grasping grasps grass grasse grasses grassy grata grate grated grateful gratefully grates grati
grating gratis grato gratos grattis gratuitas gratuites gratuitos gratuits gratë graue grauen grauer grava gravada
gravadas gravado gravados gravando gravata grave gravel graven graves gravi gravid gravier gravy gravée gray grays
graze grazed grazer grazia grazing grea greaves green greening greens greeting greets grego greide greie greit grejen
grejer grenser greu grid grida gridando gridano gridare gridato grido grids griega griegas griego griegos griep griet
grieta grietas grifo grigi grigia griglia grija grijp grijă grill grilles grills grime grimly grimpe grimy grin grind
grinding grinds grine griner gringo gringos grinning grins grip gripe gripen grippe grips grise grisly grist grit
grita grito grits groan groază grocer grocers groeien groeit groen groene groenen groente groenten groepen groepjes
groet groeten groetjes groin groom groot grootse grootste grootte groove grooves grope groped groping gross grosse
grossed grosses grossier grossir grot grote grotta grotten grouped grouping grout grove grover groves grower growers
growing growling growls grown grows grubu grubuna grubunda grudge grunge grunnlaget grunt grunting grup grupa grupta
grupy grupą grze gráficas gráficos gräben gräbern gräns gräs grät gråta græder grönt grønt gründe gründen gründer
grüne grünen grüner guadagnando guadagnano guadagnato guaio guanti guanto guarda guardaba guardada guardado guardados
guardami guardando guardano guardare guardarli guardarmi guardarsi guardarti guardas guardata guardate guardati
guardato guardava guardavo guardia guardiamo guardiano guardias guarigione guarnigione guasti guasto guck gucke gucken
guckst guckt guerilla guerrilla guess guest guests guiado guiana guida guidando guidano guidare guidata guidate
guidato guidava guide guided guides guiding guido guidée guilde guile guileless guilt guiltless guinée guise guiso
guita gula gulvet gunakan gunner gunter gunther gunung gura gurke gurken gură gust gusta gustaba gustado gustando
gustara gustaría gusti gusto gusts gutenberg guter guts guttenberg gutter guère gweles gweres gwiazda gyerek gyerekek
gyerekeket gyerekeknek gyereket gyereknek gyermek gyermeke gyermekek gyermeket gyertek gyldne gyveni gyventi győzelem
győzelme gälla gäller gänge gänze gärten gästen gått gæld gælder gæster gætter gère géant géantes géants généralisé
généralité généraux généreux générique génériques génétique génétiques gérant gérées gérés gêne gênée góra górach góry
górze gówna gölge gölü gömlek gömma gönderme gönül göras gördü gördüm gördün gördüğünü gördüğünüz göre görecek görelim
gören görenler görev görevde göreve görevi görevine görevleri görevli görme görmeden görmedim görmek görmezden görmüş
görs görsel görüldü görüldüğü görülebilir görülen görülmektedir görülür görün görünce görünen görünmüyor görüntü
görüntüsü görünüm görünür görünüyor görür görüyor görüyorum görüyoruz görüş görüşme görüşü gösterdi gösteren gösteri
gösterin gösterisi gösteriyor göstermiş gövde gözaltına gözde göze gözle gözler gözlerimi gözlerin gözlerine gözlerini
gözlerinin gözlü gözlə gözü gözüküyor gözünde gözünü gözəl göğüs gücü gücün gücüne gücünü gücünün güle gülen güler
günde gündeme günden gündür güne güneş günler günlerde günleri günter günther günü günüm günümüz günümüzde günümüze
günün gününde gününe gününü güter güven güvenli güvenliği güzeldi güzeli güçler güçlü găsesc găsit głodu głosu głosy
głowie głowy główna główne głównie gəlir gəlmir haaks haal haalt haard haas haast haat habari habe haben habent haber
habera haberea haberi haberla haberle haberlo haberlos haberme habernos haberse haberte habet habeva habiendo habile
habilement habileté habille habillement habillée habis habitait habitant habitants habitat habite habitent habiter
habites habits habitude habitue habituer habitué habituée habité habitée habla hablaba hablaban hablada hablado
hablamos hablan hablando hablante hablar hablara hablarle hablarme hablaron hablarte hable hablemos hablo hablé habló
habremos habrá habrán habrás habré habría habríamos habrían habár habéis había habíamos habían habías hacemos hacer
hacerla hacerlas hacerle hacerles hacerlo hacerlos hacerme hacernos hacerse hacerte hacha hache hacia haciendo
haciéndole haciéndose hacken hacker hacking hacks hacéis hacés hacía hacíamos hacían hacías hacı hadapan hadas hadde
hadden hader hades hadi hadis hadst haemorrhage hafen hafi hafta haftada haftalık haftanın haftası haftaya haften
haftet haftung hafði hagamos hagan hagas hage hagel hagen hagyja hagyta hagyták haie haies hailed hails hain haine
haired hairs hairy hais haitoshi hajdú hajlandó hajtott hajót hakan hakem haken haki hakikaten hakim hakken hakkı
hakkımda hakkın hakkına hakkında hakkını haklar hakları haklarını haklı hala halad haladó halak halal halbe halben
halber halda halde hale halen hales halfen halfway hali halinde haline halini halk halka halki halkı halkın halkına
halkının hall halla hallaba hallado hallados hallamos hallan hallar hallaron halle hallen haller hallinnon
hallitukseen hallituksen hallituksessa hallo hallom hallott hallowed halls hallussa hallway halló halnya halo halos
halott halpa halpaa halsen halt halte halted halten halter haltet halting halts haltung halua haluaa haluat haluatko
halus haluta halva halve halved halves halving halvt halál halála halálra halált halálát halı hamas hamba hamburg
hamil hamile hammer hammered hammers hamper hampered hampers hams hana hanche handa handball handboek handbuch
handdoek handed handel handele handelns handels handelte handen hander handicapées handicapés handing handlade handle
handled handler handlers handles handling handout handouts handover hands handtuch handy hanged hangen hanger hangi
hanging hangout hangouts hangover hangs hani hankala hankalaa hanki hankki hanks hanna hannes hanns hans hansa hansen
hansı hanya hanı hanım hapis haply happy hapus haram harapan harapkan harburg harcot hard hardball harde harder
hardest hardly hardness hardy hare harekete hareketi hareketli harem haremos haren hares harga harganya harika harimau
harinya harita haritası hariç harm harmi harmonics harmonies harms harness harp harper harps harri harry harsh hart
harta harte harten harter hartje hartz harus harvest harvinainen harvinaisen harvinaista harz hará harán harás haré
haría haríamos harían harías hasan hase hasen hash hasil hasse hassen hasst hast hasta hastalık hastanede hastaneye
hastanın hastası haste használata használd használja használják használnak használnod használod használt használta
használták hata hatalar hatalı hatar hatari hatası hatayı hatch hatching hate hated haten hater haters hates hatet
hath hatia hatiku hatimu hating hatinya hatred hats hatt hatta hatte hatten hatter hattest hattet hatua határ
határozat határozza határt hatása hatásos hatást hatását hatıra hatırla haube hauch hauen haufen hauls haunt haunted
haunting haunts haupt haus hause hausen hauska hauskaa haut haute hautes hautoshi hauts hava havada havale havalı
havas havası havaya havde have havel haven havens haver haves havet having havn havnen havnet havre hawker hawking
hawks hawss hayali hayamos hayan hayas hayat hayata hayati hayatta hayatımda hayatımı hayatımın hayatına hayatında
hayatını hayatının haydi hayli hayran hayvan hayvanları hayır hazine hazing hazlo hazme hazte hazır hazırlanan
hazırlanmış head headband headed header headers heading headings headland headless headliners headlines heads heady
healed healer healers healing heals health heaped heaping heaps heard hearer hearers hearing hearings hears heart
hearted hearth hearts heat heated heater heaters heath heather heating heats heave heaved heaven heavens heaves
heaving heavy hebat hebel heben hecke heden hediyesi heed heeded heedless heeft heel heeled heels heen heer heerd heet
hefe heft hefte heftige heftigen heftiger hegel hegen hegyi heide heiden heike heikel heiko heil heile heilen
heiligkeit heillä heilt heiltä heilung heimat heime heine heiner heinz heirat heirs heist heistä heiter heitti heitä
heizen heizung hekel hekken heksen hela held helden helder heldig heldige hele helen helfe helfen helfer helfern helft
helg helga helge helgen heliga helle hellen heller hellige helligkeit hellre hells helme helms help helped helpen
helping helppoa helps helpt helse helsingissä helsingistä helst helt helyben helye helyek helyeken helyen helyes
helyesen helyet helyett helyette helyi helyre helyről helyzet helyzetbe helyzetben helyzete helyére helyét hemat
hemden hemel hemliga hemorrhage henchman henchmen hende hender hendes henge henger hengessä hengissä henkel henkeä
henki henkilökohtainen henkilökohtaista henkilökunta henkilön henkinen henne hennes henri hente henter hepsine herab
heran heraus herb herbe herbei herbert herbs herce herd herde herded herder herders herding herds hereby herec herein
heren heresy heribert herir heritage herken herkese herlig herligt hermanas hermanos hermed hermitage hermosas
hermosos herne heroes heroin heron herpes herrar herrchen herre herren herrin herring herrlich herrliche herrlichen
herrn herrschen hers herstellen herstellern herten hertz hervir herz herzen herzlich herzliche herzlichen herzliches
herätä herää heróe hest heste hester heta hete heten heter hetes heti hetkeen hetken hetkeä hetki hetkinen hetzen
heuer heulen heupen heure heures heurte heute heutige heutigen heutiger heutiges hevde hevder hevdet heves hevonen
hevosen hewan hexen heyecanlı hiba hicieran hicieron hidasta hides hiding hidung hidup hidupku hidupmu hield hielden
hielo hielp hielpen hielt hienoa hienoja hier hieraan hierauf hieraus hierbei hierdoor hierhin hiervan hiervoor higher
hijab hijos hijrah hikaye hikayesi hiked hikers hikes hiking hikmet hilde hilfe hilfen hilft hilo hilos himself
hindern hindre hindrer hinds hinged hingegen hingehen hingen hinlegen hinner hinsehen hinta hintaa hinted hinten
hinteren hintern hinting hints hinz hired hires hiring hirten hissediyorum hisself hist histeria historia historiaa
historiaan historiallinen historian historiassa historiasta historien historier historisk historyczne história
histórias histórica históricas históricos hiszek hitching hither hitler hitos hits hitta hitte hitter hitting hitung
hiver hives hivyo hiyo hizmet hizmete hizmeti hiába hjalp hjem hjerne hjerte hjulpet hjälpen hjälpte hjälte hjärna
hjärnan hjärta hjärtan hlasy hlavně hlavou hlavu hlavy hlavě hledáme hledáte hoard hoarder hoarse hobbies hobbits
hocası hockey hocking hode hoden hodina hodinky hodinou hodinu hodiny hodině hodit hodnot hodnotu hodná hodně hodí
hoede hoefde hoefden hoeft hoeken hoekje hoer hoeren hoes hoesje hoest hoeve hoeven hofe hofer hofes hoffe hoffen
hoffmann hoffte hofmann hoger hohe hohen hoher hohes hohn hoidossa hoist hoisted hoisting hoitaa hoitaja hojas hokey
hokje hold holde holder holdes holdet holding holdning holds holdt hole holed holen holes holku holle holler hollowed
holly holnap holst holt holte holten holy home homeless homelessness homely homenageado homer homers homes homey
homing homma hommaa homman homme hommia homogeneous homogenous homoj homophobe homophobie homoseksuele honda honden
hondje hondo honed honestly honesty honey honger hongo honing honking honky honlap honore honra honras hons hooded
hoods hoofden hoofs hoogste hoogte hooked hooker hookers hooking hooks hooper hoops hoopt hoopte hoorde hoorden hoort
hooters hooting hoover hopeaa hoped hopeless hopelessness hopen hopes hopfen hoping hoppas hoppe hopped hopper hopping
hops hora horas horde hordes horen horiek horké horned horns horní horoj horor horrek hors horse horseman horsemen
horses horst hort horta horách hose hosen hoses hospitalisé hospitalité hoss host hosted hostel hostels hostess
hosting hosts hotar hotel hotels hotly hots hotshot hotspot houby houden houding houdt house houses hout houten
hovedsakelig hovel hovels hover hovers howes howls hows hozott hozta hoztak hozták hozza hozzák hozzánk hoşuma hoşuna
hradu hradě hrajeme hrají hraní hrdina hrách hubieran hubieron hubiese hubu huch hudbu hudby huddle huden huduma hueca
hueco huecos huelga huelgas huella huellas huerto hueso huesos hueva huevo huevos huilde huile huilen huizen hujan
hukuku hulde huller humaines humains human humanely humanisme humaniste humanly humidity humidité humildade humility
humilité humilié humming humor humping hunch hundar hunden hunder hundra hundre hunger hungover hunky hunt hunted
hunter hunting hunts huntsman huntsmen hunyt huomaa huomaat huomata huomenna huomenta huomion huomioon huonoa huonoja
huonon hurdle huren hurja hurle hurling hurray hurry hurtigst hurtigt hurting hurtling hurto hurts huruma huse huset
huske husker husky hussy hutan hutch huts huzurlu hver hvide hvile hvilke hvit hvite hvitt hvězdou hwath hypotheses
hypothesis hypätä hyvien hyvin hyvissä hyviä hyvä hyväksi hyväksy hyväksyi hyväksyy hyvällä hyvältä hyvän hyvänsä
hyvänä hyvässä hyvästä hyvää hyvään hyöty hány hátha hátra háza házak házat házba házban házában häfen hälsa hämeen
hämtar hända hände händel händen händer häneen hänellä häneltä hänen hänestä hänga hängde hänge hängen hänger hänt
häntä härte hässliche hässlichen hästar hätte hätten hättest hättet hätää häufen häusliche häuslichen häät håbet hålla
hållas hållet hålls håpet hårdt håret hårt hænder hænger hætta hérité hésitant hésite hésitent hésité héten hírek hírt
hívja hívják hívnak hívta hívták hónapja hónapra hôtels hôtes höchstens höfen höga höger högre högst högt höhe höhen
höher höhle höhlen höja höjer hölgyek hölle höra hörde höre hören hörer hörner hörs hörst hört hörte hörten höst
hösten højde høje højere højre højst højt høre høres hørte hørtes høst høyde høye høyere høyest høyre høyst høyt hüfte
hüften hüküm hüte hüten hütte hütten hızla hızlı hızı iade ialah iarbă iarna iarnă iată ibadet ibang ibaret ibland
ibuku ibunya iconic iconos icons idaresi iddiası idea ideais idealne idealnie ideals ideas ideea idei ideias ideig
identificadas identificado identificados identificando identificano identificare identificate identificato identifie
identifiers identifies identifisere identifiée identifiées identifiés identify identities identity ideologia
ideologica ideológicas ideológicos ides idioma idiomas idioms idiota idiotas idiots idole idässä idénticas idénticos
idênticas idênticos időben idők időkben időnk időre időszakban ifade ifadesi iflas ifstream igen ignora ignorado
ignorait ignorando ignorano ignorant ignorante ignoranti ignorare ignorate ignorati ignorato ignorent ignota ignoti
ignoto igång igår igény igénybe ihana ihanaa ihania ihlal ihmal ihmettelen ihmettä ihminen ihmiselle ihmisellä ihmisen
ihmisille ihmisillä ihmisistä ihmisiä ihmisten ihmistä ihnen ihren ihsan ihtimal ihtiyacımız ihtiyacınız iiwanan ikan
ikili ikinci ikisi ikisini ikisinin ikiye iklan iklim iktidara ikävä ikävää ikää ikään ilacı ilan ilang ileri ileride
iletişime ilgili ilgisi ilham ilhan ilian ilim ilin ilinde iliyo ilişkili ilişkisi ilişkiye illan illuminante
illuminare illuminate illustrare illustrate illustrato illustre illustrent illustrée ilma ilmaa ilmaan ilmainen
ilmaisia ilmaista ilman ilmassa ilta iltaa iltaan iltana ilçede ilçesinde ilçesine imagens images imaginado imaginam
imaginan imaginando imaginarme imaginarse imagine imaginea imaginem imaginen imaginent imagini iman imediatas
imediatos imkanı imker immaginare immaginate immaginato immaginavo immensa immense immensi immenso immer immersa
immerse immersi immerso immoral immorale immorality immortal immortale immortality immovable immoveable immunity
immunité immédiats imoral imortal impact impacted impacting impacts imparando imparano imparare imparate imparato
impart imparted imparting imparts impasto impatience impatient impatiente impatto impedido impedindo impeding
impegnando impegnano impegnare impegnate impegnato impending imperious imperiul impero impervious impian impiegano
impiegare impiegate impiegato implicaba implicados implicat implicate implicați implicito impliquant implique
impliquent impliquée impliquées impliqués implode implore impone imponente imponenti imponerande imponerende imporsi
importa importaba importado importados importance importando important importante importantes importanti importants
importanți importare importaría importas importati importato importava importazione importazioni imported importer
importi importing importo imports imposait imposant impose imposent imposta impostare impostas impostato impostazione
impostazioni imposte imposter imposti imposto impostor impostos imposts imposée imposées imposés impotente imprensa
impresa impresas impresionant impresionat impresos impressa impressas impresso impressos impressão imprime imprimer
imprimeur imprimée imprimés imprudence imprudent impudence impudent impuestas impuestos impulsado impulsando impulsar
impulso impune impunidade impunity impunité impurity impus impuso imune imunidade inakuwa inan inane inanmıyorum
inanın inanıyorum inatt inaugurale inaugure inaugurée incanto incarne incarnée incendi incense incentivando incentive
incentrata incentrato incerto incest incide incinta incisa incitation incite incited inciter inciting incité inclement
incline inclua incluant include incluent incluidas incluido incluidos incluir inclure incluse incluso inclusão incluye
incluyen incluyo incluyó incluía incluída incluídas incluídos incluíram incomodado incomodando inconnues inconnus
incontrando incontrano incontrare incontrarsi incontrata incontrate incontrati incontrato incorporado incorporando
increment incrementado incrementando incrociare incrociate incómodos indagando indagato indbyggere inde indebted
indeed indegno indemnify indemnity inden indented independenței indes indetto indexed indføre indgå india indiana
indianen indiano indianos indica indicaba indicada indicadas indicado indicador indicados indicando indicano indicare
indicata indicate indicated indicato indicator indicava indice indices indichi indici indicio indicios indicted indie
indien indienen indies indigna indigne indigène indiquait indiquant indique indiquent indiquée indiquées indiqués
indir indirectas indirectos indirim indirizzare indirizzate indischen individual individuale individuali individuare
individuate individuati individueel individuele indivizi indizi indizio indolence indolent indossando indossano
indossato indovinare indovinate indre indstillet induced inducted indulto industriei industriels industries
indywidualne indépendance indépendante indépendantes indépendants ineen ineens inept inert ines inesistente
inesperados infanto infarction infarto infecciones infección infect infectados infected infectie infecting infection
infections infectious infects infecté infeksi infektion infer inferioară inferior inferiore inferiores inferiori
infernal infernale inferno inferred infested infetti infezione infezioni infierno infime infinitas infinitos infiziert
infizierten inflamed inflated inflazione inflação inflection influence influencers influences influenciado influent
influente influenzano influenzato influenze influido influir influye influyen influyó informada informado informados
informale informamos informan informando informano informare informarse informate informati informatica informatici
informatico informativa informativi informativo informativos informato informației informații informe informeel
informele informiere informieren informierte informáticos informée infra infraction infrazione infração inférieur
inférieure inférieures inférieurs ingatlah ingegno ingen ingenious ingenti ingenui ingenuous ingericht ingest ingested
ingesteld ingesting inget inglesa inglesas ingleses ingresa ingresado ingår inhabited inhabiting inhabits inhibited
inhibiting inhibits iniciadas iniciado iniciados iniciamos iniciando inicio inicios iniezione iniezioni inig inilah
inimigas inimigos inimii inimă ining inizi iniziai iniziale iniziali iniziamo iniziando iniziano iniziare iniziata
iniziate iniziati iniziato iniziava inizio iniş inițială inject injected injectie injecting injection injections
injects injure injured injures injuries injuring inked inking inkling inkomen inkopen inlaid inland inlet inline
inmate inmediatas inmediatos inmensa inmenso inmersión inmobiliarias inmobiliarios inmoral inmortal innate innbyggere
innbyggerne inne innecesarias innecesarios innen inner inneren innern innføre inning innocence innocente innocents
innovadoras innovadores innovantes innovants innse innvandrere inovadoras inovadores inovasi inpatient inquires
inquiries inrichten insan insana insane insanlara insanlarda insanlarla insanı insanın inscrire inscrite inscrites
inscritos inscrits inscrivant inscrivent insect insects insegnando insegnano insegnante insegnare insegnate insegnato
insegne insegno insegue insel inser inseridos inserire inserite inserito insert inserted inserts inset insetos insetti
insetto insiders insides insidious insigne insistant insistente insolence insolent insolvent inspect inspecteur
inspira inspiradas inspirado inspirados inspirant inspire inspirent inspirée inspirées inspirés inst instable
instaladas instalado instalados installare installe installed installieren installierten installing installment
installments installée installées installés instalment instalments instan instilled instilling instituce instituts
instituții instytucje insuffisance insuffisante insuffisantes insular insulated insulating insultado insultando
insultar insulted insulting insulto insure insured insuring insya insåg intanto intatto integra integradas integrado
integrados integrale integrali integrando integrante integrare integrate integrati integration integrazione
integrazioni integração integrieren integrierten inteira inteiras inteiros intel intellectueel intellectuele
intelligence intelligente intelligentes intelligentie intelligents intención intenda intende intenderci intendersi
intendi intendo intends intens intensa intensamente intensas intense intensi intensifies intensify intensities
intensity intenso intensos intent intenta intentaba intentado intentan intentando intentar intentaron intentas
intenten intentes intenti intention intentions intento intentos intents intentó intenzione intenzioni intenção
intenções inter intera interamente interazione interazioni interação interdire interdisant interdisent interdite
interdites interdits intere interesaba interesada interesadas interesados interesant interesantă interesat interesele
interessada interessadas interessados interessano interessante interessanten interessanti interessare interessarsi
interessata interessate interessati interessato interessava interessenten interessiere interessieren interessierte
interessierten interi interino interioare interioară interior interiore interiores interjected intermedios interment
intern interna internado internal internamente internas internat internationaal international interne interned
internet interni internment interno internos intero interpretado interpretando interpretano interpretare interpretato
interred interroge interrompre interrompue intersected interval interventi intervento intervenuti intervenuto
interviewees interviewers intervino intesa intese intesi inteso intihar intime intitulée intl into intra intre intro
introduce introduire introduite introduits introduse introduzidas introduzido intru intégration intégrées intégrés
intéressait intéressant intéressantes intéressants intéresse intéressent intéressée intéressées intéressés intérieur
intérieure intérieures intérieurs intézet inured invade invaders invades invadido invadindo invallen invandrare invano
invaso invención invent inventa inventado inventan inventando inventar inventare inventaron inventate invente invented
inventer inventeur inventing invention inventions inventive invento inventor inventore inventors inventos invents
inventée inventó invenzione invenzioni invenção invenções invernal invernale inverno inverse inversión inverso
inversão inversée invert inverted invertire invest invested investida investido investiga investigado investigando
investindo investing investire investito investor investors invests invia inviando inviano inviare inviata inviate
inviati inviato invicto invidious invierno invii invio invita invitado invitados invitamos invitando invitano invitant
invitar invitare invitata invitate invitati invitation invitato invite invited invitent inviter invitere inviti
inviting invito invité invitée invités inviò involucradas involucrados invullen inyecciones inyección inyong inzake
inzichten inzien inéditas inédites inéditos inédits início inúmeras inúmeros ionen ionic ions iostream irade irais
irakien irakin irakischen iraner iranien iranienne iraniens iranin iranische iranischen iras iremos iren iria irina
iring iris irischen irked irland irlandais irlandese irmos irmáns irmás irmão irmãos irmãs ironia ironic ironica irons
irren irrigated irrigation irrigazione irrigação irritated irritation irritazione irritação irriterande iránt iránti
irányba irányban irányt irányába irão isabet isang iscriversi iscriverti ishe ishte isido isim isimler isio isiyo
iskeä iskolába iskolában iskun islamisme islamiste islamophobie island islandese isles islet islets ismered ismerek
ismerem ismeri ismerni ismerte ismertem ismi ismin ismini isoa isoin isoja isoladas isolados isolare isolate isolieren
isolée isolées isolés ison isossa ispirano ispirare ispirate ispirato israelis israels issuers issues issus istante
istanze istedi istedim istediğimiz istediğini istediğiniz istemem istemiyor istenek istenen isteni istennek isterdim
isterim isterse istersen isterseniz istersin istersiniz isteyen istifa istiklal istituito istituti istituto istiyorsan
istiyorsun istiyorum istorice istorie istoriei istotne istuu istəmir istəmirəm istəyir istəyirəm isyan iszom isänsä
isäntä itakuwa italianas italianos items itens ithal itiraf itong itseensä itsekään itselleni itsellesi itsellä itseni
itsensä itsesi itsessään itsestään itseäni itseäsi itseään itteni itulah itään iubire iulie iunie iwanan iyice iyisi
iyisini iyiydi iyong izin izle izledim izleme izler izleri izleyen izni iässä içecek içeren içeri içeride içerisinde
içeriği içimde içimden için içinde içindeki içinden içine içini içme içten işareti işimiz işine işini işleme işlemi
işlemleri işleri işlerin işlerini işletim işletme işten jaakko jabón jacka jackals jackass jacke jackie jackson jacob
jacobs jadę jagen jagt jaguar jahat jaja jajaran jajka jaka jakaa jakby jakie jakiejkolwiek jakiejś jakiekolwiek
jakieś jakikolwiek jakimś jakiś jakkolwiek jako jakob jakoi jaksa jaksaa jaksi jakso jaksoa jakson jakékoli jakékoliv
jalan jalanan jalankan jalka jalouse jalousie jalur jamin jaminan jamur jamón jangan janne jantan januar japonesas
japoneses japón jara jarak jaren jarkko jarra jasa jasne jason jaten jatka jatkaa jatkamaan jatkavat jatko jatkoa
jatkoi jatkuva jatkuvaa jatkuvat jatuh jauh jaula jaune jdeme jdete jdou jealously jealousy jean jeans jedem jedeme
jeden jeder jedes jedinou jediná jediné jedna jedne jednego jednej jednom jednomu jednotka jednotky jednou jednu
jednym jedná jedné jedną jedou jedu jedyna jedyne jedynie jedynym jedyną jegyet jeher jejímž jejíž jela jelenet
jelenik jelent jelentek jeles jelet jeli jellemzi jelzi jemen jena jenem jenen jener jenes jengi jenni jenom jens
jerky jerry jest jests jetait jetant jeton jets jetés jetën jeweler jewelers jeweller jewellers jezdí jiggle jingle
jiní jistotu jižní joace joacă joaten jobbra joda jodas joden joen jogada jogado jogadores jogados jogamos jogando
jogava joggen johan johdon johdossa johdosta john johns johon johtaa johtaja johtajan johtajat johtava johtavat johti
johtua johtui johtuu joias joie joies joilla joillakin joille joillekin joins joints joissa joissain joissakin joista
joists joita joitain joitakin joka jokainen jokaiseen jokaisen jokaisessa jokaisesta joker jokers jokes jokin jokinen
joko jolie jolies jolis jolla jollain jollakin jolle jollekin jolta jonain jonas jones jongen jonger jonka jonkin
joonas jopa jorda joskin josko jospa jossa jossain jossakin josta jostain jostakin jota jotain jotakin joten jotka
jotkin jotta jouait jouant joudu jouduin joudun joue jouent jouer joues jouet jouets joueur joueuses jouir jouit
joukko joukkueessa joukossa joukosta joulu joulua joulun jouni jour journalisme journaliste journalisten journalistin
jours joutua joutui joutuivat joutuu joutuvat jouée joven joyas jsem jsme jualan jubel jucat jucători jucătorii judas
județele judgement judgemental judgements judgment judgmental judgments judías jueces juega juegan juego juegos juegue
jueguen jueves jueza jugaba jugada jugado jugadores jugando jugar juge jugeant jugent juger juges juggle jugo jugos
jugée jugées jugés juha juhla juhlia juist jules julgada julgado julgando julgo julho julia julio julkaista julkaistu
julkaisu julkinen julkisen julkisia julkista julkisten jumala jument jumis jums junan juncker jung junger junges
jungle jungs junho junio junker junta juntamente juntaram juntas junto juntos juoda juosta jupes jurada jurado jurar
jurer jurist jurnal jurnaliști jurul jurés jurídicas jurídicos just justa justamente justas juste justifiant
justificado justifie justifient justifiée justo justos jutaan juttu juttua juttuja jutussa jutusta jutut juuso juwel
juzga juzgado juzgan juzgando juzgar juzgue járnak járok jársz járt jártak jártunk járunk játékot jäin jäkla jälkeen
jälleen jämt jännä järjestelmä järjestelmän järjestelmää järjestön järkevä järkevää järkeä järven jäseniä jäsenten
jäsentä jätin jätkä jätte jätä jätän jävla jävlar jävligt jään jízdu józan jövőre július június kaagu kaanu kaars
kaarsen kaart kaarten kaartje kaas kaataa kabar kabarnya kabel kabila kabur kacang kacau kacken kadang kadar kadarıyla
kade kader kadir kadro kadrosu kadrosuna kadroya kadry kaduilla kadulla kadun kadın kadına kadınla kadınlara kadını
kadının kafamı kafası kafasına kafayı kafir kagak kage kaget kagum kahdella kahdelle kahden kahdessa kahdesta kahn
kahon kahraman kahta kahteen kahve kahvi kahvia kaikenlaisia kaikenlaista kaikessa kaikesta kaikilla kaikilta kaikissa
kaikista kaikkeen kaikkein kaikkien kaikkiin kain kaipaa kaisa kaisar kaivaa kaja kajian kaját kakak kakaknya kakinya
kaksi kala kalaa kalacak kalan kalangan kalanlar kalau kalbi kalbimi kalbin kalbini kalde kaldet kaldt kaldte kaldı
kaldım kaldırmak kale kaleci kaleme kalesi kalhoty kalian kalinya kaliteli kalitesi kaljaa kalkan kalkınma kalkıp
kallade kallar kallas kallat kalle kaller kalliita kallista kallt kalma kalmadı kalmak kalması kalmaya kalmayı kalmaz
kalmıyor kalmış kalp kalpa kalsın kalt kaltainen kalte kalten kalter kalıcı kalın kalıp kalır kalıyor kamaa kamala
kamalaa kamar kamara kamarnya kamaráda kamarádka kamarády kamen kameny kamer kamera kamery kamin kammer kammern kamp
kampania kampanii kampanyası kampe kampen kampf kampus kamu kamus kamyon kana kanada kanadan kanal kanaler kanalları
kanalı kanalında kanan kanat kanava kanavan kanał kandang kandidaten kandidatin kandidáta kandung kanila kanilang
kaninang kanker kanlı kann kannalta kannata kanne kannte kannten kanon kanone kanonen kansa kansaa kansainvälinen
kansainvälisen kansainvälistä kansalainen kansallinen kansallisen kansan kansen kanseri kanssa kanssani kanssasi kant
kanta kantaa kantang kante kanten kanton kantone kantons kanu kanun kanya kanyang kanyán kanán kanı kanıt kanıtı kaon
kapak kapal kapalı kapan kapandı kapasitesi kapat kapatma kapcsolat kapcsolata kapcsolatba kapcsolatok kapcsolja kapel
kapely kapieren kapja kapják kaplan kaplı kapnak kapok kappaletta kappe kappen kapper kapsamlı kapsamında kapsayan
kapsel kapstadt kapsy kapta kaptak kaptan kapten kaptunk kapták kapunk kapı kapıda kapılar kapıları kapının kapısı
kapısını kapıyı kara karaca karakteri karaman karang karangan karar kararlar kararlı kararı kararını karat karate
karbon karen karet kargo kari karin karma karon karre karren karstadt karsten kart karta karte karten kartet karton
kartons kartta kartu kartun karty kartę kartı karuyag kary karya karúyag karę karı karın karısı karısını karıştı karşı
karşılığı karşın karşısına karşısında karşıtı karşıya kasa kasaba kasar kassa kasse kassel kassen kasser kasta kaste
kastelen kasten kaster kastet kasur kasus kasvaa kasvava kasvoi kasvua kasvun kasvuun kasy kasę kasım kata katanya
katar kate kategorisinde kater kathrin katil katili katkı katlı katoaa katoen katon katosi katrin katse katso katsoa
katsoi katsoin katsojaa katsomaan katson katsoo katsotaan kattaa katte katten katter katto katzen katı katılım
katılımcı katılıyorum kauaa kauan kaudella kaudelle kauden kauen kaufe kaufen kaufst kauft kaufte kauften kaukaa
kaukana kaum kauniita kaunista kaupan kaupassa kaupasta kauppa kauppaa kaupungeissa kaupungissa kaupungista kaupunkien
kaupunkiin kausi kautta kauze kavagu kavahu kavga kawagu kawan kawasan kawat kawin kaya kayak kayang kaybeden
kaybetmek kaybetti kaybı kayda kaydetti kaydı kaynak kaysa kayseri kayıp kayıt kayıtları kayıtlı kaza kazan kazanacak
kazanan kazandı kazanmış kazanır kazanıyor kazası kazasında kazał kaçak kaçmak kaçtı każde każdą każe kdykoliv
keahlian keamanan kebaikan kebanggaan kebenaran kebutuhan kecamatan kecepatan kedamaian kedatangan kedd kedi kedua
kedve keel keeler keener keeper keer kegelapan kehittäminen kehittämiseen kehityksen kehle kehren kehrten keikka keil
keime kein keindahan keine keinem keinen keiner keines keinginan keinoja keins keitä keizer kejam kejar kekalahan
kekayaan keken kekkonen keksi kekurangan kelahiran kelak kelapa kelas kelelahan kelemahan kelemen kelet kelihatan
kelime kelimesi keller kellett kellner kello kelt keltainen keluar kelurahan kemajuan kemarahan kemauan kembang
kemenangan kemer kemik kemudahan kena kenaikan kenal kenangan kenapa kenara kenarında kencang kencing kendali kende
kenden kender kendi kendileri kendilerine kendim kendimden kendime kendimi kendimize kendimizi kendin kendinden
kendine kendini kendiniz kendinize kendinizi kendisi kendisine kendskab kendte kenne kennel kennels kennen kenner
kennst kennt kennzeichen kennzeichnen kent kentang kenti kentin kentinde kenttä kepada kepadaku kepadamu kepadanya
kepala kepalanya kepler kera kerabat kerap keras kerek kerel kerem keren keres keresd keresek keresem keresi keresnek
keresni keress kereste kerestem keret kerim kering kerja kerken kerle kern kerne kernel kernels kerroin kerron kert
kerta kertaa kertas kertoa kertoja kertovat kerze kerätä kerää kerület kerülnek került kerültek kesabaran kesadaran
kesal kesalahan kesamaan kesan kesedihan kesehatan kesenangan kesenian kesepian kesetiaan kesim kesin keskellä keski
keskin keskusta keskustaan keskustan keskustassa keskustasta keskustella keskustelua keskusteluja keskustelun
keskustelussa keskusteluun kesme kesti kestä kestävä kestää kesä kesänä ketel keten ketenangan keterangan ketiga
ketika ketkä ketua ketä ketään keuangan keuken keule keur keuren keurig keurt kevin kevään kevésbé keyfi keyif kezd
kezdek kezdem kezdeni kezdet kezdete kezdeti kezdett kezdetét kezdi kezdjük kezdte kezdtek kezdtem kezdve kezdünk
kezelni kezelése kezem kezet kezébe keşif khan khiến khoác khác không khủng kian kick kickers kicks kiderült kids
kiefer kiekko kiekon kiel kielen kieler kieli kielsi kieltä kieltää kierroksen kierros kiertää kiest kiezer kiinaan
kiinan kiinassa kiinnosta kiinnostaa kiinnostava kiinnostavaa kiinnostunut kiittää kijker kijkers kikker kikkers
kilder kill killer kills kilns kilometer kilometers kilometre kilometres kilos kilpailua kilpailun kilpailussa
kilpailuun kime kimi kimin kiminle kimse kimseye kimseyi kimseyle kimsin kina kindled kindly kindred kinds kingly
kings kingship kinks kinship kippe kippen kirchen kirim kirja kirjaa kirjan kirjassa kirjasta kirjoita kirjoitan
kirjoitin kirjoittaa kirjoittaja kirke kirkko kirkon kirkossa kirli kirsch kirschen kirsten kisa kisan kisat kishe
kishte kisoissa kissa kissan kissen kist kisten kita kitab kitabında kitabını kitapta kites kitle kits kiujn kiun kiva
kivaa kivoja kiváló kivéve kiállítása kişilere kişiye kişiyi kişiyle kiến kjapt kjeft kjekt kjenne kjent kjente kjøpe
kjøper kjøpt kjøpte kjøre kjører kjørt kjørte kjøtt klaas klacht klachten klaga klagar klage klagen klager klagt
klagte klammer klammern klanken klant klanten klappe klappen klappte klar klara klarade klarar klarat klare klaren
klarer klaret klart klarte klas klasa klasie klass klasse klassen klasser klassinen klasy klauen klaus klaut klauwen
klebt kleden klee kleiden kleider kleidern klein kleine kleinem kleinen kleiner kleines kler kleren kletsen kleur
kleuren kleve klick klicke klicken klidu klik klikk klikkaa klikken klikt klimt klinge klingeln klingen klinken klinkt
klippen kloge klok klokken klokt klonk klop kloppen klopt klopte klote klub klubie kluby klubů kluci kluft kluis kluky
klus klussen klæder klærne klüger knacken knallen knappe knappen knapt kneel knick knickers knicks knihu knijpen
knippen knize knobs knochen knoop knop knopen knopf knoppen knoten knots knows knuse knust knut knöpfe kobiecie
kobieta kobiety kobohingkaangan kobohingkangan kochamy kochanie kochen koda kodda kode kodieren kodin kodlu kodu kodun
kodunuzda kodunuzla koeien koel koelen koen koepel koerden koers koets kogel kogo kohdassa kohdata kohta kohtaa
kohtaan kohti kohtuullisen koiho koira koiraa koiria koiso kokea kokee koken kokevat koki koko kokoa kokonaan
kokouksen koku kokusu kokusunu kolde kole kolega kolei kolejce kolejki kolejna kolejne kolekce koleksi kolen kolena
kolla kolları kollegen kolleger kollegin kollegor kolmea kolmeen kolmen kolmessa kolmesta kolom kolonie kolonne kolory
koltuk kolu koma kombinieren komea komen komencis komendis komik komma kommentarer kommentere kommentit kommentoi
kommentti kommet kommst kommt kommunens kommunes kompatibel kompatible kompetenzen kompletnie kompletní komplett
komprenas komprenis komst komt komu komşu konak konat konce koncept koncert koncertu koncerty konci koncie kone konec
koneen koneita koneksi konen konetta konge kongelige kongen kongo konia konieczne koniecznie koningen koningin
koninklijk koninkrijk konkretne konkretnie konnte konnten konser konseri konsert konseyi konst konstant konstanten
konstantin konta kontak kontakt kontakter kontaktu kontakty kontanter konteks konten kontes kontinent kontingent konto
kontrak kontrakt kontrakten kontrol kontrollera kontrollere kontrollieren kontrollierten kontrolou kontrolu kontrolü
konu konuda konuk konular konularda konuları konulu konum konumu konusu konusunda konusundaki konut konuya konuyla
konuyu konuş konuşma konuşmak konuşması konuşmaya konuşmayı konuşuyor konvensi konyol konzentrieren konzentrierte
konzentrierten konzept konzepte konzepten konzerne konzernen konzert konzerte konzerten koní končí koně kookt koop
koopt koostuu kopce kopen kopers kopf kopi kopie kopieren kopio kopiro kopje kopp koppel koppen kora korai koran
korban korea koreai korean koren koritapui korjaa korjata korjattu korjaus korkak korkea korkean korkma korku korkusu
korkuyorum korn korrektur kors kort korta korte korter kortere kortet kortti koru koruma korumak koruması korumaya
korunması korusun koruyan korvaa korvata korában korábban kose koska koske koskee koskeva koskevat koski koskien
koskinen kosong kost kosta koste kostel kosten koster kostet kostte koszulki kota kotak koti kotia kotimainen kotka
kotoa kotona koukat koule koulua kouluissa koulun koulussa koulusta koulut koulutukseen koulutuksen koulutuksesta
koulutus koulutusta kouluun koupí kousek kouření kova kovaa kovan kovat kovia kovin koyan koydu koyu koyun koyuyor
kozen kościele kracht krachten kraft kragen kraje krajiny krajów kraken kraków kral krallen kralı kralın kramer krampf
kran krant kranten krap krass krasse krassen krater kratzen kratzer kraus krause kraut kraven krebs kredi kreft kreide
kreikan kreikka kreis kreise kreisen krev kreve krieges kriegs kriegst kriegt krig krigen kriger krijg krijgen krijgt
krijt krill krim kring kringen krippe kris krise krisen krisis kristen kristne kritik kritiken kritikern kritikk
kritiky kritis kritisieren kritisierten kritisk krize krku kroaten kroatien krokem kroki kroku krona krone kroner
kropp kroppar kroppen kruiden kruip kruipen kruis kruisen krve krysser krysset krále krása krásnou krásy krävs kræft
krævede krüger kręci książkę książę który któryś którzy kuanza kuanzia kuasa kuat kubwa kucing kudde kudus kuelewa
kueleza kuelezea kufikia kufunga kufungua kuil kuin kuip kuja kujua kuka kukaan kukat kukin kukkia kukua kukuza kulak
kule kuljettaa kuljettaja kulki kull kullanacak kullanan kullanarak kullandı kullandığımız kullandığınız kullanma
kullanması kullanmayı kullanıcı kullanılacak kullanılarak kullanım kullanımı kullanın kullanırsanız kullanırsınız
kullanıyor kullanıyorum kulta kultaa kultainen kulttuurin kulturu kulunut kulut kuluttaja kuluttua kulutus kuluu kulüp
kumma kumpel kumpulan kuna kunde kunden kunder kungen kunhan kuning kunnan kunnassa kunne kunnissa kunnossa kunst
kunsten kunt kunta kuolee kuolema kuolemaa kuolemaan kuoleman kuoli kuona kuopio kuota kupası kupię kuppel kupplung
kura kural kurallar kuralları kuralı kuran kurang kurban kurden kurdu kurgu kurier kuritapui kurma kurmak kurmaya
kurse kursen kurser kursus kursy kurtlar kurtuluş kuru kurucu kurudi kurul kurulan kuruldu kurulması kurulmuş kurulu
kuruluş kuruluşu kurum kurumsal kurumu kurus kuruş kurve kurven kurwa kurze kurzen kurzer kurzy kurşun kusikia kuski
kussen kust kusten kusudi kutje kutlu kutoa kutoka kutsal kutsu kutsuu kutt kutu kutumia kutumika kutusu kuuden kuule
kuulee kuuli kuulla kuulosta kuulostaa kuulu kuulua kuului kuulunut kuuluu kuuluva kuuluvat kuuma kuumaa kuuntele
kuuntelee kuuntelen kuusi kuva kuvaa kuvaan kuvan kuvassa kuvasta kuvat kuvata kuvia kuvissa kuvista kuvuta kuvutia
kuvvetli kuwa kuşu kvalitu kvalitě kvart kvinder kvinders kvinners květnu kwade kwako kwanza kwao kwart kwarta kweken
kwetsen kwijt kwoty kwárta kykene kykenee kykyä kyllä kylmä kylmän kylmää kylä kylän kylään kymmenen kyseinen kyseisen
kysy kysyin kysymykseen kysymyksen kysyn kysyntä kysyntää kysytään kysyy kysyä kámen káva kávu kávy kädellä kädessä
kädestä käfer kämpfe kämpfen kämpfte kämpften kända kände känna kännas kännissä känns känt kära kärki kärsi kärsii
käsi käsiin käsin käsissä käsistä käsittelyyn kättä käufer kävellä kävin käydä käydään käymään käynnissä käyntiin
käytetty käytiin käytin käyttäjä käyttäjät käyttävät käyttää käytä käytät käytössä käytöstä käyvät kæft kékang kéndi
kéni képe képei képek képen képes képest képet képviselői képzett kérdezi kérdezni kérdeztem kérdés kérdése kérdésre
kérdést kérek kérem kéri kérlek kérni kérte kértek kértem kérést kész készen készülnek készültek kétang kétszer kódot
kökenli köket kölner könne können könnte könnten könntest könntet könyvben könyvet köpa köper köpfe köprü köprüsü köpt
köpte köra körbe körben köre körner környezetben körper kört körében körül köszönet kötet kötött kötüsü követ követett
követi követni követte köyde köylü köyü köyünde közben köze közelben közeli közelében közt közti köztük közzé közé
közönség közönséget közös közösség közösségek közösséget közösségnek között közöttük közúti közül köşesinde købe køber
købt købte køre kører kørte küche küchen kühe kühle kühlen kühn kühne küken küld küldeni küldte küldött kültürü
kümmere kümmerte künste künstlerin künstlern kürek küsse küssen küste küsten kılan kırdı kırk kırık kısa kısmı kısmına
kısmında kısım kıyafet kıyamet kıymetli kıza kızla kızlar kızı kızım kızın laagste laaja laajasti laatste labas label
labeled labeling labelled labelling labern laboratori labs lacci lace laced laces lach lache lachen lacht lachte
lacing lacked lacking lacks lacs lacuna ladang ladda laddar ladder ladders lade ladeira laden lader ladet lading lado
lados ladro lads ladung laga lagar lagde lage lagen lager lagere lagern laget laghi lago lagoas lagos lagt laguna
lahan lahja laici laid laide laien lain lainaa lainan lainata laine lair laird laissa laissait laissant laisse
laissent laisser laisses laissée laissées laissés lait laita laitan laite laiva laivan lajia lajin laken lakes laki
lakia lakik laku lakásban lama lambent lambert lambs lambung lame lament lamentano lamentarmi lamentarsi lamentato
lames lamina lampe lampen lampes lamps lampu lampung lana lance lancer lancers lances lanceur lanche lanches lanci
lancia lanciando lanciano lanciare lanciata lanciate lanciati lanciato lancio lanciò lancée lancées lancés lande
landed landen lander landers landes landet landets landfall landfill landing lands landung lane lanes lange langen
langer langere langes langs langste langsung langt lanjutan lanjutkan lannen lansare lansate lantai lantas lanza
lanzado lanzados lanzando lanze lança lançadas lançado lançados lançando lançant lapangan lapar lapel lapin lapins
lapis lapissa laporan lapos lapped lappen lappi lapping laps lapsed lapselle lapsena lapsensa lapsesta lapsi lapsilla
lapsille lapsing lapsista lapte lara larangan larch lard larder lareira laren lares largas large larger larges largeur
larghi largo largos larguer larme larmes larut larva larvas larves lasci lascia lascialo lasciami lasciamo lasciando
lasciano lasciarci lasciare lasciarli lasciarlo lasciarmi lasciarsi lasciarti lasciata lasciate lasciatemi lasciati
lasciato lasciava lascino lascio lascito lasciò lase laser lasers lash lashed lashing laske laskea laskee lasketaan
laski laskun laskuun lass lasse lassen lasser lasst last lasta laste lasted lasten laster lasting lasts lata latach
latar latas latch late laten latent later laterally latere latest lathe lather latidos latijn latin latina latine
latines latino latinoamericanas latinoamericanos latinos latins latte latter lattina laual lauch lauded lauder laudo
lauer lauern laufe laufen laula laulaa laulaja launch launched launchers launches launder laune laura lauro lause laut
lautan laute lauten lauter lava lavado lavalla lavando lave laved lavede laver lavere lavet lavorando lavorano
lavorare lavorate lavorato lavoratori lavoravo lavt lawan lawer lawful lawfull lawns lawr laws lawyer lawyers layak
layaknya layanan layang layar layer layers laying lazo lazos lazım laço laços laïcs leabhair leabhar leach leaded
leaden leader leaders leading leads leafs leafy leais leaked leaking leaks leaky leal leale leales leali lean leaned
leaner leaning leans leant leaped leaping leaps leapt learn learned learner learning learns learnt leas lease leased
leases leash leasing least leather leave leaved leaven leavers leaves leaving lebah lebar lebaran lebe leben lebend
lebende lebenden leber lebih lebst lebt lebte lebten lecken lecker leckeren leckt lecteur lecturers lectures leczenia
leczenie ledande ledde lede ledelsen leden ledende leder ledere lederen ledna lednu ledsen ledte ledu ledwo leed
leefde leefden leeft leeg leegte leeks leen leende leent leer leerde leerden leere leeren leerer leert lees leest lega
legado legais legal legale legales legali legame legami legano legare legat legate legati legato legată legde legden
lege legea legen legend legende legenden legene leger legers legga legge leggen legger leggera leggere leggeri
leggerla leggerlo leggero leggete leggeva leggevo leggi leggo leghe legi legii legion legione legioni legions
legislativas legislativos legión legna legname legnano legno lego legrosszabb legst legt legte legten leguas legyenek
legítimas legítimos legături lehce lehdessä lehen lehet lehetek lehetnek lehetőséget lehne lehnen lehnt lehnte lehnten
lehre lehren lehrer lehrerin lehrern lehrt lehrte lehtien lehtinen lehto lehtonen leia leiam leib leibe leiche leichen
leicht leichte leichten leichter leid leidden leide leiden leider leidet leie leigos leihen leila leilão leine leinen
leio leipää leis leise leisen leiser leiste leisten leistet leistete leistung leistungen leite leiten leiter leiterin
leitern leitet leitete leito leitores leitos leitung leitungen leituras leitão leje lejre lejuar lejárt lekarza leke
leken leker leki lekken lekker lelah lemah lemak lembah lembar lembaran lembrada lembrado lembramos lembrando lembrava
lembre lempar lena lenda lendas lender lenders lending lendo lends lenen lengde lenge lenger lengre lengte lenguas
lenha lening leningen lenken lenker lenkt lenne lenni lennie lennék lennének lens lensa lenses lent lenta lente
lenteur lenti lento lentos lenzen leona leone leoni leonie lepas lepel leper leram leren lerne lernen lernst lernt
lernte lernten lesa lesben lese lesen leser lesern lesie lesion lesione lesiones lesioni lesions lesión lesní lesse
lessing lesson lessons lest leste lesy leszek lesznek lesão lesões letadel letak letal letale letali letame letar lete
leter letivo letní letních lets lett letta lette letterari letterati lettere lettered lettering letti letto lettre
letztens letztes letí leuchten leugen leukaemia leuke leukemia leuker leur leute leuten levada levado levados levam
levamos levande levando levantaba levantada levantadas levantado levantan levantando levantarme levantarse levantarte
levante levanten levaram levare levate levati levato levava levavam levde leve levede levegő level leveled leveling
levelled levelling levels levem leven levend levende levenden levens lever leverde levere leveren levers levert
leverte leves levet levi levier levné levé levées levés lewat lewo lexuar leyes lezat lezen lezer lezers lezing
lezingen lezione lezioni lezzetli leão leía leões liable liam liant liar liat libbre liber libera liberada liberado
liberados liberal liberale liberali liberally liberando liberar liberare liberarse liberate liberati liberação libere
liberi libero liberou liberta libertado libertados libertar libertação libertou libertății liberó liberă libia libica
libico libra librado libraire libraires librairie librairies librar librarse libre libres libri libro libros librum
libs libum libur libère libérés licei licence licences licencre license licensee licensees licenses licenza licențe
licht lichte lichter licitaciones licitación licitação licked licking licks liczbie liczby liczbę liczne liczy liczą
liczę lida lidam lidando lidar lidas lide lider lidera liderada liderado liderados liderando liderar lideri liderii
liderou lideró lidi lidia lidmi lido lidos lidové lieb liebe lieben liebend liebenden lieber liebes liebre liebst
liebste liebt liebte lied lieder liedern liedes liedje liefde liefen liefern liefje liefs liege liegen liegend
liegende liegenden liegst liegt liekas lien lienee liens liepen lier lies liesen liest liet lieta lietas lieten lieth
lieti lieues lieve liever lievi lifelike lifeline lifelong lifted liften lifter lifting lifts ligada ligado ligam
ligando ligar ligas ligava ligde lige ligeira ligen ligera ligga ligge liggen liggende ligger ligget light lightening
lighting lightning ligii ligne lignede lignende ligner lignes lignée ligt ligue ligues liha lihaa lihat liian liiga
liigan liike liiketoiminta liikunta liisa liittyviä liittyvä liittyvää liittyä lijden lijdt lijken lijkt lijnen
lijntje lijst lijstje lika likable like likeable liked likelihood likely liker likes likhet liking likken liknande
likt likte lilien lilin lilla lilly lily lima liman limbi limbii limbo limbs limeira limes limiar liminar limitaciones
limitación limitada limitadas limitado limitados limitando limitano limitant limitar limitare limitate limitato
limitação limitações limite limitent limites limits limitée limitées limités limo limpa limpar limpo limão lina linda
lindas linde linden lindern lindo lindos line linea lineage lineages linear lineas lined linen linens liner liners
lines linfa ling linge lingen linger lingers lingkungan lingo lingüísticas lingüísticos linha linhas linia linie
linien linii lining linja linjaa linjan linje linjen linjer linkage linkages linke linked linken linker linkes linki
linking links linku linn linnan lino linse linsen lint linting linus linzer lion lions lipat lipca lipid lippen
lippuja lips lipsa lipsei lipsit lira lire lirica liriche lirico lirik lisa lisait lisant lise lisesi liso lisp lisse
lisses list lista listaa listadas listados listalla listas liste listed listede listen lister listes listesi
listesinde listesine listet listing listo lists listy listája lisäksi lisäsi lisätietoa lisätietoja lisätä lisää lita
litar lite liten liter litera literacy literal literally literarias literarios literary literate litere litern liters
literárias literários litet liti litigano litigato litio litre litres litri litro litros litten litter littered
littering litters livable live lived livelier liveliest livelihood liveliness livelong lively liven liver livers
livery lives livet liveth livid living livra livre livrent livrer livres livret livrets livreur livro livros livrée
livrées livrés liwat liwát lixeira lixo lixão lièvre liées liés ljubi ljudet ljudi ljuga ljuset llama llamaba llamada
llamadas llamado llamados llamamos llamando llamara llamarla llamarle llamarme llamarse llamaría llamas llame llames
llamo llano llanto llave llaves llawr llega llegaba llegaban llegada llegado llegados llegamos llegan llegando llegar
llegara llegaran llegaron llegará llegarán llegaría llegas llegase llegaste llego llegá llegó llena llenado llenan
llenando llenar llenaron llenas llene lleno llenó lleva llevaba llevaban llevada llevadas llevado llevados llevamos
llevan llevando llevar llevara llevaran llevarla llevarle llevarlos llevarme llevarnos llevaron llevarse llevarte
llevará llevarán llevaría llevas lleve lleven lleves llevo llevá llevó llibre llibres lliure lliures llora llorando
lloro llosa llueve llygad llygaid loaded loaders loading loads loafers loafing loaned loaning loans loath loathe
loaves loben lobes lobo lobos lobte lobão local locale locales locali localisé localitate localitatea localité
localități localității localizadas localizados locally locals locas locate locates locaux locazione locação locke
locked locken lockeren lockern locking lockout locks loco locos locuitori locuitorii locul locului locuri locurile
locus locuzione lode lodge lodged lodger lodgers lodges lodging lodgings lodi lodo lodí loer loftet lofts loge loger
logged logging logia login logis logisk logo logos logra logrado logrando logro logros logs loin loins lointains loira
lois loistava loistavaa loiter lokaal lokal lokala lokale lokalne lokalt lolly loma lomas lona loneliness lonely lonen
loner longa longas longe longed longen longer longing longings longo longos longs longue lontano lontoon loods looked
looking lookout looks loomed looming looms loony looped looping loops loopt loopy loos loose loosed looser loosing
looted looting lopen loper lopers lopes loppu loppuu lopulla lopulta lora lordi lordly lordo lords lori loro lose
losen loser losers loses losing loss losse losser losses lost lotação lotes loth lots lottando lottano lottato lotte
lotto lotul lotus louca loucas louco loudly loue louer louis louise lounge lounged lounges lounging loupe louper loups
loupé lourdes lourds louro loué lovable lovade love loveable lovede lovelier loveliest loveliness lovely lover lovers
loves lovet lovey loving lower lowers lowly loyaal loyal loyally loyalty loyer luana luanda luar luas luate luată
luați lubang luca lucas lucero luces lucha luchado luchando luchas lucho lucia lucid lucio lucra lucrare lucro lucru
lucrări lucrării lucía luder ludzi ludzie ludzkie luego lueur luft lufta luften lugar lugares luge lugnt lugs luidde
luiden luider luie luier luigi luis luisa luise lujaa lukas lukee lukio lukion lukken lukko lukon luktar lukter lulus
lumi lumii luminii luna lunar lunares lunas lunch lunched lunches lunes lunga lunge lunges lunghi lungi lungo lungs
lungă luni lunii lunta lună luoda luodaan luoghi luogo luoja luokka luokkaa luomaan luona luonnossa luota lupa lupaa
lupte luptă lurah lurch lurched lure lured lurer lures lurid luring lurked lurking lurks lurte lurus lusa lust luster
lustre lutado lutando lutar lutaram lutas lutut luvas luvulla luvulta lyckas lyckats lycéens lycées lyder lyhyt lying
lykkes lyset lyssnade lyst lytter lyödä lába lány lánynak lányok lányt lányát láska láskou lásku lásky látja látjuk
látják látky látnak látod látta láttak láttunk látták lângă läge läger läget lägger läggs lägre lähdin lähellä läheltä
lähetä lähi lähin lähtevät lähteä lähti lähtivät läkare läkaren lämnade lämnar länder länge länger längre längs längst
länteen lärare läraren lärarna läser lässig läst lästig läuft lääkärin låga lågt låna låne långa långt låsa låta låtar
låter læge læger lægge lægger lægges lækre længde længe lære lærer lærere læreren lærerne læring lærte læse læser
læste lève lèvre légion légions léinn lélek léonard léopard lésion lésions léčbu líbia líbro límites línea líneas
lívia lögner löner löse lösen löser lösning löste lösten löven löwen löydä løber løfte lønner løper løpet løse løser
løsning løsninger lügen lưng lương lượng maagd maailma maailmaa maailmaan maailman maailmassa maailmasta maakst maakt
maakten maaleja maali maalia maaliin maalin maalit maalla maand maanden maaram maart maarten maas maassa maasta maat
maata maatje maaş mabuhat mabuk maca macaco macam macan macchia macchie macchina macchine macerie mach machado mache
machen macher macho machst macht machte machten machucado machucando macia macie macintosh macio maciça maciço
mackintosh macro macron macroscopic madden maddesi made madeira madeiras maden madera maderas madison madly madmen
madogo madra madre madres madri madrina madrinha mads madsen madura maduro maestra maestras maestro maestros maestría
mafia mafie maga magad magada magadnak magadra magama magamat magamban magamnak magamra maganda magari magbuhat mage
magen mager mages maggi maggio maghi magi magia magic magica magiche magico magie magier magistrati maglia maglie
magma magna magno magníficos mago magoa magos magra magri magro mags magst magten maguk magukat magukkal maguknak
magunk magunkat magus magyarázat magába magának magára magáról magától mahallesinde mahdollinen mahdollisen
mahdollisia mahdollista mahdollistaa mahkemeye mahkum mahler mahtaa mahtava mahtavaa maia maias maicii maiden maids
maier maigre maigres maihin maija mail maila mailed mailen maille mailles mails maim maimed main mainan mainkan mainly
mains maintes maio maior maioritariamente mair maire maires mairie mairies mais maison maissa maista maita maith
maitoa maize majalah majeures majeurs majom majoor major majoritariamente majors maka makam makan makanya maken maker
makers makes makin makina makinesi making makings makita makler maklik makna maksa maksaa maksma maksta maksu makten
maku makua makubwa makul mala malade malades maladie maladies malah malam malaman malang malaria malas malasia malata
malditas malditos male malen maler males malese malestar malet maleta malha mali malien malik malin malines malins
malla malle malleja malli mallia malliin mallin mallissa mallit malls malmin malos malta malte maltese malum malyári
malária malásia mama mamada mamar mamas mamba mamei mamen mames mami mamie mamma mamy mana manada manager managers
manages manca mancando mancano mancante mancanti mancanze mancare mancata mancate mancati mancato mancava manch mancha
manchado manchas manche manchen mancher manches manchi mancia manciata mancino manco mand manda mandado mandados
mandami mandamos mandando mandano mandant mandar mandaram mandare mandarle mandarli mandarme mandarmi mandas mandat
mandata mandate mandati mandato mandatos mandava mande manden mandi mandiamo mando mandos mands maneira maneiras
maneja manejado manejando manejar manen manera maneras manes manga mangas mange mangeait mangeant mangel mangent
manger manges mangga mangi mangia mangiamo mangiando mangiano mangiare mangiata mangiate mangiato mangiava mangio
manglede manglende mangler mango mangos manha mani mania maniac maniaco manic manica maniche manico manie manier
manifestado manifestando manifestano manifestant manifestato manifestent manija manila manipulado manis manière
manières mankas manlik manly manna mannen manner mannes mano manor manors manos manquait manquant manque manquent
manquer manquera manques manquez manqué mans mansão manta mantan mantas manteau mantel mantello mantendo mantenerlos
mantenerme mantenernos mantenerse mantenerte mantenha mantenham mantenho manter mantidas mantidos mantinha mantle
manto mantra manuel manuell manufacturers manufactures manure many manzo manákit manège manía manĝas manžela manželka
manželkou manželku maong maono mapa mapas mapie maple maples mapy mapya maquette maquis mara marad maradnak maradtak
marah marais maravilhosas maravilhosos maravillosas maravillosos marbre marca marcada marcadas marcado marcados marcan
marcando marcar marcaron marcas marcata marcate marcato marce marcel march marcha marchado marchait marchan marchando
marchant marchar marcharon marchas marche marched marchent marchers marches marchi marching marchio marchó marcia
marciano marciare marcio marcire marco marcus marcó marcă mardi mare marea mareas marek marele maren mares marfim
marfă margarida marge marges margin margine margini margins mari maria mariana mariani mariano marica marido maridos
marie marien marier marii marile marin marina marinai marine mariners marines marinha marinhas marinho marinhos marini
marino marinos marins mario marion maris marisa marital mariti marito marius mariée mariées mariés marja mark marka
markası marke marked markedet marken marker markers market markets marki markieren markierten marking markings
markkinoilla marko marks markt markten markus marlin marlins marmi marmo marne marocains marquant marque marquent
marquer marques marquess marqueur marquez marquis marqué marquée marquées marqués marre marred marrer married marron
marry mars marsch marsh marshes marsz marta marte marteau martel martello martes martial martian martians martie
martin martina martins martire martti marvel marveled marvelled marvellous marvelous marvin marxisme marxiste mary
marzo março marée marées maría marítimos marşı marți masa masada masak masal masalah masam masas masaya masca masche
maschen maschi maschio masculinas masculinos masculins masern mash mashed masi maske masked masken masker maskers
masking masks masque masquer masques masqué masquén masquín mass massa massage massages massaggi massaggio massaging
massale masse massed massen masser massi massing mast masten master mastered masterly masters mastery masther mastro
masts masuk masum masz masákit masă masę mata matado mataku matamu matanda matando matang matanya matar matarme
matarte matas match matched matches matching matchs mate mated matei matematik matematikk matemáticas matemáticos
maten mateo mater materia material materie materiel materna maternal mates math mathe maths mati matias matices matin
mating matins matita matiz matière matières matka matkaa matkaan matkan matki matkou matku matkustaa matky matką matkę
mato matones matos matre matriz matron mats matt matta matte matted matter mattered matters matti mattia mattina matto
matura mature matures maturi maturo mauer mauern maupay maurer mauro maut maven mawar maxed maxim maya mayaman mayas
mayat mayer mayest mayor mayors mayst mayári maze mazes mazo mazuri mazzo maáram maça maçta maçına maçında maður
maúpay mačka mała mało mały mașini mașinii mchango mdogo meados meager meagre meal meals meander meaner meanly means
meant mear meat meats meca mecca mecha meciul meclise mecum mecz mecze mecánicas mecánicos mecânicas mecânicos medal
medalist medallist medals medan medarbejdere meddelande meddling media mediación mediador mediados mediaeval medial
mediana medianas medianos mediar medias mediate mediated mediating mediation mediazione mediação medica medicación
medical medicated medicatie medication medications medicação medici medicii medición medico medics medicul medida
medidas medido medien medier medieval medievale medii medina medindo medio medioevale medir meditación meditar
meditare meditate meditatie meditating meditation meditations meditazione meditação mediu mediul mediului medição
medlem medos medula medyada medycyny meen meent meer meest meesteres meesters meet meeting meets mega megkapta
megmutatta megnézem megnézni megnéztem megpróbálja megpróbálta megtalálja megtalálta megtenni megy megyei megyek
megéri megöli mehet meia meias meiden meie meier meihin meile meilen meille meilleures meilleurs meillä meiltä meine
meinen meiner meines meiningen meins meinst meint meinte meinten meinungen meio meios meist meiste meisten meistens
meister meisterin meistern meisters meistä meitä mejor mejora mejorado mejorando mejores mejoría mejía mekan mekin
melainkan melaju melarang melawan melde melden meldte mele melek meletakkan melhora melhorado melhorando melhoras
melhores melhoria melhorias melihat melihatmu melio melko melkoinen melkoisen mellem mellett melo melting melts
melupakan melyben melyek melyeket melyen melynek melão memainkan memakai memalukan memandang memang memastikan
memasuki mematikan membaca membacanya membagi membahas membaik membakar membalas membawa membawakan membawanya
membayar membeli membelinya membentuk memberi memberikan memberimu memberinya membri membrii membrilor membuat
membuatku membuatmu memenangkan memes memnun mempengaruhi memperhatikan memperlakukan memuat memutar mena menace
menaces menacée menacées menacés menahan menait menambah menandakan menang menangkap menant menantang menanti
menanyakan menara menari menawan menaçait menaçant mencari mencintai mencintaimu mencionada mencionadas mencionado
mencionados mencionando menciones mencuci mencuri mendaftar mendapat mendapatkan mendarat mendes mene menebak menee
menegaskan menekan menembak menembus menempati menempatkan menen menenangkan menentang mener menerapkan menerus menes
menestys menet menetapkan meneur mengabaikan mengacu mengadakan mengajar mengajarkan mengaku mengalahkan mengalami
mengalihkan mengamankan mengangkat mengantarkan mengapa mengarah mengarahkan mengatakan mengatasi mengawali mengawasi
mengejar mengen mengenai mengenakan mengenali menghadap mengikat menginap menginginkan mengukur mengulang mengurangi
mengurus mengusir menial menig menin menina mening meningen meninggalkan meninggalkanmu menipu meniru menja menjalin
menjamin menjatuhkan menjek menjelang menjünk menne mennek mennem menneskers menneskets menni mennie mennyi mennyire
meno menoa menor menores menos mens mensa mensais mensal mensalmente mense mensen ment menta mentaal mentais mental
mentales mentalmente mente mentek mentem mentendo mentent mentes menteur menti mentido mention mentionnant mentionne
mentionnent mentionnée mentionnées mentionnés mentire mento menton mentor mentore mentores mentre mentünk menunggumu
menunjuk menunjukkan menus menyakitimu menyala menyalahkan menyapa menyatakan menyatukan menyayangimu menyebabkan
menyebalkan menyebar menyebarkan menyediakan menyedihkan menyembuhkan menyenangkan menyerahkan menyerang menyerap
menyiapkan menzionare menzionate menées menés menús menő menține mera merah meraih merasa merasakan merawat merayakan
mercadeo mercado mercados mercanti mercati merce mercer merci mercier merck mercy merda merde merdeka merdier mere
merek mereka merekam meren merge mergem merger mergers merges mergi meriah merindukanmu merit meritano meritare
meritata meritate meritato meritava merită merk merke merkel merken merkeze merkezi merkezinde merkezine merkezli
merkin merkitsee merkittäviä merkittävä merkittävää merkst merkt merkte merlo mero meros merry mers merupakan mesa
mesas mescolare mese meselesi meses meshes mesi meski meslek mesma mesmas messa messages messaggi messaggio messaging
messe messen messes messi messia messie messire mest mesta mestarien meste mester mesti mestrado mestre mesurant
mesure mesurée mesut mesías meta metaal metais metal metales metals metan metano metas mete meteen meten metendo meteo
meteor meteors meter meterle meterme meters meterse meterte metes meteu meti metida metido metin meting metingen metni
meto metra metre metres metri metro metros metrou mets metsä metsän metsässä metsää metsään metta mettais mettait
mettano mettant mette mettendo mettent metterci mettere metterei metterle metterli mettermi mettersi metterti mettervi
mettete metteur mettez metti mettici mettiti metto mettono mettrais mettrait mettre metálicas metálicos metía meufs
meum meurent meurs meute mewah mexendo mexer mexeu mexicanas mexicanos meydana meyer mezclado mezclados mezclando
mfano mhadra mhaith mhath mhúinteoir miaka miami miar miatt miał miała miałby miało miały miből mica mice mich michael
michango michel mici micro microscopic mics micul mică midday middel midden middle middleman middlemen middling mide
miden midler midlife midline midst midt midway midwife miedzy miehelle miehellä miehen mieheni miehensä miehestä
miehille miehillä miehistä miejsca miejska miel miele mieleen mieleeni mielen mielenkiintoisia mielenkiintoista
mielessä mielestä mielestäni mielestäsi mieli mielin mieltä mieluummin mien miene miens mientas miente mientes
mientras miere mieren mierze mies miese miesen mieser miesięcznie miestä mieszka mieszkanie mieszkać miete mieten
mieter mieti mietin mifano migliorando migliorano migliorare migliorate migliorato migliore migliorie migratorias
migratorios mihin mija mijne mijnen mikes mikro miks miksei miksi mikubwa mikutano mikä mikäs mikään mila milch milde
milden milder mile miles milestone milfs milhas milho milhão milice miliki milikmu militants militare militari milite
miljoona miljoonaa miljoonia miljöpartiet milked milking millainen millaisia millaista mille milled miller milles
milli millimeters millimetres milling mills millstone millä miltä milyon mimi mimpi mina minacciando minacciano
minacciata minacciato minare minas minat minato mince minced minces mind minde minded mindegy minden mindennek mindent
minder mindern mindet mindezek mindezt minding mindre minds mindst mindste mine mined minen miner minera miners
minería mines minestra mineures mineurs mingea mingi mingine minha minhas mini mining minis miniscule miniseries
minister ministeri ministerien ministerin ministero ministerul ministerului ministra ministre ministres ministri
ministries ministro ministrul ministrului ministère ministères minières miniștri minket minkä minkään minna minnas
minne minner minns mins minska minst minsta minste minster minta minte mintea minted mintegy mintha mints minty minua
minulla minulta minun minune minus minuscule minusta minut minute minuto minuty minuun minä minäkään miongozo mipaka
mira miraba mirad mirada miradi mirado miranda mirando mirano mirar mirarme mirarte miras mirata mirate mirato mire
mired miren mires miro miről misa misas misc mise miser misera miseria misero mises misi misiuni misja mislead misled
misma mismas mismo mismos misread miss missa missed missen missile missing missive misslyckas misst misstänkta missä
missään mist mista miste mistede mister misteri misteriosas mistero misti mistica mistico misto mists misturado
misturando misty mistä mistään misurato misused misusing mitad mitarbeiterin mitarbeitern mitawlí mite mites
mitgliedsstaaten mitgliedstaaten miti mitica mitico mitindo mitkä mito mitos mitra mitre mits mittaa mittaan mitte
mitteln mitten mitts mitä mitähän mitäs mitään mitől mixed mixer mixers mixes mixing mixto mixtos miyim miért miła
miło miły mișcă mișcări mișcării mkono mkubwa mkutano mladí mladší mluví mluvím mluvčí mmoja mnie mniej moale moaning
moans moare moarte moară mobiel mobiele mobile mobilier mobiliser mobilisé mobility mobilité mobster mobsters moche
moches mochte mocks mocne mocy moda modal modale modales modalidad modalidade modality modalità modded modder mode
model modeled modeling modell modelled modelli modelling modells models modely modems moder moderado moderados
moderatoren moderatorin modernas moderne modernos modes modest modesta modeste modestia modestie modestly modesto
modesty modi modificadas modificado modificados modificando modificare modificate modifie modifiers modifies modifiée
modifiées modifiés modo modos modrá modré modrý mods modtage modtaget module modules modulo modus mody modèle modèles
moed moeda moeder moelle moer moest moesten moet moeten mogen moginum mogium mogli mogła mohou mohu moine moines
moinho moins mois moist moja mojada mojado mojem mola mold molde molded moldes molding moldoveni molds moldy mole
molemmissa molempien molempiin molen moles molest molesta molestado molestan molestando molestar molestas molestia
molestias molesto molestos molhar molino molla molle molli mollo molly molo molta molte molti molto momentan momenten
mona monarca monat monate monato mond mondat mondd monde mondes mondi mondja mondjak mondják mondo mondod mondta
mondtam mondták moneen monella monen monenlaisia monessa monesta moneta monete money moneys mong monge monges monginum
monia monien monies monin monissa monista monja monje monjes monkey monkeys monks mono monon monos monster monsters
monstre monstres monstro mont monta montaa montada montado montage montages montagna montagne montagnes montait
montale montana montando montanha montano montant montană montare montata montato monte monteiro montent monter
montero montes month months monti monto monton montrait montrant montre montrent montrer montres montrez montré
montrée montrés monts monture monté montée montées montés mony moods moody mooie moon moons moor mooring moors moped
moque mora morada moradia morado morais moral morale morales morali moralidad moralidade morality moralità moralité
morally morals morală moram morando morango morar morava morbo morceau morde morden morder mordes mordet more moreau
moreel morel morele morelli morem moren morena morente mores morgen mori morn morning moro moron morons moros morra
morram morre morrer morreram morreu morri morrido morro morros morsa morse morsi morso morta mortais mortal mortale
mortales mortali mortalidad mortalidade mortality mortalità mortalité mortally mortals mortars mortas morte mortel
mortels morten mortero mortes morti morto mortos morts morza morze morzu moría morți morții mosca mosche moschee mosel
mossa mosse mossi mosso most mostarda mosteiro mostraba mostrada mostradas mostrado mostrados mostramos mostrando
mostrano mostraram mostrare mostrarle mostrarse mostrata mostrate mostrato mostrava mostro mota mote motel motels moth
moths moti motie motility motive motivert motivieren motivierten motivée moto motor motoring motorlu motors motoru
motory motos mots motsatt motta mottatt motte motto mouche mouches mould moulded moulding moulds moule moules mound
mounds mount mounts moura mouse mousse moustache moustaches mout mouth mouths movable move moveable moved movente
mover moverme movers moverse moverte moves movido movie movies moving movía mowed mower mowing mozku moço moção
możliwe można možnosti mpya mradi msingi mszy mtindo muassa muatan mucchio much muchachas muchachos muchísimas
muchísimos mucous mucus mudado mudah mudando mudarse mudo mueble muebles muela muelas muelle muelles muera mueran
mueras muerde muere mueren mueres muero muerta muertas muerte muertes muerto muestran muestras muestren muestro muet
muette mueva mueve mueven muevo mufti mugre muihin muilla muille muilta muissa muista muistaa muistan muistin muita
muitakin muitas muito muitos mujeres muka mukaan mukana mukava mukavaa mukavan mukavia mula mulai mulch mulder mules
mulia mulla mulle multa multas multe multi multiple multiples multipliant multiplie multiplient multiplies multă mulți
mumis mumps mums munaa munca munch muncii muncitori muncă munde mundi mundo muni munkába munkája munkák munkára munkát
munte muntele munter munți munții muoia muoio muoiono muore muori muoto muove muovermi muoversi muovi muovo muovono
mura murah muri murni muro murro murs muscolare muse mused museo museos muses mushy musiałam musiałem musiały musicais
musicas musik musikern musim muslim muslo muslos muso musst must musta mustaa mustache mustaches mustan muster
mustered mustia musty musulmanes musulmans muszę musée musíme musíte muta mutatja mutatják mutatnak mutatta muted
mutfak muti mutlak mutluyum muto muts mutta mutten mutter muttered mutti mutua mutual mutuall mutui mutuo mută muualla
muualle muualta muukin muulla muulle muussa muusta muuta muutakaan muutakin muutama muutamaa muutaman muutamia muuten
muutkin muutoin muutoksen muuttamaan muuttanut muutti muuttui muuttunut muuttuvat muçulmanos mwingi mwingine mwongozo
myslíme myslíte mythos myths myydä myydään myyjä myynnissä myyntiin myytiin myślałam myślałem myśli myślisz myślą
myślę mzuri május májusban mála málem málo mára máslo másokat másokkal másoknak másra mâine mâini mâna mânca mädchen
mähren märchen märke märks märkt märkte mästare mäuse määritellä määriä määrä määrän määrästä määrätä määrää määrään
måden måder målet målt månad månen måste måte måten måter måtte mère mères mètre mètres média médias médiation médica
médicas médico médicos médio médios méditation méditer méfier ménages mérite mériter méritée mérkőzést mért métier
mêle mêlée míru mística místico místy mítawlí mítica mítico módja módszert módulo móður möchte möchtest möchtet mörda
mörka möte mötet möts mötte møde møder mødes mødet mødt mødte mødtes møller mønster møre mørke mørket mørkt møte møtes
møtet møtt møtte møttes múinteoir múltiplas múltiplos mücadelesi müdür mühe mühen mühle mühlen münchener münchner
münden münze münzen müsse müssen müsste müssten mütze mützen mănăstirii mărci mării mărime mărimea măsura mıdır mısır
młoda młode młody mœurs můžeme můžete můžou můžu működnek működése műtét naaien naakt naakte naast naaste nabídce
nabídka nabídku nabídne nachbarin nachbarn nachgeben nachgehen nachricht nachsehen nacht naciones nacken nackt nackten
nadel nadelen naderen nadien nafta naga nage nagel nager nageur nagle nagranie nagrody nagród nahen nahmen naht nainen
naiselle naisen naisia naisilla naisille naisista naista naisten naiv naive naively najde najdeme najdete najdou najdu
najednou najevo najít nakal naked naken naleznete namamu namanya named namen namin naming namon namoradas namorado
namorados namorando nana nance nancy nando nani nanna nanny napas napisane napisałem napja napra naprawdę napról
naquelas naqueles narben narren naród nasal nasale nascida nascidos nascondo nascono nase nasen naskah nasse nassen
nasty następne następnie następny nata natal natale natali natalie natation natie natin nating national nationalisme
nationaliste native natively natolik naton natte natty natural naturall naturalne naturalnie naturels natures
nauczyciela nauczycieli naukowcy naval navale navali nave navi naze nazie nazwa nazwać nazwał nazywa nazywać naïve
naši našli naštěstí nașterii ndani ndivyo ndiyo neagră nearby nearly nearness neatly neatness neben nebezpečí nebst
nebudeme nebudete nebudou nebudu nebylo necesarias necesarios necesitaba necesitado necesitados necesitamos necesitan
necesitando necesitas necesiten necesites necessitamos necessárias necessários nechce nechceme nechcete nechte necháme
nechápu nede neden nedenle nedense nedir nedokážu nedre nedves nedá neděle neděli nedělá need needles needless needs
needy neen neer nefis nega negada negado negando negano negar negativas negativos negato negeer negen neger negeri
negli nego negociado negociando negoziati negra negri negro negão nehir nehody nehogy nehri neigh neither nejde
nejméně nejsem nejsme nejsou nejste neked nekem nekin nekter nektet neles neljä neljän neljässä neljästä neljään
nemají nemen nemes nemet nemocí nemohou nemohu nemusíte nemzet nemám nemáme nemáte nemáš neměl neměli nemělo nemůžeme
nemůžete nemůžou nemůžu nennst nennt není nera neraka nerds nerdy nere nerede neresi nereye nerfs neri nero nerveux
nervi nerviosos nervo nesil nesmí nesmíme nesne nesnesi nesneyi nessa nessas nesse nesses nest nesta nestas neste
nested nesten nestes nesting nestle nestled nests neta nether netin netissä netistä neto nets nette netted netten
netter nettes nettet netti netting nettle nettled netze netzen netzes neudělal neuen neuer neues neueste neuesten
neufs neuken neukirchen neumí neumím neun neunkirchen neunte neunten neural neuron neurons neuss neustadt neustart
neuste neusten neutral neutro neutron neutrons neuvoa neuvoja neuzeit nevada neved nevem neven never neves nevet
neveux nevezett nevezni nevi nevidím nevne nevner nevnte nevoie nevíme nevíte newer neydi neye neyi neyin neyse
nezbývá nezdá nezmění nezná neštěstí ngaavi ngadi nganhi ngani ngavi nghiên ngoài ngoại ngumu nguvu ngưng nhiên nhiêu
nhiều nhưng những niajn nian nibble nice nicely nicety nich niche nicho nicht nichte nickt nico nieba niebezpieczne
niebie niebo niece niech nieco niedziele niega niego niej niekto nielegalne niels niemi nieminen nieren niesie nieta
nieto nietos niezależne niezależnie nigh niillä niinkuin niissä niistä niitä nikim nikto nilang nils nimble nimellä
nimeltä nimen nimensä nimesi nimessä nimeä nimi niminen nimissä nimiž nimmst nimmt nina niners nines ninety ninfa
ninho ninja nino nisan nisso nisto nitong nixon niyang niyet niyetli niyong niên niżej niḍen njeri njëri nniḍen nobel
noble nobleman noblemen noce noces nociones nocturnas nocturnos nocy nodes nodi nodige nodii nods noel noemden noemen
nohou nohu noie noii noile noilla noire noires noirs noise noises noista noisy noita noite noites noiva noivas noivo
noivos nojenta nokta noktada noktaları noktası noktasına noktaya nolla nomas nome nomen nomes nomi nominale nominare
nomme nommée nommés nona nonna nonne nonno nono nood nooit noopo noord noose noot nopea nopeaa nopo nopți nopții nora
norden nordeste nordmann nordmenn nordul noreste norma normaalin normais normalcy normalde normally normalne normalnie
normas norme normen noroeste norte norteamericanas norteamericanos nosas nose nosed noses nosotras nosotros nosta
nostaa nosy nosí notado notai notaio notando notano notare notas notata notate notation notato note noted noten noter
notes nothing noti notice notices noting notional notions noto notons notre nots nottata notte notti noturnas noul
nouns nous nouse nousee nousevat nousivat nousta nousua nousuun nova novac novaca novas novca nove novel novela novena
noventa novia novice novices novinky noviny novinách novo novos novou nowise noyade noyer nozes nuage nuance nuca nude
nudes nudge nudos nuestras nuestros nukes nulos nultempe numai numaralı numarası numele numere numero numerosas
numerosos numi numite nummer nunca nunha nuns nuntempe nuoren nuoria nuorille nuorta nuorten nuotare nuoto nuova nuove
nuovo nuss nutné nutte nutten nutze nutzen nutzern nutzte nutzten nyata nyawa nyere nyeri nyerni nyertek nyertes
nyeste nyitva nykyinen nykyiseen nykyisen nykyisessä nykyisestä nykyisin nyomja nyte nyter nytta nytte nyújt nádraží
náhoda náklady nákung náladu náluk nálunk nánung nápad nápady národ národa nároky návod návštěvu názor názoru názory
nächste nächsten nächte nächten nähden nähe nähen nähere näheren nähern näherte näiden näissä näistä näitä näki näky
näkyi näkyvät näkyy näkyä näkökulma nämna nämns nära närmare näsan nästa nästan nätet nätti näytti näyttää nåede
nægter nære nærme nærmere nærmest næse næsen næste næsten nævne nævnte nécessitant nécessitent négoce négocie német
néni népek nézd nézek nézem nézett nézi néznek nézni néztem nézve nézze nézzük nöjda nøgen nøglen número nüfusu němž
nőknek nőnek oameni oamenii oară oaths oats obavy obawy obbiettivi obbiettivo obbligano obbligare obbligato obce
obchod obchodu obchodzi obec obecne obecnie oberhand oberland obiad obiettivi obiettivo objawy object objectivo
objects objek objemu objet objetivo objets objeví oblastí obligaba obligada obligadas obligado obligados obligando
obligatorias oblige obligeant obligent obligée obligés oblio obor oboru obory obou obrador obranu obrany obras obraz
obrazu obrazy obrazów obrigadas obrigado obrigados obrigando obronie observadas observado observados observam
observamos observando observant observe observent observers observes observée observées observés obtenidas obtenidos
obtenues obtenus obtient obtint občané oběma occupait occupando occupano occupant occupanti occupare occuparsi
occupata occupate occupati occupato occupava occupe occupent occupiers occupies occupée occupées occupés ocenie ocenić
ochelari ochi ochii ochranu ochrany ochroną ocorra ocorrida ocorridas ocorridos octane octave ocular ocultando ocultar
ocupaba ocupada ocupadas ocupado ocupados ocupando ocupar ocuparam ocupava ocurra ocurría odada odası odasına odasında
odaya odborné odboru odbywa odchod odchodu oddaje oddio odejít odejść oder odiano odiato odio odjet odkaz odkud odkąd
odmítl odměnu odore odori odpad odpadów odpor odpowiada odpowiadają odpowiadać odpowiedni odpowiedz odpowiedzi
odpowiedział odpowiedzieć odtud odwiedzić oever ofen ofere oferecida oferecidas oferecidos oferite oferta ofertă oferă
offen offence offences offense offenses offer offertes offerts officers offices officiels officiers offrait offrant
oficjalne oficjalnie ofrecerle ofrecerte ograniczenie ogromne ogóle ogólne ogólnie ohella ohjaa ohjata ohjelma
ohjelmaa ohjelmaan ohjelman ohjelmassa ohjelmasta ohjelmia oikea oikeaa oikeaan oikealla oikealta oikean oikeassa
oikeasti oikeesti oikeita oileanach oileanaich oireita oitenta oiva okazuje okiem okolní okolí okozta określić okręgu
októberben okudu okudum okula okulda okullarda okulu okulun okuma okumayı okurken okuyan okuyorum okuyun olacak
olacağı olacağını olalım olamaz olan olana olanak olanlar olanlara olanları olanların olanı olarak olas olası olaya
olaydan olaylar olaylara olayları olayların olayı olayım olayın oldala oldali oldalra oldalról oldalt oldalára older
oldie olduk oldular oldun oldunuz olduğumu olduğumuz olduğumuzu olduğuna olduğunca olduğunda olduğundan olduğunu
olduğunuz olduğunuzu olekaan olemaan olemassa oleme olen olenko oletan olete oletko olettaa oleva olevaa olevaan
olevan olevani olevansa olevassa olevasta olevia olevista olgun olhada olhado olhamos olhando olhava olikin oliko
olimpia olimpica olio olisiko olisin oliva olivia ollas olleen ollen ollie ollut olmadan olmadı olmadığına olmadığını
olmak olmakla olmalı olmalıdır olmam olmamalı olmaması olmamız olman olmanın olmanız olmasa olması olmasıdır olmasın
olmasına olmaya olmayacak olmayacağını olmayan olmayı olmaz olmazdı olmazsa olmuyor olmuş olmuştu olsam olsan olsanız
olsaydı olsun oltu oluen olun olurdu olurken olursun olurum oluruz olut olutta oluyor oluyorsun oluyorum oluyoruz
oluşturduğumuz oluşturduğunuz olvasd olvassa olvasás olvidaba olvidada olvidado olvidados olvidamos olvidando
olvidarse olvidarte olvidaste olvidate olvidemos olímpica olímpicos omaa omaan omaksi omalla omalle omalta oman omana
omassa omasta omdat omens omfang omfattende omfatter omgaan omgaat omgang omgebouwd omgeven omgezet omgivet omien
omiin omin omissa omista omistaa omistaja omroep omroepen omschrijven omslag omstreden omstreken omsætning omtale
omternt omtrent omvang omvat omver omzet omzetten onbekend onbekende once oncle oncology onder onderaan onderbreken
onderbroken ondergaan ondergang onderging onderkomen onderling ondernemen ondernomen ondervinden ondervonden
onderwerpen onderworpen oneens onely onere ongedaan ongekend ongekende ongelma ongelmaa ongelman ongelmana ongelmia
ongelmien ongelmiin ongemerkt ongesteld ongevallen ongle ongles onlar onlara onlarca onlarda onlarla onları onların
only onnistu onnistuu onoare onore onori onrecht onrechte onroerend onside onsite ontbonden ontdekken ontdekten
ontkomen ontmoeten ontmoetten ontnomen ontology ontroerend ontslaan ontstaan ontstaat ontvangen ontvangst ontvangt
ontvingen ontwerp ontwerpen ontwierp ontwikkelen ontworpen onunla onurlu oogst oogsten oost oosten opas opcional
opdager opdaget opdat opeens openen opens oper opera operado operadoras operadores operaia operaio operandi operando
operano operante operanti operare operata operation operationeel operationele operations operativos operato operații
operațiuni opere opern operă opeten opettaa opettaja opfer opfern opføre opført opgaan opgebouwd opgedaan opgegeten
opgegeven opgehangen opgeheven opgelegd opgelegde opgeleid opgeleide opgelet opgelucht opgemerkt opgepakt opgepikt
opgericht opgeslagen opgesteld opgevallen opgevangen opgeven opgevoed opgevoerd opgezet opgør ophangen opiera opina
opinar opinie opinii opino opio opkomst opkomt opleggen opletten opluchting opowiada opowiedzieć oppakken oppdaget
oppdatere oppdraget oppføre oppfører oppført oppi oppii oppikken opplevde oppleve oppnå oppone opposait opposant
oppose opposent opposte opposée opposées opposés opprinnelse opprør oprava opravdu oprea oprecht oprechte oprichten
oprichter oprichters oprichting oproep oproepen oprør opschrijven opslaan opslag opstaan optagelse optaget opted
optical optically optimal optimally optimisme optimiste opting optional opuestas opuestos opus opustit opuścić opvang
opvangen opvoeden opzeggen opzet opzetten opzichten opération opérations oración oracle orada oradaki oradan orador
orage orages oral orale orali oramai oran oranda orange oranges oranları oranı oranında orari orası oraya oraz orcas
orcs orden ordenadas ordenado ordenados ordenando ordene order orders ordet ordigno ordinance ordinare ordinari
ordinarias ordinarie ordinarios ordinate ordinati ordini ordino ordnance ordne ordnen ordner ordnet ordonne ordonnée
ordre ordrer ordres ordure ordures ordusu oreja orejas orelha orelhas orfani orfano orgaan organ organi organisant
organise organisent organisers organises organisieren organisierten organisme organisms organisée organisées organisés
organizadas organizado organizados organizamos organizando organizare organizate organizației organizații organizers
organizes organizowane organizzando organizzano organizzare organizzate organizzato organo orge orgue orgánicas
orgánicos orgânicas orgânicos oricine orientadas orientados orientale orientali orientare orientati oriente
orientieren orientierten orientul orientée orientés original originale originali originall originală originari
originarios origine origineel originel originele orina orinar oriundas oriundos orkaan orkar orker orla orlando ormai
orman orne ornée orohian orolig orotian orsini országban ortada ortadan ortaggi ortalığı ortamda ortamı ortasına
ortasında ortaya orten orter ortes orthopaedic orthopedic orto ortodoxe orts osaa osaaminen osaamisen osaan osaat
osaavat osaksi osalla osalle osallistuu osalta osaltaan osan osana osassa osasta osat osata oscar osiem osin oskar
osoba osobie osobnosti osobně osobou osobu osoby osobą osobě osoitteessa ospitale ospitano ospitare ospitata ospitato
ospitava ossa osseo osservando osservano osservare osservate osservato ossia osso osta ostaa ostaggi ostamaan ostan
ostanut ostatecznie osten ostern ostetaan ostettu ostia ostin ostras ostre osud osudu osztrák otage otages otan otce
otec otelde otele otero otetaan otettu otevřeno other others otin otras otro otroligt ottaa ottamaan ottanut ottavat
ottelun ottelussa otteluun otter otters otthona otthont ottica ottico ottima ottimi ottimo oturdu otworzyć otázkou
otázku oubliant oublie oublient oublies oubliée oubliées oubliés ouder ouders oulun oulussa ounce oups ouro ousada
ousadia oust ousted ouster outage outcast outed outer outing outlast outlet outline outlined outlive outlived outoa
outrage outras outre outro outs outset ouvertes ouverts ouvia ouvida ouvido ouvidos ouvimos ouvindo ouvrage ouvrait
ouvrant ouvre ouvrier ouvrir ouvrit ovale oveja ovejas ovelha ovelhas ovella oven ovenfor ovens over overal overall
overalt overcame overcome overcooked overdone overdose overeating overeen overeenkomst overeenkomt overflade overfor
overgeven overhead overheard overheating overheden overheen overheid overhemd overlaid overland overlaps overlay
overlays overleden overleed overleefd overleg overlevde overleve overlevede overleven overlevende overload overlook
overlooked overlord overly overnight overpaid overraskende overs oversatt oversatte overseas oversees oversette
oversight overtage overthrew overthrow overtly overtook overval overweeg overweg overwegen overwinnen overwogen ovnen
ovoce ovre ovvie owed owing owned owning owoce oyna oynadı oynama oynamaya oynanan oynar oynayan oyuna oyuncu
oyuncunun oyuncusu oyunda oyunu oídos oğlu oğlunun oğul paar pablo paca pacar pacaran pacchi pacco pace paced
pacemaker pacer pacers paces pacha pachetul paciente pacientes pacing packe packed packen packer packers packets
packing packs packt packte paco pacte pacto pactos pacts pacíficos pada padaku padamu padang padaria padding paddling
paddock padece padecen padecer paden padilla padlock padre padres padri padrinho padrão padrón padrões padėjo
paediatric paedophile paesaggi paesaggio paese paesi paesino paga pagaba pagaban pagada pagadas pagado pagados pagam
pagamos pagan pagando pagani pagano pagar pagaram pagare pagarle pagarlo pagaron pagará pagarán pagaría pagas pagata
pagate pagati pagato pagava page pager pages paghe pagina paging pagini pagkaon pagkáon pagong pagos pagou paha pahaa
pahalta pahalı paham pahempi pahin pahit pahoin paid paidan paidassa paie paient paies paikalla paikallinen
paikallisen paikallisia paikallista paikallisten paikalta paikan paikassa paikasta paikat paikka paikkaa paikkaansa
paikkansa paikkoja paikoissa pails pain paina painaa pained pains paint painted painter painters painting paints paio
pair paire paired paires pairs pais paisagem paisagens paisaje paisajes paisible paisley paistaa paita paiva pajak
pajama pakaazan pakai pakar pakazaan paket pakje pakken pakker pakket pakt pakte pala palaa palace palaces paladino
palais palannut palas palat palata palate palatino palato palce palco pale palec paled palen paler pales palese palesi
palha pali palier paliers palio paljastaa paljasti paljastui paljoa paljon palkan palkat palkka palkkaa palla palle
pallida pallier pallina pallo palloa pallon pallor palm palma palmas palme palmer palmi palmiers palmo palms palo
paloma palomas palos pals palsu palsy paltry palu palvelua palveluista palveluita palveluja palvelun palvelussa
palvelusta paman pamatujete pampa pamper pana panah panahon panahón panama panas panca pancia panda pandai pandang
pandangan panden pander pandering pandilla panduan pane paneel panel paneles panels panem panen panes pangan panggung
pangs panico panie panier paniers panik panini panino panjang panna panne panned pannello panni panning panno pano
panos pans pansy pant pantai pantaloni pantas pantat panted panti panties pantin panting pantofi pantry pants panu
panuje panza panzer paní panów paoli paolo papa papan papas papato papel papeles paper papers papes papier papiers
papillon papillons papo pappa papst paquet para paraat paraba parable parada paradas paradero paradisi parado parados
paragem parages parah parait paraje parajes paralar paraları paralelas paralelos paralisi param parameter parametre
parametresi parametresinde parametresine parametreyi paramos paran parando paranee paranın parar pararam parare
pararem pararon pararse paras parasta parası parasını parat parata parava paraya parayla parayı paraíba parce parceira
parceiras parceiros parceria parcerias parched parches parchi parco parcs parcul parcă pardo pardon pardons pare
parece parecen parecer pareces parecia parecida parecidas parecidos pared parede paredes parei parel parem paremman
paremmin parempaa parempi parempia paren parent parente parentes parentheses parenthesis parenti parents parer parere
pareri pares paresse parete pareti pareço parfait parfaite parfaites parfaits parfois parhaista parhaita pari pariah
parie pariente parientes parier pariin pariisin parimenti parin pario paris parish parissa parity parité pariu parió
parka parked parken parker parket parking parkour parks parku parla parlais parlait parlak parlamentarias
parlamentarios parlando parlano parlant parlante parlanti parlar parlarci parlare parlarmi parlarne parlarti parlata
parlate parlato parlava parlavamo parlavano parlavo parle parlent parler parles parleur parley parlez parli parliamo
parlino parlo parlons parlor parlour parlé parlée parmak parme parmi parmigiano parnaíba paro paroi parois parola
parolar parole paroles paros parou parquet parra parry pars parse parsed parsen parser parsing parsley parso parson
parsonage parsons part parta partage partageait partageant partagent partages partagée partagées partagés partai
partait partant parte partecipando partecipano partecipante partecipare partecipate partecipato parted partei parteien
partem parten parteneri partent parter partes partez parti partiamo participado participam participan participando
participant participants participanți participaram participarem participat participem participen participent partidas
partido partidos partidários partie partied partiels partien partiene partier partierna parties partigiano partili
partimos partindo parting partir partire partis partisi partit partita partite partito partiu partiva partiye partió
partly partner partnera partnerin partnern partnery parto partono partons parts party partying partys paru parue paruh
parus parva parve parvient parvint parvis pary parze parça parçalar parçaları parçası paré parís paròla paró pasa
pasaba pasaban pasada pasadas pasado pasados pasageri pasaje pasajes pasamos pasan pasando pasang pasangan pasar
pasara pasaran pasarela pasarla pasarlo pasarme pasaron pasarse pasarte pasará pasarán pasaría pasas pasaste pascal
pascual pasea paseando pasear pasemos pasen paseo paseos pases paseá pasha pasi pasir pasito pasivo paska paskaa
paskah paskat paso pasokan pasos paspor pass passa passada passadas passado passados passage passagem passagens
passagers passages passaggi passaggio passait passamos passando passano passant passante passanti passar passaram
passare passarem passas passata passate passati passato passava passavam passavo passe passeando passear passed
passede passeggiare passeggiate passeggino passeggio passen passende passer passers passes passet passeur passeurs
passi passiamo passible passieren passing passionne passionnée passions passivo passo passons passt passte passwd
passée passées passés past pasta pastas paste pasted pasteur pasti pasting pasto pastoor pastos pastry pasts pastures
pasty pasuje pasul pasá pasă pata patada patadas patah patas patata patatas patate patates patch patched patches
patching pate patear patent patente patentes patently patents pater path pathos paths patience patient patiente
patienten patientin patiently patients patio patios patito pato patois patologia patologica patos patra patre patrice
patrie patro patrols patrono patrons patrão patrón patrões pats patsy patte patted patten patter pattern pattes patti
patties patting patto patty patul patung patut paul paula paulo paulus paume pauper paura paure paus pausa pausada
pause paused pausen pauses pausing pauta pautas pauză paved pavese pavillon pavillons pavimenti paving pavão pavés
pawn pawns paws payable payah payait payant payants payback paye payed payent payer payers payes paying paylaşım
payoff payoffs payong pays paysage paysages payung payée payées payés pazes pazza pazze pazzia pază país países pași
peace peacemaker peach peaches peaked peaking peaks peal pealed peals pearl pearls pears peas peasant peasantry
peasants peaux pecado pecadores pecados pecah pecca peccato peccatori peces pecking pedal pedale pedali pedals pedang
pedas peddling pede pedem pedi pedia pediatric pedido pedidos pedimos pedindo pediram pedirle pedirme pedirte pediste
pedo pedoni pedophile pedos pedra pedras pedreira pedrinho pedro pedí pedía peeing peeked peeking peeled peeling peels
peeped peeping peeps peer peered peering peers pega pegada pegado pegados pegan pegando pegang pegar pegarle pegas
pegava peger pego pegos pegou pegue peigne peindre peine peines peinte peintes peintre peintres peints peinture
peintures peito peitos peittää pejabat pejuang pekan pekar peke pekee pela pelaa pelaaja pelaajaa pelaajat pelaajia
pelaamaan pelaaminen pelaavat pelada pelado pelajar pelajaran pelan pelannut pelas pelasi pelastaa pelasti pelata
pelataan pelayanan pelea peleado peleando pelear peleissä peleistä peles peli pelien peligrosas peligrosos peliin
pelin pelis pelissä pelistä pelkkiä pelkkä pelkkää pelkää pelkään pelle pelli pelos pelottaa pelottava pelted pelts
peluang pelukan pemahaman pemakaian pemakaman pemandu pemasaran pembaca pembakaran pembawa pembayaran pembeli
pembelian pemberian pembuat pembuatan pembuka pembukaan pembuluh pembunuh pemegang pemenang pemilihan pemuda pemulihan
pena penais penal penale penali penangkapan penari penas penasaran penawaran pencari pencarian pence pencegahan penche
penché pencipta pencuri pencurian pendant pendapatan pendidikan pending pendre pendu pene penerapan penerbangan
penetapan pengajaran pengakuan pengamatan pengaruh pengawasan penge pengikut pengobatan pengujian penha peninggalan
penis penjaga penjahat penjara penna pennant penne pennello penning penoso pens pensa pensaba pensaci pensada pensado
pensai pensait pensamos pensando pensano pensant pensar pensara pensaram pensarci pensare pensarem pensaría pensas
pensata pensate pensati pensato pensava pensavam pensavamo pensavano pensavi pensavo pense pensemos penser penses
penseur pensi pensino pensioen pension pensions penso pensons pensão pensé pensée pensées pente pentes penting pento
pentti penyerangan penyimpanan peníze peones peor peores peper peperangan peque pequenas pequenos pequeñas pequeños
pera perak peralatan peran peranan perang perangkat perasaan perasaanmu perawan perawat perawatan perayaan perbaikan
perbandingan perbankan perbatasan perbuatan perca percben perce perceba percebam percebem perceberam percentagem
percezione perch perche perché perco percre percé percée perda perdait perdamos perdana perdant perdas perde perdem
perdemos perdente perdenti perderam perdere perderem perderme perderse perdersi perderte perderti perdete perdi perdia
perdida perdidas perdido perdidos perdimos perdiste perdit perdo perdoa perdoe perdoem perdona perdoni perdre perds
perdu perdue perdues perdus perdí perdía pere pereira peres pereții perfect perfectas perfecte perfectie perfecto
perfectos perfeita perfeitas perfeito perfeitos perfetta perfette perfetti perfetto perfezione perfino perforce
performance performanslı performansı performe pergi perguntado perguntam perguntando perguntaram perguntem perguruan
perhatian perhatikan perhe perheensä perheessä perhettä perico periferia periferica periféricos perigo perigos
perigosas perigosos perikanan perin peringatan peringkat perinteinen perinteisen perinteistä periodísticos perito
peritos periódicas periódicos perjuangan perjuicio perjuicios perkara perkataan perks perky perla perlakuan perlas
perle perles perm permanence permanente permanentes permanents permata permen permessa permesso permetta permettaient
permettait permettano permettant permette permettent permetterci permettere permettermi permettersi permetterti
permettete permetti permetto permettono permettraient permettrait permettre permintaan permiso permit permita permitam
permitan permite permitem permiten permitia permitida permitidas permitido permitidos permitimos permitindo permitirse
permito permitía permitían permită permukaan permulaan perna pernah pernas perno pero perpetrated perpetual perpetuall
perpetuated perra perras perrito perritos perro perry pers persa persas perse perseestä perseguido perseguindo persen
perses persi persiano persiapan persiapkan persino persistance persiste persistent perso persona personage personaje
personajes personajul personal personale personales personalități personalizadas personalizados personalul personas
personel personnalisé personnalisées personnalisés personnalité personnels personnes persons pertahanan pertama
pertambangan pertandingan perte pertes pertimbangan pertimbangkan pertinence pertinente pertinentes pertinents perto
pertti pertunjukan perturbe perturbée peruanas peruanos perubahan peruca perumahan perusta perustaa perusteella
perustuva pervenire perçues perçus pesa pesaba pesada pesadas pesado pesados pesan pesanan pesando pesano pesant pesar
pesare pesas pesat pesawat pesca pescado pescador pescadores pescados pescao pescar pescare pescato pescatore
pescatori pesce pesche pesci pescáo pese peser pesi pesky peso pesona pesos pessimiste pessoais pessoas pest pesta
peste pesto pests pesé peta petal petali petals pete peter peters petites petits petra petroleo petroleras petrolero
petroleros pets petted petto petty petunjuk peuple peuples peuplée peurs peut peuter peux pevně pewne pewnie pewter
pezones pezzi pezzo peço pełen pełne pełną peşinde peşine pește pfad pfand pfanne pfeife pfeile pflege pflegte pforten
pfosten pfoten phage phare phares pharmaciens pharmacies phase phased phasen phases phasing pheasant pheasants philips
philosophe philosophie phone phoney phonograph phony photo photograph photographe photographes photographie
photographies photon photons photos phrase phrased phrasen phrases phrasing piacciano piacciono piace piaceri piacerti
piaci piada piaga piala piana pianeta pianeti piange piangi piango piani piano pianta piante pianti pianto piatra
piatta piatti piatto piazza piazzale piazzare piazze pica picada picado picar picchiano picchiato piccioni picco
piceno pici picior piciorul pick picked picking pickled picks picky pico picos pics pictură pidas pides pidiendo
pidieron piece pieced piecing pied piede piedi piedra piedras piega piegare piegato piel piele pieleen piena piene
pieneen pienellä pienen pienessä pienestä pieni pienissä pienistä pieniä pieno piensa pienten pientä pier pierce
pierced piercing pierda pierdas pierderi pierna piernas pierre piers piersi pierwotnie pierwsi pies piesa piese piesă
pieten piety pieux pieve pieza piezas pige pigeon piger piges pignon pigs pihalla piiriin piirin pije pijlen pijpen
pikes pikiran pikirkan pikken pila pilaa pilar pilas pile piled piles pilha pilier pilih piling pillanatban pillanatra
pillar pille pillen piller pills piloot pilot piloting pilots pilze pilzen pimping pimps pinar pince pinces pinch
pinched pinching pines pinging pingo pings pinho pini pining pinjaman pinks pinky pinning pino pinos pinot pins pint
pinta pintada pintadas pintado pintados pintando pintar pintas pinto pints pintu pintér pinza pinzas pinze pioche
pioggia piola pions pior piora piorar piores piove piovere pipa piped piper pipes piping pipoca pippa pips piraat
pirata piraten pirateria pirati pire pires pirla pisa pisang pisani pisania pisanie pisano pisar piscar pisco piso
pisos pisse pista pistas piste pisteitä pistettä pisti pistols pistons pistä pistää pita pitch pitched pitchers
pitches pitching pithy piti pitied pitkiä pitkä pitkän pitkää pitkään pito pits pitted pitti pity pitäis pitäs pitää
piuma pivo pivot pivoting pivots piwo pixeles piyano piyasaya pizca pizza pizzas pizze pièce pièces piège pièges piégé
piété piękne pięknie pięć piłka plaat plaatje plaatjes plaatse plaatsen plaatsje plaatste plaatsten plaatsvinden
plaatsvonden placa placas placca place placed placer placera places placid placing placu placée placées placés placă
plader plads pladsen pladser plaga plagas plage plagen plager plages plague plagues plaid plaide plaie plaies
plaignant plaignent plain plaine plainer plaines plains plaint plainte plaintes plaire plais plaisait plaisance
plaisant plaisante plaise plaisent plait plaited plaja plajă plak plakken plan plana planar planas planda plane planea
planeaba planeación planeada planeado planeamento planeamiento planean planeando planear planeja planejada planejado
planejados planejamento planejando planejar planejava planen planene planeo planer planera planerade planerar planerat
planes planet planeta planetas planetei planeten planets planetă planeó planie planilla planing plank planken planks
planlagte planlama planlanan planları planned plannen planner planners planning plano planos plans plant planta
plantación plantado plantar plantas plante plantea planteada planteado planteamiento plantean planteando plantear
planted planten planteo planter planters plantes planteó plantilla planting plants plantée plantés plantă planu
planuje planul plany planète planètes planów planı plaque plaques plass plassen plasser plassert plaster plat plata
platby plate plateado plated platen plates platine plating platino plato platos plats platt platte platten platter
platters platzen platzt plată plauen play playa playable playas playback played player players playing playoff
playoffs plays plaza plazas plazo plazos plaît plaży pleacă pleaded pleading pleads pleas pleasant pleasantly
pleasantry pleased pleasing pleated plebs plecare plegaria plegen pleide pleine pleinen pleines pleins pleiten pleito
plekje plekke plena plenaria pleurait pleurant pleurent pleures pleurs pleut pliant plie plied plier pliers plis plná
plné plní plochu ploegen plonge plonger plongée plorant plorat plot plots plotted plotters plotting plows ploy pluck
plugged plugging plugs pluie pluies pluma plumas plume plumes plump plums plunder plunged plunger plunging plus plush
plying plán plánu plány plástica plásticas plásticos plăti poach poarte poartă poate poată pobladas poblados pobre
pobres pobyt pobytu pobřeží poca poche poches pochodzi pochází poco pocos poczucie podaje podamos podat podać podał
pode podem podemos poder poderemos poderes podermos poderosas poderosos podes podestà podido podio podjąć podle
podlega podmínkou podnieść podnosi podoba podobna podobne podobnie podobná podobné podobný podobně podobě podpis
podporou podporu podr podre podremos podres podrido podrá podrán podré podría podríamos podrían podrías pods podstatně
podstatě podstaw podstawie podstawy podstawą podul podzimní podání podéis podía podíamos podían podías podívejte
podíváme poeder poema poemas poems poesía poeta poetas poeti poetico poets poetul poetului poezii poggia pohja
pohjalla pohjalta pohjan pohjoiseen pohjoisen pohlaví pohtia pohyb pohádky pohřeb poids poika poikaa poikia
poikkeuksellisen poil poils poin poings point pointe pointed pointent pointer pointers pointes pointing points poire
pois poise poised poison poisons poissa poisson poista poistaa poivre pojan pojawia pojawił pojawiła pojawiły pojede
pojem pojetí pojďme pojďte pojęcia pojęcie poked poker pokes poking pokoju pokok pokračuje pokusu pokusy pokutu pokój
pola polaca polacca polaire polak polaka polar polare polder pole polega polen poles poli police policeman policemen
polices policiais policias policie policies policy polie poliisien poliisin poliittinen poliittisen poliittisia
poliittista polio polis polise polisi polite politica politice politici politicieni politicii politickou politicky
politie politiikassa politiikasta politiikka politiikkaa politik politikası politiken politikere politikerin
politikern politikerne politikk politiku politiky politisk polity polityczne polizia polizisten polizistin polizza
poliția poliție poliției polițiști polițiștii polled pollen polli pollice polline polling pollo pollos polls polo
polos polovinu polpa pols polsi polska polski polso polster polvere polveri polvo polvos poly polêmicas políticas
políticos pomme pommes pomoc pomocy pomocą pomogą pompa pompe pompen pompes pompier pompoen poms pomyślałem pomóc
ponad ponce pond ponder pondered pondering pondo pondremos pondrá pondrán pondré pondría ponds pondělí pone ponemos
ponen ponencia ponendo ponente poner ponerlas ponerle ponerlos ponerme ponernos ponerse ponerte pones ponete pong
ponha ponho poniente ponle ponownie pons pont ponta pontas ponte pontes ponti pontja ponto pontos ponts pony ponía
ponían pooch poof pooh pool pooled pooling pools pooped pooping poort poot pootjes popa pope popes popiera popis
poplar popolano popolato poppa popped poppen popping poprawić poprawy pops populace popular populate populației
populiste poradit porazil porazit porca porcaria porcentagem porch porche porches porci porco porcos porcs porem pores
pori poring porissa porno porodu poros porra porre porreiro porro porsi port porta portaal portable portadores portage
portais portait portal portale portales portali portami portando portano portant portante portanti portanto portar
portarci portare portaria portarli portarmi portarsi portarti portas portata portate portati portato portava porte
ported porteiro portent porter porterait porters portes porteur porti portiamo portici portico portier porting portino
portion portions porto portos portrait ports portu portuale portuali portuguesas portugueses portul portão porté
portée portées portés portò porukka porukkaa porušení porvenir pory porze porão porção porți porțile posa posait
posant posare posate posato pose posed posee posen posent poser poses poseía posgrado posible posing posisi posit
posited positie positiivinen positiivista position positivas positivos positron posits poslal poslanec poslat poslati
poslední possa possam possamos posse posses possess possiamo possible posso possuía possédait possédant possíveis
possível post posta postacie postado postage postais postal postale postales postali postando postar postare postati
postato postavu postawy postać postbode postcode poste postea posted posten poster posters postes postgrado posti
posting postino posto postos postre postres posts postul postula postura postures posturi posty posté postée postés
postów poszedł poszła posádka posádky posé posée posées posés posła posłowie potable pote potem poten potencia potendo
potent potente potentes potenti potential potentiell potentielle potentiellen potenze potenzial potenziale potenziare
potenziell potenzielle potenziellen poter potera poterci potere poteri poterle poterli potermi poterne potersi poterti
potes potessi potete poteva potevamo potevano potevi potion potions potkat potong potrei potremmo potremo potreste
potrete potro potrzeb potrzeba potrzebna potrzebne potrzebny potrzeby potrò pots potted potten potter potters potting
potřebu potřebujeme potřebujete pouca pouce pouces pouch pouches pouco poucos poudre poudres poule poules poulets
pouls poumons pounce pounced pound pounded pounder pounds poupa poupar poupe poupée pouquinho pouring pourrai pourrais
pourras pourrez pourri pourriez pourrions pourris pourrons poursuivait poursuivant poursuivent poursuivie poursuivre
pourvoir pousar pouso poussant pousse poussent pousses poussée poussées poussés pouting poutre poutres pouvait pouvant
pouvez pouviez pouvions pouvoir pouvons použití povede povere poveri povești povis povo povos pověst poważne poważnie
powder powdered powders power powered powers powiedz powiedzenia powiedziałam powiedziałem powiedzieć powiesz
powietrze powieść powodu powody powoli pows powstanie powszechnie powód poza pozadí pozice poziția poziție poziții
poznal poznala poznat poznać poznání pozos pozostają pozvání pozwoli pozytywne pozytywnie poză poço poème poèmes poète
poètes poêle poñer počet počtu połowie połączyć pořádá pośród poświęcić poți praat praatje praatjes praatte praca
prace pracht prachy pracownika practicado practicando practice practiced practicing practise practised practising
pracy prací pracą pracę prado prados pradėjo praga pragas prager pragnie prahu prahy praia praias prakticky praktisk
praktycznie pranger pranie prank pranks pras prasa prase prassi prasy prat prata prate praten prater prati praticado
praticados praticando praticano praticato pratiquant pratique pratiquent pratiques pratiquée pratiqués prato pratos
pravdou pravdu pravidla pravidlo pravou pravé prawa prawda prawdopodobne prawdopodobnie prawdy prawdziwe prawdą prawej
prawie prawn prawne prawnej prawns praxe prayed prayer prayers praying prays prazo prazos prea preach preachers
preaches precari precede precedente precedentes preceduto preces preciado precies precio precios preciosa preciosas
precioso preciosos precious precipe precis precisa precisam precisarem precisas precisavam precise precisione
precisión preciso precisos precisão precize preclude preda predadores prede predetto predicated predicted predigen
predigten predio prefect prefecto prefeita prefeito prefeitos preferia preferida preferidas preferido preferidos
preferimos preferindo preferire preferita preferite preferito preferiu prefetto prega pregador pregar pregare pregate
pregato pregi pregio prego pregui pregunta preguntado preguntan preguntando preguntarle preguntarme preguntarse
preguntarte preguntas pregunten preguntes pregunto preguntá pregătire preia preise preisen prejudicado prejudicando
prejuicio prejuicios preken prelucrare prelude prem preme premessa premesse premesso premetto premi premia premiado
premieres premiers premies premio premios premisa premisas premise premises prenait prenant prenar prenda prendano
prende prenderci prendere prenderei prenderli prendermi prenderne prendersi prenderti prendervi prendete prendono
prendre prenne prensa preoccupano preoccupante preoccupanti preoccuparci preoccupare preoccuparmi preoccuparsi
preoccuparti preoccupate preoccupati preoccupato preocupaba preocupada preocupado preocupados preocupam preocupan
preocupando preocupante preocuparme preocuparse preocuparte preocupen preoți preparaba preparada preparadas preparado
preparados preparam preparamos preparan preparando preparano preparare prepararmi prepararsi preparata preparate
preparatevi preparativi preparato preparava preparem prepari preposition preposti preposto prepping pres presa presar
presas prese presei presence presences present presenta presentaba presentable presentada presentadas presentado
presentados presentamos presentan presentando presentano presentara presentare presentarsi presentata presentate
presentato presentava presente presented presenten presentere presentes presenti presenting presento presents presenza
presenze presero preservado preset presets presi preside presidenza presidenziale presidenziali presidência presiede
presionado presionando presiones preso presos press pressa pressas presse pressen pressi pressionado pressionando
presso pressée prest presta prestado prestados prestamos prestando prestano prestato preste presti prestige prestito
presto presunta presunte presunti presunto presupune presă pret preta pretas prete pretence pretences pretenda
pretendo pretendía pretense preteso pretesto preti preto pretos prettige pretty prevede prevedono prevendo prevenir
prevenire prevent preventable prevented preventing prevents previa previdenza previdência previene previo previos
previous previsione previsiones previsión previstas previsto previstos previsão previsões preying prezentare
prezentate prezente prezentă prezenți prezidenta prezintă prezzi prezzo preço pria price priced prices pricing prick
pricked pricking pricks pride prided prides prie prier prietena prieteni prietenie prietenii prieur priguntá prije
prijs prik prikken prim prima primacy primari primarias primarios primary primas primate primates primati primato
prime primească primed primei primeiras primeiros primelor primeras primeros primers primes primesc primește primești
primi primii primim priming primire primit primite primitivos primo primárias primários primă prince princes princess
principale prinde prins print printed printen printer printers printing prints prions priorities prioritise pris prisa
prisas prise prisen prises prisiones prism prisma prisme prison prisons priva privacy privadas privados private
privates privati privato prive priver privesc privește privi privilégie privilégiée privilégiés privind privire
privirea privit privo privé privée privées privés prize prized prizes prizonieri prié proa proba probado probando
probe probed probes probing probst probă procedente procedentes procedere procedure proceduto proces procesiones
procesión procesos process processa processado processed processes processeur processi processing procession
processione processioni processions processo processor processore processors processos processus prochaines prochains
proche proches prochází procissão procurada procurado procuradora procuradoria procurados procuram procuramos
procurando procuraram procurava procuravam procurem procurer procureur prod prodal prodat prodeje prodeji prodi
produce producers produces producidas producidos product productivas productivos productoras productores products
producători producției produire produisait produisant produise produisent produit produite produites produits produs
produse produsent produsere produsert produtoras produtores produzidas produzido produzidos produzieren produzierten
produzindo prodávají prodávat prodává proef prof profane profesi profesiones profesión profesor profesores profesori
profess professed professes professeur professeurs professing profession professione professioneel professionele
professioni professions professor professore professoren professores professori professorin professors professur
professzor profeta profi profil profile profiled profiling profils profilul profis profissão profit profitant profite
profited profitent profiteren profites profiting profits profité profondes profonds profound profs profundas profundos
progetta progettare progettato progetti progetto programadas programados programare programda programja programmare
programme programmer programmers programmes programmée programı programına programında progresso progressão prohibidas
prohibidos proibidas proibido proibidos proie proiect proiettato proiezione proiezioni project projected projecteur
projecteurs projectile projecting projection projections projective projector projectors projects projede projekt
projektbe projektben projektből projektedet projektedhez projektek projekteket projektekhez projekten projektes
projektnek projektre projektről projekts projelerde projelere projenizde projenize projesi projet projetado projetados
projeto projets projeye projeyi projeyle projeção prokuratura prole prolonge prolongée promessa promesse promessi
promesso promet prometo promets promettant promette promettent prometto promi promis promises promite promo promos
promossa promosse promossi promosso promoted promoters promotes promoting promotora promotoria promovare promovidas
promovidos prompt prompted prompting proms prone prong prononce prononcée prononcées prononcés pront pronta prontas
pronte pronti pronto prontos pronunciare pronunciate proof propane proper properly property prophecy prophesy propia
propina propondo propone proporcionado proporcionando propos proposait proposant propose proposent propositi
proposition proposito propostas proposte proposti proposto propostos proposée proposées proposés propound propped
propping proprietăți proprii props propuestas propuestos propune propus pros prosa prose proses prosi prosince
prospects prospectus prosper prost prosta prostata prostate prostrate prostu prosty prostředí protección protect
protected protecteur protecting protection protections protective protector protectors protects protecția protecție
protegidas protegidos protes protest protesta protestano proteste protested protesters protesting protestors protests
protetta protette protetti protetto protezione protezioni proteção proti protocoles protocolos protocols proton
protons protégées protégés proud proue prouvant prouve prouvent prova provaci provado provando provano provarci
provare provata provate provati provato provava prove proved provedl provenant provenire proves provet provi providers
provides providência proviene province provincie proving provis provisiones provisión provisto provisões provo
provocado provocados provocando provocano provocare provocate provocato provoquant provoque provoquent provoquée
provádí prowess proyecciones proyección prozessor proză prsty prua prudence prudente pruik první prvních prvního
prvním prying prywatne przechodzi przeciwnie przede przedstawia przedstawić przedstawił przejdzie przeprowadzić
przeszedł przeszła przeszło przeszłości przeszłość przetrwać przeze przychodzi przychodzą przygotowane przygotowania
przyjaciółmi przyjdzie przyjechał przyjmuje przyjęcia przyjęcie przynieść przyniósł przynosi przyrody przyszedł
przyszli przyszła przyszło przyszłości przyszłość przyszły przyszłym práci prácticas prácticos práticas práticos
právní právě prägen präsentieren präsentierte präsentierten präsidenten präsidentin præcis prègui précisant précisent
précision précisions précédant précédent précédentes précédents prédio prédios préférait préférant préférées préférés
prémio prémios préparait préparant prépare préparent préparée préparés présence présent présentait présentant présente
présentent présentes présents présentée présentées présentés préserve préside présidence présidente présidée présume
présumée prétendant prétendent prétendre prétendue prétention prévention prévient prévio prévision prévisions
prévoient prévoyait prévoyant prévues prévus prêcher prête prêter prêtes prêtre prêtres prêts próbowałem próby
próbálja próbált próbálta prójimo próprias próprios próximas próximo próximos prøvde prøve psala psalm psalms psaní
psichiatra psichiatria psichiatrica psico psicologa psicologia psicologica psicológicas psicológicos psihologie
psiquiatra psiquiatria psiquiatría psychanalyse psychiatre psychiatrie psychicznie psychologe psychologen psychologie
psychologin psychologue psów puanla puanı puas puasa pubblicando pubblicano pubblicare pubblicate pubblicato pubblichi
pubblici pubes pubic publiant public publicaba publicada publicadas publicado publicados publicamos publicando
publicate publicații publicitarios publiczne publicznie publie publient publishers publishes publiée publiées publiés
pubs puce puces puck pude puderam pudiendo pudiera pudieran pudieron pudimos pudiste pudo puede puedo puerco puerta
puertas puerto puertos pues puesta puestas puesto puestos pugs puhelimeen puhelimen puhetta puhu puhua puhuin puhumaan
puhun puhut puhuta puhutaan puhuu puis puissance puissances puissant puissante puissantes puissants puisse puissent
puits pukki pula pulando pular pulgar pulih pulire pulisce pulita pulite puliti pulito pulled pulling pulo pulou
pulpito pulpo puls pulsa pulse pulsed pulses pulsing pulso puluh puma pumas pump pumpe pumpen pumps pumunta punainen
punaisen punaista puncak punching puncte pune punem punerea puneți punggung punire punis punisce punita puniti punito
punks puno puns punta puntando puntano puntare puntas puntate puntato punten punter punti punting punto puntos punts
punya pună puola puoleen puolella puolelta puolen puolessa puolesta puolilla puolta puolueen puolustaa puolustaja
puppe puppen pupper pups pupuk pupunta pura puras purchasers purchases pure puree purer pures purga purge purged
purges purging purify purity puros purr purring purs purse pursed purses pursue pursued pursuers pursues purée pusat
puse puseram push pushy pusiera pusieran pusieron pusimos pusing pusiste puso pussy pusu puta putar putaran putas
putea puteam puteau putem putere puterea puteri puterii putes puteți putih puto putos putra putri putrinya puts putten
putter putting putusan putând puun puuta puxado puxando puxar puxou puțini pyrkii pysty pystyi pystyn pystynyt
pystyvät pystyy pystyyn pystyä pysy pysyi pysynyt pysyvä pysyvät pysyy pysyä pyta pyysi pyörii pádem página pályára
párt pártok páry pátek până päivinä päiviä päivä päivällä päivän päivänä päivässä päivästä päivät päivää päivään
pärjää päällä päältä pääosin pääse pääsee pääsevät pääsin pääsivät päässä päästy päästä päästää päästään pääsy päätin
päätti päättyi päättynyt päättyy päättäjät päättävät päättää päätyi päätyy päätä päätökseen päätöksen pædagogisk pète
péage pédale pédales pédophile pédophilie pékin pénale pénales péngari péngári pénzt pénzért pépin pétales pété pêche
pêcher pêcheur písně píxeles píšu póki północy públicas públicos păduri părea părinți părinții părți păstrat pătrați
pěti płaci płacą płci płynie płyta přece přeci přede přednost přední předsedou předtím přeje přeji přeložil přestat
přichází přidal přidala přidat přijal přijde přijdou přijdu přijede přijel přijetí přijďte přinést přišel příjem
případně případě přípravu přípravy příroda přírody přízemí příčinou půdu půjdu původ původu quack quadro quai quaint
quais quali qualifiant qualifie qualifiers qualifies qualifizieren qualifizierten qualifiée qualifiées qualifiés
qualify qualities quality quand quando quant quanta quantas quanti quantia quantias quantify quantity quanto quantos
quarantena quarantina quark quarks quarreled quarrelled quart quarta quartas quarti quarto quartos quarts quarzo quasi
quatro quebra quebradas quebrado quebrados quebram quebrando queda quedaba quedaban quedado quedamos quedan quedando
quedar quedara quedaran quedarme quedaron quedarse quedarte quedaría quedarían quedas quedaste quedate quede quedo
quedándose quedó quegli queijo queima queimadas queimado queimados queimando queimar queira queiram queiras queixa
queixar queixas queixo queja quejaba quejan quejar quejarme quejarse quejarte quejas quejo quejándose quejó quelli
quema quemada quemado quemados queman quemando quemar quemaron queme quemó queramos queremos queria queriam querida
queridas queridos querría queréis querés quería queríamos quesada quesiti quesito queso questi questionado
questionando questo queueing queuing quick quiebra quiebre quien quienes quiera quiere quieres quiero quiet quieta
quiete quieted quieto quilo quilt quilting quilts quint quinta quinte quinto quips quirk quis quise quiseram quiserem
quisieran quisieron quiso quit quita quitado quitando quitarle quitarme quitarse quitarte quite quiten quito quits
quittait quittant quitted quittent quitting químicas químicos raadt raakt raar rabbis rabbits rabble raben rabid rabu
raccolse raccolta raccolte raccolti raccolto racconta raccontando raccontano raccontarci raccontare raccontata
raccontate raccontato raccontava racconti racconto race raced racen racer racers races rache rachen racial raciales
racing racisme racist raciste racists racje racked racking racks racontait racontant raconte racontent racontée racun
rada radalla radan radar rade raden radia radial radical radicales radio radios radní rado radon radu rady radzi
radzie radę rafting rafts rage raged ragen rages ragged raggi raggiunga raggiunge raggiunse raggiunta raggiunti
raggiunto raging ragni ragno rags raha rahaa rahalla rahan rahat rahip rahoja raid raide raided raider raiders raiding
raids raie railed railing rails rained raining rains raio raios raise raised raiser raises raising raiva raja rajaa
rajalla rajan rajat rajoittaa rajoja rajojen rajtam rajtuk rajtunk raka rakas raked raken rakentaminen rakentamiseen
rakentamisen rakes rakibi raking rakip rakkauden rakt rally rama ramah ramai ramas ramble rambling rame ramen rames
ramme rammed ramming ramos rampa rampant rampart rampe ramped rampen ramping ramps rams ramte ramuan ramón rana ranas
ranch ranchers ranches randen random rane range ranged rangers ranges ranging rangka rango rangos rangée ranjang
ranked ranking rankkaa ranks rannalla rannych ranní ranska ransom ranta ranting rants rany rapat raped rapes rapid
rapida rapide rapidi rapido rapids rapina rapine raping rapire rapist rapists rapita rapiti rapito raportti rapped
rappelait rappelant rapping rapportant rapporte rapportent rapporter rapportera rapportere rapporteur rapports
rapportée rapportés rappresentando rappresentano rappresentante rappresentanti rappresentare rappresentata
rappresentate rappresentati rappresentato rappresentava rapproche rapprochent rapprochée raps rapto raquette raras
rarer rares raros rasakan rasanya rasch rasche raschen rasen raser rasgar rasgo rasgos rasio raskas rasse rassemblant
rassemble rassemblent rassembler rassemblées rassemblés rassen rassure rast raste rastreo rastro rata ratas ratat rate
rated raten rater rates rating ratings ratio rationeel rations ratios ratito ratkaista ratkaisua ratkaisuja ratkaisun
rato ratones ratos rats ratte ratten ratto ratu ratus ratée ratés ratón rauben rauch rauche rauchen raucher rauha
rauhaa rauhan rauma rauman raumes raums raupe raupen raus rausch rauschen rauwe raved raven ravens raves ravie ravine
ravines raving ravings ravintolan rayas rayon rayos raza razas razed razem razie razones razón ração reacción reached
reaching react reacted reactie reacting reactor reactores reactors reacția reacție reader readers reading reads ready
reage reageerde reageert reagent reagents reagerar reageren reagieren reagiert reagierte reagierten reais reakce
reakci reakcja reakcji reaksi reaktion reaktionen reaktor real reale reali realitate reality realizaba realizada
realizadas realizado realizados realizam realizamos realizando realizaram realizare realizate realizzando realizzano
realizzare realizzate realizzato reall really realms reals realtor realtors realty reală reame reap reaped reaper
reapers reaping reared rearing reater reati reato reator reattore reattori reazione reazioni reação reações rebaja
rebajar rebate rebates rebel rebelled rebelling rebellions rebellious rebels rebond rebound rebounding rebours recall
recano recap recati recato recava receba recebam receberam receberem recebia recebiam recebida recebidas recebidos
recebo receio receita receivers receives recense recensie recensione recent recente recept recessione recessão receta
recetas recette recevait recevant recevez recevrez rechange recharge rechazado rechazando recheio recherche recherches
recherchée recherchés rechne rechnen rechner recht rechte rechten rechter rechtes rechts rechtse reciba reciban
recibidas recibidos recibimos recibía recibían recipe recipes recital recite recites reckon reclamado reclamando
recogidas recogidos recogiendo recolhidos recomendamos recomiendo recommande recommandée recommenced recommended recon
reconhecidas reconhecidos reconnaissant reconnaissent reconnues reconnus reconocidas reconocidos record recordado
recordamos recordando recordar recorde recordemos records recorre recorren recorrido recorriendo recorrió recortar
recorte recortes recourir recours recouverts recouvrir recover recreated recreating recreio recrue recrute recruter
rect recta rectal rectas recto rector rectores recuar recueillies recueillis recuerdan recuerdas recuerden recuerdos
recuo recuperado recuperando recurrido recurrió recurso recusa recusado recusando recusar recuso recusou recém
redacción redactar redacted redactie redactor redakce redaktion redaktionen redan redattore redazione redação redde
redden redder redding reddy rede reden redención redenen redenção redes redest redet redevable redire redner redness
redondos redor redress reds reducción reduce reducidas reducidos reducir reduktion redus reduse redusere redusă
reduzidas reduzido reduzidos reduzieren reduzierten reduzindo reed reeds reefer reefs reeking reeks reel reelected
reelection reeling reels reemplazado reet refactor refaire refais refeição refer reference referenced referencia
referendo referente referenten referenzen referia referida referidas referido referidos referimos referindo referência
refinado refined refining refiro refit reflected reflection reflexo reflexão refonte reformado reformar reforzado
reforzar reforçado reforçando refraction refs refuge refugee refugees refuges refusait refusant refuse refused
refusent refuses refusing refusée refutation refute refuted refutes refuting refém regain regained regaining regains
regal regala regalado regalando regalano regalare regalato regale regali regalo regală regard regardait regardant
regardas regarde regarded regardent regarder regardes regarding regardis regards regardé regardée regata rege regeert
regel regelde regelen regeling regelingen regeln regelt regen regende regenen regent regente regents reger regeren
regering regeringen reggae regge reggelt reggia regia regie regieren regiert regierte regime regimens regiments
regimes regina regine regină regio regione regista registada registado registados registar register registi registo
registos registou registra registrada registradas registrado registrados registrando registrano registrar registrare
registrate registrato registre registri registrieren registrierten registro registros registrou regiuni regiunii
regizor regla regler reglerna regna regne regnen regner regni regning regno regolano regolare regolari regolato
regresa regresaba regresado regresan regresando regresen regress regression regressione regressive regresso regrets
regroupant regroupent regroupés regte regula regulado regularnie regény reiben reiche reichen reiches reichs reichsten
reicht reichte reichten reif reife reifen reign reigned reigning reigns reihe reihen reiken reikt rein reina reinado
reine reined reinen reiner reines reino reins reinste reis reise reisen reist reiste reisten reiten reiter reitet
reitoria reize reizen reizt rejection rejeita rejeitado rejeição rejet rejets rejette rejettent rejetés rejim rejoiced
rejoicing rejoignent rejoined rejoining rejoins rejouer rejse rejser rejst rejste rekaman reken rekenen rekent rekken
rekker reklamu rekor rektor rektör rela relacionadas relacionado relacionados relais relata relatado relatados relatar
relate related relates relating relativas relativos relato relator relaxa relaxar relaxed relaxes relaxing relay
relayed relaying relays relazione relazioni relação relações relații rele relent relented relenting relevait relevant
relevés relics relie relied reliefs relier relies relieve relievers relieves relieving religies religieus religione
religioni religions religiosas religiose religiosi religiosos religious relire relis relive reliving reliée reliées
reliés relocation relou rely relying remade remain remainder remained remaining remains remake remaking remanded
remarking remarque remarquée rematch remet remete remets remettant remette remettent remettre remind reminded reminder
remis remit remonta remontant remonte remontent remontée remords remorque remota remote remove remover removidos
rempart remplace remplacer remplacée remplacées remplacés rempli remplies remplis remplissent remportant remporte
remporter remporté remportée remény rena renacer renal renale renang renard renata renate renato rencontre rencontres
rencontrée rencontrées rencontrés rendah rendait rendant rendbe rende rendelet rendelkezésre rendelt render renderci
rendere renderle renderli rendermi renders rendersi renderti rendet rendete rendezte rendező rendi rending rendit
rendrait rendre rends rendszerben rendszere rendszerek rendszert rendue rendues rendus rene renferme renforce
renforcée reni renier rennen renner rennes renomado renouer renovado rensa renta rental rentas rente rented renten
renter renters rentes renting rentner rentrait rentrant rentre rentrent rentres rentrée rentrés rents renunciado
renverse repaint repainted repaire reparar repars repart repartidos repas repasar repay repaying repeal repealed
repealing repeat repeated repeating repede repel repelled repelling repense repent repente repented repete repetidas
repetido repetidos repetindo repining repite replace replaced replacing replay replayed replaying replays repli
replied replies reply replying report reportado reportar reporte reported reporter reportes reporting reports reporté
reposant reposent repost reposted reposting repousse repoussée reprenant represa representaba representada
representadas representado representados representan representando representativas representativos representava
representen represión repress repression repressione repressive repressão reprezenta reprezentant reprezentanți
reprezentanții reprezentat reprieve reprint reprinted représentait représentant représente représentent représentée
représentées représentés reps republicanos republicii republiku repulsion reputation repute reputed requeridos
requieran requiere requieren requins require requis requite resa resaltado resaltar resan rescuers rescues researchers
researches resection resent resented resenting resents reser reset resets resi reside residente residenze resides
residue residues resign resigned resigning resigns resim resin resina resins resistente resistenze resmi reso
resoluciones resolución resolusi resolutie resolution resolutions resolução resoluções resolve resolved resolvem
resolver resolves resolvidas resolvidos resolving resort resorted resorting resorts resound resounding resource
resources resp respecta respectant respecte respectent respectivas respectivos respecto respectée respectées respectés
respeitado respeitados respeitam respeitando respeitem respeta respetado respetan respetando respeten respeto responda
respondam respondan respondem responden respondia respondía ressemblait ressemblant ressemble ressemblent ressembler
ressent ressource ressources rest resta restait restando restano restant restante restare restarted restate restated
reste rested resten restent rester restes resti resting restituire restituite resto restons restos restraining
restrains restraints rests restée restées restés resuelta resuelto resuelva resulta resultado resultan resultando
resultar resulten resumindo resurrezione reta retailer retailers retailing retails retain retained retainer retainers
retaining retains retake retard retarded retarder retards retardé rete retelling retención retenez retenir retenu
retenue retenues retenus retenção reter reti retiennent retiens retient retina retira retiradas retirado retirados
retirando retire retiree retirees retirent retires retiro retirée retirés retning retninger reto retornado retornando
retornara retornava retort retorted retos retourne retournent retournée retours retraction retrage retraining retrait
retraites retraits retraités retraso retrasos retratado retratando retrato retratos retreated retreating retrieve
retro retrouvait retrouve retrouvent retrouves retrouvée retrouvées retrouvés retta rette retten retter rettet retto
rettore reue reunidas reunido reunidos reunimos reunindo reuniram reuse reused reusing reuter reuși reveal revealed
revealing reveals revel revelado revelados revelando revelled revels revenait revenant revenez revenge revenir revente
revenu revenue revenus rever revere revered reverence reverenced reverencia reverend reverendo reverie reveries
reverse reversed reverses reversing reverted reverting reviendra reviennent reviens revient revile reviled revint
revisa revisado revisando revisar revise revised revisi revising revisión revista reviste revistă revive revived
reviving revocation revolted revolting revolucionarias revolucionarios revoluciones revolucionárias revolucionários
revolución revolusi revolusjon revolutie revolution revolutions revolução revoluções revoluția revoluție revoluției
revolve revolved revolver revolvers revolves revolving revue revuelo revuelta revulsion revving reward rewarded
rewarding rewards rewatch rewind reyes reykir reyktir rezar rezension rezession reçues reçus reëel reële reírse reúne
režiséra rețea rețele rhein rheine ribasso ribeiro ribeirão ribera rica ricas ricatto ricavare ricchi ricci riccio
ricco ricette ricevette richiamano richiamato richiamo richt richte richten richterin richtern richtten rickety rickey
ricks rico ricoperta ricopre ricoprire ricordando ricordano ricordare ricordarmi ricordarsi ricordarti ricordata
ricordate ricordati ricordato ricordava ricordavo ricordi ricordo ricorre ricorrono ricorsi ricorso ricos ricotta rics
ridare ridder ridders ridding ride rider riders rides rideva ridge ridges ridicate riding ridosso ridotta ridotto
ridículas ridículos rieche riechen riecht rief riefen riegel riego riemen riempie riempire rien riendas riendo
rientrano rientrata rientrato riepen ries riescano riescono riese riesen riesgo riet rifare rifarsi rifatto rife
riferire riferita riferite riferito riferiva riferivo riffs rifiutando rifiutano rifiutata rifiutato rifle rifled
rifles rifts rige rigeligt rigetto rigged rigging right rigs riguardano riguardato riittävä riittää rijden rijder
rijders rijdt rijen rijke rijken rijker rijst rijtje rika riket rikki rikkoi riktigt rilancia rilanciare rilancio
rilascia rilasciano rilasciare rilasciate rilasciato rilascio riled rileva rilevante rilevanti rilevare rilevati
rimanda rimandano rimandato rimando rimane rimanente rimanere rimanga rimangano rimango rimangono rimani rimase rimasi
rimaste rimasti rimborsi rimborso rimelig rimeligt rimette rimetto rimligt rimorsi rimorso rimossi rimosso rinde
rinder rindo ring ringa ringe ringed ringede ringer ringing ringraziamo ringraziato rings ringte rinnalla rinnalle
rins rinse rinsed rinsing rioja rios riots ripagare riparare ripen riper ripieni riportando riportano riportare
riportata riportate riportato riportava riporto riposo riposto ripped ripping rippled rippling riprendermi riprendersi
riprova rires risale risas risate risc riscatto rischi rischiamo rischiando rischiano rischiato risco riscoperta
riscos rise risen riser risers rises rising riskera riski riskin risking risks riso risolta risolti risolto
risoluzione risoluzioni risolva risolve risorto risos risotto rispettando rispettano rispettare rispettate rispettato
rispondere risponderti rispondete rispose risposte risposto risse rissen risultando risultano risultata risultato
risultava risurrezione risvolti rita rites riti ritieni ritirare ritirate ritje ritme ritmi ritmo ritmos rito
ritornando ritornano ritornato ritos ritrova ritrovano ritrovare ritrovate ritrovato ritrovo riunire riunite riuscirai
riuscirci riuscire riuscirei riuscita riuscite riusciti riuscito riusciva riuscivo rivage rivages rivale rivela
rivelando rivelano rivelare rivelate rivelato riven river rivera rivers rives rivets riviera rivolge rivolgo rivolse
rivolta rivolte rivolti rivolto rivoluzione rivoluzioni roads roagă roamed roaming roan roared roaring roars robada
robado robando robar robbanás robe robes robić robił roble robles robos robot robots robs roca rocas rocca roccia
rocha rochers roches rockers rockets rocks rocznie roda rodada rodado rodando rodar rodas rode rodeada rodeado rodeo
rodinou rodinu rodiny rodině rods rodzaje rodzicami rodzicom rodzina rodzinie rodzinne rodziny rodziną roeien roepen
roept roer roest roet rogar roger rogers rogue rohe rohre roja rojas rojos rokem roken rokers rokiem roku roky rolando
rolar roles rolle roller rolls rollte rolou roma romain romaine romaines romains roman romance romane romani romanii
romanischen romano romans romantischen romantisk romanzi romanzo rombo romeno romeo romero romeu romo rompa rompeu
románticas románticos române români românia româniei românii românticas românticos rond ronda rondas ronde ronden
rondes rondje rondjes ronds roofed roofing roofs rooks roolin rooman rooms roos roost rooster roosters root rooted
rooting roots ropa ropas roped roper ropes rosa rosada rosado rosary rosas rosca rose rosen roses rossa rosse rossi
rosso roste roster rosters rotary rotas rotated rotating rote roten rotenburg roter rotos rots rotsen rotted rotten
rottenburg rotting rotund rouba roubadas roubado roubados roubando roubles roue roues rouge rouges roulait roulant
roule rouler roumain roumaine roumains round roupa rouse roused rousing rousse route routed routen router routers
routes routeur routeurs routing roved rover rovers rovinando rovinato roving rowan rowed rower rowers rowing royally
royalty rozas rozen rozrywki rozwiązania rozwiązanie rozwoju ruang ruas rubando rubano rubare rubate rubato rubble
rube rubel rubia rubies rubin rubio ruble rubles rubro ruby rudel ruder rudo rueda ruega ruego rues rufen rugat rugby
ruhen ruht ruhu ruhunu ruhákat ruido ruige ruiken ruikt ruilen ruime ruimen ruimte ruin ruina ruinas ruine ruining
ruins ruit ruiten rukken rukou ruku ruky rule rulers rules ruma rumah rumble rumbled rumbling rumpled rumänen rumänien
runaway runaways runda runde runder rundt rune runes running runs runter runway runways ruoka ruokaa ruolo
ruotsalainen ruotsalaisen ruotsiin ruotsin ruotsissa ruotsista rusa rusak rusas ruse rushed rushing rusia ruskou russe
russen russerne rust rusted rusten rusting rustled rustling rutas ruth rutina rutinas ruts rutsche rutschte ruwe ruští
ruși rușine rychlostí ryge ryger rygter ryhmä ryhmän ryhmässä ryhmää ryhmään rykket rykte rykter ryska rzeczy
rzeczypospolitej rzeki ráda rádio râul räder rädern ränder rändern rätta räume räumte råber råkade råkar règle règne
réacteur réacteurs réaction réal réalisant réalise réalisent réalises réalisme réaliste réalistes réalisé réalisée
réalisées réalisés réalité réalités récent récentes récents récit réclamait réclamant réclament récolte récoltes
récompense rédacteur rédacteurs rédaction rédige rédigée réduction réduire réduisant réduisent réduite réduites
réduits référence régal régale régent régie régime régis régler régner régression réguler régulier rénale répandre
répandue réparties répartis répit répondait répondant réponde répondent répondit répondre réponse répression
républicaines républicains réputés répétées répétés réserve réserves réservée réservées réservés résidant réside
résident résine résistance résistant résistante résistent résolution résolutions résultant résultat részben része
részeg részletes részt részében részére részéről részét réunies réunis réunissant réunissent réussie réussite réveille
réveillée révolte révolution révolutions révélés rênes rêver rêves rêveur róluk rólunk równie różne różnice różnią
rôles röster rötter röven røget røre røven røyke røyker rücken rückten rănit saada saadaan saako saam saamaan saaminen
saan saanko saar saari saarinen saat saatan saatana saatat saatava saate saati saatlerce saatlerde saatte saatu saavat
sabar sabato sabe sabem sabemos saben saber saberemos sabermos sabes sabia sabiam sabido sabiendo sabina sabine sabio
sable sables sabre sabremos sabres sabrina sabría sabão sabéis sabés sabía sabían sabır sacaba sacada sacado sacados
sacamos sacando sacar sacarla sacarle sacarme sacarse sacarte sacas sacaste sacca sacchi sacco sache sachen sachent
saches sachet sachlage sachlich sachsen sack sacked sacking sacks saco sacos sacra sacre sacred sacrifice sacro sacrée
sacrées sacrés sacs sadan sadar sadari sadder sade sadly sadık saem safada safari safely safer safes safest safety
safra saft saga sagde sage sagely sagen sager sages saggy sagra sagradas sagrado sagrados sagre sagst sagt sagte
sagten sagtens saha sahabatku sahada saham sahara sahaya sahen sahibi sahne sahnede sahnesi sahneye sahte saia saiam
saias saiba saibam said saigne saigner sail sailed sailing sails sain saine saines sains saint sainte saintes saints
sairaalaan sairaalan sairaalassa sairas sairaus sais saisie saisies saisis saison sait saiten saith sajnos sajt saját
sajátos sake saken sakene saker sakes sakin saking sakit sakna sakot saksa saksaan saksalainen saksan saksassa
saksasta saksi sakta sakte sakın sala salaa salada salado salah salainen salaires salam salame salari salas salat
salata salato salbe saldare saldi saldo saldırdı saldırgan saldırı saldırıda saldırısı saldırıya sale salen salendo
sales salesman salesmen salg salga salgada salgado salgan salgas salget salgo sali salia salida salidas salido
saliendo salieran salieron salimos salinas saling salio salire salita salite saliti salito saliva salió salle salles
sallow sally salma salminen salmo salmon salmone salmos salmão salmón salomão salomón salon salone salons salonunda
saloon saloons salsa salsas salse salt salta saltado saltan saltando saltano saltar saltare saltata saltato salte
salted salter salti salto saltos saltou salts salty saltó saludo salue salumi saluran salut saluta salutare salutato
saluted saluti saluto salué salva salvado salvage salvan salvando salvano salvar salvare salvaron salvata salvate
salvato salve salvi salvia salvo salvos salvou salvó salão salé salée salía salían salón sală salı sama samaa samaan
samalla samalta saman samana samanlaisia samanlaista samara samassa samasta samat samba same samen samla samlade
samlas samle samlede samler samma samme sammen sammenligne sammenlignet sammenligning samodzielnie samoin samoja sana
sanaa sanal sanan sanar sanas sanat sanatçı sanatı sand sandal sandales sandali sandals sande sander sandi sanding
sands sandt sandte sandık sandım sane sanft sanfte sang sange sangen sanger sangrado sani sanidad sanidade sanitarias
sanitarios sanità sanitários saniye sank sankari sanki sanksi sankt sanmıyorum sanna sanne sanno sano sanoa sanoen
sanoi sanoin sanoit sanoivat sanoja sanoma sanomaan sanomat sanon sanoo sanos sanot sanotaan sanottuna sanovat sans
sant santa santai santas sante santi santidad santidade santità santo santos santri santé sanıyor saor saoul sapan
sapendo sapere saperne sapersi sapesse sapessi sapete sapeurs sapevamo sapevano sapin sapling sapone sapore sappi
sappiamo sappiano sappy saprai sapranno saprebbe saprei sapremo saprete saprà saprò saps saputo sapık saqueos saques
sara sarai saran sarana sarang saranno sarda sardi sardo sare sarebbe sarebbero saree sarei saremmo saremo sareste
saresti sarete sari sarin sarja sarjaa sarjaan sarjan sarjana sarjassa sarjasta sark sartain sartin sarto sarve sarà
sarò sarı sasaran sash sasso sata sataa satan sate satele satin satisfaire satisfaite satmak satoi satoja satojen
satse satser satt satte satu satuan satul satului satz satılan satın satış satışa sauber sauce saucers sauces
saudaranya saudi sauer saufen saugen saugt sauli sauna saunan saura saurais sauras saurez saut saute sauter sauté
sauve sauver sauveur sauvé sauvée savage savagely savagery savait savant savants savaşa savaşta savaştan savaşçı
savaşı save saved saver savers saves saveur saveurs savez saviez saving savings savions savior saviour savne savon
savons savor savory savour savoy savvy sawah sawed sawing sawit sawn saxon saxons sayang sayangnya sayd sayed sayede
sayers sayes sayest sayfa sayfası saygı saygılı saygın saying sayings says sayur sayuran sayı sayıda sayılan sayılı
sayılır sayım sayın sayısı sayısına sayısız saçlı saçma saía saída saíram sağa sağladı sağlam sağlamaktadır sağlanan
sağlayacak sağlayan sbaglia sbagliando sbagliano sbagliare sbagliate sbagliato sbagliavo sbalzi sbarra sbatti sbocco
sboru scacchi scacciare scacco scade scadente scadenze scafo scaglia scala scalare scalata scalda scaldare scalding
scale scaled scales scaling scalo scalps scaly scambiano scambiare scambiato scammed scammers scamming scampo scams
scandal scandales scandali scandals scanf scanned scannen scanning scans scant scanty scape scappa scappando scappano
scappato scappi scapă scara scarce scare scared scares scarf scaricare scaring scarlet scarpa scarpe scarred scarring
scars scarsa scarse scarsi scarso scarti scarto scarves scary scară scat scattare scattate scattato scatter scattered
scattering scatti scatto scavare scavato scavi scavo sceau scegli scegliere scegliete scelga scelgo scelse scelta
scelte scelto scema scemi scemo scena scende scendendo scendere scendono scene scenen scenes scent scents scepter
sceptical scepticism sceptre scesa scese scesi sceso scettro schaap schach schacht schade schaden schadenersatz
schadensersatz schaf schafe schafen schaff schaffe schaffen schaffst schafft schaffte schafften schaft schaken schal
schale schalen schalke schalker schall schalt schalte schalten schalter scham schamen schande schanze schapen scharen
scharf scharfe scharfen schat schatten schattig schatting schau schaue schauen schauer schaukeln schaum schauspielerin
schauspielern schaust schaut schaute schauten scheck scheda scheef scheelt scheibe scheiben scheich scheide scheiden
scheidet scheiding schein scheine scheinen scheinst scheint schelden schelen schema schemas schemi schending schenk
schenke schenken schenkte schepen scheppen schepper schept scherben schere scheren scherer scherma schermen schermi
schermo scherp scherper scherz scherza scherze scherzi scherzo scheuen scheuer scheune scheuren schicht schichten
schicke schicken schickst schickt schickte schickten schiebe schieben schiebt schied schief schiefer schien schiena
schiene schienen schier schiera schiet schiff schiffen schiffes schiffs schijf schijnen schijnt schijt schijven schild
schilder schiller schilling schimbare schimbări schimmer schinken schip schipper schlacht schlachten schlaf schlafe
schlafen schlage schlagen schlager schlamm schlampe schlange schlangen schlank schlanke schlanken schlau schlaue
schlauer schlecht schlechte schlechten schlechter schleicht schlicht schlichte schlichten schlief schlimm schlimmen
schlimmer schlitten schlitz schloss schlossen schlucht schluck schluckt schlugen schluss schläfst schläft schläge
schlägen schlägt schlüsse schlüssel schmal schmale schmalen schmecken schmeckt schmelzen schmerz schmerzen schmid
schmidt schmied schmieden schmieren schmitt schmitz schmuck schmutz schnecken schneide schneiden schneidet schneit
schnelle schnellen schnitt schnitte schnitten schoen schok scholen schon schone schonk schoot schop schopnosti
schoppen schoss schossen schot schoten schott schotten schouten schrank schranke schranken schrappen schreck schrecken
schreckt schreef schrei schreib schreibe schreiben schreiber schreibst schreibt schreie schreien schrein schreiner
schreit schreven schrie schrieb schrieben schrift schriften schrijf schrijft schrijven schrikken schrikt schritt
schritte schritten schrok schrott schräge schudden schufen schuhe schuhen schuift schuil schuilen schuilt schuiven
schulden schule schulen schulte schulter schultz schulz schulze schumacher schuss schuster schut schutz schwabe
schwaben schwach schwager schwalbe schwamm schwanger schwanken schwanz schwarm schwarz schweben schwebt schwede
schweden schweigen schweiger schwein schweine schweinen schweitzer schweizer schwelle schwer schwere schweren schwerer
schwerin schwerste schwert schwerter schwester schwimmen schwimmer schwule schwulen schäden schäfer schämen schärfer
schätze schätzen schätzte schéma schémas schön schönberg schöneberg schülerin schülern schüsse schüssel schütze
schützen scia sciarpa sclavi scoate scoată scoglio scola scolaire scolaires scold scolding scompare scomparse
scomparve scone scones scontare scontate sconti sconto scontri scontrino scontro scoop scooped scooping scoops scoort
scoot scooter scooters scopa scopano scopare scopato scope scopes scopi scoping scopo scopre scoprendo scopri scoprire
scoprite scopro scoprono scopul scorch score scored scoreline scoren scorers scores scoret scorgere scorie scoring
scorn scorned scorre scorrendo scorrere scorrono scorsa scorse scorsi scorso scorta scorte scorul scorza scossa scosse
scosso scot scotch scots scotti scour scoured scourged scouring scout scouted scouting scouts scovare scrabble
scramble scrap scrape scraped scrapes scraping scrapped scrapping scraps scrawled scream screamed screamer screaming
screams screen screw screwed scria scribble scrie scrii scriitori script scrise scrittore scritture scrivere scrivete
scroll scrolled scrolling scrub scrubs scrum scudi scudo scuffle scultore sculture scum scuola scuole scuote scura
scure scuri scuro scurry scurt scurte scurvy scusa scuse scusi scuso scuttle scuze scăpat sdegno seabed seal sealed
sealing seals seam seama seaman seamed seamen seamos seams seamă sean sear seara search searched searchers searches
seared searing sears seară seas seat seated seater seating seats seau sebagai sebaiknya sebaliknya sebarang sebelah
sebenar sebentar seberang sebulan sebut sebutan seca secara secas secchi secchio secesión seco secolari secondes
seconds secos secretas secretos secretă secs secta sectas secte sector sectores sects secundarias secundarios
secundárias secundários secção secções secției seda sedan sedang sedap sedate sedated sedation sede sedere sedermi
sedersi sedes sedia sediado sedici sedie sedile sedili sedition sedm sedmi seděl seed seeded seeding seedling seeds
seedy seeing seek seeking seeks seemed seeming seems seen seep seeping seeps seer sees sefer seferde sega segala segar
segel segeln segen seger segera seggi seghe segmen segment segmenti segna segnala segnalano segnalare segnalate
segnalato segnale segnali segnalo segnando segnano segnare segnata segnate segnati segnato segni segno segretaria
segreteria segua segue seguenti segui seguia seguida seguidas seguido seguidos seguimi seguimos seguindo seguiram
seguire seguirem seguirmi seguita seguite seguiti seguito seguiva segunda segundas segundo segundos seguo segura
segurando seguía segítenek segítségre segítségére segítünk sehari sehat sehe sehen sehne sehnen sehnt seht sehän seide
seien seier seife seil seile sein seine seinen seiner seines seinn seins seinään seio seios seis seita seite seiten
seize seized seizes seizing sejak sejarah sejas seje sejenak sejle sejler sejre sekarang seker sekin sekolah seksi
seksin seksu seksueel seksuele sekt sekte sektor sekuat sekä sekään selagi selaku selalu selama selamanya selben
seleccionadas seleccionados selecionadas selecionados selection selera selezionare selezionate self selge selim
selittää selitys selkeä selkä selkään sell sella sellainen sellaiseen sellaisen sellaisia sellaista selle selling
sello sells selos sels selten seluler selva selve selves selvittää selvitys selvitä selviä selviää selvä selvää selän
semacam semak semalam semanais semanario semanas semanário semasa semata semblait semblant semblent sembrano sembrare
sembrata sembrate sembrato sembrava semen semi seminario seminário semmire semnat semne semnele semper sempre semua
semuanya semudah semula semut semver sena senado senador senang senapan senat senate senato senatore sence sencillas
sencillos send senda sende senden sender sendern sendet sending sendo sendromu sends sendt sendte sendung sene senere
seneste seng sengen senha senhor senhoras senhores seni senin senior senioren seniors senken senkin senkt senkung
senna senno sennò seno senor senos sens sensato sense sensi sensibel sensible sensie sensin sensing sensiz senso
sensor sensore sensoren sensores sensors sensu sensuale sensualità sent senta sentada sentado sentados sentais sentait
sentamos sentando sentant sentarme sentarse sente sentei senter senti sentia sentida sentido sentidos sentie sentient
sentier sentieri sentii sentiment sentimentul sentimos sentindo sentir sentirai sentiram sentirci sentire sentirei
sentirem sentirme sentirmi sentirse sentirsi sentirte sentirti sentita sentite sentiti sentito sentiva sentivo sento
senttiä senza senão seolah seorang seoul sepak sepamos sepan separa separadas separado separados separando separano
separare separata separate separati separato sepas seperti sepia sept septa septic septiembre sequía sera serai
seraient serais serait serale serang serape seras serat serata serate serba serbe serben serbes serbi serbia serbien
serbio serbios serbo serca serce sercem serdecznie sere serei sereia serem seremos serena seres serez serge sergent
sergente sergi sergisi seri seria seriado seriale seriam serias seribu serie serien serier series serieus seriez serii
serine sering serio serions serios serisi serlo serment sermos sermão serna serons serpent serpente serra serre serres
serrée serrés sers serta sertão seru serum serva servaient servait servant serve served servem servent server servers
serveru serves serveur serveurs servez servi servia service serviceman servicemen servicii servida servido servie
servile servindo serving serviram servire servis servisi servit servita servite serviti serviva servizi serviço servo
servos servía servían serão sería serían serías sesaat sesama sesenta sesi sesin sesini sesle sesleri sesli sessi
sessiz sesso sessuale sessualità sesta sesto sesudah seta setan setara setas sete setelah setenta seti setia setiembre
setje setor setores sets sett setta sette setter setters settes setting settler settlers settles settling settore
setze setzen setzte setzten seuche seuil seuils seul seule seules seuls seumur seura seuraa seuraamaan seuraan
seuraava seuraavaa seuraavaan seuraavan seuraavana seuraavassa seuraavien seuran seurata sevda sevdim sevdiğimi
sevdiğini seve sevel seven sever several severall severe severim severu sevgi sevgili sevgilisi seviye seviyede
seviyesi seviyor seviyorum sevmiyor sevmiyorum sewed sewer sewers sewing sewn sexes sexiest sexisme sexist sexiste
sexo sexos sexta sextas sexting sexto sexual sexul sezen sezonda sezonu sezonunda seçenek seçim seçimde seçime seçimi
seçimlerde seçimlerinde seçkin seçme seçmen seçti seção seções seña señalaba señalado señalados señalando señas señora
señoría sfatul sfeer sfera sfere sfida sfidano sfidare sfidato sfiga sfigato sfilata sfilate sfinți sfinții sfoglia
sforza sfruttando sfruttano sfruttare sfruttate sfruttato sgàth sgìth shack shacks shad shade shaded shades shading
shady shaft shaggy shake shaken shaker shakers shakes shaking shaky shale shall shallots shallow shallows shalom shalt
shaman shame shamed shameless shaming shams shank shanks shanty shaor shape shaped shapeless shapes shaping shard
shards share shared shares sharing shark sharks sharps shat shatter shattered shattering shatters shave shaved shaven
shaver shaves shaving shavings shawl shay shear shearing shears sheaves shed shedding sheds sheen sheep sheer sheet
sheets shelf shell shelled shelling shells shelter sheltering shelved shelves shelving shes shewed shewing shewn shews
shied shield shift shifting shifts shifty shill shilling shimmer shimmering shine shiner shines shingle shingles shins
shiny shipped shipper shippers shipping ships shire shirk shirt shirtless shirts shit shite shitless shits shitting
shitty shiver shkruar shkuar shock shocked shocking shocks shoe shoes shogun shone shook shoot shooter shooters
shooting shoots shop shopped shoppen shopper shoppers shopping shops shore shoreline shores shorn short shorted
shorter shorting shortly shorts shorty shot shotgun shots shouldering shouldest shouldst shout shouted shouting shouts
shove shoved shovels shoves shoving showdown showed shower showing showman shown shows showy shrank shred shredding
shreds shrew shrewd shriek shrieking shrieks shrill shrine shrines shrink shrinking shrinks shriveled shrivelled shrub
shrubs shrugs shtëpinë shtëpisë shucks shuffle shunned shunning shuns shunt shush shut shuts shutter shuttered
shutters shutting shuttle shyly siaga siajn sial siamo sian siang siano siap siapa siaran siate sica sich sichere
sicheren sicherer sichern sicherste sichersten sichert sicherte sicherten sicht sichtweise sichtweite sick sicker
sicura sicure sicuri sicuro sida sidang sidde sidder siddet side sided sider sides sideshow siding sidor sieben siebte
siebten siedziby sieg siege siegel siegen siegt siegte siehe siehst sieht siellä sieltä sien siendo sienna siens
sienta siente siento sier siero sierra siervo siesta siete sieve sifat sift sifting siga sigas sige siger sighed
sighing sighs sight sighted sighting sights sigla siglas sigle siglo siglos sigma sign signale signaled signaling
signalled signalling signalée signant signe signed signer signes signifiait signifiant significado significando
significano significativas significativos significato signifient signing signo signora signoria signorina signos signs
signé signée signées signés sigo siguiera siguieron sigur sigură sihir sihirli siinä siirretään siitä siitäkin sikap
sikere sikert sikke sikker sikre sikrer sikret sikt sikte siktet silah silahlı silahı silakan silang silas silbe sile
silicon silke silks silky sill silla sillas silloin sillon sills silly sillä silmiin silmin silmä silmään silna silne
silnie silnou silos silou silt silta siltä silva silver simak simdi simeone similare simios simmer simmering simone
simpatia simpatica simpel simple sims simte simulate simulated simulates simulating simulation simuler sinar since
sinceras sinceros sind sindacali sindacati sinde sine sinemaya sinfonia sinfonía sing singa singe singed singel singen
singer singers singes singing single singled singles singling singole sings singt singur singura singuri singură sini
sinir sinirli sink sinken sinker sinking sinks sinkt sinn sinne sinned sinnen sinner sinners sinning sino sinos sins
sint sinta sinti sinto sintonia sintonía sinua sinulla sinulle sinulta sinun sinus sinusta sinut sinä sinäkin sioniste
sipped sipping sips siquiera sire sired siria sirio sirios sirs sirva sirvo sisa sisi sist sista siste sistem
sistemare sistemde sisteme sistemi sisteminde sistemine sister sisters siswa siswi sisäinen sisäisen sisällä sisältä
sisältää sisältöä sita site sited sitede siten sites sitesi sitesinde siteye siting sitio sitios sitisin sits sitt
sitta sitte sitten sitter sitters sittet sitting situadas situados situației situații situe situs située situées
situés sitz sitze sitzen sitä sitäkin sivil sivua sivuilla sivuilta sivulla sivun sivussa sivut sivuun sixers sixes
siyah siyang siyasi sizable sizce sizde sizden size sizeable sized sizes sizin sizing sizlere sizlerle sjaal sjakk
sjanse sjansen sjanser sjefen sjekk sjekke sjekker sjekket sjelden sjeldne sjokk sjove sjuka sjunga sjunger sjunker
själ sjælden sjældne sjøen skaam skabe skaber skabt skabte skada skadad skadade skadar skade skader skadet skal skala
skali skall skalę skank skapa skapade skapar skapas skapat skape skaper skapet skapt skapte skat skate skated skater
skaters skates skating skatt skedde skeet skeptic skeptical skepticism sker skett skewed skewer skewers skibe skicka
skickar skickas skide skids skidt skien skiers skies skiff skift skifte skiftede skifter skiftet skilful skilfully
skilja skill skille skilled skiller skillful skillfully skills skilt skimming skin skinned skinner skins skipped
skipper skipping skips skirt skirts skis skit skita skiten skiter skits skiva skive skiën skjer skjule skjulte skjuta
skjønne skjønt skjønte skjøt skla skladby skogen skojar skola skole skolen skolens skoler skolo skončil skončila
skončit skončí skopo skoro skott skoven skończyć skratt skratta skrev skridt skrika skriker skript skritt skriva
skrive skriver skrivs skräp skuat skudd skule skulle skunk skupina skupinou skupinu skupić skutecznie skutek skutt
skydda skyde skyder skyld skylder skyldes skyte skyter skämmas skära skåret skære sköna skönt sköt sköta sköter skønt
slaaf slaag slaagt slaan slaap slaapt slaat slabe slabs slabé slabă slack slacking slacks slag slagen slaget slags
slain slak slalom slammed slamming slams slander slang slangen slank slant slanted slap slapen slapped slapping slaps
slash slashed slashes slashing slate slated slater slates slats slave slaven slaves slavi slavnostní slavné slavný
slaví slavă slayer slayers slaying sleduje sledujte sleek sleep sleeper sleeping sleeps sleet sleight slemt slender
slepen slept slet slett slette slettet slevu slice sliced slices slicing slick slid slide slider sliders slides
slideshow sliding sliep slight slighted slike slikken slikt slim slime slimmer slimming sling slinging slings slinky
slip slippa slipped slipper slippers slipping slips slit sliten slits sliver sloop sloot slop slope sloped slopen
slopes sloping slot sloten sloths slots slott slotted slouch slough sloužit slova slowdown slowed slower slowing slows
sludge slug slugs sluice sluit sluiten slump slumped slums slung slunk slurred slurs slush slut sluta sluts slutt
slutte sluttede slutter službu slyly släkt släng slänga slänger släppa släpps släpptes slået slåss slått smaakt smack
smacked smacking smacks smage smager smaka smakar smaken smaker smal small smalls smalto smart smarta smarte smarter
smarting smarts smash smashed smashes smashing smattering smear smeared smearing smears smeken smell smelled smelling
smells smelt smelter smelting smentire smentita smentite smentito smeren smerte smerter smesso smet smetta smette
smettere smettete smide smider smidt smile smiled smiles smiling smirk smite smith smiting smlouvu smoke smoked smoker
smokers smokes smokey smoky smoldering smontare smooth smoothed smoother smoothing smote smother smouldering smrtí
smudge smuggle smuggled smuggling smukke smukt smule smurf smärta smått směru snabba snack snacking snacks snag snags
snahu snahy snail snails snak snake snakes snakk snapped snappen snapping snappy snaps snapt snare snares snark snarky
snarl snarling snart snatch snatches snažíme sneak sneaker sneakers sneaking sneaks sneden sneen sneer sneered
sneering sneezed snett snickers snider sniff sniffing snill snille snipe sniper snipers snipes sniping snitch snitt
snoep snoop snooping snore snoring snort snorted snorting snorts snot snout snowball snowed snowfall snowing snowman
snows snowy snubbed snuff snuffed snuffing snug snuggle snuggled snuggling snygg snäll snälla snällt sněhu soaked
soaking soaps soar soare soared soares soaring soars soarta sobe sober soberana soberania soberanía sobie sobra
sobrando sobras sobre sobrino sobrio sociale socialisme socialiste socialite socialize sociedad societăți societății
socio sociologie sociologue sock socken socks socle socos soda sodas sodassa sodio sodo soep soest soever sofa sofas
sofferenze soffio soffro sofia sofisticados sofra sofre sofri sofria sofrida sofridos sofro sogar soglia soglie
sognando sognano sognato sogno sogra sogro sohle soia soignant soigne soigner soigné soignée soil soiled soils soinin
soins soirs sois soita soitin soja sokak sokaklarda sokan sokken sola solaire solaires solar solare solares solari
solas solco sold soldado soldați soldații solde solder soldering soldes soldi soldier soldierly soldiery soldo sole
soleado solely solen soles soli solicitado solicitamos solicitando solicitors solicitous solid solida solidaire
solidaires solidaria solidario solidarios solide solides solidi solidify solidity solido solidária solidário solista
solita solitaire solitaires solitaria solitario solitarios solite soliti solito solitária solitário solle sollen
sollevare sollevate sollst sollt sollte sollten solltest solltet solo solos sols solta soltar solteiras solteiros
solteras solteros solto soltos solunum soluții solve solver solvers solves solía somado somando somar somber sombra
sombras sombre sombria some sometidas sometidos somma sommar somme sommes sommet sommets somn somos sona sonando sonar
sonda sonde sone sonen songe songer songs songé sonha sonhando sonho sonia sonja sonne sonner sonno sonné sono sonra
sonrada sonrası sonrasında sons sonst sonu sonucu sonucunda sonuna sonunda sonunu sonuçta sony soon sooner soort
soorten soot sooth soothed soothing sopa sopia sopii sopimuksen sopisi sopiva sopivaa sopivia sopla soportadas
soportados sopporta sopportare sopportato sopporto soprano soprattutto sopratutto sopro sorban sorcerers sorceress
sorcier sorda sordi sordo sordu sordum sore sorelh sorely sores sorge sorgen sorgente sorgere sorgte sorgten sorma
sormak soro soros sorra sorri sorria sorridi sorrisi sors sorsa sorse sorso sort sorta sortais sortait sortant sorte
sorted sorten sortes sorti sortie sorties sorting sortis sortit sorto sorts soru sorular soruları sorumlu sorun
sorunlar sorunları sorunu sorunun sorusu sorusuna soruya soruyor soruyu sorèlh sosiaalinen sosiaalisen sosiaalista
sosok sosta sostegno sostengo sostituire sostituite sostituito sostituto sota sotaa sotilaita sotto sottolineando
sottolineano sottolineato soube souberam souche souci soucie soucier soucis soudain soudan soudem soudní soudu soudy
souffle souffrait souffrant souffre souffrent soufre souhaitait souhaitant souhaite souhaitent souhaites souhaits
souhaitée soul soulignant soulignent souls soumet soumis sound soupe souper soupire souple soups sour source sourced
sourde sourds soured souri sourire souris sourly sous soutenait soutenant soutenir soutenues soutenus souterraines
souterrains soutiennent soutiens soutient soutěží souvenir souvent souviennent souviens souvient sove sover sovit
soviéticos sovrano sowed sowing sown soylu sozinhas sozinhos soziologie soñado soñando soția soției spaar spacca
spaccare spaccato spaccio spacco space spaced spaces spacing spacious spada spade spades spadl spadł spadła spake
spalla spalle spalt spalte spalten spam spammers spamming span spanien spank spanked spanking spanned spannen spanning
spans spar spara sparando sparano sparar sparare sparate sparati sparato spare spared sparen sparer spares spargere
spari sparing sparire sparita sparizione spark sparka sparke sparked sparking sparkling sparkly sparks sparky sparo
sparring spars sparsa sparse sparsi sparso spart sparta sparte sparten spas spasm spasso spat spate spatele spaventato
spawn spawned spawning spawns spazi spać spații speak speaker speakers speaking speaks spear spears specchi specchio
speciaal special speciale specialises specialists specialitate specialities speciality specialiști speciall specially
specialties specialty specie specifics specifies specii specious specjalne specjalnie speck specks specs spectatori
specter spectre sped speed speeding speeds speedy speel speelt speer spel spela spelade spelar spelare spelas spelen
speler spell spelled spellen spelletje spelletjes spelling spells spelt spencer spend spende spenden spender spendere
spendet spending spendono spends spent spenta spente spenti spento sper spera sperando sperano sperare sperato speravo
speri sperimentale sperimentare sperma spero sperăm spesa spese spesi speso spessa spesse spesso spetta spettro spewed
spewing speyer spezia spezie spezza spezzare spełnić spia spiace spiare spice spiced spices spicy spider spiders spie
spied spiegami spiegando spiegano spiegare spiegarmi spiegarti spiegata spiegate spiegati spiegato spiegava spiegel
spiel spiele spielen spielerin spielern spielst spielt spielte spielten spier spies spietata spietato spike spiked
spikes spiky spill spille spilled spillede spiller spillere spilleren spillerne spilles spillet spilling spills spilt
spilte spin spina spinal spinale spinat spindle spine spines spinge spinne spinnen spinner spinners spinning spinnt
spins spinse spinta spinte spinto spiny spion spionnen spiral spirale spire spires spiritual spiritueel spirituele
spiritul spis spise spiser spist spiste spit spite spits spitting spitz spitze spitzen splash splashed splashes
splashing splat splatter splice spliced splicing splint splinter splinters split splits splitter splitting spoel
spoelen spoglie spoglio spoil spoiled spoils spoilt spoke spoken spokes spokesman spokesmen spoko spokojnie
společnosti spolku spolu sponda spook spooks spool spoon spoons spoor spoort sporcu spore sporen spores sporet sporo
sport sported sporten sporting sportivi sports sportsman sportsmen sportu sporty sporu spory sposa sposano sposare
sposarsi sposata sposate sposati sposato spose sposi sposta spostando spostano spostare spostarsi spostata spostate
spostati spostato spot spotkać spotkałem spots spott spotted spotten spotting spotty spotyka spoustu spout spouting
spoza społeczne sprachen sprain sprained sprak sprang sprawa sprawdzić sprawia sprawie sprawić sprawled sprawy sprawą
spray sprayed spraying sprays spre sprechen sprecht spree spreek spreken sprengen sprer sprich sprichst spricht sprida
sprider spring springen springer springing springs springt sprinklers sprinkles sprint sprinter sprinters sprinting
sprints sprit sprite spritze spritzen sproget sprongen sprout sprouting sprung sprzedaje správnou správně správu
správě spuit spuiten spullen spun spune spuneam spunem spunk spunta spuntano spuntare spuntino spunto spună spuren
spurned spurning spurred spurring spurs spurt spus sputa sputare sputo sputtering spying spánku spécialisé
spécialisées spécialisés spécialité spécialités spécifie spécifiée spécifiées spécifiés spør spørg spørge spørger
spørre spülen spüre spüren spürte squads squats squeaking squealing squint squinting squirming squirt squirting sres
sstream staakt staal staan staand staart staat staaten staates staatliche staats stab stabilire stabilite stable
stables stabs stacca staccare staccato stacco stacje stack stacked stacking stacks stad stade staden stadens stades
stadi stadion stadions stadje stadt staf staffing stage staged stages stagger staggering staging stagione stagioni
stagno stags stahl stai staid stain stained staining stains stair stairs staje stają stak stake staked staken stakes
staking stakk stal stala stale stalen stali stalk stalked stalking stalks stall stalla stalle stalled stallen stalling
stalls staly stamme stammen stammer stammte stammten stamp stampante stampanti stampare stampate stampati stamped
stamping stampo stamps stamt stan stanca stancato stanco stand stande standen standing stando stands stange stangen
stank stanna stanno stante stanu stany stanza stanze stanów stapje staple staples stappen stapt stapte star stara
starai staranno starat starb starben starch starched starci stare starea starebbe starebbero stared starei starej
staremo staren stares staring stark starka starkare starke starken starker starkt starlet starling starosta starou
starr starre starred starren starring starrt stars starszy start starta starte started startede starten starter
starting startled startling starts startu starve starved starving stary starych starym starà starò starší stash
stashed stasi stat stata state stated statek statele statelor staten statens stater states stateside statesman
statesmen statewide stati stating station stationary stationery stations statista statistik statistikk statistiky
statistisk stato stats statt stattfinden stattliche statua statue statuen statues statul statului statura stature
status statuses statute statuten statutes statuts stau staub staus stava stavamo stavano stavbu stavby stave stavební
staven staves stavi stavo stavu staví stawia stay stayed staying stays stazione stazioni stała stały stažení stații
stdin stdio stdout stea steady steak steaks steal stealing steals steam steamed steamer steamers steaming steamy
stechen steck stecke stecken steckt steckte steckten stede steden steder stedet steed steeds steek steekt steel steels
steelt steely steen steep steeped steeper steeply steeps steer steered steering steers steffen steg steget stehe
stehen stehlen stehst steht steifen steig steige steigen steigern steil steile steilen stein steine steinen steiner
steken stekker stel stelde stelden stele stelen stell stella stelle stellen stelletje stelling stellst stellt stellte
stellten stelt stem stemde stemden stemme stemmed stemmen stemming stems stemt stemte sten stende stendere stenen
stenge stenger stengt stent stento step stepped stepping steps stepson ster sterbe sterben sterf sterk sterke sterker
sterkste sterkt sterkte sterling stern sterne sternen sterren sterven stesa steso stessa stesse stessi stesso stetig
stets stetson steun steunen steunt steve stevel steven stew stewed stews stia stiamo stiano stich sticht stick sticka
sticker stickers sticking sticks sticky stieg stiegen stiel stier stierf stierven stiff stifle stifled stig stige
stigende stiger stigma stijgen stijl stijlen stikk stikke stikken stikker stil stile stiles still stille stilled
stillede stiller stilles stillet stilletjes stills stilt stilte stilts stima stimare stimata stimato stime stimme
stimmen stimmte stimmten stimo stimulate stimulated stimulates stimulating stimulation stimuler sting stinger stinging
stings stingy stink stinken stinking stinks stinkt stinky stint stints stip stipe stipendi stipulate stipulated
stipulates stipulation stir stirbt stirring stirs stisin stitch stitched stitches stitching stock stocked stocken
stocking stocks stoel stoelen stoep stoer stoere stoet stoffen stojí stoją stok stoke stoked stoker stokes stokken
stole stolen stoler stolid stollen stolt stolte stolu stolzen stom stomp stomped stomping stond stone stoned stoner
stoners stones stoning stony stool stools stoom stoop stooped stooping stoops stoort stoot stop stopfen stopp stoppa
stoppe stopped stoppen stopper stoppers stopping stops stopt stopte stopten stopy store stored storen stores storey
storeys storia storica storie storied stories storing stork storm stormed stormen storming storms stormy stort storta
storten storto story stosowane stosowania stoten stout stoute stove stoves stowed stra straal straalt straat straccio
strada strade straf strage straggled straggling stragi strahl strain strained straining strains straits strak stralcio
stralen stran strana strand stranden stranding strands strane strang strange stranger strangest strangle strangled
strangling strani strano stranou stranu strany straně strap strapped strapping straps straszne strasznie straszny
strat strategia strategica straten strati strato straws stray strayed straying strays strašně straż streak streaked
streaking streaks stream streamed streamer streamers streaming streams streben strebt strecke strecken streckt streek
strega stregua streich streicheln streichen streifen streiken streit streiten streken strekker strekt strenge strengen
strengt strep strepen streuen streven strew strewed strftime strich strick stricken strict strid stride strider
strides striding strife strijden strijken strik strike strikers strikes striking strikte string stringa stringe
stringer stringhe stringing strings strip stripe striped stripes stripling stripped stripping strips strive strives
striving strlen strobe strode strojů stroke stroked strokes stroking stroll strolled strolling strom stromen stromu
stromy stromů stronger strongest stront stronzi stroom strove strptime struck structureel structurele structuri
structurii struggled struggling strung strut stránek stránku stránky sträcker strände străini străzi stuart stubble
stube stubs stucco stuck studded student studenten studentessa studentin studenty studenți studenții studere
studerende studi studiando studiano studiare studiata studiate studiato studiava studied studiere studieren studierte
studio studiul studs study stufe stufen stuff stuffed stuffing stuhl stuit stumble stumm stump stumped stumpf stund
stung stunned stunning stuns stunt stunted stunting stunts stupendi stupide stupido stupire stupito sturdy sturgeon
sturm stute stutter stuttering stycken stygge stygt stykke stykker stylu styra styre styrer styret styrka styrke
styrker styrt stáhnout stál stála stále stálo státní státy stává stâng stânga stângă städte städten ställ ställa
ställde ställe ställen ställer stället ställs ställt stämma stämmer stämning stände stänga stänger stängt stätte
stätten stået står stått stærk stöd stödjer stöhnen stöld stören större störst största større støtt støtte støtter
stücks stünde stünden stürme stürmen stürmt stürzen stürzt stürzte stürzten stütze stützen stützt stări stării stěny
střechu střední středu střelec střely suai suami suamiku suara suas suatu suave suba suban subas subbed subiendo
subieron subies subimos subir subiram subire subis subit subite subiu submetidos submit submits subs subset subsets
subsides subsidies subterráneas subterráneos subtile subtle subur subvenir subía succo suce suceda sucedidas sucedidos
sucedía sucer sucesivas sucesivos sucesión sucessivas sucessivos sucesso sucessão suche suchen suchst sucht suchte
suchten suciedad suck sucking suckling sucks suco sucre sucrée sudah sudan sudar sudeste sudoeste sudore sudul sudut
sueca sueco suecos suede suegro sueldo sueldos suele suelo suelos suelta suelto sueltos suena suene suero sueña sueño
suferă suffer suffers suffirait suffisait suffisant suffisantes suffisants suffisent sufra sufro sufría sugar suger
sugerido sugerindo sugod suhl suhteessa suing suis suit suite suited suites suiting suits suivait suivant suivantes
suivants suive suivie suivies suivis suivit suivre sujar sujas sujeira sujeita sujeitas sujeitos suka sukker
sukupuolen sulama sular sulit sulkea sulla sulle sullo sully sultan sulten sumado suman sumando sumar sumas sumir
sumiu summa summaries summarizes summit summits sump sumpf sums sumur sumă sunan sunar sunat sund sundu sunet sung
sunk sunod suns sunset sunsets sunt sunucu sună suoi suojaa suojella suolaa suolo suomalainen suomalaiseen
suomalaiselle suomalaisen suomalaisessa suomalaisesta suomalaisia suomalaisille suomalaisista suomalaista suomalaisten
suomeen suomella suomen suomessa suomesta suona suonando suonano suonato suonava suoni suono suor suora suoraa suoraan
suorana suore suoritus suot super supera superado superan superando superano superare superate superato superi
supernatural supernaturall superstitions superstitious supervisar supervisor supiera supieran supieron supimos suponho
supor suport suporta suportadas suportados suporto suposa suposta supostas suposto supostos supot supper supplie
suppliers supplies supporta supportano supportare supportato supporte supporters supporto supports supportée
supportées supportés suppose supposta supposée supposés supprime supprimée supprimées supprimés supra supuestas
supuestos supus supérieures supérieurs surat surda surdo surdos sure surely surer suresi sureste surety surf surfen
surfer surfers surfing surga surge surgeon surgido surgindo surging surgit surkea surly suroeste surpresas surra
surrey surto surtos suruh surveillant surveille surveillée survenir survey survie survient survit survivant survivent
surya susa susah susan sushi susi suspeitas suspeitos suspende suspendre suspendue suspendus suspensas suspense
suspenso suspensos suspensão suspicions suspicious sustentado susto susunan sutra sută suunnitella suunnitelma
suunnitelmia suunta suuntaa suureen suurella suuremman suuremmat suurempaa suurempia suuren suuressa suuresta suuria
suurimman suurimmat suurimpia suurinta suurta suurten suvun suwai suya suyas suyun suçlu suçu svaga svage svagt svake
svakt svaly svara svarade svarar svare svarede svarende svarer svaret svart svarta svarte svazu svegli svegliarmi
svegliarsi svein svekket svend svenskerne sviluppando sviluppano sviluppare sviluppate sviluppato svobodu svoje svojou
svoju svojí svolge svolta svoltasi svolte svoltosi sväng svåra svære svært světa světem světla světle swabs swagger
swaggering swain swains swallow swallows swam swamp swamped swamps swan swank swans swap swapped swapping swaps swarm
swat swatch swatches swath swayed swaying swear swearing swears sweat sweater sweating sweats swede sweep sweeper
sweeping sweeps sweet sweeter sweets swell swelled swelling swells sweltering swept swerve swerved swerving swift
swifts swig swimmer swimming swims swindle swine swing swinger swingers swinging swings swipe swipes swiping switch
switched switches switching swoją swoon swoop swooped swooping swore sworn swung swydd syarat sydd sydlige syge syistä
syitä syke sykle sykt symboles symbolise symbols sympathies sympathise syna synd syndicalisme syndicaliste synem synes
synge synger syns syntes syntyi syynä syystä syyttäjä syyttää syytä syödä syödään syömään syöpä szabad szans szart
szavakat szczególnie szczerze szebb szedni szeged szegény szelet szembe szemben szeme szemed szemem szemében személyek
személyre szent szeptemberben szerb szerelem szerelmem szerencsére szerepelnek szerepelt szerepet szereplő szeret
szeretek szeretem szeretet szeretett szereti szeretik szeretlek szeretne szeretnek szeretni szeretnék szeretnél
szeretnénk szerette szerettem szerezni szerezte szerkezet szert szerte szervezet szervezetek szervezett szerzői szett
szexi szinte szintén szkole szkoła szoba szobába szobában szoku szokás szolgálat szolgált szoros sztuka sztár szuka
szybciej szybki szál szállt száma számban számlát számodra számomra számot számukra számunkra számára számát számított
száz székely színe színes színészek szíve szóba szólnak szólok szólt szót szóval szükségük szükségünk születik
születtek säger sägs säker säkra sälja säljer säljs sänder säng sängerin sänka sätt sättet säule säure sääntöjä säästä
säästää säästöjä säätää sådan sådär såhär således såret sécurisé sécurité sélection sélectionner sélectionneur
sélectionnées sélectionnés séparant sépare séparent séparée séparées séparés séria sério sérios sérvia sérvio sérvios
sídlí síla síle sírio sítio sítios sítí sócio sódio söder söhnen söker sökt sönder söta söyle söyledi söyledim
söylediği söyleme söylemiş söylenen söyler söyleyecek söyleyen söyleyerek söyleyeyim söyleyin sözde sözler sözlerini
sözleşmeli sözleşmesi sözlü sözü sözünü søde sødt søen søge søger søgte søke søker søkt søkte sønner søren sørg sørge
sørger søster søte søtt sûres sûrs süden sült sünde sünden süper sürdü süre sürece sürecek süreci sürecinde sürede
sürekli süreli sürer süresi süresince sürü sürücü sürümünde sürümüne süti săli săptămâni sărbători sıfır sıkı sıkıntı
sıkıntısı sınava sınıfa sınıfta sınıfı sınır sınırları sınırlı sınırı sırada sıralar sırası sırasında sıraya sırrı
słaby słowa słucha słusznie służby służy słyszałam słyszałem taak taas taat tabaco tabak tabanlı tabasco tabe tabel
taber tabi tabii tabla tablas table tabled tables tablets tablosu tabt tabte tabu tabulce tabung tacchino tache tacit
taciz tack tacka tackar tacked tackled tackling tacks taco tacones tacos tact tacto tadına tafel tage tagen tager
tages taget tagli tagliando tagliano tagliare tagliate tagliato tags tahallaan tahan tahanan tahap tahapan tahdo tahle
tahmin tahtoo tahukah tahun taie taikka tail tailed tailing taille tailler tailleur tails tain taint tainted taire
tais taisi taisin taistella taistelua tait taitaa taitava taiteen taito tajam tajo tajua tajuaa tajuta taka takaa
takana takdim takdir takdirde take taken taker takers takes taket takhle takia takich takie takiej taking takip takk
takke takken takker takket takki takle takler taklit takma tako takové takového taksim takt takto takvim takvo taky
takács takım takıma takımda takımlar takımları takımı takımın takımını także tala talade talas talde tale talen talent
taler tales talet tali talked talker talkers talking talks talla tallas taller tallet taloa talon talones taloon
talossa talosta taloudellinen taloudellisen talpa talte talteen talvi találhatók találja találjuk találkoztak
találkoztunk találkozunk találnak találod találok talált találta találtak találták találunk talón tamamladı tamamlandı
tamamlayan taman tamat tambah tambahan tambahkan tambang tamben tamed tamer taming tamir tampa tampak tampan tamper
tampered tampereella tampering tamu tana tanah tanam tanben tanda tanden tanec tanezzayt tangaanak tanganak tanganku
tanggapan tangkap tangki tango tanie tank tankar tanke tanked tanken tanker tankers tanking tanks tanned tanner
tanning tanong tanpa tanrı tans tanssi tant tanta tante tanti tanto tanya tanyakan tanzen tanzte tanács tanık tanımak
tanımlanan tanımlar tanımlarsanız tanımlarsınız tanımlayan tanımlayın tanımlı tanımı tanınan tanıtım tanışmak taong
tapa tapaa tapaamaan tapaan tapado tapahtua tapahtuma tapahtumaa tapahtumaan tapahtuman tapahtumassa tapahtumia
tapahtumien tapahtumista tapana tapani tapas tapasi tapauksessa tapauksesta tapauksissa tape taped tapent taper
tapered tapering tapes tapet tapia taping tapio tapis tapoja tapones tappa tappaa tappar tappara tapped tapper tapping
tappio tappoi taps tapt tapte tara tarado tarafa taraflı tarafta taraftar tarafı tarafına tarafında tard tarda tardado
tarde tarder tardif tardo tardy tardía tardío tarea targa tari tarian tarif tarifi tarih tarihe tarihi tarihinde
tarihine tarihini tarihli tarihte tarik tarina tarinaa tarja tarjoa tarjoaa tarjota tarkista tarkistaa tarkka tarkkaa
tarkkaan tarkkana tarkoitan tarkoitin tarot tarp tarry tart tarta tarte tartja tartjuk tartják tartottak tarts tartós
tarvi tarvii tarvitse tarvitsee taré tarım tasa tasan tasarımı tasas tasca tasche taschen taschenbuch taschentuch
taser taske tasked tasking tasks tasoa tason tassa tasse tassen tassi tasso taste tasted tasten taster tasti tasting
tasto tasty tata tate taten tatile tatmin tato tats tattered tatto taty tată taub taube tauben tauchen taucht tauchten
taufe taufen taugen taugt taule taunt tauon taupe tauschen tauscht tausta taustaa taut tava tavalla tavallaan
tavallinen tavallisen tavallisia tavallista tavan tavata tavsiye tawar tawaran taxas taxed taxer taxes taxing taxis
tayang taza tazas taça taşı taşıma taşıyan tašky teach teachers teaches teak team teama teamed teaming teams teamă
tearing tears teary teas tease teased teaser teasers teases teasing teater tebak tebal tebbid tebrik tebɣid tech
technicky techniczne techniku techniky tecido tecla teclas tecnologia tecnologica tecnológicas tecnológicos tecto
tedavisi tedy teen teens tees teeth tegak tegal tegang tegas tegels tegen tegenaan tego teguh tegyük tegyünk tehdy
tehdyt tehdä tehet tehlikeli tehlikeye tehnici tehnologie tehnologii tehnyt tehoa tehot tehtyjä tehtyä tehtäviin
tehtävissä tehtäviä tehtävä tehtävän tehtävänä tehtävää tehtävään tehát teia teidän teile teilen teille teillä
teilnahmen teilnehmen teilnehmern teilte teilten tein teint teinte teintes teir teistä teit teitä tejas tejet tejido
tejto tekan tekeminen tekemiseen tekemisen tekemä tekemässä tekemättä tekemään teken tekenen tekens tekevän tekevät
tekijät tekijöitä tekin tekintetében tekivät teklif tekne tekniikka teknik tekninen teknis teknisk teknologia
teknolojisi tekoa tekoja tekst teksten tekster teksti tekstin tekstu teksty tekstów tekście tela telas telat telefona
telefonare telefonate telefonda telefonia telefonica telefonici telefonico telefonino telefonla telefónicas
telefônicas telepon teles televizní televizyonda telkens tellen tells tellus telt teluk tema temalı teman temanku
temanmu temannya temas teması tembak tembakan teme temel temeli temem temendo temer temere temető temeva temi temia
temido temiendo temin temiz temo temor temos tempat tempatnya tempels temperaturi tempered tempi tempio templat temple
templi templo templos tempo temporárias temporários tempos temukan temuto temáticas temía temă tenaga tenais tenait
tenang tenant tend tenda tendant tendas tende tended tendem tendencia tendent tendente tendenze tender tendere tendido
tending tendo tendono tendr tendre tendres tends tendu tendue tendues tendus tenebre tenen tenencia tenendo tenente
tener tenera tenerci tenere teneri tenerla tenerlas tenerle tenerli tenerlo tenerlos tenermi tenero tenersi tenerte
tenerti tenes tenet tenete tenets teneva tenevo tenez tenga tengano tengas tengo tengono tenha tenham tenhamos tenhas
tenho tenia tenias tenido teniendo tenis tenke tenker tenkt tenkte tenne tennene tenner tennero tennis tenor tens
tensa tense tensed tenses tenso tensor tensão tent tenta tentado tentait tentam tentamos tentando tentang tentano
tentant tentar tentaram tentare tentarem tentata tentato tentavam tente tentem tenten tentent tenter tentes tentez
tenth tenths tenti tento tentou tents tenté tentés tenu tenue tenues tenus tenuta tenutasi tenute tenuti tenuto
tenutosi tenéis tenés tenía tenían teologia teologica teologie teor teoretycznie teori teoria teorica teorik teosta
teot tepat tepatnya tepels terang terapi teratas terbaik terbakar terbalik terbang terbaru terbatas terbuat terbuka
terburuk terceiro tercera terceras terceros tercinta tercipta terem teremos teren terendah terenul terenuri teres
teresa teret terfi teria teriak teriam terikat teritoriale teritoriul terjatuh terjual terkena terkuat terlambat
terlibat terlihat terluka terme termed termen termeni termenii termenul termenului termes termica termina terminaba
terminada terminado terminados terminale terminali terminamos terminan terminando terminant terminara terminare
terminaría terminas terminate terminati terminato termine terminen terminent termines terminée terminées terminés
termină termo termos terms ternak ternera terni terno teror terra terre terreiro terremoto terreni terreno terres
terrorisme terroriste terry ters terse tersi tersisa tertawa tertinggal tertua terugkomst terugkomt terve tervek
tervet terza terze terzi terão terén területe területen területi területre területére tesa tese teses tesi tesis tesla
teso test testa testado testando testar testare testata testate testato teste tested testem testemunhas testemunhos
testen tester testers testes testet testi testify testily testimoniano testimoniato testing testo testování tests
testu testul testy testé testów testů teszed teszek teszem teszi teszik tesznek teszt tesão tetap tetapi tetas teto
tetszik tette tettek tettem tetti tetto teuer teure teurer tevens tewas texte texted textele texten texter textes
texting texto textos texts textu textul texty textů teóricas teóricos teşkil thanh thank thanked thanking thanks thans
that theater theaters theatre theatres thee theer theft theke thema theme themen themes then theologe theologie
therapeuten therapeutin there theresa theresia thern these thesen theses thet thick thicker thickest thicket thickets
thighinn thine thing things thingy think thinker thinking thinks thinly thinned thinner thinning thirsty thirty thiết
thiếu thiệu thoil thomas thong thongs thorn thorough thorsten though thrash thrashed thrashing thread threading
threads threat threats three threes thrice thrill thrive throes throned thrones throng thronged through throughout
throughput throws thrust thrusting thrusts thuaj thugs thuis thuiskomt thump thune thus thuyết thuốc thuộc thành tháng
thèid thème thèmes thèse thèses thông thương thường thắng thống tiada tian tiang ticas tick ticked ticker ticket
tickets ticking tickle tickled tickling ticks tickt tics tidak tidaklah tide tiden tidene tidenes tidens tider tides
tidings tidlige tidligt tidur tied tiedetä tiedossa tiedä tiedän tiefe tiefen tiefes tielle tiellä tieltä tiempo tien
tiende tienden tiene tienen tienes tieni tiens tient tier tierarten tiere tiered tieren tieres tiergarten tierna
tierra tierras tiers ties tiet tieten tietoa tietoja tietty tiettyjä tietyt tietä tietää tige tiger tigers tiges
tighinn tigre tigres tigri tijde tijdje tikelt tikkelt tikus tila tilaa tilaan tilan tilanteessa tilanteesta
tilanteissa tilassa tilata tilbudet tile tiled tiles tilid tiling till tillade tilladt tillatt tillen tillhör tillige
tillåta tilted tilting tilts timber timbers timbre timed timeless timelines timeliness timen timene timer timers times
timing timings timone timore timpul timpului timpuri timur timão timón tina tinan tindak tinder tine tineri tinerii
ting tinge tinged tingle tingled tingling tinha tinhas tinker tinkle tinkled tinkling tinned tins tint tinta tintas
tinted tinten tinto tints tios tipe tipografia tipografía tipos tipped tipping tips tipte tipul tipuri tira tiraba
tirada tirade tirado tirados tirait tirando tiranno tirano tiranos tirant tirare tirarem tirarse tiras tirata tirate
tirato tirava tire tired tireless tirem tiren tirent tirer tires tireur tiri tiring tiro tiros tirs tiré tirée tirées
tirés tirón tisztelt titan tithe tithes titian title titled titles tito titok titre titres titré tits tittade tittar
titulky tituly tiujn tiukka tiukkaa tiun tivemos tivermos tivesse tizenkét tiết tjene tjener tjent tjente tjäna tjänar
tjänst tlid tnezzayt toalla toallas toamnă toasted toaster toasting toasty toată toben tobie toca tocaba tocada tocado
tocam tocan tocando tocar tocaram tocaron tocará tocas tocava toccando toccano toccante toccare toccata toccate
toccato toccava tocha toco tocou todas todellinen todellisen todellista todes todistaa todos toed toekomst toen toeren
toes toestaan toget togliere togliermi togliersi togliete tohle toil toiled toiling toimeen toimesta toimet toimi
toimia toimii toimimaan toiminnassa toiminnasta toiminta toimintaa toimintaan toimintaansa toimintansa toimisi
toimittaa toimittaja toimiva toimivat toinen toinenkin toiseen toisella toiselle toiselta toisen toisena toisensa
toisessa toisesta toiset toisia toisiaan toisin toisinaan toista toistaa toisten toistensa toits toiture toivo toivoo
tokudi tokuudi tolgo tolka toll tolle tollen tolling tolls tolta tolte tolti tolto tomaba tomaban tomada tomadas
tomado tomados tomam tomamos toman tomando tomar tomara tomaram tomarem tomarla tomarme tomaron tomarse tomarte tomará
tomaría tomas tomaste tomate tomava tomba tombait tombant tombe tombes tombs tombée tombées tombés tome tomes tomhle
tomi tommi tomo tomography tomos tomou toms tomt tomto tomuto tona tonal tonalità tonalité tondo tone toned tonen
toner tones tong tongs toni tonic toniini toning tonini tonino tonn tonna tonne tonnen tonnes tonnin tonno tono tonos
tons tonta tontas tonto tontos tooling tools toon tooth tooting toots tope topic topical topics topla toplama toplamda
toplanan toplantı toplantısı toplantısında toplu topografia topografía topographical topography topology topp topped
toppen topping toppled toppling topraklarda topu topul topçu toque torace torch torche torched torches tore toren tori
torka torment torments torn torna tornado tornando tornano tornaram tornare tornarem tornata tornate tornato tornava
torne tornei tornem torneo torni tornino torno toro toros torpe torre torrent torrents torres torri torso torsten tort
torta tortas torte torten torti torto torts tortue tortues tortuga tortugas tortura torturas torture tortures toscano
tosi tosiaan tosin tossa tosta tosto tota totaal total totaled totalidad totalidade totaling totalità totalité
totalled totalling tote toten toter totes toting toto tots totta tottered totul touch touchait touchant touche touched
touchent touches touchée touchées touchés tough tour toured touring tourisme touriste tournait tournant tourne
tournent tournée tournées tournés tours tous tout touted touting touto touts touw toveren towed towels tower towers
towing towns toxic toxique toyed toying toți toții traba trabajado trabajadoras trabajadores trabajan trabajando
trabajas trabajen trabajos trabalhado trabalhadoras trabalhadores trabalham trabalhando trabalhar trabalharam
trabalharem trabalhava trabalhavam trabalhem trabas tracce tracción trace traced tracer traces traci tracing track
tracked tracker trackers tracking tracks tract tracteur tractor tractors tracts trad trade traded traden trader
traders trades tradesman tradesmen tradiciones tradición trading traditioneel traditionele tradizione tradizioni
tradição tradições tradiții traducidos traduire traduite traduits traduzido traduzidos traduzindo traduzione
traduzioni tradução traduções tradycyjne tradycyjnie trae traemos traen traes trafen trafi trafia trafic trafik trafić
trafiła traga tragam tragar trage tragen trago tragos trahit traiano traición traiga traigo trail trailed trailer
trailers trailing trails train trained trainees trainen trainer trainerin trainers trainierte training trains trait
traitait traitant traite traitent traiter traites traitor traitors traits traitée traitées traités traição traje
trajes trajo trak trakk tram trama tramas trame tramo tramos tramp trampa trampas tramped tramping trampled trampling
trams tranca trancar trance tranche tranches tranchée tranchées tranen trang tranh trank tranne tranny tranquilas
tranquility tranquillity tranquilos trans transa transar transazione transação transferido transferindo transformado
transformados transformando transformant transforme transforment transformée transformés transisi transit transizione
transição translational transmisi transmit transmite transmitidas transmitido transmitidos transmitindo transnational
transparantie transparence transparente transportado transportando transportant transporte transporter transporteur
transports transportée transportés trap trapo trapos trapped trapper trapping traps traria trarne trarre trará tras
trasa trascorre trascorse trase traseiras traseiros traseras traseros trasferire trasferirmi trasferirsi trasferita
trasferite trasferta trasformando trasformano trasformare trasformate trasformato trash trashed trashing trasie
trasportare trasportato trasse trasy trasę trat trata trataba tratada tratadas tratado tratados tratam tratamos
tratando tratar tratara tratarse trataría tratas tratate tratava trate traten trates trati trato tratos tratou
trattando trattano trattare trattarsi trattasi trattata trattate trattati trattato trattava tratto trattore trauben
traue trauen trauern traum trauma traut traute trava travada travado travaillait travaillant travaillent travailler
travailleur travar trave traveled traveler travelers traveling travelled traveller travellers travelling traversant
traverse traversent traversée travessa travessia travou trawl trawler trawling trays traza trazado trazar trazem
trazia trazida trazidas trazidos traça traço tração traîne traînée treabă treacă tread treading treads treasures
treasuries treat treaties treating treatise treatises treats treble trebui treci tree trees treffen treffern treft
trei treiben treinado treinando trekt trem trema tremble tremendo tremer trempe tren trend trending trends trene
trener trenes trenge trenger trengte treni trennen trennten trens trent trenta trente trentino trenul tres tresen
trest trestu tretas trete treten treue treuen treuer trevas trevor treze triad triads triagem trial trials tribal
tribalhar tribe tribes tribo tribos tribune tributarias tributarios tribute tricas trick tricked tricking trickle
trickled trickling tricks triebe trieben tried trier tries triffst trifft trifle trifled trigo trik trill trillen
trimise trimite trimită trims trin trink trinkst trinkt trinta trio tripe triple tripled triples triplets tripped
tripping trips trist tristi trite trivs trička tričko troca trocado trocados trocam trocamos trocando trocar trocaram
trocas trochu trocken trockenen trockener trocknen troco trocou troede troen troep troepen trof troia troll trolle
trolling trolls tromba trompe trompes trompée tron tronco troncos trong trono tronos troon tropa tropas trope tropfen
tropic tropical tropics troppe troque troquei tror troszkę trot trotar troth trots trouble trough troupe troupes trous
trousse trout trouvait trouvant trouve trouvent trouverais trouveras trouves trouvée trouvées trouvés trouw trouwde
trouwden trouwe trouwen trova trovai trovando trovano trovar trovarci trovare trovarli trovarmi trovarne trovarsi
trovarti trovassi trovata trovate trovati trovato trovava trovavo trove trovi trovo trozo trozos troço trpí truc truce
truck trucker truckers trucking trucks truco trucos trucs trudny true truede truer truest truet trugen trump trung
trunk trunks trusler truss trust trusting trusts truḥeḍ trwa tryck trycka trycker trygge trygt trying trykk trykke
tryout trzeba tráfico trágico trápí träffas träge trägst trägt träna tränar tränare träne träume träumte trådte træde
træder træer træet træne træner trænet trænger træt trætte trình trông trött trötta trøtt trương trường trưởng trắng
trọng trống tschechen tschechien tuaj tuan tuant tuanya tube tuber tubers tubes tubig tubing tubo tubos tubs tubuh
tucat tuch tuck tucker tucking tucks tudd tudja tudjam tudjuk tudják tudjátok tudna tudnak tudnál tudod tudok tudta
tudtak tudtam tudtok tudtuk tudtunk tudták tudtál tudunk tuen tuer tueur tueurs tuffo tuga tugas tugna tugs tuhan
tuhat tuhle tuhoaa tuhota tuig tuinen tujuh tukang tukea tukee tukemaan tukevat tuki tukka tulang tule tulee tuleen
tulemaan tulen tulet tuleva tulevaa tulevaisuudessa tulevaisuudesta tulevan tulevat tulevia tuli tulis tulkaa tulkinta
tulkita tulla tulleen tullen tullessa tuloa tuloja tulokseen tuloksen tulossa tulosta tumba tumbuh tumbuhan tumeur
tumeurs tumor tumore tumores tumori tumors tuna tunai tunduk tuned tuner tunes tunga tunge tunggu tungt tuning tunne
tunnelma tunnelmaa tunnin tunnissa tunnista tunnistaa tunnustaa tuntea tunteja tuntevat tunti tuntua tuntui tuntunut
tuntutan tuntuvat tuoda tuodaan tuohon tuoi tuolla tuollainen tuollaisia tuollaista tuolta tuomaan tuomas tuomio tuon
tuonne tuono tuore tuoretta tuossa tuosta tuota tuote tuotetta tuottaa tuottaja tuotteita turan turba turbio turbo
turc turca turco turcos turcs turde turen turer turha turhaa turhaan turhan turhia turime turin turisti turite turken
turkin turma turmas turn turned turner turneu turneul turneului turni turnier turning turno turnos turnul turu turul
turun turussa turvaa turísticas turísticos tusen tuskaa tuskin tusks tust tuta tutan tute tuteur tutki tutkia tutkii
tutkija tutkimaan tutkimukseen tutkimuksen tutkimuksessa tutkitaan tutmak tuto tutor tutore tutores tutorial tutoriel
tutors tutta tutte tuttu tuttua tuttuja tutubpoon tutuklu tutumpoon tutun tutuyor tuuli tuuri tuvieran tuvieron tuyos
tuyết tuyệt tuées tués tvang tveir tvingas tvorbu tvrdí twain twarzy twas twats tweak tweaking tween twerking twice
twigs twill twin twine twink twinkle twinkled twinkling twinks twinning twins twirl twist twister twit twitter twoje
txeddmeḍ txedmeḍ txemmeḍ tycka tycker tycks tyckte tyder tygodnia tyhjä tyhjää tyhmä tyhmää tying tyle tylko tylsä
tylsää typen typer typerä typerää types typing typographical typography typology typs typus tyranny tyres tyska tyske
tyskerne tyst tysta tyttö tyttöjä tyttöä tytön tytöt tyyliin tyypin työelämän työhön työn työnsä työntekijä
työntekijää työntekijöitä työpaikka työpaikkaa työssä työstä työt työtä työtön tyłu tábornok támogatja támogatást
támung társa társaságában táung täcker tähden tähdet tähti tähän täler tällainen tällaiseen tällaisen tällaisia
tällaista tällä tälläkin tältä tämäkin tämän tämänkin tänder tänka tänker tänkt tänkte tärkeintä tärkeitä tärkeä
tärkeänä tärkeää tässä tässäkin tästä täter täti tätä täydellinen täydellisen täyden täydet täyttä täyttää täytyy
täällä täälläkin täältä tåget tåler tænder tændt tænke tænker tænkt tænkte tèid técnicas técnicos téged télen
téléphone téléphonie téren téri térmico término tình tónica tópico tópicos tóxica tóxico tóxicos többek többiek töissä
töistä töitä tönen tönkre tören töreni töreninde történelem történet történetek történhet történt történtek törött
töten tørre tünel türden türe türen türke türken türkü türleri türlü türme türmen türü tüten tütün týden týdne těmito
těmto těší těžší tőlük tőlünk třídu tướng tưởng tượng tṛuḥeḍ uang ubicadas ubicados ubrania ucapan ucapkan uccide
uccidi uccido uccise uccisi ucciso ucide uciekł ucunda uczelni uczestnicy udaje udang udara udføre udine udite udito
udnytte udseende udtaget udtale udtrykke udvalg udvalgt udvalgte udvide udviklede události udělejte udělá uděláme
ufern uffici uffizi uger uges uguale ugyanazt ugyanezt uhka uhkaa uhrien uhrin uien uitbraak uitbrak uitdagen uite
uiteen uiten uitgaat uitgaven uitgegroeid uitgekomen uitgekozen uitgeven uitgevonden uitgezonden uitje uitkomst
uitkomt uitleg uitspraken uitspreken uitvoerig uitvoering uitweg uită uiți ujung ukahitaji ukataka ulama ulang ulaşım
ulike ulikt ulkoa ulkomailla ulkomailta ulkona ulkopuolella ulkopuolelta ultrapassado umano umbauen umbauten umbra
umbră umfang umgang umgeben umgebung umgehen umgehung umidade umide umidi umiera umile umili umple umrzeć umsehen
umulan umumnya umurnya umuulan umělec umění unable unahitaji unang unarmed unas unataka unavyofanya unayofanya
unbearable unbeatable unbending unblock unbound unbounded uncaught uncertainly uncertainty unchiul undang undated
undead under undergone underlie underlies underligt underline underlined underlines underlining undermine undermined
undermines undermining underserved undersøge undersøke undertone undeserved undgå undici undrer unduly unele unelte
unending unes unfit unfold unfounded unfunded unger ungern ungkapan ungraceful ungrateful unharmed unia unica
unicamente unici unico unicorn unică unidade unido unidos unies uniformed unify unii unimos unindo uninformed
uninjured uninsured union unire unirii unirse unirte unis unison unit unita unitamente unitate unite united unites
uniti unito units unity unități unității universal universeel universele universitare universitarias universitarios
universitate universitários universități universității universul unkind unlawful unlawfull unload unloaded unloading
unlock unloved unmarked unmasked unmoved unmut unnamed unpaid unread unreasonable unrecht unreserved unruly unsaid
unseasonable unser unsere unserem unseren unserer unsold unsound unsre unsur untamed untaught unter unterbinden
unterbrechen unterbrochen unterbunden unterdrücken untere unteren unterlagen unterlegen unterliegen unterliegt unterm
unternehmen unternehmens unternehmern unterricht unterscheiden unterschieden unterschreiben unterschrieben
unterstreichen unterstrichen unterstütze unterstützen unterstützte unterstützten untersuchen untersuchten unterwerfen
unterworfen untied until untold untried untuk untukku untukmu unturned unul unwanted unwind unwonted upang updated
upea upeaa upean upeita upload uploaded uploading uppe uppskatta uppåt upright uptight upturned uram uran urbaines
urbains urban urbano urcat urgence urgente uriaș urile urina urine urlando urlano urlato urmare urmat urmele urmeze
urmând urmărire următorii urna urnas urne urnes urodziny ursos urteile urteilte urusan urutan určit usaba usabas
usable usada usadas usado usados usagers usages usai usamos usando usano usaram usare usarla usarle usaría usata usate
usato usava usavam uscat usciamo uscire uscirne uscita uscite usciva useaan useable useamman useammin usean useasti
useat used useissa useita user usern users uses usher ushers usia usiamo usina usine usko uskoa uskoo uskotaan uslu
usos ustalić ustawa usted utahitaji utama utang utara utat utazás utcán utente utför utföra utføre utgitt utgör util
utile utili utilisait utilisant utilise utilisent utiliserez utiliseriez utilises utilisé utilisée utilisées utilisés
utilité utilizaba utilizada utilizadas utilizado utilizados utilizamos utilizando utilizare utilizate utilizatori
utilizatorii utilizzando utilizzano utilizzare utilizzata utilizzate utilizzato utnytte utom utrolig utstyret utstyrt
uttalande uttale utusan utvalget utvalgte utvecklas után utáni utøvere uudessa uudesta uusien uusiin uusin uusista
uutinen uutisen uutisia uutisten uvicorn uvidíme uvidíte uvést uyar uyarı uydu uygulamada uygulamanıza uygulamanızda
uygulaması uygulamasına uygulamasında uygulamaya uygulamayı uygulanan uygun uykuya uyum uyumak uyumlu uyuyor uzaktan
uzanan uzavřena uzman uznaje uznania uznanie uçak uçan učení učil učit uğruna używa używane używania używanie używany
vaadi vaag vaaleja vaara vaarallisia vaarallista vaarassa vaasa vaati vaatia vaatii vaca vacante vacanze vacas
vacation vacca vacche vacht vaciar vacina vacía vacías vader vadia vadias vadisi vafan vaga vagas vagin vagina vago
vagones vagos vagt vague vagues vagyok vagytok vagón vahva vahvaa vahvan vahvasti vahvisti vaidade vaiheessa
vaihtoehtoa vaihtoehtoja vaikea vaikeaa vaikka vaikuttaa vaikuttava vaikutuksesta vailla vaille vain vaina vais vaivaa
vajaa vajon vakava vakavaa vakavia vaken vaker vakfı vakit vakken vakker vakna vaknade vaknar vakre vakti vakıf vala
valaki valakinek valakit valakivel valami valamint valamire valamit valamivel vale valent vales valet valeur valeurs
valga valge valget valgt valgte valha vali valia valiant valico validade valide valides valido validée validées
valinnut valinta valiosas valiosos valise valises valisi valita valitaan valitse valitsee valittaa valk valko
valkoinen valkoisen valkoisia valkoista valla vallassa valle valles valli valmiina valmiita valmista valmistaa valo
valoa valokuvia valor valore valori valorile valour vals valsa valse valt valta valtaa valtaan valtava valtavan value
values valutare valve valves valvonta valía vamos vana vandaar vandet vandt vangt vanha vanhaa vanhaan vanhan vanhassa
vanhasta vanhempia vanille vanish vanished vankilaan vankilassa vanne vanno vano vant vanta vantaa vantaan vante vanto
vanwaar vapaa vapaan vapaana vapaata vapautta vapauttaa vapen vapeur vapor vapore vapour vara varaa varaan varalta
varas varassa varav varco vardır vare varen varenda varer vargas varia variabel variable variadas variado variados
variando variant variante variantu variantă variar varias varie vario varios various varit variée variées variés varje
varken varlık varma varmaa varmaan varme varmen varmistaa varmt varmış varnish varnished varones varor varsel varsin
varsinainen varsinaisen vart varten varv varía varón vară varım vasca vasche vasco vascos vase vasemmalla vasen vases
vasi vaso vasos vast vasta vastaa vastaan vastaava vastaavaa vastaavia vastata vastausta vaste vasten vastes vasti
vasto vastustaa vastuuta vatan vaten vatra vats vatten vaudrait vaulted vaunted vauva vauvan vaux vayas vazia vazias
vazão vašeho vašem vaším veal veamos vean veas veche vechi vecka veckan veckans vedano vede vedea vedem veden vedendo
vedení vedením vederci vedere vederle vederli vederlo vedermi vederne vedersi vederti vedervi vedessä vedete vedeva
vedi vediamo vedle vedlo vedo vedono vedrai vedranno vedrete vedrà vedrò veduta vedute vedä veel veem veen vega vegano
vegas vegen veggen vegne vehicles veia veias veicoli veicolo veidi veien veiga veilig veiling veille veils veini veins
veinte veist veit veivät vejce veje vejer vejle vejr veken vekis vekst vekt vela velas velat velde velden veldig vele
velen velení velger velgere velha velhas velho velka velkaa velkou velká velké velký vello velmi velo velük velünk
vemos vena venado venait venant venas vence vencedor vencedora vencedores vencendo vencer venceram venceu vencida
vencido vencidos venciendo venció venda vendait vendan vendant vende vendedor vendedora vendedores vendem vendendo
vender venderam vendere venderlo vendes vendeu vendeva vendi vendia vendiamo vendida vendidas vendido vendidos
vendiendo vendieron vending vendite vendió vendo vendono vendre vendría vends vendt vendte vendu vendue vendues vendus
venduta vendute venduti venduto vendé vendía vendían vene venea veneen venen venendo veneramur venerantur veneratur
venere venete veneti veneto venez venezolanas venezolanos venga vengan vengano vengas venger vengo vengono venha venho
venia veniamo venida venido venire venis venite veniva venligst venn venne venner venni venstre vent venta ventaja
ventajas ventana ventanas ventas vente vented venter ventes ventet venti venting vento ventre vents ventura venture
venu venue venues venus venuta venute venuti venuto venäjä venäjällä venäjältä venäjän venäjää venäläinen venäläisiä
venäläisten vené venía venían vera veraltet veranderd veranderden veranderen veranos verarbeiten veras verba verbaal
verbais verband verbanden verbandes verbands verbannen verbannt verbas verbaut verbe verben verbergen verbes verbi
verbieden verbiedt verbieten verbietet verbinden verbindt verbleiben verbo verbod verboden verbond verbonden verbood
verborgen verbos verbracht verbrand verbranden verbrannt verbrauchen verbraucht verbreken verbrennt verbringen
verbroken verbuchen verbunden verbündete verda verdacht verdachte verdachten verdadeiras verdadeiros verdaderas
verdaderos verdauen verde verdeeld verdeelt verdelen verdeling verden verderben verdes verdetto verdi verdichtet
verdien verdiene verdienen verdienst verdienste verdient verdiente verdienten verdiepen verdig verdiler verdim
verdiğimiz verdiğiniz verdomd verdomme verdorben verdragen verdrinken verdronken verdt verduren verdween verdwenen
vere verecek veredicto vereerd verehrt verehrte verehrung vereinbaren vereinbarten vereine vereinen vereinigen
vereinigten vereint vereinten vereisen vereist vereiste vereisten verelim verem veremos veren vererek vereyim
verfahren verfassen verfasst verfasste verfassten verfolge verfolgen verfolgte verfolgten verfügen verfügten verführen
verga vergangen vergas vergat verge vergeben vergehen verger vergessen vergesst vergeten vergeven vergi vergisst
vergist vergleich vergleichen verglich verglichen vergoed vergt vergütung verhaal verhaften verhalen verhalten
verhandeln verhandelt verhandlung verheven verhinderen verhindert verhogen verholpen verhoogd verhoor verhoren
verhuren verhütung veri verici verificado verificando verificano verificare verificate verificato verify verii verildi
verilecek veriler verileri verilmesi verily verimli verin verir veririm verirken verirler verirrt verirseniz
verirsiniz verisi veritabanına veritabanında verity veriyi veriyor veriyorlar veriyorum veriyoruz verið verka verkauf
verkaufe verkaufen verkaufte verkauften verkeerd verkehr verkehren verkehrt verkehrte verken verkennen verkko
verklagen verkocht verkommen verkon verkoop verkoopt verkopen verkossa verkozen verkracht verkündet verkündete verla
verlaagd verlaat verlag verlage verlagen verlages verlags verlang verlange verlangen verlangt verlangte verlangten
verlas verlass verlasse verlassen verlaten verlauf verlaufen verle verleden verleend verleende verlegen verleiden
verleihen verleiht verleihung verlenen verlengd verlengen verlesen verletzen verletzt verletzte verletzten verletzung
verlicht verlichte verlichten verlichting verlieben verliebt verliefen verlieh verliehen verlieren verlierst verliert
verlies verliest verliet verlieten verliezen verlinken verlinkt verlinkten verlo verlobt verlobung verloop verloopt
verloor verlopen verloren verlos verlost verlosung verloving vermag verme vermeden vermedi vermeende vermehren
vermehrt vermehrung vermeiden vermek vermeld vermelden vermelding vermelhas vermelhos vermengd vermes vermesi
vermessen vermeyen vermeyi vermeyin vermez vermi vermieden vermieten vermietet verminderen vermindert vermisse
vermissen vermisst vermisste vermissten vermist vermiste vermiyor vermiş vermoed vermoedde vermoeden vermogen vermoord
vermoordde vermoorde vermoorden vernehmen verneint vernetzt vernetzung vernice vernichten vernichtet vernommen vernos
vero veroja veronica veronika veroverd veroverde veroveren verpasse verpassen verpasst verpasste verplicht verplichte
verplichten verplichting verra verrai verrais verranno verras verrat verre verrebbe verrebbero verrecken verres
verricht verrichten verrà verrò vers versa versagen versagt versand versano versante versare versate versato versauen
versaut verscheen verschenen verschieben verschieden verschilt verschlafen verschmelzen verschoven verschrieben
verschwanden verschweigen verschwenden verschwendet verschwiegen verschwinden verschwindet verschwunden verse versehen
versenden versendet versenken versenkt versenyen verser versetzen versetzt versetzte versetzung versi versie versies
versin versinken version versiones versions versión verslaan verslaat verslagen versneld verso versorgen versos
versprechen verspreidde versprochen verst verstaan verstaat verstand verstappen verstecken versteckten verstehen
verstehst versteht versterken versterkt verstoppen verstoren verstreken verstrekken verstrekt versturen verstärken
verstärkten versuche versuchen versuchst versucht versuchte versuchten versus versão versée versées versés vert verta
vertaa vertalen verte vertebrae vertebrate verteilen verteilten verteld vertelden vertellen vertes vertice vertiefen
vertragen vertrages vertraglich vertrags vertrat vertraue vertrauen vertraulich vertraut vertraute vertrauten
vertreiben vertrekken vertrekt vertreten vertretern vertrieben vertrokken verträge verträgen verts vertus veruit
verursachen verursachten verurteilen verurteilten vervallen vervangen vervangt verve verveeld vervelen verven vervoerd
vervoeren vervuild vervuld vervullen verwacht verwachte verwachten verwachtte verwalten verwaltet verwandeln
verwandelt verwandlung verwarming verwarren verwarring verwehrt verweilen verweis verweisen verwenden verwendet
verwendete verwendeten verwennen verwerken verwerkt verwerven verwezen verwies verwiesen verwijst verwijt verwijten
verwijzen verwirrt verwond verwoord verworpen verworven verwundert verwundet verwundeten verwöhnen verzamelen verzehr
verzehrt verzeihen verzeihung verzen verzenden verzerrt verzi verzichten verzichtet verziehen verziert verzinnen
verzocht verzonden verzonnen verzorgen verão vería verían verð verða veröffentlichen veröffentlichten vesicles vest
veste vested vesten vestes vesti vestida vestidas vestido vestidos vestiges vestindo vestire vestite vestiário vests
vestuário veszek veszi vesznek vete veteen veto vetoa vetoed vetri vetro vets vette vetted vetting vettura vetture
vették vettünk veuille veuillez veuve veux vezet vezeti vezetni vezette vezető vezetői vezi vezmu veía veíamos veían
večera veți vhodná vhodné vhodný viado viagem viagens viaggiando viaggiano viaggiato viaja viajado viajando viajes
vial viale viales vialidad vials viam viana vias viata viață vibes vibra vibrer vice vicente vices vico vicoli vicolo
victor victoria victoriei victorii vida vidar vidas vide videa viden video videoita videosu videota videoyu vider
videre videro vides vidit vidner vidro vids vidst vidste vidt vidéo vidí vidíme vidíte vidět viedä viedään vieil
vieille vieja viejas vielen vieler vielh vielle vielä viemos viemään viena viendo viene vienes vieni viens vient
vienti viento vier viera vieraita vieram vieras vieren vierer vieressä vierestä viernes viersen vierteln vierten
vierter vies viesse viesti vieta vietare vietate vietti vieux vievät views vieți vieții vigas vige vigente vigenti
vigevano vigia vigila vigilance vigilante vigile vigilia vigne vigneti vigor vigtigt vigência vihaa vihaan vihdoin
vihreä vihreää viidestä viikkoa viikkoja viikonloppuna viimeinen viimeiseen viimeisen viimeisin viisi viitsi vika
vikaa vikten viktor viktoria vila vilas vilde vildt vile vilja vilje vilka vilken villa villagers villages villainy
villany ville villen villkor világ világa világban világos világot világra vilão vilões vimos vina vinca vince vincere
vinci vinco vincoli vincolo vincono vinculadas vinculados vinda vindas vinde vinden vinder vinderen vindo vindos
vindue vinduer vine vines vingt vinha vinhas vinho vinhos vini viniendo viniera vinieron vinile vinna vinne vinner
vinnere vinneren vinnur vino vinos vins vinse vinst vinster vint vinta vinte vinter vinteren vinti vinto vinul vinur
viola violado violador violadores violando violar violare violato viole violence violences violent violenta violentas
violente violentes violentos violents violenza violenze violer violet violeta violette violeur violeurs viols violão
violé violée violó vira virado virage virages virais viral virale virales virallinen virallisen viram virando virar
vire virem virement virent virer virgem virgens virheitä viria viriam viril virka virke virossa virta virtaa virtueel
virtuele virág virágok virão virée visa visage visages visai visait visam visando visant visar visas visat vise viseli
viselkedést viselkedését viselni visent viser vises viseur visi visie visita visitado visitamos visitando visitano
visitare visitas visitate visitato visite visiter visiteur visitó visiva visive viską viso visor viss vissa visse
visst visste vist vista vistas viste visten visti visto visueel visuele visul viszont visão visée visées visés visões
visą vita vitais vital vitale vitales vitali vitalidad vitals vitaux vite viti vitne vitner vito vitoria vitraux vitre
vitres vits vitsi vitt vitto vittoria vittu viuda viudas viva vivait vivan vivant vivantes vivants vivar vivas vive
vivem vivement vivemos vivent vivente viventi viver viveram viverci vivere viverem vives vivete vivevano vivia viviam
vivida viviendo viviera vivieron vivimos vivos vivre vivres vivía vivían vixit vizepräsidenten vizinhas vizinhos
vizsgálat vizsgálata vièlh viúva viņai viņi vjeter vjetër vlak vlakke vlakken vlakte vlaku vlaky vlastnosti vlasy
vlasů vlees vlek vliegt vliet vlna vloeien vloek vloer vlogen vloot vlot vlucht vluchten vluchtten vláda vládou vládu
voando voar vocación vocale vocation vocazione vocação voces voci vodní vodou vodu voeden voedt voeg voegde voegen
voegt voel voelde voelden voelen voelt voer voerde voerden voeren voert voet voeten vogel vogliamo vogliano vogliono
vogt voia voice voiced voices voida voidaan voided voids voie voient voies voigt voihan voiko voila voile voiles
voilier voilée voilées voima voimaa voimaan voiman voimassa voimat voimia voimin voir voire voirie vois voisiko voisin
voisines voisins voisitko voita voitko voitot voittaa voittaja voitto voittoa voivat vokse voksede voksen voksende
vokser voksne vokste vola volador volando volano volant volante volantes volanti volants volar volare volat volata
volato volba vole volent voler volere volersi volessi volet volete volets voleur voleurs volevamo volevano volgare
volgde volgden volgen volgens volgers volgt voli volit volken volker volkes volks volle voller volles volna volná
volně volo volpe volpi vols volt volta voltada voltadas voltado voltados voltaire voltam voltamos voltando voltar
voltaram voltare voltarem voltas voltava volte voltei voltem volti volto voltou volts volume volumi voluntari
voluntarias voluntarios voluntários voluta volute voluti voluto volvamos volvemos volverme volverse volverte volvieron
volvimos volá volé volée volées volés voló vomir vonalon vonat vonden vooraan vooral voordeel voordeur voordien
voordoen voorgenomen voorkeur voorkomen voorkomt voorman voorspel voorspelde voorspellen voorspelling voorspellingen
voorspelt voorstel voorstelde voorstellen voorstelling voorstellingen voorstelt voort voortaan voorts vooruit voorval
voorzien voorziet voos voou voran vorarbeiten vorba vorbea vorbehalten vore voren vorfahren vorführen vorführung
vorgaben vorgang vorgeben vorgehen vorgekommen vorgenommen vorgänge vorhaben vorhang vorhänge vorkommen vorlagen
vorlegen vorlesen vorletzte vorletzten vorlieben vorliegen vormden vormen vormt vorn vornehmen vorort vorrang vorranno
vorrebbe vorrebbero vorreste vorschlagen vorschreiben vorsicht vorsieht vorst vorstand vorstandes vorstands vorstelle
vorstellen vortag vorte vorteilen vortrag vortragen vorträge vorträgen vorurteilen vorweisen vorwort vorziehen
vosotras vosotros vota votación votada votado votam votando votano votante votantes votanti votants votar votaram
votare votata votate votati votato votazione votação vote voted votem votent voter voters votes votez voti voting voto
votos votou votre votée voudrais voudrait voudrez voulait voulant voulez vouliez voulions voulons vowed vowing voyager
voyageur voyaient voyait voyant voyez voyons voyous vozidel voûte voûtes vraag vracht vraie vraies vrais vraždu vrede
vreemde vrees vreesde vreest vrei vrezen vreți vrienden vriendin vries vroeg vroegen vrouwen vrucht vruchten vstoupil
vstoupit vstup vstupní vstupu vstřelil vuela vuelan vuelo vuelta vueltas vuelto vuelva vuelvan vuelvas vuelvo vuestras
vuestros vuodelta vuodessa vuodesta vuoi vuokra vuoksi vuole vuosi vuosia vuosikymmenen vuosina vuota vuote vuoti
vuotiaita vuotiasta vuoto vuotta vurdere vurdu vybral vybrat vybírat vydal vydala vydali vyhnout vyjít vynikající
vypadal vypnout vytváření vzadu vzal vzala vzali vznikly vzniká vzoru vàser vádat vágni váhu válassz válasz válce
válka válku vállalat vállalt válnak válni váltak változat változatlan várja várjuk várják várnak várni várom városa
városba városban várost városában várt vártam várunk vânt väcka väder vädret vägar vägen väger väggen vägrar väittää
väkivalta väkivaltaa väldigt välein väliin välillä välinen välisen välissä välistä välit välittää välitä väliä välja
väljer välttää vända vände vänder vänner vänster vänta värd värda värde värdet värit väriä värld världen värme värmen
värre värst värt väska väskan väst västra växa växer växter vääriä väärä väärän väärää väärään våben vågne våken våkne
våpen våra vårat vården våren vårt væggen vækker vækst vælge vælger være været værker værket værre vært væsen védelem
védelme védett vége véget végez végeztek végi végig végre végzett végzi végéig végére véleményt véres vérifie véser
víru vízbe vízben vôtre východ východu východě výhodou výhodu výhru výjimkou výrobky výrobků výrobu výroby výročí
výstava výstavbu výstavby výstavu výstavy výstup výšce výše včera věci vědci vědět větru většinou většinu věříme všeho
všem všemu vším waage waaraan waardoor waarheden waarvan waarvoor wabah wacana wach wache wachen wachsen wachten wack
wacker wadah wade waded wading wafer wafers waffeln waffen wafted wage waged wagen wagens wager wagering wagers wages
wagged wagging waggon waggons wagi waging wagner wagon wagons wags wagte wahana wahlen wahre wahren wailed wailing
waist waistband waisted wait waited waiter waiters waiting waits waive waived waiver waivers waiving wajah wajahmu
waked waken wakened wakes waking wakker waktumu waldes wale wales walked walker walkers walki walking walks walled
walls walten walter walther walzer wand wandeln wandelt wanden wander wandered wandering wandern wanders wandert
wanderte wands waned wange wangen waning wanker wankers wanne wanted wanting wants wapen wapens waray warden warder
wards ware waren wares warfen warga warily warm warme warmed warmen warmer warming warmly warms warmte warna warned
warnen warner warning warns warnt warnte warnung warp warped warping warre warren warring wars warships warst wart
warte warten wartest wartet warts wartung warum wary waráy wasch waschen washed washers washes washing wasit wasser
wast wastage wasted wastes wasting wasze watchers watches watchman watchmen water watered watering waters wattage
watts wave waved waver wavered wavering waves waving waxed waxen waxes waxing wayes ways ważny wchodzi wchodzić
wchodzą wchodzę weak weaken weakened weaker weaned weaning wearer wearers wearily wearing wears weary weave weaver
weavers weaves weaving weber webseite website wecken wedded wedden wedding wedel weder wedged weeding weeds weegt
weekend weekje weeks weeping weeps weer weert weet weetje wege wegen wegens wehe wehen wehren wehrt wehrte weht
weibchen weiber weich weiche weichen weicher weide weiden weier weigerden weigeren weighed weighing weighs weight
weighted weighting weights weihe weiher weile weiler weilheim wein weine weinen weinheim weint weinte weis weise
weisen weiser weist weit weite weiten weiter weitergeben weitergehen weizen weißt weken wekken wekker wekt welch
welche welchen welcher welches weld welded welding welds welle welled wellen welling wells welpen welsh welt welten
weltkrieges weltkriegs weltliche weltlichen wench wende wenden wendet wending wenen wennen wens wensen wenst went
werbe werben werbung werde werden werder werdet were weren werfe werfen werft werke werken werkend werker werkes
werking werks werkt werkte werkten werner werpen werpt wert werte werten wertes wertet wertung werven wesel wesen
weser wespen wessen west weste westelijke westen western westliche westlichen weszła weten wette wettelijk wettelijke
wetten wetter wever wewnętrzne wezen wezens wezwanie weźmie whack whale whalers whales what wheat wheeling wheezing
whenever where whereas wheres wherever whet while whiles whilest whilst whimper whimpering whims whine whines whining
whipping whips whirling whirring whiskers whiskey whisky whisper whispering whispers whist whistle whit white whiter
whites whither whiting whittle whoever whole wholly whomever whomsoever whooping whopping whore whores whorls whose
whosoever wich wicked wicks wide widely wideo wider widersprach widersprechen widersprochen widerspruch widerstandes
widerstands widest widoczne widocznie widow widows width widział widziałam widziałem widzieli widzieć widzą widząc
widzę widźeć wiecznie wieder wiederhole wiederholen wiederholte wiederholten wiedza wiedział wiedziała wiedziałam
wiedziałem wiedzieli wiedzieć wiedzy wiedzą wiedząc wiedzę wiege wiegen wieku wieków wield wielded wielding wields
wiele wielen wielka wielki wielu wien wiener wiens wierze wierzy wierzą wierzę wies wiese wiesen wiesz wight wigs
wijde wijden wijf wijken wijkt wijlen wijnen wijst wijten wijven wijze wijzen wild wilde wilden wilder wildest wildly
wilds wile wiles wilfried wilful wilfully wille willen willful willfully wills willy wily wina wince winced winch
wincing winde winded windeln winden winder winding window windows winds wine winery wines winfried wing winged winger
wingers wings winked winken winking winkle winks winkt winnen winner winners winning winny wins winst winsten wint
winter winters wintry winy winzer winzig winzige winzigen wioski wiosna wiped wiper wipers wipes wiping wirbt wired
wires wirfst wirft wiring wirke wirken wirkt wirkte wirkten wirren wirst wirt wisely wiser wisest wishful wisse wissen
wisst wist wisten wistful witch with withal withall withdraw withdrew wither withheld withhold wits witwe witze witzig
witzige wives wiźeś wkład wniosek wnioski woda wody wodą woede woerden woest woher wohin wohle wohn wohne wohnen
wohnst wohnt wohnte wohnten wojna wojny wojną woken wola wold wolf wolff woli wolke wolken wolle wollen wollte wollten
wolltest wolltet wolna wolne wolnego wolnej wolny wolnych wolnym wolven wolą women wonden wondered wondering wonen
wonnen wood wooded wooden woods wooed woolen woollen woolly woonden woord woorden word worded worden wordende wording
words wordt wore worin worked workhorse workhouse working works world worlds worms worse worshiped worshipers
worshiping worshipped worshippers worshipping worships worst wort worten would wound woven wpadł wprost wprowadzenia
wprowadzenie wprowadzić wpływa wraak wracking wraith wrak wrap wrath wraz wrażenia wrażenie wreak wreaking wreath
wreck wrecking wrede wreed wrench wrenched wrest wrested wrestled wretch wretched wright wring wrinkle wrist wristband
writ write writer writers writes writhe writhing writing wroga wschodzie wskazuje wskazują wspólne wspólnie wszedł
wszystko wtorek wunde wunden wundere wundern wurde wurden wusstest wyborcza wyborcze wyborczy wyborców wybory wyborów
wybrane wybranych wybrać wybrał wychodzi wychodzić wychodzą wychodzę wyciągnąć wydaje wydania wydanie wygląd wyglądam
wygrać wygrał wygrała wyjazd wyjechać wykonana wykonane wykonania wykonanie wykonywania wykorzystanie wykorzystywane
wymagania wymiany wymienić wynosi wypada wyraz wyraźnie wyrok wyroku wysoki wystawa występ wysyła wyszedł wyszła
wysłać wysłał wyzwanie wyłącznie wzajemnie wzrok wzrost wähle wählen wählern wählte wählten wäre wären wärme wärst
wünsche wünschen wünschte wünschten würde würden würdest würdet wüsste wüssten wüste wüsten wědźeć wěźeś władza władze
władzy właściciela właściwie włoski włączyć xeddmeɣ xedmeɣ xiii xvii xviii xxii xxiii xxiv yaban yabancı yada yakaladı
yakalandı yakin yakni yakın yakında yakından yakınlarında yakınında yakıt yalan yalancı yalçın yana yanan yandan
yangın yanlış yanı yanıma yanımda yanımızda yanına yanında yanındaki yanından yanınızda yanıt yanıyor yapabilir
yapabilirsiniz yapacak yapacağım yapacağımız yapacağını yapalım yapamaz yapan yapanlar yapar yaparak yaparken yaparlar
yaparsın yaparsınız yaparım yapay yapayım yapma yapmadan yapmak yapmaktadır yapmaktan yapmam yapman yapmanın yapmanız
yapması yapmasını yapmaya yapmayı yapmayın yapmaz yapmış yapmıştı yapmıştır yaprak yapsın yaptı yaptık yaptılar yaptım
yaptın yaptınız yaptığı yaptığımız yaptığını yaptığınız yapı yapılabilir yapılacak yapılan yapılar yapıldı yapıldığı
yapılması yapılmış yapılmıştır yapılır yapılıyor yapım yapımı yapın yapının yapıp yapısı yapıya yapıyor yapıyorsun
yapıyorum yapıyoruz yaralandı yaralı yaramaz yarar yararlı yaratan yards yardım yardıma yardımcı yardımı yargı yarn
yarns yarı yarım yarın yarına yarısı yarısında yarısını yarış yarışma yarışması yarışı yasa yasak yasal yasası yasağı
yatak yatan yatay yatdım yatmaya yatırım yatıyor yawns yaygın yayımlanan yayımlandı yayın yayına yayınladı yayınlanan
yayınlandı yayınları yayını yazabilirsiniz yazan yazar yazarlar yazarsınız yazarı yazarın yazdı yazdım yazdığı yazma
yazmak yazmanız yazmaya yazmış yazı yazık yazılan yazılar yazıları yazılmış yazılı yazılır yazım yazın yazıp yazısı
yazıyor yazıyorum yağlı yağı yaşa yaşadı yaşadım yaşadığı yaşadığımız yaşadığını yaşama yaşamak yaşamayı yaşamı
yaşamın yaşamış yaşanan yaşandı yaşar yaşasın yaşayan yaşlı yaşta yaşı yaşına yaşında yaşındayım yaşıyor ydre yearling
yearn yearning yebda yebɣa yedda yedek yedi yedim yedrimen yelhan yellan yelled yelling yelped yelping yemek yemen
yemin yemiş yeni yeniden yenileme yerde yerden yere yerel yeri yerim yerin yerinde yerine yerini yerle yerlerde
yerlere yerli yetenek yeter yeterli yetki yetkili yetmez yhdessä yhdestä yhdysvalloissa yhteen yhteinen yhteisen
yhteisiä yhteiskunta yhteiskuntaa yhteistyössä yhteistyötä yhteistä yhtyeen yidrimen yiyecek yksi yksikään yksilön
yksinkertaista yksittäinen yksityinen yksityisen yleinen yleisen yleisiä yleistä yliopiston yliopistoon yliopistossa
yliopistosta ylitti ylittää yllä yllättävä yllättävää yllättää ympäristön yoghurt yogurt yokmuş yoksun yola yolcu
yolda yolla yollar yolları yolu yolun yoluna yolunda yolunu yorkin yorum yorumu yours yous yoxa yoxsa yritti yrittäjä
yrittäjät yrittävät yrittää yrityksille yrityksistä ystäviä ystävä ytre yukarıda yurdu yöllä yönde yöne yönetici
yönetimi yönetiminde yönetimine yönetmen yönlü yönü yönünde yüklü yükü yürütme yürüyen yüzde yüzden yüze yüzlü yüzme
yüzyılda yüzü yüzüme yüzün yüzünde yüzüne yüzünü yıla yılan yılda yıldan yıldızı yıllara yıllarca yıllarda yıllarında
yılına yılında zaaien zabawa zabawne zabawy zabiera zabija zabili zabrać zabrał zabít zabývá zachodnie zachodzie
zacznie zaczną zadania zadanie zadaniem zadań zaden zadní zagen zagrać zahle zahlst zahlt zahlte zahraniční zahraničí
zainteresowania zainteresowanie zajistit zajištění zajišťuje zajímá zajít zająć zajęcia zajęć zakaz zake zaken zakje
zakken zakte zalen zależy zamach zamachu zamana zamanda zamandır zamanla zamanlarda zamanlı zamanı zamanında zamian
zamierza zamieszkania zampa zaměstnance zaměstnanec zanger zangeres zangers zapach zapomniałem zappa zararlı zararı
zaraz zarazem zaren zarobić zarten zarządzania zarządzanie zastosowanie zaten zato zauważyłem zawiera zawierają
začneme začnou začnu założenia założona założyć założył zařízení zbavit zbiera zbierać zbývá zdaje zdania zdanie
zdaniem zdarzenia zdarzyło zdjęcia zdjęciach zdjęcie zdjęć zdrowe zdrowia zdrowie zealots zealous zecken zeer zegel
zegen zeggen zehen zehn zeichen zeichne zeichnen zeiden zeig zeige zeigen zeigst zeigt zeigte zeigten zeil zeile
zeilen zeit zeiten zeitreise zeitweise zeker zeki zelden zelle zellen zelt zelte zelten zemí zenbait zenden zerbait
zerbrechen zerbrochen zeroes zeros zerstören zerstörten zetel zetels zeuge zeugs zeus zeven zevende zevkli zginął
zgoda zgodne zgodnie zgody zgodę zicem ziege ziegen ziehe ziehen ziehst zieht zieke zieken ziekte ziekten ziel ziele
zielen zielt ziemie zijde zijn zijnde zijne zima zimu zingen zinken zinnen zirveye zitiere zitieren zitiert zitierte
zitierten ziyaret ziyarete ziyareti zjeść zjistil zjistila zjistili zjistit zjistí zjistíte zjištění zkoušku zkuste
zkušenosti zlato zmian zmieni zmienia zmieniać zmienić zmienił zmieniła změnou změnu změní znaczenie znacznie znaczy
znajdzie znajdą znají znają znaki znaky znalazłam znalazłem znamo znamy znana znane znanego znany znanych znanym znao
znati znači značku značky známe známky znáte znění zobaczy zobaczymy zobaczyłem zodat zoeken zoekt zoen zoenen zoet
zogen zolder zomaar zomer zonde zonden zonder zone zonen zongen zooms zoontje zoos zorgden zorgen zorla zorlu zostają
zostali zostaną zostałem zostały zouden zover zowaar zowat zprávu zranění zrobić zrobił zrobiłam zrobiłem zrobiłeś
zrušení ztrátu zucht zuckt zuen zuge zugeben zugehen zugute zuhören zuiden zuigen zuilen zulegen zulke zullen zunge
zurückgeben zurückgehen zurückgekommen zurückgenommen zusage zuschauen zuschauern zusehen zutage zuten zvláště zwaaien
zwaait zwaar zwager zwakke zwakte zwane zwanger zwany zware zwarte zwecken zweden zweer zweet zweier zweifel zweifle
zweig zweige zweigen zweit zweite zweiten zweitens zweiter zweites zweren zwerg zwerge zweten zweven zwevende zwijgen
zwiększenie zwyczajnie záběry zádech zájem základnu základny základy základě zámek zámku záměr západ západní západních
západu západě zápasu zárta zárva zásadní zásadně zásady zásah závisí závěr závěru zähle zählen zählte zählten zähne
zähnen zäune złożyć złożył zřízení ácido água águas águia állam állami államok állapot állapota állapotban állat
állati állatok állnak állok állt álltak álltam állunk állva állás állást állítja álom ártico ático âges âgées âgés
älkää älskade älter ämter ända ändere änderte ändra ändras ärger ärmer även ääneen äänen äänestä äänestää ääniä ääntä
äärellä åben åbent åbne åbnet åpen åpent åpne åpnet årets årig årige åring årlig årlige årsagen ældre ændre ændrer
çakır çalar çaldı çalış çalışacak çalışan çalışarak çalışma çalışmalar çalışmaları çalışmalarına çalışmalarında
çalışması çalışmaya çalışmayı çalıştıran çalıştırın çalışın çalışır çalışıyor çalışıyorum çanta çatı çatışma çağrı
çekici çekilmiş çekim çekimi çekiyor çekmiş çekti çektim çelik çetin çeviren çeviri çevresi çevresinde çizgi çocuk
çocuklara çocuklarımız çocuklarına çocuklarının çocuğunu çoklu çoğunlukla çözüm çözümü çıkacak çıkar çıkarak çıkaran
çıkardı çıkarma çıkarmak çıkarmaya çıkarsa çıkarılan çıkarıldı çıkarın çıkarıp çıkarır çıkarıyor çıkma çıkmadı çıkması
çıkmaya çıkmaz çıkmış çıksın çıktığında çıkın çıkıyor çıkış çıkışı çınar écarte écarts échanger échappe échappée
écharpe éclaire éclairs éclairée éclairés école économie économies économiste écoule écouler écoulé écoulée écoutait
écoutant écoute écoutent écouter écouté écrase écrire écris écrite écrites écrits écrivains écrivait écrivant écrivent
écrivit écroule éditer éditeur édité égale église égoïsme égoïste élaborée élection élections électrons élek élen élet
életbe életben élete életem életemben életre életében életének életüket életünk élevait élevant élever éleveur élevées
élevés élimine éliminée élire élite éljen élnek éloigne éloignée éloignées éloignés éltek élvezni élégance élégante
élünk émise ének énerve énervée épais épica épices épico épines époque épuisée épület épületben épült équilibre
équilibrée équipe équiper équipes équipé équipée équipées équipés équité équivalence équivalente équivalentes
équivalents érdekel érdekelne érdekelt érdekes érdemes érection érezte érhető érkeznek érkeztek érnek érte érted értek
értelme értem érthető értünk érzed érzek érzelmi érzem észak établies établis établissant établissent étage étages
étais était étale étaler étant étape étapes état états éteindre ételek étendant étendent étendre étendue étendues
ética éticas ético éticos étnica étnicas étnico étnicos étoffe étonne étonnée étouffe étranger étrangers étranges
étroites étroits étude étudiant étudiantes étudiants étudie étudient étudiée étudiées étudiés évacuation évacuer
évacué évaluation évalue évaluer évalué évaluée évben években éven évesen évidement évidemment évidence évident
évidente évidentes évier évite évitent éviter évité évoluant évolue évoluent évoluer évolué évoquant évoque évoquent
évoquer évoqué évoquée évoqués évre êtes êtres índico índio írja írják írtak írták ítélet împărat încearcă încercat
închide închise închisă înregistrare înregistrate înscrie înscrise însemna însemnat întinde întins întreabă întreagă
întrebări întregi întregii întreținători întreținătorii întâlnire întâlniri întâmplare învins înțeleagă înțelege
óptica óptico óptima óptimo órfãos órgão órgãos óriás órában óráig órája órára órás ótica ótima ödeme ödüllü ödülü
ögonen ökade ökning ölen ölmek ölüm ölümden ölüme ölümü ölümün ölür ölüyor ölüyorum ömrü ömür önceki öncesi öncesinde
öncesine önder önem önemi önemli önünde önünden önüne örgütü örnek örnekle örnekte öronen örtlich örtliche örtlichen
örökre östlich östliche östlichen öteki ötesi ötesinde ötven ötürü över övre özel özen özgün özgür özlem özlüyorum
özür öğlen öğren öğrenci öğrencilere öğrencisi öğrendi öğrendim öğrenim öğrenme öğrenmek öğretim öğretmen ødelagde
økte ørene øvre øyne øynene újból úkoly únoru ústí ústřední útoky územní území übel üben über überall überfall
übergeben übergehen überleben überlebt überlebte überlege überlegen überlegt überlegte übernahme übernahmen übernehme
übernehmen überschriften überschritten übersehen übersicht überstanden überstehen überstunden übertreffen übertreiben
übertrieben übertroffen überweisen überwiegen überwiesen überwinden überwunden überzeugen üble üblen ücreti ücretli
ügyben ügyében üles ülkede ülkelerde ülkelere ülkelerinde ülkemizde ülkemize ülkenin ülkesi ülkesinde ülkeye ülkeyi
üniversitede üniversitesi üniversitesinde üniversiteye ünnepi üreten üretimi üste üstüme üstünde üstünden üstüne ütles
üzenet üzerinde üzerinden üzerine üzücü üçüncü þone þonne þætti þótti časem čeká černá černé července česká četla
člena čtyři čtyřmi části částku čísel ırak ładne ładnie łącznie őrület őrült řadou řadu řekla řekli řekni řeknou řeknu
řeky řádu říkáme říkáte śmieci śmierci śmierć śmieszne średnia środka świat świata światem światła świecie świetle
świetne świetnie świąt şahıs şaka şanslı şansı şansını şarkı şarkıcı şarkısı şarkıyı şehir şehirler şehit şehri
şehrinde şekil şekli şeklinde şeması şemasına şemasında şemayı şeye şeyi şeyin şeylere şiddetle şiddetli şifre şifreli
şifresi şifreyi şimdiye şirin şişe şuan şurada şuraya şükrü şükür şüpheli šalia šalta šaty škoda škody škola škole
školení školní školu školy špatně šéfa żaden żadne ženou ženu žijeme žili životu životě žádná žádá șanse șase școli
școlii știam știe știi știm știri știu știți ține țintă țină țări țării əlində əslində άγιο άγρια άδειας άδειες άκουσα
άλλες άλλοι άλλον άλλος άλλους άλλων άρωμα έβαλα έβαλαν έβαλε έβγαλα έβγαλε έγγραφα έμειναν έμεινε ένταση έπεσε έφερε
έφυγε αέρα αγία αγώνα αδελφός αδερφές αδερφός αιώνα ακούει ακούσει ακούστε ακούσω ακούτε ακούω ανέρχεται ανατολή
ανοίγετε ανοίξετε ανοικτού ανοικτό ανοικτός ανοιχτού ανοιχτό ανοιχτός αντιμετωπίζετε αντιμετωπίσετε απαιτήσεις
απαντήσεις απασχολημένες απασχολημένος απλά απλό αρκετή αστέρα αστέρια αυτά αυτές αυτί αυτιά αυτοί αυτόν αυτός αυτών
αφήστε βάζει βάζουμε βάζουν βάζω βάλε βάλει βάλετε βάλουμε βάλουν βάλτε βάλω βήματα βαθιά βαρέθηκα βγάζει βγάζουν
βγάζω βγάλει βγάλουμε βγάλουν βγάλω βουλή βρεθεί γενιά γενικά γλυκά γλυκιά γνώρισα γράφετε γράψετε δέρμα δίκαιο δίκιο
δείτε δημιουργήσετε δημιουργήστε διάβασα διάολο διάστημα διαβάστε διαφορά δικά δικιά δουν δράση δώσε δώσετε δώστε
είμαι είναι είσαι είστε είτε ελαφρά ενδιαφέρον εξετάσετε εξετάστε εξηγήσετε εξηγήστε επέστρεψε επιστρέψει επιστρέψουν
εργασίας εργασίες εταιρία εταιρεία εταιρείας εταιρείες θέλατε θέλετε θέμα θαύμα θαύματα θείο θυμάτων θύμα θύματα
κάνατε κάνε κάνετε κάντε κάρτα κάτω καθένας καινούργια καινούργιο καινούρια καινούριο κακά καλεί κανένας κανόνα κατά
κατάφερε καταφέρει κλάδο κοινότητάς κοινότητας κοινότητες κολέγιο κορυφή κρέμα κρατά κρεβάτι κόλπο κόπο κύριοι λίγα
μάσκα μάτια μέλος μέρα μέρος μέτρα μέτρο μίλια μαγικό μακριά μεριά μερικά μετά μισθό μισό μοιάζει μπάλα μπορούμε
μπορούσε μπουν νέος νέους νεαρό νεκρό νεκρών νερά νερού νερό νιώθει νιώθω νόμισμα νότια νότιο ξεκινήσετε ξεκινήστε
οποιαδήποτε οποιοδήποτε οποιονδήποτε πάγκο πάει πάθει πάλι πάντα πάνω πάρα πάρε πάρει πάρετε πάρτε πάσα πάτε πέθανε
πέρα πέρασα πέρασμα πέρσι πέρυσι πέτρα πίσω πίτα πίτσα παιδιά παιδικά παιδιού παιδιών παλιά παλιό παράσταση παράταση
πατρίδα πείτε πελάτη περάσετε περιβάλλον πετάει πετάξει πηγή πιάτα πιάτο πλάι πλάτη πορεία ποταμού πούμε πράγμα
πράγματα προβολή προγραμματιστές προγραμματιστής προκάλεσε προκαλεί προσβολή προστατεύει προσφορά πρόκληση πρόσκληση
πόνο πόσο σήμα σήμαινε σήματα σημαία σημασία σκάσε σπάσει σταματήστε στείλε στενά στόχος στόχους συγγνώμη συγνώμη
συμβολή συμβουλή συνεισφοράς συνεισφορές συνεργάτες συνεργάτης συντηρητές συντηρητής σχήμα σύμβολο σύνδεση σύνθεση
τρία τρίτο τρόπο τρόποι τρόπος τρόπους τόπο τόπου τύχη υπάρχον υπάρχουν υφίσταται φάση φέρε φέρει φέρνει φέρνουν
φέρουν φέρω φεύγει φεύγουν φεύγω φορά φράση φόντο φόρεμα φόρμα φύγει φύγουν φύγω φύλλα φύλλο χάρη χάρτη χίλια χρήση
χρήσης χρήστες χρήστη χρήστης χρησιμοποιήσετε χρησιμοποιήστε χρονιά χρονικά χρώμα χωριά χωρών χώμα χώρα ψέματα ψέμματα
ψυχή όλους όλων όπλων όπου όρια όριο όροι όρος όρους όσους автентифікацію автентифікацією автоматический
автоматической автоматичний автоматичній автора адказаць адказваць адчуваць адчуваюць актом алган алман алмассызмы
алмассыңмы аналоги аналогии ангел англ арена аренда аренде аренду аренды арене арену арены ария армией армий армия
армію артиста артистка археологи археологии асинхронной асинхронный ассоциаций атрымліваць атрымліваюць баба бабка
бабки базуються базується байна байнга баксов баку бала балки балла бане бани банк банка банке банки банку баню баня
барак барака бардак барды бармы бары бачите башне башни башню башня беда бедра бела белка белок березні березі беркут
берут били билли бирде бирле битви бити бланк блестяще блестящие близко близок блога блоге блок блока блоком блоку
боба бобы бога боге богу боддог боец божией божий бока боком бокса боксу боку болады болгон болдог болды болно болон
болоо болуы больше большее большие большое бомба бомбы бора борги борец борта босдог боці боятся бояться брак брака
браки брала брали братья бред бренд будет будзеце будзьце буду будут будуть будівлю була булды булса булуы бъдете
бъдеще біда біла бўлади бўлди бѫдеть бѫдєть важности важность важные вали вата вашем вашим вбити введен введение
введении введения введення введены ввел ввела ввели вверх вверху ввести ввечері ввиду ввод ввода вводит вводить вводят
вводятся ввоз вдали вдається вдома вдох ведаць ведаюць ведение ведении ведения ведення везде века веке веки веку вела
вели величие величине вене вену вены вера верите верна верните вернутся вернуться верны верой версией версий версію
версією веру верх веры веса весе весит весна весне весни весну весны вести весть весы весь ветка ветке ветки ветра
ветру ветры вечера вечерва вечора вживання взвод взвода вздох вземе взорвался вибору виборців виборів вибрати
виведення вивести вида видео видна видно видны виду виды видѣти визначати визначили визначити визу вики виключення
виключно виконанні виконає виконуються виконує виконується використанні використані використовували використовувати
використовуватиметься використовуватимуться використовуйте використовуються використовуєте використовується вина вино
вины виски виставка виставки виступ виступати виступає виступив виступу витрат витрати виходити виходить виходу
виходять вихід вихідних вихідні вказали вказати включает включати включать включают включає включення включено
включити включить включно вкрали влади влажность вложил вложить внес внесен внесения внесення внесла внесли внести
внешне внешнее внешнем внешние внешним внизу вносит вносить вносят внука внутренне внутреннее внутренней внутренние
внутренний внучка вода воде водить водка водку водной водой воду водяной воді вождения возвращаемое возвращаемые
возвращает возвращают возен возле возникали возникли возникло возрастает возын воина воины вокзал волге волги воле
воли волки волне волной вольной волю вона вони воно ворвался вошли впав впала впливає вполне враження време вроде
вставить встает встанет встановили встановити встретится встретиться вступ вступает вступать вступают вступил вступила
вступили вступить вступление вступлении вступления всім второе втрат втрата втрати втратив втратили втратити втрачати
втрачає втрое втік вулицю вход входа входе входил входила входили входит входить входной входных входом входу входят
входять вхождения вхід вхідних вхідні вчера вчора въезде выбирал выбирали выбирать выбрал выбрали выбрать выведен
выведены вывел вывели вывести вывод вывода выводит выводить вывоз вывоза выдали выезде вызвал вызвала вызвали вызвало
вызвать вызывал вызывала вызывали вызывало вызывать выкарыстоўваеце выкарыстоўваецца выкарыстоўвайце выкарыстоўваць
выкарыстоўваюцца выкарыстоўваюць выключить выложил выложить вынес вынесли вынести выносит выносить вынужденно выпадает
выпал выполнить выполняется выполнять выполняются вырастет вырос высокий высокого высоцкий высоцкого выставить
выступает выступать выступают выступил выступила выступили выступит выступить выступление выступлении выступления
выход выхода выходе выходил выходила выходили выходит выходить выходной выходных выходом выходы выходят відділу
відкрийте відкриті відкриєте відома відповідні відповіді вікно віком віра віри віру вірш вірші вірю вісім вітру віці
вѣдѣти газа газом газу гарантий гарні главной главой глаза глазом глазу говорит говорят годится гола голова головна
головной головною головну головні головой головою голову голові гора гордится гордиться гордо горе горел гори горки
горла горле горной город города городе городка городке горой гості готовится готовиться град гранат граната гранд
грант гранта грати греши грешки давно даем дает даешь дайте дама даме даму дамы дано дані дапамагаць дапамагаюць
дапамога дапаможа дарма дате дати двести двое двома двора дворе дворец дворца дворце дворцы дворы дева девка девочек
девочке девушек девушке делаем делает делам делают делится делиться денет дереве деревне деревней дерево держава
державна державною державну державні державою державу державі держатся держаться десяти десятки дети детки дечат дечет
джина дивився дивна дивно дивні диво дина длина длине длинной длиной длину длины длится длиться добра добри доброго
добу довести додайте додамо додано додати додаємо додаєте дождаться дозволяють доки документацію документацією долги
долгой доли долина долине долину долины долой дома дополнительное дополнительной дополнительные дополнительный
допомога допомоги допомогти дори дороге дорогие дорого дорогое дороже дорожке достается достанется достигала достигла
доступа доступна досягти дочернее дочерние дошли драка драки драма драму драмы древней друге другие другим другое
другом друже дуже думка думки дурака дураки дєвѧть дєсѧть дівчата дівчина дівчини дівчинка дівчину діти дітям діяти
дѣıати дѣлати едят ездят енергію жанра жара жары желая желтая женится жениться жертви жесткая жесткие жесткий жестких
жестко жесткого жесткой жестокая жестокие жестокий жестоким жестоко жестокого жестокой живая живое животе живя жила
житла жовтні жоден журналиста журналистка журналіста забирать заботится заботиться забрати забрать заверил завершил
зависеть зависит зависти зависть зависят загибелі задание заданий заданию задания задние задний займацца займаюцца
зайти зайшов закону закончится закончиться законі зала залежать залежить залишаються залишається заменить замены
заменяет заметить замінити заміну заняття западном западом записи записки запускает запускают запустить запустіть
заради заробити заснуть заходу зашла заяви заяву збирати збитки збору зброю зброєю звони звонки звідти згадати здание
зданием зданий зданию здания землею земли землю злом злочину злочинів змогли змяняць змяніць зміна зміни змінив
змінили змінити змінна зміну знадобитися знадобиться знаеме знает знаеше знайде знайти знайшла знайшли знайшов
знакомится знакомиться знала знали знамя знати знаходзяць знаходзіць знают зная зняття зовні зоні зору зради зробив
зробили зробити зємли зірка зірки играем играм иддэг идее идеей идей излучение излучения измена изменится изменить
измениться изменяет изменять използвайте използвате изучать изучение изучения изучить икона икры имеем имеет имена
именем имеют импортируете импортируйте интереса интересна интересны интересы ирдэг иска искра искренне искренние искры
используемой используемый использует используете используется используйте используют используются историей истории
историй историки йодын йомын йӧратат йӧратет каждой каждый каза казва какво какие какое както камни капли кара карта
карте картер карти картина картини картинка картинку картину картка картки карту кассу кассы катер като квіти келді
келеді келмеді келмейді кертыда кертына киеп килде килеп китап китеп класи класс класса классе классу классы класі
клиентам клиентом клуба клубе клубу клубы клубі клієнтам клієнтом кнагам книгам князья князя когда кого кода кодиране
кодирате коем което кожен кожлаште кожне козла които който коклаште кола колеи колени коли коллеги коллегии коло
колони командной командой коме комиссией комиссий компанией компаний компанію компанією кому комісію конго коне коней
конец конечно кони конкретное конкретной конкретные конкретный конституцію контакт контакта контакти контактов
контакты контингент континент континента контракт контракта контрактов контракты конце кончено коня кора кордону кори
корма корне корней корни корня корупцію корупцією коры коса коска кота котла котов которое которой котором которые
который которым котра кочкаш кочкеш кошек кошка кошки кошташ коштеш кошти коштів която крае краем краже краса краси
красота красотка крах краху кращу краях країн крем крити крови кровли кроме крошка крыша крыши крышка крышку крышу
куба кубе кубка кубке кубы культура культурной культурой культуру купи купил купили купли курсы кѹрити күккә күледі
күпкә көлде көтеп лабораторией лабораторий лампа лампы лапы лектын лена лента ленту ленты лета лету лийынат лийыныт
линией линий лиса листа листи литературной литературой лицензией лицензий лишение лишние лишний ложится ложиться лорда
лудаш лудеш луктын лучей лучше лучшее лучшей лучшие любви люби любое любом любые любым ліжко лікарню лікарня лікарні
лікаря лікарі лінію література літній ліцэнзій ліцэнзіяй магии майже майка майки майте мала мало малом малыша малышка
мальчика мальчики мальчишка мальчишки маневр мари марка марки марко марла марок марта маса маси маска маски масла
масле масло маслом мата матери материи мати матки матча маємо маєте мейнтэйнер менiң мене менше меньше меньшее меня
меняя мені менің мера мерах местном местом мета метал металл мети метра метрах меча мечта мечтал минута минутка
минутку минуту многие многое мова мови мову мові мога могил могила могла могли могло мого могу мода модаш модель
моделі моду модуль модулі модыш моей моем можа можах можем можех можна мозгу молода молодий молодих молодого молодцы
молодці молодшого молоді молока молчи монарха морду морей морем моцна мочи мрії мэйнтэйнер мінських мінську міні
містить містять місцем місць місця місцями місці міська міських міського місяць місяця місяці мүмкiн мүмкін набирать
набрать навряд навіть надалі надання надані надел надоели надходить надходять надію назвав назвал назвала назвали
назвати назвать називали називати называл называла называли называть намного направете направите напрямку напряму
народном народні народом народу насколько наскільки насочете насочите настолько настільки науковці наукові находится
находиться находятся наша наши нашла нашли невелика невеликий нежели некогаш некого некоего некоторое некоторые
немного несколько неужели нешто низкого низку никога никогаш никого никой нити ништо новина новини новое новой новые
новый ноги ногти ножи ножки норма нормы нравится нравиться нужное нужные ныне нынче някога някой нікого нічого ніякого
обоих обрабатывается обрабатываются образа образи образов образом образу образца образцов образцом образцу образцы
образы обрали обрати обратиться обстановка обстановке обстановки обстановку обсудил обсудили обсуждать обсуждение
обсуждения обходится обходиться общие общих объявляете объявляйте обычное обычной обычные обычный обяснете обясните
обід оголосили оголосити оголошували оголошувати огыда огына один одни одним одном одразу ожидает ожидают означает
означают окажется оказавшись оказал оказала оказалась оказали оказались оказалось оказался оказать оказаться
оказывается оказывать оказываются окно окном окон оксам омсам операцией операций операцію операцією опиционально
определенно определено определить определять опустить опционально опцію опцією организацией организаций організацію
організацією орел основна основной основною основні основой основою основу основі оставлю остается остальное остальные
останется остановится остановиться остановка остановке остановки остановку острове осудил осудили осуждать ответа
отворете отворите отдела отделе отеле отец откажется отказавшись отказал отказала отказалась отказали отказались
отказался отказать отказаться отказывается отказывались отказывать отказываются откроете откройте открыв открытом
открытым относится относиться отпор отправится отправиться отправления отправляет отправляют отпустить отравления
отримали отримати отримає отримаємо отримаєте отримує отримуємо отримуєте отрыв отсчет отце отчет отчета официальной
официальный пайшоў палат палата палате палати палату палаты пали палки пана пане панов пані папа папку папу пара парах
паре пари парка парках парке парки парку парла парни парола паром пароход партией партий партію пару певица певицы
певні певца пела пели пения пенсия пепла пера перевірите перевірити перевірте перевіряти перед передайте передал
передали передан передані передаст передать передачі передаёт передаёте передаєте перейдите перейдёте перемога
перемоги перемогти переопределить переопределять переписи переписки пересечения перестает перестанет перша першу песен
песне печи пити плана планет планеты плани планов плану планування планує планшет плані планів пластика пластинка
плата плате плати плату платы платье плач плена пленка пленку плену плечи плечі плотно площади площадки плюс побачили
побачити победу побил побить поведение поведением поведении поведения повел поверил поверила поверили поверить
повернули повернути повертаються повертається поверхню поверь поверьте повесить повести повесть повинен повод повода
поводов повторяю погода подав подавати подавать подает подал подала подали подаст подати податки подать подают подвал
подвел подвели подвергались подверглись подвести поддерживает поддерживается поддерживают поддерживаются поддържане
поддържате поделать поднимает поднимается поднимать поднимают поднимет поднимется поднял подняла подняли поднятия
поднять подобаються подобається подобная подобно подобное подобные подобный подписи подписки подробная подробно
подробное подробные подробный подход подхода подходе подходить подходов подходы поеду поезд поезда поезде поездка
поездке поесть поет поехал поехали поехать пожить позвали позволяет позволят позволяют позе позже позицией позиций
позицію поиграть пойдет пойдут пойдёт пойти пока поки поклон пола полгода поле полем полет полетел полк полка полке
полки полков полку полна полно полном полны поло полов полом полон полотно полтора полу полудня полутора получает
получат получать получают получится получить получиться полы пользователем пользовательские пользовательское
пользователям полюс поляки поляков поляна полёт поліцію помер помислете помислите помни помогает помогал помогала
помогали помогают помоги помогла помогли помочь помощь понадобится понадобиться понадобятся пони понимает понимали
понимать понимают понравится понравиться понял поняла поняли понятия понять попадает попадет попал попала попали
попало попасть попри пора порвал порта порту порты пору поры посади посаду посилання посла послал послать после послов
послом послы посмотреть пост поста постанова постанови постой посту посты посылать потока потоки потоков потолка потом
потомки потомков потому потрясающе потрясающее потрясающие потрібен потрібне поход похода походе походження походу
походы похоже похожее похожие похожих почек почерк почета починить почитать почта почти пошел пошла пошли пошло пошёл
поэта поэтом поэтому появи появится появиться появление появлением появления появляется появятся поёт поїзд поїздки
поїхали поїхати права правда правде правдой правду правды праве правое правой праву правы правые праві прайшоў прах
праца працы працю працюю превратится превратиться пред предал предоставил предоставили предоставить предоставление
предоставлении предоставления предоставлено предоставлены предоставляет предоставляется предоставлять предоставляют
представил представила представили представит представить представлена представление представлении представления
представлено представлены представляет представляется представлять представляют предыдущей предыдущий премий премію
пресечения прибрати приведет приведу приведут привезла привезли привела привели привести привлекли привычке пригодится
придает придет придется придешь приду придут придётся приедет приедешь приеду приедут прием приемане приемате приемете
призвал призвали призводить призывал приклад приклади приложением приложениям прим примем применяется применяются
приму принимает принимают природной природой природі присоединится присоединиться присутствует присутствуют приходится
причем причём приём проба пробил пробить пробка провал проведение проведением проведении проведению проведения провел
провели проверил проверили проверит проверить проверь проверяет проверят проверять проверяют провести провод провода
проводити проводится проводиться проводов проводяться провів продав продавал продавали продавати продавать продает
продается продакшені продакшні продал продала продали продати продать продают продають продолжает продолжают проезд
проезда проехал проехали проехать прожить проза прозвали проиграть производится производиться пройдет пройдут пройдёт
пройти пропавших пропадает пропал пропала пропали пропало пропасть пропозицію пророк прорыв просил просит просити
просить проследяване проследявате просмотреть прост проста прости простит простите простить простое простой простые
просят проте проти протягом проход прохода проходження проходить прохожих прочитати прочитать прошел прошла прошли
прошло прошёл проявление проявления проявляется проїзд прыйшоў психологи психологии пустые пустыне пусть путь путям
путём пяти південь пісню работаем работает работам работают работиме работите рабочее рабочие рабіць равна равно равны
раджу раду радіо развертывание развертывания развёртывание развёртывания разрешает районі рана ранга ранее ранение
ранку раннее ранние ранний рано раны рахмет рақмет реактор реактора реакторов реакцией реакции реакций реакцию реакция
реакція реакції революций редактор редактора редакцией редакции редакцию редакция редакції резкой река реке реки
рекламной рекой ректор ректора речи речка речки решает решат решать решают решится решить решиться реєстрацію риба
риге ринге риса риска рисковать рискует рисовать рисует робив робили робити роботи робяць робіць родиной родиться
родная родной родном родом розглянемо розгляньмо роли роль росла росли роста рота роти рояль рубль рубля рука руки
рукой руку руль руля ручка ручки ручкой ручку рыба рыбак рыбаки рыбка рыбной рыбой рівні рідна різні річки сабой сада
садится садиться саду сайнд сала сало салон салона сама самай самбо сами самий самка самки само самое самой самом
самые самый самым самій сана санд сапраўдны сапраўды сатана сбила сбой сбор сбора сборе сборка свернуть свести свет
света свете светом светской свету свиней свобода свободна свободной свободны свободой свободы своей своем своим свой
свою своём своєю своєї свої связи связки священик світовий світом світі сгенерированной сгенерированный сдала сдержать
север севера седан седло села сели селища село селі семей семена семи семьей семьи семья сена сенс сервер сервера
серверну серверу сердец сердце середині середу серией серий серы сестер сестре сесть сети сетка сетки сеть сила силах
силе силой сильні сина сине синее синей сини синие сином синів ситуацией ситуаций ситуацію сияние сказали сказати
скала складно складу складі склонны склоны сколь сколько скуки слава следующее следующей следующем следующие следующий
следующим слияние слов слова слове словно слово слоев сложнее сложные слои слой слон слона служи случи случится
случиться слушал слышал смело смена сменой смесь смешной снимает снимет сними снимки снова сном собака собирал
собиралась собирали собирались собирался собирать собираться собой собор собора соборе собрал собралась собрали
собрались собрался собрать собраться собственное собственные сова совершенно совершено совести совет совета совете
советом советских советской совету согласится согласиться содержат содержать содержащей содержащий содержит создайте
создаст создаёт создаёте сока соки соком соли соль сонця соня соответствует соответствуют сорок сорока сорт сорта
соседа соседей соседи соседка соседней состоятся состояться сотен сотня сохранить сохранять социологи социологии сочли
сошли спала спали спасает спасет спаси спасла спасли спасти спати спеть спине спину спирт спит сплати споделите
споделяте спора споре спорт спорта спорте спортсмена спортсменка спорту спорят способа способна способны способы справ
справа справді справится справиться справка справі спробуйте спробує спробуєте спрощує співачка среде средне среднее
средние срок срока сроки сроком став стаж стаи стала стали стало стан стана стандартной стандартну стандартный
стандарту станице станицы становится становиться становятся становяцца становіцца стану станцией станций стара старая
старий старина старих старого старой старом старта старшая старше старшие старший старшина старших старшого старі
статей стати статтею статтю статті статьей статі стаць стають стаіць ствол ствола створенні створені створили створити
створить створіть стен стена стене стенке стенку стеной стену степной стиле стиль стилі стихи стихии стоил стоила
стоим стоит стоить стой стойки сток стол стола столы столь столько стоп стосуються стосується стою стоя стоял стояла
стояли стоят стран страна стране странице страницы странной страной страну страшной стрела стрелка стремится
стремиться строго строил строим строит строится строить строй стройка стройке стройки строк строка строке строки
строчки строчку строю строя строят студента студентка стіни суда судді суддів суде судей судна судне судьбе судье
судьей судья судя суді судів сука суки сума суми сумка сумки суму сути сутки суток сучка суши существует существуют
сферы схеми сцена счета съела съели съесть сыном сіті січні сөйледі сөйлейді тайком тайне тайное тайные така также
таки такие таким таков таковой таковых такое таком такси таксі таку такі танец танки танков танковой тата твого твоей
твой творів твою твої текст текста тексте тексти текстов тексту тексты текстів текущей текущий тела телем телим тело
телом тема теме темное темной темноте темой темпе темпы темы теорией теорий тепла тепло теплом теракта територію
территорией территорий тест теста тестов тесты технологий тидым тидын типам типом того тока током толка толком тона
топливно топливо тора торги торгівлю торопиться тоска точек точка точке трава травма травму травмы травні траву травы
традицией традиций тракта требует требуют трем треста трети третьи третя триста трое труба трубка трубку трубу труда
трудиться трупа труппы трупы тугай туда тудым тудын тулды тулы тунемаш тунемеш туре турне турыда турында тушко тушто
тыгай убежать убеждать убирать убрать уверете уверите удивляюсь уйлаган укажете укажите указанной указанный украсть
улаан улыда улына умеет умело умерла умерли умеют урлаган урожая успіх установи установки усіх ухаан участникам
участником учебник учебника учебники учебников учебного учебной учебные учебный учебным учебных ученик ученика ученики
учеников ученого ученые ученый ученым ученых учится учиться учні фаза фазу фазы фамилией фамилий флаг флага фланг
фланга фонда фонде фоне фоні форм форма форме форму формі форум форума форуме форумі фотографией фотографий фраза
фразу фразы функцией функций функцію функцією фунтов футбола футболе футболку футболу футов характера характерна
хареса харесва хирургии ходу хочеши хочєши хіба цвета цветка цветков цветов центов центров частина частини частные
частые часі чаша чаши чашки чашку чашу чемпиона чемпионка чемпіона червні черта чисел числе чистая читали читати читая
чути чутки шартлады шартлары шерсти шерсть шести шесть шкемын шкетын шого шоҥго штука штуки штуку шутка шутки шутку
ыштат ыштет экономии экономики южная южного южной южные южный южных юная юного юной юные юный юных является являются
якось якоїсь якість якісь ярости ярость ідею імпортуйте імпортуєте інформацію інформацією інший іншій історію
ўдзельнічаць ўдзельнічаюць ўносяць ўносіць өдөр өндөр այդքան այնտեղ այնքան այստեղ այսքան անել անում առնել ասում ատում
երբեք երեք լինեի լինի կարդում կարծում համար հիմար մասին միասին նրանից նրանց ուզում ուտում
"""
