package evalrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// Files are the files to which a report is written; an empty name is for none.
type Files struct {
	JSON, HTML string
	Redact     func(string) string // replaces secrets
}

// ErrNotWritten is the error of Write for a file that cannot be written.
var ErrNotWritten = errors.New("cannot be written")

// Check reports a file that Write cannot write, before the evaluation runs.
func (f *Files) Check() error {
	for _, path := range []string{f.JSON, f.HTML} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("%s: %w: it is a folder", path, ErrNotWritten)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s: %w: its folder does not exist", path, ErrNotWritten)
		}
	}
	return nil
}

// Write writes a report.
func (f *Files) Write(r *Report) error {
	if err := f.write(f.JSON, r.JSON); err != nil {
		return err
	}
	return f.write(f.HTML, r.HTML)
}

// WritePage writes a page in place of a report.
func (f *Files) WritePage(p *Page) error {
	if err := f.Check(); err != nil {
		return err
	}
	return f.write(f.HTML, p.Write)
}

func (f *Files) write(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(f.Redact(b.String())), 0o644); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrNotWritten, terminal.Cause(err))
	}
	return nil
}

// WriteViolations writes why the evaluation fails, a line for each reason.
func (r *Report) WriteViolations(w io.Writer) error {
	for _, v := range r.Violations {
		if _, err := fmt.Fprintf(w, "failed: %s\n", terminal.Clean(v)); err != nil {
			return err
		}
	}
	return nil
}
