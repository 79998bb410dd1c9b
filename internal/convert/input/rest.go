package input

import "github.com/qtype-dev/qtype/spec/source"

// Rest reports each value below a root that the converter has neither read nor reported, so
// that nothing is lost in silence. A value that is reported stands for all that is in it.
func (r *Report) Rest(root *Node) {
	r.rest(root, map[*Node]bool{})
}

func (r *Report) rest(n *Node, seen map[*Node]bool) {
	if seen[n] { // the value of an alias
		return
	}
	seen[n] = true
	for _, p := range n.Pairs {
		name := p.Key
		if p.Spelling != "" {
			name = p.Spelling
		}
		r.lost(p.Value, p.KeySpan, name, seen)
	}
	for _, item := range n.Items {
		r.lost(item, item.Mark(), item.Describe(), seen)
	}
}

// lost reports a value that was not read; otherwise it looks at what is in the value.
func (r *Report) lost(n *Node, at source.Span, name string, seen map[*Node]bool) {
	_, assumed := r.places[n.Mark()]
	switch {
	case n.Kind == Null, r.places[at], r.places[n.Mark()], assumed && n.Kind < List:
	case !n.read:
		r.Add(Unsupported.At(at, "%s is not converted", name))
	default:
		r.rest(n, seen)
	}
}

// Skip reports the keys of a mapping that do not change the answers, with the reason.
func (r *Report) Skip(n *Node, reason string, keys ...string) {
	for _, key := range keys {
		if v := n.peek(key); v != nil {
			v.Use()
			r.Ignored(n.KeySpan(key), "%s is ignored: %s", key, reason)
		}
	}
}
