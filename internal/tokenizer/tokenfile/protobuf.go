//go:build !js

package tokenfile

import (
	"encoding/binary"
	"errors"
	"math"
)

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
