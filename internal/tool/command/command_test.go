package command_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/tool/command"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script writes an executable file and returns its name relative to the folder.
func script(t *testing.T, folder, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "do"), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return "./do"
}

func run(t *testing.T, text string, change func(*spec.CommandTool)) (string, error) {
	t.Helper()
	folder := t.TempDir()
	decl := &spec.CommandTool{Program: script(t, folder, text), Timeout: spec.Duration(time.Hour)}
	if change != nil {
		change(decl)
	}
	answer, err := command.New(decl, command.Env{Getenv: os.Getenv, Folder: folder,
		Secret: func(s spec.Secret) (string, error) { return s.Reveal(), nil }})
	if err != nil {
		return "", err
	}
	v, err := answer(t.Context(), tool.Request{Tool: tool.Info{ID: "do"}, Args: []byte(`{"n":1}`), Caller: tool.Caller{Session: "me", Row: 3}})
	if err != nil {
		return "", err
	}
	return string(value.JSON(v)), nil
}

func TestCommand(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	for _, c := range []struct {
		text, want, err string
		change          func(*spec.CommandTool)
	}{
		{text: `cat`, want: `{"n":1}`},
		{text: `printf '\211PNG\r\n\032\n'`, want: `{"base64":"iVBORw0KGgo="}`},
		{text: `printf '\211abc'`, err: "the output of ./do is not JSON: "},
		{text: `printf '%s' "[\"$1\", \"$2\"]"`, want: `["a b","$(x)"]`, change: func(d *spec.CommandTool) { d.Args = []string{"a b", "$(x)"} }},
		{text: `echo "\"$QTYPE_TOOL $QTYPE_SESSION $QTYPE_ROW $KEY\""`, want: `"do me 3 k-1"`,
			change: func(d *spec.CommandTool) { d.Env = map[string]spec.Secret{"KEY": spec.NewSecret("k-1")} }},
		{text: `env | grep -c OPENAI || true`, want: `0`},
		{text: `true`, want: `null`},
		{text: `echo "going down" >&2; exit 3`, err: `./do: exit status 3: going down`},
		{text: `echo hello there`, err: `the output of ./do is not JSON: hello there`},
		{text: `yes`, err: `./do: output exceeds 32 MiB`},
		{text: `sleep 1000000 & sleep 1000000`, err: `./do: timed out after 50ms`,
			change: func(d *spec.CommandTool) { d.Timeout = spec.Duration(50 * time.Millisecond) }},
		{err: `program "no-such-program" not found in PATH`, change: func(d *spec.CommandTool) { d.Program = "no-such-program" }},
		{err: `do it`, change: func(d *spec.CommandTool) { d.Program = "./do it" }},
	} {
		got, err := run(t, c.text, c.change)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %s, %v; want %s", c.text, got, err, c.err)
			}
		case err != nil || got != c.want:
			t.Errorf("%s: got %s, %v; want %s", c.text, got, err, c.want)
		}
	}
}

func TestCommand_Canceled(t *testing.T) {
	tooltest.KilledWith(t, func(ctx context.Context, path string) error {
		folder := t.TempDir()
		program := script(t, folder, "exec 3>"+path+"; sleep 1000000 & echo "+tooltest.Begun+" >&3; sleep 1000000")
		answer, err := command.Line(program, time.Hour, command.Env{Getenv: os.Getenv, Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		_, err = answer(ctx, tool.Request{Args: []byte("{}")})
		return err
	})
}

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		`a  b`: {"a", "b"}, `a 'b c' "d e"f`: {"a", "b c", "d ef"}, `a\ b ""`: {"a b", ""}, `"a\"b\c"`: {`a"b\c`}, `'$HOME;|'`: {"$HOME;|"}, "": nil,
	} {
		if got, err := command.Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for line, want := range map[string]string{
		`a "b`: "unclosed quote \"", `a | b`: "'|' is shell syntax, and no shell is used; quote it", `$HOME`: "'$' is shell syntax", `a\`: "trailing backslash",
	} {
		if _, err := command.Split(line); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
