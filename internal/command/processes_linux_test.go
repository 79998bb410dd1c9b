package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// daemonPy starts a daemon that ignores signals and holds the FIFO held, as its caller does.
const daemonPy = `
import os, signal, sys, time
def start():
    out = os.open('held', os.O_WRONLY)
    ready, started = os.pipe()
    if os.fork() == 0:
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        os.setsid()
        if os.fork() == 0:
            null = os.open('/dev/null', os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            os.write(started, b'x')
            while True:
                signal.pause()
        os._exit(0)
    os.read(ready, 1)
    os.write(out, b'ready\n')

def leave() -> str:
    start()
    return 'done'

def stay() -> str:
    start()
    while True:
        signal.pause()

if __name__ == '__main__':
    {'leave': leave, 'stay': stay}[sys.argv[1]]()
    print('"done"')
`

// processesDocument has a tool of each type that starts programs, for a function of daemonPy.
const processesDocument = `
id: processes
tools:
  - {type: CommandTool, id: command, name: command, description: d, program: python3, args: [daemon.py, %[1]s], outputs: [{id: text, type: text}]}
  - {type: PythonFunctionTool, id: python, name: python, description: d, module_path: daemon, function_name: %[1]s, outputs: [{id: text, type: text}]}
  - {type: MCPTool, id: mcp, command: python3, args: [daemon.py, %[1]s], tools: [any]}
flows:
  - {id: f, variables: [{id: text, type: text}], inputs: [], outputs: [text], steps: [
      {type: InvokeTool, id: call, tool: %[2]s, output_bindings: {text: text}, outputs: [text]}]}
`

// TestTools_Processes checks that no process of a tool is left after a run, and after qtype
// was killed while the tool runs.
func TestTools_Processes(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	for _, tool := range []string{"command", "python", "mcp"} {
		for _, function := range []string{"leave", "stay"} {
			t.Run(tool+" "+function, func(t *testing.T) {
				folder := t.TempDir()
				testkit.Must(t, os.WriteFile(filepath.Join(folder, "daemon.py"), []byte(daemonPy), 0o600))
				testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), fmt.Appendf(nil, processesDocument, function, tool), 0o600))
				held := filepath.Join(folder, "held")
				testkit.Must(t, syscall.Mkfifo(held, 0o600))
				cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "qtype", "run", "app.qtype.yaml", "--ephemeral")
				cmd.Dir = folder
				var errs strings.Builder
				cmd.Stderr = &errs
				testkit.Must(t, cmd.Start())
				f, err := os.Open(held) // waits for the tool
				testkit.Must(t, err)
				defer func() { _ = f.Close() }()
				in := bufio.NewReader(f)
				if line, err := in.ReadString('\n'); err != nil {
					t.Errorf("the tool wrote %q: %v", line, err)
				}
				if function == "stay" {
					testkit.Must(t, cmd.Process.Kill())
				}
				if err := cmd.Wait(); function == "leave" && tool != "mcp" && err != nil {
					t.Errorf("%v\n%s", err, errs.String())
				}
				_, _ = io.Copy(io.Discard, in) // ends with the last process that has inherited the file
			})
		}
	}
}

// TestTools_Environment checks that a tool of an ordinary user cannot read the environment
// of qtype, but that of another process.
func TestTools_Environment(t *testing.T) {
	const document = `
id: environment
tools: [{type: CommandTool, id: count, name: count, description: d, program: ./count, outputs: [{id: text, type: text}]}]
flows:
  - {id: f, variables: [{id: text, type: text}], inputs: [], outputs: [text], steps: [
      {type: InvokeTool, id: call, tool: count, output_bindings: {text: text}, outputs: [text]}]}
`
	const count = `#!/bin/sh
found() { cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -c "$1"; }
echo "\"readable $(found OTHER_PROCESS=), of qtype $(found MARKED_)\""
`
	var user *syscall.Credential // this one
	if os.Geteuid() == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	folder, err := os.MkdirTemp("", "environment") //nolint:usetesting // t.TempDir is below a folder that others cannot read
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program, err := exec.LookPath("qtype")
	testkit.Must(t, err)
	binary, err := os.ReadFile(program)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "qtype"), binary, 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "count"), []byte(count), 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, ".env"), []byte("MARKED_FILE=x\n"), 0o644))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(document), 0o644))
	testkit.Must(t, os.Chmod(folder, 0o755))

	other := exec.CommandContext(t.Context(), "sleep", "1000")
	other.Env, other.SysProcAttr = []string{"OTHER_PROCESS=1"}, &syscall.SysProcAttr{Credential: user}
	testkit.Must(t, other.Start())
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()

	cmd := testkit.Command(t, filepath.Join(folder, "qtype"), "run", "app.qtype.yaml", "--ephemeral", "-q")
	cmd.Dir, cmd.SysProcAttr = folder, &syscall.SysProcAttr{Credential: user}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "MARKED_VARIABLE=x"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "readable 1, of qtype 0") {
		t.Errorf("got %s, %v", out, err)
	}
}
