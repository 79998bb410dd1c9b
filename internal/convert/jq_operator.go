package convert

import (
	"fmt"

	"github.com/itchyny/gojq"
)

// operator translates A op B.
func (t *jq) operator(op gojq.Operator, a, b *translatedExpr) (*translatedExpr, error) {
	if (op == gojq.OpEq || op == gojq.OpNe) && (a.object && b.isNil() || b.object && a.isNil()) {
		return constant(fmt.Sprint(op == gojq.OpNe), isBool), nil
	}
	if a.member != nil || b.member != nil {
		return nil, unsupportedJQ(op, "%s has all of the data on one side", op)
	}
	switch op {
	case gojq.OpAnd:
		return made(isBool, precAnd, "%s and %s", t.truth(a).wrap(precAnd), t.truth(b).wrap(precAnd)), nil
	case gojq.OpOr:
		return made(isBool, precOr, "%s or %s", t.truth(a).wrap(precOr), t.truth(b).wrap(precOr)), nil
	case gojq.OpEq, gojq.OpNe:
		return t.equal(op, a, b)
	case gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return t.order(op, a, b)
	case gojq.OpAdd:
		return t.plus(a, b)
	case gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		return t.arithmetic(op, a, b)
	}
	return nil, unsupportedJQ(op, "the operator %s has no counterpart", op)
}

// isNil tells whether a code is the constant null.
func (c *translatedExpr) isNil() bool { return c.text == "nil" }

// commonType lets each side say what the other is where nothing is known of it.
func commonType(a, b *translatedExpr) {
	if a.of.sort == unknown && b.of.sort != unknown && b.of.sort < isList {
		a.is(numeric(b.of.sort))
	}
	if b.of.sort == unknown && a.of.sort != unknown && a.of.sort < isList {
		b.is(numeric(a.of.sort))
	}
}

// numeric is the sort that a value is of which is only known to be compared with
// one: where a whole number stands, there may be any.
func numeric(s typeKind) typeKind {
	if s == isInt {
		return isNumber
	}
	return s
}

// alike tells whether two values can be of one kind of jq.
func alike(a, b *translatedExpr) bool { return numeric(a.of.sort) == numeric(b.of.sort) }

func (t *jq) equal(op gojq.Operator, a, b *translatedExpr) (*translatedExpr, error) {
	sign := map[gojq.Operator]string{gojq.OpEq: "==", gojq.OpNe: "!="}[op]
	if a.isNil() {
		a, b = b, a
	}
	if b.isNil() {
		if !a.null && t.guess && (!a.of.declared || a.loose && a.of.sort != isRecord) {
			a.of.optional = true // somebody expects that it may be missing
		}
		if a.nulls != nil {
			*a.nulls = true
		}
		if !a.null {
			return constant(fmt.Sprint(op == gojq.OpNe), isBool), nil
		}
		return made(isBool, precCompare, "%s %s nil", a.wrap(precAdd), sign), nil
	}
	commonType(a, b)
	switch {
	case a.empty || b.empty:
		return t.isEmpty(op, a, b)
	case a.of.sort >= isList || b.of.sort >= isList:
		return nil, unsupportedJQ(sign, "%s compares lists or records", sign)
	case !alike(a, b) && a.null && b.null:
		return nil, unsupportedJQ(sign, "%s compares %s with %s, both of which may be null", sign, a.of.sort.noun(), b.of.sort.noun())
	case !alike(a, b):
		return constant(fmt.Sprint(op == gojq.OpNe), isBool), nil
	}
	return made(isBool, precCompare, "%s %s %s", a.wrap(precAdd), sign, b.wrap(precAdd)), nil
}

// isEmpty translates a comparison with [].
func (t *jq) isEmpty(op gojq.Operator, a, b *translatedExpr) (*translatedExpr, error) {
	if a.empty {
		a = b
	}
	switch {
	case !a.is(isList):
		return constant(fmt.Sprint(op == gojq.OpNe), isBool), nil
	case a.null && op == gojq.OpEq:
		return made(isBool, precAnd, "%s != nil and len(%s) == 0", a.wrap(precAdd), a.text), nil
	case a.null:
		return made(isBool, precOr, "%s == nil or len(%s) != 0", a.wrap(precAdd), a.text), nil
	}
	sign := map[gojq.Operator]string{gojq.OpEq: "==", gojq.OpNe: "!="}[op]
	return made(isBool, precCompare, "len(%s) %s 0", a.text, sign), nil
}

// order translates comparisons. In jq null is less than everything else.
func (t *jq) order(op gojq.Operator, a, b *translatedExpr) (*translatedExpr, error) {
	commonType(a, b)
	if a.of.sort == unknown && !a.of.declared {
		if !t.assumeType(a, isNumber) {
			return made(isBool, precCompare, "%s %s %s", a.text, op, b.text), nil
		}
		commonType(a, b)
	}
	sign := op.String()
	switch {
	case a.isNil() || b.isNil():
		return nil, unsupportedJQ(sign, "%s compares with null", sign)
	case !alike(a, b):
		return nil, unsupportedJQ(sign, "%s compares %s with %s", sign, a.of.sort.noun(), b.of.sort.noun())
	case a.of.sort != isText && numeric(a.of.sort) != isNumber:
		return nil, unsupportedJQ(sign, "%s compares values that are neither numbers nor texts", sign)
	}
	return compared(op, a, b), nil
}

