package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// batches is the batch API: a file of calls, then a batch of the file. It implements wire.Batches.
type batches struct {
	*wire.Server
	root   string      // the address before /files and /batches
	header http.Header // credentials
}

// batchKey is the key of the metadata of a batch that has its name.
const batchKey = "qtype_batch"

// NewBatches makes the batch API of OpenAI. It calls nothing.
func NewBatches(c Config) (wire.Batches, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "batch", Example: example})
	if err != nil {
		return nil, err
	}
	return &batches{Server: s, root: strings.TrimSuffix(s.Base.String(), "/"), header: bearer(s.Key)}, nil
}

// Limits returns how much a batch can have: 50,000 calls and 200 MB, less what a form adds.
func (b *batches) Limits() wire.BatchLimits {
	return wire.BatchLimits{Calls: 50_000, Bytes: 199_000_000}
}

// Method returns the method of a call.
func (b *batches) Method(u *url.URL) string {
	for _, method := range []string{"/responses", "/chat/completions", "/embeddings"} {
		if strings.HasSuffix(u.Path, method) {
			return "/v1" + method
		}
	}
	return ""
}

// Head returns nil: calls have no headers of their own.
func (b *batches) Head(http.Header) http.Header { return nil }

// at returns a request about a batch or file.
func (b *batches) at(method, path string) wire.Exchange {
	return wire.Exchange{Method: method, URL: b.root + path, Header: maps.Clone(b.header)}
}

// Create uploads the file and creates the batch.
func (b *batches) Create(ctx context.Context, batch *wire.Batch) (string, error) {
	file, err := b.upload(ctx, batch)
	if err != nil {
		return "", err
	}
	var made batchObject
	err = b.ExchangeJSON(ctx, b.at(http.MethodPost, "/batches"), map[string]any{
		"input_file_id": file, "endpoint": batch.Method, "completion_window": "24h", "metadata": map[string]string{batchKey: batch.Name},
	}, &made)
	if err == nil && made.ID == "" {
		err = b.BatchError("the answer to the creation of a batch has no id")
	}
	return made.ID, err
}

