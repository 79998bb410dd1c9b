// Package nearest finds the nearest of some vectors by comparing all of them. For
// the few thousand that one conversation has that takes less time than any
// index would save, and it is exact.
package vectors

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Vectors are vectors of one length in the order in which they were added, each
// with a number that says what it stands for. Only Add changes it: it is not
// safe to call beside anything else. The zero value is empty.
type Vectors struct {
	dimensions int
	of         []int64   // what each vector stands for
	numbers    []float32 // the vectors one after the other, each of length 1
}

// errLength is what Add says of a vector that does not fit the others.
var errLength = errors.New("a vector of another length than the others")

// Add adds a vector that stands for the number of. Its length must be that of
// the others; it is stored with length 1, so that a product is a cosine.
func (v *Vectors) Add(of int64, vector []float32) error {
	if v.dimensions == 0 {
		v.dimensions = len(vector)
	}
	if len(vector) == 0 || len(vector) != v.dimensions {
		return errLength
	}
	v.of = append(v.of, of)
	v.numbers = append(v.numbers, vector...)
	normalise(v.numbers[len(v.numbers)-len(vector):])
	return nil
}

// Len is how many vectors there are.
func (v *Vectors) Len() int { return len(v.of) }

// Bytes is about what the vectors take in memory.
func (v *Vectors) Bytes() int { return 8*len(v.of) + 4*len(v.numbers) }

// Dimensions is the length of the vectors, 0 while there are none.
func (v *Vectors) Dimensions() int { return v.dimensions }

// Newest keeps the n vectors that were added last, and copies them.
func (v *Vectors) Newest(n int) Vectors {
	from := max(v.Len()-n, 0)
	return Vectors{dimensions: v.dimensions, of: slices.Clone(v.of[from:]), numbers: slices.Clone(v.numbers[from*v.dimensions:])}
}

// Match is a number that was found, and how near it is.
type Match struct {
	Of    int64   // what the vector stands for
	Score float32 // the cosine of the angle between the two, at most 1
}

// Nearest finds the k numbers for which wanted holds whose vectors are nearest
// to query, the nearest first, each once. Of equally near ones the greater
// number comes first. A query of another length finds nothing.
func (v *Vectors) Nearest(query []float32, k int, wanted func(of int64) bool) []Match {
	if len(query) != v.dimensions || k <= 0 {
		return nil
	}
	query = slices.Clone(query)
	normalise(query)
	best := map[int64]float32{}
	for i, of := range v.of {
		if !wanted(of) {
			continue
		}
		score := product(query, v.numbers[i*v.dimensions:(i+1)*v.dimensions])
		if had, found := best[of]; !found || score > had {
			best[of] = score
		}
	}
	matches := make([]Match, 0, len(best))
	for of, score := range best {
		matches = append(matches, Match{of, score})
	}
	slices.SortFunc(matches, func(a, b Match) int {
		switch {
		case a.Score > b.Score, a.Score == b.Score && a.Of > b.Of:
			return -1
		}
		return 1
	})
	return matches[:min(k, len(matches))]
}

// product is the sum of the products, in four sums beside each other: a
// processor adds them at once.
func product(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// normalise makes a vector's length 1; one that is all zeros stays so.
func normalise(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length) // one over a tiny length would be infinite as a float32
	}
}

// version begins what AppendBinary writes; another number is another layout.
const version = 1

// AppendBinary writes the vectors behind b: the version, the dimensions and the
// number of vectors, then what each stands for and its numbers as IEEE 754, all
// little-endian.
func (v *Vectors) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(append(b, version), uint32(v.dimensions))
	b = binary.LittleEndian.AppendUint32(b, uint32(v.Len()))
	for _, of := range v.of {
		b = binary.LittleEndian.AppendUint64(b, uint64(of))
	}
	for _, x := range v.numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b, nil
}

// errBinary is what is said of bytes that AppendBinary did not write.
var errBinary = errors.New("these are no vectors of this version")

// AddBinary adds the vectors that AppendBinary wrote, all or none.
func (v *Vectors) AddBinary(b []byte) error {
	if len(b) < 9 || b[0] != version {
		return errBinary
	}
	dimensions := int(binary.LittleEndian.Uint32(b[1:]))
	n := int(binary.LittleEndian.Uint32(b[5:]))
	b = b[9:]
	switch {
	case n == 0 && len(b) == 0:
		return nil
	case dimensions <= 0 || n < 0 || n > len(b)/8 || dimensions > len(b)/4 || len(b) != n*(8+4*dimensions):
		return errBinary
	case v.dimensions != 0 && v.dimensions != dimensions:
		return errLength
	}
	v.dimensions = dimensions
	for i := range n {
		v.of = append(v.of, int64(binary.LittleEndian.Uint64(b[8*i:])))
	}
	for b = b[8*n:]; len(b) > 0; b = b[4:] {
		v.numbers = append(v.numbers, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return nil
}
