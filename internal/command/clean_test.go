package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/cleanup"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// stored has a memory with a ttl, one without, and a cache.
const stored = `id: stored
memories: [{id: short, ttl: 1ns}, {id: long}]
models: [{type: Model, id: parrot, provider: mock, rules: [{echo: true}]}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: heard, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: first, model: parrot, memory: short, inputs: [message], outputs: [heard]}
      - {type: LLMInference, id: second, model: parrot, memory: long, inputs: [heard], outputs: [answer]}
  - id: cached
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: PromptTemplate, id: fill, template: "{x}", cache_config: {}, inputs: [x], outputs: [y]}]
`

// cleanFolder writes the application and all that it could store.
func cleanFolder(t *testing.T) {
	t.Helper()
	inFolder(t, map[string]string{"stored.qtype.yaml": stored, "rows.jsonl": "{\"x\": \"a\"}\n{\"x\": \"b\"}\n",
		"kept.html": "<!doctype html><title>Report</title>", "kept.jsonl": "{\"id\": 1}\n"})
	for _, args := range [][]string{{"-f", "talk", "-i", "hello", "--session", "s", "--trace=trace.jsonl"}, {"-f", "cached", "-I", "rows.jsonl", "--trace=trace.html"}} {
		if _, code := call(t, append([]string{"run", "stored.qtype.yaml"}, args...)...); code != cli.ExitDone {
			t.Fatal(args)
		}
	}
	testkit.Must(t, os.Mkdir("results", 0o700))
	for _, name := range []string{"a.csv", "b.csv"} {
		j, err := checkpoint.Create(filepath.Join("results", name+".qtype-journal"), checkpoint.Header{Flow: "talk"}, nil)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join("results", "."+name+".0123456789ab.tmp"), []byte("half"), 0o600))
		testkit.Must(t, os.WriteFile(filepath.Join("results", name+".qtype-batches"), []byte("calls"), 0o600))
		if name == "a.csv" {
			testkit.Must(t, j.Close())
		} else {
			t.Cleanup(func() { testkit.Must(t, j.Close()) }) // a run that is not finished
		}
	}
	old := time.Now().Add(-100 * time.Hour)
	testkit.Must(t, filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err == nil && !strings.HasPrefix(path, ".qtype") {
			err = os.Chtimes(path, old, old)
		}
		return err
	}))
}

// cleanLines runs qtype clean and returns its lines of JSON.
func cleanLines[T any](t *testing.T, args ...string) []T {
	t.Helper()
	out, code := call(t, append([]string{"clean", "stored.qtype.yaml", "--format", "json"}, args...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit status %d: %s", code, out)
	}
	var all []T
	for line := range strings.Lines(out) {
		var one T
		testkit.Must(t, json.Unmarshal([]byte(line), &one))
		all = append(all, one)
	}
	return all
}

// planned returns what a plan removes.
func planned(items []cleanup.Item) []string {
	var all []string
	for _, i := range items {
		what := string(i.Kind) + " " + filepath.ToSlash(i.Where)
		if i.ID != "" {
			what = string(i.Kind) + " " + i.ID
		}
		if i.InUse {
			what += " in use"
		}
		all = append(all, what)
	}
	slices.Sort(all)
	return all
}

// TestClean_Retention removes what has expired by the document, and keeps what a run uses.
func TestClean_Retention(t *testing.T) {
	cleanFolder(t)
	want := []string{"memories short s", "temporary results/.a.csv.0123456789ab.tmp", "temporary results/.b.csv.0123456789ab.tmp in use"}
	for range 2 { // a plan changes nothing
		if got := planned(cleanLines[cleanup.Item](t, "--dry-run")); !slices.Equal(got, want) {
			t.Errorf("the plan is %q, want %q", got, want)
		}
	}
	if got, want := cleanLines[cleanup.Removed](t), []cleanup.Removed{{Kind: cleanup.Memories, Items: 1}, {Kind: cleanup.Temporary, Items: 1}}; !slices.Equal(got, want) {
		t.Errorf("removed: %+v, want %+v", got, want)
	}
	if got := planned(cleanLines[cleanup.Item](t, "--dry-run")); !slices.Equal(got, want[2:]) {
		t.Errorf("the second plan is %q", got)
	}
}

// TestClean_OlderThan removes by age, of the kinds that are named.
func TestClean_OlderThan(t *testing.T) {
	cleanFolder(t)
	want := []string{"journals results/a.csv.qtype-journal", "journals results/b.csv.qtype-journal in use", "traces trace.html", "traces trace.jsonl"}
	if got := planned(cleanLines[cleanup.Item](t, "journals", "traces", "--older-than", "4d", "--in", "results", "-n")); !slices.Equal(got, want) {
		t.Errorf("the plan is %q, want %q", got, want)
	}
	if got := cleanLines[cleanup.Item](t, "journals", "traces", "caches", "--older-than", "5d", "-n"); len(got) > 0 {
		t.Errorf("the plan for an older age is %+v", got)
	}
	cleanLines[cleanup.Removed](t, "journals", "traces", "--older-than", "4d")
	for path, left := range map[string]bool{"results/a.csv.qtype-batches": false, "results/b.csv.qtype-batches": true, "results/a.csv.qtype-journal": false, "results/b.csv.qtype-journal": true, "trace.html": false, "kept.html": true, "kept.jsonl": true} {
		if _, err := os.Stat(path); (err == nil) != left {
			t.Errorf("%s: %v", path, err)
		}
	}
	got := planned(cleanLines[cleanup.Item](t, "memories", "caches", "--older-than", "1ns", "-n"))
	if len(got) != 3 || !strings.HasPrefix(got[0], "caches ") || got[1] != "memories long s" {
		t.Errorf("the plan is %q", got)
	}
	if got, want := cleanLines[cleanup.Removed](t, "memories", "caches", "--older-than", "1ns", "--yes"), []cleanup.Removed{{Kind: cleanup.Memories, Items: 2}, {Kind: cleanup.Caches, Items: 2}}; !slices.Equal(got, want) {
		t.Errorf("removed: %+v, want %+v", got, want)
	}
}

// TestClean_Confirmation asks before it removes sessions by age, which may be within their ttl. Without a
// terminal it needs --yes, also if there is none.
func TestClean_Confirmation(t *testing.T) {
	cleanFolder(t)
	clean := func(terminals bool, answer string, args ...string) (string, int) {
		var text bytes.Buffer
		s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(answer), Out: &text, Err: &text, InTerminal: terminals}}
		code := Execute(t.Context(), Core(), s, append([]string{"clean", "stored.qtype.yaml"}, args...))
		return text.String(), code
	}
	for _, c := range []struct {
		terminal bool
		answer   string
		args     []string
		code     int
		want     string
	}{
		{false, "", []string{"--older-than", "1ns"}, cli.ExitUsage, "clean removes 2 sessions that expired or had no message for 1ns: pass --yes to confirm"},
		{false, "", []string{"memories", "--older-than", "30d", "-n"}, cli.ExitDone, "1 item would be removed"},
		{true, "n\n", []string{"memories", "--older-than", "1ns"}, cli.ExitFailed, "nothing was removed"},
		{false, "", []string{"caches", "journals", "--older-than", "30d"}, cli.ExitDone, "there is nothing to remove"},
		{false, "", []string{"memories"}, cli.ExitDone, "1 session removed"}, // its ttl is over
		{true, "y\n", []string{"memories", "--older-than", "1ns"}, cli.ExitDone, "remove 1 session that expired or had no message for 1ns? [y/N] 1 session removed"},
		{true, "", []string{"memories", "--older-than", "1ns"}, cli.ExitDone, "there is nothing to remove"},
		{false, "", []string{"memories", "--older-than", "1ns"}, cli.ExitUsage, "clean removes sessions that expired or"},
		{false, "", []string{"memories", "--older-than", "1ns", "--yes"}, cli.ExitDone, "there is nothing to remove"},
	} {
		if out, code := clean(c.terminal, c.answer, c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit status %d: %s, want %q", c.args, code, out, c.want)
		}
	}
}

