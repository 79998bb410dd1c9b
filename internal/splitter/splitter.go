// Package splitter divides the text of a document into chunks, which an index stores and
// a search finds. Each splitter of package spec has its implementation here.
//
// A splitter is deterministic. It needs linear time and memory for any text: a text
// without spaces, with a single line, or with nothing but line ends.
package splitter

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Document is what a splitter divides.
type Document struct {
	Text string // valid UTF-8
}

// Chunk is a part of a document.
type Chunk struct {
	Text string
	// Start and End are the range of the chunk in the text of the document, in bytes.
	// The text of most chunks is that range; the splitters that rewrite text say so.
	Start, End int
	// Metadata is what the splitter knows about the chunk; nil for nothing.
	Metadata []Entry
}

// Entry is a key of the metadata of a chunk with its text.
type Entry struct{ Key, Value string }

// IsBlank reports whether the chunk has nothing but white space.
func (c Chunk) IsBlank() bool { return strings.TrimFunc(c.Text, isTrimmed) == "" }

// A Splitter divides documents. It is safe for concurrent use.
type Splitter interface {
	// Split returns the chunks in the order of the text. After an error there are no
	// more chunks. A chunk may be blank.
	Split(ctx context.Context, d Document) iter.Seq2[Chunk, error]
}

// Settings are what a splitter is made of.
type Settings struct {
	Name     string         // a name or alias of a splitter of package spec
	Args     any            // its arguments, decoded; a pointer to the struct that the row declares
	Embedder model.Embedder // for a splitter with an embedding model
}

// New returns a splitter.
func New(s Settings) (Splitter, error) {
	row, ok := spec.LookupSplitter(s.Name)
	if !ok {
		return nil, fmt.Errorf("the splitter %q is not known", s.Name)
	}
	return builders()[row.Name](s)
}

// builders is the one table of implementations.
var builders = sync.OnceValue(func() map[string]func(Settings) (Splitter, error) {
	return map[string]func(Settings) (Splitter, error){
		"SentenceSplitter":           build(newSentence),
		"TokenTextSplitter":          build(newToken),
		"recursive":                  build(newRecursive),
		"MarkdownNodeParser":         build(newMarkdown),
		"MarkdownElementNodeParser":  always(markdownElement{}),
		"HTMLNodeParser":             build(newHTML),
		"JSONNodeParser":             always(jsonText{}),
		"CodeSplitter":               build(newCode),
		"SentenceWindowNodeParser":   build(newWindow),
		"SemanticSplitterNodeParser": buildSemantic,
	}
})

// build adapts a function that makes a splitter of its arguments.
func build[A any](make func(A) (Splitter, error)) func(Settings) (Splitter, error) {
	return func(s Settings) (Splitter, error) {
		args, ok := s.Args.(A)
		if !ok {
			return nil, fmt.Errorf("the arguments of the splitter %q have the wrong type", s.Name)
		}
		return make(args)
	}
}

// always adapts a splitter without arguments.
func always(made Splitter) func(Settings) (Splitter, error) {
	return func(Settings) (Splitter, error) { return made, nil }
}

// passage returns the chunk of a range of a text without surrounding space. It returns
// false for a blank range.
func passage(text string, start, end int) (Chunk, bool) {
	start, end = trimSpace(text, start, end)
	return Chunk{Text: text[start:end], Start: start, End: end}, start < end
}
