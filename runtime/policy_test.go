package runtime

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestConnections: as many connections are kept open as the step with the most workers
// uses, and never fewer than the usual number.
func TestConnections(t *testing.T) {
	for workers, want := range map[int]int{2: minConnections, 256: 256} {
		ask := &spec.LLMInference{}
		ask.ConcurrencyConfig = &spec.ConcurrencyConfig{NumWorkers: workers}
		app := &spec.Application{Flows: []*spec.Flow{{ID: "main", Steps: []*spec.StepItem{{Step: ask}}}}}
		if got := connections(app); got != want {
			t.Errorf("%d workers: %d connections, want %d", workers, got, want)
		}
	}
}
