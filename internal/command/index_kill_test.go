package command

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// ingests embeds chunks and writes them to an index.
const ingests = `id: ingests
models: [{type: EmbeddingModel, id: vectors, provider: openai, model_id: small, base_url: "%s/v1", dimensions: 8, retry: {max_attempts: 1}}]
indexes: [{type: VectorIndex, id: notes, name: notes, module: embedded, embedding_model: vectors}]
flows:
  - id: main
    variables: [{id: chunk, type: RAGChunk}]
    inputs: [chunk]
    outputs: [chunk]
    steps:
      - {type: DocumentEmbedder, id: embed, model: vectors, batch_config: {batch_size: 20}, inputs: [chunk], outputs: [chunk]}
      - {type: IndexUpsert, id: write, index: notes, sync: true, batch_config: {batch_size: 25}, inputs: [chunk]}
`

// vectorServer embeds texts in OpenAI's format. It calls watch with the number of texts
// so far.
type vectorServer struct {
	mu    sync.Mutex
	texts int
	watch func(texts int)
}

func (s *vectorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.texts += len(request.Input)
	texts, watch := s.texts, s.watch
	s.mu.Unlock()
	if watch != nil {
		watch(texts)
	}
	var data []any
	for i, text := range request.Input {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		vector := make([]float32, 8)
		for k := range vector {
			vector[k] = float32(h.Sum64()>>(8*k)&0xff) / 255
		}
		data = append(data, map[string]any{"index": i, "embedding": vector})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "usage": map[string]any{"prompt_tokens": len(data)}})
}

// set replaces the watcher and returns the number of texts so far.
func (s *vectorServer) set(watch func(int)) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = watch
	return s.texts
}

// ingest is a folder with an ingest.
type ingest struct {
	dir    string
	server *vectorServer
}

