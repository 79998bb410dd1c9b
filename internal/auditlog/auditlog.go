// Package auditlog appends records to audit logs, one JSON object a line.
package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// ownerOnly is the mode of a log that is created.
const ownerOnly = 0o600

// Log is a file to which records are appended. It is safe for concurrent use, also by
// several processes.
type Log struct {
	path string
	mu   sync.Mutex // for systems and file systems without locks
}

// New returns the log of a file. The file is created with the first record.
func New(path string) *Log { return &Log{path: path} }

// Check returns an error if the log cannot be written now, and for a file with something else than
// records, such as the document of the application: records would spoil it. It creates the file.
func (l *Log) Check() error {
	f, err := l.open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	first := make([]byte, 1)
	if n, _ := f.ReadAt(first, 0); n > 0 && first[0] != '{' { // a file that cannot be read fails with the first record
		return fmt.Errorf("%s has something else than JSON lines: use another name", l.path)
	}
	return nil
}

// Append appends a record. The file is opened each time: a program that rotates logs can
// rename it.
func (l *Log) Append(record any) error {
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.open()
	if err != nil {
		return err
	}
	lock(f)
	if isTorn(f) {
		line = append([]byte("\n"), line...)
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// open opens the file for appending. A pipe or a device in its place is an error: it
// may have been put there so that records are lost.
func (l *Log) open() (*os.File, error) {
	info, err := os.Stat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", l.path)
	}
	return os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, ownerOnly)
}

// isTorn reports whether the last line has no end: a disk that was full took only a part of it.
func isTorn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}
