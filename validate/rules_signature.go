package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// signatureRules returns one rule for each demand that a step type makes on the
// number and the types of its variables.
func signatureRules() []rule {
	var all []rule
	for _, s := range spec.StepTypes() {
		signatures, err := spec.Signatures(s)
		if err != nil {
			panic(err) // a malformed tag; TestSignatureCodes reports it
		}
		for _, signature := range signatures {
			for _, d := range signature.Demands {
				all = append(all, demandRule(s, signature, d))
			}
		}
	}
	return all
}

// demandRule returns the rule of a demand.
func demandRule(s spec.Step, signature spec.Signature, d spec.Demand) rule {
	name := spec.TypeName(s)
	r := rule{code: d.Code, sample: demandSample{s, signature, d}, checksSides: true}
	if d.IsCount() {
		r.title = fmt.Sprintf("%s needs %s", name, d)
		r.doc = fmt.Sprintf("A step of type %s has %s.", name, d)
	} else {
		r.title = fmt.Sprintf("%s: an %s must be %s", name, d.Side(), d)
		r.doc = fmt.Sprintf("A step of type %s takes %s as its %s. The variable may be optional.", name, d, d.Side())
		if d.Outputs {
			r.doc = fmt.Sprintf("A step of type %s writes %s as its %s. The variable may be optional.", name, d, d.Side())
		}
	}
	r.check = check{nodeType: reflect.TypeOf(s), run: func(p *ruleContext, n spec.Node) {
		if step := n.(spec.Step); sideRead(step, d.Outputs) && p.appliesTo(signature, step) {
			p.checkDemand(step, signature, d)
		}
	}}
	return r
}

// appliesTo reports whether a signature holds for a step: some hold only for steps
// with an index of one kind.
func (p *checker) appliesTo(signature spec.Signature, s spec.Step) bool {
	return signature.Index == "" || slices.ContainsFunc(p.stepPlan(s).Indexes(), func(x spec.Index) bool {
		return spec.TypeName(x) == signature.Index
	})
}

// checkDemands checks all demands of a signature under the code of the running rule.
func (p *ruleContext) checkDemands(s spec.Step, signature spec.Signature) {
	for _, d := range signature.Demands {
		p.checkDemand(s, signature, d)
	}
}

func (p *ruleContext) checkDemand(s spec.Step, signature spec.Signature, d spec.Demand) {
	ports := s.Common().AllInputs()
	if d.Outputs {
		ports = s.Common().AllOutputs()
	}
	if d.IsCount() {
		p.checkCount(s, d, ports)
	} else if hasDemandedCount(signature, d.Outputs, len(ports)) { // otherwise the count is reported
		p.checkTypes(s, d, ports)
	}
}

// checkCount checks the number of variables.
func (p *ruleContext) checkCount(s spec.Step, d spec.Demand, ports []port) {
	if !d.Allows(len(ports)) {
		p.report(firstExtra(s, d.Side()+"s", ports, d.Min), "step %q (%s) needs %s, has %d",
			s.EntityID(), spec.TypeName(s), d, len(ports))
	}
}

// hasDemandedCount reports whether a step has as many variables on one side as its signature demands.
func hasDemandedCount(signature spec.Signature, ofOutputs bool, n int) bool {
	return !slices.ContainsFunc(signature.Demands, func(d spec.Demand) bool {
		return d.IsCount() && d.Outputs == ofOutputs && !d.Allows(n)
	})
}

// checkTypes checks the types of the variables.
func (p *ruleContext) checkTypes(s spec.Step, d spec.Demand, ports []port) {
	wrong := slices.DeleteFunc(slices.Clone(ports), func(one port) bool {
		t, known := p.typed(one)
		return !known || d.Fits(t)
	})
	if d.One {
		if len(wrong) == len(ports) && len(ports) > 0 {
			p.report(placeOf(s, d.Side()+"s", "id"), "one %s of step %q must be %s", d.Side(), s.EntityID(), d)
		}
		return
	}
	for _, one := range wrong {
		diagnostic := p.reportAt(one.Span, "the %s %q of step %q must be %s, is %s", d.Side(), one.ID, s.EntityID(), d, one.To.Type.String())
		if place := typePlace(one.To.Position().Field("type")); !place.IsZero() {
			diagnostic = diagnostic.WithRelated(place, "declared here")
		}
		if advice := spec.RecordAdvice(s); d.Outputs && advice != "" && isRecord(one.To.Type) {
			diagnostic = diagnostic.WithHint("%s", advice)
		}
		p.list.Add(diagnostic)
	}
}

