package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// makesSome calls a model for a list, and makes a row of each of its items: no row,
// one or two. Some answers are not lists.
const makesSome = `id: some
models: [{type: Model, id: lists, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables:
      - {id: name, type: text}
      - {id: answer, type: text}
      - {id: all, type: 'list[text]'}
      - {id: item, type: text}
    inputs: [name]
    outputs: [name, item]
    steps:
      - {type: LLMInference, id: ask, model: lists, inputs: [name], outputs: [answer], concurrency_config: {num_workers: %d}}
      - {type: Decoder, id: read, format: json, inputs: [answer], outputs: [all]}
      - {type: Explode, id: each, inputs: [all], outputs: [item]}
`

// lister is the model: it counts the calls of each row, and calls watch with the
// number of all calls.
type lister struct {
	mu    sync.Mutex
	byRow map[int]int
	total int
	watch func(total int)
	hold  func(row int)     // is called for each row before the answer
	fail  func(row int) int // the status that a row's call fails with, 0 for none
}

// calls returns the number of calls so far. Some of a process that was killed may
// still be in progress.
func (l *lister) calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// with changes the model between two runs.
func (l *lister) with(change func(*lister)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *lister) reply(messages []modeltest.Message) (text string, status int) {
	row, _ := strconv.Atoi(strings.TrimPrefix(messages[0].Content, "row "))
	l.mu.Lock()
	l.byRow[row]++
	l.total++
	total, watch, hold := l.total, l.watch, l.hold
	if l.fail != nil {
		status = l.fail(row)
	}
	l.mu.Unlock()
	if status != 0 {
		return "", status
	}
	if watch != nil {
		watch(total)
	}
	if hold != nil {
		hold(row)
	}
	list, _ := json.Marshal(map[string]any{"all": listOf(row)}) // of texts
	return string(list), 0
}

// listOf is the model's answer for a row: a list, or something else.
func listOf(row int) any {
	if row%97 == 0 {
		return "not a list"
	}
	list := make([]string, row%3)
	for i := range list {
		list[i] = fmt.Sprint(row, " ", i)
	}
	return list
}

// wantResults is the output: the row, the item, and whether it failed.
func wantResults(rows int) []string {
	var want []string
	for row := 1; row <= rows; row++ {
		switch list := listOf(row).(type) {
		case []string:
			for _, item := range list {
				want = append(want, fmt.Sprint(row, "/row ", row, "/", item, "/false"))
			}
		default:
			want = append(want, fmt.Sprint(row, "/row ", row, "//true"))
		}
	}
	return want
}

// gotResults reads an output as wantResults writes it.
func gotResults(t *testing.T, path string) []string {
	t.Helper()
	r, err := records.Open(t.Context(), path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var got []string
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		cell := func(c string) string {
			v, _ := rec.Get(c)
			if v == nil {
				return ""
			}
			return fmt.Sprint(v)
		}
		got = append(got, fmt.Sprint(cell("row"), "/", cell("name"), "/", cell("item"), "/", cell("error") != ""))
	}
	return got
}

// killable is a run of many rows whose model is on the loopback interface.
type killable struct {
	model *lister
	dir   string
	args  []string
	watch func(func(total int)) (total int) // sets the function that the model calls at each call, and returns the number so far
}

func newKillable(t *testing.T, rows, workers int, out string) *killable {
	t.Helper()
	model := &lister{byRow: map[int]int{}}
	var in strings.Builder
	in.WriteString("name\n")
	for row := range rows {
		fmt.Fprintf(&in, "row %d\n", row+1)
	}
	document := strings.Replace(makesSome, "%d", fmt.Sprint(workers), 1)
	server := httptest.NewServer(modeltest.OpenAI(model.reply))
	t.Cleanup(server.Close)
	k := newKillableOf(t, server.URL, map[string]string{"in.csv": in.String(), "app.qtype.yaml": document}, out)
	k.model = model
	k.watch = func(watch func(int)) (total int) {
		model.with(func(l *lister) { l.watch, total = watch, l.total })
		return total
	}
	return k
}

