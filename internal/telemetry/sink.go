package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// sink is what one provider of telemetry needs. All of them receive traces by
// OTLP over HTTP.
type sink struct {
	path    string                                 // of traces, if the endpoint has none
	args    []string                               // the supported args, in addition to commonArgs
	prepare func(*destination) error               // sets headers and attributes
	rate    func(*destination, *http.Client) rater // sends feedback; nil if the provider accepts none
}

// langfusePath is the path of traces at Langfuse.
const langfusePath = "/api/public/otel/v1/traces"

// commonArgs are the args of all providers.
var commonArgs = []string{"capture_content", "headers", "project_name"}

// sinks is the table of the providers of spec.Telemetry.
var sinks = map[string]sink{
	"Phoenix":  {"/v1/traces", []string{"api_key"}, preparePhoenix, newPhoenixRater},
	"Langfuse": {langfusePath, []string{"public_key", "secret_key"}, prepareLangfuse, newLangfuseRater},
	"Arize":    {"/v1/traces", []string{"space_id", "api_key", "api_endpoint", "project_id", "transport"}, prepareArize, newArizeRater},
	"OTLP":     {"/v1/traces", nil, prepareOTLP, nil},
}

// destination is where the telemetry of an application is sent.
type destination struct {
	declared *spec.Telemetry
	app      *runtime.App
	sink     sink
	base     *url.URL // scheme and host of the endpoint, without user
	traces   string   // the URL that accepts traces
	service  string   // the project
	headers  map[string]string
	resource []attribute.KeyValue
	client   *http.Client // sends the credentials of the auth; nil if headers has all
}

// newDestination reads the telemetry of an application; nil if it declares none.
func newDestination(app *runtime.App, service string) (*destination, error) {
	t := app.Spec().Telemetry
	if t == nil {
		return nil, nil
	}
	d := &destination{declared: t, app: app, service: service, headers: map[string]string{}}
	if err := d.read(); err != nil {
		return nil, fmt.Errorf("telemetry %s: %w", t.ID, err)
	}
	return d, nil
}

func (d *destination) read() error {
	var ok bool
	if d.sink, ok = sinks[d.declared.Provider]; !ok {
		return fmt.Errorf("unknown provider %q", d.declared.Provider)
	}
	text, err := d.app.Secret(d.declared.Endpoint)
	if err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the endpoint is not an http or https address")
	}
	if err := d.app.Policy().Address(u); err != nil {
		return err
	}
	d.base = &url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.User != nil {
		password, _ := u.User.Password()
		d.headers["authorization"] = basic(u.User.Username(), password)
		u.User = nil
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = d.sink.path
	}
	d.traces = u.String()
	if err := d.readHeaders(); err != nil {
		return err
	}
	return d.sink.prepare(d)
}

// readHeaders reads args.headers.
func (d *destination) readHeaders() error {
	switch headers := d.declared.Args["headers"].(type) {
	case nil:
	case map[string]any:
		for name, v := range headers {
			d.headers[strings.ToLower(name)] = fmt.Sprint(v)
		}
	default:
		return errors.New("args.headers must be an object of names and texts")
	}
	return nil
}

// arg returns a text of args, else the value of an environment variable.
func (d *destination) arg(name, variable string) string {
	if v, ok := d.declared.Args[name]; ok && v != nil {
		return fmt.Sprint(v)
	}
	if variable == "" {
		return ""
	}
	return d.app.Getenv(variable)
}

// unusedArgs returns the args that have no effect.
func (d *destination) unusedArgs() []string {
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(d.declared.Args)) {
		if !slices.Contains(commonArgs, name) && !slices.Contains(d.sink.args, name) {
			unused = append(unused, name)
		}
	}
	return unused
}

// project returns the name of the project in the provider's user interface.
func (d *destination) project() string {
	if name := d.arg("project_name", ""); name != "" {
		return name
	}
	return d.service
}

