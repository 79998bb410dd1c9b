package servertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// PhoenixVariable is the environment variable with the path of the program phoenix of the
// Python package arize-phoenix.
const PhoenixVariable = "QTYPE_PHOENIX"

// Phoenix starts Arize Phoenix, which stores traces. Its start takes about 20 s.
func Phoenix() (*Server, error) {
	program := os.Getenv(PhoenixVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program phoenix of arize-phoenix", ErrMissing, PhoenixVariable)
	}
	grpc, claimed, err := claim() // Phoenix listens there too
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		cmd := exec.Command(program, "serve")
		cmd.Env = append(os.Environ(), "PHOENIX_WORKING_DIR="+s.Folder, "PHOENIX_HOST=127.0.0.1", "PHOENIX_PORT="+strconv.Itoa(s.Port),
			"PHOENIX_GRPC_PORT="+strconv.Itoa(grpc), "PHOENIX_TELEMETRY_ENABLED=false")
		return cmd, claimed.Close()
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/healthz") }})
}

// answers returns an error unless a request succeeds within a second.
func answers(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// CollectorVariable is the environment variable with the path of an OpenTelemetry
// collector that has the receiver otlp and the exporter debug.
const CollectorVariable = "QTYPE_OTELCOL"

// Collector starts an OpenTelemetry collector, which receives OTLP over HTTP and writes
// what it receives to the file log in Server.Folder.
func Collector() (*Server, error) {
	program := os.Getenv(CollectorVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to an OpenTelemetry collector", ErrMissing, CollectorVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		path := filepath.Join(s.Folder, "collector.yaml")
		text := strings.Replace(collectorConfig, "ADDRESS", s.Address(), 1)
		return exec.Command(program, "--config", "file:"+path), os.WriteFile(path, []byte(text), 0o600)
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return accepts("http://" + s.Address() + "/v1/traces") }})
}

// collectorConfig writes each span and its attributes to standard error.
const collectorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: ADDRESS}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`

// accepts returns an error unless a server answers POST requests.
func accepts(url string) error {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return resp.Body.Close()
}
