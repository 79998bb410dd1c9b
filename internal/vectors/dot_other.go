//go:build !amd64

package vectors

func dotFloats(query, rows, out []float32) { floatProducts(query, rows, out) }

func dotCodes(query []int16, rows []int8, out []int32) { codeProducts(query, rows, out) }
