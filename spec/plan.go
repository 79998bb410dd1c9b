package spec

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"sync"
)

// Rows sets how many rows a type of step makes. It is declared by the tag `rows`
// of the embedded StepBase; a step without the tag makes one row of each row.
type Rows string

// The cardinalities.
const (
	RowsOne   Rows = ""      // one row of each row
	RowsMany  Rows = "many"  // any number of rows of each row
	RowsBatch Rows = "batch" // it works on groups of rows; what comes out belongs to no single row
)

// Plan is what each step of a flow uses. It is computed once, when a document is
// linked, from the fields and tags of the steps' structs; the validator, the
// runtime and all tools read it.
type Plan struct {
	Flow  *Flow       // the flow
	Steps []*StepPlan // one for each step of the flow, in order; steps that could not be linked are left out
}

// StepPlan is what one step of a flow uses.
type StepPlan struct {
	Item     *StepItem         // its place in the flow
	Step     Step              // the step
	Rows     Rows              // how many rows it makes
	Reads    []*Ref[*Variable] // its inputs and what bindings, paths, expressions and other keys name, each id once
	Writes   []*Ref[*Variable] // its outputs and what bindings and assignments name, each id once
	ReadsAll bool              // it reads all values of the row
	Maybe    bool              // it may leave its outputs as they were
	Uses     []Use             // references to other entities, of the step and of the tools that it may call
}

// Plan is the flow's plan. Without SetPlan it is computed at each call.
func (f *Flow) Plan() *Plan {
	if f.plan != nil {
		return f.plan
	}
	return newPlan(f)
}

// SetPlan computes and stores the flow's plan, and marks the models that have hosted tools. The linker calls it, once all
// references and the variables of expressions are linked.
func (f *Flow) SetPlan() {
	f.plan = newPlan(f)
	f.plan.markHosted()
}

func newPlan(f *Flow) *Plan {
	p := &Plan{Flow: f}
	for _, item := range f.Steps {
		if item != nil && item.Step != nil {
			s := PlanStep(item.Step)
			s.Item = item
			p.Steps = append(p.Steps, s)
		}
	}
	return p
}

// PlanStep is the plan of a single step.
func PlanStep(s Step) *StepPlan {
	base := s.Common()
	p := &StepPlan{Step: s, Rows: RowsOf(s), Reads: base.AllInputs(), Writes: base.AllOutputs()}
	p.ReadsAll = stepTag(s, "without_inputs") == "reads_row" && len(base.Inputs) == 0
	p.Maybe = stepTag(s, "writes") == "maybe"
	p.Uses = UsesOf(s)
	for _, u := range p.Uses {
		if isOwnKey(u) {
			p.Reads = addRef(p.Reads, u.Ref.(*Ref[*Variable]))
		}
	}
	for _, tool := range p.Tools() {
		for _, u := range UsesOf(tool) {
			if u.Role == RoleFlow || u.Role == RoleValues || u.Role == RoleIndex {
				p.Uses = append(p.Uses, Use{Key: "", Role: u.Role, Ref: u.Ref})
			}
		}
	}
	return p
}

// isOwnKey reports whether a use is a variable that a key of the step's type names,
// such as group_by.
func isOwnKey(u Use) bool {
	return u.Role == RoleVariable && u.Key != "inputs" && u.Key != "outputs"
}

// All yields the plans of the flow's steps and of the steps of the flows that it
// runs, itself or as tools, each flow once. The steps of a called flow follow the
// step that calls it.
func (p *Plan) All() iter.Seq[*StepPlan] {
	return func(yield func(*StepPlan) bool) { p.walk(map[*Flow]bool{}, yield) }
}

// walk yields the steps of flows that were not seen before; false ends the iteration.
func (p *Plan) walk(seen map[*Flow]bool, yield func(*StepPlan) bool) bool {
	seen[p.Flow] = true
	for _, s := range p.Steps {
		if !yield(s) {
			return false
		}
		for _, f := range s.Flows() {
			if !seen[f] && !f.Plan().walk(seen, yield) {
				return false
			}
		}
	}
	return true
}

