//go:build unix

package command

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// conversations has rows of conversations that go through three steps, with two providers.
const conversations = `id: app
memories: [{id: chat}]
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, api: chat, base_url: "URL/v1", auth: key}
  - {type: Model, id: second, provider: anthropic, model_id: claude-opus-4-6, base_url: "URL", auth: key}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: reply, type: text}, {id: summary, type: text}, {id: verdict, type: text}]
    inputs: [question]
    outputs: [reply, summary, verdict]
    steps:
      - {type: LLMInference, id: respond, model: first, memory: chat, inputs: [question], outputs: [reply], concurrency_config: {num_workers: 8}}
      - {type: LLMInference, id: shorten, model: second, system_message: be short, inputs: [reply], outputs: [summary], concurrency_config: {num_workers: 8}}
      - {type: LLMInference, id: judge, model: first, inputs: [summary], outputs: [verdict], concurrency_config: {num_workers: 8}}
`

// measuredRun is a run over rows of conversations, with the servers of its providers.
type measuredRun struct {
	dir    string
	server *batchtest.Server
	memory int64 // in MB
	took   time.Duration
}

// newMeasured returns a run that has not begun.
func newMeasured(t *testing.T, rows, sessions int) *measuredRun {
	t.Helper()
	m := &measuredRun{dir: t.TempDir(), server: batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic)}
	at := httptest.NewServer(m.server)
	t.Cleanup(at.Close)
	in := []byte("session,question\n")
	for i := range rows {
		in = fmt.Appendf(in, "s%d,question %d\n", i%sessions, i)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(m.dir, "in.csv"), in, 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(m.dir, "app.qtype.yaml"), []byte(strings.ReplaceAll(conversations, "URL", at.URL)), 0o600))
	return m
}

// command returns the program.
func (m *measuredRun) command(ctx context.Context, flags ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "qtype", append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl"}, flags...)...)
	cmd.Dir = m.dir
	return cmd
}

// run runs the program to its end, and returns the output.
func (m *measuredRun) run(t *testing.T, flags ...string) []byte {
	t.Helper()
	began := time.Now()
	cmd := m.command(t.Context(), flags...)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	testkit.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err := <-ended:
			if running = false; err != nil {
				t.Fatalf("%v\n%s", err, &printed)
			}
		case <-time.After(20 * time.Millisecond):
			m.memory = max(m.memory, peakMemory(cmd.Process.Pid))
		}
	}
	m.took = time.Since(began)
	text := printed.String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	t.Logf("%v: %s, %d MB of memory\n%s", flags, m.took.Round(time.Second), m.memory, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	return m.output(t)
}

// peakMemory returns the most memory of a process so far in MB, 0 if it is unknown. The usage that the system returns at its
// end would include that of this process, which started it.
func peakMemory(pid int) (size int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, after, found := strings.Cut(string(text), "\nVmHWM:"); found {
		_, _ = fmt.Sscan(after, &size)
	}
	return size >> 10
}

func (m *measuredRun) output(t *testing.T) []byte {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(m.dir, "out.jsonl"))
	testkit.Must(t, err)
	return out
}

// check checks what a run in batches has paid.
func (m *measuredRun) check(t *testing.T, rows int, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) || bytes.Count(got, []byte("\n")) != rows {
		t.Errorf("the output differs: %d and %d bytes", len(want), len(got))
	}
	atOnce, _ := m.server.Made()
	if paid, twice := m.server.Paid(); paid != 3*rows || twice > 0 || atOnce > 0 {
		t.Errorf("%d calls were paid in batches, %d twice, and %d made at once; want %d", paid, twice, atOnce, 3*rows)
	}
}

// scale returns a number of the environment, which make measure-batches sets.
func scale(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	testkit.Must(t, err)
	return n
}

// TestRun_BatchesMeasured: rows of conversations go through three steps, with and without --batch, and the output is the
// same. With QTYPE_TEST_BATCH_ROWS=100000, which make measure-batches sets, it measures what both runs cost by the
// account of the server, and the memory of both processes.
func TestRun_BatchesMeasured(t *testing.T) {
	rows := scale(t, "QTYPE_TEST_BATCH_ROWS", 200)
	sessions := max(rows/50, 20)
	t.Setenv("QTYPE_HOME", t.TempDir())
	plain, inBatches := newMeasured(t, rows, sessions), newMeasured(t, rows, sessions)
	want := plain.run(t)
	inBatches.check(t, rows, inBatches.run(t, "--batch"), want)
	all, _ := plain.server.Made()
	paid, _ := inBatches.server.Paid()
	_, batches := inBatches.server.Made()
	share, times := float64(paid)/2/float64(all), float64(inBatches.memory)/float64(plain.memory)
	t.Logf("%d batches, %.1f %% of the normal price, %.2f times the memory", batches, 100*share, times)
	if share > 0.52 || rows >= 100_000 && times > 2 {
		t.Error("more than 52 % of the price, or twice the memory")
	}
}

// ended reports whether a run was killed after its output was complete: then there is nothing to resume.
func ended(dir string, printed []byte) bool {
	_, err := os.Stat(filepath.Join(dir, "out.jsonl"))
	return err == nil && bytes.Contains(printed, []byte("--resume: no interrupted run found"))
}

// TestRun_BatchesMeasuredKilled: a run in batches is killed at any time, and resumed. No call is paid twice, and none is lost.
// With QTYPE_TEST_BATCH_KILLS=100 that happens as often, in several runs.
func TestRun_BatchesMeasuredKilled(t *testing.T) {
	kills := scale(t, "QTYPE_TEST_BATCH_KILLS", 2)
	rows := scale(t, "QTYPE_TEST_BATCH_KILL_ROWS", 60)
	t.Setenv("QTYPE_HOME", t.TempDir())
	plain := newMeasured(t, rows, rows/3)
	want := plain.run(t)
	random := rand.New(rand.NewPCG(uint64(kills), 7))
	killed := 0
	defer func() { t.Logf("%d kills", killed) }()
	for killed < kills {
		m := newMeasured(t, rows, rows/3)
		for {
			ctx, kill := context.WithCancel(t.Context())
			stop := func() bool { return false }
			var requests atomic.Int64
			last := random.Int64N(12)
			if killed >= kills {
				last = math.MaxInt64
			} else if random.IntN(2) == 0 {
				last = math.MaxInt64
				stop = time.AfterFunc(time.Duration(random.Int64N(int64(2*plain.took+2*time.Second))), kill).Stop
			}
			m.server.Watch(func(*http.Request) {
				if requests.Add(1) > last {
					kill() // the request is answered, and nobody reads that
				}
			})
			text, err := m.command(ctx, "--batch", "--resume").CombinedOutput()
			stop()
			wasKilled := ctx.Err() != nil
			kill()
			m.server.Wait()
			if err == nil || ended(m.dir, text) {
				break
			}
			if killed++; !wasKilled {
				t.Fatalf("%v\n%s", err, text)
			}
		}
		m.check(t, rows, m.output(t), want)
	}
}
