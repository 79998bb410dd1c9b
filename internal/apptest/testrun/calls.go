package testrun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// ToolCall is a call of a tool.
type ToolCall struct {
	Name      string // that models see
	Arguments string // a JSON object; of a model, whatever it has written
}

// addCall records a call for the assertions of the turn.
func (e *testEnv) addCall(ev steps.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, ToolCall{ev.Tool, ev.Text})
}

// approve decides about a call that needs approval.
func (e *testEnv) approve(_ context.Context, req tool.Request) (yes bool, reason string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !req.Tool.IsAmong(e.reject) {
		return true, "", nil
	}
	e.rejected[req.Tool.Name]++
	return false, "", nil
}

// checkCalls checks the calls of tools in a turn.
func (r *testRun) checkCalls(t *spec.Turn) {
	r.env.mu.Lock()
	calls := &Calls{App: r.app.Spec(), Made: slices.Clone(r.env.calls), Rejected: r.env.rejected}
	r.env.mu.Unlock()
	r.diagnostics.Add(calls.Check(t.Calls)...)
	r.diagnostics.Add(calls.CheckOrder(t, t.CallOrder)...)
}

// Calls are the calls of tools that assertions are about.
type Calls struct {
	App      *spec.Application
	Made     []ToolCall     // in the order of their starts
	Rejected map[string]int // the calls that were not approved, by the names of tools
}

// Check returns the assertions that are not met.
func (c *Calls) Check(assertions []*spec.CallAssertion) (list diag.List) {
	for _, a := range assertions {
		name := cmp.Or(a.Function, apptest.ToolName(c.App, a.ID))
		own := slices.DeleteFunc(slices.Clone(c.Made), func(one ToolCall) bool { return one.Name != name })
		if a.Calls != nil && len(own) != *a.Calls {
			list.Add(apptest.Expectation.At(apptest.SpanOf(a, "calls"), "tool %s was called %s, not %d", name, textfmt.Count(len(own), "time"), *a.Calls).WithHint("%s", c.shown()))
		}
		if a.Rejected != nil && c.Rejected[name] != *a.Rejected {
			list.Add(apptest.Expectation.At(apptest.SpanOf(a, "rejected"), "%s of tool %s rejected, not %d", textfmt.Count(c.Rejected[name], "call"), name, *a.Rejected))
		}
		if len(a.Arguments) > 0 && !slices.ContainsFunc(own, func(one ToolCall) bool { return one.has(a.Arguments) }) {
			list.Add(apptest.Expectation.At(apptest.SpanOf(a, "arguments"), "no call of tool %s has these arguments", name).WithHint("%s", c.shown()))
		}
	}
	return list
}

// CheckOrder checks that tools were called in an order, with any calls between. n has the key call_order.
func (c *Calls) CheckOrder(n spec.Node, order []string) (list diag.List) {
	rest := c.Made
	for i, id := range order {
		name := apptest.ToolName(c.App, id)
		at := slices.IndexFunc(rest, func(one ToolCall) bool { return one.Name == name })
		if at < 0 {
			where := ""
			if i > 0 {
				where = " after " + order[i-1]
			}
			list.Add(apptest.Expectation.At(n.Position().Field("call_order").Index(i).Span(), "tool %s was not called%s", name, where).WithHint("%s", c.shown()))
			return list
		}
		rest = rest[at+1:]
	}
	return list
}

// has reports whether the arguments have the values. Numbers are equal if their values are.
func (c ToolCall) has(want map[string]any) bool {
	var given map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Arguments), &given) != nil {
		return false
	}
	for name, v := range want {
		raw, ok := given[name]
		if !ok || !isSameJSON(raw, value.JSON(v)) {
			return false
		}
	}
	return true
}

// isSameJSON reports whether two JSON texts have the same value.
func isSameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return string(value.JSON(x)) == string(value.JSON(y))
}

// shown lists the calls in one line.
func (c *Calls) shown() string {
	if len(c.Made) == 0 {
		return "no tool was called"
	}
	var shown []string
	for _, one := range c.Made {
		shown = append(shown, fmt.Sprintf("%s %s", one.Name, textfmt.Ellipsis(one.Arguments, maxShownValue)))
	}
	return "calls: " + strings.Join(shown, ", ")
}

// CheckRows returns the assertions on tables that are not met.
func CheckRows(state *mockstate.State, assertions []*spec.RowAssertion) (list diag.List) {
	for _, a := range assertions {
		n := state.Count(a.Table, a.Where)
		if a.Rows == nil && n > 0 || a.Rows != nil && n == *a.Rows {
			continue
		}
		place, want := apptest.SpanOf(a, "where"), "1 or more"
		if a.Rows != nil {
			place, want = apptest.SpanOf(a, "rows"), fmt.Sprint(*a.Rows)
		}
		rows := "no rows"
		if all := state.Rows(a.Table); len(all) > 0 {
			rows = textfmt.Ellipsis("rows: "+strings.Join(all, ", "), maxShownState)
		}
		list.Add(apptest.Expectation.At(place, "table %s has %s with these values, not %s", a.Table, textfmt.Count(n, "row"), want).WithHint("%s", rows))
	}
	return list
}

// maxShownState is the length of rows in diagnostics, in characters.
const maxShownState = 400

// checkSome checks the texts that at least one request contains.
func (r *testRun) checkSome(a *spec.RequestAssertion, requests []model.Request) {
	for i, text := range a.SomeContain {
		has := func(req model.Request) bool {
			return slices.ContainsFunc(textsOf(req.Messages), func(content string) bool { return strings.Contains(content, text) })
		}
		if len(requests) > 0 && !slices.ContainsFunc(requests, has) {
			r.diagnostics.Add(apptest.Expectation.At(a.Position().Field("some_contain").Index(i).Span(), "none of %s to %s contains %q", textfmt.Count(len(requests), "request"), a.ID, text))
		}
	}
}
