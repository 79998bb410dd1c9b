package records

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
)

// ErrWorkbookSize is the error of a workbook that is larger than the limit of ReadWorkbook.
var ErrWorkbookSize = errors.New("the workbook is too large after decompression")

// ReadWorkbook calls visit for each row of each visible sheet of an Excel workbook that is
// not empty, in order, until visit returns an error. The cells are text as in records; they
// are valid until visit returns. It unpacks at most limit bytes, and ctx ends it.
func ReadWorkbook(ctx context.Context, in *bytes.Reader, limit int64, visit func(sheet string, cells []string) error) error {
	archive, err := zip.NewReader(in, in.Size())
	if err != nil {
		return err
	}
	b := &workbook{limit: &limit, ctx: ctx}
	if err := b.readParts(archive); err != nil {
		return err
	}
	sheets, err := b.sheets()
	if err != nil {
		return err
	}
	if err := errors.Join(b.readShared(), b.readStyles()); err != nil {
		return err
	}
	for _, s := range sheets {
		if s.hidden || s.part == nil {
			continue
		}
		if err := b.readSheet(s, visit); err != nil {
			return err
		}
	}
	return nil
}

// readSheet visits the rows of a sheet.
func (b *workbook) readSheet(s sheetPart, visit func(sheet string, cells []string) error) error {
	in, err := b.open(s.part)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	rows := &sheet{book: b, dec: xml.NewDecoder(in)}
	for {
		cells, err := rows.row()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(s.name, cells); err != nil {
			return err
		}
	}
}

// open opens a part within the limit of the workbook.
func (b *workbook) open(part *zip.File) (io.ReadCloser, error) {
	in, err := part.Open()
	if err != nil || b.limit == nil {
		return in, err
	}
	return &limitedPart{in, b.limit, b.ctx}, nil
}

// limitedPart counts the bytes that are unpacked.
type limitedPart struct {
	io.ReadCloser
	left *int64
	ctx  context.Context
}

func (p *limitedPart) Read(data []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	n, err := p.ReadCloser.Read(data)
	if *p.left -= int64(n); *p.left < 0 {
		return n, ErrWorkbookSize
	}
	return n, err
}
