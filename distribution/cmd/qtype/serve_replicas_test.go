package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

const replicaDocument = `id: replicas
models: [{type: Model, id: echo, provider: mock, rules: [{echo: true}]}]
stores: [{id: db, type: postgres, url: "${STORE}"}]
memories: [{id: talks, policy: unbounded, store: db}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: echo, memory: talks, inputs: [message], outputs: [answer]}]
`

// TestServe_Replicas drives conversations through two servers that share a database, and
// kills one of them: no message is lost, doubled or in another conversation.
// QTYPE_REPLICA_SESSIONS sets the number of conversations of ten turns.
func TestServe_Replicas(t *testing.T) {
	sessions, turns := 60, 10
	if n, err := strconv.Atoi(os.Getenv("QTYPE_REPLICA_SESSIONS")); err == nil {
		sessions = n
	} else if os.Getenv("QTYPE_CI") == "" {
		t.Skip("SKIPPED: it takes 20 s; set QTYPE_CI, or QTYPE_REPLICA_SESSIONS to a number of conversations")
	}
	db, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { db.Close() })
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(replicaDocument), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STORE", db.URL())
	limits := []string{"--rate", "1000000", "--burst", "1000000", "--log-level", "error"}
	replicas := []*servertest.Replica{servertest.Serve(t, folder, limits...), servertest.Serve(t, folder, limits...)}
	var dead atomic.Bool
	var done atomic.Int64
	kill := sync.OnceFunc(func() { dead.Store(true); _ = replicas[0].Command.Process.Kill() })
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	next := make(chan int)
	var workers sync.WaitGroup
	for range 48 {
		workers.Go(func() {
			for s := range next {
				for turn := range turns {
					if err := sendTurn(client, replicas, &dead, s, turn); err != nil {
						t.Errorf("session %d, turn %d: %v", s, turn, err)
						return
					}
					if done.Add(1) == int64(sessions*turns/2) {
						kill()
					}
				}
			}
		})
	}
	for s := range sessions {
		next <- s
	}
	close(next)
	workers.Wait()
	checkSessions(t, folder, sessions, turns)
}

// TestServe_ReplicaTurns sends messages of one session to two servers at once: each turn has the
// messages of those before. The turn of a server that is killed delays the next one for the time of its lease.
func TestServe_ReplicaTurns(t *testing.T) {
	t.Parallel()
	db, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { db.Close() })
	folder := t.TempDir()
	slow := strings.Replace(strings.Replace(replicaDocument, "${STORE}", db.URL(), 1), "{echo: true}", "{match: forever, echo: true, delay: 1h}, {echo: true, delay: 100ms}", 1)
	if err := os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(slow), 0o600); err != nil {
		t.Fatal(err)
	}
	replicas := []*servertest.Replica{servertest.Serve(t, folder), servertest.Serve(t, folder)}
	var mu sync.Mutex
	seen := map[string]bool{}
	var requests sync.WaitGroup
	const turns = 6
	for n := range turns {
		requests.Go(func() {
			answer, err := talkTo(t.Context(), replicas[n%2], "one", fmt.Sprint("message ", n))
			if err != nil {
				t.Errorf("turn %d: %v", n, err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[messagesSeen.FindString(answer)] = true
		})
	}
	requests.Wait()
	for n := range turns {
		if want := fmt.Sprintf("%d messages", 2*n+1); n > 0 && !seen[want] {
			t.Errorf("no turn saw %s: %v", want, seen)
		}
	}

	go func() { _, _ = talkTo(t.Context(), replicas[0], "two", "forever") }()
	app, err := qtype.Open(distribution.With(t.Context()), filepath.Join(folder, "app.qtype.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Close(context.Background()) }()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		sessions, err := app.Memory("talks").Sessions(t.Context())
		if err == nil && slices.ContainsFunc(sessions, func(s memory.SessionInfo) bool { return s.Session == "two" }) { // its turn has a lease
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the turn does not begin: %v %v", sessions, err)
		}
	}
	if err := replicas[0].Command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := talkTo(t.Context(), replicas[1], "two", "next"); err != nil {
		t.Errorf("after the lease of a killed server: %v", err)
	}
}

// messagesSeen finds the number of messages in the answer of a mock that echoes.
var messagesSeen = regexp.MustCompile(`\d+ messages`)

// talkTo sends a message and returns the response.
func talkTo(ctx context.Context, r *servertest.Replica, session, message string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/flows/talk", strings.NewReader(fmt.Sprintf(`{"message":%q}`, message)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return string(text), err
}

// sendTurn sends one turn to a replica, and again to the other one if that fails.
func sendTurn(client *http.Client, replicas []*servertest.Replica, dead *atomic.Bool, session, turn int) error {
	body := fmt.Sprintf(`{"message":"s%d t%d."}`, session, turn)
	var failed error
	for attempt := range 60 {
		target := replicas[(session+turn+attempt)%2]
		if dead.Load() {
			target = replicas[1]
		}
		req, err := http.NewRequest(http.MethodPost, target.URL+"/flows/talk", bytes.NewBufferString(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Session-Id", fmt.Sprintf("s%d", session))
		req.Header.Set("Idempotency-Key", fmt.Sprintf("s%d-t%d", session, turn))
		resp, err := client.Do(req)
		if err != nil {
			failed = err
			time.Sleep(100 * time.Millisecond)
			continue
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode >= http.StatusInternalServerError {
			failed = fmt.Errorf("status %d: %s %w", resp.StatusCode, raw, err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		var r struct{ Outputs []json.RawMessage }
		if err := json.Unmarshal(raw, &r); err != nil || resp.StatusCode != http.StatusOK || len(r.Outputs) != 1 ||
			!strings.Contains(string(r.Outputs[0]), fmt.Sprintf(`s%d t%d.`, session, turn)) {
			return fmt.Errorf("status %d: %s", resp.StatusCode, raw)
		}
		return nil
	}
	return failed
}

// checkSessions reads all conversations from the store.
func checkSessions(t *testing.T, folder string, sessions, turns int) {
	t.Helper()
	app, err := qtype.Open(distribution.With(t.Context()), filepath.Join(folder, "app.qtype.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Close(context.Background()) }()
	for s := range sessions {
		var got []string
		for e, err := range app.Memory("talks").History(t.Context(), fmt.Sprintf("s%d", s)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(e.Message.Role)+" "+e.Message.Text())
		}
		if len(got) != 2*turns {
			t.Errorf("session %d has %d messages: %q", s, len(got), got)
			continue
		}
		for turn := range turns {
			say := fmt.Sprintf("s%d t%d.", s, turn)
			if got[2*turn] != string(chat.User)+" "+say || !strings.HasPrefix(got[2*turn+1], string(chat.Assistant)) || !strings.Contains(got[2*turn+1], say) {
				t.Errorf("session %d, turn %d: %q %q", s, turn, got[2*turn], got[2*turn+1])
			}
		}
	}
}
