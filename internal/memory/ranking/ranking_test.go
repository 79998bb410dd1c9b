package ranking

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "cats": "cat", "feed": "feed", "agreed": "agre", "plastered": "plaster", "motoring": "motor",
		"sing": "sing", "conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "falling": "fall", "hissing": "hiss",
		"filing": "file", "happy": "happi", "sky": "sky", "relational": "relat", "conditional": "condit", "vietnamization": "vietnam",
		"hopefulness": "hope", "formality": "formal", "triplicate": "triplic", "formative": "form", "electrical": "electr", "goodness": "good",
		"allowance": "allow", "adjustment": "adjust", "adoption": "adopt", "effective": "effect", "probate": "probat", "rate": "rate",
		"cease": "ceas", "controll": "control", "roll": "roll", "größe": "größe", "w2v": "w2v", "is": "is", "replacement": "replac",
	} {
		if got := stem(word); got != want {
			t.Errorf("stem(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestMentionedDates(t *testing.T) {
	for text, want := range map[string][]mentionedDate{
		"what did Ann do on May 3, 2023?":     {{2023, 5, 3}},
		"the 3rd of may":                      {{0, 5, 3}},
		"who came on 3 may":                   {{0, 5, 3}},
		"on 2023-05-03":                       {{2023, 5, 3}},
		"in June 2022":                        {{2022, 6, 0}},
		"may I ask who may come":              nil,
		"in may":                              {{0, 5, 0}},
		"between July 1st and August 22 2021": {{2021, 7, 1}, {2021, 8, 22}},
		"99999999999999999999 march":          {{0, 3, 0}},
	} {
		plain, _, _ := queryTerms(text)
		if got := mentionedDates(plain); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func corpusOf(texts ...string) *Corpus {
	c := &Corpus{}
	for i, text := range texts {
		name, text, _ := strings.Cut(text, ": ")
		c.Add(Document{Seq: int64(i + 1), Name: name, Text: text, Time: time.Date(2024, time.March, 1+i, 0, 0, 0, 0, time.UTC)})
	}
	return c
}

func rank(t interface {
	Helper()
	Fatal(args ...any)
}, c *Corpus, q Query) []Result {
	t.Helper()
	results, err := c.Rank(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func docsOf(results []Result) (docs []int) {
	for _, r := range results {
		docs = append(docs, r.Doc)
	}
	return docs
}

func TestRank(t *testing.T) {
	c := corpusOf("Ann: we adopted two dogs", "Bob: the weather is fine", "Ann: I bake bread", "Bob: I bake bread", "Ann: straßenbahn fährt")
	for _, test := range []struct {
		text string
		want []int
	}{
		{"adopting a dog", []int{0}},
		{"Does Bob bake?", []int{3, 1, 2}},
		{"baking on 3 March 2024", []int{2, 3}},
		{"strassen straßen", []int{4}},
		{"the", []int{1}},
		{"", nil},
		{`"'()*:^-NEAR( AND OR`, nil},
	} {
		if got := docsOf(rank(t, c, Query{Text: test.text, Limit: 10})); !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.text, got, test.want)
		}
	}
}

// TestRank_Neighbors checks that an answer is found by the question before it, unless
// they are of different conversations.
func TestRank_Neighbors(t *testing.T) {
	at := time.Date(2024, time.March, 1, 0, 0, 0, 0, time.UTC)
	c := &Corpus{}
	for i, d := range []Document{{Text: "where is the passport?", Time: at}, {Text: "in a drawer", Time: at}, {Text: "hello", Time: at.Add(48 * time.Hour)}} {
		d.Seq = int64(i)
		c.Add(d)
	}
	if got := docsOf(rank(t, c, Query{Text: "passport", Limit: 5})); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("found %v", got)
	}
}

// TestRank_Reply expects a reply to a found question to gain what is declared, and a long one almost nothing.
func TestRank_Reply(t *testing.T) {
	t.Parallel()
	scoreOf := func(question, reply string) float64 {
		c := &Corpus{}
		for i, text := range []string{"Hello.", "Good morning.", question, reply} {
			c.Add(Document{Seq: int64(i + 1), Text: text, Time: time.Date(2024, time.March, 1, 9, i, 0, 0, time.UTC)})
		}
		for _, r := range rank(t, c, Query{Text: "fetch new piano", Limit: 5}) {
			if r.Doc == 3 {
				return r.Score
			}
		}
		return 0
	}
	const reply = "The piano comes on Friday."
	for _, test := range []struct {
		reply       string
		least, most float64
	}{
		{reply, 1 + replyShare - 0.01, 1 + replyShare + 0.01},
		{reply + strings.Repeat(" It is a long way from the shop to our house", 60), 1, 1.05},
	} {
		asked, said := scoreOf("When do we fetch the new piano?", test.reply), scoreOf("Then we fetch the new piano.", test.reply)
		if gain := asked / said; !(gain >= test.least && gain <= test.most) {
			t.Errorf("a reply of %d bytes gains %.2f, want %.2f to %.2f", len(test.reply), gain, test.least, test.most)
		}
	}
}

// TestRank_Forms expects other forms of a word, parts of compounds and names with endings to be found.
func TestRank_Forms(t *testing.T) {
	t.Parallel()
	c := corpusOf("Ann: die Miete ist hoch", "Bob: Marek ma psa", "Ann: Ania gra na harfie", "Bob: wir fahren ans Meer", "Ann: the weather is fine")
	for query, want := range map[string]int{"Monatsmiete": 0, "Marka": 1, "Ani": 2, "harfy": 2} {
		if got := docsOf(rank(t, c, Query{Text: query, Limit: 1})); !slices.Equal(got, []int{want}) {
			t.Errorf("%q: %v, want %d", query, got, want)
		}
	}
}

// TestRank_Meaning expects an answer in other words among many messages, without an embedding model.
func TestRank_Meaning(t *testing.T) {
	t.Parallel()
	texts := []string{"Ann: the train leaves at nine", "Bob: our dog had puppies", "Ann: I baked bread", "Bob: the rent went up", "Ann: a table of plywood",
		"Bob: the invoice is due", "Ann: she plays the violin", "Bob: my doctor prescribed aspirin", "Ann: it rained all week", "Bob: the server is slow"}
	c := corpusOf(texts...)
	for query, want := range map[string]int{"which pets?": 1, "music instruments": 6, "medicine pills": 7} {
		if got := docsOf(rank(t, c, Query{Text: query, Limit: 1})); !slices.Equal(got, []int{want}) {
			t.Errorf("%q: %v, want %d", query, got, want)
		}
	}
}

func TestRank_Similarity(t *testing.T) {
	c := corpusOf("Ann: rain", "Bob: sun", "Ann: snow")
	got := rank(t, c, Query{Text: "weather", Limit: 2, Similar: []Similarity{{0, 0.2}, {1, 0.9}, {2, -0.4}}, Match: func(doc int) bool { return doc != 1 }})
	if !slices.Equal(docsOf(got), []int{0}) {
		t.Errorf("found %v", got)
	}
}

// TestCorpus_EqualsAFreshOne checks that a corpus from which messages were removed ranks
// as one that never had them.
func TestCorpus_EqualsAFreshOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type message struct {
			Document
			removed bool
		}
		var all []message
		c := &Corpus{}
		next := map[int32]int64{}
		words := rapid.SampledFrom([]string{"bread", "breads", "dog", "rain", "may", "ann", "the", "5", "2024"})
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 0, 5).Draw(t, "words"), " ") })
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			session := int32(rapid.IntRange(0, 2).Draw(t, "session"))
			if rapid.IntRange(0, 3).Draw(t, "remove") > 0 {
				next[session]++
				m := message{Document: Document{Session: session, Seq: next[session], Name: rapid.SampledFrom([]string{"", "Ann", "Bob"}).Draw(t, "name"), Text: text.Draw(t, "text"),
					Time: time.Date(2024, time.May, rapid.IntRange(1, 9).Draw(t, "day"), 0, 0, 0, 0, time.UTC)}}
				all = append(all, m)
				c.Add(m.Document)
				continue
			}
			from := int64(rapid.IntRange(0, 10).Draw(t, "from"))
			to := from + int64(rapid.IntRange(0, 10).Draw(t, "length"))
			c.Remove(session, from, to)
			for i := range all {
				if all[i].Session == session && all[i].Seq >= from && all[i].Seq <= to {
					all[i].removed = true
				}
			}
		}
		fresh := &Corpus{}
		for _, m := range all {
			if !m.removed {
				fresh.Add(m.Document)
			}
		}
		describe := func(c *Corpus, q string) (out []string) {
			for _, r := range rank(t, c, Query{Text: q, Limit: 100}) {
				session, at := c.At(r.Doc)
				out = append(out, fmt.Sprintf("%d %d %.6f", session, at.Seq, math.Abs(r.Score)))
			}
			return out
		}
		for _, q := range []string{text.Draw(t, "query"), "bread in May 2024", "ann dogs", "rai"} {
			if got, want := describe(c, q), describe(fresh, q); !slices.Equal(got, want) {
				t.Fatalf("%q: %v, a fresh one finds %v", q, got, want)
			}
		}
	})
}

