// Package python runs the functions of PythonFunctionTools in a pool of processes of the
// host's Python, which are started on the first call. Functions get the values of the
// language as Python's: dates as dates, records as objects with attributes. Output is not
// taken for a result, an exception fails one call, and a function that hangs, uses too
// much memory or ends its process costs that process only.
package python

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// Env is the environment of a tool.
type Env struct {
	Pool    *Pool                             // runs the processes
	Getenv  func(string) string               // the environment that the document sees
	Secret  func(spec.Secret) (string, error) // resolves references to a secret manager; nil uses the text of the document
	Folders []string                          // folders that are searched first for modules and a .venv: those of the documents

	Container *containment.Container // limits the processes; nil for no limits
}

// function is a Python function as a tool.
type function struct {
	info     tool.Info
	declared *spec.PythonFunctionTool
	pool     *Pool
	setting  WorkerConfig
	timeout  time.Duration
	found    atomic.Bool // whether a check has found the function
}

// New makes the tool. It finds the interpreter and starts nothing.
func New(t *spec.PythonFunctionTool, env Env) (tool.Tool, error) {
	if all := t.Conflicts(); len(all) > 0 {
		return nil, fmt.Errorf("tool %s: %s", t.ID, all[0].Problem)
	}
	interpreter, err := env.interpreter()
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	given, err := tool.Environment(t.Env, env.Secret)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	f := &function{info: tool.Describe(t.Common(), t.Inputs), declared: t, pool: env.Pool, timeout: time.Duration(t.Timeout)}
	if f.timeout <= 0 {
		f.timeout = time.Minute
	}
	f.setting = WorkerConfig{Interpreter: interpreter, Path: env.path(given), MemoryMB: cmp.Or(t.MemoryMB, 2048), Container: env.Container,
		Env: env.Container.Environment(env.Getenv, given, "PYTHONPATH", "VIRTUAL_ENV", "PYENV_ROOT", "PYENV_VERSION", "CONDA_PREFIX")}
	return f, nil
}

// interpreter returns the path of Python: QTYPE_PYTHON, that of a .venv in one of the
// interpreter returns the path of Python: QTYPE_PYTHON, that of a .venv in one of the
// folders, or python3. In an image it is python3.
func (s Env) interpreter() (string, error) {
	if s.Container.IsImage() {
		return "python3", nil
	}
	if name := s.Getenv("QTYPE_PYTHON"); name != "" {
		found, err := subprocess.Find(name, ".", s.Getenv("PATH"))
		if err != nil {
			return "", fmt.Errorf("QTYPE_PYTHON: %w", err)
		}
		return found, nil
	}
	for _, folder := range s.Folders {
		for _, file := range []string{"bin/python3", "bin/python", "Scripts/python.exe"} {
			if found, err := subprocess.Find("./.venv/"+file, folder, ""); err == nil {
				return found, nil
			}
		}
	}
	for _, name := range []string{"python3", "python"} {
		if found, err := subprocess.Find(name, ".", s.Getenv("PATH")); err == nil {
			return found, nil
		}
	}
	return "", errors.New("no python3 in PATH; install it, or set QTYPE_PYTHON to an interpreter")
}

// path returns the folders that are searched for modules before the folders of the
// interpreter.
func (s Env) path(given map[string]string) []string {
	var path []string
	for _, folder := range slices.Concat(s.Folders, filepath.SplitList(cmp.Or(given["PYTHONPATH"], s.Getenv("PYTHONPATH")))) {
		if full, err := filepath.Abs(folder); err == nil && folder != "" && !slices.Contains(path, full) {
			path = append(path, full)
		}
	}
	return path
}

// folders returns the folders that a process reads: folders of modules, and of an
// interpreter outside the system, such as a virtual environment.
func (s WorkerConfig) folders() []string {
	var all []string
	for _, folder := range s.Path {
		if _, err := os.Stat(folder); err == nil {
			all = append(all, folder)
		}
	}
	if s.Container.IsImage() {
		return all
	}
	files := []string{s.Interpreter}
	if target, err := filepath.EvalSymlinks(s.Interpreter); err == nil {
		files = append(files, target)
	}
	for _, file := range files {
		prefix := filepath.Dir(filepath.Dir(file))
		if libraries, _ := filepath.Glob(filepath.Join(prefix, "lib", "python3*", "*")); len(libraries) > 0 {
			all = append(all, prefix)
		}
	}
	return all
}

