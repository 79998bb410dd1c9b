package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// counted is a server of models that answers with the number of the call.
func counted(t *testing.T) *server {
	t.Helper()
	return serve(t, func(n int, r request) string {
		return answer(fmt.Sprintf("answer %d to %s", n, r.Messages[len(r.Messages)-1].Content))
	})
}

// cachedAsk is a flow of one question whose answer is kept.
type cachedAsk struct {
	url, folder string
	cache       string // further keys of cache_config, each with a comma before it
	step        string // further keys of the step
	model       string // further keys of the model
	template    string // of the prompt
	output      string // type of the answer
}

func (c cachedAsk) String() string {
	if c.template == "" {
		c.template = "Tell me of {words}"
	}
	if c.output == "" {
		c.output = "ChatMessage"
	}
	return fmt.Sprintf(`
id: app
models:
  - {type: Model, id: writer, provider: openai, base_url: "%s/v1", retry: {max_attempts: 1}%s}
flows:
  - id: main
    variables: [{id: words, type: text?}, {id: prompt, type: text}, {id: said, type: %s}]
    inputs: [words]
    outputs: [said]
    steps:
      - {type: PromptTemplate, id: fill, template: %q, inputs: [words], outputs: [prompt]}
      - {type: LLMInference, id: ask, model: writer, concurrency_config: {num_workers: 64}, cache_config: {directory: %q%s}, inputs: [prompt], outputs: [said]%s}
`, c.url, c.model, c.output, c.template, c.folder, c.cache, c.step)
}

// asked runs the flow over rows in an App of its own, and answers the rows and
// how many of them came from the cache and not.
func asked(t *testing.T, doc string, words ...string) (out []string, hits, misses int64) {
	t.Helper()
	app, err := qtype.Open(t.Context(), write(t, doc), qtype.WithEphemeral(), qtype.WithWarnings(func(line string) { t.Errorf("warning: %s", line) }))
	if err != nil {
		t.Fatal(err)
	}
	var rows []runtime.Input
	for _, w := range words {
		rows = append(rows, runtime.Row(map[string]any{"words": w}))
	}
	var p runtime.Progress
	var mu sync.Mutex
	events := map[steps.EventKind]int64{}
	listen := func(ev steps.Event) { mu.Lock(); defer mu.Unlock(); events[ev.Kind]++ }
	for row, err := range app.Run(t.Context(), "main", slices.Values(rows), runtime.WithProgress(&p),
		runtime.WithEvents(listen, steps.EventCacheHit, steps.EventCacheMiss)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case row.Err != nil:
			out = append(out, row.Err.Error())
		default:
			for _, v := range row.Outputs() {
				out = append(out, value.Text(v))
			}
		}
	}
	if err := app.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps() {
		hits, misses = hits+s.Hits, misses+s.Misses
	}
	if events[steps.EventCacheHit] != hits || events[steps.EventCacheMiss] != misses {
		t.Errorf("%d hits and %d misses, but the events are %v", hits, misses, events)
	}
	return out, hits, misses
}

func TestAResultIsKeptFromRunToRun(t *testing.T) {
	s := counted(t)
	for name, config := range map[string]string{"plain": "", "packed": ", compress: true, ttl: 3600, namespace: mine, max_size_mb: 1"} {
		t.Run(name, func(t *testing.T) {
			doc := cachedAsk{url: s.URL, folder: t.TempDir(), cache: config, output: "text"}.String()
			before := len(s.seen())
			first, hits, misses := asked(t, doc, "tea", "ice")
			if hits != 0 || misses != 2 || len(s.seen()) != before+2 {
				t.Fatalf("%d hits, %d misses", hits, misses)
			}
			second, hits, misses := asked(t, doc, "ice", "tea", "salt")
			if hits != 2 || misses != 1 || len(s.seen()) != before+3 {
				t.Errorf("%d hits, %d misses, %d calls", hits, misses, len(s.seen())-before)
			}
			if first[0] != second[1] || first[1] != second[0] || !strings.HasSuffix(second[2], "to Tell me of salt") {
				t.Errorf("got %q, then %q", first, second)
			}
		})
	}
}

