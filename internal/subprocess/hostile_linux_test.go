package subprocess_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

// held is a FIFO that a program opens for writing, and that all processes that it starts
// inherit, so that its end is that of the last process.
type held struct {
	path string
	file *os.File
	text *bufio.Reader
}

func newHeld(t *testing.T) *held {
	t.Helper()
	h := &held{path: filepath.Join(t.TempDir(), "held")}
	if err := syscall.Mkfifo(h.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// line waits until a process has written a line.
func (h *held) line(t *testing.T) string {
	t.Helper()
	if h.file == nil {
		f, err := os.Open(h.path) // waits until a process has opened it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		h.file, h.text = f, bufio.NewReader(f)
	}
	line, err := h.text.ReadString('\n')
	if err != nil {
		t.Errorf("the processes have ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// ended waits until all processes have ended.
func (h *held) ended() { _, _ = io.Copy(io.Discard, h.text) }

// hostile are programs that try to survive: each opens the FIFO of its argument and writes a
// line into it when it is ready.
func hostile() map[string]string {
	const daemon = `
import os, signal, sys, time
out = os.open(sys.argv[1], os.O_WRONLY)
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(s, signal.SIG_IGN)
parent = os.getppid()
ready, started = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(started, b'x')
        os.close(1)
        os.close(2)
        signal.pause()
    os._exit(0)
os.read(ready, 1)
`
	const wait = "os.write(out, b'ready\\n')\nsignal.pause()\n"
	return map[string]string{
		"a new session":            "import os, signal, sys\nout = os.open(sys.argv[1], os.O_WRONLY)\nif os.fork() == 0:\n    os.setsid()\n    " + wait + "signal.pause()\n",
		"a daemon":                 daemon + wait,
		"a stopped supervisor":     daemon + "os.kill(parent, signal.SIGSTOP)\n" + wait,
		"a killed supervisor":      daemon + "os.write(out, b'ready\\n')\nos.kill(parent, signal.SIGKILL)\nsignal.pause()\n",
		"processes that are new":   daemon + "os.write(out, b'ready\\n')\nwhile True:\n    if os.fork() != 0:\n        os._exit(0)\n    os.setsid()\n",
		"a program that has ended": daemon + "os.write(out, b'ready\\n')\n",
	}
}

// TestSupervisor_Hostile checks that no process is left when the call of a program has ended.
func TestSupervisor_Hostile(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	for name, script := range hostile() {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			p := subprocess.Program{Path: python, Args: []string{"-S", "-c", script, h.path}, Supervisor: supervisor}
			go func() {
				_, err := p.Run(ctx, nil)
				ended <- err
			}()
			h.line(t)
			if name != "a program that has ended" && name != "a killed supervisor" {
				cancel()
			}
			err := <-ended
			h.ended()
			t.Log(err)
		})
	}
}

// TestSupervisor_Environment checks that the process above a program has no environment.
func TestSupervisor_Environment(t *testing.T) {
	p := subprocess.Program{Path: "/bin/sh", Args: []string{"-c", `wc -c </proc/$PPID/environ; echo "$GREETING"`},
		Env: []string{"PATH=" + os.Getenv("PATH"), "GREETING=hello"}, Supervisor: supervisor}
	out, err := p.Run(t.Context(), nil)
	if got := strings.Fields(string(out)); err != nil || len(got) != 2 && len(got) != 1 || got[len(got)-1] != "hello" || len(got) == 2 && got[0] != "0" {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestSupervisor_Status checks that a program below a supervisor ends as without one.
func TestSupervisor_Status(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3":        "exit status 3",
		"kill -SEGV $$": "signal: segmentation fault",
		"kill -ABRT $$": "signal: aborted",
		"kill -TERM $$": "signal: terminated",
		"kill -KILL $$": "signal: killed",
	} {
		p := subprocess.Program{Path: "/bin/sh", Args: []string{"-c", script}, Supervisor: supervisor}
		if _, err := p.Run(t.Context(), nil); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
	p := subprocess.Program{Path: filepath.Join(t.TempDir(), "none"), Supervisor: supervisor}
	if _, err := p.Run(t.Context(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestSupervisor_Reused checks that programs that run one after the other have one supervisor,
// without a process, the environment or the folder of an earlier one, and that one that was killed is
// replaced.
func TestSupervisor_Reused(t *testing.T) {
	if supervisor == nil {
		t.Skip("the kernel does not list children")
	}
	run := func(script string, env ...string) (string, error) {
		p := subprocess.Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: append(env, "PATH="+os.Getenv("PATH")), Supervisor: supervisor}
		out, err := p.Run(t.Context(), nil)
		return strings.TrimSpace(string(out)), err
	}
	h := newHeld(t)
	type result struct {
		out string
		err error
	}
	first := make(chan result, 1)
	go func() {
		out, err := run(`exec 3>`+h.path+`; echo ready >&3; sleep 1000 >/dev/null 2>&1 & echo $PPID`, "GREETING=hello")
		first <- result{out, err}
	}()
	h.line(t)
	got := <-first
	h.ended()
	if got.err != nil {
		t.Fatal(got.err)
	}
	t.Chdir(t.TempDir())
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := run(`echo "$PPID $GREETING $(pwd)"`); err != nil || second != got.out+"  "+folder {
		t.Errorf("got %q, %v after %q", second, err, got.out)
	}
	if _, err := (subprocess.Program{Path: filepath.Join(folder, "none"), Supervisor: supervisor}).Run(t.Context(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if out, err := run("kill -KILL $PPID; exec sleep 1000"); err == nil || err.Error() != "signal: killed" {
		t.Errorf("got %q, %v", out, err)
	}
	if third, err := run("echo $PPID"); err != nil || third == "" || third == got.out {
		t.Errorf("got %q, %v after %q", third, err, got.out)
	}
}
