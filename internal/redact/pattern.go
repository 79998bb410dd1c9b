package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

const (
	minEncoded  = 8 // bytes of an encoded form
	minCut      = 8 // bytes of a secret that was cut off
	maxGap      = 3 // bytes of white space between two characters of a secret
	startsTable = 1 << 16
)

// pattern is one form of a secret.
type pattern struct {
	text  []byte // without white space; in small letters unless exact
	exact bool   // matches only as a whole word in the same case
}

// patterns are the forms of all secrets, by their first bytes.
type patterns struct {
	all    []pattern
	first  [256][]int32             // indexes of patterns that begin with a byte, in small letters
	starts [startsTable / 64]uint64 // pairs of first bytes, in small letters
}

// newPatterns returns the patterns of secrets, nil for none.
func newPatterns(secrets map[string]bool) *patterns {
	if len(secrets) == 0 {
		return nil
	}
	p := &patterns{}
	seen := map[string]bool{}
	for secret := range secrets {
		if isPlainWord(secret) {
			p.add(pattern{[]byte(secret), true})
			continue
		}
		for _, form := range formsOf(secret) {
			text := bytes.ToLower(withoutSpace([]byte(form)))
			if len(text) >= MinSecret && !seen[string(text)] {
				seen[string(text)] = true
				p.add(pattern{text, false})
			}
		}
	}
	return p
}

func (p *patterns) add(one pattern) {
	i := int32(len(p.all))
	p.all = append(p.all, one)
	a, b := lower(one.text[0]), lower(one.text[1])
	p.first[a] = append(p.first[a], i)
	p.mark(a, b)
}

func (p *patterns) mark(a, b byte) {
	at := int(a)<<8 | int(b)
	p.starts[at/64] |= 1 << (at % 64)
}

// isPlainWord reports whether a secret could be a word or a number of an ordinary text.
func isPlainWord(s string) bool {
	letters := strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) < 0
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
	return len(s) < plainWord && (letters || digits)
}

// formsOf returns the forms in which a secret is repeated.
func formsOf(secret string) []string {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret)}
	once := jsonForm(secret)
	forms = append(forms, once, jsonForm(once), hex.EncodeToString([]byte(secret)))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			if form := base64Form(enc, secret, before); len(form) >= minEncoded {
				forms = append(forms, form)
			}
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

func jsonForm(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text can be encoded
	return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
}

// base64Form returns the characters of base64 that depend on the secret only, where a number
// of other bytes modulo 3 are before it, such as a user name and a colon.
func base64Form(enc *base64.Encoding, secret string, before int) string {
	whole := enc.EncodeToString(append(make([]byte, before), secret...))
	from := []int{0, 2, 3}[before]
	to := (before + len(secret)) * 8 / 6
	return whole[min(from, to):to]
}

func withoutSpace(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r < 0x80 && isSpace(byte(r)) {
			return -1
		}
		return r
	}, text)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// nextStart returns the first offset at or after from where a pattern may begin, the length
// of the text for none.
func nextStart[T string | []byte](p *patterns, text T, from int) int {
	for i := from; i < len(text); i++ {
		c := lower(text[i])
		if p.first[c] == nil {
			continue
		}
		j := i + 1
		for j < len(text) && j <= i+maxGap && isSpace(text[j]) {
			j++
		}
		if j == len(text) {
			return i
		}
		if at := int(c)<<8 | int(lower(text[j])); p.starts[at/64]&(1<<(at%64)) != 0 {
			return i
		}
	}
	return len(text)
}

// replace appends a text to out with its secrets replaced. If the text is not final, the
// end that may be the beginning of a secret is not appended; held is its number of bytes.
func (p *patterns) replace(out, text []byte, final bool) (replaced []byte, held int) {
	done := 0
	for i := nextStart(p, text, 0); i < len(text); i = nextStart(p, text, i+1) {
		end, waits := p.longest(text, i, final)
		switch {
		case waits:
			return append(out, text[done:i]...), len(text) - i
		case end > i:
			out = append(append(out, text[done:i]...), Mask...)
			done, i = end, end-1
		}
	}
	return append(out, text[done:]...), 0
}

// longest returns the end of the longest match at an offset, or whether a longer one needs
// more text.
func (p *patterns) longest(text []byte, at int, final bool) (end int, waits bool) {
	for _, n := range p.first[lower(text[at])] {
		to, matched, full := p.all[n].match(text, at, final)
		switch {
		case full || matched >= minCut && (final && to == len(text) || isCut(text[to:])):
			end = max(end, to)
		case !final && to == len(text) && matched > 0 && (matched > 3 || !isSpace(text[to-1])):
			return 0, true
		}
	}
	return end, false
}

// match compares a text at an offset. to is the end of what matched.
func (p *pattern) match(text []byte, at int, final bool) (to, matched int, full bool) {
	if p.exact && at > 0 && isWord(text[at-1]) {
		return at, 0, false
	}
	j, gap := at, 0
	for matched < len(p.text) {
		switch {
		case j == len(text):
			return j, matched, false
		case !p.exact && matched > 0 && gap < maxGap && isSpace(text[j]):
			gap++
		case p.exact && text[j] == p.text[matched], !p.exact && lower(text[j]) == p.text[matched]:
			matched++
			gap = 0
		default:
			return j, matched, false
		}
		j++
	}
	if !p.exact {
		return j, matched, true
	}
	if j == len(text) {
		return j, matched, final
	}
	return j, 0, !isWord(text[j])
}

// isCut reports whether a text begins with an ellipsis.
func isCut(text []byte) bool {
	return bytes.HasPrefix(text, []byte("…")) || bytes.HasPrefix(text, []byte("..."))
}
