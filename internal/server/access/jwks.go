package access

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	keysPerFetch = 10 * time.Second // at most one request for keys in this time
	keysMaxAge   = time.Hour        // after which keys are fetched again, so that removed keys end
	maxKeySet    = 1 << 20          // bytes
)

// keySet has the signing keys of the provider. Keys are fetched when a token names an
// unknown one, and after an hour. If the provider does not answer, known keys stay valid.
type keySet struct {
	ctx       context.Context //nolint:containedctx // the library reads its HTTP client from a context
	address   string
	transport *keyTransport

	mu      sync.Mutex
	current *oidc.RemoteKeySet
	fetched time.Time
}

func newKeySet(ctx context.Context, address string, transport *keyTransport) *keySet {
	return &keySet{ctx: ctx, address: address, transport: transport,
		current: oidc.NewRemoteKeySet(ctx, address), fetched: time.Now()}
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	k.mu.Lock()
	current, old := k.current, time.Since(k.fetched) > keysMaxAge
	if old {
		k.fetched = time.Now() // only this call replaces the keys
	}
	k.mu.Unlock()
	if !old {
		return current.VerifySignature(ctx, token)
	}
	renewed := oidc.NewRemoteKeySet(k.ctx, k.address)
	payload, err := renewed.VerifySignature(ctx, token)
	if err != nil && k.unavailable() {
		return current.VerifySignature(ctx, token)
	}
	k.mu.Lock()
	k.current = renewed
	k.mu.Unlock()
	return payload, err
}

// unavailable reports whether the last request for keys failed.
func (k *keySet) unavailable() bool {
	k.transport.mu.Lock()
	defer k.transport.mu.Unlock()
	return k.transport.failed
}

// keyTransport answers repeated requests from memory for a short time, so that tokens
// with invented keys cannot make the server call the provider for each of them. It also
// limits the size of answers.
type keyTransport struct {
	next http.RoundTripper // nil for the default

	mu     sync.Mutex
	last   map[string]*storedAnswer // by address: discovery and keys
	failed bool                     // the last request
}

type storedAnswer struct {
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

// RoundTrip returns a stored answer of the last seconds, or sends the request. Requests
// wait for each other.
func (t *keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	address := r.URL.String()
	stored := t.last[address]
	if stored == nil || time.Since(stored.at) >= keysPerFetch {
		stored = t.fetch(r)
		if t.last == nil || len(t.last) > 10 {
			t.last = map[string]*storedAnswer{}
		}
		t.last[address] = stored
	}
	t.failed = stored.err != nil || stored.status != http.StatusOK
	if stored.err != nil {
		return nil, stored.err
	}
	return &http.Response{StatusCode: stored.status, Status: http.StatusText(stored.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: stored.header, Body: io.NopCloser(bytes.NewReader(stored.body)), ContentLength: int64(len(stored.body)), Request: r}, nil
}

// fetch sends a request.
func (t *keyTransport) fetch(r *http.Request) *storedAnswer {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	answer := &storedAnswer{at: time.Now()}
	response, err := next.RoundTrip(r)
	if err != nil {
		answer.err = err
		return answer
	}
	defer response.Body.Close()
	answer.status, answer.header = response.StatusCode, response.Header
	answer.body, answer.err = io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if answer.err == nil && len(answer.body) > maxKeySet {
		answer.err = errors.New("the answer of the OpenID provider is too large")
	}
	return answer
}
