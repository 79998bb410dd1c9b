package airefinery

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// store is a VariableMemoryModule: a memory with named values.
type store struct {
	memory string   // id of the memory
	names  []string // of the values, in order
	ids    []string // variables of the flows that read them
	values []string // as in the file
	at     source.Span
}

// contexts are what an agent reads in addition to the request.
type contexts struct {
	memory string   // id of the memory with the conversation; may be empty
	values *store   // named values; may be nil
	names  []string // of the values that the agent reads
}

// id returns the variable of a named value that the agent reads, "" if it reads none of that name.
func (c contexts) id(name string) string {
	if c.values == nil || !slices.Contains(c.names, name) {
		return ""
	}
	return c.values.ids[slices.Index(c.values.names, name)]
}

// ids returns the variables of the values that the agent reads.
func (c contexts) ids() []string {
	var all []string
	for _, name := range c.names {
		all = append(all, c.id(name))
	}
	return all
}

// value returns the expression of a named value: that of the memory, otherwise that of the file.
func (c contexts) value(name string) string {
	return "(" + c.id(name) + " ?? " + literal(c.values.values[slices.Index(c.values.names, name)]) + ")"
}

// contextsOf returns what the contexts of an agent refer to.
func (p *project) contextsOf(config *input.Node) (found contexts) {
	all := config.Get("contexts")
	if all == nil {
		return found
	}
	items := all.Elements()
	if all.Kind == input.Text {
		p.Assumed(all, "contexts must be a list; using %s as its only entry", all.Describe())
		items = []*input.Node{all}
	} else {
		p.List(config, "contexts")
	}
	for _, n := range items {
		name, part := n, (*input.Node)(nil)
		if of := n.Entries(); len(of) == 1 { // a part of a memory
			name = &input.Node{Kind: input.Text, Text: of[0].Key, Span: of[0].KeySpan}
			part = of[0].Value
		}
		id := p.contextMemory(name.Text)
		if s := p.values[id]; s != nil && (found.values == nil || found.values == s) {
			found.values, found.names = s, p.selected(s, part)
			p.used[id] = p.used[id] || len(found.names) > 0
			continue
		}
		if part != nil && len(part.Pairs) > 0 {
			p.Unsupported(part, "selecting a part of context %s has no counterpart; all of it is sent", name.Text)
		}
		if id == "" || found.memory != "" && found.memory != id {
			p.Unsupported(name, "context %s has no counterpart", name.Describe())
			continue
		}
		p.used[id], found.memory = true, id
	}
	return found
}

// contextMemory returns the id of the memory of a context, "" if there is none.
func (p *project) contextMemory(name string) string {
	id := p.memories[name]
	if id != "" || name != "chat_history" {
		return id
	}
	if chats := p.chats(); len(chats) == 1 {
		return chats[0]
	} else if len(chats) > 1 {
		return ""
	}
	p.declareMemory(name, defaultRounds, defaultContext).Note("AI Refinery's default if a file declares no memory.")
	return p.memories[name]
}

// chats returns the ids of the memories with conversations.
func (p *project) chats() []string {
	return slices.DeleteFunc(slices.Clone(p.order), func(id string) bool { return p.values[id] != nil })
}

// selected returns the names of the values that a part of a context selects.
func (p *project) selected(s *store, part *input.Node) []string {
	if part == nil || part.Get("include_variables") == nil {
		return s.names
	}
	p.CheckKeys(part, "a context", "include_variables")
	var names []string
	for _, n := range p.List(part, "include_variables") {
		if !slices.Contains(s.names, n.Text) {
			p.Add(input.Malformed.At(n.Mark(), "unknown variable %s", n.Describe()).WithNearest(n.Text, s.names))
			continue
		}
		if !slices.Contains(names, n.Text) {
			names = append(names, n.Text)
		}
	}
	return names
}

// readValues returns the step that reads the named values of an agent.
func (p *project) readValues(f *document.Flow, c contexts) *document.Step {
	b := new(document.Block).Set("type", "MemoryVariables").Set("id", p.ids.New(f.ID+"_values", "values")).Set("memory", c.values.memory).
		Set("outputs", document.NameList(c.ids()))
	return &document.Step{Block: b, Writes: c.ids()}
}

// literal returns a string as an operand of an expression.
func literal(s string) string {
	if text := jq.Quote(s); !strings.Contains(s, "${") {
		return text
	}
	return "(" + jq.Quote(s) + ")"
}
