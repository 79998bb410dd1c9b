package qtype_test

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

const hello = `
id: hello
memories:
  - {id: chat_memory}
models:
  - {type: Model, id: assistant, provider: mock, rules: [{match: '(\w+)[.]$', text: "Hello, $1!"}]}
flows:
  - id: talk
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: respond, model: assistant, memory: chat_memory, inputs: [question], outputs: [answer]}
`

// talk opens hello.qtype.yaml and runs its flow on one row.
func talk(ctx context.Context) error {
	app, err := qtype.Open(ctx, "hello.qtype.yaml")
	if err != nil {
		return err // all errors of the document
	}
	defer app.Close(ctx)

	question := runtime.Input{Session: "me", Values: map[string]any{"question": "My name is Ada."}}
	for row, err := range app.Run(ctx, "talk", slices.Values([]runtime.Input{question})) {
		if err != nil {
			return err // the run cannot continue
		}
		if row.Err != nil {
			return row.Err // this row failed
		}
		answer, _ := row.Get("answer")
		fmt.Println(value.Text(answer))
	}
	window, err := app.Memory("chat_memory").Window(ctx, "me")
	if err != nil {
		return err
	}
	fmt.Println(len(window.Entries), "messages in the window")
	return nil
}

func Example() {
	folder, err := os.MkdirTemp("", "qtype")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	if err := os.Chdir(folder); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile("hello.qtype.yaml", []byte(hello), 0o600); err != nil {
		fmt.Println(err)
	}
	if err := talk(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Hello, Ada!
	// 2 messages in the window
}