// upload uploads the calls as a file and returns its id.
func (b *batches) upload(ctx context.Context, batch *wire.Batch) (string, error) {
	const boundary = "qtype-batch-2d9c1f7a6b5e"
	head := fmt.Sprintf("--%s\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"qtype-%s.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n", boundary, boundary, batch.Name)
	body, size, err := wire.Piped(func(w io.Writer) error {
		_, err := io.WriteString(w, head)
		if err == nil {
			err = batch.WriteCalls(w, func(buf []byte, _ int, c wire.BatchCall) []byte {
				buf = fmt.Appendf(buf, `{"custom_id":%q,"method":"POST","url":%q,"body":`, c.ID, batch.Method)
				return append(append(buf, c.Body...), "}\n"...)
			})
		}
		if err == nil {
			_, err = io.WriteString(w, "\r\n--"+boundary+"--\r\n")
		}
		return err
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // ends what writes it
	r := b.at(http.MethodPost, "/files")
	r.Type, r.Body, r.Size = "multipart/form-data; boundary="+boundary, body, size
	var file struct {
		ID string `json:"id"`
	}
	err = b.ExchangeJSON(ctx, r, nil, &file)
	if err == nil && file.ID == "" {
		err = b.BatchError("the answer to the upload of a batch has no id")
	}
	if failure, ok := errors.AsType[*model.Error](err); ok && (failure.Status == http.StatusNotFound || failure.Status == http.StatusMethodNotAllowed) {
		err = b.BatchError("the server has no batches: POST /files is HTTP %d; run without --batch", failure.Status)
	}
	return file.ID, err
}

// batchObject is a batch.
type batchObject struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Created  int64             `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
	Input    string            `json:"input_file_id"`
	Output   string            `json:"output_file_id"`
	Refused  string            `json:"error_file_id"`
	Counts   struct {
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	} `json:"request_counts"`
	Errors struct {
		Data []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Line    *int   `json:"line"`
		} `json:"data"`
	} `json:"errors"`
}

// Find lists the batches, newest first, until one is older than the batch.
func (b *batches) Find(ctx context.Context, batch *wire.Batch, _ func(string) bool) (string, error) {
	const skew = 5 * time.Minute // of the clocks
	oldest := batch.Since.Add(-skew).Unix()
	for after := ""; ; {
		var list struct {
			Data []batchObject `json:"data"`
			More bool          `json:"has_more"`
		}
		query := url.Values{"limit": {"100"}}
		if after != "" {
			query.Set("after", after)
		}
		if err := b.ExchangeJSON(ctx, b.at(http.MethodGet, "/batches?"+query.Encode()), nil, &list); err != nil {
			return "", err
		}
		for _, found := range list.Data {
			if found.Metadata[batchKey] == batch.Name {
				return found.ID, nil
			}
		}
		n := len(list.Data)
		if !list.More || n == 0 || list.Data[n-1].Created < oldest || list.Data[n-1].ID == after {
			return "", nil
		}
		after = list.Data[n-1].ID
	}
}

// read reads a batch.
func (b *batches) read(ctx context.Context, id string) (found batchObject, err error) {
	err = b.ExchangeJSON(ctx, b.at(http.MethodGet, "/batches/"+url.PathEscape(id)), nil, &found)
	return found, err
}

// State returns the state of a batch.
func (b *batches) State(ctx context.Context, id string) (wire.BatchState, error) {
	found, err := b.read(ctx, id)
	if err != nil {
		return wire.BatchState{}, err
	}
	state := wire.BatchState{Word: strings.ToLower(found.Status), Made: found.Counts.Completed + found.Counts.Failed}
	switch state.Word {
	case "completed", "expired", "cancelled":
		state.Ended, state.Canceled = true, state.Word == "cancelled"
	case "failed":
		state.Ended, state.Failed = true, found.failure()
	}
	return state, nil
}

// failure returns why the batch was refused.
func (o *batchObject) failure() *wire.BatchFailed {
	f := &wire.BatchFailed{Message: "the provider refused the batch without a reason", Lines: map[int]string{}}
	for i, e := range o.Errors.Data {
		if i == 0 {
			f.Message, f.Full = e.Message, e.Code == "token_limit_exceeded"
		}
		if e.Line != nil {
			f.Lines[*e.Line] = e.Message
		}
	}
	return f
}

// Results reads the file of answers and that of errors.
func (b *batches) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	found, err := b.read(ctx, id)
	if err != nil {
		return err
	}
	for _, file := range slices.DeleteFunc([]string{found.Output, found.Refused}, func(id string) bool { return id == "" }) {
		err := b.Exchange(ctx, b.at(http.MethodGet, "/files/"+url.PathEscape(file)+"/content"), func(resp *http.Response) error {
			return b.EachLine(ctx, resp, func(line []byte) error { return takeResult(line, take) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeResult reads a line of a file of results. One that cannot be read, such as the last one of a file that
// was cut off, is no result.
func takeResult(line []byte, take func(wire.BatchResult) error) error {
	var got struct {
		ID       string `json:"custom_id"`
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		} `json:"response"`
	}
	if isRead := json.Unmarshal(line, &got) == nil; !isRead || got.ID == "" {
		return nil
	}
	result := wire.BatchResult{ID: got.ID}
	if got.Response != nil && len(got.Response.Body) > 0 {
		result.Status, result.Body = got.Response.Status, got.Response.Body
	}
	return take(result)
}

// Cancel cancels a batch.
func (b *batches) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.at(http.MethodPost, "/batches/"+url.PathEscape(id)+"/cancel"), struct{}{}, &batchObject{})
}

// Delete removes the files of a batch.
func (b *batches) Delete(ctx context.Context, id string) error {
	found, err := b.read(ctx, id)
	for _, file := range []string{found.Input, found.Output, found.Refused} {
		if file != "" && err == nil {
			err = b.ExchangeJSON(ctx, b.at(http.MethodDelete, "/files/"+url.PathEscape(file)), nil, new(json.RawMessage))
		}
	}
	return err
}
