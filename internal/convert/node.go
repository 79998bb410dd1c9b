package convert

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
)

// form is what a value is.
type form uint8

const (
	nothing form = iota
	boolean
	integer
	number
	textual
	list
	mapping
)

// noun names a form for a user.
func (f form) noun() string {
	return [...]string{"nothing", "a truth value", "a whole number", "a number", "a text", "a list", "a mapping"}[f]
}

// node is a value of the file, with its place.
type node struct {
	form  form
	text  string      // a scalar's text
	span  source.Span // the value's place
	items []*node     // of a list
	pairs []pair      // of a mapping, each key once
}

// pair is a key and its value.
type pair struct {
	key     string
	at      source.Span // the key's place
	value   *node
	written string // the key in the file, where that is another spelling of key
}

// fromPlain makes nodes of the loader's values; what is shared stays shared.
func fromPlain(v *loader.Value, made map[*loader.Value]*node) *node {
	if n := made[v]; n != nil {
		return n
	}
	forms := map[string]form{"boolean": boolean, "integer": integer, "float": number, "text": textual, "list": list, "mapping": mapping}
	n := &node{form: forms[v.Kind], text: v.Text, span: v.Span}
	if n.form == textual && scientific(v) {
		n.form = number
	}
	made[v] = n
	for _, item := range v.Items {
		n.items = append(n.items, fromPlain(item, made))
	}
	for _, p := range v.Pairs {
		n.pairs = append(n.pairs, pair{key: p.Key, at: p.At, value: fromPlain(p.Value, made)})
	}
	return n
}

// scientific tells whether a text of a JSON file is a number like 1e3, which YAML
// takes for a text.
func scientific(v *loader.Value) bool {
	if !strings.ContainsAny(v.Text, "eE") || strings.Trim(v.Text, "0123456789+-.eE") != "" || v.Span.File == nil {
		return false
	}
	line := []rune(v.Span.File.Line(v.Span.Start.Line))
	at := v.Span.Start.Column - 1
	_, err := strconv.ParseFloat(v.Text, 64)
	return err == nil && at >= 0 && at < len(line) && line[at] != '"' && bytes.ContainsAny(bytes.TrimSpace(v.Span.File.Text)[:1], "{[")
}

// mark is the place of a fault of the whole value: the beginning of one that
// goes over several lines.
func (n *node) mark() source.Span {
	if n.form < list {
		return n.span
	}
	s := n.span
	s.End = source.Pos{Line: s.Start.Line, Column: s.Start.Column + 1}
	return s
}

// get is the value of a key; nil where it is absent or null.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key == key && p.value.form != nothing {
			return p.value
		}
	}
	return nil
}

// keyAt is the place of a key, of the mapping where it is absent.
func (n *node) keyAt(key string) source.Span {
	for _, p := range n.pairs {
		if p.key == key {
			return p.at
		}
	}
	return n.mark()
}

// described is what a value is, as a message shows it.
func (n *node) described() string {
	const most = 40
	switch {
	case n.form >= list || n.form == nothing:
		return n.form.noun()
	case len([]rune(n.text)) > most:
		return n.form.noun()
	case n.form == textual:
		return strconv.Quote(n.text)
	}
	return n.text
}

// texts reads a key that holds a text; empty where it is absent or something else,
// which is told.
func (r *report) textOf(n *node, key string) string {
	v := n.get(key)
	switch {
	case v == nil:
		return ""
	case v.form != textual && v.form != integer && v.form != number:
		r.malformed(v, "%s is a text, not %s", key, v.described())
		return ""
	}
	return v.text
}

// needText is textOf for a key that must be there.
func (r *report) needText(n *node, key, owner string) string {
	if n.get(key) == nil {
		r.malformed(n, "%s has no %q", owner, key)
		return ""
	}
	s := r.textOf(n, key)
	if v := n.get(key); v.form == textual && strings.TrimSpace(s) == "" {
		r.malformed(v, "%s is empty", key)
	}
	return s
}

// positive reads a key that holds a whole number above 0; 0 where it is absent
// or wrong, which is told. A number in quotes is taken, and told.
func (r *report) positive(n *node, key string) int {
	v := n.get(key)
	if v == nil {
		return 0
	}
	i, err := strconv.Atoi(strings.TrimSuffix(strings.ReplaceAll(v.text, "_", ""), ".0"))
	if v.form != integer && v.form != number && v.form != textual || err != nil || i <= 0 {
		r.malformed(v, "%s is a whole number above 0, not %s", key, v.described())
		return 0
	}
	if v.form == textual {
		r.assumed(v, "%s is a whole number, not the text %s; the number %d is taken", key, v.described(), i)
	}
	return i
}

// truth reads a key that holds true or false.
func (r *report) truth(n *node, key string) bool {
	v := n.get(key)
	if v != nil && v.form != boolean {
		r.malformed(v, "%s is true or false, not %s", key, v.described())
		return false
	}
	return v != nil && strings.EqualFold(v.text, "true")
}

// listOf reads a key that holds a list; nil where it is absent or something else, which is told.
func (r *report) listOf(n *node, key string) []*node {
	v := n.get(key)
	switch {
	case v == nil:
		return nil
	case v.form != list:
		r.malformed(v, "%s is a list, not %s", key, v.described())
		return nil
	}
	return v.items
}

// mapOf reads a key that holds a mapping; nil where it is absent or something else, which is told.
func (r *report) mapOf(n *node, key string) *node {
	v := n.get(key)
	if v == nil {
		return nil
	}
	return r.isMap(v, key)
}

// isMap answers a mapping, and tells where it is none.
func (r *report) isMap(v *node, what string) *node {
	if v.form != mapping {
		r.malformed(v, "%s is a mapping, not %s", what, v.described())
		return nil
	}
	return v
}

// foldCase is a name without what spellings differ in: max_tokens is maxTokens.
func foldCase(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// spell takes keys that are among the names but for their spelling for what they
// mean; known tells of it. A key that is spelt right comes before one that is not.
func spell(n *node, names ...string) {
	for i, p := range n.pairs {
		if contains(names, p.key) { // as most are
			continue
		}
		for _, name := range names {
			if foldCase(p.key) == foldCase(name) && !n.has(name) {
				n.pairs[i].key, n.pairs[i].written = name, p.key
				break
			}
		}
	}
}

// has tells whether a mapping has a key, null or not.
func (n *node) has(key string) bool {
	for _, p := range n.pairs {
		if p.key == key {
			return true
		}
	}
	return false
}

// known tells of keys of a mapping that are not among the names, or are among
// them in another spelling only.
func (r *report) known(n *node, owner string, names ...string) {
	spell(n, names...)
	for _, p := range n.pairs {
		if p.written != "" {
			r.add(ruleUnknown.At(p.at, "%s: the key %q is taken for %s", owner, p.written, p.key))
			continue
		}
		found := false
		for _, name := range names {
			found = found || p.key == name
		}
		if !found {
			r.add(ruleUnknown.At(p.at, "%s: the key %q is not known and is left out", owner, p.key).WithNearest(p.key, names))
		}
	}
}
