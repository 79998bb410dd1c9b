package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/model"
)

// Batches is the batch API of a provider: many calls that are answered within a day, for less. It is
// safe for concurrent use. Its errors are an *Error of package model, or the context's.
type Batches interface {
	// Limits returns how much a batch can have.
	Limits() BatchLimits
	// Method returns the method that a call addresses, such as /v1/messages; empty if batches do not have it.
	Method(u *url.URL) string
	// Head returns the headers that all calls of a batch have, without credentials; nil for none.
	Head(h http.Header) http.Header
	// Create creates a batch and returns the provider's id. It is not idempotent: after an error that is
	// temporary the batch may exist.
	Create(ctx context.Context, b *Batch) (id string, err error)
	// Find returns the id of a batch that Create has made; empty if there is none. isOther reports whether an id
	// is that of another batch of the caller. The error is an *UncertainError if only the end of a batch will show
	// whether it is the one, and Batch.Pause is 0; it is ErrUnlisted if nothing can be found.
	Find(ctx context.Context, b *Batch, isOther func(id string) bool) (id string, err error)
	// State returns the state of a batch.
	State(ctx context.Context, id string) (BatchState, error)
	// Results calls take with the results of a batch that has ended, in any order. Some may be missing. An
	// error of take is returned.
	Results(ctx context.Context, id string, take func(BatchResult) error) error
	// Cancel cancels a batch. Calls that were made keep their results.
	Cancel(ctx context.Context, id string) error
	// Delete removes what the provider stores of a batch that has ended.
	Delete(ctx context.Context, id string) error
}

// BatchLimits is how much a batch can have.
type BatchLimits struct {
	Least int   // calls; fewer are made at once
	Calls int   // at most
	Bytes int64 // of all calls as they are sent
	// Single is set if a batch is one call, whose creation is refused for the reasons for which a call is.
	Single bool
}

// Batch is what a batch is made of.
type Batch struct {
	Name   string                             // of letters, digits and hyphens, which no other batch has
	Method string                             // of all calls
	Head   http.Header                        // that of all calls
	Since  time.Time                          // before the first attempt to create it
	Count  int                                // the number of calls
	Pause  time.Duration                      // between two looks at a file in Create, and at another batch in Find, which waits for none if it is 0
	Calls  func() iter.Seq2[BatchCall, error] // reads the calls, each time all of them
}

// ListedBatch is a batch in the list of a provider.
type ListedBatch struct {
	ID, Name string
	Calls    int       // where batches have no names
	Created  time.Time // by the clock of the provider; zero if the list has no order
}

// BatchList is a page of the list of batches.
type BatchList interface {
	// Page returns the batches, newest first if they have times, and the token of the next page; empty after the last one.
	Page() (all []ListedBatch, next string)
}

// FindBatch returns the id of the batch in a list that is reports to be the one; empty for none. It ends at a page with a
// batch that is older than since. Older ones without a name are not considered. list returns a request, and what its
// answer is decoded into.
func (s *Server) FindBatch(ctx context.Context, since time.Time, list func(token string) (Exchange, BatchList), is func(ListedBatch) (bool, error)) (string, error) {
	const skew = 5 * time.Minute // of the clocks, where an answer has no date
	for token := ""; ; {
		r, page := list(token)
		oldest := since.Add(-skew)
		r.Received = func(h http.Header) {
			if date, err := http.ParseTime(h.Get("Date")); err == nil {
				oldest = oldest.Add(-time.Since(date))
			}
		}
		if err := s.ExchangeJSON(ctx, r, nil, page); err != nil {
			return "", err
		}
		all, next := page.Page()
		isOlder := false
		for _, b := range all {
			isOlder = !b.Created.IsZero() && b.Created.Before(oldest)
			if isOlder && b.Name == "" {
				continue
			}
			if found, err := is(b); found || err != nil {
				return b.ID, err
			}
		}
		if isOlder || next == "" || next == token {
			return "", nil
		}
		token = next
	}
}

