package tokenizer_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain: no goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
