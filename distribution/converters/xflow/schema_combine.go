package xflow

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/input"
)

// combined resolves references and combinations of a schema. It returns nil if they
// are recursive, which it reports.
func (s *schema) combined(n *input.Node) *input.Node {
	if slices.Contains(s.open, n) || len(s.open) > maxSchemaDepth {
		s.Unsupported(n, "%s: the schema is recursive, which has no counterpart; using text for the inner one", s.what)
		return nil
	}
	s.open = append(s.open, n)
	for _, step := range []func(*input.Node) *input.Node{s.referred, s.alternative, s.joined} {
		made := step(n)
		if made == nil {
			continue
		}
		return s.combined(made)
	}
	return n
}

// maxSchemaDepth is the depth to which references are resolved.
const maxSchemaDepth = 64

// referred resolves $ref and merges the keywords next to it. It returns nil if
// there is none or it is dangling.
func (s *schema) referred(n *input.Node) *input.Node {
	ref := n.Get("$ref")
	if ref == nil || ref.Kind != input.Text {
		return nil
	}
	to := s.root
	path, inside := strings.CutPrefix(ref.Text, "#")
	for word := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if word != "" {
			to = to.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(word))
		}
	}
	if !inside || to == nil || to.Kind != input.Map {
		return nil
	}
	if slices.Contains(s.open, to) {
		return to // combined reports the recursion
	}
	s.open = append(s.open, to)
	return n.Without(to.Pairs, "$ref")
}

// alternative returns the only non-null alternative, or an enumeration of constant
// alternatives; nil if there are several types.
func (s *schema) alternative(n *input.Node) *input.Node {
	for _, key := range []string{"oneOf", "anyOf"} {
		all := n.Get(key)
		if all == nil || all.Kind != input.List {
			continue
		}
		var others []*input.Node
		null := false
		for _, one := range all.Elements() {
			if t := one.Get("type"); t != nil && t.Kind < input.List && t.Text == "null" || one.Has("const") && one.Get("const") == nil {
				null = true
				continue
			}
			others = append(others, one)
		}
		var more []input.Pair
		switch {
		case len(others) == 1 && others[0].Kind == input.Map:
			more = others[0].Pairs
		case len(others) > 1:
			more = s.constants(others)
		}
		if more == nil {
			continue
		}
		if null {
			yes := &input.Node{Kind: input.Bool, Text: "true", Span: all.Mark()}
			more = append(slices.Clone(more), input.Pair{Key: "nullable", KeySpan: all.Mark(), Value: yes})
		}
		return n.Without(more, key)
	}
	return nil
}

// constants returns an enumeration of alternatives that are constants.
func (s *schema) constants(all []*input.Node) []input.Pair {
	values := &input.Node{Kind: input.List, Span: all[0].Span}
	for _, one := range all {
		v := one.Get("const")
		if v == nil {
			return nil
		}
		values.Items = append(values.Items, v)
	}
	return []input.Pair{{Key: "enum", KeySpan: all[0].Mark(), Value: values}}
}

// joined merges the objects of allOf into one. It returns nil if there is no allOf
// or one of them is not an object.
func (s *schema) joined(n *input.Node) *input.Node {
	all := n.Get("allOf")
	if all == nil || all.Kind != input.List || len(all.Items) == 0 {
		return nil
	}
	required := &input.Node{Kind: input.List, Span: all.Span}
	var fields, more []input.Pair
	parts := append(slices.Clone(all.Items), n.Without(nil, "allOf"))
	for i, part := range parts {
		if part.Kind != input.Map {
			return nil
		}
		if part = s.combined(part); part == nil {
			return nil
		}
		t := part.Get("type")
		if t != nil && (t.Kind >= input.List || t.Text != "object") || part.Get("properties") == nil && i < len(all.Items) {
			if len(all.Items) > 1 {
				return nil
			}
			return n.Without(part.Pairs, "allOf") // the only schema
		}
		if p := part.Get("properties"); p != nil && p.Kind == input.Map {
			fields = append(fields, p.Pairs...)
		}
		if r := part.Get("required"); r != nil && r.Kind == input.List {
			required.Items = append(required.Items, r.Items...)
		}
		more = append(more, part.Without(nil, "properties", "required").Pairs...)
	}
	made := (&input.Node{Kind: input.Map, Span: all.Span}).Without(fields) // each field once
	return (&input.Node{Kind: input.Map, Span: n.Span}).Without(append([]input.Pair{
		{Key: "properties", KeySpan: all.Mark(), Value: made}, {Key: "required", KeySpan: all.Mark(), Value: required}}, more...))
}
