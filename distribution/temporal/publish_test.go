package temporal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/steps"
)

// text returns a delta of an answer.
func text(delta string) *streamedEvent {
	return &streamedEvent{Event: steps.Event{Kind: steps.EventText, Step: "say", Row: 1, Text: delta}}
}

// TestSeenEvents: an attempt that repeats a row reports only what an earlier one has not.
func TestSeenEvents(t *testing.T) {
	start := &streamedEvent{Event: steps.Event{Kind: steps.EventStepStart, Step: "say", Row: 1}}
	comment := &streamedEvent{Event: steps.Event{Kind: steps.EventCommentary, Step: "say", Row: 1, Text: "I look."}}
	for name, c := range map[string]struct {
		before, now []*streamedEvent
		want        string
	}{
		"first attempt":         {nil, []*streamedEvent{start, text("Gr"), text("az")}, "start,Gr,az"},
		"recorded answer":       {[]*streamedEvent{start, text("Gr"), text("az")}, []*streamedEvent{start, text("Graz"), text("!")}, "!"},
		"interrupted answer":    {[]*streamedEvent{text("Gr")}, []*streamedEvent{text("Graz")}, "az"},
		"same parts":            {[]*streamedEvent{text("Gr")}, []*streamedEvent{text("G"), text("r"), text("az")}, "az"},
		"other answer":          {[]*streamedEvent{text("Wien")}, []*streamedEvent{text("Graz"), text(".")}, "Graz,."},
		"the same event again":  {[]*streamedEvent{start}, []*streamedEvent{start, start}, "start"},
		"text of another row":   {[]*streamedEvent{text("Graz")}, []*streamedEvent{{Event: steps.Event{Kind: steps.EventText, Step: "say", Row: 2, Text: "Graz"}}}, "Graz"},
		"reasoning is no text":  {[]*streamedEvent{text("Graz")}, []*streamedEvent{{Event: steps.Event{Kind: steps.EventReasoning, Step: "say", Row: 1, Text: "Graz"}}}, "Graz"},
		"commentary again":      {[]*streamedEvent{comment, text("Graz")}, []*streamedEvent{comment, text("Graz")}, "I look."},
		"a request":             {[]*streamedEvent{{Requests: []streamedRequest{{Kind: durable.Approval}}}}, []*streamedEvent{{Requests: []streamedRequest{{Kind: durable.Approval}}}, start}, "start"},
		"a text without a rest": {[]*streamedEvent{text("Graz")}, []*streamedEvent{text("Graz")}, ""},
	} {
		var seen seenEvents
		for _, ev := range c.before {
			seen.add(ev)
		}
		var got []string
		for _, ev := range c.now {
			one := *ev
			if !seen.takeNew(&one) {
				continue
			}
			if one.Event.Kind == steps.EventStepStart {
				one.Event.Text = "start"
			}
			got = append(got, one.Event.Text)
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// stored returns the events that the attempts of a chunk have stored, one a line.
func stored(t *testing.T, w *chunkRunner, in task) string {
	t.Helper()
	var lines strings.Builder
	for n := 0; ; n++ {
		var part streamed
		if w.blobs.read(t.Context(), eventsName(in.Run, 0, 0, n), &part) != nil {
			return lines.String()
		}
		for _, ev := range part.Events {
			for _, r := range ev.Requests {
				fmt.Fprintln(&lines, "request", r.Kind, r.Tool.ID, string(r.Args))
			}
			if ev.Requests == nil && ev.Event.Kind != steps.EventUsage {
				fmt.Fprintln(&lines, strings.TrimSpace(fmt.Sprint(ev.Event.Kind, " ", ev.Event.Tool)), ev.Err)
			}
		}
	}
}

// TestChunk_Published: a chunk of a server stores what happens once, although it is repeated after each answer.
func TestChunk_Published(t *testing.T) {
	w, _, in := openDesk(t)
	flow, err := w.app.Flow("main")
	testkit.Must(t, err)
	start, err := runs.EncodeStart(&runs.Start{App: w.app, Flow: flow, Owner: "ada", Session: "s", Events: true})
	testkit.Must(t, err)
	at, err := w.blobs.writePlace(t.Context(), "request", servedRequest{Start: start})
	testkit.Must(t, err)
	in.MayWait, in.Request = true, &at
	waits, err := attempt(t, w, in, nil)
	testkit.Must(t, err)
	made, in := answered(t, w, in, waits, durable.Answer{Approved: true})
	made, _ = answered(t, w, in, made, durable.Answer{Error: "no position"})
	if text := resultOf(t, w, made); !strings.Contains(text, "no position") {
		t.Errorf("got %q", text)
	}
	want := strings.Join([]string{
		"step-start ", "tool-call lookup ", "tool-result lookup ",
		"tool-call refund ", `request approval refund {"order":"7"}`, "tool-result refund ",
		"tool-call locate ", "request client_tool locate {}", "tool-result locate tool locate: no position",
		"text ", "step-end ", "", // a whole answer is one part
	}, "\n")
	if diff := cmp.Diff(want, stored(t, w, in)); diff != "" {
		t.Error(diff)
	}
}

const answersDocument = `id: answers
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "URL/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, inputs: [text], outputs: [answer]}]
`

// TestChunk_RetryFailed: only the failed rows of a finished chunk run again, and the output has all in order. It is
// the same whether the earlier output is a blob or not.
func TestChunk_RetryFailed(t *testing.T) {
	for _, inline := range []bool{true, false} {
		t.Run(fmt.Sprint(inline), func(t *testing.T) {
			fails := true
			var mu sync.Mutex
			calls := map[string]int{}
			w, in := openChunk(t, answersDocument, modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
				mu.Lock()
				defer mu.Unlock()
				last := messages[len(messages)-1].Content
				if calls[last]++; fails && last == "two" {
					return "", http.StatusBadRequest
				}
				return "answer to " + last, 0
			}), "one", "two", "three")
			if !inline {
				in.Max = 0
			}
			made, err := attempt(t, w, in, nil)
			if err != nil || made.Rows != 3 || made.Failed != 1 {
				t.Fatalf("%+v, %v", made, err)
			}
			fails, in.Retry, in.Earlier, in.Resumed = false, 1, made.Output, true
			for range 2 { // the second time there is the output of the first
				made, err = attempt(t, w, in, nil)
				if err != nil || made.Rows != 3 || made.Failed != 0 {
					t.Fatalf("%+v, %v", made, err)
				}
				if inline {
					break
				}
			}
			out := &output{}
			if inline {
				testkit.Must(t, decode(made.Output, out))
			} else {
				testkit.Must(t, w.blobs.read(t.Context(), outputName(in.folder(), 0, 0), out))
			}
			codec, err := w.app.NewRowCodec("main")
			testkit.Must(t, err)
			var got []string
			for _, data := range out.Results {
				res, err := codec.DecodeResult(data)
				testkit.Must(t, err)
				text, _ := res.Get("answer")
				got = append(got, fmt.Sprintf("%d %v", res.Number, text))
			}
			if diff := cmp.Diff([]string{"1 answer to one", "2 answer to two", "3 answer to three"}, got); diff != "" {
				t.Error(diff)
			}
			if raw, _ := json.Marshal(calls); string(raw) != `{"one":1,"three":1,"two":2}` {
				t.Errorf("calls of the model: %s", raw)
			}
		})
	}
}
