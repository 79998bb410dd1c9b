package splitter

import (
	"context"
	"fmt"
	"iter"
	"regexp"

	"github.com/qtype-dev/qtype/spec"
)

// sentence is SentenceSplitter: it fills chunks with whole sentences, and cuts only
// sentences that are longer than a chunk.
type sentence struct {
	counter
	args   spec.SentenceSplitterArgs
	coarse []cutter
	fine   []cutter
}

func newSentence(args *spec.SentenceSplitterArgs) (Splitter, error) {
	c, err := newCounter()
	if err != nil {
		return nil, err
	}
	clauses := cutter(cutClauses)
	if args.SecondaryChunkingRegex != spec.DefaultClauses {
		pattern, err := regexp.Compile(args.SecondaryChunkingRegex)
		if err != nil {
			return nil, fmt.Errorf("secondary_chunking_regex: %w", err)
		}
		clauses = cutMatches(pattern)
	}
	return &sentence{counter: c, args: *args,
		coarse: []cutter{cutBefore(args.ParagraphSeparator), cutSentences},
		fine:   []cutter{clauses, cutBefore(args.Separator)}}, nil
}

// Split implements Splitter.
func (s *sentence) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	limit := s.args.ChunkSize
	div := divider{measure: s.counter, limit: limit, coarse: s.coarse, fine: s.fine}
	return packer{limit: limit, overlap: s.args.ChunkOverlap}.chunks(ctx, d.Text, div.pieces(d.Text))
}
