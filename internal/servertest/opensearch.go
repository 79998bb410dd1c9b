package servertest

import (
	_ "embed" // for OpenSearch.java
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// openSearch is the program of the server.
//
//go:embed OpenSearch.java
var openSearch []byte

// OpenSearchVariable is the environment variable with the directory of OpenSearch's jars:
// those of .ci/opensearch/pom.xml, and those in the archive of the k-NN plugin.
const OpenSearchVariable = "QTYPE_OPENSEARCH"

// OpenSearch starts an OpenSearch with scripts and the k-NN plugin, which has no native
// libraries: its engine is lucene. The start takes about 10 s.
func OpenSearch() (*Server, error) {
	jars := os.Getenv(OpenSearchVariable)
	if jars == "" {
		return nil, fmt.Errorf("%w: set %s to a directory with the jars of OpenSearch", ErrMissing, OpenSearchVariable)
	}
	java, err := find("java")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		program := filepath.Join(s.Folder, "OpenSearch.java")
		return exec.Command(java, "-Xmx700m", "-cp", filepath.Join(jars, "*"), program, s.Folder, strconv.Itoa(s.Port)), os.WriteFile(program, openSearch, 0o600)
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/") }})
}
