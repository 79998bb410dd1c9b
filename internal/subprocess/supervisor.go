package subprocess

import (
	"context"
	"net"
	"os"
	"os/exec"
	"sync"
)

// supervise is the first argument of the supervisor of a program, with the version of what it
// expects. It is not a command, so that it is not part of the help.
const supervise = "supervise-program:1"

// superviseEach is that of a supervisor of one program after the other.
const superviseEach = "supervise-programs:1"

// Supervisor starts each program below a process of this executable, the supervisor of the
// program, which ends all processes that the program has started when the program or this
// process ends. nil, as on other systems than Linux, starts programs in process groups. It
// is safe for concurrent use.
type Supervisor struct {
	mu       sync.Mutex
	children map[int]bool // processes of supervisors that were started and not waited for
	own      bool         // children of this process in other groups are those of programs
	idle     []*reusable  // supervisors that wait for another program
}

// reusable is a supervisor of one program after the other.
type reusable struct {
	cmd  *exec.Cmd
	line *net.UnixConn
}

type supervisorKey struct{}

// With returns a context that has a supervisor.
func With(ctx context.Context, s *Supervisor) context.Context {
	return context.WithValue(ctx, supervisorKey{}, s)
}

// SupervisorOf returns the supervisor of a context; nil for none.
func SupervisorOf(ctx context.Context) *Supervisor {
	s, _ := ctx.Value(supervisorKey{}).(*Supervisor)
	return s
}

// Cmd is a program to start, and to end with all processes that it has started.
type Cmd struct {
	*exec.Cmd
	by      *Supervisor
	line    *os.File // the connection with the supervisor; nil without one
	program string   // the program of the supervisor, for errors
	killed  func()   // see Program.Killed
}

// Command returns a program to start, which is killed when ctx ends. Set its streams before
// the start.
func (s *Supervisor) Command(ctx context.Context, path string, args, env []string) *Cmd {
	c := &Cmd{Cmd: exec.CommandContext(ctx, path, args...), by: s, program: path} //nolint:gosec // the operator's document names the program
	if c.Env = env; env == nil {
		c.Env = []string{} // nil would inherit this program's
	}
	c.WaitDelay = waitDelay
	c.Cancel = c.Kill
	return c
}

// Run starts the program and waits until it has ended.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Start starts the program. An error is that of the system for the program.
func (c *Cmd) Start() error {
	if c.by == nil {
		group(c.Cmd)
		return c.Cmd.Start()
	}
	return c.startSupervised()
}

// Wait waits until the program has ended. Processes that it has left behind have ended, too.
func (c *Cmd) Wait() error {
	err := c.Cmd.Wait()
	if c.by == nil {
		_ = killGroup(c.Cmd) // fails if no process of the group is left
	} else {
		c.endSupervised()
	}
	if c.killed != nil && (c.ProcessState == nil || c.ProcessState.ExitCode() < 0) {
		c.killed()
	}
	return err
}

// Kill kills the program and all processes that it has started.
func (c *Cmd) Kill() error {
	if c.by == nil {
		return killGroup(c.Cmd)
	}
	c.killSupervised()
	return nil
}

// Terminate requests the program to end, where the system has a signal for it.
func (c *Cmd) Terminate() error { return terminate(c.Cmd) }
