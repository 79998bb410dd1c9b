//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// Group starts cmd in a new process group, so that it ends with all processes that it
// started, and an interrupt of this program does not reach it. Call it before
// cmd.Start.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return Kill(cmd) }
}

// Kill kills the process group of cmd.
func Kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
