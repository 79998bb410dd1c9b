package token

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// loadVocabulary reads a vocabulary of that many tokens from the files that are
// embedded in the program.
func loadVocabulary(file string, tokens int) (*vocabulary, error) {
	f, err := assets.Assets.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read token vocabulary: %w", err)
	}
	defer f.Close()
	v, err := readVocabulary(f, tokens)
	if err != nil {
		return nil, fmt.Errorf("read token vocabulary %s: %w", file, err)
	}
	return v, nil
}

// readVocabulary reads lines of a token in base64, a space and its rank, in
// rising order of rank.
func readVocabulary(r io.Reader, tokens int) (*vocabulary, error) {
	v := newVocabulary(tokens)
	lines := bufio.NewReaderSize(r, 1<<16)
	var token []byte
	next := 0 // the least rank that may come
	for n := 0; ; n++ {
		line, err := lines.ReadSlice('\n')
		if len(line) == 0 && err == io.EOF {
			if n != tokens {
				return nil, fmt.Errorf("found %d tokens instead of %d", n, tokens)
			}
			v.bytes = slices.Clone(v.bytes)
			return v, nil
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		if n == tokens {
			return nil, fmt.Errorf("found more than %d tokens", tokens)
		}
		encoded, number, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		rank, err := strconv.Atoi(string(number))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if rank < next {
			return nil, fmt.Errorf("line %d: %w", n+1, errors.New("rank is not above the one before"))
		}
		next = rank + 1
		if token, err = base64.StdEncoding.AppendDecode(token[:0], encoded); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if err = v.add(token, uint32(rank)); err != nil {
			return nil, err
		}
	}
}
