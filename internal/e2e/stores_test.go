package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryDocument returns a document with a memory; stores and memory are inserted in it.
func memoryDocument(stores, memory string) string {
	return fmt.Sprintf(`id: app
%s
memories:
  - {id: recent%s}
models:
  - {type: Model, id: writer, provider: mock, rules: [{text: Good morning.}]}
flows:
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, inputs: [message], outputs: [answer], model: writer, memory: recent}]
`, stores, memory)
}

// chatOnce opens an application and runs one row of session s. It returns how many
// messages the memory then holds, and its location.
func chatOnce(t *testing.T, path string, opts ...qtype.Option) (messages int64, location string) {
	t.Helper()
	app, err := qtype.Open(t.Context(), path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := app.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	rows := []runtime.Input{{Session: "s", Values: map[string]any{"message": "hello"}}}
	for row, err := range app.Run(t.Context(), "main", slices.Values(rows)) {
		if err != nil || row.Err != nil {
			t.Fatal(err, row.Err)
		}
	}
	sessions, err := app.Memory("recent").Sessions(t.Context())
	if err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	return sessions[0].Messages, app.StoreLocation("recent")
}

// TestStore_Locations: a conversation continues in the store that the document names.
func TestStore_Locations(t *testing.T) {
	for _, test := range []struct{ name, stores, memory, location, file string }{
		{"default", "", "", qtype.DefaultStore, qtype.DefaultStore},
		{"first store", "stores: [{id: one, type: sqlite, url: deep/one.db}, {id: two, type: sqlite, url: two.db}]", "", "deep/one.db", "deep/one.db"},
		{"named store", "stores: [{id: one, type: sqlite, url: deep/one.db}, {id: two, type: sqlite, url: two.db}]", ", store: two", "two.db", "two.db"},
		{"file", "", `, store: "sqlite:three.db"`, "three.db", "three.db"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			path := "app.qtype.yaml"
			if err := os.WriteFile(path, []byte(memoryDocument(test.stores, test.memory)), 0o600); err != nil {
				t.Fatal(err)
			}
			if n, location := chatOnce(t, path); n != 2 || location != test.location {
				t.Errorf("%d messages in %s, want 2 in %s", n, location, test.location)
			}
			if n, _ := chatOnce(t, path); n != 4 {
				t.Errorf("%d messages after the second run, want 4", n)
			}
			if n, location := chatOnce(t, path, qtype.WithEphemeral()); n != 2 || location != "this process" {
				t.Errorf("%d messages in %s, want 2 in this process", n, location)
			}
			var created []string
			err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
				if strings.HasSuffix(path, ".db") {
					created = append(created, path)
				}
				return err
			})
			if err != nil || strings.Join(created, " ") != test.file {
				t.Errorf("created %q, %v", created, err)
			}
		})
	}
	t.Run("in process", func(t *testing.T) {
		t.Chdir(t.TempDir())
		path := writeFile(t, memoryDocument("stores: [{id: one, type: memory}]", ""))
		for range 2 {
			if n, location := chatOnce(t, path); n != 2 || location != "this process" {
				t.Errorf("%d messages in %s", n, location)
			}
		}
	})
}
