package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// speaker is a model at a simulated server.
type speaker struct{ provider, server, model, keys string }

// speakers are models of all protocols whose servers want something back.
var speakers = []speaker{
	{"openai", "openai", "gpt-6-sol", "api: responses"},
	{"anthropic", "anthropic", "claude-opus-5", ""},
	{"google-ai", "google", "gemini-4-argon", ""},
	{"aws-bedrock", "bedrock", "us.anthropic.claude-opus-5", ""},
	{"mistral", "mistral", "mistral-large-4", "inference_params: {reasoning_effort: high}"},
	{"openai", "deepseek", "deepseek-v4-pro", ""},
	{"openai", "vllm", "qwen3-32b", ""},
	{"ollama", "ollama", "gpt-oss", ""},
}

// agentDocument has a flow with an agent for each model.
const agentDocument = `id: desk
memories: [{id: talk, policy: unbounded}]
tools: [{type: APITool, id: find, name: find_order, description: Finds an order., endpoint: %q, method: POST, allow_private: true, inputs: [{id: number, type: text}], outputs: [{id: state, type: text}]}]
models:
%sflows:
%s`

// agentFlow is a flow with an agent.
const agentFlow = `  - id: f%[1]d
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: Agent, id: a%[1]d, model: m%[1]d, memory: talk, tools: [find], inputs: [question], outputs: [answer]}]
`

// desktop is a model and a tool, for programs that are killed while they call them.
type desktop struct {
	*conformance.Running
	tool string       // the address of the tool
	hook atomic.Value // func(): is called before a call of the tool is answered
}

func newDesktop(t *testing.T) *desktop {
	t.Helper()
	d := &desktop{Running: conformance.New(t)}
	d.hook.Store(func() {})
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d.hook.Load().(func())()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"state": "shipped"}`) // who was killed needs no answer
	}))
	t.Cleanup(tool.Close)
	d.tool = tool.URL + "/find"
	return d
}

// document writes the document for models.
func (d *desktop) document(scenario string, of ...speaker) string {
	var models, flows strings.Builder
	for i, s := range of {
		fmt.Fprintf(&models, "  - {type: Model, id: m%d, provider: %s, model_id: %s, base_url: %q, on_truncation: continue, %s}\n", i, s.provider, s.model, d.Scenario(scenario).BaseURL(s.server), s.keys)
		fmt.Fprintf(&flows, agentFlow, i)
	}
	return fmt.Sprintf(agentDocument, d.tool, models.String(), flows.String())
}

// wrong returns what is wrong with the requests so far, and how many items came back.
func (d *desktop) wrong() (list []string, requests, returned int) {
	for _, v := range d.Verdicts() {
		requests++
		returned += v.Returned
		for _, f := range v.Violations {
			list = append(list, fmt.Sprintf("%s breaks rule %s: %s at %s\n%s", v.Server, f.Rule, f.Text, f.At, v.Body))
		}
		for _, f := range v.Changes {
			if f.Kind != "lost" || !f.Earlier { // the rules say whose earlier turns must be whole
				list = append(list, fmt.Sprintf("%s: an item is %s: %s at %s\n%s", v.Server, f.Kind, f.Item, f.At, v.Body))
			}
		}
	}
	return list, requests, returned
}

// keys are credentials of all providers.
var keys = []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "GEMINI_API_KEY=k", "MISTRAL_API_KEY=k", "AWS_BEARER_TOKEN_BEDROCK=k", "AWS_REGION=us-east-1"}

// TestRun_KilledConversation kills the program with SIGKILL between a call of the model and the result of its tool, in
// both steps of a turn. The same command continues the turn: with --suspend, no answer of the model is requested
// again, and what it wants back comes from the file of the run; without, the turn is repeated. The next turn has all of it.
func TestRun_KilledConversation(t *testing.T) {
	testkit.SkipWithRace(t) // its commands would take ten times longer to start
	for i, s := range speakers {
		t.Run(s.server, func(t *testing.T) {
			t.Parallel()
			d, folder := newDesktop(t), t.TempDir()
			testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(d.document("steps", s)), 0o600))
			durable := i%2 == 0
			run := func(question string, killAt int32) (answer string) {
				args := []string{"run", "app.qtype.yaml", "-i", question, "--session", "s"}
				if durable {
					args = append(args, "--suspend", "run.json")
				}
				cmd := exec.CommandContext(t.Context(), "qtype", args...)
				var out, errs bytes.Buffer
				cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, append(os.Environ(), keys...), &out, &errs
				var calls atomic.Int32
				d.hook.Store(func() {
					if calls.Add(1) == killAt {
						_ = cmd.Process.Kill()
					}
				})
				testkit.Must(t, cmd.Start())
				if err := cmd.Wait(); (err == nil) == (killAt > 0) {
					t.Fatalf("%s (killed at %d): %v\n%s", question, killAt, err, errs.String())
				}
				return out.String()
			}
			run(`"Where are my orders?"`, 1)
			run(`"Where are my orders?"`, 2)
			first := run(`"Where are my orders?"`, 0)
			_, requests, _ := d.wrong()
			second := run(`"And now?"`, 0)
			list, _, returned := d.wrong()
			for _, text := range list {
				t.Error(text)
			}
			if want := map[bool]int{true: 3, false: 1 + 2 + 3}[durable]; requests != want {
				t.Errorf("%d requests in the first turn, want %d", requests, want)
			}
			if !strings.Contains(first, "Both arrive") || !strings.Contains(second, "Both arrive") || returned == 0 {
				t.Errorf("%d items came back; the answers are %s and %s", returned, first, second)
			}
		})
	}
}
