package langchain4j

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// method is a method with its annotations.
type method struct {
	annotations []code.Link
	result      string // the type
	name        string
	parameters  []parameter
	class       string // that declares it
	at          source.Span
	source      *code.Source
	from, to    int // its tokens, without a body
}

// parameter is a parameter of a method.
type parameter struct {
	annotations []code.Link
	of          string // the type
	name        string
}

func annotation(all []code.Link, names ...string) *code.Link {
	i := slices.IndexFunc(all, func(l code.Link) bool { return slices.Contains(names, l.Name) })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// annotations reads the annotations from a token on, and returns the number of the token after them.
func (c *conversion) annotations(i int) ([]code.Link, int) {
	var all []code.Link
	tokens := c.source.Tokens
	for i+1 < len(tokens) && c.source.Token(i).Is("@") && c.source.Token(i+1).IsWord() && !c.source.Token(i+1).Is("interface") {
		end := i + 2
		for end+1 < len(tokens) && c.source.Token(end).Is(".") && c.source.Token(end+1).IsWord() {
			end += 2
		}
		all = append(all, c.source.Call(end-1))
		if i = end; c.source.Token(end).Is("(") {
			i = c.source.Close(end) + 1
		}
	}
	return all, i
}

// method reads the method at a token and returns the number of the token after it; nil if there
// is none.
func (c *conversion) method(i int) (*method, int) {
	m := &method{source: c.source, from: i}
	m.annotations, i = c.annotations(i)
	tokens := c.source.Tokens
	depth := 0
	for ; i < len(tokens)-1; i++ {
		switch t := c.source.Token(i); {
		case t.Is(";"), t.Is("{"), t.Is("}"), t.Is("="), t.Is("@"):
			return nil, i
		case t.Is("<"):
			depth++
		case t.Is(">"):
			depth--
		case t.Is("(") && depth == 0 && m.name != "":
			m.parameters = c.parameters(i+1, c.source.Close(i))
			m.to = c.source.Close(i) + 1
			return m, m.to
		}
		if m.name != "" && !slices.Contains(modifiers(), m.name) {
			m.result += m.name
		}
		m.name, m.at = c.source.Token(i).Text, c.source.Span(c.source.Token(i))
	}
	return nil, i
}

func modifiers() []string {
	return []string{"public", "private", "protected", "static", "final", "abstract", "default", "synchronized", "volatile", "transient"}
}

// parameters reads the parameters between two tokens.
func (c *conversion) parameters(i, end int) []parameter {
	var all []parameter
	for i < end {
		p := parameter{}
		p.annotations, i = c.annotations(i)
		depth, named := 0, false
		for ; i < end && (depth > 0 || !c.source.Token(i).Is(",")); i++ {
			switch t := c.source.Token(i); {
			case t.Is("<"):
				depth++
			case t.Is(">"):
				depth--
			}
			if !slices.Contains(modifiers(), p.name) {
				p.of += p.name
			}
			p.name, named = c.source.Token(i).Text, c.source.Token(i).IsWord()
		}
		i++
		if named && p.of != "" {
			all = append(all, p)
		}
	}
	return all
}

// kindOf returns the type of a value of a type of Java, and whether it has a counterpart.
func kindOf(java string) (document.Kind, bool) {
	switch java[strings.LastIndexByte(java, '.')+1:] {
	case "String", "CharSequence", "char", "Character", "UUID", "void":
		return document.Text, true
	case "int", "Integer", "long", "Long", "short", "Short":
		return document.Int, true
	case "float", "Float", "double", "Double", "BigDecimal":
		return document.Float, true
	case "boolean", "Boolean":
		return document.Bool, true
	case "LocalDate":
		return document.Date, true
	case "LocalDateTime", "Instant", "ZonedDateTime", "OffsetDateTime":
		return document.DateTime, true
	}
	return document.Any, false
}

// readTools reads the methods with the annotation Tool.
func (c *conversion) readTools() {
	class := ""
	tokens := c.source.Tokens
	for i := 0; i+1 < len(tokens); i++ {
		switch {
		case (c.source.Token(i).Is("class") || c.source.Token(i).Is("record") || c.source.Token(i).Is("interface")) && c.source.Token(i+1).IsWord() && (i == 0 || !c.source.Token(i-1).Is(".")):
			class = c.source.Token(i + 1).Text
		case c.source.Token(i).Is("@") && c.source.Token(i+1).IsWord():
			m, after := c.method(i)
			if m != nil && annotation(m.annotations, "Tool") != nil {
				m.class = class
				c.methods = append(c.methods, m)
				i = after - 1
			} else if _, next := c.annotations(i); next > i {
				i = next - 1
			}
		}
	}
}

// tool declares the tool of a method and returns its id.
func (c *conversion) tool(m *method) string {
	declared := annotation(m.annotations, "Tool")
	t := assistant.Tool{Name: m.name}
	body := m.to
	for !m.source.Token(body).Is("{") && !m.source.Token(body).Is(";") && body < len(m.source.Tokens)-1 {
		body++
	}
	m.source.UseRange(m.from, m.source.Close(body)+1)
	c.source = m.source
	c.claimAnnotations(m.annotations, "the tool "+m.name)
	t.Description, _ = c.text(declared.Arg("value", 0), "\n")
	if name, ok := c.text(declared.Arg("name", -1), ""); ok {
		t.Name = cmp.Or(name, t.Name)
	}
	t.Result, _ = kindOf(m.result)
	if t.Result == document.Any && m.result != "Object" {
		c.Add(input.Assumed.At(m.at, "the tool %s returns %s; any value is accepted", m.name, m.result))
	}
	for _, p := range m.parameters {
		if annotation(p.annotations, "ToolMemoryId", "MemoryId") == nil {
			kind, known := kindOf(p.of)
			if !known && p.of != "Object" {
				c.Add(input.Assumed.At(m.at, "the parameter %s of the tool %s is a %s; any value is passed", p.name, m.name, p.of))
			}
			v := assistant.Variable{Name: p.name, Kind: kind}
			c.claimAnnotations(p.annotations, "the parameter "+p.name)
			about := annotation(p.annotations, "P")
			v.Description, _ = c.text(about.Arg("value", 0), "\n")
			v.Optional = about.Arg("required", -1).IsFalse()
			t.Inputs = append(t.Inputs, v)
		}
	}
	return c.Tool(t)
}
