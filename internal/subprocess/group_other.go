//go:build !unix

package subprocess

import "os/exec"

// Group leaves cmd as it is: there are no process groups here.
func Group(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return Kill(cmd) }
}

// Kill ends cmd.
func Kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
