package waves

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec"
)

// transport notes the calls of a model, and answers those that a batch has made.
type transport struct {
	run   *Run
	model string
	api   wire.Batches
	next  http.RoundTripper // for calls of no row, and calls that batches do not have
}

// client returns the HTTP client of a model whose calls are made by a batch API. next makes other calls.
func (r *Run) client(name string, m *spec.Model, api wire.Batches, next *http.Client) *http.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := &modelBatches{Batches: api, short: map[int64]int{}, gone: map[int64]int{}, limits: api.Limits(), least: r.Least}
	if b := m.Batch; b != nil {
		own.limits.Calls = min(own.limits.Calls, cmp.Or(b.MaxCalls, own.limits.Calls))
		own.least = cmp.Or(b.MinCalls, own.least)
	}
	own.least = max(own.least, own.limits.Least)
	if r.apis[name] == nil || r.shared != nil { // otherwise an application with the same models was made before; that of a server replaces it
		r.apis[name] = own
	}
	made := *next
	if made.Transport == nil {
		made.Transport = http.DefaultTransport
	}
	made.Transport = &transport{run: r, model: name, api: api, next: made.Transport}
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
	c := call{id: row.callID(t.model, method, string(head), string(body)), group: group{t.model, method, string(head)}, body: body, task: row.pass.owner}
	found, err := t.run.lookup(c.id)
	switch {
	case err != nil:
		t.run.fail(err)
		return nil, err
	case found.status > 0:
		if found.atOnce {
			wire.MarkAtOnce(req.Context())
		}
		return found.response(req), nil
	case row.pass.last && !found.noted:
		wire.MarkAtOnce(req.Context())
		return t.next.RoundTrip(req)
	case row.pass.shared == nil && found.noted && t.run.isLost(found.batch):
		return nil, row.suspendLost()
	case row.pass.atOnce || row.pass.few[t.model]:
		return t.callAtOnce(row, c, req)
	case !found.noted:
		if err := t.run.note(c); err != nil {
			t.run.fail(err)
			return nil, err
		}
	}
	return t.wait(row, c, req)
}

// wait waits in place for the answer to a call, or suspends the row.
func (t *transport) wait(row *Row, c call, req *http.Request) (*http.Response, error) {
	switch {
	case row.pass.shared != nil:
		return row.pass.shared.park(t, row, c, req)
	case row.pass.tasks != nil:
		return t.park(row, c, req)
	}
	return nil, row.suspend()
}

// callAtOnce makes a call at once, and stores the answer. A call that fails for a time waits again, or suspends its row, maxTries times.
func (t *transport) callAtOnce(row *Row, c call, req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	var made answer
	if err == nil {
		made.status = resp.StatusCode
		made.body, err = io.ReadAll(io.LimitReader(resp.Body, wire.MaxAnswer+1))
		_ = resp.Body.Close() // only read
	}
	if (err != nil || passes(made.status)) && req.Context().Err() == nil && t.run.mayRepeat(c.id) {
		if row.pass.shared != nil {
			if err := t.run.unclaim(c.id); err != nil {
				return nil, err
			}
		}
		return t.wait(row, c, req)
	}
	if err != nil {
		return nil, err
	}
	if err := t.run.answerAtOnce(c, made); err != nil {
		t.run.fail(err)
		return nil, err
	}
	wire.MarkAtOnce(req.Context())
	resp.Body = io.NopCloser(bytes.NewReader(made.body))
	return resp, nil
}

// mayRepeat reports whether a call that was made at once may be repeated.
func (r *Run) mayRepeat(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.repeats[id]++
	return r.repeats[id] < maxTries
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
	noted  bool  // the call is stored
	batch  int64 // which has it; 0 for none
	status int   // 0 without an answer
	atOnce bool  // no batch has made it
	body   []byte
}

// response returns the answer as that of a call that is made at once.
func (a *answer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}
