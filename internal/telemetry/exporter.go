package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// FlushTimeout is how long Flush and Close wait for the exporter by default.
const FlushTimeout = 5 * time.Second

// captureVariable turns the inputs and outputs in spans off.
const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

const (
	maxAttributes  = 4096 // of one span; each message of a call has several
	maxBatch       = 128  // spans in one request of the exporter
	textLimit      = "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
	attributeLimit = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
)

// Options configure Open.
type Options struct {
	Service string       // the name of the service in traces; empty for the application's id
	Version string       // the version of the service; may be empty
	Warn    func(string) // receives problems of the exporter, one line each, at most once; nil for none

	FlushTimeout time.Duration // how long Flush and Close wait; 0 means FlushTimeout
}

// Exporter sends the traces of runs to where the document or the environment names. A
// nil *Exporter sends nothing.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   *Tracer
	export   *quietExporter
	wait     time.Duration // of Flush and Close
}

// Open starts the exporter of an application: of the telemetry that the document
// declares, else of the endpoint in OTEL_EXPORTER_OTLP_ENDPOINT. It returns nil if there
// is neither, or if OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER turns traces off. Nothing
// is sent before a run. An error means that the declaration is incomplete, or that the program of ctx has no part that
// sends traces.
func Open(ctx context.Context, app *runtime.App, o Options) (*Exporter, error) {
	if !enabled() {
		return nil, nil
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	service := cmp.Or(o.Service, app.Spec().ID)
	d, err := newDestination(app, service)
	if err != nil || d == nil && environmentEndpoint() == "" {
		return nil, err
	}
	if d != nil {
		if unused := d.unusedArgs(); len(unused) > 0 {
			o.Warn(fmt.Sprintf("telemetry %s: args without effect: %s", d.declared.ID, strings.Join(unused, ", ")))
		}
	}
	client, err := newClient(d)
	if err != nil {
		return nil, err
	}
	if client.encode = PartsOf(ctx).OTLP; client.encode == nil {
		return nil, fmt.Errorf("telemetry: %w", &parts.MissingError{Kind: parts.Telemetry, Name: PartOTLP})
	}
	return newExporter(ctx, d, newQuietExporter(&redactedExporter{client, app.Redactor()}, o.Warn), service, o)
}

func newExporter(ctx context.Context, d *destination, export *quietExporter, service string, o Options) (*Exporter, error) {
	set := []attribute.KeyValue{attribute.String("service.name", service)}
	if o.Version != "" {
		set = append(set, attribute.String("service.version", o.Version))
	}
	if d != nil {
		set = append(set, d.resource...)
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(set...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	var batch []sdktrace.BatchSpanProcessorOption
	if os.Getenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") == "" {
		batch = append(batch, sdktrace.WithMaxExportBatchSize(maxBatch))
	}
	limits := sdktrace.NewSpanLimits()
	if os.Getenv(attributeLimit) == "" && os.Getenv("OTEL_ATTRIBUTE_COUNT_LIMIT") == "" {
		limits.AttributeCountLimit = maxAttributes
	}
	e := &Exporter{export: export, wait: cmp.Or(o.FlushTimeout, FlushTimeout)}
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSpanProcessor(sdktrace.NewBatchSpanProcessor(export, batch...)))
	maxText, _ := strconv.Atoi(os.Getenv(textLimit))
	e.tracer = NewTracer(e.provider, TracerOptions{HideContent: hidesContent(d), MaxText: maxText})
	return e, nil
}

// hidesContent reports whether the environment or args.capture_content turns inputs and
// outputs off.
func hidesContent(d *destination) bool {
	if off, err := strconv.ParseBool(os.Getenv(captureVariable)); err == nil && !off {
		return true
	}
	if d == nil {
		return false
	}
	capture, ok := d.declared.Args["capture_content"].(bool)
	return ok && !capture
}

// Context returns a context whose runs are sent.
func (e *Exporter) Context(ctx context.Context) context.Context {
	if e == nil {
		return ctx
	}
	return steps.WithObserver(ctx, e.tracer)
}

// Flush sends what is queued. It waits at most Options.FlushTimeout, also after the end of ctx.
// Problems are reported to Options.Warn.
func (e *Exporter) Flush(ctx context.Context) {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.wait)
	defer cancel()
	e.export.note(e.provider.ForceFlush(ctx))
}

