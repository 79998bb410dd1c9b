package semdiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// matchEntities pairs the entities of the two documents: entities with the same id, and
// entities that differ only in their id, if there is exactly one on each side.
func (c *comparison) matchEntities() {
	c.read.renamed = map[spec.Entity]string{}
	matched := map[*comparedEntity]*comparedEntity{} // new to old
	for _, s := range c.new.entities {
		if old := c.old.byKey[key{s.entity.Kind(), s.id()}]; old != nil {
			matched[s] = old
		}
	}
	for range 2 { // the second round matches what became equal by the renames of the first
		for _, kind := range matchOrder() {
			c.matchRenamed(kind, matched)
		}
		for _, p := range flowPairs(c.new.entities, matched) {
			c.matchVariables(p.old.entity.(*spec.Flow), p.new.entity.(*spec.Flow))
		}
	}
	for _, s := range c.new.entities {
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

// matchRenamed pairs entities of a kind with different ids.
func (c *comparison) matchRenamed(kind spec.Kind, matched map[*comparedEntity]*comparedEntity) {
	taken := map[*comparedEntity]bool{}
	for _, old := range matched {
		taken[old] = true
	}
	olds, news := map[string][]*comparedEntity{}, map[string][]*comparedEntity{}
	for _, s := range c.old.ofKind(kind) {
		if !taken[s] {
			d := c.digest(s)
			olds[d] = append(olds[d], s)
		}
	}
	for _, s := range c.new.ofKind(kind) {
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

// digest returns the content of an entity without its id.
func (c *comparison) digest(s *comparedEntity) string {
	f, ok := s.entity.(*spec.Flow)
	if !ok {
		in := ""
		if s.flow != nil {
			in = c.read.idOf(s.flow)
		}
		return in + c.read.readEntity(s.entity, "id").digest()
	}
	return c.read.readEntity(f, "id", "steps", "variables").digest() + strings.Join(c.stepIDs(f), "\x00")
}

// stepIDs returns the ids of a flow's steps in the new document, in order.
func (c *comparison) stepIDs(f *spec.Flow) []string {
	var ids []string
	for _, item := range f.Steps {
		if item != nil && item.Step != nil {
			ids = append(ids, c.read.idOf(item.Step))
		}
	}
	return ids
}

// matchVariables pairs variables of a flow that have different names, but the same
// type and the same readers and writers.
func (c *comparison) matchVariables(before, after *spec.Flow) {
	olds, news := c.unmatchedVariables(before, after, true), c.unmatchedVariables(after, before, false)
	for d, same := range news {
		if len(same) == 1 && len(olds[d]) == 1 {
			c.read.renamed[olds[d][0]] = same[0].ID
		}
	}
}

// unmatchedVariables groups the variables that only one version of a flow has, by
// type and uses. Unused variables are left out: they cannot be distinguished.
func (c *comparison) unmatchedVariables(f, other *spec.Flow, old bool) map[string][]*spec.Variable {
	found := map[string][]*spec.Variable{}
	uses := c.variableUses(f)
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

// variableUses returns the uses of each variable by a flow and its steps.
func (c *comparison) variableUses(f *spec.Flow) map[*spec.Variable][]string {
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