// All yields the plan of the step and of each step in the flows that it runs.
func (p *StepPlan) All() iter.Seq[*StepPlan] {
	return (&Plan{Flow: &Flow{}, Steps: []*StepPlan{p}}).All()
}

// UsesMemory reports whether the step, a tool that it may call or a flow that it
// runs reads or writes a memory.
func (p *StepPlan) UsesMemory() bool {
	for s := range p.All() {
		if len(s.Memories()) > 0 {
			return true
		}
	}
	return false
}

// MemoryScope returns the widest scope of the memories, and of their values, that the
// step uses itself, by its tools or in its flows.
func (p *StepPlan) MemoryScope() Scope {
	scope := ScopeSession
	for s := range p.All() {
		for _, m := range s.Memories() {
			scope = scope.Widest(m.Scope)
		}
		if v, ok := s.Step.(scopedValues); ok {
			scope = scope.Widest(v.valueScope())
		}
		for _, t := range s.Tools() {
			if v, ok := t.(scopedValues); ok {
				scope = scope.Widest(v.valueScope())
			}
		}
	}
	return scope
}

// HoldsState reports whether the results of the step depend on other rows: it works
// on groups of rows or uses a memory.
func (p *StepPlan) HoldsState() bool { return p.IsBatch() || p.UsesMemory() }

// RowsOf is how many rows a type of step makes.
func RowsOf(s Step) Rows { return Rows(stepTag(s, "rows")) }

// SpanOf is the kind of a type of step in traces, by the names of OpenInference: LLM,
// AGENT, TOOL, EMBEDDING, RETRIEVER or RERANKER, which the tag `span` of the embedded
// StepBase declares, and CHAIN for all others.
func SpanOf(s Step) string { return cmp.Or(stepTag(s, "span"), "CHAIN") }

// RecordAdvice is what to do if an output of the step is a custom type, which it cannot
// set: the tag `records` of the embedded StepBase. It is empty for steps without advice.
func RecordAdvice(s Step) string { return stepTag(s, "records") }

// stepInfo is what the tags of a type of step declare.
type stepInfo struct {
	tag                   reflect.StructTag // of the embedded StepBase
	inputKeys, outputKeys []string
}

// stepInfos has the stepInfo of every type of step.
var stepInfos = sync.OnceValue(func() map[reflect.Type]*stepInfo {
	infos := map[reflect.Type]*stepInfo{}
	for _, s := range StepTypes() {
		infos[reflect.TypeOf(s)] = newStepInfo(reflect.TypeOf(s))
	}
	return infos
})

func stepInfoOf(s Step) *stepInfo {
	if info := stepInfos()[reflect.TypeOf(s)]; info != nil {
		return info
	}
	return newStepInfo(reflect.TypeOf(s)) // a type outside of the language, in a test
}

func newStepInfo(step reflect.Type) *stepInfo {
	base, _ := step.Elem().FieldByName("StepBase")
	info := &stepInfo{tag: base.Tag, inputKeys: []string{"inputs"}, outputKeys: []string{"outputs"}}
	for i := range step.Elem().NumField() {
		f := step.Elem().Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Type == reflect.TypeFor[Assignments](), f.Tag.Get("binds") == "outputs":
			info.outputKeys = append(info.outputKeys, key)
		case f.Type == reflect.TypeFor[Bindings](), f.Type == reflect.TypeFor[PathRef]():
			info.inputKeys = append(info.inputKeys, key)
		}
	}
	info.inputKeys, info.outputKeys = slices.Clip(info.inputKeys), slices.Clip(info.outputKeys)
	return info
}

// stepTag is a tag of the StepBase that a step embeds; empty where it has none.
func stepTag(s Step, name string) string { return stepInfoOf(s).tag.Get(name) }

// OffersCallerTools reports whether the step offers the tools of the caller of a run to
// its model.
func (p *StepPlan) OffersCallerTools() bool { return stepTag(p.Step, "caller_tools") == "offers" }

// WritesFiles reports whether the step writes files.
func (p *StepPlan) WritesFiles() bool { return stepTag(p.Step, "files") == "writes" }

// Effect is what a type of step does outside of the process, apart from calls of models and
// HTTP servers: a phrase such as "writes files". It is declared by the tag `effect` of the
// StepBase; empty for a step without one.
func Effect(s Step) string { return stepTag(s, "effect") }

