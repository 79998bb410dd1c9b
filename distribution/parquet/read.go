// Package parquet reads and writes Parquet files as records.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/qtype-dev/qtype/internal/records"
)

const rowsAtOnce = 64

// Codec reads and writes Parquet files.
func Codec() records.Codec {
	return records.Codec{Open: open, NewEncoder: func(out io.Writer, columns []records.Column) (records.Encoder, error) {
		return newEncoder(out, columns)
	}}
}

// open reads the footer of a file.
func open(in *records.Input) (rows *records.Rows, err error) {
	damaged := func(err error) error {
		return &records.FileError{Path: in.Path, Reason: "is damaged or not a complete Parquet file", Err: err}
	}
	defer func() {
		if p := recover(); p != nil {
			err = damaged(nil)
		}
	}()
	f, err := openFile(in)
	if known, ok := errors.AsType[*records.FileError](err); ok {
		return nil, known
	}
	if err != nil {
		return nil, damaged(err)
	}
	rows = &records.Rows{Total: f.NumRows()}
	for _, field := range f.Schema().Fields() {
		if slices.Contains(rows.Columns, field.Name()) {
			return nil, &records.FileError{Path: in.Path, Reason: fmt.Sprintf("has two columns with the name %q", field.Name())}
		}
		rows.Columns = append(rows.Columns, field.Name())
	}
	if len(rows.Columns) == 0 {
		return nil, &records.FileError{Path: in.Path, Reason: "has no columns"}
	}
	p := newRows(in, f)
	rows.Next = func() (rec records.Record, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = damaged(nil)
			}
		}()
		rec, err = p.next(rows.Columns)
		if err != nil && !errors.Is(err, io.EOF) {
			err = damaged(err)
		}
		return rec, err
	}
	return rows, nil
}

