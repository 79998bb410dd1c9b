// Package jsonpath reads the paths of FieldExtractors: JSONPath, and what
// documents written for QType (Python) use beside it: arithmetic between paths,
// numbers and texts ($.price * 2, $.first + ' ' + $.last), and functions in
// backquotes ($.items.`len`). The checker and the step read them alike.
package jsonpath

import (
	"fmt"
	"strings"

	"github.com/ohler55/ojg/jp"
)

// Find lists what a plain path finds in a document, in its order. Objects are
// map[string]any or jp.Keyed; nothing is changed.
type Find func(path jp.Expr, doc any) []any

// Path is a path that was read. It is safe for concurrent use.
type Path struct{ root node }

// node is a part of a path; many finds and what each of them is.
type node interface {
	find(doc any, with Find) ([]any, error)
}

// Parse reads a path; a leading $ may be left out.
func Parse(text string) (path *Path, err error) {
	defer func() { // the library's parser must not end the program, whatever it meets
		if p := recover(); p != nil {
			path, err = nil, fmt.Errorf("it is not a JSONPath")
		}
	}()
	p := &parser{text: strings.TrimSpace(text)}
	if p.text == "" {
		return nil, fmt.Errorf("it is empty")
	}
	root, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.text) {
		return nil, fmt.Errorf("%q is not expected", p.text[p.at:])
	}
	if _, constant := root.(literal); constant {
		return nil, fmt.Errorf("it names nothing")
	}
	return &Path{root}, nil
}

// Find lists what the path finds, in the document's order. The error says why a
// function cannot work on what it was given. Values that cannot be added or
// multiplied are as if they were not found.
func (p *Path) Find(doc any, with Find) ([]any, error) { return p.root.find(doc, with) }

// plain is a JSONPath.
type plain struct{ path jp.Expr }

func (n plain) find(doc any, with Find) ([]any, error) { return with(n.path, doc), nil }

// literal is a number or a text.
type literal struct{ value any }

func (n literal) find(any, Find) ([]any, error) { return []any{n.value}, nil }

// functionCall is a function of each value that a path finds.
type functionCall struct {
	of   node
	name string // as it is written
	do   function
}

func (n functionCall) find(doc any, with Find) ([]any, error) {
	found, err := n.of.find(doc, with)
	var all []any
	for _, v := range found {
		if err != nil {
			break
		}
		var made []any
		made, err = n.do(v)
		all = append(all, made...)
	}
	if err != nil {
		return nil, fmt.Errorf("`%s`: %w", n.name, err)
	}
	return all, nil
}

// continuation is a path that begins at what another finds.
type continuation struct {
	of   node
	path jp.Expr
}

func (n continuation) find(doc any, with Find) ([]any, error) {
	found, err := n.of.find(doc, with)
	var all []any
	for _, v := range found {
		all = append(all, with(n.path, v)...)
	}
	return all, err
}

// operation is arithmetic: pair by pair where both sides find as much, with
// each where one side is a constant, else nothing.
type operation struct {
	sign        byte
	left, right node
}

func (n operation) find(doc any, with Find) ([]any, error) {
	left, err := n.left.find(doc, with)
	if err != nil {
		return nil, err
	}
	right, err := n.right.find(doc, with)
	if err != nil {
		return nil, err
	}
	left, right = n.even(left, right)
	if len(left) != len(right) {
		return nil, nil
	}
	all := make([]any, len(left))
	for i := range left {
		v, ok := evaluate(n.sign, left[i], right[i])
		if !ok {
			return nil, nil
		}
		all[i] = v
	}
	return all, nil
}

// even repeats the side that is a constant as often as the other finds something.
func (n operation) even(left, right []any) (l, r []any) {
	if _, constant := n.left.(literal); constant {
		left = repeated(left[0], len(right))
	}
	if _, constant := n.right.(literal); constant {
		right = repeated(right[0], len(left))
	}
	return left, right
}

func repeated(v any, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = v
	}
	return all
}
