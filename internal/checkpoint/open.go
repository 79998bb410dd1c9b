package checkpoint

import (
	"errors"
	"io/fs"
	"os"
)

// openRegular opens a regular file, or creates it with mode 0600. A link, a pipe or a device in its
// place is an error: it may have been put there so that something else is read or written.
func openRegular(path string, flags int) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil && (flags&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	f, err := os.OpenFile(path, flags|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil { // it may be another file now
		err = checkRegular(info)
	}
	if err != nil {
		_ = f.Close() // not used
		return nil, err
	}
	return f, nil
}

func checkRegular(info fs.FileInfo) error {
	var what string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	case mode.IsDir():
		what = "a folder"
	default:
		what = "a special file"
	}
	return &Error{Reason: "is " + what + ", not a regular file; remove it"}
}
