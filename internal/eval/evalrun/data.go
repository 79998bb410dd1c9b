package evalrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// maxRows is the maximum number of rows of a data set: all results are held in memory.
const maxRows = 1_000_000

// dataset is the rows of an evaluation.
type dataset struct {
	path string
	base string // of the files that rows name, see runtime.Input
	rows []dataRow
	text bool   // cells are untyped text
	mark string // between a session and the number of a trial: no session of the data has it
}

// dataRow is one row.
type dataRow struct {
	records.Record
	err     error      // why it could not be read
	session string     // of the row; unique if the data has none
	shared  bool       // the data names the session
	user    *eval.User // nil for a row of data
}

// readData reads the rows.
func readData(ctx context.Context, cfg *Config, path string, table *spec.Table) (*dataset, error) {
	file, err := records.Open(ctx, path, records.Options{Table: table})
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	d := &dataset{path: file.Path(), base: mediafile.BaseOf(path), text: file.Format().Cells()}
	if c, columns := cfg.Session, file.Columns(); c != "" && columns != nil && !slices.Contains(columns, c) {
		return nil, fmt.Errorf("%s: no column %q for the sessions; the columns are: %s%s", d.path, c, textfmt.List(columns), diag.DidYouMean(c, columns))
	}
	failed := cfg.OnlyFailed.failedRows()
	for rec, err := range file.All() {
		var bad *records.RowError
		if err != nil && !errors.As(err, &bad) {
			return nil, err
		}
		if cfg.OnlyFailed != nil && !failed[rec.Number] {
			continue
		}
		if cfg.Limit > 0 && int64(len(d.rows)) == cfg.Limit {
			break
		}
		if len(d.rows) == maxRows {
			return nil, fmt.Errorf("%s: more than %s: use --limit", d.path, textfmt.Count(int64(maxRows), "row"))
		}
		d.rows = append(d.rows, newDataRow(cfg, rec, err))
	}
	d.separate()
	if len(d.rows) == 0 && cfg.OnlyFailed != nil {
		return nil, fmt.Errorf("%s: no row failed in the report of %s", d.path, cfg.OnlyFailed.Data)
	}
	if len(d.rows) == 0 {
		return nil, fmt.Errorf("%s: no rows to evaluate", d.path)
	}
	return d, nil
}

func newDataRow(cfg *Config, rec records.Record, err error) dataRow {
	r := dataRow{Record: rec, err: err, session: fmt.Sprintf("row-%d", rec.Number)}
	columns := []string{"session_id", "session"}
	if cfg.Session != "" {
		columns = []string{cfg.Session}
	}
	for _, c := range columns {
		if v, ok := rec.Get(c); ok && v != nil && value.Text(v) != "" {
			r.session, r.shared = value.Text(v), true
			break
		}
	}
	return r
}

// separate gives rows without a session ids that no session of the data has.
func (d *dataset) separate() {
	named := map[string]bool{}
	for _, r := range d.rows {
		named[r.session] = named[r.session] || r.shared
	}
	for i := range d.rows {
		for r := &d.rows[i]; !r.shared && named[r.session]; {
			r.session += "-alone"
		}
	}
	d.mark = "-trial-"
	for slices.ContainsFunc(d.rows, func(r dataRow) bool { return strings.Contains(r.session, d.mark) }) {
		d.mark += "-"
	}
}

// sessionOf returns the session of a row in a trial, from 0: each trial has new memories.
func (d *dataset) sessionOf(r *dataRow, trial int) string {
	if trial == 0 {
		return r.session
	}
	return fmt.Sprintf("%s%s%d", r.session, d.mark, trial+1)
}

// checkColumns reports inputs of the flow and expected values that no row has.
func (e *Evaluation) checkColumns(d *dataset) error {
	columns := map[string]bool{}
	for _, r := range d.rows {
		for _, c := range r.Columns {
			columns[c] = true
		}
	}
	names := slices.Sorted(maps.Keys(columns))
	for _, m := range e.metrics {
		if c := m.declared.When; c != "" && !columns[c] {
			return fmt.Errorf("%s: no column %q, by which metric %s selects rows; the columns are: %s%s", d.path, c, m.declared.Name(), textfmt.List(names), diag.DidYouMean(c, names))
		}
		if c := m.declared.Expected; slices.Contains(m.row.Keys, "expected") && !m.fixed && m.row.Name != "judge" && !columns[c] {
			return lacksColumn(d, c, fmt.Sprintf("which metric %s compares the output with", m.declared.Name()), names)
		}
	}
	for _, ref := range e.flow.Inputs {
		v := ref.To
		given := func(v *spec.Variable) bool {
			return !slices.ContainsFunc(e.variants, func(x *variant) bool { _, ok := x.declared.Inputs[v.ID]; return !ok })
		}
		if !v.IsOptional() && !columns[v.ID] && !given(v) {
			return lacksColumn(d, v.ID, fmt.Sprintf("which flow %s needs as its input", e.flow.ID), names)
		}
	}
	return nil
}

// input returns a row to run, with the inputs of a variant.
func (d *dataset) input(r *dataRow, v *spec.Variant) runtime.Input {
	in := runtime.Input{Columns: slices.Clone(r.Columns), Cells: slices.Clone(r.Values), Text: d.text, Session: r.session, Number: r.Number, Err: r.err, Base: d.base}
	values := v.Inputs
	if r.user != nil { // the columns of the row are not inputs
		in.Columns, in.Cells, values = nil, nil, maps.Clone(r.user.Declared.Inputs)
		if values == nil {
			values = map[string]any{}
		}
		maps.Copy(values, v.Inputs)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if i := slices.Index(in.Columns, name); i >= 0 && i < len(in.Cells) {
			in.Cells[i] = values[name]
			continue
		}
		in.Columns, in.Cells = append(in.Columns, name), append(in.Cells, values[name])
	}
	return in
}

// applies reports whether a metric scores a row.
func (m *metric) applies(r *dataRow) bool {
	if m.declared.When == "" {
		return true
	}
	v, _ := r.Get(m.declared.When)
	return v != nil && v != "" && v != false
}

// expected returns the expected value of a row for a metric.
func (m *metric) expected(d *dataset, r *dataRow) (v any, known bool) {
	if m.fixed {
		return m.declared.Value, true
	}
	v, known = r.Get(m.declared.Expected)
	if text, ok := v.(string); ok && d.text && m.output != nil && !isText(m.output) {
		return value.ParseCell(text), true
	}
	return v, known && v != nil
}

// lacksColumn returns the error of data without a column, with what it is for.
func lacksColumn(d *dataset, column, purpose string, names []string) error {
	return fmt.Errorf("%s: no column %q, %s; the columns are: %s%s", d.path, column, purpose, textfmt.List(names), diag.DidYouMean(column, names))
}
