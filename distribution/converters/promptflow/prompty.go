package promptflow

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Prompty converts a Prompty file of version 1 or 2: the values of its head, and the template that
// begins at an offset of the file. It returns nil if nothing can be converted.
func Prompty(r *input.Report, head *input.Node, file *source.File, template int) *document.App {
	c := newConversion(r, head, func(string) (*source.File, error) { return nil, errors.New("a Prompty file names no files") })
	if head.Kind != input.Map {
		r.Malformed(head, "not a Prompty file: its head is %s", head.Describe())
		return nil
	}
	rename(head, "inputSchema", "inputs")
	rename(head, "outputSchema", "outputs")
	r.CheckKeys(head, "the file", "name", "displayName", "description", "version", "authors", "tags", "metadata", "model", "inputs", "outputs", "sample", "template", "tools", "base", "isBase", "$schema", "format", "environment", "kind")
	r.Skip(head, "it describes the file", "version", "authors", "tags", "metadata", "kind")
	c.describe(c.Text(head, "displayName"), c.Text(head, "name"))
	c.templateFormat(head.Get("template"))
	var values []input.Pair
	if head.Has("inputs") {
		values = c.promptyInputs(properties(head.Get("inputs")))
		r.Skip(head, "it has examples of the inputs", "sample")
	} else if sample := c.Map(head, "sample"); sample != nil {
		values = c.promptyInputs(sample.Entries())
	}
	c.functions()
	m := c.Map(head, "model")
	c.wanted["respond"] = "answer"
	c.answer("respond", c.model(c.promptyModel(m)), c.parse(file, template, c.historyName(values)), values, file, c.isChat(m))
	if c.root.Get("outputs").Use() != nil {
		c.Unsupported(head.Get("outputs"), "the types of outputs are not converted; the answer is a text")
	}
	c.flow.Outputs = c.flow.Steps[len(c.flow.Steps)-1].Writes
	return c.finish()
}

// templateFormat reports a format of templates other than Jinja.
func (c *conversion) templateFormat(n *input.Node) {
	format := n.Get("format")
	if n.Scalar() != "" { // version 1 also has the format itself
		format = n
	}
	if kind := format.Get("kind"); kind != nil {
		format = kind
	}
	if of := format.Scalar(); of != "" && of != "jinja2" {
		c.Unsupported(format, "templates of the format %s are not converted; they are read as Jinja", of)
	}
	parser := n.Get("parser")
	if kind := parser.Get("kind"); kind != nil {
		parser = kind
	}
	if of := parser.Scalar(); of != "" && of != "prompty" {
		c.Unsupported(parser, "the parser %s of templates has no counterpart", of)
	}
}

// promptyModel reads the model: configuration and parameters in version 1, id, provider, connection
// and options in version 2.
func (c *conversion) promptyModel(m *input.Node) modelSettings {
	s := modelSettings{at: c.root, parameters: c.Map(m, "parameters"), provider: m.Get("provider"), name: c.Text(m, "id")}
	if options := c.Map(m, "options"); options != nil {
		rename(options, "maxOutputTokens", "max_tokens")
		rename(options, "stopSequences", "stop")
		input.NormalizeKeys(options, requestParameters...)
		s.parameters = options
	}
	s.azure = s.provider.Scalar() == "azure"
	if connection := c.Map(m, "connection"); connection != nil {
		c.Skip(connection, "keys are those of the environment", "kind", "apiKey", "authenticationMode")
		if s.endpoint = environmentText(c.Text(connection, "endpoint")); s.endpoint != "" && !s.azure {
			c.Unsupported(connection.Get("endpoint"), "the endpoint is not converted; set base_url of the model")
		}
	}
	if configuration := c.Map(m, "configuration"); configuration != nil {
		c.Skip(configuration, "keys are those of the environment", "api_key", "connection", "organization")
		s.azure = strings.HasPrefix(c.Text(configuration, "type"), "azure")
		s.endpoint = environmentText(c.Text(configuration, "azure_endpoint"))
		s.version = c.Text(configuration, "api_version")
		s.name = strings.NewReplacer("${env:", "", "}", "").Replace(c.Text(configuration, "azure_deployment"))
		if s.name == "" {
			s.name = c.Text(configuration, "model") + c.Text(configuration, "name")
		}
	}
	return s
}

