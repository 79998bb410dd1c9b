package python

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

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
