package steps

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Maker is the declaration of a step of another module.
type Maker interface {
	spec.Step
	// Make returns what processes the rows of one run of the flow. It checks what can be known before the first row.
	Make(*Host) (Process, error)
}

// Process processes one row. An error fails the row. It is called by several goroutines at once where the step embeds
// spec.Concurrent and the document configures workers.
type Process func(ctx context.Context, w *Work) error

// Host is what a step of another module gets of the application.
type Host struct {
	env  *Env
	step spec.Step
}

// Model returns a chat model of the document, for a conversation of a memory or, with nil, without one.
func (h *Host) Model(m spec.ModelEntity, of *spec.Memory) (*Model, error) {
	s, err := h.env.newLLMStep(h.step.Common(), m, of, "")
	s.quiet = !spec.Streams(h.step)
	return &Model{s}, err
}

// Work is a row that a step of another module processes.
type Work struct {
	row             *Row
	inputs, outputs []slot
	emit            Emit // nil unless the step makes many rows of a row
	calls           atomic.Int64
	limit           int64 // see spec.CallLimit
}

// Input returns the value of an input, counted from 0; nil if it is not set. Values are those of package value: a text is a string.
func (w *Work) Input(i int) any { return w.inputs[i].orNull(w.row) }

// Set sets an output, counted from 0, to a value that is converted to its type. A value that does not fit is an error.
func (w *Work) Set(i int, v any) error {
	s := w.outputs[i]
	fitting, err := value.Assign(s.of, value.FromGo(v))
	if err != nil {
		return fmt.Errorf("%s: %w", s.of.ID, err)
	}
	s.write(w.row, fitting)
	return nil
}

// Emit passes a copy of the row on. Steps with the tag rows:"many" call it for each row that they make; an error ends the step.
func (w *Work) Emit() error {
	if w.emit == nil {
		return errors.New(`only a step with the tag rows:"many" emits rows`)
	}
	return w.emit(w.row.Clone())
}

// Model is a chat model that a step of another module calls. Each call is counted, limited by budgets, traced, and recorded for runs
// that are repeated.
type Model struct{ llm llmStep }

// Ask calls the model with messages and returns the answer. More calls for a row than the step declares are an error.
func (m *Model) Ask(ctx context.Context, w *Work, messages ...chat.Message) (chat.Message, error) {
	return m.ask(withCallContext(ctx, m.llm.id, w.row), w, &conversation{messages: messages})
}

// Turn adds the inputs to the conversation, lets reply find the answer, and adds it. The function ask that reply gets calls the
// model with the window of the conversation. If reply fails, the conversation is as before.
func (m *Model) Turn(ctx context.Context, w *Work, reply func(ctx context.Context, ask func(context.Context) (chat.Message, error)) (chat.Message, error)) (chat.Message, error) {
	return m.llm.runTurn(ctx, w.row, w.inputs, func(ctx context.Context, d *conversation) (chat.Message, error) {
		answer, err := reply(ctx, func(ctx context.Context) (chat.Message, error) { return m.ask(ctx, w, d) })
		if err != nil {
			return answer, err
		}
		return answer, d.add(answer)
	})
}

func (m *Model) ask(ctx context.Context, w *Work, d *conversation) (chat.Message, error) {
	if w.calls.Add(1) > w.limit {
		return chat.Message{}, fmt.Errorf("step %s calls its models more than %d times for a row, which the tags `calls` of its type declare", m.llm.id, w.limit)
	}
	answer, err := m.llm.generate(ctx, w.row, d, offer{})
	if err == nil && isEmpty(answer) {
		err = errEmptyAnswer
	}
	return answer.WithoutCalls(), err // nothing runs them
}

// ownStep runs a step of another module.
type ownStep struct {
	process         Process
	inputs, outputs []slot
	many            bool
	limit           int64
}

// buildOwn builds a step of another module.
func buildOwn(s Maker, env *Env) (Runner, error) {
	var process Process
	err := parts.Guard("Make", func() (err error) {
		process, err = s.Make(&Host{env: env, step: s})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case process == nil:
		return nil, errors.New("its Make returned no function")
	}
	own := &ownStep{process: process, many: spec.RowsOf(s) == spec.RowsMany, limit: spec.CallLimit(s)}
	if own.inputs, err = env.slots(s.Common().Inputs); err == nil {
		own.outputs, err = env.slots(s.Common().Outputs)
	}
	return own, err
}

// Process processes a row.
func (s *ownStep) Process(ctx context.Context, row *Row, emit Emit) error {
	w := &Work{row: row, inputs: s.inputs, outputs: s.outputs, limit: s.limit}
	if s.many {
		w.emit = emit
	}
	if err := s.process(ctx, w); err != nil || s.many {
		return err
	}
	return emit(row)
}
