package author

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// diffCommand is one call of qtype diff.
type diffCommand struct {
	*cli.Streams
	format *cli.EnumFlag
	models modelFlag // names that replace those of the document
	git    string    // the revision with the old document; empty for a file
}

// NewDiff returns qtype diff.
func NewDiff(s *cli.Streams) *cobra.Command {
	d := &diffCommand{Streams: s, format: cli.NewEnumFlag("text", "json")}
	c := &cobra.Command{
		Use:   "diff OLD NEW | --git REF PATH | --model ID=NAME PATH",
		Short: "Show semantic changes between two documents",
		Long: `Compares two documents by their meaning, not by their text. Each change is
classified: it breaks callers or stored conversations, changes the behavior, or is
harmless. The exit status is 1 if there is a breaking change: of an input or output
that is served, of a memory's settings, or of a tool.

With --git, the old document is that of a commit, with its includes and texts.

With --model, one document is compared with itself as if a model had another name: what
would be reported by validate, and the limits and prices of both models. The exit status
is 1 if there would be errors.`,
		Example: `  qtype diff old.qtype.yaml new.qtype.yaml
  qtype diff --git main app.qtype.yaml
  qtype diff --model assistant=gpt-6-luna app.qtype.yaml
  qtype diff --format json old.qtype.yaml new.qtype.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case c.Flags().Changed("git") && strings.TrimSpace(d.git) == "":
				return terminal.Usagef("--git needs the name of a commit, such as HEAD or main")
			case d.git != "" && len(d.models) > 0:
				return terminal.Usagef("--git excludes --model")
			case d.git != "":
				return cli.Arguments("a document: qtype diff --git REF PATH")(c, args)
			case len(d.models) > 0:
				return cli.Arguments("a document: qtype diff --model ID=NAME PATH")(c, args)
			}
			return cli.Arguments("the old document: qtype diff OLD NEW", "the new document: qtype diff OLD NEW")(c, args)
		},
		ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case d.git != "":
				return d.runRevision(c.Context(), args[0])
			case len(d.models) > 0:
				return d.runModels(c.Context(), args[0])
			}
			return d.run(c.Context(), args[0], authoring.Version{Path: args[0]}, args[1])
		},
	}
	d.format.AddTo(c, "format", "", "output format")
	c.Flags().Var(&d.models, "model", "compare as if the model ID were NAME or PROVIDER/NAME; repeatable")
	c.Flags().StringVar(&d.git, "git", "", "compare with the document in a commit, such as main or HEAD~1")
	return c
}

// runRevision compares a document with what it was in a commit.
func (d *diffCommand) runRevision(ctx context.Context, path string) error {
	r, err := openRevision(ctx, d.git, path)
	if err != nil {
		return err
	}
	return d.run(ctx, d.git+":"+path, authoring.Version{Path: path, Options: authoring.Options{Loader: loader.Options{Open: r.open}}}, path)
}

// run compares two documents; name is how the old one is called in the output.
func (d *diffCommand) run(ctx context.Context, name string, before authoring.Version, after string) error {
	changes, err := authoring.Diff(ctx, before, authoring.Version{Path: after})
	if err != nil {
		return err
	}
	if err := d.write(remotefs.Redacted(name), remotefs.Redacted(after), changes); err != nil {
		return err
	}
	if semdiff.Count(changes, semdiff.Breaking) > 0 {
		return cli.ErrSilent
	}
	return nil
}

func (d *diffCommand) write(before, after string, changes []semdiff.Change) error {
	if d.format.Value == "json" {
		return semdiff.JSON(d.Out, before, after, changes)
	}
	if err := semdiff.Text(d.Out, changes, d.OutTerminal && d.Color); err != nil {
		return err
	}
	if len(changes) > 0 {
		fmt.Fprintln(d.Out)
	}
	_, err := fmt.Fprintf(d.Out, "%s → %s: %s\n", terminal.Clean(before), terminal.Clean(after), semdiff.Summary(changes))
	return err
}

// runModels compares a document with itself as if models had other names.
func (d *diffCommand) runModels(ctx context.Context, path string) error {
	change, err := authoring.CompareModels(ctx, path, d.models, authoring.Options{Loader: loader.Options{Day: today()}})
	if err != nil {
		return err
	}
	if d.format.Value == "json" {
		err = d.writeModelsJSON(change)
	} else {
		err = d.writeModels(change)
	}
	if err == nil && change.Appeared.Errors() > 0 {
		return cli.ErrSilent
	}
	return err
}

// writeModels writes the comparison as text.
func (d *diffCommand) writeModels(change *authoring.ModelChange) error {
	var b strings.Builder
	for _, m := range change.Models {
		fmt.Fprintf(&b, "model %s: %s %s → %s %s\n", m.ID, m.Old.Provider, terminal.Clean(m.Old.Name), m.New.Provider, terminal.Clean(m.New.Name))
		for _, line := range []struct{ what, old, new string }{
			{"context window", orUnknown(tokens(m.Old.ContextWindow)), orUnknown(tokens(m.New.ContextWindow))},
			{"output", orUnknown(tokens(m.Old.MaxOutput)), orUnknown(tokens(m.New.MaxOutput))},
			{"$ in", orUnknown(dollars(m.Old.Input)), orUnknown(dollars(m.New.Input))},
			{"$ out", orUnknown(dollars(m.Old.Output)), orUnknown(dollars(m.New.Output))},
		} {
			fmt.Fprintf(&b, "  %-15s %s → %s\n", line.what, line.old, line.new)
		}
		if ratio, ok := m.Ratio(); ok {
			fmt.Fprintf(&b, "  %-15s %.2f × for calls that read 3 tokens for each one that they write\n", "cost", ratio)
		}
	}
	if _, err := io.WriteString(d.Out, b.String()); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		list  diag.List
	}{{"would be reported", change.Appeared}, {"would not be reported any more", change.Gone}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintf(d.Out, "\n%s:\n", part.title)
		if err := diag.Text(d.Out, part.list, d.DiagnosticOptions(d.OutTerminal)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(d.Out, "\n%s and %s would appear\n", textfmt.Count(change.Appeared.Errors(), "error"), textfmt.Count(change.Appeared.Warnings(), "warning"))
	return err
}

// orUnknown replaces an empty text.
func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// writeModelsJSON writes the comparison as one JSON object.
func (d *diffCommand) writeModelsJSON(change *authoring.ModelChange) error {
	type model struct {
		ID    string               `json:"id"`
		Old   authoring.ModelFacts `json:"old"`
		New   authoring.ModelFacts `json:"new"`
		Ratio *float64             `json:"cost_ratio,omitempty"`
	}
	made := struct {
		Models   []model  `json:"models"`
		Appeared []string `json:"appeared"`
		Gone     []string `json:"gone"`
	}{Appeared: []string{}, Gone: []string{}}
	for _, m := range change.Models {
		one := model{ID: m.ID, Old: m.Old, New: m.New}
		if ratio, ok := m.Ratio(); ok {
			one.Ratio = &ratio
		}
		made.Models = append(made.Models, one)
	}
	for _, found := range change.Appeared {
		made.Appeared = append(made.Appeared, found.Error())
	}
	for _, found := range change.Gone {
		made.Gone = append(made.Gone, found.Error())
	}
	out := json.NewEncoder(d.Out)
	out.SetEscapeHTML(false)
	return out.Encode(made)
}

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
