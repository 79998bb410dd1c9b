package lsp

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// cursor is what is put into a text where the cursor stands, so that the outline
// has something there: a character that no document holds.
const cursor = "\ue000"

// completer makes the proposals for one place.
type completer struct {
	lang   *language
	survey *syntaxIndex
	here   *word     // what the cursor stands in
	doc    *document // as the editor has it
	at     int       // the cursor's offset in it
	items  []completionItem
	start  int // the stretch that a proposal replaces
	end    int
}

// complete answers what could be typed at a place.
func (s *server) complete(_ context.Context, p positionParams) (completionList, error) {
	list := completionList{Items: []completionItem{}}
	d, err := s.held(p.TextDocument)
	if err != nil {
		return list, err
	}
	c := &completer{lang: s.lang, doc: d, at: d.offset(p.Position)}
	marked := parseOutline(d.text[:c.at] + cursor + d.text[c.at:])
	for _, root := range s.space.rootsOf(d.path) {
		c.survey = indexSyntax(s.lang, root, func(path string) *outline {
			if path == d.path {
				return marked
			}
			return s.space.outlineOf(path)
		})
		if c.find() {
			c.propose()
			break
		}
	}
	list.Items = nonNil(c.items)
	return list, nil
}

// find looks for the word with the cursor in it and tells whether there is one.
func (c *completer) find() bool {
	for i := range c.survey.marks[c.doc.path] {
		m := &c.survey.marks[c.doc.path][i]
		if m.start <= c.at && c.at < m.end && strings.Contains(m.text, cursor) {
			c.here = m
			c.span(m)
			return true
		}
	}
	return false
}

// span sets the stretch that is replaced: the word around the cursor, in the
// text as the editor has it.
func (c *completer) span(m *word) {
	first, last := m.start, m.end-len(cursor)
	if m.node != nil && m.node.style != plain {
		first++ // behind the quote
		last = c.at
	}
	c.start, c.end = max(first, c.doc.starts[c.doc.line(c.at)]), last
	// Only what looks like one word is replaced, behind the cursor as before it.
	for i := c.at; i > c.start; i-- {
		if !isTypeChar(c.doc.text[i-1]) {
			c.start = i
		}
	}
	c.end = max(c.at, min(c.end, len(c.doc.text)))
	for i := c.at; i < c.end; i++ {
		if !isTypeChar(c.doc.text[i]) {
			c.end = i
		}
	}
}

// isTypeChar tells whether a character belongs to a word, a type expression or a path.
func isTypeChar(b byte) bool { return isWord(b) || strings.IndexByte("[]?.!/:", b) >= 0 }

// propose adds what fits at the cursor.
func (c *completer) propose() {
	m := c.here
	switch m.role {
	case asKey:
		c.keys(m.in, m.pair)
	case asBinding:
		c.bindingNames(m.in, m.field, m.pair)
	case asTag:
		c.tags(m.in.union)
	case asRef:
		c.references(wantedBy(m.of))
	case asType:
		c.types()
	case asValue:
		c.values(m)
	}
}

// values proposes for a scalar, which may also become the first key of a mapping
// or the first item of a list.
func (c *completer) values(m *word) {
	if m.of == nil || m.field.holdsPlaceholders() {
		c.placeholders(m)
		return
	}
	t := m.of
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == formulaType:
		c.formula()
	case c.isAloneOnLine() && c.proposeOpeners(t, m):
	case m.field == nil:
	case len(m.field.enum) > 0 && t.Kind() == reflect.String:
		c.enum(m.field)
	case t.Kind() == reflect.Bool:
		for _, word := range []string{"true", "false"} {
			c.addValue(word, proposeValue, m.field, m.field.fallback == word)
		}
	case m.field.hasDefault:
		c.addValue(m.field.fallback, proposeValue, m.field, true)
	}
}

// proposeOpeners proposes what a mapping or a list may start with, and tells whether the
// type is one.
func (c *completer) proposeOpeners(t reflect.Type, m *word) bool {
	switch u := c.lang.union(t); {
	case u != nil:
		c.firstKeys(nil, u)
	case t == reflect.TypeFor[spec.Bindings]():
		c.bindingNames(m.in, m.field, nil)
	case t == reflect.TypeFor[spec.Assignments]():
		c.variables()
	case c.lang.isSpecial(t):
		return false
	case t.Kind() == reflect.Struct:
		c.firstKeys(c.lang.classes[t], nil)
	case t.Kind() == reflect.Slice:
		c.add(completionItem{Label: "- ", Kind: proposeStruct, Detail: "a new item"}, "- ")
	default:
		return false
	}
	return true
}

// holdsPlaceholders tells whether the texts under a key may hold {name}.
func (f *field) holdsPlaceholders() bool {
	if f == nil {
		return false
	}
	switch f.owner.of {
	case reflect.TypeFor[spec.PromptTemplate]():
		return f.name == "template"
	case reflect.TypeFor[spec.APITool]():
		return f.name == "endpoint"
	}
	return false
}

// isAloneOnLine tells whether the cursor's word has its line, or the line behind a dash,
// for itself: there a mapping or a list may start.
func (c *completer) isAloneOnLine() bool {
	before := c.doc.text[c.doc.starts[c.doc.line(c.at)]:c.start]
	return strings.Trim(before, " \t-") == ""
}

