package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The texts that Stop adds.
const (
	stoppedCall   = "error: the user stopped the run before this call had ended; it is unknown whether it had an effect"
	stoppedAnswer = "(stopped)"
)

// Stop ends a turn that its user stopped: it commits what was said. partial is the text so
// far of the answer that a model was writing; it becomes an answer with Stopped set. A tool call without a result
// gets one that says so, and results get an answer that does. The turn does not count as committed for its
// idempotency key. A turn in which nothing was said is aborted with ErrStopped as the reason. After Commit
// or Abort it does nothing. The turn has ended even after an error.
func (t *Turn) Stop(ctx context.Context, partial string) error {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return nil
	}
	err := t.addStopped(partial)
	said := slices.ContainsFunc(t.staged, func(e *store.Entry) bool { return e.Message.Role == chat.Assistant })
	if err == nil && said {
		t.operation = "" // a run with its key has to answer
		err = t.commit(ctx, false)
	}
	t.mu.Unlock()
	if aborted := t.Abort(ctx, ErrStopped); err == nil {
		err = aborted
	}
	return err
}

// addStopped adds the answer of a stopped turn, and the results that are missing before it.
func (t *Turn) addStopped(partial string) error {
	var p window.Pairing
	for _, e := range t.staged {
		p.Add(&e.Message)
	}
	var added []chat.Message
	for _, c := range p.Open {
		added = append(added, chat.Message{ID: chat.NewID(), Role: chat.Tool, Name: c.Name, ToolCallID: c.ID, Blocks: []chat.Block{{Type: "text", Text: stoppedCall}}})
	}
	if n := len(t.staged); strings.TrimSpace(partial) == "" && (len(added) > 0 || n > 0 && window.IsResult(t.staged[n-1])) {
		partial = stoppedAnswer
	}
	if strings.TrimSpace(partial) != "" {
		answer := chat.Text(chat.Assistant, window.ValidText(partial))
		answer.Stopped = true
		added = append(added, answer)
	}
	return t.add(added)
}
