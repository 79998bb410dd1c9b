package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMain runs the program in the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("CHATS") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestProgram runs commands one after the other. The server fails once.
func TestProgram(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if calls.Add(1) == 1 || r.Header.Get("Authorization") != "Bearer parrot-key" {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "%s heard %d lines", r.URL.Path, strings.Count(string(text), "\n"))
	}))
	t.Cleanup(server.Close)
	environment := append(os.Environ(), "CHATS="+filepath.Join(t.TempDir(), "chats.jsonl"), "SERVER="+server.URL, "PLAIN_API_KEY=parrot-key")
	for _, test := range []struct{ args, want string }{
		{"validate testdata/desk.qtype.yaml", "is valid"},
		{"validate testdata/wrong.qtype.yaml", `did you mean "journal"?`},
		{"validate testdata/wrong.qtype.yaml", `did you mean "plain"?`},
		{"validate testdata/wrong.qtype.yaml", `"sides" must be at least 2`},
		{"validate testdata/wrong.qtype.yaml", `no output "sum"`},
		{"validate testdata/wrong.qtype.yaml", `error[Vote/even] testdata/wrong.qtype.yaml:22`},
		{"validate testdata/wrong.qtype.yaml", `error[Vote/inputs]`},
		{"run testdata/desk.qtype.yaml -f choose -i hello --session v", "/parrot heard 1 lines"},
		{"run testdata/desk.qtype.yaml -f main -i hello --session me", "/parrot heard 1 lines"},
		{"run testdata/desk.qtype.yaml -f main -i hello --session me", "/parrot heard 3 lines"},
		{"run testdata/desk.qtype.yaml -f roll -i {\"count\":0}", "0 dice cannot be rolled"},
		{"run testdata/desk.qtype.yaml -f roll -i {\"count\":900}", `"total":1`},
		{"test testdata/desk.qtype-test.yaml", "3 passed"},
		{"memory list testdata/desk.qtype.yaml", "talk     me              4"},
		{"schema", "a file to which changes are appended"},
		{"schema", "a server that answers a text with a text"},
		{"schema", "The number of sides of a die."},
		{"schema", "How often the model is asked."},
		{"explain Vote/even", "Two answers can have the same number of votes."},
		{"explain Vote/inputs", "Wrong:"},
		{"explain vote.votes", "How often the model is asked."},
		{"version --parts", "journal memory sqlite"},
	} {
		cmd := exec.Command(os.Args[0], strings.Fields(test.args)...)
		cmd.Env = environment
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), test.want) { // the text tells whether it failed
			t.Errorf("%s: no %q in\n%s", test.args, test.want, out)
		}
	}
	if n := calls.Load(); n != 1+3+2 {
		t.Errorf("%d calls of the server: one that failed, three votes and two turns are 6", n)
	}
}
