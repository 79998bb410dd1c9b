package temporal

import (
	"context"
	"hash/fnv"
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/runtime"
)

const (
	maxPartitions = 32      // chunks of a run that run at once
	maxWaiting    = 128     // chunks of one row that run, or wait for an answer, at once
	maxWrites     = 8       // chunks that are stored at once
	maxChunkBytes = 1 << 20 // of the rows of a chunk
)

// uploader divides the rows of a run into the chunks of partitions. Rows of one session are in
// one partition, in their order.
type uploader struct {
	codec *runtime.RowCodec
	blobs *blobs
	run   string
	max   int // rows of a chunk
	bytes int // of the rows of a chunk, after which it ends

	isLarge    bool // the rows are blobs, also if they are few
	isVolatile bool // the rows are still in the input when the computer fails

	partitions []partitionRows
	chunks     []int                 // the number of chunks of each partition
	next       int                   // the partition of the next chunk of a flow without sessions
	writes     sync.WaitGroup        // of chunks
	slots      chan struct{}         // one for each write
	failed     atomic.Pointer[error] // why a chunk could not be stored
	total      int64                 // rows
	owners     owners                // of rows, if the flow has sessions
}

// newUploader returns the uploader of a run. A chunk of a flow whose rows may wait for an
// answer is one row: only this row and later rows of its session wait.
func newUploader(codec *runtime.RowCodec, b *blobs, run string, rows int, mayWait bool) *uploader {
	partitions := maxPartitions
	if mayWait {
		partitions, rows = maxWaiting, 1
	}
	return &uploader{codec: codec, blobs: b, run: run, max: rows, bytes: maxChunkBytes, partitions: make([]partitionRows, partitions)}
}

// newRequestUploader returns the uploader of a request of a server. The rows of a flow with batch steps are one chunk: they are few.
func newRequestUploader(codec *runtime.RowCodec, b *blobs, run string, mayWait bool) *uploader {
	u := newUploader(codec, b, run, durable.DefaultChunk, mayWait)
	if codec.HasBatches() {
		u.max, u.bytes, u.partitions = math.MaxInt, math.MaxInt, make([]partitionRows, 1)
	}
	return u
}

// partitionRows are the rows of a partition that are not stored yet.
type partitionRows struct {
	rows [][]byte
	size int
}

// upload stores all rows. The inline chunks are nil if the rows are not small.
func (u *uploader) upload(ctx context.Context, rows iter.Seq[runtime.Input]) (partitions []int, inline [][][]byte, err error) {
	u.chunks, u.slots = make([]int, len(u.partitions)), make(chan struct{}, maxWrites)
	defer u.writes.Wait()
	size, whole := 0, !u.isLarge // all rows are still in partitions
	for in := range rows {
		if err := ctx.Err(); err != nil {
			return nil, nil, context.Cause(ctx)
		}
		u.total++
		data, session := u.codec.EncodeInput(ctx, in, u.total)
		if u.codec.HasSessions() {
			u.owners.add(session)
		}
		at := u.partitionOf(session)
		partition := &u.partitions[at]
		partition.rows, partition.size = append(partition.rows, data), partition.size+len(data)
		if size += len(data); size > maxInline {
			whole = false
		}
		if len(partition.rows)%u.max != 0 && partition.size < u.bytes {
			continue
		}
		u.next = (u.next + 1) % len(u.partitions)
		if whole {
			continue
		}
		if err := u.store(ctx, at); err != nil {
			return nil, nil, err
		}
	}
	if whole {
		return u.inline()
	}
	for at := range u.partitions {
		if err := u.store(ctx, at); err != nil {
			return nil, nil, err
		}
	}
	u.writes.Wait()
	return u.chunks, nil, u.failure()
}

// partitionOf returns the partition of a row.
func (u *uploader) partitionOf(session string) int {
	if !u.codec.HasSessions() {
		return u.next
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(u.codec.Order(session))) // a hash does not fail
	return int(h.Sum32() % uint32(len(u.partitions)))
}

// split divides the rows of a partition into chunks and removes them from the partition.
func (u *uploader) split(at int) []chunk {
	partition := &u.partitions[at]
	var all []chunk
	for rows := partition.rows; len(rows) > 0; {
		n := min(len(rows), u.max)
		all = append(all, chunk{Rows: rows[:n]})
		rows = rows[n:]
	}
	*partition = partitionRows{}
	return all
}

// store stores the rows of a partition as blobs.
func (u *uploader) store(ctx context.Context, at int) error {
	for _, c := range u.split(at) {
		name := inputName(u.run, at, u.chunks[at])
		u.chunks[at]++
		u.slots <- struct{}{}
		u.writes.Go(func() {
			defer func() { <-u.slots }()
			if err := u.blobs.store(ctx, name, c, u.isVolatile); err != nil {
				u.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return u.failure()
}

// failure returns why a chunk could not be stored; nil if all could so far.
func (u *uploader) failure() error {
	if err := u.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// inline returns the rows of all partitions, which are small.
func (u *uploader) inline() ([]int, [][][]byte, error) {
	all := make([][][]byte, len(u.partitions))
	for at := range u.partitions {
		for _, c := range u.split(at) {
			data, err := encode(c)
			if err != nil {
				return nil, nil, err
			}
			all[at] = append(all[at], data)
			u.chunks[at]++
		}
	}
	return u.chunks, all, nil
}
