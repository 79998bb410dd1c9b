package subprocess

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// self is the file of this executable, also after it was replaced or removed.
const self = "/proc/self/exe"

// startTime limits how long a supervisor may take to start its program.
const startTime = 30 * time.Second

// launch is what a supervisor starts. It is passed in a file in memory, because what is in
// the environment or the arguments of a supervisor can be read by its program.
type launch struct {
	Path string
	Args []string // with the program's name
	Env  []string
	Dir  string // the working directory; empty for that of the supervisor
}

// OwnChildren declares that the children of this process in other process groups are those that
// s starts. Then it can end what a program has left behind that has killed its supervisor.
func (s *Supervisor) OwnChildren() {
	if s != nil && unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil {
		s.own = true
	}
}

// startSupervised starts a supervisor and waits until it has started the program.
func (c *Cmd) startSupervised() error {
	config, err := memoryFile(launch{Path: c.Path, Args: c.Args, Env: c.Env})
	if err != nil {
		return err
	}
	defer func() { _ = config.Close() }()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	line, far := os.NewFile(uintptr(ends[0]), "supervisor"), os.NewFile(uintptr(ends[1]), "supervisor")
	defer func() { _ = far.Close() }()
	c.line, c.ExtraFiles = line, []*os.File{config, far}
	c.Path, c.Args, c.Env = self, []string{os.Args[0], supervise, c.Path}, []string{}
	// A program can stop its supervisor, which must continue to notice the end of this process,
	// and could join the process group of this process if it were in the same session.
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
	if err := c.by.start(c.Cmd); err != nil {
		_ = line.Close()
		return err
	}
	if err := c.started(); err != nil {
		c.killSupervised()
		_ = c.Wait() // err is the reason
		return err
	}
	return nil
}

// start starts a supervisor and notes it.
func (s *Supervisor) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.children[cmd.Process.Pid] = true
	return nil
}

// started waits for the answer of the supervisor.
func (c *Cmd) started() error {
	if err := c.line.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return err
	}
	return answerOf(c.line, c.program)
}

// answerOf reads the answer of a supervisor: 0, or the error of the system.
func answerOf(line io.Reader, program string) error {
	var answer uint32
	err := binary.Read(line, binary.BigEndian, &answer)
	switch {
	case err != nil:
		return fmt.Errorf("the supervisor of %s did not start it: %w", program, err)
	case answer != 0:
		return &fs.PathError{Op: "fork/exec", Path: program, Err: syscall.Errno(answer)}
	}
	return nil
}

// killSupervised closes the connection, whose end lets the supervisor kill everything. A
// context that ends kills the supervisor itself a second later.
func (c *Cmd) killSupervised() {
	_ = c.line.Close()
	_ = c.Process.Signal(syscall.SIGCONT) // if the program has stopped it
	time.AfterFunc(waitDelay, func() { _ = c.Process.Kill() })
}

// endSupervised forgets a supervisor that has ended. One that was killed may have left
// processes behind.
func (c *Cmd) endSupervised() {
	_ = c.line.Close()
	c.by.forget(c.Cmd)
}

// forget forgets a supervisor that has ended.
func (s *Supervisor) forget(c *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, c.Process.Pid)
	if !s.own || c.ProcessState == nil || c.ProcessState.ExitCode() >= 0 {
		return
	}
	endChildren(func(pid int) bool {
		group, err := syscall.Getpgid(pid)
		return err == nil && group != syscall.Getpgrp() && !s.children[pid]
	})
}

// memoryFile returns a file in memory with the JSON of a launch, at its start.
func memoryFile(l launch) (*os.File, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "program")
	_, err = f.Write(text)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
