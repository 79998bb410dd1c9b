package validate

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// expressionUse is an expression and its context.
type expressionUse struct {
	expr   *spec.Expression
	at     nodeContext
	target *spec.Ref[*spec.Variable] // the variable to set; nil for a condition
}

// linkExpressions parses every expression, links its variables and checks its types
// (QT423 to QT426). The variables become inputs of the step.
func (p *checker) linkExpressions() {
	for _, x := range p.expressions {
		if strings.TrimSpace(x.expr.Text) == "" {
			continue
		}
		parsed, err := expression.Parse(x.expr.Text)
		if err != nil {
			p.list.Add(withoutBraces(expressionError(x.expr, "the expression is invalid", err), x.expr))
			continue
		}
		types, readsAll := p.linkNames(x, parsed)
		if readsAll {
			continue // the types of the other variables are unknown
		}
		if result, err := parsed.Check(types); err != nil {
			p.list.Add(expressionError(x.expr, "the types in the expression do not match", err))
		} else {
			p.checkResult(x, result)
		}
	}
}

// linkNames links the variables of an expression and returns the types of all names
// in it. Unknown names are reported and have the type any. It also reports whether
// the expression reads all variables.
func (p *checker) linkNames(x expressionUse, parsed *expression.Expression) (types map[string]spec.Type, readsAll bool) {
	types = map[string]spec.Type{}
	var vars []spec.Ref[*spec.Variable]
	for _, name := range parsed.Names() {
		readsAll = readsAll || name.ID == expression.All
		types[name.ID] = spec.Type{Name: spec.Any}
		span := partOf(x.expr, name.From, name.Len)
		if name.Called {
			p.list.Add(unknownFunction(span, name.ID))
			continue
		}
		ref := spec.Ref[*spec.Variable]{ID: name.ID, Span: span}
		if p.linkName(x, &ref) {
			types[name.ID] = p.expressionType(ref.To)
			vars = append(vars, ref)
		}
	}
	x.expr.Vars = vars
	if step, ok := x.at.owner.(spec.Step); ok {
		addDerivedInputs(step, x.expr.Vars, spec.RunsAfter(step, x.at.field))
	}
	return types, readsAll
}

// linkName links a variable, or reports that it is unknown.
func (p *checker) linkName(x expressionUse, ref *spec.Ref[*spec.Variable]) bool {
	m := reference{ref: ref, at: x.at}
	if p.link(m, false) {
		return true
	}
	if p.maybeDeclared(reflect.TypeFor[*spec.Variable]()) || p.ambiguous(ref.ID, m) {
		return false
	}
	diagnostic := newDiagnostic("QT425", ref.Span, "the expression names %q, which is not a variable", ref.ID)
	if p.misses++; p.misses > maxSuggestions {
		p.list.Add(diagnostic)
		return false
	}
	valid := p.targetsOf(m)
	near := diag.Nearest(ref.ID, valid.ids)
	switch {
	case near != "":
		p.used[valid.first[near]] = true // it is not reported as unused as well
		diagnostic = diagnostic.WithSuggestion(near).WithRelated(idPlace(valid.first[near]), "a variable declared here")
	case len(valid.ids) > 0:
		diagnostic = diagnostic.WithHint("the variables are %s; quote a text", joinNames(valid.ids))
	default:
		diagnostic = diagnostic.WithHint("the flow declares no variables")
	}
	p.list.Add(diagnostic)
	return false
}

func unknownFunction(span source.Span, name string) diag.Diagnostic {
	return newDiagnostic("QT423", span, "the expression calls %q, which is not a function", name).
		WithSuggestion(diag.Nearest(name, expression.Functions()))
}

// addDerivedInputs adds variables to a step's derived inputs. An expression evaluated
// after the work of the step also reads its outputs.
func addDerivedInputs(step spec.Step, vars []spec.Ref[*spec.Variable], after bool) {
	base := step.Common()
	for i := range vars {
		if containsPort(base.AllInputs(), vars[i].ID) || after && containsPort(base.AllOutputs(), vars[i].ID) {
			continue
		}
		base.DerivedInputs = append(base.DerivedInputs, &vars[i])
	}
}

