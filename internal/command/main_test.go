package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/command/commandtest"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/telemetry/otlp"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"qtype": func() { os.Exit(Main(Core())) }, "measured": measured})
}

// observed returns the parts of the core, and those that send traces and serve metrics.
func observed() Parts {
	p := Core()
	p.Telemetry = telemetry.Parts{OTLP: otlp.Encode, Metrics: func(process bool) telemetry.Metrics { return metrics.New(process) }}
	return p
}

// leakless runs the tests and fails if a goroutine outlives them.
type leakless struct{ tests *testing.M }

func (l leakless) Run() int {
	os.Setenv("SOURCE_DATE_EPOCH", testkit.Day)
	status := l.tests.Run()
	if status != 0 {
		return status
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// concurrent are the scripts whose commands have goroutines that share data: only they run
// with the race detector, with which a command takes ten times longer to start.
var concurrent = []string{
	"cache", "chat", "eval", "gather", "index", "input", "mcp", "memory", "model", "resume", "resume_gather", "run", "serve", "suspend", "test", "tools",
}

// TestScripts runs the commands of the scripts that are concurrent.
func TestScripts(t *testing.T) {
	commandtest.Run(t, func(name string) bool { return slices.Contains(concurrent, name) })
}

// TestScripts_Sequential runs the commands of all other scripts.
func TestScripts_Sequential(t *testing.T) {
	testkit.SkipWithRace(t)
	commandtest.Run(t, func(name string) bool { return !slices.Contains(concurrent, name) })
}

// onTerminal runs a command line as if both streams were a terminal without color.
func onTerminal(ctx context.Context, width int, args ...string) (code int, out, err string) {
	var stdout, stderr bytes.Buffer
	s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, OutTerminal: true, Width: width}}
	code = Execute(ctx, Core(), s, args)
	return code, stdout.String(), stderr.String()
}

// inFolder changes to a new directory with the application and the given files.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	files["app.qtype.yaml"] = commandtest.Inbox
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRun_TableOnTerminal(t *testing.T) {
	inFolder(t, map[string]string{"m.csv": "session,message\nc-1,short\nc-漢字,\"a \x1b[31mlong\n message that\t does not fit at all\"\nc-1,break\n"})
	code, out, errText := onTerminal(t.Context(), 44, "run", "app.qtype.yaml", "-I", "m.csv", "--ephemeral")
	want := ` row  session  reply
    1  c-1      You sent: short
    2  c-漢字   You sent: a ` + "\uFFFD" + `[31mlong messa…
    3  c-1      failed: step draft: model p…
`
	if code != cli.ExitFailed || strings.TrimLeft(out, " ") != strings.TrimLeft(want, " ") {
		t.Errorf("status %d, output\n%s\nwant\n%s", code, out, want)
	}
	if !strings.Contains(errText, "3 rows: 2 done, 1 failed (step draft:") || strings.ContainsRune(errText, '\x1b') {
		t.Errorf("standard error:\n%s", errText)
	}
}

func TestRun_DetailsOnTerminal(t *testing.T) {
	inFolder(t, map[string]string{})
	code, out, _ := onTerminal(t.Context(), 80, "run", "app.qtype.yaml", "-i", "one\n  two\x1b", "--ephemeral")
	if want := "You sent: one\n  two\uFFFD\n"; code != cli.ExitDone || out != want {
		t.Errorf("status %d, output %q, want %q", code, out, want)
	}
}

func TestRun_Interrupt(t *testing.T) {
	called := make(chan struct{})
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(called)
		<-r.Context().Done()
		close(released)
	}))
	defer server.Close()
	inFolder(t, map[string]string{"m.csv": "message\nhello\n"})
	t.Setenv("OPENAI_BASE_URL", server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	code, out, errText := onTerminal(ctx, 80, "run", "app.qtype.yaml", "-I", "m.csv", "--session", "s", "-o", "out.csv", "--ephemeral")
	<-released
	if code != cli.ExitFailed || out != "" || !strings.HasSuffix(errText, "error: interrupted after 0 rows: out.csv was not written\n") || strings.Contains(errText, "written to") {
		t.Errorf("status %d, output %q, error %q", code, out, errText)
	}
	if left, _ := os.ReadDir("."); len(left) != 2 {
		t.Errorf("something is left behind: %v", left)
	}
}

func TestRun_ProgressBars(t *testing.T) {
	second := make(chan struct{})
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 2 {
			<-second
		}
		commandtest.ModelServer().ServeHTTP(w, r)
	}))
	defer server.Close()
	inFolder(t, map[string]string{"m.csv": "message\na\nb\nc\n"})
	t.Setenv("OPENAI_BASE_URL", server.URL)
	drawn := &watched{until: regexp.MustCompile(`draft +█+ .*2/3 .* rows/s`), seen: make(chan struct{})}
	go func() {
		<-drawn.seen
		close(second)
	}()
	s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: io.Discard, Err: drawn, ErrTerminal: true, Width: 80}}
	if code := Execute(t.Context(), Core(), s, []string{"run", "app.qtype.yaml", "-I", "m.csv", "--session", "s", "--ephemeral"}); code != cli.ExitDone {
		t.Errorf("status %d:\n%s", code, drawn.text)
	}
	if !strings.Contains(string(drawn.text), "3 rows: 3 done in ") {
		t.Errorf("no summary:\n%s", drawn.text)
	}
}

// watched is a terminal that reports when a text was drawn on it.
type watched struct {
	text  []byte
	until *regexp.Regexp
	seen  chan struct{}
	done  bool
}

// Write keeps the text; the command never writes from two goroutines at once.
func (w *watched) Write(p []byte) (int, error) {
	w.text = append(w.text, p...)
	if !w.done && w.until.Match(w.text) {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}

// call runs a command line in this process and returns its standard output.
func call(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Execute(context.Background(), Core(), &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}}, args)
	if code == cli.ExitUsage || code == cli.ExitFailed && args[0] == "run" {
		t.Logf("%v: %s", args, stderr.String())
	}
	return stdout.String(), code
}
