package xflow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// build builds the document, in an inference pass or finally.
func (w *workflow) build() {
	w.ids = &document.IDs{Taken: map[string]bool{}}
	for _, d := range w.data {
		w.ids.Taken[d.id] = true
	}
	w.app = &document.App{}
	w.flows, w.locals, w.sharedLocals, w.parts = map[*state]*document.Flow{}, map[string]*document.Type{}, document.Set{}, parts{functions: map[string]*function{}, part: map[string]string{}, done: map[*state]string{}}
	w.identify()
	w.readInputs()
	main := w.newFlow(w.app.ID + "_flow")
	main.Description = w.app.Description
	w.chain(w.start, main)
	w.ensureStep(main)
	order := main.CallOrder()
	document.ComputeOutputs(order)
	given := w.given(order)
	document.ComputeInputs(order)
	for document.HideOverwritten(order) {
		document.ComputeOutputs(order)
		given = w.given(order)
		document.ComputeInputs(order)
	}
	main.Inputs, main.Outputs = w.signature(given, main.Outputs)
	uncertain, needed := document.MaybeUnset(order, given), document.Set{}
	main.AddNeeded(needed)
	for _, f := range order {
		uncertain.Add(f.InitUnset(w.nullInit)...)
	}
	for _, d := range w.data {
		unsetAtEnd := slices.Contains(main.Outputs, d.id) && !main.Sure[d.id] && !given[d.id]
		unneeded := d.input && !d.of.Declared && !needed[d.id] // the caller may omit what only some paths read
		if uncertain[d.id] || unsetAtEnd || unneeded {
			d.of.Optional = true
		}
	}
	for _, f := range w.app.Flows {
		w.prune(f)
	}
	w.app.CustomTypes = w.namedTypes()
	w.declareFunctions()
	w.noteRenamed()
}

// nullInit returns a step that sets variables to null.
func (w *workflow) nullInit(f *document.Flow, ids []string) *document.Step {
	sets := new(document.Block)
	for _, id := range ids {
		sets.Set(id, document.Expression("nil"))
	}
	return &document.Step{Block: w.newBlock("Transform", f.ID+"_before").Set("set", sets), Writes: ids}
}

// prune removes assignments that are never read, such as the answer of an agent
// that the next one overwrites.
func (w *workflow) prune(f *document.Flow) {
	for i, s := range f.Steps {
		if s.Entries[0].Value == "Transform" {
			s.Keep(func(id string) bool { return !f.IsDeadWrite(i, id) })
			continue
		}
		last := &s.Entries[len(s.Entries)-1]
		if len(s.Writes) != 1 || last.Key != "outputs" && last.Key != "output_bindings" || !f.IsDeadWrite(i, s.Writes[0]) {
			continue
		}
		id := w.local(f.ID+"_unused", w.typeOf(s.Writes[0]).Clone())
		s.Writes = []string{id}
		if bound, ok := last.Value.(*document.Block); ok {
			bound.Entries[0].Value = id
		} else {
			last.Value = document.NameList{id}
		}
	}
	f.Steps = slices.DeleteFunc(f.Steps, func(s *document.Step) bool { return s.Entries[0].Value == "Transform" && len(s.Writes) == 0 })
	w.ensureStep(f)
}

func (w *workflow) newFlow(name string) *document.Flow {
	f := &document.Flow{ID: w.ids.New(name, "flow"), Types: w.typeOf, Shared: w.sharedBy}
	w.app.Flows = append(w.app.Flows, f)
	return f
}

// ensureStep adds a step without effect to a flow without steps, as a flow needs
// one.
func (w *workflow) ensureStep(f *document.Flow) {
	if len(f.Steps) == 0 {
		w.reads = nil
		w.assign(f, f.ID+"_step", w.local("ended", &document.Type{Kind: document.Bool, Declared: true}), "true")
	}
}

// signature returns the inputs and outputs of the main flow: data that the caller
// provides, and data that states set.
func (w *workflow) signature(given document.Set, written []string) (inputs, outputs []string) {
	for _, d := range w.data {
		if given[d.id] {
			inputs = append(inputs, d.id)
		}
		if slices.Contains(written, d.id) {
			outputs = append(outputs, d.id)
		}
	}
	return inputs, outputs
}

// identify sets the id, name and description of the application.
func (w *workflow) identify() {
	name, id := "", ""
	if w.root.Kind == input.Map {
		id = cmp.Or(w.Text(w.root, "id"), w.Text(w.root, "key"))
		name = w.Text(w.root, "name")
		w.app.Description = w.Text(w.root, "description")
		for _, key := range []string{"version", "specVersion"} {
			if v := w.Text(w.root, key); v != "" {
				w.app.Comments = append(w.app.Comments, fmt.Sprintf("Workflow %s: %s.", key, v))
			}
		}
	}
	w.app.ID = w.ids.New(cmp.Or(id, name), "workflow")
	switch {
	case name == "" || name == w.app.ID:
	case w.app.Description == "":
		w.app.Description = name
	default:
		w.app.Comments = append(w.app.Comments, fmt.Sprintf("Workflow name: %s.", name))
	}
	if given := cmp.Or(id, name); given != "" && given != w.app.ID {
		w.app.Comments = append(w.app.Comments, fmt.Sprintf("Workflow id: %s.", given))
	}
}
