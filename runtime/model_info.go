package runtime

import (
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// modelInfo describes a model, and makes it if no run has.
func (a *App) modelInfo(m spec.ModelEntity) (model.Info, error) {
	if _, embeds := a.models.embedders.whole[m.Base()]; embeds {
		made, err := a.models.embedders.get(m.Base())
		if err != nil {
			return model.Info{}, err
		}
		return made.Info(), nil
	}
	made, err := a.models.chat.get(m.Base())
	if err != nil {
		return model.Info{}, err
	}
	return made.Info(), nil
}

// Models returns the models that a flow uses, itself or in flows that it runs, in
// the order of the steps, each once.
func (a *App) Models(flowID string) ([]model.Info, error) {
	f, err := a.Flow(flowID)
	if err != nil {
		return nil, err
	}
	var infos []model.Info
	seen := map[spec.ModelEntity]bool{}
	for s := range f.Plan().All() {
		for _, m := range s.Models() {
			if seen[m] {
				continue
			}
			seen[m] = true
			info, err := a.modelInfo(m)
			if missing := new(provider.CredentialsError); errors.As(err, &missing) && isOfIndex(s, m) {
				continue // a search for words calls no model; others report it
			}
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// isOfIndex reports whether only indexes call the model for the step.
func isOfIndex(s *spec.StepPlan, m spec.ModelEntity) bool {
	calls := func(uses []spec.Use) bool {
		return slices.Contains(spec.Linked[spec.ModelEntity](uses, spec.RoleChatModel, spec.RoleEmbedding), m)
	}
	return !calls(s.Uses) && !slices.ContainsFunc(s.Callers(), func(n spec.Node) bool {
		_, index := n.(spec.Index)
		return !index && calls(spec.UsesOf(n))
	})
}
