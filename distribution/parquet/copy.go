package parquet

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/qtype-dev/qtype/internal/records"
)

// errDamagedPage reports a page that cannot be decompressed to its size.
var errDamagedPage = errors.New("a page is damaged")

// readable returns the file, or if the library cannot read its pages, a temporary copy whose
// pages are not compressed, and its size. The library returns other bytes for many pages that are compressed with LZ4
// (parquet-go issue 608), and for a damaged one it takes memory until the program has none left; it does
// not know the LZ4 of Hadoop, and no compressed pages without values. meta is changed to that of the copy.
func readable(in *records.Input, file io.ReaderAt, size int64, meta *format.FileMetaData) (io.ReaderAt, int64, error) {
	isPlain := map[*format.ColumnChunk]bool{}
	needed := false
	for g := range meta.RowGroups {
		for i := range meta.RowGroups[g].Columns {
			c := &meta.RowGroups[g].Columns[i]
			isPlain[c] = !in.Reads(c.MetaData.PathInSchema[0]) || !unreadable(file, size, &c.MetaData)
			needed = needed || !isPlain[c]
		}
	}
	if !needed {
		return file, size, nil
	}
	f, err := in.Temporary()
	if err != nil {
		return nil, 0, err
	}
	c := &parquetCopy{in: file, out: bufio.NewWriter(f)}
	c.write([]byte("PAR1"))
	for g := range meta.RowGroups {
		for i := range meta.RowGroups[g].Columns {
			if column := &meta.RowGroups[g].Columns[i]; isPlain[column] {
				err = c.copy(column)
			} else {
				err = c.decompress(column)
			}
			if err != nil {
				return nil, 0, err
			}
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return nil, 0, err
	}
	c.write(footer)
	c.write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	c.write([]byte("PAR1"))
	if err := c.out.Flush(); err != nil { // also that of an earlier write
		return nil, 0, records.TemporaryError(in.Path, err)
	}
	return f, c.at, nil
}

// unreadable reports whether the library cannot read the pages of a column.
func unreadable(file io.ReaderAt, size int64, m *format.ColumnMetaData) bool {
	if m.Codec == format.Lz4Raw || m.Codec == format.Lz4 {
		return true
	}
	if m.Codec == format.Uncompressed || !slices.ContainsFunc(m.EncodingStats, func(s format.PageEncodingStats) bool { return s.PageType == format.DataPageV2 }) {
		return false
	}
	for at, end := firstPage(m), min(firstPage(m)+m.TotalCompressedSize, size); at < end; {
		in := bufio.NewReaderSize(io.NewSectionReader(file, at, end-at), 512)
		header, length, err := pageHeader(in)
		if err != nil || header.CompressedPageSize < 0 {
			return false // the library reports it
		}
		if v2 := header.DataPageHeaderV2; v2.Valid && header.CompressedPageSize == v2.V.DefinitionLevelsByteLength+v2.V.RepetitionLevelsByteLength {
			return true
		}
		at += length + int64(header.CompressedPageSize)
	}
	return false
}

// firstPage returns the offset of the first page of a column.
func firstPage(m *format.ColumnMetaData) int64 {
	if d := m.DictionaryPageOffset; d > 0 && d < m.DataPageOffset {
		return d
	}
	return m.DataPageOffset
}

// pageHeader reads the header of a page, and returns its length.
func pageHeader(in *bufio.Reader) (h format.PageHeader, length int64, err error) {
	counted := &countedBytes{in: in}
	err = thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(counted)).Decode(&h)
	return h, counted.n, err
}

// countedBytes counts the bytes that are read.
type countedBytes struct {
	in *bufio.Reader
	n  int64
}

// Read reads bytes.
func (c *countedBytes) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte reads one byte, so that nothing after a header is read.
func (c *countedBytes) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// parquetCopy copies the columns of a file.
type parquetCopy struct {
	in  io.ReaderAt
	out *bufio.Writer // keeps the first error
	at  int64         // the number of written bytes

	codec format.CompressionCodec // of the column that is copied
}

