// Package mcp makes the tools of MCPTools: those of a server that speaks the Model
// Context Protocol, started as a program or called at a URL.
package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// Env is the environment of a server.
type Env struct {
	tool.Options
	Getenv func(string) string // the environment that the document sees
	Folder string              // base of relative paths of programs: the folder of the tool's document
	// Container limits the program of a server; nil for no limits.
	Container *containment.Container
	// Sample calls a model for a server; it is needed if the document allows sampling.
	Sample func(context.Context, SampleRequest) (*Sample, error)
	// Ask requests an answer of the user of the run of a context, and returns an object with
	// the outputs of the request; it is needed if the document allows elicitation.
	Ask   func(context.Context, tool.Request) (any, error)
	Warn  func(string) // receives warnings; may be nil
	Retry httpx.Policy // of requests that did not reach a server; the zero Policy means six attempts in about five seconds
}

// Server is one server and the tools that the document allows. It is started, or
// connected to, when its tools are first used, and again after the connection was lost.
// It is safe for concurrent use.
type Server struct {
	declared *spec.MCPTool
	timeout  time.Duration
	retry    httpx.Policy
	connect  func() (sdk.Transport, error)
	alive    context.Context // ends when the server is closed
	end      context.CancelFunc
	output   output // of a program, besides messages
	link     link
	catalog  catalog
	asker    asker

	callModel func(context.Context, SampleRequest) (*Sample, error)
	askPerson func(context.Context, tool.Request) (any, error)
}

// New makes the server of a tool; it starts nothing.
func New(t *spec.MCPTool, env Env) (*Server, error) {
	s := &Server{declared: t, timeout: time.Duration(t.Timeout), retry: env.Retry,
		asker: asker{turn: make(chan struct{}, 1)}, callModel: env.Sample, askPerson: env.Ask, output: output{warn: env.Warn}}
	if s.timeout <= 0 {
		s.timeout = 30 * time.Second
	}
	if s.retry == (httpx.Policy{}) {
		s.retry = httpx.Policy{MaxAttempts: 6, InitialDelay: 200 * time.Millisecond, MaxDelay: 5 * time.Second}
	}
	for _, address := range t.Resources {
		if _, err := uritemplate.New(address); err != nil {
			return nil, fmt.Errorf("tool %s: resource %s: %w", t.ID, address, err)
		}
	}
	s.alive, s.end = context.WithCancel(context.Background())
	var err error
	if t.Command != "" {
		s.connect, err = s.program(env)
	} else {
		s.connect, err = s.remote(env)
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	return s, nil
}

// program returns a function that starts the server.
func (s *Server) program(env Env) (func() (sdk.Transport, error), error) {
	path, err := env.Container.Find(s.declared.Command, env.Folder, env.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	given, err := tool.Environment(s.declared.Env, env.Secret)
	if err != nil {
		return nil, err
	}
	p := subprocess.Program{Path: path, Args: s.declared.Args, Env: env.Container.Environment(env.Getenv, given), Supervisor: env.Supervisor}
	return func() (sdk.Transport, error) {
		cmd := env.Container.Wrap(p).Command(s.alive)
		cmd.Stderr = &s.output.tail
		return &programTransport{cmd, &s.output, s.output.stray(s.declared.ID)}, nil
	}, nil
}

// maxListens is how often the SDK opens the stream of notifications again. It waits longer
// each time, and must not make more than 56 attempts, at which its delay overflows.
const maxListens = 50

// remote returns a function that connects to the server at a URL.
func (s *Server) remote(env Env) (func() (sdk.Transport, error), error) {
	client, err := tool.Client(tool.Service{Tool: s.declared.ID, URL: s.declared.URL, Auth: s.declared.Auth, AllowPrivate: s.declared.AllowPrivate}, env.Options)
	if err != nil {
		return nil, err
	}
	client.Transport = &deliveryTransport{client.Transport}
	return func() (sdk.Transport, error) {
		return &sdk.StreamableClientTransport{Endpoint: s.declared.URL, HTTPClient: client, MaxRetries: maxListens}, nil
	}, nil
}

// Close closes the connection and ends a server that was started.
func (s *Server) Close() {
	s.link.close()
	s.end()
}

// withTimeout limits a call.
func (s *Server) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("timed out after %s", s.timeout))
}

// Info identifies the server; its tools have their own Info.
func (s *Server) Info() tool.Info { return tool.Info{ID: s.declared.ID} }

// Call returns an error: only the server's tools can be called.
func (s *Server) Call(context.Context, map[string]any) (any, error) {
	return nil, fmt.Errorf("tool %s is a server; call one of its tools", s.declared.ID)
}

// where returns the server as the document names it.
func (s *Server) where() string {
	if s.declared.Command != "" {
		return s.declared.Command
	}
	return s.declared.URL
}

const (
	maxMessage = 64 << 20 // bytes of a message on standard output
	maxListed  = 10_000   // items of a list with pages
)

// messageReader reads messages, one a line. It fails if one is too long: the library keeps
// it in memory until it is complete. Other lines, which programs print between them, are
// skipped.
type messageReader struct {
	from  *bufio.Reader
	max   int               // bytes of a message
	stray func(line []byte) // gets what is skipped
	rest  []byte            // of the message that is being read
}

func newMessageReader(r io.Reader, limit int, stray func(line []byte)) *messageReader {
	return &messageReader{from: bufio.NewReaderSize(r, 16<<10), max: limit, stray: stray}
}

// Read reads a part of a message.
func (r *messageReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if r.rest = r.message(line); len(r.rest) == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads a line with its end; the last one may have none.
func (r *messageReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		if len(line)+len(part) > r.max {
			return nil, fmt.Errorf("a message of the server has more than %d MiB", r.max>>20)
		}
		if line = append(line, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// message returns the message of a line, nil if it has none. What is printed without a line
// end comes before a message.
func (r *messageReader) message(line []byte) []byte {
	begin := bytes.Index(line, []byte(`{"`))
	if begin >= 0 && !json.Valid(line[begin:]) {
		begin = -1
	}
	if begin < 0 && bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) && json.Valid(line) { // a batch
		begin = 0
	}
	if begin < 0 {
		begin = len(line)
	}
	if len(bytes.TrimSpace(line[:begin])) > 0 {
		r.stray(line[:begin])
	}
	return line[begin:]
}

// collect returns the items of a list with pages. A server that lists items without an end
// is an error.
func collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		if len(all) == maxListed {
			return nil, fmt.Errorf("the server lists more than %d items", maxListed)
		}
		all = append(all, item)
	}
	return all, nil
}
