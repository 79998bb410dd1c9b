package promptcontext_test

import (
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runes counts characters, so that sizes can be checked by eye.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
