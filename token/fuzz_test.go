package token_test

import "testing"

// FuzzCount compares every encoding with tiktoken-go.
func FuzzCount(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1024 {
			return // tiktoken-go takes quadratic time
		}
		for _, name := range distinct {
			same(t, encoding(t, name), reference(t, name), text)
		}
	})
}
