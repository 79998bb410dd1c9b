package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/tool"
)

// openWithApproval is the program of docs/tools.md.
func openWithApproval(ctx context.Context) (*runtime.App, error) {
	app, err := qtype.Open(ctx, "app.qtype.yaml",
		qtype.WithClientTool("decide", func(ctx context.Context, r tool.Request) (any, error) {
			return map[string]any{"pay": true}, nil // checked against the outputs
		}),
		qtype.WithApproval(func(ctx context.Context, r tool.Request) (bool, string, error) {
			return false, "not on Sundays", nil
		}))
	return app, err
}

func Example_approval() {
	app, err := openWithApproval(context.Background())
	fmt.Println(app == nil, err != nil) // there is no app.qtype.yaml here
	// Output: true true
}

// resumeRun is the program of docs/runs.md.
func resumeRun(ctx context.Context, app *runtime.App, path string, rows iter.Seq[runtime.Input], write func(*runtime.Result) error) error {
	checkpoints, err := app.OpenCheckpoints(runtime.CheckpointConfig{Path: path, Flow: "main"})
	if err != nil {
		return err
	}
	for res, err := range app.Run(ctx, "main", rows, runtime.WithCheckpoints(checkpoints)) {
		if err == nil {
			err = write(res)
		}
		if err != nil {
			return errors.Join(err, checkpoints.Close()) // keeps the file: run the program again to resume
		}
	}
	return checkpoints.Remove()
}

const resumableDocument = `
id: app
flows:
  - id: main
    variables: [{id: name, type: text}, {id: greeting, type: text}]
    inputs: [name]
    outputs: [greeting]
    steps: [{type: PromptTemplate, id: greet, template: "Hello, {name}!", inputs: [name], outputs: [greeting]}]
`

// TestDocs_ResumeRun runs the program of docs/runs.md: the second run replays the row
// that the interrupted first run has finished.
func TestDocs_ResumeRun(t *testing.T) {
	app := openApp(t, resumableDocument)
	path := filepath.Join(t.TempDir(), "replies.checkpoints")
	var got []string
	write := func(res *runtime.Result) error {
		got = append(got, fmt.Sprint(res.Number, " ", res.Replayed))
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	rows := func(yield func(runtime.Input) bool) {
		if yield(runtime.Row(map[string]any{"name": "Ada"})) {
			cancel()
			yield(runtime.Row(map[string]any{"name": "Bo"}))
		}
	}
	if err := resumeRun(ctx, app, path, rows, write); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first run ended with %v", err)
	}
	if err := resumeRun(t.Context(), app, path, rows, write); err != nil {
		t.Fatal(err)
	}
	assertLines(t, got, "1 false", "1 true", "2 false")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of checkpoints was not removed: %v", err)
	}
}

// TestDocs_GoBlocks: every Go block of a page is in a test file, so that it compiles.
func TestDocs_GoBlocks(t *testing.T) {
	var tests []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests = append(tests, plainCode(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	blocks := 0
	for page, text := range readPages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			blocks++
			if code := plainCode(m[1]); !strings.Contains(strings.Join(tests, ""), code) {
				t.Errorf("%s: no test file has the code\n%s", page, code)
			}
		}
	}
	if blocks == 0 {
		t.Error("no page has Go code")
	}
}

// plainCode returns code without comments, indentation and blank lines.
func plainCode(text string) string {
	var b strings.Builder
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), " // ")
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
