// Package remotefs opens and creates streams of bytes by address: local paths and
// file://, http:// and https:// (read only), and by the Buckets of the context also
// s3://, gs:// and Azure's az:// and abfs://. Addresses are those of fsspec, so
// that documents written for QType mean the same. Errors redact the passwords and
// signatures that an address may hold. The policy of the document of a context, see
// package trust, is asked first.
package remotefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/trust"
)

// Client opens and creates streams. The zero value is ready to use. It is safe for
// concurrent use and keeps connections until it is closed.
type Client struct {
	// IdleTimeout is how long a server may send nothing, before its answer and
	// within it. 0 means 30 seconds.
	IdleTimeout time.Duration
	// Allow is called with the target of a redirect before following it; its error
	// ends the call. nil allows all targets. A redirect from https to http is never
	// allowed.
	Allow func(address string) error

	// Buckets are the services whose buckets it opens. nil means those of the context.
	Buckets Buckets
	// Identity opens buckets; nil means that of the environment.
	Identity *Identity

	mu     sync.Mutex
	client *httpClient
	stores map[string]Bucket // by driver, account and bucket
}

// Upload writes to an address. The content appears on Commit. It is not safe for
// concurrent use and ends with one Commit or Abort.
type Upload interface {
	io.Writer
	// Commit makes the content visible at its address. It replaces what was there.
	Commit() error
	// Abort discards the content. After Commit it does nothing.
	Abort() error
}

// Open opens an address for reading. Canceling ctx ends the reading too. The error
// is one of this package's types, without credentials.
func Open(ctx context.Context, address string) (io.ReadCloser, error) {
	c := new(Client)
	in, err := c.Open(ctx, address)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &lastReader{in, c}, nil
}

// Create opens an address for writing. It creates missing local directories.
func Create(ctx context.Context, address string) (Upload, error) {
	c := new(Client)
	out, err := c.Create(ctx, address)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &lastUpload{out, c}, nil
}

// lastReader closes its client too.
type lastReader struct {
	io.ReadCloser
	client *Client
}

func (r *lastReader) Close() error { return errors.Join(r.ReadCloser.Close(), r.client.Close()) }

// lastUpload closes its client too.
type lastUpload struct {
	Upload
	client *Client
}

func (u *lastUpload) Commit() error { return errors.Join(u.Upload.Commit(), u.client.Close()) }
func (u *lastUpload) Abort() error  { return errors.Join(u.Upload.Abort(), u.client.Close()) }

// Open is like the function Open. The reader must not be used after the client is
// closed or ctx ends.
func (c *Client) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	if err := trust.From(ctx).Read(address); err != nil {
		return nil, err
	}
	scheme, rest := split(trust.From(ctx).Place(address))
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
	return c.watch(ctx, address, func(ctx context.Context) (io.ReadCloser, error) { return store.Open(ctx, key) })
}

// Create is like the function Create. The upload must not be used after the client
// is closed or ctx ends.
func (c *Client) Create(ctx context.Context, address string) (Upload, error) {
	if err := trust.From(ctx).Write(address); err != nil {
		return nil, err
	}
	scheme, rest := split(trust.From(ctx).Place(address))
	switch scheme {
	case "", "file", "local":
		return createLocal(ctx, address, rest)
	case "http", "https":
		return nil, Writable(address)
	}
	store, key, err := c.store(ctx, address)
	if err != nil {
		return nil, err
	}
	out, err := store.Create(ctx, key)
	if err != nil {
		return nil, asReasonError(address, err)
	}
	return out, nil
}

// Readable returns an error if Open cannot work for an address in any program: its scheme is
// unsupported, or it names no object. It makes no calls.
func Readable(address string) error {
	switch scheme, _ := split(address); scheme {
	case "", "file", "local", "http", "https":
		return nil
	}
	_, err := parseBucket(address)
	return err
}

