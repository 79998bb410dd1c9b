package estimate

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Worst is the most that a run can cost: by the context windows of its models, and by the
// budget of the flow. Repeated attempts of failed calls are not part of it.
type Worst struct {
	Known  bool     `json:"known"`            // there is a limit
	Tokens float64  `json:"tokens,omitempty"` // read and written
	Money  float64  `json:"money,omitempty"`  // in the currency of the prices
	By     string   `json:"by,omitempty"`     // what limits the money: windows or budget
	Open   []string `json:"open,omitempty"`   // why windows do not limit the run
}

// bound is the most that something can use.
type bound struct {
	calls, tokens, money float64
	perCall              float64  // the highest price of one call
	perToken             float64  // the highest price of a token
	byQuery              bool     // calls are charged that are not by tokens: a budget in tokens does not limit them
	unpriced             []string // models without prices: nothing limits their money
	unsized              []string // models without a context window: only a budget limits their tokens
	endless              []string // why the number of calls is not limited
}

func (b *bound) add(c bound, times float64) {
	b.calls, b.tokens, b.money = b.calls+times*c.calls, b.tokens+times*c.tokens, b.money+times*c.money
	b.perCall, b.perToken, b.byQuery = max(b.perCall, c.perCall), max(b.perToken, c.perToken), b.byQuery || c.byQuery
	b.because(c)
}

// because adds the reasons for which another bound does not limit something, each once.
func (b *bound) because(c bound) {
	b.unpriced, b.unsized, b.endless = union(b.unpriced, c.unpriced), union(b.unsized, c.unsized), union(b.endless, c.endless)
}

// open returns the reasons for which context windows are no limit.
func (b *bound) open() []string {
	var reasons []string
	for _, id := range b.unsized {
		reasons = append(reasons, fmt.Sprintf("model %s has no context_window", id))
	}
	for _, id := range b.unpriced {
		reasons = append(reasons, fmt.Sprintf("model %s has no prices", id))
	}
	return append(reasons, b.endless...)
}

// union adds to a list the values that it lacks.
func union(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// worst returns the most that a run of a flow over rows can cost, with a budget or nil.
func worst(flow *spec.Flow, budget *spec.Budget, rows int64) Worst {
	row := boundOf(flow, map[*spec.Flow]bool{})
	w := Worst{Open: row.open()}
	tokens, money := math.Inf(1), math.Inf(1)
	if len(w.Open) == 0 {
		tokens, money, w.By = float64(rows)*row.tokens, float64(rows)*row.money, "windows"
	}
	if budget != nil {
		if budget.Tokens > 0 {
			tokens = min(tokens, float64(budget.Tokens))
		}
		if limit := row.moneyOf(budget); limit < money {
			money, w.By = limit, "budget"
		}
	}
	if w.Known = !math.IsInf(money, 1); !w.Known {
		return w
	}
	w.Money = money
	if !math.IsInf(tokens, 1) {
		w.Tokens = tokens
	}
	return w
}

// moneyOf returns the most money that a budget allows; infinite if it does not limit it. A
// budget counts the tokens and calls of models without prices, but not their money.
func (b *bound) moneyOf(budget *spec.Budget) float64 {
	money := math.Inf(1)
	if len(b.unpriced) > 0 {
		return money
	}
	if budget.Tokens > 0 && !b.byQuery {
		money = min(money, float64(budget.Tokens)*b.perToken)
	}
	if budget.Calls > 0 && len(b.unsized) == 0 {
		money = min(money, float64(budget.Calls)*b.perCall)
	}
	if budget.Money > 0 {
		money = min(money, budget.Money)
	}
	return money
}

// boundOf returns the bound of one row of a flow.
func boundOf(flow *spec.Flow, within map[*spec.Flow]bool) bound {
	var all bound
	if within[flow] {
		all.endless = append(all.endless, fmt.Sprintf("flow %s calls itself", flow.ID))
		return all
	}
	within[flow] = true
	defer delete(within, flow)
	many := ""
	for _, s := range flow.Plan().Steps {
		id := s.Step.EntityID()
		one := stepBound(flow, s, within)
		if many != "" && one.calls > 0 {
			one.endless = union(one.endless, []string{fmt.Sprintf("step %s makes any number of rows", many)})
		}
		all.add(one, 1)
		if s.Rows == spec.RowsMany {
			many = id
		}
	}
	return all
}

// stepBound returns the bound of one row of a step.
func stepBound(flow *spec.Flow, s *spec.StepPlan, within map[*spec.Flow]bool) bound {
	var all bound
	rounds := roundsOf(s)
	if own, ok := s.Step.(steps.Maker); ok {
		rounds = float64(spec.CallLimit(own))
	}
	if judged, reason := judgements(flow, s); reason != "" {
		all.endless = append(all.endless, reason)
	} else if judged > 0 {
		rounds = judged
	}
	called := spec.Linked[spec.ModelEntity](s.Uses, spec.RoleChatModel, spec.RoleEmbedding)
	for _, n := range s.Callers() { // such as indexes, whose models embed what is searched or stored
		called = append(called, spec.Linked[spec.ModelEntity](spec.UsesOf(n), spec.RoleChatModel, spec.RoleEmbedding)...)
	}
	for _, m := range called {
		all.add(callBound(m), rounds)
	}
	if ranker, ok := s.Step.(spec.ChargedRanker); ok {
		all.add(rankBound(flow, s, ranker), 1)
	}
	times := max(limitOf(s.Step, "max_iterations"), limitOf(s.Step, "max_tool_executions"), 1)
	for _, f := range s.Flows() {
		all.add(boundOf(f, within), times)
	}
	return all
}

// roundsOf returns how often a step calls its model for a row: for each call of a tool, for the answer, and for each
// correction of an answer that does not match its type.
func roundsOf(s *spec.StepPlan) float64 {
	rounds := limitOf(s.Step, "max_tool_executions") + 1
	for _, out := range s.Step.Common().Outputs {
		if out.To != nil && out.To.Type.Custom != nil {
			return rounds + steps.MaxRepairs
		}
	}
	return rounds
}

// judgements returns how often a step calls a model that scores search results, 0 if it calls none, or why that has no limit.
func judgements(flow *spec.Flow, s *spec.StepPlan) (calls float64, endless string) {
	judge, ok := s.Step.(interface{ ResultsPerCall() int })
	if !ok || judge.ResultsPerCall() == 0 {
		return 0, ""
	}
	results, endless := resultsOf(flow, s)
	return math.Ceil(results/float64(judge.ResultsPerCall())) * (1 + rerank.Repairs), endless
}

// resultsOf returns how many search results a step sorts, or why that has no limit.
func resultsOf(flow *spec.Flow, s *spec.StepPlan) (results float64, endless string) {
	for _, in := range s.Step.Common().Inputs {
		if in.To == nil || !in.To.Type.IsList() {
			continue
		}
		found := 0.0
		for _, before := range flow.Plan().Steps {
			if slices.ContainsFunc(before.Step.Common().Outputs, func(out spec.Ref[*spec.Variable]) bool { return out.To == in.To }) {
				found = limitOf(before.Step, "default_top_k")
			}
		}
		if found == 0 {
			return 0, fmt.Sprintf("step %s scores any number of results", s.Step.EntityID())
		}
		results += found
	}
	return results, ""
}

// rankBound returns the bound of one row of a step that calls the model of a service: every result fills the
// window of the model, or is charged as one of the texts of a query.
func rankBound(flow *spec.Flow, s *spec.StepPlan, ranker spec.ChargedRanker) bound {
	m, charged := ranker.RankModel()
	if !charged {
		return bound{}
	}
	results, endless := resultsOf(flow, s)
	b := bound{calls: 1, tokens: results * float64(m.Window)}
	switch {
	case endless != "":
		b.endless = []string{endless}
	case m.Prices == nil:
		b.unpriced = []string{m.Name}
	case m.Prices.Queries == nil && m.Window == 0:
		b.unsized = []string{m.Name}
	default:
		rates := m.Prices.RatesAt(time.Now(), "", 0)
		b.money = math.Ceil(results/spec.RankQueryTexts)*valueOf(rates.Queries)/1e3 + b.tokens*valueOf(rates.Input)/1e6
		b.perCall, b.perToken, b.byQuery = b.money, valueOf(rates.Input)/1e6, valueOf(rates.Queries) > 0
	}
	return b
}

// limitOf returns the value of a key of a step; 0 if it has no such key.
func limitOf(s spec.Step, key string) float64 {
	v := reflect.Indirect(reflect.ValueOf(s))
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name == key {
			if field := reflect.Indirect(v.Field(i)); field.IsValid() && field.CanInt() {
				return float64(field.Int())
			}
		}
	}
	return 0
}

