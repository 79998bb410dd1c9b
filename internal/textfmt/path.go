package textfmt

import (
	"errors"
	"io/fs"
)

// WithoutPath returns an error of the file system without the operation and the path, for
// messages that name the file.
func WithoutPath(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}
