// Package expression parses, type-checks and evaluates the expressions of a
// document: the conditions of Switch and Loop and the values of Transform. The
// language is that of github.com/expr-lang/expr, whose types do not leave this
// package. Validation and steps use the same functions and types, so an expression
// runs as it was checked.
//
// An expression can only access variables: no files, no network, no environment.
// A value that may be null (an optional variable or field) has any type and is nil
// if it is null; price ?? 0 has a default. A variable that is not optional always
// has its declared type.
package expression

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// maxLength limits the size of an expression in bytes, as the recursion of the
// parser depends on it.
const maxLength = 4000

// All is the name of all variables at once in the library. It is not available, as
// the variables that an expression reads could not be determined.
const All = "$env"

// Error is an error in an expression with its position.
type Error struct {
	From    int    // start of the invalid part, in bytes
	Len     int    // length in bytes; 0 if only the start is known
	Whole   bool   // the error concerns the whole expression
	Message string // what is wrong, with the type names of the language
	Hint    string // what to do; usually empty
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Expression is a parsed expression.
type Expression struct {
	text string
	tree *parser.Tree
}

// Parse parses an expression; its error is an *Error.
func Parse(text string) (*Expression, error) {
	if len(text) > maxLength {
		return nil, &Error{Whole: true, Message: fmt.Sprintf("an expression has at most %d characters", maxLength)}
	}
	var tree *parser.Tree
	err := guarded(func() (err error) {
		tree, err = parser.ParseWithConfig(text, config(nil))
		return err
	})
	if err != nil {
		return nil, newError(text, err)
	}
	return &Expression{text: text, tree: tree}, nil
}

// config returns the configuration of the library. Without types, names are not
// resolved.
func config(env map[string]spec.Type) *conf.Config {
	c := conf.CreateNew()
	if env != nil {
		c.WithEnv(fieldTypes(env))
	}
	for name, f := range functions(Writer{}) {
		c.Functions[name] = f
	}
	return c
}

// guarded converts a panic of the library to an error.
func guarded(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("not an expression")
		}
	}()
	return f()
}

// Name is an identifier that refers to a variable or function.
type Name struct {
	ID     string // the identifier
	From   int    // first occurrence, in bytes
	Len    int    // length in bytes
	Called bool   // called as a function but not defined
}

// Names returns the identifiers of the expression in order of their first
// occurrence, without let variables and built-in functions.
func (f *Expression) Names() []Name {
	found := names{called: map[*ast.IdentifierNode]bool{}, defined: map[string]bool{}}
	ast.Walk(&f.tree.Node, &found)
	slices.SortStableFunc(found.used, func(a, b *ast.IdentifierNode) int { return a.Location().From - b.Location().From })
	known := functions(Writer{})
	var all []Name
	for _, id := range found.used {
		_, isFunction := known[id.Value]
		if found.defined[id.Value] || isFunction && found.called[id] ||
			slices.ContainsFunc(all, func(n Name) bool { return n.ID == id.Value }) {
			continue
		}
		from, length := part(f.text, id.Location())
		all = append(all, Name{ID: id.Value, From: from, Len: length, Called: found.called[id]})
	}
	return all
}

// Functions returns the names of the built-in functions.
func Functions() []string { return slices.Clone(builtin.Names) }

// names collects identifiers.
type names struct {
	used    []*ast.IdentifierNode
	called  map[*ast.IdentifierNode]bool // identifiers that are called
	defined map[string]bool              // by let
}

// Visit visits a node.
func (n *names) Visit(node *ast.Node) {
	switch x := (*node).(type) {
	case *ast.IdentifierNode:
		n.used = append(n.used, x)
	case *ast.CallNode:
		if f, ok := x.Callee.(*ast.IdentifierNode); ok {
			n.called[f] = true
		}
	case *ast.VariableDeclaratorNode:
		n.defined[x.Name] = true
	}
}

// Variable returns the name of the variable if the expression is only a variable,
// else "".
func (f *Expression) Variable() string {
	if id, ok := f.tree.Node.(*ast.IdentifierNode); ok && id.Value != All {
		return id.Value
	}
	return ""
}

// Check returns the type of the result for variables of the given types; its error
// is an *Error.
func (f *Expression) Check(env map[string]spec.Type) (Result, error) {
	var t reflect.Type
	err := guarded(func() (err error) {
		t, err = checker.Check(f.tree, config(env))
		return err
	})
	if err != nil {
		return Result{}, newError(f.text, err)
	}
	return Result{t}, nil
}

