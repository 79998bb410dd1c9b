package xflow

import (
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// untranslated reports an expression that cannot be translated.
func (w *workflow) untranslated(n *input.Node, what string, err error) {
	var e *jq.Error
	word := ""
	if errors.As(err, &e) {
		word = e.Word
	}
	w.Add(input.Untranslatable.At(input.Find(n, word), "%s: %s", what, err))
}

// jq returns a translator of expressions over the data of the workflow.
func (w *workflow) jq() *jq.Translator {
	w.reads = nil
	t := &jq.Translator{Root: &jq.Expr{Member: w.reading}, Vars: map[string]*jq.Expr{}, Functions: w.defined, Guess: w.guess, Strict: w.strict}
	if w.root.Kind == input.Map && w.root.Get("constants") != nil {
		t.Vars["CONST"] = constants(w.root.Get("constants"))
	}
	return t
}

// reading returns data as an expression reads it.
func (w *workflow) reading(name string) (*jq.Expr, error) {
	d := w.datum(name)
	w.reads = append(w.reads, d.id)
	return &jq.Expr{Source: d.id, Prec: jq.PrecAtom, Type: d.of, Nullable: d.of.Optional, Unverified: d.fromAgent, ComparedWithNull: &d.nullCompared, Root: d.of}, nil
}

// condition translates the condition of an outcome, to false if that fails.
func (w *workflow) condition(s *state, o outcome) (text string, failed bool) {
	if o.failed {
		w.reads = []string{w.parts.done[s]}
		return w.parts.done[s] + " != true", false
	}
	t := w.jq()
	w.outcomeVars(s, t)
	source := o.when.Text
	switch {
	case o.when.Kind == input.Bool:
		return strings.ToLower(o.when.Text), false
	case o.when.Kind != input.Text:
		w.Malformed(o.when, "a condition must be an expression, not %s", o.when.Describe())
		return "false", true
	}
	if tpl := jq.ParseTemplate(strings.TrimSpace(source)); len(tpl.Parts) == 1 {
		source = tpl.Parts[0].Text
	}
	c, err := t.Translate(source)
	if err != nil {
		w.untranslated(o.when, "the condition becomes false", err)
		w.reads = nil
		return "false", true
	}
	return t.Truth(c).Text(), false
}

// readFunctions reads the functions of the workflow that are expressions, and
// reports whether all are.
func (w *workflow) readFunctions() bool {
	all := w.root.Get("functions")
	if all == nil || all.Kind != input.List {
		return false
	}
	w.defined = map[string]string{}
	only := true
	for _, n := range all.Elements() {
		operation := n.Get("operation").Scalar()
		if n.Kind != input.Map || input.NormalizeName(n.Get("type").Scalar()) != "expression" || operation == "" {
			only = false
			continue
		}
		w.CheckKeys(n, "a function", "name", "operation", "type", "metadata")
		if tpl := jq.ParseTemplate(strings.TrimSpace(operation)); len(tpl.Parts) == 1 {
			operation = tpl.Parts[0].Text
		}
		w.defined[n.Get("name").Scalar()] = operation
	}
	return only
}

// constants returns the value of $CONST.
func constants(n *input.Node) *jq.Expr {
	switch n.Kind {
	case input.Map:
		return &jq.Expr{Member: func(name string) (*jq.Expr, error) {
			v := n.Get(name)
			if v == nil {
				return nil, jq.Unsupported("."+name, "the workflow has no constant %q", name)
			}
			c := constants(v)
			if c == nil {
				return nil, jq.Unsupported("."+name, "the constant %q is a list that an expression cannot contain", name)
			}
			return c, nil
		}}
	case input.List:
		elem := &document.Type{}
		var items []string
		for _, item := range n.Elements() {
			c := constants(item)
			if c == nil || c.Member != nil || c.Type.Kind == document.List {
				return nil
			}
			joined, ok := document.Join(elem, c.Type)
			if !ok {
				return nil
			}
			elem = joined
			items = append(items, c.Source)
		}
		return &jq.Expr{Source: "[" + strings.Join(items, ", ") + "]", Prec: jq.PrecAtom, Type: &document.Type{Kind: document.List, Declared: true, Elem: elem}}
	}
	c, err := scalarExpr(n)
	if err != nil {
		return nil
	}
	return c
}
