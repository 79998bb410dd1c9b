package host

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Conversation is a session of a flow.
type Conversation struct {
	App     *runtime.App
	Flow    *schema.Flow
	Owner   string // the name of the principal
	Session string // the id under which it is stored
}

// Shown is what a client shows of a conversation before the newest message of the user.
type Shown struct {
	Users    []string // the texts of the user's messages, oldest first
	Replaces bool     // the newest message replaces an earlier one, or is answered again
}

// Rewind undoes the turns that a client no longer shows: a user edited a message, wants another
// answer, or removed messages. If there are any, it cancels the run that waits for an answer, and
// waits until no turn of the session is active on any server, because that may be one to undo. It
// returns the calls of tools in those turns that are not undone.
func (h *Host) Rewind(ctx context.Context, c Conversation, shown Shown) (kept []runtime.Effect, err error) {
	if !shown.Replaces {
		cuts, err := c.surplus(ctx, shown.Users)
		if len(cuts) == 0 || err != nil {
			return nil, err
		}
	}
	for {
		if err := h.Supersede(ctx, c); err != nil {
			return nil, err
		}
		run, err := h.Runs.FindWaiting(ctx, c.App, c.Owner, c.Flow.Spec, c.Session)
		if err != nil {
			return nil, err
		}
		if run != nil && c.rejectsTurns() {
			return nil, problem.New(http.StatusConflict, "session_busy", "run %s of the session waits for an answer (concurrent_turns: reject)", run.ID)
		}
		busy, err := h.Runs.InUse(ctx, c.App, c.Flow.Spec, c.Session)
		if err != nil {
			return nil, err
		}
		if !busy {
			return c.rewind(ctx, shown.Users)
		}
		if err := timer.Sleep(ctx, turnPeriod); err != nil {
			return nil, err
		}
	}
}

// turnPeriod is the time between two looks whether a session is in use.
const turnPeriod = 100 * time.Millisecond

// Supersede cancels the run of a conversation that waits for an answer: the user has sent
// another message instead, which would be queued after it. With concurrent_turns: reject the
// user must answer.
func (h *Host) Supersede(ctx context.Context, c Conversation) error {
	if c.rejectsTurns() {
		return nil
	}
	run, err := h.Runs.FindWaiting(ctx, c.App, c.Owner, c.Flow.Spec, c.Session)
	if run == nil || err != nil {
		return err
	}
	return h.Runs.Abandon(ctx, c.App, run)
}

// rejectsTurns reports whether a memory of the flow has concurrent_turns: reject.
func (c Conversation) rejectsTurns() bool {
	return slices.ContainsFunc(c.App.Spec().Memories, func(m *spec.Memory) bool {
		return m.Turns == string(memory.Reject) && slices.Contains(runtime.MemoryIDs(c.Flow.Spec), m.ID)
	})
}

func (c Conversation) rewind(ctx context.Context, shown []string) (kept []runtime.Effect, err error) {
	cuts, err := c.surplus(ctx, shown)
	if err != nil {
		return nil, err
	}
	for m, turn := range cuts {
		found, err := c.App.Effects(ctx, m, c.Session, turn)
		if err != nil {
			return nil, err
		}
		if err := m.Regenerate(ctx, c.Session, turn); err != nil {
			return nil, err
		}
		kept = append(kept, found...)
	}
	return kept, nil
}

// surplus returns, for each memory of the conversation, the first turn that a client does not
// show; nothing for memories without such turns, and for those that sessions share.
func (c Conversation) surplus(ctx context.Context, shown []string) (map[*memory.Memory]int64, error) {
	cuts := map[*memory.Memory]int64{}
	for _, id := range runtime.MemoryIDs(c.Flow.Spec) {
		m := c.App.Memory(id)
		if m.Conversation(c.Session) != c.Session {
			continue
		}
		turns, texts, err := userTurns(ctx, m, c.Session)
		if err != nil {
			return nil, err
		}
		keep := len(shown)
		if c.storesMessage(id) {
			keep = lastShown(shown, texts)
		}
		if keep < len(turns) {
			cuts[m] = turns[keep]
		}
	}
	return cuts, nil
}

// storesMessage reports whether the turns of a memory are the messages of the user, so that
// their texts can be compared: all its steps read the message as it came.
func (c Conversation) storesMessage(id string) bool {
	for s := range c.Flow.Spec.Plan().All() {
		if m := s.Conversation(); m == nil || m.ID != id {
			continue
		}
		if !slices.ContainsFunc(s.Reads, func(v *spec.Ref[*spec.Variable]) bool { return v.To == c.Flow.Message }) {
			return false
		}
	}
	return true
}

// userTurns returns the turns that begin with a message of the user and its text, without
// failed ones and those that were undone.
func userTurns(ctx context.Context, m *memory.Memory, session string) (turns []int64, texts []string, err error) {
	for e, err := range m.Messages(ctx, session) {
		if err != nil {
			return nil, nil, err
		}
		if e.Message.Role == chat.User && e.Status != store.Failed && (len(turns) == 0 || turns[len(turns)-1] != e.Turn) {
			turns, texts = append(turns, e.Turn), append(texts, e.Message.Text())
		}
	}
	return turns, texts, nil
}

// mostCompared limits the messages that lastShown compares with all stored ones.
const mostCompared = 1000

// lastShown returns the number of stored texts up to the last one that is shown. Of what is
// shown, turns that failed are not stored; of what is stored, old messages may not be shown. It
// therefore pairs as many equal texts as possible in their order, the first ones if there is a choice.
func lastShown(shown, stored []string) int {
	same := 0
	for same < min(len(shown), len(stored)) && shown[same] == stored[same] {
		same++
	}
	shown, stored = shown[same:], stored[same:]
	if len(shown) > mostCompared {
		shown = shown[len(shown)-mostCompared:]
	}
	type pairing struct{ pairs, end int } // end is the number of stored texts up to the last pair
	best := make([]pairing, len(stored)+1)
	for _, text := range shown {
		before := best[0] // of the texts shown before and the stored ones before this one
		for i, s := range stored {
			next := best[i+1]
			if s == text && before.pairs+1 > next.pairs {
				next = pairing{before.pairs + 1, i + 1}
			}
			if left := best[i]; left.pairs > next.pairs || left.pairs == next.pairs && left.end < next.end {
				next = left
			}
			before, best[i+1] = best[i+1], next
		}
	}
	return same + best[len(stored)].end
}
