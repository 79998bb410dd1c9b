package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// runCommand is one call of qtype run.
type runCommand struct {
	*streams
	batch.Config
	format   *enumFlag
	failFast bool
	mkdir    bool
	clients  *clients
	store    storeFlag
	flags    *pflag.FlagSet
	suspend  suspendFlags
	trace    traceFlag
	log      logLevel
	engine   *enumFlag
	temporal temporalFlags
	access   accessFlags
}

func newRun(s *streams) *cobra.Command {
	r := &runCommand{streams: s, clients: newClients(s), format: newEnumFlag("", "table", "text", "jsonl", "json", "csv", "tsv"), engine: newEnumFlag("local", "temporal")}
	c := &cobra.Command{
		Use:   "run APP",
		Short: "Run a flow once, or over every row of a file",
		Example: `  qtype run app.qtype.yaml -i '{"message": "Where is my parcel?"}' --session c-014
  qtype run app.qtype.yaml -I messages.csv -o replies.parquet
  qtype run app.qtype.yaml -I messages.csv --errors failed.jsonl >replies.jsonl`,
		Args: arguments("a document: qtype run APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.log.check(c); err != nil {
				return err
			}
			r.Quiet = r.log.quiet
			return r.run(r.log.context(c.Context(), r.streams), args[0])
		},
	}
	r.addTo(c)
	groupHelp(c)
	return c
}

// addTo declares the flags of qtype run in the groups of its help.
func (r *runCommand) addTo(c *cobra.Command) {
	f := c.Flags()
	r.flags = f
	f.SortFlags = false
	addFlags(f, "Input and output", func() {
		f.StringVarP(&r.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.StringVarP(&r.Input, "input", "i", "", "input: `JSON` object or array, text, @FILE, or - for stdin")
		f.StringVarP(&r.InputFile, "input-file", "I", "", "run over every row of `FILE` (.csv .tsv .json .jsonl .parquet .xlsx), or - for stdin")
		f.StringVarP(&r.Output, "output", "o", "", "write the results to `FILE`: .csv .tsv .json .jsonl .parquet (without a suffix: Parquet)")
		f.BoolVar(&r.mkdir, "mkdir", false, "create the folders of -o and --errors")
		r.format.addTo(c, "format", "", "output format (default: table on a terminal, text for a single input there, otherwise jsonl)")
	})
	addFlags(f, "Rows and failures", func() {
		f.Int64Var(&r.Offset, "offset", 0, "skip the first `N` rows")
		f.Int64Var(&r.Limit, "limit", 0, "process at most `N` rows")
		f.StringVar(&r.ErrorFile, "errors", "", "write the failed rows, with their errors, to `FILE`")
		f.BoolVar(&r.failFast, "fail-fast", false, "stop at the first failed row")
		f.Int64Var(&r.MaxFailures, "max-failures", 0, "stop after `N` failed rows")
		f.BoolVar(&r.Resume, "resume", false, "resume an interrupted run (with -I and -o)")
		f.BoolVar(&r.RetryFailed, "retry-failed", false, "with --resume, retry failed rows")
		f.BoolVar(&r.Restart, "restart", false, "discard an interrupted run and start over")
	})
	addFlags(f, "Engine", func() {
		r.engine.addTo(c, "engine", "", "run the rows in this process (local), or on workers (temporal; see qtype worker)")
		r.temporal.addRunTo(f)
	})
	addFlags(f, "Conversations", func() {
		f.StringVarP(&r.Session, "session", "s", "", "`ID` of the session of all rows")
		f.StringVar(&r.SessionColumn, "session-column", "", "`COLUMN` with the session of each row (default: session_id or session)")
		f.BoolVar(&r.SessionPerRow, "session-per-row", false, "a new session for each row")
		f.StringVar(&r.User, "user", "", "`USER` to whom the sessions belong")
		f.StringVar(&r.UserColumn, "user-column", "", "`COLUMN` with the user of each row (default: user_id or user)")
		f.BoolVar(&r.Ephemeral, "ephemeral", false, "keep memories in RAM only")
		r.store.addTo(f)
	})
	addFlags(f, "Tools and approvals", func() {
		r.clients.flags(f)
		r.suspend.addTo(f)
	})
	addFlags(f, "Access", func() { r.access.addTo(f) })
	addFlags(f, "Messages", func() {
		r.trace.addTo(f)
		r.log.addTo(c, "no progress; failures and warnings only")
	})
}

// checkFlags rejects flags that exclude each other, and files that cannot be written.
func (r *runCommand) checkFlags() error {
	switch {
	case r.Input != "" && r.InputFile != "":
		return usagef("-i and -I exclude each other")
	case r.InputFile == "-" && r.InTerminal:
		return usagef("-I - reads rows from standard input, which is a terminal: pipe a file into it")
	case r.Output != "" && r.format.value != "":
		return usagef("--format is for standard output; the format of -o is that of its extension")
	}
	if err := r.checkSessions(); err != nil {
		return err
	}
	if err := r.checkLimits(); err != nil {
		return err
	}
	if err := r.suspend.check(r.InputFile, r.Ephemeral); err != nil {
		return err
	}
	if err := r.checkEngine(); err != nil {
		return err
	}
	if err := r.checkOutputs(); err != nil {
		return err
	}
	if err := r.trace.check(r.InputFile, r.Output, r.ErrorFile); err != nil {
		return err
	}
	return r.checkDistinctFiles()
}

// checkOutputs rejects files that cannot be written.
func (r *runCommand) checkOutputs() error {
	for _, path := range []string{r.Output, r.ErrorFile} {
		if path == "" || path == r.Output && hasNoSuffix(path) {
			continue
		}
		if err := records.Writable(path); err != nil {
			return &terminal.UsageError{Reason: err.Error()}
		}
	}
	if err := r.checkFolder("-o", r.Output); err != nil {
		return err
	}
	return r.checkFolder("--errors", r.ErrorFile)
}

// checkFolder rejects a file in a folder that does not exist, which a typing error would otherwise create.
func (r *runCommand) checkFolder(flag, path string) error {
	if _, remote := remotefs.Remote(path); remote || path == "" || r.mkdir {
		return nil
	}
	folder := filepath.Dir(remotefs.Path(path))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return usagef("%s %s: there is no folder %s: create it, or pass --mkdir", flag, path, folder)
	}
	return nil
}

