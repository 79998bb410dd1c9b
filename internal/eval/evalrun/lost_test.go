package evalrun_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestEvaluate_NotSaved checks that a report that cannot be saved can be made again from the
// journal, without calls of models.
func TestEvaluate_NotSaved(t *testing.T) {
	url, calls := server(t, 0, func() {})
	dir := folder(t, map[string]string{"rows.csv": "question,expected\na,ok\nb,ok\n"})
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(servedApplication(url)), 0o600))
	full := errors.New("the disk is full")
	cfg := evalrun.Config{Data: "rows.csv", Journal: filepath.Join(dir, "r.json.qtype-journal"), Save: func(*evalrun.Report) error { return full }}
	if _, err := evaluate(t, dir, cfg); !errors.Is(err, full) {
		t.Fatalf("got %v", err)
	}
	var saved *evalrun.Report
	cfg.Resume, cfg.Save = true, func(r *evalrun.Report) error { saved = r; return nil }
	r, err := evaluate(t, dir, cfg)
	testkit.Must(t, err)
	if saved != r || calls.Load() != 2 || r.Variants[0].Metrics["exact"].Count != 2 {
		t.Errorf("%d calls, report %+v", calls.Load(), r.Variants[0])
	}
	if _, err := os.Stat(cfg.Journal); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
}

// TestEvaluate_ReplacedData checks that the report does not replace the data that an evaluation
// file names.
func TestEvaluate_ReplacedData(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\ntwo,2\n", "app.qtype-eval.yaml": "data: rows.csv\n"})
	_, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml", Written: []string{"", filepath.Join(dir, "rows.csv")}})
	var usage *evalrun.UsageError
	if !errors.As(err, &usage) || !strings.Contains(usage.Reason, "the report would replace") {
		t.Errorf("got %v", err)
	}
}

// TestEvaluate_ResumeOtherJudge checks that scores of two judges are not mixed.
func TestEvaluate_ResumeOtherJudge(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\na,ok\nb,ok\n"})
	cfg := evalrun.Config{Data: "rows.csv", Journal: filepath.Join(dir, "journal"), Metrics: []string{"{type: judge, model: referee, rubric: r}"},
		Save: func(*evalrun.Report) error { return os.ErrClosed }}
	if _, err := evaluate(t, dir, cfg); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	app := strings.Replace(application, `"score": 0.75`, `"score": 0.25`, 1)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(app), 0o600))
	cfg.Resume, cfg.Save = true, nil
	if _, err := evaluate(t, dir, cfg); err == nil || !strings.Contains(err.Error(), "this is not the evaluation that was interrupted") {
		t.Errorf("got %v", err)
	}
}

// TestEvaluate_CachedTokens checks that the cost counts the price of cached tokens.
func TestEvaluate_CachedTokens(t *testing.T) {
	url, _ := serverOf(t, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":8}}}`)
	dir := folder(t, map[string]string{"rows.csv": "question\na\n"})
	app := strings.Replace(servedApplication(url), "input: 1000000,", "input: 1000000, cached_input: 100000,", 1)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(app), 0o600))
	r, err := qtype.Evaluate(t.Context(), evalrun.Config{Path: filepath.Join(dir, "app.qtype.yaml"), Data: filepath.Join(dir, "rows.csv"), Metrics: []string{"cost"}})
	testkit.Must(t, err)
	if got, want := r.Variants[0].Metrics["cost"].Mean, 2+8*0.1+1*2.0; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("cost %v, want %v", got, want)
	}
}

// TestEvaluate_SessionOfOtherRow checks that a row without a session shares no memory with a
// session of the data with the name that it would get.
func TestEvaluate_SessionOfOtherRow(t *testing.T) {
	dir := folder(t, map[string]string{"rows.jsonl": `{"question":"two","session":"row-2","expected":"2"}` + "\n" + `{"question":"two","expected":"2"}` + "\n"})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl"})
	testkit.Must(t, err)
	if first, second := r.Results[0].Usage.Input, r.Results[1].Usage.Input; first != second {
		t.Errorf("the first row has %d tokens, the second %d", first, second)
	}
}

// TestEvaluate_EmptyExpected checks that an empty expected text is not part of every output.
func TestEvaluate_EmptyExpected(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\ntwo,\n"})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv", Metrics: []string{"contains", "starts_with"}})
	testkit.Must(t, err)
	for name, s := range r.Results[0].Scores {
		if s.Error != "the expected text is empty" || !r.Failed() {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

// TestFiles_Check checks that files that cannot be written are found before the evaluation.
func TestFiles_Check(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none", "r.json")} {
		if err := (&evalrun.Files{HTML: path}).Check(); !errors.Is(err, evalrun.ErrNotWritten) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	testkit.Must(t, (&evalrun.Files{JSON: filepath.Join(dir, "r.json")}).Check())
}
