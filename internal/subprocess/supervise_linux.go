package subprocess

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The files of a supervisor that its parent has opened.
const (
	configFD = 3
	lineFD   = 4
)

// Supervise does not return in a process that was started as the supervisor of a program. In
// any other it returns what starts supervisors, and lets no other process of the user read
// the memory and the environment of this one. Call it first in main.
func Supervise() *Supervisor {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // only root can then read it
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervise:
			os.Exit(superviseProgram())
		case superviseEach:
			os.Exit(supervisePrograms())
		}
	}
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		return nil // /proc is not mounted, or the kernel does not list children there
	}
	return &Supervisor{children: map[int]bool{}}
}

// superviseProgram starts the program, waits for it, kills what it has left, and ends as it
// has ended.
func superviseProgram() int {
	runtime.LockOSThread() // the program is killed when the thread that has started it ends
	syscall.CloseOnExec(configFD)
	syscall.CloseOnExec(lineFD)
	terminations := make(chan os.Signal, 1)
	signal.Notify(terminations, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	line := os.NewFile(lineFD, "parent")
	pid, err := startProgram()
	if binary.Write(line, binary.BigEndian, uint32(errorNumber(err))) != nil || err != nil {
		endChildren(nil)
		return 1
	}
	var ended atomic.Bool // its number may be that of another process
	stop := func(s syscall.Signal) {
		if !ended.Load() {
			_ = syscall.Kill(pid, s) // it may have ended just now
		}
	}
	go func() {
		for s := range terminations {
			if s == syscall.SIGTERM {
				stop(syscall.SIGTERM)
			}
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, line) // until the parent has closed it or has ended
		stop(syscall.SIGKILL)
	}()
	status := await(pid)
	ended.Store(true)
	endChildren(nil)
	return endAs(status)
}

// errorNumber returns the error of the system that an error is; 0 for none.
func errorNumber(err error) syscall.Errno {
	var failed syscall.Errno
	if err != nil && !errors.As(err, &failed) {
		failed = syscall.EINVAL
	}
	return failed
}

// startProgram starts the program and leaves it the only holder of its streams.
func startProgram() (pid int, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	if pid, err = forkProgram(configFD, []uintptr{0, 1, 2}); err != nil {
		return 0, err
	}
	for fd := range 3 {
		_ = syscall.Close(fd) // nothing in this process uses them
	}
	return pid, nil
}

// forkProgram starts the program that a file describes, with these files, and closes the file.
func forkProgram(fd int, files []uintptr) (pid int, err error) {
	config := os.NewFile(uintptr(fd), "program")
	defer func() { _ = config.Close() }()
	var l launch
	if err := json.NewDecoder(config).Decode(&l); err != nil {
		return 0, err
	}
	//nolint:gosec // the parent, which has started this process, checked the program
	return syscall.ForkExec(l.Path, l.Args, &syscall.ProcAttr{Env: l.Env, Dir: l.Dir, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}})
}

// await waits until a child has ended, and meanwhile for processes that lost their parent.
func await(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		switch got, err := syscall.Wait4(-1, &status, 0, nil); {
		case got == pid:
			return status
		case err != nil && !errors.Is(err, syscall.EINTR):
			return status
		}
	}
}

// endChildren kills the selected children of this process, all with nil, until there are none:
// the children of one that has ended become children of this process.
func endChildren(selected func(pid int) bool) {
	for {
		waiting := 0
		for _, pid := range children() {
			if selected != nil && !selected(pid) || syscall.Kill(pid, syscall.SIGKILL) != nil {
				continue // or it has the rights of another user
			}
			waiting = pid
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
		if waiting == 0 {
			return
		}
		_, _ = syscall.Wait4(waiting, nil, 0, nil) // ends at once with ECHILD if it was waited for above
	}
}

// children returns the children of this process, also ended ones that were not waited for.
func children() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, number := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(number); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// endAs ends this process by the same signal as the program, or returns its exit status.
func endAs(status syscall.WaitStatus) int {
	if !status.Signaled() {
		return status.ExitStatus()
	}
	// Package signal cannot set the default action of signals that the runtime handles.
	var action [8]uint64
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(status.Signal()), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0) //nolint:gosec // the kernel reads the array in this call
	_ = syscall.Kill(os.Getpid(), status.Signal())
	return 128 + int(status.Signal())
}
