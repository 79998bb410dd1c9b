package convert

import (
	"fmt"
	"strings"
)

// piece is a part of a message: a text, or an expression that gives one.
type piece struct {
	text  string
	code  *translatedExpr // nil for a text
	reads []string
}

// maxConcat is how long a message may be, in bytes, to be written as one
// expression; a longer one is a template.
const maxConcat = 2000

// prompt sets the text that is said to the model and answers its variable.
func (w *workflow) prompt(s *state, f *flow) string {
	id := w.local(s.name+"_prompt", &inferredType{sort: isText, declared: true})
	user := s.n.get("userMessage")
	if user == nil {
		w.malformed(s.n, "state %s has no \"userMessage\"", s.name)
	}
	var all []piece
	if system := s.n.get("systemMessage"); system != nil && readTemplate(system.text).dynamic() {
		w.assumed(system, "the system message of state %s is put together from data, and a step's is fixed; it stands before the user's message", s.name)
		all = append(w.pieces(system), piece{text: "\n\n"})
	}
	if user != nil {
		all = append(all, w.pieces(user)...)
	}
	size := 0
	for _, p := range all {
		size += len(p.text)
		if p.code != nil {
			size += len(p.code.text)
		}
	}
	if size > maxConcat {
		w.fill(s, f, id, all)
		return id
	}
	text := ""
	var reads []string
	for _, p := range all {
		next := quotedCode(p.text)
		if p.code != nil {
			next = p.code
			reads = append(reads, p.reads...)
		}
		switch {
		case len(all) == 1:
			text = next.whole()
		case text == "":
			text = next.wrap(precAdd)
		default:
			text += " + " + next.wrap(precMultiply)
		}
	}
	w.reads = reads
	w.assign(f, s.name+"_say", id, either(text, `""`))
	return id
}

// fill writes a long message: its expressions are worked out first, and a
// template takes them.
func (w *workflow) fill(s *state, f *flow, id string, all []piece) {
	var text strings.Builder
	sets := new(block)
	parts := &step{block: w.head("Transform", s.name+"_parts")}
	for i, p := range all {
		if p.code == nil {
			text.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.text))
			continue
		}
		part := w.local(fmt.Sprintf("%s_part%d", s.name, i+1), &inferredType{sort: isText, declared: true})
		sets.set(part, formula(p.code.whole()))
		parts.reads, parts.writes = append(parts.reads, p.reads...), append(parts.writes, part)
		text.WriteString("{" + part + "}")
	}
	if len(parts.writes) > 0 {
		parts.set("set", sets)
		w.push(f, parts)
	}
	b := w.head("PromptTemplate", s.name+"_say").set("template", text.String())
	if len(parts.writes) > 0 {
		b.set("inputs", inline(parts.writes))
	}
	w.push(f, &step{block: b.set("outputs", inline{id}), reads: parts.writes, writes: []string{id}})
}

// pieces takes a message apart. What cannot be translated is said as it is written.
func (w *workflow) pieces(n *node) []piece {
	if n.form >= list {
		w.malformed(n, "a message is a text, not %s", n.described())
		return nil
	}
	var all []piece
	for _, part := range readTemplate(n.text).parts {
		if !part.jq {
			all = append(all, piece{text: part.text})
			continue
		}
		t := w.jq()
		c, err := t.translate(part.text)
		if err == nil {
			t.assumeType(c, isText)
			c, err = t.asText(c)
		}
		if err != nil {
			w.untranslated(n, "this part of the message is said as it is written", err)
			all = append(all, piece{text: "${ " + part.text + " }"})
			continue
		}
		all = append(all, piece{code: c, reads: w.reads})
	}
	return all
}
