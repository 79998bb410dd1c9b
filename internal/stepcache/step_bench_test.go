package stepcache

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// echo is a step that only copies its input, so that the cost of the cache is measured.
type echo struct{}

func (echo) Process(_ context.Context, row *steps.Row, emit steps.Emit) error {
	row.Values[1] = row.Values[0]
	return emit(row)
}

func benchmarkStep(b *testing.B, text func(i int) string) {
	cache := NewCache(b.TempDir(), nil)
	step := NewStep(echo{}, StepConfig{Cache: cache, Scope: Scope{Step: "echo", Version: "1"}, Policy: Policy{MaxBytes: 1 << 30},
		Fingerprint: make([]byte, 32), Inputs: Ports{[]string{"in"}, []int{0}}, Outputs: Ports{[]string{"out"}, []int{1}},
		Hits: &atomic.Int64{}, Misses: &atomic.Int64{}})
	out := func(*steps.Row) error { return nil }
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		row := &steps.Row{Values: []any{text(i), any(value.Unset)}}
		if err := step.Process(b.Context(), row, out); err != nil {
			b.Fatal(err)
		}
	}
	if err := cache.Close(); err != nil {
		b.Error(err)
	}
}

func BenchmarkStepHit(b *testing.B) { benchmarkStep(b, func(int) string { return "the same text" }) }
func BenchmarkStepMiss(b *testing.B) {
	benchmarkStep(b, func(i int) string { return fmt.Sprint("text ", i) })
}
