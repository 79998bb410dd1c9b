package diag

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLeastEdits: the quick bound never exceeds the number of edits, so that Nearest misses
// no candidate.
func TestLeastEdits(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[a-cA-C_0-2]{0,8}`), rapid.StringN(0, 8, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		least, most := leastEdits(lettersOf(a), lettersOf(b)), edits([]rune(strings.ToLower(a)), []rune(strings.ToLower(b)))
		if least > most {
			t.Fatalf("%q and %q: at least %d edits, but %d are enough", a, b, least, most)
		}
	})
}
