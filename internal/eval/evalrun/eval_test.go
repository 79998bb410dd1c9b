package evalrun_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const application = `id: app
models:
  - {type: Model, id: writer, provider: mock, prices: {input: 1000000, output: 2000000}, rules: [{match: 'two', text: '2'}, {match: 'json', text: '{"n": 1}'}, {match: 'fail', error: no answer}, {match: 'page', text: '<script>alert(1)</script>'}, {match: 'three', text: 'Three.'}, {text: hello}]}
  - {type: Model, id: terse, provider: mock, rules: [{text: 'Three'}]}
  - {type: Model, id: referee, provider: mock, rules: [{match: '"output":"hello"', text: 'Result: {"score": 0.75, "reason": "fine"}'}, {match: '"output":"2"', text: '{"score": 7, "reason": "x"}'}, {text: nothing}]}
  - {type: EmbeddingModel, id: vectors, provider: mock, dimensions: 64}
memories: [{id: notes}]
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: tone, type: 'text?'}, {id: prompt, type: text}, {id: answer, type: text}]
    inputs: [question, tone]
    outputs: [answer]
    steps:
      - {type: PromptTemplate, id: fill, template: 'Say {question}', inputs: [question], outputs: [prompt]}
      - {type: LLMInference, id: reply, model: writer, memory: notes, system_message: Be kind., inputs: [prompt], outputs: [answer]}
  - id: calculate
    variables: [{id: n, type: int}, {id: twice, type: int}, {id: text, type: text}]
    inputs: [n]
    outputs: [twice, text]
    steps: [{type: Transform, id: t, set: {twice: n * 2, text: string(n)}, inputs: [n], outputs: [twice, text]}]
  - id: split
    variables: [{id: words, type: 'list[text]'}, {id: word, type: text}]
    inputs: [words]
    outputs: [word]
    steps: [{type: Explode, id: each, inputs: [words], outputs: [word]}]
`

// folder writes the application and other files, by name, to a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(application), 0o600))
	for name, text := range files {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// evaluate evaluates the application of a folder.
func evaluate(t *testing.T, dir string, cfg evalrun.Config) (*evalrun.Report, error) {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = "app.qtype.yaml"
	}
	cfg.Path = filepath.Join(dir, cfg.Path)
	if cfg.Data != "" {
		cfg.Data = filepath.Join(dir, cfg.Data)
	}
	if cfg.Workers == 0 {
		cfg.Workers = 3
	}
	return qtype.Evaluate(t.Context(), cfg)
}

