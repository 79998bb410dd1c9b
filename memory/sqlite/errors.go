package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory"
)

// explain converts an error of SQLite or the system to a *memory.StoreError.
func (s *Store) explain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.location.Explain(context.Background(), err, diagnose)
}

func diagnose(err error) (memory.ErrorKind, string) {
	var sqlite *driver.Error
	if errors.As(err, &sqlite) {
		return diagnoseSQLite(sqlite)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return memory.Denied, "no permission to open or create the file"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return memory.Unavailable, "a parent of its path is a file, not a directory"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return memory.Full, "disk full"
	case errors.Is(err, syscall.EROFS):
		return memory.Denied, "the file system is read-only"
	}
	return memory.Unavailable, storage.OneLine(err)
}

func diagnoseSQLite(err *driver.Error) (memory.ErrorKind, string) {
	switch err.Code() & 0xff { // the primary result code
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return memory.Locked, "locked by another process"
	case lib.SQLITE_FULL:
		return memory.Full, "disk full"
	case lib.SQLITE_NOTADB:
		return memory.Corrupt, "not a SQLite database, or damaged"
	case lib.SQLITE_CORRUPT:
		return memory.Corrupt, "the database is damaged"
	case lib.SQLITE_CONSTRAINT:
		return memory.Corrupt, "the new data conflicts with stored data (" + storage.OneLine(err) + ")"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return memory.Denied, "no permission to write the file"
	case lib.SQLITE_CANTOPEN:
		return memory.Unavailable, "cannot open the file: check that its directory exists and is writable"
	}
	return memory.Unavailable, storage.OneLine(err)
}

func isBusy(err error) bool {
	var sqlite *driver.Error
	return errors.As(err, &sqlite) && sqlite.Code()&0xff == lib.SQLITE_BUSY
}

// isDuplicate reports whether err rejects an entry whose message the session has.
func isDuplicate(err error) bool {
	var sqlite *driver.Error
	return errors.As(err, &sqlite) && sqlite.Code() == lib.SQLITE_CONSTRAINT_UNIQUE && strings.Contains(sqlite.Error(), "entries.message_id")
}
