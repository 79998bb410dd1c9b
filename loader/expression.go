package loader

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// decodeExpression decodes an expression. A number or a boolean is one as well.
func (d *decoder) decodeExpression(n *node, to *spec.Expression, at target) {
	switch n.kind {
	case text, integer, float, boolean:
		switch {
		case n.unset:
		case strings.TrimSpace(n.text) == "":
			d.diags.add(ruleKind.At(n.span, "%s is empty", at).WithHint("give it an expression, such as count > 3"))
		case n.kind == boolean: // also yes and on
			yes, _ := n.toBool()
			to.Text, to.Span = strconv.FormatBool(yes), n.span
		default:
			to.Text, to.Span = n.text, n.span
		}
	default:
		d.diags.add(d.wrongKind(n, at, "an expression").WithHint("such as count > 3"))
	}
}

// decodeAssignments decodes a mapping from variables to expressions. The references
// keep their addresses, because a step's derived outputs point to them.
func (d *decoder) decodeAssignments(n *node, to *spec.Assignments, at target) {
	if !d.isMapping(n, at, "a mapping from variables to expressions") {
		return
	}
	list := make(spec.Assignments, len(n.pairs))
	for i, p := range n.pairs {
		if !p.key.unset {
			list[i].Var.ID, list[i].Var.Span = p.key.text, p.key.span
		}
		here := at.entry(p.key)
		if p.value.kind == broken {
			d.gaps.add(d, reflect.TypeFor[spec.Expression]())
		} else {
			d.decodeExpression(p.value, &list[i].Expr, here)
		}
	}
	*to = list
}

// decodeStoreRef decodes the id of a store, {$ref: id}, or the URL of one.
func (d *decoder) decodeStoreRef(n *node, to *spec.StoreRef, at target) {
	short := strings.HasPrefix(n.text, "sqlite:") || n.text == "memory:"
	if n.kind == text && (short || strings.Contains(n.text, "://")) {
		at.isAddress = true
		d.decodeSecret(n, &to.URL, at)
		return
	}
	d.decodeReference(n, &to.Store, at)
}