// newKillableOf returns a run of a document, in which %s is the model's address.
func newKillableOf(t *testing.T, model string, files map[string]string, out string) *killable {
	t.Helper()
	k := &killable{dir: t.TempDir(), args: []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", out, "-q"}}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(strings.Replace(text, "%s", model, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// start starts the command.
func (k *killable) start(ctx context.Context, t *testing.T, more ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, "qtype", append(k.args[:len(k.args):len(k.args)], more...)...)
	cmd.Dir = k.dir
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=key-123", "NO_PROXY=*")
	cmd.Stderr = &strings.Builder{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// killAfter runs the command and kills it after a number of calls of the model, at the
// latest after a time. It reports whether the run had ended before.
func (k *killable) killAfter(t *testing.T, calls int, latest time.Duration) (ended bool) {
	t.Helper()
	ctx, kill := context.WithTimeout(t.Context(), latest) // its end kills by SIGKILL
	defer kill()
	var until atomic.Int64
	until.Store(math.MaxInt64)
	dead := make(chan struct{})
	until.Store(int64(calls + k.watch(func(total int) {
		if int64(total) >= until.Load() {
			kill()
			<-dead // so that the process does not end before it receives the signal
		}
	})))
	cmd := k.start(ctx, t, "--resume")
	err := cmd.Wait()
	close(dead)
	if cmd.ProcessState.ExitCode() == -1 {
		return false
	}
	if text := fmt.Sprint(cmd.Stderr); strings.Contains(text, "error: ") || err == nil {
		t.Fatalf("the run ended with %v and printed: %s", err, text)
	}
	return true // exit status 1: rows have failed
}

// TestResume_Killed kills a run several times at any moment. The output has the results
// of every row, once and in order, and no finished row is processed again. QTYPE_KILLS
// is the number of kills.
func TestResume_Killed(t *testing.T) {
	kills, rows, workers := 4, 1500, 8
	if n, err := strconv.Atoi(os.Getenv("QTYPE_KILLS")); err == nil {
		kills, rows = n, max(rows, 400*n)
	}
	for _, format := range []string{"csv", "jsonl"} {
		t.Run(format, func(t *testing.T) {
			k := newKillable(t, rows, workers, "out."+format)
			out := filepath.Join(k.dir, "out."+format)
			done := 0
			for ; done < kills; done++ {
				latest := time.Hour
				if done%5 == 4 {
					latest = rand.N(200 * time.Millisecond) // while it starts, mostly
				}
				if k.killAfter(t, rand.IntN(2*rows/(kills+1)), latest) {
					break
				}
				if _, err := os.Stat(out); err == nil {
					t.Fatal("the output is there after a kill")
				}
			}
			if _, err := os.Stat(out); err != nil && !k.killAfter(t, 10*rows, time.Hour) {
				t.Fatal("the last run was killed")
			}
			want, got := wantResults(rows), gotResults(t, out)
			for i := range min(len(want), len(got)) {
				if got[i] != want[i] {
					t.Fatalf("result %d is %q, want %q", i, got[i], want[i])
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d results, want %d", len(got), len(want))
			}
			// The rows in flight at a kill are processed again: one for each worker, and
			// those that were finished within the last milliseconds.
			again := k.model.calls() - rows
			t.Logf("%d kills, %d of %d calls were repeated", done, again, rows)
			if most := done * (workers + 40); again > most {
				t.Errorf("%d rows were processed again after %d kills", again, done)
			}
			left, _ := filepath.Glob(out + "*")
			if hidden, _ := filepath.Glob(filepath.Join(k.dir, ".*")); len(left) != 1 || len(hidden) > 0 {
				t.Errorf("left behind: %v, %v", left, hidden)
			}
		})
	}
}

// failing makes the model fail some rows from now on; nil for none.
func (k *killable) failing(fail func(row int) int) {
	k.model.with(func(l *lister) { l.fail = fail })
}

// run runs the command to its end.
func (k *killable) run(t *testing.T, more ...string) (text string, status int) {
	t.Helper()
	cmd := k.start(t.Context(), t, more...)
	_ = cmd.Wait() // the exit status is returned
	return fmt.Sprint(cmd.Stderr), cmd.ProcessState.ExitCode()
}

// TestResume_RejectedCredentials: a run stops if the model rejects the credentials. Once
// the model accepts them, the run is resumed and no row has failed.
func TestResume_RejectedCredentials(t *testing.T) {
	k := newKillable(t, 300, 1, "out.jsonl")
	k.failing(func(row int) int {
		if row > 50 {
			return http.StatusUnauthorized
		}
		return 0
	})
	text, status := k.run(t)
	if status != 1 || strings.Count(text, "\n") != 3 || !strings.Contains(text, "stopped: model lists rejected the credentials for 3 rows in a row: ") ||
		!strings.HasSuffix(text, "continue with: qtype run app.qtype.yaml -I in.csv -o out.jsonl -q --resume\n") {
		t.Fatalf("exit status %d: %s", status, text)
	}
	if calls := k.model.calls(); calls > 54 {
		t.Errorf("the model was called %d times", calls)
	}
	k.failing(nil)
	if text, status := k.run(t, "--resume"); status != 1 || strings.Contains(text, "error: ") { // some rows fail
		t.Fatalf("exit status %d: %s", status, text)
	}
	if got := gotResults(t, filepath.Join(k.dir, "out.jsonl")); !slices.Equal(got, wantResults(300)) {
		t.Errorf("%d results, want %d", len(got), len(wantResults(300)))
	}
}

// TestResume_RetryFailed: --retry-failed processes the failed rows again and no others.
func TestResume_RetryFailed(t *testing.T) {
	k := newKillable(t, 200, 4, "out.csv")
	k.failing(func(row int) int {
		if row%10 == 1 {
			return http.StatusInternalServerError
		}
		return 0
	})
	if text, status := k.run(t, "--max-failures", "15"); status != 1 || !strings.Contains(text, "error: 15 rows failed, the last because step ask: ") {
		t.Fatalf("exit status %d: %s", status, text)
	}
	k.failing(nil)
	k.model.with(func(l *lister) { l.byRow = map[int]int{} })
	if text, status := k.run(t, "--resume", "--retry-failed"); status != 1 || strings.Contains(text, "error: ") {
		t.Fatalf("exit status %d: %s", status, text)
	}
	if got := gotResults(t, filepath.Join(k.dir, "out.csv")); !slices.Equal(got, wantResults(200)) {
		t.Errorf("%d results, want %d", len(got), len(wantResults(200)))
	}
	var calls map[int]int
	k.model.with(func(l *lister) { calls = maps.Clone(l.byRow) })
	for row := 1; row < 130; row++ {
		if again := calls[row] > 0; again != (row%10 == 1 || row == 97) {
			t.Errorf("row %d was processed again: %v", row, again)
		}
	}
}

// TestResume_RejectsOldJournal: a journal in the format of an older version is not
// read, nor replaced without --restart.
func TestResume_RejectsOldJournal(t *testing.T) {
	k := newKillable(t, 10, 1, "out.csv")
	old, err := os.ReadFile("../../internal/checkpoint/testdata/rows.v1.qtype-journal")
	if err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(k.dir, "out.csv.qtype-journal")
	if err := os.WriteFile(journal, old, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "error: out.csv.qtype-journal: has journal format 1, and this version of qtype reads format 3: " +
		"finish the run with the version that started it, or delete the file to start over"
	for _, flags := range [][]string{{"--resume"}, nil} {
		if text, status := k.run(t, flags...); status != 1 || strings.TrimSpace(text) != want {
			t.Errorf("%v: exit status %d: %s", flags, status, text)
		}
	}
	if now, err := os.ReadFile(journal); err != nil || !slices.Equal(now, old) {
		t.Errorf("the journal was changed: %v", err)
	}
	if text, status := k.run(t, "--restart"); status != 0 || text != "" {
		t.Errorf("exit status %d: %s", status, text)
	}
}
