package provider

import (
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// maxRateLimitWait is how long one call waits for the provider's rate limit by default.
const maxRateLimitWait = 10 * time.Minute

// withBreaker adds the circuit breaker of the server that a model calls.
func withBreaker(p model.CallPolicy, m *spec.Model, endpoint string, opts Options) model.CallPolicy {
	failures, openFor := 20, 30*time.Second
	if c := m.CircuitBreaker; c != nil {
		failures, openFor = c.Failures, time.Duration(c.OpenFor)
	}
	p.Breaker = opts.Traffic.Breaker(endpoint, failures, openFor, opts.Warn)
	return p
}

// callPolicy returns the declared timeout, retries and rate limit. The defaults of the
// language apply to a model that a Go program made without them. key identifies the
// limiter; models of the same server, name and credential share it.
func callPolicy(m *spec.Model, key string, opts Options) model.CallPolicy {
	p := model.CallPolicy{Timeout: 2 * time.Minute, MaxAttempts: 3, InitialDelay: 500 * time.Millisecond, MaxDelay: 30 * time.Second}
	if m.Timeout > 0 {
		p.Timeout = time.Duration(m.Timeout)
	}
	var limit spec.RateLimit
	if m.RateLimit != nil {
		limit = *m.RateLimit
	}
	p.Limit = opts.Traffic.Limiter(key, limit.RequestsPerMinute, limit.TokensPerMinute)
	if len(m.Fallbacks) == 0 { // otherwise the next model is called instead of a long wait
		p.MaxWait = maxRateLimitWait
		if limit.MaxWait > 0 {
			p.MaxWait = time.Duration(limit.MaxWait)
		}
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
