package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TablesVariable is the environment variable with the path of a Python that has pyarrow,
// DuckDB and polars.
const TablesVariable = "QTYPE_TABLES"

// Tables runs a script in the Python of TablesVariable and returns its output.
func Tables(t testing.TB, script string, args ...string) []byte {
	t.Helper()
	python := os.Getenv(TablesVariable)
	if python == "" {
		Need(t, fmt.Errorf("%w: set %s to a python with pyarrow, duckdb and polars", ErrMissing, TablesVariable))
	}
	cmd := exec.Command(python, append([]string{script}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out
}