// IsBatch reports whether the step works on groups of rows.
func (p *StepPlan) IsBatch() bool { return p.Rows == RowsBatch }

// Model is the chat model that the step calls, nil for none.
func (p *StepPlan) Model() ModelEntity { return first(Linked[ModelEntity](p.Uses, RoleChatModel)) }

// Embedder is the embedding model that the step calls, nil for none.
func (p *StepPlan) Embedder() *EmbeddingModel {
	return first(Linked[*EmbeddingModel](p.Uses, RoleEmbedding))
}

// Conversation is the memory of which the step's messages are turns, nil for none.
func (p *StepPlan) Conversation() *Memory { return first(Linked[*Memory](p.Uses, RoleConversation)) }

// Memories are all memories that the step or a tool that it may call reads or writes.
func (p *StepPlan) Memories() []*Memory {
	return Linked[*Memory](p.Uses, RoleConversation, RoleValues)
}

// Models are the models that the step calls itself, its memories for their context, its tools for their servers,
// and the indexes that it or a tool searches or fills, each once.
func (p *StepPlan) Models() []ModelEntity {
	models := Linked[ModelEntity](p.Uses, RoleChatModel, RoleEmbedding)
	for _, n := range p.Callers() {
		for _, called := range Linked[ModelEntity](UsesOf(n), RoleChatModel, RoleEmbedding) {
			if !slices.Contains(models, called) {
				models = append(models, called)
			}
		}
	}
	return models
}

// Callers are the entities that may call models for the step: its memories, tools and indexes, and the indexes of
// its tools, each once.
func (p *StepPlan) Callers() []Node {
	var callers []Node
	for _, m := range p.Memories() {
		callers = append(callers, m)
	}
	indexes := p.Indexes()
	for _, t := range p.Tools() {
		callers = append(callers, t)
		for _, x := range Linked[Index](UsesOf(t), RoleIndex) {
			if !slices.Contains(indexes, x) {
				indexes = append(indexes, x)
			}
		}
	}
	for _, x := range indexes {
		callers = append(callers, x)
	}
	return callers
}

// Tools are the tools that the step may call.
func (p *StepPlan) Tools() []Tool { return Linked[Tool](p.Uses, RoleTool) }

// ToolRefs are the references to the tools that the step may call, linked or not.
func (p *StepPlan) ToolRefs() []*Ref[Tool] { return Refs[Tool](p.Uses, RoleTool) }

// Indexes are the indexes that the step searches or fills.
func (p *StepPlan) Indexes() []Index { return Linked[Index](p.Uses, RoleIndex) }

// Flows are the flows that the step runs, itself, as tools or by a handoff.
func (p *StepPlan) Flows() []*Flow { return Linked[*Flow](p.Uses, RoleFlow, RoleHandoff) }

// Handoffs are the references to the flows to which the step may hand the conversation
// over, linked or not.
func (p *StepPlan) Handoffs() []*Ref[*Flow] { return Refs[*Flow](p.Uses, RoleHandoff) }

// Calls are the flows that the step runs itself, linked or not.
func (p *StepPlan) Calls() []FlowCall {
	inputs, outputs := BindingsOf(p.Step)
	var calls []FlowCall
	for _, u := range p.Uses {
		if r, ok := u.Ref.(*Ref[*Flow]); ok && u.Key != "" && u.Role == RoleFlow {
			calls = append(calls, FlowCall{Flow: r, Inputs: inputs, Outputs: outputs})
		}
	}
	return calls
}

// FlowCall is one flow that a step runs. Its variables and the step's are matched
// by bindings, or by their ids where the step's type has no bindings.
type FlowCall struct {
	Flow    *Ref[*Flow] // the flow
	Inputs  *Bindings   // the flow's inputs; nil where they are matched by id
	Outputs *Bindings   // the flow's outputs; nil where they are matched by id
}

// MatchesByID reports whether the flow's variables and the step's are matched by their ids.
func (c FlowCall) MatchesByID() bool { return c.Inputs == nil && c.Outputs == nil }

