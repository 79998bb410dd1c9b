// Package testkit has the helpers that tests of many packages need. It is for tests
// only.
package testkit

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Must ends the test if err is not nil. t is a *testing.T, *testing.B or *rapid.T.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// External returns what an environment variable names, such as a program that is not part of the
// module. Without it, the test is skipped, and fails in CI.
func External(t testing.TB, variable, what string) string {
	t.Helper()
	value := os.Getenv(variable)
	switch {
	case value != "":
	case os.Getenv("QTYPE_CI") != "":
		t.Fatalf("set %s to %s", variable, what)
	default:
		t.Skipf("SKIPPED: set %s to %s, as .ci/run does", variable, what)
	}
	return value
}

// WriteFile writes a file to a new temporary folder and returns its path.
func WriteFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// FolderInRAM returns a new temporary folder that is in RAM if the system has such
// folders: for tests with thousands of small commits, which test neither the disk nor
// that data is durable.
func FolderInRAM(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "qtype") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { Must(t, os.RemoveAll(folder)) })
	return folder
}

// ReadFile returns the text of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	Must(t, err)
	return string(text)
}

// commandLimit ends a command of a test that hangs, long before the limit of go test,
// so that the failure names the test and shows the output.
const commandLimit = 8 * time.Minute

// Command returns a command that ends with the test, or after a few minutes. Processes
// that it leaves behind with its output open do not delay the test.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Output runs a command and returns what it wrote to standard output and standard error.
// Unlike CombinedOutput it does not wait for processes that the command leaves behind,
// as browsers do.
func Output(t testing.TB, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "output")
	Must(t, err)
	defer func() { _ = file.Close() }()
	cmd.Stdout, cmd.Stderr = file, file
	failed := cmd.Run()
	out, err := os.ReadFile(file.Name())
	Must(t, err)
	return out, failed
}

// CloseServer closes a server, also if requests are open or clients connect again.
// Server.Close alone waits for open requests without a limit.
func CloseServer(s *httptest.Server) {
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	for {
		s.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// LimitChecks lowers the number of random cases of each property from 100 to 30 if the
// race detector is on, which makes a case about eight times slower, and outside of CI. It is called before
// the flags are parsed: -rapid.checks overrides it.
func LimitChecks() {
	if (race || !InCI()) && flag.Lookup("rapid.checks") != nil {
		_ = flag.Set("rapid.checks", "30") // cannot fail: the flag is a number
	}
}

// InCI reports whether the tests run in CI, which checks all cases of a slow test. Elsewhere it may check some.
func InCI() bool { return os.Getenv("QTYPE_CI") != "" }

// Race reports whether the race detector is on, so that a slow test can do less.
func Race() bool { return race }

// AllowWaiting lets eight parallel tests of a package run at once instead of one for each
// processor: it is for packages whose parallel tests mostly wait, for leases, timeouts and servers. It is
// called before the flags are parsed: -parallel overrides it.
func AllowWaiting() {
	_ = flag.Set("test.parallel", "8") // cannot fail: the flag is a number
}

// Day is the day on which tests check documents, as SOURCE_DATE_EPOCH: 2026-07-01. What models
// are shut down must not depend on the day on which a test runs.
const Day = "1782864000"

// LargeDocument returns an application of about a number of lines. brief is a line of each of its
// system messages.
func LargeDocument(lines int, brief string) string {
	var b strings.Builder
	b.WriteString("id: large\nmemories:\n  - id: chat_memory\n    token_limit: 50000\nmodels:\n  - type: Model\n    id: small\n    provider: mock\n    rules: [{echo: true}]\nflows:\n")
	for flow := 0; strings.Count(b.String(), "\n") < lines; flow++ {
		fmt.Fprintf(&b, "  - id: flow_%d\n    variables:\n      - id: question\n        type: text\n      - {id: answer, type: text}\n    inputs: [question]\n    outputs: [answer]\n    steps:\n", flow)
		for step := range 8 {
			fmt.Fprintf(&b, "      - type: LLMInference\n        id: step_%d_%d\n        model: small\n        memory: chat_memory\n        system_message: |\n          You answer for a bookshop.\n          %s\n        inputs: [question]\n        outputs:\n          - answer\n", flow, step, brief)
		}
	}
	return b.String()
}

// AliasBomb returns a document whose aliases expand to ten to the power of levels values.
func AliasBomb(levels int) string {
	var b strings.Builder
	b.WriteString("id: shop\nmodels:\n- {id: m, type: Model, provider: openai, inference_params: {\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, ",\n  a%d: &a%d [%s]", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String() + "}}\n"
}

// RandomVector returns a vector whose components have the standard normal distribution.
func RandomVector(r *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// Reply is a response that was read.
type Reply struct {
	Status int         // the status code
	Header http.Header // the headers
	Body   string      // the body without the line feed at its end
}

// Into parses the body.
func (r Reply) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), v); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
}

// Request sends a request and reads the response. headers are pairs of name and value, sent as they
// are written.
func Request(t testing.TB, method, address, body string, headers ...string) Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	Must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = []string{headers[i+1]} // not in the canonical form
	}
	resp, err := http.DefaultClient.Do(req)
	Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	Must(t, err)
	return Reply{resp.StatusCode, resp.Header, strings.TrimSuffix(string(raw), "\n")}
}
