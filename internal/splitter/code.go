package splitter

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// code is CodeSplitter. It knows no language: declarations begin at lines without
// indentation after a blank line, blocks after a blank line.
type code struct {
	size  measure
	limit int
}

// measure is what limits a chunk.
type measure interface {
	count(text string) int
	fits(text string, limit int) (n int, ok bool)
}

// characters measures texts in characters.
type characters struct{}

func (characters) count(text string) int { return utf8.RuneCountInString(text) }

func (c characters) fits(text string, limit int) (int, bool) {
	if len(text)/utf8.UTFMax > limit {
		return 0, false
	}
	n := c.count(text)
	return n, n <= limit
}

func newCode(args *spec.CodeArgs) (Splitter, error) {
	if args.CountMode == "char" {
		return code{characters{}, args.MaxChars}, nil
	}
	c, err := newCounter()
	return code{c, args.MaxTokens}, err
}

// Split implements Splitter.
func (c code) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	div := divider{measure: c.size, limit: c.limit, fine: []cutter{cutBlocks(true), cutBlocks(false), cutAfter("\n"), cutBefore(" ")}}
	return packer{limit: c.limit}.chunks(ctx, d.Text, div.pieces(d.Text))
}

// cutBlocks cuts a text before the lines that follow a blank line, with top only before
// those without indentation.
func cutBlocks(top bool) cutter {
	return func(text string) iter.Seq[string] {
		return func(yield func(string) bool) {
			start, end, blank := 0, 0, false
			for line := range strings.Lines(text) {
				begins := strings.TrimSpace(line) != ""
				if begins && blank && end > start && (!top || strings.TrimLeft(line, " \t") == line) {
					if !yield(text[start:end]) {
						return
					}
					start = end
				}
				end += len(line)
				blank = !begins
			}
			if start < end {
				yield(text[start:])
			}
		}
	}
}
