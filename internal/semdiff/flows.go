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

// port is an input or output of a flow or tool.
type port struct {
	id       string // in the new document
	ownName  string // in its own document
	typ      string // without a trailing ?
	optional bool
	span     source.Span // where the list names it
	typeSpan source.Span // of the type
}

// portList is the list of inputs or outputs of a flow or tool.
type portList struct {
	noun     string // "input" or "output"
	list     string // the key of the list
	owner    Change // the kind and id of the flow or tool
	isTool   bool   // of a tool, not a flow
	isOutput bool
}

func (c *comparison) portOf(v *spec.Variable, span source.Span) port {
	t := v.Type
	t.Optional = false
	if span.IsZero() {
		span = idSpan(v)
	}
	return port{id: c.read.idOf(v), ownName: v.ID, typ: c.read.typeText(t), optional: v.IsOptional(), span: span,
		typeSpan: v.Position().Field("type").Span()}
}

func (c *comparison) flowPorts(refs []spec.Ref[*spec.Variable]) []port {
	var ports []port
	for _, r := range refs {
		if r.To != nil {
			ports = append(ports, c.portOf(r.To, r.Span))
		}
	}
	return ports
}

// compareToolPorts compares the inputs and outputs of a tool.
func (c *comparison) compareToolPorts(p pair) {
	before, after := p.old.entity.(spec.Tool), p.new.entity.(spec.Tool)
	owner := Change{Kind: spec.KindTool, ID: after.EntityID()}
	c.comparePorts(portList{noun: "input", list: "inputs", owner: owner, isTool: true},
		c.toolVariables(toolInputs(before)), c.toolVariables(toolInputs(after)))
	c.comparePorts(portList{noun: "output", list: "outputs", owner: owner, isTool: true, isOutput: true},
		c.toolVariables(before.Common().Outputs), c.toolVariables(after.Common().Outputs))
}

// toolInputs returns the arguments that a tool declares. Those of a tool that runs
// a flow are compared as the inputs of the flow.
func toolInputs(t spec.Tool) []*spec.Variable {
	if runsFlow := len(spec.Refs[*spec.Flow](spec.UsesOf(t), spec.RoleFlow)) > 0; runsFlow {
		return nil
	}
	return t.Arguments()
}

func (c *comparison) toolVariables(vars []*spec.Variable) []port {
	var ports []port
	for _, v := range vars {
		ports = append(ports, c.portOf(v, source.Span{}))
	}
	return ports
}

// comparePorts compares the inputs or outputs of a flow or tool. Their order
// matters only for the outputs of a flow, which are columns.
func (c *comparison) comparePorts(s portList, before, after []port) {
	for _, old := range before {
		i := slices.IndexFunc(after, func(p port) bool { return p.id == old.id })
		if i < 0 {
			c.add(s.portChange(old.id, Change{Impact: Breaking, Action: Removed, Message: "removed", Reason: s.reason(Removed), Old: Version{Span: old.span}}))
			continue
		}
		now := after[i]
		if old.ownName != now.ownName {
			c.add(s.portChange(now.id, Change{Impact: Breaking, Action: Renamed, Message: renamedFrom(old.ownName), Reason: s.reason(Renamed),
				Old: Version{old.span, printable(old.ownName)}, New: Version{now.span, printable(now.ownName)}}))
		}
		if old.typ != now.typ || old.optional != now.optional {
			c.typeChanged(s, old, now)
		}
	}
	for _, now := range after {
		if !slices.ContainsFunc(before, func(p port) bool { return p.id == now.id }) {
			c.portAdded(s, now)
		}
	}
	if s.isOutput && !s.isTool && sameSet(before, after) && !sameOrder(before, after) {
		change := s.owner
		change.Impact, change.Action, change.Field = Behaviour, Moved, s.list
		change.Message, change.Reason = "outputs in another order", "result files have their columns in this order"
		change.Old, change.New = Version{Span: before[0].span}, Version{Span: after[0].span}
		c.add(change)
	}
}

func sameSet(a, b []port) bool {
	return len(a) == len(b) && len(a) > 0 && !slices.ContainsFunc(a, func(p port) bool {
		return !slices.ContainsFunc(b, func(q port) bool { return p.id == q.id })
	})
}

func sameOrder(a, b []port) bool {
	return slices.EqualFunc(a, b, func(p, q port) bool { return p.id == q.id })
}

// portChange completes the change of a port.
func (s portList) portChange(id string, change Change) Change {
	change.Kind, change.ID, change.Field = s.owner.Kind, s.owner.ID, s.list+"."+id
	change.Message = s.noun + " " + printable(id) + ": " + change.Message
	return change
}

func (c Change) withVersions(old, now Version) Change {
	c.Old, c.New = old, now
	return c
}

// reason returns whom the change of a port breaks.
func (s portList) reason(action ChangeKind) string {
	switch {
	case s.isTool && s.isOutput:
		return "users of the tool's result rely on it"
	case s.isTool:
		return "callers of the tool must change"
	case s.isOutput:
		return "callers rely on the output"
	case action == Added:
		return "callers do not send it yet"
	}
	return "callers still send the old one"
}

func (c *comparison) portAdded(s portList, p port) {
	change := Change{Impact: Harmless, Action: Added, Message: "added, " + p.typ, New: Version{Span: p.span}}
	switch {
	case s.isOutput:
	case p.optional:
		change.Message += ", optional"
		if s.isTool {
			change.Impact, change.Reason = Behaviour, "models see it"
		}
	default:
		change.Impact, change.Message, change.Reason = Breaking, change.Message+", required", s.reason(Added)
	}
	c.add(s.portChange(p.id, change))
}

// typeChanged adds the change of a port's type. Making an input optional or an
// output required is harmless.
func (c *comparison) typeChanged(s portList, old, now port) {
	was, is := Version{old.typeSpan, printable(old.typeText())}, Version{now.typeSpan, printable(now.typeText())}
	change := Change{Impact: Breaking, Action: Changed, Message: was.Value + " → " + is.Value, Reason: s.reason(Changed), Old: was, New: is}
	if old.typ == now.typ && s.isOutput == old.optional {
		change.Impact, change.Reason = Harmless, ""
	}
	c.add(s.portChange(now.id, change))
}

// typeText returns the type with its "?".
func (p port) typeText() string {
	if p.optional {
		return p.typ + "?"
	}
	return p.typ
}
