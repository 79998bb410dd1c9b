package subprocess

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxIdle is the number of supervisors that wait for another program. More programs at once
// have supervisors that end with them.
const maxIdle = 4

// streams are the ends of the pipes of a program: in the order of its files those of the
// program, and those of this process.
type streams struct{ program, own [3]*os.File }

// newStreams makes the pipes of a program.
func newStreams() (*streams, error) {
	s := &streams{}
	for fd := range s.program {
		r, w, err := os.Pipe()
		if err != nil {
			CloseAll(s.program[:])
			CloseAll(s.own[:])
			return nil, err
		}
		if s.program[fd], s.own[fd] = w, r; fd == 0 {
			s.program[fd], s.own[fd] = r, w
		}
	}
	return s, nil
}

// copy writes in to the program and copies its output. It returns a function that waits for the
// end of both, for processes outside of the supervisor that hold the pipes at most waitDelay.
func (s *streams) copy(in []byte, out, messages io.Writer) (wait func()) {
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = s.own[0].Write(in) // a program need not read its input
		_ = s.own[0].Close()
	})
	all.Go(func() { _, _ = io.Copy(out, s.own[1]) })
	all.Go(func() { _, _ = io.Copy(messages, s.own[2]) })
	return func() {
		for _, f := range s.own {
			_ = f.SetDeadline(time.Now().Add(waitDelay)) // fails for the input that was closed
		}
		all.Wait()
	}
}

// run runs a program below a supervisor that is used for one program after the other: a start
// of this executable takes far longer than that of most programs. It returns how the program ended.
// If its supervisor was killed, that is how the supervisor ended.
func (s *Supervisor) run(ctx context.Context, p Program, in []byte, out, messages io.Writer) (syscall.WaitStatus, error) {
	pipes, err := newStreams()
	if err != nil {
		return 0, err
	}
	defer CloseAll(pipes.own[:])
	by, err := s.launch(p, pipes.program[:])
	CloseAll(pipes.program[:])
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, by.kill)
	err = by.started(p.Path)
	var status uint32
	if err == nil {
		wait := pipes.copy(in, out, messages)
		err = binary.Read(by.line, binary.BigEndian, &status)
		wait()
	}
	canceled := !stop()
	var refused *fs.PathError
	if !canceled && (err == nil || errors.As(err, &refused)) {
		s.release(by)
		return syscall.WaitStatus(status), err
	}
	ended := s.discard(by)
	switch {
	case canceled:
		return 0, ctx.Err()
	case ended.Signaled(): // the program has killed its supervisor
		return ended, nil
	}
	return 0, err
}

// launch passes a program and its streams to a supervisor.
func (s *Supervisor) launch(p Program, files []*os.File) (*reusable, error) {
	folder, _ := os.Getwd() // without one the program has that of the supervisor
	config, err := memoryFile(launch{Path: p.Path, Args: append([]string{p.Path}, p.Args...), Env: p.Env, Dir: folder})
	if err != nil {
		return nil, err
	}
	defer func() { _ = config.Close() }()
	rights := []int{int(config.Fd())}
	for _, f := range files {
		rights = append(rights, int(f.Fd()))
	}
	for {
		by, idle, err := s.take()
		if err != nil {
			return nil, err
		}
		_, _, err = by.line.WriteMsgUnix([]byte{0}, unix.UnixRights(rights...), nil)
		if err == nil {
			return by, nil
		}
		s.discard(by)
		if !idle {
			return nil, fmt.Errorf("the supervisor of %s: %w", p.Path, err)
		}
	}
}

// take returns a supervisor that runs no program, and whether it has run one before.
func (s *Supervisor) take() (_ *reusable, idle bool, err error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		by := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		_ = by.cmd.Process.Signal(syscall.SIGCONT) // if a program of another one has stopped it
		return by, true, nil
	}
	s.mu.Unlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	near, far := os.NewFile(uintptr(ends[0]), "supervisor"), os.NewFile(uintptr(ends[1]), "supervisor")
	defer func() { _, _ = near.Close(), far.Close() }()
	line, err := net.FileConn(near)
	if err != nil {
		return nil, false, err
	}
	cmd := &exec.Cmd{Path: self, Args: []string{os.Args[0], superviseEach}, Env: []string{}, ExtraFiles: []*os.File{far},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}} // as in startSupervised
	if err := s.start(cmd); err != nil {
		_ = line.Close()
		return nil, false, err
	}
	return &reusable{cmd: cmd, line: line.(*net.UnixConn)}, false, nil
}

// release keeps a supervisor for another program.
func (s *Supervisor) release(by *reusable) {
	s.mu.Lock()
	keep := len(s.idle) < maxIdle
	if keep {
		s.idle = append(s.idle, by)
	}
	s.mu.Unlock()
	if !keep {
		s.discard(by)
	}
}

// Close ends the supervisors that wait for another program, and waits until they have ended, so that
// no process is left when this one has ended. Without it, they end by themselves.
func (s *Supervisor) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, by := range idle {
		s.discard(by)
	}
}

// discard ends a supervisor with all processes below it, and returns how it ended.
func (s *Supervisor) discard(by *reusable) (ended syscall.WaitStatus) {
	by.kill()
	_ = by.cmd.Wait() // its state is the result
	s.forget(by.cmd)
	if by.cmd.ProcessState != nil {
		ended, _ = by.cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	return ended
}

// kill closes the connection, whose end lets the supervisor kill everything, as in killSupervised.
func (by *reusable) kill() {
	_ = by.line.Close()
	_ = by.cmd.Process.Signal(syscall.SIGCONT)
	time.AfterFunc(waitDelay, func() { _ = by.cmd.Process.Kill() })
}

// started waits for the answer of the supervisor.
func (by *reusable) started(program string) error {
	if err := by.line.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return err
	}
	if err := answerOf(by.line, program); err != nil {
		return err
	}
	return by.line.SetReadDeadline(time.Time{})
}
