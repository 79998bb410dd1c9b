package window

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// Builder makes the behavior of a policy.
type Builder struct {
	Build    func(Limits) Policy      // receives complete limits
	Reason   func(store.Event) string // the reason of an event that was stored without one; nil if all have one
	Measured bool                     // the policy counts characters
}

// Builders has a builder for each row of spec.Policies.
func Builders() map[spec.Policy]Builder {
	return map[spec.Policy]Builder{
		spec.PolicyFlush:         {Build: newFlush},
		spec.PolicyMessageWindow: {Build: newMessageWindow, Reason: messageWindowReason},
		spec.PolicyTokenWindow:   {Build: newTokenWindow, Reason: tokenWindowReason},
		spec.PolicyRoundWindow:   {Build: newRoundWindow, Reason: roundWindowReason, Measured: true},
		spec.PolicyUnbounded:     {Build: newUnbounded},
	}
}

// Kind is the policy of a memory without limits.
type Kind struct {
	spec.PolicyRow
	Builder
}

// FindPolicy returns the policy with a name.
func FindPolicy(name spec.Policy) (Kind, error) {
	row, known := spec.FindPolicy(name)
	builder, built := Builders()[row.Name]
	if !known || !built {
		var names []string
		for _, r := range spec.Policies() {
			names = append(names, string(r.Name))
		}
		last := len(names) - 1
		return Kind{}, fmt.Errorf("unknown policy %q: it is %s or %s", name, strings.Join(names[:last], ", "), names[last])
	}
	return Kind{row, builder}, nil
}

// With returns the policy with limits.
func (k Kind) With(l Limits) (Policy, error) {
	all, err := l.complete(k.PolicyRow)
	if err != nil {
		return nil, err
	}
	return k.Build(all), nil
}
