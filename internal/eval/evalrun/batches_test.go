package evalrun_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/waves"
)

const inBatches = `id: app
memories: [{id: chat}]
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, api: chat, base_url: "URL/v1", auth: key, prices: {input: 2, output: 8}}
  - {type: Model, id: second, provider: anthropic, model_id: claude-opus-4-6, base_url: "URL", auth: key, prices: {input: 2, output: 8}}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: reply, type: text}, {id: short, type: text}]
    inputs: [question]
    outputs: [reply, short]
    steps:
      - {type: LLMInference, id: respond, model: first, memory: chat, inputs: [question], outputs: [reply]}
      - {type: LLMInference, id: shorten, model: second, system_message: be short, inputs: [reply], outputs: [short]}
`

// batchFolder has an evaluation with sessions, two variants and a judge, whose models have the servers at an address.
func batchFolder(t *testing.T, url string) string {
	t.Helper()
	rows := "session,question\n"
	for i := range 24 {
		rows += fmt.Sprintf("s%d,question %d\n", i%8, i)
	}
	return folder(t, map[string]string{
		"app.qtype.yaml": strings.ReplaceAll(inBatches, "URL", url), "rows.csv": rows,
		"app.qtype-eval.yaml": `app: app.qtype.yaml
data: rows.csv
variants:
  - {id: base}
  - {id: swapped, models: {first: second}}
metrics:
  - {type: regexp, pattern: "[0-5]$", output: short}
  - {type: cost}
  - {type: judge, id: fair, model: second, output: reply, rubric: It is fair.}
`})
}

// batchRun evaluates in batches.
func batchRun(ctx context.Context, t *testing.T, dir string, cfg evalrun.Config, change ...func(*waves.Run)) (*evalrun.Report, error) {
	t.Helper()
	cfg.Path, cfg.Workers, cfg.Journal = filepath.Join(dir, "app.qtype-eval.yaml"), 3, filepath.Join(dir, "r.json"+evalrun.JournalSuffix)
	cfg.Waves = waves.New(filepath.Join(dir, "r.json"+waves.Suffix))
	cfg.Waves.Poll, cfg.Waves.Settle = func(int) time.Duration { return time.Millisecond }, time.Millisecond
	for _, change := range change {
		change(cfg.Waves)
	}
	return qtype.Evaluate(waves.With(ctx, cfg.Waves), cfg)
}

// answerText is an answer of batchtest.Deterministic.
var answerText = regexp.MustCompile("answer [0-9a-f]+")

// judged answers as batchtest.Deterministic, and judges.
func judged(method string, body []byte) (int, []byte) {
	status, answer := batchtest.Deterministic(method, body)
	if strings.Contains(string(body), "It is fair.") {
		return status, answerText.ReplaceAll(answer, []byte(`{\"score\": 0.5, \"reason\": \"fine\"}`))
	}
	return status, answer
}

// scoresOf returns what an evaluation found, without times and money.
func scoresOf(r *evalrun.Report) (all []string, money float64) {
	for _, res := range r.Results {
		all = append(all, fmt.Sprint(res.Variant, res.Row, string(res.Outputs["reply"]), string(res.Outputs["short"]), res.Error))
		for id, s := range res.Scores {
			if id != "cost" {
				all = append(all, fmt.Sprint(id, *s))
			}
		}
		money += res.Usage.Money + res.Scoring
	}
	slices.Sort(all)
	return all, money
}

// TestEvaluate_Batches: an evaluation in batches finds what another one does, for half the price, also if it is interrupted.
func TestEvaluate_Batches(t *testing.T) {
	plain := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, judged))
	defer plain.Close()
	want, err := evaluate(t, batchFolder(t, plain.URL), evalrun.Config{Path: "app.qtype-eval.yaml"})
	testkit.Must(t, err)
	wanted, normal := scoresOf(want)
	for name, stopAfter := range map[string]int{"whole": -1, "interrupted": 9} {
		t.Run(name, func(t *testing.T) {
			server := batchtest.New(3, batchtest.Faults{Polls: 1, Shuffled: true}, judged)
			at := httptest.NewServer(server)
			defer at.Close()
			dir := batchFolder(t, at.URL)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			server.Watch(func(*http.Request) {
				if stopAfter--; stopAfter == 0 {
					stop()
				}
			})
			got, err := batchRun(ctx, t, dir, evalrun.Config{})
			if name == "interrupted" {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if _, err := batchRun(t.Context(), t, dir, evalrun.Config{}); err == nil || !strings.Contains(err.Error(), "has the batches of an interrupted evaluation: continue it with --batch --resume") {
					t.Errorf("an evaluation that forgets the batches: %v", err)
				}
				got, err = batchRun(t.Context(), t, dir, evalrun.Config{Resume: true})
			}
			testkit.Must(t, err)
			found, money := scoresOf(got)
			if diff := cmp.Diff(wanted, found); diff != "" {
				t.Error(diff)
			}
			calls, twice := server.Paid()
			once, batches := server.Made()
			if calls != 2*24*3 || twice > 0 || once > 0 || batches > 20 || money < 0.499*normal || money > 0.501*normal {
				t.Errorf("%d calls were paid in %d batches, %d twice, %d at once, for %v instead of %v", calls, batches, twice, once, money, normal)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "r.json.*")); len(left) > 0 {
				t.Error(left)
			}
		})
	}
}

