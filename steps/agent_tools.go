package steps

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// toolbox is the tools of an Agent. Those of a server may change between two calls of the
// model. It is safe for concurrent use.
type toolbox struct {
	made      []declaredTool // in order
	transfers []model.Tool   // of handoffs, which are not called
	memory    *memory.Memory // counts tokens; nil for none

	mu        sync.Mutex
	revisions []int // of the sets that may change, in order
	set       *toolset
}

// declaredTool is a tool, or a set of tools, with its declaration.
type declaredTool struct {
	tool.Tool
	base *spec.ToolBase
}

// toolset is the tools that a model gets. It does not change.
type toolset struct {
	offers []model.Tool         // as the model sees them
	tools  map[string]tool.Tool // by the names that the model uses
	cost   func() int           // the tokens that their descriptions take
}

// newToolbox returns the tools of an Agent.
func (e *Env) newToolbox(declared []spec.Ref[spec.Tool], transfers []model.Tool, m *memory.Memory) (*toolbox, error) {
	b := &toolbox{memory: m, transfers: transfers}
	for _, ref := range declared {
		if ref.To == nil || e.Tool == nil {
			return nil, fmt.Errorf("a tool is not linked")
		}
		t, err := e.Tool(ref.To)
		if err != nil {
			return nil, err
		}
		b.made = append(b.made, declaredTool{t, ref.To.Common()})
	}
	b.revisions = b.revised()
	var err error
	b.set, err = b.read(context.Background()) // a server has its own time limit
	return b, err
}

// current returns the tools as they were when the model was last called.
func (b *toolbox) current() *toolset {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set
}

// refreshed returns the tools as they are now. If a server does not answer, or if its
// tools have become unusable, they stay as they were, and a call reports what is wrong.
func (b *toolbox) refreshed(ctx context.Context) *toolset {
	now := b.revised()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(now, b.revisions) {
		set, err := b.read(ctx)
		if err == nil {
			b.set = set
		}
		if ctx.Err() == nil { // a server that does not answer is asked again after its next change
			b.revisions = now
		}
	}
	return b.set
}

// revised returns the revisions of the sets that may change.
func (b *toolbox) revised() []int {
	var all []int
	for _, t := range b.made {
		if set, ok := t.Tool.(tool.ChangingSet); ok {
			all = append(all, set.Revision())
		}
	}
	return all
}

// read lists the tools.
func (b *toolbox) read(ctx context.Context) (*toolset, error) {
	s := &toolset{tools: map[string]tool.Tool{}}
	s.cost = sync.OnceValue(func() int { return toolTokens(b.memory, s.offers) })
	for _, t := range b.made {
		if err := s.addTools(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, t := range b.transfers {
		if other, ok := s.tools[t.Name]; ok {
			return nil, fmt.Errorf("tool %s has the name %q, which is that of a handoff", other.Info().ID, t.Name)
		}
		s.offers = append(s.offers, t)
	}
	return s, nil
}

// names lists the names of the tools.
func (s *toolset) names() []string {
	names := make([]string, 0, len(s.offers))
	for _, o := range s.offers {
		names = append(names, o.Name)
	}
	return names
}

// toolTokens estimates how many tokens of a model's context window the tools take:
// each is sent as its name, its description and its schema. The constants are what
// chat templates write around all tools and around each one, as measured in decision 49.
func toolTokens(m *memory.Memory, tools []model.Tool) int {
	const preamble, frame = 74, 30
	if len(tools) == 0 {
		return 0
	}
	n := preamble
	for _, t := range tools {
		n += frame + m.Count(t.Name) + m.Count(t.Description) + m.Count(string(t.Parameters))
	}
	return n
}

// addTools offers a tool, or all tools of a set, to the model.
func (s *toolset) addTools(ctx context.Context, t declaredTool) error {
	set, many := t.Tool.(tool.Set)
	if !many {
		return s.add(t)
	}
	tools, err := set.Tools(ctx)
	for _, one := range tools {
		if err == nil {
			err = s.add(declaredTool{one, t.base})
		}
	}
	return err
}

// add offers one tool to the model.
func (s *toolset) add(t declaredTool) error {
	info := t.Info()
	name := WireName(info.Name)
	if other, ok := s.tools[name]; ok {
		advice := ""
		if set := cmp.Or(info.Set, other.Info().Set); set != "" && info.Set != other.Info().Set {
			advice = fmt.Sprintf("; set the key prefix of %s", set)
		}
		return fmt.Errorf("tools %s and %s have the same name %q%s", other.Info().ID, info.ID, name, advice)
	}
	s.tools[name] = t.Tool
	offer := model.Tool{Name: name, Description: info.Description, Parameters: info.Parameters, Hosted: info.Hosted, Settings: info.Settings,
		Deferred: t.base.Deferred, Strict: t.base.Strict, Passages: info.Passages}
	if g := t.base.Grammar; g != nil {
		offer.Grammar = &model.Grammar{Syntax: g.Syntax, Definition: g.Definition}
	}
	s.offers = append(s.offers, offer)
	return nil
}

// WireName returns a tool's name with the characters that providers accept: a-z, A-Z,
// 0-9, _ and -, at most 64.
func WireName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}

// agentRun is one run of the loop of an agent on a row.
type agentRun struct {
	agent        *agent
	row          *Row
	conversation *conversation
	called       int            // tool calls so far, refused ones included
	repeated     *repeatCounter // counts equal calls
}

// callTools runs the calls of one answer and adds the results in the order of the calls. It
// returns the answer of the step if a call has ended the loop: a handoff, or the return of
// one. Calls beyond the limit get an error as their result, because providers reject a
// conversation with a call that has no result.
func (r *agentRun) callTools(ctx context.Context, calls []chat.ToolCall) (final *chat.Message, err error) {
	results := make([]toolResult, len(calls))
	errs := make([]error, len(calls))
	var together []int
	handing := -1 // the call that ends the loop
	for i, call := range calls {
		switch {
		case r.called+i >= r.agent.limit:
			results[i] = textResult(fmt.Sprintf("error: not called, because the limit of %d tool calls is reached; answer now without tools", r.agent.limit))
		case r.agent.endsLoop(ctx, call):
			if handing >= 0 {
				results[i] = textResult("error: not called, because an earlier call transfers the conversation")
				continue
			}
			handing = i
		case r.agent.parallel || callerTool(ctx, call.Name) != nil:
			together = append(together, i)
		default:
			results[i], errs[i] = r.agent.run(ctx, r.row, call)
		}
	}
	r.callTogether(ctx, calls, together, results, errs)
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, r.keep(calls, results))
	}
	if handing >= 0 {
		var result string
		if result, final, err = r.endLoop(ctx, calls[handing]); err != nil {
			return nil, err
		}
		results[handing] = textResult(result)
	}
	for i, call := range calls {
		if r.called+i < r.agent.limit {
			results[i], err = r.repeated.count(call, results[i])
		}
		if err == nil {
			err = r.conversation.add(results[i].message(call))
		}
		if err != nil {
			return nil, err
		}
	}
	r.called += len(calls)
	return final, nil
}

