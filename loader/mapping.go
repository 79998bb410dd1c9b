package loader

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/spec/source"
)

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
