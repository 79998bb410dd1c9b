package sqlitefile

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Kind classifies errors.
type Kind int

// The kinds of errors.
const (
	Unavailable Kind = iota // cannot be opened, or unknown
	Locked                  // another process holds the lock for too long
	Full                    // no space on the disk
	Denied                  // missing permission
	Damaged                 // not a readable SQLite database
	Foreign                 // another program's database
	TooNew                  // a newer version of this program wrote it
)

// tooManyFiles is the message if the process, or the system, cannot open more files.
const tooManyFiles = "too many open files: raise the limit of the process (ulimit -n)"

// Diagnose returns the kind of an error of SQLite, the system or this package,
// and a message of one line without the path.
func Diagnose(err error) (Kind, string) {
	var sqlite *driver.Error
	var tooNew *tooNewError
	switch {
	case errors.As(err, &sqlite):
		return diagnoseSQLite(sqlite)
	case errors.Is(err, errForeign):
		return Foreign, errForeign.Error()
	case errors.Is(err, errOldFormat):
		return Denied, errOldFormat.Error()
	case errors.As(err, &tooNew):
		return TooNew, tooNew.Error()
	case errors.Is(err, fs.ErrPermission):
		return Denied, "no permission to open or create the file"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return Unavailable, tooManyFiles
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return Unavailable, "a parent of its path is a file, not a directory"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Full, "disk full"
	case errors.Is(err, syscall.EROFS):
		return Denied, "the file system is read-only"
	}
	return Unavailable, textfmt.OneLine(err.Error())
}

func diagnoseSQLite(err *driver.Error) (Kind, string) {
	switch primaryCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return Locked, "locked by another process"
	case lib.SQLITE_FULL:
		return Full, "disk full"
	case lib.SQLITE_NOTADB:
		return Damaged, "not a SQLite database, or damaged"
	case lib.SQLITE_CORRUPT:
		return Damaged, "the database is damaged"
	case lib.SQLITE_CONSTRAINT:
		return Damaged, "the new data conflicts with stored data (" + textfmt.OneLine(err.Error()) + ")"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return Denied, "no permission to write the file"
	case lib.SQLITE_CANTOPEN:
		return Unavailable, "cannot open the file: check that its directory exists and is writable, and that the process may open more files"
	}
	return Unavailable, textfmt.OneLine(err.Error())
}

func primaryCode(err *driver.Error) int { return err.Code() & 0xff }

// IsBusy reports whether another connection holds the lock.
func IsBusy(err error) bool {
	var sqlite *driver.Error
	return errors.As(err, &sqlite) && primaryCode(sqlite) == lib.SQLITE_BUSY
}

// isDenied reports whether SQLite could not write the file, or those that it needs in its folder.
func isDenied(err error) bool {
	var sqlite *driver.Error
	return errors.As(err, &sqlite) && slices.Contains([]int{lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM}, primaryCode(sqlite))
}

// IsDuplicate reports whether a unique index on a column, TABLE.COLUMN, rejected a row.
func IsDuplicate(err error, column string) bool {
	var sqlite *driver.Error
	return errors.As(err, &sqlite) && sqlite.Code() == lib.SQLITE_CONSTRAINT_UNIQUE && strings.Contains(sqlite.Error(), column)
}