// isRecord reports whether a type is a custom type, or a list of one.
func isRecord(t spec.Type) bool {
	for t.Elem != nil {
		t = *t.Elem
	}
	return t.Custom != nil
}

// demandSample is the example of a demand's rule. It is generated from the step's
// declaration: its required fields, and variables that match the demand or do not.
type demandSample struct {
	step      spec.Step
	signature spec.Signature
	demand    spec.Demand
}

func (s demandSample) wrong() string { return s.sample().wrong() }
func (s demandSample) right() string { return s.sample().right() }

func (s demandSample) sample() sample {
	in, out := s.signature.Inputs, s.signature.Outputs
	side := &in
	if s.demand.Outputs {
		side = &out
	}
	*side = breakDemand(s.demand, *side)
	keys, head := sampleKeys(s.step, s.signature.Index)
	return sample{head: head, in: in, out: out,
		steps: fmt.Sprintf("- {type: %s, id: work, %sinputs: [%s], outputs: [%s]}", spec.TypeName(s.step), keys, markNames(in), markNames(out))}
}

// breakDemand marks variables so that the wrong side of the sample violates the demand.
func breakDemand(d spec.Demand, list string) string {
	if d.IsCount() {
		return markOpen + markMiddle + list + markClose
	}
	vars := strings.Split(list, ", ")
	for i, v := range vars {
		name, kind, _ := strings.Cut(v, ": ")
		if t, err := spec.ParseType(kind); err == nil && d.Fits(t) {
			vars[i] = name + ": " + markOpen + "int" + markMiddle + kind + markClose
		}
	}
	return strings.Join(vars, ", ")
}

// markNames is namesOf for a list with marks.
func markNames(list string) string {
	if !strings.Contains(list, markOpen) {
		return namesOf(list)
	}
	return markOpen + namesOf(choose(list, false)) + markMiddle + namesOf(choose(list, true)) + markClose
}

// sampleKeys returns the required keys of a step, the other keys that have an example, and
// the declarations that they refer to. The values are in the tag `example`.
func sampleKeys(s spec.Step, index string) (keys, head string) {
	t := reflect.TypeOf(s).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		value := f.Tag.Get("example")
		if value == "" && !strings.HasPrefix(f.Tag.Get("jsonschema"), "required") {
			continue
		}
		if ref, ok := reflect.New(f.Type).Interface().(spec.Reference); ok {
			value, head = sampleTarget(spec.TargetType(ref), index)
		}
		keys += f.Tag.Get("yaml") + ": " + value + ", "
	}
	return keys, head
}

// sampleTarget returns the id and the declaration of an entity for a reference.
func sampleTarget(target reflect.Type, index string) (id, head string) {
	const (
		vectorIndex   = sampleVectors + "\nindexes:\n  - {type: VectorIndex, id: shop, name: shop, module: embedded, embedding_model: vectors}"
		documentIndex = "indexes:\n  - {type: DocumentIndex, id: shop, name: shop, endpoint: \"http://localhost:9200\"}"
	)
	fits := func(n spec.Node) bool { return reflect.TypeOf(n).AssignableTo(target) }
	switch {
	case fits(&spec.Model{}):
		return "writer", sampleModel
	case fits(&spec.EmbeddingModel{}):
		return "vectors", sampleVectors
	case fits(&spec.VectorIndex{}) && index != "DocumentIndex":
		return "shop", vectorIndex
	case fits(&spec.DocumentIndex{}):
		return "shop", documentIndex
	case fits(&spec.Memory{}):
		return "chat_memory", "memories:\n  - {id: chat_memory}"
	case fits(&spec.APITool{}):
		return "weather", sampleTool
	}
	return "", ""
}
