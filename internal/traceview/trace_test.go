package traceview_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/traceview"
	"github.com/qtype-dev/qtype/runtime"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// assistant has an agent with a tool, a fallback, retries and a step with a cache.
const assistant = `
id: assistant
models:
  - {type: Model, id: broken, provider: mock, rules: [{error: "out of order", status: 503}], fallbacks: [spare], retry: {max_attempts: 2, initial_delay: 1ms}}
  - type: Model
    id: spare
    provider: mock
    model_id: small
    prices: {input: 1000, output: 2000}
    rules: [{after: tool, text: "It is <b>sunny</b>, key top-secret-key."}, {match: fail, error: "no answer"}, {tool_calls: [{name: weather, arguments: {city: Bonn}}]}]
memories: [{id: notes, token_limit: 1000}]
tools: [{type: FlowTool, id: weather_tool, name: weather, description: The weather, flow: forecast}]
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}, {id: loud, type: text}]
    inputs: [question]
    outputs: [loud]
    steps:
      - {type: Agent, id: respond, model: broken, memory: notes, tools: [weather_tool], system_message: "Be kind.\nBe brief.", inputs: [question], outputs: [answer]}
      - {type: PromptTemplate, id: shout, template: "{answer}!", inputs: [answer], outputs: [loud], cache_config: {namespace: NAMESPACE}}
  - id: forecast
    variables: [{id: city, type: text}, {id: report, type: text}]
    inputs: [city]
    outputs: [report]
    steps:
      - {type: PromptTemplate, id: write_report, template: "Sun in {city}", inputs: [city], outputs: [report]}
`

// traced runs the questions as rows of one run, and returns what was written.
func traced(t *testing.T, path string, questions ...string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("app.qtype.yaml", []byte(strings.Replace(assistant, "NAMESPACE", strings.ReplaceAll(t.Name(), "/", "_"), 1)), 0o600))
	app, err := qtype.Open(t.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	var out bytes.Buffer
	redactor := redact.New()
	redactor.Add("top-secret-key", "short")
	trace, err := traceview.New(traceview.Options{Path: path, Unit: "row", Title: "assistant", Streams: &terminal.Streams{Err: &out},
		Redactor: redactor})
	testkit.Must(t, err)
	var rows []runtime.Input
	for i, q := range questions {
		rows = append(rows, runtime.Input{Values: map[string]any{"question": q}, Session: q, Number: int64(i + 1)})
	}
	for res, err := range app.Run(trace.Context(t.Context()), "talk", slices.Values(rows)) {
		testkit.Must(t, err)
		trace.RowDone(res.Number)
	}
	testkit.Must(t, trace.Close())
	if path == "" {
		return out.String()
	}
	return testkit.ReadFile(t, path)
}

// untimed replaces times.
func untimed(text string) string {
	return regexp.MustCompile(`[0-9.]+ (µs|ms|s)\b`).ReplaceAllString(text, "TIME")
}

func TestTree(t *testing.T) {
	golden, err := filepath.Abs("testdata/tree.txt")
	testkit.Must(t, err)
	got := untimed(traced(t, "", "Weather?", "fail", "short again?"))
	if *update {
		testkit.Must(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	if want := testkit.ReadFile(t, golden); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTree_Texts: a long text is cut, and what a terminal would act upon is replaced.
func TestTree_Texts(t *testing.T) {
	got := traced(t, "", "\x1b[31m"+strings.Repeat("x", 5000), strings.Repeat("y\n", 100))
	if strings.Contains(got, "\x1b") || strings.Count(got, "x") > 3000 || !strings.Contains(got, "more; --trace FILE.html has all") {
		t.Errorf("got %q", got)
	}
	if n := strings.Count(got, "│  y"); n > 40 {
		t.Errorf("%d lines of a text", n)
	}
}

func TestJSONL(t *testing.T) {
	text := traced(t, "trace.jsonl", "Weather?", "fail")
	var kinds []string
	ids := map[string]bool{}
	for l := range strings.Lines(text) {
		var span struct {
			Run                           int
			Row                           int64
			ID, Parent, Kind, Name, Error string
			Input, Output                 json.RawMessage
		}
		testkit.Must(t, json.Unmarshal([]byte(l), &span))
		if span.Kind != "flow" && span.Row == 0 || span.Run != 1 || span.ID == "" {
			t.Errorf("a span without its place: %s", l)
		}
		ids[span.ID] = true
		kinds = append(kinds, span.Kind+" "+span.Name)
	}
	if !slices.Contains(kinds, "tool weather_tool") || kinds[len(kinds)-1] != "flow talk" {
		t.Errorf("the spans are %q", kinds)
	}
	for _, m := range regexp.MustCompile(`"parent":"(\w+)"`).FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("the parent %s is missing", m[1])
		}
	}
	if strings.Contains(text, "top-secret-key") || !strings.Contains(text, "sunny</b>, key ***.") {
		t.Errorf("not redacted: %s", text)
	}
}

// TestHTML: the page is complete, has no script and no reference to another file, and texts
// of rows cannot add elements.
func TestHTML(t *testing.T) {
	text := traced(t, "trace.html", `"><script>alert(1)</script><img src=x onerror=alert(1)>`, "fail")
	if strings.Contains(text, "top-secret-key") {
		t.Error("a secret was written")
	}
	doc, err := html.Parse(strings.NewReader(text))
	testkit.Must(t, err)
	var policy, style string
	rows := 0
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains([]string{"html", "head", "meta", "title", "style", "body", "header", "h1", "label", "input", "main", "details", "summary", "span", "svg", "rect", "dl", "dt", "dd", "pre", "footer"}, n.Data) {
			t.Errorf("the page has the element %s", n.Data)
		}
		if n.Data == "style" {
			style = n.FirstChild.Data
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "href":
				t.Errorf("the page has the attribute %s=%q", a.Key, a.Val)
			case a.Key == "content" && strings.HasPrefix(a.Val, "default-src"):
				policy = a.Val
			case a.Key == "class" && (a.Val == "row" || a.Val == "row failed"):
				rows++
			}
		}
	}
	h := sha256.Sum256([]byte(style))
	if want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"; policy != want {
		t.Errorf("the policy is %q, want %q", policy, want)
	}
	if rows != 2 || strings.Count(text, `class="row failed"`) != 1 || !strings.Contains(text, "&lt;script&gt;alert(1)") ||
		!strings.Contains(style, "prefers-color-scheme: dark") || !strings.Contains(text, "2 rows</span>") {
		t.Errorf("%d rows on the page\n%s", rows, text)
	}
}

func TestNew_Errors(t *testing.T) {
	for _, path := range []string{"trace.txt", "trace", filepath.Join(t.TempDir(), "none", "t.html")} {
		if _, err := traceview.New(traceview.Options{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
	var off *traceview.Trace
	off.RowDone(1)
	if err := off.Close(); err != nil || off.Context(t.Context()) != t.Context() || off.OnTerminal() {
		t.Error("a command without a trace is observed", err)
	}
}
