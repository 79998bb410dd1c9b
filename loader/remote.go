package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
)

// remote reads the remote files of a document, each once, sequentially, within one
// time limit.
type remote struct {
	client *remotefs.Client
	wait   time.Duration // maximum time for all files
	spent  time.Duration // time used so far
	base   string        // address below which redirects must stay; empty for any
	known  map[string]fetched
	seen   *trust.Seen // gets the addresses of servers
}

// fetched is the response of a server.
type fetched struct {
	text []byte
	err  error
}

// idleTimeout is the maximum time without data from a server: a user waits for it.
const idleTimeout = 10 * time.Second

func newRemote(wait time.Duration, policy *trust.Policy) *remote {
	r := &remote{wait: wait, known: map[string]fetched{}, seen: &trust.Seen{}}
	if policy != nil && policy.Seen != nil {
		r.seen = policy.Seen
	}
	r.client = &remotefs.Client{IdleTimeout: min(idleTimeout, wait), Allow: r.allow}
	return r
}

// close closes the connections.
func (r *remote) close() { _ = r.client.Close() } // nothing was written

// allow rejects addresses outside the folder of a remote document, also after redirects.
func (r *remote) allow(address string) error {
	return remotefs.Within(r.base)(address)
}

// read returns the content of an address, up to most bytes.
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
	text, err := r.fetchAll(trust.WithReading(within, r.seen), address, most)
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
