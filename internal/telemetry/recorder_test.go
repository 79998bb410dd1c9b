package telemetry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/telemetry"
)

// outline describes recorded spans as a tree.
func outline(spans []telemetry.Span) []string {
	depth := map[string]int{}
	var all []string
	for _, s := range spans {
		if s.Parent != "" {
			depth[s.ID] = depth[s.Parent] + 1
		}
		line := fmt.Sprintf("%s%s %s", strings.Repeat("  ", depth[s.ID]), s.Kind, s.Name)
		if s.Error != "" {
			line += " failed"
		}
		all = append(all, line)
	}
	return all
}

func TestRecorder_Spans(t *testing.T) {
	app, recorder := open(t, withEmbedder(assistant)), telemetry.NewRecorder(10, 1<<20)
	results := run(recorder.Context(t.Context(), "r1"), t, app, "talk", "question", "Weather?")
	spans, complete, ok := recorder.Spans("r1")
	if !complete || !ok {
		t.Fatal(complete, ok)
	}
	want := `flow talk
  step respond
    memory notes
      model broken failed
      model spare
      tool weather_tool
        flow forecast
          step write_report
      model broken failed
      model spare`
	if got := lines(outline(spans)); got != want {
		t.Errorf("got\n%s", got)
	}
	if id := results[0].Trace; id == nil || id.Span != spans[0].ID || id.Trace != spans[0].Attributes["trace_id"] {
		t.Errorf("the result has the id %v, the span %s", id, spans[0].ID)
	}
	answer := spans[len(spans)-1]
	if answer.Tokens == nil || answer.Cost == nil || *answer.Cost <= 0 || answer.Step != "respond" || answer.Attributes["finish_reason"] != "stop" ||
		!strings.Contains(string(answer.Input), "Be kind.") || !strings.Contains(string(answer.Output), "It is sunny.") {
		t.Errorf("the last call is %+v", answer)
	}
	if tool := spans[5]; string(tool.Input) != `{"city":"Bonn"}` || string(tool.Output) != `{"report":"Sun in Bonn"}` {
		t.Errorf("the tool has the input %s and the output %s", tool.Input, tool.Output)
	}
	for _, s := range spans {
		if s.End == nil || s.End.Before(s.Start) {
			t.Errorf("%s %s ends at %v", s.Kind, s.Name, s.End)
		}
		if text, err := json.Marshal(s); err != nil || strings.Contains(string(text), "geheim") {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestRecorder_Limits(t *testing.T) {
	app, recorder := open(t, withEmbedder(assistant)), telemetry.NewRecorder(2, 1<<20)
	for i := range 3 {
		run(recorder.Context(t.Context(), fmt.Sprint(i)), t, app, "forecast", "city", "Bonn")
	}
	for i, want := range []bool{false, true, true} {
		if _, _, ok := recorder.Spans(fmt.Sprint(i)); ok != want {
			t.Errorf("run %d is recorded: %v", i, ok)
		}
	}
	recorder.Remove("1")
	if _, _, ok := recorder.Spans("1"); ok {
		t.Error("run 1 was not removed")
	}

	small := telemetry.NewRecorder(10, 20_000)
	for i := range 9 {
		run(small.Context(t.Context(), fmt.Sprint(i)), t, app, "forecast", "city", "Bonn")
	}
	if _, _, ok := small.Spans("0"); ok {
		t.Error("the size does not limit the number of runs")
	}
	if spans, complete, ok := small.Spans("8"); !ok || !complete || len(spans) != 2 {
		t.Errorf("the newest run: %v, %v, %v", spans, complete, ok)
	}
	run(small.Context(t.Context(), "large"), t, app, "forecast", "city", strings.Repeat("x", 10_000))
	spans, complete, ok := small.Spans("large")
	if complete || !ok || len(spans) != 1 {
		t.Errorf("a large run: %d spans, %v, %v", len(spans), complete, ok)
	}
}

func TestRecorder_RunningAndFailed(t *testing.T) {
	app, recorder := open(t, withEmbedder(assistant)), telemetry.NewRecorder(2, 1<<20)
	results := run(recorder.Context(t.Context(), "r"), t, app, "talk", "question", "fail")
	if results[0].Err == nil {
		t.Fatal("the row did not fail")
	}
	spans, _, _ := recorder.Spans("r")
	if got := lines(outline(spans)); !strings.Contains(got, "step respond failed") || !strings.Contains(got, "model spare failed") {
		t.Errorf("got\n%s", got)
	}
}
