package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// maxHandoffs limits how deep handoffs may be nested. The validator rejects recursion, but
// documents made by Go programs are not validated.
const maxHandoffs = 16

// handoffs are the flows to which an agent may transfer the conversation.
type handoffs struct {
	step   string
	run    func(context.Context, FlowCall, FlowEmit) error
	flows  []*spec.Flow
	offers []model.Tool // the tools by which the model transfers
}

// newHandoffs returns the handoffs of an Agent; nil for none.
func (e *Env) newHandoffs(s *spec.Agent) (*handoffs, error) {
	if len(s.Handoffs) == 0 {
		return nil, nil
	}
	if e.Flow == nil {
		return nil, errors.New("no flow runner configured")
	}
	h := &handoffs{step: s.ID, run: e.Flow}
	for _, ref := range s.Handoffs {
		f := ref.To
		if f == nil {
			return nil, fmt.Errorf("the flow %q is not linked", ref.ID)
		}
		if problem := spec.HandoffProblem(f); problem != "" {
			return nil, fmt.Errorf("the conversation cannot be transferred to flow %s: %s", f.ID, problem)
		}
		h.flows = append(h.flows, f)
		description := "Transfers the conversation to " + f.ID + ", which answers the user from now on."
		if f.Description != "" {
			description += " " + f.ID + ": " + f.Description
		}
		h.offers = append(h.offers, model.Tool{Name: WireName(spec.HandoffTool(f)), Description: description, Parameters: noParameters})
	}
	return h, nil
}

// noParameters is the schema of a tool without arguments.
var noParameters = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)

// named returns the flow to which a call transfers; nil for calls of other tools.
func (h *handoffs) named(call string) *spec.Flow {
	if h == nil {
		return nil
	}
	if i := slices.IndexFunc(h.offers, func(t model.Tool) bool { return t.Name == call }); i >= 0 {
		return h.flows[i]
	}
	return nil
}

// variable is the name of the variable that has the id of the flow with the conversation.
func (h *handoffs) variable() string { return spec.HandoffVariables + h.step }

// active returns the flow to which the session was transferred; nil for none.
func (h *handoffs) active(d *conversation) *spec.Flow {
	if h == nil || d.turn == nil {
		return nil
	}
	var id string
	for _, v := range d.turn.Variables() {
		if v.Name == h.variable() && json.Unmarshal(v.Value, &id) != nil {
			return nil
		}
	}
	if i := slices.IndexFunc(h.flows, func(f *spec.Flow) bool { return f.ID == id }); i >= 0 {
		return h.flows[i]
	}
	return nil
}

// set stores the flow that the session is transferred to; nil for none. Without a memory
// the handoff ends with the answer.
func (h *handoffs) set(d *conversation, f *spec.Flow) error {
	if d.turn == nil {
		return nil
	}
	if f == nil {
		return d.turn.Set(h.variable(), nil)
	}
	id, err := json.Marshal(f.ID)
	if err != nil {
		return err
	}
	return d.turn.Set(h.variable(), id)
}

// transferTo lets a flow answer the question of a row, and stores who has the conversation.
// back is set if the flow has handed it back without an answer.
func (a *agent) transferTo(ctx context.Context, row *Row, d *conversation, to *spec.Flow) (answer chat.Message, back *handBack, err error) {
	history, question, err := a.transferredMessages(ctx, d)
	if err != nil {
		return answer, nil, err
	}
	if d.handed { // it is a new question for a flow whose memory has the one that it handed back
		question.ID = chat.NewID()
	}
	d.handed = true
	ctx, back, err = withHandBack(ctx, a.id)
	if err != nil {
		return answer, nil, err
	}
	call := FlowCall{Flow: to, Inputs: handoffInputs(to, question), Session: row.Session, Number: row.Number, Ordinal: row.Ordinal}
	var outputs []any
	var failed *Error
	err = a.handoffs.run(withStartingMessages(ctx, history), call, func(out []any, why *Error) error {
		outputs, failed = append(outputs, out...), why
		return nil
	})
	switch {
	case err != nil:
		return answer, nil, fmt.Errorf("flow %s: %w", to.ID, err)
	case back.done: // what later steps made of it does not matter
		return answer, back, a.handoffs.set(d, nil)
	case failed != nil:
		return answer, nil, fmt.Errorf("flow %s: %w", to.ID, failed)
	case len(outputs) != 1:
		return answer, nil, fmt.Errorf("flow %s returned %d rows for one; it must return exactly one", to.ID, len(outputs))
	}
	if answer = handoffAnswer(outputs[0]); isEmpty(answer) {
		return answer, nil, fmt.Errorf("flow %s gave an empty answer", to.ID)
	}
	return answer, nil, a.handoffs.set(d, to)
}

