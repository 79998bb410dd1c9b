package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestModelsCheck tolerates odd entries of the server's list, and fails for a model that is missing or
// shut down.
func TestModelsCheck(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[7,{"id":null},{"id":"new"},{"id":"old","shutdown_date":"2020-01-01"}]}`)
	}))
	defer s.Close()
	t.Setenv("OPENAI_API_KEY", "sk-of-the-test")
	for name, want := range map[string]struct {
		code int
		out  string
	}{
		"new":   {0, `"ok":true,"text":"openai has new","entries_skipped":2`},
		"old":   {1, `"ok":false,"text":"openai has old, but it was shut down on 2020-01-01","shutdown_date":"2020-01-01"`},
		"other": {1, `"ok":false,"text":"openai does not have other"`},
	} {
		model := "- {type: Model, id: m, provider: openai, model_id: " + name + ", base_url: '" + s.URL + "'}\n"
		inFolder(t, map[string]string{"offers.qtype.yaml": "id: shop\nmodels:\n  " + model, "list.qtype.yaml": model})
		if code, out, problem := onTerminal(t.Context(), 0, "models", "check", "list.qtype.yaml", "--format", "json"); code != want.code || !strings.Contains(out, want.out) {
			t.Errorf("%s, in a list: exit status %d, %s%s", name, code, out, problem)
		}
		if code, out, problem := onTerminal(t.Context(), 0, "models", "check", "offers.qtype.yaml", "--format", "json"); code != want.code || !strings.Contains(out, want.out) {
			t.Errorf("%s: exit status %d, %s%s", name, code, out, problem)
		}
	}
}

// TestModelsUpdate_StandardOutput writes the rows to standard output for -.
func TestModelsUpdate_StandardOutput(t *testing.T) {
	inFolder(t, map[string]string{"rows.yaml": "catalogue:\n  - {provider: openai, id: our-model, context_window: 7}\n  - {provider: openai, id: wrong, context_window: -7}\n"})
	code, out, problem := onTerminal(t.Context(), 0, "models", "update", "rows.yaml", "-o", "-")
	if code != 0 || !strings.Contains(out, `"our-model"`) || !strings.Contains(problem, "not written: openai/wrong: context_window cannot be negative") || !strings.Contains(problem, "1 wrong") {
		t.Errorf("exit status %d, %s%s", code, out, problem)
	}
}
