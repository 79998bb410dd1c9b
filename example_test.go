package qtype_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	if err := inFolder(func() error { return talk(context.Background()) }); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Hello, Ada!
	// 2 messages in the window
}

// serveHello serves hello.qtype.yaml below /assistant/ of a Go program.
func serveHello(ctx context.Context) error {
	app, err := qtype.Open(ctx, "hello.qtype.yaml", qtype.WithEphemeral())
	if err != nil {
		return err
	}
	defer app.Close(ctx)
	handler := qtype.Handler(app, qtype.HandlerOptions{})
	defer handler.Shutdown(ctx)

	mux := http.NewServeMux()
	mux.Handle("/assistant/", http.StripPrefix("/assistant", handler))
	server := httptest.NewServer(mux) // or http.ListenAndServe
	defer server.Close()

	resp, err := http.Get(server.URL + "/assistant/healthz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

func ExampleHandler() {
	if err := inFolder(func() error { return serveHello(context.Background()) }); err != nil {
		fmt.Println(err)
	}
	// Output: {"status":"ok"}
}

// inFolder calls f in a new folder with hello.qtype.yaml.
func inFolder(f func() error) error {
	folder, err := os.MkdirTemp("", "qtype")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.Chdir(folder); err != nil {
		return err
	}
	if err := os.WriteFile("hello.qtype.yaml", []byte(hello), 0o600); err != nil {
		return err
	}
	return f()
}
