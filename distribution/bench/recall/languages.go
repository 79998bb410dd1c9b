package main

import (
	"fmt"
	"strings"
)

// language has what a generated conversation in it is made of. {x} is a person or, in asks, the second form of
// the name; {v} is a value, {a} and {b} are things.
type language struct {
	people  []string // first form/second form
	facts   []fact
	things  []string
	wants   string   // asks for advice
	advice  []string // sentences of answers
	between string   // sentences
}

//nolint:gochecknoglobals // constant tables
var languages = map[string]*language{
	"german": {
		people: []string{"Ines/Ines", "Marek/Mareks", "Tobias/Tobias", "Leila/Leilas", "Anke/Ankes", "Jürgen/Jürgens", "Greta/Gretas"},
		facts: []fact{
			{say: "Meine Schwester {x} ist gerade nach {v} umgezogen und hat dort eine Wohnung gefunden.", ask: "In welcher Stadt hat {x} Schwester eine Wohnung?", values: "Lissabon Tallinn Krakau Gent Porto Graz Malmö Turin"},
			{say: "{x} zahlt für das Atelier jetzt {v} Euro Miete im Monat, der Vermieter hat sie erhöht.", ask: "Wie hoch ist {x} Monatsmiete?", values: "640 715 780 835 910 1050 1175 1240"},
			{say: "{x} und ich haben einen Hund aus dem Tierheim geholt, er heißt {v}.", ask: "Wie wurde {x} Tierheimhund genannt?", values: "Keks Pfeffer Waffel Tundra Mango Komet Rufus Balu"},
			{say: "Ich habe {x} für die Ferien meinen {v} geliehen.", ask: "Was habe ich für {x} Ferienreise verliehen?", values: "Schlafsack Kocher Bohrer Projektor Rucksack Anhänger Koffer Kajak"},
			{say: "Übrigens verträgt {x} kein {v}, daran muss ich beim Kochen denken.", ask: "Was darf ich für {x} nicht kochen, weil es nicht vertragen wird?", values: "Sellerie Ei Weizenmehl Soja Milchpulver Sesamöl Lupinenmehl Senfpulver"},
			{say: "{x} arbeitet seit diesem Monat als {v} in einem neuen Betrieb.", ask: "Welche Arbeit macht {x} Neuanfang im Betrieb aus?", values: "Krankenpflege Tischlerei Übersetzung Vermessung Bäckerei Apotheke Bibliothek Gärtnerei"},
			{say: "Die Ärztin hat {x} verschrieben, jeden Morgen {v} zu nehmen.", ask: "Welches Medikament steht auf {x} Verschreibung der Ärztin?", values: "Magnesium Eisen Zink Aspirin Ibuprofen Melatonin Folsäure Insulin"},
			{say: "{x} hat mir zum Geburtstag eine {v} geschenkt.", ask: "Was war {x} Geburtstagsgeschenk für mich?", values: "Hängematte Teekanne Lampe Decke Uhr Gitarre Tasche Vase"},
		},
		things: strings.Fields("Kompost Erde Beet Gewächshaus Schuppen Werkbank Lack Leim Ofen Teig Hefe Gewürz Datenbank Server Sicherung Zertifikat Fahrplan Fähre Gepäck Rechnung Steuer Konto"),
		wants:  "Wie soll ich mit {a} und {b} am besten umgehen?",
		advice: []string{
			"Bevor du an {a} etwas änderst, prüfe {b}, denn dort beginnen die meisten Schwierigkeiten.",
			"Ein häufiger Fehler ist, bei {a} zu eilen; warte einen Tag und sieh dir {b} noch einmal an.",
			"Schreib auf, was du mit {a} gemacht hast, damit du es wiederholen kannst.",
			"Viele unterschätzen, wie sehr {a} von {b} abhängt, vor allem in den ersten Wochen.",
			"Im Zweifel frag {x}, bevor du {b} anfasst.",
			"In welcher Stadt du wohnst, ist für {a} weniger wichtig, als {x} sagt.",
			"Was {a} im Monat kostet, hängt von {b} ab, wie {x} weiß.",
			"{x} hat mit {a} gute Erfahrungen gemacht, mit {b} weniger.",
		},
		between: " ",
	},
	"polish": {
		people: []string{"Ania/Ani", "Marek/Marka", "Tomasz/Tomasza", "Basia/Basi", "Kasia/Kasi", "Paweł/Pawła", "Zofia/Zofii"},
		facts: []fact{
			{say: "Moja siostra {x} właśnie przeprowadziła się do miasta {v} i znalazła tam mieszkanie.", ask: "W jakim mieście jest mieszkanie mojej siostry {x}?", values: "Lizbona Tallinn Gandawa Porto Graz Malmö Turyn Wilno"},
			{say: "{x} płaci teraz za pracownię {v} złotych czynszu, bo właściciel go podniósł.", ask: "Ile wynosi czynsz za pracownię {x}?", values: "640 715 780 835 910 1050 1175 1240"},
			{say: "{x} i ja wzięliśmy psa ze schroniska, nazwaliśmy go {v}.", ask: "Jak się nazywa pies {x} ze schroniska?", values: "Biszkopt Pieprz Wafel Tundra Mango Kometa Rufus Bary"},
			{say: "{x} pożycza ode mnie na wakacje {v}.", ask: "Jakiej mojej rzeczy potrzeba na wakacje dla {x}, co pożyczyłem?", values: "namiot kajak wiertarkę projektor teleskop plecak aparat śpiwór"},
			{say: "{x} ma uczulenie na {v}, muszę o tym pamiętać przy gotowaniu.", ask: "Czego nie gotować dla {x} z powodu uczulenia?", values: "orzechy krewetki seler sezam łubin gorczycę jajka soję"},
			{say: "{x} pracuje od tego miesiąca w nowym zawodzie: {v}.", ask: "Jaki jest nowy zawód {x}?", values: "pielęgniarz stolarz tłumacz pilot geodeta piekarz chemik bibliotekarz"},
			{say: "Lekarka zapisała, żeby {x} codziennie rano brał lek {v}.", ask: "Jakie leki dla {x} zapisano u lekarki?", values: "magnez żelazo cynk aspiryna ibuprofen melatonina foliany insulina"},
			{say: "{x} podarował mi na urodziny {v}.", ask: "Jaki był urodzinowy podarunek od {x}?", values: "hamak czajnik szachy kompas szalik zegar gitarę wazon"},
		},
		things: strings.Fields("kompost gleba grządka szklarnia szopa warsztat lakier klej piec ciasto drożdże przyprawa baza serwer kopia certyfikat rozkład prom bagaż faktura podatek konto"),
		wants:  "Jak najlepiej radzić sobie z tym: {a} i {b}?",
		advice: []string{
			"Zanim zmienisz coś, co ma związek ze słowem {a}, sprawdź {b}, bo tam zaczyna się większość kłopotów.",
			"Częstym błędem jest pośpiech; poczekaj dzień i obejrzyj jeszcze raz: {b}.",
			"Zapisz, co zrobiłeś, żeby móc to powtórzyć: {a}.",
			"Wielu ludzi nie docenia, jak bardzo {a} zależy od tego, jaki jest {b}, zwłaszcza w pierwszych tygodniach.",
			"W razie wątpliwości powie ci o tym {x}, zanim dotkniesz: {b}.",
			"To, w jakim mieście mieszkasz, jest mniej ważne, niż mówi {x}.",
			"Ile to kosztuje w miesiącu, zależy od wielu rzeczy, jak wie {x}: {a}, {b}.",
			"{x} ma dobre doświadczenia: {a}, gorsze: {b}.",
		},
		between: " ",
	},
	"chinese": {
		people: []string{"小明/小明", "李娜/李娜", "王芳/王芳", "张伟/张伟", "陈静/陈静", "刘洋/刘洋", "赵磊/赵磊"},
		facts: []fact{
			{say: "我的姐姐{x}刚刚搬到{v}，在那里找到了一套公寓。", ask: "{x}现在住在哪个城市的公寓？", values: "成都 杭州 青岛 昆明 厦门 大连 苏州 西安"},
			{say: "{x}的画室房租涨了，现在每个月要{v}元。", ask: "{x}租画室每月多少钱？", values: "640 715 780 835 910 1050 1175 1240"},
			{say: "我和{x}领养了一只狗，给它起名叫{v}。", ask: "{x}和我养的狗叫什么名字？", values: "饼干 胡椒 布丁 芒果 彗星 豆豆 糯米 阿福"},
			{say: "假期里我把{v}借给了{x}。", ask: "{x}向我借了什么东西？", values: "帐篷 皮划艇 电钻 投影仪 望远镜 背包 相机 睡袋"},
			{say: "顺便说一下，{x}对{v}过敏，我做饭时要记住。", ask: "请{x}吃饭时不能放哪种过敏的食物？", values: "花生 虾 芹菜 芝麻 芥末 核桃 大豆 鸡蛋"},
			{say: "{x}这个月开始了新工作，当了{v}。", ask: "{x}做什么工作？", values: "护士 木匠 翻译 飞行员 测量员 面包师 药剂师 图书管理员"},
			{say: "医生让{x}每天早上吃{v}。", ask: "医生给{x}开了什么药？", values: "镁片 铁剂 锌片 阿司匹林 布洛芬 褪黑素 叶酸 胰岛素"},
			{say: "生日那天{x}送给我一个{v}。", ask: "我的生日礼物里{x}送的是什么？", values: "吊床 茶壶 棋盘 指南针 水壶 台灯 花瓶 手表"},
		},
		things: strings.Fields("堆肥 土壤 苗床 温室 棚屋 工作台 油漆 胶水 烤箱 面团 酵母 香料 数据库 服务器 备份 证书 时刻表 渡轮 行李 发票 税款 账户"),
		wants:  "我应该怎么处理{a}和{b}？",
		advice: []string{
			"在改变{a}之前，先检查{b}，因为大多数问题都从那里开始。",
			"常见的错误是{a}做得太急，等一天再看看{b}。",
			"把你对{a}做的事情写下来，以便重复。",
			"很多人低估了{a}对{b}的依赖，尤其是在最初几周。",
			"有疑问时，先问{x}，再动{b}。",
			"你住在哪个城市对{a}没有{x}说的那么重要。",
			"{a}每个月多少钱取决于{b}，{x}知道。",
			"{x}用{a}的经验很好，用{b}就差一些。",
		},
	},
}

