package records

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// startCSV reads the header row.
func (r *Reader) startCSV(in *bufio.Reader, head []byte) error {
	body := bytes.TrimLeft(bytes.TrimPrefix(head, bomUTF8), "\r\n")
	if !bytes.Contains(body, []byte{'\n'}) && bytes.Contains(body, []byte{'\r'}) {
		in = bufio.NewReader(&crReader{in})
	}
	if bytes.HasPrefix(head, bomUTF8) {
		_, _ = in.Discard(len(bomUTF8)) // was peeked
	}
	s := &scanner{in: in, path: r.path, quote: '"', comment: r.table.Comment, charset: r.charset}
	if r.table.Quote != "" {
		s.quote = separator(r.table.Quote)
	}
	header, err := s.header(&r.table, r.format)
	var bad *RowError
	switch {
	case errors.Is(err, io.EOF):
		return &FileError{Path: r.path, Reason: "the file is empty"}
	case errors.As(err, &bad):
		return &FileError{Path: r.path, Line: s.start, Reason: "header row: " + bad.Reason}
	case err != nil:
		return err
	}
	if r.columns, err = headerOf(header); err != nil {
		return &FileError{Path: r.path, Line: s.start, Reason: err.Error()}
	}
	s.width = len(r.columns)
	cells := r.cells()
	r.next, r.skip = func() (Record, error) { return s.next(r.columns, cells) }, s.skip
	return nil
}

