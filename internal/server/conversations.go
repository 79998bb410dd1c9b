package server

import (
	"context"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/spec/chat"
)

// newSessions returns the service of /sessions.
func (s *Server) newSessions() *sessions.Service {
	return sessions.New(sessions.Options{
		App:     func() sessions.App { return s.current.Load().App },
		State:   s.state,
		Running: s.runningIn,
		OnFork:  s.copyInputs,
		Test:    s.opts.Test,
		Log:     s.log,
	})
}

// runningIn returns whether a stored session is in use, on any server, and the id of the run
// that uses it, empty for a request of an MCP client.
func (s *Server) runningIn(ctx context.Context, session string) (run string, busy bool, err error) {
	g := s.current.Load()
	for _, f := range g.Flows {
		if run := s.runs.Running(f.ID(), session); run != nil {
			return run.ID, true, nil
		}
	}
	for _, declared := range g.App.Spec().Memories {
		m := g.App.Memory(declared.ID)
		if m == nil || m.Conversation(session) != session { // other sessions share it
			continue
		}
		work, err := m.Work(ctx, session)
		if err != nil || work == "" {
			if err != nil {
				return "", false, err
			}
			continue
		}
		r, err := s.runs.Find(ctx, g.App, access.PrincipalOf(ctx).Name, work)
		if err != nil {
			return "", false, err
		}
		if r != nil {
			run = r.ID
		}
		return run, true, nil
	}
	return "", false, nil
}

// recordSession notes that a conversation begins or goes on, if the client can find it
// again: it has named it.
func (s *Server) recordSession(ctx context.Context, c *call) error {
	if !c.named || !c.flow.Conversational() || len(c.rows) == 0 {
		return nil
	}
	m, _ := c.rows[0][c.flow.Message.ID].(chat.Message)
	return s.sessions.Record(ctx, c.flow.ID(), c.principal.StoredSession(c.session), m.Written())
}

// copyInputs copies the session inputs of a stored session to its fork.
func (s *Server) copyInputs(ctx context.Context, from, to string) error {
	for _, f := range s.current.Load().Flows {
		if len(f.Session) == 0 {
			continue
		}
		if err := s.inputs.Copy(ctx, f, from, to); err != nil {
			return err
		}
	}
	return nil
}
