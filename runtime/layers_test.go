package runtime_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// layers are the files of the package. A file refers to declarations in its own
// file and in the files before it.
var layers = []string{
	"parts", "resources", "app", "policy", "secrets", "panics", "position", "error_code", "retry", "retry_batch", // an application
	"layout", "node", "stage", "flow", "sink", // a compiled flow
	"step_variables", "flow_trace", "stopwatch", "step_events", "node_process", "step_trace", "pipe", "batch_sink", "serial_sink", "parallel", "chain", // rows in it
	"stores", "model_info", "cache", "database", "redact_model", "observe_model", "models", "rankers", "indexes", // what steps use
	"audit", "budget", "compile",
	"progress", "session", "row_alloc", "result", "input", "run_state", "checkpoint", "row_codec", // a run
	"memory_blocks", "memory_config", "sampling", "redact_tool", "observe_tool", "tools", "redact", "new", // making an application
	"segment", "sections", "run", "signin", "public_error", "effects",
}

func TestFiles_ReferToEarlierFiles(t *testing.T) {
	testkit.CheckFileOrder(t, layers, 500)
}
