//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// exporting is an application with one message in and out.
const exporting = `id: app
models: [{type: Model, id: practice, provider: mock}]
flows:
  - id: answer
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: label, type: ChatMessage}]
    inputs: [message]
    outputs: [label]
    steps: [{type: LLMInference, id: draft, model: practice, inputs: [message], outputs: [label]}]
`

// exportArgs write two files, which have temporary names until the end of the run.
var exportArgs = []string{"run", "app.qtype.yaml", "-I", "-", "-o", "out.csv", "--errors", "failed.csv"}

// blockedRun is a run that has created its files and then waits forever, because nothing reads
// its standard error.
type blockedRun struct {
	*exec.Cmd
	files []string      // its temporary files
	ended chan struct{} // closed when it has ended
}

func startBlockedRun(t *testing.T, folder string) *blockedRun {
	t.Helper()
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
	full := int(w.Fd()) // makes the pipe blocking
	testkit.Must(t, syscall.SetNonblock(full, true))
	for err == nil {
		_, err = syscall.Write(full, []byte{0})
	}
	testkit.Must(t, syscall.SetNonblock(full, false))

	before := temporaryFiles(t, folder)
	b := &blockedRun{Cmd: exec.CommandContext(context.WithoutCancel(t.Context()), "qtype", exportArgs...), ended: make(chan struct{})}
	b.Dir, b.Stdin, b.Stderr = folder, strings.NewReader("message\none\n"), w
	testkit.Must(t, b.Start())
	go func() {
		_ = b.Wait()
		close(b.ended)
	}()
	t.Cleanup(func() {
		_ = b.Process.Kill() // fails if it has ended
		<-b.ended
	})
	for len(b.files) < 2 {
		select {
		case <-b.ended:
			t.Fatalf("the run has ended: %v", b.ProcessState)
		case <-time.After(time.Millisecond):
		}
		b.files = slices.DeleteFunc(temporaryFiles(t, folder), func(path string) bool { return slices.Contains(before, path) })
	}
	return b
}

func temporaryFiles(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, ".*.tmp"))
	testkit.Must(t, err)
	return all
}

// TestRun_SecondInterrupt: the second Ctrl-C ends a run that does not react to the first
// one, and leaves no temporary file.
func TestRun_SecondInterrupt(t *testing.T) {
	folder := filepath.Dir(testkit.WriteFile(t, "app.qtype.yaml", exporting))
	b := startBlockedRun(t, folder)
	for ended := false; !ended; {
		_ = b.Process.Signal(os.Interrupt) // the second one may come before the first is handled
		select {
		case <-b.ended:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if code := b.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit status %d", code)
	}
	if left := temporaryFiles(t, folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestRun_AbandonedFiles: temporary files are private, and a run removes those of a killed run,
// but not those of one that still writes them.
func TestRun_AbandonedFiles(t *testing.T) {
	folder := filepath.Dir(testkit.WriteFile(t, "app.qtype.yaml", exporting))
	killed, live := startBlockedRun(t, folder), startBlockedRun(t, folder)
	testkit.Must(t, killed.Process.Kill())
	<-killed.ended
	for _, path := range append(killed.files, live.files...) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	next := testkit.Command(t, "qtype", exportArgs...)
	next.Dir, next.Stdin = folder, strings.NewReader("message\none\n")
	if out, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left := temporaryFiles(t, folder); !slices.Equal(left, slices.Sorted(slices.Values(live.files))) {
		t.Errorf("left are %v, want those of the live run: %v", left, live.files)
	}
	info, err := os.Stat(filepath.Join(folder, "out.csv"))
	testkit.Must(t, err)
	probe, err := os.OpenFile(filepath.Join(folder, "probe"), os.O_CREATE|os.O_WRONLY, 0o666) // the mode that the umask leaves
	testkit.Must(t, err)
	defer func() { _ = probe.Close() }()
	usual, err := probe.Stat()
	testkit.Must(t, err)
	if info.Mode() != usual.Mode() {
		t.Errorf("the output has mode %v, other files %v", info.Mode(), usual.Mode())
	}
}
