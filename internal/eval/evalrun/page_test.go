package evalrun_test

import (
	"bytes"
	_ "embed" // the script of a test
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

//go:embed testdata/page_steps.js
var pageSteps string

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

// pageRows returns the rows that a page has for its script.
func pageRows(t *testing.T, page string) string {
	t.Helper()
	_, rows, _ := strings.Cut(page, `id="rows-0">`)
	rows, _, _ = strings.Cut(rows, "</script>")
	var all any
	testkit.Must(t, json.Unmarshal([]byte(rows), &all))
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	testkit.Must(t, out.Encode(all))
	return b.String()
}

// TestReport_PageValues checks that values are shown as texts, and numbers as in the terminal.
func TestReport_PageValues(t *testing.T) {
	var page, text bytes.Buffer
	testkit.Must(t, wideReport().HTML(&page))
	testkit.Must(t, wideReport().Text(&text))
	rows := pageRows(t, page.String())
	for _, want := range []string{`It is \"there\".\n[image]`, `Where is my parcel?\nIt is late.`, `- late\n- 'parcel: 1'`, `number: A-1\nlines:\n  - title: Cup\n    count: 2\nnote: |-\n  a\n  b`,
		"the-end", `["fail","fail","expected \"x\""]`, `["number","12.35",""]`, `"e":"step reply: no answer"`} {
		if !strings.Contains(rows, want) {
			t.Errorf("the rows of the page lack %s", want)
		}
	}
	if !strings.Contains(page.String(), `"numbers":[2,1234,1]`) {
		t.Error("the rows that do not pass are not the first ones")
	}
	for _, number := range []string{"1,234 rows", "1,234,567", "8,901", "0.0000282", "-0.0000123 (-0.00002 to 0)", "1234.5"} {
		for name, shown := range map[string]string{"page": page.String(), "text": text.String()} {
			if !strings.Contains(shown, number) {
				t.Errorf("the %s lacks %s", name, number)
			}
		}
	}
}

// TestReport_Trace checks that the calls of a row are in the report, with what they sent and cost; a text that they repeat is there once.
func TestReport_Trace(t *testing.T) {
	dir := folder(t, map[string]string{"rows.csv": "question,expected\ntwo,2\nfail,y\n"})
	r, err := evaluate(t, dir, evalrun.Config{Data: "rows.csv"})
	testkit.Must(t, err)
	call := r.Results[0].Trace[0]
	if len(r.Results[0].Trace) != 1 || call.Model == "" || len(call.Sent) != 2 || call.Sent[1].Text != "Say two" || call.Answer != "2" || call.Input != r.Results[0].Usage.Input {
		t.Errorf("%+v", call)
	}
	if failed := r.Results[1].Trace; len(failed) == 0 || failed[len(failed)-1].Error == "" {
		t.Errorf("%+v", failed)
	}
}

// shopReports are an evaluation of rows with five variants, and one before it with other answers to the first 20 rows.
func shopReports(rows int) (now, before *evalrun.Report) {
	const system = "You answer for a bookshop. Be kind and brief, and promise nothing that the shop does not offer, such as a refund."
	variants := []string{"base", "small", "brief", "careful", "german"}
	build := func(rows int, word string) *evalrun.Report {
		r := &evalrun.Report{Version: 1, App: "shop", Flow: "triage", Data: "rows.jsonl", Rows: rows, Texts: []string{system},
			Metrics: []evalrun.MetricReport{{ID: "exact", Rate: true}, {ID: "cost", Unit: "money", Lower: true}}}
		place := 0
		for n, id := range variants {
			r.Variants = append(r.Variants, evalrun.VariantReport{ID: id, Metrics: map[string]evalrun.Summary{"exact": {Count: rows, Clusters: rows, Mean: 0.9}, "cost": {Count: rows, Clusters: rows, Mean: 0.0001}}})
			for i := range rows {
				pass := 1.0
				if (i+n)%7 == 0 && i%3 == 0 {
					pass = 0
				}
				question := fmt.Sprintf("Where is order %d? %s", i+1, strings.Repeat("It should have come on Monday. ", 5))
				answer := fmt.Sprintf("Order %d %s on %s. %s", i+1, word, []string{"Monday", "Tuesday"}[int(pass)], strings.Repeat("We are sorry for the delay. ", 5))
				r.Results = append(r.Results, &evalrun.Result{Variant: id, Row: int64(i + 1), Inputs: map[string]json.RawMessage{"question": value.JSON(question)},
					Outputs: map[string]json.RawMessage{"answer": value.JSON(answer)}, Scores: map[string]*evalrun.Score{"exact": {Value: pass}, "cost": {Value: 0.0001}},
					Trace: []*evalrun.Traced{{Model: "writer", Sent: []evalrun.TracedMessage{{Role: "system", Ref: &place}, {Role: "user", Text: question}}, Answer: answer, Input: 40, Output: 20}}})
				if n == 0 {
					r.Digests = append(r.Digests, fmt.Sprint(i))
				}
			}
		}
		return r
	}
	now, before = build(rows, "comes"), build(20, "came")
	before.Results[0].Scores["exact"].Value = 1
	return now, before
}

// TestReport_Browser opens a page of 50,000 results in a real browser: it has the first rows, and only those that can be seen; filters, the dialog with
// a row, differences and annotations work, and nothing violates its content security policy.
func TestReport_Browser(t *testing.T) {
	browser := servertest.NeedBrowser(t)
	now, before := shopReports(10_000)
	var page bytes.Buffer
	testkit.Must(t, (&evalrun.Page{Report: now, Earlier: []*evalrun.Report{before}}).Write(&page))
	path := filepath.Join(t.TempDir(), "report.html")
	testkit.Must(t, os.WriteFile(path, page.Bytes(), 0o600))
	dom, messages := browser.Open(t, path)
	if !strings.Contains(dom, ">10,000 of 10,000 rows</output>") && !strings.Contains(dom, `class="line"`) || messages != "" {
		t.Errorf("its content security policy does not allow the script of the page: %s", messages)
	}
	if lines := strings.Count(dom, `role="rowheader"`); lines < 4 || lines > 60 {
		t.Errorf("%d rows are in the page", lines)
	}
	now, before = shopReports(1_000)
	var few bytes.Buffer
	testkit.Must(t, (&evalrun.Page{Report: now, Earlier: []*evalrun.Report{before}}).Write(&few))
	body, messages := browser.Run(t, few.String(), pageSteps)
	got, _, _ := strings.Cut(body, "|")
	const want = "1,000 of 1,000 rows; few in the page; other verdicts: 1; not passed: 239 of 1,000 rows; text: 1 of 1,000 rows, 987; " +
		"diff: -came +comes; prompt: You answer for a bookshop; annotated: 1 of 1,000 rows; " +
		`saved: {"row":987,"variant":"base","label":"fail","note":"too long"}`
	if got != want {
		t.Errorf("got  %.900s\nwant %s\n%s", got, want, messages)
	}
}

// TestReport_Accessible checks the page, and its dialog, with axe: light, dark, and of the width of a phone.
func TestReport_Accessible(t *testing.T) {
	browser := servertest.NeedBrowser(t)
	now, before := shopReports(50)
	var b bytes.Buffer
	testkit.Must(t, (&evalrun.Page{Report: now, Earlier: []*evalrun.Report{before}}).Write(&b))
	page := b.String()
	opened := strings.Replace(page, "</body>", "<script>document.querySelector('.answer').click(); document.querySelectorAll('details').forEach(d => { d.open = true })</script></body>", 1)
	for _, p := range []string{page, opened} {
		browser.CheckAccessibility(t, p)
		browser.CheckAccessibility(t, strings.ReplaceAll(p, "prefers-color-scheme: dark", "min-width: 0"))
		browser.CheckAccessibility(t, strings.ReplaceAll(p, "max-width: 50rem", "min-width: 0"))
	}
}
