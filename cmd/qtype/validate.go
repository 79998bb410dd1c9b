package main

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
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/diag"
	"github.com/qtype-dev/qtype/memory/show"
	"github.com/qtype-dev/qtype/validate"
)

// validation is one call of qtype validate.
type validation struct {
	*streams
	format *choice
	strict bool
	quiet  bool
}

func newValidate(s *streams) *cobra.Command {
	v := &validation{streams: s, format: newChoice("text", "json", "sarif", "github")}
	c := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check documents, without running anything",
		Long: `Checks documents, and in folders every *.qtype.yaml, and tells every fault with
its place. It needs no secrets and no network. Exit status 1 where there is an
error; warnings fail only with --strict.`,
		Example: `  qtype validate app.qtype.yaml
  qtype validate --strict examples
  qtype validate --format github .`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{command: c.CommandPath(), reason: "qtype validate needs a file or a folder"}
			}
			return nil
		},
		ValidArgsFunction: yamlFiles,
		RunE:              func(c *cobra.Command, args []string) error { return v.run(c.Context(), args) },
	}
	c.Flags().Var(v.format, "format", "how faults are written")
	c.Flags().BoolVar(&v.strict, "strict", false, "fail on warnings too")
	c.Flags().BoolVarP(&v.quiet, "quiet", "q", false, "say nothing when all is well")
	_ = c.RegisterFlagCompletionFunc("format", v.format.complete) // fails only for a flag that is not there
	return c
}

// checked is what became of one document.
type checked struct {
	path    string
	faults  diag.List
	files   int
	summary string
}

func (v *validation) run(ctx context.Context, args []string) error {
	begin := time.Now()
	paths, err := documents(args)
	if err != nil {
		return err
	}
	var all []checked
	for _, path := range paths {
		if ctx.Err() != nil {
			return errInterrupted
		}
		p, faults := qtype.Check(ctx, path)
		if v.strict {
			faults = faults.Strict()
		}
		all = append(all, checked{path, faults, len(p.Files), validate.Summarise(p.Document).String()})
	}
	return v.tell(all, time.Since(begin))
}

// tell writes the faults in the format that was asked for.
func (v *validation) tell(all []checked, took time.Duration) error {
	var faults diag.List
	for _, c := range all {
		faults.Add(c.faults...)
	}
	var err error
	switch v.format.value {
	case "json":
		err = diag.JSON(v.out, faults)
	case "sarif":
		err = diag.SARIF(v.out, faults, diag.Tool{Version: version(), Rules: rules()})
	case "github":
		err = diag.GitHub(v.out, faults)
	default:
		err = v.text(all, faults, took)
	}
	if err == nil && faults.Errors() > 0 {
		err = errSilent
	}
	return err
}

// text prints blocks and the closing line of look.md.
func (v *validation) text(all []checked, faults diag.List, took time.Duration) error {
	if err := diag.Text(v.out, faults, v.diagText(v.outTerminal)); err != nil {
		return err
	}
	ms := max(took.Milliseconds(), 1)
	files := 0
	for _, c := range all {
		files += max(c.files, 1)
		if len(c.faults) == 0 && !v.quiet {
			if len(faults) > 0 {
				fmt.Fprintf(v.out, "%s is valid: %s\n", clean(c.path), c.summary)
				continue
			}
			fmt.Fprintf(v.out, "%s is valid: %s (%d ms)\n", clean(c.path), c.summary, ms/int64(len(all)))
		}
	}
	if len(faults) > 0 {
		fmt.Fprintf(v.out, "\n%s in %s (%d ms)\n", tally(faults), count(files, "file"), ms)
	}
	return nil
}

// tally is "2 errors, 1 warning".
func tally(faults diag.List) string {
	var parts []string
	if n := faults.Errors(); n > 0 {
		parts = append(parts, count(n, "error"))
	}
	if n := faults.Warnings(); n > 0 {
		parts = append(parts, count(n, "warning"))
	}
	return strings.Join(parts, ", ")
}

// count is "1 file", "2,304 files".
func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return show.Thousands(int(n)) + " " + noun + "s"
}

// documents lists what the arguments name: files as they are, folders by the
// documents in them, hidden folders aside.
func documents(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			paths = append(paths, arg) // the loader says what is wrong with it
			continue
		}
		found, err := documentsIn(arg)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s is a folder without any *.qtype.yaml", arg)
		}
		paths = append(paths, found...)
	}
	return slices.Compact(paths), nil
}

func documentsIn(folder string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != folder:
			return nil // gone since the folder was listed
		case err != nil:
			return fmt.Errorf("%s: %w", path, plainCause(err))
		case d.IsDir() && path != folder && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.IsDir() && (strings.HasSuffix(path, ".qtype.yaml") || strings.HasSuffix(path, ".qtype.yml")):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// write writes to standard output or, where a name is given, to a new file.
func (s *streams) write(path, text string) error {
	if path == "" {
		_, err := io.WriteString(s.out, text)
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, plainCause(err))
	}
	return nil
}
