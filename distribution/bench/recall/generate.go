package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// timeForm is the form of the times of turns.
const timeForm = "3:04 pm on 2 January, 2006"

// generator writes conversations with long answers, code, tables, dates and values that
// change. The evidence of each question is known because the generator placed it.
type generator struct {
	*rand.Rand
	at     time.Time
	c      conversation
	typos  bool
	stated map[string]statements // by the question about them
}

// fact is something that a user states, and a question about it in other words. {x} is
// whom or what it is about, {v} the value.
type fact struct{ say, ask, about, values string }

//nolint:gochecknoglobals // constant tables
var (
	people = strings.Fields("Ines Marek Tobias Leila Anouk Pavel Greta")
	facts  = []fact{
		{"My sister {x} has just moved to {v}, she found a flat there.", "Which city does my sister {x} live in?", "", "Lisbon Tallinn Krakow Ghent Porto Graz Malmo Turin"},
		{"The landlord of {x}'s studio raised the rent to {v} euros a month.", "How much does the studio of {x} cost each month?", "", "640 715 780 835 910 1050 1175 1240"},
		{"{x} and I adopted a dog, we named him {v}.", "What is the name of the pet that {x} and I took in?", "", "Biscuit Pepper Waffle Tundra Mango Comet Pickle Rufus"},
		{"I lent my {v} to {x} for the holidays.", "What did {x} borrow from me?", "", "tent kayak drill projector telescope cello camera toolbox"},
		{"By the way, {x} is allergic to {v}, I have to remember that when I cook.", "What food must I avoid when {x} comes for dinner?", "", "peanuts shrimp celery sesame lupin mustard walnuts soy"},
		{"{x} started a new job as a {v} this month.", "What does {x} do for a living?", "", "nurse carpenter translator pilot surveyor baker chemist librarian"},
		{"We agreed that the {x} project uses {v} as its database from now on.", "Where does the {x} project store its data?", "Falcon Otter Juniper Quartz Ember Willow Basalt Heron", "PostgreSQL MariaDB Cassandra ClickHouse DuckDB CockroachDB MongoDB Neo4j"},
		{"The deadline of the {x} project is the {v} of next month.", "When is the {x} project due?", "Falcon Otter Juniper Quartz Ember Willow Basalt Heron", "third fifth eighth eleventh sixteenth nineteenth twenty-second twenty-seventh"},
		{"My doctor, Dr. {x}, told me to take {v} every morning.", "Which medicine did Dr. {x} prescribe?", "", "magnesium iron zinc aspirin ibuprofen melatonin folate insulin"},
		{"{x} gave me a {v} for my birthday, I was so happy.", "What present did I get from {x}?", "", "scarf chessboard kettle fountain-pen hammock record-player compass teapot"},
		{"I broke my {v} when I went climbing with {x}.", "Which injury did I have on the trip with {x}?", "", "wrist ankle collarbone thumb elbow rib toe knee"},
		{"{x} plays the {v} in an orchestra, I heard her last night.", "Which instrument does {x} play?", "", "oboe bassoon harp viola trombone clarinet cello timpani"},
	}
	fields = []string{
		"garden: soil compost seedling trellis mulch greenhouse pruning watering roots frost",
		"server: cache database deployment container latency backup certificate cluster load-balancer log",
		"kitchen: dough oven yeast broth knife simmering marinade skillet seasoning crust",
		"training: running interval recovery stretching heart-rate endurance sleep squat hydration pace",
		"travel: itinerary train luggage hostel visa border ticket ferry insurance museum",
		"budget: invoice tax savings interest receipt deduction loan account pension spending",
		"workshop: plywood clamp varnish sanding joint chisel drill glue hinge bench",
		"photography: lens aperture tripod exposure shutter editing contrast portrait flash film",
	}
	advice = []string{
		"Before you change the {a}, check that the {b} is in good order, because most problems begin there.",
		"A common mistake is to rush the {a}; give it a day and look at the {b} again.",
		"If the {a} and the {b} do not match, start with the smaller of the two.",
		"Many people underestimate how much the {a} depends on the {b}, especially in the first weeks.",
		"Write down what you did with the {a}, so that you can repeat it or undo it later.",
		"You do not need an expensive {a}; a simple {b} is enough for the first year.",
		"When in doubt, ask somebody who has worked with a {a} before you touch the {b}.",
		"It helps to compare the {a} with a photograph or a note from last month.",
		"Keep the {a} apart from the {b}, and label both of them.",
		"Which city you live in matters less for the {a} than people say; ask {x} how the {b} went.",
		"What a {a} costs each month depends on the {b}, as {x} knows.",
		"Where you store the {a} decides when the {b} is due, so plan the project with {x}.",
		"Play with the {a} for a week, avoid the {b}, and tell {x} what you did on the trip.",
		"A good name for the {a} is worth more than a present, and {x} can borrow the {b}.",
		"What {x} does for a living has no effect on the {a}, the food or the {b}.",
		"Once the {a} is stable, you can think about a better {b} and automate the boring part.",
	}
	models = strings.Fields("Arvo Brindle Corvus Delmar Estrel Fennec Galdo Hesper Ixion Jorvik Kestrel Lumen")
)

