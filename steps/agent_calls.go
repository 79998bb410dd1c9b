package steps

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

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
