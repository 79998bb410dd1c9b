package runtime_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// layers are the files of the package. A file refers to declarations in its own
// file and in the files before it.
var layers = []string{
	"turn_work", "app", "error_code", "retry", // an application
	"stage",                                                // a compiled flow
	"flow_trace", "node_process", "batch_sink", "parallel", // rows in it
	"stores", "cache", "models", "indexes", // what steps use
	"compile",
	"input", "checkpoint", "row_codec", // a run
	"memory_config", "tools", "new", // making an application
	"segment", "run", "effects",
}

func TestFiles_ReferToEarlierFiles(t *testing.T) {
	testkit.CheckFileOrder(t, layers, 500)
}
