package spec

// Tokenizer is what counts tokens: an encoding that qtype contains, or a file.
type Tokenizer struct {
	Encoding string // the name of the encoding; empty for a file
	File     string // the path of the file; empty for an encoding
}

// IsZero reports whether the document names no tokenizer.
func (t Tokenizer) IsZero() bool { return t == Tokenizer{} }

// Encodings returns the names of the encodings that a document may name, newest first.
func Encodings() []string {
	return []string{"o200k_base", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base"}
}
