package evalrun_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// court is an application with judges: strict and kind always say one label, first chooses the label or the answer that it reads first, fair
// reads the output.
const court = `id: app
models:
  - {type: Model, id: writer, provider: mock, rules: [{match: cited, text: 'Cut, see [1] and [2].'}, {text: Sorry.}]}
  - {type: Model, id: strict, provider: mock, rules: [{match: '"labels"', text: '{"reason": "never", "label": "bad"}'}, {text: '{"reason": "never", "score": 0.2}'}]}
  - {type: Model, id: kind, provider: mock, rules: [{match: '"labels"', text: '{"reason": "always", "label": "good"}'}, {text: '{"reason": "always", "score": 0.9}'}]}
  - {type: Model, id: first, provider: mock, rules: [{match: '"labels":."(\w+)"', text: '{"reason": "first", "label": "$1"}'}, {text: '{"reason": "first", "better": "a"}'}]}
  - {type: Model, id: fair, provider: mock, rules: [
      {match: '"labels".*"output":"[^"]*(Sorry|please)', text: '{"reason": "polite", "label": "good"}'},
      {match: '"labels":."yes"|"labels":."no"', text: '{"reason": "half of it", "label": "partly"}'},
      {match: '"labels"', text: '{"reason": "not polite", "label": "bad"}'},
      {match: '"answer_a":"[^"]*Sorry', text: '{"reason": "polite", "better": "a"}'},
      {match: '"answer_b":"[^"]*Sorry', text: '{"reason": "polite", "better": "b"}'},
      {match: '"sources"', text: '{"statements": [{"statement": "it is cut", "supported": true}, {"statement": "it is red", "supported": false}]}'},
      {match: '"answer_a"', text: '{"reason": "neither", "better": "tie"}'},
      {text: '{"statements": []}'}]}
  - {type: Model, id: broken, provider: mock, rules: [{text: '{"reason": "x", "label": "great"}'}]}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: prompt, type: text}, {id: found, type: 'list[RAGSearchResult]?'}, {id: answer, type: ChatMessage}]
    inputs: [question, found]
    outputs: [answer, found]
    steps:
      - {type: PromptTemplate, id: fill, template: '{question}', inputs: [question], outputs: [prompt]}
      - {type: LLMInference, id: reply, model: writer, sources: found, inputs: [prompt], outputs: [answer]}
`

