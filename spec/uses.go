package spec

import (
	"cmp"
	"reflect"
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
