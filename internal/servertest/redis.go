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
