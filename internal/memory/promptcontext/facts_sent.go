package promptcontext

import (
	"cmp"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
)

// factLine is a text of a fact that a call may send.
type factLine struct {
	text    string // with when it held
	version *FactVersion
	former  bool // it no longer holds
}

// factLines returns the texts of facts, those of the fact that was stated last first, each before the texts that it replaced.
// Texts that a person replaced or deleted are not sent.
func factLines(facts []Fact) (lines []factLine) {
	facts = slices.Clone(facts)
	slices.SortStableFunc(facts, func(a, b Fact) int {
		return b.Versions[len(b.Versions)-1].from().Compare(a.Versions[len(a.Versions)-1].from())
	})
	for i := range facts {
		f := &facts[i]
		if f.Deleted != nil && f.Deleted.Seq == 0 {
			continue
		}
		for n := len(f.Versions) - 1; n >= 0; n-- {
			_, until := f.Held(n)
			v := &f.Versions[n]
			lines = append(lines, factLine{"- " + v.Text + held(v.Stated, until), v, !until.IsZero()})
			if v.Seq == 0 {
				break
			}
		}
	}
	return lines
}

// held returns the days from which and until which a text held, as far as they are known, in parentheses.
func held(stated, until time.Time) string {
	switch from, to := stated.Format(time.DateOnly), until.Format(time.DateOnly); {
	case until.IsZero() && stated.IsZero():
		return ""
	case until.IsZero():
		return " (" + from + ")"
	case stated.IsZero():
		return " (until " + to + ")"
	default:
		return " (" + from + " until " + to + ")"
	}
}

// factChoice is the order of facts for the question of a turn.
type factChoice struct {
	question *string // the newest user message of the first call
	lines    []factLine
	best     []int
}

// factUnits returns a line for each text of the facts. What no longer holds is cut first, then what was stated first. If the
// block has no room for all, best is true: it has those that are most relevant for the question of the turn.
func (t *turnContext) factUnits(facts []Fact, b *Block) (units []contextUnit, best bool) {
	lines, size := factLines(facts), t.count(b.heading()+"\n")
	for _, l := range lines {
		units = append(units, contextUnit{text: l.text, tokens: t.count(l.text + "\n")})
		size += units[len(units)-1].tokens
	}
	best = size > b.MaxTokens || b.TopK > 0 && len(units) > b.TopK
	var order []int
	if best {
		order = t.relevance(lines)
	}
	for _, former := range []bool{false, true} {
		for i := range lines {
			if lines[i].former == former && !slices.Contains(order, i) {
				order = append(order, i)
			}
		}
	}
	for rank, i := range order {
		units[i].rank = rank
	}
	if !best {
		return units, false
	}
	room, number := b.MaxTokens-t.count(bestFacts+"\n"), cmp.Or(b.TopK, len(units))
	sent := map[int]bool{}
	for rank, i := range order {
		if n := units[i].tokens; n <= room && len(sent) < number {
			room -= n
			sent[rank] = true
		}
	}
	return slices.DeleteFunc(units, func(u contextUnit) bool { return !sent[u.rank] }), true
}

// relevance returns the indexes of the lines that have something in common with the question, the best first.
func (t *turnContext) relevance(lines []factLine) []int {
	choice := &t.choice
	if choice.question == nil {
		question := t.session.NewestUser()
		if question == nil {
			return nil
		}
		text := question.Text()
		choice.question = &text
	}
	if same := func(a, b factLine) bool { return a.text == b.text }; slices.EqualFunc(choice.lines, lines, same) {
		return slices.Clone(choice.best)
	}
	var c ranking.Corpus
	for i, l := range lines {
		c.Add(ranking.Document{Session: int32(i), Time: l.version.from(), Text: l.version.Text}) // in sessions of their own: they have no neighbors
	}
	choice.lines, choice.best = lines, nil
	ranked, _ := c.Rank(t.session.Context(), ranking.Query{Text: *choice.question, Limit: len(lines), Whole: true, Now: t.session.Now()}) // nothing is read
	for _, r := range ranked {
		number, _ := c.At(r.Doc)
		choice.best = append(choice.best, int(number))
	}
	return slices.Clone(choice.best)
}
