package servertest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Redis starts a Redis or Valkey server that keeps an append-only file. The
// settings are arguments such as "--requirepass", "secret".
func Redis(settings ...string) (*Server, error) {
	path, err := find("redis-server")
	if err != nil {
		var again error
		if path, again = find("valkey-server"); again != nil {
			return nil, err
		}
	}
	start := func(s *Server) (*exec.Cmd, error) {
		args := []string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Folder,
			"--save", "", "--appendonly", "yes", "--maxmemory-policy", "noeviction"}
		return exec.Command(path, slices.Concat(args, settings)...), nil
	}
	return launch(&Server{start: start, ready: pong})
}

// pong tells whether a Redis server answers, be it that it wants a password.
func pong(s *Server) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", s.Address())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written that matters
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "+PONG") && !strings.HasPrefix(line, "-NOAUTH") {
		err = fmt.Errorf("%s", strings.TrimSpace(line))
	}
	return err
}
