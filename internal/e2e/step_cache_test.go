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
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// startCountingServer starts a model server whose responses hold the number of the call.
func startCountingServer(t *testing.T) *modelServer {
	t.Helper()
	return startModelServer(t, func(n int, r request) string {
		return assistantMessage(fmt.Sprintf("answer %d to %s", n, r.Messages[len(r.Messages)-1].Content))
	})
}

// cachedApp is a document with one cached model step.
type cachedApp struct {
	url, folder string
	cache       string // more keys of cache_config, each after a comma
	step        string // more keys of the step
	model       string // more keys of the model
	template    string // prompt template
	output      string // type of the output
}

func (c cachedApp) String() string {
	if c.template == "" {
		c.template = "Write about {words}"
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
    variables: [{id: words, type: text?}, {id: prompt, type: text}, {id: reply, type: %s}]
    inputs: [words]
    outputs: [reply]
    steps:
      - {type: PromptTemplate, id: fill, template: %q, inputs: [words], outputs: [prompt]}
      - {type: LLMInference, id: ask, model: writer, concurrency_config: {num_workers: 64}, cache_config: {directory: %q%s}, inputs: [prompt], outputs: [reply]%s}
`, c.url, c.model, c.output, c.template, c.folder, c.cache, c.step)
}

// runCached opens doc, runs one row for each of words and returns the results and
// the numbers of cache hits and misses.
func runCached(t *testing.T, doc string, words ...string) (out []string, hits, misses int64) {
	t.Helper()
	app, err := qtype.Open(t.Context(), writeFile(t, doc), qtype.WithEphemeral(), qtype.WithWarnings(func(line string) { t.Errorf("warning: %s", line) }))
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

func TestStepCache_PersistsAcrossRuns(t *testing.T) {
	s := startCountingServer(t)
	for name, config := range map[string]string{"defaults": "", "all settings": ", compress: true, ttl: 3600, namespace: mine, max_size_mb: 1"} {
		t.Run(name, func(t *testing.T) {
			doc := cachedApp{url: s.URL, folder: t.TempDir(), cache: config, output: "text"}.String()
			before := len(s.received())
			first, hits, misses := runCached(t, doc, "tea", "ice")
			if hits != 0 || misses != 2 || len(s.received()) != before+2 {
				t.Fatalf("%d hits, %d misses", hits, misses)
			}
			second, hits, misses := runCached(t, doc, "ice", "tea", "salt")
			if hits != 2 || misses != 1 || len(s.received()) != before+3 {
				t.Errorf("%d hits, %d misses, %d calls", hits, misses, len(s.received())-before)
			}
			if first[0] != second[1] || first[1] != second[0] || !strings.HasSuffix(second[2], "to Write about salt") {
				t.Errorf("got %q, then %q", first, second)
			}
		})
	}
}

// TestStepCache_Scope: scope decides which callers share results, also after a restart. Another document with the
// same directory and the same step uses them only if it would compute the same.
func TestStepCache_Scope(t *testing.T) {
	s := startCountingServer(t)
	rows := []runtime.Input{}
	for _, session := range []string{memory.UserSession("ada", "1"), memory.UserSession("ada", "2"), memory.UserSession("bob", "1"), memory.UserSession("ada", "1")} {
		rows = append(rows, runtime.Input{Session: session, Values: map[string]any{"words": "tea"}})
	}
	for scope, calls := range map[string]int{"app": 1, "user": 2, "session": 3} {
		cached := cachedApp{url: s.URL, folder: t.TempDir(), cache: ", scope: " + scope, output: "text"}
		run := func(doc string) int {
			app, err := qtype.Open(t.Context(), writeFile(t, doc), qtype.WithEphemeral())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = app.Close(context.Background()) }()
			before := len(s.received())
			for row, err := range app.Run(t.Context(), "main", slices.Values(rows)) {
				if err != nil || row.Err != nil {
					t.Fatal(err, row.Err)
				}
			}
			return len(s.received()) - before
		}
		if n := run(cached.String()); n != calls {
			t.Errorf("%s: %d calls, want %d", scope, n, calls)
		}
		if n := run(strings.Replace(cached.String(), "id: app", "id: other", 1)); n != 0 {
			t.Errorf("%s: the same step after a restart: %d calls", scope, n)
		}
		cached.template = "Sing about {words}"
		if n := run(cached.String()); n != calls {
			t.Errorf("%s: another step of the same id: %d calls, want %d", scope, n, calls)
		}
	}
}

// TestStepCache_KeyDependsOnConfiguration: a setting that can change the step's
// result changes the cache key; other settings do not.
func TestStepCache_KeyDependsOnConfiguration(t *testing.T) {
	s, other := startCountingServer(t), startCountingServer(t)
	for name, tt := range map[string]struct {
		change func(*cachedApp)
		hit    bool
	}{
		"nothing":            {func(*cachedApp) {}, true},
		"a parameter":        {func(c *cachedApp) { c.model = ", inference_params: {temperature: 0.5}" }, false},
		"the model's name":   {func(c *cachedApp) { c.model = ", model_id: gpt-6-sol" }, false},
		"the server":         {func(c *cachedApp) { c.url = other.URL }, false},
		"the system message": {func(c *cachedApp) { c.step = ", system_message: Be brief." }, false},
		"the output's type":  {func(c *cachedApp) { c.output = "text" }, false},
		"the prompt":         {func(c *cachedApp) { c.template = "Report on {words}" }, false},
		"the version":        {func(c *cachedApp) { c.cache = ", version: '2'" }, false},
		"the namespace":      {func(c *cachedApp) { c.cache = ", namespace: n" }, false},
		"the inputs alone":   {func(c *cachedApp) { c.cache = ", keyed_by: inputs" }, false},
		"timeouts and retries": {func(c *cachedApp) {
			c.model, c.step = ", timeout: 10s, prices: {input: 1}, rate_limit: {requests_per_minute: 1000}", ", timeout: 20s, retry: {max_attempts: 2}, on_error: skip"
		}, true},
		"storage settings": {func(c *cachedApp) { c.cache = ", compress: true, ttl: 600, max_size_mb: 5, on_error: Cache" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := cachedApp{url: s.URL, folder: t.TempDir()}
			runCached(t, doc.String(), "tea")
			tt.change(&doc)
			if _, hits, misses := runCached(t, doc.String(), "tea"); (hits == 1) != tt.hit || hits+misses != 1 {
				t.Errorf("%d hits, %d misses", hits, misses)
			}
		})
	}
	doc := cachedApp{url: s.URL, folder: t.TempDir(), cache: ", keyed_by: inputs"}
	runCached(t, doc.String(), "tea")
	doc.model, doc.step = ", model_id: gpt-6-sol", ", system_message: Be brief."
	if _, hits, _ := runCached(t, doc.String(), "tea"); hits != 1 {
		t.Error("keyed_by: inputs depends on the configuration")
	}
}

func TestStepCache_DeduplicatesConcurrentRows(t *testing.T) {
	gate := make(chan struct{})
	var once sync.Once
	s := startModelServer(t, func(n int, r request) string {
		once.Do(func() { <-gate })
		return assistantMessage(fmt.Sprint("answer ", n))
	})
	go func() { gate <- struct{}{} }()
	words := slices.Repeat([]string{"tea"}, 64)
	out, hits, misses := runCached(t, cachedApp{url: s.URL, folder: t.TempDir(), output: "text"}.String(), words...)
	if len(s.received()) != 1 || hits != 63 || misses != 1 {
		t.Errorf("%d calls, %d hits, %d misses", len(s.received()), hits, misses)
	}
	assertLines(t, out, slices.Repeat([]string{"answer 1"}, 64)...)
}

func TestStepCache_CachesErrorsIfConfigured(t *testing.T) {
	s := startModelServer(t, func(int, request) string { return `"no message"` })
	for config, calls := range map[string]int{"": 2, ", on_error: Cache": 1} {
		doc := cachedApp{url: s.URL, folder: t.TempDir(), cache: config}.String()
		before := len(s.received())
		first, _, _ := runCached(t, doc, "tea")
		second, hits, _ := runCached(t, doc, "tea")
		if got := len(s.received()) - before; got != calls || hits != int64(2-calls) {
			t.Errorf("%q: %d calls, %d hits", config, got, hits)
		}
		if !slices.Equal(first, second) || !strings.HasPrefix(first[0], "step ask: model writer: ") {
			t.Errorf("got %q, then %q", first, second)
		}
	}
}

// TestStepCache_ReplaysAnswer: a memory deduplicates messages by their ids, so a
// cached message gets a new id in each turn.
func TestStepCache_ReplaysAnswer(t *testing.T) {
	s := startCountingServer(t)
	app := openApp(t, fmt.Sprintf(`
id: app
memories: [{id: chat}]
models: [{type: Model, id: writer, provider: openai, base_url: "%s/v1"}]
flows:
  - id: main
    variables: [{id: words, type: text}, {id: draft, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [words]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: draft_it, model: writer, cache_config: {directory: %q}, inputs: [words], outputs: [draft]}
      - {type: LLMInference, id: answer_it, model: writer, memory: chat, cache_config: {}, inputs: [draft], outputs: [reply]}
`, s.URL, t.TempDir()))
	for range 3 {
		runRow(t, app, "main", "s", map[string]any{"words": "tea"})
	}
	if n := len(s.received()); n != 4 {
		t.Errorf("%d calls: want 4: the draft is cached, the step with a memory never is", n)
	}
	history, err := app.Memory("chat").Window(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if len(history.Entries) != 6 {
		t.Errorf("the memory holds %d messages, want 3 questions and 3 answers", len(history.Entries))
	}
}

func TestStepCache_ManyRowsOrNone(t *testing.T) {
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
		app := openApp(t, doc)
		assertLines(t, runAll(t, app, "main", rows...),
			`{"name":"tea","price":2,"day":"2026-02-03"} | 1`, `{"name":"ice","price":1.5,"day":null} | 1`,
			`{"name":"tea","price":2,"day":"2026-02-03"} | 3`, `{"name":"ice","price":1.5,"day":null} | 3`)
	}
}

// TestStepCache_SeparatesOfflineMock: an answer of the offline mock is not a cached
// answer of the model.
func TestStepCache_SeparatesOfflineMock(t *testing.T) {
	s := startCountingServer(t)
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	doc := fmt.Sprintf(`
id: app
models:
  - {type: Model, id: writer, provider: openai, offline: offline_mock}
  - {type: Model, id: offline_mock, provider: mock}
flows:
  - id: main
    variables: [{id: words, type: text}, {id: reply, type: text}]
    inputs: [words]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: ask, model: writer, cache_config: {directory: %q}, inputs: [words], outputs: [reply]}
`, t.TempDir())
	first, _, misses := runCached(t, doc, "tea")
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	second, hits, _ := runCached(t, doc, "tea")
	if !strings.HasPrefix(first[0], "[mock]") || second[0] != "answer 1 to tea" || misses != 1 || hits != 0 {
		t.Errorf("got %q, then %q", first, second)
	}
}

// TestStepCache_WarnsOnceIfUnusable: the run continues without the cache.
func TestStepCache_WarnsOnceIfUnusable(t *testing.T) {
	s := startCountingServer(t)
	folder := t.TempDir()
	file := filepath.Join(folder, stepcache.FileName)
	if err := os.WriteFile(file, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	app, err := qtype.Open(t.Context(), writeFile(t, cachedApp{url: s.URL, folder: folder, output: "text"}.String()), qtype.WithEphemeral(),
		qtype.WithWarnings(func(line string) { warnings = append(warnings, line) }))
	if err != nil {
		t.Fatal(err)
	}
	got := runAll(t, app, "main", map[string]any{"words": "a"}, map[string]any{"words": nil}, map[string]any{"words": "b"})
	if err := app.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(got) != 3 || len(s.received()) != 3 {
		t.Errorf("got %q", got)
	}
	assertLines(t, warnings, "cache "+file+": not a SQLite database, or damaged; remove the file to start over; continuing without the cache")
}

func TestStepCache_ReplacesMalformedEntry(t *testing.T) {
	s := startCountingServer(t)
	folder := t.TempDir()
	doc := cachedApp{url: s.URL, folder: folder, output: "text"}.String()
	runCached(t, doc, "tea")
	corruptCache(t, filepath.Join(folder, stepcache.FileName), `UPDATE entries SET value = '{"rows":[{"outputs":{"another":1}}]}'`)
	out, hits, _ := runCached(t, doc, "tea")
	assertLines(t, out, "answer 2 to Write about tea")
	if hits != 0 {
		t.Error("the malformed entry was a hit")
	}
	if _, hits, _ = runCached(t, doc, "tea"); hits != 1 {
		t.Error("the entry was not replaced")
	}
}

// corruptCache changes the cache's database while no program has it open.
func corruptCache(t *testing.T, path, statement string) {
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

// TestStepCache_DroppedFailure: a result without a row that failed in a flow of the step is not stored. From the cache it
// would hide that a row has failed, and a step with sync would remove the entries of that row from its index.
func TestStepCache_DroppedFailure(t *testing.T) {
	for _, onError := range []string{"skip", "continue"} {
		for _, cached := range []string{"", ", on_error: Cache"} {
			s := startModelServer(t, func(n int, _ request) string {
				if n == 1 {
					return "no answer"
				}
				return assistantMessage("good")
			})
			doc := fmt.Sprintf(`
id: app
models: [{type: Model, id: writer, provider: openai, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: words, type: text}, {id: reply, type: "text?"}]
    inputs: [words]
    outputs: [reply]
    steps:
      - {type: InvokeFlow, id: call, flow: inner, cache_config: {directory: %q%s}, input_bindings: {words: words}, output_bindings: {reply: reply}}
  - id: inner
    variables: [{id: words, type: text}, {id: reply, type: "text?"}]
    inputs: [words]
    outputs: [reply]
    steps: [{type: LLMInference, id: ask, model: writer, on_error: %s, inputs: [words], outputs: [reply]}]
`, s.URL, t.TempDir(), cached, onError)
			if first, _, _ := runCached(t, doc, "tea"); strings.Contains(strings.Join(first, ""), "good") {
				t.Fatalf("%s%s: the first call did not fail: %q", onError, cached, first)
			}
			second, hits, _ := runCached(t, doc, "tea")
			third, later, _ := runCached(t, doc, "tea")
			if hits != 0 || later != 1 || !slices.Equal(second, []string{"good"}) || !slices.Equal(third, second) {
				t.Errorf("%s%s: %d and %d hits, %q, then %q", onError, cached, hits, later, second, third)
			}
		}
	}
}
