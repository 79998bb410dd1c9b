package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// countThreshold is the size of a file, in bytes, up to which its rows are counted
// before the run, for the header and the bars.
const countThreshold = 8 << 20

// maxInput is the most bytes that -i takes from a file or standard input.
const maxInput = 64 << 20

// input is where a run's rows come from.
type input struct {
	name    string   // the file's name, empty for a single input
	total   int64    // how many rows there are, -1 where that is not known
	columns []string // of the file, nil where each row has its own
	session string   // the column that names sessions, empty where none does
	rows    iter.Seq[runtime.Input]
	fault   error                  // what ended the rows before their time
	record  func(r records.Record) // told of every row before it runs, where set
	file    *records.Reader        // nil for a single input
	memory  []map[string]any       // the rows of a single input
	flow    *spec.Flow             // the flow that takes the rows
	run     *runCommand            // the flags
}

// openInput finds out where the rows come from.
func (r *runCommand) openInput(ctx context.Context, flow *spec.Flow) (*input, error) {
	in := &input{total: -1, flow: flow, run: r}
	switch {
	case r.inputFile != "":
		return in, in.openFile(ctx, r.inputFile)
	case r.input != "":
		return in, in.openValue(r.input)
	case len(in.required()) > 0:
		var names []string
		for _, v := range in.required() {
			names = append(names, fmt.Sprintf("%s (%s)", v.ID, v.Type))
		}
		return nil, usagef("flow %s needs input: %s; give it by -i JSON, or rows by -I FILE", flow.ID, joinNames(names))
	}
	in.memory, in.total = []map[string]any{{}}, 1
	in.rows = in.values
	return in, nil
}

// required are the flow's inputs that every row must have.
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

// openFile opens a file of rows and checks its columns where they are known.
func (in *input) openFile(ctx context.Context, path string) error {
	file, err := records.Open(ctx, path, records.Options{})
	if err != nil {
		return err
	}
	in.file, in.name, in.columns = file, file.Path(), file.Columns()
	if err := in.checkColumns(); err != nil {
		in.close()
		return err
	}
	if n, known := file.Total(); known {
		in.total = n
	} else if countable(path) {
		if n, err := records.Count(ctx, path, records.Options{}); err == nil {
			in.total = n
		}
	}
	in.total = in.run.applyLimits(in.total)
	in.rows = in.fileRows
	return nil
}

// countable tells whether a file is small, and can be read twice: a pipe cannot.
func countable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() <= countThreshold
}

// checkColumns demands the columns that every row would miss, and picks the
// session's column.
func (in *input) checkColumns() error {
	in.session = in.run.sessionColumn
	if in.columns == nil {
		return nil
	}
	for _, v := range in.required() {
		if !slices.Contains(in.columns, v.ID) {
			return fmt.Errorf("%s: no column %q, which flow %s needs as its input; the columns are: %s%s",
				in.name, v.ID, in.flow.ID, joinNames(in.columns), didYouMean(v.ID, in.columns))
		}
	}
	if c := in.run.sessionColumn; c != "" {
		if !slices.Contains(in.columns, c) {
			return fmt.Errorf("%s: no column %q for the sessions; the columns are: %s%s",
				in.name, c, joinNames(in.columns), didYouMean(c, in.columns))
		}
		return nil
	}
	for _, c := range []string{"session_id", "session"} {
		if slices.Contains(in.columns, c) {
			in.session = c
			return nil
		}
	}
	return nil
}

// fileRows reads the file. A row that cannot be read is a failed row; any other
// fault ends the rows and is kept.
func (in *input) fileRows(yield func(runtime.Input) bool) {
	for rec, err := range in.file.All() {
		if in.pastLimit(rec.Number) {
			return
		}
		var bad *records.RowError
		if err != nil && !errors.As(err, &bad) {
			in.fault = err
			return
		}
		if !in.selects(rec.Number, func() records.Record { return rec }) {
			continue
		}
		if !yield(in.rowFrom(rec, err)) {
			return
		}
	}
}

// pastLimit tells whether a row comes after those of --limit.
func (in *input) pastLimit(number int64) bool {
	return in.run.limit > 0 && number-in.run.offset > in.run.limit // a sum of the two may be too big a number
}

// selects reports whether a row is run: it is among those that --offset leaves.
func (in *input) selects(number int64, rec func() records.Record) bool {
	if number <= in.run.offset {
		return false
	}
	if in.record != nil {
		in.record(rec())
	}
	return true
}

// applyLimits is how many of so many rows --offset and --limit leave; -1 where that is not known.
func (r *runCommand) applyLimits(total int64) int64 {
	if total < 0 {
		return total
	}
	total = max(total-r.offset, 0)
	if r.limit > 0 {
		total = min(total, r.limit)
	}
	return total
}

// rowFrom returns a record as a row to run; err is why it could not be read.
func (in *input) rowFrom(rec records.Record, err error) runtime.Input {
	row := runtime.Input{Columns: rec.Columns, Cells: rec.Values, Text: in.file != nil && in.file.Format().Cells(), Number: rec.Number, Err: err}
	session, missing := in.sessionOf(rec.Get)
	row.Session = session
	if err == nil {
		row.Err = missing
	}
	return row
}

// sessionOf is the session that a row names, --session where that is given. A
// row without the column that --session-column names is refused: it must not
// end up in somebody else's conversation.
func (in *input) sessionOf(get func(string) (any, bool)) (string, error) {
	if in.run.session != "" {
		return in.run.session, nil
	}
	columns := []string{in.session}
	if in.session == "" {
		columns = []string{"session_id", "session"}
	}
	for _, c := range columns {
		if v, ok := get(c); ok && v != nil {
			return value.Text(v), nil
		}
	}
	if c := in.run.sessionColumn; c != "" {
		return "", fmt.Errorf("the row has no %q, which names its session", c)
	}
	return "", nil
}

