package records

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// startJSON sets up the reader by the first character. A file of JSON lines that
// begins with "[" is read as an array, and a .json file may contain one object
// after the other.
func (r *Reader) startJSON(in *bufio.Reader, head []byte) error {
	if bytes.HasPrefix(head, bomUTF8) {
		_, _ = in.Discard(len(bomUTF8)) // was peeked
	}
	body := bytes.TrimSpace(bytes.TrimPrefix(head, bomUTF8))
	if r.format == JSONL && body[0] != '[' {
		l := &lines{scanner: scanner{in: in, path: r.path}}
		r.next, r.skip = l.next, l.skip
		return nil
	}
	a := &array{path: r.path, in: &lineCounter{in: in, path: r.path, line: 1}}
	a.in.allow(maxColumnTable)
	a.dec = json.NewDecoder(a.in)
	a.dec.UseNumber()
	if body[0] != '[' {
		return r.startObject(a)
	}
	if _, err := a.dec.Token(); err != nil {
		return a.describe(err)
	}
	a.open = true
	r.next, r.skip = a.next, a.skip
	return nil
}

// startObject reads the whole first object: whether it is a record or a set of
// columns is known only at its end.
func (r *Reader) startObject(a *array) error {
	var raw json.RawMessage
	if err := a.dec.Decode(&raw); err != nil {
		return a.describe(err)
	}
	names, values, err := value.ParseObject(string(raw), nil)
	if err != nil { // the decoder accepts deeper nesting
		return a.describe(err)
	}
	if r.table.Rows != "" {
		return r.startMember(names, values)
	}
	if !a.dec.More() {
		if done, err := r.wholeObject(&names, &values); done || err != nil {
			return err
		}
	}
	first := &Record{Columns: names, Values: values}
	r.next = func() (Record, error) {
		if first != nil {
			rec := *first
			first = nil
			return rec, nil
		}
		return a.next()
	}
	return nil
}

// wholeObject reads the only object of a file: if it is a table, the rows come from its columns, and it is done. Its
// names and values become those of the record that it is otherwise.
func (r *Reader) wholeObject(names *[]string, values *[]any) (done bool, err error) {
	if member := r.onlyRows(*names, *values); member != "" {
		return false, &FileError{Path: r.path, Reason: fmt.Sprintf("is one object; the table option rows=%s reads the objects in its member %[1]s", member)}
	}
	*names, *values = splitTable(*names, *values)
	if lists, isTable := indexedColumns(*values); isTable {
		*values = lists
	}
	rows, isTable := tableOf(*values)
	switch {
	case !isTable:
		return false, nil
	case rows < 0:
		return false, &FileError{Path: r.path, Reason: "the columns have different lengths"}
	}
	r.columns, r.total = *names, int64(rows)
	r.next = columnRows(*names, *values, rows)
	return true, nil
}

// startMember reads the objects in a member of the file's object.
func (r *Reader) startMember(names []string, values []any) error {
	var list []any
	i := slices.Index(names, r.table.Rows)
	if i >= 0 {
		list, _ = values[i].([]any)
	}
	if list == nil {
		return &FileError{Path: r.path, Reason: fmt.Sprintf("has no list in a member %q; the members are %s", r.table.Rows, strings.Join(names, ", "))}
	}
	r.total = int64(len(list))
	row := 0
	r.next = func() (Record, error) {
		if row == len(list) {
			return Record{}, io.EOF
		}
		object, isObject := list[row].(*value.Record)
		row++
		if !isObject {
			return Record{}, &RowError{Reason: fmt.Sprintf("the row is %s, not an object", value.Describe(list[row-1]))}
		}
		rec := Record{Columns: object.Names()}
		for _, v := range object.All() {
			rec.Values = append(rec.Values, v)
		}
		return rec, nil
	}
	return nil
}

// onlyRows returns the member of an object that has the rows of a file, if no variable reads a member
// of the object itself; empty if none has.
func (r *Reader) onlyRows(names []string, values []any) string {
	if !slices.ContainsFunc(r.vars, func(v *spec.Variable) bool { return v.Type.Name != "" }) {
		return ""
	}
	found := ""
	for i, name := range names {
		list, _ := values[i].([]any)
		switch {
		case r.reads(name):
			return ""
		case len(list) == 0:
			continue
		}
		if _, isObject := list[0].(*value.Record); isObject && found == "" {
			found = name
		}
	}
	return found
}

