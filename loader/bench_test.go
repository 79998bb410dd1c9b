package loader_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
)

// large returns an application of about the given number of lines.
func large(lines int) string {
	var b strings.Builder
	b.WriteString("id: large\nmemories:\n  - id: chat_memory\n    token_limit: 50000\nmodels:\n  - type: Model\n    id: small\n    provider: mock\nflows:\n")
	for flow := 0; strings.Count(b.String(), "\n") < lines; flow++ {
		fmt.Fprintf(&b, "  - id: flow_%d\n    variables:\n      - id: question\n        type: text\n      - {id: answer, type: text}\n    inputs: [question]\n    outputs: [answer]\n    steps:\n", flow)
		for step := range 8 {
			fmt.Fprintf(&b, "      - type: LLMInference\n        id: step_%d_%d\n        model: small\n        memory: chat_memory\n        system_message: |\n          You answer for a bookshop.\n          Be brief. ${QTYPE_BENCH:-}\n        inputs: [question]\n        outputs:\n          - answer\n", flow, step)
		}
	}
	return b.String()
}

func BenchmarkLoad5000Lines(b *testing.B) {
	text := []byte(large(5000))
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
