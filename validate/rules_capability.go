package validate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// reportParams reports what is doubtful about inference_params.
func (p *ruleContext) reportParams(m *spec.Model, problems []modelparams.Problem) {
	for _, problem := range problems {
		at, ok := paramAt(m, problem.Path)
		if !ok {
			continue
		}
		d := p.reportAt(at.Span(), "model %q: %s", m.ID, problem.Text)
		if problem.Limit > 0 {
			d = d.WithNumber(problem.Number, problem.Limit)
		}
		p.list.Add(d)
	}
}

func unlistedValue() rule {
	return rule{code: "QT606", warning: true, check: on(func(p *ruleContext, m *spec.Model) {
		if knownModel(m) != nil && m.Position().Complete("inference_params") {
			p.reportParams(m, modelparams.Unlisted(m))
		}
		if word := modelparams.SentAs(m); word != "" && isNamed(m) && isDecided(string(m.Thinking)) {
			p.report(fieldKey(m, "thinking"), "thinking: %s is sent as %s: the model %s has no %s", m.Thinking, word, m.ModelID, m.Thinking)
		}
	})}
}

func twoFormsOfSetting() rule {
	return rule{code: "QT607", warning: true, check: on(func(p *ruleContext, m *spec.Model) {
		if !m.IsMock() && m.Position().Complete("inference_params") {
			p.reportParams(m, modelparams.TwoForms(m))
		}
	})}
}

func tooManyTokens() rule {
	return rule{code: "QT608", warning: true, check: on(func(p *ruleContext, m *spec.Model) {
		if knownModel(m) != nil && m.Position().Complete("inference_params") && isDecided(string(m.Thinking)) {
			p.reportParams(m, modelparams.OverLimit(m))
		}
	})}
}

func modelWithoutTools() rule {
	return rule{code: "QT609", warning: true, check: on(func(p *ruleContext, s *spec.Agent) {
		if s.Model.To == nil || len(s.Tools)+len(s.Handoffs) == 0 {
			return
		}
		if row := knownModel(s.Model.To.Base()); row != nil && row.Kind == catalogue.Chat && row.Tools.FunctionCalling == catalogue.No {
			p.report(s.Model.Span, "the agent %q has tools, but %s of %s does not call functions", s.ID, row.ID, row.Provider)
		}
	})}
}

func modelWithoutMedia() rule {
	return rule{code: "QT610", warning: true, check: on(func(p *ruleContext, s spec.Prompted) {
		if step, ok := s.(spec.Step); ok {
			p.checkMedia(step)
		}
	})}
}

// checkMedia reports media that the models of a step get and do not read.
func (p *ruleContext) checkMedia(s spec.Step) {
	plan, reach := p.stepPlan(s), p.mediaReach()
	if plan.Model() == nil {
		return
	}
	models := modelAndFallbacks(plan.Model().Base())
	reported := map[string]bool{} // by the kind of media
	inputs := s.Common().Inputs
	for i := range inputs {
		v := inputs[i].To
		if v == nil {
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(reach[v])) {
			row := blindTo(models, kind)
			if row == nil {
				continue
			}
			has := fmt.Sprintf("has the type %s", v.Type)
			if from := reach[v][kind]; from != v {
				has = fmt.Sprintf("has those of the variable %q", from.ID)
			}
			reported[kind] = true
			p.report(inputs[i].Span, "%s of %s does not read %s: the input %q of step %q %s", row.ID, row.Provider, mediaName(kind), v.ID, s.EntityID(), has)
		}
	}
	memory := plan.Conversation()
	if memory == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(reach[memory])) {
		if row := blindTo(models, kind); row != nil && !reported[kind] {
			p.report(placeOf(s, "memory", "id"), "%s of %s does not read %s: the memory %q of step %q has those of the variable %q", row.ID, row.Provider, mediaName(kind), memory.ID, s.EntityID(), reach[memory][kind].ID)
		}
	}
}

// modelAndFallbacks returns a model and its fallbacks.
func modelAndFallbacks(m *spec.Model) []*spec.Model {
	models := []*spec.Model{m}
	for _, ref := range m.Fallbacks {
		if ref.To != nil {
			models = append(models, ref.To.Base())
		}
	}
	return models
}

// blindTo returns what the catalogue has of the first of some models that does not read a kind of media, nil if
// all may.
func blindTo(models []*spec.Model, kind string) *catalogue.Model {
	for _, m := range models {
		row := knownModel(m)
		if row == nil || row.Kind != catalogue.Chat || len(row.Input) == 0 {
			continue
		}
		if !slices.ContainsFunc(row.Input, func(in string) bool { return slices.Contains(modalitiesOf(kind), in) }) {
			return row
		}
	}
	return nil
}

