package uistream_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/uistream"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// talk is the contract of a conversational flow without steps.
func talk(t testing.TB) *schema.Flow { return contract(t, "Conversational", "ChatMessage") }

func contract(t testing.TB, kind, typ string) *schema.Flow {
	vars := valuetest.Variables(t, nil, "question: "+typ, "answer: "+typ)
	f := &spec.Flow{Interface: &spec.FlowInterface{Type: kind}}
	f.ID = "talk"
	f.Inputs = append(f.Inputs, spec.Ref[*spec.Variable]{ID: "question", To: vars[0]})
	f.Outputs = append(f.Outputs, spec.Ref[*spec.Variable]{ID: "answer", To: vars[1]})
	return schema.NewFlow(f)
}

// chunk is a frame of a stream.
type chunk struct {
	id   string
	Type string `json:"type"`
	ID   string `json:"id"`
	Call string `json:"toolCallId"`
	Text string `json:"delta"`
}

// frames splits a stream. It fails if a frame is not JSON, except the last one.
func frames(t interface {
	Helper()
	Fatal(args ...any)
}, stream string) []chunk {
	t.Helper()
	var all []chunk
	for _, frame := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		id, data, ok := strings.Cut(frame, "data: ")
		c := chunk{id: strings.TrimSuffix(id, "\n")}
		if data == "[DONE]" {
			c.Type = "[DONE]"
		} else if err := json.Unmarshal([]byte(data), &c); err != nil || !ok || strings.Contains(data, "\n") {
			t.Fatal("frame", frame, err)
		}
		all = append(all, c)
	}
	return all
}

// drawEvents returns the events of a run, of which those of steps are in any order.
func drawEvents(t *rapid.T) []runs.Event {
	text := rapid.SampledFrom([]string{"", "a", "\n\n", "\"<é>\u2028"})
	events := []runs.Event{{Type: runs.RunStarted}}
	for i := range rapid.IntRange(0, 30).Draw(t, "events") {
		step, row := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "step"), int64(rapid.IntRange(1, 2).Draw(t, "row"))
		call, tool := rapid.SampledFrom([]string{"", "c1"}).Draw(t, "call"), rapid.SampledFrom([]string{"find", "ask"}).Draw(t, "tool")
		ev := runs.Event{Step: step, Row: row}
		switch rapid.IntRange(0, 8).Draw(t, "type") {
		case 0:
			ev.Type = runs.StepStarted
		case 1:
			ev.Type, ev.Error = runs.StepFinished, text.Draw(t, "error")
		case 2:
			ev.Type, ev.Text = runs.TextDelta, text.Draw(t, "text")
		case 3:
			ev.Type, ev.Text = runs.ReasoningDelta, text.Draw(t, "text")
		case 4:
			ev.Type, ev.Text, ev.Call, ev.Tool = runs.ToolCalled, text.Draw(t, "arguments"), call, tool
		case 5:
			ev.Type, ev.Text, ev.Call, ev.Tool, ev.Error = runs.ToolReturned, `{"a": 1}`, call, tool, text.Draw(t, "error")
		case 6:
			ev.Type, ev.Call, ev.Tool = runs.RequestOpened, call, tool
			ev.Request = &runs.Request{ID: fmt.Sprint("r", i), Kind: rapid.SampledFrom([]runs.RequestKind{runs.Approval, runs.ClientTool}).Draw(t, "kind"), Arguments: []byte("{}")}
		case 7:
			ev.Type, ev.Usage = runs.UsageReported, &runs.Usage{Input: 1, Output: 2}
		case 8:
			ev.Type, ev.Result = runs.RowFinished, &runs.Result{Row: row, Outputs: []any{drawAnswer(t, text)}}
			if rapid.Bool().Draw(t, "failed") {
				ev.Error, ev.Result.Outputs = "failed", nil
			}
		}
		events = append(events, ev)
	}
	return append(events, runs.Event{Type: runs.RunFinished, Text: string(rapid.SampledFrom([]runs.Status{runs.Succeeded, runs.Failed, runs.Cancelled}).Draw(t, "status"))})
}

