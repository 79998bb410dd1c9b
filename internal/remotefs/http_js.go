//go:build js

package remotefs

import (
	"context"
	"io"
)

// httpClient has no calls: the checker in a browser reads no remote files, and is two
// megabytes smaller without a client.
type httpClient struct{}

// httpRequest is no request.
type httpRequest struct{}

// CloseIdleConnections does nothing.
func (*httpClient) CloseIdleConnections() {}

func (*Client) http() *httpClient { return nil }

// statusText returns nothing: there are no answers of servers.
func statusText(int) string { return "" }

// reasonOf returns why a call failed.
func reasonOf(err error) string { return err.Error() }

func (*Client) get(_ context.Context, address string, have Version) (io.ReadCloser, Version, error) {
	return nil, have, notHere(address)
}

func (*Client) watch(_ context.Context, address string, _ func(context.Context) (io.ReadCloser, error)) (io.ReadCloser, error) {
	return nil, notHere(address)
}

// notHere is the error of every call.
func notHere(address string) error {
	return &AccessError{Address: Redacted(address), Why: "cannot be read in a browser"}
}
