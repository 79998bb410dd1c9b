package memory

import (
	"math"

	"github.com/qtype-dev/qtype/memory/internal/change"
	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// factor returns the factor of a model, 1 if the provider has counted nothing yet, and
// the tokens that are left for the template.
func (t *Turn) factor(model string) (factor float64, reserve int) {
	known := t.corrections()[model].Factor
	if known < 1 || math.IsNaN(known) {
		return 1, 0
	}
	return min(known, change.MaxFactor), change.TemplateRoom
}

// corrections returns what the session and the turn know of models.
func (t *Turn) corrections() change.Factors { return change.FactorsOf(t.base.Values).Raised(t.factors) }

// within returns the budget with the context window that the provider reported, if that is smaller.
func (t *Turn) within(b Budget) Budget {
	if limit := t.corrections()[b.Model].Limit; limit > 0 && (b.ContextWindow <= 0 || limit < b.ContextWindow) {
		b.ContextWindow = limit
	}
	return b
}

// inputRoom returns how many tokens, as this memory counts them, the input of a call may
// have; it is negative if there is no room.
func (t *Turn) inputRoom(b Budget) int {
	factor, reserve := t.factor(b.Model)
	return int(math.Floor(float64(b.ContextWindow-b.Answer-reserve) / factor))
}

// uncounted returns the tokens that are left free because the provider has not counted
// some of the entries: all of them before its first report, afterwards those since the
// answer before the turn, whose first entry is own.
func (t *Turn) uncounted(b Budget, entries []*store.Entry, own int) int {
	known := t.corrections()[b.Model].Factor
	margin := b.Margin / max(known, 1)
	if margin <= 1 {
		return 0
	}
	if known > 0 {
		entries = entries[min(max(own-1, 0), len(entries)):]
	}
	return int(math.Ceil(float64(window.SumTokens(entries)) * (margin - 1)))
}
