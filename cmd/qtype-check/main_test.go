package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// call runs a command line and returns what it writes to both streams, and its exit status.
func call(t *testing.T, in string, args ...string) (out, errs string, status int) {
	t.Helper()
	var stdout, stderr strings.Builder
	s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr}}
	status = cli.ExitStatus(program().Execute(context.WithoutCancel(t.Context()), s, args))
	return stdout.String(), stderr.String(), status
}

const invalid = `id: app
flows:
  - id: hello
    inputs: [q]
    outputs: [a]
    variables: [{id: q, type: text}, {id: a, type: txt}]
    steps: [{type: PromptTemplate, id: s, template: "{q}", inputs: [q], outputs: [a]}]
`

func TestCommands(t *testing.T) {
	folder := t.TempDir()
	valid, wrong := filepath.Join(folder, "valid.qtype.yaml"), filepath.Join(folder, "wrong.qtype.yaml")
	testkit.Must(t, os.WriteFile(wrong, []byte(invalid), 0o600))
	testkit.Must(t, os.WriteFile(valid, []byte(strings.ReplaceAll(invalid, "txt", "text")), 0o600))
	untidy := filepath.Join(folder, "untidy.qtype.yaml")
	testkit.Must(t, os.WriteFile(untidy, []byte("id:   app\nflows:    []\n"), 0o600))
	suite := filepath.Join(folder, "valid.qtype-test.yaml")
	testkit.Must(t, os.WriteFile(suite, []byte("tests: [{name: It greets, flow: helo, turns: [{input: Hello}]}]\n"), 0o600))
	for name, c := range map[string]struct {
		args   []string
		status int
		out    string // a part of what is written
	}{
		"valid":         {[]string{"validate", valid}, 0, "valid"},
		"invalid":       {[]string{"validate", wrong}, 1, "wrong.qtype.yaml:6:52"},
		"explained":     {[]string{"validate", wrong}, 1, "= qtype-check explain QT"},
		"test file":     {[]string{"validate", suite}, 1, "error[QT801]"},
		"explain":       {[]string{"explain", "QT801"}, 0, "unknown name in a test"},
		"converter":     {[]string{"explain", "QT701"}, 0, "QT701"},
		"format":        {[]string{"fmt", "--check", untidy}, 1, "1 file not formatted: run qtype-check fmt"},
		"compare":       {[]string{"diff", valid, valid}, 0, "no difference in meaning"},
		"one document":  {[]string{"diff", valid}, 2, "error: qtype-check diff needs the new document: qtype-check diff OLD NEW"},
		"draw":          {[]string{"visualize", valid}, 0, "flowchart"},
		"schema":        {[]string{"schema", "--tests"}, 0, `"$schema"`},
		"version":       {[]string{"version"}, 0, "qtype-check devel"},
		"version flag":  {[]string{"--version"}, 0, "qtype-check devel"},
		"help":          {[]string{"validate", "--help"}, 0, "  qtype-check validate --fix --diff ."},
		"no file":       {[]string{"validate"}, 2, `error: qtype-check validate needs a file or a directory`},
		"another one":   {[]string{"run", valid}, 2, `error: qtype-check has no command "run"; it runs nothing: use qtype, which has all commands`},
		"a habit":       {[]string{"lint", valid}, 2, `error: qtype-check has no command "lint"; did you mean "qtype-check validate"?`},
		"a document":    {[]string{valid}, 2, "it runs nothing: use qtype"},
		"misspelt":      {[]string{"validte", valid}, 2, `did you mean "validate"?`},
		"a missing one": {[]string{"validate", filepath.Join(folder, "none.yaml")}, 1, "error[QT001]"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := call(t, "", c.args...)
			if all := out + errs; status != c.status || !strings.Contains(all, c.out) {
				t.Errorf("status %d, want %d:\n%s\nwant %q", status, c.status, all, c.out)
			}
		})
	}
}

// TestLanguageServer: an editor can start the program in place of qtype.
func TestLanguageServer(t *testing.T) {
	message := func(text string) string {
		return "Content-Length: " + strconv.Itoa(len(text)) + "\r\n\r\n" + text
	}
	in := message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}`) +
		message(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`) + message(`{"jsonrpc":"2.0","method":"exit"}`)
	out, errs, status := call(t, in, "lsp")
	if status != 0 || !strings.Contains(out, `"completionProvider"`) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}
