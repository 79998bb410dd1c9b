package evalrun_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// alternating writes an application whose model answers ok, but to each third of its calls no. Its only step is
// cached.
func alternating(t *testing.T, rows string) (dir string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := "ok"
		if calls.Add(1)%3 == 0 {
			answer = "no"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, answer)
	}))
	t.Cleanup(s.Close)
	dir = folder(t, map[string]string{"rows.csv": rows, "app.qtype-eval.yaml": "data: rows.csv\ntrials: 4\nmetrics: [{type: exact, value: ok}, {type: tokens}]\n"})
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(`id: app
models: [{type: Model, id: m, provider: openai, base_url: `+s.URL+`/v1, auth: key}]
auths: [{type: api_key, id: key, api_key: x}]
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: m, inputs: [question], outputs: [answer], cache_config: {directory: '`+filepath.ToSlash(dir)+`/cache'}}]
`), 0o600))
	return dir, calls
}

// TestEvaluate_Trials checks that trials are runs of their own, the rates of rows, and the report.
func TestEvaluate_Trials(t *testing.T) {
	dir, calls := alternating(t, "question\na\nb\nc\n")
	r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml", Workers: 1})
	testkit.Must(t, err)
	if calls.Load() != 12 || len(r.Results) != 12 || r.Results[5].Row != 2 || r.Results[5].Trial != 2 || r.Rows != 3 || r.Trials != 4 || len(r.Digests) != 3 {
		t.Errorf("%d calls, %d results, result 6 is %+v", calls.Load(), len(r.Results), r.Results[5])
	}
	// The calls 3, 6, 9 and 12 fail: the third of row 1, the second of row 2, the first and the fourth of row 3.
	want := []evalrun.FlakyRow{{"base", "exact", 1, 3, 4}, {"base", "exact", 2, 3, 4}, {"base", "exact", 3, 2, 4}}
	if d := cmp.Diff(want, r.Flaky); d != "" {
		t.Error(d)
	}
	s := r.Variants[0].Metrics["exact"]
	if s.Count != 12 || s.Clusters != 3 || len(s.PassAt) != 4 || s.PassAt[3] != 1 || s.PassHat[3] != 0 {
		t.Errorf("got %+v", s)
	}
	var text bytes.Buffer
	testkit.Must(t, r.Text(&text))
	for _, want := range []string{"3 rows, 4 trials of each, from", "exact pass@4  1.000", "exact pass^4  0.000", "flaky by exact: row 1 (3 of 4), row 2 (3 of 4), row 3 (2 of 4)", "12 done"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	testkit.Must(t, r.JSON(&text))
	one, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml", Trials: 1, OnlyFailed: r, Workers: 1})
	testkit.Must(t, err)
	if one.Rows != 3 || one.Trials != 0 || one.Results[0].Trial != 0 {
		t.Errorf("got %d rows, %d trials", one.Rows, one.Trials)
	}
}

// TestEvaluate_TrialMemories checks that the trials of a conversation do not see each other.
func TestEvaluate_TrialMemories(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "session,question\na,two\na,three\na-trial-2,other\n"})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Metrics: []string{"tokens"}, Trials: 2})
	testkit.Must(t, err)
	for i := 0; i < len(r.Results); i += 2 {
		if first, second := r.Results[i], r.Results[i+1]; first.Usage.Input != second.Usage.Input || first.Session != second.Session {
			t.Errorf("row %d: %+v, then %+v", first.Row, first, second)
		}
	}
	if s := r.Variants[0].Metrics["tokens"]; s.Clusters != 2 {
		t.Errorf("%d clusters, want the 2 sessions", s.Clusters)
	}
}

