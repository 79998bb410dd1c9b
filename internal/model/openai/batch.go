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
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// batches is the batch API of a server that takes a file of calls. It implements wire.Batches.
type batches struct {
	*wire.Server
	dialect
	root    string      // the address before /files
	header  http.Header // credentials
	uploads wire.Uploads
}

// dialect is what the batch API of a provider has of its own.
type dialect struct {
	path    string            // of batches, after the root
	query   url.Values        // of all requests
	limits  wire.BatchLimits  // of a file
	methods map[string]string // of calls, by the ends of their addresses
	fields  map[string]string // of the form of an upload, beside the purpose
	prefix  string            // of the body of a call in a file, after its id: a format, whose argument is the method
	awaits  bool              // a batch is created when the provider has read its file

	creation func(b *wire.Batch, file string) map[string]any         // the request that creates a batch
	job      func() job                                              // a batch, to be decoded
	list     func(token string) (query url.Values, _ wire.BatchList) // a page of the list of batches
}

// job is a batch as a provider describes it.
type job interface {
	state() (id string, _ wire.BatchState) // its id, and its state
	files() (input, results []string)      // the ids of its files; empty for none
}

// batchKey is the key of the metadata of a batch that has its name.
const batchKey = "qtype_batch"

// NewBatches makes the batch API of OpenAI. It calls nothing.
func NewBatches(c Config) (wire.Batches, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "batch", Example: example})
	if err != nil {
		return nil, err
	}
	return &batches{Server: s, dialect: openaiDialect(), root: strings.TrimSuffix(s.Base.String(), "/"), header: bearer(s.Key)}, nil
}

// openaiDialect is that of OpenAI: at most 50,000 calls and 200 MB, less what a form adds.
func openaiDialect() dialect {
	return dialect{
		path: "/batches", limits: wire.BatchLimits{Calls: 50_000, Bytes: 199_000_000},
		methods: map[string]string{"/responses": "/v1/responses", "/chat/completions": "/v1/chat/completions", "/embeddings": "/v1/embeddings"},
		prefix:  `,"method":"POST","url":%q`,
		creation: func(b *wire.Batch, file string) map[string]any {
			return map[string]any{"input_file_id": file, "endpoint": b.Method, "completion_window": "24h", "metadata": map[string]string{batchKey: b.Name}}
		},
		job: func() job { return &batchObject{} },
		list: func(after string) (url.Values, wire.BatchList) {
			query := url.Values{"limit": {"100"}}
			if after != "" {
				query.Set("after", after)
			}
			return query, &batchPage{}
		},
	}
}

// Limits returns how much a batch can have.
func (b *batches) Limits() wire.BatchLimits { return b.limits }

// Method returns the method of a call.
func (b *batches) Method(u *url.URL) string {
	for end, method := range b.methods {
		if strings.HasSuffix(u.Path, end) {
			return method
		}
	}
	return ""
}

// Head returns nil: calls have no headers of their own.
func (b *batches) Head(http.Header) http.Header { return nil }

// at returns a request about a batch or file.
func (b *batches) at(method, path string, query url.Values) wire.Exchange {
	all := maps.Clone(b.query)
	if all == nil {
		all = url.Values{}
	}
	maps.Copy(all, query)
	address := b.root + path
	if len(all) > 0 {
		address += "?" + all.Encode()
	}
	return wire.Exchange{Method: method, URL: address, Header: maps.Clone(b.header)}
}

// batch returns a request about a batch, with the id before rest.
func (b *batches) batch(method, id, rest string) wire.Exchange {
	return b.at(method, b.path+"/"+url.PathEscape(id)+rest, nil)
}

// Create uploads the file and creates the batch.
func (b *batches) Create(ctx context.Context, batch *wire.Batch) (string, error) {
	upload := func() (string, error) { return b.upload(ctx, batch) }
	return b.uploads.Use(batch.Name, upload, func(file string) (string, error) {
		made := b.job()
		err := b.ExchangeJSON(ctx, b.at(http.MethodPost, b.path, nil), b.creation(batch, file), made)
		id, _ := made.state()
		if err == nil && id == "" {
			err = b.BatchError("the answer to the creation of a batch has no id")
		}
		return id, err
	})
}

