package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// formula is a compiled expression of a step.
type formula struct {
	expr    *spec.Expression
	vars    []slot // the variables that it reads
	program *expression.Program
	bare    bool // whether it is only the name of a variable, whose value is used unchanged
}

// formula compiles an expression whose variables are linked.
func (e *Env) formula(x *spec.Expression) (*formula, expression.Result, error) {
	return newFormula(x, e.slot)
}

func newFormula(x *spec.Expression, slotOf func(*spec.Variable) (slot, error)) (*formula, expression.Result, error) {
	f := &formula{expr: x}
	read, err := expression.Parse(x.Text)
	if err != nil {
		return nil, expression.Result{}, f.wrapError(err)
	}
	types := map[string]spec.Type{}
	for _, ref := range x.Vars {
		s, err := slotOf(ref.To)
		if err != nil {
			return nil, expression.Result{}, f.wrapError(err)
		}
		f.vars = append(f.vars, s)
		types[ref.ID] = expression.TypeOf(ref.To)
	}
	f.bare = read.Variable() != ""
	program, result, err := read.Compile(types, expression.Writer{
		Text: func(v any) string { return value.Text(fromExpr(v)) },
		JSON: func(v any) string { return string(value.JSON(fromExpr(v))) },
	})
	if err != nil {
		return nil, expression.Result{}, f.wrapError(err)
	}
	f.program = program
	return f, result, nil
}

// maxShownExpression is how many characters of an expression an error shows.
const maxShownExpression = 60

// wrapError adds the expression and its position to an error.
func (f *formula) wrapError(err error) error {
	text := []rune(f.expr.Text)
	if len(text) > maxShownExpression {
		text = append(text[:maxShownExpression], '…')
	}
	place := ""
	if !f.expr.Span.IsZero() {
		place = " (" + f.expr.Span.String() + ")"
	}
	return fmt.Errorf("the expression %s%s: %w", string(text), place, err)
}

// condition compiles an expression that is true or false.
func (e *Env) condition(x *spec.Expression) (*formula, error) {
	f, result, err := e.formula(x)
	if err == nil && !result.IsBool() {
		err = f.wrapError(fmt.Errorf("it has type %s, not boolean", result))
	}
	return f, err
}

// holds evaluates a condition. null is neither true nor false.
func (f *formula) holds(ctx context.Context, row *Row) (bool, error) {
	v, err := f.value(ctx, row)
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, f.wrapError(fmt.Errorf("it has the value %s, not true or false", value.Describe(v)))
	}
	return yes, nil
}

// value evaluates the expression on a row and returns a run-time value.
func (f *formula) value(ctx context.Context, row *Row) (any, error) {
	if f.bare {
		return f.vars[0].orNull(row), nil
	}
	values := make(map[string]any, len(f.vars))
	for _, s := range f.vars {
		v, err := s.declared(row)
		if err != nil {
			return nil, f.wrapError(err)
		}
		values[s.of.ID] = toExpr(v)
	}
	v, err := f.program.Run(ctx, values)
	if err == nil {
		err = expression.Measure(v)
	}
	if err != nil {
		return nil, f.wrapError(err)
	}
	return fromExpr(v), nil
}

// declared returns the variable's value as one of its declared type, which expressions
// rely on: the result of a path or a tool may have another type. An unset optional
// variable is null.
func (s slot) declared(row *Row) (any, error) {
	v := row.Values[s.at]
	switch {
	case (v == nil || v == any(value.Unset)) && s.of.IsOptional():
		return nil, nil
	case v == any(value.Unset):
		return nil, fmt.Errorf("variable %s is not set", s.of.ID)
	case v == nil:
		return nil, fmt.Errorf("variable %s is null; declare it as %s? if it may be", s.of.ID, s.of.Type)
	}
	v, err := value.Assign(s.of, v)
	if err != nil {
		return nil, fmt.Errorf("variable %s: %w", s.of.ID, err)
	}
	return v, nil
}

// The locations of times without a zone and of dates. They are compared by address, so
// that such a value can be converted back.
var (
	clock    = time.FixedZone("UTC", 0)
	calendar = time.FixedZone("UTC", 0)
)

// toExpr converts a run-time value to one of expressions: int for int64, a map for a
// record, time.Time for a date and a datetime, text for a time of day.
func toExpr(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case json.Number:
		if x, err := v.Float64(); err == nil {
			return x
		}
		return v.String()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = toExpr(v[i])
		}
		return out
	case *value.Record:
		out := make(map[string]any, v.Len())
		for name, x := range v.All() {
			out[name] = toExpr(x)
		}
		return out
	case chat.Message:
		return expression.NewMessage(v)
	case value.Date:
		return time.Date(v.Year, v.Month, v.Day, 0, 0, 0, 0, calendar)
	case value.DateTime:
		if v.Zoned {
			return v.Time
		}
		return v.Time.In(clock)
	case value.Time:
		return v.String()
	}
	return v
}

// fromExpr converts the value of an expression to a run-time value.
func fromExpr(v any) any {
	switch v := v.(type) {
	case nil, string, bool, float64, []byte:
		return v
	case int:
		return int64(v)
	case expression.Message:
		return v.Original()
	case time.Time:
		return toTime(v)
	case time.Duration:
		return v.String()
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Slice, reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			out[i] = fromExpr(r.Index(i).Interface())
		}
		return out
	case reflect.Map:
		out := make(map[string]any, r.Len())
		for entries := r.MapRange(); entries.Next(); {
			out[value.Text(fromExpr(entries.Key().Interface()))] = fromExpr(entries.Value().Interface())
		}
		return value.FromGo(out)
	}
	return value.FromGo(v)
}

// toTime converts a time of an expression; a date that is still midnight is a date.
func toTime(t time.Time) any {
	h, m, s := t.Clock()
	switch {
	case t.Location() == calendar && h+m+s+t.Nanosecond() == 0:
		return value.Date{Year: t.Year(), Month: t.Month(), Day: t.Day()}
	case t.Location() == calendar || t.Location() == clock:
		return value.DateTime{Time: t.UTC()}
	}
	return value.FromGo(t)
}

// Condition is a condition over values outside of a flow, such as that of a test on
// a flow's results. It is safe for concurrent use.
type Condition struct {
	formula *formula
	vars    []*spec.Variable
}

// NewCondition compiles a condition whose variables are linked.
func NewCondition(x *spec.Expression) (*Condition, error) {
	c := &Condition{}
	f, result, err := newFormula(x, func(v *spec.Variable) (slot, error) {
		c.vars = append(c.vars, v)
		return slot{len(c.vars) - 1, v}, nil
	})
	if err != nil {
		return nil, err
	}
	if !result.IsBool() {
		return nil, f.wrapError(fmt.Errorf("it has type %s, not boolean", result))
	}
	c.formula = f
	return c, nil
}

// Variables lists the variables that the condition reads.
func (c *Condition) Variables() []*spec.Variable { return c.vars }

// Holds evaluates the condition; get returns a variable's value by its id.
func (c *Condition) Holds(ctx context.Context, get func(id string) (any, bool)) (bool, error) {
	row := &Row{Values: make([]any, len(c.vars))}
	for i, v := range c.vars {
		found, ok := get(v.ID)
		if !ok {
			found = value.Unset
		}
		row.Values[i] = found
	}
	return c.formula.holds(ctx, row)
}
