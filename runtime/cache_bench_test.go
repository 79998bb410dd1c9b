package runtime

import (
	"context"
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// echo is a step that does nothing: what is left is what the cache costs.
type echo struct{}

func (echo) Process(_ context.Context, row *steps.Row, emit steps.Emit) error {
	row.Values[1] = row.Values[0]
	return emit(row)
}

func cachedEcho(b *testing.B) *cachedStep {
	b.Helper()
	a := &App{}
	c := &cachedStep{step: echo{}, count: &counter{}, cache: a.cacheOf(b.TempDir()), scope: stepcache.Scope{Step: "echo", Version: "1"},
		policy: stepcache.Policy{MaxBytes: 1 << 30}, fingerprint: make([]byte, 32), inputs: ports{[]string{"in"}, []int{0}}, outputs: ports{[]string{"out"}, []int{1}}}
	b.Cleanup(func() {
		if err := a.closeCaches(); err != nil {
			b.Error(err)
		}
	})
	return c
}

func benchmarkCache(b *testing.B, text func(i int) string) {
	c := cachedEcho(b)
	out := func(*steps.Row) error { return nil }
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		row := &steps.Row{Values: []any{text(i), any(value.Unset)}}
		if err := c.Process(b.Context(), row, out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCacheHit(b *testing.B) { benchmarkCache(b, func(int) string { return "the same text" }) }
func BenchmarkCacheMiss(b *testing.B) {
	benchmarkCache(b, func(i int) string { return fmt.Sprint("text ", i) })
}
