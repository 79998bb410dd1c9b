package provider

import (
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// callPolicy returns the declared timeout, retries and rate limit. The defaults
// of the language apply to a model that a Go program made without them.
func callPolicy(m *spec.Model) model.CallPolicy {
	p := model.CallPolicy{Timeout: 2 * time.Minute, MaxAttempts: 3, InitialDelay: 500 * time.Millisecond, MaxDelay: 30 * time.Second}
	if m.Timeout > 0 {
		p.Timeout = time.Duration(m.Timeout)
	}
	if l := m.RateLimit; l != nil {
		p.Limit = model.NewLimiter(l.RequestsPerMinute, l.TokensPerMinute)
	}
	if r := m.Retry; r != nil {
		p.MaxAttempts = max(r.MaxAttempts, 1)
		if r.InitialDelay > 0 {
			p.InitialDelay = time.Duration(r.InitialDelay)
		}
		if r.MaxDelay > 0 {
			p.MaxDelay = time.Duration(r.MaxDelay)
		}
	}
	return p
}
