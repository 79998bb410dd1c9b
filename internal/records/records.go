// Package records reads and writes files as streams of records: CSV, TSV, JSON,
// JSON lines and (reading only) Excel, and formats that the program has as parts, such as Parquet, compressed with gzip or zstd, local
// or at the URLs that package remotefs knows. A record is a row of named columns
// in the order of the file. Readers return values as the file has them; coercing
// them to declared types is up to the caller. Writers take these values and
// run-time values of package value.
//
//	r, err := records.Open(ctx, "messages.csv", records.Options{})
//	…
//	defer r.Close()
//	for rec, err := range r.All() {
//		// a *RowError concerns this record alone, any other error is the last
//	}
//
// Readers and writers hold one record in memory at a time (for Parquet one page of
// each column), however large the file is. The exception is a JSON object of
// columns, whose rows are known only at its end.
//
// Readers and writers are not safe for concurrent use.
package records

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// Format is a file format for records.
type Format string

// The formats.
const (
	CSV     Format = "csv"     // comma-separated values, RFC 4180, with a header row
	TSV     Format = "tsv"     // the same with tabs
	JSON    Format = "json"    // an array of objects, or one object of columns
	JSONL   Format = "jsonl"   // one JSON object a line
	Parquet Format = "parquet" // Apache Parquet, which is a part
	Excel   Format = "xlsx"    // an Excel workbook; its first sheet is read; cannot be written
)

// Core lists the formats that every program has, in the order that messages show them.
func Core() []Format { return []Format{CSV, TSV, JSON, JSONL, Excel} }

// Cells reports whether a format's values are untyped text, so that the declared
// type decides how to read them (see value.ParseCell).
func (f Format) Cells() bool { return f == CSV || f == TSV || f == Excel }

// FormatOf returns the format of a file by its extension, after the extension of
// a compression (.gz, .zst); false if there is none.
func FormatOf(path string) (Format, bool) {
	f := spec.FileFormat(path)
	return Format(f), f != ""
}

// Writable returns an error if a file of that name cannot be written.
func Writable(path string) error {
	if problem := spec.UnwritableFile(path); problem != "" {
		return fmt.Errorf("%s: %s", path, problem)
	}
	return nil
}

// Record is one row. Values of CSV, TSV and Excel are strings. Those of JSON are as
// value.Parse returns them, but numbers that are not nested are json.Number. Those
// of Parquet are nil, bool, int64, float64, string, []byte, []any and
// map[string]any, with dates and times as ISO 8601 text and decimals as value.Decimal.
type Record struct {
	Number  int64    // counted from 1, invalid records included
	Line    int      // the line that it begins on, from 1; 0 in a file without lines
	Columns []string // the columns' names; shared between records, not to be changed
	Values  []any    // one for each column; the caller's own
}

// Get returns the value of a column and whether the record has that column.
func (r Record) Get(column string) (any, bool) {
	i := slices.Index(r.Columns, column)
	if i < 0 || i >= len(r.Values) {
		return nil, false
	}
	return r.Values[i], true
}

// FileError reports why a file cannot be read or written.
type FileError struct {
	Path   string // the file
	Line   int    // the line of the error, 0 if it concerns the whole file
	Reason string // what is wrong, in words for the user
	Err    error  // the cause, if there is one
}

// Error returns "file: reason" or "file:line: reason".
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
	}
	return e.Path + ": " + e.Reason
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// RowError reports what is wrong with one record. The next records can be read.
type RowError struct {
	Path   string // the file
	Number int64  // the record's number, from 1
	Line   int    // the line that it begins on, 0 in a file without lines
	Reason string // what is wrong, in words for the user
}

// Error names the line, or the record if the file has no lines.
func (e *RowError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s: row %d: %s", e.Path, e.Number, e.Reason)
}

// Kind is the type of a column that is written.
type Kind int

// The kinds of columns.
const (
	Text     Kind = iota // strings
	Int                  // 64-bit integers
	Float                // 64-bit floating point numbers
	Bool                 // true and false
	Bytes                // byte strings; in text formats text, or {"base64": "…"} if they are not UTF-8
	JSONText             // any value, as JSON; as a string in flat formats
)

// KindOf returns the kind of column that holds the values of a type. Roles are text;
// dates and times are ISO text.
func KindOf(t spec.Type) Kind {
	switch {
	case t.Is("int"):
		return Int
	case t.Is("float"):
		return Float
	case t.Is("boolean"):
		return Bool
	case t.IsMedia():
		return Bytes
	case t.IsList(), t.IsRecord(), t.Is(spec.Any), t.Is("map"):
		return JSONText
	}
	return Text
}

// Column is a column to write. Every column accepts null.
type Column struct {
	Name string    // its name
	Kind Kind      // how its values are written
	Type spec.Type // the type of its values, for formats that have types; optional

	// NoFormulas is whether a text in a CSV or TSV file that a spreadsheet would take for a
	// formula gets an apostrophe before it.
	NoFormulas bool
}

// ColumnOf returns the column of a variable.
func ColumnOf(v *spec.Variable) Column { return Column{Name: v.ID, Kind: KindOf(v.Type), Type: v.Type} }
