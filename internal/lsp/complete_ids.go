package lsp

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// proposeReferences proposes the ids that a reference may name.
func (c *completer) proposeReferences(wants reflect.Type) {
	if wants == reflect.TypeFor[*spec.Variable]() {
		c.proposeVariables()
		return
	}
	listed := c.listedIDs()
	for _, e := range c.syntax.entities {
		if e.class.isAssignableTo(wants) && !slices.Contains(listed, e.id) && !(wants == reflect.TypeFor[spec.Step]() && c.isInside(e)) {
			c.addEntity(e)
		}
	}
}

// isInside reports whether the cursor is within an entity.
func (c *completer) isInside(e *entity) bool {
	for o := c.target.mapping; o != nil; o = o.parent {
		if o.node == e.node {
			return true
		}
	}
	return false
}

// proposeVariables proposes the variables of the flow at the cursor, or those of
// the document and of other flows if it has none. Variables that the list names
// already are left out.
func (c *completer) proposeVariables() {
	flow := c.target.mapping.flow()
	listed := c.listedIDs()
	var own, others []*entity
	for _, e := range c.syntax.entities {
		switch {
		case !e.class.isAssignableTo(reflect.TypeFor[*spec.Variable]()) || e.parent.tool() != nil || slices.Contains(listed, e.id):
		case isSameMapping(e.parent.flow(), flow):
			own = append(own, e)
		default:
			others = append(others, e)
		}
	}
	if len(own) == 0 {
		own = others
	}
	for _, e := range own {
		c.addEntity(e)
	}
}

// isSameMapping reports whether two nodes are the same mapping: a file that is
// included twice has two.
func isSameMapping(a, b *mappingNode) bool {
	return a == b || a != nil && b != nil && a.node == b.node
}

// listedIDs returns the other ids of the list at the cursor.
func (c *completer) listedIDs() []string {
	if c.target.field == nil || c.target.mapping == nil || c.target.field.goType.Kind() != reflect.Slice {
		return nil
	}
	return c.target.mapping.ids(c.target.field.name)
}

// addEntity proposes the id of an entity, once.
func (c *completer) addEntity(e *entity) {
	if e.id == "" || strings.Contains(e.id, cursor) || slices.ContainsFunc(c.items, func(i protocol.CompletionItem) bool { return i.Label == e.id }) {
		return
	}
	detail := string(e.class.kind())
	if e.class.tag != "" && e.class.tag != "Model" {
		detail = e.class.tag
	}
	if e.class.goType == reflect.TypeFor[spec.Variable]() {
		detail = e.node.GetText("type")
	}
	text := quoteID(e.id)
	if p := c.target.pair; p != nil && !p.Colon || c.target.goType == reflect.TypeFor[spec.Assignments]() {
		text += ": " // the id is a key
	}
	c.add(protocol.CompletionItem{Label: e.id, Kind: presentationOf(e.class.kind()).completion, Detail: detail, Documentation: protocol.Markdown(e.description())}, text)
}

// proposeExpressionNames proposes variables for the name at the cursor in an
// expression.
func (c *completer) proposeExpressionNames() {
	if c.selectName() {
		c.proposeVariables()
	}
}

// selectName replaces the name at the cursor, within an expression. It reports whether that
// is the name of a variable.
func (c *completer) selectName() bool {
	c.start, c.end = c.offset, c.offset
	for c.start > 0 && outline.IsWordByte(c.doc.text[c.start-1]) {
		c.start--
	}
	for c.end < len(c.doc.text) && outline.IsWordByte(c.doc.text[c.end]) {
		c.end++
	}
	return c.start == 0 || c.doc.text[c.start-1] != '.' // a field of a record
}

// description returns the description of an entity and some of its settings.
func (e *entity) description() string {
	text := e.node.GetText("description")
	for _, key := range []string{"provider", "model_id", "token_limit", "endpoint", "method"} {
		if v := e.node.GetText(key); v != "" {
			text += fmt.Sprintf("\n\n%s: `%s`", key, v)
		}
	}
	return strings.TrimSpace(text)
}

