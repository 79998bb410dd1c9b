package splitter

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// A cutter returns consecutive pieces of a text, none of them empty, which together are
// the text. A text that it cannot cut is one piece.
type cutter func(text string) iter.Seq[string]

// cutBefore cuts a text before each occurrence of a separator.
func cutBefore(separator string) cutter {
	return func(text string) iter.Seq[string] {
		return func(yield func(string) bool) {
			from := 0 // where the next separator may begin
			for text != "" {
				at := strings.Index(text[from:], separator)
				if at < 0 {
					yield(text)
					return
				}
				if at += from; at > 0 {
					if !yield(text[:at]) {
						return
					}
					text = text[at:]
				}
				from = len(separator)
			}
		}
	}
}

// cutAfter cuts a text after each occurrence of a separator.
func cutAfter(separator string) cutter {
	return func(text string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for piece := range strings.SplitAfterSeq(text, separator) {
				if piece != "" && !yield(piece) {
					return
				}
			}
		}
	}
}

// cutMatches cuts a text before and after each match of a pattern. A match does not
// depend on the text before it.
func cutMatches(pattern *regexp.Regexp) cutter {
	return func(text string) iter.Seq[string] {
		return func(yield func(string) bool) {
			done := 0
			emit := func(end int) bool {
				piece := text[done:end]
				done = end
				return piece == "" || yield(piece)
			}
			for done < len(text) {
				m := pattern.FindStringIndex(text[done:])
				if m == nil || m[1] == 0 {
					break
				}
				start := done + m[0]
				end := done + m[1]
				if !emit(start) || !emit(end) {
					return
				}
			}
			emit(len(text))
		}
	}
}

// cutClauses cuts a text after each of the signs that end a clause. It has the effect of
// cutMatches with the pattern [^,.;。？！]+[,.;。？！]?|[,.;。？！].
func cutClauses(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := len(text)
			if i := strings.IndexAny(text, ",.;。？！"); i >= 0 {
				_, size := utf8.DecodeRuneInString(text[i:])
				end = i + size
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// cutCharacters cuts a text into characters.
func cutCharacters(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			_, size := utf8.DecodeRuneInString(text)
			if !yield(text[:size]) {
				return
			}
			text = text[size:]
		}
	}
}

// piece is a part of a text.
type piece struct{ start, end, size int }

// divider divides a text into pieces of a size of at most limit.
type divider struct {
	measure
	limit  int
	coarse []cutter // tried first, and again on their pieces
	fine   []cutter // tried if no coarse one can cut
}

// maxDepth is how often the coarse cutters cut pieces of pieces. It bounds the time for
// texts of which each cut removes only a few characters.
const maxDepth = 6

// pieces returns the pieces of a text in order. A single character may be larger
// than the limit.
func (d divider) pieces(text string) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		if n, ok := d.fits(text, d.limit); ok {
			yield(piece{0, len(text), n})
			return
		}
		d.divide(text, piece{end: len(text)}, 0, yield)
	}
}

// divide yields the pieces of a part of a text that is too large. It returns false
// if the caller wants no more.
func (d divider) divide(text string, part piece, depth int, yield func(piece) bool) bool {
	if _, size := utf8.DecodeRuneInString(text[part.start:]); size == part.end-part.start {
		part.size = d.count(text[part.start:part.end])
		return yield(part)
	}
	start := part.start
	for cut := range d.cut(text[part.start:part.end], depth) {
		n, ok := d.fits(cut, d.limit)
		p := piece{start, start + len(cut), n}
		start = p.end
		if ok && !yield(p) || !ok && !d.divide(text, p, depth+1, yield) {
			return false
		}
	}
	return true
}

// cut cuts a text by the first cutter that can.
func (d divider) cut(text string, depth int) iter.Seq[string] {
	cutters := d.fine
	if depth <= maxDepth {
		cutters = slices.Concat(d.coarse, d.fine)
	}
	for _, c := range cutters {
		if canCut(c, text) {
			return c(text)
		}
	}
	return cutCharacters(text)
}

// canCut reports whether a cutter returns more than one piece.
func canCut(c cutter, text string) bool {
	for first := range c(text) {
		return len(first) < len(text)
	}
	return false
}

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
