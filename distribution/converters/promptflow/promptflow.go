// Package promptflow converts flows of prompt flow (flow.dag.yaml) and Prompty files.
package promptflow

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Read returns a file whose path is relative to the folder of the flow.
type Read func(path string) (*source.File, error)

// conversion is the conversion of one flow.
type conversion struct {
	*input.Report
	app     *document.App
	ids     *document.IDs
	root    *input.Node
	read    Read
	flow    *document.Flow
	history string                    // the input with the conversation; empty for none
	memory  string                    // id of the memory; empty until a node needs it
	names   map[string]string         // ids of variables by `inputs.NAME` and `NODE.output`
	types   map[string]*document.Type // of variables, by id
	models  map[string]string         // ids of models by their settings
	tools   map[string]string         // ids of tools by the paths of their files
	wanted  map[string]string         // names of outputs of the flow by the node that they refer to

	marks    []source.Span     // of the input and the output of a chat
	included []string          // paths of additional_includes
	moved    map[string]string // paths of files that were found there, by the paths of nodes

	clients document.NameList // ids of the tools of a Prompty file
}

// Convert converts a flow. It returns nil if nothing can be converted.
func Convert(r *input.Report, root *input.Node, read Read) *document.App {
	c := newConversion(r, root, read)
	switch {
	case root.Kind != input.Map:
		r.Malformed(root, "not a flow of prompt flow: expected a mapping with nodes, not %s", root.Describe())
		return nil
	case root.Get("entry") != nil:
		r.Unsupported(root.Get("entry"), "a flex flow is a Python program; convert its functions by qtype convert module, and its .prompty files one by one")
		return nil
	case root.Get("nodes") == nil:
		r.Malformed(root, `not a flow of prompt flow: it has no "nodes"`)
		return nil
	}
	r.CheckKeys(root, "the flow", "inputs", "outputs", "nodes", "node_variants", "environment", "environment_variables", "additional_includes", "language",
		"id", "name", "display_name", "description", "type", "tags", "path", "$schema")
	r.Skip(root, "it describes where prompt flow runs", "environment", "environment_variables")
	r.Skip(root, "it describes the file", "id", "type", "tags", "path", "language")
	c.includes()
	c.describe(c.Text(root, "display_name"), c.Text(root, "name"))
	c.readInputs()
	c.readOutputs()
	for _, n := range c.ordered() {
		c.node(n)
	}
	c.writeOutputs()
	if len(c.flow.Steps) == 0 {
		if !r.HasErrors() {
			r.Malformed(root.Get("nodes"), "no node can be converted")
		}
		return nil
	}
	return c.finish()
}

func newConversion(r *input.Report, root *input.Node, read Read) *conversion {
	c := &conversion{Report: r, root: root, read: read, app: &document.App{ID: "prompt_flow_app"}, ids: document.NewIDs("prompt_flow_app"),
		names: map[string]string{}, types: map[string]*document.Type{}, models: map[string]string{}, tools: map[string]string{}, wanted: map[string]string{}, moved: map[string]string{}}
	c.flow = &document.Flow{ID: c.ids.New("main", "main"), Types: func(id string) *document.Type { return c.types[id] }}
	for _, id := range []string{"question", "answer", "prompt", "query"} { // no conversational flow with these is made here
		delete(c.ids.Taken, id)
	}
	return c
}

// finish returns the application. A flow that only answers a message is conversational.
func (c *conversion) finish() *document.App {
	f := c.flow
	defer func() {
		for _, at := range c.marks {
			if !f.Conversational {
				c.Ignored(at, "the mark of the chat is ignored: the flow has other inputs, outputs or steps than a conversation")
			}
		}
	}()
	if c.memory != "" && len(f.Steps) == 1 && len(f.Inputs) == 1 && len(f.Outputs) == 1 {
		f.Conversational = true
		message := &document.Type{Kind: document.Message, Declared: true}
		c.types[f.Inputs[0]], c.types[f.Outputs[0]] = message, message
	}
	c.app.Flows = []*document.Flow{f}
	document.AttachMock(c.app, c.ids)
	return c.app
}

// variable declares a variable for a value of the flow and returns its id.
func (c *conversion) variable(key, name string, of *document.Type) string {
	id := c.ids.New(strings.NewReplacer("-", "_", ".", "_").Replace(name), "value")
	c.names[key], c.types[id] = id, of
	return id
}

// kinds are the types of prompt flow and of Prompty.
var kinds = map[string]document.Kind{"string": document.Text, "int": document.Int, "integer": document.Int, "double": document.Float, "number": document.Float,
	"bool": document.Bool, "boolean": document.Bool, "object": document.Any, "list": document.Any, "array": document.Any}

