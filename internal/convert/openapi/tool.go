package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
)

// toolBuilder makes the tool of one operation.
type toolBuilder struct {
	*converter
	*operation

	taken    map[string]bool   // ids of arguments
	renamed  []document.Entry  // arguments whose id is not their name
	inPath   map[string]string // ids of the parameters in the path by their names
	inputs   []*document.Block
	query    []*document.Block
	header   []*document.Block
	settings document.Block // body_format and further keys
	headers  document.Block // constant headers
	lists    string         // list_format, once a parameter needs it
	records  string         // record_format, once a parameter needs it
	choices  []string       // sentences about arguments with a set of values
}

// tool adds the tool of an operation.
func (c *converter) tool(o *operation) {
	b := &toolBuilder{converter: c, operation: o, taken: map[string]bool{}, inPath: map[string]string{}}
	b.parameters()
	b.body()
	outputs := b.outputs()
	t := new(document.Block).Set("type", "APITool").Set("id", o.id).Set("name", c.modelName(o.id)).Set("description", b.description()).
		Set("endpoint", c.server(o)+b.endpointPath()).Set("method", strings.ToUpper(o.method))
	if auth := c.authOf(o); auth != "" {
		t.Set("auth", auth)
	}
	if len(b.headers.Entries) > 0 {
		b.headers.Inline = true
		t.Set("headers", &b.headers)
	}
	for _, part := range []struct {
		key  string
		vars []*document.Block
	}{{"inputs", b.inputs}, {"parameters", b.query}, {"header_parameters", b.header}, {"outputs", outputs}} {
		if len(part.vars) > 0 {
			t.Set(part.key, part.vars)
		}
	}
	if len(b.renamed) > 0 {
		t.Set("names", &document.Block{Inline: true, Entries: b.renamed})
	}
	t.Entries = append(t.Entries, b.settings.Entries...)
	if b.lists != "" && b.lists != "repeat" {
		t.Set("list_format", b.lists)
	}
	if b.records != "" && b.records != "json" {
		t.Set("record_format", b.records)
	}
	c.app.Tools = append(c.app.Tools, t)
}

// maxName is the longest name of a function that providers accept.
const maxName = 64

// modelName returns the name of a tool for models: letters, digits, _ and -. A long one
// ends in a digest of the whole, so that it stays the same if the file grows.
func (c *converter) modelName(id string) string {
	name := strings.ReplaceAll(id, ".", "_")
	if len(name) > maxName || c.names[name] {
		const digits = 8
		sum := sha256.Sum256([]byte(id))
		name = name[:min(len(name), maxName-digits-1)] + "_" + hex.EncodeToString(sum[:])[:digits]
	}
	c.names[name] = true
	return name
}

// description returns the description with the values that arguments may have.
func (b *toolBuilder) description() string {
	text := ""
	for _, other := range []string{b.node.Get("description").Scalar(), b.node.Get("summary").Scalar(), strings.ToUpper(b.method) + " " + b.path} {
		if text == "" {
			text = oneLine(other)
		}
	}
	if len(b.choices) > 0 {
		if !strings.HasSuffix(text, ".") {
			text += "."
		}
		text += " " + strings.Join(b.choices, " ")
	}
	return text
}

// endpointPath returns the path with the ids of its parameters.
func (b *toolBuilder) endpointPath() string {
	var names []string // before and after
	for name, id := range b.inPath {
		names = append(names, "{"+name+"}", "{"+id+"}")
	}
	return strings.NewReplacer(names...).Replace(b.path)
}

// argument returns the declaration of an argument. label names it in messages, and a type
// that is made for it.
func (b *toolBuilder) argument(name string, schema *input.Node, required bool) *document.Block {
	return b.declare(name, b.typeOf(schema, b.id+" "+name), schema, required)
}

// declare returns the declaration of an argument of a type.
func (b *toolBuilder) declare(name string, of *document.Type, schema *input.Node, required bool) *document.Block {
	id := document.Slug(name)
	if id == "" {
		id = "argument"
	}
	for base, i := id, 2; b.taken[id]; i++ {
		id = fmt.Sprintf("%s_%d", base, i)
	}
	b.taken[id] = true
	if id != name {
		b.renamed = append(b.renamed, document.Entry{Key: id, Value: name})
	}
	if values := b.values(schema); len(values) > 0 {
		b.choices = append(b.choices, id+": "+strings.Join(values, ", ")+".")
	}
	return variable(id, of, required)
}

// variable returns the declaration of a variable. A list of lists, which variables cannot
// have, is any value.
func variable(id string, of *document.Type, required bool) *document.Block {
	t := *of
	if !t.IsFlat() {
		t = document.Type{Kind: document.Any, Optional: t.Optional}
	}
	t.Optional = t.Optional || !required
	return (&document.Block{Inline: true}).Set("id", id).Set("type", t.VariableType())
}

