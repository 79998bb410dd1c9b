package mock

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Embedder makes vectors without a model, by feature hashing: the words of a text and the
// pieces of three and four characters in them are hashed to coordinates of the vector.
// Texts that share words or parts of words get similar vectors, and the same text gets
// the same vector on every host. Texts of the same meaning in other words are not
// similar. It is safe for concurrent use.
type Embedder struct {
	info  model.Info
	count func(text string) int
}

// Weights of features: a shared word counts more than its pieces.
const (
	wordWeight  = 1.0
	pieceWeight = 0.35
)

// NewEmbedder makes the mock embedding model that a document declares. opts.Replaces is
// the model that it replaces; the vectors have the length that m declares in any case.
func NewEmbedder(m *spec.EmbeddingModel, opts Options) *Embedder {
	e := &Embedder{info: model.DescribeEmbedder(m), count: opts.Count}
	if other := opts.Replaces; other != nil {
		other := model.Describe(other)
		e.info.Replaces, e.info.Encoding = other.ID, other.Encoding
	}
	e.info.ID, e.info.Provider, e.info.Mock = cmp.Or(opts.ID, e.info.ID), "mock", true
	if e.count == nil {
		e.count = counter(e.info.Encoding)
	}
	return e
}

// Info describes the mock.
func (e *Embedder) Info() model.Info { return e.info }

// Embed returns one vector of length 1 for each text.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	vectors, usage := make([][]float32, len(texts)), model.Usage{}
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, usage, err
		}
		vectors[i] = hashed(text, max(e.info.Dimensions, 1))
		usage.Input += e.count(text)
	}
	return vectors, usage, nil
}

// hashed returns the vector of a text.
func hashed(text string, dimensions int) []float32 {
	sums := make([]float64, dimensions)
	add := func(feature string, weight float64) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(feature)) // a hash never fails
		sum := avalanche(h.Sum64())
		if sum>>63 == 1 { // the sign keeps features with the same coordinate from adding up
			weight = -weight
		}
		sums[sum%uint64(dimensions)] += weight
	}
	apart := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	words := strings.FieldsFunc(strings.ToLower(text), apart)
	if len(words) == 0 {
		words = []string{text} // a text without letters and digits
	}
	for _, word := range words {
		add(word, wordWeight)
		framed := []rune("^" + word + "$") // marks the beginnings and ends of words
		for _, n := range []int{3, 4} {
			for i := 0; i+n <= len(framed); i++ {
				add(string(framed[i:i+n]), pieceWeight)
			}
		}
	}
	return unit(sums)
}

// avalanche spreads a hash over all of its bits: the low bits of FNV alone are uneven.
func avalanche(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// unit scales a vector to length 1; a zero vector gets a 1 in its first coordinate.
func unit(sums []float64) []float32 {
	length := 0.0
	for _, x := range sums {
		length += x * x
	}
	v := make([]float32, len(sums))
	if length == 0 {
		v[0] = 1
		return v
	}
	for i, x := range sums {
		v[i] = float32(x / math.Sqrt(length))
	}
	return v
}