// modalitiesOf returns the modalities of the catalogue that a media type may be; nil for a type
// that is none, or that can be a text.
func modalitiesOf(name string) []string {
	switch name {
	case "image", "audio", "video":
		return []string{name}
	case "file":
		return []string{"pdf", "image", "audio", "video"}
	}
	return nil
}

// mediaName names the values of a media type.
func mediaName(name string) string {
	return map[string]string{"image": "images", "audio": "audio", "video": "videos", "file": "documents"}[name]
}

func modelWithoutSchema() rule {
	return rule{code: "QT611", warning: true, check: on(func(p *ruleContext, m *spec.Model) {
		row := knownModel(m)
		if row == nil || m.StructuredOutput != "schema" || !m.Position().Complete("structured_output") {
			return
		}
		if s := row.Structured; s.JSONSchema == catalogue.No && s.ForcedTool != catalogue.Yes && s.By == "" {
			p.list.Add(p.reportAt(placeOf(m, "structured_output", "id"), "%s of %s takes no JSON schema", row.ID, row.Provider).WithHint("write structured_output: auto"))
		}
	})}
}

func modelWithoutStream() rule {
	return rule{code: "QT612", warning: true, check: on(func(p *ruleContext, f *spec.Flow) {
		if f.Interface == nil || len(f.Steps) == 0 || !f.Position().Complete("steps") || f.Steps[len(f.Steps)-1] == nil {
			return
		}
		last := f.Steps[len(f.Steps)-1].Step
		if last == nil || !spec.Streams(last) || p.stepPlan(last).Model() == nil {
			return
		}
		for _, m := range modelAndFallbacks(p.stepPlan(last).Model().Base()) {
			if row := knownModel(m); row != nil && row.Streaming == catalogue.StreamsNever {
				p.report(placeOf(last, "model", "id"), "the answer of the flow %q is streamed, but %s of %s answers in one piece", f.ID, row.ID, row.Provider)
			}
		}
	})}
}

func citationRules() []rule { return []rule{sourcesType(), indexToolInputs(), indexToolMode()} }

func sourcesType() rule {
	return rule{code: "QT546", check: on(func(p *ruleContext, s spec.Step) {
		for _, u := range spec.UsesOf(s) {
			ref, ok := u.Ref.(*spec.Ref[*spec.Variable])
			if !ok || u.Key != "sources" {
				continue
			}
			t, known := p.typed(ref)
			if known && !t.IsListOf("RAGSearchResult") && !t.IsListOf("SearchResult") && !t.IsListOf("RAGChunk") {
				p.report(ref.Span, "sources of step %q must be list[RAGSearchResult] or list[SearchResult]; %q is %s", s.EntityID(), ref.ID, t)
			}
		}
	})}
}

func indexToolInputs() rule {
	return rule{code: "QT547", check: on(func(p *ruleContext, t *spec.IndexTool) {
		if len(t.Inputs) == 0 {
			return
		}
		query := spec.VariableByID(t.Inputs, spec.IndexToolQuery)
		if query == nil {
			p.list.Add(p.reportAt(placeOf(t, "inputs", "id"), "the tool %q has no input %q", t.ID, spec.IndexToolQuery).
				WithHint("add {id: query, type: text}, or remove inputs"))
		} else if !query.Type.Is("text") {
			p.report(typePlace(query.Position().Field("type")), "the input %q of tool %q must be text, is %s", query.ID, t.ID, query.Type)
		}
		if v := spec.VariableByID(t.Inputs, spec.IndexToolTopK); v != nil && !v.Type.Is("int") {
			p.report(typePlace(v.Position().Field("type")), "the input %q of tool %q must be int, is %s", v.ID, t.ID, v.Type)
		}
		for _, v := range t.FilterInputs() {
			if !v.Type.Is("text") && !v.Type.Is("int") && !v.Type.Is("float") && !v.Type.Is("boolean") {
				p.report(typePlace(v.Position().Field("type")), "the input %q of tool %q filters by metadata; it must be text, int, float or boolean, is %s", v.ID, t.ID, v.Type)
			}
		}
	})}
}

func indexToolMode() rule {
	return rule{code: "QT548", check: on(func(p *ruleContext, t *spec.IndexTool) {
		field, given := t.Position().Lookup("mode")
		if _, words := t.Index.To.(*spec.DocumentIndex); words && given && t.Mode != "text" {
			p.report(field.Span(), "the tool %q searches the DocumentIndex %q, which has no mode %s", t.ID, t.Index.ID, t.Mode)
		}
	})}
}
