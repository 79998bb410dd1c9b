// Package blob opens and creates streams of bytes by address: local paths and
// file://, http:// and https:// (read only), and in a build with -tags cloud
// also s3://, gs:// and Azure's az:// and abfs://. Addresses are those of
// fsspec, so that documents written for QType mean the same. An address may
// hold a password or a signature: errors show it without those.
package remotefs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Client opens and creates. The zero value is ready; it is safe for concurrent
// use and keeps connections until it is closed.
type Client struct {
	// Silence is how long a server may say nothing, before its answer and in the
	// middle of it; 30 seconds where it is 0.
	Silence time.Duration
	// Allow is asked before a redirection is followed, with the address that it
	// leads to; its error ends the reading. Where it is nil any server is allowed.
	// A redirection from https to http never is.
	Allow func(address string) error

	mu     sync.Mutex
	client *http.Client
	stores map[string]bucketStore // by scheme, bucket and account
}

// Upload is bytes on their way to an address. Nothing is seen there before
// Commit. It is for one goroutine, and ends with one Commit or Abort.
type Upload interface {
	io.Writer
	// Commit makes what was written visible under its address, in place of what was there.
	Commit() error
	// Abort forgets what was written. After Commit it does nothing.
	Abort() error
}

// bucketStore is one bucket of a cloud's store.
type bucketStore interface {
	open(ctx context.Context, key string) (io.ReadCloser, error)
	create(ctx context.Context, key string) (Upload, error)
	close() error
}

// Open opens what lies at address for reading; cancelling the context ends the
// reading, too. The error is one of this package's types, without credentials.
func Open(ctx context.Context, address string) (io.ReadCloser, error) {
	c := new(Client)
	in, err := c.Open(ctx, address)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &lastReader{in, c}, nil
}

// Create begins to write what shall lie at address. A local file's folder is
// made where it does not exist.
func Create(ctx context.Context, address string) (Upload, error) {
	c := new(Client)
	out, err := c.Create(ctx, address)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &lastUpload{out, c}, nil
}

// lastReader closes its client with itself.
type lastReader struct {
	io.ReadCloser
	client *Client
}

func (r *lastReader) Close() error { return errors.Join(r.ReadCloser.Close(), r.client.Close()) }

// lastUpload closes its client with itself.
type lastUpload struct {
	Upload
	client *Client
}

func (u *lastUpload) Commit() error { return errors.Join(u.Upload.Commit(), u.client.Close()) }
func (u *lastUpload) Abort() error  { return errors.Join(u.Upload.Abort(), u.client.Close()) }

// Open is as the function of that name; the reader may outlive neither the
// client nor the context.
func (c *Client) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	scheme, rest := split(address)
	switch scheme {
	case "", "file", "local":
		return openLocal(address, rest)
	case "http", "https":
		return c.watch(ctx, address, func(ctx context.Context) (io.ReadCloser, error) {
			in, _, err := c.get(ctx, address, Version{})
			return in, err
		})
	}
	store, key, err := c.store(ctx, address)
	if err != nil {
		return nil, err
	}
	return c.watch(ctx, address, func(ctx context.Context) (io.ReadCloser, error) { return store.open(ctx, key) })
}

// Create is as the function of that name; the upload may outlive neither the
// client nor the context.
func (c *Client) Create(ctx context.Context, address string) (Upload, error) {
	scheme, rest := split(address)
	switch scheme {
	case "", "file", "local":
		return createLocal(address, rest)
	case "http", "https":
		return nil, Writable(address)
	}
	store, key, err := c.store(ctx, address)
	if err != nil {
		return nil, err
	}
	out, err := store.create(ctx, key)
	if err != nil {
		return nil, asReasonError(address, err)
	}
	return out, nil
}

// Readable tells whether Open can know what to do with an address: its scheme is
// supported, part of this build, and of a bucket an object is named. Nothing is
// asked. The error is one of this package's types.
func Readable(address string) error {
	switch scheme, _ := split(address); scheme {
	case "", "file", "local", "http", "https":
		return nil
	}
	place, err := parseBucket(address)
	if err != nil {
		return err
	}
	return built(place.scheme)
}

// Writable is as Readable, of Create.
func Writable(address string) error {
	if scheme, _ := split(address); scheme == "http" || scheme == "https" {
		return &AccessError{Address: Redacted(address), Why: scheme + ":// can only be read"}
	}
	return Readable(address)
}

// Close ends the connections that nobody uses any more.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, store := range c.stores {
		errs = append(errs, store.close())
	}
	c.stores = nil
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// store answers the bucket that an address names, the same one each time, and
// the key in it.
func (c *Client) store(ctx context.Context, address string) (bucketStore, string, error) {
	place, err := parseBucket(address)
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := place.driver + "\x00" + place.account + "\x00" + place.bucket
	if store, open := c.stores[id]; open {
		return store, place.key, nil
	}
	store, err := openBucket(ctx, place, c.http())
	if err != nil {
		return nil, "", asReasonError(address, err)
	}
	if c.stores == nil {
		c.stores = map[string]bucketStore{}
	}
	c.stores[id] = store
	return store, place.key, nil
}