// openFile opens the input, or a copy that the library can read.
func openFile(in *records.Input) (*parquet.File, error) {
	file, size := in.ReaderAt, in.Size
	open := func() (*parquet.File, error) {
		return parquet.OpenFile(in.Metered(file, size), size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	}
	f, err := open()
	if err != nil {
		bare, bareSize, wrong := withoutMetadata(file, size)
		if wrong != nil {
			return nil, err
		}
		file, size = bare, bareSize
		if f, err = open(); err != nil {
			return nil, err
		}
	}
	if reason := tooLarge(f.Metadata(), in.Reads); reason != "" {
		return nil, &records.FileError{Path: in.Path, Reason: reason}
	}
	plain, length, err := readable(in, file, size, f.Metadata())
	if err != nil || plain == file {
		return f, err
	}
	file, size = plain, length
	return open()
}

// newRows returns the rows of a file. Other programs write a group without rows for a table without rows; the library
// cannot read one.
func newRows(in *records.Input, f *parquet.File) *parquetRows {
	groups := slices.DeleteFunc(slices.Clone(f.RowGroups()), func(g parquet.RowGroup) bool { return g.NumRows() == 0 })
	p := &parquetRows{groups: groups, fields: f.Schema().Fields(), buf: make([]parquet.Row, rowsAtOnce)}
	p.leaves = make([][]parquet.Value, len(f.Schema().Columns()))
	p.meanings = leafMeanings(f)
	for i, path := range f.Schema().Columns() {
		if in.Reads(path[0]) {
			p.chunks = append(p.chunks, i)
		}
	}
	return p
}

const (
	maxExpansion = 1000      // how many times larger than in the file the values of a column may be
	minExpanded  = 256 << 20 // bytes of a column that may have any expansion
)

// tooLarge returns why a file is not read whose columns have very much more values than bytes: it
// would take the memory of the computer. It is empty for other files.
func tooLarge(m *format.FileMetaData, reads func(column string) bool) string {
	for _, group := range m.RowGroups {
		for _, c := range group.Columns {
			if !reads(c.MetaData.PathInSchema[0]) {
				continue
			}
			expanded, stored := c.MetaData.TotalUncompressedSize, max(c.MetaData.TotalCompressedSize, 1)
			if expanded > minExpanded && expanded/maxExpansion > stored {
				return fmt.Sprintf("has a column, %s, whose %d bytes expand to %d MiB, which is not read", strings.Join(c.MetaData.PathInSchema, "."), stored, expanded>>20)
			}
		}
	}
	return ""
}

// leafMeanings returns the logical type of each leaf column; nil for a plain one. The
// library drops types that it does not know, as the one of 16 bit floats, and translates
// those of old writers.
func leafMeanings(f *parquet.File) []format.LogicalTypeValue {
	var meanings []format.LogicalTypeValue
	for i, element := range f.Metadata().Schema {
		if i == 0 || !element.Type.Valid { // the root or a group
			continue
		}
		meanings = append(meanings, element.LogicalType.Value)
	}
	leaf := 0
	var walk func(n parquet.Node)
	walk = func(n parquet.Node) {
		if n.Leaf() {
			if meanings[leaf] == nil {
				meanings[leaf] = logicalOf(n)
			}
			leaf++
			return
		}
		for _, field := range n.Fields() {
			walk(field)
		}
	}
	walk(f.Schema())
	addDurations(f, meanings)
	return meanings
}

type parquetRows struct {
	groups []parquet.RowGroup
	fields []parquet.Field
	chunks []int // the leaf columns that are decoded
	empty  int64 // rows of the group that are left, if no column is decoded
	rows   parquet.Rows
	buf    []parquet.Row
	have   []parquet.Row     // decoded and not returned yet
	idle   int               // how often in sequence nothing was decoded
	leaves [][]parquet.Value // the values of one record, by leaf column
	// meanings has the logical type of each leaf column.
	meanings []format.LogicalTypeValue
}

func (p *parquetRows) next(columns []string) (records.Record, error) {
	rec := records.Record{Columns: columns, Values: make([]any, len(columns))}
	if len(p.chunks) == 0 {
		return rec, p.skip()
	}
	for len(p.have) == 0 {
		if err := p.fill(); err != nil {
			return records.Record{}, err
		}
	}
	row := p.have[0]
	p.have = p.have[1:]
	for i := range p.leaves {
		p.leaves[i] = p.leaves[i][:0]
	}
	for _, v := range row {
		p.leaves[v.Column()] = append(p.leaves[v.Column()], v)
	}
	at := assembler{leaves: p.leaves, meanings: p.meanings}
	for i, f := range p.fields {
		if first := at.leaf; slices.Contains(p.chunks, first) {
			rec.Values[i] = at.node(f, level{})
		} else {
			at.skip(f)
		}
	}
	return rec, nil
}

// skip counts a row of a file of which no column is read.
func (p *parquetRows) skip() error {
	for p.empty == 0 {
		if len(p.groups) == 0 {
			return io.EOF
		}
		p.empty = p.groups[0].NumRows()
		p.groups = p.groups[1:]
	}
	p.empty--
	return nil
}

// readColumns is a row group of which only some leaf columns are decoded.
type readColumns struct {
	parquet.RowGroup
	leaves []int
}

// ColumnChunks returns the columns that are decoded. Their values have the numbers of the file's columns.
func (g readColumns) ColumnChunks() []parquet.ColumnChunk {
	all := g.RowGroup.ColumnChunks()
	chunks := make([]parquet.ColumnChunk, len(g.leaves))
	for i, leaf := range g.leaves {
		chunks[i] = all[leaf]
	}
	return chunks
}

// fill decodes more rows; after the end of a row group it opens the next one.
func (p *parquetRows) fill() error {
	if p.rows == nil {
		if len(p.groups) == 0 {
			return io.EOF
		}
		p.rows = parquet.NewRowGroupRowReader(readColumns{p.groups[0], p.chunks})
		p.groups = p.groups[1:]
	}
	n, err := p.rows.ReadRows(p.buf)
	p.have = p.buf[:n]
	const most = 100 // a damaged file would be read for ever
	if p.idle++; n > 0 || err != nil {
		p.idle = 0
	}
	if p.idle == most {
		return io.ErrNoProgress
	}
	if errors.Is(err, io.EOF) {
		err = nil
		if n == 0 {
			err = p.rows.Close()
			p.rows = nil
		}
	}
	return err
}

// assembler builds nested values from the leaves of one record, by their repetition
// and definition levels (the Dremel encoding).
type assembler struct {
	leaves   [][]parquet.Value // the rest of each leaf column
	meanings []format.LogicalTypeValue
	leaf     int // the next leaf column
}

// level counts the enclosing nodes: repeated ones, and optional or repeated ones.
type level struct{ rep, def int }

// node returns the value of a node for the current repetition and consumes the
// values of its leaves.
func (a *assembler) node(n parquet.Node, at level) any {
	switch {
	case n.Repeated():
		return a.list(n, at)
	case n.Optional():
		at.def++
		if !a.defined(at.def) {
			a.skip(n)
			return nil
		}
	}
	return a.value(n, at)
}

// defined reports whether the node of the next leaf has a value.
func (a *assembler) defined(def int) bool {
	left := a.leaves[a.leaf]
	return len(left) > 0 && left[0].DefinitionLevel() >= def
}

// skip consumes the null in each leaf of a node that has no value.
func (a *assembler) skip(n parquet.Node) {
	if n.Leaf() {
		if left := a.leaves[a.leaf]; len(left) > 0 {
			a.leaves[a.leaf] = left[1:]
		}
		a.leaf++
		return
	}
	for _, f := range n.Fields() {
		a.skip(f)
	}
}

// list returns the elements of a repeated node.
func (a *assembler) list(n parquet.Node, at level) any {
	at.rep++
	at.def++
	elements := []any{}
	if !a.defined(at.def) {
		a.skip(n)
		return elements
	}
	first := a.leaf
	for {
		a.leaf = first
		elements = append(elements, a.value(n, at))
		left := a.leaves[first]
		if len(left) == 0 || left[0].RepetitionLevel() != at.rep {
			return elements
		}
	}
}

// value returns the value of a node that has one: a leaf, or a group with its fields.
func (a *assembler) value(n parquet.Node, at level) any {
	if n.Leaf() {
		v := a.leaves[a.leaf][0]
		a.leaves[a.leaf] = a.leaves[a.leaf][1:]
		meaning := a.meanings[a.leaf]
		a.leaf++
		return leafValue(meaning, v)
	}
	fields := n.Fields()
	group := make(map[string]any, len(fields))
	for _, f := range fields {
		group[f.Name()] = a.node(f, at)
	}
	switch logicalOf(n).(type) {
	case *format.ListType:
		return unwrapList(fields, group)
	case *format.MapType:
		return unwrapMap(fields, group)
	}
	return group
}

// unwrapList removes the two levels that Parquet puts around a list's elements.
func unwrapList(fields []parquet.Field, group map[string]any) any {
	if len(fields) != 1 {
		return group
	}
	elements, ok := group[fields[0].Name()].([]any)
	inner := fields[0].Fields()
	if !ok || len(inner) != 1 {
		return group[fields[0].Name()]
	}
	for i, e := range elements {
		if m, ok := e.(map[string]any); ok {
			elements[i] = m[inner[0].Name()]
		}
	}
	return elements
}

// unwrapMap returns a map for Parquet's list of keys and values.
func unwrapMap(fields []parquet.Field, group map[string]any) any {
	if len(fields) != 1 {
		return group
	}
	entries, _ := group[fields[0].Name()].([]any)
	made := make(map[string]any, len(entries))
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			made[string(records.AppendCell(nil, records.Text, m["key"]))] = m["value"]
		}
	}
	return made
}

