// Package lsp is the language server behind `qtype lsp`. While a document is
// edited it reports what `qtype validate` would report, and completes, explains,
// finds, renames and formats.
//
// A document is read in two ways. Its meaning (which id refers to what, what is wrong)
// comes from packages loader and validate, so an editor never contradicts `qtype
// validate`. The position of the cursor (entity, key) comes from package outline: while
// the user types, the document is not valid YAML. See
// docs/decisions/009-two-parsers-in-the-language-server.md.
package lsp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// Options configure a server.
type Options struct {
	Version string // the program's version, for the editor's log
	Schema  string // the JSON schema of documents, a part of the program: its descriptions are shown
	// Kinds are files other than documents that the server checks and completes.
	Kinds  []*lint.Kind
	Remote bool // read remote includes, unless the editor's settings say otherwise
	// Commands are the commands of the program, such as run; the server offers to run those
	// that it knows.
	Commands []string
	// Isolated makes the server read no files and no environment variables: a document
	// of anyone can be open.
	Isolated bool
	// Today returns the day for which documents are checked; nil is no day.
	Today func() time.Time
}

// ErrNoShutdown is returned by [Serve] if the editor ended the connection without
// a shutdown request. The protocol requires exit status 1 then.
var ErrNoShutdown = errors.New("the editor closed the connection without a shutdown request")

// shutdownTimeout is how long requests may continue after the editor has gone.
const shutdownTimeout = 2 * time.Second

// Serve serves one editor until it sends exit, the input ends, or ctx is done.
// When it returns, everything it started has ended except a blocked read of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	// The descriptions are half of a megabyte: they are read with the first file, not before the editor has an answer.
	lang := sync.OnceValue(func() *language { return mustReadLanguage(spec.LanguageOf(ctx), opts.Schema, opts.Kinds) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(lang, opts)
	stream := protocol.NewStream(in, out, s.waitIdle) // an editor that closed its end may still read
	conn := jsonrpc2.NewConn(ctx, stream, s, jsonrpc2.SetLogger(discardLogger{}))
	defer s.jobs.Wait()
	defer cancel()
	defer func() { _ = conn.Close() }() // may be closed already
	select {
	case <-conn.DisconnectNotify():
		if err := stream.Err(); err != nil {
			return err
		}
	case <-s.exited:
		s.waitIdle()
	case <-ctx.Done():
		return nil
	}
	if !s.shutdownRequested.Load() {
		return ErrNoShutdown
	}
	return nil
}

// discardLogger drops the library's messages: editors show standard error in
// their log.
type discardLogger struct{}

// Printf implements jsonrpc2.Logger.
func (discardLogger) Printf(string, ...any) {}
