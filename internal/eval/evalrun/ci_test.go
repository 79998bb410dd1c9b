package evalrun_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestReport_CI checks the forms that CI systems read. Texts of models are no Markdown and no HTML.
func TestReport_CI(t *testing.T) {
	rows := `{"question": "two", "expected": "2"}` + "\n" + `{"question": "page", "expected": "@all **x** [a](http://b) | <b>"}` + "\n" + `{"question": "fail", "expected": "x"}` + "\n"
	dir := folder(t, map[string]string{"rows.jsonl": rows})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.jsonl", Metrics: []string{"type: exact, min: 0.9", "type: exact, id: exact_2", "tokens"}, Variants: []string{"id: base", "id: other, inputs: {question: two}"}})
	testkit.Must(t, err)
	var text strings.Builder
	testkit.Must(t, r.JUnit(&text))
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	testkit.Must(t, xml.Unmarshal([]byte(text.String()), &suites))
	if suites.Tests != 8 || suites.Failures != 3 || len(suites.Suites) != 2 {
		t.Fatal(text.String())
	}
	base := suites.Suites[0].Cases
	if f := base[0].Failure; base[0].Name != "rows" || f == nil || !strings.HasPrefix(f.Message, "1 of 3 rows failed") || !strings.HasPrefix(f.Text, "row 3: ") {
		t.Errorf("%+v", base[0])
	}
	if f := base[1].Failure; base[1].Name != "exact" || f == nil || f.Message != "exact is 0.333, less than 0.900" || !strings.HasPrefix(f.Text, "row 2: ") {
		t.Errorf("%+v", base[1])
	}
	if base[2].Failure != nil || suites.Suites[1].Cases[0].Failure != nil || suites.Suites[1].Cases[1].Failure == nil {
		t.Error(text.String())
	}
	text.Reset()
	testkit.Must(t, r.Markdown(&text))
	for _, want := range []string{"### Evaluation of app: failed\n", "| Metric | base | other |\n| --- | --- | --- |\n| exact | 0.333 (", "| Difference | Variants |", "- Failed: base: exact is 0.333, less than 0.900\n", "<details><summary>base: rows that do not pass exact\\_2</summary>", "- row 2: expected \"@\u200ball \\*\\*x\\*\\* \\[a\\](http:\u200b//b) \\| &lt;b&gt;\", got \"&lt;script&gt;"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

// TestReport_MarkdownCost checks that only an evaluation with costs has a row of them.
func TestReport_MarkdownCost(t *testing.T) {
	for money, want := range map[float64]bool{0: false, 0.5: true} {
		r := &evalrun.Report{Variants: []evalrun.VariantReport{{ID: "base", Usage: evalrun.Usage{Money: money}}}}
		var text strings.Builder
		testkit.Must(t, r.Markdown(&text))
		if strings.Contains(text.String(), "| cost |") != want {
			t.Errorf("%v:\n%s", money, &text)
		}
	}
}
