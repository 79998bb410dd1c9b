package splitter

import (
	"context"
	"iter"
)

// packer joins pieces to chunks of a size of at most limit. A chunk begins with the last
// pieces of the previous one, up to the size overlap.
type packer struct {
	limit, overlap int
	keepSpace      bool // do not remove white space from the ends of chunks
}

// chunks returns the chunks of the pieces of a text. A larger piece
// is a chunk by itself. Blank chunks are left out, unless space is kept.
func (p packer) chunks(ctx context.Context, text string, pieces iter.Seq[piece]) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		var open []piece // of the chunk that is not complete
		size := 0
		emit := func() bool {
			if len(open) == 0 {
				return true
			}
			chunk, ok := p.chunk(text, open[0].start, open[len(open)-1].end)
			return !ok || yield(chunk, nil)
		}
		for next := range pieces {
			if ctx.Err() != nil {
				yield(Chunk{}, context.Cause(ctx))
				return
			}
			if size+next.size > p.limit {
				if !emit() {
					return
				}
				for len(open) > 0 && (size > p.overlap || size+next.size > p.limit) {
					size -= open[0].size
					open = open[1:]
				}
			}
			open, size = append(open, next), size+next.size
		}
		emit()
	}
}

func (p packer) chunk(text string, start, end int) (Chunk, bool) {
	if p.keepSpace {
		return Chunk{Text: text[start:end], Start: start, End: end}, true
	}
	return passage(text, start, end)
}

// failure is a sequence of one error.
func failure(err error) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) { yield(Chunk{}, err) }
}
