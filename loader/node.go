package loader

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// kind is the type of a value of the tree.
type kind uint8

const (
	broken   kind = iota // invalid; already reported
	null                 // no value
	boolean              // a boolean of YAML 1.1
	integer              // an integer of YAML 1.1
	float                // another number of YAML 1.1
	text                 // a text, including dates and times
	sequence             // a list
	mapping              // keys and values
)

// node is a value of a document after includes, aliases, merges and environment
// variables. An alias shares the node of its target, so the tree is an acyclic graph.
type node struct {
	kind   kind
	text   string      // a scalar's text
	source string      // a scalar's text before environment variables were expanded
	unset  bool        // text contains an unset variable, or one of another form
	tag    string      // the explicit tag of a scalar, such as !!float
	date   bool        // the text is a date of YAML 1.1
	shared bool        // an alias refers to it
	bare   bool        // a scalar without quotes and tag
	hidden string      // of a null: what follows the key in place of a value, such as a comment; empty for nothing
	raw    bool        // text is the content of a file, by !include_raw
	span   source.Span // the position of the value
	items  []*node     // of a sequence
	pairs  []pair      // of a mapping, each key once
	size   int         // number of values, aliases expanded
	height int         // nesting depth

	made   *spec.Position   // the result of place
	places []*spec.Position // the positions of the keys of the value
	unread bool             // it could not be decoded completely
}

// markInvalid marks a value whose error was already reported.
func (n *node) markInvalid() {
	n.unread = true
	if n.made != nil {
		n.made.Unread = true
	}
	for _, p := range n.places {
		p.Unread = true
	}
}

// pair is a key and its value.
type pair struct{ key, value *node }

// get returns the value of a key, nil if it is absent.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// isBare reports whether a scalar without quotes is a number, a boolean or a date.
func (n *node) isBare() bool {
	return n.kind == integer || n.kind == float || n.kind == boolean || n.kind == text && n.date
}

// has reports whether a key exists.
func (n *node) has(key string) bool { return n.get(key) != nil }

// shown returns the text of a scalar for messages. A value from the environment may
// be secret, so its ${NAME} is shown instead.
func (n *node) shown() string { return n.source }

// place returns the positions of the value and its parts, for spec values.
func (n *node) place() *spec.Position {
	if n.made != nil {
		return n.made
	}
	n.unread = n.unread || n.kind == broken
	n.made = &spec.Position{Value: n.span, Unread: n.unread}
	parts := make([]spec.Position, len(n.pairs)+len(n.items))
	n.made.Parts = make([]*spec.Position, 0, len(parts))
	for i, p := range n.pairs {
		value := p.value.place()
		parts[i] = spec.Position{Name: p.key.text, Key: p.key.span, Value: value.Value, Parts: value.Parts, Unread: value.Unread}
		p.value.places = append(p.value.places, &parts[i])
		n.made.Parts = append(n.made.Parts, &parts[i])
	}
	for _, item := range n.items {
		n.made.Parts = append(n.made.Parts, item.place())
	}
	return n.made
}

// head returns the span of a diagnostic about the whole value: the start of a value
// that spans several lines.
func (n *node) head() source.Span {
	if n.kind == mapping || n.kind == sequence {
		return pointAt(n.span.File, n.span.Start)
	}
	return n.span
}

// noun names a kind in messages.
func (k kind) noun() string {
	switch k {
	case null:
		return "nothing"
	case boolean:
		return "a truth value"
	case integer, float:
		return "a number"
	case sequence:
		return "a list"
	case mapping:
		return "a mapping"
	}
	return "a text"
}

// grow adds the size of a part.
func (n *node) grow(part *node) {
	n.size += part.size
	n.height = max(n.height, part.height)
}

// mapping builds a mapping: merge keys are resolved, and the last of equal keys counts.
func (b *builder) mapping(n *yaml.Node, start, depth int) (*node, int) {
	if n.Tag == "!include" || n.Tag == "!include_raw" {
		return b.badInclude(start), start
	}
	made := &node{kind: mapping, size: 1, pairs: make([]pair, 0, len(n.Content)/2)}
	from := b.pos.at(start)
	seen := make(map[string]int, len(n.Content)/2)
	var merges []*node
	end := start + 1
	for i := 0; i+1 < len(n.Content); i += 2 {
		var p pair
		var isMerge bool
		p, isMerge, end = b.pair(n.Content[i], n.Content[i+1], depth)
		switch {
		case isMerge:
			merges = append(merges, p.value)
		case p.key.kind != broken:
			made.put(p, seen, b.diags)
		default:
			made.unread = true
		}
	}
	made.removeDuplicates()
	for _, m := range merges {
		b.merge(made, m, seen)
	}
	for _, p := range made.pairs {
		made.grow(p.key)
		made.grow(p.value)
	}
	made.height++
	if n.Style&yaml.FlowStyle != 0 {
		end = b.pos.close(max(end, start+1), '}')
	}
	made.span = source.Span{File: b.file, Start: from, End: b.pos.at(end)}
	return made, end
}

