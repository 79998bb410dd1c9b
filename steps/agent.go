package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// defaultLimit is the maximum number of tool calls of an Agent that sets none.
const defaultMaxToolExecutions = 20

// agent calls a chat model that may call tools until it has the answer. It uses the
// model's own tool calling; calls and results are part of the same turn as the
// question and the answer.
type agent struct {
	llmStep
	in, out slot
	limit   int // maximum number of tool calls in one run
	// parallel runs the tool calls of one answer at the same time.
	parallel bool
	toolbox  *toolbox
	approval *approver // nil where no tool requires approval
	audit    *tool.Audit
	handoffs *handoffs // nil where the conversation cannot be transferred
	repeats  *repeatLimit
}

func buildAgent(s *spec.Agent, env *Env) (Runner, error) {
	sp, err := env.newLLMStep(&s.StepBase, s.Model.To, s.Memory.To, s.SystemMessage)
	if err != nil {
		return nil, err
	}
	a := &agent{llmStep: sp, limit: s.MaxToolExecutions, parallel: s.ParallelTools, audit: env.Audit}
	if a.limit <= 0 {
		a.limit = defaultMaxToolExecutions
	}
	if a.in, a.out, err = env.inOut(&s.StepBase); err != nil {
		return nil, err
	}
	if err := a.addHandoffs(env, s); err != nil {
		return nil, err
	}
	if a.toolbox, err = env.newToolbox(s.Tools, a.handoffs.transfers(), a.memory); err != nil {
		return nil, err
	}
	if a.approval, err = env.approval(s); err != nil {
		return nil, err
	}
	if a.repeats, err = a.newRepeatLimit(s); err != nil {
		return nil, err
	}
	if a.memory != nil {
		a.cost = func() int { return a.toolbox.current().cost() }
	}
	if a.sources, err = env.sourcesSlot(&s.Sources); err != nil {
		return nil, err
	}
	if a.out.of.Type.Custom != nil {
		a.schema = newOutputSchema(a.out.of)
	}
	return a, nil
}

// Process runs the loop. If anything fails, the window does not change.
func (a *agent) Process(ctx context.Context, row *Row, emit Emit) error {
	ctx, _, err := a.citing(ctx, row)
	if err != nil {
		return err
	}
	back := handBackFrom(ctx)
	if back != nil && back.done { // an agent before this one in the flow has handed the conversation back
		return a.writeHandedBack(row, emit)
	}
	answer, err := a.runTurn(ctx, row, []slot{a.in}, func(ctx context.Context, d *conversation) (chat.Message, error) {
		return a.reply(ctx, row, d)
	})
	if err != nil {
		return err
	}
	if back != nil && answer.Text() == handedBack { // also if an earlier run committed the turn
		back.done = true
		return a.writeHandedBack(row, emit)
	}
	a.reportSources(ctx, row, answer)
	return a.writeOutput(row, answer, emit)
}

// reply lets the flow answer that has the conversation, otherwise the model.
func (a *agent) reply(ctx context.Context, row *Row, d *conversation) (chat.Message, error) {
	if to := a.handoffs.active(d); to != nil {
		answer, back, err := a.transferTo(ctx, row, d, to)
		if err != nil {
			return answer, err
		}
		if back == nil {
			return answer, d.add(answer)
		}
	}
	return a.loop(ctx, row, d)
}

// loop calls the model and its tools until the model answers without calling any.
// Once the limit has refused a call, the model is called once more, and must not call tools.
func (a *agent) loop(ctx context.Context, row *Row, d *conversation) (chat.Message, error) {
	run := &agentRun{agent: a, row: row, conversation: d, repeated: a.repeats.counter()}
	repairs := 0
	for {
		offers, err := a.offersIn(ctx)
		if err != nil {
			return chat.Message{}, err
		}
		refused := run.called > a.limit
		answer, err := a.generate(ctx, row, d, offer{offers, refused})
		if err != nil {
			return answer, err
		}
		if !answer.HasCalls() || refused {
			if again, err := a.retryInvalid(&answer, d, &repairs); err != nil || again {
				if err != nil {
					return answer, err
				}
				continue
			}
			if answer.HasCalls() {
				Report(ctx, a.event(row, Event{Kind: EventDropped, Text: fmt.Sprintf("the calls of the answer, and what the provider sent with it, because the limit of %s is reached", textfmt.Count(a.limit, "tool call"))}))
			}
			return a.finish(a.cite(citedIn(ctx), answer), run.called, d)
		}
		answer = named(answer)
		if err := d.add(answer); err != nil {
			return answer, err
		}
		if final, err := run.callTools(ctx, answer.Calls()); err != nil || final != nil {
			if err != nil {
				return answer, err
			}
			return *final, d.add(*final)
		}
	}
}

