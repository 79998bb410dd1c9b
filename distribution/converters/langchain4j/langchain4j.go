// Package langchain4j converts programs that use LangChain4j: Java files with models, memories
// and AI services, and application.properties files.
package langchain4j

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
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

	sources   []*code.Source
	constants map[string]constant
	types     map[string]*declared // records, enums and classes by their names
}

func newConversion(r *input.Report) *conversion {
	return &conversion{Builder: assistant.NewBuilder(r, "langchain4j_app"), models: map[string]string{}, memories: map[string]string{}, chains: map[source.Span]string{},
		constants: map[string]constant{}, types: map[string]*declared{}}
}

// Convert converts Java files and files of properties of one program. It returns nil if nothing can
// be converted.
func Convert(r *input.Report, files []*source.File, settings []Setting) *document.App {
	c := newConversion(r)
	c.properties(settings)
	for _, file := range files {
		c.sources = append(c.sources, code.Scan(file, code.Java))
	}
	c.each(c.readTypes)
	c.each(c.readTools)
	c.each(c.readChains)
	c.each(c.readServices)
	c.each(c.readInterfaces)
	for _, s := range c.services {
		c.answers(s)
	}
	at := source.Span{}
	for _, file := range slices.Backward(files) {
		at = input.Bytes(file, 0, 1)
	}
	if len(settings) > 0 {
		at = input.Bytes(settings[0].At.File, 0, 1)
	}
	app := c.Finish("the file", at)
	if app != nil {
		c.each(func() {
			c.source.Rest(r)
			c.restOfClasses()
		})
	}
	return app
}

// each calls a function for each file, which is then c.source.
func (c *conversion) each(read func()) {
	for _, s := range c.sources {
		c.source = s
		read()
	}
}

// readChains declares the models and the memories.
func (c *conversion) readChains() {
	for i, t := range c.source.Tokens {
		switch {
		case !t.IsWord(), i > 0 && c.source.Token(i-1).Is("."):
		case i+2 < len(c.source.Tokens) && c.source.Token(i+1).Is("="):
			if e, _ := c.source.Expr(i + 2); isDeclaration(e) {
				c.chain(e, t.Text)
			}
		default:
			c.declare(i)
		}
	}
}

// readServices reads the chains that make services.
func (c *conversion) readServices() {
	for i, t := range c.source.Tokens {
		if t.Is("AiServices") && (i == 0 || !c.source.Token(i-1).Is(".") && !c.source.Token(i-1).Is("import")) {
			e, _ := c.source.Expr(i)
			c.build(e)
		}
	}
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

// text returns the text of an expression, also of a constant of the program, whose parts may be in
// a list.
func (c *conversion) text(e *code.Expr, delimiter string) (text string, ok bool) {
	e = c.value(e)
	switch {
	case e == nil:
		return "", false
	case e.Kind == code.Text:
		return e.Text, true
	}
	if lines, ok := c.texts(e); ok {
		return strings.Join(lines, delimiter), true
	}
	return "", false
}

// texts returns the texts of a list: {"a", "b"}, List.of("a", "b") or Arrays.asList("a", "b").
func (c *conversion) texts(e *code.Expr) (lines []string, ok bool) {
	e = c.value(e)
	if e == nil {
		return nil, false
	}
	items := e.Items
	if call := e.Link("of", "asList"); call != nil && e.Kind == code.Chain {
		for _, a := range call.Args {
			items = append(items, a.Value)
		}
	} else if e.Kind != code.List {
		return nil, false
	}
	for _, item := range items {
		item = c.value(item)
		if item.Kind != code.Text {
			return nil, false
		}
		lines = append(lines, item.Text)
	}
	return lines, true
}
