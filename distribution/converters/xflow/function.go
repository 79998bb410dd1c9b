package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// function is a function of the workflow, or an event that is awaited: a client tool, because the file
// has neither its program nor its types.
type function struct {
	tool    *document.Block
	name    string            // in the file
	inputs  []string          // in the order of discovery
	types   map[string]string // of the inputs
	calls   int
	passed  map[string]int // number of calls that pass an input
	outputs []*output
}

// output is the result of a function, with the variables that calls write it to.
type output struct {
	name      string
	variables []string
}

// kind returns the type of the output: that of its variables, any value if they differ.
func (o *output) kind(w *workflow) string {
	found := ""
	for _, id := range o.variables {
		kind := strings.TrimSuffix(w.typeOf(id).VariableType(), "?")
		if kind == "any" {
			continue // it accepts all values
		}
		if found != "" && found != kind {
			return "any"
		}
		found = kind
	}
	return cmp.Or(found, "any")
}

// returns records the variable that a call writes an output to.
func (fn *function) returns(name, variable string) {
	i := slices.IndexFunc(fn.outputs, func(o *output) bool { return o.name == name })
	if i < 0 {
		i = len(fn.outputs)
		fn.outputs = append(fn.outputs, &output{name: name})
	}
	fn.outputs[i].variables = append(fn.outputs[i].variables, variable)
}

// accept records an argument of a call.
func (fn *function) accept(name string, of *document.Type) {
	kind := "any" // a record has no name yet
	if of.Kind != document.Record && (of.Kind != document.List || of.Elem != nil && of.Elem.Kind != document.Record) {
		kind = strings.TrimSuffix(of.VariableType(), "?")
	}
	if had, ok := fn.types[name]; !ok {
		fn.inputs = append(fn.inputs, name)
	} else if had != kind {
		kind = "any"
	}
	fn.types[name] = kind
	if !of.Optional {
		fn.passed[name]++
	}
}

// function returns the tool of a function, which is declared at its first call.
func (w *workflow) function(key, name, about string) *function {
	if fn := w.parts.functions[key]; fn != nil {
		return fn
	}
	id := w.ids.New(name, "function")
	fn := &function{name: name, types: map[string]string{}, passed: map[string]int{}, tool: new(document.Block).Set("type", "ClientTool").
		Set("id", id).Set("name", id).Set("description", about)}
	w.parts.functions[key] = fn
	w.app.Tools = append(w.app.Tools, fn.tool)
	return fn
}

// aboutFunction describes a function by its operation in the file.
func (w *workflow) aboutFunction(name string) string {
	if w.root.Kind == input.Map {
		for _, n := range w.List(w.root, "functions") {
			if n.Kind == input.Map && n.Get("name").Scalar() == name && n.Get("operation").Scalar() != "" {
				return "Function " + name + ": " + document.OneLine(n.Get("operation").Scalar())
			}
		}
	}
	return "Function " + name + "."
}

// invokeTool returns the step that calls the tool of a function.
func (w *workflow) invokeTool(fn *function, id string, bindings *document.Block, reads []string, to string) *document.Step {
	b := w.newBlock("InvokeTool", id).Set("tool", fn.tool.Entries[1].Value)
	if len(bindings.Entries) > 0 {
		b.Set("input_bindings", bindings)
	}
	b.Set("output_bindings", (&document.Block{Inline: true}).Set(w.parts.part[to], to))
	return &document.Step{Block: b, Reads: reads, Writes: []string{to}}
}

// declareFunctions writes the inputs and outputs of the tools of functions, when all types are known.
func (w *workflow) declareFunctions() {
	for _, tool := range w.app.Tools {
		for _, fn := range w.parts.functions {
			if fn.tool == tool {
				fn.declare(w)
			}
		}
	}
}

func (fn *function) declare(w *workflow) {
	fn.tool.Entries[0].Note = fmt.Sprintf("Answered at the terminal, or by --client-tool %s=COMMAND.", fn.tool.Entries[1].Value)
	variable := func(id, kind string) *document.Block {
		return (&document.Block{Inline: true}).Set("id", id).Set("type", kind)
	}
	var inputs, outputs []*document.Block
	for _, name := range fn.inputs {
		kind := fn.types[name]
		if fn.passed[name] < fn.calls {
			kind += "?"
		}
		inputs = append(inputs, variable(name, kind))
	}
	for _, o := range fn.outputs {
		kind := o.kind(w)
		if len(fn.outputs) > 1 {
			kind += "?" // one of them is used by each call
		}
		outputs = append(outputs, variable(o.name, kind))
	}
	if len(inputs) > 0 {
		fn.tool.Set("inputs", inputs)
	}
	fn.tool.Set("outputs", outputs)
}
