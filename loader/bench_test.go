package loader_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
)

func BenchmarkLoad5000Lines(b *testing.B) {
	text := []byte(testkit.LargeDocument(5000, "Be brief. ${QTYPE_BENCH:-}"))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, list := loader.LoadBytes(b.Context(), "large.yaml", text, loader.Options{Lookup: noEnv, NoDotEnv: true}); len(list) > 0 {
			b.Fatal(list)
		}
	}
}

func BenchmarkLoadSmall(b *testing.B) {
	text := []byte("id: app\ndescription: small\nmemories:\n  - id: chat_memory\n")
	b.ReportAllocs()
	for b.Loop() {
		loader.LoadBytes(b.Context(), "small.yaml", text, loader.Options{Lookup: noEnv, NoDotEnv: true})
	}
}
