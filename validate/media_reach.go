package validate

import "github.com/qtype-dev/qtype/spec"

// mediaReach is which variables and memories get media, as far as the types of variables and the steps of
// the document say: messages that callers pass may have any.
type mediaReach map[spec.Node]mediaSources

// mediaSources are the variables that media come from, by their type: image, audio, video or file.
type mediaSources map[string]*spec.Variable

// mediaReach returns the media that flow through the document.
func (p *checker) mediaReach() mediaReach {
	if p.media != nil {
		return p.media
	}
	p.media = mediaReach{}
	next := map[spec.Node][]spec.Node{}
	for _, v := range p.nodes {
		if s, ok := v.node.(spec.Step); ok {
			p.addMediaEdges(next, s)
		}
	}
	for _, v := range p.nodes {
		if variable, ok := v.node.(*spec.Variable); ok && mediaType(variable.Type) != "" {
			p.media.add(next, variable, variable)
		}
	}
	return p.media
}

// add adds the media of a variable to a node and all that get them from it.
func (m mediaReach) add(next map[spec.Node][]spec.Node, at spec.Node, from *spec.Variable) {
	kind := mediaType(from.Type)
	if memory, ok := at.(*spec.Memory); ok && kind == "image" && memory.DropImages == 1 {
		return // only the round of the image itself has it
	}
	if m[at] == nil {
		m[at] = mediaSources{}
	}
	if m[at][kind] != nil {
		return
	}
	m[at][kind] = from
	for _, to := range next[at] {
		m.add(next, to, from)
	}
}

// addMediaEdges adds where a step passes media: from its inputs to the messages that it makes, the flows that it
// calls and its memory.
func (p *checker) addMediaEdges(next map[spec.Node][]spec.Node, s spec.Step) {
	plan := p.stepPlan(s)
	connect := func(from, to *spec.Variable) {
		if from != nil && to != nil && holdsMedia(to.Type) {
			next[from] = append(next[from], to)
		}
	}
	computes := len(plan.Models())+len(plan.Tools())+len(plan.Calls()) == 0
	for _, in := range plan.Reads {
		if memory := plan.Conversation(); memory != nil && in.To != nil {
			next[in.To] = append(next[in.To], memory)
		}
		for _, to := range plan.Handoffs() {
			if to.To != nil && len(to.To.Inputs) > 0 {
				connect(in.To, to.To.Inputs[0].To)
			}
		}
		for _, out := range plan.Writes {
			if computes {
				connect(in.To, out.To)
			}
		}
	}
	for _, call := range plan.Calls() {
		if call.Flow.To == nil {
			continue
		}
		connectBound(call.Inputs, plan.Reads, call.Flow.To.Inputs, connect)
		connectBound(call.Outputs, plan.Writes, call.Flow.To.Outputs, func(outer, inner *spec.Variable) { connect(inner, outer) })
	}
}

// connectBound calls connect with the variables of a calling flow and those of the called flow that they are
// bound to, by their ids without bindings.
func connectBound(bindings *spec.Bindings, outer []*spec.Ref[*spec.Variable], inner []spec.Ref[*spec.Variable], connect func(outer, inner *spec.Variable)) {
	pair := func(from *spec.Variable, id string) {
		for i := range inner {
			if inner[i].ID == id {
				connect(from, inner[i].To)
			}
		}
	}
	if bindings == nil {
		for _, ref := range outer {
			pair(ref.To, ref.ID)
		}
		return
	}
	for i := range *bindings {
		pair((*bindings)[i].Var.To, (*bindings)[i].Name)
	}
}

// elementOf returns the type of the elements of lists, or the type itself.
func elementOf(t spec.Type) spec.Type {
	for t.Elem != nil {
		t = *t.Elem
	}
	return t
}

// mediaType returns image, audio, video or file for a type of such values or lists of them, else nothing.
func mediaType(t spec.Type) string {
	if name := elementOf(t).Name; modalitiesOf(name) != nil {
		return name
	}
	return ""
}

// holdsMedia reports whether values of a type are messages or parts of messages, or lists of them.
func holdsMedia(t spec.Type) bool {
	name := elementOf(t).Name
	return name == "ChatMessage" || name == "ChatContent"
}
