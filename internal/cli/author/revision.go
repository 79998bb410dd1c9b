package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// revision reads the files of a git repository as they are in a commit.
type revision struct {
	name   string // as the user wrote it
	commit string
	root   string // the folder of the repository
}

// openRevision finds a commit of the repository that contains a document.
func openRevision(ctx context.Context, name, document string) (*revision, error) {
	if _, remote := remotefs.Remote(document); remote {
		return nil, fmt.Errorf("--git needs a file, not the address %s", remotefs.Redacted(document))
	}
	folder, err := filepath.Abs(filepath.Dir(document))
	if err != nil {
		return nil, err
	}
	root, err := git(ctx, folder, "rev-parse", "--show-toplevel")
	if bare, _ := git(ctx, folder, "rev-parse", "--is-inside-work-tree"); strings.TrimSpace(string(bare)) == "false" {
		return nil, fmt.Errorf("--git: %s is in a repository without a work tree, which has no files to compare: use a clone", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("--git: %w", err)
	}
	commit, err := git(ctx, folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("--git: the repository has no commit %q", name)
	}
	return &revision{name: name, commit: strings.TrimSpace(string(commit)), root: filepath.FromSlash(strings.TrimSpace(string(root)))}, nil
}

// open returns a file as it is in the commit. It is the hook of the loader: remote files are read as usual.
func (r *revision) open(ctx context.Context, path string) (io.ReadCloser, error) {
	if _, remote := remotefs.Remote(path); remote {
		return nil, nil //nolint:nilnil // the loader reads it
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil { // a folder that exists in the commit only has no links
		folder = real
	}
	rel, err := filepath.Rel(r.root, filepath.Join(folder, filepath.Base(path)))
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &notInRevision{r.name}
	}
	object := r.commit + ":" + filepath.ToSlash(rel)
	if strings.Contains(object, "\n") { // ends the line of the request
		return nil, &notInRevision{r.name}
	}
	out, err := run(ctx, r.root, strings.NewReader(object+"\n"), "cat-file", "--batch", "--follow-symlinks")
	head, text, _ := bytes.Cut(out, []byte("\n"))
	if err != nil || !bytes.Contains(head, []byte(" blob ")) || bytes.HasSuffix(head, []byte(" missing")) {
		if inner := r.submodule(ctx, folder); inner != nil {
			return inner.open(ctx, path)
		}
		return nil, &notInRevision{r.name}
	}
	return io.NopCloser(bytes.NewReader(bytes.TrimSuffix(text, []byte("\n")))), nil
}

// submodule returns the commit that the repository has of the submodule that contains a folder; nil
// if there is none below the root, or it is not checked out.
func (r *revision) submodule(ctx context.Context, folder string) *revision {
	var root string // that of the outermost submodule below r.root
	for top := folder; top != r.root; {
		out, err := git(ctx, top, "rev-parse", "--show-toplevel")
		if err != nil {
			return nil
		}
		if top = filepath.FromSlash(strings.TrimSpace(string(out))); top == r.root {
			break
		}
		root = top
		if out, err = git(ctx, top, "rev-parse", "--show-superproject-working-tree"); err != nil || len(bytes.TrimSpace(out)) == 0 {
			return nil
		}
		top = filepath.FromSlash(strings.TrimSpace(string(out)))
	}
	rel, err := filepath.Rel(r.root, root)
	if root == "" || err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	commit, err := git(ctx, r.root, "rev-parse", "--verify", "--quiet", "--end-of-options", r.commit+":"+filepath.ToSlash(rel))
	if err != nil {
		return nil
	}
	return &revision{name: r.name, commit: strings.TrimSpace(string(commit)), root: root}
}

// notInRevision reports a file that a commit does not have.
type notInRevision struct{ name string }

// Error returns the reason.
func (e *notInRevision) Error() string { return e.Reason() }

// Reason returns the reason for the diagnostics of the loader.
func (e *notInRevision) Reason() string { return "it is not in " + e.name }

// git returns the output of a git command in a folder.
func git(ctx context.Context, folder string, args ...string) ([]byte, error) {
	return run(ctx, folder, nil, args...)
}

// run is git with an input. Hooks of a worktree have a GIT_DIR, with which git takes every folder for the root.
func run(ctx context.Context, folder string, input io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...) //nolint:gosec // the revision is resolved behind --end-of-options, all else is a hash with a path
	cmd.Stdin, cmd.Env = input, os.Environ()
	if os.Getenv("GIT_WORK_TREE") == "" {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "GIT_DIR=") })
	}
	out, err := cmd.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return nil, errors.New("git: " + strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), "fatal: "))
	}
	return out, err
}
