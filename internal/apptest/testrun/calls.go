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
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// toolCall is a call of a tool in a turn.
type toolCall struct {
	name      string // that models see
	arguments string // a JSON object; of a model, whatever it has written
}

// addCall records a call for the assertions of the turn.
func (e *testEnv) addCall(ev steps.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, toolCall{ev.Tool, ev.Text})
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
	calls, rejected := slices.Clone(r.env.calls), r.env.rejected
	r.env.mu.Unlock()
	for _, a := range t.Calls {
		name := cmp.Or(a.Function, apptest.ToolName(r.app.Spec(), a.ID))
		own := slices.DeleteFunc(slices.Clone(calls), func(c toolCall) bool { return c.name != name })
		if a.Calls != nil && len(own) != *a.Calls {
			r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(a, "calls"), "tool %s was called %s, not %d", name, textfmt.Count(len(own), "time"), *a.Calls).WithHint("%s", shownCalls(calls)))
		}
		if a.Rejected != nil && rejected[name] != *a.Rejected {
			r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(a, "rejected"), "%s of tool %s rejected, not %d", textfmt.Count(rejected[name], "call"), name, *a.Rejected))
		}
		if len(a.Arguments) > 0 && !slices.ContainsFunc(own, func(c toolCall) bool { return c.has(a.Arguments) }) {
			r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(a, "arguments"), "no call of tool %s has these arguments", name).WithHint("%s", shownCalls(calls)))
		}
	}
	r.checkOrder(t, calls)
}

// checkOrder checks that tools were called in an order, with any calls between.
func (r *testRun) checkOrder(t *spec.Turn, calls []toolCall) {
	rest := calls
	for i, id := range t.CallOrder {
		name := apptest.ToolName(r.app.Spec(), id)
		at := slices.IndexFunc(rest, func(c toolCall) bool { return c.name == name })
		if at < 0 {
			where := ""
			if i > 0 {
				where = " after " + t.CallOrder[i-1]
			}
			r.diagnostics.Add(apptest.Expectation.At(t.Position().Field("call_order").Index(i).Span(), "tool %s was not called%s", name, where).WithHint("%s", shownCalls(calls)))
			return
		}
		rest = rest[at+1:]
	}
}

// has reports whether the arguments have the values. Numbers are equal if their values are.
func (c toolCall) has(want map[string]any) bool {
	var given map[string]json.RawMessage
	if json.Unmarshal([]byte(c.arguments), &given) != nil {
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

// shownCalls lists calls in one line.
func shownCalls(calls []toolCall) string {
	if len(calls) == 0 {
		return "no tool was called"
	}
	var shown []string
	for _, c := range calls {
		shown = append(shown, fmt.Sprintf("%s %s", c.name, textfmt.Ellipsis(c.arguments, maxShownValue)))
	}
	return "calls: " + strings.Join(shown, ", ")
}

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
