//go:build unix

package subprocess_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

func shell(script string) subprocess.Program {
	return subprocess.Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "GREETING=hello"}}
}

func TestProgram_Run(t *testing.T) {
	t.Run("in a group", func(t *testing.T) { testRun(t, nil) })
	t.Run("below a supervisor", func(t *testing.T) { testRun(t, supervisor) })
}

func testRun(t *testing.T, by *subprocess.Supervisor) {
	for name, tt := range map[string]struct{ script, in, want, err string }{
		"output":       {`cat; echo " $GREETING"`, "in", "in hello\n", ""},
		"status":       {`echo one >&2; echo two >&2; exit 3`, "", "", "exit status 3: two"},
		"no message":   {`exit 3`, "", "", "exit status 3"},
		"unread input": {`exec <&-; echo done`, strings.Repeat("x", 1<<20), "done\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := shell(tt.script)
			p.Supervisor = by
			out, err := p.Run(t.Context(), []byte(tt.in))
			if string(out) != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
	p := shell(`echo "[$GREETING]"`)
	p.Supervisor = by
	p.Env = nil // an empty environment, not that of the test
	if out, err := p.Run(t.Context(), nil); err != nil || string(out) != "[]\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := (subprocess.Program{Path: filepath.Join(t.TempDir(), "none"), Supervisor: by}).Run(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestProgram_RunOutputLimit(t *testing.T) {
	p := shell(`while :; do echo 0123456789; done`)
	p.MaxOutput = 100
	var limit *subprocess.OutputLimitError
	if _, err := p.Run(t.Context(), nil); !errors.As(err, &limit) || err.Error() != "output exceeds 100 bytes" {
		t.Errorf("got %v", err)
	}
}

// TestProgram_RunCanceled checks that processes that the program started end too.
func TestProgram_RunCanceled(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pid")
	if err := syscall.Mkfifo(pids, 0o600); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("no longer needed")
	ctx, cancel := context.WithCancelCause(t.Context())
	child := make(chan int, 1)
	go func() {
		text, _ := os.ReadFile(pids) // waits until the child has started
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		child <- pid
		cancel(reason)
	}()
	if _, err := shell(`sleep 1000 & echo $! >`+pids+`; wait`).Run(ctx, nil); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	pid := <-child
	if pid == 0 {
		t.Fatal("no child")
	}
	for deadline := time.Now().Add(time.Minute); running(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
