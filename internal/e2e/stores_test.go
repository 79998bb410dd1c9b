package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory/storeurl"
	"github.com/qtype-dev/qtype/runtime"
)

// remembering is a document with a memory that has these further keys.
func remembering(stores, memory string) string {
	return fmt.Sprintf(`id: app
%s
memories:
  - {id: recent%s}
models:
  - {type: Model, id: writer, provider: mock, rules: [{text: Good morning.}]}
flows:
  - id: main
    variables: [{id: said, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [said]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, inputs: [said], outputs: [answer], model: writer, memory: recent}]
`, stores, memory)
}

// say opens an application, runs one row of session s and tells how many
// messages the memory holds then, and where.
func say(t *testing.T, path string, opts ...qtype.Option) (messages int64, place string) {
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
	rows := []runtime.Input{{Session: "s", Values: map[string]any{"said": "hello"}}}
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

// TestStores: a conversation goes on where the document says that it is kept.
func TestStores(t *testing.T) {
	server, err := servertest.Redis()
	servertest.Need(t, err)
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	storeurl.Quiet()
	redis := "redis://" + server.Address() + "/0"
	for _, test := range []struct{ name, stores, memory, place, file string }{
		{"nothing said", "", "", qtype.DefaultStore, qtype.DefaultStore},
		{"first store", "stores: [{id: one, type: sqlite, url: deep/one.db}, {id: two, type: sqlite, url: two.db}]", "", "deep/one.db", "deep/one.db"},
		{"named store", "stores: [{id: one, type: sqlite, url: deep/one.db}, {id: two, type: sqlite, url: two.db}]", ", store: two", "two.db", "two.db"},
		{"file", "", `, store: "sqlite:three.db"`, "three.db", "three.db"},
		{"server", "", `, store: "` + redis + `"`, redis, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			path := write(t, remembering(test.stores, test.memory))
			if n, place := say(t, path); n != 2 || place != test.place {
				t.Errorf("%d messages in %s, want 2 in %s", n, place, test.place)
			}
			if n, _ := say(t, path); n != 4 {
				t.Errorf("%d messages after another run, want 4", n)
			}
			if n, place := say(t, path, qtype.WithEphemeral()); n != 2 || place != "this process" {
				t.Errorf("%d messages in %s, want 2 in the process", n, place)
			}
			var made []string
			err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
				if strings.HasSuffix(path, ".db") {
					made = append(made, path)
				}
				return err
			})
			if err != nil || strings.Join(made, " ") != test.file {
				t.Errorf("made %q, %v", made, err)
			}
		})
	}
	t.Run("in process", func(t *testing.T) {
		t.Chdir(t.TempDir())
		path := write(t, remembering("stores: [{id: one, type: memory}]", ""))
		for range 2 {
			if n, place := say(t, path); n != 2 || place != "this process" {
				t.Errorf("%d messages in %s", n, place)
			}
		}
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Chdir(t.TempDir())
		path := write(t, remembering("", `, store: "redis://:s3cret@127.0.0.1:1/0"`))
		app, err := qtype.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = app.Close(t.Context()) }()
		_, err = app.Memory("recent").Sessions(t.Context())
		if err == nil || !strings.Contains(err.Error(), "redis://127.0.0.1:1/0: cannot connect") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
	})
}
