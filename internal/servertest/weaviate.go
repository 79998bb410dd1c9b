package servertest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// WeaviateVariable is the environment variable with the path of the program weaviate-server.
const WeaviateVariable = "QTYPE_WEAVIATE"

// weaviatePorts are the variables of ports besides that of HTTP. The first is that of gRPC.
var weaviatePorts = []string{"GRPC_PORT", "CLUSTER_GOSSIP_BIND_PORT", "CLUSTER_DATA_BIND_PORT", "RAFT_PORT", "RAFT_INTERNAL_RPC_PORT"}

// Weaviate starts a Weaviate server, which has no vectorizers. Its More has the port of gRPC.
func Weaviate() (*Server, error) {
	program := os.Getenv(WeaviateVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program weaviate-server", ErrMissing, WeaviateVariable)
	}
	more, claims := make([]int, len(weaviatePorts)), make([]io.Closer, len(weaviatePorts))
	for i := range more {
		var err error
		if more[i], claims[i], err = claim(); err != nil {
			return nil, err
		}
	}
	start := func(s *Server) (*exec.Cmd, error) {
		cmd := exec.Command(program, "--scheme", "http", "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port))
		cmd.Env = append(os.Environ(), "PERSISTENCE_DATA_PATH="+filepath.Join(s.Folder, "data"),
			"AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED=true", "DEFAULT_VECTORIZER_MODULE=none", "ENABLE_MODULES=",
			"DISABLE_TELEMETRY=true", "CLUSTER_ADVERTISE_ADDR=127.0.0.1", "CLUSTER_BIND_ADDR=127.0.0.1", "CLUSTER_HOSTNAME=node1", "RAFT_JOIN=node1", "RAFT_BOOTSTRAP_EXPECT=1")
		for i, name := range weaviatePorts {
			cmd.Env = append(cmd.Env, name+"="+strconv.Itoa(more[i]))
		}
		for _, c := range claims {
			_ = c.Close() // the server needs UDP, too; closing again has no effect
		}
		return cmd, nil
	}
	return launch(&Server{More: more, start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/v1/.well-known/ready") }})
}