// TestEvaluate_BatchesDetached: a detached evaluation ends when a wave is sent, and later ones find what a whole one does. Calls of a
// lost batch are made again when the user wants that.
func TestEvaluate_BatchesDetached(t *testing.T) {
	serve := func() (*batchtest.Server, string) {
		server := batchtest.New(3, batchtest.Faults{Polls: 1}, judged)
		at := httptest.NewServer(server)
		t.Cleanup(at.Close)
		return server, batchFolder(t, at.URL)
	}
	whole, dir := serve()
	want, err := batchRun(t.Context(), t, dir, evalrun.Config{})
	testkit.Must(t, err)
	paid, _ := whole.Paid()
	server, dir := serve()
	ends := 0
	got, err := batchRun(t.Context(), t, dir, evalrun.Config{Detach: true})
	for ; errors.Is(err, waves.ErrDetached); ends++ {
		got, err = batchRun(t.Context(), t, dir, evalrun.Config{Resume: true, Detach: true})
	}
	testkit.Must(t, err)
	wanted, _ := scoresOf(want)
	found, _ := scoresOf(got)
	if diff := cmp.Diff(wanted, found); diff != "" || ends < 6 {
		t.Errorf("%d times detached: %s", ends, diff)
	}
	calls, twice := server.Paid()
	if calls != paid || twice > 0 {
		t.Errorf("%d calls were paid, %d twice; want %d", calls, twice, paid)
	}
	server, dir = serve()
	if _, err := batchRun(t.Context(), t, dir, evalrun.Config{Detach: true}); !errors.Is(err, waves.ErrDetached) {
		t.Fatal(err)
	}
	server.Lose(false)
	lost := &waves.LostError{}
	if _, err := batchRun(t.Context(), t, dir, evalrun.Config{Resume: true}); !errors.As(err, &lost) || lost.Calls != 16 {
		t.Fatal(err)
	}
	got, err = batchRun(t.Context(), t, dir, evalrun.Config{Resume: true}, func(r *waves.Run) { r.Rebuy = true })
	testkit.Must(t, err)
	if found, _ = scoresOf(got); !cmp.Equal(wanted, found) {
		t.Error(cmp.Diff(wanted, found))
	}
}

// TestEvaluate_BatchesFew: calls that are few for a batch are made at once.
func TestEvaluate_BatchesFew(t *testing.T) {
	server := batchtest.New(3, batchtest.Faults{}, judged)
	at := httptest.NewServer(server)
	defer at.Close()
	dir := batchFolder(t, at.URL)
	cfg := evalrun.Config{Path: filepath.Join(dir, "app.qtype-eval.yaml"), Workers: 3, Waves: waves.New(filepath.Join(dir, "r.json"+waves.Suffix))}
	cfg.Waves.Least = 1000
	_, err := qtype.Evaluate(waves.With(t.Context(), cfg.Waves), cfg)
	testkit.Must(t, err)
	if calls, batches := server.Made(); calls != 2*24*3 || batches > 0 {
		t.Errorf("%d calls at once, %d batches", calls, batches)
	}
}

// TestEvaluate_BatchesWait: what would measure the time of batches is an error.
func TestEvaluate_BatchesWait(t *testing.T) {
	dir := batchFolder(t, "http://127.0.0.1:1")
	if _, err := batchRun(t.Context(), t, dir, evalrun.Config{Metrics: []string{"latency"}}); err == nil || err.Error() != "--batch: metric latency would measure the time of batches" {
		t.Error(err)
	}
}
