package servertest

import (
	_ "embed" // for pglite.mjs
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// pglite is the script of the server.
//
//go:embed pglite.mjs
var pglite []byte

// PGliteVariable is the environment variable with the directory node_modules that has the
// packages pglite, pglite-pgvector and pglite-socket of @electric-sql.
const PGliteVariable = "QTYPE_PGLITE"

// PGVector starts a PostgreSQL with the extension vector: PGlite, which is compiled to
// WebAssembly. It runs the statements of all connections one after another. User and
// database are postgres; there is no password.
func PGVector() (*Server, error) {
	modules := os.Getenv(PGliteVariable)
	if modules == "" {
		return nil, fmt.Errorf("%w: set %s to a node_modules with @electric-sql/pglite, pglite-pgvector and pglite-socket", ErrMissing, PGliteVariable)
	}
	node, err := find("node")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "pglite.mjs")
		return exec.Command(node, script, modules, strconv.Itoa(s.Port)), os.WriteFile(script, pglite, 0o600)
	}
	return launch(&Server{start: start, ready: checkListens})
}
