package vectors_test

import (
	"math"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/vectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cosine is the textbook formula.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// TestNearest compares results, after encoding and decoding, with a sort of all vectors
// by cosine.
func TestNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dimensions := rapid.IntRange(1, 9).Draw(t, "dimensions")
		vector := rapid.SliceOfN(rapid.Float32Range(-5, 5), dimensions, dimensions)
		var v vectors.Vectors
		best := map[int64]float64{}
		query := vector.Draw(t, "query")
		for range rapid.IntRange(0, 30).Draw(t, "vectors") {
			id, one := rapid.Int64Range(1, 12).Draw(t, "of"), vector.Draw(t, "vector")
			if err := v.Add(id, one); err != nil {
				t.Fatal(err)
			}
			if id%3 == 0 {
				continue // does not match
			}
			if c, found := best[id]; !found || cosine(query, one) > c {
				best[id] = cosine(query, one)
			}
		}
		raw, err := v.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var read vectors.Vectors
		if err := read.AddBinary(raw); err != nil {
			t.Fatal(err)
		}
		k := rapid.IntRange(0, 12).Draw(t, "k")
		got := read.Nearest(query, k, func(id int64) bool { return id%3 != 0 })
		var scores []float64
		for _, c := range best {
			scores = append(scores, c)
		}
		slices.SortFunc(scores, func(a, b float64) int { return -int(math.Copysign(1, a-b)) })
		if len(got) != min(k, len(best)) {
			t.Fatalf("found %d of %d, k %d", len(got), len(best), k)
		}
		for i, m := range got {
			if math.Abs(float64(m.Score)-best[m.ID]) > 1e-4 || math.Abs(float64(m.Score)-scores[i]) > 1e-4 {
				t.Errorf("%d: %v, its cosine is %v, the %d. best is %v", i, m, best[m.ID], i+1, scores[i])
			}
		}
	})
}

// TestAdd_TinyVectors checks that normalizing short vectors keeps their direction.
func TestAdd_TinyVectors(t *testing.T) {
	for _, x := range []float32{1, 1e-20, 7.34684e-40, math.SmallestNonzeroFloat32, math.MaxFloat32} {
		var v vectors.Vectors
		if err := v.Add(1, []float32{x, -x}); err != nil {
			t.Fatal(err)
		}
		got := v.Nearest([]float32{x, 0}, 1, func(int64) bool { return true })
		if len(got) != 1 || math.Abs(float64(got[0].Score)-math.Sqrt2/2) > 1e-6 {
			t.Errorf("%g: %v", x, got)
		}
	}
}

// TestAdd_Invalid checks that vectors of another length and malformed bytes are
// rejected as a whole.
func TestAdd_Invalid(t *testing.T) {
	var v vectors.Vectors
	if err := v.Add(1, []float32{1, 2}); err != nil {
		t.Fatal(err)
	}
	if v.Add(2, []float32{1, 2, 3}) == nil || v.Add(2, nil) == nil {
		t.Error("a vector of another length was accepted")
	}
	raw, _ := v.AppendBinary(nil)
	for i := range raw {
		if v.AddBinary(raw[:i]) == nil {
			t.Errorf("%d of %d bytes were accepted", i, len(raw))
		}
	}
	if v.AddBinary(append(raw, 0)) == nil || v.AddBinary(append([]byte{9}, raw[1:]...)) == nil {
		t.Error("malformed bytes were accepted")
	}
	if v.Len() != 1 {
		t.Errorf("%d vectors, want 1", v.Len())
	}
	if got := v.Nearest([]float32{1}, 3, func(int64) bool { return true }); len(got) != 0 {
		t.Errorf("a query of another length found %v", got)
	}
}

func FuzzAddBinary(f *testing.F) {
	var v vectors.Vectors
	_ = v.Add(7, []float32{1, 2, 3})
	raw, _ := v.AppendBinary(nil)
	f.Add(raw)
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v vectors.Vectors
		if v.AddBinary(raw) != nil {
			return
		}
		again, _ := v.AppendBinary(nil)
		if v.Len() > 0 && !slices.Equal(raw, again) {
			t.Errorf("%x was read and written as %x", raw, again)
		}
	})
}
