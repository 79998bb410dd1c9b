package temporal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/runtime"
)

// downloader yields the results of a run in the order of its rows.
type downloader struct {
	codec *runtime.RowCodec
	blobs *blobs
	run   string
	state state
	from  int                   // the first partition that is read
	count func(event)           // called for the events of each chunk
	waves func(batch.WaveState) // called with the end of a run in batches; nil for nothing

	partitions []partitionResults
}

// partitionResults are the next results of a partition.
type partitionResults struct {
	chunk   int // the number of the next chunk
	results []*runtime.Result
	folder  string // of further results of the chunk before
	part    int    // the number of the next blob in it
	parts   int    // the number of blobs in it
}

// hasNext reports whether more of the partition is to be read.
func (p *partitionResults) hasNext(chunks int) bool { return p.part < p.parts || p.chunk < chunks }

// results yields the results of the finished chunks, as far as they follow each other: up
// to the first row whose chunk is not finished.
func (d *downloader) results(ctx context.Context, chunks []int, yield func(*runtime.Result) bool) error {
	d.partitions = make([]partitionResults, len(chunks))
	for {
		for at := d.from; at < len(chunks); at++ {
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
	for at := d.from; at < len(d.partitions); at++ {
		partition := &d.partitions[at]
		if len(partition.results) == 0 {
			if partition.hasNext(chunks[at]) {
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
	for len(partition.results) == 0 && partition.hasNext(d.state.Next[at]) {
		if partition.part < partition.parts {
			if err := d.addPart(ctx, partition); err != nil {
				return err
			}
			continue
		}
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

// addPart adds the next blob with results of a partition.
func (d *downloader) addPart(ctx context.Context, partition *partitionResults) error {
	var p resultPart
	if err := d.blobs.read(ctx, resultPartName(partition.folder, partition.part), &p); err != nil {
		return missing(err)
	}
	partition.part++
	return d.decode(partition, p.Results)
}

// stopped yields the results of the last steps of a flow with batch steps that were stopped.
func (d *downloader) stopped(ctx context.Context, name string, yield func(*runtime.Result) bool) error {
	out := &output{}
	if err := d.blobs.read(ctx, name, out); err != nil {
		return missing(err)
	}
	d.partitions = make([]partitionResults, 1)
	d.state.Next = []int{1}
	if err := d.add(0, out); err != nil {
		return err
	}
	for partition := &d.partitions[0]; ; partition.results = partition.results[1:] {
		if err := d.fill(ctx, 0); err != nil || len(partition.results) == 0 || !yield(partition.results[0]) {
			return err
		}
	}
}

// add adds the output of the next chunk of a partition.
func (d *downloader) add(at int, out *output) error {
	partition := &d.partitions[at]
	partition.chunk++
	partition.folder, partition.part, partition.parts = out.Folder, 0, out.Parts
	for _, ev := range out.Stats.Events {
		d.count(ev)
	}
	if out.Waves != nil && d.waves != nil {
		d.waves(*out.Waves)
	}
	return d.decode(partition, out.Results)
}

// decode adds a sequence of results to a partition.
func (d *downloader) decode(partition *partitionResults, results [][]byte) error {
	d.codec.Reset()
	for _, data := range results {
		res, err := d.codec.DecodeResult(data)
		if err != nil {
			return err
		}
		partition.results = append(partition.results, res)
	}
	return nil
}

// inline returns the output of a chunk that is in the state; nil for one that is a blob.
func (d *downloader) inline(at, number int) []byte {
	if at >= len(d.state.Inline) { // the workflow has not ended
		return nil
	}
	return d.state.Inline[at][number]
}

// read reads the output of a chunk.
func (d *downloader) read(ctx context.Context, at, number int, out *output) error {
	if data := d.inline(at, number); data != nil {
		return decode(data, out)
	}
	return missing(d.blobs.read(ctx, outputName(d.run, at, number), out))
}

// missing returns the error of reading results.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the results of the run were deleted, or are elsewhere: the run and all workers need the same --blobs; --restart starts over (" + err.Error() + ")")
	}
	return err
}
