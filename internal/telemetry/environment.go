package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

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
