package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// remote reads the files of a document that lie on other machines, each once,
// one after the other. All together may take only so long.
type remote struct {
	client *remotefs.Client
	wait   time.Duration // how long all files may take
	spent  time.Duration // how long they took so far
	base   string        // where redirections may lead at the moment; empty for anywhere
	known  map[string]fetched
}

// fetched is what a server answered.
type fetched struct {
	text []byte
	err  error
}

// idleTimeout is how long a server may say nothing: a reader waits for the answer.
const idleTimeout = 10 * time.Second

func newRemote(wait time.Duration) *remote {
	r := &remote{wait: wait, known: map[string]fetched{}}
	r.client = &remotefs.Client{IdleTimeout: min(idleTimeout, wait), Allow: r.allow}
	return r
}

// close ends the connections.
func (r *remote) close() { _ = r.client.Close() } // nothing was written

// allow keeps what a remote document includes below the document's own address,
// also where a server sends elsewhere.
func (r *remote) allow(address string) error {
	return remotefs.Within(r.base)(address)
}

// read answers the first bytes of what lies at an address, most at most.
func (r *remote) read(ctx context.Context, address, base string, most int64) ([]byte, error) {
	if known, read := r.known[address]; read {
		return known.text, known.err
	}
	text, err := r.fetch(ctx, address, base, most)
	r.known[address] = fetched{text, err}
	return text, err
}

func (r *remote) fetch(ctx context.Context, address, base string, most int64) ([]byte, error) {
	begin := time.Now()
	defer func() { r.spent += time.Since(begin) }()
	within, cancel := context.WithTimeout(ctx, r.wait-r.spent)
	defer cancel()
	r.base = base
	text, err := r.fetchAll(within, address, most)
	if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		return nil, &readError{text: fmt.Sprintf("cannot be read: the remote files of the document took longer than %s", r.wait)}
	}
	return text, err
}

func (r *remote) fetchAll(ctx context.Context, address string, most int64) ([]byte, error) {
	in, err := r.client.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, most))
}
