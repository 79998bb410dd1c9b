package batch_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// chatDocument has a flow with a memory; the mock answers with the number of messages
// in the window, which shows the rows that share a conversation.
const chatDocument = `id: app
models: [{type: Model, id: m, provider: mock}]
memories: [{id: notes}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: name, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [name]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: notes, inputs: [name], outputs: [answer]}]
`

// received matches an answer of the mock.
var received = regexp.MustCompile(`\{"role":"assistant".*?I received (\d+) message.*?\}\]\}`)

const noSessions = ", and flow talk uses a memory: pass --session-column COLUMN, --session-per-row, or --session ID for one conversation of all rows"

// TestRun_SessionsOfMemory runs rows through a flow with a memory. Rows that name no
// session never share one.
func TestRun_SessionsOfMemory(t *testing.T) {
	for _, tc := range []struct {
		name, in string // the file's extension and content
		cfg      batch.Config
		want     string // the output
		wantErr  string
	}{
		{name: "no column", in: "csv:name\nAda\nBob\n", wantErr: "in.csv has no column session_id or session" + noSessions},
		{name: "no key", in: `jsonl:{"name":"Ada"}` + "\n", wantErr: "in.jsonl: row 1 has no key session_id or session" + noSessions},
		{name: "empty cells", in: "csv:name,session\nAda,a\nBob,\nEve,  \n", want: `{"row":1,"session":"a","answer":1,"error":null}
{"row":2,"session":"","answer":null,"error":"the row has no \"session\", the column of its session"}
{"row":3,"session":"","answer":null,"error":"the row has no \"session\", the column of its session"}
`},
		{name: "null", in: `jsonl:{"name":"Ada","session":"a"}` + "\n" + `{"name":"Bob","session":null}` + "\n" + `{"name":"Eve"}` + "\n", want: `{"row":1,"answer":1,"error":null}
{"row":2,"answer":null,"error":"the row has no session: it needs a value for session_id or session"}
{"row":3,"answer":null,"error":"the row has no session: it needs a value for session_id or session"}
`},
		{name: "one session", in: "csv:name\nAda\nBob\n", cfg: batch.Config{Session: "all"}, want: `{"row":1,"session":"all","answer":1,"error":null}
{"row":2,"session":"all","answer":3,"error":null}
`},
		{name: "a session per row", in: "csv:name,session\nAda,x\nBob,x\n", cfg: batch.Config{SessionPerRow: true, RunID: "r"}, want: `{"row":1,"session":"r-1","answer":1,"error":null}
{"row":2,"session":"r-2","answer":1,"error":null}
`},
		{name: "users", in: "csv:name,session,user\nAda,s,ada\nBob,s,bob\nEve,s,\nAda,s,ada\n", want: `{"row":1,"user":"ada","session":"s","answer":1,"error":null}
{"row":2,"user":"bob","session":"s","answer":1,"error":null}
{"row":3,"user":"","session":"","answer":null,"error":"the row has no \"user\", the column of its user"}
{"row":4,"user":"ada","session":"s","answer":3,"error":null}
`},
		{name: "user column", in: "csv:name,session,who\nAda,s,a/b\nBob,s,a\n", cfg: batch.Config{UserColumn: "who"}, want: `{"row":1,"user":"a/b","session":"s","answer":1,"error":null}
{"row":2,"user":"a","session":"s","answer":1,"error":null}
`},
		{name: "unknown user column", in: "csv:name,session\nAda,s\n", cfg: batch.Config{UserColumn: "nam"}, wantErr: `in.csv: no column "nam" for the users; the columns are: name, session; did you mean "name"?`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			format, text, _ := strings.Cut(tc.in, ":")
			tc.cfg.InputFile, tc.cfg.Quiet = "in."+format, true
			out, _, err := run(t, map[string]string{"app.qtype.yaml": chatDocument, "in." + format: text}, "", tc.cfg)
			if tc.wantErr != "" && (err == nil || err.Error() != tc.wantErr) {
				t.Errorf("got %v, want %s", err, tc.wantErr)
			}
			if tc.wantErr == "" && err != nil && !errors.Is(err, batch.ErrRowsFailed) {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, received.ReplaceAllString(out, "$1")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRun_NewSession runs a single input without a session: it begins a conversation and
// prints how to continue it.
func TestRun_NewSession(t *testing.T) {
	files := map[string]string{"app.qtype.yaml": chatDocument}
	note := regexp.MustCompile(`new conversation: continue it with --user ada --session [0-9a-f]{32}\n`)
	for _, tc := range []struct {
		cfg  batch.Config
		want bool // a note
	}{
		{batch.Config{Input: "Hello", User: "ada"}, true},
		{batch.Config{Input: `{"name": "Hello", "user": "ada"}`}, true},
		{batch.Config{Input: "Hello", User: "ada", Quiet: true}, false},
		{batch.Config{Input: "Hello", User: "ada", Ephemeral: true}, false},
		{batch.Config{Input: "Hello", User: "ada", Session: "s"}, false},
		{batch.Config{Input: `{"name": "Hello", "session": "s"}`}, false},
	} {
		_, errs, err := run(t, files, "", tc.cfg)
		if err != nil || note.MatchString(errs) != tc.want || strings.Contains(errs, "new conversation") != tc.want {
			t.Errorf("%+v: got %v\n%s", tc.cfg, err, errs)
		}
	}
	var input *terminal.UsageError
	_, _, err := run(t, files, "", batch.Config{Input: `[{"name": "a"}, {"name": "b"}]`})
	if want := "-i: the rows have no key session_id or session" + noSessions; !errors.As(err, &input) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	_, _, err = run(t, map[string]string{}, "", batch.Config{Input: `{"name": "a", "age": 1}`, User: "ada"})
	if want := "--user: flow sum uses no memory, so its rows have no sessions"; !errors.As(err, &input) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
