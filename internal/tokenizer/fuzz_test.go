package tokenizer_test

import "testing"

// FuzzCount compares every encoding with tiktoken-go, and chunks with the whole.
func FuzzCount(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1024 {
			return // tiktoken-go takes quadratic time
		}
		for _, name := range distinct {
			e := encoding(t, name)
			same(t, e, reference(t, name), text)
			if text != "" && e.Chunked(text, 50, 7) != e.Chunked(text, len(text), 0) {
				t.Errorf("%s: chunks of %q differ from the whole", name, text)
			}
		}
	})
}