// Close is Flush, and ends the exporter.
func (e *Exporter) Close(ctx context.Context) {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.wait)
	defer cancel()
	defer e.export.abort()
	e.export.note(e.provider.Shutdown(ctx))
}

// quietExporter reports the first error of an exporter as a warning, and no other one.
type quietExporter struct {
	sdktrace.SpanExporter
	warn  func(string)
	once  sync.Once
	ended context.Context // ends the requests in flight
	abort context.CancelFunc
}

func newQuietExporter(e sdktrace.SpanExporter, warn func(string)) *quietExporter {
	q := &quietExporter{SpanExporter: e, warn: warn}
	q.ended, q.abort = context.WithCancel(context.Background())
	return q
}

// ExportSpans sends spans.
func (q *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ended, cancel)()
	q.note(q.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// note reports an error, once.
func (q *quietExporter) note(err error) {
	if err != nil {
		q.once.Do(func() { q.warn("telemetry: traces cannot be sent: " + httpx.SingleLine(err.Error(), 500)) })
	}
}

// The standard variables of the exporter begin with one of these; the first is for
// traces only.
const (
	tracesPrefix   = "OTEL_EXPORTER_OTLP_TRACES_"
	exporterPrefix = "OTEL_EXPORTER_OTLP_"
)

// variable returns a variable of the exporter.
func variable(name string) string {
	return cmp.Or(os.Getenv(tracesPrefix+name), os.Getenv(exporterPrefix+name))
}

// enabled reports whether the environment allows traces.
func enabled() bool {
	return !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") && os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

// environmentEndpoint returns the URL that accepts traces by the environment; "" for
// none.
func environmentEndpoint() string {
	if exact := os.Getenv(tracesPrefix + "ENDPOINT"); exact != "" {
		return exact
	}
	if base := os.Getenv(exporterPrefix + "ENDPOINT"); base != "" {
		return strings.TrimRight(base, "/") + "/v1/traces"
	}
	return ""
}

// newClient makes the client of a destination, of the environment if that is nil. The
// environment completes what the document does not set.
func newClient(d *destination) (*otlpClient, error) {
	c := &otlpClient{url: environmentEndpoint(), headers: map[string]string{}, timeout: 10 * time.Second}
	if d != nil {
		c.url, c.headers, c.http = d.traces, d.headers, d.client
	}
	if u, err := url.Parse(c.url); err != nil || u.Host == "" {
		return nil, errors.New("telemetry: the endpoint in the environment is not an http or https address")
	}
	if protocol := variable("PROTOCOL"); d == nil && protocol == "grpc" {
		return nil, errors.New("telemetry: OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported; use http/protobuf")
	}
	if d == nil || d.client == nil && len(d.headers) == 0 {
		if err := c.readHeaders(); err != nil {
			return nil, err
		}
	}
	if ms, err := strconv.Atoi(variable("TIMEOUT")); err == nil && ms > 0 {
		c.timeout = time.Duration(ms) * time.Millisecond
	}
	c.gzip = variable("COMPRESSION") == "gzip"
	if c.http != nil {
		return c, nil
	}
	transport := httpx.Transport(1)
	var err error
	if transport.TLSClientConfig, err = tlsConfig(); err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// readHeaders reads OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value with escaped values.
func (c *otlpClient) readHeaders() error {
	for pair := range strings.SplitSeq(variable("HEADERS"), ",") {
		name, v, ok := strings.Cut(pair, "=")
		if strings.TrimSpace(pair) == "" {
			continue
		}
		text, err := url.PathUnescape(strings.TrimSpace(v))
		if !ok || err != nil {
			return errors.New("telemetry: OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs, separated by commas")
		}
		c.headers[strings.TrimSpace(name)] = text
	}
	return nil
}

// tlsConfig reads the certificates that the environment names; nil for none.
func tlsConfig() (*tls.Config, error) {
	authority, certificate, key := variable("CERTIFICATE"), variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY")
	if authority == "" && certificate == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("telemetry: OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("telemetry: OTEL_EXPORTER_OTLP_CERTIFICATE has no certificate")
		}
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("telemetry: OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
