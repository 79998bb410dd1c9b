package jq

import (
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// operator translates A op B.
func (t *Translator) operator(op gojq.Operator, a, b *Expr) (*Expr, error) {
	if (op == gojq.OpEq || op == gojq.OpNe) && (a.IsObject && b.IsNil() || b.IsObject && a.IsNil()) {
		return Constant(fmt.Sprint(op == gojq.OpNe), document.Bool), nil
	}
	if a.Member != nil || b.Member != nil {
		return nil, Unsupported(op, "an operand of %s is the whole data", op)
	}
	switch op {
	case gojq.OpAnd:
		return newExpr(document.Bool, precAnd, "%s and %s", t.Truth(a).Wrap(precAnd), t.Truth(b).Wrap(precAnd)), nil
	case gojq.OpOr:
		return newExpr(document.Bool, PrecOr, "%s or %s", t.Truth(a).Wrap(PrecOr), t.Truth(b).Wrap(PrecOr)), nil
	case gojq.OpEq, gojq.OpNe:
		return t.equal(op, a, b)
	case gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return t.order(op, a, b)
	case gojq.OpAdd:
		return t.plus(a, b)
	case gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		return t.arithmetic(op, a, b)
	}
	return nil, Unsupported(op, "operator %s has no counterpart", op)
}

// IsNil reports whether the expression is the constant null.
func (c *Expr) IsNil() bool { return c.Source == "nil" }

// commonType infers the type of one operand from the other.
func commonType(a, b *Expr) {
	if a.Type.Kind == document.Unknown && b.Type.Kind != document.Unknown && b.Type.Kind < document.List {
		a.is(numeric(b.Type.Kind))
	}
	if b.Type.Kind == document.Unknown && a.Type.Kind != document.Unknown && a.Type.Kind < document.List {
		b.is(numeric(a.Type.Kind))
	}
}

// numeric returns the type of a value that is only known to be compared with s: an
// integer can be compared with any number.
func numeric(s document.Kind) document.Kind {
	if s == document.Int {
		return document.Float
	}
	return s
}

// alike reports whether two values have the same type in jq.
func alike(a, b *Expr) bool { return numeric(a.Type.Kind) == numeric(b.Type.Kind) }

func (t *Translator) equal(op gojq.Operator, a, b *Expr) (*Expr, error) {
	sign := map[gojq.Operator]string{gojq.OpEq: "==", gojq.OpNe: "!="}[op]
	if a.IsNil() {
		a, b = b, a
	}
	if b.IsNil() {
		if !a.Nullable && t.Guess && (!a.Type.Declared || a.Unverified && a.Type.Kind != document.Record) {
			a.Type.Optional = true // expected to be absent sometimes
		}
		if a.ComparedWithNull != nil {
			*a.ComparedWithNull = true
		}
		if !a.Nullable {
			return Constant(fmt.Sprint(op == gojq.OpNe), document.Bool), nil
		}
		return newExpr(document.Bool, precCompare, "%s %s nil", a.Wrap(PrecAdd), sign), nil
	}
	commonType(a, b)
	switch {
	case a.empty || b.empty:
		return t.isEmpty(op, a, b)
	case a.Type.Kind >= document.List || b.Type.Kind >= document.List:
		return nil, Unsupported(sign, "%s compares lists or records", sign)
	case !alike(a, b) && a.Nullable && b.Nullable:
		return nil, Unsupported(sign, "%s compares %s with %s, both of which may be null", sign, a.Type.Kind.Noun(), b.Type.Kind.Noun())
	case !alike(a, b):
		return Constant(fmt.Sprint(op == gojq.OpNe), document.Bool), nil
	}
	return newExpr(document.Bool, precCompare, "%s %s %s", a.Wrap(PrecAdd), sign, b.Wrap(PrecAdd)), nil
}

// isEmpty translates a comparison with [].
func (t *Translator) isEmpty(op gojq.Operator, a, b *Expr) (*Expr, error) {
	if a.empty {
		a = b
	}
	switch {
	case !a.is(document.List):
		return Constant(fmt.Sprint(op == gojq.OpNe), document.Bool), nil
	case a.Nullable && op == gojq.OpEq:
		return newExpr(document.Bool, precAnd, "%s != nil and len(%s) == 0", a.Wrap(PrecAdd), a.Source), nil
	case a.Nullable:
		return newExpr(document.Bool, PrecOr, "%s == nil or len(%s) != 0", a.Wrap(PrecAdd), a.Source), nil
	}
	sign := map[gojq.Operator]string{gojq.OpEq: "==", gojq.OpNe: "!="}[op]
	return newExpr(document.Bool, precCompare, "len(%s) %s 0", a.Source, sign), nil
}

// order translates comparisons. In jq null is less than everything else.
func (t *Translator) order(op gojq.Operator, a, b *Expr) (*Expr, error) {
	commonType(a, b)
	if a.Type.Kind == document.Unknown && !a.Type.Declared {
		if !t.AssumeType(a, document.Float) {
			return newExpr(document.Bool, precCompare, "%s %s %s", a.Source, op, b.Source), nil
		}
		commonType(a, b)
	}
	sign := op.String()
	switch {
	case a.IsNil() || b.IsNil():
		return nil, Unsupported(sign, "%s compares with null", sign)
	case !alike(a, b):
		return nil, Unsupported(sign, "%s compares %s with %s", sign, a.Type.Kind.Noun(), b.Type.Kind.Noun())
	case a.Type.Kind != document.Text && numeric(a.Type.Kind) != document.Float:
		return nil, Unsupported(sign, "%s compares values that are neither numbers nor strings", sign)
	}
	return compared(op, a, b), nil
}

// compared compares two numbers or strings, null first.
func compared(op gojq.Operator, a, b *Expr) *Expr {
	x, y := a.Wrap(PrecAdd), b.Wrap(PrecAdd)
	core := fmt.Sprintf("%s %s %s", x, op, y)
	if op == gojq.OpLt || op == gojq.OpGe { // mirrored: y > x, y <= x
		x, y, a, b = y, x, b, a
	}
	switch {
	case !a.Nullable && !b.Nullable:
		return newExpr(document.Bool, precCompare, "%s", core)
	case op == gojq.OpGt || op == gojq.OpLt: // x > y
		if b.Nullable {
			core = fmt.Sprintf("%s == nil or %s", y, core)
		}
		if a.Nullable && b.Nullable {
			return newExpr(document.Bool, precAnd, "%s != nil and (%s)", x, core)
		}
		if a.Nullable {
			return newExpr(document.Bool, precAnd, "%s != nil and %s", x, core)
		}
		return newExpr(document.Bool, PrecOr, "%s", core)
	case b.Nullable: // x <= y
		core = fmt.Sprintf("%s != nil and %s", y, core)
		if !a.Nullable {
			return newExpr(document.Bool, precAnd, "%s", core)
		}
	}
	return newExpr(document.Bool, PrecOr, "%s == nil or %s", x, core)
}

// plus translates +, which adds numbers, strings and lists; null is the neutral
// element.
func (t *Translator) plus(a, b *Expr) (*Expr, error) {
	if a.IsNil() {
		return b, nil
	}
	if b.IsNil() {
		return a, nil
	}
	commonType(a, b)
	for _, c := range []*Expr{a, b} {
		if c.Type.Kind == document.Unknown && !c.Type.Declared {
			if a.Type.Kind == document.List || b.Type.Kind == document.List {
				c.is(document.List)
				continue
			}
			if !t.AssumeType(c, document.Text) {
				return &Expr{Source: a.Source + " + " + b.Source, Type: &document.Type{}}, nil
			}
		}
	}
	zero := map[document.Kind]string{document.Text: `""`, document.Int: "0", document.Float: "0", document.List: "[]"}[a.Type.Kind]
	if !alike(a, b) || zero == "" {
		return nil, Unsupported("+", "the operands of + are %s and %s", a.Type.Kind.Noun(), b.Type.Kind.Noun())
	}
	of, ok := document.Join(a.Type, b.Type)
	if !ok {
		return nil, Unsupported("+", "+ concatenates lists of different types")
	}
	sum := &Expr{Prec: PrecAdd, Type: of}
	x, y := a.Wrap(PrecAdd), b.Wrap(PrecMultiply)
	if a.Nullable {
		x = a.or(zero)
	}
	if b.Nullable {
		y = b.or(zero)
	}
	sum.Source = x + " + " + y
	if a.Type.Kind == document.List {
		sum.Source, sum.Prec = fmt.Sprintf("concat(%s, %s)", x, y), PrecAtom
	}
	if a.Nullable && b.Nullable { // null + null is null
		sum.Source = fmt.Sprintf("%s == nil and %s == nil ? nil : %s", a.Wrap(PrecAdd), b.Wrap(PrecAdd), sum.Source)
		sum.Prec, sum.Nullable = precIf, true
	}
	return sum, nil
}

func (t *Translator) arithmetic(op gojq.Operator, a, b *Expr) (*Expr, error) {
	sign := op.String()
	if op == gojq.OpMod { // an integer operation
		a.is(document.Int)
		b.is(document.Int)
	}
	commonType(a, b)
	if !a.number() || !b.number() {
		return nil, Unsupported(sign, "the operands of %s are %s and %s; only numbers can be translated", sign, a.Type.Kind.Noun(), b.Type.Kind.Noun())
	}
	s := document.Int
	if op == gojq.OpDiv || a.Type.Kind == document.Float || b.Type.Kind == document.Float {
		s = document.Float
	}
	switch op {
	case gojq.OpSub:
		return newExpr(s, PrecAdd, "%s - %s", a.Wrap(PrecAdd), b.Wrap(PrecMultiply)), nil
	case gojq.OpMod:
		if s != document.Int {
			return nil, Unsupported("%", "the operands of %% may not be integers")
		}
		fallthrough
	default:
		return newExpr(s, PrecMultiply, "%s %s %s", a.Wrap(PrecMultiply), sign, b.Wrap(PrecUnary)), nil
	}
}

// alternative translates A // B: B if A is null or false.
func (t *Translator) alternative(q *gojq.Query, dot *Expr) (*Expr, error) {
	a, err := t.plainValue(q.Left, dot)
	if err != nil {
		return nil, err
	}
	b, err := t.plainValue(q.Right, dot)
	if err != nil {
		return nil, err
	}
	if t.Guess && !a.Nullable && !a.Type.Declared {
		a.Type.Optional = true
	}
	if t.Guess && a.Root != nil && !a.Root.Declared { // the whole may be absent as well
		a.Root.Optional = true
	}
	if b.Type.Kind == document.Int && a.Type.Kind == document.Unknown {
		a.is(document.Float)
	}
	commonType(a, b)
	if b.Type.Kind == document.List && a.Type.Kind == document.Unknown {
		a.is(document.List)
	}
	of, ok := document.Join(a.Type, b.Type)
	switch {
	case !ok && !b.IsNil():
		return nil, Unsupported("//", "it returns %s or %s; a variable has one type", a.Type.Kind.Noun(), b.Type.Kind.Noun())
	case a.Type.Kind == document.Bool && b.Type.Kind == document.Bool:
		return &Expr{Source: t.Truth(a).Wrap(PrecOr) + " or " + b.Wrap(PrecOr), Prec: PrecOr, Type: of, Nullable: b.Nullable}, nil
	case a.Type.Kind == document.Bool:
		return nil, Unsupported("//", "the left operand is a boolean, the right one is not")
	case !a.Nullable:
		return a, nil
	case b.IsNil():
		return a, nil
	}
	plain := *of
	plain.Optional = b.Type.Optional
	bare := a.Wrap(PrecAtom) + " ?? " + b.Wrap(PrecAtom)
	return &Expr{Source: "(" + bare + ")", bare: bare, Prec: PrecAtom, Type: &plain, Nullable: b.Nullable}, nil
}
