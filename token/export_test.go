package token

import "strings"

// Load loads an encoding afresh.
func Load(name string) (*Encoding, error) {
	for i := range encodings {
		if l := &encodings[i]; l.name == name {
			return l.load()
		}
	}
	return For(name)
}

// Read reads a vocabulary of that many tokens and returns an encoding by it that
// takes a text to be one piece.
func Read(text string, tokens int) (*Encoding, error) {
	v, err := readVocabulary(strings.NewReader(text), tokens)
	if err != nil {
		return nil, err
	}
	whole := func(_ *classes, text string, _ int) int { return len(text) }
	return &Encoding{name: "test", split: whole, tokens: v}, nil
}

// Pieces returns the pieces into which an encoding cuts a text.
func (e *Encoding) Pieces(text string) []string {
	var pieces []string
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		pieces = append(pieces, text[i:end])
		i = end
	}
	return pieces
}
