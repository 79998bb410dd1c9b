package batch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/batch"
)

const pictures = `id: app
flows:
  - id: main
    variables: [{id: pic, type: image}, {id: more, type: 'list[image]?'}, {id: doc, type: file?}]
    inputs: [pic, more, doc]
    outputs: [pic, more, doc]
    steps: [{type: Echo, id: repeat, inputs: [pic, more, doc], outputs: [pic, more, doc]}]
`

// Rows name files by paths that are relative to their file, and -i by those that are
// relative to the current folder. A file that is not an image fails its row.
func TestRun_Media(t *testing.T) {
	const png, encoded = "\x89PNG\r\n\x1a\n\x00", `{"base64":"iVBORw0KGgoA"}`
	ok := `"pic":` + encoded + `,"more":[` + encoded + `],"doc":"Dear shop"`
	for _, c := range []struct{ name, rows, input, want string }{
		{"rows.csv", "pic,more,doc\npics/a.png,\"[\"\"pics/a.png\"\"]\",doc.txt\ndoc.txt,,\n", "", ok},
		{"rows.jsonl", `{"pic": "pics/a.png", "more": [{"path": "pics/a.png"}], "doc": {"path": "doc.txt"}}` + "\n" + `{"pic": "doc.txt"}`, "", ok},
		{"", "", `[{"pic": "data/pics/a.png", "more": ["data:image/png;base64,iVBORw0KGgoA"], "doc": "Dear shop"}, {"pic": "data/doc.txt"}]`, ok},
	} {
		files := map[string]string{"app.qtype.yaml": pictures, "data/pics/a.png": png, "data/doc.txt": "Dear shop"}
		cfg := batch.Config{Input: c.input, Format: "jsonl"}
		if c.name != "" {
			files["data/"+c.name], cfg.InputFile = c.rows, "data/"+c.name
		}
		out, errs, err := run(t, files, "", cfg)
		if err == nil || !strings.Contains(out, c.want) || !strings.Contains(out, `"error":"input pic: data/doc.txt: expected an image, found the text \"Dear shop\""`) {
			t.Errorf("%s%s: got %s\n%s, %v", c.name, c.input, out, errs, err)
		}
	}
}

// The summary has the calls that fallbacks answered, with the reason, and the circuit
// breakers that opened.
func TestRun_Outages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer server.Close()
	document := fmt.Sprintf(`id: app
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, base_url: '%s/v1', retry: {max_attempts: 1}, circuit_breaker: {failures: 2, open_for: 5m}, fallbacks: [second]}
  - {type: Model, id: second, provider: mock, rules: [{text: Hello.}]}
flows:
  - id: main
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps:
      - {type: LLMInference, id: ask, model: first, inputs: [x], outputs: [y]}
`, server.URL)
	_, errs, err := run(t, map[string]string{"app.qtype.yaml": document}, "", batch.Config{Input: `[{"x":"a"},{"x":"b"},{"x":"c"},{"x":"d"},{"x":"e"}]`})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("fallbacks 2 × first → second: HTTP 502 · 3 × first → second: circuit_open · circuit breaker of %s/v1 opened once, 3 calls not sent, open now\n", server.URL)
	if !strings.Contains(errs, want) {
		t.Errorf("no %q in\n%s", want, errs)
	}
}
