package remotefs

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// Version is what a server said of a document by which it knows it again. The
// zero value is that of a document that nobody has yet.
type Version struct {
	tag      string // its ETag; empty for none
	modified string // its Last-Modified; empty for none
}

// errUnchanged says that a server has the same version still.
var errUnchanged = errors.New("unchanged")

// versionOf reads what a server said.
func versionOf(h http.Header) Version { return Version{h.Get("ETag"), h.Get("Last-Modified")} }

// setConditionalHeaders asks for another version than this one only.
func (v Version) setConditionalHeaders(h http.Header) {
	if v.tag != "" {
		h.Set("If-None-Match", v.tag)
	}
	if v.modified != "" {
		h.Set("If-Modified-Since", v.modified)
	}
}

// OpenNewer is Open for what was read before: where the server says that it still
// has that version there is neither a reader nor an error. Addresses that are not
// http or https know no versions and are always opened.
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

// Within answers what Client.Allow needs for redirections to stay below a base
// that Base answered; empty for anywhere.
func Within(base string) func(address string) error {
	return func(address string) error {
		if base == "" || IsUnder(base, address) {
			return nil
		}
		return &AccessError{Address: Redacted(address), Why: "the server redirects to " + Redacted(address) + ", which is outside of " + Redacted(base)}
	}
}
