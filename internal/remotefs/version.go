package remotefs

import (
	"context"
	"errors"
	"io"
)

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
