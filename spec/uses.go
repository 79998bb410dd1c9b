package spec

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Role describes what an entity does with another one that it refers to.
type Role string

// The roles. A reference has the role of its type; the tag `role` of the field
// overrides it, and `role:"-"` marks a field that only selects some of
// the entity's other uses.
const (
	RoleChatModel    Role = "chat model"      // it calls the chat model
	RoleEmbedding    Role = "embedding model" // it calls the embedding model
	RoleConversation Role = "conversation"    // its messages are turns of the memory
	RoleValues       Role = "values"          // it sets and reads named values of the memory
	RoleTool         Role = "tool"            // it may call the tool
	RoleFlow         Role = "flow"            // it runs the flow
	RoleHandoff      Role = "handoff"         // it may transfer the conversation to the flow
	RoleIndex        Role = "index"           // it searches or fills the index
	RoleAuth         Role = "auth"            // it authenticates with the credentials
	RoleStore        Role = "store"           // it stores its data in the store
	RoleVariable     Role = "variable"        // it reads or writes the variable; see Plan
	roleNone         Role = "-"
)

// roles maps the type that a reference accepts to its role.
var roles = sync.OnceValue(func() map[reflect.Type]Role {
	return map[reflect.Type]Role{
		reflect.TypeFor[ModelEntity]():     RoleChatModel,
		reflect.TypeFor[*Model]():          RoleChatModel,
		reflect.TypeFor[*EmbeddingModel](): RoleEmbedding,
		reflect.TypeFor[*Memory]():         RoleConversation,
		reflect.TypeFor[Tool]():            RoleTool,
		reflect.TypeFor[*Flow]():           RoleFlow,
		reflect.TypeFor[Index]():           RoleIndex,
		reflect.TypeFor[*VectorIndex]():    RoleIndex,
		reflect.TypeFor[*DocumentIndex]():  RoleIndex,
		reflect.TypeFor[Auth]():            RoleAuth,
		reflect.TypeFor[*AWSAuth]():        RoleAuth,
		reflect.TypeFor[*Store]():          RoleStore,
		reflect.TypeFor[*Variable]():       RoleVariable,
	}
})

// Use is one reference of an entity.
type Use struct {
	Key  string    // the key that holds it; of a nested one the keys, joined by dots: cases.flow
	Role Role      // what the entity does with it
	Ref  Reference // the reference, in place; not linked where its target is unknown
}

// UsesOf lists the references that an entity and its nested parts declare, in the order
// of the fields. Entities that are declared inside it are left out. References that name
// nothing are left out.
func UsesOf(n Node) []Use {
	s := &useScan{roles: roles()}
	s.visit(reflect.ValueOf(n).Elem(), "", "")
	return s.uses
}

// useScan collects the uses of one entity.
type useScan struct {
	roles map[reflect.Type]Role
	uses  []Use
}

// visit looks at a value; key is the path of keys to it, role what its field declares.
func (s *useScan) visit(v reflect.Value, key string, role Role) {
	if v.CanAddr() {
		if ref, ok := v.Addr().Interface().(Reference); ok {
			s.add(key, role, ref)
			return
		}
	}
	if matchesVariables(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		s.visitFields(v, key, role)
	case reflect.Slice:
		for i := range v.Len() {
			s.visit(v.Index(i), key, role)
		}
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if _, isEntity := v.Interface().(Entity); !isEntity {
			s.visit(v.Elem(), key, role)
		}
	}
}

// matchesVariables reports whether a type names variables that are inputs or
// outputs of the step: DerivePorts and the linker add those to the step's own.
func matchesVariables(t reflect.Type) bool {
	return t == reflect.TypeFor[Bindings]() || t == reflect.TypeFor[Assignments]() ||
		t == reflect.TypeFor[Expression]() || t == reflect.TypeFor[PathRef]()
}

func (s *useScan) visitFields(v reflect.Value, key string, role Role) {
	for _, f := range useFieldsOf(v.Type()) {
		s.visit(v.Field(f.index), joinKeys(key, f.key), cmp.Or(f.role, role))
	}
}

