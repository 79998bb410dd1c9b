package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

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

// TestReencrypt_CachesAndLimits: after reencrypt, cached results and rate limits in the store need the new
// key alone.
func TestReencrypt_CachesAndLimits(t *testing.T) {
	server, err := servertest.Redis()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, server.Close()) }()
	var calls atomic.Int64
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		calls.Add(1)
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	defer model.Close()
	const oldKey, newKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk="
	dir := t.TempDir()
	qtype := func(encryption string, args ...string) string {
		t.Helper()
		document := strings.Replace(fmt.Sprintf(caches, model.URL), "retry:", "rate_limit: {requests_per_minute: 1000}, retry:", 1) +
			fmt.Sprintf("stores: [{id: here, type: redis, url: 'redis://%s', encryption: {%s}}]\nmemories: [{id: notes, store: here}]\n", server.Address(), encryption)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(document), 0o600))
		cmd := testkit.Command(t, "qtype", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "OPENAI_API_KEY=test-key-of-caches", "NO_PROXY=*")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run := func(encryption, text string) string {
		t.Helper()
		return qtype(encryption, "run", "app.qtype.yaml", "-i", text)
	}
	run("key: "+oldKey, "one")
	both := "key: " + newKey + ", old_keys: [" + oldKey + "]"
	if out := qtype(both, "memory", "reencrypt", "app.qtype.yaml"); !strings.Contains(out, "2 sessions with") {
		t.Errorf("got %s", out)
	}
	if out := run("key: "+newKey, "one"); calls.Load() != 1 || strings.Contains(out, "warning: ") {
		t.Errorf("%d calls: %s", calls.Load(), out)
	}
	if out := run("key: "+newKey, "two"); !strings.Contains(out, "answer to two") || strings.Contains(out, "warning: ") {
		t.Errorf("a call with the rate limit: %s", out)
	}
}
