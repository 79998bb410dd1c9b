package steps_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// The clock of regexp2 stops a second after its last regular expression.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// layout lists the variables of a flow in the order of their slots.
type layout []*spec.Variable

func (l layout) Slot(v *spec.Variable) int { return slices.Index(l, v) }

func (l layout) Len() int { return len(l) }

func (l layout) Variables() []*spec.Variable { return l }

// declare makes variables from "name: type".
func declare(t testing.TB, customs []*spec.CustomType, decls ...string) layout {
	t.Helper()
	return valuetest.Variables(t, customs, decls...)
}

// refs returns references to variables of the flow.
func (l layout) refs(ids ...string) []spec.Ref[*spec.Variable] {
	var out []spec.Ref[*spec.Variable]
	for _, id := range ids {
		out = append(out, l.ref(id))
	}
	return out
}

func (l layout) ref(id string) spec.Ref[*spec.Variable] {
	i := slices.IndexFunc(l, func(v *spec.Variable) bool { return v.ID == id })
	if i < 0 {
		panic("no variable " + id)
	}
	return spec.Ref[*spec.Variable]{ID: id, To: l[i]}
}

// base returns the fields that all steps have.
func (l layout) base(id string, inputs, outputs []string) spec.StepBase {
	return spec.StepBase{ID: id, Inputs: l.refs(inputs...), Outputs: l.refs(outputs...)}
}

// row returns a row with some variables set.
func (l layout) row(values map[string]any) *steps.Row {
	r := &steps.Row{Values: make([]any, len(l)), Session: "s", Number: 1}
	for i, v := range l {
		r.Values[i] = any(value.Unset)
		if x, ok := values[v.ID]; ok {
			r.Values[i] = x
		}
	}
	return r
}

func build(t testing.TB, s spec.Step, env *steps.Env) steps.Runner {
	t.Helper()
	r, err := steps.Build(s, env)
	if err != nil {
		t.Fatalf("%s: %v", spec.TypeName(s), err)
	}
	return r
}

// drive runs rows through a runner as the engine does and lists what it emits: the set
// variables as JSON, or the error.
func drive(t testing.TB, l layout, r steps.Runner, rows ...*steps.Row) []string {
	t.Helper()
	var out []string
	for _, row := range driveRows(t, r, rows...) {
		out = append(out, show(l, row))
	}
	return out
}

func driveRows(t testing.TB, r steps.Runner, rows ...*steps.Row) []*steps.Row {
	t.Helper()
	return driveCtx(t.Context(), t, r, rows...)
}

func driveCtx(ctx context.Context, t testing.TB, r steps.Runner, rows ...*steps.Row) []*steps.Row {
	t.Helper()
	var out []*steps.Row
	emit := func(row *steps.Row) error { out = append(out, row); return nil }
	fail := func(row *steps.Row, err error) {
		row.Err = &steps.Error{Step: "step", Err: err}
		out = append(out, row)
	}
	switch r := r.(type) {
	case steps.Step:
		for _, row := range rows {
			if w, ok := r.(steps.FailureObserver); ok && row.Err != nil {
				w.Failed(row)
			}
			if row.Err != nil {
				out = append(out, row)
			} else if err := r.Process(ctx, row, emit); err != nil {
				fail(row, err)
			}
		}
	case steps.Batch:
		size := r.Size()
		if size == 0 {
			size = max(len(rows), 1)
		}
		for group := range slices.Chunk(rows, size) {
			if err := r.Batch(ctx, group, emit); err != nil {
				for _, row := range group {
					fail(row, err)
				}
			}
		}
	default:
		t.Fatalf("%T runs neither rows nor groups", r)
	}
	if c, ok := r.(steps.Closer); ok {
		if err := c.Close(ctx, emit); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func show(l layout, row *steps.Row) string {
	if row.Err != nil {
		return "error: " + row.Err.Err.Error()
	}
	var fields []value.Field
	for i, v := range l {
		if row.Values[i] != any(value.Unset) {
			fields = append(fields, value.Field{Name: v.ID, Value: row.Values[i]})
		}
	}
	return string(value.JSON(value.NewRecord("", fields...)))
}

func expect(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func mustMessage(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Coerce(spec.Type{Name: "ChatMessage"}, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
