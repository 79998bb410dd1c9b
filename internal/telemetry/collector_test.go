package telemetry_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is a server that receives traces by OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	paths    []string
	headers  http.Header // of the last request
	resource map[string]any
	spans    []*tracepb.Span
	status   int // of the answers; 0 for 200
}

func newCollector(t testing.TB) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths, c.headers = append(c.paths, r.URL.Path), r.Header
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	text, err := io.ReadAll(body)
	req := &tracepb.TracesData{} // the fields of ExportTraceServiceRequest, whose package would add gRPC
	if err == nil {
		err = proto.Unmarshal(text, req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, rs := range req.ResourceSpans {
		c.resource = attributesOf(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// sorted returns the received spans by their start.
func (c *collector) sorted() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.spans, func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return slices.Clone(c.spans)
}

// tree describes the received spans as a tree.
func (c *collector) tree() []string {
	depth := map[string]int{}
	var all []string
	for _, s := range c.sorted() {
		if d, ok := depth[string(s.ParentSpanId)]; ok {
			depth[string(s.SpanId)] = d + 1
		} else {
			depth[string(s.SpanId)] = 0
		}
		line := fmt.Sprintf("%*s%s [%v]", 2*depth[string(s.SpanId)], "", s.Name, attributesOf(s.Attributes)["openinference.span.kind"])
		if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			line += " " + s.Status.Message
		}
		all = append(all, line)
	}
	return all
}

// span returns the first span with a name.
func (c *collector) span(t testing.TB, name string) (*tracepb.Span, map[string]any) {
	t.Helper()
	for _, s := range c.sorted() {
		if s.Name == name {
			return s, attributesOf(s.Attributes)
		}
	}
	t.Fatalf("there is no span %s in %q", name, c.tree())
	return nil, nil
}

func attributesOf(list []*commonpb.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.Key] = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			all[a.Key] = v.DoubleValue
		case *commonpb.AnyValue_BoolValue:
			all[a.Key] = v.BoolValue
		default:
			all[a.Key] = a.Value.String()
		}
	}
	return all
}
