package factory_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

// Each tool multiplies the number n by two, and fails for 0.
func TestContract(t *testing.T) {
	ok, zero := map[string]any{"n": 2}, map[string]any{"n": 0}
	base := spec.ToolBase{ID: "twice", Name: "twice", Inputs: valuetest.Variables(t, nil, "n: int", "note: text?"), Outputs: valuetest.Variables(t, nil, "m: int")}
	for name, c := range map[string]struct {
		tool   spec.Tool
		opts   factory.Options
		needs  string // a program
		args   map[string]any
		failed map[string]any
	}{
		"APITool": {tool: &spec.APITool{ToolBase: base, Endpoint: twiceServer(t), AllowPrivate: true}, args: ok, failed: zero},
		"ClientTool": {tool: &spec.ClientTool{ToolBase: base}, args: ok, failed: zero,
			opts: factory.Options{Answer: func(string) tool.ClientHandler { return twice }}},
		"CommandTool": {tool: &spec.CommandTool{ToolBase: base, Program: "./twice"}, args: ok, failed: zero, needs: "sh",
			opts: factory.Options{Folder: folderWith(t, "twice", "#!/bin/sh\nread -r line\ncase $line in *:0*) exit 3;; esac\necho 4\n")}},
		"FlowTool": {tool: &spec.FlowTool{ToolBase: spec.ToolBase{ID: "twice", Name: "twice"}, Flow: spec.Ref[*spec.Flow]{To: flow(t, []string{"n: int"}, []string{"m: int"})}},
			args: ok, failed: zero, opts: factory.Options{Flow: twiceFlow}},
		"PythonFunctionTool": {tool: &spec.PythonFunctionTool{ToolBase: base, ModulePath: "numbers_of", FunctionName: "twice"}, args: ok, failed: zero, needs: "python3",
			opts: factory.Options{Folder: folderWith(t, "numbers_of.py", "def twice(n, note=None):\n    if n == 0:\n        raise ValueError('zero')\n    return {'m': 2 * n}\n")}},
		"builtin": {tool: &spec.PythonFunctionTool{ToolBase: spec.ToolBase{ID: "decode", Name: "decode", Inputs: valuetest.Variables(t, nil, "data: text")},
			ModulePath: spec.StandardModule, FunctionName: "base64_decode"}, args: map[string]any{"data": "AP8="}, failed: map[string]any{"data": "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
				t.Skipf("no %s", c.needs)
			}
			c.opts.Getenv = os.Getenv
			f := factory.New(c.opts)
			t.Cleanup(f.Close)
			made, err := f.Tool(c.tool)
			if err != nil {
				t.Fatal(err)
			}
			tooltest.Run(t, tooltest.Case{Tool: made, Args: c.args, Failing: c.failed})
		})
	}
}

var errZero = errors.New("zero\nis not allowed")

// twiceServer starts a server and returns its URL.
func twiceServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("n") == "0" {
			http.Error(w, errZero.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"m": 4}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func twice(ctx context.Context, r tool.Request) (any, error) {
	args, err := value.Parse(string(r.Args))
	if err != nil {
		return nil, err
	}
	n, _ := args.(*value.Record).Get("n")
	return map[string]any{"m": 4}, errors.Join(zeroError(value.Text(n) == "0"), ctx.Err())
}

func twiceFlow(ctx context.Context, call factory.FlowCall, emit func([]any, error) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return emit([]any{int64(4)}, zeroError(call.Inputs[0] == int64(0)))
}

func zeroError(zero bool) error {
	if zero {
		return errZero
	}
	return nil
}

// folderWith makes a folder with an executable file.
func folderWith(t *testing.T, name, text string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}
