package langgraph

import (
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// class is a class of the program.
type class struct {
	name     string
	at       int // the token class
	from, to int // the tokens of its body
	made     *document.Type
}

// field is a field of a class.
type field struct {
	name  string
	of    code.Part  // the tokens of its type
	value *code.Expr // its default; nil for none
	at    code.Part  // the statement
}

// readClass reads the class at the token class.
func (c *conversion) readClass(at int) {
	s := c.source
	k := &class{name: s.Token(at + 1).Text, at: at}
	k.from = at + 2
	if s.Token(k.from).Is("(") {
		k.from = s.Close(k.from) + 1
	}
	if !s.Token(k.from).Is(":") {
		return
	}
	k.from++
	k.to = k.from
	for k.to < len(s.Tokens)-1 && (!s.Token(k.to).First || s.Token(k.to).Column > s.Token(at).Column) {
		k.to++
	}
	c.classes[k.name] = k
}

// fields returns the fields of a class.
func (c *conversion) fields(k *class) []field {
	var all []field
	for _, p := range c.source.Statements(k.from, k.to) {
		if !c.source.Token(p.From).IsWord() || !c.source.Token(p.From+1).Is(":") {
			continue
		}
		f := field{name: c.source.Token(p.From).Text, of: code.Part{From: p.From + 2, To: p.To}, at: p}
		for i := p.From + 2; i < p.To; i++ {
			if t := c.source.Token(i); t.Is("=") {
				f.of.To = i
				f.value, _ = c.source.Expr(i + 1)
				break
			} else if t.Is("[") || t.Is("(") {
				i = c.source.Close(i)
			}
		}
		all = append(all, f)
	}
	return all
}

// typeOf returns the type of an annotation; nil for one without a counterpart.
func (c *conversion) typeOf(p code.Part) *document.Type {
	s := c.source
	end := p.From + 1
	if s.Token(end).Is("[") && end < p.To {
		end = s.Close(end) + 1
	}
	optional := false
	if end < p.To { // X | None
		if !s.Token(end).Is("|") || !s.Token(end+1).Is("None") || end+2 != p.To {
			return nil
		}
		optional = true
	}
	of := c.plainType(p.From, end)
	if of == nil || !optional {
		return of
	}
	made := *of
	made.Optional = true
	return &made
}

func (c *conversion) plainType(from, to int) *document.Type {
	name := c.source.Token(from).Text
	inner := code.Part{From: from + 2, To: to - 1}
	switch {
	case to > from+1 && (name == "list" || name == "List"):
		if elem := c.typeOf(inner); elem != nil && elem.Kind != document.List {
			return &document.Type{Kind: document.List, Declared: true, Elem: elem}
		}
		return nil
	case to > from+1 && name == "Optional":
		if of := c.typeOf(inner); of != nil {
			made := *of
			made.Optional = true
			return &made
		}
		return nil
	case to > from+1:
		return nil
	}
	if kind, known := kinds[name]; known {
		return &document.Type{Kind: kind, Declared: true}
	}
	return c.record(name)
}

// record returns the custom type of a class; nil if it is not in the file.
func (c *conversion) record(name string) *document.Type {
	k := c.classes[name]
	if k == nil {
		return nil
	}
	if k.made != nil {
		return k.made
	}
	c.source.UseRange(k.at, k.from)
	k.made = c.Record(k.name, "", nil) // before its fields, which may name it
	var notes []string
	if e, _ := c.source.Expr(k.from); e.Kind == code.Text {
		notes = append(notes, strings.Join(strings.Fields(e.Text), " "))
	}
	for _, f := range c.fields(k) {
		c.source.UseRange(f.at.From, f.at.To)
		of := c.typeOf(f.of)
		if of == nil {
			c.Add(input.Unsupported.At(c.source.SpanOf(f.at), "the type of %s.%s has no counterpart; a text is in its place", k.name, f.name))
			of = &document.Type{Kind: document.Text, Declared: true}
		}
		about, optional := c.fieldDefault(k, f)
		if about != "" {
			notes = append(notes, f.name+": "+about)
		}
		if optional && !of.Optional {
			made := *of
			made.Optional = true
			of = &made
		}
		k.made.Fields = append(k.made.Fields, &document.Field{Name: f.name, Type: of})
	}
	k.made.Description = strings.Join(notes, "\n")
	if len(k.made.Fields) == 0 {
		c.Add(input.Malformed.At(c.source.SpanOf(code.Part{From: k.at}), "the class %s has no fields", name))
		k.made.Fields = []*document.Field{{Name: "text", Type: &document.Type{Kind: document.Text}}}
	}
	return k.made
}

// fieldDefault reads the default of a field, which may be Field(…), and returns its description and
// whether the field may be missing.
func (c *conversion) fieldDefault(k *class, f field) (about string, optional bool) {
	if f.value == nil {
		return "", false
	}
	if l := f.value.Link("Field"); l != nil {
		c.source.Claim(f.value, "the field "+f.name)
		about, _, _ = c.text(l.Arg("description", -1))
		if first := l.Arg("default", 0); first == nil || first.Text == "" && first.Kind == code.Other {
			return about, false // Field(...) is a required field
		}
	}
	c.Add(input.Assumed.At(c.source.SpanOf(f.at), "the default of %s.%s is not converted; the field is optional", k.name, f.name))
	return about, true
}
