package checkpoint

import (
	"errors"
	"os"
)

// RemoveUnused removes a journal unless a run has it open: then the error is ErrBusy. Where files have
// no locks, journals that are open are not recognized.
func RemoveUnused(path string) error { return whileUnused(path, removeLocked) }

// IsUsed reports whether a run has a journal open.
func IsUsed(path string) bool {
	return errors.Is(whileUnused(path, func(*os.File) error { return nil }), ErrBusy)
}

// whileUnused calls do while no run can open the journal.
func whileUnused(path string, do func(*os.File) error) error {
	f, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // nothing is written
	if err := lock(f); err != nil {
		return err
	}
	return do(f)
}
