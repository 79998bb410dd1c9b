package stepcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// retryPause is how long a cache is not used after an error that may pass.
const retryPause = 30 * time.Second

// Cache is the cache of one directory or of a store of memories, with the results that are being computed. It is
// safe for concurrent use.
type Cache struct {
	store  Entries
	file   *Store                    // the store if it is a file; nil for another one
	warn   func(string)              // may be nil
	broken atomic.Bool               // it cannot be used, which was reported
	paused atomic.Pointer[time.Time] // until when it is not used; nil if it is

	mu       sync.Mutex
	inflight map[inflightKey]*inflight
}

// NewCache returns the cache of a directory; see Open. warn, which may be nil, receives
// one line if the cache cannot be used.
func NewCache(dir string, warn func(string)) *Cache {
	file := Open(dir, warn)
	return &Cache{store: file, file: file, warn: warn, inflight: map[inflightKey]*inflight{}}
}

// NewSharedCache returns the cache of a store of memories. warn, which may be nil, receives one line if the cache
// cannot be used.
func NewSharedCache(entries *Shared, warn func(string)) *Cache {
	return &Cache{store: entries, warn: warn, inflight: map[inflightKey]*inflight{}}
}

// isUsable reports whether the cache can be used now.
func (c *Cache) isUsable() bool {
	until := c.paused.Load()
	return !c.broken.Load() && (until == nil || time.Now().After(*until))
}

// Close closes the file. The error of a cache that cannot be used was reported.
func (c *Cache) Close() error {
	if err := c.store.Close(); err != nil && !c.broken.Load() {
		return err
	}
	return nil
}

// inflightKey identifies a result.
type inflightKey struct {
	scope Scope
	key   Key
}

// inflight is a result that is being computed while other rows wait for it. Before
// done is closed, either entry is set, or err, which all of them get, or neither:
// then each row is processed separately.
type inflight struct {
	done  chan struct{}
	entry []byte
	err   error
}

// warnOnce reports the first failure of the cache. The cache is an optimization,
// so the run continues without it: for some time if it is in a server, else to the end.
func (c *Cache) warnOnce(err error) {
	if c.file == nil { // the server may have memory again, or be no replica any more
		until := time.Now().Add(retryPause)
		if c.paused.Swap(&until) == nil && c.warn != nil {
			c.warn(fmt.Sprintf("cache: %v; continuing without the cache until it answers", err))
		}
		return
	}
	if c.broken.CompareAndSwap(false, true) && c.warn != nil {
		c.warn(fmt.Sprintf("%v; continuing without the cache", err))
	}
}

// startOrWait registers the caller as the one that computes the result, or returns
// the computation in flight.
func (c *Cache) startOrWait(id inflightKey) (f *inflight, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.inflight[id]; ok {
		return f, false
	}
	f = &inflight{done: make(chan struct{})}
	c.inflight[id] = f
	return f, true
}

// complete ends a computation.
func (c *Cache) complete(id inflightKey, f *inflight) {
	c.mu.Lock()
	delete(c.inflight, id)
	c.mu.Unlock()
	close(f.done)
}

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

type droppedKey struct{}

// dropped notes failures that a result does not have.
type dropped struct {
	noted atomic.Bool
	outer *dropped // of a cached step whose flow runs the step; nil for none
}

// withDropped returns a context for the computation of a result.
func withDropped(ctx context.Context) (context.Context, *dropped) {
	outer, _ := ctx.Value(droppedKey{}).(*dropped)
	d := &dropped{outer: outer}
	return context.WithValue(ctx, droppedKey{}, d), d
}

// NoteDropped notes that a step in the flow of a cached step has failed on a row, and that on_error removed
// the failure. The result of the cached step is not stored: a later run would not know of the failure.
func NoteDropped(ctx context.Context) {
	d, _ := ctx.Value(droppedKey{}).(*dropped)
	for ; d != nil; d = d.outer {
		d.noted.Store(true)
	}
}
