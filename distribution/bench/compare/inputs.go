package main

import (
	_ "embed" // for the documents
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// The documents of the workloads with rows.
//
//go:embed testdata/rows.qtype.yaml
var rowsDocument string

//go:embed testdata/chat.qtype.yaml
var chatDocument string

//go:embed testdata/memory.qtype.yaml
var memoryDocument string

// writeInputs writes the inputs of all workloads, always the same ones.
func writeInputs(folder string) error {
	random := rand.New(rand.NewPCG(1, 2))
	for name, text := range map[string]string{
		"rows.qtype.yaml": rowsDocument, "chat.qtype.yaml": chatDocument, "memory.qtype.yaml": memoryDocument, "steps.qtype.yaml": manySteps(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		name  string
		lines int
		line  func(i int) any
	}{
		{"rows.jsonl", rows, func(int) any { return row(random) }},
		{"chat.jsonl", chatRows, func(i int) any {
			return map[string]string{"question": text(random, 12), "session": fmt.Sprint("s", i%2000)}
		}},
		{"messages.jsonl", messages, func(i int) any {
			return map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text(random, 10+random.IntN(40))}
		}},
	} {
		if err := writeLines(filepath.Join(folder, file.name), file.lines, file.line); err != nil {
			return err
		}
	}
	return nil
}

// writeLines writes n values as JSON lines.
func writeLines(path string, n int, line func(i int) any) error {
	var b strings.Builder
	out := json.NewEncoder(&b)
	for i := range n {
		if err := out.Encode(line(i)); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// rowInput is a row of the workload rows; items is a list as JSON text.
type rowInput struct {
	Name  string `json:"name"`
	Q     string `json:"q"`
	Items string `json:"items"`
}

func row(random *rand.Rand) rowInput {
	items := make([]string, 10)
	for i := range items {
		items[i] = text(random, 2)
	}
	list, _ := json.Marshal(items) // texts only
	return rowInput{Name: text(random, 2), Q: text(random, 12), Items: string(list)}
}

// text returns a text of n words.
func text(random *rand.Rand, n int) string {
	vocabulary := strings.Fields("the account balance of a customer who wanted a refund was not yet known and so an answer could take two days")
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[random.IntN(len(vocabulary))]
	}
	return strings.Join(words, " ")
}

// manySteps returns a document of about 5,000 lines.
func manySteps() string {
	var b strings.Builder
	b.WriteString("id: steps\nflows:\n  - type: Flow\n    id: main\n    variables:\n")
	for i := range steps + 1 {
		fmt.Fprintf(&b, "      - id: v%d\n        type: text\n", i)
	}
	fmt.Fprintf(&b, "    inputs: [v0]\n    outputs: [v%d]\n    steps:\n", steps)
	for i := range steps {
		fmt.Fprintf(&b, "      - type: PromptTemplate\n        id: step_%d\n        template: |\n          Step %d of many.\n          Say {v%d} again.\n"+
			"        inputs:\n          - v%d\n        outputs:\n          - v%d\n", i, i, i, i, i+1)
	}
	return b.String()
}
