// Package recording records the calls that an application makes to models, HTTP servers
// and MCP servers, and replays them: a test then needs neither a network nor a key. A
// call is found by its rendered request, so that a changed prompt is an error with a
// diff and not an answer to another question. Package calls has the file.
package recording

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/recording/calls"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Mode is what a Session does with a call.
type Mode int

// The modes.
const (
	Replay        Mode = iota // answer from the recordings; a call without one is an error
	Record                    // make and record each call, in place of the recordings of the test
	RecordMissing             // answer from the recordings; make and record the calls without one
)

// Session is the calls of one test. It is safe for concurrent use.
type Session struct {
	file *calls.File
	name string
	mode Mode

	mu      sync.Mutex
	secrets secrets
	forms   *redact.Redactor // finds the secrets in other forms, such as base64
	turn    int
	stored  []*calls.Call // of the file
	used    []bool        // for each of stored
	made    []*calls.Call // recorded in this session
	changed []*MissingError
}

// MissingError reports a call that was not recorded.
type MissingError struct {
	Kind   string // chat, embedding, http, tools or tool
	Target string // the id of the model or tool, or the server
	Diff   string // from the most similar recording to the call; one change a line
	Known  bool   // there is a recording to compare with
}

// Error names the call.
func (e *MissingError) Error() string {
	if e.Known {
		return fmt.Sprintf("the %s differs from its recording", e.what())
	}
	return fmt.Sprintf("the %s is not recorded", e.what())
}

func (e *MissingError) what() string {
	switch e.Kind {
	case kindChat:
		return "request to model " + e.Target
	case kindEmbedding:
		return "text for embedding model " + e.Target
	case kindHTTP:
		return "request to " + e.Target
	case kindTools:
		return "request for the tools of " + e.Target
	}
	return "call of tool " + e.Target
}

// The kinds of calls.
const (
	kindChat      = "chat"
	kindEmbedding = "embedding"
	kindHTTP      = "http"
	kindTools     = "tools"
	kindTool      = "tool"
)

// Start starts the session of a test, whose recordings are in a file.
func Start(f *calls.File, name string, mode Mode) *Session {
	s := &Session{forms: redact.New(), file: f, name: name, mode: mode, turn: 1}
	if mode != Record {
		s.stored = f.Of(name)
		s.used = make([]bool, len(s.stored))
	}
	return s
}

// Replays reports whether no call is made.
func (s *Session) Replays() bool { return s.mode == Replay }

// StartTurn sets the number of the turn, from 1, whose calls follow.
func (s *Session) StartTurn(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = n
}

// Changed returns the unrecorded calls in the order in which they were made.
func (s *Session) Changed() []*MissingError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Stale returns the number of recordings of the test that the session has not used.
func (s *Session) Stale() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, used := range s.used {
		if !used {
			n++
		}
	}
	return n
}

// Commit puts the recorded calls into the file. Those of the file that were not used are
// removed if prune is set, and in the mode Record always.
func (s *Session) Commit(prune bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.made)
	for i, c := range s.stored {
		if s.used[i] || !prune {
			all = append(all, c)
		}
	}
	s.file.Set(s.name, all)
}

// exchange answers a call from the recordings, or makes it with live and records it. An
// error of live is not recorded: R has the errors that are part of an answer.
func exchange[R any](s *Session, kind, target string, request any, live func() (R, error)) (R, error) {
	var answer R
	text, err := textfmt.CompactJSON(request)
	if err != nil {
		return answer, fmt.Errorf("the call cannot be recorded: %w", err)
	}
	text = s.redact(text)
	if s.mode != Record {
		if found := s.take(kind, target, text); found != nil {
			if err := json.Unmarshal(found.Response, &answer); err != nil {
				return answer, fmt.Errorf("%s: the response of a recording cannot be read: %w", s.file.Path(), err)
			}
			return answer, nil
		}
	}
	if s.mode == Replay {
		return answer, s.missing(kind, target, text)
	}
	if answer, err = live(); err != nil {
		return answer, err
	}
	response, err := textfmt.CompactJSON(answer)
	if err != nil {
		return answer, fmt.Errorf("the call cannot be recorded: %w", err)
	}
	s.add(&calls.Call{Kind: kind, Target: target, Request: text, Response: s.redact(response)})
	return answer, nil
}

func (s *Session) add(c *calls.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Turn = s.turn
	s.made = append(s.made, c)
}

// take returns the first recording of a request that was not used; nil if there is none.
func (s *Session) take(kind, target string, request []byte) *calls.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.stored {
		if !s.used[i] && c.Kind == kind && c.Target == target && string(calls.Compact(c.Request)) == string(request) {
			s.used[i] = true
			return c
		}
	}
	return nil
}

// missing returns the error for a request without a recording.
func (s *Session) missing(kind, target string, request []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &MissingError{Kind: kind, Target: target}
	var best *calls.Call
	var fewest int
	for i, c := range s.stored {
		if s.used[i] || c.Kind != kind || c.Target != target {
			continue
		}
		if text, n := difference(c.Request, request); best == nil || n < fewest {
			best, fewest, e.Diff, e.Known = c, n, text, true
		}
	}
	if !e.Known {
		e.Diff, _ = difference(nil, request)
	}
	s.changed = append(s.changed, e)
	return e
}
