package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
)

// countThreshold is the size of a file, in bytes, up to which its rows are counted
// before the run, for the header and the progress bars.
const countThreshold = 8 << 20

// input is the source of a run's rows.
type input struct {
	cfg     *Config
	flow    *spec.Flow
	name    string          // the file's name; empty without a file
	file    *records.Reader // nil without a file
	values  []map[string]any
	total   int64    // the number of rows, -1 if unknown
	columns []string // of the file; nil if rows may have different ones
	base    string   // of the files that rows name, see runtime.Input
	typed   bool     // whether the input is part of the command, so that it may name any file
	session string   // the column with the sessions; empty if there is none
	user    string   // the column with the users; empty if there is none
	run     string   // the id of the run, part of the ids of --session-per-row
	rows    iter.Seq[runtime.Input]
	err     error // what ended the rows early

	needsSession bool   // the flow uses a memory
	checked      bool   // the first row was checked for a session
	newSession   string // the new session of a single row that names none; empty if there is none

	failedRows atomic.Bool            // the file has the failed rows of another run
	record     func(r records.Record) // called for each row before it runs; may be nil
}

func openInput(ctx context.Context, cfg *Config, flow *spec.Flow) (*input, error) {
	in := &input{cfg: cfg, flow: flow, total: -1, run: cmp.Or(cfg.RunID, chat.NewID()), needsSession: runtime.UsesSessions(flow)}
	if err := in.checkSessionFlags(); err != nil {
		return nil, err
	}
	switch {
	case cfg.InputFile != "":
		return in, in.openFile(ctx, cfg.InputFile)
	case cfg.Input != "":
		return in, in.openValue(cfg.Input)
	case len(in.required()) > 0:
		var names []string
		for _, v := range in.required() {
			names = append(names, fmt.Sprintf("%s (%s)", v.ID, v.Type))
		}
		return nil, terminal.Usagef("flow %s needs input: %s; pass -i JSON, or rows with -I FILE", flow.ID, textfmt.List(names))
	}
	in.values, in.total = []map[string]any{{}}, 1
	in.rows = in.valueRows
	return in, in.prepareValueSessions()
}

// required returns the flow's inputs that every row must have.
func (in *input) required() []*spec.Variable {
	var all []*spec.Variable
	for _, ref := range in.flow.Inputs {
		if !ref.To.IsOptional() {
			all = append(all, ref.To)
		}
	}
	return all
}

func (in *input) close() {
	if in.file != nil {
		_ = in.file.Close() // only read
	}
}

// openFile opens a file of rows and checks its columns if they are known.
func (in *input) openFile(ctx context.Context, path string) error {
	file, err := in.openRecords(ctx, path)
	if err != nil {
		return err
	}
	in.file, in.name, in.columns = file, file.Path(), file.Columns()
	in.base = mediafile.BaseOf(path)
	if key, formats := in.cfg.Table.Unfit(string(file.Format())); key != "" {
		in.close()
		return terminal.Usagef("--table %s: %s has the format %s; the option is for %s", key, in.name, file.Format(), formats)
	}
	if err := in.checkColumns(); err != nil {
		in.close()
		return err
	}
	if n, known := file.Total(); known {
		in.total = n
	} else if countable(path) {
		if n, err := records.Count(ctx, path, in.options()); err == nil {
			in.total = n
		}
	}
	in.total = in.applyLimits(in.total)
	in.rows = in.fileRows
	return nil
}

// stdinFile is the path that means standard input in -I.
const stdinFile = "-"

func (in *input) openRecords(ctx context.Context, path string) (*records.Reader, error) {
	if path == stdinFile {
		return records.OpenStream(ctx, in.cfg.Streams.In, "standard input", in.options())
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".yaml" || ext == ".yml" {
		return nil, terminal.Usagef("-I %s: rows are read from .csv, .tsv, .json, .jsonl, .parquet and .xlsx, not from YAML", path)
	}
	return records.Open(ctx, path, in.options())
}

// options returns how the file is read: the columns of the flow's inputs, of the session and of the user
// are needed, and the others only for the file of failed rows.
func (in *input) options() records.Options {
	opts := records.Options{Table: in.flow.Table.With(&in.cfg.Table), Rest: in.cfg.ErrorFile != "", Variables: []*spec.Variable{}}
	for _, ref := range in.flow.Inputs {
		opts.Variables = append(opts.Variables, ref.To)
	}
	for _, column := range slices.Concat([]string{in.cfg.SessionColumn, in.cfg.UserColumn, "error_step"}, sessionColumns(), userColumns()) {
		opts.Variables = append(opts.Variables, &spec.Variable{ID: column})
	}
	return opts
}

// countable reports whether a file is small and can be read twice.
func countable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() <= countThreshold
}

// checkColumns checks that the file has the columns that every row needs, and finds the
// columns of the session and the user.
func (in *input) checkColumns() error {
	in.session, in.user = in.cfg.SessionColumn, in.cfg.UserColumn
	if in.columns == nil {
		return nil
	}
	for _, v := range in.required() {
		if !slices.Contains(in.columns, v.ID) {
			help := cmp.Or(diag.DidYouMean(v.ID, in.columns), in.file.Hint())
			return fmt.Errorf("%s: no column %q, which flow %s needs as its input; the columns are: %s%s",
				in.name, v.ID, in.flow.ID, textfmt.List(in.columns), help)
		}
	}
	return in.findSessionColumns()
}

// fileRows yields the rows of the file. A row that cannot be read is a failed row;
// any other error ends the rows and is kept in err.
func (in *input) fileRows(yield func(runtime.Input) bool) {
	for rec, err := range in.file.All() {
		if in.pastLimit(rec.Number) {
			return
		}
		if _, bad := errors.AsType[*records.RowError](err); err != nil && !bad {
			in.err = err
			return
		}
		if !in.selects(rec.Number, func() records.Record { return rec }) {
			continue
		}
		if in.err = in.checkFirst(rec, err == nil); in.err != nil {
			return
		}
		if slices.Contains(rec.Columns, "error_step") {
			in.failedRows.Store(true)
		}
		if !yield(in.rowOf(rec, err)) {
			return
		}
	}
}

// pastLimit reports whether a row comes after the last one that is run.
func (in *input) pastLimit(number int64) bool {
	return in.cfg.Limit > 0 && number-in.cfg.Offset > in.cfg.Limit // a sum could overflow
}

// selects reports whether a row is run, and records it if so.
func (in *input) selects(number int64, rec func() records.Record) bool {
	if number <= in.cfg.Offset {
		return false
	}
	if in.record != nil {
		in.record(rec())
	}
	return true
}

// applyLimits returns how many of total rows are run; -1 if that is unknown.
func (in *input) applyLimits(total int64) int64 {
	if total < 0 {
		return total
	}
	total = max(total-in.cfg.Offset, 0)
	if in.cfg.Limit > 0 {
		total = min(total, in.cfg.Limit)
	}
	return total
}

// rowOf returns a record as a row to run; err is why it could not be read.
func (in *input) rowOf(rec records.Record, err error) runtime.Input {
	row := runtime.Input{Columns: rec.Columns, Cells: rec.Values, Text: in.file.Format().Cells(), Number: rec.Number, Err: err, Base: in.base}
	session, missing := in.sessionOf(rec.Get, rec.Number)
	row.Session = session
	if err == nil {
		row.Err = missing
	}
	return row
}
