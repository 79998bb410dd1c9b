package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/tool"
)

// delivery is what happened to the HTTP requests of one call. It travels in the context of
// the call, as the errors of the SDK do not show whether a request reached the server.
type delivery struct {
	mu         sync.Mutex
	sent       bool          // there was a request
	reached    bool          // a server may have processed a request
	refused    bool          // the newest request was not processed, and a later one may be
	temporary  bool          // the newest request failed, and a later one may succeed
	retryAfter time.Duration // how long the server requests to wait
	err        error         // of the newest request; nil for an answer
}

type deliveryKey struct{}

// withDelivery returns a context whose requests are recorded in the delivery.
func withDelivery(ctx context.Context) (context.Context, *delivery) {
	d := &delivery{}
	return context.WithValue(ctx, deliveryKey{}, d), d
}

// repetition is whether and when a failed call may be made again.
type repetition struct {
	wanted  bool          // a further attempt may succeed, and cannot do anything twice
	after   time.Duration // the least wait
	failure error         // of the network; nil if the server answered
}

// repetition returns whether a failed call may be made again: where no server has
// processed it, and a repeatable one also where a server may have. A call without a
// request failed because the connection had ended before.
func (d *delivery) repetition(repeatable bool) repetition {
	d.mu.Lock()
	defer d.mu.Unlock()
	safe := !d.reached || repeatable
	return repetition{wanted: safe && (!d.sent || d.refused || d.temporary), after: d.retryAfter, failure: d.err}
}

// record notes the outcome of one request.
func (d *delivery) record(resp *http.Response, unknownSession bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent, d.refused, d.temporary, d.retryAfter, d.err = true, false, false, 0, err
	if err != nil {
		connected, temporary := dialed(err)
		d.temporary, d.reached = temporary, d.reached || connected
		return
	}
	d.refused = unknownSession || resp.StatusCode == http.StatusTooManyRequests
	d.temporary = isBusy(resp.StatusCode) || resp.StatusCode < http.StatusMultipleChoices // its answer was lost
	d.retryAfter = httpx.RetryAfter(resp.Header, time.Now())
	d.reached = d.reached || !d.refused
}

// dialed reports whether a request failed only after there was a connection, and whether
// a later request may succeed.
func dialed(err error) (connected, temporary bool) {
	if tool.IsRefused(err) {
		return false, false
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return true, true
	}
	var errno syscall.Errno // refused, unreachable: not an address that is not allowed
	var dns *net.DNSError
	return false, errors.As(err, &errno) || errors.As(err, &dns) && dns.Temporary()
}

// isBusy reports whether a status means that a later request may succeed.
func isBusy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// deliveryTransport records the outcome of requests in the delivery of their context.
type deliveryTransport struct{ next http.RoundTripper }

// RoundTrip sends a request. If the server does not know the session, the answer has no
// body: the SDK would take a JSON-RPC error in it for an answer to the call.
func (t *deliveryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	unknown := err == nil && isUnknownSession(req, resp)
	if d, _ := req.Context().Value(deliveryKey{}).(*delivery); d != nil && req.Method == http.MethodPost {
		d.record(resp, unknown, err)
	}
	if unknown {
		_ = resp.Body.Close()
		resp.StatusCode, resp.Body, resp.ContentLength = http.StatusNotFound, http.NoBody, 0
	}
	return resp, err
}

// maxRefusal limits how much of a refusal is read.
const maxRefusal = 16 << 10

// isUnknownSession reports whether a server does not know the session of a request: by 404,
// as the protocol has it, or by 400 with a JSON-RPC error about the session, as the
// examples of the TypeScript SDK do.
func isUnknownSession(req *http.Request, resp *http.Response) bool {
	if req.Header.Get("Mcp-Session-Id") == "" {
		return false
	}
	if resp.StatusCode != http.StatusBadRequest {
		return resp.StatusCode == http.StatusNotFound
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}
	var refusal struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	return err == nil && json.Unmarshal(raw, &refusal) == nil && strings.Contains(strings.ToLower(refusal.Error.Message), "session")
}
