// Package xflow converts workflows of xFlow: a workflow is a graph of states that
// share data, and becomes a flow. A state that several others lead to, or that a
// condition selects, becomes a flow too, and a cycle of states becomes a Loop.
//
// The types of data are inferred from expressions, constants and schemas in several
// passes before the document is written.
package xflow

import (
	"fmt"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/diag"
)

// workflow is the conversion of a workflow.
type workflow struct {
	*input.Report
	app    *document.App
	ids    *document.IDs
	root   *input.Node // the workflow, or a mere list of states
	states []*state
	start  *state
	data   []*dataVar // in the order of discovery
	guess  bool       // an inference pass, not the final one
	strict bool       // an early pass: types are not assumed without evidence

	defined      map[string]string // functions that are expressions, by name
	flows        map[*state]*document.Flow
	sharedLocals document.Set              // locals that flows pass to each other
	locals       map[string]*document.Type // variables that are not data
	schemas      map[*state]*document.Type // results of agents by their output schemas
	cycles       map[*state]int            // number of the cycle that a state belongs to; 0 for none
	parts        parts
	reads        []string // variables that the current expression has read
}

// dataVar is a top-level value of the workflow's data.
type dataVar struct {
	name         string
	id           string // of the variable
	of           *document.Type
	input        bool // provided by the caller
	fromAgent    bool // returned by an agent, which may violate its schema
	nullCompared bool // compared with null in an expression
	result       bool // of a function, whose type the file does not have
}

type state struct {
	name  string
	kind  string
	n     *input.Node
	cases []outcome
	next  target // if no case applies

	catches bool // has onErrors
}

// outcome is a conditional transition.
type outcome struct {
	n    *input.Node
	when *input.Node // the condition; nil if missing, and for errors
	to   target

	failed bool // applies if the state has failed
}

// target is the target of a transition: a state or the end.
type target struct {
	to  *state
	end bool
}

// Convert converts a workflow, a list of states, one state, or memory blocks. It
// returns nil if nothing can be converted.
func Convert(r *input.Report, root *input.Node) *document.App {
	w := &workflow{Report: r, root: root}
	if inner := root.Get("workflow"); len(root.Pairs) == 1 && inner != nil && inner.Kind == input.Map {
		root = inner
	}
	input.NormalizeKeys(root, "memoryId", "memory", "states", "type")
	switch {
	case root.Kind == input.List && memoriesAlone(root):
		return w.bareMemory(root.Elements()...)
	case root.Kind == input.Map && root.Get("states") == nil && root.Get("memory") != nil && root.Get("type") == nil:
		return w.bareMemory(root)
	case root.Kind == input.Map && root.Get("states") == nil && root.Get("memoryId") != nil:
		return w.bareMemory(&input.Node{Kind: input.Map, Span: root.Span, Pairs: []input.Pair{{Key: "memory", KeySpan: root.Mark(), Value: root}}})
	case root.Kind == input.Map && root.Get("states") == nil && root.Get("type") != nil:
		root = &input.Node{Kind: input.List, Span: root.Span, Items: []*input.Node{root}}
	case root.Kind == input.Map && root.Get("states") == nil:
		r.Malformed(root, `not an xFlow file: it has neither "states" nor "memory"`)
		return nil
	}
	w.root = root
	if !w.read() {
		return nil
	}
	// Expressions determine what data there is, and data determines how expressions
	// are translated, so inference takes several passes.
	before := r.Muted
	w.schemas = map[*state]*document.Type{}
	for pass := range inferencePasses {
		r.Muted, w.guess, w.strict = true, true, pass < inferencePasses-2
		w.build()
	}
	r.Muted, w.guess, w.strict = before, false, false
	w.settle()
	w.build()
	document.AttachMock(w.app, w.ids)
	return w.app
}

// memoriesAlone reports whether a list has memory blocks and no states.
func memoriesAlone(n *input.Node) bool {
	for _, item := range n.Elements() {
		input.NormalizeKeys(item, "memoryId", "memory", "type", "name")
		if item.Get("memory") == nil || item.Has("type") || item.Has("name") {
			return false
		}
	}
	return len(n.Items) > 0
}

// inferencePasses is the number of passes before the document is written: what a
// pass infers from one expression is used for the others in the next pass.
const inferencePasses = 6

// read reads the states and their transitions, and reports whether there are any.
func (w *workflow) read() bool {
	items := w.root.Elements()
	if w.root.Kind == input.Map {
		w.CheckKeys(w.root, "the workflow", "id", "key", "name", "version", "specVersion", "description", "annotations", "metadata", "start", "states",
			"dataInputSchema", "dataOutputSchema", "expressionLang", "functions", "events", "errors", "retries", "timeouts", "constants", "secrets", "auth", "autoRetries", "keepActive")
		items = w.List(w.root, "states")
		w.readHead()
	}
	for i, n := range items {
		if m := w.AsMap(n, fmt.Sprintf("state %d", i+1)); m != nil {
			w.addState(m)
		}
	}
	if len(w.states) == 0 {
		w.Malformed(w.root, "no states")
		return false
	}
	for _, s := range w.states {
		w.readState(s)
	}
	w.findStart()
	w.reportUnreached()
	return true
}

// readHead reports the keys of the workflow that are not converted.
func (w *workflow) readHead() {
	if lang := w.Text(w.root, "expressionLang"); lang != "" && lang != "jq" {
		w.Unsupported(w.root.Get("expressionLang"), "expressionLang is %s; only jq is supported", lang)
	}
	engine := []string{"functions", "events", "errors", "retries", "secrets", "auth"}
	if w.readFunctions() {
		engine = engine[1:]
	}
	if c := w.root.Get("constants"); c != nil && c.Kind != input.Map {
		engine = append(engine, "constants")
	}
	for _, key := range engine {
		if v := w.root.Get(key); v != nil && len(v.Items)+len(v.Pairs)+len(v.Text) > 0 {
			w.Add(input.Unsupported.At(w.root.KeySpan(key), "%q of a workflow is not converted; see the diagnostics where it is used", key).WithSeverity(diag.Warning))
		}
	}
	for _, key := range []string{"timeouts", "autoRetries", "keepActive", "dataOutputSchema", "annotations", "metadata"} {
		if w.root.Get(key) != nil {
			w.Ignored(w.root.KeySpan(key), "%s ignored: it is a setting of the engine", key)
		}
	}
}

func (w *workflow) addState(n *input.Node) {
	input.NormalizeKeys(n, "name", "type", "transition", "end", "agentOutcomes", "dataConditions", "eventConditions", "defaultCondition")
	name := w.RequiredText(n, "name", "a state")
	if name == "" {
		name = fmt.Sprintf("state_%d", len(w.states)+1)
	}
	if other := w.named(name); other != nil {
		w.Add(input.Malformed.At(n.Mark(), "duplicate state %s cannot be reached", name).WithRelated(other.n.Get("name").Span, "first declared here"))
		n.Use()
		return
	}
	w.states = append(w.states, &state{name: name, kind: input.NormalizeName(w.RequiredText(n, "type", "state "+name)), n: n})
}

func (w *workflow) named(name string) *state {
	for _, s := range w.states {
		if s.name == name {
			return s
		}
	}
	return nil
}
