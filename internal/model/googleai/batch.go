package googleai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// batches is the batch API of the Gemini API: a file of calls, then a batch of the file. It implements wire.Batches.
type batches struct {
	*protocol
	root    *url.URL // the address before the version
	version string
	uploads wire.Uploads
}

// NewBatches makes the batch API. It calls nothing.
func NewBatches(c Config) (wire.Batches, error) {
	made, err := New(c)
	if err != nil {
		return nil, err
	}
	b := &batches{protocol: made.protocol, root: made.protocol.Base, version: apiVersion}
	if last := path.Base(b.root.Path); wire.IsVersion(last) {
		b.root, b.version = b.root.JoinPath(".."), last
	}
	return b, nil
}

// Limits returns how much a batch can have: a file of 2 GB. Of the number of calls nothing is documented.
func (b *batches) Limits() wire.BatchLimits {
	return wire.BatchLimits{Calls: 100_000, Bytes: 1_900_000_000}
}

// Method returns the method of a call.
func (b *batches) Method(u *url.URL) string {
	if _, method, _ := strings.Cut(path.Base(u.Path), ":"); method == "generateContent" {
		return method
	}
	return ""
}

// Head returns nil: calls have no headers of their own.
func (b *batches) Head(http.Header) http.Header { return nil }

// at returns a request. service is empty, or that of uploads or downloads; name that of a file or batch, or a collection.
func (b *batches) at(method, service, name string, query url.Values) wire.Exchange {
	to := b.root.JoinPath(service, b.version)
	for part := range strings.SplitSeq(name, "/") {
		to = to.JoinPath(segment(part))
	}
	to.RawQuery = query.Encode()
	return wire.Exchange{Method: method, URL: to.String(), Header: maps.Clone(b.header)}
}

// action returns a request for an action on a file or batch.
func (b *batches) action(method, service, name, action string, query url.Values) wire.Exchange {
	r := b.at(method, service, name, nil)
	if r.URL += ":" + action; query != nil {
		r.URL += "?" + query.Encode()
	}
	return r
}

// Create uploads the file and creates the batch.
func (b *batches) Create(ctx context.Context, batch *wire.Batch) (string, error) {
	upload := func() (string, error) { return b.upload(ctx, batch) }
	return b.uploads.Use(batch.Name, upload, func(file string) (string, error) {
		var made operation
		r := wire.Exchange{Method: http.MethodPost, URL: b.methodURL("batchGenerateContent"), Header: maps.Clone(b.header)}
		err := b.ExchangeJSON(ctx, r, map[string]any{"batch": map[string]any{"displayName": batch.Name, "inputConfig": map[string]string{"fileName": file}}}, &made)
		if err == nil && made.Name == "" {
			err = b.BatchError("the answer to the creation of a batch has no name")
		}
		return made.Name, err
	})
}

