// Package openapi converts the operations of an OpenAPI 3 or Swagger 2 file to tools.
package openapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
)

// converter is the state of one conversion.
type converter struct {
	report *input.Report
	root   *input.Node
	app    *document.App
	ids    *document.IDs
	base   string                         // what the endpoints begin with
	auth   string                         // the id of the credentials of all tools; empty for none
	types  map[*input.Node]*document.Type // of the schemas that were read
	notes  map[string]bool                // comments that were made
}

// methods are the methods that tools can have, in the order of the result.
var methods = []string{"get", "post", "put", "patch", "delete", "head", "options"}

// Convert makes a tool of each operation. name is used as id if the file has no title.
// What a tool cannot express is reported, and is a comment at the top of the document.
func Convert(r *input.Report, root *input.Node, name string) (*document.App, error) {
	if root.Get("openapi") == nil && root.Get("swagger") == nil {
		return nil, errors.New("it is not an OpenAPI file: it has neither the key openapi nor swagger")
	}
	id := document.Slug(strings.ReplaceAll(strings.ToLower(root.Get("info").Get("title").Scalar()), " ", "-"))
	if id == "" {
		id = document.Slug(name)
	}
	if id == "" {
		id = "api"
	}
	c := &converter{report: r, root: root, ids: document.NewIDs(id), types: map[*input.Node]*document.Type{}, notes: map[string]bool{},
		app: &document.App{ID: id, Description: oneLine(root.Get("info").Get("description").Scalar())}}
	for _, name := range slices.Concat(spec.Primitives(), spec.DomainTypes()) {
		c.ids.Taken[name] = true // the names of built-in types
	}
	c.base = c.server()
	c.credentials()
	for _, path := range pairs(root.Get("paths")) {
		for _, method := range methods {
			if operation := path.Value.Get(method); operation != nil {
				c.tool(path, method, operation)
			}
		}
	}
	if len(c.app.Tools) == 0 {
		return nil, errors.New("the file has no operations")
	}
	return c.app, nil
}

// pairs returns the entries of a mapping, none for anything else.
func pairs(n *input.Node) []input.Pair {
	if n == nil {
		return nil
	}
	return n.Pairs
}

// items returns the elements of a list, none for anything else.
func items(n *input.Node) []*input.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// note reports what the document cannot express, and adds it as a comment, once.
func (c *converter) note(p input.Problem, at *input.Node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at == nil { // a key without a value
		at = c.root
	}
	c.report.Add(p.At(at.Mark(), "%s", messageOf(text)))
	if !c.notes[text] {
		c.notes[text] = true
		c.app.Comments = append(c.app.Comments, text)
	}
}

// messageOf returns a sentence as the message of a diagnostic.
func messageOf(sentence string) string {
	for _, word := range []string{"The ", "Tool "} {
		if rest, ok := strings.CutPrefix(sentence, word); ok {
			sentence = strings.ToLower(word) + rest
		}
	}
	return strings.TrimSuffix(sentence, ".")
}

// server returns the address of the first server.
func (c *converter) server() string {
	if host := c.root.Get("host").Scalar(); host != "" { // Swagger 2
		scheme := "https"
		if all := items(c.root.Get("schemes")); len(all) > 0 && all[0].Text != "" {
			scheme = all[0].Text
		}
		return scheme + "://" + host + strings.TrimSuffix(c.root.Get("basePath").Scalar(), "/")
	}
	var url string
	if all := items(c.root.Get("servers")); len(all) > 0 {
		url = all[0].Get("url").Scalar()
		for _, v := range pairs(all[0].Get("variables")) {
			url = strings.ReplaceAll(url, "{"+v.Key+"}", v.Value.Get("default").Scalar())
		}
	}
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		c.note(input.Assumed, c.root, "The file names no server with an address: the endpoints begin with http://localhost.")
		url = "http://localhost/" + strings.TrimPrefix(url, "/")
	}
	return strings.TrimSuffix(url, "/")
}

