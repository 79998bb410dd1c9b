// Package vocabularies holds the vocabularies of the token encodings of OpenAI, as package tokenizer reads them.
package vocabularies

import _ "embed" // the vocabularies are files

var (
	//go:embed o200k_base.tokens
	o200k string
	//go:embed cl100k_base.tokens
	cl100k string
	//go:embed p50k_base.tokens
	p50k string
)

// Files has the content of each vocabulary by the name of its file. It is a token for each rank, in ascending order from 0: a byte
// with the length of the token, and the token. The length 0 says that no token has the rank. The first 50,256 tokens of p50k_base
// are those of r50k_base.
var Files = map[string]string{"o200k_base.tokens": o200k, "cl100k_base.tokens": cl100k, "p50k_base.tokens": p50k}
