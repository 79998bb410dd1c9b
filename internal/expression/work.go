package expression

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/ast"
)

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
