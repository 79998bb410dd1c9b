//go:build !js

package tokenfile

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"golang.org/x/text/unicode/norm"
)

// normalizer changes a text before it is split.
type normalizer func(string, *budget) string

func same(s string, _ *budget) string { return s }

// normalizers returns the readers of normalizers by their types.
func normalizers() map[string]func(json.RawMessage) (normalizer, error) {
	return map[string]func(json.RawMessage) (normalizer, error){
		"Sequence":       readSequence,
		"NFC":            fixed(norm.NFC.String),
		"NFD":            fixed(norm.NFD.String),
		"NFKC":           fixed(norm.NFKC.String),
		"NFKD":           fixed(norm.NFKD.String),
		"Lowercase":      fixed(lowercase),
		"StripAccents":   fixed(func(s string) string { return without(s, unicode.M) }),
		"Nmt":            fixed(func(s string) string { return strings.Map(nmt, s) }),
		"ByteLevel":      fixed(byteLevel),
		"Strip":          readStrip,
		"BertNormalizer": readBertNormalizer,
		"Replace":        readReplace,
		"Prepend":        readPrepend,
		"Precompiled":    readPrecompiled,
	}
}

func fixed(f func(string) string) func(json.RawMessage) (normalizer, error) {
	return func(json.RawMessage) (normalizer, error) { return free(f), nil }
}

// free returns a normalizer whose work needs no limit.
func free(f func(string) string) normalizer {
	return func(s string, _ *budget) string { return f(s) }
}

// readNormalizer reads the normalizer; null changes nothing.
func readNormalizer(raw json.RawMessage) (normalizer, error) {
	if isNull(raw) {
		return same, nil
	}
	var t typed
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("normalizer: %w", jsonError(err))
	}
	read := normalizers()[t.Type]
	if read == nil {
		return nil, &UnsupportedError{Part: fmt.Sprintf("the normalizer %q", t.Type)}
	}
	f, err := read(raw)
	if err != nil {
		return nil, fmt.Errorf("normalizer %s: %w", t.Type, jsonError(err))
	}
	return f, nil
}

