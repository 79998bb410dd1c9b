package stepcache

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// Encodings of stored entries.
const (
	encodingRaw  = "raw"
	encodingZstd = "zstd"
)

// maxUnpacked limits the size of an uncompressed entry in bytes, so that a damaged one
// cannot exhaust memory.
const maxUnpacked = 1 << 30

var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(true))
})

var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(sqlitefile.MaxReaders), zstd.WithDecoderMaxMemory(maxUnpacked))
})

// pack encodes an entry.
func pack(entry []byte, compress bool) (codec string, stored []byte, err error) {
	if !compress {
		return encodingRaw, entry, nil
	}
	e, err := encoder()
	if err != nil {
		return "", nil, err
	}
	return encodingZstd, e.EncodeAll(entry, nil), nil
}

// unpack is the inverse of pack.
func unpack(codec string, stored []byte) ([]byte, error) {
	switch codec {
	case encodingRaw:
		return stored, nil
	case encodingZstd:
		d, err := decoder()
		if err != nil {
			return nil, err
		}
		return d.DecodeAll(stored, nil)
	}
	return nil, fmt.Errorf("unknown codec %q", codec)
}