// pair builds one key and its value.
func (b *builder) pair(k, v *yaml.Node, depth int) (p pair, isMerge bool, end int) {
	isMerge = k.Kind == yaml.ScalarNode && k.Tag == "!!merge"
	p.key, end = b.build(k, depth+1)
	if p.key.kind == sequence || p.key.kind == mapping {
		b.diags.add(ruleSyntax.At(p.key.head(), "a key must be a text, not %s", p.key.kind.noun()).
			WithHint("a text that starts with a bracket or a brace needs quotes"))
		p.key.kind = broken
	}
	if v.Kind == yaml.ScalarNode && v.Value == "" && v.Style == 0 && v.Anchor == "" {
		// A missing value has the position of its key.
		p.value = &node{kind: null, size: 1, height: 1, span: p.key.span, hidden: b.commentAfter(end)}
		return p, isMerge, end
	}
	if isMerge && v.Style&yaml.TaggedStyle != 0 && (v.Tag == "!include" || v.Tag == "!include_raw") {
		at := b.pos.start(v)
		end = b.pos.scalarEnd(v, at)
		b.diags.add(ruleSyntax.At(b.span(at, end), "<< cannot merge an included file"))
		p.value = b.broken(at, end)
		return p, isMerge, end
	}
	p.value, end = b.build(v, depth+1)
	return p, isMerge, end
}

// commentAfter reports a comment in the line of a key, which ends at an offset; empty for none.
func (b *builder) commentAfter(end int) string {
	if strings.HasPrefix(strings.TrimLeft(lineAt(b.file.Text, end), " \t:"), "#") {
		return "# starts a comment"
	}
	return ""
}

// put adds a pair. The later of two pairs with the same key counts, as in QType.
func (n *node) put(p pair, seen map[string]int, diags *diagnostics) {
	at, twice := seen[p.key.text]
	if twice {
		hideNamed(&node{pairs: []pair{n.pairs[at]}})
		diags.add(ruleDuplicateKey.At(p.key.span, "the key %q is already defined", p.key.shown()).
			WithHint("only this value is used%s", n.itemHint(p.key)).WithRelated(n.pairs[at].key.span, "first defined here"))
		n.pairs[at].key = nil // removed by removeDuplicates
	}
	seen[p.key.text] = len(n.pairs)
	n.pairs = append(n.pairs, p)
}

// itemHint explains a key at the column of the dash of the list before it: it is often meant
// as a key of the last item.
func (n *node) itemHint(key *node) string {
	list := n.pairs[len(n.pairs)-1].value
	if list.kind != sequence || len(list.items) == 0 {
		return ""
	}
	const afterDash = 2
	last := list.items[len(list.items)-1]
	if last.kind != mapping || last.span.File != key.span.File || last.span.Start.Column != key.span.Start.Column+afterDash {
		return ""
	}
	return "; if it belongs to the list item before it, indent it by two more spaces"
}

// removeDuplicates removes the pairs that put replaced.
func (n *node) removeDuplicates() {
	n.pairs = slices.DeleteFunc(n.pairs, func(p pair) bool { return p.key == nil })
}

// merge adds the keys of the value of a key << that n does not have: explicit keys take
// precedence over merged ones, and earlier items of a list over later ones.
func (b *builder) merge(n *node, from *node, seen map[string]int) {
	switch from.kind {
	case broken:
		n.unread = true
	case mapping:
		n.unread = n.unread || from.unread
		for _, p := range from.pairs {
			if _, there := seen[p.key.text]; !there {
				seen[p.key.text] = len(n.pairs)
				n.pairs = append(n.pairs, p)
			}
		}
	case sequence:
		for _, item := range from.items {
			if item.kind == sequence {
				b.notMergeable(item)
				n.unread = true
				continue
			}
			b.merge(n, item, seen)
		}
	default:
		b.notMergeable(from)
		n.unread = true
	}
}