func readSequence(raw json.RawMessage) (normalizer, error) {
	var d struct {
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	var all []normalizer
	for _, one := range d.Normalizers {
		f, err := readNormalizer(one)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return func(s string, b *budget) string {
		for _, f := range all {
			s = f(s, b)
		}
		return s
	}, nil
}

func readStrip(raw json.RawMessage) (normalizer, error) {
	d := struct {
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}{true, true}
	err := json.Unmarshal(raw, &d)
	return free(func(s string) string {
		if d.Left {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if d.Right {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
		return s
	}), err
}

func readPrepend(raw json.RawMessage) (normalizer, error) {
	var d struct {
		Prepend string `json:"prepend"`
	}
	err := json.Unmarshal(raw, &d)
	return free(func(s string) string {
		if s == "" {
			return s
		}
		return d.Prepend + s
	}), err
}

func readReplace(raw json.RawMessage) (normalizer, error) {
	var d struct {
		Pattern json.RawMessage `json:"pattern"`
		Content string          `json:"content"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	p, err := readPattern(d.Pattern)
	if err != nil {
		return nil, err
	}
	return func(s string, b *budget) string {
		var out strings.Builder
		for _, m := range p(s, b) {
			if m.match {
				out.WriteString(d.Content)
			} else {
				out.WriteString(m.text)
			}
		}
		return out.String()
	}, nil
}

func readPrecompiled(raw json.RawMessage) (normalizer, error) {
	var d struct {
		Map string `json:"precompiled_charsmap"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(d.Map)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap is not base64: %w", err)
	}
	m, err := newCharsMap(data)
	if err != nil {
		return nil, err
	}
	return free(m.normalizeGraphemes), nil
}

// normalizeGraphemes replaces short grapheme clusters, and the characters of others.
func (m *charsMap) normalizeGraphemes(s string) string {
	const short = 6 // bytes; from the Rust library spm_precompiled
	var b strings.Builder
	for g := graphemes.FromString(s); g.Next(); {
		cluster := g.Value()
		if len(cluster) < short {
			if to, ok := m.first(cluster); ok {
				b.WriteString(to)
				continue
			}
		}
		for _, r := range cluster {
			char := string(r)
			if to, ok := m.first(char); ok {
				char = to
			}
			b.WriteString(char)
		}
	}
	return b.String()
}

func readBertNormalizer(raw json.RawMessage) (normalizer, error) {
	d := struct {
		Clean     bool  `json:"clean_text"`
		Chinese   bool  `json:"handle_chinese_chars"`
		Accents   *bool `json:"strip_accents"`
		Lowercase bool  `json:"lowercase"`
	}{true, true, nil, true}
	err := json.Unmarshal(raw, &d)
	accents := d.Lowercase
	if d.Accents != nil {
		accents = *d.Accents
	}
	return free(func(s string) string {
		if d.Clean {
			s = strings.Map(clean, s)
		}
		if d.Chinese {
			s = spaceIdeographs(s)
		}
		if accents {
			s = without(norm.NFD.String(s), unicode.Mn)
		}
		if d.Lowercase {
			s = lowercase(s)
		}
		return s
	}), err
}

// clean maps white space to a space and removes control characters.
func clean(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == 0 || r == 0xFFFD || unicode.Is(unicode.C, r):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// spaceIdeographs puts spaces around Chinese characters, as BERT does.
func spaceIdeographs(s string) string {
	var b strings.Builder
	for _, r := range s {
		if isIdeograph(r) {
			b.WriteRune(' ')
			b.WriteRune(r)
			b.WriteRune(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isIdeograph reports whether BERT's tokenizer treats a character as a word.
func isIdeograph(r rune) bool {
	for _, block := range [...][2]rune{{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
		{0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F}} {
		if block[0] <= r && r <= block[1] {
			return true
		}
	}
	return false
}

// lowercase maps each character on its own.
func lowercase(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r
		}
		return unicode.ToLower(r)
	}, s), "İ", "i\u0307")
}

// without removes the characters of a category.
func without(s string, category *unicode.RangeTable) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(category, r) {
			return -1
		}
		return r
	}, s)
}

// nmt removes control characters and maps white space to a space, as SentencePiece's
// normalization nmt_nfkc does.
func nmt(r rune) rune {
	switch {
	case r >= 1 && r <= 8, r == 0xB, r >= 0xE && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return -1
	case r == 9, r == 0xA, r == 0xC, r == 0xD, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return ' '
	}
	return r
}

// charsMap is the table of replacements that SentencePiece compiles: a trie of
// the texts that are replaced, followed by the replacements.
type charsMap struct {
	units        []uint32
	replacements []byte // each ends with a zero byte
}

func newCharsMap(data []byte) (*charsMap, error) {
	m := &charsMap{}
	if len(data) == 0 {
		return m, nil
	}
	if len(data) < 4 {
		return nil, errTruncatedMap
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if size%4 != 0 || size > int64(len(data)-4) {
		return nil, errTruncatedMap
	}
	for i := int64(4); i < 4+size; i += 4 {
		m.units = append(m.units, binary.LittleEndian.Uint32(data[i:]))
	}
	m.replacements = data[4+size:]
	return m, nil
}

var errTruncatedMap = errors.New("the table of normalized characters is incomplete")

// The fields of a unit of the array.
func hasLeaf(unit uint32) bool  { return unit>>8&1 == 1 }
func label(unit uint32) uint32  { return unit & (1<<31 | 0xFF) }
func offset(unit uint32) uint32 { return (unit >> 10) << ((unit & (1 << 9)) >> 6) }

// walk calls found with the length and the replacement of each key that text begins
// with, the shortest first, until it returns false.
func (m *charsMap) walk(text string, found func(length int, index uint32) bool) {
	if len(m.units) == 0 {
		return
	}
	at := offset(m.units[0])
	for i := range len(text) {
		at ^= uint32(text[i])
		if int64(at) >= int64(len(m.units)) || label(m.units[at]) != uint32(text[i]) {
			return
		}
		unit := m.units[at]
		at ^= offset(unit)
		if int64(at) >= int64(len(m.units)) {
			return
		}
		if hasLeaf(unit) && !found(i+1, m.units[at]&(1<<31-1)) {
			return
		}
	}
}

// first returns the replacement of the shortest key that text begins with.
func (m *charsMap) first(text string) (to string, ok bool) {
	m.walk(text, func(_ int, index uint32) bool {
		to, ok = m.at(index), true
		return false
	})
	return to, ok
}

// longest returns the replacement of the longest key that text begins with, and its length.
func (m *charsMap) longest(text string) (to string, length int) {
	var last uint32
	m.walk(text, func(n int, index uint32) bool {
		length, last = n, index
		return true
	})
	if length > 0 {
		to = m.at(last)
	}
	return to, length
}

func (m *charsMap) at(index uint32) string {
	if int64(index) >= int64(len(m.replacements)) {
		return ""
	}
	text, _, _ := bytes.Cut(m.replacements[index:], []byte{0})
	return string(text)
}
