package splitter

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// PythonText returns the text of a scalar as Python writes it, and of another value as
// JSON.
func PythonText(v any) string {
	switch v {
	case nil:
		return "None"
	case true:
		return "True"
	case false:
		return "False"
	}
	return value.Text(v)
}

// isTrimmed reports whether Python removes a character from the ends of a text: white
// space, and four control characters that are not white space for Unicode.
func isTrimmed(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

// trimSpace returns the range without white space at its ends.
func trimSpace(text string, start, end int) (int, int) {
	start += len(text[start:end]) - len(strings.TrimLeftFunc(text[start:end], isTrimmed))
	return start, start + len(strings.TrimRightFunc(text[start:end], isTrimmed))
}

// skipSpace returns the index of the first character at i or after it that is not space.
func skipSpace(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsSpace(r) {
			break
		}
		i += size
	}
	return i
}

// skipWord returns the index of the first space at i or after it.
func skipWord(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			break
		}
		i += size
	}
	return i
}

// spaceAt reports whether white space begins at text[i:].
func spaceAt(text string, i int) bool {
	if i >= len(text) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsSpace(r)
}

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
