package steps_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// expr returns an expression whose variables are linked, as validation leaves it.
func (l layout) expr(t testing.TB, text string) spec.Expression {
	t.Helper()
	e := spec.Expression{Text: text}
	read, err := expression.Parse(text)
	if err != nil {
		return e // building the step returns the error
	}
	for _, name := range read.Names() {
		e.Vars = append(e.Vars, l.ref(name.ID))
	}
	return e
}

// flowOf returns a flow with variables of the given declarations.
func flowOf(t testing.TB, id string, inputs, outputs []string) *spec.Flow {
	t.Helper()
	f := &spec.Flow{ID: id}
	in, out := declare(t, nil, inputs...), declare(t, nil, outputs...)
	for _, v := range in {
		f.Inputs = append(f.Inputs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
	}
	for _, v := range out {
		f.Outputs = append(f.Outputs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
	}
	return f
}

func to(f *spec.Flow) spec.Ref[*spec.Flow] { return spec.Ref[*spec.Flow]{ID: f.ID, To: f} }

func transformOf(t testing.TB, l layout, out, text string) *spec.Transform {
	t.Helper()
	return &spec.Transform{StepBase: l.base("t", nil, nil), Set: spec.Assignments{{Var: l.ref(out), Expr: l.expr(t, text)}}}
}

// The value that a path or a tool wrote to a variable may have another type than the
// declared one.
func TestTransform_ConvertsTypes(t *testing.T) {
	order := valuetest.Custom(t, "Order", []string{"number: int"})
	l := declare(t, []*spec.CustomType{order}, "n: int", "maybe: int?", "out: int", "order: Order", "any: list[text]?", "big: float")
	for _, c := range []struct {
		text string
		row  map[string]any
		want string
	}{
		{`n + 1`, map[string]any{"n": "41"}, `{"n":"41","out":42}`}, // a numeric text converts
		{`n + 1`, map[string]any{"n": "x"}, `variable n: expected int, got "x"`},
		{`n + 1`, nil, `variable n is not set`},
		{`n + 1`, map[string]any{"n": nil}, `variable n is null; declare it as int? if it may be`},
		{`maybe + 1`, nil, `+ is not defined for null and int`},
		{`maybe ?? 5`, nil, `{"out":5}`},
		{`maybe`, nil, `expected int, got null`},
		{`order.number`, map[string]any{"order": "x"}, `variable order: expected Order, got "x"`},
		{`any[3]`, map[string]any{"any": []any{"a"}}, `index out of range: 3 (array length is 1)`},
		{`any[0]`, map[string]any{"any": []any{"a"}}, `expected int, got "a"`},
	} {
		got := drive(t, l, build(t, transformOf(t, l, "out", c.text), &steps.Env{Slots: l}), l.row(c.row))[0]
		if want := c.want; strings.HasPrefix(want, "{") && got != want || !strings.HasSuffix(got, want) {
			t.Errorf("%s of %v: got %s, want %s", c.text, c.row, got, want)
		}
	}
}

// The value of a variable that is only copied does not change.
func TestTransform_UnchangedValues(t *testing.T) {
	order := valuetest.Custom(t, "Order", []string{"number: int", "at: datetime", "on: date"})
	for typ, raw := range map[string]any{"date": "2026-02-28", "datetime": "2026-02-28T10:00:00", "datetime?": "2026-02-28T10:00:00+02:00",
		"time": "10:11:12", "bytes": []byte("x"), "ChatMessage": mustMessage(t, "hi"), "list[int]": []any{int64(1)}, "float": 2.5,
		"Order": map[string]any{"number": 1, "at": "2026-01-01T00:00:00", "on": "2026-01-01"}} {
		for _, text := range []string{"a", "true ? a : a", "[a][0]"} {
			l := declare(t, []*spec.CustomType{order}, "a: "+typ, "b: "+typ)
			v, err := value.Assign(l[0], raw)
			if err != nil {
				t.Fatal(err)
			}
			row := l.row(map[string]any{"a": v})
			got := driveRows(t, build(t, transformOf(t, l, "b", text), &steps.Env{Slots: l}), row)[0]
			if got.Err != nil || !value.Equal(got.Values[1], v) {
				t.Errorf("%s by %s: %v became %v, %v", typ, text, v, got.Values[1], got.Err)
			}
		}
	}
}

func TestBuild_ControlStepErrors(t *testing.T) {
	l := declare(t, nil, "n: int", "s: text")
	needs := flowOf(t, "needs", []string{"other: text"}, nil)
	plain := flowOf(t, "plain", nil, nil)
	run := func(context.Context, steps.FlowCall, steps.FlowEmit) error { return nil }
	for want, s := range map[string]spec.Step{
		`case 1: the expression n (app.yaml:1:1): it has type int, not boolean`: &spec.Switch{StepBase: l.base("s", nil, nil), Cases: []*spec.SwitchCase{{When: l.expr(t, "n"), Flow: to(plain)}}},
		`set s: its type is text, but the expression has type int`:              transformOf(t, l, "s", "n + 1"),
		`set s: the expression s +: unexpected end of the expression`:           transformOf(t, l, "s", "s +"),
		`the flow "gone" is not linked`:                                         &spec.Parallel{StepBase: l.base("s", nil, nil), Flows: []spec.Ref[*spec.Flow]{{ID: "gone"}}},
		`flow needs requires input other, which is not an input of the step`:    &spec.Loop{StepBase: l.base("s", nil, nil), Flow: to(needs), MaxIterations: 1},
		`max_iterations must be positive, is 0`:                                 &spec.Loop{StepBase: l.base("s", nil, nil), Flow: to(plain)},
	} {
		_, err := steps.Build(s, &steps.Env{Slots: l, Flow: run})
		if err == nil || err.Error() != strings.Replace(want, " (app.yaml:1:1)", "", 1) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := steps.Build(&spec.Loop{StepBase: l.base("s", nil, nil), Flow: to(plain), MaxIterations: 1}, &steps.Env{Slots: l}); err == nil {
		t.Error("a Loop is built where nothing runs flows")
	}
}

// For any failure, the row fails with it, the other flows are canceled, and all have
// ended when the step returns.
func TestParallel_FirstFailureCancels(t *testing.T) {
	l := declare(t, nil, "out: int")
	bad, slow := flowOf(t, "bad", nil, nil), flowOf(t, "slow", nil, []string{"out: int"})
	for want, fail := range map[string]func(steps.FlowEmit) error{
		"error: out of paper":   func(steps.FlowEmit) error { return errors.New("out of paper") },
		"error: step x: inside": func(emit steps.FlowEmit) error { return emit(nil, &steps.Error{Step: "x", Err: errors.New("inside")}) },
		"error: flow bad returned 0 rows for one; it must return exactly one": func(steps.FlowEmit) error { return nil },
		"error: internal error: oh no":                                        func(steps.FlowEmit) error { panic("oh no") },
	} {
		for _, flows := range [][]spec.Ref[*spec.Flow]{{to(bad), to(slow), to(slow)}, {to(slow), to(bad)}} {
			ended := make(chan bool, len(flows))
			run := func(ctx context.Context, call steps.FlowCall, emit steps.FlowEmit) error {
				if call.Flow == bad {
					return fail(emit)
				}
				<-ctx.Done()
				ended <- true
				return context.Cause(ctx)
			}
			r := build(t, &spec.Parallel{StepBase: l.base("p", nil, []string{"out"}), Flows: flows}, &steps.Env{Slots: l, Flow: run})
			expect(t, want, drive(t, l, r, l.row(nil)), want)
			if len(ended) != len(flows)-1 {
				t.Errorf("%d flows ended, not %d", len(ended), len(flows)-1)
			}
		}
	}
}

// Canceling a run ends a flow that hangs, and a Loop whose flow ignores the context.
func TestControlSteps_Canceled(t *testing.T) {
	l := declare(t, nil, "n: int")
	f := flowOf(t, "f", nil, []string{"n: int"})
	base := l.base("s", nil, []string{"n"})
	for name, s := range map[string]spec.Step{
		"Parallel": &spec.Parallel{StepBase: base, Flows: []spec.Ref[*spec.Flow]{to(f), to(f), to(f)}},
		"Switch":   &spec.Switch{StepBase: base, Cases: []*spec.SwitchCase{{When: l.expr(t, "true"), Flow: to(f)}}},
		"Loop":     &spec.Loop{StepBase: base, Flow: to(f), MaxIterations: 1 << 40},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		run := func(ctx context.Context, _ steps.FlowCall, emit steps.FlowEmit) error {
			if name != "Loop" {
				time.AfterFunc(time.Millisecond, cancel)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if runs++; runs == 3 {
				cancel()
			}
			return emit([]any{int64(runs)}, nil)
		}
		row := l.row(nil)
		err := build(t, s, &steps.Env{Slots: l, Flow: run}).(steps.Step).Process(ctx, row, func(*steps.Row) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// Outputs are converted to the types that the step declares.
func TestSwitch_ConvertsFlowOutputs(t *testing.T) {
	l := declare(t, nil, "n: int")
	f := flowOf(t, "f", nil, []string{"n: text?"})
	s := &spec.Switch{StepBase: l.base("s", nil, []string{"n"}), Cases: []*spec.SwitchCase{{When: l.expr(t, "true"), Flow: to(f)}}}
	run := func(_ context.Context, _ steps.FlowCall, emit steps.FlowEmit) error {
		for _, v := range []any{"12", "x", value.Unset} {
			if err := emit([]any{v}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	expect(t, "rows", drive(t, l, build(t, s, &steps.Env{Slots: l, Flow: run}), l.row(nil)), `{"n":12}`,
		`error: output n of flow f: expected int, got "x"`, `error: output n of flow f: expected int, got null`)
}

func BenchmarkTransform(b *testing.B) {
	l := declare(b, nil, "price: float", "pieces: int", "total: float")
	r := build(b, transformOf(b, l, "total", "price * pieces"), &steps.Env{Slots: l}).(steps.Step)
	row := l.row(map[string]any{"price": 2.5, "pieces": int64(3)})
	emit := func(*steps.Row) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Process(b.Context(), row, emit); err != nil {
			b.Fatal(err)
		}
	}
}
