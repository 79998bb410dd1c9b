package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestMain(m *testing.M) {
	testkit.LimitChecks()
	goleak.VerifyTestMain(m)
}

func TestInProcess(t *testing.T) {
	storetest.Run(t, func(*testing.T) memory.Store { return memory.NewInProcess() })
}
