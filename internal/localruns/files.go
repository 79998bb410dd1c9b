package localruns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// EachFile calls visit for the regular files in a folder and the folders in it, in which runs may have left
// something. The folder itself may be a link, others are not followed; version control and packages of Node.js are left out.
// It ends with the first error, and when ctx ends.
func EachFile(ctx context.Context, folder string, visit func(path string, d fs.DirEntry) error) error {
	if folder == "" { // such as a variable of a shell that is not set
		return errors.New("the name of a folder to search is empty")
	}
	folder = filepath.Clean(folder)
	// The trailing separator makes a link to a folder the folder itself.
	return filepath.WalkDir(folder+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		switch {
		case err != nil && path == folder:
			return fmt.Errorf("%s: %w", folder, cause(err))
		case err != nil:
			return nil //nolint:nilerr // a folder that cannot be read is left alone
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return visit(path, d)
	})
}

// cause returns an error of the file system without its operation and path.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
