//go:build !linux

package subprocess

import (
	"context"
	"errors"
	"io"
	"syscall"
)

// Supervise returns nil: only Linux has supervisors.
func Supervise() *Supervisor { return nil }

// OwnChildren does nothing without supervisors.
func (s *Supervisor) OwnChildren() {}

// Close does nothing without supervisors.
func (s *Supervisor) Close() {}

// run is not called without supervisors.
func (s *Supervisor) run(context.Context, Program, []byte, io.Writer, io.Writer) (status syscall.WaitStatus, err error) {
	return status, errors.ErrUnsupported
}

func (c *Cmd) startSupervised() error { return c.Cmd.Start() }

func (c *Cmd) endSupervised() {}

func (c *Cmd) killSupervised() {}
