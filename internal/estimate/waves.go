package estimate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// Batch is what changes if calls are made in batches of the providers, in the background, or by the tier flex.
type Batch struct {
	Money  float64  `json:"money"`             // expected
	Flex   bool     `json:"flex,omitempty"`    // by the tier flex, at once
	Window string   `json:"window,omitempty"`  // in the background, within this time
	Waves  int64    `json:"waves"`             // one after the other; 0 with Flex
	AtOnce []string `json:"at_once,omitempty"` // models without batches, or the tier, which cost what they cost otherwise
	Notes  []string `json:"notes,omitempty"`   // why the run gains little
}

// manyWaves is the number of waves from which on a run takes long for what it saves: most batches end within an hour.
const manyWaves = 24

// waves finds out how many calls wait for each other. A nil *waves counts nothing. It is safe for concurrent use.
type waves struct {
	models map[string]bool // by their ids: those with batches, or the tier flex
	flex   bool
	window string

	mu       sync.Mutex
	calls    map[string]int64 // by the ids of steps: calls in batches for one row, at most
	sessions map[string]int64 // the rows of each session
}

func newWaves(app *runtime.App, flex bool, window string) *waves {
	w := &waves{models: map[string]bool{}, flex: flex, window: window, calls: map[string]int64{}, sessions: map[string]int64{}}
	for _, doc := range app.Spec().Documents() {
		for _, m := range doc.Models {
			switch {
			case flex:
				w.models[m.Base().ID] = provider.HasFlex(m.Base())
			case window != "":
				has, why := provider.WhyAtOnce(m, nil, window)
				w.models[m.Base().ID] = has && why == ""
			default:
				w.models[m.Base().ID] = app.HasBatches(m)
			}
		}
	}
	return w
}

// charge returns what a call costs.
func (w *waves) charge(used model.Usage, prices *catalogue.Prices) float64 {
	if w.flex {
		used.Tier = catalogue.TierFlex
		return used.Charge(prices, time.Now())
	}
	used.Tier = provider.BatchTier(w.window)
	return used.Charge(provider.BatchPrices(prices), time.Now())
}

// has reports whether calls of a model are made in batches.
func (w *waves) has(model string) bool { return w != nil && w.models[model] }

// addTurn adds a row of a session.
func (w *waves) addTurn(session string) {
	if w != nil {
		w.sessions[session]++
	}
}

// callsKey is the key of the number of calls that a step makes for a row, an *atomic.Int64.
type callsKey struct{}

// count counts a call of a model.
func (w *waves) count(ctx context.Context, model string) {
	if n, ok := ctx.Value(callsKey{}).(*atomic.Int64); ok && w.has(model) {
		n.Add(1)
	}
}

// ended notes how many calls a step has made for a row.
func (w *waves) ended(step string, calls int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[step] = max(w.calls[step], calls)
}

// number returns how many waves follow each other: calls of a row, and the turns of the longest session.
func (w *waves) number(flow *spec.Flow) (n, turns int64) {
	all := flow.Plan().Steps
	usesMemory := func(s *spec.StepPlan) bool { return s.UsesMemory() }
	first := slices.IndexFunc(all, usesMemory)
	turns = 1
	for _, rows := range w.sessions {
		turns = max(turns, rows)
	}
	for i, s := range all {
		calls := w.calls[s.Step.EntityID()]
		if first >= 0 && i >= first && slices.ContainsFunc(all[i:], usesMemory) {
			calls *= turns
		}
		n += calls
	}
	if first < 0 {
		turns = 1
	}
	return n, turns
}

// report returns what batches change. It is an error if no model of the flow has them, as in a run.
func (w *waves) report(r *Report, flow *spec.Flow) (*Batch, error) {
	b, what := &Batch{Flex: w.flex, Window: w.window}, "batches"
	switch {
	case w.flex:
		what = "the tier flex"
	case w.window != "":
		what = "responses in the background"
	}
	for _, m := range r.Models {
		b.Money += m.inBatch
		if !w.models[m.ID] {
			b.AtOnce = append(b.AtOnce, m.ID)
		}
	}
	if len(b.AtOnce) == len(r.Models) {
		return nil, fmt.Errorf("--batch: no model of flow %s has %s", flow.ID, what)
	}
	if w.flex {
		return b, nil
	}
	n, turns := w.number(flow)
	if b.Waves = n; n >= manyWaves {
		why := "step " + slices.MaxFunc(slices.Sorted(maps.Keys(w.calls)), func(a, b string) int { return int(w.calls[a] - w.calls[b]) }) + " calls models several times for each row"
		if turns > 1 {
			why = "the longest session has " + textfmt.Count(turns, "row") + ", which follow each other"
		}
		b.Notes = append(b.Notes, fmt.Sprintf("%s, of minutes to hours each: %s", textfmt.Count(n, "wave"), why))
	}
	if r.Rows == 1 {
		b.Notes = append(b.Notes, "the run has one row, which waits for a batch of its own")
	}
	return b, nil
}
