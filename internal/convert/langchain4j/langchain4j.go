// Package langchain4j converts programs that use LangChain4j: Java files with models, memories
// and AI services, and application.properties files.
package langchain4j

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/assistant"
	"github.com/qtype-dev/qtype/internal/convert/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// conversion is the conversion of one file.
type conversion struct {
	*assistant.Builder
	source   *code.Source
	models   map[string]string // ids by the variables and methods of the program
	memories map[string]string
	chains   map[source.Span]string // ids of models and memories by their places
	methods  []*method              // with the annotation Tool
	services []*service
}

func newConversion(r *input.Report) *conversion {
	return &conversion{Builder: assistant.NewBuilder(r, "langchain4j_app"), models: map[string]string{}, memories: map[string]string{}, chains: map[source.Span]string{}}
}

// Convert converts a Java file. It returns nil if nothing can be converted.
func Convert(r *input.Report, file *source.File) *document.App {
	c := newConversion(r)
	c.source = code.Scan(file, code.Java)
	c.readTools()
	for i, t := range c.source.Tokens {
		switch {
		case !t.IsWord(), i > 0 && c.source.Token(i-1).Is("."):
		case i+2 < len(c.source.Tokens) && c.source.Token(i+1).Is("="):
			if e, _ := c.source.Expr(i + 2); isDeclaration(e) {
				c.chain(e, t.Text)
			}
		case t.Is("AiServices"):
			e, _ := c.source.Expr(i)
			c.build(e)
		default:
			c.declare(i)
		}
	}
	c.readInterfaces()
	for _, s := range c.services {
		c.answers(s)
	}
	return c.Finish("the file", input.Bytes(file, 0, 1))
}

// isDeclaration reports whether a chain makes a model or a memory.
func isDeclaration(e *code.Expr) bool {
	if e == nil || e.Kind != code.Chain || len(e.Links) == 0 || !e.Links[0].Called && len(e.Links) < 2 || e.Link("class") != nil {
		return false
	}
	_, _, isModel := modelClass(e.Links[0].Name)
	return isModel || slices.Contains(memoryClasses, e.Links[0].Name)
}

// declare declares the model or memory that the chain at a token makes.
func (c *conversion) declare(i int) {
	name := c.source.Token(i).Text
	if _, _, isModel := modelClass(name); !isModel && !slices.Contains(memoryClasses, name) {
		return
	}
	e, _ := c.source.Expr(i)
	if !isDeclaration(e) {
		return
	}
	c.chain(e, c.source.AssignedTo(i))
}

// chain declares a model or memory, once for each place, and returns its id.
func (c *conversion) chain(e *code.Expr, name string) string {
	at := e.Links[0].Span
	if id := c.chains[at]; id != "" {
		return id
	}
	var id string
	if slices.Contains(memoryClasses, e.Links[0].Name) {
		id = c.memoryChain(e, name)
		c.memories[name] = id
	} else {
		id = c.modelChain(e, name)
		c.models[name] = id
	}
	c.chains[at] = id
	return id
}

// resolve returns the id of the model or memory that an expression is; empty for an unknown one.
func (c *conversion) resolve(e *code.Expr, known map[string]string) string {
	if isDeclaration(e) {
		return c.chain(e, "")
	}
	return known[e.Last()]
}

// textOf returns the text of an expression, whose parts may be in a list.
func textOf(e *code.Expr, delimiter string) (text string, ok bool) {
	switch {
	case e == nil:
		return "", false
	case e.Kind == code.Text:
		return e.Text, true
	case e.Kind == code.List:
		var lines []string
		for _, item := range e.Items {
			if item.Kind != code.Text {
				return "", false
			}
			lines = append(lines, item.Text)
		}
		return strings.Join(lines, delimiter), true
	}
	return "", false
}
