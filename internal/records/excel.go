package records

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// An Excel workbook is a zip archive of XML parts (ECMA-376). Three of them are
// read: the first sheet, row by row; the strings that its cells share, into memory;
// and the styles, which decide whether a number is a date.

// maxShared is the maximum size of a workbook's shared strings in bytes.
const maxShared = 512 << 20

type workbook struct {
	parts map[string]*zip.File // by their names in lower case

	main, sharedStrings, styleSheet string // names of parts

	shared []string
	styles []dateKind // the meaning of numbers, by cell style
	apple  bool       // days are counted from 1904
	limit  *int64     // bytes that may still be unpacked; nil without a limit

	ctx context.Context // ends the reading; nil without a limit
}

// dateKind is the meaning of a number in a cell style.
type dateKind int

const (
	notDate  dateKind = iota // a number
	dateOnly                 // a date
	dateTime                 // a date with a time of day
	timeOnly                 // a time of day
)

// startExcel opens the first sheet and reads its header.
func (r *Reader) startExcel(file io.ReaderAt, size int64) error {
	damaged := func(err error) error {
		var known *FileError
		if errors.As(err, &known) {
			return known
		}
		return &FileError{Path: r.path, Reason: "is damaged or not a complete Excel workbook", Err: err}
	}
	archive, err := zip.NewReader(&meterAt{file, size, &r.read}, size)
	if err != nil {
		return damaged(err)
	}
	b := &workbook{}
	if err := b.readParts(archive); err != nil {
		return damaged(err)
	}
	if b.parts[b.main] == nil {
		return &FileError{Path: r.path, Reason: "is a zip archive, not an Excel workbook"}
	}
	part, err := r.sheet(b)
	if err == nil {
		err = errors.Join(b.readShared(), b.readStyles())
	}
	if err != nil {
		return damaged(err)
	}
	in, err := part.Open()
	if err != nil {
		return damaged(err)
	}
	r.closers = append(r.closers, in)
	s := &sheet{book: b, dec: xml.NewDecoder(in)}
	header, err := s.header(&r.table)
	switch {
	case errors.Is(err, io.EOF):
		return &FileError{Path: r.path, Reason: "the sheet is empty" + r.otherSheets()}
	case err != nil:
		return damaged(err)
	}
	for len(header) > 0 && strings.TrimSpace(header[len(header)-1]) == "" {
		header = header[:len(header)-1]
	}
	if r.columns, err = headerOf(header); err != nil {
		return &FileError{Path: r.path, Line: s.line, Reason: err.Error()}
	}
	values := r.cells()
	r.next = func() (Record, error) {
		rec, err := s.next(r.columns, values)
		var bad *RowError
		if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &bad) {
			err = damaged(err)
		}
		return rec, err
	}
	return nil
}

// otherSheets returns how to read another sheet of a workbook; empty if it has one.
func (r *Reader) otherSheets() string {
	if len(r.sheets) < 2 {
		return ""
	}
	return "; the table option sheet names another sheet: " + strings.Join(r.sheets, ", ")
}

// walk calls visit for each start tag of a part; the decoder is after the tag.
func (b *workbook) walk(name string, visit func(*xml.Decoder, xml.StartElement) error) error {
	part := b.parts[name]
	if part == nil {
		return nil
	}
	in, err := b.open(part)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	for dec := xml.NewDecoder(in); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); ok {
			if err := visit(dec, start); err != nil {
				return err
			}
		}
	}
}

// attr returns an attribute by its name without the namespace.
func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// sheetPart is a sheet of a workbook.
type sheetPart struct {
	name   string
	hidden bool
	part   *zip.File
}

// sheet returns the part of the sheet that the table names: else of the first one that is not hidden,
// else of the first one.
func (r *Reader) sheet(b *workbook) (*zip.File, error) {
	sheets, err := b.sheets()
	if err != nil {
		return nil, err
	}
	chosen := -1
	for i, s := range sheets {
		r.sheets = append(r.sheets, s.name)
		if chosen < 0 && (r.table.Sheet == s.name || r.table.Sheet == "" && !s.hidden) {
			chosen = i
		}
	}
	if chosen < 0 && r.table.Sheet != "" {
		return nil, &FileError{Path: r.path, Reason: fmt.Sprintf("has no sheet %q; the sheets are %s", r.table.Sheet, strings.Join(r.sheets, ", "))}
	}
	part := sheets[max(chosen, 0)].part
	if part == nil {
		return nil, errors.New("the part of a sheet is missing")
	}
	return part, nil
}