// InnerOutputs lists the outputs of the called flow that set a variable of the calling flow.
func (c FlowCall) InnerOutputs(variable string) []string {
	if c.Outputs == nil {
		return []string{variable}
	}
	var names []string
	for _, b := range *c.Outputs {
		if b.Var.ID == variable {
			names = append(names, b.Name)
		}
	}
	return names
}

// DerivePorts fills the inputs and outputs of a step that follow from its bindings,
// paths and assignments. What inputs and outputs name already is not repeated. The
// linker adds the variables of expressions.
func DerivePorts(s Step) {
	base := s.Common()
	base.DerivedInputs, base.DerivedOutputs = nil, nil
	var reads, writes []*Ref[*Variable]
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch field := v.Field(i).Addr().Interface().(type) {
		case *Bindings:
			side := &reads
			if v.Type().Field(i).Tag.Get("binds") == "outputs" {
				side = &writes
			}
			for j := range *field {
				*side = append(*side, &(*field)[j].Var)
			}
		case *Assignments:
			for j := range *field {
				writes = append(writes, &(*field)[j].Var)
			}
		case *PathRef:
			reads = append(reads, &field.Var)
		}
	}
	base.DerivedInputs = unnamed(base.Inputs, reads)
	base.DerivedOutputs = unnamed(base.Outputs, writes)
}

// unnamed are the references whose ids are not among the named ones, each id once.
func unnamed(named []Ref[*Variable], refs []*Ref[*Variable]) []*Ref[*Variable] {
	var rest []*Ref[*Variable]
	for _, ref := range refs {
		sameID := func(r Ref[*Variable]) bool { return r.ID == ref.ID }
		if ref.ID != "" && !slices.ContainsFunc(named, sameID) {
			rest = addRef(rest, ref)
		}
	}
	return rest
}

// AllInputs are the inputs in the document, then the derived inputs with other ids.
func (s *StepBase) AllInputs() []*Ref[*Variable] { return mergeRefs(s.Inputs, s.DerivedInputs) }

// AllOutputs are the outputs in the document and the derived outputs.
func (s *StepBase) AllOutputs() []*Ref[*Variable] { return mergeRefs(s.Outputs, s.DerivedOutputs) }

// PortKeys lists the keys of a step that name its inputs and its outputs: inputs and
// outputs themselves, bindings, paths and assignments.
func PortKeys(s Step) (inputs, outputs []string) {
	info := stepInfoOf(s)
	return info.inputKeys, info.outputKeys
}

// mergeRefs returns the references of a list, then the derived references with other ids.
func mergeRefs(named []Ref[*Variable], derived []*Ref[*Variable]) []*Ref[*Variable] {
	all := make([]*Ref[*Variable], 0, len(named)+len(derived))
	for i := range named {
		all = append(all, &named[i])
	}
	for _, r := range derived {
		if r != nil {
			all = addRef(all, r)
		}
	}
	return all
}

// addRef adds a reference whose id the list does not have.
func addRef(list []*Ref[*Variable], r *Ref[*Variable]) []*Ref[*Variable] {
	if slices.ContainsFunc(list, func(have *Ref[*Variable]) bool { return have.ID == r.ID }) {
		return list
	}
	return append(list, r)
}

// Streams reports whether a type of step can emit its output as a stream of text.
func Streams(s Step) bool { return stepTag(s, "streams") == "text" }

// RunsAfter reports whether the condition in a field of a step is evaluated after
// the step's work, so that it sees the step's outputs.
func RunsAfter(s Step, field string) bool {
	f, ok := reflect.TypeOf(s).Elem().FieldByName(field)
	return ok && f.Tag.Get("evaluated") == "after"
}

// Decoders returns the Decoders of the application by the variables that they decode.
func (a *Application) Decoders() map[*Variable]*Decoder {
	found := map[*Variable]*Decoder{}
	for _, f := range a.Flows {
		for s := range f.Plan().All() {
			if d, ok := s.Step.(*Decoder); ok {
				for _, in := range d.Inputs {
					found[in.To] = cmp.Or(found[in.To], d)
				}
			}
		}
	}
	return found
}

func first[T any](list []T) (zero T) {
	if len(list) == 0 {
		return zero
	}
	return list[0]
}
