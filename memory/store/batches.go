package store

import "slices"

// InBatches calls change with at most size elements at once and returns the sum of its results, until an error.
func InBatches[T any](all []T, size int, change func([]T) (int, error)) (changed int, err error) {
	for batch := range slices.Chunk(all, size) {
		n, err := change(batch)
		if changed += n; err != nil {
			return changed, err
		}
	}
	return changed, nil
}