// offersIn returns the tools of the agent, as they are now, and those of the caller of
// the run.
func (a *agent) offersIn(ctx context.Context) ([]model.Tool, error) {
	own := a.toolbox.refreshed(ctx)
	offers := own.offers[:len(own.offers):len(own.offers)]
	if back := handBackFrom(ctx); back != nil {
		if other, ok := own.tools[spec.HandBackTool]; ok {
			return nil, fmt.Errorf("tool %s has the name %q, by which an agent hands the conversation back", other.Info().ID, spec.HandBackTool)
		}
		offers = append(offers, back.offer())
	}
	for _, t := range tool.CallerTools(ctx) {
		info := t.Info()
		if other, ok := own.tools[info.Name]; ok {
			return nil, fmt.Errorf("the caller's tool %q has the name of tool %s", info.Name, other.Info().ID)
		}
		offers = append(offers, model.Tool{Name: info.Name, Description: info.Description, Parameters: info.Parameters})
	}
	return offers, nil
}

// callerTool returns the tool of the caller of the run that has a name, nil for none.
// Calls of such tools are made at the same time, because they wait for the caller.
func callerTool(ctx context.Context, name string) tool.RawTool {
	for _, t := range tool.CallerTools(ctx) {
		if t.Info().Name == name {
			return t
		}
	}
	return nil
}

// callToolSafely calls a tool on a goroutine of the agent. There a panic would end
// the program, so it becomes the result of the call.
func (a *agent) callToolSafely(ctx context.Context, row *Row, call chat.ToolCall) (result toolResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			result = textResult(fmt.Sprintf("error: internal error: %v", p))
		}
	}()
	return a.run(ctx, row, call)
}

// finish adds the answer to the conversation; an empty answer is an error.
func (a *agent) finish(answer chat.Message, called int, d *conversation) (chat.Message, error) {
	requested := len(answer.Calls())
	if requested > 0 {
		answer = answer.WithoutCalls() // they are not run, and a memory must not hold calls without results
	}
	switch {
	case isEmpty(answer) && called >= a.limit && requested > 0:
		return answer, fmt.Errorf("the model requested %d tool calls, but the limit is %d (max_tool_executions), and it gave no answer without more calls",
			called+requested, a.limit)
	case isEmpty(answer) && called > 0:
		return answer, fmt.Errorf("%w after %s", errEmptyAnswer, textfmt.Count(called, "tool call"))
	case isEmpty(answer):
		return answer, errEmptyAnswer
	}
	if err := a.checkMedia(a.out, answer); err != nil {
		return answer, err
	}
	return answer, d.add(answer)
}

// named assigns ids to calls without one, or with the id of another call of the answer:
// results refer to calls by their ids.
func named(answer chat.Message) chat.Message {
	if !answer.HasCalls() {
		return answer
	}
	seen := map[string]bool{}
	return answer.MapCalls(func(c chat.ToolCall) chat.ToolCall {
		if c.ID == "" || seen[c.ID] {
			c.ID = "call_" + chat.NewID()
		}
		seen[c.ID] = true
		return c
	})
}