func FuzzRank(f *testing.F) {
	c := corpusOf("Ann: we adopted two dogs in May", "Bob: 日本語 and emoji 🎉")
	f.Add("NEAR(dogs AND \"*")
	f.Add("2024-99-99 may 31 🎉")
	f.Add("a" + strings.Repeat("\x80", 900)) // was never divided
	f.Fuzz(func(t *testing.T, text string) {
		rank(t, c, Query{Text: text, Limit: 10})
		stem(text)
		d := &Corpus{}
		d.Add(Document{Text: text, Name: text})
		rank(t, d, Query{Text: text, Limit: 1})
	})
}

// TestPassages checks that rows, code and sentences of a long text stay whole, and that nothing is lost.
func TestPassages(t *testing.T) {
	sentence := "The garden needs water in the evening and shade at noon. "
	text := "# Garden\n\n" + strings.Repeat(sentence, 12) + "\n\n| plant | price |\n| --- | --- |\n" + strings.Repeat("| tomato of the village | 4 euros |\n", 12) +
		"\n```go\nfunc water() {\n\n\tpour()\n}\n```\n\n- one\n- two\n\nÜber 学习。学习！" + strings.Repeat("é", 900)
	var all strings.Builder
	inRow, inCode := 0, false
	for _, p := range Passages(text) {
		all.WriteString(p.Text)
		if strings.HasPrefix(p.Text, "The garden") && (!strings.HasSuffix(p.Text, "noon.") || p.Under != "Garden") {
			t.Errorf("a sentence is divided, or lacks its heading: %+v", p)
		}
		if strings.HasPrefix(p.Text, "| tomato") {
			if inRow++; !strings.HasSuffix(p.Text, "|") || p.Under != "| plant | price |" {
				t.Errorf("a row is divided, or lacks the header: %+v", p)
			}
		}
		inCode = inCode || p.Text == "```go\nfunc water() {\n\n\tpour()\n}\n```"
	}
	if got, want := strings.Join(strings.Fields(all.String()), ""), strings.Join(strings.Fields(text), ""); got != want {
		t.Errorf("the passages have\n%s\nwant\n%s", got, want)
	}
	if inRow == 0 || !inCode {
		t.Errorf("%d passages of rows, code %t", inRow, inCode)
	}
	for _, text := range []string{"a" + strings.Repeat("\x80", 900), strings.Repeat("\x80", 900)} { // no UTF-8
		if got := Passages(text); len(got) < 2 {
			t.Errorf("%d passages", len(got))
		}
	}
	if got := Passages(" short "); len(got) != 1 || got[0].Text != "short" || len(Passages(" \n")) != 0 {
		t.Errorf("a short text has %v", got)
	}
}