// readInputs declares the inputs of the flow.
func (c *conversion) readInputs() {
	inputs := c.Map(c.root, "inputs")
	if inputs == nil {
		return
	}
	for _, p := range inputs.Entries() {
		n := c.AsMap(p.Value, "input "+p.Key)
		if n == nil {
			continue
		}
		c.CheckKeys(n, "input "+p.Key, "type", "default", "description", "is_chat_input", "is_chat_history")
		if c.Bool(n, "is_chat_history") || p.Key == "chat_history" && n.Get("type").Scalar() == "list" {
			c.historyType(p.Key, n)
			if d := n.Get("default"); d != nil && len(d.Use().Items) > 0 {
				c.Assumed(d, "input %s: the default is not converted; a conversation begins without messages", p.Key)
			}
			continue
		}
		c.chatMark(n, "is_chat_input")
		c.declareInput(p.Key, n)
	}
}

// historyType notes the input with the conversation.
func (c *conversion) historyType(name string, n *input.Node) {
	c.history = name
	if of := c.Text(n, "type"); of != "" && of != "list" && of != "array" && of != "thread" {
		c.Malformed(n.Get("type"), "input %s: a conversation is a list, not %q", name, of)
	}
}

// declareInput declares an input of the flow.
func (c *conversion) declareInput(name string, n *input.Node) {
	written := c.Text(n, "type")
	if about := c.Text(n, "description"); about != "" {
		c.app.Comments = append(c.app.Comments, "Input "+name+": "+about)
	}
	kind, known := kinds[written]
	if !known {
		kind = document.Text
		c.Unsupported(n, "input %s: the type %q has no counterpart; using text", name, written)
	}
	if d := n.Get("default"); d != nil && d.Text+d.Use().Fingerprint() != "" {
		c.Assumed(d, "input %s: the default is not converted; each row must have the input", name)
	}
	id := c.variable("inputs."+name, name, &document.Type{Kind: kind, Declared: true})
	c.flow.Inputs = append(c.flow.Inputs, id)
}

// readOutputs notes how the outputs of the flow name the results of nodes, so that the
// variables get these names.
func (c *conversion) readOutputs() {
	for _, o := range c.outputs() {
		node, isNode := strings.CutSuffix(o.of, ".output")
		if isNode && c.wanted[node] == "" {
			c.wanted[node] = o.name
		}
	}
}

// output is an output of the flow: the value that it refers to.
type output struct {
	name, of string
	n        *input.Node
}

// outputs returns the outputs of the flow.
func (c *conversion) outputs() []output {
	var all []output
	declared := c.Map(c.root, "outputs")
	if declared == nil {
		return nil
	}
	for _, p := range declared.Entries() {
		n := c.AsMap(p.Value, "output "+p.Key)
		if n == nil {
			continue
		}
		c.CheckKeys(n, "output "+p.Key, "type", "reference", "description", "is_chat_output", "evaluate_only")
		of, isReference := reference(c.RequiredText(n, "reference", "output "+p.Key))
		if !isReference {
			c.Malformed(n, "output %s: the reference is not ${NODE.output} or ${inputs.NAME}", p.Key)
			continue
		}
		all = append(all, output{p.Key, of, n})
	}
	return all
}

// writeOutputs sets the outputs of the flow.
func (c *conversion) writeOutputs() {
	for _, o := range c.outputs() {
		id := c.names[o.of]
		c.outputType(o, id)
		c.chatMark(o.n, "is_chat_output")
		if about := c.Text(o.n, "description"); about != "" {
			c.app.Comments = append(c.app.Comments, "Output "+o.name+": "+about)
		}
		switch {
		case id == "":
			c.Unsupported(o.n.Get("reference"), "output %s: ${%s} is no result of a converted node", o.name, o.of)
		case slices.Contains(c.flow.Inputs, id):
			c.Unsupported(o.n.Get("reference"), "output %s is an input of the flow; it is not an output here", o.name)
		case !slices.Contains(c.flow.Outputs, id):
			c.flow.Outputs = append(c.flow.Outputs, id)
		}
	}
	if len(c.flow.Outputs) == 0 && len(c.flow.Steps) > 0 {
		c.flow.Outputs = slices.Clone(c.flow.Steps[len(c.flow.Steps)-1].Writes)
	}
}

// outputType reports an output whose variable has another type than in the file.
func (c *conversion) outputType(o output, id string) {
	written := c.Text(o.n, "type")
	kind, known := kinds[written]
	switch of := c.types[id]; {
	case written == "":
	case !known:
		c.Malformed(o.n.Get("type"), "output %s: unknown type %q", o.name, written)
	case of != nil && of.Kind != kind && kind != document.Any && (of.Kind != document.Message || kind != document.Text):
		c.Assumed(o.n.Get("type"), "output %s is declared as %s; its node returns the type %s", o.name, written, of.Text())
	}
}

