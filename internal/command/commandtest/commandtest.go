// Package commandtest runs scripts of the program qtype, which the tests of a package register with testscript.Main.
package commandtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// Run runs the scripts of testdata/script that are chosen by their name without
// .txtar. $MODEL is the URL of a chat server, $MODEL/<status> of one that returns that HTTP
// status, 429 only once; nothing listens at $CLOSED; $SITE serves the script's directory.
func Run(t *testing.T, chosen func(name string) bool) {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	testkit.Must(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return !chosen(strings.TrimSuffix(filepath.Base(file), ".txtar")) })
	server := httptest.NewServer(ModelServer())
	t.Cleanup(server.Close)
	closed := "http://" + servertest.Refused(t)
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MODEL", server.URL)
			env.Setenv("CLOSED", closed)
			site := httptest.NewServer(http.FileServer(http.Dir(env.WorkDir)))
			env.Defer(site.Close)
			env.Setenv("SITE", site.URL)
			env.Setenv("NO_PROXY", "*")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/.state")
			env.Setenv("SOURCE_DATE_EPOCH", testkit.Day)
			env.Setenv("GORACE", os.Getenv("GORACE")) // how long programs with the race detector wait at their end
			return os.WriteFile(env.WorkDir+"/app.qtype.yaml", []byte(Inbox), 0o600)
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status, "sqlite": sqlite},
		Condition:           func(cond string) (bool, error) { return cond == "root" && os.Geteuid() == 0, nil },
		RequireExplicitExec: true,
	})
}

// status runs a command that must have an exit status: status 2 qtype …
func status(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || fmt.Sprint(exit.ExitCode()) != args[0] {
		ts.Fatalf("%v ended with %v, want exit status %s", args[1:], err, args[0])
	}
}

// sqlite executes a statement on a database of a script: sqlite FILE STATEMENT.
func sqlite(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(err)
	ts.Check(db.Close())
}

// Inbox is the application that most scripts run.
const Inbox = `id: inbox
memories:
  - id: chat_memory
    token_limit: 500
    chat_history_token_ratio: 0.5
    token_flush_size: 50
models:
  - type: Model
    id: assistant
    provider: openai
    model_id: gpt-5.4-mini # by chat completions, with an exact tokenizer
    offline: practice
    retry: {max_attempts: 3, initial_delay: 1ms}
  - type: Model
    id: practice
    provider: mock
    rules:
      - {match: 'break', error: it broke}
      - {match: '(?s)(.*)', text: 'You sent: $1'}
flows:
  - id: answer
    variables:
      - {id: message, type: ChatMessage}
      - {id: reply, type: ChatMessage}
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: draft, model: assistant, memory: chat_memory, inputs: [message], outputs: [reply]}
  - id: sum
    variables:
      - {id: name, type: text}
      - {id: age, type: int}
      - {id: tags, type: 'list[text]?'}
    inputs: [name, age, tags]
    outputs: [name, age, tags]
    steps:
      - {type: Echo, id: repeat, inputs: [name, age, tags], outputs: [name, age, tags]}
`

// ModelServer speaks OpenAI's wire format.
func ModelServer() http.Handler {
	var calls atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d/", &status); err == nil && (status != 429 || calls.Add(1) == 1) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error": {"message": "no luck today"}}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "%d heard"}}],
			"usage": {"prompt_tokens": 1200, "completion_tokens": 34}}`, len(req.Messages))
	})
}