// useField is a field of a struct that may hold references.
type useField struct {
	index int
	key   string
	role  Role // empty for that of the field that has the struct
}

// useFields are the results of useFieldsOf by reflect.Type: rules ask for the uses of each entity again.
var useFields sync.Map

// useFieldsOf returns the fields of a struct that may hold references, in their order.
func useFieldsOf(t reflect.Type) []useField {
	if known, ok := useFields.Load(t); ok {
		return known.([]useField)
	}
	var all []useField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.IsExported() && name != "-" && mayHoldReferences(f.Type) {
			all = append(all, useField{index: i, key: name, role: Role(f.Tag.Get("role"))})
		}
	}
	useFields.Store(t, all)
	return all
}

// mayHoldReferences reports whether useScan.visit looks into values of a type.
func mayHoldReferences(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		return mayHoldReferences(t.Elem())
	case reflect.Struct, reflect.Interface:
		return true
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[Reference]())
}

// joinKeys appends a key to a path of keys; parts without a key of their parent add nothing.
func joinKeys(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}

func (s *useScan) add(key string, role Role, ref Reference) {
	if id, span := Target(ref); role == roleNone || id == "" && span.IsZero() {
		return
	}
	if role == "" {
		role = s.roles[TargetType(ref)]
	}
	s.uses = append(s.uses, Use{Key: key, Role: role, Ref: ref})
}

// Linked lists the entities of type T among the linked uses with one of some
// roles, each once, in order.
func Linked[T Entity](uses []Use, wanted ...Role) []T {
	var found []T
	seen := map[Entity]bool{}
	for _, u := range uses {
		e := u.Ref.Entity()
		if t, ok := e.(T); ok && hasRole(wanted, u.Role) && !seen[e] {
			seen[e] = true
			found = append(found, t)
		}
	}
	return found
}

// Refs lists the references of type Ref[T] among the uses with one of some
// roles, linked or not, in order.
func Refs[T Entity](uses []Use, wanted ...Role) []*Ref[T] {
	var found []*Ref[T]
	for _, u := range uses {
		if r, ok := u.Ref.(*Ref[T]); ok && hasRole(wanted, u.Role) {
			found = append(found, r)
		}
	}
	return found
}

func hasRole(wanted []Role, role Role) bool {
	for _, w := range wanted {
		if w == role {
			return true
		}
	}
	return false
}

// UseModel lets another chat model answer in a flow: the steps whose text is an output of the
// flow refer to it from then on. Nothing changes if there is no such flow or model.
func (a *Application) UseModel(flow, model string) {
	i := slices.IndexFunc(a.Flows, func(f *Flow) bool { return f.ID == flow })
	to := slices.IndexFunc(a.Models, func(m ModelEntity) bool { return m.EntityID() == model })
	if i < 0 || to < 0 {
		return
	}
	for _, output := range a.Flows[i].Outputs {
		writers := a.Flows[i].Writers(output.ID)
		for s := range a.Flows[i].Plan().All() {
			if writers[s.Step.EntityID()] {
				useModel(s.Step, a.Models[to])
			}
		}
	}
	for _, f := range a.Flows {
		f.SetPlan()
	}
}

// useModel changes the key `model` of a step that calls a chat model.
func useModel(s Step, m ModelEntity) {
	field := reflect.Indirect(reflect.ValueOf(s)).FieldByName("Model")
	if !field.IsValid() {
		return
	}
	if ref, ok := field.Addr().Interface().(*Ref[ModelEntity]); ok {
		ref.ID, ref.To = m.EntityID(), m
	}
}

// Writers returns the ids of the steps whose text is the value of a variable: those that
// write it, in the flow and in the flows that it runs.
func (f *Flow) Writers(variable string) map[string]bool {
	return f.writers(variable, map[*Flow]bool{})
}

