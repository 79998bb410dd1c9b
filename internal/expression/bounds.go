package expression

import (
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
	// budget is how many elements of lists and records one run of a formula may make.
	budget = 1_000_000
	// longestText is the longest text, in bytes, that a formula may make.
	longestText = 16 << 20
	// perValue is what one value of a list or record counts as, in bytes.
	perValue = 16
	// maxDepth is how far lists and records may hold each other.
	maxDepth = 200
	// plus is the name under which + on texts is checked; no document can write it.
	plus = "+"
)

var (
	errTooLong = fmt.Errorf("the text would be longer than %d MiB", longestText>>20)
	errTooDeep = errors.New("the value is nested too deeply")
)

// Writer says how values are written inside of a formula, so that string(x) is
// what a template would show.
type Writer struct {
	Text func(any) string // string(x)
	JSON func(any) string // toJSON(x)
}

// functions are the built-in functions that could make a huge value of small
// ones, each behind a look at how large the result would be, and + for texts.
// The library's budget counts elements, not the bytes of texts.
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

// bounded puts a check before a function.
func bounded(f builtin.Function, check func([]any) error) *builtin.Function {
	fast, plain, safe := f.Fast, f.Func, f.Safe
	// Of functions that are not its own the library calls Func alone.
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

// writeBy makes a function of one value write by another function.
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
	if n > longestText {
		return errTooLong
	}
	return nil
}

// product is a*b, or more than any text may have.
func product(a, b int) int {
	if b > 0 && a > longestText/b {
		return longestText + 1
	}
	return a * b
}

func repeatable(args []any) error {
	text, ok := args[0].(string)
	if !ok {
		return errors.New("repeat needs a text")
	}
	return shorten(product(len(text), vmruntime.ToInt(args[1])))
}

func replaceable(args []any) error {
	if len(args) < 3 {
		return nil // the function says what is missing
	}
	var texts [3]string
	for i := range texts {
		text, ok := args[i].(string)
		if !ok {
			return errors.New("replace needs texts")
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
		return errors.New("join needs a list of texts")
	}
	for i := range list.Len() {
		text, ok := list.Index(i).Interface().(string)
		if !ok {
			return fmt.Errorf("join needs texts, but element %d is none", i)
		}
		if n += len(text) + len(glue); n > longestText {
			return errTooLong
		}
	}
	return nil
}

// measurable refuses what would be too large to write out: a list may hold one
// value many times, and so on down.
func measurable(args []any) error { return Measure(args[0]) }

// Measure tells why a value that a formula made cannot be used: it is too large
// or too deep, or holds what is no finite number, such as 1/0.
func Measure(v any) error {
	left := longestText
	return measure(v, &left, 0)
}

func measure(v any, left *int, depth int) error {
	if *left -= perValue; *left < 0 {
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
			return errors.New("it gives no finite number: something is divided by zero or too large")
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

// add is + where one side may be a text.
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

// adder puts the checked + in place of the library's where a text may be added.
type adder struct{}

// Visit looks at one node, after the nodes below it.
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
