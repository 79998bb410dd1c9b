package estimate

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
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
	perCall              float64 // the highest price of one call
	perToken             float64 // the highest price of a token
	open                 []string
}

func (b *bound) add(c bound, times float64) {
	b.calls, b.tokens, b.money = b.calls+times*c.calls, b.tokens+times*c.tokens, b.money+times*c.money
	b.perCall, b.perToken = max(b.perCall, c.perCall), max(b.perToken, c.perToken)
	b.because(c.open)
}

// because adds reasons for which there is no bound, each once.
func (b *bound) because(reasons []string) {
	for _, r := range reasons {
		if !slices.Contains(b.open, r) {
			b.open = append(b.open, r)
		}
	}
}

// worst returns the most that a run of a flow over rows can cost.
func worst(flow *spec.Flow, rows int64) Worst {
	row := boundOf(flow, map[*spec.Flow]bool{})
	w := Worst{Known: len(row.open) == 0, Open: row.open}
	tokens, money := math.Inf(1), math.Inf(1)
	if w.Known {
		tokens, money, w.By = float64(rows)*row.tokens, float64(rows)*row.money, "windows"
	}
	if b := flow.Budget; b != nil {
		before := money
		if b.Tokens > 0 {
			tokens = min(tokens, float64(b.Tokens))
			money = min(money, float64(b.Tokens)*row.perToken)
		}
		if b.Calls > 0 && w.Known {
			money = min(money, float64(b.Calls)*row.perCall)
		}
		if b.Money > 0 {
			money = min(money, b.Money)
		}
		if money < before {
			w.By, w.Known = "budget", true
		}
	}
	if w.Known {
		w.Money = money
		if !math.IsInf(tokens, 1) {
			w.Tokens = tokens
		}
	}
	return w
}

// boundOf returns the bound of one row of a flow.
func boundOf(flow *spec.Flow, within map[*spec.Flow]bool) bound {
	var all bound
	if within[flow] {
		all.open = append(all.open, fmt.Sprintf("flow %s calls itself", flow.ID))
		return all
	}
	within[flow] = true
	defer delete(within, flow)
	many := ""
	for _, s := range flow.Plan().Steps {
		id := s.Step.EntityID()
		one := stepBound(s, within)
		if many != "" && one.calls > 0 {
			one.open = append(one.open, fmt.Sprintf("step %s makes any number of rows", many))
		}
		all.add(one, 1)
		if s.Rows == spec.RowsMany {
			many = id
		}
	}
	return all
}

// stepBound returns the bound of one row of a step.
func stepBound(s *spec.StepPlan, within map[*spec.Flow]bool) bound {
	var all bound
	rounds := limitOf(s.Step, "max_tool_executions") + 1
	for _, m := range s.Models() {
		all.add(callBound(m), rounds)
	}
	times := max(limitOf(s.Step, "max_iterations"), limitOf(s.Step, "max_tool_executions"), 1)
	for _, f := range s.Flows() {
		all.add(boundOf(f, within), times)
	}
	return all
}

// limitOf returns the value of a key of a step; 0 if it has no such key.
func limitOf(s spec.Step, key string) float64 {
	v := reflect.Indirect(reflect.ValueOf(s))
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name == key && v.Field(i).CanInt() {
			return float64(v.Field(i).Int())
		}
	}
	return 0
}

// callBound returns the bound of one call of a model or of a fallback of it.
func callBound(m spec.ModelEntity) bound {
	all := ownBound(m.Base())
	for _, f := range m.Base().Fallbacks {
		if f.To == nil {
			continue
		}
		other := ownBound(f.To.Base())
		all.tokens, all.money = max(all.tokens, other.tokens), max(all.money, other.money)
		all.perCall, all.perToken = max(all.perCall, other.perCall), max(all.perToken, other.perToken)
		all.because(other.open)
	}
	return all
}

func ownBound(m *spec.Model) bound {
	if m.IsMock() {
		return bound{calls: 1}
	}
	info := model.Describe(m)
	b := bound{calls: 1, tokens: float64(info.ContextWindow)}
	if info.ContextWindow == 0 {
		b.open = []string{fmt.Sprintf("model %s has no context_window", m.ID)}
	}
	p := m.Prices
	if p == nil {
		b.open = append(b.open, fmt.Sprintf("model %s has no prices", m.ID))
		return b
	}
	b.perToken = max(p.Input, p.Output) / 1e6
	output := b.tokens
	if info.MaxTokens > 0 {
		output = min(output, float64(info.MaxTokens))
	}
	if p.Output < p.Input {
		output = 0
	}
	b.money = price(p, b.tokens-output, output)
	b.perCall = b.money
	return b
}
