package openai_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

// responded is a response.
type responded struct {
	ID, Object, Status, Model string
	Output                    []struct {
		ID, Type, Name, Arguments, Role string
		CallID                          string `json:"call_id"`
		Content                         []struct{ Type, Text string }
	}
	Error *struct{ Code, Message string }
	Store bool
	Usage struct {
		Total int `json:"total_tokens"`
	}
}

// text returns the texts of the messages.
func (r *responded) text() string {
	var b strings.Builder
	for _, o := range r.Output {
		for _, c := range o.Content {
			if c.Type == "output_text" {
				b.WriteString(c.Text)
			}
		}
	}
	return b.String()
}

func (s *testServer) respond(body string, headers ...string) responded {
	s.t.Helper()
	r := s.post("/v1/responses", body, headers...)
	var out responded
	r.into(s.t, &out)
	if r.status != http.StatusOK || out.Object != "response" || out.Status != "completed" {
		s.t.Fatalf("status %d: %s", r.status, r.body)
	}
	return out
}

func TestResponses_Whole(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.respond(`{"model":"talk","input":"think","instructions":"Be kind.","temperature":1}`)
	if len(r.Output) != 2 || r.Output[0].Type != "reasoning" || r.Output[0].Content[0].Text != "Let me think." || r.text() != "I have thought." || !r.Store || r.Usage.Total == 0 {
		t.Errorf("response %+v", r)
	}
}

// Each event of a stream has its number, and items and parts are opened and closed.
func TestResponses_Stream(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.post("/v1/responses", `{"model":"talk","stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":"think"}]}]}`)
	var types []string
	var text strings.Builder
	for i, f := range r.frames() {
		var ev struct {
			Type     string
			Number   int `json:"sequence_number"`
			Delta    string
			Response *responded
		}
		if err := json.Unmarshal([]byte(f), &ev); err != nil || ev.Number != i {
			t.Fatalf("%v: %s", err, f)
		}
		if !strings.Contains(r.body+"\n", "event: "+ev.Type+"\ndata: "+f+"\n\n") {
			t.Errorf("the frame of %s has no name", ev.Type)
		}
		if strings.HasSuffix(ev.Type, "output_text.delta") {
			text.WriteString(ev.Delta)
		}
		if ev.Type == "response.completed" && ev.Response.text() != text.String() {
			t.Errorf("completed with %q", ev.Response.text())
		}
		types = append(types, strings.TrimPrefix(ev.Type, "response."))
	}
	want := strings.Fields(`created in_progress
		output_item.added content_part.added reasoning_text.delta reasoning_text.delta reasoning_text.delta reasoning_text.done content_part.done output_item.done
		output_item.added content_part.added output_text.delta output_text.delta output_text.delta output_text.done content_part.done output_item.done completed`)
	if !slices.Equal(types, want) || text.String() != "I have thought." {
		t.Errorf("events %v, text %q", types, text.String())
	}
}

// A request that is sent again with its key is the same response, which the next one can follow,
// also if that was sent before.
func TestResponses_IdempotencyKey(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const begin = `{"model":"talk","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`
	first, again := s.respond(begin, "Idempotency-Key", "k"), s.respond(begin, "Idempotency-Key", "k")
	next := `{"model":"talk","input":"two","previous_response_id":` + quote(first.ID) + `}`
	second, repeated := s.respond(next, "Idempotency-Key", "l"), s.respond(next, "Idempotency-Key", "l")
	late := s.respond(begin, "Idempotency-Key", "k")
	if first.ID != again.ID || first.ID != late.ID || second.ID != repeated.ID || first.text() != late.text() || second.text() != repeated.text() {
		t.Errorf("ids %s %s %s, %s %s", first.ID, again.ID, late.ID, second.ID, repeated.ID)
	}
	third := s.respond(`{"model":"talk","input":"three","previous_response_id":` + quote(second.ID) + `}`)
	if !strings.Contains(first.text(), "4 messages") || !strings.Contains(second.text(), "6 messages") || !strings.Contains(third.text(), "8 messages") {
		t.Errorf("answers %q, %q, %q", first.text(), second.text(), third.text())
	}
	if r := s.post("/v1/responses", strings.Replace(begin, `"c"`, `"d"`, 1), "Idempotency-Key", "k"); r.status != http.StatusConflict {
		t.Errorf("another request: %d %s", r.status, r.body)
	}
}