// partOf returns the position of a part of an expression.
func partOf(x *spec.Expression, from, length int) source.Span {
	return within(x.Span, excerptAt(x.Text, from, length))
}

// expressionError returns the diagnostic for an error of an expression.
func expressionError(x *spec.Expression, what string, err error) diag.Diagnostic {
	var at *expression.Error
	if !errors.As(err, &at) || at.Whole {
		return newDiagnostic("QT423", x.Span, "%s: %s", what, err)
	}
	diagnostic := newDiagnostic("QT423", partOf(x, at.From, at.Len), "%s: %s", what, at.Message)
	if at.Hint != "" {
		diagnostic = diagnostic.WithHint("%s", at.Hint)
	}
	return diagnostic
}

// expressionType returns the type that a variable has in an expression: any if it is unknown.
func (p *checker) expressionType(v *spec.Variable) spec.Type {
	if v == nil || p.untyped[v] {
		return spec.Type{Name: spec.Any}
	}
	return expression.TypeOf(v)
}

// checkResult checks the type of an expression's value (QT424, QT426).
func (p *checker) checkResult(x expressionUse, result expression.Result) {
	switch {
	case x.target == nil && !result.IsBool():
		p.list.Add(notBoolean(x.expr, result))
	case x.target != nil && x.target.To != nil && !p.untyped[x.target.To] && !result.AssignableTo(x.target.To.Type):
		diagnostic := newDiagnostic("QT426", x.expr.Span, "%q is %s, but the expression is %s", x.target.ID, x.target.To.Type.String(), result).
			WithRelated(typePlace(x.target.To.Position().Field("type")), "declared here")
		if convert := expression.Converter(x.target.To.Type); convert != "" {
			diagnostic = diagnostic.WithHint("convert the value with %s(…), or change the type of the variable", convert)
		}
		p.list.Add(diagnostic)
	}
}

// notBoolean returns the diagnostic for a condition that is not true or false.
func notBoolean(x *spec.Expression, result expression.Result) diag.Diagnostic {
	return newDiagnostic("QT424", x.Span, "the condition is %s, not true or false", result).
		WithHint("compare the value, for example with == or >")
}

// Condition parses, links and checks a condition outside of flows, such as a condition of
// a test, with the variables that it can read (QT423 to QT425).
func Condition(x *spec.Expression, vars []*spec.Variable) diag.List {
	parsed, err := expression.Parse(x.Text)
	if err != nil {
		return diag.List{withoutBraces(expressionError(x, "the expression is invalid", err), x)}
	}
	types, list := linkCondition(x, parsed, vars)
	if len(list) > 0 {
		return list
	}
	result, err := parsed.Check(types)
	switch {
	case err != nil:
		list.Add(expressionError(x, "the types in the expression do not match", err))
	case !result.IsBool():
		list.Add(notBoolean(x, result))
	}
	return list
}

// linkCondition links the variables of a condition and returns their types.
func linkCondition(x *spec.Expression, parsed *expression.Expression, vars []*spec.Variable) (map[string]spec.Type, diag.List) {
	var list diag.List
	types, ids := map[string]spec.Type{}, make([]string, len(vars))
	for i, v := range vars {
		ids[i] = v.ID
	}
	for _, name := range parsed.Names() {
		span := partOf(x, name.From, name.Len)
		i := slices.Index(ids, name.ID)
		switch {
		case name.Called:
			list.Add(unknownFunction(span, name.ID))
		case i < 0:
			diagnostic := newDiagnostic("QT425", span, "the expression names %q, which is not a variable here", name.ID).
				WithSuggestion(diag.Nearest(name.ID, ids))
			if diagnostic.Suggestion == "" {
				diagnostic = diagnostic.WithHint("the variables are %s; quote a text", joinNames(ids))
			}
			list.Add(diagnostic)
		default:
			types[name.ID] = expression.TypeOf(vars[i])
			x.Vars = append(x.Vars, spec.Ref[*spec.Variable]{ID: name.ID, Span: span, To: vars[i]})
		}
	}
	return types, list
}
