//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// group makes cmd the leader of a new process group, so that it ends with the processes that
// it has started in it, and an interrupt of this program does not reach it.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the process group of cmd.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// terminate sends SIGTERM. A supervisor passes it on.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) }
