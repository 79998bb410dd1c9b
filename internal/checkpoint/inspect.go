package checkpoint

import (
	"errors"
	"os"
)

// ErrNoProcess reports that the process that writes a journal is not known: none does, it runs in
// another container or on another computer, or the file system has no locks.
var ErrNoProcess = errors.New("no process of this computer writes it")

// Inspection is what a journal has.
type Inspection struct {
	Header   Header
	Finished int64 // input rows
	Failed   int64 // those of them that failed
}

// Inspect reads a journal, also one that a run is writing, and changes nothing. The errors are those of
// Open.
func Inspect(path string, key []byte) (Inspection, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return Inspection{}, wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	j := &Journal{path: path, file: f, chain: newChain(key)}
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return Inspection{}, wrapError(path, os.ErrNotExist)
	}
	if err := j.scan(); err != nil {
		return Inspection{}, wrapError(path, err)
	}
	in := Inspection{Header: j.header}
	in.Finished, in.Failed = j.Rows()
	return in, nil
}

// Writer returns the id of the process that has a journal open. Without one, the error is ErrNoProcess.
func Writer(path string) (pid int, err error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return 0, wrapError(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	if pid = writer(f); pid <= 0 {
		return 0, ErrNoProcess
	}
	return pid, nil
}
