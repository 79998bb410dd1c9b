package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// readVocabulary reads a vocabulary: lines with a token in base64, a space and its
// rank, in ascending order of rank.
func readVocabulary(r io.Reader, tokens int) (*vocabulary, error) {
	v := newVocabulary(tokens)
	lines := bufio.NewReaderSize(r, 1<<16)
	var token []byte
	next := uint32(0) // smallest valid rank
	for n := 0; ; n++ {
		line, err := lines.ReadSlice('\n')
		end := errors.Is(err, io.EOF)
		switch {
		case end && len(line) == 0 && n != tokens:
			return nil, fmt.Errorf("found %d tokens, want %d", n, tokens)
		case end && len(line) == 0:
			v.bytes = slices.Clone(v.bytes) // without spare capacity
			return v, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("line %d: line too long", n+1)
		case err != nil && !end:
			return nil, err
		case n == tokens:
			return nil, fmt.Errorf("found more than %d tokens", tokens)
		}
		var rank uint32
		if token, rank, err = parseToken(token[:0], line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if rank < next {
			return nil, fmt.Errorf("line %d: rank is not greater than the previous one", n+1)
		}
		next = rank + 1
		if err = v.add(token, rank); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
}

// parseToken parses a line and appends its token to buffer.
func parseToken(buffer, line []byte) (token []byte, rank uint32, err error) {
	encoded, number, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	parsed, err := strconv.ParseUint(string(number), 10, 31)
	if err != nil {
		return buffer, 0, errors.New("rank is not a natural number")
	}
	token, err = base64.StdEncoding.AppendDecode(buffer, encoded)
	return token, uint32(parsed), err
}