// header finds the delimiter and returns the names of the columns.
func (s *scanner) header(table *spec.Table, format Format) ([]string, error) {
	for s.line < table.Header-1 {
		if s.raw = s.raw[:0]; s.extend() != nil {
			return nil, &FileError{Path: s.path, Reason: fmt.Sprintf("has fewer than %d lines", table.Header)}
		}
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	usual := byte(',')
	if format == TSV {
		usual = '\t'
	}
	// Spreadsheets write the delimiter into a line of its own.
	if line := bytes.TrimRight(s.raw, "\r\n"); len(line) == len("sep=;") && bytes.EqualFold(line[:4], []byte("sep=")) {
		usual = line[4]
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	s.delim = sniffDelimiter(s.raw, usual)
	if table.Delimiter != "" {
		s.delim = separator(table.Delimiter)
	}
	if table.Columns == nil {
		s.held = true
		return s.record()
	}
	s.held = table.Header == 0
	return table.Columns, nil
}

// sniffDelimiter returns the delimiter of the header's names. Spreadsheets of many
// countries write semicolons into files that they call CSV.
func sniffDelimiter(body []byte, usual byte) byte {
	line, _, _ := bytes.Cut(body, []byte{'\n'})
	for _, d := range []byte{usual, ';', '\t', ',', '|'} { // no variable has a name with a pipe
		if bytes.IndexByte(line, d) >= 0 {
			return d
		}
	}
	return usual
}

// headerOf checks the column names and removes the spaces around them. Any number
// of columns may have no name: columns of row numbers often have none.
func headerOf(fields []string) ([]string, error) {
	seen := map[string]bool{}
	columns := make([]string, len(fields))
	for i, f := range fields {
		name := strings.TrimSpace(f)
		if name != "" && seen[name] {
			return nil, fmt.Errorf("duplicate column %q in the header", name)
		}
		seen[name] = true
		columns[i] = name
	}
	return columns, nil
}

// scanner splits text into records and fields by RFC 4180. A quote in a field that
// does not begin with one is an ordinary character. Empty lines are skipped; line
// ends in quotes are kept as they are. encoding/csv cannot do this: see
// docs/decisions/022-csv-reader.md.
type scanner struct {
	in      *bufio.Reader
	path    string
	charset string // for errors
	delim   byte
	quote   byte     // 0 if quotes are text
	comment string   // how lines begin that are skipped; empty for none
	width   int      // the header's number of fields
	line    int      // the last line that was read
	start   int      // the line that the record began on
	raw     []byte   // the record's text: one line, or more if a field has line ends
	text    []byte   // the text of the fields, without quotes
	ends    []int    // where each field ends in text
	quoted  []bool   // whether each field has quotes
	fields  []string // of the record; overwritten by the next one
	eof     bool     // there are no further lines
	held    bool     // raw is the first line of the next record
}

// next returns the next record under the header's columns.
func (s *scanner) next(columns []string, cells *cellReader) (Record, error) {
	fields, err := s.record()
	var bad *RowError
	if err != nil && !errors.As(err, &bad) {
		return Record{}, err
	}
	rec := Record{Line: s.start, Columns: columns, Values: make([]any, len(columns))}
	for i := range min(len(fields), len(columns)) {
		rec.Values[i] = cells.value(i, fields[i], s.quoted[i])
	}
	switch {
	case bad != nil:
		return rec, bad
	case len(fields) != s.width:
		return rec, &RowError{Reason: fmt.Sprintf("the row has %s, the header has %d", textfmt.Count(len(fields), "field"), s.width)}
	}
	for i, f := range fields {
		switch {
		case !utf8.ValidString(f) && cells.read[i]:
			return rec, &RowError{Reason: fmt.Sprintf("column %q is not UTF-8 text; the table option encoding names its charset, such as encoding=windows-1252", columns[i])}
		case s.charset != "UTF-8" && cells.read[i] && strings.ContainsRune(f, utf8.RuneError):
			return rec, &RowError{Reason: fmt.Sprintf("column %q has bytes that are not text in %s", columns[i], s.charset)}
		}
	}
	return rec, nil
}

// record returns the next record's fields. With a *RowError it returns the fields
// before the error.
func (s *scanner) record() ([]string, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	s.fields = s.fields[:0]
	err := s.split()
	text, from := string(s.text), 0
	for _, end := range s.ends {
		s.fields = append(s.fields, text[from:end])
		from = end
	}
	return s.fields, err
}

// skip reads a record without its values.
func (s *scanner) skip() error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.split()
}

// begin reads the first line of the next record.
func (s *scanner) begin() error {
	s.text, s.ends, s.quoted = s.text[:0], s.ends[:0], s.quoted[:0]
	if s.held {
		s.held = false
		return nil
	}
	s.raw = s.raw[:0]
	for len(bytes.TrimRight(s.raw, "\r\n")) == 0 || s.comment != "" && bytes.HasPrefix(s.raw, []byte(s.comment)) {
		s.raw = s.raw[:0]
		if err := s.extend(); err != nil {
			return err
		}
	}
	s.start = s.line
	return nil
}

// split finds the record's fields. It reads further lines while a quote is open.
func (s *scanner) split() error {
	pos := 0
	for {
		var err error
		isQuoted := s.quote != 0 && pos < len(s.raw) && s.raw[pos] == s.quote
		if isQuoted {
			pos, err = s.quotedField(pos + 1)
		} else {
			pos = s.plainField(pos)
		}
		if err != nil {
			return err
		}
		s.ends, s.quoted = append(s.ends, len(s.text)), append(s.quoted, isQuoted)
		if pos >= s.content() {
			return nil
		}
		pos++ // the delimiter
	}
}

// plainField copies the field that begins at pos and returns the position after it.
func (s *scanner) plainField(pos int) int {
	end := s.content()
	if i := bytes.IndexByte(s.raw[pos:end], s.delim); i >= 0 {
		end = pos + i
	}
	s.text = append(s.text, s.raw[pos:end]...)
	return end
}

// quotedField copies the field whose opening quote is before pos.
func (s *scanner) quotedField(pos int) (int, error) {
	opened := s.line
	for {
		i := bytes.IndexByte(s.raw[pos:], s.quote)
		if i < 0 {
			s.text = append(s.text, s.raw[pos:]...)
			pos = len(s.raw)
			if err := s.extend(); errors.Is(err, io.EOF) {
				return 0, &FileError{Path: s.path, Line: opened, Reason: "unclosed quote; the table option quote=none reads quotes as text"}
			} else if err != nil {
				return 0, err
			}
			continue
		}
		s.text = append(s.text, s.raw[pos:pos+i]...)
		pos += i + 1
		if pos < len(s.raw) && s.raw[pos] == s.quote {
			s.text = append(s.text, s.quote)
			pos++
			continue
		}
		if pos < s.content() && s.raw[pos] != s.delim {
			return 0, &RowError{Reason: fmt.Sprintf("field %d: text after the closing quote", len(s.ends)+1)}
		}
		return pos, nil
	}
}

// content returns the length of raw without the end of its last line.
func (s *scanner) content() int {
	n := len(s.raw)
	if n > 0 && s.raw[n-1] == '\n' {
		n--
	}
	if n > 0 && s.raw[n-1] == '\r' {
		n--
	}
	return n
}

// extend appends one line, with its end, to raw.
func (s *scanner) extend() error {
	if s.eof {
		return io.EOF
	}
	before := len(s.raw)
	for {
		part, err := s.in.ReadSlice('\n')
		s.raw = append(s.raw, part...)
		switch {
		case len(s.raw) > maxRecord:
			return &FileError{Path: s.path, Line: max(s.start, 1), Reason: "a row is longer than 64 MB (unclosed quote?)"}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			s.eof = true
			if len(s.raw) == before {
				return io.EOF
			}
		case err != nil:
			return fileError(s.path, err)
		}
		s.line++
		return nil
	}
}

// crReader replaces carriage returns by line feeds, for texts whose lines end in
// carriage returns only.
type crReader struct{ in io.Reader }

func (o *crReader) Read(p []byte) (int, error) {
	n, err := o.in.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}
