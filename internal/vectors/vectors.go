// Package vectors compares vectors: the dot products, encodings and selections that the
// retrieval of a memory and the embedded indexes share. Vectors is a small set with ids,
// Matrix the layout of large ones. On amd64 processors with AVX2, the scans use it.
package vectors

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
)

// Vectors holds vectors of one length, each with an id. Methods that add vectors must
// not be called concurrently with others. The zero value is empty.
type Vectors struct {
	dimensions  int
	id          []int64   // of each vector
	coordinates []float32 // of all vectors, concatenated; each vector has length 1
}

// errLength is returned for a vector of another length.
var errLength = errors.New("the vector has another length than the others")

// Add adds a vector with an id. It must have the length of the others. It is
// normalized, so that dot products are cosines.
func (v *Vectors) Add(id int64, vector []float32) error {
	if v.dimensions == 0 {
		v.dimensions = len(vector)
	}
	if len(vector) == 0 || len(vector) != v.dimensions {
		return errLength
	}
	v.id = append(v.id, id)
	v.coordinates = append(v.coordinates, vector...)
	Normalize(v.coordinates[len(v.coordinates)-len(vector):])
	return nil
}

// Len returns the number of vectors.
func (v *Vectors) Len() int { return len(v.id) }

// Bytes returns the approximate size in memory.
func (v *Vectors) Bytes() int { return 8*len(v.id) + 4*len(v.coordinates) }

// Dimensions returns the length of the vectors, 0 while there are none.
func (v *Vectors) Dimensions() int { return v.dimensions }

// Newest returns a copy of the n vectors that were added last.
func (v *Vectors) Newest(n int) Vectors {
	from := max(v.Len()-n, 0)
	return Vectors{dimensions: v.dimensions, id: slices.Clone(v.id[from:]), coordinates: slices.Clone(v.coordinates[from*v.dimensions:])}
}

// Match is a result of Nearest.
type Match struct {
	ID    int64   // of the vector
	Score float32 // cosine of the angle, at most 1
}

// Nearest returns the k nearest ids for which match returns true, the nearest first,
// without repetition. Of equally near ones, the greater id comes first. A query of
// another length finds nothing.
func (v *Vectors) Nearest(query []float32, k int, match func(id int64) bool) []Match {
	if k <= 0 {
		return nil
	}
	best := map[int64]float32{}
	for id, score := range v.Scores(query) {
		if previous, found := best[id]; match(id) && (!found || score > previous) {
			best[id] = score
		}
	}
	matches := make([]Match, 0, len(best))
	for id, score := range best {
		matches = append(matches, Match{id, score})
	}
	slices.SortFunc(matches, func(a, b Match) int {
		switch {
		case a.Score > b.Score, a.Score == b.Score && a.ID > b.ID:
			return -1
		}
		return 1
	})
	return matches[:min(k, len(matches))]
}

// IDs returns the ids of all vectors, in the order in which they were added. They must not be changed.
func (v *Vectors) IDs() []int64 { return v.id }

// Scores yields the ids of all vectors, in the order in which they were added, with their cosines. A query of another
// length has none.
func (v *Vectors) Scores(query []float32) iter.Seq2[int64, float32] {
	return func(yield func(int64, float32) bool) {
		if len(query) != v.dimensions {
			return
		}
		query = slices.Clone(query)
		Normalize(query)
		for i, id := range v.id {
			if !yield(id, Dot(query, v.coordinates[i*v.dimensions:(i+1)*v.dimensions])) {
				return
			}
		}
	}
}

// version is the first byte of the binary form.
const version = 1

// AppendBinary appends the vectors to b: the version, the dimensions and the number of
// vectors, then the ids, then the coordinates as IEEE 754, all little-endian.
func (v *Vectors) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(append(b, version), uint32(v.dimensions))
	b = binary.LittleEndian.AppendUint32(b, uint32(v.Len()))
	for _, id := range v.id {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	for _, x := range v.coordinates {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b, nil
}

// errBinary is returned for malformed bytes.
var errBinary = errors.New("malformed vectors, or another version")

// AddBinary adds the vectors of AppendBinary's output, all or none.
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
		v.id = append(v.id, int64(binary.LittleEndian.Uint64(b[8*i:])))
	}
	for b = b[8*n:]; len(b) > 0; b = b[4:] {
		v.coordinates = append(v.coordinates, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return nil
}

// Base64 returns the components in little-endian order as base64.
func Base64(v []float32) string {
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
