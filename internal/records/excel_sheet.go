package records

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// maxColumns is how many columns a sheet can have.
const maxColumns = 16384

// sheet reads the rows of a sheet. Cells are text, as in a CSV file: numbers in
// their shortest form, dates and times in ISO 8601.
type sheet struct {
	book    *workbook
	dec     *xml.Decoder
	line    int            // the row's number in the sheet, from 1
	cells   []string       // of the row; overwritten by the next one
	invalid map[int]string // what is wrong with cells of the row, by column
	problem string         // what is wrong with the cell that was read last; empty if nothing
	held    bool           // the row that was read last is the next one
}

// header returns the names of the columns.
func (s *sheet) header(table *spec.Table) ([]string, error) {
	cells, err := s.row()
	for err == nil && s.line < table.Header {
		cells, err = s.row()
	}
	if err == nil && table.Columns != nil {
		s.held = table.Header == 0
		return table.Columns, nil
	}
	return cells, err
}

// next returns the next row that has a cell under the header's columns.
func (s *sheet) next(columns []string, values *cellReader) (Record, error) {
	for {
		cells, err := s.row()
		if err != nil {
			return Record{}, err
		}
		rec := Record{Line: s.line, Columns: columns, Values: make([]any, len(columns))}
		isEmpty := true
		for i := range columns {
			text := ""
			if i < len(cells) {
				text = cells[i]
			}
			isEmpty = isEmpty && text == "" && s.invalid[i] == ""
			rec.Values[i] = values.value(i, text, false)
		}
		if isEmpty {
			continue // such as a note beside the table
		}
		for i := range columns {
			if s.invalid[i] != "" && values.read[i] {
				return rec, &RowError{Reason: s.invalid[i]}
			}
		}
		return rec, nil
	}
}

// row returns the cells of the next row that is not empty.
func (s *sheet) row() ([]string, error) {
	if s.held {
		s.held = false
		return s.cells, nil
	}
	for {
		token, err := s.dec.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local != "row" {
				continue
			}
			s.line++
			if n, err := strconv.Atoi(attr(t, "r")); err == nil {
				s.line = n
			}
			if err := s.fill(); err != nil {
				return nil, err
			}
			if strings.Join(s.cells, "") != "" || len(s.invalid) > 0 {
				return s.cells, nil
			}
		case xml.EndElement:
			if t.Name.Local == "sheetData" {
				return nil, io.EOF
			}
		}
	}
}

// fill reads the cells of a row whose start tag was read.
func (s *sheet) fill() error {
	s.cells = s.cells[:0]
	clear(s.invalid)
	at := -1
	for {
		token, err := s.dec.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local != "c" {
				if err := s.dec.Skip(); err != nil {
					return err
				}
				continue
			}
			at++
			if n, ok := columnOf(attr(t, "r")); ok {
				at = n
			}
			if at >= maxColumns {
				return fmt.Errorf("a row has more than %d columns", maxColumns)
			}
			s.problem = ""
			text, err := s.cell(t)
			if err != nil {
				return err
			}
			if s.problem != "" {
				if s.invalid == nil {
					s.invalid = map[int]string{}
				}
				s.invalid[at] = s.problem
			}
			for len(s.cells) <= at {
				s.cells = append(s.cells, "")
			}
			s.cells[at] = text
		case xml.EndElement:
			return nil // of the row: nested elements were read as a whole
		}
	}
}

// columnOf returns the column of a cell reference such as AB12, from 0.
func columnOf(reference string) (int, bool) {
	n := 0
	for i := range len(reference) {
		c := reference[i] | 0x20
		if c < 'a' || c > 'z' {
			return n - 1, i > 0
		}
		if n = n*26 + int(c-'a') + 1; n > maxColumns {
			return n, true
		}
	}
	return n - 1, n > 0
}

// cell returns the text of a cell whose start tag was read.
func (s *sheet) cell(c xml.StartElement) (string, error) {
	kind, raw, formula := attr(c, "t"), "", false
	for {
		token, err := s.dec.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "v":
				raw, err = content(s.dec)
			case "is":
				raw, err = textOf(s.dec)
			case "f": // v has the result
				formula = true
				err = s.dec.Skip()
			default:
				err = s.dec.Skip()
			}
			if err != nil {
				return "", err
			}
		case xml.EndElement:
			if formula && raw == "" && kind != "str" { // the result of a formula may be an empty text
				s.problem = fmt.Sprintf("cell %s has a formula without its result: open the workbook in a spreadsheet program and save it", attr(c, "r"))
			}
			return s.shown(c, kind, raw), nil
		}
	}
}

// content returns the text of an element without children.
func content(dec *xml.Decoder) (string, error) {
	var text string
	for {
		token, err := dec.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.CharData:
			text += string(t)
		case xml.EndElement:
			return text, nil
		}
	}
}

