package steps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// fileSource reads a file, one row for each record. Variables that the row has keep
// their values; columns without an output are ignored.
type fileSource struct {
	id   string
	path filePath
	outs []slot
}

func buildFileSource(s *spec.FileSource, env *Env) (Runner, error) {
	f := &fileSource{id: s.ID}
	var err error
	if f.path, err = env.filePath(s.Path); err != nil {
		return nil, err
	}
	if f.path.variable == nil {
		if err := remotefs.Readable(f.path.constant); err != nil {
			return nil, wrapLocationError(f.path.constant, err)
		}
	}
	f.outs, err = env.slots(s.Outputs)
	return f, err
}

// filePath is a constant path or the variable that holds one: a local path or an
// address that package records can read. Paths are relative to the working directory.
type filePath struct {
	constant string
	variable *slot
}

// filePath converts the path of a document.
func (e *Env) filePath(p spec.PathRef) (filePath, error) {
	if p.Var.To == nil {
		constant, err := location(p.URI)
		return filePath{constant: constant}, err
	}
	s, err := e.slot(p.Var.To)
	return filePath{variable: &s}, err
}

// wrapLocationError adds the address to an error of package remotefs that lacks it.
func wrapLocationError(address string, err error) error {
	if errors.As(err, new(*remotefs.AccessError)) {
		return err
	}
	return fmt.Errorf("%s: %w", remotefs.Redacted(address), err)
}

// of returns the path for a row.
func (p filePath) of(row *Row) (string, error) {
	if p.variable == nil {
		return p.constant, nil
	}
	v, err := p.variable.read(row)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("variable %s: expected a path, got %s", p.variable.of.ID, value.Describe(v))
	}
	path, err := location(s)
	if err != nil {
		return "", fmt.Errorf("variable %s: %w", p.variable.of.ID, err)
	}
	return path, nil
}

// location converts a file: URI to a local path. It returns local paths and other
// addresses unchanged.
func location(uri string) (string, error) {
	if strings.TrimSpace(uri) == "" {
		return "", errors.New("the path is empty")
	}
	rest, isFile := strings.CutPrefix(uri, "file://")
	if !isFile {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", fmt.Errorf("file://%s is not the URI of a local file", rest)
	}
	return u.Path, nil
}

// Process emits one row for each record as it is read. A record that does not fit fails
// its own row; a file that cannot be read fails the input row.
func (f *fileSource) Process(ctx context.Context, row *Row, emit Emit) error {
	path, err := f.path.of(row)
	if err != nil {
		return err
	}
	r, err := records.Open(ctx, path, records.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // closing a file that was only read cannot lose data
	if err := f.known(r); err != nil {
		return err
	}
	for rec, err := range r.All() {
		var rowError *records.RowError
		if err != nil && !errors.As(err, &rowError) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := row.Clone()
		if err == nil {
			err = f.fill(c, r, rec)
		}
		if err != nil {
			c.Err = &Error{Step: f.id, Err: err}
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// known returns an error if the file lacks a column, when the columns are known before
// the first record: one error instead of one for each record.
func (f *fileSource) known(r *records.Reader) error {
	columns := r.Columns()
	if columns == nil {
		return nil
	}
	for _, out := range f.outs {
		if _, ok := (records.Record{Columns: columns, Values: make([]any, len(columns))}).Get(out.of.ID); !ok && !out.of.IsOptional() {
			return fmt.Errorf("%s: no column %q; columns are %s", r.Path(), out.of.ID, listed(columns))
		}
	}
	return nil
}

// fill sets the outputs from a record, converted to their declared types.
func (f *fileSource) fill(row *Row, r *records.Reader, rec records.Record) error {
	for _, out := range f.outs {
		raw, ok := rec.Get(out.of.ID)
		if !ok && !out.of.IsOptional() {
			return fmt.Errorf("%s: no %q; the record has %s", place(r, rec), out.of.ID, listed(rec.Columns))
		}
		if text, isText := raw.(string); isText && r.Format().Cells() {
			raw = value.ParseCell(text)
		}
		v, err := value.Assign(out.of, raw)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", place(r, rec), out.of.ID, err)
		}
		out.write(row, v)
	}
	return nil
}

// place returns the position of a record, as precisely as its format allows.
func place(r *records.Reader, rec records.Record) string {
	if rec.Line > 0 {
		return fmt.Sprintf("%s:%d", r.Path(), rec.Line)
	}
	return fmt.Sprintf("%s: row %d", r.Path(), rec.Number)
}