// speak adds a question of the user, half of them with a fact, and an answer.
func (l *language) speak(g *generator) {
	first, second, _ := strings.Cut(g.pick(l.people), "/")
	want := l.fill(g, l.wants)
	if g.IntN(2) == 0 {
		f := l.facts[g.IntN(len(l.facts))]
		value := g.pick(strings.Fields(f.values))
		said := strings.NewReplacer("{x}", first, "{v}", value).Replace(f.say)
		g.ask(strings.ReplaceAll(f.ask, "{x}", second), g.say("user", said+l.between+want), said)
	} else {
		g.say("user", want)
	}
	var all []string
	for range 4 + g.IntN(8) {
		all = append(all, l.fill(g, g.pick(l.advice)))
	}
	g.say("assistant", strings.Join(all, l.between))
}

// fill replaces the persons and things of a sentence.
func (l *language) fill(g *generator, text string) string {
	person, _, _ := strings.Cut(g.pick(l.people), "/")
	return strings.NewReplacer("{a}", g.pick(l.things), "{b}", g.pick(l.things), "{x}", person).Replace(text)
}

// roundOf returns what adds to conversations of a shape.
func roundOf(shape string) (func(*generator), error) {
	switch l := languages[shape]; {
	case l != nil:
		return l.speak, nil
	case shape == "long" || shape == "typos":
		return (*generator).round, nil
	case shape == "updates":
		return (*generator).update, nil
	}
	return nil, fmt.Errorf("no conversations of the shape %q: long, typos, updates, german, polish or chinese", shape)
}
