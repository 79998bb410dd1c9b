//go:build !js

package tokenfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// segment is a part of a text that a pattern matches, or the text between two matches.
type segment struct {
	text  string
	match bool
}

// pattern divides a text within a budget.
type pattern func(text string, b *budget) []segment

// budget limits the search for the matches of regular expressions in one text, with all its parts.
type budget struct {
	spent func() bool // is asked before each search
	over  int         // bytes that were not searched: each counts as a token
}

// readPattern reads {"String": "…"} or {"Regex": "…"}.
func readPattern(raw json.RawMessage) (pattern, error) {
	var d struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	switch {
	case d.String != nil:
		return literal(*d.String), nil
	case d.Regex != nil:
		return regex(*d.Regex)
	}
	return nil, errors.New("a pattern must have String or Regex")
}

// literal finds a text.
func literal(what string) pattern {
	return func(text string, _ *budget) []segment {
		var out []segment
		for what != "" {
			before, after, found := strings.Cut(text, what)
			if !found {
				break
			}
			if before != "" {
				out = append(out, segment{before, false})
			}
			out, text = append(out, segment{what, true}), after
		}
		if text != "" {
			out = append(out, segment{text, false})
		}
		return out
	}
}

// characters finds single characters.
func characters(is func(rune) bool) pattern {
	return func(text string, _ *budget) []segment {
		var out []segment
		start := 0
		for at, r := range text {
			if !is(r) {
				continue
			}
			if start < at {
				out = append(out, segment{text[start:at], false})
			}
			start = at + len(string(r))
			out = append(out, segment{text[at:start], true})
		}
		if start < len(text) {
			out = append(out, segment{text[start:], false})
		}
		return out
	}
}

// onlyOniguruma are constructs of Oniguruma, the library that tokenizers use, that the
// library used here lacks or reads differently.
var onlyOniguruma = []string{"&&", `\h`, `\H`, `\R`, `\X`, `\K`, `\O`, `\G`, "[[:", "?+", "*+", "++"}

// contractions are frequent alternatives for letters of any case. In Oniguruma ſ is an s of another case.
var contractions = strings.NewReplacer(
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?:'[sSſ]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
	"(?i:[sdmt]|ll|ve|re)", "(?:[sSſdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])")

// regex finds the matches of a regular expression.
func regex(expr string) (pattern, error) {
	for _, construct := range onlyOniguruma {
		if strings.Contains(strings.ReplaceAll(expr, `\`+construct[:1], ""), construct) && !strings.HasPrefix(construct, `\`) ||
			strings.HasPrefix(construct, `\`) && strings.Contains(strings.ReplaceAll(expr, `\\`, ""), construct) {
			return nil, &UnsupportedError{Part: fmt.Sprintf("%s in the regular expression %q", construct, expr)}
		}
	}
	// In Oniguruma's syntax ^ and $ match at lines.
	r, err := regexp2.Compile(contractions.Replace(expr), regexp2.Multiline)
	if err != nil {
		return nil, &UnsupportedError{Part: fmt.Sprintf("the regular expression %q (%v)", expr, err)}
	}
	r.MatchTimeout = matchTime
	return func(text string, b *budget) []segment { return matches(r, text, b) }, nil
}

// Expressions with nested repetitions can take longer than any text is worth. matchTime limits the search
// for one match, and with byteTime for each byte, many times what usual expressions take, that for all
// matches in a text.
const (
	matchTime = 500 * time.Millisecond
	byteTime  = 5 * time.Microsecond
)

// timeLimit returns the limit of the search in a text of some bytes.
func timeLimit(size int) func() bool {
	end := time.Now().Add(matchTime + time.Duration(size)*byteTime)
	return func() bool { return time.Now().After(end) }
}

// matches returns the matches of r, and what is between them. Beyond a limit each byte of the rest counts
// as a token, which is never less than the model has.
func matches(r *regexp2.Regexp, text string, b *budget) []segment {
	if b.spent() {
		b.over += len(text)
		return nil
	}
	runes := []rune(text)
	var out []segment
	done := 0
	m, err := r.FindRunesMatch(runes)
	for m != nil {
		if done < m.Index {
			out = append(out, segment{string(runes[done:m.Index]), false})
		}
		if done = m.Index + m.Length; m.Length > 0 {
			out = append(out, segment{string(runes[m.Index:done]), true})
		}
		if b.spent() {
			b.over += len(string(runes[done:]))
			return out
		}
		m, err = r.FindNextMatch(m)
	}
	switch rest := string(runes[done:]); {
	case err != nil:
		b.over += len(rest)
	case rest != "":
		out = append(out, segment{rest, false})
	}
	return out
}

// behavior is what a split does with the matches.
type behavior string

// The behaviors of tokenizer.json.
const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

func (b behavior) check() error {
	switch b {
	case removed, isolated, mergedWithPrevious, mergedWithNext, contiguous:
		return nil
	}
	return &UnsupportedError{Part: fmt.Sprintf("the behavior %q", string(b))}
}

// apply returns the texts that a split leaves.
func (b behavior) apply(segments []segment, invert bool) []string {
	var out []string
	previous := false // the last segment is a match
	for _, s := range segments {
		match := s.match != invert
		switch {
		case b == removed && match:
		case len(out) > 0 && b == mergedWithPrevious && match && !previous,
			len(out) > 0 && b == contiguous && match == previous,
			len(out) > 0 && b == mergedWithNext && !match && previous:
			out[len(out)-1] += s.text
		default:
			out = append(out, s.text)
		}
		previous = match
	}
	return out
}

// wordPiece takes the longest token at each place of a word.
type wordPiece struct {
	vocab    map[string]int32
	prefix   string // of tokens that continue a word
	maxChars int    // a longer word is unknown
}

func readWordPiece(raw json.RawMessage) (model, error) {
	d := struct {
		Vocab    map[string]int32 `json:"vocab"`
		Prefix   string           `json:"continuing_subword_prefix"`
		MaxChars int              `json:"max_input_chars_per_word"`
	}{Prefix: "##", MaxChars: 100}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	return &wordPiece{d.Vocab, d.Prefix, d.MaxChars}, nil
}

// count returns the number of tokens of a word; an unknown word is one token.
func (m *wordPiece) count(word string) int {
	if utf8.RuneCountInString(word) > m.maxChars {
		return 1
	}
	n := 0
	for start := 0; start < len(word); {
		end := m.longest(word, start)
		if end == start {
			return 1
		}
		start = end
		n++
	}
	return n
}

// longest returns the end of the longest token at start, or start if there is none.
func (m *wordPiece) longest(word string, start int) int {
	for end := len(word); end > start; {
		token := word[start:end]
		if start > 0 {
			token = m.prefix + token
		}
		if _, known := m.vocab[token]; known {
			return end
		}
		_, size := utf8.DecodeLastRuneInString(word[start:end])
		end -= size
	}
	return start
}

// wordLevel counts each word as one token.
type wordLevel struct {
	vocab map[string]int32
	unk   bool // unknown words are a token
}

func readWordLevel(raw json.RawMessage) (model, error) {
	var d struct {
		Vocab map[string]int32 `json:"vocab"`
		Unk   string           `json:"unk_token"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	_, unk := d.Vocab[d.Unk]
	return &wordLevel{d.Vocab, unk}, nil
}

func (m *wordLevel) count(word string) int {
	if _, known := m.vocab[word]; known || m.unk {
		return 1
	}
	return 0
}
