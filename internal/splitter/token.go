package splitter

import (
	"context"
	"fmt"
	"iter"

	"github.com/qtype-dev/qtype/spec"
)

// token is TokenTextSplitter: it fills chunks with whole words.
type token struct {
	counter
	args spec.TokenTextSplitterArgs
	cuts []cutter
}

// metadataFormat is the number of tokens that LlamaIndex keeps in each chunk to separate
// metadata and text, also if there is no metadata.
const metadataFormat = 2

func newToken(args *spec.TokenTextSplitterArgs) (Splitter, error) {
	c, err := newCounter()
	if err != nil {
		return nil, err
	}
	t := &token{counter: c, args: *args, cuts: []cutter{cutBefore(args.Separator)}}
	for _, separator := range args.BackupSeparators {
		t.cuts = append(t.cuts, cutBefore(separator))
	}
	return t, nil
}

// Split implements Splitter.
func (t *token) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	limit := t.args.ChunkSize - metadataFormat
	if limit < 1 {
		return failure(fmt.Errorf("chunk_size is %d, of which %d tokens separate metadata and text: raise it", t.args.ChunkSize, metadataFormat))
	}
	div := divider{measure: t.counter, limit: limit, fine: t.cuts}
	pack := packer{limit: limit, overlap: t.args.ChunkOverlap, keepSpace: t.args.KeepWhitespaces}
	return pack.chunks(ctx, d.Text, div.pieces(d.Text))
}
