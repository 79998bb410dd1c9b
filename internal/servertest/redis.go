package servertest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Redis starts a Redis or Valkey server with an append-only file. The settings are
// arguments such as "--requirepass", "secret".
func Redis(settings ...string) (*Server, error) {
	path, err := find("redis-server")
	if err != nil {
		var valkeyErr error
		if path, valkeyErr = find("valkey-server"); valkeyErr != nil {
			return nil, err
		}
	}
	return redisProgram(path, settings)
}

// redisProgram starts a Redis server by its program.
func redisProgram(path string, settings []string) (*Server, error) {
	start := func(s *Server) (*exec.Cmd, error) {
		args := []string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Folder,
			"--save", "", "--appendonly", "yes", "--maxmemory-policy", "noeviction"}
		return exec.Command(path, slices.Concat(args, settings)...), nil
	}
	return launch(&Server{start: start, ready: checkPing})
}

// checkPing returns an error unless a Redis server answers, if only to ask for a
// password.
func checkPing(s *Server) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // reading only
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "+PONG") && !strings.HasPrefix(line, "-NOAUTH") {
		err = fmt.Errorf("%s", strings.TrimSpace(line))
	}
	return err
}

// RedisStackVariable is the environment variable with a folder that has redis-server of Redis 7.1
// or later, and redisearch.so of RediSearch 2.4 or later.
const RedisStackVariable = "QTYPE_REDIS_STACK"

// RedisStack starts a Redis server whose module of search has vectors.
func RedisStack() (*Server, error) {
	folder := os.Getenv(RedisStackVariable)
	if folder == "" {
		return nil, fmt.Errorf("%w: set %s to a folder with redis-server and redisearch.so", ErrMissing, RedisStackVariable)
	}
	return redisProgram(filepath.Join(folder, "redis-server"), []string{"--appendonly", "no", "--loadmodule", filepath.Join(folder, "redisearch.so")})
}

// TemporalVariable is the environment variable with the path of Temporal's command line
// program, which has a server for development.
const TemporalVariable = "QTYPE_TEMPORAL"

// Temporal starts a Temporal server that keeps its data in a file, so that Restart continues
// its workflows.
func Temporal() (*Server, error) {
	program := os.Getenv(TemporalVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program temporal of github.com/temporalio/cli", ErrMissing, TemporalVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		return exec.Command(program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", strconv.Itoa(s.Port),
			"--db-filename", filepath.Join(s.Folder, "temporal.db"), "--log-level", "error"), nil
	}
	ready := func(s *Server) error {
		conn, err := s.dial() // cheaper than the program
		if err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
		out, err := exec.Command(program, "operator", "namespace", "describe", "default", "--address", s.Address()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	return launch(&Server{start: start, ready: ready})
}

// TemporalProgram returns the path of Temporal's command line program; empty if there is none.
func TemporalProgram() string { return os.Getenv(TemporalVariable) }