func newIngest(t *testing.T, chunks int) *ingest {
	t.Helper()
	g := &ingest{dir: t.TempDir(), server: &vectorServer{}}
	server := httptest.NewServer(g.server)
	t.Cleanup(server.Close)
	var rows strings.Builder
	for i := range chunks {
		fmt.Fprintf(&rows, `{"chunk": {"content": "Text number %d.", "chunk_id": "c%05d", "document_id": "d%d", "metadata": {"n": %d}}}`+"\n", i, i, i/10, i)
	}
	for name, text := range map[string]string{"app.qtype.yaml": strings.Replace(ingests, "%s", server.URL, 1), "in.jsonl": rows.String()} {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// command returns a call of qtype in the folder.
func (g *ingest) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "qtype", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*")
	return cmd
}

// run runs the ingest to its end.
func (g *ingest) run(t *testing.T, flags ...string) {
	t.Helper()
	cmd := g.command(t.Context(), append([]string{"run", "app.qtype.yaml", "-I", "in.jsonl", "-o", "out.jsonl"}, flags...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// killAfter kills the ingest when the model has got a number of further texts, and after a
// random time then.
func (g *ingest) killAfter(t *testing.T, texts int, delay time.Duration, flag string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context()) // its end kills by SIGKILL
	defer kill()
	var once sync.Once
	timers := make(chan *time.Timer, 1)
	until := texts + g.server.set(nil)
	g.server.set(func(n int) {
		if n >= until {
			once.Do(func() { timers <- time.AfterFunc(delay, kill) })
		}
	})
	cmd := g.command(ctx, "run", "app.qtype.yaml", "-I", "in.jsonl", "-o", "out.jsonl", "-q", flag)
	var printed strings.Builder
	cmd.Stderr = &printed
	_ = cmd.Run() // killed, or complete
	g.server.set(nil)
	select {
	case timer := <-timers:
		timer.Stop()
	default:
	}
	if cmd.ProcessState.ExitCode() > 0 && !strings.Contains(printed.String(), "no interrupted run found") {
		t.Fatalf("exit status %d: %s", cmd.ProcessState.ExitCode(), printed.String())
	}
}

// entries lists the index.
func (g *ingest) entries(t *testing.T) string {
	t.Helper()
	out, err := g.command(t.Context(), "index", "list", "app.qtype.yaml", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// matches searches the index, so that vectors are compared, too.
func (g *ingest) matches(t *testing.T) string {
	t.Helper()
	out, err := g.command(t.Context(), "index", "search", "app.qtype.yaml", "Text number 77.", "-n", "1000", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestIngest_Killed kills an ingest several times at any moment and runs it again. The index
// then equals that of an ingest that was not disturbed, and what was embedded before a kill
// is not embedded again. QTYPE_KILLS is the number of kills.
func TestIngest_Killed(t *testing.T) {
	kills, chunks := 4, 800
	if n, err := strconv.Atoi(os.Getenv("QTYPE_KILLS")); err == nil {
		kills, chunks = n, max(chunks, 150*n)
	}
	calm := newIngest(t, chunks)
	calm.run(t)
	want, wantMatches := calm.entries(t), calm.matches(t)
	if n := strings.Count(want, "\n"); n != chunks {
		t.Fatalf("%d entries, want %d", n, chunks)
	}
	g := newIngest(t, chunks)
	for i := range kills {
		flag := []string{"--resume", "--restart"}[rand.IntN(2)]
		g.killAfter(t, rand.IntN(chunks/kills), time.Duration(rand.IntN(30))*time.Millisecond, flag)
		if i == kills/2 { // what a run that was killed has read is not the whole input
			if left := strings.Count(g.entries(t), "\n"); left > chunks {
				t.Errorf("%d entries", left)
			}
		}
	}
	g.run(t, "--restart")
	if got := g.entries(t); got != want {
		t.Errorf("the entries differ: %d bytes, want %d", len(got), len(want))
	}
	if got := g.matches(t); got != wantMatches {
		t.Error("the vectors differ")
	}
	again := g.server.set(nil) - chunks
	t.Logf("%d kills, %d of %d texts were embedded again", kills, again, chunks)
	if again > 20*kills+1 {
		t.Errorf("%d texts were embedded again after %d kills", again, kills)
	}
	before := g.server.set(nil)
	g.run(t)
	if n := g.server.set(nil) - before; n != 0 || g.entries(t) != want {
		t.Errorf("a further run embedded %d texts, or changed the index", n)
	}
}

// TestIngest_Sync: what is no longer in the input is removed, unless a row failed or the run
// is on a part of the input.
func TestIngest_Sync(t *testing.T) {
	g := newIngest(t, 50)
	g.run(t)
	in := filepath.Join(g.dir, "in.jsonl")
	all, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(all), "\n")
	for _, tt := range []struct {
		name, input string
		flags       []string
		want        int
	}{
		{"limit", string(all), []string{"--limit", "10"}, 50},
		{"offset", string(all), []string{"--offset", "10"}, 50},
		{"failed row", strings.Join(lines[:10], "") + `{"chunk": {"content": " ", "chunk_id": "bad", "document_id": "d"}}` + "\n", nil, 50},
		{"rows that failed before", `{"chunk": {"content": "x", "chunk_id": "c00000", "document_id": "d0"}, "error": "e", "error_step": "write", "error_code": "model"}` + "\n", nil, 50},
		{"shorter input", strings.Join(lines[:10], ""), nil, 10},
	} {
		if err := os.WriteFile(in, []byte(tt.input), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := g.command(t.Context(), append([]string{"run", "app.qtype.yaml", "-I", "in.jsonl", "-o", "out.jsonl"}, tt.flags...)...)
		out, _ := cmd.CombinedOutput() // exit status 1 for failed rows
		if got := strings.Count(g.entries(t), "\n"); got != tt.want {
			t.Errorf("%s: %d entries are left, want %d: %s", tt.name, got, tt.want, out)
		}
		if kept := strings.Contains(string(out), "nothing removed because"); kept != (tt.name != "shorter input") {
			t.Errorf("%s: %s", tt.name, out)
		}
	}
}