// Uploads are the files of batches that were not created yet: another attempt uses the file again. It is safe for
// concurrent use.
type Uploads struct {
	mu  sync.Mutex
	ids map[string]string // by the names of batches
}

// Use calls create with the file of a batch, which upload uploads if there is none.
func (u *Uploads) Use(batch string, upload func() (string, error), create func(file string) (string, error)) (id string, err error) {
	u.mu.Lock()
	file := u.ids[batch]
	u.mu.Unlock()
	if file == "" {
		if file, err = upload(); err != nil {
			return "", &UnsentError{Err: err}
		}
	}
	id, err = create(file)
	failure, ok := errors.AsType[*model.Error](err)
	u.mu.Lock()
	defer u.mu.Unlock()
	if ok && failure.Temporary {
		if u.ids == nil {
			u.ids = map[string]string{}
		}
		u.ids[batch] = file
	} else {
		delete(u.ids, batch)
	}
	return id, err
}

// ErrUnlisted is returned by Find of a provider without a list: a batch whose creation was not confirmed cannot be found.
var ErrUnlisted = errors.New("its creation was not confirmed, and the provider has no list in which to find it")

// UncertainError reports a batch that may be the one to find.
type UncertainError struct{ ID string }

// Error says why it is not known.
func (*UncertainError) Error() string { return "its calls are known when it has ended" }

// UnsentError reports that the request which creates a batch was not sent: what comes before it has failed.
type UnsentError struct{ Err error }

// Error returns why.
func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *UnsentError) Unwrap() error { return e.Err }

// IsUnsent reports whether a batch was surely not created: nothing was sent to the server, or only what comes before.
func IsUnsent(err error) bool {
	if _, ok := errors.AsType[*UnsentError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// BatchCall is a call in a batch.
type BatchCall struct {
	ID   string // unique in the account: at most 64 letters, digits, hyphens and underscores
	Body []byte // the request of a call that is made at once, in JSON
}

// BatchResult is the result of a call in a batch.
type BatchResult struct {
	ID     string // of the call
	Status int    // as of a call that is made at once; 0 if it was not made, and costs nothing
	Body   []byte // the answer, or an error in the form of the provider
}

// BatchState is the state of a batch.
type BatchState struct {
	Word     string       // the provider's word
	Ended    bool         // there are results, or Failed
	Failed   *BatchFailed // why the provider made none of the calls; nil if it did not refuse the batch
	Canceled bool         // it was canceled: calls without a result were not made
	Made     int          // calls that were made, and have a result, where the provider counts them
}

// BatchFailed is why a provider refused a whole batch after it was created.
type BatchFailed struct {
	Full    bool           // the provider has too many calls waiting: the batch can be created later
	Message string         // the first error
	Lines   map[int]string // the errors of single calls, by their place, from 1
}

// atOnceKey is the key of a mark, an *atomic.Bool.
type atOnceKey struct{}

// WithAtOnce returns a context of a call to a model with batches, and a mark that is set if the call is made at once.
func WithAtOnce(ctx context.Context) (context.Context, *atomic.Bool) {
	mark := new(atomic.Bool)
	return context.WithValue(ctx, atOnceKey{}, mark), mark
}

// MarkAtOnce sets the mark of WithAtOnce.
func MarkAtOnce(ctx context.Context) {
	if mark, ok := ctx.Value(atOnceKey{}).(*atomic.Bool); ok {
		mark.Store(true)
	}
}

// Exchange sends a request that is not that of a model, such as one about a batch, and passes a successful
// response to read. It ends with an error that passes if nothing is transferred for a time.
func (s *Server) Exchange(ctx context.Context, r Exchange, read func(*http.Response) error) error {
	idle, ended := newIdleLimit(ctx, cmp.Or(s.Idle, maxIdle))
	defer ended()
	if body, ok := r.Body.(*io.PipeReader); ok {
		r.Body = &upload{body, idle}
	}
	req, err := http.NewRequestWithContext(idle.ctx, r.Method, r.URL, r.Body)
	if err != nil {
		return s.requestError(err)
	}
	if s.addHeaders(req.Header); r.Body != nil {
		req.ContentLength = r.Size
		req.Header.Set("Content-Type", r.Type)
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", httpx.UserAgent())
	}
	if s.Authorize != nil {
		if err := s.Authorize(req, r.signed); err != nil {
			return s.authorizationError(ctx, err)
		}
	}
	resp, err := s.http.Do(req) //nolint:bodyclose // drainAndClose closes it
	if err != nil {
		return s.connectionError(ctx, "cannot reach", idle.reason(err))
	}
	idle.timer.Stop()
	resp.Body = &download{resp.Body, idle}
	defer drainAndClose(resp.Body)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return s.statusError(resp)
	}
	if r.Received != nil {
		r.Received(resp.Header)
	}
	return read(resp)
}

// Exchange is a request that is not that of a model.
type Exchange struct {
	Method, URL string
	Header      http.Header // credentials and versions
	Type        string      // the media type of the body
	Body        io.Reader   // nil for none
	Size        int64       // the length of the body

	signed []byte // the body, if it is small: a signature has its digest

	Received func(http.Header) // gets the headers of a successful response; nil for none
}

// ExchangeJSON sends a request with an object, which may be nil, and decodes the answer.
func (s *Server) ExchangeJSON(ctx context.Context, r Exchange, body, answer any) error {
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return s.requestError(err)
		}
		r.Type, r.Body, r.Size, r.signed = "application/json", bytes.NewReader(text), int64(len(text)), text
	}
	return s.Exchange(ctx, r, func(resp *http.Response) error {
		return s.whole(ctx, resp, func(raw []byte) error { return json.Unmarshal(raw, answer) })
	})
}

