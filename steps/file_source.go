package steps

import (
	"context"
	"errors"
	"fmt"

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
	read records.Options
}

func buildFileSource(s *spec.FileSource, env *Env) (Runner, error) {
	f := &fileSource{id: s.ID}
	var err error
	if f.path, err = env.filePath(s.Path, s.Base, remotefs.Readable); err != nil {
		return nil, err
	}
	f.outs, err = env.slots(s.Outputs)
	f.read = records.Options{Table: s.Table, Variables: []*spec.Variable{}}
	for _, out := range f.outs {
		f.read.Variables = append(f.read.Variables, out.of)
	}
	return f, err
}

// Process emits one row for each record as it is read. A record that does not fit fails
// its own row; a file that cannot be read fails the input row.
func (f *fileSource) Process(ctx context.Context, row *Row, emit Emit) error {
	path, err := f.path.of(ctx, row)
	if err == nil {
		err = f.path.check(ctx, path)
	}
	if err != nil {
		return err
	}
	r, err := records.Open(ctx, path, f.read)
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
			return fmt.Errorf("%s: no column %q; columns are %s%s", r.Path(), out.of.ID, listed(columns), r.Hint())
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