func (f *Flow) writers(variable string, seen map[*Flow]bool) map[string]bool {
	found := map[string]bool{}
	if f == nil || seen[f] {
		return found
	}
	seen[f] = true
	for _, s := range f.Plan().Steps {
		calls := s.Calls()
		for _, call := range calls {
			for _, inner := range call.InnerOutputs(variable) {
				maps.Copy(found, call.Flow.To.writers(inner, seen))
			}
		}
		writes := func(r *Ref[*Variable]) bool { return r.ID == variable }
		if len(calls) == 0 && slices.ContainsFunc(s.Writes, writes) {
			found[s.Step.EntityID()] = true
			for _, ref := range s.Handoffs() {
				maps.Copy(found, ref.To.answerWriters(seen))
			}
		}
	}
	return found
}

// answerWriters returns the writers of the only output of a flow, to which an Agent hands
// the conversation over; f may be nil.
func (f *Flow) answerWriters(seen map[*Flow]bool) map[string]bool {
	if f == nil || len(f.Outputs) != 1 {
		return nil
	}
	return f.writers(f.Outputs[0].ID, seen)
}

// BindingsOf are the bindings of a step: what it gives to the tool, flow or record that
// it invokes, and what it gets back; nil where its type has none.
func BindingsOf(s Step) (inputs, outputs *Bindings) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		b, ok := v.Field(i).Addr().Interface().(*Bindings)
		switch {
		case !ok:
		case v.Type().Field(i).Tag.Get("binds") == "outputs":
			outputs = b
		default:
			inputs = b
		}
	}
	return inputs, outputs
}

// AcceptedAuth lists the types of auth that an entity can use, as the tag `accepts`
// of its field or of an embedded struct lists them. ok is false for an entity without the
// tag; an empty list means that an auth has no effect.
func AcceptedAuth(n Node) (types []string, ok bool) {
	t := reflect.TypeOf(n).Elem()
	for i := range t.NumField() {
		if tag, found := t.Field(i).Tag.Lookup("accepts"); found {
			return strings.Fields(tag), true
		}
	}
	return nil, false
}

// EmptyKeys lists the keys of a step that must not be empty, by the tag `nonempty`, and are.
func EmptyKeys(s Step) []string {
	var keys []string
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("nonempty") == "true" && v.Field(i).Len() == 0 {
			keys = append(keys, f.Tag.Get("yaml"))
		}
	}
	return keys
}

// IsComputation reports whether the steps of the flow, and of the flows that it runs, only
// compute: they call no models, tools or servers and use no memories or files. The tag
// `work:"compute"` of the embedded StepBase declares it for a type of step.
func (p *Plan) IsComputation() bool { return onlyCompute(p.All()) }

// IsComputation reports whether the step, and the steps of the flows that it runs, only
// compute; see Plan.IsComputation.
func (p *StepPlan) IsComputation() bool { return onlyCompute(p.All()) }

func onlyCompute(all iter.Seq[*StepPlan]) bool {
	for s := range all {
		if !s.OnlyComputes() {
			return false
		}
	}
	return true
}

// OnlyComputes reports whether the step itself reaches nothing but the values of its row.
func (p *StepPlan) OnlyComputes() bool {
	return stepTag(p.Step, "work") == "compute" && len(p.Memories()) == 0 && len(p.Tools()) == 0
}

// IsQuick reports whether no row of the step, and of the flows that it runs, waits for anything: they only compute, or
// call mock models that answer at once.
func (p *StepPlan) IsQuick() bool {
	for s := range p.All() {
		if !s.OnlyComputes() && !s.callsQuickMock() {
			return false
		}
	}
	return true
}

// callsQuickMock reports whether all that the step uses are mock models that answer at once.
func (p *StepPlan) callsQuickMock() bool {
	models := 0
	for _, u := range p.Uses {
		if u.Role == RoleVariable {
			continue
		}
		m, ok := u.Ref.Entity().(*Model)
		if !ok || u.Role != RoleChatModel || !m.isQuickMock() {
			return false
		}
		models++
	}
	return models > 0
}

// isQuickMock reports whether the model is a mock whose calls never wait, nor fail and are repeated.
func (m *Model) isQuickMock() bool {
	row, _ := m.ProviderRow()
	waits := func(r *MockRule) bool { return r.Delay > 0 || r.Error != "" }
	return row.Client == MockClient && m.RateLimit == nil && len(m.Fallbacks) == 0 && !slices.ContainsFunc(m.Rules, waits)
}
