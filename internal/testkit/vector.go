package testkit

import "math/rand/v2"

// RandomVector returns a vector whose components have the standard normal distribution.
func RandomVector(r *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}
