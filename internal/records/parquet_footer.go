package records

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

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
	footer = append(binary.LittleEndian.AppendUint32(footer, uint32(len(footer))), magicPQ...)
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