// relation is a part that another one refers to.
type relation struct{ kind, part string }

// relations returns the parts that a part refers to, by the ids of the references. The part "" is the archive.
func (b *workbook) relations(folder, name string) (map[string]relation, error) {
	found := map[string]relation{}
	err := b.walk(path.Join(folder, "_rels", name+".rels"), func(_ *xml.Decoder, e xml.StartElement) error {
		if e.Name.Local == "Relationship" {
			target := attr(e, "Target")
			if !strings.HasPrefix(target, "/") {
				target = path.Join("/", folder, target)
			}
			found[attr(e, "Id")] = relation{path.Base(attr(e, "Type")), strings.ToLower(strings.TrimPrefix(target, "/"))}
		}
		return nil
	})
	return found, err
}

// readParts finds the parts: the main part, whose name may be any, and those of shared strings and styles.
func (b *workbook) readParts(archive *zip.Reader) error {
	b.parts = map[string]*zip.File{}
	for _, f := range archive.File {
		b.parts[strings.ToLower(strings.TrimPrefix(f.Name, "/"))] = f
	}
	b.main, b.sharedStrings, b.styleSheet = "xl/workbook.xml", "xl/sharedstrings.xml", "xl/styles.xml"
	parts, err := b.relations("", "")
	if err != nil {
		return err
	}
	for _, r := range parts {
		if r.kind == "officeDocument" && path.Dir(r.part) == "xl" {
			b.main = r.part
		}
	}
	if parts, err = b.relations(path.Split(b.main)); err != nil {
		return err
	}
	for _, r := range parts {
		switch r.kind {
		case "sharedStrings":
			b.sharedStrings = r.part
		case "styles":
			b.styleSheet = r.part
		}
	}
	return nil
}

// sheets returns the sheets of the workbook in their order, at least one.
func (b *workbook) sheets() ([]sheetPart, error) {
	var found []sheetPart
	var ids []string
	err := b.walk(b.main, func(_ *xml.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			b.apple = isTrue(attr(e, "date1904"))
		case "sheet":
			for _, a := range e.Attr {
				if a.Name.Local == "id" { // r:id; sheetId is another name
					ids = append(ids, a.Value)
					state := attr(e, "state")
					found = append(found, sheetPart{name: attr(e, "name"), hidden: state == "hidden" || state == "veryHidden"})
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	targets, err := b.relations(path.Split(b.main))
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		found[i].part = b.parts[targets[id].part]
	}
	if len(found) == 0 {
		return nil, errors.New("there is no sheet")
	}
	return found, nil
}

func isTrue(s string) bool { return s == "1" || s == "true" }

// readShared reads the shared strings. Phonetic readings (rPh) are not part of them.
func (b *workbook) readShared() error {
	size := 0
	return b.walk(b.sharedStrings, func(dec *xml.Decoder, e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		text, err := textOf(dec)
		if size += len(text); size > maxShared {
			return fmt.Errorf("its shared strings are larger than %d MB", maxShared>>20)
		}
		b.shared = append(b.shared, text)
		return err
	})
}

// textOf returns the text of the runs of an element whose start tag was read.
func textOf(dec *xml.Decoder) (string, error) {
	var text strings.Builder
	for depth, inside := 1, 0; depth > 0; {
		token, err := dec.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local == "rPh" {
				if err := dec.Skip(); err != nil {
					return "", err
				}
				continue
			}
			depth++
			if t.Name.Local == "t" {
				inside = depth
			}
		case xml.EndElement:
			if depth == inside {
				inside = 0
			}
			depth--
		case xml.CharData:
			if inside > 0 && text.Len() < maxRecord {
				text.Write(t)
			}
		}
	}
	return text.String(), nil
}

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
