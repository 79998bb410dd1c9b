package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// recorded is a request to the server of QType (Python) 0.1.18, and the form of its
// answer.
type recorded struct {
	Name, Method, Path, Body string
	Headers                  map[string]string
	Status                   int
	Chunks                   string // types of the chunks of a stream; deltas in succession are one
	Keys                     string // members of a JSON object
}

// differences are the answers that differ on purpose. docs/serve.md lists them for users.
var differences = map[string]string{
	"01-root":                       "the web interface is at /, not at /ui",
	"11-rest-missing-input":         "errors are application/problem+json",
	"14-rest-unknown-flow":          "errors are application/problem+json",
	"15-rest-bad-json":              "text that is not JSON is 400, a wrong value 422",
	"17-rest-fanout-empty":          "a run without results is no failure of the server: 200 with empty outputs",
	"20-rest-optional-missing":      "an optional input may be missing",
	"21-rest-optional-null":         "an optional input may be null",
	"24-rest-typed-bad":             "errors are application/problem+json",
	"32-stream-complete-noprompt":   "errors are application/problem+json",
	"33-stream-rest-only":           "every flow can be streamed; the missing input is named",
	"40-stream-chat":                "the recorded server failed on streams of OpenAI",
	"41-stream-chat-nomem":          "the recorded server failed on streams of OpenAI",
	"42-stream-chat-history":        "the recorded server failed on streams of OpenAI",
	"43-stream-chat-regenerate":     "the recorded server failed on streams of OpenAI",
	"48-stream-chat-file":           "the recorded server failed on streams of OpenAI",
	"44-stream-chat-empty":          "a request without a message has a wrong value: 422 with the field",
	"45-stream-chat-assistant-last": "such a message answers a run that waits; there is none: 409",
	"46-stream-chat-toolpart":       "parts of tools are accepted, so that a conversation with tools goes on",
	"47-stream-chat-session-inputs": "session inputs work; the missing one is named",
	"49-stream-chat-file-ssrf":      "the server does not fetch addresses that a client names",
	"60-feedback-none":              "the answer is stored, because the document of the test has telemetry",
	"61-cors-preflight":             "errors are application/problem+json",
	"83-feedback-bad":               "errors are application/problem+json",
}

// recordedModel answers as the model of the recordings.
type recordedModel struct{ info model.Info }

func (m recordedModel) Info() model.Info { return m.info }

func (m recordedModel) Generate(_ context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		answer := chat.Message{ID: chat.NewID(), Role: chat.Assistant}
		switch text := last.Text(); {
		case strings.Contains(text, "FAIL"):
			yield(model.Event{}, &model.Error{Model: "gpt", Status: 400, Message: "mock failure"})
			return
		case strings.Contains(text, "TOOL") && last.Role == chat.User:
			answer.Blocks = []chat.Block{{Type: "text", Text: "I twice it."}}
			answer = answer.With(chat.ToolCall{ID: "call_1", Name: "twice", Arguments: `{"n": 2}`})
		default:
			answer.Blocks = []chat.Block{{Type: "text", Text: fmt.Sprintf("n=%d|last=%s", len(req.Messages), text)}}
			if strings.Contains(text, "THINK") && !yield(model.Event{Reasoning: "Let me think."}, nil) {
				return
			}
		}
		if !yield(model.Event{Text: answer.Text()}, nil) {
			return
		}
		yield(model.Event{Response: &model.Response{Message: answer, Finish: "stop"}}, nil)
	}
}

// recordedTool is a tool of the recordings.
type recordedTool struct {
	info tool.Info
	call func(map[string]any) (any, error)
}

func (s recordedTool) Info() tool.Info { return s.info }
func (s recordedTool) Call(_ context.Context, args map[string]any) (any, error) {
	return s.call(args)
}

