package records

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// errDamagedPage reports a page that cannot be decompressed to its size.
var errDamagedPage = errors.New("a page is damaged")

// usesLZ4 reports whether a column of a file is compressed with LZ4.
func usesLZ4(meta *format.FileMetaData) bool {
	return slices.ContainsFunc(meta.RowGroups, func(g format.RowGroup) bool {
		return slices.ContainsFunc(g.Columns, func(c format.ColumnChunk) bool { return c.MetaData.Codec == format.Lz4Raw })
	})
}

// withoutLZ4 returns a temporary copy of a file whose pages are not compressed with LZ4, and its
// size. The library returns other bytes for many such pages (parquet-go issue 608), and for a
// damaged one it takes memory until the program has none left. meta is changed to that of the copy.
func (r *Reader) withoutLZ4(file io.ReaderAt, meta *format.FileMetaData) (io.ReaderAt, int64, error) {
	f, err := r.temporary()
	if err != nil {
		return nil, 0, err
	}
	c := &parquetCopy{in: file, out: bufio.NewWriter(f)}
	c.write([]byte("PAR1"))
	for g := range meta.RowGroups {
		for i := range meta.RowGroups[g].Columns {
			if err := c.chunk(&meta.RowGroups[g].Columns[i]); err != nil {
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
		return nil, 0, &FileError{Path: r.path, Reason: "needs a temporary file: " + cause(err), Err: err}
	}
	return f, c.at, nil
}

// parquetCopy copies the columns of a file.
type parquetCopy struct {
	in  io.ReaderAt
	out *bufio.Writer // keeps the first error
	at  int64         // the number of written bytes
}

func (c *parquetCopy) write(p []byte) {
	n, _ := c.out.Write(p)
	c.at += int64(n)
}

// chunk copies one column of a row group.
func (c *parquetCopy) chunk(column *format.ColumnChunk) error {
	m := &column.MetaData
	from, first := m.DataPageOffset, c.at
	if d := m.DictionaryPageOffset; d > 0 && d < from {
		from = d
	}
	pages := bufio.NewReader(io.NewSectionReader(c.in, from, m.TotalCompressedSize))
	data := first + m.DataPageOffset - from
	var err error
	if m.Codec == format.Lz4Raw {
		data, err = c.pages(pages, m.TotalCompressedSize)
		m.Codec = format.Uncompressed
	} else {
		var n int64
		n, err = io.Copy(c.out, pages)
		c.at += n
	}
	if err != nil {
		return err
	}
	m.TotalCompressedSize = c.at - first
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset == from {
		m.DictionaryPageOffset = first
	} else {
		m.DictionaryPageOffset = 0
	}
	m.DataPageOffset, m.IndexPageOffset, m.BloomFilterOffset, m.BloomFilterLength = data, 0, 0, 0
	column.FileOffset, column.OffsetIndexOffset, column.OffsetIndexLength, column.ColumnIndexOffset, column.ColumnIndexLength = first, 0, 0, 0, 0
	return nil
}

// pages copies pages that are compressed with LZ4, each of most bytes or less, and returns the offset
// of the first one with data.
func (c *parquetCopy) pages(in *bufio.Reader, most int64) (data int64, err error) {
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return data, nil // the library reports missing pages
		} else if err != nil {
			return 0, err
		}
		var header format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&header); err != nil {
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
		if page, err = plainPage(page, &header); err != nil {
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
		if c.write(page); c.at > maxSpool {
			return 0, fmt.Errorf("is larger than %d GB when decompressed", maxSpool>>30)
		}
	}
}

// plainPage returns the decompressed bytes of a page, and changes its header.
func plainPage(page []byte, header *format.PageHeader) ([]byte, error) {
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
	made, ok := decodeLZ4(page[:levels], page[levels:], int(header.UncompressedPageSize))
	if !ok {
		return nil, errDamagedPage
	}
	return made, nil
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
