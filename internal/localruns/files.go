package localruns

import (
	"context"
	"io/fs"
	"path/filepath"
)

// EachFile calls visit for the regular files in a folder and the folders in it, in which runs may have left
// something. Links are not followed, and version control and packages of Node.js left out. It ends with the
// first error, and when ctx ends.
func EachFile(ctx context.Context, folder string, visit func(path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == folder:
			return err
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