// openValue reads what -i gives: JSON, a plain text, @file or -.
func (in *input) openValue(arg string) error {
	text, from, err := in.fetch(arg)
	if err != nil {
		return err
	}
	in.memory, err = in.parse(text)
	if err == nil {
		err = in.unknown(in.memory)
	}
	if err != nil {
		if from == "" {
			return &usageError{reason: "-i: " + err.Error()}
		}
		return fmt.Errorf("%s: %w", from, err)
	}
	in.total, in.session = in.run.applyLimits(int64(len(in.memory))), in.run.sessionColumn
	in.rows = in.values
	return nil
}

// fetch is the text of -i and where it came from, empty for the command line itself.
func (in *input) fetch(arg string) (text []byte, from string, err error) {
	path, isFile := strings.CutPrefix(arg, "@")
	var source io.Reader
	switch {
	case arg == "-":
		source, from = in.run.in, "standard input"
	case isFile:
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, "", fmt.Errorf("%s: is a directory, not a file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, plainCause(err))
		}
		defer func() { _ = f.Close() }() // only read
		source, from = f, path
	default:
		return []byte(arg), "", nil
	}
	text, err = io.ReadAll(io.LimitReader(source, maxInput+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", from, plainCause(err))
	case len(text) > maxInput:
		return nil, "", fmt.Errorf("%s: is longer than 64 MB: give many rows by -I FILE", from)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), from, nil
}

// parse makes rows of the text of -i.
func (in *input) parse(text []byte) ([]map[string]any, error) {
	body := bytes.TrimSpace(text)
	if len(body) == 0 {
		return nil, errors.New("the input is empty")
	}
	if single := in.single(); single != nil && body[0] != '{' && body[0] != '[' {
		return []map[string]any{{single.ID: plainInput(single, body)}}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", jsonFault(err))
	}
	if dec.More() {
		return nil, errors.New("not valid JSON: something follows the first value; give many rows as an array")
	}
	switch v := v.(type) {
	case map[string]any:
		return []map[string]any{v}, nil
	case []any:
		return objects(v)
	}
	return nil, fmt.Errorf("a JSON object with the flow's inputs is expected: %s", in.example())
}

// unknown refuses keys that are neither inputs nor name the session: what is
// given by -i is meant, unlike a further column of a file.
func (in *input) unknown(rows []map[string]any) error {
	var known []string
	for _, ref := range in.flow.Inputs {
		known = append(known, ref.To.ID)
	}
	for i, row := range rows {
		for _, key := range slices.Sorted(maps.Keys(row)) {
			if slices.Contains(known, key) || key == in.run.sessionColumn || key == "session" || key == "session_id" {
				continue
			}
			where := ""
			if len(rows) > 1 {
				where = fmt.Sprintf("item %d of the array: ", i+1)
			}
			inputs := "; there are: " + joinNames(known)
			if len(known) == 0 {
				inputs = "; it has none"
			}
			return fmt.Errorf("%sflow %s has no input %q%s%s", where, in.flow.ID, key, inputs, didYouMean(key, known))
		}
	}
	return nil
}

// jsonFault is a JSON error with its place.
func jsonFault(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends before it is complete"
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s at character %d", syntax.Error(), syntax.Offset)
	}
	return "it cannot be read"
}

// objects are the rows of an array.
func objects(list []any) ([]map[string]any, error) {
	rows := make([]map[string]any, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d of the array is not an object: a row is an object with the flow's inputs", i+1)
		}
		rows[i] = m
	}
	return rows, nil
}

// single is the flow's one required input, or its only one; nil where there are
// several or where its values are objects or lists.
func (in *input) single() *spec.Variable {
	required := in.required()
	if len(required) == 1 {
		return required[0]
	}
	if len(required) == 0 && len(in.flow.Inputs) == 1 {
		return in.flow.Inputs[0].To
	}
	return nil
}

// plainInput is a text that is no object as the value of an input: a JSON
// string stands for its content.
func plainInput(v *spec.Variable, body []byte) any {
	if body[0] == '"' {
		var s string
		if json.Unmarshal(body, &s) == nil {
			return s
		}
	}
	if v.Type.Is("text") || v.Type.Is("ChatMessage") {
		return string(body)
	}
	return value.ParseCell(body)
}

// example is an input that would do.
func (in *input) example() string {
	var parts []string
	for _, ref := range in.flow.Inputs {
		parts = append(parts, fmt.Sprintf("%q: …", ref.To.ID))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// values yields the rows of a single input.
func (in *input) values(yield func(runtime.Input) bool) {
	for i, row := range in.memory {
		number := int64(i) + 1
		if in.pastLimit(number) {
			return
		}
		if !in.selects(number, func() records.Record { return recordOf(row, number) }) {
			continue
		}
		get := func(c string) (any, bool) { v, ok := row[c]; return v, ok }
		session, err := in.sessionOf(get)
		if !yield(runtime.Input{Values: row, Session: session, Number: number, Err: err}) {
			return
		}
	}
}

// recordOf is a row of -i as a record, columns in alphabetical order.
func recordOf(row map[string]any, number int64) records.Record {
	rec := records.Record{Number: number}
	for c := range row {
		rec.Columns = append(rec.Columns, c)
	}
	slices.Sort(rec.Columns)
	for _, c := range rec.Columns {
		rec.Values = append(rec.Values, row[c])
	}
	return rec
}
