package splitter

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// window is SentenceWindowNodeParser: a chunk is a sentence with the white space after it,
// and its metadata has the sentences around it.
type window struct{ args spec.SentenceWindowArgs }

func newWindow(args *spec.SentenceWindowArgs) (Splitter, error) { return window{*args}, nil }

// Split implements Splitter.
func (w window) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		sentences := slices.Collect(cutSentences(d.Text))
		start := 0
		for i, sentence := range sentences {
			if ctx.Err() != nil {
				yield(Chunk{}, context.Cause(ctx))
				return
			}
			around := sentences[max(0, i-w.args.WindowSize):min(len(sentences), i+w.args.WindowSize+1)]
			chunk := Chunk{Text: sentence, Start: start, End: start + len(sentence), Metadata: []Entry{
				{w.args.WindowMetadataKey, strings.Join(around, " ")},
				{w.args.OriginalTextMetadataKey, sentence},
			}}
			start = chunk.End
			if !yield(chunk, nil) {
				return
			}
		}
	}
}