// transferredMessages returns the messages of users and assistants before the question of the turn, and
// the question. Calls of tools stay with the agent that made them.
func (a *agent) transferredMessages(ctx context.Context, d *conversation) (history []chat.Message, question chat.Message, err error) {
	window, err := d.window(a.budget(ctx, nil))
	if err != nil {
		return nil, question, err
	}
	at := -1
	for i := range window {
		if window[i].Role == chat.User {
			at = i
		}
	}
	if at < 0 {
		return nil, question, errors.New("the conversation has no question that could be transferred")
	}
	for _, m := range window[:at] {
		m = m.WithoutCalls()
		if (m.Role == chat.User || m.Role == chat.Assistant) && !isEmpty(m) {
			history = append(history, m)
		}
	}
	return history, window[at], nil
}

// handoffInputs returns the inputs of a flow that takes over the conversation: the question
// is the first of them.
func handoffInputs(f *spec.Flow, question chat.Message) []any {
	inputs := make([]any, len(f.Inputs))
	for i := range inputs {
		inputs[i] = value.Unset
	}
	inputs[0] = question
	if !f.Inputs[0].To.Type.Is("ChatMessage") {
		inputs[0] = question.Text()
	}
	return inputs
}

// handoffAnswer returns the output of a flow as the answer of an agent.
func handoffAnswer(v any) chat.Message {
	m, ok := v.(chat.Message)
	if !ok {
		if v == nil || v == any(value.Unset) {
			return chat.Message{}
		}
		return chat.Text(chat.Assistant, value.Text(v))
	}
	m = m.WithoutCalls()
	m.Role = chat.Assistant
	return m
}

// handedBack is the answer of an agent that hands the conversation back.
const handedBack = "The conversation was handed back."

// handBack is a handoff that can be returned, to the agent with the id.
type handBack struct {
	to     string
	reason string
	done   bool
	depth  int
}

type handBackKey struct{}

// withHandBack returns the context of a flow whose agents may hand the conversation back.
func withHandBack(ctx context.Context, to string) (context.Context, *handBack, error) {
	b := &handBack{to: to, depth: 1}
	if outer := handBackFrom(ctx); outer != nil {
		b.depth += outer.depth
	}
	if b.depth > maxHandoffs {
		return ctx, nil, fmt.Errorf("handoffs are nested more than %d deep", maxHandoffs)
	}
	return context.WithValue(ctx, handBackKey{}, b), b, nil
}

// withoutHandBack returns the context of a flow that runs as a tool.
func withoutHandBack(ctx context.Context) context.Context {
	if handBackFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, handBackKey{}, (*handBack)(nil))
}

// handBackFrom returns the handoff in which a step runs; nil for none.
func handBackFrom(ctx context.Context) *handBack {
	b, _ := ctx.Value(handBackKey{}).(*handBack)
	return b
}

// offer returns the tool that hands back.
func (b *handBack) offer() model.Tool {
	return model.Tool{Name: spec.HandBackTool,
		Description: "Hands the conversation back to " + b.to + ", which answers this question. Use it for everything that is not your task.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","description":"why, in one sentence"}},"additionalProperties":false}`)}
}

// read notes that the conversation is handed back, with the reason that the model gives.
func (b *handBack) read(call chat.ToolCall) {
	b.done = true
	if args, err := readArguments(call.Arguments); err == nil {
		reason, _ := args.Get("reason")
		b.reason = value.Text(reason)
	}
}

// reread reads the call that hands back from the messages of a turn that an earlier run committed.
func (b *handBack) reread(msgs []chat.Message) {
	if b == nil || msgs[len(msgs)-1].Text() != handedBack {
		return
	}
	for i := len(msgs) - 1; i >= 0 && !b.done; i-- {
		for _, call := range msgs[i].Calls() {
			if call.Name == spec.HandBackTool {
				b.read(call)
			}
		}
	}
}

// addHandoffs offers the flows to which the conversation may be transferred to the model.
func (a *agent) addHandoffs(env *Env, s *spec.Agent) (err error) {
	if a.handoffs, err = env.newHandoffs(s); err != nil || a.handoffs == nil {
		return err
	}
	if a.out.of.Type.Custom != nil {
		return fmt.Errorf("an agent with handoffs answers with a text or a ChatMessage, not %s", a.out.of.Type)
	}
	return nil
}

// transfers returns the tools by which the model transfers the conversation.
func (h *handoffs) transfers() []model.Tool {
	if h == nil {
		return nil
	}
	return h.offers
}

// writeHandedBack sets the output of an agent that has handed the conversation back. The
// agent that gets it ignores the output.
func (a *agent) writeHandedBack(row *Row, emit Emit) error {
	if a.schema == nil {
		a.answer(row, a.out, chat.Text(chat.Assistant, handedBack))
	}
	return emit(row)
}
