// Package records reads and writes files as streams of records: CSV, TSV, JSON,
// JSON lines, Parquet and (reading) Excel, packed with gzip or zstd where their
// names or their content say so, on this machine and at the addresses of package
// blob. A record is a row of named columns whose order is kept. Values are raw:
// what a declared type makes of them is not known here.
//
//	r, err := records.Open(ctx, "messages.csv", records.Options{})
//	…
//	defer r.Close()
//	for rec, err := range r.All() {
//		// a *RowError concerns this record alone, any other error is the last
//	}
//
// Readers hold one record at a time (and Parquet one page a column), writers
// likewise, whatever the size of the file; the one exception is a JSON object
// of columns, which cannot be turned into rows before its end.
//
// Readers and writers are for one goroutine at a time.
package records

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Format is a way to write records down.
type Format string

// The formats.
const (
	CSV     Format = "csv"     // comma-separated values, RFC 4180, with a header row
	TSV     Format = "tsv"     // the same with tabs
	JSON    Format = "json"    // an array of objects, or one object of columns
	JSONL   Format = "jsonl"   // one JSON object a line
	Parquet Format = "parquet" // Apache Parquet
	Excel   Format = "xlsx"    // an Excel workbook, whose first sheet is read; not written
)

// Formats lists the formats that can be written, in the order that messages show them.
func Formats() []Format { return []Format{CSV, TSV, JSON, JSONL, Parquet} }

// Cells tells whether a format's values are texts that a person typed into
// cells, for the declared type to read (value.Cell).
func (f Format) Cells() bool { return f == CSV || f == TSV || f == Excel }

// FormatOf is the format that a file's name stands for; an ending that says how
// it is packed (.gz, .zst) is passed over. It is false for a name that stands for none.
func FormatOf(path string) (Format, bool) {
	_, bare := compressionNamed(path)
	switch strings.ToLower(filepath.Ext(bare)) {
	case ".xlsx", ".xlsm":
		return Excel, true
	case ".csv":
		return CSV, true
	case ".tsv", ".tab":
		return TSV, true
	case ".json":
		return JSON, true
	case ".jsonl", ".ndjson":
		return JSONL, true
	case ".parquet", ".pq":
		return Parquet, true
	}
	return "", false
}

// Writable tells why no file of that name can be written; nil for one that can.
func Writable(path string) error {
	switch f, known := FormatOf(path); {
	case !known:
		return fmt.Errorf("%s: its name tells no format: .csv, .tsv, .json, .jsonl or .parquet is expected, perhaps with .gz or .zst behind it", path)
	case f == Excel:
		return fmt.Errorf("%s: Excel workbooks are read, not written: .csv or .parquet is expected", path)
	}
	return nil
}

// Record is one row. Values of CSV, TSV and Excel are strings; those of JSON are nil,
// bool, string, json.Number, []any and map[string]any; those of Parquet nil,
// bool, int64, float64, string, []byte, []any and map[string]any, with dates
// and times as ISO 8601 text and decimals as json.Number.
type Record struct {
	Number  int64    // counted from 1, faulty records included
	Line    int      // the line that it begins on, from 1; 0 in a file without lines
	Columns []string // the columns' names; shared between records, not to be changed
	Values  []any    // one for each column; the caller's own
}

// Get is the value of a column, and whether the record has that column.
func (r Record) Get(column string) (any, bool) {
	i := slices.Index(r.Columns, column)
	if i < 0 || i >= len(r.Values) {
		return nil, false
	}
	return r.Values[i], true
}

// FileError says why a file cannot be read or written.
type FileError struct {
	Path   string // the file
	Line   int    // the line of the fault, 0 where it is the file's as a whole
	Reason string // what is wrong, in a user's words
	Err    error  // what lies below, where there is something
}

// Error is "file: reason" or "file:line: reason".
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
	}
	return e.Path + ": " + e.Reason
}

// Unwrap is what lies below.
func (e *FileError) Unwrap() error { return e.Err }

// RowError says what is wrong with one record. Those after it can be read.
type RowError struct {
	Path   string // the file
	Number int64  // the record's number, from 1
	Line   int    // the line that it begins on, 0 in a file without lines
	Reason string // what is wrong, in a user's words
}

// Error names the place as closely as the format allows.
func (e *RowError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s: row %d: %s", e.Path, e.Number, e.Reason)
}

// Kind is what a written column holds.
type Kind int

// The kinds of columns.
const (
	Text     Kind = iota // strings
	Int                  // 64-bit integers
	Float                // 64-bit floating point numbers
	Bool                 // true and false
	Bytes                // byte strings; base64 where the format is a text
	JSONText             // any JSON value; its text where the format has no nesting
)

// Column is a column to write. Every column takes nil.
type Column struct {
	Name string // its name
	Kind Kind   // what it holds
}