func (c *parquetCopy) write(p []byte) {
	n, _ := c.out.Write(p)
	c.at += int64(n)
}

// copy copies the pages of one column of a row group.
func (c *parquetCopy) copy(column *format.ColumnChunk) error {
	m, first := &column.MetaData, c.at
	from := firstPage(m)
	n, err := io.Copy(c.out, io.NewSectionReader(c.in, from, m.TotalCompressedSize))
	c.at += n
	c.moved(column, first, first+m.DataPageOffset-from)
	return err
}

// decompress copies the pages of one column of a row group without compression.
func (c *parquetCopy) decompress(column *format.ColumnChunk) error {
	m, first := &column.MetaData, c.at
	c.codec = m.Codec
	data, err := c.pages(bufio.NewReader(io.NewSectionReader(c.in, firstPage(m), m.TotalCompressedSize)), m.TotalCompressedSize)
	m.Codec = format.Uncompressed
	c.moved(column, first, data)
	return err
}

// moved sets the offsets of a column whose pages were copied.
func (c *parquetCopy) moved(column *format.ColumnChunk, first, data int64) {
	m := &column.MetaData
	from := firstPage(m)
	m.TotalCompressedSize = c.at - first
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset == from {
		m.DictionaryPageOffset = first
	} else { // some writers take a dictionary for the first page with data
		m.DictionaryPageOffset, data = 0, first
	}
	m.DataPageOffset, m.IndexPageOffset, m.BloomFilterOffset, m.BloomFilterLength = data, 0, 0, 0
	column.FileOffset, column.OffsetIndexOffset, column.OffsetIndexLength, column.ColumnIndexOffset, column.ColumnIndexLength = first, 0, 0, 0, 0
}

// pages copies pages without their compression, each of most bytes or less, and returns the offset
// of the first one with data.
func (c *parquetCopy) pages(in *bufio.Reader, most int64) (data int64, err error) {
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return data, nil // the library reports missing pages
		} else if err != nil {
			return 0, err
		}
		header, _, err := pageHeader(in)
		if err != nil {
			return 0, err
		}
		size := int64(header.CompressedPageSize)
		if size < 0 || size > most {
			return 0, errDamagedPage
		}
		page := make([]byte, size)
		if _, err := io.ReadFull(in, page); err != nil {
			return 0, err
		}
		if page, err = c.plainPage(page, &header); err != nil {
			return 0, err
		}
		header.CompressedPageSize, header.UncompressedPageSize, header.CRC = int32(len(page)), int32(len(page)), 0
		text, err := thrift.Marshal(new(thrift.CompactProtocol), &header)
		if err != nil {
			return 0, err
		}
		if !header.DictionaryPageHeader.Valid && data == 0 {
			data = c.at
		}
		c.write(text)
		if c.write(page); c.at > records.MaxSpool {
			return 0, fmt.Errorf("is larger than %d GB when decompressed", records.MaxSpool>>30)
		}
	}
}

// plainPage returns the decompressed bytes of a page, and changes its header.
func (c *parquetCopy) plainPage(page []byte, header *format.PageHeader) ([]byte, error) {
	levels := 0 // bytes at the beginning that are never compressed
	if v2 := &header.DataPageHeaderV2; v2.Valid {
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			return page, nil
		}
		levels = int(v2.V.DefinitionLevelsByteLength) + int(v2.V.RepetitionLevelsByteLength)
		v2.V.IsCompressed = thrift.Null[bool]{V: false, Valid: true}
	}
	if levels < 0 || levels > len(page) {
		return nil, errDamagedPage
	}
	levelBytes, block, want := page[:levels], page[levels:], int(header.UncompressedPageSize)
	if len(block) == 0 && want == levels {
		return page, nil // no values
	}
	switch c.codec {
	case format.Lz4Raw:
		if made, ok := decodeLZ4(levelBytes, block, want); ok {
			return made, nil
		}
	case format.Lz4:
		return hadoopLZ4(levelBytes, block, want)
	default:
		text, err := parquet.LookupCompressionCodec(c.codec).Decode(nil, block)
		if err == nil && levels+len(text) == want {
			return append(slices.Clone(levelBytes), text...), nil
		}
	}
	return nil, errDamagedPage
}

