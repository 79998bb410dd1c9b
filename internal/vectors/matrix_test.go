package vectors_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/vectors"
)

// TestMatrix_Scan compares scans with the formula, for lengths around the steps of the
// processor's instructions, and before and after encoding.
func TestMatrix_Scan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dimensions := range []int{1, 7, 8, 9, 31, 32, 33, 64, 100, 384} {
		for encoding, tolerance := range map[vectors.Encoding]float64{vectors.Float32: 1e-6, vectors.Int8: 0.02, vectors.Int4: 0.15} {
			m, decoded := vectors.NewMatrix(encoding, dimensions), vectors.NewMatrix(encoding, dimensions)
			var rows [][]float32
			for row := range 300 {
				rows = append(rows, testkit.RandomVector(r, dimensions))
				m.Append(rows[row])
				testkit.Must(t, decoded.AppendEncoded(m.Encode(row)))
			}
			query := testkit.RandomVector(r, dimensions)
			n := 0
			decoded.Scan(decoded.NewQuery(query), func(first int, scores []float32) {
				for i, score := range scores {
					if want := cosine(query, rows[first+i]); math.Abs(want-float64(score)) > tolerance {
						t.Errorf("encoding %d, %d dimensions, row %d: %v, want %v", encoding, dimensions, first+i, score, want)
					}
					n++
				}
			})
			if n != len(rows) {
				t.Errorf("%d rows", n)
			}
		}
	}
	if vectors.NewMatrix(vectors.Int8, 8).AppendEncoded(make([]byte, 8)) == nil {
		t.Error("a row of another length is accepted")
	}
}

func TestTop(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		top := vectors.NewTop(1 + r.IntN(12))
		all := vectors.NewTop(1_000)
		for id := range int64(r.IntN(60)) {
			m := vectors.Match{ID: (id * 37) % 61, Score: float32(r.IntN(8))}
			top.Offer(m)
			all.Offer(m)
		}
		got := top.Sorted()
		if d := cmp.Diff(all.Sorted()[:len(got)], got); d != "" {
			t.Fatal(d)
		}
	}
}

// TestCluster checks that vectors around a few directions are separated.
func TestCluster(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const groups, dimensions = 5, 32
	var directions [][]float32
	for range groups {
		directions = append(directions, testkit.RandomVector(r, dimensions))
	}
	sample := vectors.NewMatrix(vectors.Int8, dimensions)
	for i := range 500 {
		v := slices.Clone(directions[i%groups])
		for j := range v {
			v[j] += float32(r.NormFloat64()) * 0.1
		}
		sample.Append(v)
	}
	centers, err := vectors.Cluster(t.Context(), sample, 20, 8)
	testkit.Must(t, err)
	owner := map[int]int{}
	for i := range sample.Rows() {
		c := centers.Nearest(sample.RowQuery(i))
		if group, known := owner[c]; known && group != i%groups {
			t.Fatalf("center %d has vectors of groups %d and %d", c, group, i%groups)
		}
		owner[c] = i % groups
	}
}

func BenchmarkMatrix_Scan(b *testing.B) {
	const rows, dimensions = 100_000, 384
	r := rand.New(rand.NewPCG(4, 4))
	for name, encoding := range map[string]vectors.Encoding{"float32": vectors.Float32, "int8": vectors.Int8} {
		m := vectors.NewMatrix(encoding, dimensions)
		v := testkit.RandomVector(r, dimensions)
		for range rows {
			v[r.IntN(dimensions)] = float32(r.NormFloat64())
			m.Append(v)
		}
		q := m.NewQuery(v)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(rows * m.RowBytes()))
			for b.Loop() {
				top := vectors.NewTop(10)
				m.Scan(q, func(first int, scores []float32) {
					for i, score := range scores {
						if floor, full := top.Floor(); !full || score > floor {
							top.Offer(vectors.Match{ID: int64(first + i), Score: score})
						}
					}
				})
			}
		})
	}
}
