package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxSessionBytes is what docs/memory-stores.md promises for a session of two short messages.
const maxSessionBytes = 2000

// TestStore_SizeOfSession measures what the server needs for a session of one turn of two
// short messages, its place in the list of sessions included.
func TestStore_SizeOfSession(t *testing.T) {
	server := startServer(t)
	s := open(t, "redis://"+server.Address())
	defer func() { testkit.Must(t, s.Close()) }()
	m, err := memory.New(memory.Config{ID: "chats", Limits: memory.Limits{"token_limit": 4000}, Counter: letters{}}, s)
	testkit.Must(t, err)
	client := redisclient.New(server.Address())
	defer func() { testkit.Must(t, client.Close()) }()
	used := func() int {
		text, err := client.Info(t.Context(), "memory").Result()
		testkit.Must(t, err)
		for line := range strings.Lines(text) {
			if text, ok := strings.CutPrefix(line, "used_memory:"); ok {
				n, err := strconv.Atoi(strings.TrimSpace(text))
				testkit.Must(t, err)
				return n
			}
		}
		t.Fatal("the server does not report its memory")
		return 0
	}
	say := func(session string) {
		turn, err := m.Begin(t.Context(), session)
		testkit.Must(t, err)
		testkit.Must(t, turn.Add(chat.Text(chat.User, "Where is my order?"), chat.Text(chat.Assistant, "It arrives on Monday.")))
		testkit.Must(t, turn.Commit(t.Context()))
	}
	say("first")
	const sessions = 2000
	before := used()
	for i := range sessions {
		say(fmt.Sprintf("user-%06d", i))
	}
	each := (used() - before) / sessions
	t.Logf("%d bytes for each session", each)
	if each > maxSessionBytes {
		t.Errorf("a session needs %d bytes, want at most %d", each, maxSessionBytes)
	}
}

// letters counts bytes as tokens.
type letters struct{}

func (letters) Count(text string) int { return len(text) }
