package servers_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// answering is a document whose rows are turns of a memory, 16 at once.
const answering = `id: app
stores: [{id: chats, type: %s, url: "%s"}]
memories: [{id: chat}]
models: [{type: Model, id: m, provider: mock, rules: [{text: noted, delay: 5ms}]}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: respond, model: m, memory: chat, concurrency_config: {num_workers: 16}, inputs: [question], outputs: [answer]}
`

// runRows runs rows, of 40 sessions, with a store. warn gets the warnings of the run; nil for none.
func runRows(t *testing.T, kind, address string, rows int, warn func(string)) (errs string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("app.qtype.yaml", fmt.Appendf(nil, answering, kind, address), 0o600))
	in := []string{"session,question"}
	for i := range rows {
		in = append(in, fmt.Sprintf("s%d,question %d", i%40, i))
	}
	testkit.Must(t, os.WriteFile("in.csv", []byte(strings.Join(in, "\n")), 0o600))
	app, err := qtype.Open(withStores(t.Context()), "app.qtype.yaml", qtype.WithWarnings(warn))
	testkit.Must(t, err)
	defer app.Close(context.Background())
	var stdout, stderr strings.Builder
	streams := &terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Width: 200}
	cfg := batch.Config{InputFile: "in.csv", SessionColumn: "session", Output: "out.csv", Streams: streams}
	if warn != nil {
		cfg.Outage = time.Hour
	}
	err = batch.Run(t.Context(), app, cfg)
	return stderr.String(), err
}

// checkStored checks that every row's turn is stored once.
func checkStored(t *testing.T, address string, rows int) {
	t.Helper()
	backend, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
	testkit.Must(t, err)
	defer func() { testkit.Must(t, backend.Close()) }()
	seen := map[string]bool{}
	const chat = "app/chat"
	for s, err := range backend.Sessions(t.Context(), chat) {
		testkit.Must(t, err)
		for e, err := range backend.Entries(t.Context(), memory.Key{Memory: chat, Session: s.Session}, store.Query{}) {
			testkit.Must(t, err)
			if text := e.Message.Text(); text != "noted" {
				if seen[text] || e.Status == store.Failed {
					t.Errorf("%s, %s: status %q, seen before: %v", s.Session, text, e.Status, seen[text])
				}
				seen[text] = true
			}
		}
	}
	if len(seen) != rows {
		t.Errorf("%d questions are stored, want %d", len(seen), rows)
	}
}

// waitForTurn waits until the first turn is stored: a store does not wait for a server that
// has never answered.
func waitForTurn(t *testing.T, address string) {
	store, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
	if err != nil {
		return // runRows reports it
	}
	defer func() { _ = store.Close() }() // it is only read
	for start := time.Now(); time.Since(start) < 30*time.Second; {
		for s, err := range store.Sessions(t.Context(), "app/chat") {
			if err == nil && s.Session != "" {
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRun_StoreRestarts checks that no row fails while the server of its memory is killed
// and started again several times (QTYPE_RESTARTS, by default 2).
func TestRun_StoreRestarts(t *testing.T) {
	servers.Quiet()
	restarts := 2
	if n, err := strconv.Atoi(os.Getenv("QTYPE_RESTARTS")); err == nil {
		restarts = n
	}
	for kind, start := range map[string]func() (*servertest.Server, error){
		"postgres": func() (*servertest.Server, error) { return servertest.Postgres() },
		"redis":    func() (*servertest.Server, error) { return servertest.Redis("--appendfsync", "always") },
	} {
		t.Run(kind, func(t *testing.T) {
			s, err := start()
			servertest.Need(t, err)
			defer func() { testkit.Must(t, s.Close()) }()
			address := "redis://" + s.Address()
			if kind == "postgres" {
				address = s.URL()
			}
			finished := make(chan error, 1)
			go func() {
				waitForTurn(t, address)
				for range restarts {
					time.Sleep(100 * time.Millisecond)
					if err := errors.Join(s.Kill(), s.Restart()); err != nil {
						finished <- err
						return
					}
				}
				finished <- nil
			}()
			rows := 300 * restarts
			errs, err := runRows(t, kind, address, rows, nil)
			t.Log(errs)
			if err != nil {
				t.Error(err)
			}
			testkit.Must(t, <-finished)
			checkStored(t, address, rows)
		})
	}
}

// TestRun_StoreOutage checks that rows wait for a store that is away for longer than its timeout: its server starts
// again when the run has noticed.
func TestRun_StoreOutage(t *testing.T) {
	servers.Quiet()
	s, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, s.Close()) }()
	noticed, back, done := make(chan string, 100), make(chan error, 1), make(chan struct{})
	go func() {
		waitForTurn(t, s.URL())
		err := s.Kill()
		select {
		case <-noticed:
		case <-done: // before the server was killed
		}
		back <- errors.Join(err, s.Restart())
	}()
	errs, err := runRows(t, "postgres", s.URL()+"&timeout=500ms", 2000, func(warning string) {
		if strings.Contains(warning, "rows wait for it") {
			noticed <- warning
		}
	})
	close(done)
	if err != nil {
		t.Error(err, errs)
	}
	testkit.Must(t, <-back)
	checkStored(t, s.URL(), 2000)
}

// TestRun_StoreWithFewConnections checks that no row fails because its store gets fewer
// connections than there are workers.
func TestRun_StoreWithFewConnections(t *testing.T) {
	s, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, s.Close()) }()
	conn, err := pgx.Connect(t.Context(), s.URL())
	testkit.Must(t, err)
	_, err = conn.Exec(t.Context(), "CREATE ROLE few LOGIN PASSWORD '"+servertest.Password+"' CONNECTION LIMIT 3; GRANT ALL ON SCHEMA public TO few")
	testkit.Must(t, errors.Join(err, conn.Close(t.Context())))
	u, err := url.Parse(s.URL())
	testkit.Must(t, err)
	u.User = url.UserPassword("few", servertest.Password)
	errs, err := runRows(t, "postgres", u.String(), 600, nil)
	t.Log(errs)
	testkit.Must(t, err)
	checkStored(t, s.URL(), 600)
}

// TestRun_StoreDown checks that a run stops if its store is not there.
func TestRun_StoreDown(t *testing.T) {
	_, err := runRows(t, "postgres", "postgres://u@"+servertest.Refused(t)+"/db", 100, nil)
	var down *memory.StoreError
	want := "stopped: 3 rows in a row failed: "
	if !errors.As(err, &down) || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "continue with: qtype --resume") {
		t.Errorf("got %v", err)
	}
}
