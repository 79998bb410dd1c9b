package remotefs

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/qtype-dev/qtype/internal/parts"
)

// Bucket is one bucket of a cloud's store. It is safe for concurrent use.
type Bucket interface {
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	Create(ctx context.Context, key string) (Upload, error)
	List(ctx context.Context, prefix string) iter.Seq2[Object, error] // objects with their key instead of the address
	Close() error
}

// BucketObject is an object in a cloud's store.
type BucketObject struct {
	Scheme  string // as in the address
	Service string // s3, gs or azure
	Bucket  string // for Azure the container
	Account string // Azure only: the storage account; empty for that of the environment
	Domain  string // Azure only: such as blob.core.windows.net; empty for the default
	Key     string

	Identity *Identity // that uses the bucket; nil for that of the environment
}

// Identity uses buckets in place of that of the environment. It is safe for concurrent use.
type Identity struct {
	Region    string                                                          // s3 only: where the bucket is; empty for that of the environment
	Keys      func(ctx context.Context) (id, secret, token string, err error) // s3 only: the access key
	Authorize func(req *httpRequest) error                                    // gs only: adds a token
}

// Buckets are the services whose buckets a program can open, by their names: s3, gs and azure.
type Buckets map[string]BucketOpener

// BucketOpener returns the bucket of an object without calling the service. The client carries
// calls for which the service has no client of its own.
type BucketOpener func(ctx context.Context, object BucketObject, client *httpClient) (Bucket, error)

type bucketsKey struct{}

// WithBuckets returns a context in which addresses of these services can be opened.
func WithBuckets(ctx context.Context, table Buckets) context.Context {
	return context.WithValue(ctx, bucketsKey{}, table)
}

func bucketsOf(ctx context.Context) Buckets {
	table, _ := ctx.Value(bucketsKey{}).(Buckets)
	return table
}

// opener returns what opens the bucket of an object.
func (b Buckets) opener(object BucketObject) (BucketOpener, error) {
	open, found := b[object.Service]
	if !found {
		return nil, &parts.MissingError{Kind: parts.Files, Name: object.Service}
	}
	return open, nil
}

// Service returns the service of a bucket whose object an address names: s3, gs or azure; empty
// for other addresses.
func Service(address string) string {
	scheme, _ := split(address)
	return serviceOf(scheme)
}

// serviceOf returns the service of a scheme, empty if it is not one of buckets.
func serviceOf(scheme string) string {
	switch scheme {
	case "s3", "s3a":
		return "s3"
	case "gs", "gcs":
		return "gs"
	case "az", "azure", "abfs", "abfss":
		return "azure"
	}
	return ""
}

// supported returns the schemes that Open accepts.
func supported() []string {
	return []string{"file", "http", "https", "s3", "gs", "gcs", "az", "azure", "abfs", "abfss"}
}

// Version identifies a version of a document on a server. The zero value is that of
// a document that was never read.
type Version struct {
	tag      string // its ETag; empty for none
	modified string // its Last-Modified; empty for none
}

// errUnchanged reports that a server still has the same version.
var errUnchanged = errors.New("unchanged")

// OpenNewer is Open for a document that was read before. If the server still has
// version have, it returns neither a reader nor an error. Only http and https have
// versions; other addresses are always opened.
func (c *Client) OpenNewer(ctx context.Context, address string, have Version) (io.ReadCloser, Version, error) {
	if scheme, _ := split(address); scheme != "http" && scheme != "https" {
		in, err := c.Open(ctx, address)
		return in, Version{}, err
	}
	now := have
	in, err := c.watch(ctx, address, func(ctx context.Context) (io.ReadCloser, error) {
		in, version, err := c.get(ctx, address, have)
		now = version
		return in, err
	})
	if errors.Is(err, errUnchanged) {
		return nil, have, nil
	}
	return in, now, err
}

// Within returns a function for Client.Allow that keeps redirects below a result of
// Base. An empty base allows all.
func Within(base string) func(address string) error {
	return func(address string) error {
		if base == "" || IsUnder(base, address) {
			return nil
		}
		return &AccessError{Address: Redacted(address), Why: "redirect to " + Redacted(address) + ", which is outside of " + Redacted(base)}
	}
}
