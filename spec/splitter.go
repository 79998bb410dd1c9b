package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Splitter declares one way of dividing documents into chunks: a row of the table that
// the validator, the editor, the manual and the runtime read. What divides a document is
// the row of the same name in internal/splitter.
type Splitter struct {
	Implementation
	Sized    bool // chunk_size and chunk_overlap have an effect
	Semantic bool // it needs an embedding model
	Markdown bool // it reads a text as Markdown, regardless of the name of its file
}

// Splitters lists the splitters in the order in which messages and editors propose them.
// The caller must not change the list.
func Splitters() []Splitter { return splitters() }

var splitters = sync.OnceValue(splitterRows)

// LookupSplitter finds a splitter by its name or one of its aliases.
func LookupSplitter(name string) (Splitter, bool) {
	return findRow(Splitters(), func(s Splitter) bool { return s.IsNamed(name) })
}

// Selection returns the splitter with its arguments.
func (s *DocumentSplitter) Selection() Selection {
	made, row := selection("splitter_name", "splitter", s.SplitterName, Splitters(), func(r Splitter) Implementation { return r.Implementation })
	made.Mappings = []Argument{{Key: "args", Given: s.Args, Into: s.arguments(row)}}
	return made
}

// Arguments returns the decoded arguments of the splitter, with the settings of the step.
func (s *DocumentSplitter) Arguments() (any, []*ArgumentError) {
	row, _ := LookupSplitter(s.SplitterName)
	into := s.arguments(row)
	if into == nil {
		return nil, nil
	}
	return into, DecodeArguments(s.Args, into)
}

// Sized is implemented by the arguments of splitters that fill chunks up to a size.
type Sized interface {
	// Size returns the settings of the size, to read or set them.
	Size() *ChunkLimits
}

// arguments returns a new struct of arguments with the sizes of the step.
func (s *DocumentSplitter) arguments(row Splitter) any {
	into := newArguments(row.Args)
	if sized, ok := into.(Sized); ok {
		*sized.Size() = ChunkLimits{ChunkSize: s.ChunkSize, ChunkOverlap: s.ChunkOverlap}
	}
	return into
}

// ChunkLimits are the arguments of splitters that fill chunks up to a size. They replace
// the keys of the step.
type ChunkLimits struct {
	// ChunkSize is the maximum number of tokens in a chunk.
	ChunkSize int `yaml:"chunk_size"`
	// ChunkOverlap is how many tokens two consecutive chunks share at most.
	ChunkOverlap int `yaml:"chunk_overlap"`
}

// Check returns what is wrong with the sizes and its key, "" for nothing.
func (c *ChunkLimits) Check() (key, message string) {
	switch {
	case c.ChunkSize < 1:
		return "chunk_size", fmt.Sprintf("chunk_size is %d; a chunk has at least 1 token", c.ChunkSize)
	case c.ChunkOverlap < 0:
		return "chunk_overlap", fmt.Sprintf("chunk_overlap is %d; it is 0 or more", c.ChunkOverlap)
	case c.ChunkOverlap >= c.ChunkSize:
		return "chunk_overlap", fmt.Sprintf("chunk_overlap is %d, but must be less than chunk_size, which is %d", c.ChunkOverlap, c.ChunkSize)
	}
	return "", ""
}

// Size implements Sized.
func (c *ChunkLimits) Size() *ChunkLimits { return c }

// DefaultClauses is the pattern of SentenceSplitter for the parts of a sentence.
const DefaultClauses = `[^,.;。？！]+[,.;。？！]?|[,.;。？！]`

// SentenceSplitterArgs are the arguments of SentenceSplitter.
type SentenceSplitterArgs struct {
	ChunkLimits
	// Separator divides clauses that are longer than a chunk.
	Separator string `yaml:"separator" default:" "`
	// ParagraphSeparator divides a text before its sentences do.
	ParagraphSeparator string `yaml:"paragraph_separator" default:"\n\n\n"`
	// SecondaryChunkingRegex matches the parts of a sentence that is longer than a chunk.
	SecondaryChunkingRegex string `yaml:"secondary_chunking_regex" default:"[^,.;。？！]+[,.;。？！]?|[,.;。？！]"`
	// IncludeMetadata has no effect, as in QType (Python): chunks always have the metadata of the document, which needs no room in them.
	IncludeMetadata bool `yaml:"include_metadata" default:"true"`
}