// quoteID quotes an id that YAML would read as another type.
func quoteID(id string) string {
	if isPlainID(id) {
		return id
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
}

// proposeTypes proposes type expressions; after "list[" only element types.
func (c *completer) proposeTypes() {
	if i := strings.LastIndexByte(c.doc.text[c.start:c.offset], '['); i >= 0 {
		c.start += i + 1
		for c.end > c.start && strings.IndexByte("]?", c.doc.text[c.end-1]) >= 0 {
			c.end--
		}
		c.end = max(c.end, c.offset)
	} else {
		c.addType("list[text]", "a list", "3")
	}
	for _, name := range spec.Primitives() {
		c.addType(name, "built-in type", "1")
	}
	for _, name := range spec.DomainTypes() {
		c.addType(name, "built-in record", "2")
	}
	c.addType(spec.Any, "any JSON value", "2")
	for _, e := range c.syntax.entities {
		if e.class.goType == reflect.TypeFor[spec.CustomType]() && !strings.Contains(e.id, cursor) {
			c.add(protocol.CompletionItem{Label: e.id, Kind: protocol.CompletionItemKindStruct, Detail: "type", SortText: "0" + e.id, Documentation: protocol.Markdown(e.description())}, e.id)
		}
	}
}

// addType proposes a built-in type. order sorts scalars before records.
func (c *completer) addType(name, detail, order string) {
	c.add(protocol.CompletionItem{Label: name, Kind: protocol.CompletionItemKindClass, Detail: detail, SortText: order + name}, name)
}

// proposeBindingNames proposes the names of the invoked flow, tool or record.
func (c *completer) proposeBindingNames(o *mappingNode, f *field, typing *outline.Pair) {
	if o == nil || f == nil || o.class == nil {
		return
	}
	there := map[string]bool{}
	if v := o.node.Get(f.name); v != nil {
		for _, p := range v.Pairs {
			there[p.Key] = p != typing
		}
	}
	for _, name := range c.boundNames(o, f.isOutput) {
		if there[name.id] {
			continue
		}
		text := name.id
		if typing == nil || !typing.Colon {
			text += ": "
		}
		c.add(protocol.CompletionItem{Label: name.id, Kind: protocol.CompletionItemKindProperty, Detail: name.detail}, text)
	}
}

// namedDetail is a name with the text that editors show next to it.
type namedDetail struct{ id, detail string }

// boundNames returns the inputs or outputs of the flow or tool that a step invokes,
// or the properties of the record that it constructs.
func (c *completer) boundNames(o *mappingNode, outputs bool) []namedDetail {
	switch {
	case o.class.byName["flow"] != nil:
		return c.flowNames(o.refID("flow"), outputs)
	case o.class.byName["tool"] != nil:
		return c.toolNames(o.refID("tool"), outputs)
	}
	var found []namedDetail
	for _, id := range o.ids("outputs") {
		v := c.syntax.findEntity(id, reflect.TypeFor[*spec.Variable](), o)
		if v == nil {
			continue
		}
		t := c.syntax.findEntity(strings.TrimSuffix(v.node.GetText("type"), "?"), reflect.TypeFor[*spec.CustomType](), o)
		if t == nil {
			continue
		}
		if properties := t.node.Get("properties"); properties != nil {
			for _, p := range properties.Pairs {
				found = append(found, namedDetail{p.Key, p.Value.Text})
			}
		}
	}
	return found
}

// refID returns the id of the reference in a key.
func (o *mappingNode) refID(key string) string {
	if w := o.node.GetText(key); w != "" {
		return w
	}
	return o.node.Get(key).GetText("$ref")
}

// flowNames returns the inputs or outputs of a flow with their types.
func (c *completer) flowNames(id string, outputs bool) []namedDetail {
	flow := c.syntax.findEntity(id, reflect.TypeFor[*spec.Flow](), nil)
	if flow == nil {
		return nil
	}
	key := "inputs"
	if outputs {
		key = "outputs"
	}
	var found []namedDetail
	for _, name := range flow.ids(key) {
		detail := ""
		if v := c.syntax.findEntity(name, reflect.TypeFor[*spec.Variable](), flow.mappingNode); v != nil {
			detail = v.node.GetText("type")
		}
		found = append(found, namedDetail{name, detail})
	}
	return found
}

// toolNames returns the arguments or results of a tool with their types.
func (c *completer) toolNames(id string, outputs bool) []namedDetail {
	tool := c.syntax.findEntity(id, reflect.TypeFor[spec.Tool](), nil)
	switch {
	case tool == nil:
		return nil
	case tool.class.byName["flow"] != nil:
		return c.flowNames(tool.refID("flow"), outputs)
	case outputs:
		return declaredVariables(tool.list("outputs"))
	}
	return declaredVariables(tool.arguments())
}

// arguments returns the variables that a mapping declares as arguments.
func (o *mappingNode) arguments() []*outline.Node {
	var all []*outline.Node
	for _, f := range o.class.fields {
		if f.isArgument && f.goType == reflect.TypeFor[[]*spec.Variable]() {
			all = append(all, o.list(f.name)...)
		}
	}
	return all
}

// declaredVariables returns the ids and types of declared variables.
func declaredVariables(variables []*outline.Node) []namedDetail {
	var found []namedDetail
	for _, v := range variables {
		found = append(found, namedDetail{v.GetText("id"), v.GetText("type")})
	}
	return found
}

// proposePlaceholders proposes the names that a text may contain in braces.
func (c *completer) proposePlaceholders(m *syntaxWord) {
	if m.field == nil || m.mapping == nil {
		return
	}
	line := c.doc.text[c.doc.starts[c.doc.line(c.offset)]:c.offset]
	open := strings.LastIndexByte(line, '{')
	if open < 0 || strings.ContainsAny(line[open:], "}!:") || strings.HasSuffix(line[:open], "$") {
		return
	}
	c.start = c.offset - (len(line) - open - 1)
	c.end = c.offset
	for c.end < len(c.doc.text) && outline.IsWordByte(c.doc.text[c.end]) {
		c.end++
	}
	closing := "}"
	if c.end < len(c.doc.text) && c.doc.text[c.end] == '}' {
		closing = ""
	}
	names := m.mapping.ids("inputs")
	if m.mapping.class != nil {
		for _, v := range declaredVariables(m.mapping.arguments()) {
			names = append(names, v.id)
		}
	}
	for _, id := range names {
		c.add(protocol.CompletionItem{Label: id, Kind: protocol.CompletionItemKindVariable, Detail: "input of the step"}, id+closing)
	}
}
