package records

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"github.com/qtype-dev/qtype/spec"
)

// charset returns the charset of a text file by its byte order mark, else the one that the table
// names; nil for UTF-8.
func charset(table *spec.Table, head string) (encoding.Encoding, string, error) {
	switch {
	case strings.HasPrefix(head, string(bomUTF16LE)), strings.HasPrefix(head, string(bomUTF16BE)):
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM), "UTF-16", nil
	case table.Encoding == "", table.Encoding == "utf-8", strings.HasPrefix(head, string(bomUTF8)):
		return nil, "UTF-8", nil
	}
	enc, err := htmlindex.Get(table.Encoding)
	return enc, table.Encoding, err
}

// separator returns the character that a value of the table options delimiter and quote names; 0 for none.
func separator(name string) byte {
	return map[string]byte{"comma": ',', "semicolon": ';', "tab": '\t', "pipe": '|', "colon": ':', "space": ' ', "double": '"', "single": '\''}[name]
}

// reads reports whether a column is read: by a variable, or if the caller names none, by everybody.
func (r *Reader) reads(column string) bool {
	return r.vars == nil || slices.ContainsFunc(r.vars, func(v *spec.Variable) bool { return v.ID == column })
}

// cellReader makes the values of cells by the options of the table.
type cellReader struct {
	nulls []string
	comma []bool // the columns whose numbers have a decimal comma
	read  []bool // the columns whose invalid cells fail their row
}

// cells returns what makes the values of the columns.
func (r *Reader) cells() *cellReader {
	c := &cellReader{nulls: r.table.Nulls, comma: make([]bool, len(r.columns)), read: make([]bool, len(r.columns))}
	for i, name := range r.columns {
		c.read[i] = r.reads(name)
		c.comma[i] = r.table.Decimal == "comma" && slices.ContainsFunc(r.vars, func(v *spec.Variable) bool {
			return v.ID == name && (v.Type.Is("int") || v.Type.Is("float"))
		})
	}
	return c
}

// withComma matches numbers with a decimal comma, and with points or spaces between groups of digits.
var withComma = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*([+-]?)(\d{1,3}(?:[. \x{a0}\x{202f}]\d{3})+|\d+)(?:,(\d+))?\s*$`)
})

// value returns the value of a cell.
func (c *cellReader) value(column int, text string, quoted bool) any {
	if !quoted && slices.Contains(c.nulls, text) {
		return nil
	}
	if !c.comma[column] {
		return text
	}
	part := withComma().FindStringSubmatch(text)
	if part == nil {
		return text
	}
	whole := strings.NewReplacer(".", "", " ", "", "\u00a0", "", "\u202f", "").Replace(part[2])
	if part[3] == "" {
		return part[1] + whole
	}
	return part[1] + whole + "." + part[3]
}

// Hint returns what may help if the file lacks a column that it should have; empty if nothing does.
func (r *Reader) Hint() string {
	switch {
	case len(r.columns) == 0 || !r.format.Cells():
		return ""
	case strings.HasPrefix(r.columns[0], "#"):
		return "; the table option comment=# skips such lines"
	case len(r.sheets) > 1:
		return r.otherSheets()
	case len(r.columns) == 1 && strings.ContainsAny(r.columns[0], "~^:/\x01"):
		return "; the table option delimiter names what separates the columns"
	case slices.Contains(r.columns, ""), len(r.columns) == 1 && strings.Contains(r.columns[0], " "): // a title above the table
		return "; the table option header names the line of the columns, such as header=3"
	}
	return ""
}