// splitTable returns the columns of an object that pandas has written with orient="split": names,
// an index and rows. It returns another object as it is.
func splitTable(names []string, values []any) ([]string, []any) {
	if sorted := slices.Sorted(slices.Values(names)); !slices.Equal(sorted, []string{"columns", "data", "index"}) {
		return names, values
	}
	header, isNames := values[slices.Index(names, "columns")].([]any)
	rows, isRows := values[slices.Index(names, "data")].([]any)
	columns, lists := make([]string, len(header)), make([]any, len(header))
	for i := range header {
		var isText bool
		if columns[i], isText = header[i].(string); !isText || slices.Contains(columns[:i], columns[i]) {
			return names, values
		}
		list := make([]any, len(rows))
		for j := range rows {
			row, _ := rows[j].([]any)
			if len(row) != len(header) {
				return names, values
			}
			list[j] = row[i]
		}
		lists[i] = list
	}
	if !isNames || !isRows || len(columns) == 0 {
		return names, values
	}
	return columns, lists
}

// tableOf reports whether all values are lists, and returns their length; -1 if
// their lengths differ.
func tableOf(values []any) (rows int, isTable bool) {
	for i, v := range values {
		list, isList := v.([]any)
		switch {
		case !isList:
			return 0, false
		case i == 0:
			rows = len(list)
		case rows != len(list):
			rows = -1
		}
	}
	return rows, len(values) > 0
}

// indexedColumns returns the columns of an object that pandas has written: each value is an
// object whose keys are the numbers of the index, the same in each.
func indexedColumns(values []any) (lists []any, isTable bool) {
	var index []string
	for i, v := range values {
		column, isObject := v.(*value.Record)
		if !isObject || column.Len() == 0 {
			return nil, false
		}
		if i == 0 {
			index = column.Names()
		}
		if !slices.Equal(index, column.Names()) {
			return nil, false
		}
		list := make([]any, 0, len(index))
		for _, item := range column.All() {
			list = append(list, item)
		}
		lists = append(lists, list)
	}
	isNumber := func(key string) bool { return strings.Trim(key, "0123456789") == "" }
	return lists, len(index) > 0 && !slices.ContainsFunc(index, func(key string) bool { return !isNumber(key) })
}

// columnRows returns an iterator over lists of one length, a row at a time.
func columnRows(names []string, lists []any, rows int) func() (Record, error) {
	row := 0
	return func() (Record, error) {
		if row == rows {
			return Record{}, io.EOF
		}
		rec := Record{Columns: names, Values: make([]any, len(names))}
		for i := range lists {
			rec.Values[i] = lists[i].([]any)[row]
		}
		row++
		return rec, nil
	}
}

// array reads the elements of an array, or objects one after the other.
type array struct {
	path    string
	in      *lineCounter
	dec     *json.Decoder
	columns []string        // of the last record
	open    bool            // the objects are in an array
	raw     json.RawMessage // the text of the last element
	failed  error           // what ended the rows
}

func (a *array) next() (Record, error) {
	if err := a.skip(); err != nil {
		return Record{}, err
	}
	return parseRecord(a.raw, &a.columns)
}

// skip reads the text of the next element to raw.
func (a *array) skip() error {
	if a.failed != nil {
		return a.failed
	}
	a.in.allow(maxRecord)
	if !a.dec.More() {
		return a.end()
	}
	a.raw = a.raw[:0]
	if err := a.dec.Decode(&a.raw); err != nil {
		return a.fail(a.describe(err))
	}
	return nil
}

// end checks that the array is closed and that nothing follows it.
func (a *array) end() error {
	tok, err := a.dec.Token()
	switch {
	case errors.Is(err, io.EOF) && !a.open:
		return a.fail(io.EOF)
	case err != nil:
		return a.fail(a.describe(err))
	case tok == json.Delim(']'):
		if _, err := a.dec.Token(); !errors.Is(err, io.EOF) {
			return a.fail(&FileError{Path: a.path, Line: a.in.lineAt(a.dec.InputOffset()), Reason: "unexpected text after the end of the array"})
		}
	}
	return a.fail(io.EOF)
}

func (a *array) fail(err error) error {
	a.failed = err
	return err
}