// CheckArguments reports empty separators and an invalid pattern.
func (a *SentenceSplitterArgs) CheckArguments() []*ArgumentError {
	return slices.Concat(notEmpty("separator", a.Separator), notEmpty("paragraph_separator", a.ParagraphSeparator),
		checkPattern("secondary_chunking_regex", a.SecondaryChunkingRegex))
}

// TokenTextSplitterArgs are the arguments of TokenTextSplitter.
type TokenTextSplitterArgs struct {
	ChunkLimits
	// Separator divides the text into words.
	Separator string `yaml:"separator" default:" "`
	// BackupSeparators divide words that are longer than a chunk.
	BackupSeparators []string `yaml:"backup_separators"`
	// KeepWhitespaces keeps white space at the ends of chunks.
	KeepWhitespaces bool `yaml:"keep_whitespaces" default:"false"`
	// IncludeMetadata has no effect, as in QType (Python): chunks always have the metadata of the document, which needs no room in them.
	IncludeMetadata bool `yaml:"include_metadata" default:"true"`
}

// CheckArguments reports empty separators.
func (a *TokenTextSplitterArgs) CheckArguments() []*ArgumentError {
	return slices.Concat(notEmpty("separator", a.Separator), notEmpty("backup_separators", a.BackupSeparators...))
}

// RecursiveArgs are the arguments of the splitter recursive.
type RecursiveArgs struct {
	ChunkLimits
	// Separators end the parts of a text; a part that is longer than a chunk is divided by the next one, in the end by characters.
	Separators []string `yaml:"separators"`
}

// CheckArguments reports empty separators.
func (a *RecursiveArgs) CheckArguments() []*ArgumentError {
	return notEmpty("separators", a.Separators...)
}

// MarkdownArgs are the arguments of MarkdownNodeParser.
type MarkdownArgs struct {
	// HeaderPathSeparator is between the headings in the metadata header_path.
	HeaderPathSeparator string `yaml:"header_path_separator" default:"/"`
}

// HTMLArgs are the arguments of HTMLNodeParser.
type HTMLArgs struct {
	// Tags are the elements whose text is kept.
	Tags []string `yaml:"tags"`
}

// CodeArgs are the arguments of CodeSplitter.
type CodeArgs struct {
	// Language is the programming language, such as python. The splitter treats all languages alike.
	Language string `yaml:"language" jsonschema:"required"`
	// MaxChars is the maximum number of characters in a chunk.
	MaxChars int `yaml:"max_chars" default:"1500"`
	// CountMode is what limits a chunk: char for max_chars, token for max_tokens.
	CountMode string `yaml:"count_mode" default:"char"`
	// MaxTokens is the maximum number of tokens in a chunk.
	MaxTokens int `yaml:"max_tokens" default:"512"`
}

// CheckArguments reports an unknown mode and limits below 1.
func (a *CodeArgs) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	if a.CountMode != "char" && a.CountMode != "token" {
		problems = append(problems, &ArgumentError{Key: "count_mode", Message: "expected char or token"})
	}
	return slices.Concat(problems, atLeast("max_chars", a.MaxChars, 1), atLeast("max_tokens", a.MaxTokens, 1))
}

// SentenceWindowArgs are the arguments of SentenceWindowNodeParser.
type SentenceWindowArgs struct {
	// WindowSize is the number of sentences before and after each sentence in its window.
	WindowSize int `yaml:"window_size" default:"3"`
	// WindowMetadataKey is the key of the metadata with the window.
	WindowMetadataKey string `yaml:"window_metadata_key" default:"window"`
	// OriginalTextMetadataKey is the key of the metadata with the sentence itself.
	OriginalTextMetadataKey string `yaml:"original_text_metadata_key" default:"original_text"`
}

// maxWindow bounds the text of all windows together.
const maxWindow = 50

// CheckArguments reports a window that is too small or too large.
func (a *SentenceWindowArgs) CheckArguments() []*ArgumentError {
	if a.WindowSize > maxWindow {
		return []*ArgumentError{{Key: "window_size", Message: "expected at most 50"}}
	}
	return atLeast("window_size", a.WindowSize, 1)
}

// SemanticArgs are the arguments of SemanticSplitterNodeParser.
type SemanticArgs struct {
	// BufferSize is the number of sentences before and after a sentence that are embedded with it.
	BufferSize int `yaml:"buffer_size" default:"1"`
	// BreakpointPercentileThreshold is the percentage of pairs of sentences whose distance is too small to begin a chunk between them.
	BreakpointPercentileThreshold int `yaml:"breakpoint_percentile_threshold" default:"95"`
}

