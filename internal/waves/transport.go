package waves

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// transport notes the calls of a model, and answers those that a batch has made.
type transport struct {
	run   *Run
	model string
	api   wire.Batches
	next  http.RoundTripper // for calls of no row, and calls that batches do not have
}

// Client returns the HTTP client of a model whose calls are made by a batch API. next makes other calls.
func (r *Run) Client(model string, api wire.Batches, next *http.Client) *http.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apis[model] = &modelBatches{Batches: api, short: map[int64]int{}}
	made := *next
	if made.Transport == nil {
		made.Transport = http.DefaultTransport
	}
	made.Transport = &transport{run: r, model: model, api: api, next: made.Transport}
	return &made
}

// RoundTrip returns the answer of a batch, or notes the call and suspends its row.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	row := rowOf(req.Context())
	method := t.api.Method(req.URL)
	if row == nil || row.pass.run != t.run || req.Method != http.MethodPost || method == "" {
		return t.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if streams(body) {
		return t.next.RoundTrip(req)
	}
	head, err := json.Marshal(t.api.Head(req.Header)) // with its keys in order
	if err != nil {
		return nil, err
	}
	c := call{id: row.callID(t.model, method, string(head), string(body)), group: group{t.model, method, string(head)}, body: body}
	found, err := t.run.lookup(c.id)
	switch {
	case err != nil:
		t.run.fail(err)
		return nil, err
	case found.status > 0:
		return found.response(req), nil
	case row.pass.last && !found.noted:
		return t.next.RoundTrip(req)
	case !found.noted:
		if err := t.run.note(c); err != nil {
			t.run.fail(err)
			return nil, err
		}
	}
	return nil, row.suspend()
}

// streams reports whether the answer to a request is to be streamed, as some models only can.
func streams(body []byte) bool {
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		return false
	}
	var set struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal(body, &set) == nil && set.Stream
}

// answer is what is stored of a call.
type answer struct {
	noted  bool // the call is stored
	status int  // 0 without an answer
	body   []byte
}

// response returns the answer as that of a call that is made at once.
func (a *answer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}
