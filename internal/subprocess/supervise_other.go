//go:build !linux

package subprocess

// Supervise returns nil: only Linux has supervisors.
func Supervise() *Supervisor { return nil }

// OwnChildren does nothing without supervisors.
func (s *Supervisor) OwnChildren() {}

func (c *Cmd) startSupervised() error { return c.Cmd.Start() }

func (c *Cmd) endSupervised() {}

func (c *Cmd) killSupervised() {}