// CheckArguments reports numbers that are too small or too large.
func (a *SemanticArgs) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	if a.BufferSize > maxWindow {
		problems = append(problems, &ArgumentError{Key: "buffer_size", Message: "expected at most 50"})
	}
	if a.BreakpointPercentileThreshold > 100 {
		problems = append(problems, &ArgumentError{Key: "breakpoint_percentile_threshold", Message: "expected at most 100"})
	}
	return slices.Concat(atLeast("buffer_size", a.BufferSize, 1), atLeast("breakpoint_percentile_threshold", a.BreakpointPercentileThreshold, 0), problems)
}

// notEmpty reports an empty text.
func notEmpty(key string, texts ...string) []*ArgumentError {
	if slices.Contains(texts, "") {
		return []*ArgumentError{{Key: key, Message: "the separator is empty"}}
	}
	return nil
}

// checkPattern reports a pattern that is invalid or matches the empty text.
func checkPattern(key, pattern string) []*ArgumentError {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return []*ArgumentError{{Key: key, Message: "invalid pattern: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")}}
	}
	if compiled.MatchString("") {
		return []*ArgumentError{{Key: key, Message: "the pattern matches the empty text"}}
	}
	return nil
}

// splitterRows is the table.
func splitterRows() []Splitter {
	row := func(name, doc string, args func() any, modules ...string) Splitter {
		i := Implementation{Name: name, Doc: doc, Args: args}
		for _, module := range append([]string{"llama_index.core.node_parser"}, modules...) {
			i.Aliases = append(i.Aliases, module+"."+name)
		}
		return Splitter{Implementation: i}
	}
	sentence := row("SentenceSplitter", "whole sentences, up to chunk_size tokens", func() any { return new(SentenceSplitterArgs) },
		"llama_index.core.node_parser.text", "llama_index.core.node_parser.text.sentence", "llama_index.core.text_splitter")
	token := row("TokenTextSplitter", "whole words, up to chunk_size tokens", func() any { return &TokenTextSplitterArgs{BackupSeparators: []string{"\n"}} },
		"llama_index.core.node_parser.text", "llama_index.core.node_parser.text.token", "llama_index.core.text_splitter")
	recursive := Splitter{Implementation: Implementation{Name: "recursive", Doc: "whole paragraphs, lines, sentences or words, up to chunk_size tokens",
		Args: func() any { return &RecursiveArgs{Separators: []string{"\n\n", "\n", ". ", " "}} }}}
	sentence.Sized, token.Sized, recursive.Sized = true, true, true
	semantic := row("SemanticSplitterNodeParser", "sentences with a similar meaning, found with an embedding model", func() any { return new(SemanticArgs) },
		"llama_index.core.node_parser.text", "llama_index.core.node_parser.text.semantic_splitter")
	semantic.Semantic = true
	semantic.Aliases = append(semantic.Aliases, "SemanticSplitter")
	sections := row("MarkdownNodeParser", "the sections of a Markdown text", func() any { return new(MarkdownArgs) },
		"llama_index.core.node_parser.file", "llama_index.core.node_parser.file.markdown")
	elements := row("MarkdownElementNodeParser", "the sections and tables of a Markdown text", nil,
		"llama_index.core.node_parser.relational", "llama_index.core.node_parser.relational.markdown_element")
	sections.Markdown, elements.Markdown = true, true
	return []Splitter{
		sentence, token, recursive, sections, elements,
		row("HTMLNodeParser", "the text of HTML elements, one chunk for neighbours with the same tag",
			func() any {
				return &HTMLArgs{Tags: []string{"p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "b", "i", "u", "section"}}
			},
			"llama_index.core.node_parser.file", "llama_index.core.node_parser.file.html"),
		row("JSONNodeParser", "the elements of a JSON list, one line for each value", nil,
			"llama_index.core.node_parser.file", "llama_index.core.node_parser.file.json"),
		row("CodeSplitter", "blocks of source code, by blank lines and indentation", func() any { return new(CodeArgs) },
			"llama_index.core.node_parser.text", "llama_index.core.node_parser.text.code", "llama_index.core.text_splitter"),
		row("SentenceWindowNodeParser", "single sentences, with their neighbours in the metadata", func() any { return new(SentenceWindowArgs) },
			"llama_index.core.node_parser.text", "llama_index.core.node_parser.text.sentence_window"),
		semantic,
	}
}
