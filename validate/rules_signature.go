package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
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
	r := rule{code: d.Code, checksSides: true, describe: func() diag.Rule { return describeDemand(s, signature, d) }}
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

// describeDemand returns the texts of a demand's rule. The examples are generated from the step's
// declaration: its required fields, and variables that match the demand or do not.
func describeDemand(s spec.Step, signature spec.Signature, d spec.Demand) diag.Rule {
	name := spec.TypeName(s)
	r := diag.Rule{Title: fmt.Sprintf("%s: an %s must be %s", name, d.Side(), d)}
	switch {
	case d.IsCount():
		r.Title, r.Doc = fmt.Sprintf("%s needs %s", name, d), fmt.Sprintf("A step of type %s has %s.", name, d)
	case d.Outputs:
		r.Doc = fmt.Sprintf("A step of type %s writes %s as its %s. The variable may be optional.", name, d, d.Side())
	default:
		r.Doc = fmt.Sprintf("A step of type %s takes %s as its %s. The variable may be optional.", name, d, d.Side())
	}
	in, out := signature.Inputs, signature.Outputs
	r.Right = demandSample(s, signature.Index, in, out)
	if d.Outputs {
		out = breakDemand(d, out)
	} else {
		in = breakDemand(d, in)
	}
	r.Wrong = demandSample(s, signature.Index, in, out)
	return r
}

// breakDemand changes a list of variables, "question: text, n: int", so that it violates the demand.
func breakDemand(d spec.Demand, list string) string {
	if d.IsCount() {
		return ""
	}
	vars := strings.Split(list, ", ")
	for i, v := range vars {
		name, kind, _ := strings.Cut(v, ": ")
		if t, err := spec.ParseType(kind); err == nil && d.Fits(t) {
			vars[i] = name + ": int"
		}
	}
	return strings.Join(vars, ", ")
}

// demandSample returns a document with a step that has the given variables.
func demandSample(s spec.Step, index, in, out string) string {
	keys, head := sampleKeys(s, index)
	var b strings.Builder
	b.WriteString("id: example\n" + head + "flows:\n  - id: main\n")
	declared := map[string]bool{}
	for _, v := range strings.Split(in+", "+out, ", ") {
		name, kind, ok := strings.Cut(v, ": ")
		if !ok || declared[name] {
			continue
		}
		if len(declared) == 0 {
			b.WriteString("    variables:\n")
		}
		declared[name] = true
		fmt.Fprintf(&b, "      - {id: %s, type: %q}\n", name, kind)
	}
	inputs, outputs := namesOf(in), namesOf(out)
	if inputs != "" {
		fmt.Fprintf(&b, "    inputs: [%s]\n", inputs)
	}
	if outputs != "" {
		fmt.Fprintf(&b, "    outputs: [%s]\n", outputs)
	}
	fmt.Fprintf(&b, "    steps:\n      - {type: %s, id: work, %sinputs: [%s], outputs: [%s]}\n", spec.TypeName(s), keys, inputs, outputs)
	return b.String()
}

// namesOf returns "a, b" for "a: text, b: int".
func namesOf(list string) string {
	var names []string
	for _, v := range strings.Split(list, ", ") {
		if name, _, _ := strings.Cut(v, ": "); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
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
		model   = "models:\n  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna}\n"
		vectors = "models:\n  - {type: EmbeddingModel, id: vectors, provider: openai, model_id: text-embedding-3-small, dimensions: 1536}\n"

		vectorIndex   = vectors + "indexes:\n  - {type: VectorIndex, id: shop, name: shop, module: embedded, embedding_model: vectors}\n"
		documentIndex = "indexes:\n  - {type: DocumentIndex, id: shop, name: shop, endpoint: \"http://localhost:9200\"}\n"
		tool          = `tools:
  - type: APITool
    id: weather
    name: weather
    description: The weather of a place
    endpoint: https://weather.example/v1
    inputs: [{id: city, type: text}, {id: days, type: "int?"}]
    outputs: [{id: report, type: text}]
`
	)
	fits := func(n spec.Node) bool { return reflect.TypeOf(n).AssignableTo(target) }
	switch {
	case fits(&spec.Model{}):
		return "writer", model
	case fits(&spec.EmbeddingModel{}):
		return "vectors", vectors
	case fits(&spec.VectorIndex{}) && index != "DocumentIndex":
		return "shop", vectorIndex
	case fits(&spec.DocumentIndex{}):
		return "shop", documentIndex
	case fits(&spec.Memory{}):
		return "chat_memory", "memories:\n  - {id: chat_memory}\n"
	case fits(&spec.APITool{}):
		return "weather", tool
	}
	return "", ""
}
