package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// checkDocument writes a document of 500 steps in about 5,000 lines.
func checkDocument(tb testing.TB) string {
	tb.Helper()
	const steps = 500
	var b strings.Builder
	b.WriteString("id: big_app\nflows:\n  - type: Flow\n    id: main\n    variables:\n")
	for i := range steps + 1 {
		fmt.Fprintf(&b, "      - id: v%d\n        type: text\n", i)
	}
	fmt.Fprintf(&b, "    inputs: [v0]\n    outputs: [v%d]\n    steps:\n", steps)
	for i := range steps {
		fmt.Fprintf(&b, "      - type: PromptTemplate\n        id: step_%d\n        template: |\n          Step %d of many.\n          Say {v%d} again.\n"+
			"        inputs:\n          - v%d\n        outputs:\n          - v%d\n", i, i, i, i, i+1)
	}
	return testkit.WriteFile(tb, "big.qtype.yaml", b.String())
}

func TestCountDiagnostics(t *testing.T) {
	text := "id: app\nmemories:\n  - id: unused\nflows:\n  - id: main\n    inputs: [no_such]\n    steps: []\n"
	path := testkit.WriteFile(t, "app.qtype.yaml", text)
	_, diagnostics := qtype.Check(context.Background(), path)
	if errors, warnings := countDiagnostics(diagnostics); errors == 0 || warnings == 0 {
		t.Errorf("%d errors, %d warnings: %v", errors, warnings, diagnostics)
	}
}

// BenchmarkCheckFile is the workload W4.
func BenchmarkCheckFile(b *testing.B) {
	path := checkDocument(b)
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		if _, diagnostics := qtype.Check(context.Background(), path); len(diagnostics) > 0 {
			b.Fatal(diagnostics)
		}
	}
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
}
