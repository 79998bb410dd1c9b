package diagram

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec"
)

// stepStyle is how a step is drawn. It follows from what the type of the step
// declares, so a new type needs no code here.
type stepStyle struct {
	shape string // the Mermaid shape
	icon  string // before the label
	class string // the class in the style sheet: what the step does
}

// The classes of steps in the style sheet.
const (
	classCallsModel = "model-call" // calls a model
	classRunsFlow   = "flow-call"  // runs other flows
	classExternal   = "external"   // reads or writes something outside the process
	classLocal      = "local"      // transforms values
)

// stepStyleOf returns the style of a step.
func stepStyleOf(p *spec.StepPlan) stepStyle {
	style := stepStyle{shape: "rect", icon: "⚙️", class: stepClass(p)}
	switch s := p.Step; {
	case len(p.Calls()) > 0:
		style.shape, style.icon = "subproc", "🔄"
	case declares[spec.ModelEntity](s) && declares[spec.Tool](s):
		style.shape, style.icon = "hex", "🤖"
	case declares[spec.ModelEntity](s):
		style.shape, style.icon = "rounded", "✨"
	case hasSyntax(s, "template"):
		style.shape, style.icon = "doc", "📄"
	case formatOf(s) != "":
		style.shape, style.icon = "lean-r", "🔍"
	case declares[*spec.VectorIndex](s):
		style.shape, style.icon = "cyl", "🔎"
	case declares[*spec.DocumentIndex](s):
		style.shape, style.icon = "cyl", "📚"
	case declares[spec.Index](s):
		style.icon = "💾"
	}
	return style
}

func stepClass(p *spec.StepPlan) string {
	s := p.Step
	switch {
	case len(p.Calls()) > 0:
		return classRunsFlow
	case declares[spec.ModelEntity](s), declares[*spec.EmbeddingModel](s), fieldOf(s, "model_id").IsValid():
		return classCallsModel
	case declares[spec.Tool](s), declares[spec.Auth](s), hasFieldOf[spec.PathRef](s),
		declares[spec.Index](s), declares[*spec.VectorIndex](s), declares[*spec.DocumentIndex](s):
		return classExternal
	}
	return classLocal
}

// declares reports whether a type of step has a key that refers to entities of
// type T.
func declares[T spec.Entity](s spec.Step) bool {
	return hasFieldOf[spec.Ref[T]](s) || hasFieldOf[[]spec.Ref[T]](s)
}

// hasFieldOf reports whether a type of step has a field of type T.
func hasFieldOf[T any](s spec.Step) bool {
	t := reflect.TypeOf(s).Elem()
	for i := range t.NumField() {
		if t.Field(i).Type == reflect.TypeFor[T]() {
			return true
		}
	}
	return false
}

// hasSyntax reports whether a type of step has a text of a syntax.
func hasSyntax(s spec.Step, syntax string) bool {
	t := reflect.TypeOf(s).Elem()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("syntax") == syntax {
			return true
		}
	}
	return false
}

// fieldOf returns the value of a key of a step; the zero Value if its type does not
// have the key.
func fieldOf(s spec.Step, key string) reflect.Value {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == key {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// formatOf returns the format of the data that a step reads or writes, or "".
func formatOf(s spec.Step) string {
	if v := fieldOf(s, "format"); v.IsValid() && v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}