// compared puts two numbers or texts beside each other, null below all else.
func compared(op gojq.Operator, a, b *translatedExpr) *translatedExpr {
	x, y := a.wrap(precAdd), b.wrap(precAdd)
	core := fmt.Sprintf("%s %s %s", x, op, y)
	if op == gojq.OpLt || op == gojq.OpGe { // the mirror image: y > x, y <= x
		x, y, a, b = y, x, b, a
	}
	switch {
	case !a.null && !b.null:
		return made(isBool, precCompare, "%s", core)
	case op == gojq.OpGt || op == gojq.OpLt: // x greater than y
		if b.null {
			core = fmt.Sprintf("%s == nil or %s", y, core)
		}
		if a.null && b.null {
			return made(isBool, precAnd, "%s != nil and (%s)", x, core)
		}
		if a.null {
			return made(isBool, precAnd, "%s != nil and %s", x, core)
		}
		return made(isBool, precOr, "%s", core)
	case b.null: // x at most y
		core = fmt.Sprintf("%s != nil and %s", y, core)
		if !a.null {
			return made(isBool, precAnd, "%s", core)
		}
	}
	return made(isBool, precOr, "%s == nil or %s", x, core)
}

// plus translates +, which adds numbers, texts and lists and has null as its zero.
func (t *jq) plus(a, b *translatedExpr) (*translatedExpr, error) {
	if a.isNil() {
		return b, nil
	}
	if b.isNil() {
		return a, nil
	}
	commonType(a, b)
	for _, c := range []*translatedExpr{a, b} {
		if c.of.sort == unknown && !c.of.declared {
			if a.of.sort == isList || b.of.sort == isList {
				c.is(isList)
				continue
			}
			if !t.assumeType(c, isText) {
				return &translatedExpr{text: a.text + " + " + b.text, of: &inferredType{}}, nil
			}
		}
	}
	zero := map[typeKind]string{isText: `""`, isInt: "0", isNumber: "0", isList: "[]"}[a.of.sort]
	if !alike(a, b) || zero == "" {
		return nil, unsupportedJQ("+", "+ has %s and %s on its sides", a.of.sort.noun(), b.of.sort.noun())
	}
	of, ok := join(a.of, b.of)
	if !ok {
		return nil, unsupportedJQ("+", "+ joins lists of different elements")
	}
	sum := &translatedExpr{prec: precAdd, of: of}
	x, y := a.wrap(precAdd), b.wrap(precMultiply)
	if a.null {
		x = a.or(zero)
	}
	if b.null {
		y = b.or(zero)
	}
	sum.text = x + " + " + y
	if a.of.sort == isList {
		sum.text, sum.prec = fmt.Sprintf("concat(%s, %s)", x, y), precAtom
	}
	if a.null && b.null { // null and null is null
		sum.text = fmt.Sprintf("%s == nil and %s == nil ? nil : %s", a.wrap(precAdd), b.wrap(precAdd), sum.text)
		sum.prec, sum.null = precIf, true
	}
	return sum, nil
}

func (t *jq) arithmetic(op gojq.Operator, a, b *translatedExpr) (*translatedExpr, error) {
	sign := op.String()
	if op == gojq.OpMod { // which works on whole numbers
		a.is(isInt)
		b.is(isInt)
	}
	commonType(a, b)
	if !a.number() || !b.number() {
		return nil, unsupportedJQ(sign, "%s has %s and %s on its sides; only numbers can be translated", sign, a.of.sort.noun(), b.of.sort.noun())
	}
	s := isInt
	if op == gojq.OpDiv || a.of.sort == isNumber || b.of.sort == isNumber {
		s = isNumber
	}
	switch op {
	case gojq.OpSub:
		return made(s, precAdd, "%s - %s", a.wrap(precAdd), b.wrap(precMultiply)), nil
	case gojq.OpMod:
		if s != isInt {
			return nil, unsupportedJQ("%", "%% works on whole numbers, and these may be others")
		}
		fallthrough
	default:
		return made(s, precMultiply, "%s %s %s", a.wrap(precMultiply), sign, b.wrap(precUnary)), nil
	}
}

// alternative translates A // B: B where A is null or false.
func (t *jq) alternative(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
	a, err := t.plainValue(q.Left, dot)
	if err != nil {
		return nil, err
	}
	b, err := t.plainValue(q.Right, dot)
	if err != nil {
		return nil, err
	}
	if t.guess && !a.null && !a.of.declared {
		a.of.optional = true
	}
	if t.guess && a.root != nil && !a.root.declared { // the whole may be missing as well
		a.root.optional = true
	}
	if b.of.sort == isInt && a.of.sort == unknown {
		a.is(isNumber)
	}
	commonType(a, b)
	if b.of.sort == isList && a.of.sort == unknown {
		a.is(isList)
	}
	of, ok := join(a.of, b.of)
	switch {
	case !ok && !b.isNil():
		return nil, unsupportedJQ("//", "it gives %s or %s, and a variable is of one type", a.of.sort.noun(), b.of.sort.noun())
	case a.of.sort == isBool && b.of.sort == isBool:
		return &translatedExpr{text: t.truth(a).wrap(precOr) + " or " + b.wrap(precOr), prec: precOr, of: of, null: b.null}, nil
	case a.of.sort == isBool:
		return nil, unsupportedJQ("//", "its left side is a truth value, its right side is none")
	case !a.null:
		return a, nil
	case b.isNil():
		return a, nil
	}
	plain := *of
	plain.optional = b.of.optional
	bare := a.wrap(precAtom) + " ?? " + b.wrap(precAtom)
	return &translatedExpr{text: "(" + bare + ")", bare: bare, prec: precAtom, of: &plain, null: b.null}, nil
}