// run calls one tool. A failure becomes the result of the call, so that the model can
// correct it; only the end of the run is an error. A call that succeeds has a result also if the
// run has ended meanwhile, and one that has not begun has one that says so.
func (a *agent) run(ctx context.Context, row *Row, call chat.ToolCall) (toolResult, error) {
	if ctx.Err() != nil {
		return textResult("error: not called, because the run had ended"), context.Cause(ctx)
	}
	Report(ctx, a.event(row, Event{Kind: EventToolCall, Tool: call.Name, CallID: call.ID, Text: call.Arguments}))
	result, err := a.callOnce(tool.WithCaller(ctx, tool.Caller{Step: a.id, Session: row.Session, Row: row.Number, CallID: call.ID, AuditCall: a.audit.NewCall()}), call)
	if err != nil && ctx.Err() != nil {
		if undecided := (*undecidedError)(nil); errors.As(err, &undecided) && undecided.callID == call.ID {
			result = textResult("error: not called, because the run ended before it was approved")
		}
		return result, context.Cause(ctx)
	}
	ev := Event{Kind: EventToolResult, Tool: call.Name, CallID: call.ID, Text: result.text(), Err: err}
	if err != nil {
		result = textResult("error: " + err.Error())
	}
	Report(ctx, a.event(row, ev))
	return result, nil
}

// callOnce calls one tool, or returns the recorded result of an earlier run.
func (a *agent) callOnce(ctx context.Context, call chat.ToolCall) (toolResult, error) {
	log := callRecorderFrom(ctx)
	if log == nil {
		return a.call(ctx, call)
	}
	key := log.key(ctx, "tool", call.ID, call.Name, call.Arguments)
	result, replayed, err := recorded(ctx, key, "tool "+call.Name, func(ctx context.Context) (toolResult, error) { return a.call(withCallKey(ctx, key), call) })
	if t, ok := a.toolbox.current().tools[call.Name]; ok && replayed && t.Info().Passages {
		citedIn(ctx).Restore(result.text())
	}
	return result, err
}

// call finds the tool, parses the arguments and calls it.
func (a *agent) call(ctx context.Context, call chat.ToolCall) (toolResult, error) {
	if t := callerTool(ctx, call.Name); t != nil {
		result, err := a.audit.Do(ctx, call.Name, []byte(call.Arguments), func() (any, error) { return t.CallRaw(ctx, call.Arguments) })
		return resultOf(result), err
	}
	own := a.toolbox.current()
	t, ok := own.tools[call.Name]
	if !ok {
		return nil, &redact.PublicError{Err: fmt.Errorf("there is no tool %q; tools are %s%s", call.Name, listed(own.names()), diag.DidYouMean(call.Name, own.names()))}
	}
	given, err := readArguments(call.Arguments)
	if err != nil {
		return nil, &redact.PublicError{Err: err}
	}
	if t.Info().Hosted != "" {
		return a.approval.hosted(ctx, t.Info(), given)
	}
	args, err := arguments(t.Info().Inputs, given)
	if err != nil {
		return nil, &redact.PublicError{Err: err}
	}
	if err := a.approval.confirm(ctx, t.Info(), args); err != nil {
		return nil, err
	}
	result, err := t.Call(ctx, args)
	if err != nil {
		return nil, err
	}
	return resultOf(result), nil
}

// readArguments parses the arguments that the model wrote; an empty text is an empty object.
func readArguments(text string) (*value.Record, error) {
	if strings.TrimSpace(text) == "" {
		return &value.Record{}, nil
	}
	v, err := value.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	r, ok := v.(*value.Record)
	if !ok {
		return nil, fmt.Errorf("the arguments must be a JSON object, not %s", value.Describe(v))
	}
	return r, nil
}

// arguments converts arguments to the types of a tool's inputs. An optional input
// that is missing or null is left out.
func arguments(inputs []*spec.Variable, given *value.Record) (map[string]any, error) {
	args := map[string]any{}
	names := make([]string, len(inputs))
	for i, in := range inputs {
		names[i] = in.ID
		raw, ok := given.Get(in.ID)
		switch {
		case raw == nil && in.IsOptional():
			continue
		case !ok:
			return nil, fmt.Errorf("the argument %s (%s) is missing", in.ID, in.Type)
		}
		v, err := value.Assign(in, raw)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", in.ID, err)
		}
		args[in.ID] = value.ToGo(v)
	}
	for name := range given.All() {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("the tool has no argument %q; it takes %s", name, listed(names))
		}
	}
	return args, nil
}
