package semdiff

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// port is one input or output of a flow or a tool.
type port struct {
	id       string // by its name in the new document
	was      string // its own name
	typ      string // its type, without a trailing ?
	optional bool
	span     source.Span // where it is named
	declared source.Span // where its type stands
}

// side is one list of inputs or outputs of something that others call.
type side struct {
	noun     string // input or output
	list     string // the key of the list
	owner    Change // kind and id of what is called
	tool     bool   // a tool, not a flow
	isOutput bool
}

func (c *comparison) portOf(v *spec.Variable, span source.Span) port {
	t := v.Type
	t.Optional = false
	if span.IsZero() {
		span = idPlace(v)
	}
	return port{id: c.read.idOf(v), was: v.ID, typ: c.read.typeText(t), optional: v.IsOptional(), span: span,
		declared: v.Place().Field("type").Span()}
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

// toolPorts compares the inputs and outputs of a tool.
func (c *comparison) toolPorts(p pair) {
	before, after := p.old.entity.(spec.Tool), p.new.entity.(spec.Tool)
	owner := Change{Kind: spec.KindTool, ID: after.EntityID()}
	c.ports(side{noun: "input", list: "inputs", owner: owner, tool: true},
		c.toolVariables(toolInputs(before)), c.toolVariables(toolInputs(after)))
	c.ports(side{noun: "output", list: "outputs", owner: owner, tool: true, isOutput: true},
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

// ports compares one side of a flow or a tool. Their order means nothing, but
// for the columns that a flow gives.
func (c *comparison) ports(s side, before, after []port) {
	for _, old := range before {
		i := slices.IndexFunc(after, func(p port) bool { return p.id == old.id })
		if i < 0 {
			c.add(s.of(old.id, Change{Class: Breaking, What: Removed, Message: "removed", Reason: s.reason(Removed), Old: Version{Span: old.span}}))
			continue
		}
		now := after[i]
		if old.was != now.was {
			c.add(s.of(now.id, Change{Class: Breaking, What: Renamed, Message: renamedFrom(old.was), Reason: s.reason(Renamed),
				Old: Version{old.span, plain(old.was)}, New: Version{now.span, plain(now.was)}}))
		}
		if old.typ != now.typ || old.optional != now.optional {
			c.retyped(s, old, now)
		}
	}
	for _, now := range after {
		if !slices.ContainsFunc(before, func(p port) bool { return p.id == now.id }) {
			c.addedPort(s, now)
		}
	}
	if s.isOutput && !s.tool && sameSet(before, after) && !sameOrder(before, after) {
		change := s.owner
		change.Class, change.What, change.Field = Behaviour, Moved, s.list
		change.Message, change.Reason = "outputs in another order", "files of results have their columns in this order"
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

// of says which port of the side changed.
func (s side) of(id string, change Change) Change {
	change.Kind, change.ID, change.Field = s.owner.Kind, s.owner.ID, s.list+"."+id
	change.Message = s.noun + " " + plain(id) + ": " + change.Message
	return change
}

func (c Change) at(old, now Version) Change {
	c.Old, c.New = old, now
	return c
}

// reason says whom a change of a port breaks.
func (s side) reason(what ChangeKind) string {
	switch {
	case s.tool && s.isOutput:
		return "what uses the tool's result relies on it"
	case s.tool:
		return "the tool is called in another way than before"
	case s.isOutput:
		return "callers rely on what they are given"
	case what == Added:
		return "callers do not send it yet"
	}
	return "callers still send it as it was"
}

func (c *comparison) addedPort(s side, p port) {
	change := Change{Class: Harmless, What: Added, Message: "added, " + p.typ, New: Version{Span: p.span}}
	switch {
	case s.isOutput:
	case p.optional:
		change.Message += ", optional"
		if s.tool {
			change.Class, change.Reason = Behaviour, "models are told of it"
		}
	default:
		change.Class, change.Message, change.Reason = Breaking, change.Message+", required", s.reason(Added)
	}
	c.add(s.of(p.id, change))
}

// retyped judges another type of a port: callers may always be given less
// freedom in what they get, and more in what they give.
func (c *comparison) retyped(s side, old, now port) {
	was, is := Version{old.declared, plain(old.full())}, Version{now.declared, plain(now.full())}
	change := Change{Class: Breaking, What: Changed, Message: was.Value + " → " + is.Value, Reason: s.reason(Changed), Old: was, New: is}
	if old.typ == now.typ && s.isOutput == old.optional {
		change.Class, change.Reason = Harmless, ""
	}
	c.add(s.of(now.id, change))
}

// full is the type with its ?.
func (p port) full() string {
	if p.optional {
		return p.typ + "?"
	}
	return p.typ
}
