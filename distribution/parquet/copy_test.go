package parquet

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/spec"
)

// handmade is a file of one group with columns of 64-bit integers, byte by byte: what old writers have written.
type handmade struct {
	text   []byte
	schema []format.SchemaElement
	chunks []format.ColumnChunk
	rows   int64
}

func compact(t *testing.T, v any) []byte {
	t.Helper()
	text, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// column adds a column of pages; a page has its header and its compressed bytes.
func (h *handmade) column(t *testing.T, name string, codec format.CompressionCodec, optional bool, pages ...[]byte) {
	t.Helper()
	if h.text == nil {
		h.text = []byte("PAR1")
	}
	from := int64(len(h.text))
	for _, p := range pages {
		h.text = append(h.text, p...)
	}
	repetition := format.Required
	if optional {
		repetition = format.Optional
	}
	h.schema = append(h.schema, format.SchemaElement{Name: name, Type: thrift.Null[format.Type]{V: format.Int64, Valid: true}, RepetitionType: thrift.Null[format.FieldRepetitionType]{V: repetition, Valid: true}})
	h.chunks = append(h.chunks, format.ColumnChunk{FileOffset: from, MetaData: format.ColumnMetaData{
		Type: format.Int64, Encoding: []format.Encoding{format.Plain, format.RLE}, PathInSchema: []string{name}, Codec: codec, NumValues: h.rows,
		TotalUncompressedSize: int64(len(h.text)) - from, TotalCompressedSize: int64(len(h.text)) - from, DataPageOffset: from,
		EncodingStats: []format.PageEncodingStats{{PageType: format.DataPageV2, Encoding: format.Plain, Count: int32(len(pages))}},
	}})
}

// write writes the file with a footer.
func (h *handmade) write(t *testing.T, footer []byte) string {
	t.Helper()
	text := append(slices.Clone(h.text), footer...)
	text = append(binary.LittleEndian.AppendUint32(text, uint32(len(footer))), "PAR1"...)
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *handmade) footer() *format.FileMetaData {
	root := format.SchemaElement{Name: "schema", NumChildren: thrift.Null[int32]{V: int32(len(h.schema)), Valid: true}}
	return &format.FileMetaData{Version: 1, Schema: append([]format.SchemaElement{root}, h.schema...), NumRows: h.rows,
		RowGroups: []format.RowGroup{{Columns: h.chunks, TotalByteSize: int64(len(h.text)), NumRows: h.rows}}}
}

// pageV1 is a page of required integers.
func pageV1(t *testing.T, size int, packed []byte, values int32) []byte {
	t.Helper()
	return append(compact(t, &format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(size), CompressedPageSize: int32(len(packed)),
		DataPageHeader: thrift.Null[format.DataPageHeader]{Valid: true, V: format.DataPageHeader{NumValues: values, Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}}}), packed...)
}

func lz4Block(t *testing.T, plain []byte) []byte {
	t.Helper()
	packed := make([]byte, lz4.CompressBlockBound(len(plain)))
	n, err := lz4.CompressBlock(plain, packed, nil)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return packed[:n]
}

// values reads the rows of a file.
func values(t *testing.T, path string, opts records.Options) string {
	t.Helper()
	r, err := records.Open(records.WithCodecs(t.Context(), records.Codecs{records.Parquet: Codec()}), path, opts)
	if err != nil {
		return strings.ReplaceAll(err.Error(), path, "t.parquet")
	}
	defer func() { _ = r.Close() }() // only read
	var rows []string
	for rec, err := range r.All() {
		if err != nil {
			return strings.ReplaceAll(err.Error(), path, "t.parquet")
		}
		rows = append(rows, fmt.Sprint(rec.Values))
	}
	return strings.Join(rows, " ")
}

