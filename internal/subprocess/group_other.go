//go:build !unix

package subprocess

import "os/exec"

// Group makes a canceled context kill cmd. There are no process groups here.
func Group(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return Kill(cmd) }
}

// Kill kills cmd.
func Kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
