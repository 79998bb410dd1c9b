package command_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script writes an executable file and tells its name relative to the folder.
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

func TestProgramsAnswer(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	for _, c := range []struct {
		text, want, err string
		change          func(*spec.CommandTool)
	}{
		{text: `cat`, want: `{"n":1}`},
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

func TestACancelledProgramEnds(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "alive") // open as long as the program or its child lives
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	answer, err := command.Line(script(t, folder, "exec 3>"+path+"; sleep 1000000 & echo begun >&3; sleep 1000000"), time.Hour, command.Env{Getenv: os.Getenv, Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		alive, err := os.Open(path)
		if err != nil {
			ended <- err
			return
		}
		defer func() { _ = alive.Close() }() // it was only read
		_, begun := io.ReadFull(alive, make([]byte, len("begun")))
		cancel(stop)
		_, err = io.Copy(io.Discard, alive)
		ended <- errors.Join(begun, err)
	}()
	if _, err = answer(ctx, tool.Request{Args: []byte("{}")}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // where nobody has opened it, nobody need wait
		_ = w.Close()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
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
