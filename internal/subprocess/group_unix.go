//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// Group makes cmd the first of a process group, so that it ends with all that it
// started, and an interrupt that was meant for us does not reach it. It goes
// before cmd.Start.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return Kill(cmd) }
}

// Kill ends cmd and all that it started.
func Kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
