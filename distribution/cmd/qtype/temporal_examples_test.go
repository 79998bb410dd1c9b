package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/servertest"
)

// exampleRun is a run of an example over a file.
type exampleRun struct {
	flow   string   // empty for the first one
	input  string   // a file of the example
	text   string   // its content if the example does not have it
	worker []string // flags of the process that runs the rows
	before []string // a command that fills an index, without the document
	status int      // of the exit, on both engines
}

// exampleRuns are runs of every example.
func exampleRuns() map[string][]exampleRun {
	conversation := `{"session": "a", "message": "My name is Ada."}
{"session": "b", "message": "Where is order 8812?"}
{"session": "a", "message": "What is my name?"}
{"session": "b", "message": "Refund order 8812"}
`
	return map[string][]exampleRun{
		"agent_tools": {{input: "in.jsonl", text: strings.ReplaceAll(conversation, "message", "question")}},
		"approval": {
			{flow: "talk", input: "in.jsonl", text: conversation, worker: []string{"--approve", "refund"}},
			{flow: "complaint", input: "in.csv", text: "order,amount\n8812,40\n8813,4000\n", worker: []string{"--client-tool", "decide=./decide"}},
			{flow: "pay_back", input: "in.csv", text: "order\n8812\nnone\n8813\n", status: 1},
		},
		"ask_the_docs": {
			{
				flow: "ask", input: "in.jsonl", text: `{"session": "a", "question": "How do I encrypt stored conversations?"}` + "\n",
				before: []string{"-f", "ingest", "-i", `{"input_dir": "pages"}`},
			},
			{flow: "ingest", input: "in.jsonl", text: `{"input_dir": "pages"}` + "\n"},
		},
		"attacks":       {{input: "in.jsonl", text: `{"question": "Hello"}` + "\n"}},
		"chat":          {{input: "in.jsonl", text: conversation}},
		"context":       {{input: "visit.jsonl"}},
		"orders":        {{input: "customers.csv"}},
		"routing":       {{input: "requests.csv"}},
		"similar":       {{input: "questions.csv"}},
		"support_inbox": {{input: "messages.csv"}},
		"tools":         {{input: "orders.csv"}},
	}
}

// TestTemporal_Examples: every example has the same output, byte for byte, and the same exit status on both engines.
func TestTemporal_Examples(t *testing.T) {
	server, err := servertest.Temporal()
	servertest.Need(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	data := httptest.NewServer(http.FileServer(http.Dir("../../../examples/agent_tools/data")))
	t.Cleanup(data.Close)
	for name, value := range map[string]string{"ORDERS_URL": data.URL, "STOCK_URL": data.URL, "DATABASE_URL": "sqlite:///shop.db"} {
		t.Setenv(name, value)
	}
	documents, err := filepath.Glob("../../../examples/*/app.qtype.yaml")
	if err != nil || len(documents) == 0 {
		t.Fatalf("%v: %v", documents, err)
	}
	for _, document := range documents {
		folder := filepath.Dir(document)
		name := filepath.Base(folder)
		runs := exampleRuns()[name]
		if len(runs) == 0 {
			t.Errorf("example %s has no run", name)
		}
		for _, run := range runs {
			t.Run(name+"/"+run.flow, func(t *testing.T) { run.compare(t, folder, server) })
		}
	}
}

// compare runs the example on both engines, each in a copy of its folder.
func (e exampleRun) compare(t *testing.T, folder string, server *servertest.Server) {
	args := []string{"run", "app.qtype.yaml", "-I", e.input, "-o", "out.jsonl", "-q"}
	if e.flow != "" {
		args = append(args, "-f", e.flow)
	}
	local, remote := e.prepare(t, folder, server), e.prepare(t, folder, server)
	if status, _, errs := local.qtype(append(args, e.worker...)...); status != e.status {
		t.Fatalf("local: status %d, want %d: %s", status, e.status, errs)
	}
	remote.worker(e.worker...)
	status, _, errs := remote.qtype(append(args, "--engine", "temporal")...)
	if status != e.status {
		t.Errorf("status %d, want %d: %s", status, e.status, errs)
	}
	if diff := cmp.Diff(local.read("out.jsonl"), remote.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
}

// prepare copies the example, and fills its index.
func (e exampleRun) prepare(t *testing.T, folder string, server *servertest.Server) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), server: server, address: server.Address(), offline: true}
	if err := os.CopyFS(c.dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if e.text != "" {
		c.write(e.input, e.text)
	}
	if e.flow == "ingest" || e.before != nil {
		c.copyPages()
	}
	if e.before != nil {
		if status, _, errs := c.qtype(append([]string{"run", "app.qtype.yaml", "-q"}, e.before...)...); status != 0 {
			t.Fatalf("%d: %s", status, errs)
		}
	}
	return c
}

// copyPages copies some pages of the documentation into the folder.
func (c *cluster) copyPages() {
	c.t.Helper()
	if err := os.Mkdir(filepath.Join(c.dir, "pages"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	for _, name := range []string{"memory-stores.md", "files.md"} {
		text, err := os.ReadFile(filepath.Join("../../../docs", name))
		if err != nil {
			c.t.Fatal(err)
		}
		c.write(filepath.Join("pages", name), string(text))
	}
}
