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

// cursor is inserted into the text at the cursor, so that the outline has a value
// there. It is a private-use character that occurs in no document.
const cursor = "\ue000"

// completer collects the proposals for one position.
type completer struct {
	lang   *language
	syntax *syntaxIndex
	target *syntaxWord // the word at the cursor
	doc    *document   // the document without the cursor
	offset int         // of the cursor
	items  []protocol.CompletionItem

	isolated bool // no files are read

	start int // the range that a proposal replaces
	end   int
}

// complete handles textDocument/completion.
func (s *server) complete(_ context.Context, p protocol.TextDocumentPositionParams) (protocol.CompletionList, error) {
	list := protocol.CompletionList{Items: []protocol.CompletionItem{}}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return list, err
	}
	c := &completer{lang: s.lang(), doc: d, offset: d.offset(p.Position), isolated: s.workspace.isolated}
	marked := outline.Parse(d.text[:c.offset] + cursor + d.text[c.offset:])
	for _, root := range s.workspace.rootsOf(d.path) {
		c.syntax = indexSyntax(s.lang(), root, func(path string) *outline.Node {
			if path == d.path {
				return marked
			}
			return s.workspace.outlineOf(path)
		})
		if c.proposeEnvironment(root, s.workspace) {
			break
		}
		if c.findTarget() {
			c.propose()
			break
		}
	}
	list.Items = nonNil(c.items)
	return list, nil
}

// findTarget looks for the word with the cursor and reports whether there is one.
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

// setReplacedRange sets the range to replace: the word around the cursor, in the
// text without it.
func (c *completer) setReplacedRange(m *syntaxWord) {
	first, last := m.start, m.end-len(cursor)
	if m.node != nil && m.node.Style != outline.Plain {
		first++ // after the quote
		last = c.offset
	}
	c.start, c.end = max(first, c.doc.starts[c.doc.line(c.offset)]), last
	// Only characters of one word are replaced, before and after the cursor.
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

// isTypeChar reports whether a character may be part of a word, a type expression
// or a path.
func isTypeChar(b byte) bool { return outline.IsWordByte(b) || strings.IndexByte("[]?.!/:", b) >= 0 }

// propose adds the proposals for the role of the word.
func (c *completer) propose() {
	m := c.target
	if c.proposeNames(m) {
		return
	}
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
	case roleInclude:
		if !c.isolated {
			c.proposePaths(m)
		}
	case roleValue:
		c.proposeValues(m)
	}
}

// proposeValues proposes scalars. A scalar may also become the first key of a
// mapping or the first item of a list.
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
	case m.field.name == modelKey && m.mapping != nil:
		c.proposeModels(m.mapping)
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

// proposeOpeners proposes the first keys of a mapping or the first item of a list.
// It reports whether the type is written as one.
func (c *completer) proposeOpeners(t reflect.Type, m *syntaxWord) bool {
	switch u := spec.FindUnion(c.lang.unions, t); {
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

// isAloneOnLine reports whether the word at the cursor is the only text on its
// line, or the only text after a dash: a mapping or a list may start there.
func (c *completer) isAloneOnLine() bool {
	before := c.doc.text[c.doc.starts[c.doc.line(c.offset)]:c.start]
	return strings.Trim(before, " \t-") == ""
}

// proposeFirstKeys proposes the keys of an empty mapping.
func (c *completer) proposeFirstKeys(k *structType, u *spec.Union) {
	c.proposeKeys(&mappingNode{node: &outline.Node{Kind: outline.Mapping}, class: k, union: u, parent: c.target.mapping, path: c.doc.path}, nil)
}

// proposeKeys proposes the missing keys of a mapping. typing is the key at the
// cursor.
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
	bare := typing != nil && typing.Colon // the key has a colon already
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
		c.addKey(&field{name: "$ref", doc: "The id of a step that is defined elsewhere.", goType: reflect.TypeFor[spec.Ref[spec.Step]]()}, bare, 99)
	}
}

// fieldsOf returns the keys of a mapping. If the alternative of a union is not
// known yet, these are the keys that all alternatives share.
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

// joinAlternatives lists the first alternatives of a union.
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

// addKey proposes a key with the text that follows it.
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

// keySuffix returns the start of the first line below a key: a dash for a list,
// nothing for a mapping. below is false if the value is on the line of the key.
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

// column returns the column of the replaced word.
func (c *completer) column() int { return c.start - c.doc.starts[c.doc.line(c.offset)] }

// inBrackets reports whether the cursor is in a collection in brackets.
func (c *completer) inBrackets() bool {
	if c.target.mapping != nil && c.target.mapping.node.Flow {
		return true
	}
	before := c.doc.text[c.doc.starts[c.doc.line(c.offset)]:c.offset]
	return strings.Count(before, "[") > strings.Count(before, "]") || strings.Count(before, "{") > strings.Count(before, "}")
}

func (c *completer) proposeTags(u *spec.Union) {
	for _, k := range c.lang.alternatives(u) {
		c.add(protocol.CompletionItem{Label: k.tag, Kind: protocol.CompletionItemKindClass, Detail: u.Name, Documentation: protocol.Markdown(k.doc)}, k.tag)
	}
}

func (c *completer) proposeEnum(f *field) {
	for _, word := range f.enum {
		c.addValue(word, protocol.CompletionItemKindEnumMember, f, f.hasDefault && f.defaultText == word)
	}
}

// addValue proposes a value; editors preselect the default.
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
