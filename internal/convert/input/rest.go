package input

import (
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/source"
)

// Rest reports each value below a root that the converter has neither read nor reported, so
// that nothing is lost in silence. A report of a value covers all that is in it.
func (r *Report) Rest(root *Node) {
	w := restWalk{Report: r, seen: map[*Node]bool{}, lost: func(at source.Span, name string) {
		r.Add(Unsupported.At(at, "%s is not converted", name))
	}}
	w.visit(root)
}

// RestByName reports the same as warnings, one for each name, for files in which the same keys are
// in many places. Names for which silent is true are left out.
func (r *Report) RestByName(roots []*Node, silent func(name string) bool) {
	var names []string
	first, count := map[string]source.Span{}, map[string]int{}
	w := restWalk{Report: r, seen: map[*Node]bool{}, lost: func(at source.Span, name string) {
		if silent(name) {
			return
		}
		if count[name]++; count[name] == 1 {
			names, first[name] = append(names, name), at
		}
	}}
	for _, root := range roots {
		w.visit(root)
	}
	for _, name := range names {
		if n := count[name]; n > 1 {
			r.Ignored(first[name], "%s is not converted, here and in %s", name, textfmt.Count(n-1, "other place"))
		} else {
			r.Ignored(first[name], "%s is not converted", name)
		}
	}
}

// restWalk finds the values that nothing has read.
type restWalk struct {
	*Report
	seen map[*Node]bool // an alias is visited once
	lost func(at source.Span, name string)
}

func (w *restWalk) visit(n *Node) {
	if w.seen[n] {
		return
	}
	w.seen[n] = true
	for _, p := range n.Pairs {
		name := p.Key
		if p.Spelling != "" {
			name = p.Spelling
		}
		w.check(p.Value, p.KeySpan, name)
	}
	for _, item := range n.Items {
		w.check(item, item.Mark(), item.Describe())
	}
}

// check reports a value that was not read; otherwise it looks at what is in the value.
func (w *restWalk) check(n *Node, at source.Span, name string) {
	_, assumed := w.places[n.Mark()]
	switch {
	case n.Kind == Null, w.places[at], w.places[n.Mark()], assumed && n.Kind < List:
	case !n.read:
		w.lost(at, name)
	default:
		w.visit(n)
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
