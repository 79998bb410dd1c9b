package telemetry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// collectRows returns a collector, and what it has passed on as one text for each call.
func collectRows() (c *telemetry.RowCollector, passed func() []string) {
	var all []string
	c = telemetry.NewRowCollector(func(r *telemetry.RowSpans) {
		all = append(all, fmt.Sprintf("run %d row %d: %s", r.Run, r.Row, strings.Join(strings.Fields(lines(outline(r.Spans))), " ")))
	})
	return c, func() []string { return all }
}

// TestRowCollector_PassesRowsOn: a row is passed on when the next one has come out, so that a
// long run holds few of them, and a row that failed is, too.
func TestRowCollector_PassesRowsOn(t *testing.T) {
	app := open(t, withEmbedder(assistant))
	c, passed := collectRows()
	var rows []runtime.Input
	for i, city := range []string{"Bonn", "Rome", "Oslo"} {
		rows = append(rows, runtime.Input{Values: map[string]any{"city": city}, Number: int64(i + 1)})
	}
	for res, err := range app.Run(steps.WithObserver(t.Context(), c), "forecast", slices.Values(rows)) {
		testkit.Must(t, err)
		c.RowDone(res.Number)
		if got := int64(len(passed())); got != res.Number-1 {
			t.Errorf("after row %d, %d rows were passed on", res.Number, got)
		}
	}
	c.Close()
	want := []string{"run 1 row 1: step write_report", "run 1 row 2: step write_report", "run 1 row 3: step write_report", "run 1 row 0: flow forecast"}
	if got := passed(); !slices.Equal(got, want) {
		t.Errorf("got\n%s", lines(got))
	}
}

// TestRowCollector_WithRecorder: a recorder and a collector of one run have the same spans.
func TestRowCollector_WithRecorder(t *testing.T) {
	app, recorder := open(t, withEmbedder(assistant)), telemetry.NewRecorder(1, 1<<20)
	var spans []telemetry.Span
	c := telemetry.NewRowCollector(func(r *telemetry.RowSpans) { spans = append(spans, r.Spans...) })
	run(steps.WithObserver(recorder.Context(t.Context(), "r"), c), t, app, "talk", "question", "Weather?")
	recorded, _, _ := recorder.Spans("r")
	got := append(slices.Clone(spans[len(spans)-1:]), spans[:len(spans)-1]...) // the flow comes last
	if !slices.Equal(outline(got), outline(recorded)) {
		t.Errorf("collected\n%s\nrecorded\n%s", lines(outline(got)), lines(outline(recorded)))
	}
}

// TestRowCollector_Cache: a row whose results are from a cache is a span, also in the trace of a server.
func TestRowCollector_Cache(t *testing.T) {
	t.Chdir(t.TempDir()) // for the cache
	app := open(t, strings.Replace(withEmbedder(assistant), "inputs: [city], outputs: [report]}", "inputs: [city], outputs: [report], cache_config: {namespace: "+t.Name()+"}}", 1))
	recorder := telemetry.NewRecorder(1, 1<<20)
	run(recorder.Context(t.Context(), "r"), t, app, "forecast", "city", "Bonn", "Bonn")
	spans, _, _ := recorder.Spans("r")
	var cached []any
	for _, s := range spans {
		cached = append(cached, s.Attributes["cached"])
	}
	if !slices.Equal(cached, []any{nil, nil, true}) || string(spans[2].Output) != `{"report":"Sun in Bonn"}` || string(spans[2].Input) != `{"city":"Bonn"}` {
		t.Errorf("got %v %s", cached, spans[2].Output)
	}
}

// TestRowCollector_Batches: a batch is passed on separately, and so are the rows made of it.
func TestRowCollector_Batches(t *testing.T) {
	app := open(t, `
id: app
flows:
  - id: main
    variables: [{id: x, type: text}, {id: all, type: "list[text]"}, {id: n, type: text}]
    inputs: [x]
    outputs: [n]
    steps:
      - {type: Collect, id: gather, inputs: [x], outputs: [all], batch_config: {batch_size: 2}}
      - {type: PromptTemplate, id: write, template: "{all}", inputs: [all], outputs: [n]}
`)
	c, passed := collectRows()
	for res, err := range app.Run(steps.WithObserver(t.Context(), c), "main", slices.Values([]runtime.Input{{Values: map[string]any{"x": "a"}}, {Values: map[string]any{"x": "b"}}, {Values: map[string]any{"x": "c"}}})) {
		testkit.Must(t, err)
		c.RowDone(res.Number)
	}
	c.Close()
	want := []string{"run 1 row 0: flow main", "run 1 row 0: step gather", "run 1 row 0: step gather", "run 1 row 0: step write", "run 1 row 3: step write"}
	if got := slices.Sorted(slices.Values(passed())); !slices.Equal(got, want) { // the last batch is of one row
		t.Errorf("got\n%s", lines(got))
	}
}

// TestRowCollector_Canceled: Close passes on what has not ended.
func TestRowCollector_Canceled(t *testing.T) {
	c, passed := collectRows()
	span := c.Start(context.Background(), &steps.Operation{Kind: steps.OperationFlow, ID: "main"})
	c.Start(span.Context(context.Background()), &steps.Operation{Kind: steps.OperationRow, ID: "ask", Row: 7})
	c.Close()
	if got := lines(passed()); got != "run 1 row 7: step ask\nrun 1 row 0: flow main" {
		t.Errorf("got\n%s", got)
	}
}
