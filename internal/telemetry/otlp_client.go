package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// otlpClient sends spans by OTLP over HTTP. It is an otlptrace.Client. That of
// OpenTelemetry imports gRPC, which every start of the program would initialize.
type otlpClient struct {
	url     string
	headers map[string]string
	http    *http.Client
	timeout time.Duration // of one attempt
	gzip    bool
}

// otlpRetries are the retries of a request that failed temporarily.
var otlpRetries = httpx.Policy{MaxAttempts: 4, InitialDelay: 500 * time.Millisecond, MaxDelay: 5 * time.Second}

// Start does nothing: connections are opened with the first request.
func (c *otlpClient) Start(context.Context) error { return nil }

// Stop closes the connections.
func (c *otlpClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. It repeats the request if the server is busy.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData has the same encoding as a request of the collector.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		if body, err = compressed(body); err != nil {
			return err
		}
	}
	for tries := otlpRetries.Start(); ; {
		temporary, wait, err := c.post(ctx, body)
		if err == nil || !temporary || !tries.Next(ctx, wait) {
			return err
		}
	}
}

// compressed returns a body in the form of gzip.
func compressed(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

// post makes one attempt. temporary reports whether a later one may succeed, not
// before wait.
func (c *otlpClient) post(ctx context.Context, body []byte) (temporary bool, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", httpx.UserAgent())
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	for name, v := range c.headers {
		req.Header.Set(name, v)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, 0, fmt.Errorf("%s: %s", httpx.Server(req.URL), httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the connection can be used again
	if resp.StatusCode/100 == 2 {
		return false, 0, nil
	}
	retry := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return slices.Contains(retry, resp.StatusCode), httpx.RetryAfter(resp.Header, time.Now()),
		fmt.Errorf("%s: HTTP %d: %s", httpx.Server(req.URL), resp.StatusCode, scrubbed(string(text), c.headers))
}

// scrubbed returns the answer of a server for a message, without the credentials in
// the headers of the request.
func scrubbed(text string, headers map[string]string) string {
	for _, v := range headers {
		if len(v) > 3 {
			text = httpx.Scrub(text, v)
		}
	}
	return httpx.Excerpt(text, 300)
}
