package spec

import (
	"reflect"
	"strings"
)

// Arguments are what a caller of a tool may give: its inputs and the fields tagged
// `arguments`, or the inputs of the flow that it runs. known is false where the
// document does not declare them, as for a server whose tools describe themselves.
func Arguments(t Tool) (arguments []*Variable, known bool) {
	if flows := Refs[*Flow](UsesOf(t), RoleFlow); len(flows) > 0 {
		return flowVariables(flows[0].To, (*Flow).inputs)
	}
	arguments = t.Common().Inputs
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		if list, ok := v.Field(i).Interface().([]*Variable); ok && v.Type().Field(i).Tag.Get("arguments") == "true" {
			arguments = append(arguments[:len(arguments):len(arguments)], list...)
		}
	}
	return arguments, declares(t, "inputs")
}

// Results are the parts of a tool's result: its outputs, or those of the flow that it runs.
func Results(t Tool) (results []*Variable, known bool) {
	if flows := Refs[*Flow](UsesOf(t), RoleFlow); len(flows) > 0 {
		return flowVariables(flows[0].To, (*Flow).outputs)
	}
	return t.Common().Outputs, declares(t, "outputs")
}

func (f *Flow) inputs() []Ref[*Variable]  { return f.Inputs }
func (f *Flow) outputs() []Ref[*Variable] { return f.Outputs }

// flowVariables are the linked variables on one side of a flow that may be nil.
func flowVariables(f *Flow, side func(*Flow) []Ref[*Variable]) (vars []*Variable, known bool) {
	if f == nil {
		return nil, false
	}
	for _, r := range side(f) {
		if r.To != nil {
			vars = append(vars, r.To)
		}
	}
	return vars, true
}

// declares reports whether a kind of tool has a key of the ToolBase.
func declares(t Tool, key string) bool {
	base, _ := reflect.TypeOf(t).Elem().FieldByName("ToolBase")
	for without := range strings.SplitSeq(base.Tag.Get("without"), ",") {
		if without == key {
			return false
		}
	}
	return true
}

// BindingsOf are the bindings of a step: what it gives to the tool, flow or record
// that it invokes, and what it takes from it; nil where its type has none.
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
// of its field or of an embedded struct says. ok is false for an entity without the
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