func TestEvaluate_ExactByDefault(t *testing.T) {
	dir := folder(t, map[string]string{
		"rows.jsonl": `{"question": "two", "expected": "2"}` + "\n" + `{"question": "three", "expected": "Three."}` + "\n" + `{"question": "other", "expected": "bye"}` + "\n",
		"rows.csv":   "question,expected\ntwo,2\nthree,Three.\nother,bye\n",
		"rows.json":  `[{"question": "two", "expected": 2}, {"question": "three", "expected": " Three. "}, {"question": "other", "expected": "bye"}]`,
	})
	for _, data := range []string{"rows.jsonl", "rows.csv", "rows.json"} {
		r, err := evaluate(t, dir, evalrun.Config{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Variants[0].Metrics["exact"]
		if r.Failed() || s.Count != 3 || math.Abs(s.Mean-2.0/3) > 1e-9 || s.Low < 0.2 || s.Low > 0.21 || s.High < 0.93 || s.High > 0.95 {
			t.Errorf("%s: %+v, violations %q", data, s, r.Violations)
		}
	}
}

// TestEvaluate_Metrics has a case for each type of metric.
func TestEvaluate_Metrics(t *testing.T) {
	dir := folder(t, map[string]string{"rows.jsonl": `{"question": "two", "expected": "2.04", "n": 4}` + "\n"})
	seen := map[string]bool{}
	for _, c := range []struct {
		metric, want string
	}{
		{"exact", `{"value":0,"reason":"expected \"2.04\", got \"2\""}`},
		{"type: exact, value: 2", `{"value":1}`},
		{"type: contains, value: x", `{"value":0,"reason":"\"2\" does not contain \"x\""}`},
		{"type: contains, value: x, not: true", `{"value":1}`},
		{"type: contains, value: 2, not: true", `{"value":0,"reason":"\"2\" passes contains, and must not"}`},
		{"type: starts_with, value: 2", `{"value":1}`},
		{"type: starts_with", `{"value":0,"reason":"\"2\" does not start with \"2.04\""}`},
		{"type: is_json", `{"value":1}`},
		{"type: is_json, not: true", `{"value":0,"reason":"\"2\" passes is_json, and must not"}`},
		{"type: levenshtein", `{"value":0.25}`},
		{"type: levenshtein, threshold: 0.5", `{"value":0,"raw":0.25,"reason":"the score 0.250 (distance 3) is below 0.5"}`},
		{"type: rouge_l, value: '1 2 3'", `{"value":0.5}`},
		{"type: bleu, value: '2'", `{"value":1}`},
		{"type: regexp, pattern: '^[0-9]$'", `{"value":1}`},
		{"type: regexp, pattern: '^x'", `{"value":0,"reason":"\"2\" does not match ^x"}`},
		{"type: json_schema, schema: {type: integer}", `{"value":1}`},
		{"type: json_schema, schema: {type: object}", `{"value":0,"reason":"type: 2 has type \"integer\", want \"object\""}`},
		{"type: numeric", `{"value":0,"reason":"expected 2.04, got 2"}`},
		{"type: numeric, tolerance: 0.05", `{"value":1}`},
		{"type: numeric, relative_tolerance: 0.02", `{"value":1}`},
		{"type: similarity, model: vectors, value: '2'", `{"value":1}`},
		{"type: similarity, model: vectors, value: apples, threshold: 0.9", `{"value":0,"reason":"similarity 0.000 is below 0.9"}`},
		{"type: judge, model: referee, rubric: good", `{"value":0,"error":"the judge answered with the score 7, not from 0 to 1"}`},
		{"type: latency", ``},
		{"type: tokens", ``},
		{"type: cost", ``},
	} {
		r, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", Metrics: []string{c.metric}})
		if err != nil {
			t.Errorf("%s: %v", c.metric, err)
			continue
		}
		seen[r.Metrics[0].Type] = true
		score := r.Results[0].Scores[r.Metrics[0].ID]
		if got, _ := json.Marshal(score); c.want != "" && strings.ReplaceAll(string(got), `\u003c`, "<") != c.want {
			t.Errorf("%s: got %s, want %s", c.metric, got, c.want)
		} else if c.want == "" && (score.Value <= 0 || score.Error != "") {
			t.Errorf("%s: got %s", c.metric, got)
		}
	}
	for _, elsewhere := range []string{"checks", "preference", "faithfulness", "relevance", "source_recall", "source_precision", "safe"} { // TestUsers_Checks, TestEvaluate_Judges, TestAttacks
		seen[elsewhere] = true
	}
	for _, row := range spec.Metrics() {
		if !seen[row.Name] {
			t.Errorf("metric %s has no case", row.Name)
		}
	}
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", Variants: []string{"id: hi, inputs: {question: hi}"}, Metrics: []string{"{type: judge, model: referee, rubric: good, threshold: 0.8}"}})
	testkit.Must(t, err)
	if got := r.Results[0].Scores["judge"]; got.Value != 0 || got.Raw != 0.75 || got.Reason != "fine" {
		t.Errorf("got %+v", got)
	}
}

// TestEvaluate_OnlyFailed evaluates the rows that failed in an earlier report.
func TestEvaluate_OnlyFailed(t *testing.T) {
	dir := folder(t, map[string]string{"rows.jsonl": `{"question": "two", "expected": "2"}` + "\n" + `{"question": "three", "expected": "no"}` + "\n" + `{"question": "fail", "expected": "x"}` + "\n"})
	first, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl"})
	testkit.Must(t, err)
	again, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", OnlyFailed: first})
	testkit.Must(t, err)
	if again.Rows != 2 || again.Results[0].Row != 2 || again.Results[1].Row != 3 {
		t.Errorf("got %d rows: %+v", again.Rows, again.Results)
	}
	one, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", Limit: 1})
	testkit.Must(t, err)
	if _, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", OnlyFailed: one}); err == nil || !strings.HasSuffix(err.Error(), "rows.jsonl: no row failed in the report of "+one.Data) {
		t.Errorf("got %v", err)
	}
}

// TestEvaluate_OtherRows compares with a report of rows that have changed.
func TestEvaluate_OtherRows(t *testing.T) {
	one, fail, other := `{"question": "two", "expected": "no"}`+"\n", `{"question": "fail", "expected": "x"}`+"\n", `{"question": "other", "expected": "y"}`+"\n"
	dir := folder(t, map[string]string{"rows.jsonl": one + fail, "order.jsonl": `{"expected": "no", "question": "two"}` + "\n" + fail,
		"more.jsonl": one + fail + other, "less.jsonl": one, "changed.jsonl": other + fail + other})
	var b bytes.Buffer
	first, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl"})
	testkit.Must(t, err)
	testkit.Must(t, first.JSON(&b))
	path := filepath.Join(dir, "report.json")
	testkit.Must(t, os.WriteFile(path, b.Bytes(), 0o600))
	before, err := evalrun.ReadReport(path)
	testkit.Must(t, err)
	old, err := evalrun.ReadReport(path)
	testkit.Must(t, err)
	old.Digests = nil // of an earlier version
	for _, c := range []struct {
		name     string
		config   evalrun.Config
		contains string // of the warning; empty for none
	}{
		{"the same", evalrun.Config{Data: "rows.jsonl", Baseline: before}, ""},
		{"another order of columns", evalrun.Config{Data: "order.jsonl", Baseline: before}, ""},
		{"more rows", evalrun.Config{Data: "more.jsonl", Baseline: before}, "not those of the baseline (1 row added)"},
		{"fewer rows", evalrun.Config{Data: "less.jsonl", Baseline: before}, "not those of the baseline (1 row missing)"},
		{"a limit", evalrun.Config{Data: "rows.jsonl", Limit: 1, Baseline: before}, "not those of the baseline (1 row missing)"},
		{"other rows", evalrun.Config{Data: "changed.jsonl", Baseline: before}, "not those of the baseline (1 row changed, 1 row added)"},
		{"a report without digests", evalrun.Config{Data: "changed.jsonl", Baseline: old}, ""},
		{"failed rows", evalrun.Config{Data: "more.jsonl", OnlyFailed: before}, ""},
		{"the first failed row", evalrun.Config{Data: "rows.jsonl", Limit: 1, OnlyFailed: before}, ""},
		{"other failed rows", evalrun.Config{Data: "changed.jsonl", OnlyFailed: before}, "have changed since the report (1 row changed)"},
		{"fewer failed rows", evalrun.Config{Data: "less.jsonl", OnlyFailed: before}, "have changed since the report (1 row missing)"},
	} {
		r, err := evaluate(t, dir, c.config)
		testkit.Must(t, err)
		if got := strings.Join(r.Warnings, "\n"); got == "" != (c.contains == "") || !strings.Contains(got, c.contains) {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

func TestEvaluate_Variants(t *testing.T) {
	dir := folder(t, map[string]string{
		"rows.csv": "question,expected\nthree,Three\nthree,Three\nother,Three\nthree,Three\n",
		"app.qtype-eval.yaml": `data: rows.csv
metrics: [{type: contains}, {type: tokens}, {type: cost}]
variants:
  - {id: base}
  - {id: terse, models: {writer: terse}}
  - {id: longer, prompts: {reply: Be very kind and write at length., fill: 'Please say {question}'}}
  - {id: fixed, inputs: {question: three}}
`})
	r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml"})
	testkit.Must(t, err)
	var got []float64
	for _, v := range r.Variants {
		got = append(got, v.Metrics["contains"].Mean)
	}
	if d := cmp.Diff([]float64{0.75, 1, 0.75, 1}, got); d != "" {
		t.Error(d)
	}
	if a, b := r.Variants[0].Metrics["tokens"].Mean, r.Variants[2].Metrics["tokens"].Mean; b <= a {
		t.Errorf("the longer prompt has %v tokens, the other %v", b, a)
	}
	if money := r.Variants[0].Metrics["cost"]; money.Mean != float64(r.Variants[0].Usage.Input+2*r.Variants[0].Usage.Output)/4 {
		t.Errorf("cost %+v of %+v", money, r.Variants[0].Usage)
	}
	c := r.Comparisons[0]
	if c.To != "terse" || c.Better != 1 || c.Worse != 0 || c.Rows != 4 || c.Difference != 0.25 || c.Significant() {
		t.Errorf("got %+v", c)
	}
	again, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml"})
	testkit.Must(t, err)
	if d := cmp.Diff(r.Comparisons, again.Comparisons); d != "" {
		t.Errorf("the intervals differ: %s", d)
	}
}

func TestEvaluate_Sessions(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "session,question,expected\na,two,2\nb,two,2\na,other,hello\n,three,Three.\n"})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Metrics: []string{"tokens", "exact"}})
	testkit.Must(t, err)
	if one, three := r.Results[0].Usage.Input, r.Results[2].Usage.Input; three <= one || r.Results[2].Session != "a" || r.Results[3].Session != "" {
		t.Errorf("row 3 read %d tokens, row 1 %d", three, one)
	}
}