// firstKeys proposes the keys of a mapping that has none yet.
func (c *completer) firstKeys(k *class, u *spec.Union) {
	c.keys(&mappingNode{node: &node{kind: mapping}, class: k, union: u, up: c.here.in, path: c.doc.path}, nil)
}

// keys proposes the keys of a mapping that are not there yet.
func (c *completer) keys(o *mappingNode, typing *pair) {
	if o == nil {
		return
	}
	there := map[string]bool{}
	for _, p := range o.node.pairs {
		if p != typing {
			there[p.key] = true
		}
	}
	bare := typing != nil && typing.colon // the colon is there already
	if o.union != nil && !there["type"] && (o.class == nil || o.class.byName["type"] == nil) {
		c.addKey(&field{name: "type", doc: "Which " + o.union.Name + " this is: " + joinAlternatives(c.lang.cases(o.union)), of: reflect.TypeFor[string](),
			owner: o.class, required: !o.union.TagOptional}, bare, 0)
	}
	for i, f := range c.fieldsOf(o) {
		if !there[f.name] {
			c.addKey(f, bare, i+1)
		}
	}
	if o.union != nil && o.union.Type == reflect.TypeFor[spec.Step]() && len(there) == 0 {
		c.addKey(&field{name: "$ref", doc: "The id of a step that is written elsewhere.", of: reflect.TypeFor[spec.Ref[spec.Step]]()}, bare, 99)
	}
}

// fieldsOf are the keys of a mapping's class; of a union that has not been
// decided those that all of its alternatives share.
func (c *completer) fieldsOf(o *mappingNode) []*field {
	if o.class != nil {
		return o.class.fields
	}
	if o.union == nil {
		return nil
	}
	cases := c.lang.cases(o.union)
	if o.union.TagOptional {
		var all []*field
		for _, k := range cases {
			for _, f := range k.fields {
				if !slices.ContainsFunc(all, func(g *field) bool { return g.name == f.name }) {
					all = append(all, f)
				}
			}
		}
		return all
	}
	return slices.DeleteFunc(slices.Clone(cases[0].fields), func(f *field) bool {
		return slices.ContainsFunc(cases[1:], func(k *class) bool { return k.byName[f.name] == nil })
	})
}

// joinAlternatives names the first alternatives of a union.
func joinAlternatives(cases []*class) string {
	const most = 8
	var names []string
	for i, k := range cases {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, k.tag)
	}
	return strings.Join(names, ", ")
}

// addKey proposes a key with what follows it.
func (c *completer) addKey(f *field, bare bool, order int) {
	item := completionItem{Label: f.name, Kind: proposeProperty, Detail: c.lang.shape(f.of), Documentation: markdown(keyText(f, c.lang))}
	item.SortText = fmt.Sprintf("%d%02d", 1, order)
	if f.required {
		item.SortText = fmt.Sprintf("%d%02d", 0, order)
		item.Detail += " (required)"
	}
	text := f.name
	if !bare {
		text += ": "
		if opens, below := c.keySuffix(f.of); below && !c.inBrackets() {
			text = f.name + ":\n" + strings.Repeat(" ", c.column()+2) + opens
			item.Mode = insertTextModeAsIs
		}
	}
	c.add(item, text)
}

// keySuffix is what the first line below a key starts with: a dash for a list,
// nothing for a mapping. It tells whether the value stands below the key at all.
func (c *completer) keySuffix(t reflect.Type) (start string, below bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case c.lang.isSpecial(t):
		return "", c.lang.forms[t].below
	case t.Kind() == reflect.Slice:
		return "- ", !isRef(t.Elem()) && t.Elem().Kind() != reflect.String
	}
	return "", t.Kind() == reflect.Struct || t.Kind() == reflect.Interface || t.Kind() == reflect.Map
}

// column is how far the replaced word stands from the line's start.
func (c *completer) column() int { return c.start - c.doc.starts[c.doc.line(c.at)] }

// inBrackets tells whether the cursor is in a collection in brackets.
func (c *completer) inBrackets() bool {
	if c.here.in != nil && c.here.in.node.flow {
		return true
	}
	before := c.doc.text[c.doc.starts[c.doc.line(c.at)]:c.at]
	return strings.Count(before, "[") > strings.Count(before, "]") || strings.Count(before, "{") > strings.Count(before, "}")
}

// tags proposes the alternatives of a union.
func (c *completer) tags(u *spec.Union) {
	for _, k := range c.lang.cases(u) {
		c.add(completionItem{Label: k.tag, Kind: proposeClass, Detail: u.Name, Documentation: markdown(k.doc)}, k.tag)
	}
}

// enum proposes the only values that a key takes.
func (c *completer) enum(f *field) {
	for _, word := range f.enum {
		c.addValue(word, proposeEnumMember, f, f.hasDefault && f.fallback == word)
	}
}

// addValue proposes a value, the default in front.
func (c *completer) addValue(word string, kind int, f *field, isDefault bool) {
	item := completionItem{Label: word, Kind: kind, Preselect: isDefault}
	if isDefault {
		item.Detail = "default"
	}
	if f != nil {
		item.Documentation = markdown(cmp.Or(f.enumDocs[word], f.doc))
	}
	c.add(item, word)
}

// add adds a proposal that replaces the word at the cursor.
func (c *completer) add(item completionItem, text string) {
	item.TextEdit = &textEdit{c.doc.span(c.start, c.end), text}
	item.FilterText = item.Label
	c.items = append(c.items, item)
}
