package hugot

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// wordPiece divides texts into tokens as BERT does: words and single signs, and of words
// the longest pieces that the vocabulary has, from the left. It is written here because
// the tokenizer of the library is wrong for accents, long words and control characters.
type wordPiece struct {
	Normalizer struct {
		Type         string `json:"type"`
		CleanText    bool   `json:"clean_text"`
		ChineseChars bool   `json:"handle_chinese_chars"`
		StripAccents *bool  `json:"strip_accents"` // nil means Lowercase
		Lowercase    bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type    string            `json:"type"`
		Unknown string            `json:"unk_token"`
		Prefix  string            `json:"continuing_subword_prefix"`
		Longest int               `json:"max_input_chars_per_word"`
		Words   map[string]uint32 `json:"vocab"`
	} `json:"model"`

	first, last, unknown uint32 // the tokens at the ends of a text, and of an unknown word
}

// parseWordPiece reads a tokenizer.json.
func parseWordPiece(raw []byte) (*wordPiece, error) {
	w := &wordPiece{}
	if err := json.Unmarshal(raw, w); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	for _, part := range [][3]string{
		{"model", w.Model.Type, "WordPiece"}, {"normalizer", w.Normalizer.Type, "BertNormalizer"}, {"pre_tokenizer", w.PreTokenizer.Type, "BertPreTokenizer"},
	} {
		if part[1] != part[2] {
			return nil, fmt.Errorf("tokenizer.json: %s: the type %q is not supported; models with BERT's tokenizer (%s) are", part[0], part[1], part[2])
		}
	}
	for token, into := range map[string]*uint32{"[CLS]": &w.first, "[SEP]": &w.last, w.Model.Unknown: &w.unknown} {
		id, found := w.Model.Words[token]
		if !found {
			return nil, fmt.Errorf("tokenizer.json: the vocabulary has no %q", token)
		}
		*into = id
	}
	if w.Model.Longest <= 0 {
		w.Model.Longest = 100
	}
	return w, nil
}

// tokens returns the tokens of a text, at most limit.
func (w *wordPiece) tokens(text string, limit int) []uint32 {
	ids := []uint32{w.first}
	for word := range strings.FieldsSeq(w.normalize(text)) {
		if ids = w.pieces(word, ids); len(ids) >= limit {
			ids = ids[:limit-1]
			break
		}
	}
	return append(ids, w.last)
}

// normalize returns the text with spaces around signs and, as the model wants it, without
// control characters, accents and capital letters.
func (w *wordPiece) normalize(text string) string {
	n := w.Normalizer
	strip := n.Lowercase
	if n.StripAccents != nil {
		strip = *n.StripAccents
	}
	if strip {
		text = norm.NFD.String(text)
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case n.CleanText && (r == 0 || r == unicode.ReplacementChar || unicode.Is(unicode.C, r)), strip && unicode.Is(unicode.Mn, r):
		case isSign(r) || n.ChineseChars && isIdeograph(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		case n.Lowercase:
			b.WriteString(strings.ToLower(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isSign reports whether BERT separates a character from words.
func isSign(r rune) bool {
	return r < 128 && (unicode.IsPunct(r) || unicode.IsSymbol(r)) || unicode.Is(unicode.P, r)
}

func isIdeograph(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2CEAF || 0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

// pieces adds the tokens of a word.
func (w *wordPiece) pieces(word string, ids []uint32) []uint32 {
	letters := []rune(word)
	if len(letters) > w.Model.Longest {
		return append(ids, w.unknown)
	}
	begin := len(ids)
	for start := 0; start < len(letters); {
		prefix := ""
		if start > 0 {
			prefix = w.Model.Prefix
		}
		end := len(letters)
		for ; end > start; end-- {
			if id, found := w.Model.Words[prefix+string(letters[start:end])]; found {
				ids = append(ids, id)
				break
			}
		}
		if end == start {
			return append(ids[:begin], w.unknown)
		}
		start = end
	}
	return ids
}
