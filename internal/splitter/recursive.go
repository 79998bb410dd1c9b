package splitter

import (
	"context"
	"iter"

	"github.com/qtype-dev/qtype/spec"
)

// recursive is the splitter recursive: it cuts at the first separator that occurs, and
// what is still too long at the next one.
type recursive struct {
	counter
	args spec.RecursiveArgs
	cuts []cutter
}

func newRecursive(args *spec.RecursiveArgs) (Splitter, error) {
	c, err := newCounter()
	if err != nil {
		return nil, err
	}
	r := &recursive{counter: c, args: *args}
	for _, separator := range args.Separators {
		r.cuts = append(r.cuts, cutAfter(separator))
	}
	return r, nil
}

// Split implements Splitter.
func (r *recursive) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	div := divider{measure: r.counter, limit: r.args.ChunkSize, fine: r.cuts}
	return packer{limit: r.args.ChunkSize, overlap: r.args.ChunkOverlap}.chunks(ctx, d.Text, div.pieces(d.Text))
}
