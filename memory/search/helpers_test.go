package search_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// words counts a word as one token.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }
