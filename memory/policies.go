package memory

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// policyBuilder makes the behavior of a policy.
type policyBuilder struct {
	build    func(Limits) evictionPolicy // receives complete limits
	reason   func(store.Event) string    // the reason of an event that was stored without one; nil if all have one
	measured bool                        // the policy counts characters
}

// policyBuilders has a builder for each row of spec.Policies.
func policyBuilders() map[spec.Policy]policyBuilder {
	return map[spec.Policy]policyBuilder{
		spec.PolicyFlush:         {build: newFlush},
		spec.PolicyMessageWindow: {build: newMessageWindow, reason: messageWindowReason},
		spec.PolicyTokenWindow:   {build: newTokenWindow, reason: tokenWindowReason},
		spec.PolicyRoundWindow:   {build: newRoundWindow, reason: roundWindowReason, measured: true},
		spec.PolicyUnbounded:     {build: newUnbounded},
	}
}

// policyKind is the policy of a memory without limits.
type policyKind struct {
	spec.PolicyRow
	policyBuilder
}

// findPolicy returns the policy with a name.
func findPolicy(name spec.Policy) (policyKind, error) {
	row, known := spec.FindPolicy(name)
	builder, built := policyBuilders()[row.Name]
	if !known || !built {
		var names []string
		for _, r := range spec.Policies() {
			names = append(names, string(r.Name))
		}
		last := len(names) - 1
		return policyKind{}, fmt.Errorf("unknown policy %q: it is %s or %s", name, strings.Join(names[:last], ", "), names[last])
	}
	return policyKind{row, builder}, nil
}

// with returns the policy with limits.
func (k policyKind) with(l Limits) (evictionPolicy, error) {
	all, err := l.complete(k.PolicyRow)
	if err != nil {
		return nil, err
	}
	return k.build(all), nil
}
