package semdiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// match finds what both documents have: things with the same id, and things
// that are the same but for their id, where there is only one of that content
// on either side.
func (c *comparison) match() {
	c.read.renamed = map[spec.Entity]string{}
	matched := map[*comparedEntity]*comparedEntity{} // new to old
	for _, s := range c.new.subjects {
		if old := c.old.by[key{s.entity.Kind(), s.id()}]; old != nil {
			matched[s] = old
		}
	}
	for range 2 { // a second time for what the first round's renames made alike
		for _, kind := range matchOrder() {
			c.matchRenamed(kind, matched)
		}
		for _, p := range flowPairs(c.new.subjects, matched) {
			c.matchVariables(p.old.entity.(*spec.Flow), p.new.entity.(*spec.Flow))
		}
	}
	for _, s := range c.new.subjects {
		if old := matched[s]; old != nil {
			c.pairs = append(c.pairs, pair{old, s})
		}
	}
}

func flowPairs(subjects []*comparedEntity, matched map[*comparedEntity]*comparedEntity) []pair {
	var pairs []pair
	for _, s := range subjects {
		if old := matched[s]; old != nil && s.entity.Kind() == spec.KindFlow {
			pairs = append(pairs, pair{old, s})
		}
	}
	return pairs
}

// matchRenamed pairs things of one kind whose ids differ.
func (c *comparison) matchRenamed(kind spec.Kind, matched map[*comparedEntity]*comparedEntity) {
	taken := map[*comparedEntity]bool{}
	for _, old := range matched {
		taken[old] = true
	}
	olds, news := map[string][]*comparedEntity{}, map[string][]*comparedEntity{}
	for _, s := range c.old.of(kind) {
		if !taken[s] {
			d := c.digest(s)
			olds[d] = append(olds[d], s)
		}
	}
	for _, s := range c.new.of(kind) {
		if matched[s] == nil {
			d := c.digest(s)
			news[d] = append(news[d], s)
		}
	}
	for d, same := range news {
		if len(same) == 1 && len(olds[d]) == 1 {
			matched[same[0]] = olds[d][0]
			c.read.renamed[olds[d][0].entity] = same[0].id()
		}
	}
}

// digest is what an entity says but for its id.
func (c *comparison) digest(s *comparedEntity) string {
	f, ok := s.entity.(*spec.Flow)
	if !ok {
		in := ""
		if s.flow != nil {
			in = c.read.idOf(s.flow)
		}
		return in + c.read.entity(s.entity, "id").digest()
	}
	return c.read.entity(f, "id", "steps", "variables").digest() + strings.Join(c.stepIDs(f), "\x00")
}

// stepIDs are the ids of a flow's steps in order, as the new document has them.
func (c *comparison) stepIDs(f *spec.Flow) []string {
	var ids []string
	for _, item := range f.Steps {
		if item != nil && item.Step != nil {
			ids = append(ids, c.read.idOf(item.Step))
		}
	}
	return ids
}

// matchVariables finds a flow's variables that only changed their names: of one
// type, and read and written in the same places.
func (c *comparison) matchVariables(before, after *spec.Flow) {
	olds, news := c.unmatched(before, after, true), c.unmatched(after, before, false)
	for d, same := range news {
		if len(same) == 1 && len(olds[d]) == 1 {
			c.read.renamed[olds[d][0]] = same[0].ID
		}
	}
}

// unmatched groups those variables of a flow that the other has not by what is
// done with them. A variable that nothing uses is left out: nothing tells it
// from another.
func (c *comparison) unmatched(f, other *spec.Flow, old bool) map[string][]*spec.Variable {
	found := map[string][]*spec.Variable{}
	uses := c.uses(f)
	for _, v := range f.Variables {
		_, renamed := c.read.renamed[v]
		has := slices.ContainsFunc(other.Variables, func(o *spec.Variable) bool { return o.ID == v.ID })
		if has || old && renamed || len(uses[v]) == 0 {
			continue
		}
		d := fmt.Sprint(c.read.typeText(v.Type), v.IsOptional(), uses[v])
		found[d] = append(found[d], v)
	}
	return found
}

// uses are the places where a flow and its steps name each variable.
func (c *comparison) uses(f *spec.Flow) map[*spec.Variable][]string {
	uses := map[*spec.Variable][]string{}
	note := func(where string, refs []*spec.Ref[*spec.Variable]) {
		for i, r := range refs {
			uses[r.To] = append(uses[r.To], fmt.Sprintf("%s %d", where, i))
		}
	}
	note("in", pointers(f.Inputs))
	note("out", pointers(f.Outputs))
	for _, p := range f.Plan().Steps {
		id := c.read.idOf(p.Step)
		note(id+" reads", p.Reads)
		note(id+" writes", p.Writes)
	}
	return uses
}

func pointers[T spec.Entity](refs []spec.Ref[T]) []*spec.Ref[T] {
	all := make([]*spec.Ref[T], len(refs))
	for i := range refs {
		all[i] = &refs[i]
	}
	return all
}