func recordedMocks() runtime.Mocks {
	tools := map[string]func(map[string]any) (any, error){
		"twice": func(a map[string]any) (any, error) {
			n, _ := a["n"].(int64)
			return map[string]any{"twice_result": 2 * n}, nil
		},
		"shout": func(a map[string]any) (any, error) {
			return map[string]any{"shout_result": strings.ToUpper(fmt.Sprint(a["t"]))}, nil
		},
		"boom":  func(map[string]any) (any, error) { return nil, errors.New("boom") },
		"boomt": func(map[string]any) (any, error) { return nil, errors.New("boom") },
	}
	return runtime.Mocks{
		Model: func(m *spec.Model) (model.Chat, error) { return recordedModel{model.Describe(m)}, nil },
		Tool: func(t spec.Tool) tool.Tool {
			base := t.Common()
			return recordedTool{tool.Describe(base, base.Inputs), tools[base.ID]}
		},
	}
}

// chunksOf returns the types of the chunks of a stream, deltas in succession once.
func chunksOf(t *testing.T, body string) []string {
	t.Helper()
	var types []string
	for line := range strings.SplitSeq(body, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct{ Type string }
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if n := len(types); n > 0 && types[n-1] == chunk.Type && strings.HasSuffix(chunk.Type, "delta") {
			continue
		}
		types = append(types, chunk.Type)
	}
	return types
}

// missingChunks returns the types of chunks that a client of the recorded server shows
// and that the answer lacks. Empty texts, status lines and the second report of one
// failure are none.
func missingChunks(recorded string, got []string) []string {
	want := map[string]bool{}
	for typ := range strings.FieldsSeq(recorded) {
		want[typ] = true
	}
	if !want["text-delta"] {
		delete(want, "text-start")
		delete(want, "text-end")
	}
	var missing []string
	for _, typ := range slices.Sorted(maps.Keys(want)) {
		if !slices.Contains(got, typ) {
			missing = append(missing, typ)
		}
	}
	return missing
}

// TestRecorded sends the requests of the web interface of QType (Python) and of its REST
// clients: the answers have the form that those clients read, except for differences.
func TestRecorded(t *testing.T) {
	phoenix := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer phoenix.Close()
	t.Setenv("PHOENIX", phoenix.URL)
	s := serveApp(t, openApp(t, "testdata/recorded.qtype.yaml", qtype.WithMocks(recordedMocks())), server.Options{})
	for line := range strings.Lines(testkit.ReadFile(t, "testdata/recorded.jsonl")) {
		var r recorded
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		t.Run(r.Name, func(t *testing.T) {
			// The documents of the recordings have other names for the same inputs.
			r.Body = strings.ReplaceAll(r.Body, `"t"`, `"0123456789abcdef0123456789abcdef"`)
			var headers []string
			for name, v := range r.Headers {
				headers = append(headers, name, v)
			}
			got := s.do(r.Method, r.Path, r.Body, headers...)
			problem := differenceOf(t, &r, got)
			why, known := differences[r.Name]
			switch {
			case problem != "" && (!known || why == ""):
				t.Errorf("%s\n%d %.2000s", problem, got.status, got.body)
			case problem == "" && why != "":
				t.Errorf("the answer is as recorded, but differences has it")
			}
			if r.Chunks != "" && got.status == http.StatusOK && !strings.HasSuffix(strings.TrimSpace(got.body), "data: [DONE]") {
				t.Errorf("the stream has no end: %s", got.body)
			}
		})
	}
}

// differenceOf compares an answer with the recorded one.
func differenceOf(t *testing.T, r *recorded, got reply) string {
	t.Helper()
	if got.status != r.Status {
		return fmt.Sprintf("status %d, recorded %d", got.status, r.Status)
	}
	if r.Chunks != "" {
		types := chunksOf(t, got.body)
		if missing := missingChunks(r.Chunks, types); len(missing) > 0 {
			return fmt.Sprintf("chunks %v are missing in %v", missing, types)
		}
		if types[0] != "start" || types[len(types)-1] != "finish" {
			return fmt.Sprintf("chunks %v", types)
		}
		return ""
	}
	if r.Keys == "" {
		return ""
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &object); err != nil {
		return err.Error()
	}
	if got.header.Get("Content-Type") == "application/problem+json" {
		return "the error has another form"
	}
	for key := range strings.FieldsSeq(r.Keys) {
		if object[key] == nil {
			return "no member " + key
		}
	}
	return ""
}
