//go:build !js

package tokenfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
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

// unknownPenalty is how much less probable an unknown character is than any token.
const unknownPenalty = 10

// lattice finds the most probable tokens of a text.
type lattice struct {
	scores  map[string]float64
	single  bool // scores have single precision, as SentencePiece computes
	longest int  // bytes of the longest token
	unknown float64
}

// newLattice returns a lattice; minScore is the lowest score of a token.
func newLattice(scores map[string]float64, minScore float64, single bool) *lattice {
	l := &lattice{scores: scores, single: single, unknown: minScore - unknownPenalty}
	for token := range scores {
		l.longest = max(l.longest, len(token))
	}
	return l
}

// node is the best path to a place in the text.
type node struct {
	score   float64
	start   int // of the last token, -1 if no path is known
	unknown bool
}

// token is one token of a text.
type token struct {
	text    string
	unknown bool
}

// tokens returns the tokens of a text; each unknown character is one.
func (l *lattice) tokens(text string) []token {
	best := make([]node, len(text)+1)
	for i := range best {
		best[i].start = -1
	}
	for at := 0; at < len(text); {
		size := l.extend(best, text, at)
		at += size
	}
	var out []token
	for end := len(text); end > 0; end = best[end].start {
		out = append(out, token{text[best[end].start:end], best[end].unknown})
	}
	slices.Reverse(out)
	return out
}

// extend adds the tokens that begin at a place, and returns the size of its character.
func (l *lattice) extend(best []node, text string, at int) int {
	_, size := utf8.DecodeRuneInString(text[at:])
	known := false // the character is a token
	for end := at + size; end <= min(len(text), at+l.longest); {
		if score, ok := l.scores[text[at:end]]; ok {
			l.update(best, at, end, score, false)
			known = known || end == at+size
		}
		_, next := utf8.DecodeRuneInString(text[end:])
		if next == 0 {
			break
		}
		end += next
	}
	if !known {
		l.update(best, at, at+size, l.unknown, true)
	}
	return size
}

func (l *lattice) update(best []node, from, to int, score float64, unknown bool) {
	sum := best[from].score + score
	if l.single {
		sum = float64(float32(best[from].score) + float32(score))
	}
	if best[to].start < 0 || sum > best[to].score {
		best[to] = node{sum, from, unknown}
	}
}

// unigram is the model Unigram of a tokenizer.json.
type unigram struct {
	*lattice
	bytes *byteTokens // nil without byte_fallback
}

func readUnigram(raw json.RawMessage) (model, error) {
	var d struct {
		Vocab        [][2]json.RawMessage `json:"vocab"`
		ByteFallback bool                 `json:"byte_fallback"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	scores, ids := make(map[string]float64, len(d.Vocab)), make(map[string]int32, len(d.Vocab))
	lowest := math.Inf(1)
	for i, pair := range d.Vocab {
		var token string
		var score float64
		if err := errors.Join(json.Unmarshal(pair[0], &token), json.Unmarshal(pair[1], &score)); err != nil {
			return nil, fmt.Errorf("model: token %d: %w", i, jsonError(err))
		}
		scores[token], ids[token] = score, int32(i)
		lowest = min(lowest, score)
	}
	m := &unigram{lattice: newLattice(scores, lowest, false)}
	if d.ByteFallback {
		m.bytes = newByteTokens(ids)
	}
	return m, nil
}

// count joins adjacent unknown characters.
func (m *unigram) count(text string) int {
	n, run := 0, ""
	flush := func() {
		switch {
		case run == "":
		case m.bytes != nil && m.bytes.of(run) != nil:
			n += len(run)
		default:
			n++
		}
		run = ""
	}
	for _, t := range m.tokens(text) {
		if t.unknown {
			run += t.text
			continue
		}
		flush()
		n++
	}
	flush()
	return n
}
