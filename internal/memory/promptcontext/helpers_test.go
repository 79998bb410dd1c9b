package promptcontext_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runes counts characters, so that sizes can be checked by eye.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }
