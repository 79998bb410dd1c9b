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

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

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

// TestCache_OfAddress: the refusal to open the cache of a document from an address names no flag that the
// command lacks.
func TestCache_OfAddress(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, caches, "https://example.com")
	}))
	defer site.Close()
	for _, args := range [][]string{{"cache", "stats"}, {"cache", "clear"}} {
		cmd := testkit.Command(t, "qtype", append(args, site.URL+"/app.qtype.yaml")...)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "NO_PROXY=*")
		out, err := cmd.CombinedOutput()
		if text := string(out); err == nil || strings.Contains(text, "--") || !strings.Contains(text, "because it is from an address; pass the folder in place of the document") {
			t.Errorf("%v: %v: %s", args, err, text)
		}
	}
}