func TestEvaluate_Baseline(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\ntwo,2\nthree,Three.\n"})
	before, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Metrics: []string{"exact", "tokens", "latency"}})
	testkit.Must(t, err)
	path := filepath.Join(dir, "report.json")
	var b bytes.Buffer
	testkit.Must(t, before.JSON(&b))
	testkit.Must(t, os.WriteFile(path, b.Bytes(), 0o600))
	base, err := evalrun.ReadReport(path)
	testkit.Must(t, err)
	for _, c := range []struct {
		variant, metric string
		limit           float64
		want            []string
	}{ // worse answers each row as the first one
		{"same", "exact", 0, nil},
		{"worse", "exact", 0.4, []string{"base: exact is 0.500, was 1.000: a regression beyond 0.4"}},
		{"worse", "exact", 0.5, nil},
		{"worse", "type: exact, max_regression: 0.1", 1, []string{"base: exact is 0.500, was 1.000: a regression beyond 0.1"}},
		{"worse", "type: exact, min: 0.6", 1, []string{"base: exact is 0.500, less than 0.600"}},
		{"same", "type: tokens, max: 1", 1, []string{"base: tokens is "}},
		{"same", "latency", 0, nil},
	} {
		variants := map[string][]string{"worse": {"id: base, prompts: {fill: 'Say {question} two'}"}}[c.variant]
		r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Variants: variants, Metrics: []string{c.metric}, Baseline: base, MaxRegression: c.limit, Gate: evalrun.GateMean})
		testkit.Must(t, err)
		if len(r.Violations) != len(c.want) || len(c.want) > 0 && !strings.HasPrefix(r.Violations[0], c.want[0]) {
			t.Errorf("%s %s: got %q, want %q", c.variant, c.metric, r.Violations, c.want)
		}
	}
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Variants: []string{"id: base, prompts: {fill: 'Say {question} two'}"}, Metrics: []string{"exact"}, Baseline: base})
	testkit.Must(t, err)
	if r.Failed() || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "but chance can be the reason (p = 0.5") {
		t.Errorf("one of two rows is worse: violations %q, warnings %q", r.Violations, r.Warnings)
	}
	r, err = evaluate(t, dir, evalrun.Config{Data: "rows.csv", Metrics: []string{"type: contains, id: other"}, Baseline: base})
	testkit.Must(t, err)
	if r.Failed() || r.Baseline[0].Note != "the baseline has no such metric" {
		t.Errorf("got %+v", r.Baseline)
	}
	if _, err := evalrun.ReadReport(filepath.Join(dir, "rows.csv")); err == nil || !strings.Contains(err.Error(), "is not a report of an evaluation") {
		t.Errorf("got %v", err)
	}
}

