// Package lsp is the language server behind `qtype lsp`: it tells an editor what
// the loader and the validator find in a document while it is being written, and
// completes, explains, finds and renames what stands in it.
//
// Two readings of a document are kept apart. What it means (which id names what,
// what is wrong) comes from package loader and package validate, so that an
// editor never says anything else than `qtype validate` does. Where the cursor
// stands (in which entity, at which key) comes from an outline that is made of
// any text, also of one that is no YAML yet because somebody is typing in it.
//
// The protocol is LSP 3.17 over a stream; positions count UTF-16 units.
package lsp

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// Options are what a server needs to know.
type Options struct {
	Version string // the program's version, for the editor's log
	Schema  string // the JSON schema of documents, whose descriptions are shown
	Remote  bool   // includes of other machines are read, unless the editor's settings say otherwise
}

// ErrNoShutdown says that the editor ended the connection without asking for it
// to be shut down, for which the protocol demands an exit status of its own.
var ErrNoShutdown = errors.New("the editor closed the connection without a shutdown request")

// Serve answers one editor on a stream until it says exit, ends the stream, or
// ctx ends. It leaves nothing running but a read of the stream that has not returned.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	lang, err := readLanguage(opts.Schema)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(lang, opts)
	stream := newWire(in, out)
	stream.atEnd = func() { s.drain(shutdownTimeout) } // an editor that is gone may still read its answers
	conn := jsonrpc2.NewConn(ctx, stream, s, jsonrpc2.SetLogger(silent{}))
	defer s.wait()
	defer cancel()
	defer func() { _ = conn.Close() }() // it may be closed already
	select {
	case <-conn.DisconnectNotify():
		if stream.fault != nil {
			return stream.fault
		}
	case <-s.exited:
		s.drain(shutdownTimeout)
	case <-ctx.Done():
		return nil
	}
	if !s.stopped.Load() {
		return ErrNoShutdown
	}
	return nil
}

// shutdownTimeout bounds how long requests may work on once the editor is gone.
const shutdownTimeout = 2 * time.Second

// silent drops the library's own messages: standard error belongs to the editor's log.
type silent struct{}

// Printf drops a message.
func (silent) Printf(string, ...any) {}
