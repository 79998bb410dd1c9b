package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// TestProgress_ManyResults: rows of the input are counted, not results.
func TestProgress_ManyResults(t *testing.T) {
	if !makesManyRows(&spec.Flow{Steps: []*spec.StepItem{{Step: &spec.Explode{}}}}) || makesManyRows(&spec.Flow{Steps: []*spec.StepItem{{Step: &spec.Echo{}}}}) {
		t.Error("an Explode makes many rows, an Echo does not")
	}
	p := new(runtime.Progress)
	p.Set(2, 2_000, 1, []runtime.StepProgress{{Step: "split", In: 2}, {Step: "read", In: 2_000}})
	for many, want := range map[bool]string{true: "2 of 4 rows, 2,000 results, ", false: "2000 of 4 rows, "} {
		m := &progressBars{progress: p, total: 4, begin: time.Now().Add(-time.Second), manyResults: many}
		if got := m.line(); !strings.HasPrefix(got, want) || !strings.Contains(got, "1 failed") || strings.Contains(got, "eta") != many {
			t.Errorf("many results %t: %q", many, got)
		}
	}
}

// TestProgressEvent_Line: the line has what a person wants to know of a run that takes hours.
func TestProgressEvent_Line(t *testing.T) {
	at := time.Date(2026, 11, 29, 10, 40, 0, 0, time.Local)
	ev := ProgressEvent{Status: waves.Status{Wave: 2, Batches: 5, Expected: at, Open: []waves.OpenBatch{{State: "in_progress", Calls: 50_000}, {Calls: 1}, {State: "in_progress", Calls: 1}}}, RowsDone: 1200, RowsLeft: 800, Cost: 1.5, Saved: 1.5}
	want := "wave 2 · 3 batches open (1, 2 in_progress) · 50,002 calls wait · 1,200 of 2,000 rows done · cost 1.5, saved 1.5 · 12 min 0 s · expected 10:40:00"
	if got := ev.line(12 * time.Minute); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
