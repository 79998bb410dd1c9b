package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// batches is the API of message batches. It implements wire.Batches.
type batches struct {
	*wire.Server
	root   string      // the address of /messages/batches
	header http.Header // version and credential
}

// NewBatches makes the API of message batches. It calls nothing.
func NewBatches(c Config) (wire.Batches, error) {
	made, err := newProtocol(c)
	if err != nil {
		return nil, err
	}
	return &batches{Server: made.Server, root: made.endpoint + "/batches", header: made.header}, nil
}

// Limits returns how much a batch can have: 100,000 calls and 256 MB, less what the list adds.
func (b *batches) Limits() wire.BatchLimits {
	return wire.BatchLimits{Calls: 100_000, Bytes: 250_000_000}
}

// Method returns the method of a call.
func (b *batches) Method(u *url.URL) string {
	if path.Base(u.Path) == "messages" {
		return "/v1/messages"
	}
	return ""
}

// Head returns the version and the features of a call: they are those of a whole batch.
func (b *batches) Head(h http.Header) http.Header {
	head := http.Header{}
	for _, name := range []string{"Anthropic-Version", betaHeader} {
		if values := h[name]; len(values) > 0 {
			head[name] = values
		}
	}
	return head
}

// at returns a request about a batch; rest is its path or query after that of all batches.
func (b *batches) at(method, rest string) wire.Exchange {
	return wire.Exchange{Method: method, URL: b.root + rest, Header: maps.Clone(b.header)}
}

// Create creates a batch with all calls.
func (b *batches) Create(ctx context.Context, batch *wire.Batch) (string, error) {
	body, size, err := wire.Piped(func(w io.Writer) error {
		_, err := io.WriteString(w, `{"requests":[`)
		if err == nil {
			err = batch.WriteCalls(w, func(buf []byte, n int, c wire.BatchCall) []byte {
				if n > 0 {
					buf = append(buf, ',')
				}
				buf = fmt.Appendf(buf, `{"custom_id":%q,"params":`, c.ID)
				return append(append(buf, c.Body...), '}')
			})
		}
		if err == nil {
			_, err = io.WriteString(w, "]}")
		}
		return err
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // ends what writes it
	r := b.at(http.MethodPost, "")
	r.Type, r.Body, r.Size = "application/json", body, size
	maps.Copy(r.Header, batch.Head)
	var made batchObject
	err = b.ExchangeJSON(ctx, r, nil, &made)
	if err == nil && made.ID == "" {
		err = b.BatchError("the answer to the creation of a batch has no id")
	}
	return made.ID, err
}

// batchObject is a batch.
type batchObject struct {
	ID      string    `json:"id"`
	Status  string    `json:"processing_status"`
	Created time.Time `json:"created_at"`
	Results string    `json:"results_url"`
	Counts  struct {
		Processing int `json:"processing"`
		Succeeded  int `json:"succeeded"`
		Errored    int `json:"errored"`
		Canceled   int `json:"canceled"`
		Expired    int `json:"expired"`
	} `json:"request_counts"`
}

// ended returns how many calls have a result, also as one that was not made.
func (o *batchObject) ended() int {
	return o.Counts.Succeeded + o.Counts.Errored + o.Counts.Canceled + o.Counts.Expired
}

// batchPage is a page of the list of batches.
type batchPage struct {
	Data []batchObject `json:"data"`
	More bool          `json:"has_more"`
	Last string        `json:"last_id"`
}

// Page returns the batches, and the id after which the next page begins.
func (p *batchPage) Page() (all []wire.ListedBatch, next string) {
	for _, b := range p.Data {
		all = append(all, wire.ListedBatch{ID: b.ID, Calls: b.ended() + b.Counts.Processing, Created: b.Created})
	}
	if p.More {
		next = p.Last
	}
	return all, next
}

// Find looks for the batch in the list. A batch has no name, so that only its results tell which calls it has: Find
// waits for the end of those with as many calls.
func (b *batches) Find(ctx context.Context, batch *wire.Batch, isOther func(string) bool) (string, error) {
	list := func(after string) (wire.Exchange, wire.BatchList) {
		query := url.Values{"limit": {"100"}}
		if after != "" {
			query.Set("after_id", after)
		}
		return b.at(http.MethodGet, "?"+query.Encode()), &batchPage{}
	}
	return b.FindBatch(ctx, batch.Since, list, func(listed wire.ListedBatch) (bool, error) {
		if isOther(listed.ID) || listed.Calls != batch.Count {
			return false, nil
		}
		return b.isBatch(ctx, listed.ID, batch)
	})
}

// errFound ends the reading of results.
var errFound = errors.New("found")

// isBatch reports whether a batch has a result of one of the calls.
func (b *batches) isBatch(ctx context.Context, id string, batch *wire.Batch) (bool, error) {
	ids := make(map[string]bool, batch.Count)
	for c, err := range batch.Calls() {
		if err != nil {
			return false, err
		}
		ids[c.ID] = true
	}
	for {
		state, err := b.State(ctx, id)
		if err != nil {
			return false, err
		}
		if state.Ended {
			break
		}
		if batch.Pause == 0 {
			return false, &wire.UncertainError{ID: id}
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(batch.Pause):
		}
	}
	err := b.Results(ctx, id, func(r wire.BatchResult) error {
		if ids[r.ID] {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// read reads a batch.
func (b *batches) read(ctx context.Context, id string) (found batchObject, err error) {
	err = b.ExchangeJSON(ctx, b.at(http.MethodGet, "/"+url.PathEscape(id)), nil, &found)
	return found, err
}

// State returns the state of a batch. The provider counts nothing before the end.
func (b *batches) State(ctx context.Context, id string) (wire.BatchState, error) {
	found, err := b.read(ctx, id)
	return wire.BatchState{Word: found.Status, Ended: found.Status == "ended", Canceled: found.Counts.Canceled > 0, Made: found.Counts.Succeeded + found.Counts.Errored}, err
}

// Results reads the results.
func (b *batches) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	return b.Exchange(ctx, b.at(http.MethodGet, "/"+url.PathEscape(id)+"/results"), func(resp *http.Response) error {
		return b.EachLine(ctx, resp.Body, func(line []byte) error { return takeResult(line, take) })
	})
}

// takeResult reads a line of results. One that cannot be read, such as the last one of a file that was cut
// off, is no result.
func takeResult(line []byte, take func(wire.BatchResult) error) error {
	var got struct {
		ID     string `json:"custom_id"`
		Result struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
			Error   json.RawMessage `json:"error"`
		} `json:"result"`
	}
	if isRead := json.Unmarshal(line, &got) == nil; !isRead || got.ID == "" {
		return nil
	}
	result := wire.BatchResult{ID: got.ID}
	switch got.Result.Type {
	case "succeeded":
		result.Status, result.Body = http.StatusOK, got.Result.Message
	case "errored":
		var failed struct {
			Error struct {
				Type string `json:"type"`
			} `json:"error"`
		}
		_ = json.Unmarshal(got.Result.Error, &failed) // of an unknown kind then
		result.Status, result.Body = wire.StatusOf(failed.Error.Type), got.Result.Error
	}
	return take(result)
}

// Cancel cancels a batch.
func (b *batches) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.at(http.MethodPost, "/"+url.PathEscape(id)+"/cancel"), struct{}{}, &batchObject{})
}

// Delete removes a batch and its results.
func (b *batches) Delete(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.at(http.MethodDelete, "/"+url.PathEscape(id)), nil, new(json.RawMessage))
}