func TestEvaluate_Errors(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\ntwo,2\n", "empty.csv": "question,expected\n", "n.csv": "n,expected\n1,2\n", "words.jsonl": `{"words": ["a", "b"], "expected": "a"}` + "\n",
		"bad.jsonl": "{\"question\": \"two\", \"expected\": \"2\"}\n{\n"})
	for name, c := range map[string]struct {
		cfg  evalrun.Config
		want string
	}{
		"no data":         {evalrun.Config{}, "pass --data FILE"},
		"no rows":         {evalrun.Config{Data: "empty.csv"}, "no rows to evaluate"},
		"no column":       {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: exact, expected: expcted"}}, `no column "expcted", which metric exact compares the output with; the columns are: expected, question; did you mean "expected"?`},
		"no input":        {evalrun.Config{Data: "n.csv"}, `no column "question", which flow talk needs as its input`},
		"no session":      {evalrun.Config{Data: "rows.csv", Session: "s"}, `no column "s" for the sessions`},
		"unknown flow":    {evalrun.Config{Data: "rows.csv", Flow: "tlk"}, `QT811 no flow has the id "tlk"`},
		"several outputs": {evalrun.Config{Data: "n.csv", Flow: "calculate"}, "QT812 flow calculate has 2 outputs"},
		"unknown type":    {evalrun.Config{Data: "rows.csv", Metrics: []string{"exactly"}}, `QT811 unknown type of metric "exactly"`},
		"unknown key":     {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: exact, otput: x"}}, "QT103"},
		"unused key":      {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: exact, pattern: x"}}, "QT812 a metric of type exact does not read pattern"},
		"missing key":     {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: judge, model: referee"}}, "QT812 a metric of type judge needs rubric"},
		"bad pattern":     {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: regexp, pattern: '('"}}, "QT812 invalid regular expression"},
		"bad schema":      {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: json_schema, schema: {type: 5}"}}, "QT812 invalid JSON schema"},
		"remote schema":   {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: json_schema, schema: {$ref: 'file:///etc/passwd'}"}}, "QT812 invalid JSON schema"},
		"chat model":      {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: similarity, model: writer"}}, "QT812 model writer is not an embedding model"},
		"unknown model":   {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: judge, model: x, rubric: y"}}, `QT812 no model has the id "x"`},
		"two values":      {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: exact, expected: a, value: b"}}, "QT812 the metric has expected and value"},
		"unknown output":  {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: exact, output: answr"}}, `QT811 no output of flow talk has the id "answr"`},
		"twice":           {evalrun.Config{Data: "rows.csv", Metrics: []string{"exact", "exact"}}, `QT811 duplicate metric "exact"`},
		"twice, variants": {evalrun.Config{Data: "rows.csv", Variants: []string{"id: a", "id: a"}}, `QT811 duplicate variant "a"`},
		"variant model":   {evalrun.Config{Data: "rows.csv", Variants: []string{"id: a, models: {writr: x}"}}, `QT811 no model has the id "writr"`},
		"variant step":    {evalrun.Config{Data: "rows.csv", Variants: []string{"id: a, prompts: {t: x}"}}, "QT812 step t has neither a system message nor a template"},
		"variant input":   {evalrun.Config{Data: "rows.csv", Variants: []string{"id: a, inputs: {qestion: x}"}}, `QT811 no input of flow talk has the id "qestion"`},
		"variant app":     {evalrun.Config{Data: "rows.csv", Variants: []string{"id: a, app: none.yaml"}}, `QT811 application "none.yaml" not found`},
		"range":           {evalrun.Config{Data: "rows.csv", Metrics: []string{"type: judge, model: referee, rubric: x, threshold: 2"}}, "QT"},
	} {
		_, err := evaluate(t, dir, c.cfg)
		var list diag.List
		text := ""
		if errors.As(err, &list) {
			for _, d := range list {
				text += d.Code + " " + d.Message + "\n"
			}
		} else if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) || strings.Count(text, "\n") > 1 {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
	// Rows that fail are part of the report.
	for name, c := range map[string]struct {
		cfg  evalrun.Config
		want string
	}{
		"several results": {evalrun.Config{Data: "words.jsonl", Flow: "split"}, "the row has 2 results"},
		"unreadable row":  {evalrun.Config{Data: "bad.jsonl"}, "bad.jsonl:2"},
		"failing model":   {evalrun.Config{Data: "rows.csv", Variants: []string{"id: f, inputs: {question: fail}"}}, "no answer"},
	} {
		r, err := evaluate(t, dir, c.cfg)
		testkit.Must(t, err)
		last := r.Results[len(r.Results)-1]
		if !r.Failed() || !strings.Contains(last.Error, c.want) {
			t.Errorf("%s: got %q and %q", name, last.Error, r.Violations)
		}
	}
}

// server is a chat model that counts its calls, and calls stop with call number n.
func server(t *testing.T, n int64, stop func()) (url string, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == n {
			stop()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// serverOf is a chat model that always answers with a body.
func serverOf(t *testing.T, body string) (url string, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// servedApplication returns the application whose writer is the model at a URL.
func servedApplication(url string) string {
	app := strings.Replace(application, "provider: mock, prices", "provider: openai, base_url: "+url+"/v1, prices", 1)
	return regexp.MustCompile(`, rules: \[\{match: 'two'.*`).ReplaceAllString(app, "}")
}

func TestEvaluate_Resume(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url, calls := server(t, 21, cancel)
	rows := "question,expected\n"
	for i := range 40 {
		rows += fmt.Sprintf("q%d,ok\n", i)
	}
	dir := folder(t, map[string]string{"rows.csv": rows})
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(servedApplication(url)), 0o600))
	cfg := evalrun.Config{Path: filepath.Join(dir, "app.qtype.yaml"), Data: filepath.Join(dir, "rows.csv"), Workers: 2, Journal: filepath.Join(dir, "r.json.qtype-journal")}
	if _, err := qtype.Evaluate(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := qtype.Evaluate(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "has an interrupted evaluation") {
		t.Errorf("got %v", err)
	}
	changed := cfg
	changed.Resume, changed.Metrics = true, []string{"type: exact, ignore_case: true"}
	if _, err := qtype.Evaluate(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "this is not the evaluation that was interrupted") {
		t.Errorf("got %v", err)
	}
	before := calls.Load()
	cfg.Resume = true
	r, err := qtype.Evaluate(t.Context(), cfg)
	testkit.Must(t, err)
	if repeated := calls.Load() - before; repeated > 22 || r.Variants[0].Metrics["exact"].Mean != 1 || r.Variants[0].Usage.Input != 40*7 {
		t.Errorf("%d calls, report %+v", repeated, r.Variants[0])
	}
	if _, err := os.Stat(cfg.Journal); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
}

func TestReport_Golden(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\ntwo,2\npage,x\nfail,y\n"})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Metrics: []string{"exact", "tokens"}, Variants: []string{"id: base", "id: terse, models: {writer: terse}"}})
	testkit.Must(t, err)
	var page, text bytes.Buffer
	testkit.Must(t, r.HTML(&page))
	if regexp.MustCompile(`<script>alert|(src|href)=|url\(|@import`).MatchString(page.String()) {
		t.Error("the page has a script of a value, or a link")
	}
	testkit.Must(t, r.Text(&text))
	got := strings.ReplaceAll(text.String(), dir+string(filepath.Separator), "")
	path := filepath.Join("testdata", "report.txt")
	if *update {
		testkit.Must(t, os.WriteFile(path, []byte(got), 0o600))
	}
	if d := cmp.Diff(testkit.ReadFile(t, path), got); d != "" {
		t.Errorf("%s: %s", path, d)
	}
}

// TestRules_Examples checks that the wrong example of each rule violates it, and that the
// right one passes.
func TestRules_Examples(t *testing.T) {
	for _, rule := range eval.Rules() {
		for text, broken := range map[string]bool{rule.Wrong: true, rule.Right: false} {
			dir := folder(t, map[string]string{"app.qtype-eval.yaml": text, "rows.csv": "question,expected\ntwo,2\n"})
			report, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml", Data: "rows.csv"})
			if rule.Severity == diag.Warning {
				if err != nil || broken != strings.Contains(strings.Join(report.Warnings, "\n"), rule.Code) {
					t.Errorf("%s: %q gives %v", rule.Code, text, err)
				}
				continue
			}
			var list diag.List
			if errors.As(err, &list); broken && (len(list) != 1 || list[0].Code != rule.Code) || !broken && err != nil {
				t.Errorf("%s: %q gives %v", rule.Code, text, err)
			}
		}
	}
}

// TestEvaluate_When has metrics of some rows, and expected values of which one is enough.
func TestEvaluate_When(t *testing.T) {
	dir := folder(t, map[string]string{
		"rows.jsonl":           `{"question": "two", "any": ["3", "2"], "part": "2"}` + "\n" + `{"question": "three", "any": ["2"], "part": null}` + "\n",
		"app.qtype-eval.yaml":  "data: rows.jsonl\nmetrics: [{type: exact, expected: any}, {type: contains, expected: part, when: part, min: 1}]\n",
		"bad.qtype-eval.yaml":  "app: app.qtype.yaml\ndata: rows.jsonl\nmetrics: [{type: is_json, when: parts}]\n",
		"user.qtype-eval.yaml": "app: app.qtype.yaml\nusers: [{id: ada, opening: two, max_turns: 1, rules: [{text: '[END]'}]}]\nmetrics: [{type: is_json, when: part}]\n",
	})
	r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	v := r.Variants[0]
	if r.Failed() || v.Metrics["exact"].Mean != 0.5 || v.Metrics["contains"].Count != 1 || v.Metrics["contains"].Mean != 1 || r.Results[1].Scores["contains"] != nil {
		t.Errorf("%+v, %q", v.Metrics, r.Violations)
	}
	for file, want := range map[string]string{"bad": `no column "parts", by which metric is_json selects rows`, "user": `the evaluation has no data with a column "part"`} {
		if _, err := evaluate(t, dir, evalrun.Config{Path: file + ".qtype-eval.yaml"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
