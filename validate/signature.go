package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// signature is what a type of step takes and gives: how many variables of
// which types. Its rows are rules like all others; their samples are made from
// the signature's own.
type signature struct {
	step    spec.Step            // a nil pointer of the step's type
	when    func(spec.Step) bool // limits the signature to some steps of the type; nil for all
	head    string               // sample: declarations that the step needs
	keys    string               // sample: the step's own keys
	in, out string               // sample: fitting variables
	rows    []portRule
}

// portRule is one demand of a signature.
type portRule struct {
	code    string
	outputs bool     // it is about the outputs, not the inputs
	least   int      // the fewest variables; for a row about numbers
	most    int      // the most; 0 for no bound
	want    typeRule // the type; for a row about types
	some    bool     // one variable of the type is enough
}

// typeRule is a demand on a type.
type typeRule struct {
	text string               // in a user's words
	ok   func(spec.Type) bool // nil for no demand
}

// exactly, atLeast, ofType and oneOf make the rows of a signature.
func exactly(n int, side bool, code string) portRule {
	return portRule{code: code, outputs: side, least: n, most: n}
}
func atLeast(n int, side bool, code string) portRule {
	return portRule{code: code, outputs: side, least: n}
}
func ofType(w typeRule, side bool, code string) portRule {
	return portRule{code: code, outputs: side, want: w}
}
func oneOf(w typeRule, side bool, code string) portRule {
	return portRule{code: code, outputs: side, want: w, some: true}
}

// The two sides of a step.
const inputs, outputs = false, true

// either wants one of some types, by name.
func either(names ...string) typeRule {
	return typeRule{strings.Join(names, " or "), func(t spec.Type) bool {
		for _, name := range names {
			if t.Is(name) {
				return true
			}
		}
		return false
	}}
}

// listOf wants a list of one type, by name.
func listOf(name string) typeRule {
	return typeRule{"list[" + name + "]", func(t spec.Type) bool { return t.IsListOf(name) }}
}

// anyList wants a list of whatever.
func anyList() typeRule { return typeRule{"a list", spec.Type.IsList} }

// side is the singular of the key in the document.
func (r portRule) side() string {
	if r.outputs {
		return "output"
	}
	return "input"
}

// ports are those of the step's variables that the row is about.
func (r portRule) ports(s spec.Step) []port {
	if r.outputs {
		return outputsOf(s)
	}
	return inputsOf(s)
}

// allows tells whether a number of variables is right.
func (r portRule) allows(n int) bool { return n >= r.least && (r.most == 0 || n <= r.most) }

// rules makes the rules of a signature.
func (s signature) rules() []rule {
	made := make([]rule, len(s.rows))
	for i, r := range s.rows {
		name := spec.TypeName(s.step)
		made[i] = rule{code: r.code, sample: brokenSample{s, r}, sided: true}
		find := s.findCount
		if r.want.ok == nil {
			made[i].title = fmt.Sprintf("%s needs %s", name, r.number())
			made[i].doc = fmt.Sprintf("A step of type %s has %s.", name, r.number())
		} else {
			find = s.findType
			made[i].title = fmt.Sprintf("%s: an %s must be %s", name, r.side(), r.want.text)
			made[i].doc = fmt.Sprintf("A step of type %s works on %s as its %s; whether the variable is optional does not matter.", name, r.want.text, r.side())
		}
		made[i].check = check{wants: reflect.TypeOf(s.step), run: func(p *ruleContext, n spec.Node) {
			if step := n.(spec.Step); r.wholeSide(step) && (s.when == nil || s.when(step)) {
				find(p, step, r)
			}
		}}
	}
	return made
}

// number is the demand of a row about numbers: "exactly 1 output".
func (r portRule) number() string {
	count, quantifier := r.least, "exactly"
	if r.most == 0 {
		quantifier = "at least"
	}
	if count == 1 {
		return fmt.Sprintf("%s 1 %s", quantifier, r.side())
	}
	return fmt.Sprintf("%s %d %ss", quantifier, count, r.side())
}

// findCount looks at the number of variables.
func (s signature) findCount(p *ruleContext, step spec.Step, r portRule) {
	ports := r.ports(step)
	if r.allows(len(ports)) {
		return
	}
	p.report(firstExtra(step, r.side()+"s", ports, r.least), "step %q (%s) needs %s, has %d",
		step.EntityID(), spec.TypeName(step), r.number(), len(ports))
}

// findType looks at the types once the number of variables is right: one fault is enough.
func (s signature) findType(p *ruleContext, step spec.Step, r portRule) {
	ports := r.ports(step)
	if !s.counted(r, len(ports)) {
		return
	}
	wrong := slices.DeleteFunc(slices.Clone(ports), func(one port) bool {
		t, known := p.typed(one)
		return !known || r.want.ok(t)
	})
	switch {
	case !r.some:
		for _, one := range wrong {
			p.misfit(step, r, one)
		}
	case len(wrong) == len(ports) && len(ports) > 0:
		p.report(placeOf(step, r.side()+"s", "id"), "one %s of step %q must be %s", r.side(), step.EntityID(), r.want.text)
	}
}

// counted tells whether the step has as many variables on the row's side as the signature's other rows demand.
func (s signature) counted(r portRule, n int) bool {
	return !slices.ContainsFunc(s.rows, func(other portRule) bool {
		return other.want.ok == nil && other.outputs == r.outputs && !other.allows(n)
	})
}

// misfit reports a variable of the wrong type.
func (p *ruleContext) misfit(step spec.Step, r portRule, one port) {
	finding := p.reportAt(one.span, "the %s %q of step %q must be %s, is %s", r.side(), one.id, step.EntityID(), r.want.text, one.v.Type.String())
	if place := typePlace(one.v.Place().Field("type")); !place.IsZero() {
		finding = finding.WithRelated(place, "declared here")
	}
	p.list.Add(finding)
}

// brokenSample is the example of a row, written only when somebody wants to see it.
type brokenSample struct {
	signature signature
	row       portRule
}

func (b brokenSample) wrong() string { return b.signature.sample(b.row).wrong() }
func (b brokenSample) right() string { return b.signature.sample(b.row).right() }

// sample is the signature's own sample with the demand of one row broken.
func (s signature) sample(r portRule) sample {
	in, out := s.in, s.out
	side := &in
	if r.outputs {
		side = &out
	}
	*side = r.breakIn(*side)
	keys := s.keys
	if keys != "" {
		keys += ", "
	}
	return sample{head: s.head, in: in, out: out,
		steps: fmt.Sprintf("- {type: %s, id: work, %sinputs: [%s], outputs: [%s]}", spec.TypeName(s.step), keys, markNames(in), markNames(out))}
}

// breakIn puts a list of variables that breaks the row before one that does not.
func (r portRule) breakIn(list string) string {
	if r.want.ok == nil {
		return markOpen + markMiddle + list + markClose
	}
	vars := strings.Split(list, ", ")
	for i, v := range vars {
		name, kind, _ := strings.Cut(v, ": ")
		if t, err := spec.ParseType(kind); err == nil && r.want.ok(t) {
			vars[i] = name + ": " + markOpen + "int" + markMiddle + kind + markClose
		}
	}
	return strings.Join(vars, ", ")
}

// markNames is namesOf for a list with marks in it.
func markNames(list string) string {
	if !strings.Contains(list, markOpen) {
		return namesOf(list)
	}
	return markOpen + namesOf(choose(list, false)) + markMiddle + namesOf(choose(list, true)) + markClose
}
