package splitter

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// cutSentences cuts a text into sentences; white space between two of them belongs to the
// first one. It is the algorithm of Kiss and Strunk, "Unsupervised Multilingual Sentence
// Boundary Detection" (2006), known as Punkt, without the lists that are learned from texts
// of a language: a period, question or exclamation mark ends a sentence, except after
// initials, and after numbers if the next word is in lower case. This and the borders of
// words equal an untrained PunktSentenceTokenizer of NLTK, which LlamaIndex uses.
func cutSentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for next := range sentenceStarts(text) {
			if next > start {
				if !yield(text[start:next]) {
					return
				}
				start = next
			}
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// span is a range of a text; end is before start if it is empty.
type span struct{ start, end int }

// sentenceStarts yields the starts of the sentences of a text after the first one. Closing quotes
// and brackets at the beginning of a sentence are moved to the previous one.
func sentenceStarts(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		moved := 0 // to the previous sentence
		var previous span
		first := true
		for current := range sentenceSpans(text) {
			if first {
				previous, first = current, false
				continue
			}
			from := previous.start + moved
			closing, size := closers(text, current)
			moved = size
			if from > 0 && (closing || from < previous.end) && !yield(from) {
				return
			}
			previous = current
		}
		if from := previous.start + moved; from > 0 && from < previous.end {
			yield(from)
		}
	}
}

// closers reports whether a sentence begins with quotes or brackets that close what the
// previous sentence opened. It returns their length with the white space after them.
func closers(text string, s span) (ok bool, size int) {
	if s.start >= s.end {
		return false, 0
	}
	sentence := text[s.start:s.end]
	n := 0
	for n < len(sentence) {
		r, length := utf8.DecodeRuneInString(sentence[n:])
		if !strings.ContainsRune("\"')]}«»‘’“”", r) {
			break
		}
		n += length
		rest := sentence[n:]
		switch {
		case spaceAt(rest, 0):
			return true, skipSpace(sentence, n)
		case rest == "" || strings.HasPrefix(rest, "--"):
			return true, n
		}
	}
	return false, 0
}

// sentenceSpans yields the sentences of a text before closing quotes are moved. The last one has
// no white space at its end and may be empty.
func sentenceSpans(text string) iter.Seq[span] {
	return func(yield func(span) bool) {
		last := 0
		for c := range candidates(text) {
			if !hasBreak(text[c.word:c.contextEnd]) {
				continue
			}
			if !yield(span{last, c.end}) {
				return
			}
			last = c.next
		}
		yield(span{last, len(strings.TrimRightFunc(text, isTrimmed))})
	}
}

// candidate is a sign that may end a sentence.
type candidate struct {
	word       int // start of the word that the sign belongs to
	end        int // end of the sign
	contextEnd int // end of what follows: a sign, or white space and a word
	next       int // start of the next sentence, if the sign ends one
}

// candidates yields the last sign of each word that has any. They are followed by white
// space and a word, or by one of the signs that separate words.
func candidates(text string) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		var pending candidate
		found := false
		wordStart, wordEnd := 0, 0 // the word of the pending candidate, without its sign
		for i := 0; ; i++ {
			at := strings.IndexAny(text[i:], ".?!")
			if at < 0 {
				break
			}
			i += at
			c, ok := follow(text, i)
			if !ok {
				continue
			}
			c.word = wordStart
			if space := strings.LastIndexAny(text[wordEnd:i], " \t\n\r\v\f"); space > 0 {
				c.word = wordEnd + space + 1
			}
			// A candidate in the word of another one replaces it.
			if found && wordEnd <= c.word && !yield(pending) {
				return
			}
			pending, found = c, true
			wordStart, wordEnd = c.word, i
		}
		if found {
			yield(pending)
		}
	}
}

// follow returns what follows the sign at text[i], and false if a word goes on.
func follow(text string, i int) (candidate, bool) {
	end := i + 1
	switch {
	case end == len(text):
		return candidate{}, false
	case separator(text, end) > 0:
		return candidate{end: end, contextEnd: end + separator(text, end), next: end}, true
	}
	word := skipSpace(text, end)
	if word == end || word == len(text) {
		return candidate{}, false
	}
	return candidate{end: end, contextEnd: skipWord(text, word), next: word}, true
}

// separator returns the length of the sign at text[i:] that ends a word, 0 for none.
func separator(text string, i int) int {
	r, size := utf8.DecodeRuneInString(text[i:])
	if strings.ContainsRune("?!)\";}]*:@'({[«»‘’“”", r) {
		return size
	}
	return 0
}

// words yields the words and signs of a text.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if strings.TrimFunc(line, isTrimmed) == "" {
				continue // a line of control characters has no words
			}
			for i := skipSpace(line, 0); i < len(line); i = skipSpace(line, i) {
				end := wordEnd(line, i)
				if !yield(line[i:end]) {
					return
				}
				i = end
			}
		}
	}
}

// wordEnd returns the end of the word or sign at text[i:].
func wordEnd(text string, i int) int {
	if n := manySigns(text[i:]); n > 0 {
		return i + n
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	end := i + size
	if strings.IndexByte("(\"`{[:;&#*@)}]-,", text[i]) >= 0 {
		return end
	}
	for !endsWord(text, end) {
		if text[end] == ',' && endsWord(text, end+1) {
			break
		}
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return end
}

// endsWord reports whether a word ends before text[i:].
func endsWord(text string, i int) bool {
	return i >= len(text) || separator(text, i) > 0 || spaceAt(text, i) || manySigns(text[i:]) > 0
}

// manySigns returns the length of two or more hyphens, two or more periods, or three or
// more periods with white space between them, but no line end, at the beginning of text,
// 0 for none.
func manySigns(text string) int {
	if n := len(text) - len(strings.TrimLeft(text, "-")); n >= 2 {
		return n
	}
	if n := len(text) - len(strings.TrimLeft(text, ".")); n != 1 {
		return n
	}
	periods, end := 1, 1
	for i := 1; spaceAt(text, i) && text[i] != '\n'; {
		_, size := utf8.DecodeRuneInString(text[i:])
		if i += size; i >= len(text) || text[i] != '.' {
			break
		}
		i++
		periods, end = periods+1, i
	}
	if periods < 3 {
		return 0
	}
	return end
}

// hasBreak reports whether a sentence ends between two words of a text.
func hasBreak(context string) bool {
	previous := ""
	for word := range words(context) {
		if previous != "" && breaks(previous, word) {
			return true
		}
		previous = word
	}
	return false
}

// number matches a number with or without a period after it.
var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?[.,]?\p{Nd}[\p{Nd},.-]*$`) })

// breaks reports whether a sentence ends between two words.
func breaks(word, next string) bool {
	switch {
	case word == "?" || word == "!":
		return true
	case !strings.HasSuffix(word, "."), word != "." && strings.HasSuffix(word, ".."):
		return false
	case isInitial(word):
		return !startsUpper(next) && !continues(next)
	case number().MatchString(word):
		return !continues(next)
	}
	return true
}

// isInitial reports whether a word is a letter with a period.
func isInitial(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	return word[size:] == "." && (r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) && !unicode.IsDigit(r))
}

// continues reports whether a word or sign cannot begin a sentence.
func continues(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) || size == len(word) && strings.ContainsRune(";:,.!?", r)
}

// startsUpper reports whether a word begins with an upper-case letter.
func startsUpper(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r)
}

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