// keep adds the results of a round that was interrupted, so that the history says what was done.
// Calls that had begun and not ended have none.
func (r *agentRun) keep(calls []chat.ToolCall, results []toolResult) error {
	for i, call := range calls {
		if results[i] == nil {
			continue
		}
		if err := r.conversation.add(results[i].message(call)); err != nil {
			return err
		}
	}
	return nil
}

// callTogether runs some of the calls of an answer at the same time.
func (r *agentRun) callTogether(ctx context.Context, calls []chat.ToolCall, together []int, results []toolResult, errs []error) {
	var running sync.WaitGroup
	round := tool.NewRound(len(together))
	for n, i := range together {
		running.Go(func() {
			ctx, ended := round.Join(ctx, n)
			defer ended()
			results[i], errs[i] = r.agent.callToolSafely(ctx, r.row, calls[i])
		})
	}
	running.Wait()
}

// endsLoop reports whether a call transfers the conversation, or back.
func (a *agent) endsLoop(ctx context.Context, call chat.ToolCall) bool {
	return a.handoffs.named(call.Name) != nil || call.Name == spec.HandBackTool && handBackFrom(ctx) != nil
}

// endLoop runs a call that transfers the conversation, or back. final is nil if the flow
// has returned the conversation without an answer.
func (r *agentRun) endLoop(ctx context.Context, call chat.ToolCall) (result string, final *chat.Message, err error) {
	a := r.agent
	Report(ctx, a.event(r.row, Event{Kind: EventToolCall, Tool: call.Name, CallID: call.ID, Text: call.Arguments}))
	report := func(text string) {
		Report(ctx, a.event(r.row, Event{Kind: EventToolResult, Tool: call.Name, CallID: call.ID, Text: text}))
	}
	if a.handoffs.named(call.Name) == nil {
		handBackFrom(ctx).read(call)
		report(handedBack)
		answer := chat.Text(chat.Assistant, handedBack)
		return handedBack, &answer, nil
	}
	return r.transfer(ctx, a.handoffs.named(call.Name), report)
}

// transfer transfers the conversation to a flow, which answers the question.
func (r *agentRun) transfer(ctx context.Context, to *spec.Flow, report func(string)) (result string, final *chat.Message, err error) {
	result = "The conversation was transferred to " + to.ID + "."
	report(result)
	answer, back, err := r.agent.transferTo(ctx, r.row, r.conversation, to)
	switch {
	case err != nil:
		return "", nil, err
	case back == nil:
		return result, &answer, nil
	case back.reason != "":
		return result + " It was handed back: " + back.reason, nil, nil
	}
	return result + " It was handed back.", nil, nil
}

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
