package xflow

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// toolUse is a tool with its first declaration.
type toolUse struct {
	id     string
	n      *input.Node
	source string
}

// toolsOf declares the tools of a state and returns their ids.
func (w *workflow) toolsOf(s *state) []string {
	var ids []string
	for i, n := range w.List(s.n, "tools") {
		m := w.AsMap(n, fmt.Sprintf("tool %d of state %s", i+1, s.name))
		if m == nil {
			continue
		}
		if id := w.tool(m, s); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		} else if id != "" {
			w.Malformed(m, "state %s has a duplicate tool %s", s.name, id)
		}
	}
	return ids
}

// tool declares a tool, or returns an equal one of another state.
func (w *workflow) tool(n *input.Node, s *state) string {
	w.CheckKeys(n, "a tool", "name", "description", "parameters", "output", "executionMode", "metadata")
	name := w.RequiredText(n, "name", "a tool of state "+s.name)
	if name == "" {
		return ""
	}
	if w.parts.tools == nil {
		w.parts.tools = map[string]*toolUse{}
	}
	source := n.Fingerprint()
	had := w.parts.tools[name]
	if had != nil && had.source == source {
		return had.id
	}
	if had != nil {
		w.Add(input.Assumed.At(n.Mark(), "tool %s is declared differently elsewhere; both are converted, with two ids", name).WithRelated(had.n.Mark(), "declared differently here"))
	}
	use := &toolUse{id: w.ids.New(name, "tool"), n: n, source: source}
	w.parts.tools[name] = use
	for _, key := range []string{"executionMode", "metadata"} {
		if n.Get(key) != nil {
			w.Ignored(n.KeySpan(key), "tool %s: %s ignored", name, key)
		}
	}
	w.app.Tools = append(w.app.Tools, w.declareTool(n, use.id, name))
	return use.id
}

// declareTool returns a ClientTool, as the file declares only the inputs and
// outputs of the tool.
func (w *workflow) declareTool(n *input.Node, id, name string) *document.Block {
	description := w.Text(n, "description")
	if description == "" {
		w.Assumed(n, "tool %s has no description, which models need", name)
		description = name
	}
	inputs, about := w.variables(n, "parameters", name)
	outputs, result := w.variables(n, "output", name)
	if about != "" {
		description += "\n" + about
	}
	if result != "" {
		description += "\nResult: " + result
	}
	b := new(document.Block).Set("type", "ClientTool").Note("Answered at the terminal, or by --client-tool %s=COMMAND.", document.OneLine(id)).
		Set("id", id).Set("name", name).Set("description", description)
	if len(inputs) > 0 {
		b.Set("inputs", inputs)
	}
	if len(outputs) > 0 {
		b.Set("outputs", outputs)
	}
	return b
}

// variables converts the properties of a schema to variables of a tool; about
// describes them in words. An output that is not an object is one variable, result.
func (w *workflow) variables(n *input.Node, key, tool string) (variables []*document.Block, about string) {
	m := w.Map(n, key)
	if m == nil {
		return nil, ""
	}
	if bare := unwrapped(m); key == "parameters" && bare.Get("properties") == nil && bare.Get("type").Scalar() == "object" && len(bare.Pairs) == 1 {
		return nil, "" // a tool without inputs
	}
	sc := &schema{Report: w.Report, what: fmt.Sprintf("%s of tool %s", key, tool), dates: true}
	of := sc.shape(unwrapped(m), "")
	if of.Kind != document.Record {
		switch {
		case len(unwrapped(m).Pairs) == 0:
		case key == "output" && of.Declared && of.IsFlat() && of.Kind != document.Unknown:
			of.Settle(w.ids, tool+"_result", &w.parts.types)
			return []*document.Block{variable("result", of)}, sc.about()
		default:
			w.Unsupported(m, "%s of tool %s is not an object with properties", key, tool)
		}
		return nil, ""
	}
	of.Name = "-" // the properties become variables, so the record needs no type
	for _, f := range of.Fields {
		if f.Type.HasNullableElements() {
			w.Unsupported(m, "%s of tool %s: elements of %s may be null in the file, but not in a variable", key, tool, f.Name)
		}
		if !f.Type.IsFlat() {
			w.Unsupported(m, "%s of tool %s: %s is a list of lists, which a variable cannot be; using list[text]", key, tool, f.Name)
			f.Type = &document.Type{Kind: document.List, Declared: true, Optional: f.Type.Optional, Elem: &document.Type{Kind: document.Text, Declared: true}}
		}
		f.Type.Settle(w.ids, tool+"_"+f.Name, &w.parts.types)
		variables = append(variables, variable(f.Name, f.Type))
	}
	return variables, sc.about()
}

// variable returns a variable with a settled type.
func variable(name string, of *document.Type) *document.Block {
	v := new(document.Block).Set("id", name).Set("type", of.VariableType())
	v.Inline = true
	return v
}

// readInputs declares the input data of the workflow's schema.
func (w *workflow) readInputs() {
	if w.root.Kind != input.Map {
		return
	}
	n := w.root.Get("dataInputSchema")
	if n == nil {
		return
	}
	if n.Kind != input.Map {
		w.Unsupported(n, "dataInputSchema refers to a file, which is not read; inputs are inferred from their use")
		return
	}
	sc := &schema{Report: w.Report, what: "dataInputSchema"}
	if n.Get("schema") != nil && n.Get("schema").Kind != input.Map {
		w.Unsupported(n.Get("schema"), "dataInputSchema refers to a file, which is not read; inputs are inferred from their use")
		return
	}
	of := sc.shape(unwrapped(n), "")
	if of.Kind != document.Record {
		return
	}
	for _, f := range of.Fields {
		if !f.Type.IsFlat() {
			w.Unsupported(n, "dataInputSchema: %s is a list of lists, which a variable cannot be; its type is inferred from its use", f.Name)
			continue
		}
		d := w.datum(f.Name)
		d.input = true
		if d.of.Kind == document.Unknown {
			made := *f.Type
			d.of = &made
		}
	}
}