// TestEvaluate_Until checks that an evaluation ends when the scores are known, always with the same rows, and
// continues after an interruption.
func TestEvaluate_Until(t *testing.T) {
	rows := "question,expected\n"
	for i := range 200 {
		rows += fmt.Sprintf("q%d,ok\n", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url, calls := server(t, 20, cancel)
	dir := folder(t, map[string]string{"rows.csv": rows})
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(servedApplication(url)), 0o600))
	cfg := evalrun.Config{Path: filepath.Join(dir, "app.qtype.yaml"), Data: filepath.Join(dir, "rows.csv"), Workers: 2, Until: 0.06, Journal: filepath.Join(dir, "r.qtype-journal")}
	if _, err := qtype.Evaluate(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	cfg.Resume = true
	r, err := qtype.Evaluate(t.Context(), cfg)
	testkit.Must(t, err)
	if r.Rows != 50 || r.Of != 200 || len(r.Results) != 50 || calls.Load() > 53 || r.Results[0].Row >= r.Results[1].Row || r.Results[49].Row <= 50 {
		t.Errorf("%d of %d rows, %d calls, the last is row %d", r.Rows, r.Of, calls.Load(), r.Results[len(r.Results)-1].Row)
	}
	var text bytes.Buffer
	testkit.Must(t, r.Text(&text))
	if !strings.Contains(text.String(), "50 of 200 rows from") {
		t.Errorf("got %s", &text)
	}
	all, err := qtype.Evaluate(t.Context(), evalrun.Config{Path: cfg.Path, Data: cfg.Data, Limit: 60, Until: 0.01, Metrics: []string{"type: exact, value: no"}, Baseline: r})
	testkit.Must(t, err)
	if all.Rows != 60 || len(all.Warnings) != 2 || !strings.HasPrefix(all.Warnings[0], "--until 0.01 is not reached with all 60 rows: the interval of base: exact is ±0.0") {
		t.Errorf("%d rows, warnings %q", all.Rows, all.Warnings)
	}
}

// TestEvaluate_Budget checks that an evaluation ends when the money is spent, with rows of a random order that are finished.
func TestEvaluate_Budget(t *testing.T) {
	rows := "question,expected\n"
	for range 40 {
		rows += "two,2\n"
	}
	dir := folder(t, map[string]string{"rows.csv": rows})
	one, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Limit: 1})
	testkit.Must(t, err)
	cost := one.Variants[0].Usage.Money
	variants := []string{"id: base", "id: other"}
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Workers: 1, Budget: 10.5 * cost, Variants: variants})
	testkit.Must(t, err)
	if want := fmt.Sprintf("--budget %v is spent with 5 of 40 rows", 10.5*cost); cost == 0 || r.Rows != 5 || r.Of != 40 || len(r.Results) != 10 || len(r.Warnings) != 1 || r.Warnings[0] != want || r.Results[4].Row <= 5 {
		t.Errorf("%d of %d rows, %d results, warnings %q, want %q", r.Rows, r.Of, len(r.Results), r.Warnings, want)
	}
	r, err = evaluate(t, dir, evalrun.Config{Data: "rows.csv", Workers: 1, Budget: 1000 * cost, Until: 0.01})
	testkit.Must(t, err)
	if r.Rows != 40 || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "--until 0.01 is not reached with all 40 rows") {
		t.Errorf("%d rows, warnings %q", r.Rows, r.Warnings)
	}
	r, err = evaluate(t, dir, evalrun.Config{Data: "rows.csv", Workers: 1, Budget: 3.5 * cost, Until: 0.01})
	testkit.Must(t, err)
	if r.Rows != 4 || len(r.Warnings) != 2 || !strings.HasPrefix(r.Warnings[1], "--until 0.01 is not reached with 4 rows") {
		t.Errorf("%d rows, warnings %q", r.Rows, r.Warnings)
	}
	if _, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Workers: 1, Budget: cost / 2, Variants: variants}); err == nil || !strings.HasSuffix(err.Error(), "is spent before one session is finished") {
		t.Errorf("half of a row: %v", err)
	}
	unpriced := strings.Replace(application, "provider: mock, prices: {input: 1000000, output: 2000000}, rules", "provider: openai, model_id: an-unknown-one, offline: terse, rules", 1)
	unpriced = strings.Replace(unpriced, ", rules: [{match: 'two', text: '2'}", "}\n  - {type: Model, id: unused, provider: mock, rules: [{match: 'two', text: '2'}", 1)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(unpriced), 0o600))
	var usage *evalrun.UsageError
	if _, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Budget: 1}); !errors.As(err, &usage) || usage.Reason != "--budget: model writer has no prices: declare them" {
		t.Errorf("a model without prices: %v", err)
	}
}
