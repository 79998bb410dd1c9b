package main

import "strings"

// changed is a statement, another one that replaces it, and a question about what holds now. The second statement has
// words of the question in half of them. {x} is a person, {v} the value.
type changed struct{ first, then, ask, values string }

//nolint:gochecknoglobals // constant tables
var changes = []changed{
	{"My sister {x} has a flat in {v}.", "{x} packed everything and moved to {v} last weekend.", "Where does {x} live?", "Lisbon Tallinn Krakow Ghent Porto Graz Malmo Turin"},
	{"{x} works as a {v}.", "{x} quit and begins as a {v} on Monday.", "What is the job of {x}?", "nurse carpenter translator pilot surveyor baker chemist librarian"},
	{"{x} pays {v} euros for the studio.", "The rent that {x} pays went to {v} euros.", "How much rent does {x} pay?", "640 715 780 835 910 1050 1175 1240"},
	{"{x} goes to the office by {v}.", "{x} gave that up and takes the {v} to the office.", "How does {x} get to the office?", "scooter tram bicycle ferry motorcycle bus van train"},
	{"My appointment with {x} is on the {v}.", "{x} called, our appointment is on the {v} instead.", "When is my appointment with {x}?", "third fifth eighth eleventh sixteenth nineteenth twenty-second twenty-seventh"},
	{"{x} is learning to play the {v}.", "{x} no longer likes that, she has lessons on the {v} now.", "Which instrument does {x} learn?", "oboe bassoon harp viola trombone clarinet cello timpani"},
	{"{x} wishes for a {v} as a birthday present.", "{x} has changed her mind, the present should be a {v}.", "Which birthday present does {x} want?", "scarf chessboard kettle lamp hammock record compass teapot"},
	{"Dr. {x} prescribed {v} for me.", "Dr. {x} said I should take {v} and not the other one.", "Which medicine do I take on the advice of Dr. {x}?", "magnesium iron zinc aspirin ibuprofen melatonin folate insulin"},
	{"The deadline of the {x} project is the {v} of May.", "We moved the deadline of the {x} project to the {v}.", "When is the deadline of the {x} project?", "third fifth eighth eleventh sixteenth nineteenth twenty-second twenty-seventh"},
	{"The password hint of {x} is {v}.", "I changed the password hint of {x}, it is {v} from today.", "What is the password hint of {x}?", "walnut comet lantern ferry basil quartz meadow harpoon"},
	{"Our budget for the trip with {x} is {v} euros.", "We can only spend {v} euros on the trip with {x}.", "What is our budget for the trip with {x}?", "640 715 780 835 910 1050 1175 1240"},
	{"My favorite restaurant with {x} is the {v}.", "Since last week my favorite place to eat with {x} is the {v}.", "What is my favorite restaurant with {x}?", "Olive Lantern Harbor Cactus Saffron Anchor Juniper Pepper"},
	{"The cat of {x} weighs {v} kilos.", "The vet says the cat of {x} is at {v} kilos.", "How much does the cat of {x} weigh?", "three four five six seven eight nine ten"},
	{"The server of {x} runs version {v}.", "We upgraded the server of {x} to version {v}.", "Which version does the server of {x} run?", "4.1 4.2 4.5 5.0 5.3 6.1 6.2 7.0"},
	{"The meeting with {x} takes place in room {v}.", "The meeting with {x} is now in {v}.", "In which room is the meeting with {x}?", "Oslo Lima Quito Dakar Hanoi Perth Sofia Riga"},
	{"I use the {v} plan of {x}.", "I downgraded to the {v} plan of {x}.", "Which plan of {x} do I use?", "basic pro team gold silver family student premium"},
}

// statements are those about one thing, the newest last.
type statements struct {
	ids   []string
	value string // of the newest
}

// update adds a question of the user with a statement, which may replace earlier ones, and a long answer.
func (g *generator) update() {
	name, words := g.topic()
	c, person := &changes[g.IntN(len(changes))], g.pick(people)
	ask := strings.ReplaceAll(c.ask, "{x}", person)
	before, said := g.stated[ask], c.first
	if len(before.ids) > 0 {
		said = c.then
	}
	value := before.value
	for value == before.value {
		value = g.pick(strings.Fields(c.values))
	}
	said = strings.NewReplacer("{x}", person, "{v}", value).Replace(said)
	id := g.say("user", said+" "+g.want(name, words))
	g.stated[ask] = statements{append(before.ids, id), value}
	if len(before.ids) > 0 {
		g.ask(ask, id, said)
		g.c.Questions[len(g.c.Questions)-1].Outdated = before.ids
	}
	g.answer(name, words)
}