// TestRank_Newest checks that of two statements with the same words the newer comes first, a misspelled
// question finds the same, and a span before now selects messages.
func TestRank_Newest(t *testing.T) {
	c := corpusOf("Ann: my flat is in Lisbon now", "Bob: fine", "Ann: my flat is in Porto now", "Ann: wir haben die Städten besucht")
	now := time.Date(2024, time.March, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]int{"Where is the flat now?": 2, "Where is the flta nwo? Lisbno": 0, "In welchen Städte waren wir?": 3, "flat yesterday": 2, "flat 3 days ago": 0} {
		if got := docsOf(rank(t, c, Query{Text: text, Limit: 1, Now: now})); !slices.Equal(got, []int{want}) {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}

// TestRank_Current: a question in the present tense finds the statement that replaced others first. Other names, numbers and
// questions about the past keep the order.
func TestRank_Current(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	c := &Corpus{}
	for i, text := range []string{
		"The meeting with Pavel takes place in room Riga.",
		"The meeting with Greta takes place in room Oslo.",
		"The meeting with Pavel is now in Lima.",
		"The meeting with Marek is now in Quito.",
		"The pump P7 has a pressure of 3 bar in this room.",
		"The pump P8 has a pressure of 5 bar in this room.",
	} {
		c.Add(Document{Seq: int64(i + 1), Time: at.Add(time.Duration(i) * 48 * time.Hour), Text: text})
	}
	for query, want := range map[string]int{
		"In which room is the meeting with Pavel?":  2,
		"What's the room of the meeting with Greta": 1,
		"In which room was the meeting with Pavel?": 0,
		"What is the pressure of the pump P7?":      4,
	} {
		if got := rank(t, c, Query{Text: query, Limit: 3})[0].Doc; got != want {
			t.Errorf("%s: document %d, want %d", query, got, want)
		}
	}
}

// TestRank_CurrentStatement: what holds now precedes what it replaced also if a later message, which has only the name and one more
// word of the question, comes first because of its answer.
func TestRank_CurrentStatement(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	c := &Corpus{}
	for i, one := range []struct {
		day  int
		text string
	}{
		{0, "The server of Pavel runs version 7.0."},
		{2, "We upgraded the server of Pavel to version 5.3."},
		{4, "Pavel called about a server."},
		{4, "Run the server with a version for which there are updates, and run the newest version of the server."},
		{6, "The server of Greta runs version 6.2."},
	} {
		c.Add(Document{Seq: int64(i + 1), Time: at.AddDate(0, 0, one.day).Add(time.Duration(i) * time.Minute), Text: one.text})
	}
	found := docsOf(rank(t, c, Query{Text: "Which version does the server of Pavel run?", Limit: 5}))
	if now, before := slices.Index(found, 1), slices.Index(found, 0); now < 0 || before < now {
		t.Errorf("the order is %v", found)
	}
}

// TestRank_When: a question for a time finds the message that names one first.
func TestRank_When(t *testing.T) {
	c := corpusOf("Ann: the camping trip with the kids was great fun", "Bob: nice", "Ann: we went on a camping trip last week with all the kids", "Bob: nice")
	for query, want := range map[string]int{"When was the camping trip with the kids?": 2, "How was the camping trip with the kids?": 0} {
		if got := rank(t, c, Query{Text: query, Limit: 1})[0].Doc; got != want {
			t.Errorf("%s: document %d, want %d", query, got, want)
		}
	}
}