// hadoopLZ4 decompresses the codec LZ4, which writers understand differently: blocks after their sizes as Hadoop
// writes them, or else a block or a frame.
func hadoopLZ4(made, block []byte, want int) ([]byte, error) {
	const head = 8 // the sizes of a block after and before decompression
	text := slices.Clone(made)
	for rest := block; ; {
		if len(rest) == 0 && len(text) == want {
			return text, nil
		}
		if len(rest) < head {
			break
		}
		size, packed := int64(binary.BigEndian.Uint32(rest)), int64(binary.BigEndian.Uint32(rest[4:]))
		if packed > int64(len(rest)-head) || size > int64(want-len(text)) {
			break
		}
		var ok bool
		if text, ok = decodeLZ4(text, rest[head:head+packed], len(text)+int(size)); !ok {
			break
		}
		rest = rest[head+packed:]
	}
	if text, ok := decodeLZ4(made, block, want); ok {
		return text, nil
	}
	frame := io.LimitReader(lz4.NewReader(bytes.NewReader(block)), int64(want)+1)
	text, err := io.ReadAll(io.MultiReader(bytes.NewReader(made), frame))
	if err != nil || len(text) != want {
		return nil, errDamagedPage
	}
	return text, nil
}

// decodeLZ4 appends a decompressed LZ4 block to a text. It reports whether the block is complete and
// the result has the wanted length.
func decodeLZ4(made, block []byte, want int) ([]byte, bool) {
	const maxRatio = 255 // of LZ4: a damaged length takes no memory
	if want < len(made) || want-len(made) > maxRatio*len(block) {
		return nil, false
	}
	text := make([]byte, want)
	rest := text[copy(text, made):]
	n, err := lz4.UncompressBlock(block, rest)
	return text, err == nil && n == len(rest)
}

// Parquet has no lists of a fixed size. Readers that use Arrow (pyarrow, pandas, polars,
// DuckDB) take them from the key ARROW:schema of the file's metadata: the schema of the
// columns as a message of Arrow's IPC format, in base64. The numbers below are those of
// Schema.fbs and Message.fbs of Arrow's format.

const (
	arrowInt       = 2
	arrowFloat     = 3
	arrowBinary    = 4
	arrowUTF8      = 5
	arrowBool      = 6
	arrowDate      = 8
	arrowTime      = 9
	arrowTimestamp = 10
	arrowList      = 12
	arrowStruct    = 13
	arrowFixedList = 16

	arrowVersion5     = 4
	arrowSchemaHeader = 1
	arrowFloat64      = 2
	arrowMicrosecond  = 2
	arrowNanosecond   = 3
)

// arrowSchema returns the value of ARROW:schema; empty if no column needs it.
func arrowSchema(columns []*parquetNode) string {
	if !hasFixedList(columns) {
		return ""
	}
	b := arrowBuilder{flatbuffers.NewBuilder(1024)}
	fields := b.fields(columns)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, fields, 0)
	schema := b.EndObject()
	b.StartObject(5)
	b.PrependInt64Slot(3, 0, 0) // the message has no body
	b.PrependUOffsetTSlot(2, schema, 0)
	b.PrependInt16Slot(0, arrowVersion5, 0)
	b.PrependByteSlot(1, arrowSchemaHeader, 0)
	b.Finish(b.EndObject())
	message := b.FinishedBytes()
	for len(message)%8 != 0 {
		message = append(message, 0)
	}
	head := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(len(message)))
	return base64.StdEncoding.EncodeToString(append(head, message...))
}