// EachLine calls take with each line of what has an object in each. Only a line feed ends a line: texts may
// have other separators.
func (s *Server) EachLine(ctx context.Context, in io.Reader, take func(line []byte) error) error {
	from := bufio.NewReaderSize(in, 64<<10)
	const mark = "\xef\xbb\xbf" // a byte order mark
	if first, _ := from.Peek(len(mark)); string(first) == mark {
		_, _ = from.Discard(len(mark)) // is buffered
	}
	for {
		line, err := readLine(from)
		if len(bytes.TrimSpace(line)) > 0 {
			if err := take(line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return s.connectionError(ctx, "lost the connection to", err)
		}
	}
}

// readLine reads a line of at most MaxAnswer bytes.
func readLine(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxAnswer:
			return nil, ErrTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// WriteCalls writes the calls of a batch, each by format.
func (b *Batch) WriteCalls(w io.Writer, format func(buf []byte, n int, c BatchCall) []byte) error {
	var buf []byte
	n := 0
	for c, err := range b.Calls() {
		if err != nil {
			return err
		}
		c.Body = bytes.TrimSpace(c.Body)
		buf = format(buf[:0], n, c)
		if _, err := w.Write(buf); err != nil {
			return err
		}
		n++
	}
	return nil
}

// Piped returns a body that write writes while it is read, and its length.
func Piped(write func(io.Writer) error) (body *io.PipeReader, size int64, err error) {
	var n counter
	if err := write(&n); err != nil {
		return nil, 0, err
	}
	from, to := io.Pipe()
	go func() { to.CloseWithError(write(to)) }()
	return from, int64(n), nil
}

// counter counts the bytes that are written.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// StatusOf returns the HTTP status of the kind of an error, 500 for an unknown one.
func StatusOf(kind string) int {
	if status := wordStatus(kind); status != 0 {
		return status
	}
	return http.StatusInternalServerError
}

// BatchError returns an error about batches that does not pass.
func (s *Server) BatchError(format string, args ...any) error {
	return &model.Error{Model: s.Info.ID, Endpoint: s.Info.Endpoint, Message: fmt.Sprintf(format, args...)}
}
