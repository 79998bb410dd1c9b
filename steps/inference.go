package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// inference asks a chat model (steps.md 2, LLMInference). A text output works
// as a ChatMessage output does: all inputs are sent, the memory is used and the
// system message is said.
type inference struct {
	speaker
	inputs []slot
	out    slot
}

// speaker is what steps that talk to a model share.
type speaker struct {
	id     string
	model  model.Chat
	memory *memory.Memory // nil without one
	system string
	cost   func() int // what the descriptions of the step's tools take, in tokens; nil without tools
	shape  *shape     // what the answer has to be; nil where it is what the model says
}

// speaker finds the shared model and memory of a step.
func (e *Env) speaker(s *spec.StepBase, m spec.ModelEntity, mem *spec.Memory, system string) (speaker, error) {
	sp := speaker{id: s.ID, system: system}
	if m == nil || e.Model == nil {
		return sp, fmt.Errorf("the model is not linked")
	}
	var err error
	if sp.model, err = e.Model(m.Base()); err != nil || mem == nil {
		return sp, err
	}
	if e.Memory == nil {
		return sp, fmt.Errorf("memory %s is not part of the application", mem.ID)
	}
	sp.memory, err = e.Memory(mem)
	return sp, err
}

func buildInference(s *spec.LLMInference, env *Env) (Runner, error) {
	sp, err := env.speaker(&s.StepBase, s.Model.To, s.Memory.To, s.SystemMessage)
	if err != nil {
		return nil, err
	}
	out, err := env.single("output", s.Outputs)
	if err != nil {
		return nil, err
	}
	inputs, err := env.slots(s.Inputs)
	if err == nil && len(inputs) == 0 {
		err = fmt.Errorf("needs at least 1 input to send to the model")
	}
	if err != nil {
		return nil, err
	}
	return &inference{speaker: sp, inputs: inputs, out: out}, nil
}

// Process asks the model once. Nothing is kept in the memory unless the answer came.
func (s *inference) Process(ctx context.Context, row *Row, emit Emit) error {
	msgs, err := utterances(s.inputs, row)
	if err != nil {
		return err
	}
	var answer chat.Message
	err = s.talk(ctx, row, func(ctx context.Context, d *dialogue) error {
		if had, err := d.kept(ctx, row, msgs); err != nil || had != nil {
			if had != nil {
				answer = *had
			}
			return err
		}
		if err := d.add(msgs...); err != nil {
			return err
		}
		answer, err = s.ask(ctx, row, d, nil)
		if err != nil {
			return err
		}
		if calls := answer.ToolCalls; len(calls) > 0 {
			if silent(answer) {
				return fmt.Errorf("the model called a tool, %s, instead of answering; the step offers none", calls[0].Name)
			}
			answer.ToolCalls = nil // nobody answers them, and a memory must not hold calls without results
		}
		return d.add(answer)
	})
	if err != nil {
		return err
	}
	s.answer(row, s.out, answer)
	return emit(row)
}

// talk opens a dialogue for a row, lets say speak, and ends it well or badly;
// also when say panics, because the session's other turns wait for the end. The
// context that say is given ends too when a newer turn takes the session over.
func (s *speaker) talk(ctx context.Context, row *Row, say func(context.Context, *dialogue) error) (err error) {
	d, err := openDialogue(within(ctx, s.id, row), s.memory, row.Session, s.system)
	if err != nil {
		return err
	}
	finished := false
	defer func() {
		if !finished {
			_ = d.close(ctx, fmt.Errorf("internal error")) // the panic goes on and tells why
		}
	}()
	err = say(s.inTurn(d.context(within(ctx, s.id, row)), row, d), d)
	finished = true
	return d.close(ctx, err)
}

// ask sends the window and waits for the answer. Deltas and usage are reported
// to whom it may concern; thoughts are neither reported nor kept.
func (s *speaker) ask(ctx context.Context, row *Row, d *dialogue, tools []model.Tool) (chat.Message, error) {
	window, err := d.window(s.budget(tools))
	if err != nil {
		return chat.Message{}, err
	}
	window = append(window[:len(window):len(window)], d.aside...)
	req := model.Request{Messages: window, Tools: tools, Stream: wanted(ctx, EventText)}
	s.shape.demand(&req)
	resp, err := model.Call(ctx, s.model, req, func(delta string) {
		report(ctx, s.event(row, Event{Kind: EventText, Text: delta}))
	})
	if err != nil {
		return chat.Message{}, err
	}
	report(ctx, s.event(row, Event{Kind: EventUsage, Input: resp.Usage.Input, Output: resp.Usage.Output, Model: resp.Model}))
	answer := resp.Message
	if silent(answer) && len(answer.ToolCalls) == 0 {
		switch resp.Finish { // after any other reason an empty answer is the answer
		case "content_filter":
			return chat.Message{}, fmt.Errorf("the provider's content filter withheld the answer")
		case "length":
			return chat.Message{}, fmt.Errorf("the model used up its tokens before it said anything (finish reason length)")
		}
	}
	if answer.ID == "" {
		answer.ID = chat.NewID()
	}
	return answer, nil
}

// budget is the room of one call that offers tools (memory.md 6).
func (s *speaker) budget(tools []model.Tool) memory.Budget {
	info := s.model.Info()
	b := memory.Budget{Model: info.Name, ContextWindow: info.ContextWindow, Answer: info.MaxTokens}
	if len(tools) > 0 && s.cost != nil {
		b.Tools = s.cost()
	}
	return b
}

// event says which step and row an event belongs to.
func (s *speaker) event(row *Row, ev Event) Event {
	ev.Step, ev.Session, ev.Row = s.id, row.Session, row.Number
	return ev
}

// answer puts what the model said into the output: its text where the output
// is a text, else the message, which keeps its id so that a later step with the
// same memory does not say it twice.
func (s *speaker) answer(row *Row, out slot, m chat.Message) {
	if out.of.Type.Is("ChatMessage") {
		out.write(row, m)
		return
	}
	out.write(row, m.Text())
}

// silent tells whether a message says nothing at all.
func silent(m chat.Message) bool {
	for _, b := range m.Blocks {
		if b.Media() || b.Text != "" {
			return false
		}
	}
	return true
}