// hasFixedList reports whether a column has lists of one size.
func hasFixedList(nodes []*parquetNode) bool {
	for _, n := range nodes {
		if n.vector.fixed() || hasFixedList(n.fields) || n.elem != nil && hasFixedList([]*parquetNode{n.elem}) {
			return true
		}
	}
	return false
}

// fixed reports whether all lists have the same size.
func (s *vectorSize) fixed() bool { return s != nil && s.size > 0 && !s.varied }

// arrowBuilder builds tables of the schema; those inside a table come before it.
type arrowBuilder struct{ *flatbuffers.Builder }

func (b arrowBuilder) fields(nodes []*parquetNode) flatbuffers.UOffsetT {
	tables := make([]flatbuffers.UOffsetT, len(nodes))
	for i, n := range nodes {
		tables[i] = b.field(n)
	}
	return b.CreateVectorOfTables(tables)
}

func (b arrowBuilder) field(n *parquetNode) flatbuffers.UOffsetT {
	children := n.fields
	if n.elem != nil {
		children = []*parquetNode{n.elem}
	}
	inner := b.fields(children)
	name := b.CreateString(n.name)
	kind, typ := b.typeOf(n)
	b.StartObject(7)
	b.PrependUOffsetTSlot(5, inner, 0)
	b.PrependUOffsetTSlot(3, typ, 0)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependBoolSlot(1, true, false) // nullable
	b.PrependByteSlot(2, kind, 0)
	return b.EndObject()
}

// typeOf returns the number of a node's type and its table.
func (b arrowBuilder) typeOf(n *parquetNode) (kind byte, table flatbuffers.UOffsetT) {
	switch {
	case n.vector.fixed():
		b.StartObject(1)
		b.PrependInt32Slot(0, int32(n.vector.size), 0)
		return arrowFixedList, b.EndObject()
	case n.elem != nil:
		return arrowList, b.empty()
	case n.fields != nil:
		return arrowStruct, b.empty()
	case n.times != nil && !n.times.isText:
		return b.timeType(n.times)
	case n.typ.Is("date"):
		b.StartObject(1)
		b.PrependInt16Slot(0, 0, 1) // days; the default is milliseconds
		return arrowDate, b.EndObject()
	}
	return b.leafType(n.kind)
}

func (b arrowBuilder) empty() flatbuffers.UOffsetT {
	b.StartObject(0)
	return b.EndObject()
}

func (b arrowBuilder) timeType(l *timeLeaf) (kind byte, table flatbuffers.UOffsetT) {
	unit := int16(arrowMicrosecond)
	if l.nanos {
		unit = arrowNanosecond
	}
	if l.day {
		b.StartObject(2)
		b.PrependInt32Slot(1, 64, 32) // bits
		b.PrependInt16Slot(0, unit, 1)
		return arrowTime, b.EndObject()
	}
	zone := flatbuffers.UOffsetT(0)
	if !l.local {
		zone = b.CreateString("UTC")
	}
	b.StartObject(2)
	b.PrependUOffsetTSlot(1, zone, 0)
	b.PrependInt16Slot(0, unit, 0)
	return arrowTimestamp, b.EndObject()
}

func (b arrowBuilder) leafType(k records.Kind) (kind byte, table flatbuffers.UOffsetT) {
	switch k {
	case records.Int:
		b.StartObject(2)
		b.PrependInt32Slot(0, 64, 0)
		b.PrependBoolSlot(1, true, false) // signed
		return arrowInt, b.EndObject()
	case records.Float:
		b.StartObject(1)
		b.PrependInt16Slot(0, arrowFloat64, 0)
		return arrowFloat, b.EndObject()
	case records.Bool:
		return arrowBool, b.empty()
	case records.Bytes:
		return arrowBinary, b.empty()
	}
	return arrowUTF8, b.empty()
}