// seen are the requests so far.
func (s *server) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// TestWhatAResultBelongsTo: every setting that decides what the step makes of
// its inputs makes another result; one that does not, does not.
func TestWhatAResultBelongsTo(t *testing.T) {
	s, other := counted(t), counted(t)
	for name, tt := range map[string]struct {
		change func(*cachedAsk)
		hit    bool
	}{
		"nothing":            {func(*cachedAsk) {}, true},
		"a parameter":        {func(c *cachedAsk) { c.model = ", inference_params: {temperature: 0.5}" }, false},
		"the model's name":   {func(c *cachedAsk) { c.model = ", model_id: gpt-5" }, false},
		"the server":         {func(c *cachedAsk) { c.url = other.URL }, false},
		"the system message": {func(c *cachedAsk) { c.step = ", system_message: Be brief." }, false},
		"the output's type":  {func(c *cachedAsk) { c.output = "text" }, false},
		"the prompt":         {func(c *cachedAsk) { c.template = "Speak of {words}" }, false},
		"the version":        {func(c *cachedAsk) { c.cache = ", version: '2'" }, false},
		"the namespace":      {func(c *cachedAsk) { c.cache = ", namespace: n" }, false},
		"the inputs alone":   {func(c *cachedAsk) { c.cache = ", keyed_by: inputs" }, false},
		"patience": {func(c *cachedAsk) {
			c.model, c.step = ", timeout: 10s, prices: {input: 1}, rate_limit: {requests_per_minute: 1000}", ", timeout: 20s, retry: {max_attempts: 2}, on_error: skip"
		}, true},
		"how it is stored": {func(c *cachedAsk) { c.cache = ", compress: true, ttl: 600, max_size_mb: 5, on_error: Cache" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := cachedAsk{url: s.URL, folder: t.TempDir()}
			asked(t, doc.String(), "tea")
			tt.change(&doc)
			if _, hits, misses := asked(t, doc.String(), "tea"); (hits == 1) != tt.hit || hits+misses != 1 {
				t.Errorf("%d hits, %d misses", hits, misses)
			}
		})
	}
	doc := cachedAsk{url: s.URL, folder: t.TempDir(), cache: ", keyed_by: inputs"}
	asked(t, doc.String(), "tea")
	doc.model, doc.step = ", model_id: gpt-5", ", system_message: Be brief."
	if _, hits, _ := asked(t, doc.String(), "tea"); hits != 1 {
		t.Error("keyed_by inputs looks at the configuration")
	}
}

func TestEqualRowsAskOnce(t *testing.T) {
	gate := make(chan struct{})
	var once sync.Once
	s := serve(t, func(n int, r request) string {
		once.Do(func() { <-gate })
		return answer(fmt.Sprint("answer ", n))
	})
	go func() { gate <- struct{}{} }()
	words := slices.Repeat([]string{"tea"}, 64)
	out, hits, misses := asked(t, cachedAsk{url: s.URL, folder: t.TempDir(), output: "text"}.String(), words...)
	if len(s.seen()) != 1 || hits != 63 || misses != 1 {
		t.Errorf("%d calls, %d hits, %d misses", len(s.seen()), hits, misses)
	}
	want(t, out, slices.Repeat([]string{"answer 1"}, 64)...)
}

func TestFailuresAreKeptWhereTheDocumentSaysSo(t *testing.T) {
	s := serve(t, func(int, request) string { return `"no message"` })
	for config, calls := range map[string]int{"": 2, ", on_error: Cache": 1} {
		doc := cachedAsk{url: s.URL, folder: t.TempDir(), cache: config}.String()
		before := len(s.seen())
		first, _, _ := asked(t, doc, "tea")
		second, hits, _ := asked(t, doc, "tea")
		if got := len(s.seen()) - before; got != calls || hits != int64(2-calls) {
			t.Errorf("%q: %d calls, %d hits", config, got, hits)
		}
		if !slices.Equal(first, second) || !strings.HasPrefix(first[0], "step ask: model writer: ") {
			t.Errorf("got %q, then %q", first, second)
		}
	}
}

