package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

const root = "../../.."

// TestPage: the table and the picture of docs/benchmarks.md agree with the figures.
func TestPage(t *testing.T) {
	all, err := readFigures(filepath.Join(root, figuresFile))
	testkit.Must(t, err)
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	testkit.Must(t, err)
	want, err := all.updated(string(page))
	testkit.Must(t, err)
	picture, err := os.ReadFile(filepath.Join(root, pictureFile))
	testkit.Must(t, err)
	if want != string(page) || all.picture() != string(picture) {
		t.Error("run: go run ./distribution/bench/compare page")
	}
}

// TestWorkloads: each workload has a place in the figures, and each hand-written program runs.
func TestWorkloads(t *testing.T) {
	all, err := readFigures(filepath.Join(root, figuresFile))
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	testkit.Must(t, writeLines("rows.jsonl", 1, func(int) any { return rowInput{"a", "b", `["c"]`} }))
	testkit.Must(t, writeLines("messages.jsonl", 1, func(int) any { return note{"user", "hello"} }))
	testkit.Must(t, os.WriteFile("steps.qtype.yaml", []byte(manySteps()), 0o600))
	for _, w := range workloads(programs{qtype: "qtype", bench: "bench"}) {
		if all.find(w.id) == nil || (all.find(w.id).Limit != "") != (w.limit != nil) {
			t.Errorf("%s: the figures do not agree with the workload", w.id)
		}
		if w.limit != nil {
			testkit.Must(t, runLimit(w.limit[0], w.limit[1:]))
		}
	}
	out, err := os.ReadFile("limit.jsonl")
	testkit.Must(t, err)
	if want := `{"row":1,"out":"user=a q=b items=[\"c\"]"}` + "\n"; string(out) != want {
		t.Errorf("got %s, want %s", out, want)
	}
}

func TestMeasure(t *testing.T) {
	all := &figures{Workloads: []*figure{{ID: "rows", What: "rows", Section: "#rows", Unit: "row", Limit: "a loop", Peer: &peer{"another", 4}}}}
	f := all.Workloads[0]
	testkit.Must(t, all.measure(workload{id: "rows", operations: 2, qtype: []string{os.Args[0], "-test.run=^$"}}, t.TempDir(), 3))
	if len(f.CPU["qtype"]) != 3 || f.CPU["limit"] != nil {
		t.Errorf("got %v", f.CPU)
	}
	f.CPU = map[string][]float64{"limit": {10, 20, 10}, "qtype": {20, 20, 30}}
	if got, want := all.table(), "| [rows](#rows), a row | 10000.0 µs, 2.00 | 4.00 times qtype (another) | 5000.0 µs (a loop) |\n"; got[len(got)-len(want):] != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := start([]string{"run", "-rounds", "0"}); err == nil {
		t.Error("run without programs succeeded")
	}
}
