package format

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// convertCSV returns delimited text as a table. The delimiter is the one of comma,
// semicolon, tab and bar that the first line has most often.
func convertCSV(ctx context.Context, j *job) (*Result, error) {
	text, err := decodeText(j.file)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = delimiter(text)
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, false
	var rows [][]string
	w := j.writer(ctx)
	for cells := 0; ; {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errorf(Damaged, "is damaged: %v", err)
		}
		rows = append(rows, row)
		if cells += len(row); cells > j.limits.Output/3 { // each cell takes three bytes at least
			return nil, outputTooLarge(j.limits)
		}
		if w.stopped() {
			return nil, w.err
		}
	}
	w.table(rows)
	return w.result()
}

// delimiter returns the character between the cells of delimited text.
func delimiter(text string) rune {
	line, _, _ := strings.Cut(text, "\n")
	best, most := ',', 0
	for _, c := range ",;\t|" {
		if n := strings.Count(line, string(c)); n > most {
			best, most = c, n
		}
	}
	return best
}