// upload uploads the calls as a file and returns its name. The first request announces the file, the second one has it.
func (b *batches) upload(ctx context.Context, batch *wire.Batch) (string, error) {
	const mediaType = "application/jsonl"
	body, size, err := wire.Piped(func(w io.Writer) error {
		return batch.WriteCalls(w, func(buf []byte, _ int, c wire.BatchCall) []byte {
			buf = fmt.Appendf(buf, `{"key":%q,"request":`, c.ID)
			return append(append(buf, c.Body...), "}\n"...)
		})
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // ends what writes it
	var session url.Values
	r := b.at(http.MethodPost, "upload", "files", nil)
	r.Header.Set("X-Goog-Upload-Protocol", "resumable")
	r.Header.Set("X-Goog-Upload-Command", "start")
	r.Header.Set("X-Goog-Upload-Header-Content-Length", strconv.FormatInt(size, 10))
	r.Header.Set("X-Goog-Upload-Header-Content-Type", mediaType)
	r.Received = func(h http.Header) {
		if to, err := url.Parse(h.Get("X-Goog-Upload-Url")); err == nil {
			session = to.Query()
		}
	}
	about := fmt.Sprintf(`{"file":{"displayName":"qtype-%s.jsonl"}}`, batch.Name)
	r.Type, r.Body, r.Size = "application/json", strings.NewReader(about), int64(len(about))
	if err := b.Exchange(ctx, r, func(*http.Response) error { return nil }); err != nil {
		return "", err
	}
	if session.Get("upload_id") == "" {
		return "", b.BatchError("the answer to the upload of a batch has no id of the upload")
	}
	r = b.at(http.MethodPost, "upload", "files", session) // the file goes to the server that the document names
	r.Header.Set("X-Goog-Upload-Offset", "0")
	r.Header.Set("X-Goog-Upload-Command", "upload, finalize")
	r.Type, r.Body, r.Size = mediaType, body, size
	var made struct {
		File struct {
			Name string `json:"name"`
		} `json:"file"`
	}
	err = b.ExchangeJSON(ctx, r, nil, &made)
	if err == nil && made.File.Name == "" {
		err = b.BatchError("the answer to the upload of a batch has no name")
	}
	return made.File.Name, err
}

// operation is a batch.
type operation struct {
	Name     string  `json:"name"`
	Done     bool    `json:"done"`
	Error    *status `json:"error"`
	Response output  `json:"response"`
	Metadata struct {
		DisplayName string `json:"displayName"`
		State       string `json:"state"`
		Input       struct {
			File string `json:"fileName"`
		} `json:"inputConfig"`
		Output output `json:"output"`
		Stats  struct {
			Succeeded wire.Count `json:"successfulRequestCount"`
			Failed    wire.Count `json:"failedRequestCount"`
		} `json:"batchStats"`
	} `json:"metadata"`
}

// output is where the results of a batch are.
type output struct {
	File string `json:"responsesFile"`
}

// status is an error in Google's form.
type status struct {
	Code    int    `json:"code"` // of gRPC
	Message string `json:"message"`
}

// results returns the name of the file of results; empty if there is none.
func (o *operation) results() string { return cmp.Or(o.Response.File, o.Metadata.Output.File) }

// operationPage is a page of the list of batches, which has no documented order.
type operationPage struct {
	Operations []operation `json:"operations"`
	Next       string      `json:"nextPageToken"`
}

// Page returns the batches, and the token of the next page.
func (p *operationPage) Page() (all []wire.ListedBatch, next string) {
	for _, o := range p.Operations {
		all = append(all, wire.ListedBatch{ID: o.Name, Name: o.Metadata.DisplayName})
	}
	return all, p.Next
}

// Find looks for the batch in the list.
func (b *batches) Find(ctx context.Context, batch *wire.Batch, _ func(string) bool) (string, error) {
	list := func(token string) (wire.Exchange, wire.BatchList) {
		query := url.Values{"pageSize": {"100"}}
		if token != "" {
			query.Set("pageToken", token)
		}
		return b.at(http.MethodGet, "", "batches", query), &operationPage{}
	}
	return b.FindBatch(ctx, batch.Since, list, func(listed wire.ListedBatch) (bool, error) { return listed.Name == batch.Name, nil })
}

// read reads a batch.
func (b *batches) read(ctx context.Context, id string) (found operation, err error) {
	err = b.ExchangeJSON(ctx, b.at(http.MethodGet, "", id, nil), nil, &found)
	return found, err
}

// State returns the state of a batch. One that has expired has no results.
func (b *batches) State(ctx context.Context, id string) (wire.BatchState, error) {
	found, err := b.read(ctx, id)
	if err != nil {
		return wire.BatchState{}, err
	}
	word := found.Metadata.State
	for _, prefix := range []string{"BATCH_STATE_", "JOB_STATE_"} {
		word = strings.TrimPrefix(word, prefix)
	}
	state := wire.BatchState{Word: strings.ToLower(word), Ended: found.Done}
	switch state.Word {
	case "succeeded", "partially_succeeded":
		state.Ended, state.Made = true, int(found.Metadata.Stats.Succeeded+found.Metadata.Stats.Failed)
	case "cancelled", "expired":
		state.Ended, state.Canceled = true, state.Word == "cancelled"
	case "failed":
		state.Ended = true
		if found.results() == "" {
			state.Failed = &wire.BatchFailed{Message: "the provider refused the batch without a reason"}
			if e := found.Error; e != nil {
				state.Failed.Message, state.Failed.Full = cmp.Or(e.Message, state.Failed.Message), statusOf(e.Code) == http.StatusTooManyRequests
			}
		}
	}
	return state, nil
}

// Results reads the file of results.
func (b *batches) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	found, err := b.read(ctx, id)
	if err != nil || found.results() == "" {
		return err
	}
	r := b.action(http.MethodGet, "download", found.results(), "download", url.Values{"alt": {"media"}})
	return b.Exchange(ctx, r, func(resp *http.Response) error {
		return b.EachLine(ctx, resp.Body, func(line []byte) error { return takeResult(line, take) })
	})
}

// takeResult reads a line of results. One that cannot be read, such as the last one of a file that was cut
// off, is no result.
func takeResult(line []byte, take func(wire.BatchResult) error) error {
	var got struct {
		Key      string          `json:"key"`
		Response json.RawMessage `json:"response"`
		Error    json.RawMessage `json:"error"`
	}
	if isRead := json.Unmarshal(line, &got) == nil; !isRead || got.Key == "" {
		return nil
	}
	result := wire.BatchResult{ID: got.Key}
	switch {
	case len(got.Response) > 0:
		result.Status, result.Body = http.StatusOK, got.Response
	case len(got.Error) > 0:
		var failed status
		_ = json.Unmarshal(got.Error, &failed) // of an unknown kind then
		result.Status, result.Body = statusOf(failed.Code), slices.Concat([]byte(`{"error":`), []byte(got.Error), []byte("}"))
	}
	return take(result)
}

// statusOf returns the HTTP status of a code of gRPC; 0 for that of a call that was not made.
func statusOf(code int) int {
	switch code {
	case 1: // the batch has ended before
		return 0
	case 3, 9, 11:
		return http.StatusBadRequest
	case 4:
		return http.StatusGatewayTimeout
	case 5:
		return http.StatusNotFound
	case 7:
		return http.StatusForbidden
	case 8:
		return http.StatusTooManyRequests
	case 14:
		return http.StatusServiceUnavailable
	case 16:
		return http.StatusUnauthorized
	}
	if code >= 400 && code < 600 { // some servers have that of HTTP
		return code
	}
	return http.StatusInternalServerError
}

// Cancel cancels a batch.
func (b *batches) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.action(http.MethodPost, "", id, "cancel", nil), struct{}{}, new(json.RawMessage))
}

// Delete removes a batch and its file.
func (b *batches) Delete(ctx context.Context, id string) error {
	found, err := b.read(ctx, id)
	for _, name := range []string{found.Metadata.Input.File, id} {
		if name != "" && err == nil {
			err = b.ExchangeJSON(ctx, b.at(http.MethodDelete, "", name, nil), nil, new(json.RawMessage))
		}
	}
	return err
}
