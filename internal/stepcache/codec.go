package stepcache

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// How entries are stored.
const (
	encodingRaw  = "raw"
	encodingZstd = "zstd"
)

// maxEntry is the most bytes that an entry may have when it is unpacked: a
// damaged one must not take the machine's memory.
const maxEntry = 1 << 30

var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(true))
})

var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(readers), zstd.WithDecoderMaxMemory(maxEntry))
})

// pack is an entry as it is stored.
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

// unpack is a stored entry as it was put.
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
	return nil, fmt.Errorf("the codec %q is not known", codec)
}
