package optimize_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/waves"
)

// optimize optimizes an application; cfg may be changed before.
func optimize(t *testing.T, path string, change func(*qtype.OptimizationConfig)) (*qtype.OptimizationReport, error) {
	t.Helper()
	t.Setenv("OPENAI_API_KEY", "")
	var cfg qtype.OptimizationConfig
	cfg.Path, cfg.Workers = path, 3
	if change != nil {
		change(&cfg)
	}
	return qtype.Optimize(t.Context(), cfg)
}

// text is the report without what depends on time.
func text(t *testing.T, r *qtype.OptimizationReport) string {
	t.Helper()
	r.Before.Seconds, r.After.Seconds = 0, 0
	var b strings.Builder
	testkit.Must(t, r.JSON(&b))
	return b.String()
}

// TestOptimize_Examples finds the improvement that three examples have room for, in held-out rows and within the limits.
func TestOptimize_Examples(t *testing.T) {
	for example, want := range map[string]string{
		"routing":       "+          Answer with one word that labels the request (refund, damaged or other). Who cancels an order wants",
		"support_inbox": "+          Who returns something wants a refund.",
		"similar":       `+          verdict: 'similarity > 0.2 ? "asked before" : "new"'`,
	} {
		r, err := optimize(t, filepath.Join("../../../examples", example, "optimize.qtype-eval.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := r.Results[0]
		if !r.Found || !c.Comparison.Significant() || c.Comparison.Low <= 0 || r.Runs > 500 || !strings.Contains(r.Patch(), want) {
			t.Errorf("%s: found %v, %+v, %d runs\n%s", example, r.Found, c, r.Runs, r.Patch())
		}
	}
}

// TestOptimize_ExampleOfNothing finds nothing in an example whose answers do not depend on what is changed.
func TestOptimize_ExampleOfNothing(t *testing.T) {
	r, err := optimize(t, "../../../examples/chat/optimize.qtype-eval.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Found || r.Patch() != "" || r.Best != "base" || len(r.Candidates) != 4 || *r.Candidates[0].Validation == 1 {
		t.Errorf("found %v, best %s of %d\n%s", r.Found, r.Best, len(r.Candidates), r.Patch())
	}
}

// TestOptimize_Nothing finds nothing where labels do not depend on the request.
func TestOptimize_Nothing(t *testing.T) {
	dir := t.TempDir()
	app := testkit.ReadFile(t, "../../../examples/routing/app.qtype.yaml")
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(app), 0o600))
	rows := "request,expected\n"
	for i, line := range strings.Split(strings.TrimSpace(testkit.ReadFile(t, "../../../examples/routing/labelled.csv")), "\n")[1:] {
		request := line[:strings.LastIndex(line, ",")]
		rows += request + "," + []string{"refund", "damaged", "other"}[(i*i*7+i/3)%3] + "\n"
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "rows.csv"), []byte(rows), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype-eval.yaml"), []byte("data: rows.csv\nmetrics: [{type: exact, output: label}]\noptimize: {texts: [classify.system_message]}\n"), 0o600))
	r, err := optimize(t, filepath.Join(dir, "app.qtype-eval.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Found || r.Patch() != "" || r.Best != "base" {
		t.Errorf("found %v, best %s\n%s", r.Found, r.Best, r.Patch())
	}
}

// TestOptimize_Resume interrupts an optimization after each session, and resumes it: the report is the same, and no finished row runs again.
func TestOptimize_Resume(t *testing.T) {
	path := "../../../examples/routing/optimize.qtype-eval.yaml"
	whole, err := optimize(t, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, ran := text(t, whole), 0
	journal := filepath.Join(t.TempDir(), "better.patch.qtype-journal")
	for part := 1; ; part++ {
		ctx, cancel := context.WithCancel(t.Context())
		var cfg qtype.OptimizationConfig
		cfg.Path, cfg.Workers, cfg.Journal, cfg.Resume = path, 1, journal, part > 1
		before := ran
		cfg.Progress = func(int, int) { // after each row
			if ran++; ran == before+1+part%3 {
				cancel()
			}
		}
		r, err := qtype.Optimize(ctx, cfg)
		cancel()
		if errors.Is(err, context.Canceled) {
			if part > 200 {
				t.Fatal("no progress")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, r); got != want {
			t.Errorf("the report of %d parts differs:\n%s\nwant:\n%s", part, got, want)
		}
		if ran > whole.Runs+part {
			t.Errorf("%d rows were run in %d parts, and %d in one", ran, part, whole.Runs)
		}
		break
	}
	if _, err := os.Stat(journal); !os.IsNotExist(err) {
		t.Error("the journal remains")
	}
}

// TestOptimize_Workers checks that the number of workers does not change the result.
func TestOptimize_Workers(t *testing.T) {
	var first string
	for _, n := range []int{1, 8} {
		r, err := optimize(t, "../../../examples/support_inbox/optimize.qtype-eval.yaml", func(c *qtype.OptimizationConfig) { c.Workers = n })
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, r); first == "" {
			first = got
		} else if got != first {
			t.Errorf("%d workers:\n%s\nwant:\n%s", n, got, first)
		}
	}
}

// TestOptimize_Examples_Added adds examples of rows to a system message of an application whose answers follow them, and none where they do not help.
func TestOptimize_Examples_Added(t *testing.T) {
	for _, helps := range []bool{true, false} {
		rows := "question,expected\n"
		for i := range 160 {
			kind := i % 2
			if !helps {
				kind = (i*i*7 + i/3) % 2
			}
			rows += fmt.Sprintf("%s%d,%s\n", []string{"a", "b"}[i%2], i, []string{"alpha", "beta"}[kind])
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"rows.csv": rows, "app.qtype.yaml": `id: app
models:
  - type: Model
    id: m
    provider: mock
    rules:
      - {match: ^a, system: 'Input: a\d+\nOutput: alpha', text: alpha}
      - {match: ^b, system: 'Input: b\d+\nOutput: beta', text: beta}
      - {text: alpha}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: write, model: m, system_message: Name the kind., inputs: [question], outputs: [answer]}]
`, "app.qtype-eval.yaml": "data: rows.csv\nmetrics: [{type: exact, output: answer}]\noptimize: {examples: [write.system_message]}\n"} {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		r, err := optimize(t, filepath.Join(dir, "app.qtype-eval.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Found != helps || helps && (r.Results[0].After.Mean != 1 || !strings.Contains(r.Patch(), "Input: a")) {
			t.Errorf("found %v, %+v\n%s", r.Found, r.Results, r.Patch())
		}
		if helps {
			testkit.Must(t, r.Apply())
			if again, err := optimize(t, filepath.Join(dir, "app.qtype-eval.yaml"), nil); err != nil || again.Stopped != "no validation row can be better" {
				t.Errorf("again: %+v, %v", again, err)
			}
		}
	}
}

// TestOptimize_Batches finds in batches what another optimization finds, for half the price, also if it is interrupted.
func TestOptimize_Batches(t *testing.T) {
	answers := func(method string, body []byte) (int, []byte) {
		status, answer := batchtest.Deterministic(method, body)
		text := "long"
		switch said := string(body); {
		case strings.Contains(said, "You improve a text"):
			text = `<text>\\nBe kind and brief.\\n</text>`
		case strings.Contains(said, "brief"):
			text = "short"
		}
		return status, regexp.MustCompile("answer [0-9a-f]+").ReplaceAll(answer, []byte(text))
	}
	open := func(batches bool, stopAfter int) (*qtype.OptimizationReport, *batchtest.Server) {
		t.Helper()
		server := batchtest.New(3, batchtest.Faults{Polls: 1}, answers)
		at := httptest.NewServer(server)
		defer at.Close()
		dir := t.TempDir()
		rows := "question,expected\n"
		for i := range 60 {
			rows += fmt.Sprintf("question %d,short\n", i)
		}
		for name, text := range map[string]string{"rows.csv": rows, "app.qtype.yaml": `id: app
auths: [{type: api_key, id: key, api_key: sk-secret-of-the-test}]
models: [{type: Model, id: writer, provider: openai, model_id: gpt-6-luna, api: chat, base_url: "` + at.URL + `/v1", auth: key, prices: {input: 2, output: 8}}]
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: write, model: writer, system_message: Be kind., inputs: [question], outputs: [answer]}]
`, "app.qtype-eval.yaml": "data: rows.csv\nmetrics: [{type: exact, output: answer}]\noptimize: {}\n"} {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		server.Watch(func(*http.Request) {
			if stopAfter--; stopAfter == 0 {
				stop()
			}
		})
		for part := 0; ; part++ {
			var cfg qtype.OptimizationConfig
			cfg.Path, cfg.Workers, cfg.Resume, cfg.Journal = filepath.Join(dir, "app.qtype-eval.yaml"), 3, part > 0, filepath.Join(dir, "p"+evalrun.JournalSuffix)
			if batches {
				cfg.Waves = waves.New(filepath.Join(dir, "p"+waves.Suffix))
				cfg.Waves.Poll, cfg.Waves.Settle = func(int) time.Duration { return time.Millisecond }, time.Millisecond
			}
			r, err := qtype.Optimize(waves.With(ctx, cfg.Waves), cfg)
			if part == 0 && errors.Is(err, context.Canceled) {
				ctx = t.Context()
				continue
			}
			testkit.Must(t, err)
			if left, _ := filepath.Glob(filepath.Join(dir, "p.*")); len(left) > 0 {
				t.Error(left)
			}
			r.Before.Seconds, r.After.Seconds = 0, 0
			return r, server
		}
	}
	want, _ := open(false, -1)
	for name, stopAfter := range map[string]int{"whole": -1, "interrupted": 7} {
		got, server := open(true, stopAfter)
		calls, twice := server.Paid()
		once, batches := server.Made()
		if !got.Found || twice > 0 || once != got.Proposals || batches < 3 || batches > 10 || got.Before.Money < 0.499*want.Before.Money || got.Before.Money > 0.501*want.Before.Money {
			t.Errorf("%s: found %v; %d calls were paid in %d batches, %d twice, %d at once; a row costs %v instead of %v", name, got.Found, calls, batches, twice, once, got.Before.Money, want.Before.Money)
		}
		if got.Runs != want.Runs || got.Best != want.Best || len(got.Candidates) != len(want.Candidates) {
			t.Errorf("%s:\n%s\nwant\n%s", name, text(t, got), text(t, want))
		}
	}
}

// TestOptimize_Apply changes the document, and keeps its comments; it refuses one that has changed.
func TestOptimize_Apply(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"app.qtype.yaml", "returns.csv", "optimize.qtype-eval.yaml"} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(testkit.ReadFile(t, "../../../examples/support_inbox/"+name)), 0o600))
	}
	path, document := filepath.Join(dir, "optimize.qtype-eval.yaml"), filepath.Join(dir, "app.qtype.yaml")
	r, err := optimize(t, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := testkit.ReadFile(t, document)
	testkit.Must(t, r.Apply())
	after := testkit.ReadFile(t, document)
	if strings.Count(after, "#") != strings.Count(before, "#") || !strings.Contains(after, "Who returns something wants a refund.") {
		t.Errorf("the document is\n%s", after)
	}
	if again, err := optimize(t, path, nil); err != nil || again.Found || again.Stopped != "no validation row can be better" {
		t.Errorf("again: %+v, %v", again, err)
	}
	if err := r.Apply(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
}

// TestOptimize_Recordings records an optimization with models of a server once, and replays it without the server, also with judges.
func TestOptimize_Recordings(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		testkit.Must(t, json.NewDecoder(r.Body).Decode(&req))
		calls.Add(1)
		first, last, text := req.Messages[0].Content, req.Messages[len(req.Messages)-1].Content, "long"
		switch {
		case req.Model == "coach":
			text = "The answers are too long.\n<text>\nBe kind.\nBe brief.\n</text>"
		case req.Model == "referee":
			text = fmt.Sprintf(`{"score": %d, "reason": "length"}`, min(1, strings.Count(last, `"output":"short"`)))
		case strings.Contains(first, "brief"):
			text = "short"
		}
		answer, err := json.Marshal(text)
		testkit.Must(t, err)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices": [{"message": {"role": "assistant", "content": %s}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}`, answer)
	}))
	dir, models, rows := t.TempDir(), "", "question\n"
	for _, id := range []string{"writer", "coach", "referee"} {
		models += fmt.Sprintf("  - {type: Model, id: %s, provider: openai, model_id: %[1]s, inference_params: {api: chat_completions}, auth: key, base_url: %s}\n", id, server.URL)
	}
	for i := range 60 {
		rows += fmt.Sprintf("question %d\n", i)
	}
	for name, text := range map[string]string{"rows.csv": rows, "app.qtype.yaml": "id: app\nauths: [{type: api_key, id: key, api_key: sk-secret-of-the-test}]\nmodels:\n" + models + `flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: writer, system_message: Be kind., inputs: [question], outputs: [answer]}]
`, "app.qtype-eval.yaml": `data: rows.csv
metrics: [{type: judge, model: referee, rubric: The answer is short.}]
optimize: {model: coach, recordings: optimize.recordings.json}
`} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	recorded, err := optimize(t, filepath.Join(dir, "app.qtype-eval.yaml"), func(c *qtype.OptimizationConfig) { c.Record = recording.Record })
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(2*recorded.Runs + 1); !recorded.Found || calls.Load() != want || !strings.Contains(recorded.Patch(), `system_message: "Be kind.\nBe brief."`) {
		t.Errorf("found %v with %d calls, want %d\n%s", recorded.Found, calls.Load(), want, recorded.Patch())
	}
	server.Close()
	replayed, err := optimize(t, filepath.Join(dir, "app.qtype-eval.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, replayed), text(t, recorded); got != want {
		t.Errorf("the replay differs:\n%s\n%s", got, want)
	}
	if strings.Contains(testkit.ReadFile(t, filepath.Join(dir, "optimize.recordings.json")), "sk-secret") {
		t.Error("the recordings have the key")
	}
}

// TestOptimize_Rejects reports what cannot be optimized.
func TestOptimize_Rejects(t *testing.T) {
	rows := "question,expected\n"
	for i := range 60 {
		rows += fmt.Sprintf("what is %d,%d\n", i, i)
	}
	for keys, want := range map[string]string{
		"texts: [reply]":                                      "is not the id of a step",
		"texts: [repli.system_message]":                       `did you mean "reply"`,
		"texts: [reply.inputs]":                               "is not a text",
		"texts: [env.system_message]":                         "a variable of the environment",
		"texts: [reply.stop]":                                 "does not have reply.stop",
		"texts: [alias.system_message]":                       "by an alias",
		"texts: [reply.system_message, reply.system_message]": "is twice",
		"metric: exakt":                                       `no metric has the id "exakt"`,
		"model: nobody":                                       `no model has the id "nobody"`,
		"keep: [Not there]":                                   "no text has the part",
		"texts: [kind.system_message]":                        "by an alias",
		"values: {writer.provider: []}":                       "no values to choose from",
		"values: {writer.tempo: [1]}":                         "writer.tempo cannot be 1",
		"train: 0.6\n  validation: 0.4":                       "leave at least 0.1",
		"recordings: ../../outside.json":                      "must be a file in the folder",
		"tests: 3":                                            `no key "tests"`,
	} {
		dir := t.TempDir()
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "rows.csv"), []byte(rows), 0o600))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(`id: app
models: [{type: Model, id: writer, provider: mock, rules: [{text: x}]}]
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: q, type: text}, {id: a, type: text}, {id: b, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: reply, model: writer, system_message: Be brief., inputs: [question], outputs: [q]}
      - {type: LLMInference, id: kind, model: writer, system_message: &kind Be kind., inputs: [q], outputs: [a]}
      - {type: LLMInference, id: env, model: writer, system_message: "Be ${HOW:-kind}.", inputs: [a], outputs: [b]}
      - {type: LLMInference, id: alias, model: writer, system_message: *kind, inputs: [b], outputs: [answer]}
`), 0o600))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype-eval.yaml"), []byte("data: rows.csv\noptimize:\n  "+keys+"\n"), 0o600))
		_, err := optimize(t, filepath.Join(dir, "app.qtype-eval.yaml"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", keys, err, want)
		}
	}
}
