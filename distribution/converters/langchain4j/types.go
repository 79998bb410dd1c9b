package langchain4j

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// constant is a final field, whose tokens are read if its value is.
type constant struct {
	value    *code.Expr
	source   *code.Source
	from, to int
}

// value returns the value of a constant of the program, or the expression itself. It accepts nil.
func (c *conversion) value(e *code.Expr) *code.Expr {
	if e == nil || e.Kind != code.Chain || slices.ContainsFunc(e.Links, func(l code.Link) bool { return l.Called }) {
		return e
	}
	if of, ok := c.constants[e.Last()]; ok && of.value.Kind != code.Chain {
		of.source.UseRange(of.from, of.to)
		return of.value
	}
	return e
}

// declared is a record, an enum or a class of the program.
type declared struct {
	kind        string // record, enum or class
	name, about string
	source      *code.Source
	from, to    int // its tokens
	head        int // the bracket that opens the components of a record, or the body
	made        *document.Type
}

// readTypes reads constants, records, enums and classes.
func (c *conversion) readTypes() {
	s := c.source
	for i := 0; i+2 < len(s.Tokens); i++ {
		switch t := s.Token(i); {
		case (t.Is("record") || t.Is("enum") || t.Is("class")) && s.Token(i+1).IsWord() && (i == 0 || !s.Token(i-1).Is(".")):
			d := &declared{kind: t.Text, name: s.Token(i + 1).Text, source: s, from: i, head: c.next(i, "(", "{", ";")}
			if d.kind != "record" {
				d.head = c.next(i, "{", ";")
			}
			body := c.next(i, "{", ";")
			if d.kind == "record" && d.head >= 0 && s.Token(d.head).Is("(") {
				body = c.next(s.Close(d.head), "{", ";")
			}
			if d.head < 0 || s.Token(d.head).Is(";") || body < 0 {
				continue
			}
			d.to = s.Close(body) + 1
			d.about = c.describedBefore(i)
			if c.types[d.name] == nil {
				c.types[d.name] = d
			}
		case t.IsWord() && s.Token(i+1).Is("=") && !s.Token(i+2).Is("=") && c.isFinal(i):
			value, end := s.Expr(i + 2)
			c.constants[t.Text] = constant{value, s, i, end + 1}
		}
	}
}

// next returns the number of the first token after a place that is one of words, near it; -1 for none.
func (c *conversion) next(i int, words ...string) int {
	for end := min(i+maxModifiers, len(c.source.Tokens)); i < end; i++ {
		if slices.ContainsFunc(words, c.source.Token(i).Is) {
			return i
		}
	}
	return -1
}

// isFinal reports whether the field at a token is declared as final.
func (c *conversion) isFinal(i int) bool {
	for from := i; i > 0 && from-i < maxModifiers; i-- {
		switch t := c.source.Token(i); {
		case t.Is("final"):
			return true
		case t.Is(";"), t.Is("{"), t.Is("}"), t.Is("("), t.Is(","):
			return false
		}
	}
	return false
}

// describedBefore returns the text of the annotation Description before a type.
func (c *conversion) describedBefore(i int) string {
	s := c.source
	for at := i - 1; at >= 0 && i-at < maxModifiers; at-- {
		if t := s.Token(at); t.Is(";") || t.Is("{") || t.Is("}") {
			return ""
		} else if t.Is("@") && s.Token(at+1).Is("Description") {
			l := s.Call(at + 1)
			text, _ := c.text(l.Arg("value", 0), " ")
			return text
		}
	}
	return ""
}

// maxModifiers limits the tokens of the annotations and modifiers of a type.
const maxModifiers = 200

// resultType returns the type of an answer that is not a text; nil for a text, and for a type
// without a counterpart.
func (c *conversion) resultType(java string) *document.Type {
	java = answerOf(java)
	if isAnswer(java) || java == "void" || java == "Object" {
		return nil
	}
	return c.typeOf(java)
}

// typeOf returns the type of a value of a type of Java; nil without a counterpart.
func (c *conversion) typeOf(java string) *document.Type {
	for _, outer := range []string{"List<", "Set<", "Collection<"} {
		if inner, ok := strings.CutPrefix(java, outer); ok {
			if elem := c.typeOf(strings.TrimSuffix(inner, ">")); elem != nil && elem.Kind != document.List {
				return &document.Type{Kind: document.List, Declared: true, Elem: elem}
			}
			return nil
		}
	}
	if kind, known := kindOf(java); known {
		return &document.Type{Kind: kind, Declared: true}
	}
	d := c.types[java[strings.LastIndexByte(java, '.')+1:]]
	if d == nil {
		return nil
	}
	if d.made == nil {
		c.makeType(d)
	}
	return d.made
}

