package testkit

import (
	"fmt"
	"strings"
)

// LargeDocument returns an application of about a number of lines. brief is a line of each of its
// system messages.
func LargeDocument(lines int, brief string) string {
	var b strings.Builder
	b.WriteString("id: large\nmemories:\n  - id: chat_memory\n    token_limit: 50000\nmodels:\n  - type: Model\n    id: small\n    provider: mock\n    rules: [{echo: true}]\nflows:\n")
	for flow := 0; strings.Count(b.String(), "\n") < lines; flow++ {
		fmt.Fprintf(&b, "  - id: flow_%d\n    variables:\n      - id: question\n        type: text\n      - {id: answer, type: text}\n    inputs: [question]\n    outputs: [answer]\n    steps:\n", flow)
		for step := range 8 {
			fmt.Fprintf(&b, "      - type: LLMInference\n        id: step_%d_%d\n        model: small\n        memory: chat_memory\n        system_message: |\n          You answer for a bookshop.\n          %s\n        inputs: [question]\n        outputs:\n          - answer\n", flow, step, brief)
		}
	}
	return b.String()
}

// AliasBomb returns a document whose aliases expand to ten to the power of levels values.
func AliasBomb(levels int) string {
	var b strings.Builder
	b.WriteString("id: shop\nmodels:\n- {id: m, type: Model, provider: openai, inference_params: {\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, ",\n  a%d: &a%d [%s]", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String() + "}}\n"
}
