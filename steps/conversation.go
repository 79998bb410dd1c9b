package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// abortTimeout bounds how long the history of a turn that failed is written, after
// the row's own context may have ended.
const abortTimeout = 5 * time.Second

// conversation is what one row says to a model and hears from it: a turn of a
// memory, or messages of its own where the step has none.
type conversation struct {
	turn   *memory.Turn // nil without a memory
	system string       // the step's system message
	said   []chat.Message
	aside  []chat.Message // said to the model after the conversation, and kept nowhere
}

// beginConversation begins a turn; it waits until the session's turn before has ended.
func beginConversation(ctx context.Context, m *memory.Memory, session, system string) (*conversation, error) {
	d := &conversation{system: system}
	if m == nil {
		return d, nil
	}
	if s := turnCallContext(ctx, m, session); s != nil {
		return nil, &NestedTurnError{Memory: m.ID(), Session: session, Step: s.step}
	}
	turn, err := m.Begin(ctx, session)
	if err != nil {
		return nil, err
	}
	d.turn = turn
	if system != "" {
		turn.System(system)
	}
	return d, nil
}

// add says messages; nothing is kept before commit.
func (d *conversation) add(msgs ...chat.Message) error {
	if d.turn != nil {
		return d.turn.Add(msgs...)
	}
	d.said = append(d.said, msgs...)
	return nil
}

// window is what the model is sent now: the system message first, unless the
// messages begin with one (steps.md 2, LLMInference). A memory fits it to the
// budget; without one the provider says what it cannot read.
func (d *conversation) window(b memory.Budget) ([]chat.Message, error) {
	if d.turn != nil {
		return d.turn.Fit(b)
	}
	window := make([]chat.Message, 0, len(d.said)+1)
	if d.system != "" && (len(d.said) == 0 || d.said[0].Role != chat.System) {
		window = append(window, chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: d.system}}})
	}
	return append(window, d.said...), nil
}

// NestedTurnError says that a flow which a step runs in the middle of its turn,
// as a tool, wants a turn of the same conversation: it would wait for the end of
// the one that waits for it, and what it says would part a tool's call from its
// result.
type NestedTurnError struct {
	Memory  string // the memory's id
	Session string // the conversation
	Step    string // the step whose turn goes on
}

// Error names the step and what to do.
func (e *NestedTurnError) Error() string {
	return fmt.Sprintf("memory %s: step %s is in the middle of its turn of session %q: a flow that it calls needs a memory of its own",
		e.Memory, e.Step, e.Session)
}

// context is ctx, or with a memory the turn's, which ends also when a newer turn
// takes the session over.
func (d *conversation) context(ctx context.Context) context.Context {
	if d.turn == nil {
		return ctx
	}
	return d.turn.Context()
}

// close ends the dialogue: it commits where err is nil, else it leaves the
// window as it was and tells the history why. It answers why the row fails.
func (d *conversation) close(ctx context.Context, err error) error {
	if d.turn == nil {
		return err
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx) // such as: canceled by the user
	}
	var taken *memory.InterruptedError
	if err != nil && errors.As(context.Cause(d.turn.Context()), &taken) {
		err = taken // whatever it was that the end of the context looked like
	}
	if err == nil {
		if err = d.turn.Commit(ctx); err == nil {
			return nil
		}
	}
	// Without the row's context: a turn that was cancelled must be noted too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if aborted := d.turn.Abort(ctx, err); aborted != nil && !sameStore(err, aborted) {
		return fmt.Errorf("%w; the failed turn could not be noted: %w", err, aborted)
	}
	return err
}

// sameStore tells whether both errors are a trouble of one store: to tell of it once is enough.
func sameStore(one, other error) bool {
	var a, b *memory.StoreError
	return errors.As(one, &a) && errors.As(other, &b) && a.Place == b.Place
}

// messagesFrom makes messages of a step's inputs, in their order (steps.md 2,
// chat mode message building).
func messagesFrom(inputs []slot, row *Row) ([]chat.Message, error) {
	var msgs []chat.Message
	for _, in := range inputs {
		v, err := in.read(row)
		if in.of.IsOptional() && (err != nil || v == nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		made, err := messageFrom(in.of, v)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", in.of.ID, err)
		}
		msgs = append(msgs, made...)
	}
	if len(msgs) == 0 {
		return nil, fmt.Errorf("there is nothing to send to the model: all inputs are empty")
	}
	return msgs, nil
}

// messageFrom makes messages of one value. A ChatMessage is taken as it is, with its
// id, a list of them too; bytes become a block of the declared type; everything
// else is said by the user as its text.
func messageFrom(v *spec.Variable, x any) ([]chat.Message, error) {
	switch x := x.(type) {
	case nil:
		return nil, fmt.Errorf("it is null")
	case chat.Message:
		return []chat.Message{x}, nil
	case []byte:
		return mediaMessage(v.Type, x)
	case []any:
		if msgs := messageList(x); v.Type.IsListOf("ChatMessage") && msgs != nil {
			return msgs, nil
		}
	}
	return []chat.Message{chat.Text(chat.User, value.Text(x))}, nil
}

// mediaMessage is a user message of one block of bytes.
func mediaMessage(t spec.Type, data []byte) ([]chat.Message, error) {
	switch {
	case !t.IsMedia():
		return nil, fmt.Errorf("it holds bytes, but its type is %s", t)
	case t.Is("video"):
		return nil, fmt.Errorf("a model cannot be sent a video")
	}
	m := chat.Message{ID: chat.NewID(), Role: chat.User, Blocks: []chat.Block{{Type: t.Name, Data: data}}}
	return []chat.Message{m}, nil
}

// messageList is the messages of a list, nil where it holds anything else.
func messageList(items []any) []chat.Message {
	msgs := make([]chat.Message, 0, len(items))
	for _, item := range items {
		m, ok := item.(chat.Message)
		if !ok {
			return nil
		}
		msgs = append(msgs, m)
	}
	return msgs
}
