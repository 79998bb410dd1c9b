package servertest

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
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

// qdrant is the script of the server.
//
//go:embed qdrant.py
var qdrant []byte

// QdrantVariable is the environment variable with the path of a Python that has the
// package qdrant-client.
const QdrantVariable = "QTYPE_QDRANT"

// Qdrant starts a server with Qdrant's REST API over the in-memory mode of the official
// client. No registry has Qdrant itself. The key, if not empty, must be part of requests.
func Qdrant(key string) (*Server, error) {
	python := os.Getenv(QdrantVariable)
	if python == "" {
		return nil, fmt.Errorf("%w: set %s to a python with qdrant-client", ErrMissing, QdrantVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "qdrant.py")
		return exec.Command(python, script, strconv.Itoa(s.Port), key), os.WriteFile(script, qdrant, 0o600)
	}
	return launch(&Server{start: start, ready: checkListens})
}

// ChromaVariable is the environment variable with the path of the program chroma of the
// Python package chromadb.
const ChromaVariable = "QTYPE_CHROMA"

// Chroma starts a Chroma server.
func Chroma() (*Server, error) {
	program := os.Getenv(ChromaVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program chroma of chromadb", ErrMissing, ChromaVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		cmd := exec.Command(program, "run", "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--path", filepath.Join(s.Folder, "data"))
		cmd.Env = append(os.Environ(), "ANONYMIZED_TELEMETRY=False")
		return cmd, nil
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/api/v2/heartbeat") }})
}

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

// llamaIndex is the script of LlamaIndex.
//
//go:embed llamaindex.py
var llamaIndex []byte

// LlamaRedisVariable is the environment variable with the path of a Python that has
// LlamaIndex's class of Redis. Its packages need older versions than those of other stores.
const LlamaRedisVariable = "QTYPE_LLAMA_REDIS"

// LlamaIndex runs LlamaIndex's class of a store, qdrant, chroma or redis, in the Python of
// QdrantVariable or LlamaRedisVariable. The action write adds a chunk to the collection, read returns what a
// search finds, as JSON.
func LlamaIndex(t testing.TB, store, address, key, name, action string) []byte {
	t.Helper()
	variable := QdrantVariable
	if store == "redis" {
		variable = LlamaRedisVariable
	}
	python := os.Getenv(variable)
	if python == "" {
		Need(t, fmt.Errorf("%w: set %s to a python with LlamaIndex's class of %s", ErrMissing, variable, store))
	}
	script := filepath.Join(t.TempDir(), "llamaindex.py")
	if err := os.WriteFile(script, llamaIndex, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script, store, address, key, name, action)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("LlamaIndex: %v", err)
	}
	return out
}
