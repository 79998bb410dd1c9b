package servertest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
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

// RediSearchVariable is the environment variable with the path of the module redisearch.so.
const RediSearchVariable = "QTYPE_REDIS_SEARCH"

// RediSearch starts a Redis server with the module of search. The version of Debian, 1.2,
// has no vectors; no later one was found in a package registry.
func RediSearch() (*Server, error) {
	module := os.Getenv(RediSearchVariable)
	if module == "" {
		return nil, fmt.Errorf("%w: set %s to the module redisearch.so", ErrMissing, RediSearchVariable)
	}
	return Redis("--appendonly", "no", "--loadmodule", module)
}
