package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object of an answer.
type object = map[string]any

// array is a JSON array of an answer.
type array = []any

// node is a value of a request: JSON, or nothing.
type node struct{ value any }

// parseNode parses JSON; numbers keep their digits.
func parseNode(raw []byte) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var n node
	err := dec.Decode(&n.value)
	return n, err
}

// at returns the value below a path of keys and indexes, such as thinking.type; nothing where there is none.
func (n node) at(path string) node {
	if path == "" {
		return n
	}
	for key := range strings.SplitSeq(path, ".") {
		switch v := n.value.(type) {
		case object:
			n = node{v[key]}
		case array:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return node{}
			}
			n = node{v[i]}
		default:
			return node{}
		}
	}
	return n
}

// all yields the values that a path with * for any key or index selects, with their own paths.
func (n node) all(path string) iter.Seq2[string, node] {
	return func(yield func(string, node) bool) { n.walk("", path, yield) }
}

func (n node) walk(before, path string, yield func(string, node) bool) bool {
	if path == "" {
		return n.value == nil || yield(strings.TrimPrefix(before, "."), n)
	}
	key, rest, _ := strings.Cut(path, ".")
	if key != "*" {
		return n.at(key).walk(before+"."+key, rest, yield)
	}
	for i, child := range n.items() {
		if !child.walk(fmt.Sprint(before, ".", i), rest, yield) {
			return false
		}
	}
	for k, child := range n.fields() {
		if !child.walk(before+"."+k, rest, yield) {
			return false
		}
	}
	return true
}

// exists reports whether there is a value other than null.
func (n node) exists() bool { return n.value != nil }

// text returns a string, and the JSON of a number or of a boolean; empty for other values.
func (n node) text() string {
	switch v := n.value.(type) {
	case string:
		return v
	case json.Number, bool:
		return fmt.Sprint(v)
	}
	return ""
}

// isText reports whether the value is a string.
func (n node) isText() bool { _, ok := n.value.(string); return ok }

// isObject reports whether the value is an object.
func (n node) isObject() bool { _, ok := n.value.(object); return ok }

// number returns a number, and whether there is one.
func (n node) number() (float64, bool) {
	v, ok := n.value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := v.Float64()
	return f, err == nil
}

// items yields the elements of an array.
func (n node) items() iter.Seq2[int, node] {
	return func(yield func(int, node) bool) {
		list, _ := n.value.(array)
		for i, v := range list {
			if !yield(i, node{v}) {
				return
			}
		}
	}
}

// fields yields the members of an object in the order of their names.
func (n node) fields() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		members, _ := n.value.(object)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !yield(name, node{members[name]}) {
				return
			}
		}
	}
}

// strings yields all strings within the value.
func (n node) strings() iter.Seq[string] {
	return func(yield func(string) bool) { n.eachString(yield) }
}

func (n node) eachString(yield func(string) bool) bool {
	if n.isText() {
		return yield(n.text())
	}
	for _, child := range n.items() {
		if !child.eachString(yield) {
			return false
		}
	}
	for _, child := range n.fields() {
		if !child.eachString(yield) {
			return false
		}
	}
	return true
}

// canonical returns the JSON with sorted members and without the markers of prompt caches, which a
// client may move.
func (n node) canonical() string {
	raw, err := json.Marshal(n.unmarked().value)
	if err != nil {
		return fmt.Sprint(err) // not possible: the value was parsed from JSON
	}
	return string(raw)
}

// unmarked returns a copy without the markers of prompt caches.
func (n node) unmarked() node {
	switch v := n.value.(type) {
	case object:
		out := object{}
		for k, child := range v {
			if k != "cache_control" && k != "prompt_cache_breakpoint" {
				out[k] = node{child}.unmarked().value
			}
		}
		return node{out}
	case array:
		out := array{}
		for _, child := range v {
			if !(node{child}).at("cachePoint").exists() {
				out = append(out, node{child}.unmarked().value)
			}
		}
		return node{out}
	}
	return n
}

// encode returns the JSON of a part of an answer.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Appendf(nil, "%q", err.Error()) // not possible: answers have no functions or channels
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
