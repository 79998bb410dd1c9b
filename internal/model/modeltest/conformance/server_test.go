package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// do sends a request without a body, and returns the status and the body of the answer.
func do(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("[]"))
	testkit.Must(t, err)
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return resp.StatusCode, string(raw)
}

// TestServer_Models: the server lists models, and the day of their shutdown.
func TestServer_Models(t *testing.T) {
	s := conformance.New(t)
	base := s.Scenario("answer").BaseURL("openai")
	for path, want := range map[string]string{"/models": `"shutdown_date":"2026-12-11"`, "/models/gpt-5": `"shutdown_date":"2026-12-11"`, "/models/gpt-6-sol": `"shutdown_date":null`, "/models/gpt-4": `"code":"model_not_found"`} {
		if status, body := do(t, http.MethodGet, base+path); !strings.Contains(body, want) || (status == http.StatusOK) == strings.Contains(want, "not_found") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestServer_Addresses: addresses without a scenario and a server, and bodies that are not requests, are refused.
func TestServer_Addresses(t *testing.T) {
	s := conformance.New(t)
	for path, want := range map[string]string{
		"/":                                     "the address must be /SCENARIO/SERVER/",
		"/tool/unknown/v1/responses":            `no scenario "tool" or no server "unknown"`,
		"/nothing/openai/v1/responses":          `no scenario "nothing" or no server "openai"`,
		"/tool/openai/v1/files":                 "no such path: /v1/files",
		"/tool/openai/v1/responses":             "the body is not a JSON object",
		"/tool/google/v1beta/x:generateContent": "no such path: /v1beta/x:generateContent",
	} {
		if status, body := do(t, http.MethodPost, s.URL+path); status < 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestServer_Verdicts: the log of requests can be read and cleared by programs in other languages.
func TestServer_Verdicts(t *testing.T) {
	p := completions
	p.t, p.server, p.scenario, p.body = t, conformance.New(t), "answer", object{"max_tokens": 5}
	p.turn("Hello.")
	_, body := do(t, http.MethodGet, p.server.URL+"/verdicts")
	var list []conformance.Verdict
	testkit.Must(t, json.Unmarshal([]byte(body), &list))
	if len(list) != 1 || list[0].Server != "openai" || list[0].Wire != "chat" || list[0].Model != "gpt-6-sol" || list[0].Status != 400 || len(list[0].Violations) != 1 || list[0].Violations[0].Rule != "openai-max-tokens" {
		t.Errorf("got %+v", list)
	}
	if _, body := do(t, http.MethodDelete, p.server.URL+"/verdicts"); body != "[]" {
		t.Errorf("after the deletion: %s", body)
	}
}

// TestRules_Complete: each rule has its requirement, its source and its tests; each requirement
// that a server can check has a rule.
func TestRules_Complete(t *testing.T) {
	wires, ids := []string{"chat", "responses", "messages", "gemini", "converse", "ollama"}, map[string]bool{}
	scenarios := map[string]bool{}
	for _, s := range conformance.Scenarios() {
		if s.About == "" || len(s.Steps) == 0 || scenarios[s.Name] {
			t.Errorf("scenario %s: no description, no steps, or twice", s.Name)
		}
		scenarios[s.Name] = true
	}
	numbers := map[string]bool{"T45": true, "T46": true} // of the catalogue of models
	for _, r := range conformance.Rules().Rules {
		numbers[r.Number] = true
		if r.ID == "" || ids[r.ID] || r.Number == "" || r.Title == "" || !strings.HasPrefix(r.Source, "https://") || !slices.Contains([]string{"official", "reported", "unconfirmed", "own"}, r.Wording) {
			t.Errorf("rule %s is not complete, or twice", r.ID)
		}
		ids[r.ID] = true
		if (r.Check.Name == "") != (r.Refusal.Text == "") || r.Check.Name == "" && len(r.Cases) == 0 && len(r.Wires) > 0 {
			t.Errorf("rule %s: a rule has a check with a text, or cases", r.ID)
		}
		for _, w := range r.Wires {
			if !slices.Contains(wires, w) {
				t.Errorf("rule %s: no wire %s", r.ID, w)
			}
		}
		for _, p := range r.Cases {
			if !scenarios[p.Scenario] {
				t.Errorf("rule %s: no scenario %s", r.ID, p.Scenario)
			}
			if _, ok := interruptions()[p.After]; !ok && p.After != "" {
				t.Errorf("rule %s: no interruption %s", r.ID, p.After)
			}
		}
	}
	for n := 1; n <= 46; n++ {
		if name := fmt.Sprint("T", n); !numbers[name] {
			t.Errorf("%s has no rule", name)
		}
	}
}

// TestRules_ModelNames: what providers put around a name does not hide the model, and a name is not the beginning of another one.
func TestRules_ModelNames(t *testing.T) {
	for name, want := range map[string]bool{
		"claude-opus-4-5": true, "claude-opus-4-5-20251101": true, "claude-opus-4-5@20251101": true, "us.anthropic.claude-opus-4-5-20251101-v1:0": true, "anthropic/claude-opus-4-5": true,
		"claude-opus-4-51": false, "claude-opus-4": false, "claude-opus-4-8": false, "my-claude-opus-4-5": false,
	} {
		p := opus.of(name)
		p.t, p.server, p.scenario, p.body = t, conformance.New(t), "answer", object{"max_tokens": 100000}
		status, answer := p.turn("Hello.")
		if refused := status == 400; refused != want {
			t.Errorf("%s: %d %s", name, status, message(answer))
		}
	}
}
