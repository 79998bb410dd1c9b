//go:build !js

package tokenfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// document is a tokenizer.json.
type document struct {
	AddedTokens  []addedToken    `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Model        json.RawMessage `json:"model"`
}

// model counts the tokens of one piece of a text.
type model interface{ count(piece string) int }

// pipeline is the tokenizer of a tokenizer.json.
type pipeline struct {
	literal    *tokenTrie // added tokens that are found before the text is normalized
	normalized *tokenTrie // those that are found in the normalized text
	normalize  normalizer
	split      splitter
	model      model
	limit      func(size int) func() bool // of the search in a text of some bytes: see budget
}

// parseJSON reads a tokenizer.json.
func parseJSON(data []byte) (*Tokenizer, error) {
	p, err := readPipeline(data)
	if err != nil {
		return nil, err
	}
	return &Tokenizer{count: p.count}, nil
}

func readPipeline(data []byte) (*pipeline, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, jsonError(err)
	}
	if isNull(d.Model) {
		return nil, errors.New(`it has no "model"; a tokenizer.json of Hugging Face has one`)
	}
	p := &pipeline{limit: timeLimit}
	var err error
	if p.normalize, err = readNormalizer(d.Normalizer); err != nil {
		return nil, err
	}
	if p.split, err = readPreTokenizer(d.PreTokenizer); err != nil {
		return nil, err
	}
	if p.model, err = readModel(d.Model); err != nil {
		return nil, err
	}
	p.literal, p.normalized = newTokenTrie(), newTokenTrie()
	for _, t := range d.AddedTokens {
		if t.Normalized {
			p.normalized.add(p.normalize(t.Content, p.budget(t.Content)), t)
		} else {
			p.literal.add(t.Content, t)
		}
	}
	return p, nil
}

func (p *pipeline) budget(text string) *budget { return &budget{spent: p.limit(len(text))} }

// count returns the number of tokens of a text.
func (p *pipeline) count(text string) int {
	n, b := 0, p.budget(text)
	for _, part := range p.literal.split(text) {
		if part.token {
			n++
			continue
		}
		start := part.first
		for _, inner := range p.normalized.split(p.normalize(part.text, b)) {
			if inner.token {
				n++
				continue
			}
			n += p.countPieces(piece{inner.text, start && inner.first, b})
		}
	}
	return n + b.over
}

// countPieces counts a normalized text without added tokens.
func (p *pipeline) countPieces(text piece) int {
	n := 0
	for _, one := range p.split([]piece{text}) {
		if one.text != "" {
			n += p.model.count(one.text)
		}
	}
	return n
}

// typed is the beginning of a component: its type.
type typed struct {
	Type string `json:"type"`
}

// readModel reads the model.
func readModel(raw json.RawMessage) (model, error) {
	var t typed
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if t.Type == "" {
		t.Type = guessModel(raw)
	}
	switch t.Type {
	case "BPE":
		return readBPE(raw)
	case "WordPiece":
		return readWordPiece(raw)
	case "Unigram":
		return readUnigram(raw)
	case "WordLevel":
		return readWordLevel(raw)
	}
	return nil, &UnsupportedError{Part: fmt.Sprintf("the model %q", t.Type)}
}

// guessModel returns the type of a model of an old file, which has none.
func guessModel(raw json.RawMessage) string {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(raw, &keys) // it was decoded before
	switch {
	case keys["merges"] != nil:
		return "BPE"
	case keys["max_input_chars_per_word"] != nil:
		return "WordPiece"
	case keys["unk_id"] != nil:
		return "Unigram"
	case keys["vocab"] != nil:
		return "WordLevel"
	}
	return ""
}

// jsonError describes an error of package json for users.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("it is not JSON: %s at byte %d", syntax.Error(), syntax.Offset)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%q cannot be %s", kind.Field, kind.Value)
	}
	return err
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// The types of SentencePiece models that are supported.
const (
	spmUnigram = 1
	spmBPE     = 2
)

// spmFile is what a .model file has.
type spmFile struct {
	pieces        []spmPiece
	kind          uint64 // spmUnigram, …
	byteFallback  bool
	spaceAsSuffix bool
	charsMap      []byte
	dummyPrefix   bool
	removeSpaces  bool
	escapeSpaces  bool
}

type spmPiece struct {
	text  string
	score float64
	kind  uint64
}

var errNotSPM = errors.New("it is neither a tokenizer.json nor a SentencePiece model")

// field is one field of a protocol buffer.
type field struct {
	number int
	value  uint64 // of a number
	data   []byte // of a text or message
}

// fields calls each with the fields of a message.
func fields(data []byte, each func(field) error) error {
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29 {
			return errNotSPM
		}
		f, rest, ok := readField(field{number: int(key >> 3)}, key&7, data[n:])
		if !ok {
			return errNotSPM
		}
		if err := each(f); err != nil {
			return err
		}
		data = rest
	}
	return nil
}

// readField reads the value of a field by its wire type.
func readField(f field, wire uint64, data []byte) (_ field, rest []byte, ok bool) {
	switch wire {
	case 0:
		value, n := binary.Uvarint(data)
		if n <= 0 {
			return f, nil, false
		}
		f.value = value
		return f, data[n:], true
	case 1:
		if len(data) < 8 {
			return f, nil, false
		}
		return f, data[8:], true
	case 2:
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return f, nil, false
		}
		f.data = data[n : n+int(size)]
		return f, data[n+int(size):], true
	case 5:
		if len(data) < 4 {
			return f, nil, false
		}
		f.value = uint64(binary.LittleEndian.Uint32(data))
		return f, data[4:], true
	}
	return f, nil, false
}

// readSPM reads a ModelProto of SentencePiece.
func readSPM(data []byte) (*spmFile, error) {
	m := &spmFile{kind: spmUnigram, dummyPrefix: true, removeSpaces: true, escapeSpaces: true}
	err := fields(data, func(f field) error {
		switch f.number {
		case 1: // pieces
			p := spmPiece{kind: pieceNormal}
			err := fields(f.data, p.set)
			m.pieces = append(m.pieces, p)
			return err
		case 2: // trainer_spec
			return fields(f.data, m.setTrainer)
		case 3: // normalizer_spec
			return fields(f.data, m.setNormalizer)
		}
		return nil
	})
	return m, err
}

func (p *spmPiece) set(f field) error {
	switch f.number {
	case 1:
		p.text = string(f.data)
	case 2:
		p.score = float64(math.Float32frombits(uint32(f.value)))
	case 3:
		p.kind = f.value
	}
	return nil
}

func (m *spmFile) setTrainer(f field) error {
	switch f.number {
	case 3:
		m.kind = f.value
	case 24:
		m.spaceAsSuffix = f.value != 0
	case 35:
		m.byteFallback = f.value != 0
	}
	return nil
}

func (m *spmFile) setNormalizer(f field) error {
	switch f.number {
	case 2:
		m.charsMap = f.data
	case 3:
		m.dummyPrefix = f.value != 0
	case 4:
		m.removeSpaces = f.value != 0
	case 5:
		m.escapeSpaces = f.value != 0
	}
	return nil
}
