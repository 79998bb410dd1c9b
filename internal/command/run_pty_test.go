//go:build linux

package command

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestRun_ProgressAndResumeOnTerminal: progress bars are drawn, Ctrl-C prints how to
// resume the run, and that works.
func TestRun_ProgressAndResumeOnTerminal(t *testing.T) {
	k := newKillable(t, 300, 4, "out.csv")
	k.args = k.args[:len(k.args)-1]                         // without -q
	stuck, full := make(chan struct{}), make(chan struct{}) // full: each worker is stuck, and what it did before is done
	release := sync.OnceFunc(func() { close(stuck) })
	defer release()
	k.model.with(func(l *lister) {
		held := 0
		var mu sync.Mutex
		l.hold = func(row int) { // by rows, not by calls: few rows are taken while an early one is not done
			if row <= 40 {
				return
			}
			mu.Lock()
			if held++; held == 4 {
				close(full)
			}
			mu.Unlock()
			<-stuck
		}
	})
	cmd := testkit.Command(t, "qtype", k.args...)
	cmd.Dir = k.dir
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*", "TERM=xterm")
	c := newConsole(t, cmd)
	if err := unix.IoctlSetWinsize(int(c.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	c.see("some")
	c.see("300 rows from in.csv")
	c.see("ask")
	c.see("█")
	c.see("/300   ")
	c.see(" rows/s")
	c.see("eta ")
	<-full
	c.say("\x03")
	c.see(" rows made of ")
	c.see(" done")
	c.see("error: interrupted after ")
	c.see("continue with: qtype run app.qtype.yaml -I in.csv -o out.csv --resume")
	_ = cmd.Wait() // the text was checked
	if cmd.ProcessState.ExitCode() != cli.ExitFailed {
		t.Errorf("exit status %d", cmd.ProcessState.ExitCode())
	}
	release()
	before := k.model.calls()
	k.args = append(k.args, "-q")
	if text, status := k.run(t, "--resume"); status != cli.ExitFailed || strings.Contains(text, "error: ") { // some rows are meant to fail
		t.Fatalf("exit status %d: %s", status, text)
	}
	if diff := cmp.Diff(wantResults(300), gotResults(t, filepath.Join(k.dir, "out.csv"))); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if again := k.model.calls() - before; again > 300-35 {
		t.Errorf("%d rows were run after %d calls before", again, before)
	}
}

// TestRun_BatchesOnTerminal: the last line has the state of the run while batches are open, and Ctrl-C says that they go
// on.
func TestRun_BatchesOnTerminal(t *testing.T) {
	t.Setenv("QTYPE_HOME", t.TempDir())
	at := httptest.NewServer(batchtest.New(1, batchtest.Faults{Polls: 1 << 30}, batchtest.Deterministic))
	t.Cleanup(at.Close)
	cmd := testkit.Command(t, "qtype", "run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--batch")
	cmd.Dir = batchFolder(t, at.URL)
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*", "TERM=xterm")
	c := newConsole(t, cmd)
	if err := unix.IoctlSetWinsize(int(c.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	c.see("wave 1: 4 calls to model m in batch ")
	c.see("wave 1 · 1 batch open (1 in_progress) · 4 calls wait · 0 of 4 rows done · ")
	c.say("\x03")
	c.see("error: interrupted after 0 rows: out.jsonl was not written: 1 batch at the provider will go on; continue with: qtype run app.qtype.yaml -I in.csv -o out.jsonl --batch --resume")
	_ = cmd.Wait() // the text was checked
}
