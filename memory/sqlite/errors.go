package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/qtype-dev/qtype/memory"
)

// explain makes one clear line of what SQLite or the system says.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, memory.ErrConflict) || errors.Is(err, memory.ErrDuplicateMessage) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var known *memory.StoreError
	if errors.As(err, &known) {
		return err
	}
	problem, message := diagnose(err)
	return &memory.StoreError{Place: s.path, Problem: problem, Message: message, Err: err}
}

func diagnose(err error) (memory.ErrorKind, string) {
	var fault *driver.Error
	if errors.As(err, &fault) {
		return diagnoseSQLite(fault)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return memory.Denied, "no permission to open or make it"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return memory.Unavailable, "a part of its folder's name is a file"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return memory.Full, "no room is left on the disk"
	case errors.Is(err, syscall.EROFS):
		return memory.Denied, "the file system is read-only"
	}
	return memory.Unavailable, oneLine(err)
}

func diagnoseSQLite(fault *driver.Error) (memory.ErrorKind, string) {
	switch fault.Code() & 0xff { // the primary result code
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return memory.Locked, "another program keeps it locked"
	case lib.SQLITE_FULL:
		return memory.Full, "no room is left on the disk"
	case lib.SQLITE_NOTADB:
		return memory.Corrupt, "it is no SQLite database, or it is damaged"
	case lib.SQLITE_CORRUPT:
		return memory.Corrupt, "the database is damaged"
	case lib.SQLITE_CONSTRAINT:
		return memory.Corrupt, "what it holds contradicts what is to be added (" + oneLine(fault) + ")"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return memory.Denied, "no permission to write it"
	case lib.SQLITE_CANTOPEN:
		return memory.Unavailable, "it cannot be opened: is its folder there, and writable?"
	}
	return memory.Unavailable, oneLine(fault)
}

func busy(err error) bool {
	var fault *driver.Error
	return errors.As(err, &fault) && fault.Code()&0xff == lib.SQLITE_BUSY
}

// held tells whether err is that of an entry whose id the session has already.
func held(err error) bool {
	var fault *driver.Error
	return errors.As(err, &fault) && fault.Code() == lib.SQLITE_CONSTRAINT_UNIQUE && strings.Contains(fault.Error(), "entries.message_id")
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
