package servertest

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Replica is a process of qtype serve.
type Replica struct {
	Command *exec.Cmd
	URL     string // without a slash at the end
}

// Serve starts the program qtype of the PATH with the command serve for app.qtype.yaml of a folder,
// and waits until it listens. It is killed after the test.
func Serve(t *testing.T, folder string, args ...string) *Replica {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "qtype", append([]string{"serve", "app.qtype.yaml", "--port", "0"}, args...)...)
	cmd.Dir = folder
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	servingAt := regexp.MustCompile(`on (https?://[^ ]+)/ \(`)
	lines := bufio.NewScanner(stderr)
	var seen strings.Builder
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		if found := servingAt.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return &Replica{cmd, found[1]}
		}
	}
	t.Fatalf("qtype serve ended:\n%s", seen.String())
	return nil
}
