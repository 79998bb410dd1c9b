// Package openapi converts the operations of an OpenAPI 3 or Swagger 2 file to tools.
package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// Read returns a file by its path, with slashes, from the folder of the converted file.
type Read func(path string) (*input.Node, error)

// converter is the state of one conversion.
type converter struct {
	report  *input.Report
	root    *input.Node
	app     *document.App
	ids     *document.IDs
	names   map[string]bool                // names of tools for models
	schemes []*scheme                      // the security schemes of the file
	secured bool                           // whether an operation names its schemes
	types   map[*input.Node]*document.Type // of the schemas that were read
	typeIDs map[*input.Node]string         // reserved ids of the named schemas
	notes   map[string]bool                // comments that were made
	load    Read                           // may be nil
	files   map[string]*input.Node         // other files by their paths; nil for one that cannot be read
	paths   map[*source.File]string        // of these files
	parts   []*input.Node                  // of these files that were referred to
}

// methods are the methods that tools can have, in the order of the result.
var methods = []string{"get", "post", "put", "patch", "delete", "head", "options"}

// Convert makes a tool of each operation. name is used as id if the file has no title.
// What a tool cannot express is reported, and is a comment at the top of the document.
// read reads the other files that it refers to; nil if there are none.
func Convert(r *input.Report, root *input.Node, name string, read Read) (*document.App, error) {
	if root.Get("openapi") == nil && root.Get("swagger") == nil {
		return nil, errors.New("it is not an OpenAPI file: it has neither the key openapi nor swagger")
	}
	if v := versionOf(root); !strings.HasPrefix(v, "3.") && v != "2.0" && v != "2" {
		return nil, fmt.Errorf("version %q of the file is not supported: OpenAPI 3 and Swagger 2 are", v)
	}
	id := document.Slug(strings.ReplaceAll(strings.ToLower(root.Get("info").Get("title").Scalar()), " ", "-"))
	if id == "" {
		id = document.Slug(name)
	}
	if id == "" {
		id = "api"
	}
	c := &converter{report: r, root: root, ids: document.NewIDs(id), types: map[*input.Node]*document.Type{}, notes: map[string]bool{},
		names: map[string]bool{}, typeIDs: map[*input.Node]string{}, load: read, files: map[string]*input.Node{}, paths: map[*source.File]string{},
		app: &document.App{ID: id, Description: oneLine(root.Get("info").Get("description").Scalar())}}
	for _, name := range spec.BuiltInTypes() {
		c.ids.Taken[name] = true
	}
	operations := c.operations()
	if len(operations) == 0 {
		return nil, errors.New("the file has no operations")
	}
	c.checkShape(fileShape(), root, "")
	c.readSchemes()
	c.reserve(operations)
	for _, o := range operations {
		c.tool(o)
	}
	c.declareSchemes()
	c.reportRest()
	return c.app, nil
}

// versionOf returns the version of the format.
func versionOf(root *input.Node) string {
	if n := root.Get("openapi"); n != nil {
		return n.Scalar()
	}
	return root.Get("swagger").Scalar()
}

// operation is an operation of the file.
type operation struct {
	id     string // of the tool
	path   string // the key in paths
	method string // in lower case
	item   *input.Node
	node   *input.Node
}

// operations lists the operations in file order.
func (c *converter) operations() []*operation {
	var all []*operation
	for _, path := range pairs(c.root.Get("paths")) {
		item := c.resolve(path.Value)
		if item != nil && item.Kind != input.Map && !strings.HasPrefix(path.Key, "x-") {
			c.note(input.Malformed, item, "The path %s has no operations: expected an object.", path.Key)
			continue
		}
		if _, err := spec.ParseEndpoint("http://localhost" + path.Key); item != nil && (err != nil || !strings.HasPrefix(path.Key, "/")) && !strings.HasPrefix(path.Key, "x-") {
			c.note(input.Malformed, item, "The path %q is left out: it is not the path of a URL.", path.Key)
			continue
		}
		for _, method := range methods {
			node := item.Get(method)
			switch {
			case node == nil:
			case node.Kind != input.Map:
				c.note(input.Malformed, node, "The operation %s %s is left out: expected an object.", strings.ToUpper(method), path.Key)
			default:
				all = append(all, &operation{path: path.Key, method: method, item: item, node: node})
			}
		}
	}
	return all
}

// reserve assigns the ids of tools and of named schemas before all others, so that they
// change only if the file renames them.
func (c *converter) reserve(operations []*operation) {
	for _, o := range operations {
		if name := o.node.Get("operationId").Scalar(); document.Slug(name) != "" {
			o.id = c.ids.New(name, o.method)
		}
	}
	for _, o := range operations {
		if o.id == "" {
			name := o.method + "_" + strings.NewReplacer("/", "_", "{", "", "}", "").Replace(strings.Trim(o.path, "/"))
			o.id = c.ids.New(name, o.method)
		}
	}
	for _, section := range []*input.Node{c.root.Get("components").Get("schemas"), c.root.Get("definitions")} {
		if section == nil {
			continue
		}
		for _, p := range section.Pairs { // which count as read if an operation refers to them
			c.typeIDs[p.Value] = c.ids.New(pascal(p.Key), "Record")
		}
	}
}

