package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/openapi"
	"github.com/qtype-dev/qtype/internal/convert/pymodule"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/source"
)

// maxFile is the maximum size of a converted file in bytes.
const maxFile = 16 << 20

// fileError is a file that a converter does not read. Its text does not depend on what
// is outside of the folder.
type fileError struct{ path, reason string }

func (e *fileError) Error() string { return fmt.Sprintf("the file '%s' %s", e.path, e.reason) }

// read reads a regular file below the folder, symbolic links resolved. Hidden files and
// files with other extensions are not read.
func (a *assistant) read(name string, extensions ...string) ([]byte, error) {
	if a.opts.Folder == nil {
		return nil, errors.New("this server reads no files")
	}
	local, err := below(a.opts.Folder.Name(), name)
	if err != nil {
		return nil, &fileError{name, "is outside of the working directory"}
	}
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." }
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(local), "/"), hidden) || !slices.Contains(extensions, strings.ToLower(filepath.Ext(local))) {
		return nil, &fileError{name, "is not read: its name must end in " + strings.Join(extensions, " or ") + " and not be hidden"}
	}
	info, err := a.opts.Folder.Stat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fileError{name, "does not exist"}
	case err != nil:
		return nil, &fileError{name, "cannot be read"}
	case !info.Mode().IsRegular():
		return nil, &fileError{name, "is not a regular file"}
	case info.Size() > maxFile:
		return nil, &fileError{name, fmt.Sprintf("is larger than %d MiB", maxFile>>20)}
	}
	f, err := a.opts.Folder.Open(local)
	if err != nil {
		return nil, &fileError{name, "cannot be read"}
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// below returns a path relative to a folder.
func below(folder, name string) (string, error) {
	if filepath.IsAbs(name) {
		base, err := filepath.Abs(folder)
		if err != nil {
			return "", err
		}
		if name, err = filepath.Rel(base, name); err != nil {
			return "", err
		}
	}
	if name = filepath.Clean(name); !filepath.IsLocal(name) {
		return "", fs.ErrInvalid
	}
	return name, nil
}

// convertAPI is the tool convert_api_to_tools.
func (a *assistant) convertAPI(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("api_spec")
	if err != nil {
		return nil, err
	}
	spec, name := []byte(given[0]), "api"
	switch {
	case strings.Contains(given[0], "\n") || strings.HasPrefix(strings.TrimSpace(given[0]), "{"): // the text itself
	case strings.Contains(given[0], "://"):
		return nil, errors.New("API conversion failed: the server fetches no URLs; pass the text of the specification")
	default:
		if spec, err = a.read(given[0], ".json", ".yaml", ".yml"); err != nil {
			return nil, fmt.Errorf("API conversion failed: %w", err)
		}
		name = strings.TrimSuffix(path.Base(filepath.ToSlash(given[0])), path.Ext(given[0]))
	}
	open := func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(spec)), nil }
	parsed, _, list := loader.LoadValue(ctx, "api_spec", loader.Options{Open: open, Offline: true, Limits: loader.Limits{FileBytes: maxFile}})
	if parsed == nil || list.Errors() > 0 {
		return nil, errors.New("API conversion failed: " + lines(list))
	}
	app, err := openapi.Convert(input.NewReport(nil), input.FromValue(parsed), name, nil)
	if err != nil {
		return nil, fmt.Errorf("API conversion failed: %w", err)
	}
	return text(app.YAML()), nil
}

// convertPython is the tool convert_python_to_tools. The module is parsed, not imported.
func (a *assistant) convertPython(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("module_path")
	if err != nil {
		return nil, err
	}
	name := given[0]
	if !pymodule.IsPath(name) {
		return nil, fmt.Errorf("Python module conversion failed: '%s' is not the dotted path of a module", name) //nolint:staticcheck // a name
	}
	file := strings.ReplaceAll(name, ".", "/")
	program, err := a.read(file+".py", ".py")
	if missing := new(fileError); errors.As(err, &missing) {
		program, err = a.read(file+"/__init__.py", ".py")
	}
	if err != nil {
		return nil, fmt.Errorf("Python module conversion failed: no module '%s' below the working directory: %w", name, err) //nolint:staticcheck // a name
	}
	python, err := a.python()
	if err != nil {
		return nil, err
	}
	app, err := pymodule.Convert(ctx, input.NewReport(nil), python, name, &source.File{Path: file + ".py", Text: program})
	if err != nil {
		return nil, fmt.Errorf("Python module conversion failed: %w", err) //nolint:staticcheck // a name
	}
	return text(app.YAML()), nil
}

// python returns the interpreter that parses modules.
func (a *assistant) python() (string, error) {
	if a.opts.Python != "" {
		return a.opts.Python, nil
	}
	return pymodule.Interpreter()
}