func drawAnswer(t *rapid.T, text *rapid.Generator[string]) chat.Message {
	m := chat.Message{Role: chat.Assistant}
	for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"text", "image", "citation_url", "citation_document"}), 0, 3).Draw(t, "blocks") {
		m.Blocks = append(m.Blocks, chat.Block{Type: kind, Text: text.Draw(t, "text")})
		if kind == "image" {
			m.Blocks[len(m.Blocks)-1].Data = []byte{1}
		}
	}
	return m
}

func encode(e *uistream.Encoder, events []runs.Event) string {
	var b []byte
	for i := range events {
		b = e.Append(b, &events[i])
	}
	return string(b)
}

// For all events: the same events give the same frames, frames can be skipped, their ids
// count them, and each part that is started is ended before another one and before the end.
func TestEncoder_AnyEvents(t *testing.T) {
	flow := talk(t)
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		e := uistream.NewEncoder(flow, "run_1", []string{"ask"})
		stream := encode(e, events)
		if again := encode(uistream.NewEncoder(flow, "run_1", []string{"ask"}), events); again != stream {
			t.Fatalf("first  %s\nsecond %s", stream, again)
		}
		all := frames(t, stream)
		if !e.Ended() || e.Frames() != len(all) || all[0].Type != "start" || all[len(all)-1].Type != "[DONE]" || all[len(all)-2].Type != "finish" {
			t.Fatalf("%d frames in %s", e.Frames(), stream)
		}
		known := rapid.IntRange(0, len(all)).Draw(t, "known")
		rest := uistream.NewEncoder(flow, "run_1", []string{"ask"})
		rest.Skip(known)
		_, want := cutFrames(stream, known)
		if got := encode(rest, events); got != want {
			t.Fatalf("after %d frames\n got %q\nwant %q", known, got, want)
		}
		checkParts(t, all)
	})
}

// cutFrames divides a stream after n frames.
func cutFrames(stream string, n int) (before, after string) {
	after = stream
	for range n {
		frame, rest, _ := strings.Cut(after, "\n\n")
		before, after = before+frame+"\n\n", rest
	}
	return before, after
}

