package semdiff

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// compareFlows compares the inputs, outputs, variables and steps of the flows that
// both documents have.
func (c *comparison) compareFlows() {
	for _, p := range c.pairs {
		after, ok := p.new.entity.(*spec.Flow)
		if !ok {
			continue
		}
		before := p.old.entity.(*spec.Flow)
		owner := Change{Kind: spec.KindFlow, ID: after.ID}
		c.comparePorts(portList{noun: "input", list: "inputs", owner: owner}, c.flowPorts(before.Inputs), c.flowPorts(after.Inputs))
		c.comparePorts(portList{noun: "output", list: "outputs", owner: owner, isOutput: true}, c.flowPorts(before.Outputs), c.flowPorts(after.Outputs))
		c.compareVariables(before, after)
		c.compareSteps(before, after)
	}
}

// compareVariables compares the variables of a flow; inputs and outputs are
// compared separately.
func (c *comparison) compareVariables(before, after *spec.Flow) {
	served := func(f *spec.Flow, v *spec.Variable) bool {
		same := func(r spec.Ref[*spec.Variable]) bool { return r.To == v }
		return slices.ContainsFunc(f.Inputs, same) || slices.ContainsFunc(f.Outputs, same)
	}
	for _, now := range after.Variables {
		i := slices.IndexFunc(before.Variables, func(v *spec.Variable) bool { return c.read.idOf(v) == now.ID })
		switch {
		case i >= 0:
			old := before.Variables[i]
			c.compareVariable(after, old, now, served(before, old) && served(after, now))
		case !served(after, now):
			c.add(Change{Impact: Harmless, Action: Added, Kind: spec.KindVariable, ID: now.ID, Flow: after.ID, Message: "added", New: Version{Span: idSpan(now)}})
		}
	}
	for _, old := range before.Variables {
		if !served(before, old) && !slices.ContainsFunc(after.Variables, func(v *spec.Variable) bool { return c.read.idOf(old) == v.ID }) {
			c.add(Change{Impact: Harmless, Action: Removed, Kind: spec.KindVariable, ID: old.ID, Flow: after.ID, Message: "removed", Old: Version{Span: idSpan(old)}})
		}
	}
}

// compareVariable compares a variable that both documents have. The name and type
// of an input or output are compared separately.
func (c *comparison) compareVariable(f *spec.Flow, old, now *spec.Variable, served bool) {
	p := pair{&comparedEntity{entity: old, flow: f}, &comparedEntity{entity: now, flow: f}}
	if !served {
		c.compareInnerVariable(p, c.portOf(old, source.Span{}), c.portOf(now, source.Span{}))
	}
	c.compareTrees(p, "", c.read.readEntity(old, "id", "type", "optional"), c.read.readEntity(now, "id", "type", "optional"))
}

// compareInnerVariable compares the name and type of a variable that is neither
// input nor output.
func (c *comparison) compareInnerVariable(p pair, old, now port) {
	if old.ownName != now.ownName {
		change := entityChange(Renamed, p.new)
		change.Impact, change.Message = Harmless, renamedFrom(old.ownName)
		c.add(change.withVersions(Version{p.old.span(), printable(old.ownName)}, Version{p.new.span(), printable(now.ownName)}))
	}
	if was, is := printable(old.typeText()), printable(now.typeText()); was != is {
		change := entityChange(Changed, p.new)
		change.Impact, change.Field, change.Message = Behaviour, "type", "type: "+was+" → "+is
		c.add(change.withVersions(Version{old.typeSpan, was}, Version{now.typeSpan, is}))
	}
}

// compareSteps compares which steps a flow has, and their order.
func (c *comparison) compareSteps(before, after *spec.Flow) {
	olds, news := c.stepIDs(before), c.stepIDs(after)
	for i, id := range olds {
		if !slices.Contains(news, id) {
			change := Change{Impact: Behaviour, Action: Removed, Kind: spec.KindStep, ID: before.Steps[i].Step.EntityID(), Flow: after.ID,
				Message: "removed", Old: Version{Span: itemSpan(before.Steps[i])}}
			c.add(change)
		}
	}
	for i, id := range news {
		if !slices.Contains(olds, id) {
			c.add(Change{Impact: Behaviour, Action: Added, Kind: spec.KindStep, ID: id, Flow: after.ID,
				Message: "added" + stepPosition(news, i), New: Version{Span: itemSpan(after.Steps[i])}})
		}
	}
	stays := longestCommonOrder(olds, news)
	for i, id := range news {
		at := slices.Index(olds, id)
		if at < 0 || slices.Contains(stays, id) {
			continue
		}
		c.add(Change{Impact: Behaviour, Action: Moved, Kind: spec.KindStep, ID: id, Flow: after.ID,
			Message: fmt.Sprintf("moved: now%s, was%s", stepPosition(news, i), stepPosition(olds, at)),
			Old:     Version{Span: itemSpan(before.Steps[at])}, New: Version{Span: itemSpan(after.Steps[i])}})
	}
}

// stepPosition describes the position of a step in its flow.
func stepPosition(ids []string, i int) string {
	if i == 0 {
		return " first"
	}
	return " after " + printable(ids[i-1])
}

// itemSpan returns the position of a flow's reference to a step, or of its
// definition.
func itemSpan(item *spec.StepItem) source.Span {
	if !item.Ref.Span.IsZero() {
		return item.Ref.Span
	}
	return idSpan(item.Step)
}

// longestCommonOrder returns the longest list of ids that have the same order in
// both lists (the longest increasing subsequence of their old positions). A flow
// contains a step at most once.
func longestCommonOrder(olds, news []string) []string {
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
	previous := make([]int, len(ids)) // index of the predecessor in the best sequence that ends here
	var ends []int                    // index of the end of the best sequence of each length
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
