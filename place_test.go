package qtype_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// talkDocument has one memory; STORES is replaced by the stores that it declares.
const talkDocument = `id: ID
STORES
models: [{type: Model, id: m, provider: mock}]
memories: [{id: notes}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: notes, inputs: [question], outputs: [answer]}]
`

// askOnce writes a document and runs a turn of session s. It returns the messages of the
// session and the warnings.
func askOnce(t *testing.T, path, id, stores string, opts ...qtype.Option) (messages int, warnings string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Must(t, os.WriteFile(path, []byte(strings.NewReplacer("ID", id, "STORES", stores).Replace(talkDocument)), 0o600))
	app, err := qtype.Open(t.Context(), path, append(opts, qtype.WithWarnings(func(line string) { warnings += line + "\n" }))...)
	testkit.Must(t, err)
	defer func() { testkit.Must(t, app.Close(t.Context())) }()
	rows := slices.Values([]runtime.Input{{Session: "s", Values: map[string]any{"question": "hello"}}})
	for res, err := range app.Run(t.Context(), "talk", rows) {
		testkit.Must(t, err)
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	w, err := app.Memory("notes").Window(t.Context(), "s")
	testkit.Must(t, err)
	return len(w.Entries), warnings
}

// expectTalk runs a turn and checks the number of messages and the warning.
func expectTalk(t *testing.T, want int, warning, path string, opts ...qtype.Option) {
	t.Helper()
	got, warnings := askOnce(t, path, "app", "", opts...)
	if got != want || (warnings == "") != (warning == "") || !strings.Contains(warnings, warning) {
		t.Errorf("%s: got %d messages, want %d\n%s", path, got, want, warnings)
	}
}

// TestDefaultStore_Folder runs two documents with the same ids from one folder.
func TestDefaultStore_Folder(t *testing.T) {
	t.Setenv("QTYPE_HOME", "")
	t.Chdir(t.TempDir())
	expectTalk(t, 2, "", "a/app.qtype.yaml")
	expectTalk(t, 2, "", "b/app.qtype.yaml")
	expectTalk(t, 4, "", "a/app.qtype.yaml")
	for _, folder := range []string{"a", "b"} {
		if got := testkit.ReadFile(t, filepath.Join(folder, ".qtype", ".gitignore")); got != "*\n" {
			t.Errorf("%s: .gitignore is %q", folder, got)
		}
	}
	if _, err := os.Stat(".qtype"); err == nil {
		t.Error("the working directory has a store")
	}
}

// TestDefaultStore_Former continues conversations that earlier versions stored below the
// working directory.
func TestDefaultStore_Former(t *testing.T) {
	t.Setenv("QTYPE_HOME", "")
	t.Chdir(t.TempDir())
	former := qtype.WithDefaultStore("sqlite:.qtype/memory.db")
	expectTalk(t, 2, "", "a/app.qtype.yaml", former)
	expectTalk(t, 4, "where earlier versions stored them", "a/app.qtype.yaml")
	if n, warnings := askOnce(t, "b/app.qtype.yaml", "other", ""); n != 2 || warnings != "" {
		t.Errorf("another application has %d messages\n%s", n, warnings)
	}
	testkit.Must(t, os.MkdirAll("a/.qtype", 0o700))
	testkit.Must(t, os.Rename(".qtype/memory.db", "a/.qtype/memory.db"))
	expectTalk(t, 6, "", "a/app.qtype.yaml")
	expectTalk(t, 2, "", "a/app.qtype.yaml", former)
	expectTalk(t, 8, "has conversations of earlier versions, too", "a/app.qtype.yaml")
}

// TestDefaultStore_Links puts links to the conversations of another application into the folder
// of a document with its ids.
func TestDefaultStore_Links(t *testing.T) {
	t.Setenv("QTYPE_HOME", "")
	mine, working := t.TempDir(), t.TempDir()
	t.Chdir(working)
	expectTalk(t, 2, "", filepath.Join(mine, "app.qtype.yaml"))
	stored := func(name string) string { return filepath.Join(mine, ".qtype", name) }
	for name, c := range map[string]struct{ link, target string }{
		"folder":      {".qtype", stored("")},
		"file":        {".qtype/memory.db", stored("memory.db")},
		"no file yet": {".qtype/memory.db", stored("new.db")},
		"journal":     {".qtype/memory.db-wal", stored("new.wal")},
	} {
		for _, opts := range [][]qtype.Option{nil, {qtype.WithSandbox()}} {
			folder := t.TempDir()
			document, link := filepath.Join(folder, "app.qtype.yaml"), filepath.Join(folder, c.link)
			if c.link == ".qtype" {
				writeTalk(t, document)
			} else {
				expectTalk(t, 2, "", document)
				testkit.Must(t, os.RemoveAll(link))
			}
			testkit.Must(t, os.Symlink(c.target, link))
			app, err := qtype.Open(t.Context(), document, opts...)
			if err == nil {
				_, err = app.Memory("notes").Window(t.Context(), "s")
				testkit.Must(t, app.Close(t.Context()))
			}
			if err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("%s: got %v", name, err)
			}
			if _, err := os.Stat(c.target); err == nil && strings.Contains(c.target, "new") {
				t.Errorf("%s: %s was made", name, c.target)
			}
		}
	}
}

