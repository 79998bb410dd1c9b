//go:build !js

package tokenfile

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// The types of pieces in a SentencePiece model.
const (
	pieceNormal = iota + 1
	pieceUnknown
	pieceControl
	pieceUserDefined
	pieceUnused
	pieceByte
)

// sentencePiece is the tokenizer of a SentencePiece model.
type sentencePiece struct {
	spmFile
	pieces  map[string]int32 // the pieces that a text can have
	user    *tokenTrie       // user-defined pieces, which are neither normalized nor divided
	chars   *charsMap
	lattice *lattice // Unigram; nil for BPE
}

// parseSentencePiece reads a model.
func parseSentencePiece(data []byte) (*Tokenizer, error) {
	f, err := readSPM(data)
	if err != nil {
		return nil, err
	}
	m := &sentencePiece{spmFile: *f, pieces: map[string]int32{}, user: newTokenTrie()}
	if m.chars, err = newCharsMap(f.charsMap); err != nil {
		return nil, err
	}
	for i, p := range f.pieces {
		switch p.kind {
		case pieceUserDefined:
			m.user.add(p.text, addedToken{})
			m.pieces[p.text] = int32(i)
		case pieceNormal, pieceUnused:
			m.pieces[p.text] = int32(i)
		}
	}
	if len(m.pieces) == 0 {
		return nil, errors.New("it is neither a tokenizer.json nor a SentencePiece model: no pieces were found")
	}
	switch f.kind {
	case spmUnigram:
		m.lattice = m.newLattice()
		return &Tokenizer{count: m.countUnigram}, nil
	case spmBPE:
		return &Tokenizer{count: m.countBPE}, nil
	}
	return nil, &UnsupportedError{Part: fmt.Sprintf("a SentencePiece model of type %d (1 is Unigram, 2 BPE)", f.kind)}
}

// newLattice returns the lattice of a Unigram model.
func (m *sentencePiece) newLattice() *lattice {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, p := range m.spmFile.pieces {
		if p.kind == pieceNormal {
			lowest, highest = min(lowest, p.score), max(highest, p.score)
		}
	}
	scores := make(map[string]float64, len(m.pieces))
	for _, p := range m.spmFile.pieces {
		switch p.kind {
		case pieceNormal:
			scores[p.text] = p.score
		case pieceUserDefined: // always selected
			scores[p.text] = float64(len(p.text))*highest - 0.1
		}
	}
	return newLattice(scores, lowest, true)
}

func (m *sentencePiece) countUnigram(text string) int {
	return m.countTokens(m.lattice.tokens(m.normalize(text)))
}

// countTokens counts tokens; unknown ones are bytes, or are joined.
func (m *sentencePiece) countTokens(tokens []token) int {
	n, joined := 0, false
	for _, t := range tokens {
		switch {
		case t.unknown && m.byteFallback:
			n += len(t.text)
			continue
		case t.unknown && joined:
			continue
		}
		n++
		joined = t.unknown
	}
	return n
}

// countBPE merges the characters of a text by the scores of the merged pieces.
func (m *sentencePiece) countBPE(text string) int {
	text = m.normalize(text)
	w := &spmWord{m: m}
	for at := 0; at < len(text); {
		size := m.symbol(text[at:])
		_, known := m.user.longest(text[at:])
		w.add(text[at:at+size], known > 0)
		at += size
	}
	merged := newMerger(w.symbols, w.rank)
	merged.run(len(w.symbols))
	var tokens []token
	for at := range merged.remaining {
		tokens = append(tokens, m.resegment(w, merged.ids[at])...)
	}
	return m.countTokens(tokens)
}

// symbol returns the length of the user-defined piece or character that text begins with.
func (m *sentencePiece) symbol(text string) int {
	if _, n := m.user.longest(text); n > 0 {
		return n
	}
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// spmWord holds the symbols of a text while they are merged.
type spmWord struct {
	m       *sentencePiece
	symbols []int32  // indexes of texts, or those of frozen ones
	texts   []string // of symbols
	frozen  []bool   // they are not merged
	index   map[string]int32
	origin  map[int32]pair // the symbols that a symbol was merged from
}

// add adds a symbol and returns its index.
func (w *spmWord) add(text string, frozen bool) {
	w.symbols = append(w.symbols, w.intern(text, frozen))
}

func (w *spmWord) intern(text string, frozen bool) int32 {
	key := text
	if frozen {
		key = "\x00" + text
	}
	if i, ok := w.index[key]; ok {
		return i
	}
	if w.index == nil {
		w.index, w.origin = map[string]int32{}, map[int32]pair{}
	}
	i := int32(len(w.texts))
	w.texts, w.frozen = append(w.texts, text), append(w.frozen, frozen)
	w.index[key] = i
	return i
}

// rank returns the merge of two symbols; a higher score is merged first.
func (w *spmWord) rank(left, right int32) (rank float64, id int32, ok bool) {
	if w.frozen[left] || w.frozen[right] {
		return 0, 0, false
	}
	text := w.texts[left] + w.texts[right]
	known, ok := w.m.pieces[text]
	if !ok {
		return 0, 0, false
	}
	id = w.intern(text, false)
	p := w.m.spmFile.pieces[known]
	if p.kind == pieceUnused {
		w.origin[id] = pair{left, right}
	}
	return -p.score, id, true
}

// resegment returns the tokens of a symbol: an unused piece is divided again.
func (m *sentencePiece) resegment(w *spmWord, symbol int32) []token {
	text := w.texts[symbol]
	known, ok := m.pieces[text]
	if !ok {
		return []token{{text, true}}
	}
	from, merged := w.origin[symbol]
	if m.spmFile.pieces[known].kind != pieceUnused || !merged {
		return []token{{text, false}}
	}
	return append(m.resegment(w, from.left), m.resegment(w, from.right)...)
}

const spmSpace = "▁"

// normalize returns the text as SentencePiece normalizes it.
func (m *sentencePiece) normalize(text string) string {
	if m.removeSpaces {
		for text != "" {
			to, n := m.prefix(text)
			if to != " " {
				break
			}
			text = text[n:]
		}
	}
	if text == "" {
		return ""
	}
	space := " "
	if m.escapeSpaces {
		space = spmSpace
	}
	var b strings.Builder
	if m.dummyPrefix && !m.spaceAsSuffix {
		b.WriteString(space)
	}
	m.normalizeTo(&b, text, space)
	out := b.String()
	for m.removeSpaces && strings.HasSuffix(out, space) {
		out = strings.TrimSuffix(out, space)
	}
	if m.dummyPrefix && m.spaceAsSuffix {
		out += space
	}
	return out
}

// normalizeTo writes the normalized characters.
func (m *sentencePiece) normalizeTo(b *strings.Builder, text, space string) {
	afterSpace := m.removeSpaces
	for text != "" {
		to, n := m.prefix(text)
		text = text[n:]
		for afterSpace && strings.HasPrefix(to, " ") {
			to = to[1:]
		}
		if to != "" {
			b.WriteString(strings.ReplaceAll(to, " ", space))
			afterSpace = strings.HasSuffix(to, " ")
		}
		if !m.removeSpaces {
			afterSpace = false
		}
	}
}

// prefix returns the normalized form of the first characters of a text, and their length.
func (m *sentencePiece) prefix(text string) (to string, length int) {
	if _, n := m.user.longest(text); n > 0 {
		return text[:n], n
	}
	if to, n := m.chars.longest(text); n > 0 {
		return to, n
	}
	_, n := utf8.DecodeRuneInString(text)
	return text[:n], n
}
