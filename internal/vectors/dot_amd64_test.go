package vectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProducts_AVX2 compares the assembly with the code in Go.
func TestProducts_AVX2(t *testing.T) {
	if !hasAVX2 {
		t.Skip("SKIPPED: the processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(1, 1))
	for length := int8Step; length <= 40*int8Step; length += int8Step {
		const count = 3
		query, rows, got, want := make([]int16, length), make([]int8, count*length+1), make([]int32, count+1), make([]int32, count+1)
		floats, floatRows, gotFloats, wantFloats := make([]float32, length), make([]float32, count*length), make([]float32, count), make([]float32, count)
		for i := range query {
			query[i], floats[i] = int16(r.IntN(255)-127), r.Float32()-0.5
		}
		for i := range floatRows {
			rows[i], floatRows[i] = int8(r.IntN(256)-128), r.Float32()-0.5
		}
		dotCodes(query, rows[:count*length], got[:count])
		codeProducts(query, rows[:count*length], want[:count])
		short := length - int8Step + floatStep*(1+r.IntN(4)) // all multiples of floatStep
		dotFloats(floats[:short], floatRows[:count*short], gotFloats)
		floatProducts(floats[:short], floatRows[:count*short], wantFloats)
		for i := range count {
			if got[i] != want[i] || got[count] != 0 {
				t.Fatalf("length %d: codes %v, want %v", length, got, want)
			}
			if math.Abs(float64(gotFloats[i]-wantFloats[i])) > 1e-4 {
				t.Fatalf("length %d: %v, want %v", short, gotFloats, wantFloats)
			}
		}
	}
}

func BenchmarkProducts(b *testing.B) {
	const length, count = 384, 100_000
	query, rows, out := make([]int16, length), make([]int8, length*count), make([]int32, count)
	floats, floatRows, floatOut := make([]float32, length), make([]float32, length*count), make([]float32, count)
	for name, run := range map[string]func(){
		"int8 Go":      func() { codeProducts(query, rows, out) },
		"int8 AVX2":    func() { dotCodes(query, rows, out) },
		"float32 Go":   func() { floatProducts(floats, floatRows, floatOut) },
		"float32 AVX2": func() { dotFloats(floats, floatRows, floatOut) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run()
			}
		})
	}
}
