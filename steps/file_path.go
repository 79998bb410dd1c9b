package steps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// filePath is a constant path or the variable that holds one: a local path or an
// address that package records can read. Constant paths are relative to the working
// directory. Those of a variable come from a row or a model: they are relative to the base
// folder, and not outside of it.
type filePath struct {
	constant string
	variable *slot
	base     string // a folder or an address; empty for the working directory
	writes   bool   // the folder for files that the document writes replaces the working directory
}

// filePath converts the path of a document. usable returns an error for an address that
// this build cannot use.
func (e *Env) filePath(p spec.PathRef, base string, usable func(string) error) (filePath, error) {
	if p.Var.To == nil {
		constant, err := location(p.URI)
		if err != nil {
			return filePath{}, err
		}
		return filePath{constant: constant}, wrapLocationError(constant, usable(constant))
	}
	if !spec.HoldsPath(p.Var.To.Type) {
		return filePath{}, fmt.Errorf("variable %s: a path must be text, is %s", p.Var.ID, p.Var.To.Type)
	}
	if trust.IsAddress(base) {
		if err := usable(trust.Below(base, "file")); err != nil {
			return filePath{}, fmt.Errorf("base: %w", wrapLocationError(base, err))
		}
	}
	s, err := e.slot(p.Var.To)
	return filePath{variable: &s, base: base}, err
}

// wrapLocationError adds the address to an error of package remotefs that lacks it.
func wrapLocationError(address string, err error) error {
	if err == nil || errors.As(err, new(*remotefs.AccessError)) {
		return err
	}
	return fmt.Errorf("%s: %w", remotefs.Redacted(address), err)
}

// of returns the path for a row, which check has to allow.
func (p filePath) of(ctx context.Context, row *Row) (string, error) {
	if p.variable == nil {
		return p.output(ctx, p.constant), nil
	}
	v, err := p.variable.read(row)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("variable %s: expected a path, got %s", p.variable.of.ID, value.Describe(v))
	}
	path, err := location(s)
	if err != nil {
		return "", fmt.Errorf("variable %s: %w", p.variable.of.ID, err)
	}
	if p.base != "" {
		path = trust.Below(p.base, path)
	}
	return p.output(ctx, path), nil
}

// output returns the path of a file that is written.
func (p filePath) output(ctx context.Context, path string) string {
	if p.writes {
		return trust.From(ctx).Output(path)
	}
	return path
}

// check returns an error if a path that comes from a row is outside of the base folder.
func (p filePath) check(ctx context.Context, path string) error {
	if p.variable == nil || p.base == "" && !trust.IsAddress(path) && trust.From(ctx).Restricted() {
		return nil // the policy of a restricted document has its folders
	}
	base := p.output(ctx, p.base)
	if p.base == "" {
		var err error
		if base, err = p.workingDirectory(ctx); err != nil {
			return err
		}
	}
	if trust.IsBelow(base, path) {
		return nil
	}
	shown := "the base folder " + remotefs.Redacted(base)
	if p.base == "" {
		shown = "the working directory " + base
		if p.output(ctx, ".") != "." {
			shown = "the output folder " + base
		}
	}
	return fmt.Errorf("variable %s: %s is outside of %s; declare base: with the folder or the address of such files",
		p.variable.of.ID, remotefs.Redacted(path), shown)
}

// workingDirectory returns the folder of paths without a declared base. The root of the file
// system, where services run, contains all files, so that it is not accepted.
func (p filePath) workingDirectory(ctx context.Context) (string, error) {
	folder, err := filepath.Abs(p.output(ctx, "."))
	if err != nil {
		return "", err
	}
	if cwd, err := os.Getwd(); err == nil && cwd == folder && folder == filepath.Dir(folder) {
		return "", fmt.Errorf("variable %s: the working directory is the root of the file system; declare base: with the folder of such files", p.variable.of.ID)
	}
	return folder, nil
}

// location converts a file: URI to a local path. It returns local paths and other
// addresses unchanged.
func location(uri string) (string, error) {
	if strings.TrimSpace(uri) == "" {
		return "", errors.New("the path is empty")
	}
	rest, isFile := strings.CutPrefix(uri, "file://")
	if !isFile {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", fmt.Errorf("file://%s is not the URI of a local file", rest)
	}
	return u.Path, nil
}
