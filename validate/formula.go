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

// formula is an expression and where it stands.
type formula struct {
	expr   *spec.Expression
	at     context
	target *spec.Ref[*spec.Variable] // the variable that it sets; nil for a condition
}

// linkFormulas reads every expression, links the variables that it names and
// checks its types (QT423 to QT426). The variables become inputs of the step.
func (p *checker) linkFormulas() {
	for _, f := range p.formulas {
		if strings.TrimSpace(f.expr.Text) == "" {
			continue
		}
		read, err := expression.Parse(f.expr.Text)
		if err != nil {
			p.list.Add(f.fault("the expression cannot be read", err))
			continue
		}
		env, whole := p.linkNames(f, read)
		if whole {
			continue // what else it names cannot be known
		}
		if result, err := read.Check(env); err != nil {
			p.list.Add(f.fault("the expression does not fit its values", err))
		} else {
			p.checkResult(f, result)
		}
	}
}

// linkNames links the variables of an expression, and answers the types of
// everything that it names: of what is unknown, and reported, any type. Whole
// tells that the expression takes all variables at once.
func (p *checker) linkNames(f formula, read *expression.Expression) (env map[string]spec.Type, whole bool) {
	env = map[string]spec.Type{}
	var vars []spec.Ref[*spec.Variable]
	for _, name := range read.Names() {
		whole = whole || name.ID == expression.All
		env[name.ID] = spec.Type{Name: spec.Any}
		span := f.span(name.From, name.Len)
		if name.Called {
			p.list.Add(unknownFunction(span, name.ID))
			continue
		}
		ref := spec.Ref[*spec.Variable]{ID: name.ID, Span: span}
		if p.linkName(f, &ref) {
			env[name.ID] = p.formulaType(ref.To)
			vars = append(vars, ref)
		}
	}
	f.expr.Vars = vars
	if step, ok := f.at.owner.(spec.Step); ok {
		readsToo(step, f.expr.Vars, spec.RunsAfter(step, f.at.field))
	}
	return env, whole
}

// linkName links one variable, or reports that there is none.
func (p *checker) linkName(f formula, ref *spec.Ref[*spec.Variable]) bool {
	m := reference{ref: ref, at: f.at}
	if p.link(m, false) {
		return true
	}
	if p.unread(reflect.TypeFor[*spec.Variable]()) || p.ambiguous(ref.ID, m) {
		return false
	}
	finding := fault("QT425", ref.Span, "the expression names %q, which is not a variable", ref.ID)
	near, entity := p.nearest(ref.ID, m)
	choices := p.choices(m).ids
	switch {
	case near != "":
		p.used[entity] = true
		finding = finding.WithSuggestion(near).WithRelated(idPlace(entity), "a variable declared here")
	case len(choices) > 0:
		finding = finding.WithHint("there are %s; a text stands in quotes", joinNames(choices))
	default:
		finding = finding.WithHint("the flow declares no variables")
	}
	p.list.Add(finding)
	return false
}

func unknownFunction(span source.Span, name string) diag.Diagnostic {
	finding := fault("QT423", span, "the expression calls %q, which is not a function", name)
	return finding.WithSuggestion(diag.Nearest(name, expression.Functions()))
}

// readsToo makes variables inputs of a step that does not name them. An expression
// that is evaluated after the step's work also sees the step's outputs, which
// therefore are no inputs.
func readsToo(step spec.Step, vars []spec.Ref[*spec.Variable], after bool) {
	base := step.Common()
	for i := range vars {
		if containsPort(step.Common().AllInputs(), vars[i].ID) || after && containsPort(step.Common().AllOutputs(), vars[i].ID) {
			continue
		}
		base.DerivedInputs = append(base.DerivedInputs, &vars[i])
	}
}

// span is the place of a part of the expression.
func (f formula) span(from, length int) source.Span { return partOf(f.expr, from, length) }

func partOf(x *spec.Expression, from, length int) source.Span {
	return within(x.Span, excerptAt(x.Text, from, length))
}

// fault makes a finding of an error of an expression.
func (f formula) fault(what string, err error) diag.Diagnostic {
	return formulaFault(f.expr, what, err)
}

func formulaFault(x *spec.Expression, what string, err error) diag.Diagnostic {
	var at *expression.Error
	if !errors.As(err, &at) || at.Whole {
		return fault("QT423", x.Span, "%s: %s", what, err)
	}
	finding := fault("QT423", partOf(x, at.From, at.Len), "%s: %s", what, at.Message)
	if at.Hint != "" {
		finding = finding.WithHint("%s", at.Hint)
	}
	return finding
}

// formulaType is a variable's type as an expression sees it; of what is not known it is any type.
func (p *checker) formulaType(v *spec.Variable) spec.Type {
	if v == nil || p.untyped[v] {
		return spec.Type{Name: spec.Any}
	}
	return expression.TypeOf(v)
}

// checkResult holds an expression's value against what it is for (QT424, QT426).
func (p *checker) checkResult(f formula, result expression.Result) {
	switch {
	case f.target == nil && !result.IsBool():
		p.list.Add(undecided(f.expr, result))
	case f.target != nil && f.target.To != nil && !p.untyped[f.target.To] && !result.AssignableTo(f.target.To.Type):
		finding := fault("QT426", f.expr.Span, "%q is %s, but the expression gives %s", f.target.ID, f.target.To.Type.String(), result).
			WithRelated(typePlace(f.target.To.Place().Field("type")), "declared here")
		if convert := expression.Converter(f.target.To.Type); convert != "" {
			finding = finding.WithHint("convert it with %s(…), or give the variable another type", convert)
		}
		p.list.Add(finding)
	}
}

// undecided is the finding that a condition is none.
func undecided(x *spec.Expression, result expression.Result) diag.Diagnostic {
	return fault("QT424", x.Span, "the condition gives %s, not true or false", result).
		WithHint("compare it with something, such as == or >")
}

// Condition checks a condition that stands outside of every flow, such as a
// test's, over some variables, and links it to those that it names (QT423 to QT425).
func Condition(x *spec.Expression, vars []*spec.Variable) diag.List {
	read, err := expression.Parse(x.Text)
	if err != nil {
		return diag.List{formulaFault(x, "the expression cannot be read", err)}
	}
	var list diag.List
	types, ids := map[string]spec.Type{}, make([]string, len(vars))
	for i, v := range vars {
		ids[i] = v.ID
	}
	for _, name := range read.Names() {
		span := partOf(x, name.From, name.Len)
		i := slices.Index(ids, name.ID)
		switch {
		case name.Called:
			list.Add(unknownFunction(span, name.ID))
		case i < 0:
			finding := fault("QT425", span, "the expression names %q, which is not a variable here", name.ID).WithSuggestion(diag.Nearest(name.ID, ids))
			if finding.Suggestion == "" {
				finding = finding.WithHint("there are %s; a text stands in quotes", joinNames(ids))
			}
			list.Add(finding)
		default:
			types[name.ID] = expression.TypeOf(vars[i])
			x.Vars = append(x.Vars, spec.Ref[*spec.Variable]{ID: name.ID, Span: span, To: vars[i]})
		}
	}
	if len(list) > 0 {
		return list
	}
	result, err := read.Check(types)
	switch {
	case err != nil:
		list.Add(formulaFault(x, "the expression does not fit its values", err))
	case !result.IsBool():
		list.Add(undecided(x, result))
	}
	return list
}
