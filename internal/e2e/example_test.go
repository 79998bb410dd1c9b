package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
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

// TestDocs_GoBlocks: every Go block of a page is in a test file or the module examples/extension, so that it compiles.
func TestDocs_GoBlocks(t *testing.T) {
	var tests []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") && !(strings.HasPrefix(path, "examples/extension/") && strings.HasSuffix(path, ".go")) {
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
