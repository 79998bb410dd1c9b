package expression

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	vmruntime "github.com/expr-lang/expr/vm/runtime"
)

const (
	// budget limits the elements of lists and records that a run can create.
	budget = 1_000_000
	// maxText is the maximum size in bytes of a string that an expression can
	// create.
	maxText = 16 << 20
	// valueSize is the assumed size in bytes of an element of a list or record.
	valueSize = 16
	// maxDepth limits the nesting of lists and records.
	maxDepth = 200
	// plus is the name of the function that + on strings is compiled to. Documents
	// cannot write it.
	plus = "+"
)

var (
	errTooLong = fmt.Errorf("the text would exceed %d MiB", maxText>>20)
	errTooDeep = errors.New("the value is nested too deeply")
)

// Writer formats values in expressions, so that string(x) returns the same text as
// a template.
type Writer struct {
	Text func(any) string // the result of string(x)
	JSON func(any) string // the result of toJSON(x)
}

// functions returns the built-in functions that can create huge values from small
// ones, with a check of the size of the result, and + for strings. The library
// limits elements but not the bytes of strings.
func functions(w Writer) map[string]*builtin.Function {
	table := map[string]*builtin.Function{plus: {Name: plus, Func: add, Validate: addType}}
	for name, check := range map[string]func([]any) error{
		"repeat": repeatable, "replace": replaceable, "join": joinable, "flatten": measurable,
		"string": measurable, "toJSON": measurable,
	} {
		table[name] = bounded(*builtin.Builtins[builtin.Index[name]], check)
	}
	writeBy(table["string"], w.Text)
	writeBy(table["toJSON"], w.JSON)
	return table
}

// bounded adds a check to a function.
func bounded(f builtin.Function, check func([]any) error) *builtin.Function {
	fast, plain, safe := f.Fast, f.Func, f.Safe
	// The library calls only Func of functions that are not its own.
	f.Fast, f.Safe = nil, nil
	f.Func = func(args ...any) (any, error) {
		if err := check(args); err != nil {
			return nil, err
		}
		switch {
		case plain != nil:
			return plain(args...)
		case safe != nil:
			v, _, err := safe(args...)
			return v, err
		}
		return fast(args[0]), nil
	}
	return &f
}

// writeBy replaces the implementation of a function of one value.
func writeBy(f *builtin.Function, write func(any) string) {
	if write == nil {
		return
	}
	f.Func = func(args ...any) (any, error) {
		if err := measurable(args); err != nil {
			return nil, err
		}
		return write(args[0]), nil
	}
}

func shorten(n int) error {
	if n > maxText {
		return errTooLong
	}
	return nil
}

// product returns a*b, at most one more than the maximum size of a string.
func product(a, b int) int {
	if b > 0 && a > maxText/b {
		return maxText + 1
	}
	return a * b
}

func repeatable(args []any) error {
	text, ok := args[0].(string)
	if !ok {
		return errors.New("repeat needs text")
	}
	return shorten(product(len(text), vmruntime.ToInt(args[1])))
}

func replaceable(args []any) error {
	if len(args) < 3 {
		return nil // the function reports what is missing
	}
	var texts [3]string
	for i := range texts {
		text, ok := args[i].(string)
		if !ok {
			return errors.New("replace needs text")
		}
		texts[i] = text
	}
	times := utf8.RuneCountInString(texts[0]) + 1
	if texts[1] != "" {
		times = strings.Count(texts[0], texts[1])
	}
	return shorten(len(texts[0]) + product(times, len(texts[2])))
}

func joinable(args []any) error {
	n, glue := 0, ""
	if len(args) > 1 {
		glue, _ = args[1].(string)
	}
	list := reflect.ValueOf(args[0])
	if list.Kind() != reflect.Slice {
		return errors.New("join needs a list of text")
	}
	for i := range list.Len() {
		text, ok := list.Index(i).Interface().(string)
		if !ok {
			return fmt.Errorf("join: element %d is not text", i)
		}
		if n += len(text) + len(glue); n > maxText {
			return errTooLong
		}
	}
	return nil
}

// measurable checks whether a value can be written as text. A list can contain the
// same value many times, on every level.
func measurable(args []any) error { return Measure(args[0]) }

// Measure returns an error if the result of an expression cannot be used because it
// is too large, too deep, or contains a number that is not finite, such as 1/0.
func Measure(v any) error {
	left := maxText
	return measure(v, &left, 0)
}

