package semdiff

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// flows compares the lists of the flows that both documents have: what they
// take and give, their variables and the order of their steps.
func (c *comparison) flows() {
	for _, p := range c.pairs {
		after, ok := p.new.entity.(*spec.Flow)
		if !ok {
			continue
		}
		before := p.old.entity.(*spec.Flow)
		owner := Change{Kind: spec.KindFlow, ID: after.ID}
		c.ports(side{noun: "input", list: "inputs", owner: owner}, c.flowPorts(before.Inputs), c.flowPorts(after.Inputs))
		c.ports(side{noun: "output", list: "outputs", owner: owner, isOutput: true}, c.flowPorts(before.Outputs), c.flowPorts(after.Outputs))
		c.variables(before, after)
		c.steps(before, after)
	}
}

// variables compares the variables that callers do not see.
func (c *comparison) variables(before, after *spec.Flow) {
	served := func(f *spec.Flow, v *spec.Variable) bool {
		same := func(r spec.Ref[*spec.Variable]) bool { return r.To == v }
		return slices.ContainsFunc(f.Inputs, same) || slices.ContainsFunc(f.Outputs, same)
	}
	for _, now := range after.Variables {
		i := slices.IndexFunc(before.Variables, func(v *spec.Variable) bool { return c.read.idOf(v) == now.ID })
		switch {
		case i >= 0:
			old := before.Variables[i]
			c.variable(after, old, now, served(before, old) && served(after, now))
		case !served(after, now):
			c.add(Change{Class: Harmless, What: Added, Kind: spec.KindVariable, ID: now.ID, Flow: after.ID, Message: "added", New: Version{Span: idPlace(now)}})
		}
	}
	for _, old := range before.Variables {
		if !served(before, old) && !slices.ContainsFunc(after.Variables, func(v *spec.Variable) bool { return c.read.idOf(old) == v.ID }) {
			c.add(Change{Class: Harmless, What: Removed, Kind: spec.KindVariable, ID: old.ID, Flow: after.ID, Message: "removed", Old: Version{Span: idPlace(old)}})
		}
	}
}

// variable compares a variable of both documents; the name and the type of a
// served one were compared as an input or output.
func (c *comparison) variable(f *spec.Flow, old, now *spec.Variable, served bool) {
	p := pair{&comparedEntity{entity: old, flow: f}, &comparedEntity{entity: now, flow: f}}
	if !served {
		c.inner(p, c.portOf(old, source.Span{}), c.portOf(now, source.Span{}))
	}
	c.fields(p, "", c.read.entity(old, "id", "type", "optional"), c.read.entity(now, "id", "type", "optional"))
}

// inner compares the name and the type of a variable that callers do not see.
func (c *comparison) inner(p pair, old, now port) {
	if old.was != now.was {
		change := whole(Renamed, p.new)
		change.Class, change.Message = Harmless, renamedFrom(old.was)
		c.add(change.at(Version{p.old.place(), plain(old.was)}, Version{p.new.place(), plain(now.was)}))
	}
	if was, is := plain(old.full()), plain(now.full()); was != is {
		change := whole(Changed, p.new)
		change.Class, change.Field, change.Message = Behaviour, "type", "type: "+was+" → "+is
		c.add(change.at(Version{old.declared, was}, Version{now.declared, is}))
	}
}

// steps compares which steps a flow has, and their order.
func (c *comparison) steps(before, after *spec.Flow) {
	olds, news := c.stepIDs(before), c.stepIDs(after)
	for i, id := range olds {
		if !slices.Contains(news, id) {
			change := Change{Class: Behaviour, What: Removed, Kind: spec.KindStep, ID: before.Steps[i].Step.EntityID(), Flow: after.ID,
				Message: "removed", Old: Version{Span: itemPlace(before.Steps[i])}}
			c.add(change)
		}
	}
	for i, id := range news {
		if !slices.Contains(olds, id) {
			c.add(Change{Class: Behaviour, What: Added, Kind: spec.KindStep, ID: id, Flow: after.ID,
				Message: "added" + position(news, i), New: Version{Span: itemPlace(after.Steps[i])}})
		}
	}
	stays := common(olds, news)
	for i, id := range news {
		at := slices.Index(olds, id)
		if at < 0 || slices.Contains(stays, id) {
			continue
		}
		c.add(Change{Class: Behaviour, What: Moved, Kind: spec.KindStep, ID: id, Flow: after.ID,
			Message: fmt.Sprintf("moved: now%s, was%s", position(news, i), position(olds, at)),
			Old:     Version{Span: itemPlace(before.Steps[at])}, New: Version{Span: itemPlace(after.Steps[i])}})
	}
}

// position says where in a list of steps one stands.
func position(ids []string, i int) string {
	if i == 0 {
		return " first"
	}
	return " after " + plain(ids[i-1])
}

// itemPlace is where a flow names a step, or defines it.
func itemPlace(item *spec.StepItem) source.Span {
	if !item.Ref.Span.IsZero() {
		return item.Ref.Span
	}
	return idPlace(item.Step)
}

// common is the longest list of ids that are in the same order in both lists:
// the longest rising run of their old positions. A step is at most once in a flow.
func common(olds, news []string) []string {
	at := map[string]int{}
	for i, id := range olds {
		at[id] = i
	}
	var ids []string
	for _, id := range news {
		if _, ok := at[id]; ok {
			ids = append(ids, id)
		}
	}
	previous := make([]int, len(ids)) // the index before each in the best run that ends with it
	var ends []int                    // the index at which the best run of each length ends
	for i, id := range ids {
		n, _ := slices.BinarySearchFunc(ends, at[id], func(end, want int) int { return at[ids[end]] - want })
		if previous[i] = -1; n > 0 {
			previous[i] = ends[n-1]
		}
		ends = append(ends[:n], append([]int{i}, ends[min(n+1, len(ends)):]...)...)
	}
	var run []string
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			run = append(run, ids[i])
		}
	}
	return run
}
