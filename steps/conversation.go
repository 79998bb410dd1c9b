package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// abortTimeout limits how long a failed turn is written to the history, after the
// context of the row may have ended.
const abortTimeout = 5 * time.Second

// conversation is the message exchange of one row with a model: a turn of a memory
// if the step has one.
type conversation struct {
	turn     *memory.Turn    // nil without a memory
	system   string          // system message of the step
	messages []chat.Message  // without a memory: the messages so far
	repairs  bool            // whether repairs of the conversation were reported
	extra    []extra         // messages that are sent and not stored
	last     string          // the id of the newest message of the conversation in the last request
	handed   bool            // the question was transferred to a flow
	partial  strings.Builder // text of the answer that a model is writing
}

// extra are messages that are sent after a message of the conversation, and not stored.
type extra struct {
	after    string // its id
	messages []chat.Message
}

// withExtra returns the messages of a request: those of the window, and the extra ones at their places. They stay there
// when the conversation goes on, so that a request begins as the one before it.
func (d *conversation) withExtra(window []chat.Message) []chat.Message {
	if len(window) > 0 {
		d.last = window[len(window)-1].ID
	}
	window = slices.Clip(window)
	for _, e := range slices.Backward(d.extra) { // so that those at one place keep their order
		at := len(window)
		if i := slices.IndexFunc(window, func(m chat.Message) bool { return m.ID == e.after }); i >= 0 && e.after != "" {
			at = i + 1
		}
		window = slices.Insert(window, at, e.messages...)
	}
	return window
}

// beginConversation begins a turn; it waits until the session's current turn ends.
func beginConversation(ctx context.Context, m *memory.Memory, session, system string) (*conversation, error) {
	d := &conversation{system: system}
	if m == nil {
		d.messages = slices.Grow(startingMessages(ctx), 2) // the question and the answer
		return d, nil
	}
	if s := turnCallContext(ctx, m, session); s != nil {
		return nil, &NestedTurnError{Memory: m.ID(), Session: session, Step: s.step}
	}
	own, err := memoryFor(ctx, m)
	if err != nil {
		return nil, err
	}
	turn, err := own.Begin(ctx, session)
	if err != nil {
		return nil, err
	}
	d.turn = turn
	repeatContext(ctx, turn, own.ID(), session)
	if system != "" {
		turn.System(system)
	}
	return d, nil
}

// repeatContext makes a turn of a run that is repeated send the context of the first attempt.
func repeatContext(ctx context.Context, turn *memory.Turn, memory, session string) {
	log := callRecorderFrom(ctx)
	if log == nil {
		return
	}
	key := log.key(ctx, "context", memory, session)
	turn.Repeat(func(read func() ([]byte, error)) ([]byte, error) {
		state, _, err := recorded(ctx, key, "", func(context.Context) (json.RawMessage, error) { return read() })
		return state, err
	})
}

// add appends messages; nothing is stored before the commit.
func (d *conversation) add(msgs ...chat.Message) error {
	if d.turn != nil {
		return d.turn.Add(msgs...)
	}
	d.messages = append(d.messages, msgs...)
	return nil
}

// has reports whether the conversation has a message with an id.
func (d *conversation) has(id string) bool {
	if d.turn != nil {
		return d.turn.Has(id)
	}
	return slices.ContainsFunc(d.messages, func(m chat.Message) bool { return m.ID == id })
}

// window returns the messages to send: the system message first, unless the
// messages begin with one. A memory fits them into the budget.
func (d *conversation) window(b memory.Budget) ([]chat.Message, error) {
	if d.turn != nil {
		return d.turn.Fit(b)
	}
	if d.system == "" || startsWithSystem(d.messages) {
		return slices.Clip(d.messages), nil
	}
	window := make([]chat.Message, 0, len(d.messages)+1)
	window = append(window, chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: d.system}}})
	return append(window, d.messages...), nil
}

func startsWithSystem(msgs []chat.Message) bool {
	return len(msgs) > 0 && msgs[0].Role == chat.System
}

// NestedTurnError reports that a flow which a step runs as a tool during its turn
// needs a turn of the same session. It would wait for the turn that waits for it,
// and its messages would come between a tool call and its result.
type NestedTurnError struct {
	Memory  string // the memory's id
	Session string // the conversation
	Step    string // the step whose turn is active
}

// Error names the step and what to do.
func (e *NestedTurnError) Error() string {
	return fmt.Sprintf("memory %s: step %s has an active turn of session %q; a flow that it calls must use another memory",
		e.Memory, e.Step, e.Session)
}

// context returns the context of the turn, which also ends when a newer turn
// preempts it; ctx without a memory.
func (d *conversation) context(ctx context.Context) context.Context {
	if d.turn == nil {
		return ctx
	}
	return d.turn.Context()
}

// report returns what the commit will fill; nil without a memory, or if no sink receives it.
func (d *conversation) report(ctx context.Context) *memory.TurnReport {
	if d.turn == nil || !Wanted(ctx, EventTurn) {
		return nil
	}
	return d.turn.Report()
}

// endUsage lets the commit store the usage of the turn. If an earlier run has committed it, replay gets its note.
func (d *conversation) endUsage(used *turnUsage, replay func(note string)) {
	if d.turn == nil || used == nil {
		return
	}
	d.turn.SetNote(used.note())
	_, note := d.turn.Prior()
	replay(note)
}

// priorFlushes returns how often messages left the window when another run has committed the turn, which may have been
// while this one made its calls; 0 if none has.
func (d *conversation) priorFlushes(used *turnUsage) int {
	if d.turn == nil || used == nil {
		return 0
	}
	flushes, _ := d.turn.Prior()
	return flushes
}

// close ends the conversation: it commits if err is nil, and also what was said if the user
// stopped it. Otherwise it leaves the window unchanged and records the failure in the history.
// It returns the error of the row.
func (d *conversation) close(ctx context.Context, err error) error {
	if d.turn == nil {
		return err
	}
	if err == nil {
		if err = d.commit(ctx); err == nil {
			return nil
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(context.Cause(d.turn.Context()), memory.ErrSuspended): // the turn will be repeated for any error that it ended with, such as that of an interrupted commit
		err = context.Cause(d.turn.Context())
	case errors.Is(cause, memory.ErrStopped), ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = cause // the reason, such as a cancellation by the user
	}
	var interrupted *memory.InterruptedError
	if errors.As(context.Cause(d.turn.Context()), &interrupted) {
		err = interrupted // in place of the error that the end of the context caused
	}
	// Not with the row's context: a canceled turn must be recorded too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	end := func() error { return d.turn.Abort(ctx, err) }
	if errors.Is(err, memory.ErrStopped) {
		end = func() error { return d.turn.Stop(ctx, d.partial.String()) }
	}
	if aborted := end(); aborted != nil && !sameStore(err, aborted) {
		return fmt.Errorf("%w; the turn could not be recorded: %w", err, aborted)
	}
	return err
}

// commit stores the turn. A time limit that ends meanwhile does not stop it: the answer is
// there. A cancellation does.
func (d *conversation) commit(ctx context.Context) error {
	storing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel(context.Cause(ctx))
		}
	})
	defer stop()
	return d.turn.Commit(storing)
}

// sameStore reports whether both errors come from one store: reporting one is enough.
func sameStore(one, other error) bool {
	var a, b *memory.StoreError
	return errors.As(one, &a) && errors.As(other, &b) && a.Location == b.Location
}