func measure(v any, left *int, depth int) error {
	if *left -= valueSize; *left < 0 {
		return errors.New("the value is too large")
	}
	if depth > maxDepth {
		return errTooDeep
	}
	switch v := v.(type) {
	case string:
		*left -= len(v)
		return nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return errors.New("the result is not a finite number: division by zero or overflow")
		}
		return nil
	case []byte:
		*left -= len(v)
		return nil
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			if err := measure(r.Index(i).Interface(), left, depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entries := r.MapRange(); entries.Next(); {
			if err := measure(entries.Value().Interface(), left, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// add implements + if an operand may be a string.
func add(args ...any) (any, error) {
	a, isText := args[0].(string)
	b, too := args[1].(string)
	if !isText || !too {
		return vmruntime.Add(args[0], args[1]), nil
	}
	if err := shorten(len(a) + len(b)); err != nil {
		return nil, err
	}
	return a + b, nil
}

func addType(args []reflect.Type) (reflect.Type, error) {
	for _, t := range args {
		if t != nil && t.Kind() == reflect.String {
			return t, nil
		}
	}
	return reflect.TypeFor[any](), nil
}

// adder replaces + by the checked function if an operand may be a string.
type adder struct{}

// Visit visits a node after its children.
func (adder) Visit(node *ast.Node) {
	x, ok := (*node).(*ast.BinaryNode)
	if !ok || x.Operator != "+" || !mayBeText(x.Left) && !mayBeText(x.Right) {
		return
	}
	callee := &ast.IdentifierNode{Value: plus}
	callee.SetLocation(x.Location())
	ast.Patch(node, &ast.CallNode{Callee: callee, Arguments: []ast.Node{x.Left, x.Right}})
}

func mayBeText(n ast.Node) bool {
	t := n.Type()
	return t == nil || t.Kind() == reflect.String || t.Kind() == reflect.Interface
}

const (
	// maxWork limits the bytes of all values that a run makes, also of values that it
	// drops.
	maxWork = 256 << 20
	// maxSteps limits how often the functions of a run are called, and the bodies of its loops evaluated.
	maxSteps = 10_000_000
	// tick is the name of the function that counts the work, and state the one of its argument in
	// the environment. Documents cannot write them.
	tick, state = "tick!", "state!"
	// stepsPerCheck is the number of steps after which a run looks whether its context has ended.
	stepsPerCheck = 1024
)

// work is what one run has done. It stops a run whose context ends, or that makes too much.
type work struct {
	ctx   context.Context
	steps int
	left  int // bytes
}

// add counts a value that the run has made, without the elements of lists, which were counted
// when they were made.
func (w *work) add(v any) error {
	if w.steps++; w.steps%stepsPerCheck == 0 {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if w.steps > maxSteps {
			return fmt.Errorf("the expression takes more than %d steps", maxSteps)
		}
	}
	switch v := v.(type) {
	case bool, int, float64, nil:
		return nil
	case string:
		w.left -= len(v)
	case []any:
		w.left -= valueSize * len(v)
	default:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Map {
			w.left -= valueSize * r.Len()
		}
	}
	if w.left < 0 {
		return fmt.Errorf("the expression makes more than %d MiB of values", maxWork>>20)
	}
	return nil
}

// count implements tick: it returns its second argument.
func count(args ...any) (any, error) {
	w, ok := args[0].(*work)
	if !ok {
		return nil, errors.New("no state of the run")
	}
	return args[1], w.add(args[1])
}

// countType returns the type of what is counted.
func countType(args []reflect.Type) (reflect.Type, error) {
	if len(args) < 2 || args[1] == nil {
		return reflect.TypeFor[any](), nil
	}
	return args[1], nil
}

// counter lets the bodies of loops and the results of functions be counted.
type counter struct{}

// Visit visits a node after its children.
func (counter) Visit(node *ast.Node) {
	switch x := (*node).(type) {
	case *ast.PredicateNode:
		x.Node = counted(x.Node)
	case *ast.BuiltinNode:
		ast.Patch(node, counted(x))
	case *ast.CallNode:
		if callee, ok := x.Callee.(*ast.IdentifierNode); ok && callee.Value == tick {
			return
		}
		ast.Patch(node, counted(x))
	}
}

// counted returns a call of tick.
func counted(x ast.Node) ast.Node {
	callee, of := &ast.IdentifierNode{Value: tick}, &ast.IdentifierNode{Value: state}
	callee.SetLocation(x.Location())
	of.SetLocation(x.Location())
	call := &ast.CallNode{Callee: callee, Arguments: []ast.Node{of, x}}
	call.SetLocation(x.Location())
	call.SetType(x.Type())
	return call
}
