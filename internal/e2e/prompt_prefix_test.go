package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// smallWindow flushes every few turns: the window is 300 tokens, of which at least
// 100 are evicted at a time.
const smallWindow = "token_limit: 600, chat_history_token_ratio: 0.5, token_flush_size: 100"

// recorder is a chat server that records the messages of each request byte for byte.
type recorder struct {
	mu       sync.Mutex
	received []json.RawMessage
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req struct{ Messages json.RawMessage }
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.received = append(s.received, req.Messages)
	n := len(s.received)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"r%d","choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, n, assistantMessage(fmt.Sprintf("Answer %d is <%s>.", n, strings.Repeat("so ", n%7))))
}

// TestPromptPrefix_StableBetweenFlushes: providers cache the prefix that a request
// shares with the previous one, so between two flushes the messages of each
// request must start with those of the previous request, byte for byte.
func TestPromptPrefix_StableBetweenFlushes(t *testing.T) {
	const turns = 40
	s := &recorder{}
	httpServer := httptest.NewServer(s)
	defer httpServer.Close()
	app := openApp(t, fmt.Sprintf(strings.Replace(chatApp, "token_limit: 50000", smallWindow, 1), httpServer.URL))
	for turn := range turns {
		text := fmt.Sprintf("Question %d: \"where\" is %s& my parcel?\n", turn+1, strings.Repeat("oh ", turn%5))
		runRow(t, app, "talk", "s1", map[string]any{"message": text})
	}
	// A flush at the user's message changes this turn's request, a flush at the
	// answer changes the next one's.
	flushed, flushes := flushedTurns(t, app.Memory("chat_memory"), "s1")
	if flushes < 3 || flushes > turns/3 || len(s.received) != turns {
		t.Fatalf("%d flushes in %d requests of %d turns", flushes, len(s.received), turns)
	}
	broken := 0
	for i := 1; i < turns; i++ {
		turn := int64(i + 1)
		before := strings.TrimSuffix(string(s.received[i-1]), "]") + ","
		if !strings.HasPrefix(string(s.received[i]), before) {
			broken++
			if !flushed[turn] && !flushed[turn-1] {
				t.Errorf("turn %d: no flush, yet\n%s\ndoes not start with\n%s", turn, s.received[i], before)
			}
		}
	}
	if broken != flushes {
		t.Errorf("the prefix changed %d times for %d flushes", broken, flushes)
	}
}