// writeTalk writes the document of askOnce.
func writeTalk(t *testing.T, path string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(strings.NewReplacer("ID", "app", "STORES", "").Replace(talkDocument)), 0o600))
}

// TestDefaultStore_FormerOfOthers runs a document that the user restricts in a folder in which
// another one, with its ids, has stored conversations.
func TestDefaultStore_FormerOfOthers(t *testing.T) {
	t.Setenv("QTYPE_HOME", "")
	t.Chdir(t.TempDir())
	expectTalk(t, 2, "", "app.qtype.yaml")
	expectTalk(t, 2, "", filepath.Join(t.TempDir(), "app.qtype.yaml"), qtype.WithSandbox())
}

// TestDefaultStore_Elsewhere uses QTYPE_HOME, and the folder of the user where that of
// the document cannot be written.
func TestDefaultStore_Elsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	home := t.TempDir()
	t.Setenv("QTYPE_HOME", home)
	expectTalk(t, 2, "", "a/app.qtype.yaml")
	expectTalk(t, 2, "", "b/app.qtype.yaml")
	expectTalk(t, 4, "", "a/app.qtype.yaml")
	if found, err := filepath.Glob(filepath.Join(home, "conversations", "app.qtype.yaml-*", "memory.db")); len(found) != 2 || err != nil {
		t.Errorf("found %q", found)
	}
	t.Setenv("QTYPE_HOME", "")
	t.Setenv("XDG_DATA_HOME", home)
	testkit.Must(t, os.MkdirAll("c", 0o700))
	testkit.Must(t, os.WriteFile("c/.qtype", nil, 0o600)) // no folder can be created
	expectTalk(t, 2, "because c cannot be written", "c/app.qtype.yaml")
	expectTalk(t, 4, "because c cannot be written", "c/app.qtype.yaml")
}

// TestStoreNamespace uses one database for several applications: only those with the same
// namespace share conversations.
func TestStoreNamespace(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		id, namespace string
		want          int
	}{
		{"one", "", 2},
		{"two", "", 2},
		{"one", "", 4},
		{"one", ", namespace: shared", 2},
		{"two", ", namespace: shared", 4},
	} {
		stores := "stores: [{id: db, type: sqlite, url: shared.db" + c.namespace + "}]"
		if got, _ := askOnce(t, c.id+".qtype.yaml", c.id, stores); got != c.want {
			t.Errorf("%+v: got %d messages", c, got)
		}
	}
	_, err := qtype.Open(t.Context(), "one.qtype.yaml", qtype.WithDefaultStore("sqlite:x.db"))
	if err == nil || !strings.Contains(err.Error(), "the document names the stores of its memories") {
		t.Errorf("got %v", err)
	}
}