// newError converts an error of the library.
func newError(text string, err error) *Error {
	var at *file.Error
	if !errors.As(err, &at) {
		return &Error{Whole: true, Message: translateError(err.Error())}
	}
	e := &Error{Message: translateError(at.Message)}
	e.From, e.Len = part(text, at.Location)
	if strings.Contains(at.Message, "value out of range") {
		e.Message = "the number is too large"
		const digits = "0123456789"
		e.From = len(strings.TrimRight(text[:e.From], digits))
		e.Len = len(text) - e.From - len(strings.TrimLeft(text[e.From:], digits))
	}
	if strings.Contains(at.Message, `Operator("=")`) {
		e.Hint = "write == to compare"
	}
	return e
}

// part converts a location to bytes; the library counts characters.
func part(text string, at file.Location) (from, length int) {
	from = textfmt.ByteOffset(text, at.From)
	to := max(textfmt.ByteOffset(text, at.To), from)
	if from == len(text) { // mark the last word at the end of the text
		from = strings.LastIndexAny(strings.TrimSpace(text), " \t\n(") + 1
	}
	return from, max(to-from, 0)
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	text    string
	program *vm.Program
}

// Compile compiles the expression for variables of the given types.
func (f *Expression) Compile(env map[string]spec.Type, w Writer) (*Program, Result, error) {
	result, err := f.Check(env)
	if err != nil {
		return nil, Result{}, err
	}
	p := &Program{text: f.text}
	err = guarded(func() (err error) {
		fields := fieldTypes(env)
		fields[state] = types.TypeOf(&work{})
		p.program, err = expr.Compile(f.text, expr.Env(fields), expr.Patch(adder{}), expr.Patch(counter{}), func(c *conf.Config) {
			c.Functions[tick] = &builtin.Function{Name: tick, Func: count, Validate: countType}
			for name, function := range functions(w) {
				c.Functions[name] = function
			}
		})
		return err
	})
	if err != nil {
		return nil, Result{}, newError(f.text, err)
	}
	return p, result, nil
}

// Run evaluates the expression. values must have the compiled types: string, int,
// float64, bool, []any, map[string]any, time.Time, Message; nil only for optional
// ones. Run adds its state to them. Its error is an *Error, or the cause of the end of ctx.
func (p *Program) Run(ctx context.Context, values map[string]any) (any, error) {
	machine := vm.VM{MemoryBudget: budget}
	values[state] = &work{ctx: ctx, left: maxWork}
	v, err := machine.Run(p.program, values)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, newError(p.text, err)
	}
	return v, nil
}

// translateError replaces the terms of the library by those of the language, such
// as the names of Go types.
func translateError(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if strings.Contains(message, "integer divide by zero") {
		return "a number cannot be divided by 0"
	}
	if strings.Contains(message, "interface conversion") || strings.Contains(message, "reflect") || strings.Contains(message, "runtime error") {
		return "a value has the wrong type or is null"
	}
	if rest, found := strings.CutPrefix(message, "unexpected token "); found {
		what, value, hasValue := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		switch {
		case what == "EOF":
			return "unexpected end of the expression"
		case hasValue:
			return "unexpected " + value
		}
	}
	if field, found := strings.CutPrefix(message, "unknown field "); found {
		return fmt.Sprintf("there is no field %q", field)
	}
	if field, of, found := strings.Cut(strings.TrimPrefix(message, "cannot fetch "), " from "); found && strings.HasPrefix(message, "cannot fetch ") {
		return fmt.Sprintf("there is no field %q in %s", field, translateError(of))
	}
	if operands, found := strings.CutPrefix(message, "invalid operation: "); found {
		// A run-time error such as int / <nil>.
		if words := strings.Fields(strings.ReplaceAll(operands, "interface {}", "any")); len(words) == 3 {
			return typeWords().Replace(fmt.Sprintf("%s is not defined for %s and %s", words[1], words[0], words[2]))
		}
	}
	message = strings.NewReplacer("invalid operation: ", "", " (mismatched types ", " is not defined for ", " (mismatched type ", " is not defined for ").Replace(message)
	if strings.Contains(message, " is not defined for ") {
		message = strings.TrimSuffix(message, ")")
	}
	return typeWords().Replace(message)
}

// typeWords replaces the names of Go types. The first match counts, so longer names
// precede their prefixes.
func typeWords() *strings.Replacer {
	return strings.NewReplacer(
		"map[string]interface {}", "a record", "map[string]any", "a record", "map[any]any", "a record", "map[string]string", "a record",
		"[]interface {}", "a list", "[]any", "a list", "[]string", "a list", "[]int", "a list", "[]uint8", "bytes",
		"interface {}", "any", "<nil>", "null", "nil", "null", "type expression.Message", "a ChatMessage", "expression.Message", "a ChatMessage",
		"time.Time", "a datetime", "time.Duration", "a duration",
		"float64", "float", "int64", "int", "string", "text", "boolean", "boolean", "bool", "boolean")
}
