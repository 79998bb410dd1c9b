package splitter

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// code is CodeSplitter. It knows no language: declarations begin after a blank line, and
// have less indentation than what they contain.
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
	div := divider{measure: c.size, limit: c.limit, fine: []cutter{cutBlocks, cutAfter("\n"), cutBefore(" ")}}
	return packer{limit: c.limit}.chunks(ctx, d.Text, div.pieces(d.Text))
}

// cutBlocks cuts a text before the lines that follow a blank line and have the least
// indentation of all such lines.
func cutBlocks(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		least := maxIndentation
		for _, columns := range blockLines(text) {
			least = min(least, columns)
		}
		start := 0
		for at, columns := range blockLines(text) {
			if columns > least {
				continue
			}
			if !yield(text[start:at]) {
				return
			}
			start = at
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// maxIndentation is the greatest indentation that is counted. It bounds how often a text is cut.
const maxIndentation = 80

// blockLines returns where the lines that follow a blank line begin, and their indentation
// in columns. The first line of a text is not one of them.
func blockLines(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		at, blank, inside := 0, false, false
		for line := range strings.Lines(text) {
			begins := strings.TrimSpace(line) != ""
			if begins && blank && inside && !yield(at, indentation(line)) {
				return
			}
			at += len(line)
			blank, inside = !begins, inside || begins
		}
	}
}

// indentation returns the columns of white space at the start of a line.
func indentation(line string) int {
	columns := 0
	for _, c := range []byte(line) {
		switch {
		case columns >= maxIndentation || c != ' ' && c != '\t':
			return columns
		case c == '\t':
			columns += 8 - columns%8
		default:
			columns++
		}
	}
	return columns
}