// shown returns the text of a cell by its type.
func (s *sheet) shown(c xml.StartElement, kind, raw string) string {
	switch kind {
	case "s":
		if i, err := strconv.Atoi(strings.TrimSpace(raw)); err == nil && i >= 0 && i < len(s.book.shared) {
			return s.book.shared[i]
		}
		s.problem = fmt.Sprintf("cell %s refers to a shared string that does not exist", attr(c, "r"))
		return ""
	case "str", "inlineStr", "d": // the result of a formula, an inline string, a date in ISO 8601
		return raw
	case "b":
		return strconv.FormatBool(isTrue(raw))
	case "e":
		s.problem = fmt.Sprintf("cell %s has the error %s", attr(c, "r"), raw)
		return ""
	}
	x, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return raw // such as an empty cell
	}
	style, _ := strconv.Atoi(attr(c, "s"))
	if style > 0 && style < len(s.book.styles) && s.book.styles[style] != notDate {
		if text, ok := moment(x, s.book.styles[style], s.book.apple); ok {
			return text
		}
	}
	if strings.Trim(raw, "0123456789") == "" {
		return raw // digits that a float may not have
	}
	return textfmt.Number(x)
}

// moment returns a number of days as ISO 8601, and a duration as hours, minutes and seconds. Excel takes 1900 for a leap year, so
// its days before March 1900 are off by one. Times of day are numbers below 1.
func moment(days float64, c dateKind, apple bool) (string, bool) {
	const last = 2958466 // the day after 9999-12-31
	if days < 0 || days >= last {
		return "", false
	}
	if c == timeOnly && days >= 1 && days < 366 {
		at := time.UnixMilli(int64(math.Round(days * 86400e3))).UTC() // a duration in hours, not a time of day
		return strconv.FormatInt(at.Unix()/3600, 10) + at.Format(":04:05.999"), true
	}
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case apple:
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days >= 1 && days < 60:
		days++
	}
	whole, part := math.Modf(days)
	at := epoch.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(part*86400e3)) * time.Millisecond)
	switch {
	case c == timeOnly && days < 1:
		return at.Format("15:04:05.999"), true
	case c == dateOnly && part == 0:
		return at.Format(time.DateOnly), true
	}
	return at.Format("2006-01-02T15:04:05.999"), true
}

// readStyles reads which styles format numbers as dates and times.
func (b *workbook) readStyles() error {
	custom := map[string]dateKind{} // the workbook's number formats, by id
	inCells := false                // in cellXfs, not in the styles that they are based on
	return b.walk(b.styleSheet, func(_ *xml.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			custom[attr(e, "numFmtId")] = dateKindOf(attr(e, "formatCode"))
		case "cellXfs":
			inCells = true
		case "cellStyles", "dxfs", "tableStyles":
			inCells = false
		case "xf":
			if !inCells {
				return nil
			}
			id := attr(e, "numFmtId")
			c, ok := custom[id]
			if n, err := strconv.Atoi(id); !ok && err == nil {
				c = builtIn(n)
			}
			b.styles = append(b.styles, c)
		}
		return nil
	})
}

// builtIn returns the meaning of a predefined number format (ECMA-376, 18.8.30).
func builtIn(id int) dateKind {
	switch {
	case id >= 14 && id <= 17, id >= 27 && id <= 31, id == 36, id >= 50 && id <= 54, id == 57, id == 58:
		return dateOnly
	case id == 22:
		return dateTime
	case id >= 18 && id <= 21, id >= 32 && id <= 35, id >= 45 && id <= 47, id == 55, id == 56:
		return timeOnly
	}
	return notDate
}

// dateKindOf returns the meaning of a number format by its code: it looks for the
// letters of years, days, hours and seconds outside of quotes, brackets and escapes.
// An m is a minute if there are hours or seconds, otherwise a month.
func dateKindOf(code string) dateKind {
	code, _, _ = strings.Cut(code, ";")
	day, hour, month := false, false, false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; c {
		case '"':
			end := strings.IndexByte(code[i+1:], '"')
			if end < 0 {
				return notDate
			}
			i += end + 1
		case '\\', '_', '*':
			i++
		case '[': // a colour, a condition or a language; [h] counts hours beyond a day
			end := strings.IndexByte(code[i:], ']')
			if end < 0 {
				return notDate
			}
			if inner := strings.ToLower(strings.Trim(code[i+1:i+end], " ")); inner != "" && strings.Trim(inner, "hms") == "" {
				hour = true
			}
			i += end
		case 'y', 'Y', 'd', 'D':
			day = true
		case 'h', 'H', 's', 'S':
			hour = true
		case 'm', 'M':
			month = true
		case 'G', 'g':
			if strings.HasPrefix(strings.ToLower(code[i:]), "general") {
				return notDate
			}
		}
	}
	switch {
	case day && hour:
		return dateTime
	case hour:
		return timeOnly
	case day, month:
		return dateOnly
	}
	return notDate
}