// previous_response_id continues the session of a response.
func TestResponses_Previous(t *testing.T) {
	s := serve(t, nil, server.Options{})
	first := s.respond(`{"model":"talk","input":"one"}`)
	second := s.respond(`{"model":"talk","input":"two","previous_response_id":` + quote(first.ID) + `}`)
	if !strings.Contains(first.text(), "2 messages") || !strings.Contains(second.text(), "4 messages") {
		t.Errorf("answers %q, %q", first.text(), second.text())
	}
	// The whole conversation may be the input of the first response.
	begun := s.respond(`{"model":"talk","input":[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]},{"role":"user","content":"c"}]}`)
	more := s.respond(`{"model":"talk","input":"d","previous_response_id":` + quote(begun.ID) + `}`)
	if !strings.Contains(begun.text(), "4 messages") || !strings.Contains(more.text(), "6 messages") {
		t.Errorf("answers %q, %q", begun.text(), more.text())
	}
	unstored := s.respond(`{"model":"talk","input":"x","store":false}`)
	plain := s.respond(`{"model":"plain","input":"x"}`)
	if unstored.Store || plain.Store {
		t.Error("stored")
	}
	for id, code := range map[string]string{first.ID: "previous_response_not_newest", "resp_x": "previous_response_not_found", unstored.ID: "previous_response_not_found",
		strings.Replace(second.ID, "resp_", "resp_A", 1): "previous_response_not_found"} {
		r := s.post("/v1/responses", `{"model":"talk","input":"x","previous_response_id":`+quote(id)+`}`)
		var f failure
		r.into(t, &f)
		if r.status != http.StatusBadRequest || f.Error.Code != code {
			t.Errorf("%s: %d %s, want %s", id, r.status, r.body, code)
		}
	}
	if r := s.post("/v1/responses", `{"model":"plain","input":"x","previous_response_id":`+quote(plain.ID)+`}`); r.status != http.StatusBadRequest {
		t.Errorf("without a memory: %d %s", r.status, r.body)
	}
}

func TestResponses_Sessions(t *testing.T) {
	s := serve(t, nil, server.Options{})
	s.respond(`{"model":"talk","input":"one","conversation":"conv"}`)
	s.respond(`{"model":"talk","input":"two","conversation":{"id":"conv"}}`)
	r := s.respond(`{"model":"talk","input":[{"role":"user","content":"ignored"},{"role":"user","content":"three"}]}`, "X-Session-Id", "conv")
	if !strings.Contains(r.text(), "6 messages") {
		t.Errorf("third turn: %q", r.text())
	}
	var listed struct{ Sessions []struct{ ID, Title string } }
	s.do(http.MethodGet, "/sessions", "").into(t, &listed)
	if len(listed.Sessions) != 1 || listed.Sessions[0].ID != "conv" {
		t.Errorf("sessions %+v", listed)
	}
	if d := s.do(http.MethodDelete, "/sessions/conv", ""); d.status != http.StatusNoContent {
		t.Fatalf("delete: %d %s", d.status, d.body)
	}
	if r := s.post("/v1/responses", `{"model":"talk","input":"x","previous_response_id":`+quote(r.ID)+`}`); r.status != http.StatusBadRequest {
		t.Errorf("after the session was deleted: %d %s", r.status, r.body)
	}
}

const weatherFunction = `,"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"strict":false}]`

