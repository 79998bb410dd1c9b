package servertest

import (
	_ "embed" // for aimock.mjs
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// aimock is the script of the server.
//
//go:embed aimock.mjs
var aimock []byte

// AIMockVariable is the environment variable with the directory node_modules that has the
// package @copilotkit/aimock.
const AIMockVariable = "QTYPE_AIMOCK"

// AIMock starts a server that answers by the protocols of OpenAI, Anthropic, Google, Ollama and
// Amazon Bedrock; aimock.mjs has the answers.
func AIMock() (*Server, error) {
	modules := os.Getenv(AIMockVariable)
	if modules == "" {
		return nil, fmt.Errorf("%w: set %s to a node_modules with @copilotkit/aimock", ErrMissing, AIMockVariable)
	}
	node, err := find("node")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "aimock.mjs")
		return exec.Command(node, script, modules, strconv.Itoa(s.Port)), os.WriteFile(script, aimock, 0o600)
	}
	return launch(&Server{start: start, ready: checkListens})
}