// key returns the API key of the auth, else that of args or of the environment.
// If the auth is of another kind, or names a header, its credentials are sent as for
// tools, and key returns "".
func (d *destination) key(variable string) (string, error) {
	auth := d.declared.Auth.To
	if auth == nil {
		return d.arg("api_key", variable), nil
	}
	if k, ok := auth.(*spec.APIKeyAuth); ok && k.Header == "" && k.Query == "" {
		return d.app.Secret(k.APIKey)
	}
	var err error
	d.client, err = tool.Client(tool.Service{Tool: d.declared.ID, URL: d.traces, Auth: d.declared.Auth, AllowPrivate: true},
		tool.Options{Secret: d.app.Secret, Getenv: d.app.Getenv, Policy: d.app.Policy()})
	return "", err
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func preparePhoenix(d *destination) error {
	d.resource = append(d.resource, attribute.String("openinference.project.name", d.project()))
	key, err := d.key("PHOENIX_API_KEY")
	if key != "" {
		d.headers["authorization"] = "Bearer " + key
	}
	return err
}

// prepareLangfuse sends the key pair of args, of the environment, or of a basic auth.
// An endpoint with the path of Langfuse's API is completed.
func prepareLangfuse(d *destination) error {
	if base, found := strings.CutSuffix(strings.TrimRight(d.traces, "/"), "/api/public/otel"); found {
		d.traces = base + langfusePath
	}
	d.headers["x-langfuse-ingestion-version"] = "4"
	public, secret := d.arg("public_key", "LANGFUSE_PUBLIC_KEY"), d.arg("secret_key", "LANGFUSE_SECRET_KEY")
	switch {
	case public != "" && secret != "":
		d.headers["authorization"] = basic(public, secret)
		return nil
	case d.declared.Auth.To != nil:
		_, err := d.key("")
		return err
	}
	return errors.New("provider Langfuse needs args.public_key and args.secret_key, or an auth of type basic")
}

// prepareArize sends key and space, which Arize requires.
func prepareArize(d *destination) error {
	key, err := d.key("ARIZE_API_KEY")
	space := d.arg("space_id", "ARIZE_SPACE_ID")
	switch {
	case err != nil:
		return err
	case key == "" && d.client == nil:
		return errors.New("provider Arize needs an auth of type api_key")
	case space == "":
		return errors.New("provider Arize needs args.space_id")
	}
	if key != "" {
		d.headers["authorization"], d.headers["api_key"] = key, key
	}
	d.headers["arize-space-id"], d.headers["space_id"] = space, space
	d.resource = append(d.resource, attribute.String("openinference.project.name", d.project()), attribute.String("model_id", d.project()))
	return nil
}

func prepareOTLP(d *destination) error {
	key, err := d.key("")
	if key != "" {
		d.headers["x-api-key"] = key
	}
	return err
}

// otlpClient sends spans by OTLP over HTTP. It is an sdktrace.SpanExporter. That of
// OpenTelemetry imports gRPC, which every start of the program would initialize.
type otlpClient struct {
	encode  Encoder
	url     string
	headers map[string]string
	http    *http.Client
	timeout time.Duration // of one attempt
	gzip    bool
}

// otlpRetries are the retries of a request that failed temporarily.
var otlpRetries = httpx.Policy{MaxAttempts: 4, InitialDelay: 500 * time.Millisecond, MaxDelay: 5 * time.Second}

// Shutdown closes the connections.
func (c *otlpClient) Shutdown(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// ExportSpans sends spans. It repeats the request if the server is busy.
func (c *otlpClient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := c.encode(ctx, spans)
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
		if err == nil {
			return nil
		}
		if !temporary || !tries.Next(ctx, wait) {
			return fmt.Errorf("traces export: %w", err)
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

// RemoteContext returns a context in which traces continue the trace of a request with
// the header traceparent (W3C Trace Context); ctx without a valid one.
func RemoteContext(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}

// TraceHeader returns headers with which traces elsewhere continue that of ctx; see RemoteContext. It is empty if ctx has no trace.
func TraceHeader(ctx context.Context) http.Header {
	h := http.Header{}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	return h
}
