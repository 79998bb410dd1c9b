package promptflow

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Prompty converts a Prompty file: the values of its head, and the template that begins at an
// offset of the file. It returns nil if nothing can be converted.
func Prompty(r *input.Report, head *input.Node, file *source.File, template int) *document.App {
	c := newConversion(r, head, func(string) (*source.File, error) { return nil, errors.New("a Prompty file names no files") })
	if head.Kind != input.Map {
		r.Malformed(head, "not a Prompty file: its head is %s", head.Describe())
		return nil
	}
	r.CheckKeys(head, "the file", "name", "description", "version", "authors", "tags", "model", "inputs", "outputs", "sample", "template", "base", "isBase", "$schema", "format", "environment")
	c.app.Description = c.Text(head, "description")
	var values []input.Pair
	inputs := c.Map(head, "inputs")
	if inputs == nil {
		inputs = c.Map(head, "sample")
	}
	if inputs != nil {
		values = c.promptyInputs(inputs)
	}
	m := c.Map(head, "model")
	settings := modelSettings{at: head, parameters: m.Get("parameters")}
	if configuration := m.Get("configuration"); configuration != nil {
		settings.azure = strings.HasPrefix(configuration.Get("type").Scalar(), "azure")
		settings.endpoint = environmentText(configuration.Get("azure_endpoint").Scalar())
		settings.name = strings.NewReplacer("${env:", "", "}", "").Replace(configuration.Get("azure_deployment").Scalar())
		if settings.name == "" {
			settings.name = configuration.Get("model").Scalar() + configuration.Get("name").Scalar()
		}
	}
	c.wanted["respond"] = "answer"
	c.answer("respond", c.model(settings), c.parse(file, template, c.historyName(values)), values, file, m.Get("api").Scalar() != "completion")
	c.writeOutputs()
	return c.finish()
}

// promptyInputs declares the inputs of a Prompty file, which are declarations or examples.
func (c *conversion) promptyInputs(inputs *input.Node) (values []input.Pair) {
	for _, p := range inputs.Pairs {
		switch {
		case p.Key == "chat_history":
			c.history = p.Key
		case p.Value.Get("type") != nil:
			c.declareInput(p.Key, p.Value)
		default:
			c.flow.Inputs = append(c.flow.Inputs, c.variable("inputs."+p.Key, p.Key, &document.Type{Kind: kindOf(p.Value), Declared: true}))
		}
		values = append(values, input.Pair{Key: p.Key, KeySpan: p.KeySpan, Value: &input.Node{Kind: input.Text, Text: "${inputs." + p.Key + "}", Span: p.KeySpan}})
	}
	return values
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