// rename renames a key of a mapping, unless it has the other one.
func rename(n *input.Node, from, to string) {
	for i := range n.Pairs {
		if n.Pairs[i].Key == from && !n.Has(to) {
			n.Pairs[i].Key = to
		}
	}
}

// properties returns declarations by their names, which are a mapping, a list of mappings with a
// name, or one of both in properties.
func properties(n *input.Node) []input.Pair {
	if inner := n.Get("properties"); inner != nil {
		n = inner
	}
	all := n.Entries()
	for _, item := range n.Elements() {
		if name := item.Get("name"); name != nil {
			all = append(all, input.Pair{Key: name.Text, KeySpan: name.Span, Value: item})
		}
	}
	return all
}

// promptyInputs declares the inputs of a Prompty file, which are declarations or examples.
func (c *conversion) promptyInputs(inputs []input.Pair) (values []input.Pair) {
	for _, p := range inputs {
		if p.Value.Kind == input.Map {
			rename(p.Value, "kind", "type")
			c.CheckKeys(p.Value, "input "+p.Key, "name", "type", "default", "description", "required", "sample", "example")
			c.Skip(p.Value, "it is an example of the input", "sample", "example")
			c.Skip(p.Value, "each row must have the input", "required")
		}
		switch {
		case p.Key == "chat_history" || p.Value.Get("type").Scalar() == "thread":
			c.historyType(p.Key, p.Value)
		case p.Value.Get("type") != nil:
			c.declareInput(p.Key, p.Value)
		default:
			p.Value.Use()
			c.flow.Inputs = append(c.flow.Inputs, c.variable("inputs."+p.Key, p.Key, &document.Type{Kind: kindOf(p.Value), Declared: true}))
		}
		values = append(values, input.Pair{Key: p.Key, KeySpan: p.KeySpan, Value: &input.Node{Kind: input.Text, Text: "${inputs." + p.Key + "}", Span: p.KeySpan}})
	}
	return values
}

// functions declares the tools of a Prompty file, which the caller answers.
func (c *conversion) functions() {
	for _, n := range c.List(c.root, "tools") {
		if c.AsMap(n, "a tool") == nil {
			continue
		}
		name := c.RequiredText(n, "name", "a tool")
		if kind := c.Text(n, "kind"); kind != "function" || name == "" {
			c.Unsupported(n.Use(), "the tool %s of kind %q has no counterpart", name, kind)
			continue
		}
		c.CheckKeys(n, "tool "+name, "name", "kind", "description", "parameters")
		id := c.ids.New(name, "tool")
		about := cmp.Or(c.Text(n, "description"), "Function "+name+".")
		var inputs []*document.Block
		for _, p := range properties(n.Get("parameters")) {
			rename(p.Value, "type", "kind")
			c.CheckKeys(p.Value, "parameter "+p.Key, "name", "kind", "description", "required")
			kind, known := kinds[c.Text(p.Value, "kind")]
			if !known || !document.IsIdentifier(p.Key) {
				c.Unsupported(p.Value.Use(), "tool %s: the parameter %s has no counterpart", name, p.Key)
				continue
			}
			of := &document.Type{Kind: kind, Optional: !c.Bool(p.Value, "required")}
			inputs = append(inputs, (&document.Block{Inline: true}).Set("id", p.Key).Set("type", of.Text()))
			if text := c.Text(p.Value, "description"); text != "" {
				about += "\n" + p.Key + ": " + text
			}
		}
		b := new(document.Block).Set("type", "ClientTool").Note("Answered at the terminal, or by --client-tool %s=COMMAND.", document.OneLine(id)).
			Set("id", id).Set("name", id).Set("description", about)
		if len(inputs) > 0 {
			b.Set("inputs", inputs)
		}
		c.app.Tools = append(c.app.Tools, b.Set("outputs", []*document.Block{(&document.Block{Inline: true}).Set("id", "result").Set("type", "any")}))
		c.clients = append(c.clients, id)
	}
}

// environmentText returns a text of a Prompty file, in which ${env:NAME} is a variable of
// the environment.
func environmentText(text string) string {
	return environment().ReplaceAllString(text, "$${$1}")
}

var environment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{env:(\w+)(?::[^}]*)?\}`) })

// kindOf returns the type of an example.
func kindOf(n *input.Node) document.Kind {
	switch n.Kind {
	case input.Text, input.Null:
		return document.Text
	case input.Int:
		return document.Int
	case input.Float:
		return document.Float
	case input.Bool:
		return document.Bool
	}
	return document.Any
}
