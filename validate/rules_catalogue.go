package validate

import (
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// catalogueRules returns the rules of what the catalogue knows of models.
func catalogueRules() []rule {
	return []rule{stoppedModel(), stoppingModel(), unknownModel(), otherKindOfModel(), fixedDimensions(), refusedByModel(),
		unlistedValue(), twoFormsOfSetting(), tooManyTokens(), modelWithoutTools(), modelWithoutMedia(), modelWithoutSchema(), modelWithoutStream()}
}

// noticeDays is how many days before its shutdown a model is reported.
const noticeDays = 90

// knownModel returns what the catalogue has of a model of the provider's own service, nil for
// other servers, unknown models and names that the environment decides.
func knownModel(m *spec.Model) *catalogue.Model {
	if service := m.Service(); service != "" && isNamed(m) {
		if row, ok := m.Known(); ok && row.Provider == service {
			return row
		}
	}
	return nil
}

// isNamed reports whether the document has all that a model is looked up by.
func isNamed(m *spec.Model) bool {
	return m.Position().Complete("provider", "model_id", "base_url") && isDecided(m.Provider+m.ModelID+m.BaseURL)
}

// modelPlace is where the name of a model is.
func modelPlace() []string { return []string{"model_id", "id"} }

func stoppedModel() rule {
	return rule{code: "QT600", warning: true, check: on(func(p *ruleContext, m spec.ModelEntity) {
		row := knownModel(m.Base())
		if row == nil || !row.StopsBy(p.doc.Day) || row.Redirected {
			return
		}
		when := ""
		if row.Shutdown != "" {
			when = " on " + row.Shutdown
		}
		p.reportSuccessor(m, row, fmt.Sprintf("%s shut down the model %s%s", row.Provider, row.ID, when))
	})}
}

func stoppingModel() rule {
	return rule{code: "QT601", warning: true, check: on(func(p *ruleContext, m spec.ModelEntity) {
		row := knownModel(m.Base())
		if row == nil || p.doc.Day.IsZero() {
			return
		}
		left, dated := row.DaysLeft(p.doc.Day)
		switch {
		case !dated || left > noticeDays:
		case row.Redirected:
			p.reportSuccessor(m, row, fmt.Sprintf("from %s on, %s answers the name %s with %s, at its prices and with its parameters", row.Shutdown, row.Provider, row.ID, row.Replacement))
		case left > 0:
			p.reportSuccessor(m, row, fmt.Sprintf("%s will shut down the model %s on %s, in %s", row.Provider, row.ID, row.Shutdown, textfmt.Count(left, "day")))
		}
	})}
}

// reportSuccessor reports a model that stops, with the model to use in its place.
func (p *ruleContext) reportSuccessor(m spec.ModelEntity, row *catalogue.Model, problem string) {
	base := m.Base()
	until := time.Time{}
	if !p.doc.Day.IsZero() {
		until = p.doc.Day.AddDate(0, 0, noticeDays)
	}
	d := p.reportAt(placeOf(m, modelPlace()...), "%s", problem)
	name, next := base.Catalogue.Successor(row, until)
	switch {
	case next == nil && row.Replacement != "":
		d = d.WithHint("the provider names %s as the replacement", row.Replacement)
	case next == nil:
		d = d.WithHint("the catalogue has no replacement; `qtype models %s` lists the models of the provider", row.Provider)
	case base.Provider == "azure-openai": // what answers is the deployment, whatever model_id says
		d = d.WithHint("use a deployment of %s", name)
	default:
		d = d.WithHint("use model_id: %s", name)
		if fixed := d.WithReplacement(base.ModelID, name); len(fixed.Fixes) > 0 {
			d = p.withAdaptedParams(fixed, m, name)
		}
	}
	p.list.Add(d)
}

// withAdaptedParams adds to the fix that renames a model what its parameters need.
func (p *ruleContext) withAdaptedParams(d diag.Diagnostic, m spec.ModelEntity, name string) diag.Diagnostic {
	if _, embeds := m.(*spec.EmbeddingModel); embeds {
		return d.WithoutFix() // vectors of two models cannot be compared: stored ones must be made again
	}
	next := *m.Base()
	next.ModelID = name
	removed, fixes, ok := adaptParams(&next)
	if len(removed) > 0 {
		d = d.WithHint("use model_id: %s, without %s, which it refuses", name, strings.Join(removed, ", "))
	}
	if !ok {
		return d.WithoutFix()
	}
	d.Fixes = append(d.Fixes, fixes...)
	return d
}

func unknownModel() rule {
	return rule{code: "QT602", warning: true, check: on(func(p *ruleContext, e spec.ModelEntity) {
		m := e.Base()
		service := m.Service()
		if _, own := p.doc.Language.Provider(service); !own || m.ModelID == "" || !isNamed(m) || !m.Catalogue.HasProvider(service) || namesNoModel(m) {
			return
		}
		if _, ok := m.Known(); ok {
			return
		}
		d := p.reportAt(placeOf(e, modelPlace()...), "the catalogue has no model %q of %s, so its limits and prices are unknown", m.ModelID, service)
		add := fmt.Sprintf("a new model is a row of models.yaml: {provider: %s, id: %s, context_window: …}", service, m.ModelID)
		if near := m.Catalogue.Nearest(service, m.ModelID); len(near) > 0 {
			p.list.Add(d.WithSuggestion(near[0]).WithHint("similar names: %s; %s", strings.Join(near, ", "), add))
			return
		}
		p.list.Add(d.WithHint("%s", add))
	})}
}

// namesNoModel reports whether model_id is the name of what somebody made of a model: a
// deployment, an ARN of Bedrock or a path.
func namesNoModel(m *spec.Model) bool {
	switch m.Provider {
	case "azure-openai":
		return m.Deployment == ""
	case "aws-bedrock":
		return strings.HasPrefix(m.ModelID, "arn:")
	case "gcp-vertex", "google-ai":
		return strings.Contains(strings.TrimPrefix(m.ModelID, "models/"), "/")
	}
	return false
}

func otherKindOfModel() rule {
	return rule{code: "QT603", check: on(func(p *ruleContext, m spec.ModelEntity) {
		row := knownModel(m.Base())
		if row == nil || row.Kind == "" {
			return
		}
		wanted, kind := catalogue.Chat, "Model"
		if _, embeds := m.(*spec.EmbeddingModel); embeds {
			wanted, kind = catalogue.Embedding, "EmbeddingModel"
		}
		if row.Kind != wanted {
			is := map[catalogue.Kind]string{catalogue.Chat: "a chat model", catalogue.Embedding: "an embedding model", catalogue.Rerank: "a model for reranking"}[row.Kind]
			p.report(placeOf(m, modelPlace()...), "%s of %s is %s, not one for the type %s", row.ID, row.Provider, is, kind)
		}
	})}
}

func fixedDimensions() rule {
	return rule{code: "QT604", warning: true, check: on(func(p *ruleContext, m *spec.EmbeddingModel) {
		row := knownModel(&m.Model)
		if row == nil || row.Dimensions == 0 || !m.Position().Complete("dimensions") || m.Dimensions == 0 {
			return
		}
		var problem string
		switch {
		case row.DimensionsSet == catalogue.No && m.Dimensions != row.Dimensions:
			problem = fmt.Sprintf("vectors of %s have %d dimensions, not %d", row.ID, row.Dimensions, m.Dimensions)
		case row.DimensionsSet == catalogue.Yes && m.Dimensions > row.Dimensions:
			problem = fmt.Sprintf("vectors of %s have at most %d dimensions, not %d", row.ID, row.Dimensions, m.Dimensions)
		default:
			return
		}
		p.list.Add(p.reportAt(placeOf(m, "dimensions", "id"), "%s", problem).WithNumber(m.Dimensions, row.Dimensions))
	})}
}
