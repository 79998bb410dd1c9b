// Package redistest is a server for tests of clients of Redis with its query engine, because
// no package registry is known that has one with vectors. It forwards commands to a real Redis server and executes the
// commands that begin with FT. itself, by their documentation: options and queries that the
// documentation does not have are errors.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/redisclient"
)

// Server is a running server.
type Server struct {
	// OldScorers makes the server one without the ranking BM25STD.
	OldScorers bool

	backend  string
	data     redisclient.Client
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	conns   map[net.Conn]bool
	indexes map[string]*schema
}

// Start starts a server in front of the Redis server at an address.
func Start(backend string) (*Server, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{backend: backend, listener: l, conns: map[net.Conn]bool{}, indexes: map[string]*schema{},
		data: redisclient.New(backend)}
	s.running.Go(s.accept)
	return s, nil
}

// Address returns host and port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close() // its reader ends
	}
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(err, s.data.Close())
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		backend, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", s.backend)
		if err != nil {
			_ = conn.Close() // the client reports the lost connection
			continue
		}
		s.mu.Lock()
		s.conns[conn], s.conns[backend] = true, true
		s.mu.Unlock()
		s.running.Go(func() {
			s.serve(conn, backend)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
			delete(s.conns, backend)
			_, _ = conn.Close(), backend.Close() // both have ended
		})
	}
}

// serve answers the commands of a connection one after another.
func (s *Server) serve(conn, backend net.Conn) {
	in, out, answers := bufio.NewReader(conn), bufio.NewWriter(conn), bufio.NewReader(backend)
	for {
		args, raw, err := readCommand(in)
		if err != nil {
			return
		}
		name := strings.ToUpper(args[0])
		switch {
		case name == "FT._LIST":
			writeReply(out, s.names())
		case name == "MODULE" && len(args) == 2 && strings.EqualFold(args[1], "LIST"):
			writeReply(out, []any{[]any{"name", "search", "ver", version}})
		case strings.HasPrefix(name, "FT."):
			writeReply(out, s.execute(name, args[1:]))
		case name == "HELLO" && len(args) > 1 && args[1] != "2":
			writeReply(out, errors.New("NOPROTO this server has version 2 of the protocol only"))
		default:
			if _, err := backend.Write(raw); err != nil {
				return
			}
			if err := copyReply(out, answers); err != nil {
				return
			}
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// version is the version of the search commands that programs see.
const version = 20800

// names returns the names of the indexes.
func (s *Server) names() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for name := range s.indexes {
		list = append(list, name)
	}
	return list
}

// readCommand reads a list of texts, and returns also its bytes.
func readCommand(r *bufio.Reader) (args []string, raw []byte, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "*")))
	if err != nil || line[0] != '*' || n < 1 {
		return nil, nil, fmt.Errorf("not a command: %q", line)
	}
	raw = []byte(line)
	for range n {
		if line, err = r.ReadString('\n'); err != nil {
			return nil, nil, err
		}
		size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "$")))
		if err != nil || line[0] != '$' || size < 0 {
			return nil, nil, fmt.Errorf("not a text of a command: %q", line)
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, nil, err
		}
		args, raw = append(args, string(text[:size])), append(append(raw, line...), text...)
	}
	return args, raw, nil
}

// copyReply forwards one answer.
func copyReply(w *bufio.Writer, r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	_, _ = w.WriteString(line) // Flush has its error
	size, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$':
		if size >= 0 {
			_, err = io.CopyN(w, r, int64(size)+2)
		}
	case '*':
		for range size {
			if err := copyReply(w, r); err != nil {
				return err
			}
		}
	}
	return err
}

// writeReply writes a text, a number, a list or an error.
func writeReply(w *bufio.Writer, v any) {
	switch v := v.(type) {
	case error:
		_, _ = fmt.Fprintf(w, "-%s\r\n", v)
	case int:
		_, _ = fmt.Fprintf(w, ":%d\r\n", v)
	case ok:
		_, _ = w.WriteString("+OK\r\n")
	case string:
		_, _ = fmt.Fprintf(w, "$%d\r\n%s\r\n", len(v), v)
	case []any:
		_, _ = fmt.Fprintf(w, "*%d\r\n", len(v))
		for _, item := range v {
			writeReply(w, item)
		}
	}
}

// ok is the answer of a command without a result.
type ok struct{}
