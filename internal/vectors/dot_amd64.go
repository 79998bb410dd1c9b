package vectors

import "golang.org/x/sys/cpu"

// hasAVX2 reports whether the processor has the instructions of dot_amd64.s. It is
// detected when the program runs, so that a program for any amd64 processor uses them.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func floatProductsAVX2(query, rows, out *float32, length, count int)

//go:noescape
func codeProductsAVX2(query *int16, rows *int8, out *int32, length, count int)

func dotFloats(query, rows, out []float32) {
	if !hasAVX2 || len(out) == 0 || len(query) == 0 {
		floatProducts(query, rows, out)
		return
	}
	_ = rows[len(query)*len(out)-1] // the assembly does not check bounds
	floatProductsAVX2(&query[0], &rows[0], &out[0], len(query), len(out))
}

func dotCodes(query []int16, rows []int8, out []int32) {
	if !hasAVX2 || len(out) == 0 || len(query) == 0 {
		codeProducts(query, rows, out)
		return
	}
	_ = rows[len(query)*len(out)-1] // the assembly does not check bounds
	codeProductsAVX2(&query[0], &rows[0], &out[0], len(query), len(out))
}
