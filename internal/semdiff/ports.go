package semdiff

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

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