// describe describes an error of the decoder, with its line.
func (a *array) describe(err error) error {
	var file *FileError
	if errors.As(err, &file) {
		return err
	}
	offset := a.dec.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	reason := jsonReason(err)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		offset, reason = a.in.offset, "the JSON ends before it is complete"
		err = io.ErrUnexpectedEOF // callers take io.EOF for the regular end
	}
	return &FileError{Path: a.path, Line: a.in.lineAt(offset), Reason: reason, Err: err}
}

// jsonReason describes an error of a JSON parser in one line.
func jsonReason(err error) string {
	var syntax *json.SyntaxError
	var value *value.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.As(err, &value) && value.Truncated():
		return "the JSON ends before it is complete"
	case errors.As(err, &value):
		return "not valid JSON: " + value.Reason
	case errors.As(err, &syntax):
		return "not valid JSON: " + syntax.Error()
	}
	return "not valid JSON"
}

// parseRecord parses the text of one row. header is the columns of the row
// before; a row with the same columns shares them.
func parseRecord(text []byte, header *[]string) (Record, error) {
	if !utf8.Valid(text) {
		return Record{}, &RowError{Reason: "the row is not UTF-8 text"}
	}
	if text[0] != '{' && json.Valid(text) {
		return Record{}, &RowError{Reason: fmt.Sprintf("the row is %s, not an object", textfmt.JSONKind(text))}
	}
	names, values, err := value.ParseObject(string(text), *header)
	if err != nil {
		return Record{}, &RowError{Reason: jsonReason(err)}
	}
	*header = names
	return Record{Columns: names, Values: values}, nil
}

// lines reads one object a line.
type lines struct {
	scanner
	columns []string // of the last record
}

func (l *lines) next() (Record, error) {
	if err := l.skip(); err != nil {
		return Record{}, err
	}
	rec, err := parseRecord(bytes.TrimSpace(l.raw), &l.columns)
	rec.Line = l.start
	return rec, err
}

// skip reads the next line that is not blank to raw.
func (l *lines) skip() error {
	for {
		l.raw = l.raw[:0]
		l.start = l.line + 1
		if err := l.extend(); err != nil {
			return err
		}
		if len(bytes.TrimSpace(l.raw)) > 0 {
			return nil
		}
	}
}

// lineCounter maps offsets to lines, and limits the length of a record. It keeps the blocks
// that were read last.
type lineCounter struct {
	in     *bufio.Reader
	path   string // for errors
	offset int64  // bytes read
	limit  int64  // of offset
	most   int64  // bytes of the current value
	line   int    // the line of offset
	blocks []block
}

// maxColumnTable is the maximum size of a JSON file with one object, which may be a table by columns.
const maxColumnTable = 256 << 20

// allow lets the next record have a number of bytes.
func (c *lineCounter) allow(most int64) { c.limit, c.most = c.offset+most, most }

type block struct {
	from int64
	line int
	text []byte
}

// maxCachedBlocks is how many blocks are kept: how far back an error may be.
const maxCachedBlocks = 2

// Read returns an error for a record that is too long.
func (c *lineCounter) Read(p []byte) (int, error) {
	if c.offset >= c.limit {
		return 0, &FileError{Path: c.path, Line: c.line, Reason: "a JSON value is longer than " + textfmt.Thousands(int(c.most>>20)) + " MB"}
	}
	n, err := c.in.Read(p)
	if n == 0 {
		return n, err
	}
	b := block{c.offset, c.line, nil}
	if len(c.blocks) == maxCachedBlocks {
		b.text = c.blocks[0].text[:0]
		copy(c.blocks, c.blocks[1:])
		c.blocks = c.blocks[:maxCachedBlocks-1]
	}
	b.text = append(b.text, p[:n]...)
	c.blocks = append(c.blocks, b)
	c.offset += int64(n)
	c.line += bytes.Count(p[:n], []byte{'\n'})
	return n, err
}

// lineAt returns the line of an offset; 0 if its block is no longer kept.
func (c *lineCounter) lineAt(offset int64) int {
	for _, b := range slices.Backward(c.blocks) {
		if offset >= b.from {
			end := min(offset-b.from, int64(len(b.text)))
			return b.line + bytes.Count(b.text[:end], []byte{'\n'})
		}
	}
	return 0
}