// TestParquet_LZ4 reads the codec LZ4 in each form that writers give it.
func TestParquet_LZ4(t *testing.T) {
	const n = 40
	var plain []byte
	want := make([]string, n)
	for i := range n {
		plain = binary.LittleEndian.AppendUint64(plain, uint64(i/8))
		want[i] = fmt.Sprintf("[%d]", i/8)
	}
	framed := func(parts ...[]byte) []byte {
		var out []byte
		for _, p := range parts {
			packed := lz4Block(t, p)
			out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(packed))), packed...)
		}
		return out
	}
	var frame strings.Builder
	w := lz4.NewWriter(&frame)
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{
		"Hadoop, one block": framed(plain), "Hadoop, two blocks": framed(plain[:160], plain[160:]),
		"a block": lz4Block(t, plain), "a frame": []byte(frame.String()),
	} {
		h := &handmade{rows: n}
		h.column(t, "a", format.Lz4, false, pageV1(t, len(plain), packed, n))
		if got := values(t, h.write(t, compact(t, h.footer())), records.Options{}); got != strings.Join(want, " ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	damaged := framed(plain)
	damaged[12] ^= 0xff
	h := &handmade{rows: n}
	h.column(t, "a", format.Lz4, false, pageV1(t, len(plain), damaged[:20], n))
	if got := values(t, h.write(t, compact(t, h.footer())), records.Options{}); got != "t.parquet: is damaged or not a complete Parquet file" {
		t.Errorf("damaged: %s", got)
	}
}

// TestParquet_EmptyPages reads a page of nulls, of which nothing is compressed.
func TestParquet_EmptyPages(t *testing.T) {
	levels := []byte{3 << 1, 0} // three times the level 0
	page := append(compact(t, &format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: 2, CompressedPageSize: 2,
		DataPageHeaderV2: thrift.Null[format.DataPageHeaderV2]{Valid: true, V: format.DataPageHeaderV2{NumValues: 3, NumNulls: 3, NumRows: 3, Encoding: format.Plain, DefinitionLevelsByteLength: 2}}}), levels...)
	h := &handmade{rows: 3}
	h.column(t, "a", format.Snappy, true, page)
	if got := values(t, h.write(t, compact(t, h.footer())), records.Options{}); got != "[<nil>] [<nil>] [<nil>]" {
		t.Error(got)
	}
}

// TestParquet_Metadata reads a file whose writer added a key without a value.
func TestParquet_Metadata(t *testing.T) {
	plain := binary.LittleEndian.AppendUint64(nil, 7)
	h := &handmade{rows: 1}
	h.column(t, "a", format.Uncompressed, false, pageV1(t, 8, plain, 1))
	type key struct {
		Key string `thrift:"1,required"`
	}
	type file struct {
		Version   int32                              `thrift:"1,required"`
		Schema    thrift.Slice[format.SchemaElement] `thrift:"2,required"`
		NumRows   int64                              `thrift:"3,required"`
		RowGroups thrift.Slice[format.RowGroup]      `thrift:"4,required"`
		Keys      thrift.Slice[key]                  `thrift:"5,optional"`
	}
	f := h.footer()
	path := h.write(t, compact(t, &file{f.Version, f.Schema, f.NumRows, f.RowGroups, []key{{"lonely"}}}))
	if got := values(t, path, records.Options{}); got != "[7]" {
		t.Error(got)
	}
}

// TestParquet_Unread reads one column of a file whose other column cannot be decoded, and is declared larger than the
// memory of the computer.
func TestParquet_Unread(t *testing.T) {
	plain := binary.LittleEndian.AppendUint64(nil, 7)
	for codec, refused := range map[format.CompressionCodec]string{
		format.Uncompressed: "t.parquet: has a column, b, whose 16 bytes expand to 4194304 MiB, which is not read", format.Lz4: "t.parquet: has a column, b, whose 16 bytes expand to 4194304 MiB, which is not read",
	} {
		h := &handmade{rows: 1}
		h.column(t, "a", format.Uncompressed, false, pageV1(t, 8, plain, 1))
		h.column(t, "b", codec, false, []byte("this is no page."))
		h.chunks[1].MetaData.TotalUncompressedSize = 1 << 42
		path := h.write(t, compact(t, h.footer()))
		if got := values(t, path, records.Options{Variables: []*spec.Variable{{ID: "a"}}}); got != "[7 <nil>]" {
			t.Errorf("%s: %s", codec, got)
		}
		if got := values(t, path, records.Options{Variables: []*spec.Variable{}}); got != "[<nil> <nil>]" {
			t.Errorf("%s: %s", codec, got)
		}
		if got := values(t, path, records.Options{}); got != refused {
			t.Errorf("%s: %s", codec, got)
		}
	}
}

// TestParquet_ShortFloats writes floats of 32 bits with their own digits.
func TestParquet_ShortFloats(t *testing.T) {
	type row struct {
		A float32   `parquet:"a"`
		B []float32 `parquet:"b,list"`
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := parquet.WriteFile(path, []row{{0.1, []float32{16777216, 3.4e38}}, {-1.5, nil}}); err != nil {
		t.Fatal(err)
	}
	if got := values(t, path, records.Options{}); got != "[0.1 [1.6777216e+07 3.4e+38]] [-1.5 []]" {
		t.Error(got)
	}
}
