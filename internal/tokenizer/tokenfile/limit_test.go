package tokenfile_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
)

// TestCount_Limit searches each text, with all its parts, a limited number of times, and counts each byte
// beyond the limit as a token. The expression takes exponential time for each word.
func TestCount_Limit(t *testing.T) {
	const regex, model = `{"Regex": "(b|bb|b)+$|,"}`, `"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, ",": 1}}`
	const split = `{"type": "Split", "pattern": ` + regex + `, "behavior": "Removed", "invert": true}`
	const words = 500
	text := strings.Repeat("bbbb,", words)
	for name, c := range map[string]struct {
		json string
		all  int // tokens without a limit
	}{
		"split":      {`"pre_tokenizer": ` + split, words},
		"each part":  {`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Punctuation"}, ` + split + `]}`, 2 * words},
		"normalizer": {`"normalizer": {"type": "Replace", "pattern": ` + regex + `, "content": ","}, "pre_tokenizer": {"type": "Punctuation"}`, 2 * words},
		"added tokens": {`"added_tokens": [{"id": 2, "content": ",", "normalized": false}], "pre_tokenizer": ` + split,
			2 * words},
	} {
		const limit = 20
		for most, want := range map[int]func(int) bool{
			1 << 30: func(n int) bool { return n == c.all },
			limit:   func(n int) bool { return n > len(text)/2 && n <= len(text) },
			0:       func(n int) bool { return n == len(text) },
		} {
			texts := 0
			count, err := tokenfile.ParseLimited([]byte("{"+c.json+", "+model+"}"), func(int) func() bool {
				texts++
				searches := 0
				return func() bool { searches++; return searches > most }
			})
			testkit.Must(t, err)
			for range 2 { // each text has its own budget
				if n := count(text); !want(n) {
					t.Errorf("%s, %d searches: %d tokens of %d bytes", name, most, n, len(text))
				}
			}
			if texts != 2 {
				t.Errorf("%s: %d budgets for 2 texts", name, texts)
			}
		}
	}
}
