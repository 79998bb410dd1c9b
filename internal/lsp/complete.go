package lsp

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// cursor is what is put into a text where the cursor stands, so that the outline
// has something there: a character that no document holds.
const cursor = "\ue000"

// completer makes the proposals for one place.
type completer struct {
	lang   *language
	syntax *syntaxIndex
	target *syntaxWord // what the cursor stands in
	doc    *document   // as the editor has it
	offset int         // the cursor's offset in it
	items  []protocol.CompletionItem
	start  int // the stretch that a proposal replaces
	end    int
}

// complete answers what could be typed at a place.
func (s *server) complete(_ context.Context, p protocol.TextDocumentPositionParams) (protocol.CompletionList, error) {
	list := protocol.CompletionList{Items: []protocol.CompletionItem{}}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return list, err
	}
	c := &completer{lang: s.lang, doc: d, offset: d.offset(p.Position)}
	marked := outline.Parse(d.text[:c.offset] + cursor + d.text[c.offset:])
	for _, root := range s.workspace.rootsOf(d.path) {
		c.syntax = indexSyntax(s.lang, root, func(path string) *outline.Node {
			if path == d.path {
				return marked
			}
			return s.workspace.outlineOf(path)
		})
		if c.findTarget() {
			c.propose()
			break
		}
	}
	list.Items = nonNil(c.items)
	return list, nil
}

// find looks for the word with the cursor in it and tells whether there is one.
func (c *completer) findTarget() bool {
	for i := range c.syntax.words[c.doc.path] {
		m := &c.syntax.words[c.doc.path][i]
		if m.start <= c.offset && c.offset < m.end && strings.Contains(m.text, cursor) {
			c.target = m
			c.setReplacedRange(m)
			return true
		}
	}
	return false
}

// span sets the stretch that is replaced: the word around the cursor, in the
// text as the editor has it.
func (c *completer) setReplacedRange(m *syntaxWord) {
	first, last := m.start, m.end-len(cursor)
	if m.node != nil && m.node.Style != outline.Plain {
		first++ // behind the quote
		last = c.offset
	}
	c.start, c.end = max(first, c.doc.starts[c.doc.line(c.offset)]), last
	// Only what looks like one word is replaced, behind the cursor as before it.
	for i := c.offset; i > c.start; i-- {
		if !isTypeChar(c.doc.text[i-1]) {
			c.start = i
		}
	}
	c.end = max(c.offset, min(c.end, len(c.doc.text)))
	for i := c.offset; i < c.end; i++ {
		if !isTypeChar(c.doc.text[i]) {
			c.end = i
		}
	}
}

// isTypeChar tells whether a character belongs to a word, a type expression or a path.
func isTypeChar(b byte) bool { return outline.IsWordByte(b) || strings.IndexByte("[]?.!/:", b) >= 0 }

// propose adds what fits at the cursor.
func (c *completer) propose() {
	m := c.target
	switch m.role {
	case roleKey:
		c.proposeKeys(m.mapping, m.pair)
	case roleBinding:
		c.proposeBindingNames(m.mapping, m.field, m.pair)
	case roleTag:
		c.proposeTags(m.mapping.union)
	case roleReference:
		c.proposeReferences(targetType(m.goType))
	case roleType:
		c.proposeTypes()
	case roleValue:
		c.proposeValues(m)
	}
}

// values proposes for a scalar, which may also become the first key of a mapping
// or the first item of a list.
func (c *completer) proposeValues(m *syntaxWord) {
	if m.goType == nil || m.field.holdsPlaceholders() {
		c.proposePlaceholders(m)
		return
	}
	t := m.goType
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == expressionType:
		c.proposeExpressionNames()
	case c.isAloneOnLine() && c.proposeOpeners(t, m):
	case m.field == nil:
	case len(m.field.enum) > 0 && t.Kind() == reflect.String:
		c.proposeEnum(m.field)
	case t.Kind() == reflect.Bool:
		for _, word := range []string{"true", "false"} {
			c.addValue(word, protocol.CompletionItemKindValue, m.field, m.field.defaultText == word)
		}
	case m.field.hasDefault:
		c.addValue(m.field.defaultText, protocol.CompletionItemKindValue, m.field, true)
	}
}

// proposeOpeners proposes what a mapping or a list may start with, and tells whether the
// type is one.
func (c *completer) proposeOpeners(t reflect.Type, m *syntaxWord) bool {
	switch u := c.lang.union(t); {
	case u != nil:
		c.proposeFirstKeys(nil, u)
	case t == reflect.TypeFor[spec.Bindings]():
		c.proposeBindingNames(m.mapping, m.field, nil)
	case t == reflect.TypeFor[spec.Assignments]():
		c.proposeVariables()
	case c.lang.isSpecial(t):
		return false
	case t.Kind() == reflect.Struct:
		c.proposeFirstKeys(c.lang.structs[t], nil)
	case t.Kind() == reflect.Slice:
		c.add(protocol.CompletionItem{Label: "- ", Kind: protocol.CompletionItemKindStruct, Detail: "a new item"}, "- ")
	default:
		return false
	}
	return true
}