// parameters reads the parameters. Those of the operation replace those of the path.
func (b *toolBuilder) parameters() {
	seen := map[string]bool{}
	for _, p := range slices.Concat(items(b.node.Get("parameters")), items(b.item.Get("parameters"))) {
		p = b.resolve(p)
		name, in := p.Get("name").Scalar(), p.Get("in").Scalar()
		if p != nil && p.Kind == input.Map && name == "" {
			b.note(input.Malformed, p, "Tool %s: a parameter without a name is left out.", b.id)
		}
		if name == "" || seen[in+" "+name] || in == "body" || in == "formData" {
			continue
		}
		seen[in+" "+name] = true
		b.parameter(p, name, in)
	}
	for rest := b.path; ; { // a placeholder that is not declared
		_, after, found := strings.Cut(rest, "{")
		name, tail, closed := strings.Cut(after, "}")
		if !found || !closed {
			return
		}
		if rest = tail; b.inPath[name] == "" {
			b.pathParameter(name, nil)
		}
	}
}

func (b *toolBuilder) parameter(p *input.Node, name, in string) {
	schema := b.schemaOf(p)
	required := isTrue(p.Get("required"))
	switch in {
	case "path":
		if !strings.Contains(b.path, "{"+name+"}") {
			b.note(input.Ignored, p, "Tool %s: the path has no {%s}, so that the parameter is not sent.", b.id, name)
			return
		}
		b.pathParameter(name, schema)
	case "query":
		b.query = append(b.query, b.argument(name, schema, required))
		b.style(p, schema)
	case "header":
		switch lower := strings.ToLower(name); {
		case slices.Contains([]string{"accept", "content-type", "authorization"}, lower): // OpenAPI ignores them
		case spec.IsTransportHeader(name): // the client sets it
		default:
			b.header = append(b.header, b.argument(name, schema, required))
		}
	default:
		problem := input.Ignored
		if required {
			problem = input.Unsupported
		}
		b.note(problem, p, "Tool %s: the %s parameter %s is not sent.", b.id, in, name)
	}
}

// pathParameter adds a parameter in the path. Names of the path need no map: the endpoint
// has the id.
func (b *toolBuilder) pathParameter(name string, schema *input.Node) {
	of := &document.Type{Kind: document.Text}
	if schema != nil {
		of = b.typeOf(schema, b.id+" "+name)
	}
	kept := len(b.renamed)
	v := b.declare(name, of, schema, true)
	b.renamed = b.renamed[:kept]
	b.inPath[name], _ = v.Entries[0].Value.(string)
	b.query = append(b.query, v)
}

// schemaOf returns the schema of a parameter.
func (b *toolBuilder) schemaOf(p *input.Node) *input.Node {
	if schema := p.Get("schema"); schema != nil {
		return schema
	}
	if content := pairs(p.Get("content")); len(content) > 0 {
		return content[0].Value.Get("schema")
	}
	return p // Swagger 2 has type and items in the parameter
}

// style sets how lists and records of the tool are written in the query.
func (b *toolBuilder) style(p, schema *input.Node) {
	of := b.typeOf(schema, "")
	style, explode := p.Get("style").Scalar(), p.Get("explode").Scalar()
	lists, records := "repeat", "json"
	switch {
	case style == "deepObject":
		lists, records = "indices", "brackets"
	case style == "spaceDelimited" || style == "pipeDelimited":
		b.note(input.Unsupported, p, "Tool %s: the style %s of %s is not available; lists are written with commas.", b.id, style, p.Get("name").Scalar())
		lists = "comma"
	case explode == "false", b.isSwagger2() && p.Get("collectionFormat").Scalar() != "multi":
		lists = "comma"
	}
	if of.Kind == document.List || of.Kind == document.Any {
		b.choose(p, &b.lists, lists)
	}
	if of.Kind != document.List && (of.Kind == document.Record || of.Kind == document.Any) && p.Get("content") == nil {
		b.choose(p, &b.records, records)
	}
}

// choose sets a format, which all arguments of a tool share.
func (b *toolBuilder) choose(p *input.Node, format *string, wanted string) {
	if *format != "" && *format != wanted {
		b.note(input.Unsupported, p, "Tool %s writes all lists and records as %s; %s needs %s.", b.id, *format, p.Get("name").Scalar(), wanted)
		return
	}
	*format = wanted
}

// isSwagger2 reports whether the file is of version 2.
func (c *converter) isSwagger2() bool { return c.root.Get("swagger") != nil }