// logicalOf returns a node's logical type; nil if it has none.
func logicalOf(n parquet.Node) format.LogicalTypeValue {
	if lt := n.Type().LogicalType(); lt != nil {
		return lt.Value
	}
	return nil
}

// The types below are the parts of a file's metadata that are needed to read its rows. The library
// requires a value of each entry of the metadata that programs add for themselves, which may have none.

type bareFile struct {
	Version      int32                              `thrift:"1,required"`
	Schema       thrift.Slice[format.SchemaElement] `thrift:"2,required"`
	NumRows      int64                              `thrift:"3,required"`
	RowGroups    thrift.Slice[bareGroup]            `thrift:"4,required"`
	CreatedBy    string                             `thrift:"6,optional"`
	ColumnOrders thrift.Slice[format.ColumnOrder]   `thrift:"7,optional"`
}

type bareGroup struct {
	Columns       thrift.Slice[bareChunk] `thrift:"1,required"`
	TotalByteSize int64                   `thrift:"2,required"`
	NumRows       int64                   `thrift:"3,required"`
}

type bareChunk struct {
	FilePath   string   `thrift:"1,optional"`
	FileOffset int64    `thrift:"2,required"`
	MetaData   bareMeta `thrift:"3,optional"`
}

type bareMeta struct {
	Type                  format.Type                            `thrift:"1,required"`
	Encoding              thrift.Slice[format.Encoding]          `thrift:"2,required"`
	PathInSchema          thrift.Slice[string]                   `thrift:"3,required"`
	Codec                 format.CompressionCodec                `thrift:"4,required"`
	NumValues             int64                                  `thrift:"5,required"`
	TotalUncompressedSize int64                                  `thrift:"6,required"`
	TotalCompressedSize   int64                                  `thrift:"7,required"`
	DataPageOffset        int64                                  `thrift:"9,required"`
	DictionaryPageOffset  int64                                  `thrift:"11,optional"`
	EncodingStats         thrift.Slice[format.PageEncodingStats] `thrift:"13,optional"`
}

var errNoFooter = errors.New("the file has no footer")

// withoutMetadata returns a file with a footer that has only what is needed to read its rows, and its size.
func withoutMetadata(file io.ReaderAt, size int64) (io.ReaderAt, int64, error) {
	const trailer = 8 // the length of the footer, and PAR1
	var end [trailer]byte
	if size < trailer {
		return nil, 0, errNoFooter
	}
	if _, err := file.ReadAt(end[:], size-trailer); err != nil {
		return nil, 0, err
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	if length > size-trailer {
		return nil, 0, errNoFooter
	}
	footer := make([]byte, length)
	if _, err := file.ReadAt(footer, size-trailer-length); err != nil {
		return nil, 0, err
	}
	var meta bareFile
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, &meta); err != nil {
		return nil, 0, err
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		return nil, 0, err
	}
	footer = append(binary.LittleEndian.AppendUint32(footer, uint32(len(footer))), "PAR1"...)
	s := &splicedFile{file, size - trailer - length, footer}
	return s, s.at + int64(len(footer)), nil
}

// splicedFile is a file whose end is replaced.
type splicedFile struct {
	in  io.ReaderAt
	at  int64 // where the new end begins
	end []byte
}

// ReadAt reads from the file and its new end.
func (s *splicedFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < s.at {
		var err error
		if n, err = s.in.ReadAt(p[:min(int64(len(p)), s.at-off)], off); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	from := off + int64(n) - s.at
	if from >= int64(len(s.end)) {
		return n, io.EOF
	}
	if n += copy(p[n:], s.end[from:]); n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
