package servers_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// remembering is an application with a memory in a store.
const remembering = `id: app
memories: [{id: recent, store: "%s"}]
models: [{type: Model, id: writer, provider: mock, rules: [{text: Good morning.}]}]
flows:
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, inputs: [message], outputs: [answer], model: writer, memory: recent}]
`

// TestStore_Locations: a conversation continues in the server that the document names.
func TestStore_Locations(t *testing.T) {
	server, err := servertest.Redis()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, server.Close()) }()
	address := "redis://" + server.Address() + "/0"
	t.Chdir(t.TempDir())
	path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(remembering, address))
	for n, opts := range [][]qtype.Option{nil, nil, {qtype.WithEphemeral()}} {
		app, err := qtype.Open(withStores(t.Context()), path, opts...)
		testkit.Must(t, err)
		rows := []runtime.Input{{Session: "s", Values: map[string]any{"message": "hello"}}}
		for row, err := range app.Run(t.Context(), "main", slices.Values(rows)) {
			if err != nil || row.Err != nil {
				t.Fatal(err, row.Err)
			}
		}
		sessions, err := app.Memory("recent").Sessions(t.Context())
		testkit.Must(t, err)
		location, messages := address, int64(2*n+2)
		if opts != nil {
			location, messages = "this process", 2
		}
		if got := app.StoreLocation("recent"); len(sessions) != 1 || sessions[0].Messages != messages || got != location {
			t.Errorf("run %d: %v in %s, want %d messages in %s", n+1, sessions, got, messages, location)
		}
		testkit.Must(t, app.Close(t.Context()))
	}
	if created, err := filepath.Glob("*"); err != nil || len(created) > 0 {
		t.Errorf("created %q, %v", created, err)
	}
}

// TestStore_Refused: the error of a server that is not there has no credentials.
func TestStore_Refused(t *testing.T) {
	path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(remembering, "redis://:s3cret@127.0.0.1:1/0"))
	app, err := qtype.Open(withStores(t.Context()), path)
	testkit.Must(t, err)
	defer func() { _ = app.Close(t.Context()) }()
	_, err = app.Memory("recent").Sessions(t.Context())
	if err == nil || !strings.Contains(err.Error(), "redis://127.0.0.1:1/0: cannot connect") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}
