package convert

import (
	"slices"
	"strings"
)

// combined is a schema with what it refers to, and with the one of its alternatives
// that is not null, set in. It is nil where that has no end, which is told.
func (s *schema) combined(n *node) *node {
	if slices.Contains(s.open, n) || len(s.open) > maxSchemaDepth {
		s.unsupported(n, "%s: the schema holds itself, which has no counterpart; a text stands where it would begin again", s.what)
		return nil
	}
	s.open = append(s.open, n)
	for _, step := range []func(*node) *node{s.referred, s.alternative, s.joined} {
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

// without is a mapping without some of its keys, and with more pairs before the others.
func (n *node) without(more []pair, keys ...string) *node {
	made := &node{form: mapping, span: n.span}
	for _, p := range n.pairs {
		if !contains(keys, p.key) {
			made.pairs = append(made.pairs, p)
		}
	}
	for _, p := range more {
		if !made.has(p.key) {
			made.pairs = append(made.pairs, p)
		}
	}
	return made
}

// referred is the schema that $ref points at, with what stands beside it; nil where
// there is no $ref or it points nowhere.
func (s *schema) referred(n *node) *node {
	ref := n.get("$ref")
	if ref == nil || ref.form != textual {
		return nil
	}
	to := s.root
	path, inside := strings.CutPrefix(ref.text, "#")
	for word := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if word != "" {
			to = to.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(word))
		}
	}
	if !inside || to == nil || to.form != mapping {
		return nil
	}
	if slices.Contains(s.open, to) {
		return to // which tells that it has no end
	}
	s.open = append(s.open, to)
	return n.without(to.pairs, "$ref")
}

// alternative is the one alternative that is not null, or what all of them are;
// nil where they are of several types.
func (s *schema) alternative(n *node) *node {
	for _, key := range []string{"oneOf", "anyOf"} {
		all := n.get(key)
		if all == nil || all.form != list {
			continue
		}
		var others []*node
		null := false
		for _, one := range all.items {
			if t := one.get("type"); t != nil && t.form < list && t.text == "null" || one.has("const") && one.get("const") == nil {
				null = true
				continue
			}
			others = append(others, one)
		}
		var more []pair
		switch {
		case len(others) == 1 && others[0].form == mapping:
			more = others[0].pairs
		case len(others) > 1:
			more = s.constants(others)
		}
		if more == nil {
			continue
		}
		if null {
			yes := &node{form: boolean, text: "true", span: all.mark()}
			more = append(slices.Clone(more), pair{key: "nullable", at: all.mark(), value: yes})
		}
		return n.without(more, key)
	}
	return nil
}

// constants makes an enumeration of alternatives that are constants each.
func (s *schema) constants(all []*node) []pair {
	values := &node{form: list, span: all[0].span}
	for _, one := range all {
		v := one.get("const")
		if v == nil {
			return nil
		}
		values.items = append(values.items, v)
	}
	return []pair{{key: "enum", at: all[0].mark(), value: values}}
}

// joined is an object with the fields of all the objects of allOf; nil where there is
// no allOf or one of them is something else.
func (s *schema) joined(n *node) *node {
	all := n.get("allOf")
	if all == nil || all.form != list || len(all.items) == 0 {
		return nil
	}
	required := &node{form: list, span: all.span}
	var fields, more []pair
	parts := append(slices.Clone(all.items), n.without(nil, "allOf"))
	for i, part := range parts {
		if part.form != mapping {
			return nil
		}
		if part = s.combined(part); part == nil {
			return nil
		}
		t := part.get("type")
		if t != nil && (t.form >= list || t.text != "object") || part.get("properties") == nil && i < len(all.items) {
			if len(all.items) > 1 {
				return nil
			}
			return n.without(part.pairs, "allOf") // one schema in another word
		}
		if p := part.get("properties"); p != nil && p.form == mapping {
			fields = append(fields, p.pairs...)
		}
		if r := part.get("required"); r != nil && r.form == list {
			required.items = append(required.items, r.items...)
		}
		more = append(more, part.without(nil, "properties", "required").pairs...)
	}
	made := (&node{form: mapping, span: all.span}).without(fields) // each field once
	return (&node{form: mapping, span: n.span}).without(append([]pair{
		{key: "properties", at: all.mark(), value: made}, {key: "required", at: all.mark(), value: required}}, more...))
}
