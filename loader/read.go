package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// reader reads the files of one document and enforces its limits.
type reader struct {
	ctx        context.Context
	opts       Options
	remote     *remote        // reads remote files
	work       string         // the working directory, for names as a user would write them
	total      int            // bytes read so far
	includes   int            // includes so far
	files      []*source.File // in the order of reading
	noIncludes bool           // the document has no folder, so it cannot include files
}

// readError is the reason why a file cannot be read, as a phrase that follows its name.
type readError struct {
	rule *diag.Rule // the violated rule; nil for the caller's rule
	text string
}

func (e *readError) Error() string { return e.text }

// diagnostic reports the error for a file as a whole.
func (e *readError) diagnostic(f *source.File) diag.Diagnostic {
	rule := ruleUnreadable
	if e.rule != nil {
		rule = *e.rule
	}
	return rule.At(source.Span{File: f}, "%s %s", f.Path, e.text)
}

// read returns the text of a file without its byte order mark, checked to be UTF-8
// and within the limits. base is the address below which a remote document may read;
// empty for no limit.
func (r *reader) read(path, base string) ([]byte, *readError) {
	if r.ctx.Err() != nil {
		return nil, &readError{text: "reading was cancelled"}
	}
	text, err := r.readAll(path, base)
	if err != nil {
		return nil, asReadError(err)
	}
	return r.accept(text)
}

// readAll reads a file up to one byte above the limit.
func (r *reader) readAll(path, base string) ([]byte, error) {
	in, err := r.open(path, base)
	if err != nil {
		return nil, err
	}
	most := int64(r.opts.Limits.FileBytes) + 1
	switch {
	case in == nil && r.opts.Fetch != nil:
		return r.opts.Fetch(r.ctx, path, base)
	case in == nil:
		return r.remote.read(r.ctx, path, base, most)
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, most))
}

// accept checks a text that was read.
func (r *reader) accept(text []byte) ([]byte, *readError) {
	limits := r.opts.Limits
	r.total += len(text)
	switch {
	case len(text) > limits.FileBytes:
		return nil, &readError{&ruleLimit, fmt.Sprintf("is larger than %s", size(limits.FileBytes))}
	case r.total > limits.TotalBytes:
		return nil, &readError{&ruleLimit, fmt.Sprintf("brings the document's files over %s", size(limits.TotalBytes))}
	}
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, &readError{&ruleText, "is UTF-16 text, not UTF-8; save it as UTF-8"}
	case strings.IndexByte(string(text), 0) >= 0:
		return nil, &readError{&ruleText, "is a binary file, not text"}
	case !utf8.Valid(text):
		return nil, &readError{&ruleText, "is not valid UTF-8 text" + badLine(text)}
	}
	return text, nil
}

// badLine names the first line that is not UTF-8.
func badLine(text []byte) string {
	line := 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n <= 1 {
			break
		}
		if r == '\n' {
			line++
		}
		text = text[n:]
	}
	return fmt.Sprintf(" (line %d)", line)
}

// open opens a regular file with the hook, below the allowed folder, or anywhere. It
// returns nil for a remote file that may be read.
func (r *reader) open(path, base string) (io.ReadCloser, error) {
	if r.opts.Open != nil {
		if in, err := r.opts.Open(r.ctx, path); in != nil || err != nil {
			return in, err
		}
	}
	if err := r.allowed(path); err != nil {
		return nil, err
	}
	if base != "" && !remotefs.IsUnder(base, path) {
		return nil, &readError{text: "is not below " + remotefs.Redacted(base) + ", the only address that this document may read"}
	}
	if _, remote := remotefs.Remote(path); remote {
		switch {
		case r.opts.Offline:
			return nil, &readError{text: "is remote, and remote files are disabled"}
		case r.opts.Confine != "":
			return nil, &readError{text: "is outside of the folder that this document may read"}
		}
		return nil, nil
	}
	path = remotefs.Path(path)
	if len(r.files) == 0 && isDescriptor(path) {
		return r.openDescriptor(path)
	}
	if r.opts.Confine != "" && len(r.files) > 0 {
		return openBelow(r.opts.Confine, path)
	}
	return openRegular(path, os.Stat, func() (*os.File, error) { return os.Open(path) })
}

