//go:build !unix

package subprocess

import "os/exec"

// group does nothing: there are no process groups here.
func group(*exec.Cmd) {}

// killGroup kills cmd.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// terminate kills cmd: there is no signal that requests it to end.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }
