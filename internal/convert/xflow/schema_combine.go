package xflow

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/input"
)

// combined is a schema with what it refers to, and with the one of its alternatives
// that is not null, set in. It is nil where that has no end, which is told.
func (s *schema) combined(n *input.Node) *input.Node {
	if slices.Contains(s.open, n) || len(s.open) > maxSchemaDepth {
		s.Unsupported(n, "%s: the schema holds itself, which has no counterpart; a text stands where it would begin again", s.what)
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

// maxSchemaDepth is how deep schemas are followed into each other.
const maxSchemaDepth = 64

// referred is the schema that $ref points at, with what stands beside it; nil where
// there is no $ref or it points nowhere.
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
		return to // which tells that it has no end
	}
	s.open = append(s.open, to)
	return n.Without(to.Pairs, "$ref")
}

// alternative is the one alternative that is not null, or what all of them are;
// nil where they are of several types.
func (s *schema) alternative(n *input.Node) *input.Node {
	for _, key := range []string{"oneOf", "anyOf"} {
		all := n.Get(key)
		if all == nil || all.Kind != input.List {
			continue
		}
		var others []*input.Node
		null := false
		for _, one := range all.Items {
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

// constants makes an enumeration of alternatives that are constants each.
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

// joined is an object with the fields of all the objects of allOf; nil where there is
// no allOf or one of them is something else.
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
			return n.Without(part.Pairs, "allOf") // one schema in another word
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
