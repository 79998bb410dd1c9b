package loader

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// decodeUnion decodes a mapping into the struct that its key `type` selects.
func (d *decoder) decodeUnion(n *node, v reflect.Value, at target) {
	u := spec.FindUnion(d.unions, v.Type())
	if u == nil {
		return
	}
	if !d.isMapping(n, at, "a mapping that defines a "+u.Name) {
		return
	}
	chosen, certain := d.chooseCase(n, u)
	made := chosen.New()
	if !certain {
		// The wrong type was reported; further errors may not apply to the intended
		// type. The entity is still created, so that references to its id resolve.
		d.diags.muted++
		defer func() { d.diags.muted-- }()
	}
	d.decodeStruct(n, reflect.ValueOf(made).Elem(), u.Name)
	v.Set(reflect.ValueOf(made))
}

// chooseCase returns the case that the type selects. If the type is missing or unknown,
// it reports that and returns the most probable case, which is certain if the type is a
// misspelling of no other.
func (d *decoder) chooseCase(n *node, u *spec.Union) (chosen spec.Case, certain bool) {
	tag := n.get("type")
	if tag == nil {
		tag = misspelledTag(n, u)
	}
	if tag == nil || tag.kind == null {
		return d.chooseUntyped(n, u, tag)
	}
	for _, c := range u.Cases {
		if tag.kind == text && c.Tag == tag.text {
			return c, true
		}
	}
	likely, _ := d.chooseByFields(n, u)
	if tag.kind == broken || tag.unset {
		n.markInvalid()
		return likely, false
	}
	if tag.kind != text {
		n.markInvalid()
		d.diags.add(ruleUnionTag.At(tag.head(), "the type of a %s must be a word, not %s", u.Name, tag.describe()).WithHint("%s", oneOf(tags(u))))
		return likely, false
	}
	found := ruleUnionTag.At(tag.span, "unknown %s type %q", u.Name, tag.shown())
	explained, ok := explainValue(found, u.Name, tag.text, tags(u))
	if !ok {
		explained = found.WithNearest(tag.text, tags(u))
	}
	if found = explained; found.Suggestion != "" {
		certain = diag.IsUnambiguous(tag.text, found.Suggestion, tags(u))
		if !certain {
			n.markInvalid()
		}
		for _, c := range u.Cases {
			if c.Tag == found.Suggestion {
				likely = c
			}
		}
	} else {
		n.markInvalid() // the intended type is not known
		if found.Hint == "" {
			found = found.WithHint("%s", oneOf(tags(u)))
		}
	}
	d.diags.add(found)
	return likely, certain
}

// misspelledTag returns the value of a key that is probably a misspelling of `type`.
// The unknown key is reported with the other keys.
func misspelledTag(n *node, u *spec.Union) *node {
	for _, p := range n.pairs {
		if p.value.kind != text || diag.Nearest(p.key.text, []string{"type"}) == "" {
			continue
		}
		if slices.Contains(tags(u), p.value.text) || diag.Nearest(p.value.text, tags(u)) != "" {
			return p.value
		}
	}
	return nil
}

// chooseUntyped chooses the case of an entity whose type is missing, or null if tag is set.
func (d *decoder) chooseUntyped(n *node, u *spec.Union, tag *node) (chosen spec.Case, certain bool) {
	if tag == nil && n.unread { // the type may be in a merge that could not be read
		likely, _ := d.chooseByFields(n, u)
		return likely, false
	}
	likely, fits := d.chooseByFields(n, u)
	if u.TagOptional && fits && tag == nil {
		return likely, true
	}
	n.markInvalid() // no rule applies to a guess
	owner := u.Name
	if id := n.get("id"); id != nil && id.kind == text {
		owner += " \"" + id.shown() + "\""
	}
	missing := missingField(n, owner, "type")
	found := ruleUnionTag.At(missing.Span, "%s", missing.Message).WithHint(`add "type:" here; %s`, oneOf(tags(u)))
	found = keyedType(found, n, u)
	if tag != nil {
		found.Span = tag.span
	}
	d.diags.add(found)
	return likely, false
}

// chooseByFields returns the case that has most of the keys, where required ones count
// twice; the first of equal cases. It fits if it has a key other than the id.
func (d *decoder) chooseByFields(n *node, u *spec.Union) (best spec.Case, fits bool) {
	most := -1
	for _, c := range u.Cases {
		p := d.planOf(reflect.TypeOf(c.New()).Elem())
		score := 0
		for _, f := range p.fields {
			switch {
			case f.name == "id" || !n.has(f.name):
			case f.required:
				score += 2
			default:
				score++
			}
		}
		if score > most {
			best, most = c, score
		}
	}
	return best, most > 0
}

// oneOf lists choices on one line, up to a readable number.
func oneOf(choices []string) string {
	const shown = 12
	if len(choices) == 1 {
		return "it can be " + choices[0]
	}
	if len(choices) > shown {
		return "it can be " + strings.Join(choices[:shown], ", ") + ", …"
	}
	last := len(choices) - 1
	return "it can be " + strings.Join(choices[:last], ", ") + " or " + choices[last]
}
