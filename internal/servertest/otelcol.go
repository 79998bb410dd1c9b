package servertest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