// hasNoSuffix reports whether a path names no format, so that the file is Parquet.
func hasNoSuffix(path string) bool { return path != "" && filepath.Ext(path) == "" }

// checkSessions rejects flags for sessions and users that exclude each other or are empty.
func (r *runCommand) checkSessions() error {
	switch {
	case r.Session != "" && r.SessionColumn != "":
		return usagef("--session and --session-column exclude each other")
	case r.SessionPerRow && (r.Session != "" || r.SessionColumn != ""):
		return usagef("--session-per-row excludes --session and --session-column")
	case r.User != "" && r.UserColumn != "":
		return usagef("--user and --user-column exclude each other")
	}
	for _, name := range []string{"session", "session-column", "user", "user-column"} {
		if f := r.flags.Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return usagef("--%s must not be empty", name)
		}
	}
	return nil
}

// checkDistinctFiles rejects a run that would overwrite its own input, or one of its
// outputs with another.
func (r *runCommand) checkDistinctFiles() error {
	switch {
	case isSameFile(r.InputFile, r.Output):
		return usagef("-o %s is the file of -I: use another name", r.Output)
	case isSameFile(r.InputFile, r.ErrorFile):
		return usagef("--errors %s is the file of -I: use another name", r.ErrorFile)
	case isSameFile(r.Output, r.ErrorFile):
		return usagef("--errors %s is the file of -o: use another name", r.ErrorFile)
	}
	return nil
}

// isSameFile reports whether two paths lead to the same file, also through links.
func isSameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	one, err := os.Stat(remotefs.Path(a))
	if err != nil { // a URL, or a file that does not exist yet: compare the names
		return a == b || filepath.Clean(remotefs.Path(a)) == filepath.Clean(remotefs.Path(b))
	}
	two, err := os.Stat(remotefs.Path(b))
	return err == nil && one.Mode().IsRegular() && os.SameFile(one, two)
}

// checkLimits rejects flags for long runs that exclude each other or have no effect.
func (r *runCommand) checkLimits() error {
	switch {
	case r.Limit < 0, r.flags.Changed("limit") && r.Limit == 0:
		return usagef("--limit cannot be %d: expected a positive number of rows", r.Limit)
	case r.Offset < 0:
		return usagef("--offset cannot be %d: expected a number of rows", r.Offset)
	case r.MaxFailures < 0, r.flags.Changed("max-failures") && r.MaxFailures == 0:
		return usagef("--max-failures cannot be %d: expected a positive number of rows", r.MaxFailures)
	case r.failFast && r.MaxFailures > 0:
		return usagef("--fail-fast and --max-failures exclude each other")
	case r.Resume && r.Restart:
		return usagef("--resume and --restart exclude each other")
	case r.RetryFailed && !r.Resume:
		return usagef("--retry-failed requires --resume")
	case (r.Resume || r.Restart) && (r.InputFile == "" || r.Output == ""):
		return usagef("--resume and --restart require -I and -o: only a run from file to file can be resumed")
	}
	if r.failFast {
		r.MaxFailures = 1
	}
	return nil
}

func (r *runCommand) run(ctx context.Context, path string) (err error) {
	if err := r.checkFlags(); err != nil {
		return err
	}
	p, list := qtype.Check(ctx, path, r.access.options(qtype.WithStrict())...)
	if err := list.Err(); err != nil {
		return err
	}
	if !r.Quiet {
		r.printWarnings(path, list)
		if hasNoSuffix(r.Output) {
			fmt.Fprintf(r.Err, "%s has no suffix: it is written as a Parquet file\n", terminal.Clean(r.Output))
		}
	}
	if r.InTerminal && r.ErrTerminal {
		lines := terminal.NewLines(r.In)
		defer lines.Close()
		r.clients.prompt(lines)
		r.Prompts = p.Document.Application != nil && clienttool.Prompts(p.Document.Application)
	}
	ctx, suspended, err := r.openSuspension(ctx, path, p.Document.Application)
	if err != nil {
		return err
	}
	if err := r.openEngine(path); err != nil {
		return err
	}
	app, err := r.newApp(p, r.clients, &r.store, r.Ephemeral, &r.log)
	if err != nil {
		return err
	}
	defer closeApp(ctx, app, &err)
	ctx, sendTraces := r.startTraces(ctx, app, &r.log)
	defer sendTraces()
	ctx, trace, closeTrace, err := r.trace.start(ctx, r.streams, app, "row")
	if err != nil {
		return err
	}
	defer closeTrace(&err)
	ctx = r.clients.audit.context(ctx)
	r.Format, r.Command, r.Config.Streams, r.Trace = r.format.value, r.args, &r.streams.Streams, trace
	err = suspended(batch.Run(ctx, app, r.Config))
	var input *batch.InputError
	switch {
	case errors.As(err, &input):
		err = usagef("%s", input)
	case errors.Is(err, batch.ErrRowsFailed):
		err = errSilent
	}
	return err
}
