package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// caches is a flow with a cache and no memory.
const caches = `id: caches
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, cache_config: {}, inputs: [text], outputs: [answer]}]
`

// TestCache_Shared: processes in different folders share the results of steps by the store of --store. While it does not answer,
// the run continues without them.
func TestCache_Shared(t *testing.T) {
	for kind, start := range map[string]func() (*servertest.Server, error){
		"redis": func() (*servertest.Server, error) { return servertest.Redis() }, "postgres": func() (*servertest.Server, error) { return servertest.Postgres() },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server, err := start()
			servertest.Need(t, err)
			defer func() { testkit.Must(t, server.Close()) }()
			address := "redis://" + server.Address() + "?timeout=2s"
			if kind == "postgres" {
				address = server.URL() + "&timeout=2s"
			}
			var calls atomic.Int64
			model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
				calls.Add(1)
				return "answer to " + messages[len(messages)-1].Content, 0
			}))
			defer model.Close()
			qtype := func(args ...string) (out, errs string) {
				t.Helper()
				dir := t.TempDir() // another one for each process
				testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(fmt.Sprintf(caches, model.URL)), 0o600))
				testkit.Must(t, os.WriteFile(filepath.Join(dir, "renamed.qtype.yaml"), []byte(strings.Replace(fmt.Sprintf(caches, model.URL), "id: say", "id: reply", 1)), 0o600))
				testkit.Must(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("text\none\ntwo\none\n"), 0o600))
				cmd := testkit.Command(t, "qtype", append(args, "--store", address)...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*")
				var o, e strings.Builder
				cmd.Stdout, cmd.Stderr = &o, &e
				if err := cmd.Run(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, e.String())
				}
				if _, err := os.Stat(filepath.Join(dir, ".qtype-cache")); err == nil {
					t.Error("there is a cache in the folder")
				}
				return o.String(), e.String()
			}
			run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "--format", "jsonl"}
			first, _ := qtype(run...)
			second, errs := qtype(run...)
			if calls.Load() != 2 || first != second || !strings.Contains(first, "answer to two") || !strings.Contains(errs, "3 of 3 rows from cache") {
				t.Errorf("%d calls: %s%s%s", calls.Load(), first, second, errs)
			}
			if out, _ := qtype("cache", "stats", "app.qtype.yaml"); !strings.Contains(out, "the store of memories") || !strings.Contains(out, " 2 ") {
				t.Errorf("stats: %s", out)
			}
			if out, _ := qtype("clean", "app.qtype.yaml", "caches", "--older-than", "1d", "--dry-run"); strings.Contains(out, "the store of memories") {
				t.Errorf("clean: %s", out)
			}
			if out, _ := qtype("cache", "clear", "app.qtype.yaml"); !strings.Contains(out, "2 results removed from the store of memories") {
				t.Errorf("clear: %s", out)
			}
			qtype(run...)
			if out, _ := qtype("memory", "forget", "renamed.qtype.yaml", "--user", "ada", "--yes"); !strings.Contains(out, "2 results") {
				t.Errorf("forget with a document whose step has another id: %s", out)
			}
			calls.Add(-2)
			qtype(run...)
			if calls.Load() != 4 {
				t.Errorf("%d calls, want 4", calls.Load())
			}
			testkit.Must(t, server.Kill())
			if out, errs := qtype(run...); out != first || strings.Count(errs, "continuing without the cache until it answers") != 1 {
				t.Errorf("without the server: %s%s", out, errs)
			}
			testkit.Must(t, server.Restart())
		})
	}
}

// TestCache_SharedUntrusted: an untrusted document with the id of another application neither reads nor replaces its results.
func TestCache_SharedUntrusted(t *testing.T) {
	server, err := servertest.Redis()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, server.Close()) }()
	dir := t.TempDir()
	document := `id: caches
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: PromptTemplate, id: say, template: "%s {text}", cache_config: {keyed_by: inputs}, inputs: [text], outputs: [answer]}]
`
	for _, name := range []string{"ours", "theirs"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name+".qtype.yaml"), []byte(fmt.Sprintf(document, name)), 0o600))
	}
	run := func(name, text string, args ...string) string {
		t.Helper()
		cmd := testkit.Command(t, "qtype", append([]string{"run", name + ".qtype.yaml", "-i", `{"text": "` + text + `"}`, "--store", "redis://" + server.Address()}, args...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		testkit.Must(t, err)
		return string(out)
	}
	run("ours", "one")
	if out := run("theirs", "one", "--sandbox"); !strings.Contains(out, "theirs one") {
		t.Errorf("it has read a result: %s", out)
	}
	run("theirs", "two", "--sandbox")
	if out := run("ours", "two"); !strings.Contains(out, "ours two") {
		t.Errorf("it has replaced a result: %s", out)
	}
}

// TestCache_OneRead: qtype cache reads a document, and what it includes, once.
func TestCache_OneRead(t *testing.T) {
	application, flows, _ := strings.Cut(fmt.Sprintf(caches, "http://127.0.0.1:1"), "flows:\n")
	var reads atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		fmt.Fprint(w, flows)
	}))
	defer site.Close()
	inFolder(t, map[string]string{"caches.qtype.yaml": application + "flows: !include " + site.URL + "/flows.yaml\n"})
	t.Setenv("NO_PROXY", "*")
	if out, code := call(t, "cache", "stats", "caches.qtype.yaml"); code != cli.ExitDone || out != "" || reads.Load() != 1 {
		t.Errorf("status %d, output %q, %d reads", code, out, reads.Load())
	}
}