// Info describes the tool.
func (f *function) Info() tool.Info { return f.info }

// Call runs the function once.
func (f *function) Call(ctx context.Context, args map[string]any) (any, error) {
	req, err := f.request(args)
	if err != nil {
		return nil, err
	}
	late := fmt.Errorf("timed out after %s", f.timeout)
	limited, cancel := context.WithTimeoutCause(ctx, f.timeout, late)
	defer cancel()
	resp, err := f.pool.call(limited, f.setting, req)
	exited, crashed := errors.AsType[*exitedError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case crashed:
		return nil, f.failed(fmt.Sprintf("%s did not return: the process ended (%s)", f.name(), exited.how), "", err)
	case err != nil:
		return nil, f.failed(f.name()+": "+err.Error(), "", err)
	case resp.err != nil:
		return nil, f.failed(f.errorLine(resp.err), place(resp.err), nil)
	}
	return resp.result, nil
}

// request converts the arguments to values of the language.
func (f *function) request(args map[string]any) (*request, error) {
	given, err := tool.ConvertArgs(f.info, args, value.Assign)
	if err != nil {
		return nil, err
	}
	req := &request{tool: f.info.ID, module: f.declared.ModulePath, function: f.declared.FunctionName}
	for _, in := range f.info.Inputs {
		if v, ok := given[in.ID]; ok {
			req.args = append(req.args, value.Field{Name: in.ID, Value: v})
		}
	}
	return req, nil
}

func (f *function) name() string { return f.declared.ModulePath + "." + f.declared.FunctionName }

func (f *function) failed(message, where string, err error) error {
	return &tool.FailedError{Tool: f.info.ID, Message: httpx.SingleLine(message, 1000), Where: where, Err: err}
}

// errorLine returns one line that describes a failure.
func (f *function) errorLine(e *failure) string {
	switch {
	case e.Kind == "memory":
		return fmt.Sprintf("%s needs more than the %d MiB of memory_mb", f.name(), f.setting.MemoryMB)
	case e.Type == "":
		return e.Message
	case e.Message == "":
		return e.Type
	}
	return e.Type + ": " + e.Message
}

// place returns the line of the user's code that failed, with a relative path if possible.
func place(e *failure) string {
	if e.File == "" {
		return ""
	}
	file := e.File
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
	}
	if e.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, e.Line)
}

// Check starts a process, unless there is one, and lets it find the function, so that a
// misspelled name or a failing import is reported once and not for each row. An import
// that takes longer than the timeout of a call is left to the calls.
func (f *function) Check(ctx context.Context) error {
	if f.found.Load() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	resp, err := f.pool.call(limited, f.setting, &request{tool: f.info.ID, module: f.declared.ModulePath, function: f.declared.FunctionName, check: true})
	exited, crashed := errors.AsType[*exitedError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return nil
	case crashed:
		return f.failed("the import of "+f.declared.ModulePath+" ended the process ("+exited.how+")", "", err)
	case err != nil:
		return f.failed(f.name()+": "+err.Error(), "", err)
	case resp.err != nil:
		return f.failed(f.errorLine(resp.err), place(resp.err), nil)
	}
	f.found.Store(true)
	return nil
}

// Source returns a fingerprint of a module's file, which is searched for as for a call;
// empty if there is none, as for a module of the interpreter.
func Source(module string, env Env) string {
	relative := filepath.Join(strings.Split(module, ".")...)
	if !spec.IsPythonPath(module) {
		return ""
	}
	for _, folder := range env.path(nil) {
		for _, file := range []string{filepath.Join(relative, "__init__.py"), relative + ".py"} {
			if text, err := os.ReadFile(filepath.Join(folder, file)); err == nil {
				sum := sha256.Sum256(text)
				return hex.EncodeToString(sum[:])
			}
		}
	}
	return ""
}
