package sessions

import (
	"context"
	"net/http"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/memory"
)

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