func checkParts(t *rapid.T, all []chunk) {
	open, ended := map[string]bool{}, map[string]bool{}
	for i, c := range all {
		if want := fmt.Sprintf("id: run_1:%d", i+1); c.id != want {
			t.Fatalf("frame %d has %s", i, c.id)
		}
		kind, action, _ := strings.Cut(c.Type, "-")
		if kind != "text" && kind != "reasoning" {
			if len(open) > 0 && !strings.HasPrefix(c.Type, "tool-") && !strings.HasPrefix(c.Type, "data-") {
				t.Fatalf("%s within parts %v", c.Type, open)
			}
			continue
		}
		part := kind + " " + c.ID
		switch {
		case action == "start" && (open[part] || ended[part]), action != "start" && !open[part]:
			t.Fatalf("%s of %s while %v are open", c.Type, c.ID, open)
		case action == "start":
			open[part] = true
		case action == "end":
			ended[part] = true
			delete(open, part)
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v were not ended", open)
	}
}

// An answer that steps have streamed is not sent twice; one that they have not is.
func TestEncoder_Answer(t *testing.T) {
	result := &runs.Result{Row: 1, Outputs: []any{"Hello Ada"}}
	for name, events := range map[string][]runs.Event{
		"streamed": {{Type: runs.TextDelta, Row: 1, Text: "Hello "}, {Type: runs.TextDelta, Row: 1, Text: "Ada"}, {Type: runs.RowFinished, Row: 1, Result: result}},
		"whole":    {{Type: runs.RowFinished, Row: 1, Result: result}},
	} {
		var text strings.Builder
		for _, c := range frames(t, encode(uistream.NewEncoder(contract(t, "Complete", "text"), "r", nil), events)) {
			text.WriteString(c.Text)
		}
		if got := text.String(); got != "Hello Ada" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A response that ends while the run waits is a complete message, which the next response
// continues.
func TestEncoder_Pause(t *testing.T) {
	e := uistream.NewEncoder(talk(t), "r", nil)
	req := &runs.Request{ID: "q", Kind: runs.Approval, Arguments: []byte("{}")}
	stream := encode(e, []runs.Event{{Type: runs.RunStarted}, {Type: runs.ToolCalled, Tool: "pay", Call: "c", Text: "{}"}, {Type: runs.RequestOpened, Tool: "pay", Call: "c", Request: req}})
	if !e.Waiting() || e.Ended() {
		t.Fatalf("waiting %t, ended %t", e.Waiting(), e.Ended())
	}
	counted := e.Frames()
	stream += string(e.Pause(nil))
	types := func(stream string) []string {
		var names []string
		for _, c := range frames(t, stream) {
			names = append(names, c.Type)
		}
		return names
	}
	want := []string{"start", "tool-input-start", "tool-input-delta", "tool-input-available", "tool-approval-request", "data-request", "finish", "[DONE]"}
	if got := types(stream); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	next := string(e.Continue(nil))
	if got := types(next); !slices.Equal(got, []string{"start", "start-step"}) || !e.Waiting() || e.Frames() != counted || !strings.Contains(next, uistream.MessageID("r")) {
		t.Errorf("continued with %v: %s", got, next)
	}
	if e.Append(nil, &runs.Event{Type: runs.RequestAnswered, Request: req}); e.Waiting() {
		t.Error("it waits after the answer")
	}
}

func TestParse(t *testing.T) {
	for _, body := range []string{``, `{`, `[]`, `7`, `{"messages": 7}`, `{"trigger": "other"}`, `{"messages": [{"role": 1}]}`} {
		if _, err := uistream.Parse([]byte(body)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", body, err)
		}
	}
	fetch := func(string) ([]byte, string, error) { return []byte("fetched"), "text/plain; charset=utf-8", nil }
	r, err := uistream.Parse([]byte(`{"messages": [{"role": "user", "parts": [{"type": "text", "text": "one"}]}, {"role": "assistant", "parts": [{"type": "reasoning", "text": "hm"}]},
		{"role": "user", "parts": [{"type": "file", "url": "data:image/png;base64,iVBORw0KGgo="}, {"type": "file", "url": "https://a.example/x"}]}]}`))
	testkit.Must(t, err)
	newest, earlier, err := r.Conversation(fetch)
	testkit.Must(t, err)
	if len(earlier) != 1 || earlier[0].Text() != "one" || len(newest.Blocks) != 2 || newest.Blocks[0].MimeType != "image/png" || newest.Blocks[1].Text != "fetched" {
		t.Errorf("newest %+v, earlier %+v", newest, earlier)
	}
	if shown := r.Shown(earlier); len(shown.Users) != 1 || shown.Users[0] != "one" || shown.Replaces {
		t.Errorf("shown %+v", shown)
	}
	const message = `{"role": "user", "parts": [{"type": "text", "text": "two"}]}`
	if r, err = uistream.Parse([]byte(`{"message": ` + message + `}`)); err != nil || r.Last().Parts[0].Text != "two" || r.Shown(nil) != nil {
		t.Errorf("only the newest message: %+v, %v", r, err)
	}
	for _, body := range []string{`{"message": 1}`, `{"message": ` + message + `, "messageId": "m"}`, `{"message": ` + message + `, "trigger": "regenerate-message"}`} {
		if _, err := uistream.Parse([]byte(body)); problem.Of(err) == nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{`{}`, `{"messages": [{"role": "assistant", "parts": []}]}`, `{"messages": [{"role": "user", "parts": []}]}`,
		`{"messages": [{"role": "king"}, {"role": "user", "parts": [{"type": "text", "text": "a"}]}]}`, `{"messages": [{"role": "user", "parts": [{"type": "file", "url": "data:broken"}]}]}`} {
		r, err := uistream.Parse([]byte(body))
		testkit.Must(t, err)
		if _, _, err := r.Conversation(fetch); err == nil || !strings.HasPrefix(err.Error(), "/messages") {
			t.Errorf("%s: error %v", body, err)
		}
	}
}
