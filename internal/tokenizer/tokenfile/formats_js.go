//go:build js

package tokenfile

// A page in a browser has no files, so that the formats are left out.

func parseJSON([]byte) (*Tokenizer, error) { return nil, errInBrowser }

func parseSentencePiece([]byte) (*Tokenizer, error) { return nil, errInBrowser }

var errInBrowser = &UnsupportedError{Part: "the file of a tokenizer in a browser"}
