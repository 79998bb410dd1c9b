//go:build !js

package tokenfile

import (
	"encoding/json"
	"errors"
	"fmt"
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
}

// parseJSON reads a tokenizer.json.
func parseJSON(data []byte) (*Tokenizer, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, jsonError(err)
	}
	if isNull(d.Model) {
		return nil, errors.New(`it has no "model"; a tokenizer.json of Hugging Face has one`)
	}
	p := &pipeline{}
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
			p.normalized.add(p.normalize(t.Content), t)
		} else {
			p.literal.add(t.Content, t)
		}
	}
	return &Tokenizer{count: p.count}, nil
}

// count returns the number of tokens of a text.
func (p *pipeline) count(text string) int {
	n := 0
	for _, part := range p.literal.split(text) {
		if part.token {
			n++
			continue
		}
		start := part.first
		for _, inner := range p.normalized.split(p.normalize(part.text)) {
			if inner.token {
				n++
				continue
			}
			n += p.countPieces(piece{inner.text, start && inner.first})
		}
	}
	return n
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