// resolve follows references within the file.
func (c *converter) resolve(n *input.Node) *input.Node {
	for range 20 {
		ref := n.Get("$ref")
		if ref == nil {
			return n
		}
		local, ok := strings.CutPrefix(ref.Text, "#/")
		if !ok {
			c.note(input.Unsupported, ref, "The reference %s to another file is not followed.", ref.Text)
			return nil
		}
		n = c.root
		for part := range strings.SplitSeq(local, "/") {
			n = n.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
	}
	return n
}

// tool adds the tool of an operation.
func (c *converter) tool(path input.Pair, method string, operation *input.Node) {
	id := operation.Get("operationId").Scalar()
	if id == "" {
		id = method + "_" + strings.NewReplacer("/", "_", "{", "", "}", "").Replace(strings.Trim(path.Key, "/"))
	}
	id = c.ids.New(id, method)
	description := oneLine(operation.Get("description").Scalar())
	for _, other := range []string{oneLine(operation.Get("summary").Scalar()), strings.ToUpper(method) + " " + path.Key} {
		if description == "" {
			description = other
		}
	}
	t := new(document.Block).Set("type", "APITool").Set("id", id).Set("name", id).Set("description", description).
		Set("endpoint", c.base+path.Key).Set("method", strings.ToUpper(method))
	if c.auth != "" {
		t.Set("auth", c.auth)
	}
	names := map[string]bool{}
	for _, part := range []struct {
		key  string
		vars []*document.Block
	}{{"inputs", c.body(id, operation, names)}, {"parameters", c.parameters(id, path.Value, operation, names)}, {"outputs", c.outputs(id, operation)}} {
		if len(part.vars) > 0 {
			t.Set(part.key, part.vars)
		}
	}
	c.app.Tools = append(c.app.Tools, t)
}

// variable returns the declaration of a variable. label names it in messages, and a type
// that is made for it.
func (c *converter) variable(name, label string, schema *input.Node, required bool) *document.Block {
	t := *c.typeOf(schema, label)
	if !t.IsFlat() {
		c.note(input.Unsupported, schema, "%s is a list of lists, which a variable cannot be; it is a text.", label)
		t = document.Type{Kind: document.Text, Optional: t.Optional}
	}
	t.Optional = t.Optional || !required
	return (&document.Block{Inline: true}).Set("id", name).Set("type", t.VariableType())
}

// body returns the inputs that are sent as the body.
func (c *converter) body(tool string, operation *input.Node, names map[string]bool) []*document.Block {
	body := c.resolve(operation.Get("requestBody"))
	schema, required := c.content(body.Get("content")), body.Get("required").Scalar() == "true"
	for _, p := range items(operation.Get("parameters")) { // Swagger 2
		if p = c.resolve(p); p.Get("in").Scalar() == "body" {
			schema, required = p.Get("schema"), p.Get("required").Scalar() == "true"
		}
	}
	if schema == nil {
		return nil
	}
	if fields := c.fields(schema); len(fields) > 0 {
		var vars []*document.Block
		for _, f := range fields {
			names[f.name] = true
			vars = append(vars, c.variable(f.name, tool+" "+f.name, f.schema, f.required))
		}
		return vars
	}
	names["request"] = true
	return []*document.Block{c.variable("request", tool+" request", schema, required)}
}

// content returns the schema of the first type of content, JSON if there is one.
func (c *converter) content(n *input.Node) *input.Node {
	all := pairs(n)
	if len(all) == 0 {
		return nil
	}
	if i := slices.IndexFunc(all, func(p input.Pair) bool { return strings.Contains(p.Key, "json") }); i >= 0 {
		return all[i].Value.Get("schema")
	}
	return all[0].Value.Get("schema")
}

// parameters returns the parameters in the path and the query. Those of the operation
// replace those of the path.
func (c *converter) parameters(tool string, path, operation *input.Node, names map[string]bool) []*document.Block {
	var vars []*document.Block
	all := slices.Concat(items(operation.Get("parameters")), items(path.Get("parameters")))
	for _, p := range all {
		p = c.resolve(p)
		name, in := p.Get("name").Scalar(), p.Get("in").Scalar()
		switch {
		case name == "" || names[name] || in == "body":
			continue
		case in != "path" && in != "query":
			problem := input.Ignored
			if p.Get("required").Scalar() == "true" {
				problem = input.Unsupported
			}
			c.note(problem, p, "Tool %s: the %s parameter %s is not sent.", tool, in, name)
			continue
		}
		names[name] = true
		schema := p.Get("schema")
		if schema == nil && p.Get("content") != nil {
			schema = c.content(p.Get("content"))
		} else if schema == nil {
			schema = p // Swagger 2 has type and items in the parameter
		}
		vars = append(vars, c.variable(name, tool+" "+name, schema, in == "path" || p.Get("required").Scalar() == "true"))
	}
	return vars
}

// outputs returns the outputs: those of the first successful response.
func (c *converter) outputs(tool string, operation *input.Node) []*document.Block {
	var response *input.Node
	for _, r := range pairs(operation.Get("responses")) {
		if strings.HasPrefix(r.Key, "2") && response == nil {
			response = c.resolve(r.Value)
		}
	}
	if response == nil {
		response = c.resolve(operation.Get("responses").Get("default"))
	}
	schema := c.content(response.Get("content"))
	if schema == nil {
		schema = response.Get("schema") // Swagger 2
	}
	if schema == nil {
		return nil
	}
	var vars []*document.Block
	for _, f := range c.fields(schema) {
		vars = append(vars, c.variable(f.name, tool+" "+f.name, f.schema, f.required))
	}
	if len(vars) == 0 {
		vars = append(vars, c.variable(tool+"_response", tool+" response", schema, true))
	}
	return vars
}