// generate writes conversations of about that many turns each, one a line.
func generate(w io.Writer, conversations, turns int, shape string) error {
	round, err := roundOf(shape)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	for i := range conversations {
		g := &generator{Rand: rand.New(rand.NewPCG(7, uint64(i))), at: time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC), typos: shape == "typos", stated: map[string]statements{}}
		g.c.ID = fmt.Sprintf("long%d", i+1)
		for len(g.c.Turns) < turns {
			round(g)
		}
		if err := enc.Encode(&g.c); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) pick(list []string) string { return list[g.IntN(len(list))] }

// say adds a turn and returns its id.
func (g *generator) say(author, text string) string {
	id := fmt.Sprintf("t%d", len(g.c.Turns)+1)
	g.c.Turns = append(g.c.Turns, turn{id, g.at.Format(timeForm), author, text})
	g.at = g.at.Add(time.Minute)
	return id
}

// ask adds a question, which replaces an earlier one with the same text.
func (g *generator) ask(text, id, quote string) {
	if g.typos {
		text = g.misspell(text)
	}
	g.c.Questions = slices.DeleteFunc(g.c.Questions, func(q question) bool { return q.Question == text })
	g.c.Questions = append(g.c.Questions, question{Question: text, Evidence: []string{id}, Quotes: []string{quote}})
}

// misspell swaps two letters within each long word that is no name.
func (g *generator) misspell(text string) string {
	all := strings.Fields(text)
	for i, w := range all {
		if len(w) >= 6 && strings.ToLower(w) == w {
			at := 2 + g.IntN(len(w)-4)
			all[i] = w[:at] + w[at+1:at+2] + w[at:at+1] + w[at+2:]
		}
	}
	return strings.Join(all, " ")
}

// topic returns what the next question is about, sometimes after some days, and its words.
func (g *generator) topic() (name string, words []string) {
	if g.IntN(6) == 0 {
		g.at = g.at.Add(time.Duration(1+g.IntN(9)) * 24 * time.Hour)
	}
	name, list, _ := strings.Cut(g.pick(fields), ": ")
	return name, strings.Fields(list)
}

// want returns a question.
func (g *generator) want(name string, words []string) string {
	return fmt.Sprintf("How should I handle the %s and the %s for my %s?", g.pick(words), g.pick(words), name)
}

// round adds a question of the user, half of them with a fact, and a long answer.
func (g *generator) round() {
	name, words := g.topic()
	want := g.want(name, words)
	if g.IntN(2) == 0 {
		f := facts[g.IntN(len(facts))]
		about := people
		if f.about != "" {
			about = strings.Fields(f.about)
		}
		fill := strings.NewReplacer("{x}", g.pick(about), "{v}", strings.ReplaceAll(g.pick(strings.Fields(f.values)), "-", " "))
		said := fill.Replace(f.say)
		g.ask(fill.Replace(f.ask), g.say("user", said+" "+want), said)
	} else {
		g.say("user", want+" "+g.pick(people)+" asked me the same.")
	}
	g.answer(name, words)
}

// answer adds a long answer.
func (g *generator) answer(name string, words []string) {
	id := fmt.Sprintf("t%d", len(g.c.Turns)+1)
	parts := []string{fmt.Sprintf("Good question. Here is how I would approach your %s.", name)}
	for range 3 + g.IntN(5) {
		parts = append(parts, g.paragraph(words))
	}
	switch g.IntN(4) {
	case 0:
		parts = slices.Insert(parts, 1+g.IntN(len(parts)), g.table(id, g.pick(words)))
	case 1:
		parts = slices.Insert(parts, 1+g.IntN(len(parts)), g.code(id, g.pick(words), g.pick(words)))
	}
	g.say("assistant", strings.Join(parts, "\n\n"))
}

// paragraph returns sentences, or a list of them.
func (g *generator) paragraph(words []string) string {
	first, between := "", " "
	if g.IntN(3) == 0 {
		first, between = "## About the "+g.pick(words)+"\n\n- ", "\n- "
	}
	var all []string
	for range 3 + g.IntN(4) {
		all = append(all, strings.NewReplacer("{a}", g.pick(words), "{b}", g.pick(words), "{x}", g.pick(people)).Replace(g.pick(advice)))
	}
	return first + strings.Join(all, between)
}

// table returns a table, and asks for one of its rows.
func (g *generator) table(id, word string) string {
	rows := []string{"| model | price | weight |", "| --- | --- | --- |"}
	asked := g.IntN(5)
	for i := range 5 {
		name := fmt.Sprintf("%s %d", g.pick(models), 100+g.IntN(900))
		row := fmt.Sprintf("| %s | %d euros | %d grams |", name, 20+g.IntN(400), 100+g.IntN(3000))
		rows = append(rows, row)
		if i == asked {
			g.ask(fmt.Sprintf("How heavy was the %s in your list?", name), id, row)
		}
	}
	return "These models of a " + word + " are worth a look:\n\n" + strings.Join(rows, "\n")
}

// code returns a program, and asks for its function.
func (g *generator) code(id, one, two string) string {
	one, two = strings.ReplaceAll(one, "-", "_"), strings.ReplaceAll(two, "-", "_")
	n := 2 + g.IntN(90)
	head := fmt.Sprintf("def %s_%s_%d(values):", one, two, n)
	g.ask(fmt.Sprintf("What does the function %s_%s_%d that you wrote return?", one, two, n), id, head)
	return fmt.Sprintf("```python\n%s\n    total = sum(v * %d for v in values)\n\n    return total / max(len(values), 1)\n```", head, n)
}
