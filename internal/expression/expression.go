// Package expression reads, checks and works out the formulas of a document:
// the conditions of Switch and Loop and the values of Transform. The language is
// that of github.com/expr-lang/expr; its types stay inside of this package. The
// checker and the steps use the same functions and the same types, so that what
// was checked is what runs.
//
// A formula sees the variables that it names and nothing else: no file, no
// network, no environment. What may be null (an optional variable, a field with
// ?) is of any type and is nil where it is null; price ?? 0 gives it a value. A
// variable that is not optional has its declared type, always.
package expression

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/qtype-dev/qtype/spec"
)

// maxLength bounds a formula, in bytes: the parser's depth grows with it.
const maxLength = 4000

// All is the name by which the library knows all variables at once. It is no
// variable here: nobody could tell what the formula reads.
const All = "$env"

// Error is a fault of a formula and the part of its text that is at fault.
type Error struct {
	From    int    // where the part begins, in bytes
	Len     int    // how long it is, in bytes; 0 where only its beginning is known
	Whole   bool   // the fault is the whole formula's
	Message string // what is wrong, in the language's terms
	Hint    string // what to do about it; mostly empty
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Expression is an expression that has been read.
type Expression struct {
	text string
	tree *parser.Tree
}

// Parse reads a formula; its error is an *Error.
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
		return nil, fault(text, err)
	}
	return &Expression{text: text, tree: tree}, nil
}

// config is how formulas are read and checked; with no types the names are not looked at.
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

// guarded makes an error of a panic: the library must not end the program,
// whatever it meets.
func guarded(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("not an expression")
		}
	}()
	return f()
}

// Name is a word of a formula that stands for a variable or a function.
type Name struct {
	ID     string // the word
	From   int    // where it stands first, in bytes
	Len    int    // how long it is there, in bytes
	Called bool   // it is called as a function, and is none
}

// Names lists what a formula names, each once, in the order of its text. What
// let defines and the built-in functions are left out.
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

// Functions lists the names of the functions that formulas can call.
func Functions() []string { return slices.Clone(builtin.Names) }

// names collects what a formula names.
type names struct {
	used    []*ast.IdentifierNode
	called  map[*ast.IdentifierNode]bool // functions
	defined map[string]bool              // by let
}

// Visit looks at one node.
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

// Variable is the name of the variable that is the whole formula; empty where
// the formula is more than that.
func (f *Expression) Variable() string {
	if id, ok := f.tree.Node.(*ast.IdentifierNode); ok && id.Value != All {
		return id.Value
	}
	return ""
}

// Check answers what kind of value the formula gives, where its names are of
// the given types; its error is an *Error.
func (f *Expression) Check(env map[string]spec.Type) (Result, error) {
	var t reflect.Type
	err := guarded(func() (err error) {
		t, err = checker.Check(f.tree, config(env))
		return err
	})
	if err != nil {
		return Result{}, fault(f.text, err)
	}
	return Result{t}, nil
}

// fault puts an error of the library into the language's terms.
func fault(text string, err error) *Error {
	var at *file.Error
	if !errors.As(err, &at) {
		return &Error{Whole: true, Message: translateError(err.Error())}
	}
	e := &Error{Message: translateError(at.Message)}
	e.From, e.Len = part(text, at.Location)
	if strings.Contains(at.Message, `Operator("=")`) {
		e.Hint = "write == to compare"
	}
	return e
}

// part is a location in bytes; the library counts characters.
func part(text string, at file.Location) (from, length int) {
	from = byteOf(text, at.From)
	to := max(byteOf(text, at.To), from)
	if from == len(text) { // the end of the text: its last word is meant
		from = strings.LastIndexAny(strings.TrimSpace(text), " \t\n(") + 1
	}
	return from, max(to-from, 0)
}

// byteOf is the offset of the n-th character.
func byteOf(text string, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