// Writable is Readable for Create.
func Writable(address string) error {
	if scheme, _ := split(address); scheme == "http" || scheme == "https" {
		return &AccessError{Address: Redacted(address), Why: scheme + ":// can only be read"}
	}
	return Readable(address)
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, store := range c.stores {
		errs = append(errs, store.Close())
	}
	c.stores = nil
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// store returns the bucket of an address, which it opens once, and the object's key.
func (c *Client) store(ctx context.Context, address string) (Bucket, string, error) {
	object, err := parseBucket(address)
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := object.Service + "\x00" + object.Account + "\x00" + object.Bucket
	if store, found := c.stores[id]; found {
		return store, object.Key, nil
	}
	table := c.Buckets
	if table == nil {
		table = bucketsOf(ctx)
	}
	open, err := table.opener(object)
	if err != nil {
		return nil, "", err
	}
	object.Identity = c.Identity
	store, err := open(ctx, object, c.http())
	if err != nil {
		return nil, "", asReasonError(address, err)
	}
	if c.stores == nil {
		c.stores = map[string]Bucket{}
	}
	c.stores[id] = store
	return store, object.Key, nil
}

// Object is an object of a bucket.
type Object struct {
	Address  string    // as Open accepts it
	Size     int64     // in bytes
	Modified time.Time // when it was written; zero if unknown
}

// List returns the objects of a bucket whose addresses begin with a prefix, in the order
// of their keys. The bucket itself, with a slash, is the prefix of all. The list ends
// after an error. Only schemes of buckets have lists.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := trust.From(ctx).Read(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		if trust.From(ctx).Place(prefix) != prefix {
			yield(Object{}, &AccessError{Address: prefix, Why: "fixtures have no buckets that can be listed"})
			return
		}
		// An address needs a key; the prefix of all objects has none.
		store, key, err := c.store(ctx, prefix+"k")
		if err != nil {
			yield(Object{}, err)
			return
		}
		key = key[:len(key)-1]
		bucket := prefix[:len(prefix)-len(key)]
		for object, err := range store.List(ctx, key) {
			object.Address = bucket + object.Address
			if !yield(object, err) || err != nil {
				return
			}
		}
	}
}

type ownKey struct{}

// WithOwn returns a context of a run that reads and writes files itself, which no step may replace.
func WithOwn(ctx context.Context, files ...string) context.Context {
	return context.WithValue(ctx, ownKey{}, files)
}

// IsOwn reports whether a path or URL is one of the files of the run.
func IsOwn(ctx context.Context, path string) bool {
	files, _ := ctx.Value(ownKey{}).([]string)
	return slices.ContainsFunc(files, func(file string) bool { return IsSame(file, path) })
}

// IsSame reports whether two paths or URLs lead to the same file, also through links. An empty path is none.
func IsSame(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	one, err := os.Stat(Path(a))
	if err != nil { // a URL, or a file that does not exist yet: compare the names
		return a == b || absolute(a) == absolute(b)
	}
	two, err := os.Stat(Path(b))
	return err == nil && one.Mode().IsRegular() && os.SameFile(one, two)
}

// absolute returns the whole path of a local file, and a URL as it is.
func absolute(path string) string {
	if _, remote := Remote(path); remote {
		return path
	}
	if abs, err := filepath.Abs(Path(path)); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

// Each error of this package has a method Reason that returns the cause without the
// address, for messages that name the address themselves.

// NotFoundError reports an address without content. It matches fs.ErrNotExist.
type NotFoundError struct {
	Address string // as returned by Redacted
}

// Error returns the address and the reason.
func (e *NotFoundError) Error() string { return e.Address + ": " + e.Reason() }

// Reason returns the cause without the address.
func (e *NotFoundError) Reason() string { return "does not exist" }

// Is reports whether target is fs.ErrNotExist.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// StatusError reports an HTTP status.
type StatusError struct {
	Address string // as returned by Redacted
	Code    int    // HTTP status
}

// Error returns the address and the reason.
func (e *StatusError) Error() string { return e.Address + ": " + e.Reason() }

// Reason returns the cause without the address.
func (e *StatusError) Reason() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.Code, statusText(e.Code)))
}

// SchemeError reports an unsupported scheme.
type SchemeError struct {
	Scheme    string   // as in the address
	Supported []string // supported schemes
}

// Error lists the supported schemes.
func (e *SchemeError) Error() string { return e.Reason() }

// Reason returns the same as Error.
func (e *SchemeError) Reason() string {
	return e.Scheme + ":// is not supported; these are: " + strings.Join(e.Supported, ", ")
}

// AccessError reports any other error of reading or writing.
type AccessError struct {
	Address string // as returned by Redacted
	Why     string // without the address
	Code    int    // HTTP status of the server; 0 for none
	Err     error  // the cause, or nil; may contain credentials
}

// Error returns the address and the reason.
func (e *AccessError) Error() string { return e.Address + ": " + e.Why }

// Reason returns the cause without the address.
func (e *AccessError) Reason() string { return e.Why }

// Unwrap returns the cause.
func (e *AccessError) Unwrap() error { return e.Err }

// reasonError is implemented by all errors of this package.
type reasonError interface {
	error
	Reason() string
}

// asReasonError converts any error to one of this package.
func asReasonError(address string, err error) error {
	var own reasonError
	if errors.As(err, &own) {
		return own
	}
	return &AccessError{Address: Redacted(address), Why: reasonOf(err), Err: err}
}
