package provider

import (
	"maps"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// HasFlex reports whether a model requests the tier flex if that is wanted: it has the tier, and the document names none.
func HasFlex(m *spec.Model) bool {
	known, _ := m.Known()
	return known.HasFlex() && m.InferenceParams["service_tier"] == nil
}

// useFlex requests the tier flex if the model has it, unless the document names a tier. Calls may wait for minutes, and
// are refused without costs while the provider has no room, so that they have more time, and more attempts if the document
// does not declare how many.
func (c *client) useFlex(m *spec.Model, p model.CallPolicy) model.CallPolicy {
	const (
		timeout  = 15 * time.Minute
		attempts = 10
		maxDelay = time.Minute
	)
	if !HasFlex(m) {
		return p
	}
	params := maps.Clone(c.config.Params)
	if params == nil {
		params = map[string]any{}
	}
	params["service_tier"] = catalogue.TierFlex
	c.config.Params = params
	if p.Timeout = max(p.Timeout, timeout); m.Retry == nil {
		p.MaxAttempts, p.MaxDelay = attempts, maxDelay
	}
	return p
}