// courtFolder writes the application and other files, by name.
func courtFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["app.qtype.yaml"] = court
	for name, text := range files {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const foundPassages = `[{"content": {"chunk_id": "c1", "document_id": "d1", "content": "Windows are cut.", "metadata": {"file_name": "memory.md"}}, "doc_id": "d1", "score": 1.0}, {"content": {"chunk_id": "c2", "document_id": "d2", "content": "It is red.", "metadata": {"file_name": "colour.md"}}, "doc_id": "d2", "score": 0.5}]`

// TestEvaluate_Judges has a case for each way in which judges decide.
func TestEvaluate_Judges(t *testing.T) {
	dir := courtFolder(t, map[string]string{"rows.jsonl": fmt.Sprintf(`{"question": "hello", "found": %s, "expected": "No.", "files": "memory.md; c2; other.md"}`+"\n"+`{"question": "cited", "found": %[1]s, "expected": "No.", "files": ["memory.md"]}`+"\n", foundPassages)})
	const labels = ", output: answer, rubric: polite, labels: {good: 1, bad: 0}}"
	for metric, want := range map[string][2]string{
		"{type: judge, model: kind" + labels:                                                    {`{"value":1,"reason":"always","label":"good"}`},
		"{type: judge, model: fair" + labels:                                                    {`{"value":1,"reason":"polite","label":"good"}`, `{"value":0,"reason":"not polite","label":"bad"}`},
		"{type: judge, judges: [kind, strict]" + labels:                                         {`{"value":0,"reason":"never","label":"bad","votes":{"bad":1,"good":1},"tie":true}`},
		"{type: judge, judges: [kind, strict, fair]" + labels:                                   {`{"value":1,"reason":"always","label":"good","votes":{"bad":1,"good":2}}`},
		"{type: judge, model: first, votes: 3" + labels:                                         {`{"value":1,"reason":"first","label":"good","votes":{"bad":1,"good":2}}`},
		"{type: judge, model: first, votes: 2" + labels:                                         {`{"value":0,"reason":"first","label":"bad","votes":{"bad":1,"good":1},"tie":true}`},
		"{type: judge, model: broken" + labels:                                                  {`{"value":0,"error":"the judge answered with the label \"great\", not with one of good, bad"}`},
		"{type: judge, judges: [kind, strict], output: answer, rubric: polite}":                 {`{"value":0.55,"reason":"always"}`},
		"{type: judge, judges: [kind, strict], output: answer, rubric: polite, threshold: 0.6}": {`{"value":0,"raw":0.55,"reason":"always"}`},
		"{type: preference, model: fair, output: answer, rubric: polite}":                       {`{"value":1,"reason":"polite","label":"output"}`, `{"value":0.5,"reason":"neither","label":"tie"}`},
		"{type: preference, model: fair, output: answer, value: Sorry!, rubric: polite}":        {"", `{"value":0,"reason":"polite","label":"expected"}`},
		"{type: preference, model: first, output: answer, rubric: polite}":                      {`{"value":0.5,"reason":"first","label":"tie","tie":true}`},
		"{type: preference, judges: [first, fair], output: answer, rubric: polite}":             {`{"value":0.75,"reason":"first","label":"output","tie":true}`},
		"{type: relevance, model: fair, output: answer}":                                        {"", `{"value":0.5,"reason":"half of it","label":"partly"}`},
		"{type: faithfulness, model: fair, output: answer, sources: found}":                     {`{"value":0.5,"reason":"not supported: it is red"}`},
		"{type: faithfulness, model: fair, output: answer}":                                     {`{"value":1}`, `{"value":0.5,"reason":"not supported: it is red"}`},
		"{type: source_recall, sources: found, expected: files}":                                {`{"value":0.666667,"reason":"not found: other.md"}`, `{"value":1}`},
		"{type: source_precision, sources: found, expected: files}":                             {`{"value":1}`, `{"value":0.5,"reason":"not expected: colour.md"}`},
		"{type: source_precision, sources: found, expected: files, threshold: 0.6}":             {"", `{"value":0,"raw":0.5,"reason":"not expected: colour.md"}`},
		"{type: source_recall, expected: files}":                                                {`{"value":0,"reason":"not found: memory.md, c2, other.md"}`, `{"value":1}`},
		"{type: source_precision, expected: files}":                                             {`{"value":0,"reason":"no sources"}`, `{"value":0.5,"reason":"not expected: colour.md"}`},
		"{type: source_precision, value: []}":                                                   {`{"value":1}`, `{"value":0,"reason":"not expected: memory.md, colour.md"}`},
	} {
		r, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", Metrics: []string{metric}})
		if err != nil {
			t.Errorf("%s: %v", metric, err)
			continue
		}
		for i, wanted := range want {
			if got, _ := json.Marshal(r.Results[i].Scores[r.Metrics[0].ID]); wanted != "" && string(got) != wanted {
				t.Errorf("%s, row %d: got %s, want %s", metric, i+1, got, wanted)
			}
		}
	}
}

// TestCheckJudges measures judges by labels: a fair one, one that always says the same, and one that chooses what it reads first.
func TestCheckJudges(t *testing.T) {
	var rows, pairs strings.Builder
	rows.WriteString("question,answer,people\n")
	pairs.WriteString("question,answer,expected,people\n")
	for i := range 40 {
		answer, people := []string{"Sorry for that", "please wait", "No", "Go away now"}[i%4], []string{"good", "good", "bad", "bad"}[i%4]
		if i == 0 {
			people = "bad"
		}
		fmt.Fprintf(&rows, "q%d,%s,%s\n", i, answer, people)
		fmt.Fprintf(&pairs, "q%d,%s,%s,%s\n", i, []string{"Sorry", "No"}[i%2], []string{"No", "Sorry"}[i%2], []string{"output", "expected"}[i%2])
	}
	check := func(metric string) *evalrun.JudgeReport {
		t.Helper()
		dir := courtFolder(t, map[string]string{"rows.csv": rows.String(), "pairs.csv": pairs.String(), "app.qtype-eval.yaml": "metrics: [" + metric + "]\n"})
		reports, err := qtype.CheckJudges(t.Context(), evalrun.Config{Path: filepath.Join(dir, "app.qtype-eval.yaml"), Workers: 3}, "")
		if err != nil {
			t.Fatalf("%s: %s", metric, err)
		}
		return reports[0]
	}
	const judge = "{type: judge, output: answer, rubric: polite, labels: {good: 1, bad: 0}, check: {data: rows.csv, label: people, min_kappa: 0.8, min_accuracy: 0.9}, "
	r := check(judge + "model: fair}")
	j := r.Judges[0]
	if len(r.Violations) > 0 || j.Accuracy.Value != 0.975 || math.Abs(j.Kappa.Value-0.95) > 0.001 || j.Sensitivity.Value != 1 || math.Abs(j.Specificity.Value-20.0/21) > 1e-9 || j.Order.Value != 0 || j.Repeat.Value != 0 || j.Verdicts["bad"]["good"] != 1 || j.Length == nil {
		t.Errorf("fair: %+v", r)
	}
	r = check(judge + "model: kind}")
	if want := []string{"the accuracy is 0.475, less than 0.9", "the kappa is 0.000, less than 0.8"}; fmt.Sprint(r.Violations) != fmt.Sprint(want) {
		t.Errorf("kind: %q", r.Violations)
	}
	if r = check(judge + "model: first}"); r.Judges[0].Order.Value != 1 || r.Judges[0].Repeat.Value != 0 || len(r.Violations) == 0 {
		t.Errorf("first: %+v", r.Judges[0])
	}
	r = check(judge + "judges: [fair, kind, strict]}")
	if len(r.Judges) != 4 || r.Judges[0].Judge != "all" || r.Judges[0].Accuracy.Value != 0.975 || r.Judges[2].Accuracy.Value != 0.475 || r.Judges[3].Accuracy.Value != 0.525 || len(r.Violations) > 0 {
		t.Errorf("three: %+v", r)
	}
	if r = check(judge + "model: broken}"); len(r.Violations) != 3 || !strings.HasPrefix(r.Violations[0], "no verdict on 40 rows: the judge answered with the label") {
		t.Errorf("broken: %q", r.Violations)
	}
	const pair = "{type: preference, output: answer, rubric: polite, check: {data: pairs.csv, label: people, min_kappa: 0.8}, "
	if r = check(pair + "model: fair}"); len(r.Violations) > 0 || r.Judges[0].Accuracy.Value != 1 || r.Judges[0].Order.Value != 0 {
		t.Errorf("pairs: %+v", r)
	}
	r = check(pair + "model: first}")
	if j := r.Judges[0]; j.Order.Value != 1 || j.First.Value != 1 || j.Ties != 40 || len(r.Violations) != 1 {
		t.Errorf("pairs, first: %+v", r)
	}
	var text strings.Builder
	testkit.Must(t, r.Text(&text))
	for _, line := range []string{"metric preference · 40 rows from ", "changes with the order", "the first answer wins", "refused: the kappa is 0.000, less than 0.8"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("%q is not in\n%s", line, &text)
		}
	}
}