// openDescriptor opens a pipe or a terminal, of which a read may wait: the end of the context ends it.
func (r *reader) openDescriptor(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err == nil {
		context.AfterFunc(r.ctx, func() { _ = f.Close() })
	}
	return f, err
}

// isDescriptor reports whether a path is an open file of this process, as shells write for <(…): its writer is there.
func isDescriptor(path string) bool {
	number, found := strings.CutPrefix(path, "/dev/fd/")
	_, err := strconv.ParseUint(number, 10, 16)
	return found && err == nil
}

// allowed returns an error if the policy of the document does not allow an include.
func (r *reader) allowed(path string) error {
	if len(r.files) == 0 {
		return nil // the document itself, which the user names
	}
	if err := r.opts.Policy.Read(path); err != nil {
		return &readError{text: "cannot be read: " + err.Error()}
	}
	return nil
}

// openRegular checks the file before it opens it, because opening a pipe waits for a writer.
func openRegular(path string, stat func(string) (fs.FileInfo, error), open func() (*os.File, error)) (io.ReadCloser, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, &readError{text: "is a folder, not a file"}
	case !info.Mode().IsRegular():
		return nil, &readError{text: "is not a regular file"}
	}
	return open()
}

// openBelow opens a file only if it is below the folder, links resolved.
func openBelow(folder, path string) (io.ReadCloser, error) {
	border, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(border, full)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &readError{text: "is outside of the folder that this document may read"}
	}
	root, err := os.OpenRoot(border)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openRegular(rel, root.Stat, func() (*os.File, error) { return root.Open(rel) })
}

// notExist is the message of a file that does not exist.
const notExist = "does not exist"

// nearFile returns the document in the folder of a path that is probably meant; empty if
// there is none.
func nearFile(path string) string {
	if _, remote := remotefs.Remote(path); remote {
		return ""
	}
	folder, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		return ""
	}
	stem, _, _ := strings.Cut(base, ".")
	var names []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
			if same, _, _ := strings.Cut(name, "."); same == stem {
				return folder + name
			}
			names = append(names, name)
		}
	}
	if near := diag.Nearest(base, names); near != "" {
		return folder + near
	}
	return ""
}

// asReadError converts an error of the operating system.
func asReadError(err error) *readError {
	var known *readError
	var path *fs.PathError
	var reason interface{ Reason() string }
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &reason) && reason.Reason() != new(remotefs.NotFoundError).Reason():
		return &readError{text: "cannot be read: " + reason.Reason()}
	case errors.Is(err, fs.ErrNotExist):
		return &readError{text: notExist}
	case errors.Is(err, fs.ErrPermission):
		return &readError{text: "cannot be read: permission denied"}
	case errors.Is(err, syscall.ELOOP):
		return &readError{text: "is a symbolic link to itself"}
	case errors.Is(err, syscall.ENOTDIR):
		return &readError{text: "does not exist: a part of the path is not a folder"}
	case errors.As(err, &path):
		return &readError{text: "cannot be read: " + path.Err.Error()}
	}
	return &readError{text: "cannot be read: " + err.Error()}
}

// resolve returns the path of target relative to a file at base.
func resolve(base, target string) string {
	if _, remote := remotefs.Remote(base); remote {
		return remotefs.Join(base, target)
	}
	if _, remote := remotefs.Remote(target); remote {
		return target
	}
	target = remotefs.Path(target)
	if filepath.IsAbs(target) {
		return filepath.Clean(target)
	}
	return filepath.Join(filepath.Dir(base), target)
}

// name returns a path for messages: relative if it is below the working directory, and
// an address without secrets.
func (r *reader) name(path string) string {
	if _, remote := remotefs.Remote(path); remote {
		return remotefs.Redacted(path)
	}
	if !filepath.IsAbs(path) || r.work == "" {
		return path
	}
	if rel, err := filepath.Rel(r.work, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// identity is the same for two paths of one file, so that cycles through links are found.
func identity(path string) string {
	if _, remote := remotefs.Remote(path); remote {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// size prints a number of bytes in the largest unit that divides it.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
