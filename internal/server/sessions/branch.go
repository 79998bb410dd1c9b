package sessions

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// branchRequest is the body of fork and rewind.
type branchRequest struct {
	Turn *int64  `json:"turn"`           // of the session's first memory; fork: the last one of the copy; rewind: the first one that is undone
	Keep *int64  `json:"keep,omitempty"` // rewind: the last turn that stays, in place of turn
	ID   *string `json:"id,omitempty"`   // fork: the id of the new session; nil for a random one
}

// newID returns an id for a session whose client names none.
func newID() string { return "s_" + rand.Text() }

// fork answers POST /sessions/{id}/fork: a new session with all turns up to one, 0
// for all.
func (s *Service) fork(w http.ResponseWriter, r *http.Request) error {
	one, body, err := s.branch(w, r)
	if err != nil {
		return err
	}
	if body.Keep != nil {
		return invalid("/keep", "the request has no such field")
	}
	to := newID()
	if body.ID != nil {
		to = *body.ID
	}
	if err := checkID("/id", to); err != nil {
		return err
	}
	next := one.heads[0].info.Turns + 1
	if *body.Turn != 0 {
		next = *body.Turn + 1
	}
	cuts, err := one.cuts(r.Context(), next)
	if err != nil {
		return err
	}
	stored := access.PrincipalOf(r.Context()).StoredSession(to)
	if err := s.checkNew(r.Context(), stored); err != nil {
		return err
	}
	rec := one.record
	rec.version, rec.Created, rec.Listed = 0, time.Time{}, time.Time{}
	err = s.begin(r.Context(), stored, &rec, func(ctx context.Context, made func(*memory.Memory)) error {
		for i, h := range one.heads {
			if cuts[i] == 1 { // it began later
				continue
			}
			if err := h.memory.Fork(ctx, one.stored, stored, cuts[i]-1); err != nil {
				return err
			}
			made(h.memory.Memory)
		}
		if s.opts.OnFork == nil {
			return nil
		}
		return s.opts.OnFork(ctx, one.stored, stored)
	})
	if err != nil {
		return err
	}
	return s.writeNew(w, r, to, stored)
}

// branch reads a request for fork or rewind.
func (s *Service) branch(w http.ResponseWriter, r *http.Request) (*session, *branchRequest, error) {
	one, err := s.find(r)
	if err != nil {
		return nil, nil, err
	}
	body := &branchRequest{}
	if err := readJSON(w, r, body, maxBody); err != nil {
		return nil, nil, err
	}
	one.heads = one.own() // the others continue as they are
	if body.Turn == nil && body.Keep == nil {
		return nil, nil, invalid("/turn", "it is required: the number of a turn")
	}
	if body.Keep != nil {
		if body.Turn != nil {
			return nil, nil, invalid("/keep", "it excludes turn")
		}
		if last := one.lastTurn(); *body.Keep < 0 || *body.Keep > last {
			return nil, nil, &memory.TurnError{Turn: *body.Keep, Last: last}
		}
		return one, body, nil
	}
	if len(one.heads) == 0 {
		return nil, nil, &memory.TurnError{Turn: *body.Turn}
	}
	if last := one.heads[0].info.Turns; *body.Turn < 0 || *body.Turn > last {
		return nil, nil, &memory.TurnError{Turn: *body.Turn, Last: last}
	}
	return one, body, nil
}

// lastTurn returns the newest turn of the first memory, 0 for none.
func (o *session) lastTurn() int64 {
	if len(o.heads) == 0 {
		return 0
	}
	return o.heads[0].info.Turns
}