// TestClean_Text shows the plan to a person, and rejects wrong arguments.
func TestClean_Text(t *testing.T) {
	cleanFolder(t)
	out, _ := call(t, "clean", "stored.qtype.yaml", "temporary", "--dry-run")
	if !strings.Contains(out, "temporary") || !strings.Contains(out, "4 days ago") || !strings.Contains(out, "in use: kept") || !strings.Contains(out, "1 item would be removed, 4 B\n") {
		t.Errorf("the plan is\n%s", out)
	}
	for want, args := range map[string][]string{"did you mean \"caches\"?": {"cache"}, "--older-than cannot be \"soon\": expected a duration such as 12h or 30d": {"--older-than", "soon"}} {
		var text bytes.Buffer
		s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &text, Err: &text}}
		if code := Execute(t.Context(), Core(), s, append([]string{"clean", "stored.qtype.yaml"}, args...)); code != cli.ExitUsage || !strings.Contains(text.String(), want) {
			t.Errorf("%q: exit status %d: %s", args, code, text.String())
		}
	}
}

// TestClean_Links searches a folder that is a link, and lists each file once.
func TestClean_Links(t *testing.T) {
	cleanFolder(t)
	folder, err := os.Getwd()
	testkit.Must(t, err)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Skipf("no symbolic links here: %s", err)
	}
	out, code := call(t, "clean", filepath.Join(link, "stored.qtype.yaml"), "temporary", "--in", ".", "--in", "results")
	if code != cli.ExitDone || out != "1 temporary file removed\n" {
		t.Errorf("exit status %d: %s", code, out)
	}
}

// TestClean_WrittenFile keeps an incomplete file that a step of a run writes: it has no journal.
func TestClean_WrittenFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files that a program writes cannot be removed there")
	}
	cleanFolder(t)
	out, err := remotefs.Create(t.Context(), "export.csv")
	testkit.Must(t, err)
	defer func() { testkit.Must(t, out.Abort()) }()
	found, err := filepath.Glob(".export.csv.*.tmp")
	testkit.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("incomplete files: %q", found)
	}
	old := time.Now().Add(-100 * time.Hour)
	testkit.Must(t, os.Chtimes(found[0], old, old))
	cleanLines[cleanup.Removed](t, "temporary")
	if _, err := os.Stat(found[0]); err != nil {
		t.Error(err)
	}
}

// TestClean_NoFolder refuses names that are not those of folders.
func TestClean_NoFolder(t *testing.T) {
	cleanFolder(t)
	for _, name := range []string{"none", "rows.jsonl"} {
		if out, code := call(t, "clean", "stored.qtype.yaml", "-n", "--in", name); code != cli.ExitFailed {
			t.Errorf("--in %q: exit status %d: %s", name, code, out)
		}
	}
}
