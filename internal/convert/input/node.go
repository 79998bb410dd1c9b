// Package input reads the files that are converted: values with their positions,
// and the diagnostics that a conversion reports about them.
package input

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Int
	Float
	Text
	List
	Map
)

// Noun returns the kind as a noun phrase for messages.
func (f Kind) Noun() string {
	return [...]string{"null", "a boolean", "an integer", "a number", "a string", "a list", "a mapping"}[f]
}

// Node is a value of the file with its position.
type Node struct {
	Kind  Kind        // kind of the value
	Text  string      // of a scalar, as written
	Span  source.Span // position of the value
	Items []*Node     // elements of a list
	Pairs []Pair      // entries of a mapping, each key once

	read bool // see Report.Rest
}

// Pair is a key of a mapping and its value.
type Pair struct {
	Key      string      // normalized, see NormalizeKeys
	KeySpan  source.Span // position of the key
	Value    *Node       // the value
	Spelling string      // the key as written, if it is another spelling of Key; else empty
}

// FromValue converts the loader's values. Aliases of one value share one Node.
func FromValue(v *loader.Value) *Node { return fromValue(v, map[*loader.Value]*Node{}) }

func fromValue(v *loader.Value, made map[*loader.Value]*Node) *Node {
	if n := made[v]; n != nil {
		return n
	}
	forms := map[string]Kind{"boolean": Bool, "integer": Int, "float": Float, "text": Text, "list": List, "mapping": Map}
	n := &Node{Kind: forms[v.Kind], Text: v.Text, Span: v.Span}
	if n.Kind == Text && scientific(v) {
		n.Kind = Float
	}
	made[v] = n
	for _, item := range v.Items {
		n.Items = append(n.Items, fromValue(item, made))
	}
	for _, p := range v.Pairs {
		n.Pairs = append(n.Pairs, Pair{Key: p.Key, KeySpan: p.At, Value: fromValue(p.Value, made)})
	}
	return n
}

// scientific reports whether a string of a JSON file is a number such as 1e3, which
// YAML reads as a string.
func scientific(v *loader.Value) bool {
	if !strings.ContainsAny(v.Text, "eE") || strings.Trim(v.Text, "0123456789+-.eE") != "" || v.Span.File == nil {
		return false
	}
	line := []rune(v.Span.File.Line(v.Span.Start.Line))
	at := v.Span.Start.Column - 1
	_, err := strconv.ParseFloat(v.Text, 64)
	return err == nil && at >= 0 && at < len(line) && line[at] != '"' && bytes.ContainsAny(bytes.TrimSpace(v.Span.File.Text)[:1], "{[")
}

// Mark returns the span that diagnostics about the whole value underline: the first
// character of a list or mapping, which may have many lines.
func (n *Node) Mark() source.Span {
	if n.Kind < List {
		return n.Span
	}
	s := n.Span
	s.End = source.Pos{Line: s.Start.Line, Column: s.Start.Column + 1}
	return s
}

// Get returns the value of a key, nil if it is absent or null. The value counts as read.
func (n *Node) Get(key string) *Node {
	v := n.peek(key)
	if v != nil {
		v.read = true
	}
	return v
}

func (n *Node) peek(key string) *Node {
	if n == nil {
		return nil
	}
	for _, p := range n.Pairs {
		if p.Key == key && p.Value.Kind != Null {
			return p.Value
		}
	}
	return nil
}

// Entries returns the entries of a mapping, whose values count as read. It accepts nil.
func (n *Node) Entries() []Pair {
	if n == nil {
		return nil
	}
	for _, p := range n.Pairs {
		p.Value.read = true
	}
	return n.Pairs
}

// Elements returns the elements of a list, which count as read. It accepts nil.
func (n *Node) Elements() []*Node {
	if n == nil {
		return nil
	}
	for _, item := range n.Items {
		item.read = true
	}
	return n.Items
}

// IsRead reports whether a value was read.
func (n *Node) IsRead() bool { return n.read }