// cuts returns, for each memory of the session, the first turn that is not before a
// turn of the first memory. Memories count their turns separately; the steps of a
// run end their turns in the order of the flow.
func (o *session) cuts(ctx context.Context, turn int64) ([]int64, error) {
	all := make([]int64, len(o.heads))
	if len(all) == 0 {
		return nil, nil
	}
	all[0] = turn
	if len(all) == 1 {
		return all, nil
	}
	_, limit, err := firstTurn(ctx, o.heads[0].memory.Memory, o.stored, func(n int64, _ time.Time) bool { return n >= turn })
	if err != nil {
		return nil, err
	}
	for i, h := range o.heads[1:] {
		all[i+1], _, err = firstTurn(ctx, h.memory.Memory, o.stored, func(_ int64, ended time.Time) bool { return !limit.IsZero() && !ended.Before(limit) })
		if err != nil {
			return nil, err
		}
		if all[i+1] == 0 {
			all[i+1] = h.info.Turns + 1
		}
	}
	return all, nil
}

// firstTurn returns the first turn of a history for which is returns true, with the
// time of its end; 0 for none.
func firstTurn(ctx context.Context, m *memory.Memory, stored string, is func(turn int64, ended time.Time) bool) (int64, time.Time, error) {
	for e, err := range m.History(ctx, stored) {
		if err != nil {
			return 0, time.Time{}, err
		}
		if is(e.Turn, e.Time) {
			return e.Turn, e.Time, nil
		}
	}
	return 0, time.Time{}, nil
}

// checkNew returns an error if there is a session with a stored id.
func (s *Service) checkNew(ctx context.Context, stored string) error {
	rec, err := s.readRecord(ctx, stored)
	if err == nil && rec.version != 0 {
		err = &memory.SessionExistsError{Session: stored}
	}
	for _, m := range s.memories("") {
		if err != nil {
			return err
		}
		if m.Conversation(stored) != stored {
			continue // other sessions share it
		}
		var info memory.SessionInfo
		if info, err = m.Info(ctx, stored); err == nil && !info.LastSaid.IsZero() {
			err = &memory.SessionExistsError{Session: stored}
		}
	}
	return err
}

// begin makes a session by fill, which reports the memories that have it, and writes
// its record. If that fails, nothing of it remains.
func (s *Service) begin(ctx context.Context, stored string, rec *record, fill func(ctx context.Context, made func(*memory.Memory)) error) error {
	var filled []*memory.Memory
	err := fill(ctx, func(m *memory.Memory) { filled = append(filled, m) })
	if err == nil {
		err = s.create(ctx, stored, *rec)
	}
	if err == nil {
		return nil
	}
	for _, m := range filled {
		_ = m.Clear(context.WithoutCancel(ctx), stored) // the first error is the one to report
	}
	return err
}

// writeNew writes a session that was created.
func (s *Service) writeNew(w http.ResponseWriter, r *http.Request, id, stored string) error {
	made, err := s.load(r.Context(), id, stored)
	if err != nil {
		return err
	}
	w.Header().Set("Location", host.Location(r, "/sessions/"+pathEscape(id)))
	return s.write(w, r, http.StatusCreated, made)
}

// rewind answers POST /sessions/{id}/rewind: a turn and those after it leave the
// window, or those after the one that the field keep names.
func (s *Service) rewind(w http.ResponseWriter, r *http.Request) error {
	one, body, err := s.branch(w, r)
	if err != nil {
		return err
	}
	switch {
	case body.ID != nil:
		return invalid("/id", "the request has no such field")
	case body.Turn != nil && *body.Turn == 0:
		return &memory.TurnError{Turn: 0, Last: one.heads[0].info.Turns}
	}
	var kept []runtime.Effect
	err = s.changing(r.Context(), one.stored, func(ctx context.Context) error {
		now, err := s.load(ctx, one.id, one.stored) // with the turn of a run that has ended meanwhile
		if err != nil {
			return err
		}
		now.heads = now.own()
		kept, err = s.rewindTurns(ctx, now, body)
		return err
	})
	if err != nil {
		return err
	}
	if one, err = s.find(r); err != nil {
		return err
	}
	one.kept = kept
	return s.write(w, r, http.StatusOK, one)
}

