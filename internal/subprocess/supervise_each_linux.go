package subprocess

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// current is the program that a supervisor runs.
type current struct {
	mu     sync.Mutex
	pid    int  // 0 for none
	closed bool // no other program is started
}

// start starts a program and closes its files.
func (c *current) start(files []int) (pid int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		for _, fd := range files[1:] {
			_ = syscall.Close(fd) // nothing in this process uses them
		}
	}()
	if c.closed {
		return 0, syscall.ECANCELED
	}
	c.pid, err = forkProgram(files[0], []uintptr{uintptr(files[1]), uintptr(files[2]), uintptr(files[3])})
	return c.pid, err
}

// ended notes that the program has ended: its number may be that of another process.
func (c *current) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pid = 0
}

// signal sends a signal to the program; the last one prevents another program.
func (c *current) signal(s syscall.Signal, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = c.closed || last
	if c.pid > 0 {
		_ = syscall.Kill(c.pid, s) // it may have ended just now
	}
}

// supervisePrograms runs one program after the other, until the parent closes the connection or has
// ended. After each it kills what the program has left, and writes how it ended.
func supervisePrograms() int {
	runtime.LockOSThread() // programs are killed when the thread that has started them ends
	syscall.CloseOnExec(configFD)
	line, err := parentLine()
	if err != nil || unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return 1
	}
	var program current
	terminations := make(chan os.Signal, 1)
	signal.Notify(terminations, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for s := range terminations {
			if s == syscall.SIGTERM {
				program.signal(syscall.SIGTERM, false)
			}
		}
	}()
	requests := make(chan []int)
	go func() {
		defer close(requests)
		for {
			files, err := receive(line)
			if err != nil { // the parent has closed it or has ended
				program.signal(syscall.SIGKILL, true)
				return
			}
			requests <- files
		}
	}()
	for files := range requests {
		pid, err := program.start(files)
		if binary.Write(line, binary.BigEndian, uint32(errorNumber(err))) == nil && err != nil {
			continue
		}
		if err == nil {
			status := await(pid)
			program.ended()
			endChildren(nil)
			_ = binary.Write(line, binary.BigEndian, uint32(status)) // without a parent there are no more requests
		}
	}
	endChildren(nil)
	return 0
}

// parentLine returns the connection with the parent.
func parentLine() (*net.UnixConn, error) {
	f := os.NewFile(configFD, "parent")
	defer func() { _ = f.Close() }()
	line, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	unixLine, ok := line.(*net.UnixConn)
	if !ok {
		return nil, syscall.EINVAL
	}
	return unixLine, nil
}

// receive reads a request: the files of a program, the first of which describes it.
func receive(line *net.UnixConn) ([]int, error) {
	rights := make([]byte, unix.CmsgSpace(4*4))
	n, size, _, _, err := line.ReadMsgUnix(make([]byte, 1), rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, errors.New("a request has no files")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err == nil && len(files) != 4 {
		err = errors.New("a request has four files")
	}
	return files, err
}
