package xflow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// piece is a part of a message: text or a string expression.
type piece struct {
	text  string
	expr  *jq.Expr // nil for text
	reads []string
}

// maxConcat is the size in bytes up to which a message is one expression; a longer
// one is a template.
const maxConcat = 2000

// prompt writes the user message and returns its variable.
func (w *workflow) prompt(s *state, f *document.Flow) string {
	id := w.local(s.name+"_prompt", &document.Type{Kind: document.Text, Declared: true})
	user := s.n.Get("userMessage")
	if user == nil {
		w.Malformed(s.n, "state %s has no \"userMessage\"", s.name)
	}
	var all []piece
	if system := s.n.Get("systemMessage"); system != nil && jq.ParseTemplate(system.Text).HasExpressions() {
		w.Assumed(system, "the system message of state %s depends on data, and that of a step is fixed; it is sent before the user message", s.name)
		all = append(w.pieces(system), piece{text: "\n\n"})
	}
	if user != nil {
		all = append(all, w.pieces(user)...)
	}
	size := 0
	for _, p := range all {
		size += len(p.text)
		if p.expr != nil {
			size += len(p.expr.Source)
		}
	}
	if size > maxConcat {
		w.fill(s, f, id, all)
		return id
	}
	text := ""
	var reads []string
	for _, p := range all {
		next := jq.QuoteExpr(p.text)
		if p.expr != nil {
			next = p.expr
			reads = append(reads, p.reads...)
		}
		switch {
		case len(all) == 1:
			text = next.Text()
		case text == "":
			text = next.Wrap(jq.PrecAdd)
		default:
			text += " + " + next.Wrap(jq.PrecMultiply)
		}
	}
	w.reads = reads
	w.assign(f, s.name+"_say", id, cmp.Or(text, `""`))
	return id
}

// fill writes a long message: a Transform computes its expressions, and a template
// inserts them.
func (w *workflow) fill(s *state, f *document.Flow, id string, all []piece) {
	var text strings.Builder
	sets := new(document.Block)
	parts := &document.Step{Block: w.newBlock("Transform", s.name+"_parts")}
	for i, p := range all {
		if p.expr == nil {
			text.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.text))
			continue
		}
		part := w.local(fmt.Sprintf("%s_part%d", s.name, i+1), &document.Type{Kind: document.Text, Declared: true})
		sets.Set(part, document.Expression(p.expr.Text()))
		parts.Reads, parts.Writes = append(parts.Reads, p.reads...), append(parts.Writes, part)
		text.WriteString("{" + part + "}")
	}
	if len(parts.Writes) > 0 {
		parts.Set("set", sets)
		w.push(f, parts)
	}
	b := w.newBlock("PromptTemplate", s.name+"_say").Set("template", text.String())
	if len(parts.Writes) > 0 {
		b.Set("inputs", document.NameList(parts.Writes))
	}
	w.push(f, &document.Step{Block: b.Set("outputs", document.NameList{id}), Reads: parts.Writes, Writes: []string{id}})
}

// pieces splits a message. Expressions that cannot be translated are sent verbatim.
func (w *workflow) pieces(n *input.Node) []piece {
	if n.Kind >= input.List {
		w.Malformed(n, "a message must be a string, not %s", n.Describe())
		return nil
	}
	var all []piece
	for _, part := range jq.ParseTemplate(n.Text).Parts {
		if !part.IsExpr {
			all = append(all, piece{text: part.Text})
			continue
		}
		t := w.jq()
		c, err := t.Translate(part.Text)
		if err == nil {
			t.AssumeType(c, document.Text)
			c, err = t.AsText(c)
		}
		if err != nil {
			w.untranslated(n, "this part of the message is sent verbatim", err)
			all = append(all, piece{text: "${ " + part.Text + " }"})
			continue
		}
		all = append(all, piece{expr: c, reads: w.reads})
	}
	return all
}