// TestAnAnswerFromTheCacheIsSaidAnew: a memory knows messages by their ids and
// hears none twice; a kept one that is said in two turns is two messages.
func TestAnAnswerFromTheCacheIsSaidAnew(t *testing.T) {
	s := counted(t)
	app := open(t, fmt.Sprintf(`
id: app
memories: [{id: chat}]
models: [{type: Model, id: writer, provider: openai, base_url: "%s/v1"}]
flows:
  - id: main
    variables: [{id: words, type: text}, {id: draft, type: ChatMessage}, {id: said, type: ChatMessage}]
    inputs: [words]
    outputs: [said]
    steps:
      - {type: LLMInference, id: draft_it, model: writer, cache_config: {directory: %q}, inputs: [words], outputs: [draft]}
      - {type: LLMInference, id: say_it, model: writer, memory: chat, cache_config: {}, inputs: [draft], outputs: [said]}
`, s.URL, t.TempDir()))
	for range 3 {
		for row, err := range app.Run(t.Context(), "main", one("s", map[string]any{"words": "tea"})) {
			if err != nil || row.Err != nil {
				t.Fatal(err, row.Err)
			}
		}
	}
	if n := len(s.seen()); n != 4 {
		t.Errorf("%d calls: the draft is to be made once, and a step with a memory is never cached", n)
	}
	history, err := app.Memory("chat").Window(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if len(history.Entries) != 6 {
		t.Errorf("the memory holds %d messages, not 3 questions and 3 answers", len(history.Entries))
	}
}

func TestStepsThatMakeManyRowsOrNone(t *testing.T) {
	doc := fmt.Sprintf(`
id: app
types: [{id: Item, properties: {name: text, price: float, day: date?}}]
flows:
  - id: main
    variables: [{id: items, type: "list[Item]"}, {id: item, type: Item}, {id: other, type: int}]
    inputs: [items, other]
    outputs: [item, other]
    steps:
      - {type: Explode, id: split, cache_config: {directory: %q}, inputs: [items], outputs: [item]}
`, t.TempDir())
	rows := []map[string]any{
		{"items": []any{map[string]any{"name": "tea", "price": 2.0, "day": "2026-02-03"}, map[string]any{"name": "ice", "price": 1.5}}, "other": 1},
		{"items": []any{}, "other": 2},
		{"items": []any{map[string]any{"name": "tea", "price": 2.0, "day": "2026-02-03"}, map[string]any{"name": "ice", "price": 1.5}}, "other": 3},
		{"items": []any{}, "other": 4},
	}
	for range 2 {
		app := open(t, doc)
		want(t, outcomes(t, app, "main", rows...),
			`{"name":"tea","price":2,"day":"2026-02-03"} | 1`, `{"name":"ice","price":1.5,"day":null} | 1`,
			`{"name":"tea","price":2,"day":"2026-02-03"} | 3`, `{"name":"ice","price":1.5,"day":null} | 3`)
	}
}

// TestAMocksAnswerIsNotTheModels: what the stand-in said while there were no
// credentials is not taken for the model's answer.
func TestAMocksAnswerIsNotTheModels(t *testing.T) {
	s := counted(t)
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	doc := fmt.Sprintf(`
id: app
models:
  - {type: Model, id: writer, provider: openai, offline: practice}
  - {type: Model, id: practice, provider: mock}
flows:
  - id: main
    variables: [{id: words, type: text}, {id: said, type: text}]
    inputs: [words]
    outputs: [said]
    steps:
      - {type: LLMInference, id: ask, model: writer, cache_config: {directory: %q}, inputs: [words], outputs: [said]}
`, t.TempDir())
	first, _, misses := asked(t, doc, "tea")
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	second, hits, _ := asked(t, doc, "tea")
	if !strings.HasPrefix(first[0], "[mock]") || second[0] != "answer 1 to tea" || misses != 1 || hits != 0 {
		t.Errorf("got %q, then %q", first, second)
	}
}

// TestACacheThatCannotBeUsedIsSaidOnce: the run is what it would be without one.
func TestACacheThatCannotBeUsedIsSaidOnce(t *testing.T) {
	s := counted(t)
	folder := t.TempDir()
	file := filepath.Join(folder, stepcache.FileName)
	if err := os.WriteFile(file, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	app, err := qtype.Open(t.Context(), write(t, cachedAsk{url: s.URL, folder: folder, output: "text"}.String()), qtype.WithEphemeral(),
		qtype.WithWarnings(func(line string) { warnings = append(warnings, line) }))
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(t, app, "main", map[string]any{"words": "a"}, map[string]any{"words": nil}, map[string]any{"words": "b"})
	if err := app.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(got) != 3 || len(s.seen()) != 3 {
		t.Errorf("got %q", got)
	}
	want(t, warnings, "cache "+file+": it is damaged, or no SQLite database; remove it to begin anew; continuing without the cache")
}

// TestADamagedEntryIsMadeAnew: it is not taken for a result.
func TestADamagedEntryIsMadeAnew(t *testing.T) {
	s := counted(t)
	folder := t.TempDir()
	doc := cachedAsk{url: s.URL, folder: folder, output: "text"}.String()
	asked(t, doc, "tea")
	spoil(t, filepath.Join(folder, stepcache.FileName), `UPDATE entries SET value = '{"rows":[{"outputs":{"another":1}}]}'`)
	out, hits, _ := asked(t, doc, "tea")
	want(t, out, "answer 2 to Tell me of tea")
	if hits != 0 {
		t.Error("the damaged entry was a hit")
	}
	if _, hits, _ = asked(t, doc, "tea"); hits != 1 {
		t.Error("the entry was not made anew")
	}
}

// spoil changes a cache's file behind its back.
func spoil(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