// pairs returns the entries of a mapping, none for anything else.
func pairs(n *input.Node) []input.Pair { return n.Entries() }

// items returns the elements of a list, none for anything else.
func items(n *input.Node) []*input.Node { return n.Elements() }

// isTrue reports whether a value is true.
func isTrue(n *input.Node) bool { return n.Scalar() == "true" }

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

// server returns what the endpoint of an operation begins with: the first server of the
// operation, of its path or of the file.
func (c *converter) server(o *operation) string {
	var address string
	if host := c.root.Get("host").Scalar(); host != "" { // Swagger 2
		scheme := "https"
		for _, s := range slices.Backward(items(c.root.Get("schemes"))) {
			if s.Text == "http" || s.Text == "https" {
				scheme = s.Text
			}
		}
		address = scheme + "://" + host + c.root.Get("basePath").Scalar()
	} else {
		for _, owner := range []*input.Node{o.node, o.item, c.root} {
			if all := items(owner.Get("servers")); len(all) > 0 {
				address = c.serverAddress(all[0])
				break
			}
		}
		if address == "" {
			address = c.root.Get("basePath").Scalar()
		}
	}
	if _, err := spec.ParseEndpoint(address); err != nil || address == "" {
		c.note(input.Assumed, c.root, "The file names no server with an address: the endpoints begin with http://localhost.")
		address = "http://localhost/" + strings.TrimPrefix(address, "/")
		if _, err := spec.ParseEndpoint(address); err != nil || strings.Contains(address[len("http://"):], "://") {
			address = "http://localhost"
		}
	}
	return strings.TrimSuffix(address, "/")
}

// serverAddress returns the address of a server with the defaults of its variables.
func (c *converter) serverAddress(server *input.Node) string {
	address := server.Get("url").Scalar()
	for _, v := range pairs(server.Get("variables")) {
		text := v.Value.Get("default").Scalar()
		if text == "" && len(items(v.Value.Get("enum"))) > 0 {
			text = v.Value.Get("enum").Items[0].Text
		}
		address = strings.ReplaceAll(address, "{"+v.Key+"}", text)
	}
	for {
		before, after, found := strings.Cut(address, "{")
		name, rest, closed := strings.Cut(after, "}")
		if !found || !closed {
			return address
		}
		c.note(input.Assumed, server, "The server has no value for {%s}: it is replaced by %s.", name, name)
		address = before + name + rest
	}
}

// resolve follows references within the file, and to files below its folder.
func (c *converter) resolve(n *input.Node) *input.Node {
	const longest = 20
	for range longest {
		ref := n.Get("$ref")
		if ref == nil || ref.Kind != input.Text {
			return n
		}
		at, fragment, _ := strings.Cut(ref.Text, "#")
		root := c.fileOf(ref, at)
		if root == nil {
			return nil
		}
		if plain, err := url.PathUnescape(fragment); err == nil {
			fragment = plain
		}
		n = root
		name := strings.TrimSuffix(path.Base(at), path.Ext(at))
		for part := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
			if fragment == "" || fragment == "/" {
				break
			}
			name = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			n = step(n, name)
		}
		if n == nil {
			c.note(input.Malformed, ref, "The reference %s leads to nothing in the file.", ref.Text)
			return nil
		}
		if root != c.root && c.typeIDs[n] == "" {
			c.typeIDs[n] = c.ids.New(pascal(name), "Record")
			c.parts = append(c.parts, n)
		}
	}
	return nil
}

// maxFiles limits the files that a file refers to.
const maxFiles = 1000

// fileOf returns the file that a reference leads to, which is the file with the reference if the
// path is empty; nil for one that cannot be read.
func (c *converter) fileOf(ref *input.Node, at string) *input.Node {
	from := c.paths[ref.Span.File] // empty for the converted file
	name := path.Clean(path.Join(path.Dir(from), at))
	if at == "" {
		if name = from; from == "" {
			return c.root
		}
	}
	root, known := c.files[name]
	switch {
	case known:
		return root
	case c.load == nil || strings.Contains(at, "://"):
		c.note(input.Unsupported, ref, "The reference %s to another file is not followed.", ref.Text)
		return nil
	case !filepath.IsLocal(filepath.FromSlash(name)):
		c.note(input.Unsupported, ref, "The reference %s is not followed: it leads out of the folder of the file.", ref.Text)
		return nil
	case len(c.files) >= maxFiles:
		c.note(input.Unsupported, ref, "The reference %s is not followed: only %d files are read.", ref.Text, maxFiles)
		return nil
	}
	root, err := c.load(name)
	if err != nil {
		c.note(input.Malformed, ref, "The reference %s leads to nothing: %s.", ref.Text, err)
	} else {
		c.paths[root.Span.File] = name
	}
	c.files[name] = root
	return root
}

// step returns the value of a key, or of an index.
func step(n *input.Node, part string) *input.Node {
	if n == nil || n.Kind != input.List {
		return n.Get(part)
	}
	for i, item := range n.Items {
		if fmt.Sprint(i) == part {
			return item
		}
	}
	return nil
}