// rewindTurns undoes the turns that a request names. It returns the calls of tools that are not undone.
func (s *Service) rewindTurns(ctx context.Context, o *session, body *branchRequest) (kept []runtime.Effect, err error) {
	first := o.lastTurn() + 1
	if body.Turn != nil {
		first = *body.Turn
	} else if *body.Keep < o.lastTurn() {
		first = *body.Keep + 1
	}
	if first > o.lastTurn() {
		return nil, nil
	}
	cuts, err := o.cuts(ctx, first)
	if err != nil {
		return nil, err
	}
	for i, h := range o.heads {
		if cuts[i] > h.info.Turns {
			continue
		}
		found, err := s.opts.App().Effects(ctx, h.memory.Memory, o.stored, cuts[i])
		if err != nil {
			return nil, err
		}
		if err := h.memory.Rewind(ctx, o.stored, cuts[i]); err != nil {
			return nil, err
		}
		kept = append(kept, found...)
	}
	return kept, nil
}

// maxText limits the body with the new text of a message, in bytes.
const maxText = 1 << 20

// editRequest is the body of PATCH /sessions/{id}/messages/{message}.
type editRequest struct {
	Text *string `json:"text"` // the whole content of the message from now on
}

// edit answers PATCH /sessions/{id}/messages/{message}.
func (s *Service) edit(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.find(r); err != nil {
		return err
	}
	body := editRequest{}
	if err := readJSON(w, r, &body, maxText); err != nil {
		return err
	}
	if body.Text == nil {
		return invalid("/text", "it is required: the new text of the message")
	}
	return s.revise(w, r, func(ctx context.Context, m *memory.Memory, stored string, e memory.Entry) error {
		return m.Edit(ctx, stored, e.Seq, e.Message.WithText(*body.Text))
	})
}

// removeMessage answers DELETE /sessions/{id}/messages/{message}.
func (s *Service) removeMessage(w http.ResponseWriter, r *http.Request) error {
	return s.revise(w, r, func(ctx context.Context, m *memory.Memory, stored string, e memory.Entry) error {
		return m.Delete(ctx, stored, e.Seq)
	})
}

// revise changes one message of a memory of the session.
func (s *Service) revise(w http.ResponseWriter, r *http.Request, change func(context.Context, *memory.Memory, string, memory.Entry) error) error {
	one, m, err := s.findMemory(r)
	if err != nil {
		return err
	}
	if m.Memory == nil {
		return unknownMessage()
	}
	if m.Scope() == memory.AppScope {
		return problem.New(http.StatusForbidden, "not_allowed", "all users share this conversation: its messages cannot be changed by one of them")
	}
	err = s.changing(r.Context(), one.stored, func(ctx context.Context) error {
		e, err := m.Find(ctx, one.stored, r.PathValue("message"))
		if err != nil {
			return err
		}
		return change(ctx, m.Memory, one.stored, e)
	})
	if err != nil {
		return err
	}
	if one, err = s.find(r); err != nil {
		return err
	}
	return s.write(w, r, http.StatusOK, one)
}

// current replaces edited messages by their new texts, which have no other place.
func current(ctx context.Context, m memoryview.Memory, stored string, entries []memory.Entry) ([]memory.Entry, error) {
	head, err := m.Head(ctx, stored)
	if err != nil {
		return nil, err
	}
	edits := head.State.Edits()
	if len(edits) == 0 {
		return entries, nil
	}
	var out []memory.Entry
	for _, e := range entries {
		text := edits.Current(e.Seq)
		switch {
		case edits.Original(e.Seq) != e.Seq:
			continue
		case text != e.Seq:
			found, err := collect(m.HistoryRange(ctx, stored, text, text))
			if err != nil {
				return nil, err
			}
			for _, now := range found {
				now.Message.ID, now.Seq, now.Turn, now.Time = e.Message.ID, e.Seq, e.Turn, e.Time
				e = now
			}
		}
		out = append(out, e)
	}
	return out, nil
}
