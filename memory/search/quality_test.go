package search_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec/chat"
)

// visits is a conversation of two people on some days.
const visits = `
2024-02-03 Mara: How did the move to Lisbon go?
2024-02-03 Jon: Exhausting, but the flat has a view of the river.
2024-02-03 Mara: And the piano?
2024-02-03 Jon: Four men carried it upstairs, it only lost a pedal.
2024-02-17 Mara: I started running again, five kilometers before work.
2024-02-17 Jon: Impressive! My only sport is climbing the hills with groceries.
2024-02-17 Mara: My knee complains, so I bought new shoes.
2024-03-09 Jon: The bakery downstairs hired me for the weekends.
2024-03-09 Mara: You, baking bread at four in the morning?
2024-03-09 Jon: Rye and sourdough, and I burned the first twelve loaves.
2024-04-20 Mara: The half marathon was yesterday. I finished in two hours and four minutes.
2024-04-20 Jon: Congratulations! Which medal did you get?
2024-04-20 Mara: Each runner got a wooden one.
2024-05-11 Jon: My sister Ines visited, we went to the aquarium.
2024-05-11 Mara: Did she like it?
2024-05-11 Jon: She could not stop watching the sea otters.
2024-06-01 Mara: I adopted a greyhound. He is called Biscuit.
2024-06-01 Jon: Does he run with you?
2024-06-01 Mara: He sleeps, twenty hours a day.
`

// TestSearch_Quality checks that the three best messages have the answers of questions
// which name authors and dates, use other forms of words, or ask for the reply to another
// message.
func TestSearch_Quality(t *testing.T) {
	now := time.Time{}
	m := newMemory(t, memory.Config{Now: func() time.Time { return now }}, memory.NewInProcess())
	for line := range strings.Lines(strings.TrimSpace(visits)) {
		day, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, text, _ := strings.Cut(rest, ": ")
		var err error
		now, err = time.Parse(time.DateOnly, day)
		testkit.Must(t, err)
		msg := chat.Text(chat.User, text)
		msg.Name = name
		testkit.Must(t, m.Append(t.Context(), "s", msg))
	}
	s := search.New(m)
	for question, answer := range map[string]string{
		"What happened to the piano?":             "lost a pedal",
		"Which breads does Jon bake?":             "Rye and sourdough",
		"How many loaves were burnt or burned?":   "twelve loaves",
		"How long did Mara's half marathon take?": "two hours",
		"What medals were given?":                 "wooden one",
		"Who visits Jon?":                         "Ines",
		"What did Jon's sister like?":             "sea otters",
		"What pet did Mara adopt?":                "greyhound",
		"What did Mara buy on 17 February 2024?":  "new shoes",
		"What did Jon report in March?":           "bakery",
	} {
		got := find(t, s, search.Query{Text: question, Scope: search.Session("s"), Limit: 3})
		if !slices.ContainsFunc(got, func(text string) bool { return strings.Contains(text, answer) }) {
			t.Errorf("%s %q", question, got)
		}
	}
}
