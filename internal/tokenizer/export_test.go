package tokenizer

// Sizes of Count's chunks.
const (
	ChunkLength  = chunkLength
	ChunkOverlap = chunkOverlap
)

// Load loads an encoding without caching it.
func Load(name string) (*Encoding, error) {
	for i := range encodings {
		if l := &encodings[i]; l.name == name {
			return l.load()
		}
	}
	return For(name)
}

// Read reads the content of a vocabulary and returns an encoding that treats a text as one piece.
func Read(content string, tokens int) (*Encoding, error) {
	v, err := readVocabulary(content, tokens)
	if err != nil {
		return nil, err
	}
	whole := func(_ *classes, text string, _ int) int { return len(text) }
	return &Encoding{name: "test", split: whole, tokens: v}, nil
}

// Pieces splits a text.
func (e *Encoding) Pieces(text string) []string {
	var pieces []string
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		pieces = append(pieces, text[i:end])
		i = end
	}
	return pieces
}

// Chunked counts a text as one piece, in chunks.
func (e *Encoding) Chunked(text string, length, overlap int) int {
	var m bpeMerger
	return m.count(e.tokens, text, chunking{length: length, overlap: overlap})
}

// Joined reports whether Chunked used chunks; otherwise two of them had no token in
// common, and the text was merged whole.
func (e *Encoding) Joined(text string, length, overlap int) bool {
	var m bpeMerger
	m.count(e.tokens, text, chunking{length: length, overlap: overlap})
	return len(text) <= length || len(m.next) <= length
}

// Plain merges a text as one piece by a simple quadratic algorithm, and counts its
// tokens.
func (e *Encoding) Plain(text string) int {
	var parts []string
	for i := range len(text) {
		parts = append(parts, text[i:i+1])
	}
	for {
		best, at := none, 0
		for i := range len(parts) - 1 {
			if r := e.tokens.rank(parts[i] + parts[i+1]); r < best {
				best, at = r, i
			}
		}
		if best == none {
			return len(parts)
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
}

// Estimated returns an encoding without its vocabulary, as a browser has it at first.
func Estimated(name string) *Encoding {
	for i := range encodings {
		if l := &encodings[i]; l.name == name {
			return l.with(nil)
		}
	}
	return nil
}