// upload uploads the calls as a file and returns its id.
func (b *batches) upload(ctx context.Context, batch *wire.Batch) (string, error) {
	const boundary = "qtype-batch-2d9c1f7a6b5e"
	var head strings.Builder
	fields := map[string]string{"purpose": "batch"}
	maps.Copy(fields, b.fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&head, "--%s\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", boundary, name, fields[name])
	}
	fmt.Fprintf(&head, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"qtype-%s.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n", boundary, batch.Name)
	prefix := b.prefix
	if prefix != "" {
		prefix = fmt.Sprintf(prefix, batch.Method)
	}
	body, size, err := wire.Piped(func(w io.Writer) error {
		_, err := io.WriteString(w, head.String())
		if err == nil {
			err = batch.WriteCalls(w, func(buf []byte, _ int, c wire.BatchCall) []byte {
				buf = fmt.Appendf(buf, `{"custom_id":%q%s,"body":`, c.ID, prefix)
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
	r := b.at(http.MethodPost, "/files", nil)
	r.Type, r.Body, r.Size = "multipart/form-data; boundary="+boundary, body, size
	var file fileObject
	err = b.ExchangeJSON(ctx, r, nil, &file)
	if err == nil && file.ID == "" {
		err = b.BatchError("the answer to the upload of a batch has no id")
	}
	if failure, ok := errors.AsType[*model.Error](err); ok && (failure.Status == http.StatusNotFound || failure.Status == http.StatusMethodNotAllowed) {
		err = b.BatchError("the server has no batches: POST /files is HTTP %d; run without --batch", failure.Status)
	}
	if err == nil && b.awaits {
		err = b.await(ctx, file, batch.Pause)
	}
	return file.ID, err
}

// fileObject is a file.
type fileObject struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// await waits until the provider has read a file.
func (b *batches) await(ctx context.Context, file fileObject, pause time.Duration) error {
	const maxPause = 10 * time.Second
	for {
		switch strings.ToLower(file.Status) {
		case "uploaded", "pending", "running":
		case "error":
			return b.BatchError("the provider could not read the file of the calls, %s", file.ID)
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(pause, maxPause)):
		}
		if err := b.ExchangeJSON(ctx, b.at(http.MethodGet, "/files/"+url.PathEscape(file.ID), nil), nil, &file); err != nil {
			return err
		}
	}
}

// batchObject is a batch.
type batchObject struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Created  createdAt         `json:"created_at"`
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

// createdAt is a time in seconds since 1970, or as a text, as some versions of Azure have it.
type createdAt struct{ time.Time }

// UnmarshalJSON reads a time. It never fails.
func (t *createdAt) UnmarshalJSON(raw []byte) error {
	var seconds int64
	if json.Unmarshal(raw, &seconds) == nil {
		t.Time = time.Unix(seconds, 0)
		return nil
	}
	_ = json.Unmarshal(raw, &t.Time) // an unknown time otherwise
	return nil
}

// state returns the id and the state.
func (o *batchObject) state() (string, wire.BatchState) {
	state := wire.BatchState{Word: strings.ToLower(o.Status), Made: o.Counts.Completed + o.Counts.Failed}
	switch state.Word {
	case "completed", "expired", "cancelled":
		state.Ended, state.Canceled = true, state.Word == "cancelled"
	case "failed":
		state.Ended, state.Failed = true, o.failure()
	}
	return o.ID, state
}

// files returns the files.
func (o *batchObject) files() (input, results []string) {
	return []string{o.Input}, []string{o.Output, o.Refused}
}

// batchPage is a page of the list of batches.
type batchPage struct {
	Data []batchObject `json:"data"`
	More bool          `json:"has_more"`
}

// Page returns the batches, and the id after which the next page begins.
func (p *batchPage) Page() (all []wire.ListedBatch, next string) {
	for _, b := range p.Data {
		all = append(all, wire.ListedBatch{ID: b.ID, Name: b.Metadata[batchKey], Created: b.Created.Time})
		if p.More {
			next = b.ID
		}
	}
	return all, next
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

// Find looks for the batch in the list.
func (b *batches) Find(ctx context.Context, batch *wire.Batch, _ func(string) bool) (string, error) {
	list := func(token string) (wire.Exchange, wire.BatchList) {
		query, page := b.list(token)
		return b.at(http.MethodGet, b.path, query), page
	}
	return b.FindBatch(ctx, batch.Since, list, func(listed wire.ListedBatch) (bool, error) { return listed.Name == batch.Name, nil })
}

// read reads a batch.
func (b *batches) read(ctx context.Context, id string) (job, error) {
	found := b.job()
	return found, b.ExchangeJSON(ctx, b.batch(http.MethodGet, id, ""), nil, found)
}

// State returns the state of a batch.
func (b *batches) State(ctx context.Context, id string) (wire.BatchState, error) {
	found, err := b.read(ctx, id)
	_, state := found.state()
	return state, err
}

// Results reads the files of answers and errors.
func (b *batches) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	found, err := b.read(ctx, id)
	if err != nil {
		return err
	}
	_, results := found.files()
	for _, file := range results {
		if file == "" {
			continue
		}
		err := b.Exchange(ctx, b.at(http.MethodGet, "/files/"+url.PathEscape(file)+"/content", nil), func(resp *http.Response) error {
			return b.EachLine(ctx, resp.Body, func(line []byte) error { return takeResult(line, take) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeResult reads a line of a file of results. One that cannot be read, such as the last one of a file that
// was cut off, is no result. A failed call has the error in its answer, or beside that.
func takeResult(line []byte, take func(wire.BatchResult) error) error {
	var got struct {
		ID       string `json:"custom_id"`
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		} `json:"response"`
		Error json.RawMessage `json:"error"`
	}
	if isRead := json.Unmarshal(line, &got) == nil; !isRead || got.ID == "" {
		return nil
	}
	result := wire.BatchResult{ID: got.ID}
	switch r := got.Response; {
	case r != nil && isSet(r.Body):
		result.Status, result.Body = r.Status, r.Body
	case r != nil && r.Status >= http.StatusBadRequest && isSet(got.Error):
		result.Status, result.Body = r.Status, slices.Concat([]byte(`{"error":`), []byte(got.Error), []byte("}"))
	}
	return take(result)
}

// Cancel cancels a batch.
func (b *batches) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.batch(http.MethodPost, id, "/cancel"), struct{}{}, new(json.RawMessage))
}

// Delete removes the files of a batch.
func (b *batches) Delete(ctx context.Context, id string) error {
	found, err := b.read(ctx, id)
	input, results := found.files()
	for _, file := range slices.Concat(input, results) {
		if file != "" && err == nil {
			err = b.ExchangeJSON(ctx, b.at(http.MethodDelete, "/files/"+url.PathEscape(file), nil), nil, new(json.RawMessage))
		}
	}
	return err
}

// NewAzureBatches makes the batch API of a deployment in Azure OpenAI, which must be one for batches. It calls nothing.
func NewAzureBatches(c AzureConfig) (wire.Batches, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "batch", Example: azureExample})
	if err != nil {
		return nil, err
	}
	to := c.target(s, "responses") // its path has the version, and no deployment
	address, query, _ := strings.Cut(to.endpoint, "?")
	own := openaiDialect()
	own.limits.Calls, own.awaits = 100_000, true
	own.methods = map[string]string{"/responses": "/v1/responses", "/chat/completions": "/v1/chat/completions"} // Azure has no embeddings in batches
	switch {
	case query != "" && c.Version != "preview":
		own.methods["/chat/completions"] = "/chat/completions"
	default: // a resource keeps 500 files without a time, and 10,000 with one of 14 days or more
		own.fields = map[string]string{"expires_after[anchor]": "created_at", "expires_after[seconds]": "1209600"}
	}
	if own.query, err = url.ParseQuery(query); err != nil {
		return nil, err
	}
	return &batches{Server: s, dialect: own, root: strings.TrimSuffix(address, "/responses"), header: to.header}, nil
}

// NewMistralBatches makes the batch API of Mistral. It calls nothing.
func NewMistralBatches(c Config) (wire.Batches, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "batch", Example: "https://api.mistral.ai/v1"})
	if err != nil {
		return nil, err
	}
	own := dialect{
		path: "/batch/jobs", limits: wire.BatchLimits{Calls: 100_000, Bytes: 510_000_000}, // a file of 512 MB
		methods: map[string]string{"/chat/completions": "/v1/chat/completions", "/embeddings": "/v1/embeddings"},
		creation: func(b *wire.Batch, file string) map[string]any {
			return map[string]any{"input_files": []string{file}, "endpoint": b.Method, "model": c.Info.Name, "metadata": map[string]string{batchKey: b.Name}, "timeout_hours": 24}
		},
		job: func() job { return &mistralJob{} },
		list: func(token string) (url.Values, wire.BatchList) {
			number, _ := strconv.Atoi(token) // the first page without one
			return url.Values{"page": {strconv.Itoa(number)}, "page_size": {"100"}, "order_by": {"-created"}}, &mistralPage{number: number}
		},
	}
	return &batches{Server: s, dialect: own, root: strings.TrimSuffix(s.Base.String(), "/"), header: bearer(s.Key)}, nil
}

// mistralJob is a batch.
type mistralJob struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Created  createdAt         `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
	Input    []string          `json:"input_files"`
	Output   string            `json:"output_file"`
	Refused  string            `json:"error_file"`
	Done     int               `json:"succeeded_requests"`
	Failed   int               `json:"failed_requests"`
	Errors   []struct {
		Message string `json:"message"`
	} `json:"errors"`
}

// state returns the id and the state. One that took too long, or has failed, may have results.
func (j *mistralJob) state() (string, wire.BatchState) {
	state := wire.BatchState{Word: strings.ToLower(j.Status), Made: j.Done + j.Failed}
	switch state.Word {
	case "success", "timeout_exceeded", "cancelled":
		state.Ended, state.Canceled = true, state.Word == "cancelled"
	case "failed":
		if state.Ended = true; j.Output == "" && j.Refused == "" {
			state.Failed = &wire.BatchFailed{Message: "the provider refused the batch without a reason"}
			if len(j.Errors) > 0 {
				state.Failed.Message = j.Errors[0].Message
			}
		}
	}
	return j.ID, state
}

// files returns the files.
func (j *mistralJob) files() (input, results []string) { return j.Input, []string{j.Output, j.Refused} }

// mistralPage is a page of the list of batches.
type mistralPage struct {
	number int
	Data   []mistralJob `json:"data"`
}

// Page returns the batches, and the number of the next page, which may be empty.
func (p *mistralPage) Page() (all []wire.ListedBatch, next string) {
	for _, j := range p.Data {
		all = append(all, wire.ListedBatch{ID: j.ID, Name: j.Metadata[batchKey], Created: j.Created.Time})
		next = strconv.Itoa(p.number + 1)
	}
	return all, next
}