func TestResponses_Tools(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for _, stored := range []bool{true, false} {
		more, calls, results := weatherFunction, []string{`{"role":"user","content":"weather in Rome and Oslo"}`}, []string(nil)
		if !stored {
			more += `,"store":false`
		}
		r := s.respond(`{"model":"work","input":"weather in Rome and Oslo"` + more + `}`)
		if len(r.Output) != 2 || r.Output[0].Type != "function_call" || r.Output[1].Arguments != `{"city":"Oslo"}` || r.Store != stored {
			t.Fatalf("calls %+v", r)
		}
		for _, o := range r.Output {
			calls = append(calls, `{"type":"function_call","id":`+quote(o.ID)+`,"call_id":`+quote(o.CallID)+`,"name":`+quote(o.Name)+`,"arguments":`+quote(o.Arguments)+`}`)
			results = append(results, `{"type":"function_call_output","call_id":`+quote(o.CallID)+`,"output":"sunny"}`)
		}
		body := `{"model":"work","input":[` + strings.Join(append(calls, results...), ",") + `]` + more + `}`
		if stored {
			body = `{"model":"work","previous_response_id":` + quote(r.ID) + `,"input":[` + strings.Join(results, ",") + `]` + more + `}`
		}
		answer := s.respond(body)
		if answer.text() != "All results have arrived." || answer.Store != stored {
			t.Errorf("answer %+v", answer)
		}
	}
}

func TestResponses_Approval(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for approve, want := range map[string]string{"true": "order 7 is paid back", "false": "too late"} {
		r := s.respond(`{"model":"approve","input":"refund 7"}`)
		if len(r.Output) != 1 || r.Output[0].Type != "mcp_approval_request" || r.Output[0].Name != "refund" {
			t.Fatalf("request %+v", r)
		}
		answer := s.respond(`{"model":"approve","previous_response_id":` + quote(r.ID) + `,"input":[{"type":"mcp_approval_response","approval_request_id":` +
			quote(r.Output[0].ID) + `,"approve":` + approve + `,"reason":"too late"}]}`)
		next := s.respond(`{"model":"approve","previous_response_id":` + quote(answer.ID) + `,"input":"thanks"}`)
		session := strings.SplitN(next.ID, ".", 2)[0]
		found := false
		for id := range sessionsOf(t, s) {
			for e, err := range s.app.Memory("notes").History(t.Context(), id) {
				found = found || err == nil && strings.Contains(e.Message.Text(), want)
			}
		}
		if answer.text() != "All results have arrived." || !found {
			t.Errorf("%s: %+v, session %s", approve, answer, session)
		}
	}
}

// sessionsOf returns the ids of the stored sessions.
func sessionsOf(t *testing.T, s *testServer) map[string]bool {
	t.Helper()
	list, err := s.app.Memory("notes").Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, info := range list {
		ids[info.Session] = true
	}
	return ids
}

func TestResponses_Parameters(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for params, want := range map[string]int{
		`"text":{"format":{"type":"text"}},"truncation":"disabled","background":false,"include":[],"reasoning":{"effort":"low"}`: 200,
		`"text":{"format":{"type":"json_object"}}`:                             200,
		`"text":{"format":{"type":"json_schema"}}`:                             400,
		`"truncation":"auto"`:                                                  400,
		`"background":true`:                                                    400,
		`"prompt":{"id":"x"}`:                                                  400,
		`"conversation":"a","previous_response_id":"b"`:                        400,
		`"unknown":1`:                                                          200,
		`"tools":[{"type":"file_search"}]`:                                     400,
		`"input":[{"type":"item_reference","id":"x"}]`:                         400,
		`"input":[{"type":"function_call_output","call_id":"x","output":"y"}]`: 400,
	} {
		if r := s.post("/v1/responses", `{"model":"talk","input":"hi",`+params+`}`); r.status != want {
			t.Errorf("%s: %d %s", params, r.status, r.body)
		}
	}
}

// A response that fails after its first event ends with response.failed.
func TestResponses_Failure(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.post("/v1/responses", `{"model":"late","stream":true,"input":"think"}`)
	frames := r.frames()
	if len(frames) < 3 || !strings.Contains(frames[len(frames)-1], `"type":"response.failed"`) || !strings.Contains(frames[len(frames)-1], "the model is broken late") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.post("/v1/responses", `{"model":"late","input":"think"}`); r.status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", r.status, r.body)
	}
}