// holdsPlaceholders reports whether the texts of a key may contain {name}.
func (f *field) holdsPlaceholders() bool { return f != nil && hasPlaceholders(f.syntax) }

// isAloneOnLine tells whether the cursor's word has its line, or the line behind a dash,
// for itself: there a mapping or a list may start.
func (c *completer) isAloneOnLine() bool {
	before := c.doc.text[c.doc.starts[c.doc.line(c.offset)]:c.start]
	return strings.Trim(before, " \t-") == ""
}

// firstKeys proposes the keys of a mapping that has none yet.
func (c *completer) proposeFirstKeys(k *structType, u *spec.Union) {
	c.proposeKeys(&mappingNode{node: &outline.Node{Kind: outline.Mapping}, class: k, union: u, parent: c.target.mapping, path: c.doc.path}, nil)
}

// keys proposes the keys of a mapping that are not there yet.
func (c *completer) proposeKeys(o *mappingNode, typing *outline.Pair) {
	if o == nil {
		return
	}
	there := map[string]bool{}
	for _, p := range o.node.Pairs {
		if p != typing {
			there[p.Key] = true
		}
	}
	bare := typing != nil && typing.Colon // the colon is there already
	if o.union != nil && !there["type"] && (o.class == nil || o.class.byName["type"] == nil) {
		c.addKey(&field{name: "type", doc: "Which " + o.union.Name + " this is: " + joinAlternatives(c.lang.alternatives(o.union)), goType: reflect.TypeFor[string](),
			owner: o.class, required: !o.union.TagOptional}, bare, 0)
	}
	for i, f := range c.fieldsOf(o) {
		if !there[f.name] {
			c.addKey(f, bare, i+1)
		}
	}
	if o.union != nil && o.union.Type == reflect.TypeFor[spec.Step]() && len(there) == 0 {
		c.addKey(&field{name: "$ref", doc: "The id of a step that is written elsewhere.", goType: reflect.TypeFor[spec.Ref[spec.Step]]()}, bare, 99)
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
	cases := c.lang.alternatives(o.union)
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
		return slices.ContainsFunc(cases[1:], func(k *structType) bool { return k.byName[f.name] == nil })
	})
}

// joinAlternatives names the first alternatives of a union.
func joinAlternatives(cases []*structType) string {
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
	item := protocol.CompletionItem{Label: f.name, Kind: protocol.CompletionItemKindProperty, Detail: c.lang.describeType(f.goType), Documentation: protocol.Markdown(keyText(f, c.lang))}
	item.SortText = fmt.Sprintf("%d%02d", 1, order)
	if f.required {
		item.SortText = fmt.Sprintf("%d%02d", 0, order)
		item.Detail += " (required)"
	}
	text := f.name
	if !bare {
		text += ": "
		if opens, below := c.keySuffix(f.goType); below && !c.inBrackets() {
			text = f.name + ":\n" + strings.Repeat(" ", c.column()+2) + opens
			item.InsertTextMode = protocol.InsertTextModeAsIs
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
		return "", c.lang.specialTypes[t].isMapping
	case t.Kind() == reflect.Slice:
		return "- ", !isRef(t.Elem()) && t.Elem().Kind() != reflect.String
	}
	return "", t.Kind() == reflect.Struct || t.Kind() == reflect.Interface || t.Kind() == reflect.Map
}

// column is how far the replaced word stands from the line's start.
func (c *completer) column() int { return c.start - c.doc.starts[c.doc.line(c.offset)] }

// inBrackets tells whether the cursor is in a collection in brackets.
func (c *completer) inBrackets() bool {
	if c.target.mapping != nil && c.target.mapping.node.Flow {
		return true
	}
	before := c.doc.text[c.doc.starts[c.doc.line(c.offset)]:c.offset]
	return strings.Count(before, "[") > strings.Count(before, "]") || strings.Count(before, "{") > strings.Count(before, "}")
}

// tags proposes the alternatives of a union.
func (c *completer) proposeTags(u *spec.Union) {
	for _, k := range c.lang.alternatives(u) {
		c.add(protocol.CompletionItem{Label: k.tag, Kind: protocol.CompletionItemKindClass, Detail: u.Name, Documentation: protocol.Markdown(k.doc)}, k.tag)
	}
}

// enum proposes the only values that a key takes.
func (c *completer) proposeEnum(f *field) {
	for _, word := range f.enum {
		c.addValue(word, protocol.CompletionItemKindEnumMember, f, f.hasDefault && f.defaultText == word)
	}
}

// addValue proposes a value, the default in front.
func (c *completer) addValue(word string, kind int, f *field, isDefault bool) {
	item := protocol.CompletionItem{Label: word, Kind: kind, Preselect: isDefault}
	if isDefault {
		item.Detail = "default"
	}
	if f != nil {
		item.Documentation = protocol.Markdown(cmp.Or(f.enumDocs[word], f.doc))
	}
	c.add(item, word)
}

// add adds a proposal that replaces the word at the cursor.
func (c *completer) add(item protocol.CompletionItem, text string) {
	item.TextEdit = &protocol.TextEdit{Range: c.doc.rangeOf(c.start, c.end), NewText: text}
	item.FilterText = item.Label
	c.items = append(c.items, item)
}