// makeType declares the custom type of a record or a class. An enum is a text.
func (c *conversion) makeType(d *declared) {
	outer := c.source
	c.source = d.source
	defer func() { c.source = outer }()
	d.source.UseRange(d.from, d.to)
	if d.kind == "enum" {
		d.made = &document.Type{Kind: document.Text, Declared: true}
		c.Add(input.Assumed.At(d.source.Span(d.source.Token(d.from+1)), "the enum %s becomes a text: the prompt must list its values (%s)", d.name, strings.Join(c.constantsOf(d), ", ")))
		return
	}
	d.made = c.Record(d.name, d.about, nil) // before its fields, which may name it
	var notes []string
	for _, p := range c.fields(d) {
		c.claimAnnotations(p.annotations, "the field "+p.name)
		of := c.typeOf(p.of)
		if of == nil {
			c.Add(input.Unsupported.At(d.source.Span(d.source.Token(d.from+1)), "the field %s of %s is a %s; a text is in its place", p.name, d.name, p.of))
			of = &document.Type{Kind: document.Text}
		}
		d.made.Fields = append(d.made.Fields, &document.Field{Name: p.name, Type: of})
		if text, ok := c.text(annotation(p.annotations, "Description").Arg("value", 0), " "); ok {
			notes = append(notes, p.name+": "+text)
		}
	}
	d.made.Description = strings.TrimPrefix(strings.Join(append([]string{d.made.Description}, notes...), "\n"), "\n")
}

// constantsOf returns the names of an enum.
func (c *conversion) constantsOf(d *declared) []string {
	var names []string
	for i := d.head + 1; i < d.source.Close(d.head); i++ {
		t := d.source.Token(i)
		if t.Is(";") {
			break
		}
		if before := d.source.Token(i - 1); t.IsWord() && (before.Is(",") || before.Is("{")) {
			names = append(names, t.Text)
		}
	}
	return names
}

// fields returns the components of a record, or the fields of a class.
func (c *conversion) fields(d *declared) []parameter {
	closing := d.source.Close(d.head)
	if d.kind == "record" {
		return c.parameters(d.head+1, closing)
	}
	var all []parameter
	for i := d.head + 1; i < closing; i++ {
		first := c.afterAnnotations(i)
		end := c.next(first, ";", "{", "=", "(")
		if end < 0 || end >= closing {
			break
		}
		if next := d.source.Token(end); next.Is(";") || next.Is("=") {
			if !d.source.Token(first).Is("static") {
				all = append(all, c.parameters(i, end)...)
			}
			i = max(c.next(end, ";"), end)
			continue
		} else if next.Is("(") { // a method
			if end = c.next(d.source.Close(end), "{", ";"); end < 0 {
				break
			}
			if d.source.Token(end).Is(";") {
				i = end
				continue
			}
		}
		i = d.source.Close(end)
	}
	return all
}

func (c *conversion) afterAnnotations(i int) int {
	_, after := c.annotations(i)
	return after
}

// claimAnnotations declares that annotations are converted, except annotations that only Java
// reads.
func (c *conversion) claimAnnotations(all []code.Link, what string) {
	for _, l := range all {
		if slices.Contains([]string{"Override", "Deprecated", "SuppressWarnings", "FunctionalInterface", "NotNull", "Nullable", "NonNull", "ApplicationScoped", "SessionScoped",
			"RequestScoped", "Singleton", "Inject", "Component", "Service", "JsonProperty"}, l.Name) {
			continue
		}
		c.source.ClaimAnnotation(l, what, []string{"Tool", "ToolMemoryId", "MemoryId", "P", "V", "UserName", "SystemMessage", "UserMessage", "Description", "ToolBox", "AiService", "RegisterAiService"})
	}
}

// restOfClasses reports the members of classes of which nothing was read, once for each class.
func (c *conversion) restOfClasses() {
	s := c.source
	var at *code.Token
	var names []string
	for i := 0; i+1 < len(s.Tokens); i++ {
		if !isMember(s, i) {
			continue
		}
		m, after := c.method(i)
		if open := s.Token(after); m == nil || !open.Is("{") && !open.Is("throws") || after <= i {
			continue
		}
		body := s.Index(after, "{")
		if body < 0 {
			break
		}
		if end := s.Close(body); !s.IsRead(i, end) {
			t := s.Token(m.from)
			if at == nil {
				at = &t
			}
			names = append(names, m.name)
			i = end
		}
	}
	if at != nil {
		c.Add(input.Ignored.At(s.Span(*at), "methods without a model, a memory or a service are ignored: %s", strings.Join(names, ", ")))
	}
}

// isMember reports whether a declaration may begin at a token.
func isMember(s *code.Source, i int) bool {
	before := s.Token(i - 1)
	return i > 0 && (before.Is("{") || before.Is("}") || before.Is(";"))
}