// callBound returns the bound of one call of a model or of a fallback of it.
func callBound(m spec.ModelEntity) bound {
	all := continued(m.Base())
	for _, f := range m.Base().Fallbacks {
		if f.To == nil {
			continue
		}
		other := continued(f.To.Base())
		all.tokens, all.money = max(all.tokens, other.tokens), max(all.money, other.money)
		all.perCall, all.perToken = max(all.perCall, other.perCall), max(all.perToken, other.perToken)
		all.because(other)
	}
	return all
}

// continued returns the bound of a call whose answer the model may be asked to continue.
func continued(m *spec.Model) bound {
	one := ownBound(m)
	if m.OnTruncation != model.TruncationContinue {
		return one
	}
	var all bound
	all.add(one, 1+model.MaxContinuations)
	return all
}

func ownBound(m *spec.Model) bound {
	if m.IsMock() {
		return bound{calls: 1}
	}
	info := model.Describe(m)
	b := bound{calls: 1, tokens: float64(info.ContextWindow)}
	if info.ContextWindow == 0 {
		b.unsized = []string{m.ID}
	}
	p := m.CallPrices()
	if p == nil {
		b.unpriced = []string{m.ID}
		return b
	}
	rates := p.RatesAt(time.Now(), tierOf(m), info.ContextWindow)
	// None of the tokens is in the provider's cache, and all are written to it, for the lifetime that requests have: the shortest one.
	input := max(valueOf(rates.Input), valueOf(cmp.Or(rates.CacheWrite5m, rates.CacheWrite30m, rates.CacheWrite1h, rates.CacheWrite12h)))
	answer := max(valueOf(rates.Output), valueOf(rates.ReasoningOutput))
	region := p.Uplift(m.PriceRegion(""))
	input, answer = input*region, answer*region
	b.perToken = max(input, answer) / 1e6
	output := b.tokens
	if info.MaxTokens > 0 {
		output = min(output, float64(info.MaxTokens))
	}
	if answer < input {
		output = 0
	}
	b.money = ((b.tokens-output)*input + output*answer) / 1e6
	b.perCall = b.money
	return b
}

// tierOf returns the tier of service that a model requests.
func tierOf(m *spec.Model) string {
	tier, _ := m.InferenceParams["service_tier"].(string)
	return tier
}

// valueOf returns a rate, 0 if it is unknown.
func valueOf(rate *float64) float64 {
	if rate == nil {
		return 0
	}
	return *rate
}
