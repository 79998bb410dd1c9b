package sessions_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/memory"
)

type foundMessages struct {
	Messages []struct {
		Session, ID, Role, Content, Passage string
		Seq                                 int64
		Score                               float64
	}
	Problem *string
}

func (f foundMessages) sessions() (all []string) {
	for _, m := range f.Messages {
		all = append(all, m.Session)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestSearch_OwnMessages checks that a caller finds only messages of sessions that belong to it, of one
// or of all.
func TestSearch_OwnMessages(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	s.Say(t, "ada", "s-1", "where is my bicycle")
	s.Say(t, "ada", "s-2", "the bicycle is blue")
	s.Say(t, "ada", "messages", "a letter about the bicycle")
	s.Say(t, "bob", "s-1", "my bicycle was stolen")
	s.Say(t, "", "s-9", "a bicycle without an owner")
	for request, want := range map[string][]string{
		"GET /sessions/messages?search=bicycle":              {"messages", "s-1", "s-2"},
		"GET /sessions/messages?search=bicycle&memory=notes": {"messages", "s-1", "s-2"},
		"GET /sessions/messages?search=stolen":               nil,
		"GET /sessions/messages?search=blue":                 {"s-2"},
		"GET /sessions/s-1/messages?search=bicycle":          {"s-1"},
		"GET /sessions/s-2/messages?search=where":            nil,
		"GET /sessions/messages/messages?search=letter":      {"messages"},
	} {
		found := sessionstest.Get[foundMessages](t, s, "ada", request, "", http.StatusOK)
		if got := found.sessions(); !slices.Equal(got, want) || found.Problem != nil {
			t.Errorf("%s: got %v, want %v", request, got, want)
		}
		for _, m := range found.Messages {
			if m.ID == "" || m.Seq < 1 || m.Score <= 0 || strings.Contains(m.Content, "stolen") {
				t.Errorf("%s: got %+v", request, m)
			}
		}
	}
	if one := sessionstest.Get[foundMessages](t, s, "ada", "GET /sessions/messages?search=bicycle&limit=1", "", http.StatusOK); len(one.Messages) != 1 {
		t.Errorf("got %d messages", len(one.Messages))
	}
	all := sessionstest.Get[foundMessages](t, s, "", "GET /sessions/messages?search=bicycle", "", http.StatusOK) // without authentication all sessions belong to all callers
	if got := all.sessions(); len(got) != 5 {
		t.Errorf("got %v", got)
	}
	s.Must(t, "bob", "GET /sessions/s-2/messages?search=bicycle", "", http.StatusNotFound)
	if title := sessionstest.Get[struct{ ID string }](t, s, "ada", "GET /sessions/messages", "", http.StatusOK); title.ID != "messages" {
		t.Errorf("the session with the id messages is %+v", title)
	}
	s.Must(t, "ada", "DELETE /sessions/messages", "", http.StatusNoContent)
	if found := sessionstest.Get[foundMessages](t, s, "ada", "GET /sessions/messages?search=letter", "", http.StatusOK); len(found.Messages) > 0 {
		t.Errorf("a deleted message was found: %+v", found)
	}
}

// TestSearch_Passage checks that a long message is found with the part that fits.
func TestSearch_Passage(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	advice := strings.Repeat("Soil needs compost, water and patience before anything grows. ", 10)
	s.Say(t, "ada", "s-1", advice+"\n\n## Keys\n\nThe key of the shed hangs behind the mirror.\n\n"+advice)
	s.Say(t, "ada", "s-2", "the mirror is new")
	found := sessionstest.Get[foundMessages](t, s, "ada", "GET /sessions/s-1/messages?search=shed%20key", "", http.StatusOK)
	if len(found.Messages) == 0 || !strings.HasPrefix(found.Messages[0].Passage, "## Keys\n\nThe key") || len(found.Messages[0].Passage) > 400 {
		t.Errorf("got %+v", found)
	}
	for _, m := range sessionstest.Get[foundMessages](t, s, "ada", "GET /sessions/s-2/messages?search=mirror", "", http.StatusOK).Messages {
		if m.Passage != "" {
			t.Errorf("a short message has the passage %q", m.Passage)
		}
	}
}

func TestSearch_Invalid(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	s.Say(t, "ada", "s-1", "hello")
	for request, want := range map[string]string{
		"GET /sessions/messages?search=":                      "search: it is empty",
		"GET /sessions/s-1/messages?search=%20":               "search: it is empty",
		"GET /sessions/s-1/messages?search=hello&before=3":    "before: a search has no pages",
		"GET /sessions/messages?search=hello&limit=0":         "limit",
		"GET /sessions/messages?search=hello&memory=none":     "there is no memory",
		"GET /sessions/s-1/messages?search=hello&memory=none": "the session has no memory",
	} {
		if text := s.Must(t, "ada", request, "", http.StatusBadRequest); !strings.Contains(text, want) {
			t.Errorf("%s: got %s", request, text)
		}
	}
}
