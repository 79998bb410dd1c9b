package steps

import (
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// defaultMaxRepeatedCalls is the limit of an Agent that sets none.
const defaultMaxRepeatedCalls = 3

// repeatLimit detects an agent that makes the same tool call with the same result.
type repeatLimit struct {
	max    int
	exempt func(toolName string, result toolResult) bool // such calls may be repeated
}

// RepeatedCallError reports a model that repeats a tool call although the result has
// a note that it is the same.
type RepeatedCallError struct {
	Tool      string // the name of the tool
	Arguments string // of the call, as the model wrote them
	Calls     int    // how often the call was made with the same result
	Limit     int    // max_repeated_calls of the Agent
}

// Error names the call, the limit and its key.
func (e *RepeatedCallError) Error() string {
	const maxArguments = 200
	arguments := e.Arguments
	if len(arguments) > maxArguments {
		arguments = arguments[:maxArguments] + "…"
	}
	return fmt.Sprintf("the model made the tool call %s(%s) %d times with the same result, but the limit is %d (max_repeated_calls)",
		e.Tool, arguments, e.Calls, e.Limit)
}

// repeatCounter counts the equal calls of one run.
type repeatCounter struct {
	limit  *repeatLimit
	counts map[[3]string]int // by the tool, the arguments and the result
}

// counter returns the counter of a run.
func (l *repeatLimit) counter() *repeatCounter {
	return &repeatCounter{limit: l, counts: map[[3]string]int{}}
}

// count counts a call with its result. It returns the result for the model: that of the
// last permitted call has a note.
func (c *repeatCounter) count(call chat.ToolCall, result toolResult) (toolResult, error) {
	if c.limit.exempt(call.Name, result) {
		return result, nil
	}
	key := [3]string{call.Name, sortedArguments(call.Arguments), result.digest()}
	c.counts[key]++
	switch n := c.counts[key]; {
	case n > c.limit.max:
		return nil, &RepeatedCallError{Tool: call.Name, Arguments: call.Arguments, Calls: n, Limit: c.limit.max}
	case n == c.limit.max:
		return result.withNote(fmt.Sprintf("note: this call was made %d times with the same result; do not repeat it, answer or do something else", n)), nil
	}
	return result, nil
}

// sortedArguments returns arguments in a form that is the same for equal ones.
func sortedArguments(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(sorted)
}

// newRepeatLimit returns the limit of an Agent.
func (a *agent) newRepeatLimit(s *spec.Agent) (*repeatLimit, error) {
	l := &repeatLimit{max: s.MaxRepeatedCalls}
	if l.max == 0 {
		l.max = defaultMaxRepeatedCalls
	}
	ids := map[string]bool{}
	for _, ref := range s.Repeatable {
		if ref.To == nil {
			return nil, fmt.Errorf("a tool is not linked")
		}
		ids[ref.To.EntityID()] = true
	}
	l.exempt = func(name string, result toolResult) bool {
		t, ok := a.toolbox.current().tools[name]
		if !ok {
			return false
		}
		info := t.Info()
		approved := info.Hosted != "" && result.text() == model.Approved // the provider has the result
		return approved || ids[info.ID] || ids[info.Set]
	}
	return l, nil
}
