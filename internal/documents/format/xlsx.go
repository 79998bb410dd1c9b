package format

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/internal/records"
)

// convertXLSX returns the visible sheets of a workbook, each as a heading and a table.
func convertXLSX(ctx context.Context, j *job) (*Result, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, err
	}
	w := j.writer(ctx)
	var rows [][]string
	sheet := ""
	flush := func() {
		if len(rows) > 0 {
			in := new(inline)
			in.add(sheet, 0, "")
			w.heading(2, in)
			w.table(rows)
		}
		rows = nil
	}
	size := 0
	err = records.ReadWorkbook(ctx, bytes.NewReader(j.file.Data), j.unpacked, func(name string, cells []string) error {
		if name != sheet {
			flush()
			sheet = name
		}
		rows = append(rows, slices.Clone(cells))
		for _, cell := range cells {
			size += len(cell) + 3
		}
		if size > j.limits.Output {
			return outputTooLarge(j.limits)
		}
		if w.stopped() {
			return w.err
		}
		return nil
	})
	if errors.Is(err, records.ErrWorkbookSize) {
		return nil, unpackedTooLarge(j.limits)
	}
	if err != nil {
		return nil, err
	}
	flush()
	result, err := w.result()
	if err != nil {
		return nil, err
	}
	result.Title = a.officeTitle()
	return result, nil
}
