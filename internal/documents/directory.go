package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// directory reads the files of a local folder, or single local files.
type directory struct {
	args   *spec.DirectoryArgs
	filter *fileFilter
	limits format.Limits
}

func newDirectory(args *spec.DirectoryArgs, env Env) (Source, error) {
	for _, path := range append([]string{args.InputDir}, args.InputFiles...) {
		if scheme, remote := remotefs.Remote(path); remote {
			return nil, fmt.Errorf("%s: the reader directory reads local files; use the reader remote, s3, gcs or azure_blob for %s://", remotefs.Redacted(path), scheme)
		}
	}
	filter, err := newFileFilter(&args.FileArgs, args.Recursive)
	return &directory{args: args, filter: filter, limits: env.Limits}, err
}

// Read reads the files in the order of their paths. A folder that cannot be read fails
// like a file.
func (d *directory) Read(ctx context.Context, emit Emit) error {
	root := ""
	files := d.args.InputFiles
	if len(files) == 0 {
		root = remotefs.Path(d.args.InputDir)
		var failed []error
		var err error
		if files, failed, err = d.list(ctx, root); err != nil {
			return err
		}
		for _, err := range failed {
			if err := emit(nil, err); err != nil {
				return err
			}
		}
	}
	for _, path := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		read, err := d.read(ctx, filepath.Join(root, remotefs.Path(path)), root != "")
		if err := emitAll(read, err, emit); err != nil {
			return err
		}
	}
	return nil
}

// emitAll emits the documents of a file, or its error.
func emitAll(read []*Document, err error, emit Emit) error {
	if err != nil {
		return emit(nil, err)
	}
	for _, doc := range read {
		if err := emit(doc, nil); err != nil {
			return err
		}
	}
	return nil
}

// list returns the files to read, relative to the folder, and the errors of folders.
func (d *directory) list(ctx context.Context, root string) (files []string, failed []error, err error) {
	if err := trust.From(ctx).Read(root); err != nil {
		return nil, nil, err
	}
	at := trust.From(ctx).Place(root)
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("the folder %s does not exist", root)
	case err != nil:
		return nil, nil, explainFile(root, err)
	case !info.IsDir():
		return nil, nil, fmt.Errorf("%s is not a folder; use input_files to read a file", root)
	}
	err = fs.WalkDir(os.DirFS(at), ".", func(rel string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed = append(failed, explainFile(filepath.Join(root, rel), err))
			return fs.SkipDir
		case rel == ".":
		case entry.IsDir() && (!d.args.Recursive || d.filter.rejectsFolder(rel)):
			return fs.SkipDir
		case !entry.IsDir():
			accepted, err := d.accepts(filepath.Join(at, rel), rel)
			if err != nil {
				failed = append(failed, explainFile(filepath.Join(root, rel), err))
			} else if accepted {
				files = append(files, rel)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(files, comparePaths)
	if files = d.filter.limit(files); len(files) == 0 && len(failed) == 0 {
		return nil, nil, fmt.Errorf("no files found in %s", root)
	}
	return files, failed, nil
}

// accepts reports whether a file is read. A link is followed to a file only; one that leads
// nowhere is no file. Any other error is that of a file that the filter accepts: a file that was
// left out without an error would be taken for removed.
func (d *directory) accepts(path, rel string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		nowhere := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
		if nowhere || !d.filter.accepts(rel, 1) {
			err = nil
		}
		return false, err
	}
	return info.Mode().IsRegular() && d.filter.accepts(rel, info.Size()), nil
}

// comparePaths orders paths by their parts, so that a folder is before a file with the
// same name and an extension.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// read reads one file. The paths of a folder's files are absolute in metadata and ids, as
// those of SimpleDirectoryReader.
func (d *directory) read(ctx context.Context, path string, absolute bool) ([]*Document, error) {
	f := &file{name: path, id: filepath.ToSlash(path)}
	if absolute {
		if full, err := filepath.Abs(path); err == nil {
			f.name = full
		}
	}
	if err := trust.From(ctx).Read(path); err != nil { // also a link in a folder that may be read
		return nil, err
	}
	in, err := os.Open(trust.From(ctx).Place(path))
	if err != nil {
		return nil, explainFile(path, err)
	}
	defer func() { _ = in.Close() }() // closing a file that was only read cannot lose data
	info, err := in.Stat()
	if err != nil {
		return nil, explainFile(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a file", path)
	}
	if f.data, err = readLimited(in, path, d.limits.MaxInput()); err != nil {
		return nil, explainFile(path, err)
	}
	f.metadata = fileMetadata(f.name, info.Size(), changedTime(info), info.ModTime())
	return f.documents(ctx, &d.args.FileArgs, d.limits)
}

// explainFile returns an error of the operating system with the path, once.
func explainFile(path string, err error) error {
	var of *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: does not exist", path)
	case errors.As(err, &of):
		return fmt.Errorf("%s: %w", path, of.Err)
	}
	return err
}

// readLimited reads everything up to a limit.
func readLimited(in io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge(name, limit)
	}
	return data, err
}

// tooLarge reports a file that exceeds the limit of bytes.
func tooLarge(name string, limit int64) error {
	shown := fmt.Sprintf("%d bytes", limit)
	if limit >= 1<<20 {
		shown = fmt.Sprintf("%d MB", limit>>20)
	}
	return fmt.Errorf("%s: is larger than %s", remotefs.Redacted(name), shown)
}
