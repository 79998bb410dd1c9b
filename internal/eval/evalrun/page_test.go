package evalrun_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// wideReport is a report with values of all kinds.
func wideReport() *evalrun.Report {
	raw := func(pairs ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return m
	}
	metrics := []evalrun.MetricReport{{ID: "exact", Rate: true}, {ID: "friendly"}, {ID: "tokens", Unit: "tokens", Lower: true}, {ID: "cost", Unit: "money", Lower: true}}
	means := map[string]evalrun.Summary{"exact": {Count: 3, Mean: 1. / 3}, "friendly": {Count: 3, Mean: 0.5}, "tokens": {Count: 3, Mean: 1234.5}, "cost": {Count: 3, Mean: 0.0000282}}
	score := func(exact, cost float64, reason string) map[string]*evalrun.Score {
		return map[string]*evalrun.Score{"exact": {Value: exact, Reason: reason}, "friendly": {Value: 0.5, Reason: "The reply is short. " + strings.Repeat("It answers the question, and no other. ", 6)},
			"tokens": {Value: 1234.5}, "cost": {Value: cost}}
	}
	r := &evalrun.Report{Version: 1, App: "shop", Flow: "triage", Data: "rows.jsonl", Rows: 1234, Metrics: metrics,
		Variants:    []evalrun.VariantReport{{ID: "base", Failed: 1, Metrics: means, Usage: evalrun.Usage{Input: 1234567, Output: 8901, Money: 0.0000282}}},
		Comparisons: []evalrun.Comparison{{Metric: "cost", From: "base", To: "small", Difference: -0.0000123, Low: -0.00002, High: 0}},
		Violations:  []string{"base: 1 of 3 rows failed"}}
	r.Results = []*evalrun.Result{
		{Variant: "base", Row: 1, Inputs: raw("question", `"Where is my parcel?\nIt is late."`),
			Outputs: raw("reply", `{"id":"m","role":"assistant","blocks":[{"type":"text","content":"It is \"there\"."},{"type":"image","content":"https://host/a.png"}]}`,
				"order", `{"number":"A-1","lines":[{"title":"Cup","count":2}],"note":"a\nb"}`, "tags", `["late","parcel: 1"]`), Scores: score(1, 0.00001, "")},
		{Variant: "base", Row: 2, Inputs: raw("question", `"long `+strings.Repeat("word ", 400)+`the-end"`), Outputs: raw("reply", `null`), Scores: score(0, 12.3456, `expected "x"`)},
		{Variant: "base", Row: 1234, Inputs: raw("question", `"none"`), Error: "step reply: no answer", Scores: map[string]*evalrun.Score{"exact": {Reason: "the row failed"}, "friendly": {Error: "the row failed"},
			"tokens": {Error: "the row failed"}, "cost": {Error: "the row failed"}}},
	}
	return r
}

// TestReport_PageValues checks that values are shown as texts, and numbers as in the terminal.
func TestReport_PageValues(t *testing.T) {
	var page, text bytes.Buffer
	testkit.Must(t, wideReport().HTML(&page))
	testkit.Must(t, wideReport().Text(&text))
	for _, want := range []string{"<pre>It is &#34;there&#34;.\n[image]</pre>", "<pre>Where is my parcel?\nIt is late.</pre>", "<pre>- late\n- &#39;parcel: 1&#39;</pre>",
		"<pre>number: A-1\nlines:\n  - title: Cup\n    count: 2\nnote: |-\n  a\n  b</pre>", "<summary><pre>long word", "the-end</pre></details>", "<th scope=\"row\">1,234</th>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, number := range []string{"1,234 rows", "1,234,567", "8,901", "0.0000282", "-0.0000123 (-0.00002 to 0)", "1234.5"} {
		for name, shown := range map[string]string{"page": page.String(), "text": text.String()} {
			if !strings.Contains(shown, number) {
				t.Errorf("the %s lacks %s", name, number)
			}
		}
	}
	if path := os.Getenv("QTYPE_SHOW_PAGE"); path != "" {
		testkit.Must(t, os.WriteFile(path, page.Bytes(), 0o600))
	}
}

// TestReport_Browser filters the rows of the page in a real browser, and checks its accessibility.
func TestReport_Browser(t *testing.T) {
	browser := servertest.NeedBrowser(t)
	var page bytes.Buffer
	testkit.Must(t, wideReport().HTML(&page))
	path := filepath.Join(t.TempDir(), "report.html")
	testkit.Must(t, os.WriteFile(path, page.Bytes(), 0o600))
	dom, messages := browser.Open(t, path)
	if !strings.Contains(dom, "3 of 3 results") || messages != "" {
		t.Errorf("its content security policy does not allow the script of the page: %s", messages)
	}
	body, messages := browser.Run(t, page.String(), `
		const f = document.querySelector('form').elements
		const seen = []
		const see = () => seen.push(f.count.value + ': ' + [...document.querySelectorAll('.rows tbody tr')].filter(r => r.offsetHeight).map(r => r.querySelector('th').textContent).join(' '))
		const type = text => { f.text.value = text; f.text.dispatchEvent(new Event('input', { bubbles: true })); see() }
		f.failed.click(); see()
		type('THE-END word'); type('nowhere')
		document.body.textContent = seen.join('; ') + '|'`)
	if got, _, _ := strings.Cut(body, "|"); got != "2 of 3 results: 2 1,234; 1 of 3 results: 2; 0 of 3 results: " {
		t.Errorf("filtered: %.300s\n%s", got, messages)
	}
	browser.CheckAccessibility(t, regexp.MustCompile(`prefers-color-scheme: dark`).ReplaceAllString(page.String(), "min-width: 0"))
	browser.CheckAccessibility(t, page.String())
}