func (b *builder) notMergeable(n *node) {
	b.diags.add(ruleSyntax.At(n.head(), "<< can merge a mapping or a list of mappings, not %s", n.kind.noun()))
}

// Value is a value of a YAML or JSON file of another system. Aliases and merge keys
// are resolved; an alias shares the value of its target.
type Value struct {
	Kind  string      // null, boolean, integer, float, text, list, mapping; empty for an invalid value, which was reported
	Text  string      // a scalar's text
	Span  source.Span // the position of the value
	Items []*Value    // of a list
	Pairs []ValuePair // of a mapping; the last of equal keys
}

// ValuePair is a key and its value.
type ValuePair struct {
	Key   string      // the key's text
	At    source.Span // the position of the key
	Value *Value      // the value of the key
}

// LoadValue reads a file of another system with the limits and messages of documents.
// It does not expand environment variables or follow includes. The value is nil if
// the file cannot be read or is not YAML.
func LoadValue(ctx context.Context, path string, opts Options) (*Value, *source.File, diag.List) {
	f, file, list := loadText(ctx, path, opts)
	defer f.remote.close()
	if list != nil {
		return nil, file, list
	}
	f.noIncludes, f.verbatim = true, true
	file.Text = joinSurrogates(file.Text)
	f.files = append(f.files, file)
	root := (&builder{loadState: f, file: file, path: path}).buildRoot()
	hideTexts(root)
	f.diags.list.Sort()
	if root.kind == broken {
		return nil, file, f.diags.list
	}
	return root.plain(map[*node]*Value{}), file, f.diags.list
}

// LoadText reads a file that is not YAML, with the limits and messages of documents. The
// list is empty if the file has been read.
func LoadText(ctx context.Context, path string, opts Options) (*source.File, diag.List) {
	f, file, list := loadText(ctx, path, opts)
	f.remote.close()
	return file, list
}

// loadText reads a file. The caller closes the remote part of the state.
func loadText(ctx context.Context, path string, opts Options) (*loadState, *source.File, diag.List) {
	opts.NoDotEnv = true
	f := newLoadState(ctx, opts, filepath.Dir(path))
	file, problem := f.readFirst(path)
	if problem != nil {
		return f, file, diag.List{problem.diagnostic(file)}
	}
	return f, file, nil
}

// hideTexts hides texts whose keys look like secrets; numbers such as maxTokens are not hidden.
func hideTexts(n *node) {
	for _, item := range n.items {
		hideTexts(item)
	}
	for _, p := range n.pairs {
		if p.value.kind == text && redact.NamesSecret(p.key.text) {
			hideValue(p.value)
		}
		hideTexts(p.value)
	}
}

// plain converts the node to a Value; shared nodes stay shared.
func (n *node) plain(made map[*node]*Value) *Value {
	if v := made[n]; v != nil {
		return v
	}
	names := [...]string{broken: "", null: "null", boolean: "boolean", integer: "integer", float: "float", text: "text", sequence: "list", mapping: "mapping"}
	v := &Value{Kind: names[n.kind], Text: n.text, Span: n.span}
	made[n] = v
	for _, item := range n.items {
		v.Items = append(v.Items, item.plain(made))
	}
	for _, p := range n.pairs {
		v.Pairs = append(v.Pairs, ValuePair{Key: p.key.text, At: p.key.span, Value: p.value.plain(made)})
	}
	return v
}

// joinSurrogates replaces pairs of surrogates in a JSON file, such as \ud83d\ude00, by the
// escape sequence of YAML for the character, which has no pairs.
func joinSurrogates(text []byte) []byte {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return text
	}
	var out []byte
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return append(out, text...)
		}
		out, text = append(out, text[:i]...), text[i:]
		high, low := escapeAt(text), rune(0)
		length := 2 // of another escape sequence
		if high != 0 {
			low = escapeAt(text[len(`\uffff`):])
		}
		if r := utf16.DecodeRune(high, low); r != unicode.ReplacementChar {
			length = 2 * len(`\uffff`)
			out = fmt.Appendf(out, `\U%08x`, r)
		} else {
			out = append(out, text[:length]...)
		}
		text = text[length:]
	}
}

// escapeAt returns the number of the escape sequence \uXXXX that a text begins with, 0 for
// none.
func escapeAt(text []byte) rune {
	if len(text) < len(`\uffff`) || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:len(`\uffff`)]), 16, 32)
	if err != nil {
		return 0
	}
	return rune(n)
}