// Use marks a value as read with all that is in it. It accepts nil, and returns the value.
func (n *Node) Use() *Node {
	if n == nil || n.read && n.Kind < List {
		return n
	}
	n.read = true
	for _, item := range n.Items {
		item.Use()
	}
	for _, p := range n.Pairs {
		p.Value.Use()
	}
	return n
}

// KeySpan returns the span of a key, the mark of the mapping if it is absent.
func (n *Node) KeySpan(key string) source.Span {
	for _, p := range n.Pairs {
		if p.Key == key {
			return p.KeySpan
		}
	}
	return n.Mark()
}

// Describe returns the value, or its kind if it is long or no scalar, for messages.
func (n *Node) Describe() string {
	const most = 40
	switch {
	case n.Kind >= List || n.Kind == Null:
		return n.Kind.Noun()
	case len([]rune(n.Text)) > most:
		return n.Kind.Noun()
	case n.Kind == Text:
		return strconv.Quote(n.Text)
	}
	return n.Text
}

// NormalizeName removes what spellings of a name differ in: max_tokens equals maxTokens.
func NormalizeName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// NormalizeKeys renames keys that are another spelling of one of the names. A key
// in the right spelling takes precedence.
func NormalizeKeys(n *Node, names ...string) {
	for i, p := range n.Pairs {
		if slices.Contains(names, p.Key) {
			continue
		}
		for _, name := range names {
			if NormalizeName(p.Key) == NormalizeName(name) && !n.Has(name) {
				n.Pairs[i].Key, n.Pairs[i].Spelling = name, p.Key
				break
			}
		}
	}
}

// Has reports whether a mapping has a key, null or not.
func (n *Node) Has(key string) bool {
	for _, p := range n.Pairs {
		if p.Key == key {
			return true
		}
	}
	return false
}

// Scalar returns the text of a scalar, "" if n is nil.
func (n *Node) Scalar() string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Fingerprint returns the content of the value as one string, to compare values.
func (n *Node) Fingerprint() string {
	s := fmt.Sprintf("%d %q", n.Kind, n.Text)
	for _, item := range n.Items {
		s += "[" + item.Fingerprint() + "]"
	}
	for _, p := range n.Pairs {
		s += "{" + p.Key + " " + p.Value.Fingerprint() + "}"
	}
	return s
}

// Without returns a copy of a mapping without the given keys, followed by those of
// more that it does not have.
func (n *Node) Without(more []Pair, keys ...string) *Node {
	made := &Node{Kind: Map, Span: n.Span}
	for _, p := range n.Pairs {
		if !slices.Contains(keys, p.Key) {
			made.Pairs = append(made.Pairs, p)
		}
	}
	for _, p := range more {
		if !made.Has(p.Key) {
			made.Pairs = append(made.Pairs, p)
		}
	}
	return made
}

// Only returns a mapping with the keys that are among names.
func (n *Node) Only(names []string) *Node {
	made := &Node{Kind: Map}
	for _, name := range names {
		if v := n.Get(name); v != nil {
			made.Pairs = append(made.Pairs, Pair{Key: name, Value: v})
		}
	}
	return made
}

// Keys returns the keys of a mapping in order.
func Keys(n *Node) []string {
	var all []string
	for _, p := range n.Pairs {
		all = append(all, p.Key)
	}
	return all
}

// Find returns the span of a word in a scalar, the mark of the scalar if the word
// is not found in the file's text.
func Find(n *Node, word string) source.Span {
	if word == "" || n.Span.File == nil {
		return n.Mark()
	}
	for line := n.Span.Start.Line; line <= n.Span.End.Line; line++ {
		text := []rune(n.Span.File.Line(line))
		from, to := 0, len(text)
		if line == n.Span.Start.Line {
			from = min(n.Span.Start.Column-1, len(text))
		}
		if line == n.Span.End.Line {
			to = min(n.Span.End.Column-1, len(text))
		}
		if at := strings.Index(string(text[from:max(to, from)]), word); at >= 0 {
			column := from + len([]rune(string(text[from:])[:at])) + 1
			return source.Span{File: n.Span.File, Start: source.Pos{Line: line, Column: column},
				End: source.Pos{Line: line, Column: column + len([]rune(word))}}
		}
	}
	return n.Mark()
}
