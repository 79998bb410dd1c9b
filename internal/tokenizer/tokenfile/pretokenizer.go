//go:build !js

package tokenfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a part of a text that the model counts on its own.
type piece struct {
	text   string
	first  bool // at the start of the whole text
	budget *budget
}

// splitter divides pieces.
type splitter func([]piece) []piece

// preTokenizers returns the readers of pre-tokenizers by their types.
func preTokenizers() map[string]func(json.RawMessage) (splitter, error) {
	return map[string]func(json.RawMessage) (splitter, error){
		"Sequence":           readSplitters,
		"ByteLevel":          readByteLevel,
		"Metaspace":          readMetaspace,
		"Split":              readSplit,
		"Digits":             readDigits,
		"Punctuation":        readPunctuation,
		"CharDelimiterSplit": readDelimiter,
		"Whitespace":         fixedSplit(splitBy(words, isolated, false)),
		"WhitespaceSplit":    fixedSplit(splitBy(characters(unicode.IsSpace), removed, false)),
		"BertPreTokenizer": fixedSplit(inOrder(splitBy(characters(unicode.IsSpace), removed, false),
			splitBy(characters(isPunctuation), isolated, false))),
	}
}

func fixedSplit(s splitter) func(json.RawMessage) (splitter, error) {
	return func(json.RawMessage) (splitter, error) { return s, nil }
}

// readPreTokenizer reads the pre-tokenizer; null does not split.
func readPreTokenizer(raw json.RawMessage) (splitter, error) {
	if isNull(raw) {
		return func(p []piece) []piece { return p }, nil
	}
	var t typed
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", jsonError(err))
	}
	read := preTokenizers()[t.Type]
	if read == nil {
		return nil, &UnsupportedError{Part: fmt.Sprintf("the pre-tokenizer %q", t.Type)}
	}
	s, err := read(raw)
	if err != nil {
		return nil, fmt.Errorf("pre-tokenizer %s: %w", t.Type, jsonError(err))
	}
	return s, nil
}

func readSplitters(raw json.RawMessage) (splitter, error) {
	var d struct {
		All []json.RawMessage `json:"pretokenizers"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	var all []splitter
	for _, one := range d.All {
		s, err := readPreTokenizer(one)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return inOrder(all...), nil
}

func inOrder(all ...splitter) splitter {
	return func(pieces []piece) []piece {
		for _, s := range all {
			pieces = s(pieces)
		}
		return pieces
	}
}

// each returns a splitter that divides every piece on its own.
func each(divide func(piece) []string) splitter {
	return func(pieces []piece) []piece {
		out := make([]piece, 0, len(pieces))
		for _, p := range pieces {
			rest := p.first
			for _, text := range divide(p) {
				if text != "" {
					out = append(out, piece{text, rest, p.budget})
					rest = false
				}
			}
		}
		return out
	}
}

func splitBy(find pattern, b behavior, invert bool) splitter {
	return each(func(p piece) []string { return b.apply(find(p.text, p.budget), invert) })
}

func readSplit(raw json.RawMessage) (splitter, error) {
	var d struct {
		Pattern  json.RawMessage `json:"pattern"`
		Behavior behavior        `json:"behavior"`
		Invert   bool            `json:"invert"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	find, err := readPattern(d.Pattern)
	if err == nil {
		err = d.Behavior.check()
	}
	return splitBy(find, d.Behavior, d.Invert), err
}

func readDigits(raw json.RawMessage) (splitter, error) {
	var d struct {
		Individual bool `json:"individual_digits"`
	}
	err := json.Unmarshal(raw, &d)
	b := contiguous
	if d.Individual {
		b = isolated
	}
	return splitBy(characters(unicode.IsNumber), b, false), err
}

func readPunctuation(raw json.RawMessage) (splitter, error) {
	d := struct {
		Behavior behavior `json:"behavior"`
	}{isolated}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	return splitBy(characters(isPunctuation), d.Behavior, false), d.Behavior.check()
}

func readDelimiter(raw json.RawMessage) (splitter, error) {
	var d struct {
		Delimiter string `json:"delimiter"`
	}
	err := json.Unmarshal(raw, &d)
	return splitBy(literal(d.Delimiter), removed, false), err
}

// isPunctuation reports whether a character is punctuation or a symbol of ASCII.
func isPunctuation(r rune) bool {
	return r > ' ' && r < 0x7F && !unicode.In(r, unicode.L, unicode.N) || unicode.IsPunct(r)
}

// words divides a text as \w+|[^\w\s]+ does, without the white space.
func words(text string, _ *budget) []segment {
	var out []segment
	const space, word, other = 0, 1, 2
	kind, start := space, 0
	for at, r := range text {
		now := other
		switch {
		case isWord(r):
			now = word
		case unicode.IsSpace(r):
			now = space
		}
		if now != kind {
			if kind != space {
				out = append(out, segment{text[start:at], true})
			}
			kind, start = now, at
		}
	}
	if kind != space {
		out = append(out, segment{text[start:], true})
	}
	return out
}

func readMetaspace(raw json.RawMessage) (splitter, error) {
	d := struct {
		Replacement string  `json:"replacement"`
		Prefix      *bool   `json:"add_prefix_space"` // of old files
		Scheme      *string `json:"prepend_scheme"`
		Split       *bool   `json:"split"`
	}{Replacement: "▁"}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	scheme := "always"
	if d.Scheme != nil {
		scheme = *d.Scheme
	}
	if d.Prefix != nil && !*d.Prefix && d.Scheme == nil {
		scheme = "never"
	}
	find := literal(d.Replacement)
	return each(func(p piece) []string {
		text := strings.ReplaceAll(p.text, " ", d.Replacement)
		if (scheme == "always" || scheme == "first" && p.first) && !strings.HasPrefix(text, d.Replacement) {
			text = d.Replacement + text
		}
		if d.Split != nil && !*d.Split {
			return []string{text}
		}
		return mergedWithNext.apply(find(text, p.budget), false)
	}), nil
}

// gpt2 is the regular expression of GPT-2.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func readByteLevel(raw json.RawMessage) (splitter, error) {
	d := struct {
		Prefix bool `json:"add_prefix_space"`
		Regex  bool `json:"use_regex"`
	}{true, true}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	find, err := regex(gpt2)
	return each(func(p piece) []string {
		text := p.text
		if d.Prefix && !strings.HasPrefix(text, " ") {
			text = " " + text
		}
		parts := []string{text}
		if d.Regex {
			parts = isolated.apply(find(text, p.budget), false)
		}
		for i := range parts {
			parts[i] = byteLevel(parts[i])
		}
		return parts
	}), err
}

// byteCharacters are the characters that mean bytes in byte-level vocabularies.
var byteCharacters = func() (table [256]string) {
	next := rune(256)
	for b := range table {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' && r <= 'ÿ') {
			r = next
			next++
		}
		table[b] = string(r)
	}
	return table
}()

// byteLevel replaces each byte by the character that means it.
func byteLevel(text string) string {
	var b strings.Builder
	b.Grow(len(text) * utf8.UTFMax / 2)
	for i := range len(text) {
		b.WriteString(byteCharacters[text[i]])
	}
	return b.String()
}
