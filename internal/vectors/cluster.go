package vectors

import (
	"context"
	"math/rand/v2"
)

// Cluster returns up to k centers of a sample by k-means on the sphere: each vector
// belongs to the center with the greatest cosine. The result depends only on the
// arguments. The sample needs at least one row.
func Cluster(ctx context.Context, sample *Matrix, k, iterations int) (*Matrix, error) {
	r := rand.New(rand.NewPCG(1, uint64(sample.rows)))
	k = min(k, sample.rows)
	centers := NewMatrix(sample.encoding, sample.dimensions)
	for _, row := range r.Perm(sample.rows)[:k] {
		centers.AppendRow(sample, row)
	}
	for range iterations {
		sums := make([]float32, k*sample.dimensions)
		counts := make([]int, k)
		for row := range sample.rows {
			if row%scanRows == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c := centers.Nearest(sample.RowQuery(row))
			counts[c]++
			sample.AddTo(sums[c*sample.dimensions:(c+1)*sample.dimensions], row)
		}
		next := NewMatrix(sample.encoding, sample.dimensions)
		for c := range k {
			if counts[c] == 0 {
				next.AppendRow(sample, r.IntN(sample.rows))
				continue
			}
			next.Append(sums[c*sample.dimensions : (c+1)*sample.dimensions])
		}
		centers = next
	}
	return centers, nil
}

// Nearest returns the row with the greatest cosine, -1 without rows.
func (m *Matrix) Nearest(q *Query) int {
	best, row := float32(-2), -1
	m.Scan(q, func(first int, scores []float32) {
		for i, score := range scores {
			if score > best {
				best, row = score, first+i
			}
		}
	})
	return row
}