// chatMark reads is_chat_input and is_chat_output. A flow is conversational by its form.
func (c *conversion) chatMark(n *input.Node, key string) {
	if c.Bool(n, key) {
		c.marks = append(c.marks, n.KeySpan(key))
	}
}

// describe sets the description, and comments with the names.
func (c *conversion) describe(names ...string) {
	c.app.Description = c.Text(c.root, "description")
	c.root.Get("$schema").Use()
	for _, name := range slices.Compact(names) {
		if name != "" {
			c.app.Comments = append(c.app.Comments, "Name: "+name+".")
		}
	}
}

// includes reads additional_includes: files of other folders, which prompt flow copies to that of
// the flow. Those below the folder are read where they are.
func (c *conversion) includes() {
	for _, n := range c.List(c.root, "additional_includes") {
		at := filepath.ToSlash(filepath.Clean(filepath.FromSlash(n.Scalar())))
		if n.Kind != input.Text || !filepath.IsLocal(filepath.FromSlash(at)) {
			c.Unsupported(n, "additional_includes: %s is not below the folder of the flow; copy it there", n.Describe())
			continue
		}
		c.included = append(c.included, at)
	}
	read := c.read
	c.read = func(name string) (*source.File, error) {
		file, err := read(name)
		for _, at := range c.included {
			if err == nil {
				break
			}
			actual := at
			if first, _, isBelow := strings.Cut(path.Clean(name), "/"); isBelow && first == path.Base(at) {
				actual = path.Join(path.Dir(at), name)
			} else if path.Base(at) != path.Base(name) {
				continue
			}
			if file, err = read(actual); err == nil {
				c.moved[name] = actual
			}
		}
		return file, err
	}
}

// referenceText matches a reference to a value.
var referenceText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\$\{\s*([\w.\-]+)\s*\}$`) })

// reference returns the name of a value, without the part after `NODE.output`, and whether
// the text is a reference.
func reference(text string) (name string, ok bool) {
	m := referenceText().FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// ordered returns the nodes, each after the nodes whose results it reads.
func (c *conversion) ordered() []*input.Node {
	byName := map[string]*input.Node{}
	var all []*input.Node
	for _, n := range c.List(c.root, "nodes") {
		if c.AsMap(n, "a node") == nil {
			continue
		}
		n = c.variant(n)
		name := c.RequiredText(n, "name", "a node")
		if name == "" {
			continue
		}
		if byName[name] != nil {
			c.Malformed(n.Use(), "node %s is declared twice", name)
			continue
		}
		byName[name] = n
		all = append(all, n)
	}
	var sorted []*input.Node
	state := map[*input.Node]int{} // 1 while its inputs are visited, 2 afterwards
	var visit func(n *input.Node)
	visit = func(n *input.Node) {
		state[n] = 1
		for _, p := range c.parameters(n) {
			of, _ := reference(p.Value.Scalar())
			name, _, _ := strings.Cut(of, ".")
			switch before := byName[name]; {
			case before == nil || name == "inputs":
			case state[before] == 1:
				c.Malformed(p.Value, "node %s reads its own result", name)
			case state[before] == 0:
				visit(before)
			}
		}
		state[n] = 2
		sorted = append(sorted, n)
	}
	for _, n := range all {
		if state[n] == 0 {
			visit(n)
		}
	}
	return sorted
}

// parameters returns the inputs of a node.
func (c *conversion) parameters(n *input.Node) []input.Pair {
	if inputs := n.Get("inputs"); inputs != nil && inputs.Kind == input.Map {
		return inputs.Entries()
	}
	return nil
}

// variant returns a node with the settings of its default variant.
func (c *conversion) variant(n *input.Node) *input.Node {
	if !c.Bool(n, "use_variants") {
		return n
	}
	name := n.Get("name").Scalar()
	declared := c.root.Get("node_variants").Get(name)
	id := declared.Get("default_variant_id").Scalar()
	chosen := declared.Get("variants").Get(id).Get("node")
	if chosen == nil {
		c.Malformed(n, "node %s: node_variants has no default variant of it", name)
		return n
	}
	for _, p := range declared.Get("variants").Entries() {
		if p.Key != id {
			c.Ignored(p.KeySpan, "variant %s of node %s is not the default one", p.Key, name)
		}
	}
	for _, p := range chosen.Pairs {
		if own := n.Get(p.Key); own != nil && own.Fingerprint() == p.Value.Fingerprint() {
			p.Value.Use()
		}
	}
	return n.Without(chosen.Pairs, "use_variants")
}
