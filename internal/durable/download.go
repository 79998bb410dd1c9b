//go:build temporal

package durable

import (
	"context"
	"errors"
	"io/fs"

	"github.com/qtype-dev/qtype/runtime"
)

// downloader yields the results of a run in the order of its rows.
type downloader struct {
	codec *runtime.RowCodec
	blobs *blobs
	run   string
	state state
	count func(event) // called for the events of each chunk

	partitions []partitionResults
}

// partitionResults are the next results of a partition.
type partitionResults struct {
	chunk   int // the number of the next chunk
	results []*runtime.Result
}

// results yields the results of the finished chunks, as far as they follow each other: up
// to the first row whose chunk is not finished.
func (d *downloader) results(ctx context.Context, chunks []int, yield func(*runtime.Result) bool) error {
	d.partitions = make([]partitionResults, len(chunks))
	for {
		for at := range d.partitions {
			if err := d.fill(ctx, at); err != nil {
				return err
			}
		}
		next := d.next(chunks)
		if next == nil || !yield(next) {
			return nil
		}
	}
}

// next removes and returns the result of the first row. It returns nil if there is none, or if a row whose
// chunk is not finished may come before it.
func (d *downloader) next(chunks []int) *runtime.Result {
	first := -1
	for at := range d.partitions {
		partition := &d.partitions[at]
		if len(partition.results) == 0 {
			if partition.chunk < chunks[at] {
				return nil
			}
			continue
		}
		if first < 0 || partition.results[0].Number < d.partitions[first].results[0].Number {
			first = at
		}
	}
	if first < 0 {
		return nil
	}
	next := d.partitions[first].results[0]
	d.partitions[first].results = d.partitions[first].results[1:]
	return next
}

// fill reads chunks of a partition until it has a result.
func (d *downloader) fill(ctx context.Context, at int) error {
	partition := &d.partitions[at]
	for len(partition.results) == 0 && partition.chunk < d.state.Next[at] {
		out := &output{}
		if err := d.read(ctx, at, partition.chunk, out); err != nil {
			return err
		}
		if err := d.add(at, out); err != nil {
			return err
		}
	}
	return nil
}

// add adds the output of the next chunk of a partition.
func (d *downloader) add(at int, out *output) error {
	partition := &d.partitions[at]
	partition.chunk++
	d.codec.Reset()
	for _, data := range out.Results {
		res, err := d.codec.DecodeResult(data)
		if err != nil {
			return err
		}
		partition.results = append(partition.results, res)
	}
	for _, ev := range out.Stats.Events {
		d.count(ev)
	}
	return nil
}

// read reads the output of a chunk.
func (d *downloader) read(ctx context.Context, at, number int, out *output) error {
	if data := d.state.Inline[at][number]; data != nil {
		return decode(data, out)
	}
	err := d.blobs.read(ctx, outputName(d.run, at, number), out)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the results of the run were deleted, or are elsewhere: the run and all workers need the same --blobs; --restart starts over (" + err.Error() + ")")
	}
	return err
}
