package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is a command of a Program.
type Command struct {
	Name  string
	Make  func(*Streams) *cobra.Command
	Group string // its heading in the help text; empty for none
}

// Program is a program with commands.
type Program struct {
	Name, Short, Example string
	Commands             []Command // in the order of the help text

	// Missing is appended to the error for an unknown command.
	Missing string
	// PreRun is called before a command; it may be nil.
	PreRun func(*cobra.Command, []string)
	// Words changes a command line before it is read; it may be nil.
	Words func(args []string) []string
	// Complete adds completion to the whole tree; it may be nil.
	Complete func(root *cobra.Command)
}

// RootFor returns the part of the command tree that a command line needs: that of the command
// which is its first word, or all. Most commands have dozens of flags, which took a quarter of the time of a start.
func (p *Program) RootFor(s *Streams, args []string) *cobra.Command {
	if len(args) > 0 {
		for _, row := range p.Commands {
			if row.Name == args[0] {
				root := p.bareRoot(s)
				root.CompletionOptions.DisableDefaultCmd = true
				root.AddCommand(p.make(row, s))
				addOriginalFlags(s, root)
				return root
			}
		}
	}
	return p.Root(s)
}

// Root returns the command tree.
func (p *Program) Root(s *Streams) *cobra.Command {
	root := p.bareRoot(s)
	root.Version = Version()
	root.SetVersionTemplate(versionLine(p.Name))
	root.Flags().Bool("version", false, "print the version") // without a short form
	for _, row := range p.Commands {
		if row.Group != "" && !root.ContainsGroup(row.Group) {
			root.AddGroup(&cobra.Group{ID: row.Group, Title: row.Group})
		}
		c := p.make(row, s)
		c.GroupID = row.Group
		root.AddCommand(c)
	}
	root.SetHelpCommand(NewHelp(root))
	addOriginalFlags(s, root)
	if p.Complete != nil {
		p.Complete(root)
	}
	root.InitDefaultCompletionCmd()
	checkCompletion(root)
	return root
}

// make makes a command, whose examples have the name of the program.
func (p *Program) make(row Command, s *Streams) *cobra.Command {
	c := row.Make(s)
	for _, each := range append(c.Commands(), c) {
		each.Example = strings.ReplaceAll(each.Example, "qtype ", p.Name+" ")
	}
	return c
}

// bareRoot returns the root of the command tree without commands.
func (p *Program) bareRoot(s *Streams) *cobra.Command {
	root := CommandGroup(p.Name, p.Short)
	root.Example = p.Example
	if p.Missing != "" {
		root.Annotations = map[string]string{missingNote: p.Missing}
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		if p.PreRun != nil {
			p.PreRun(c, args)
		}
		return checkFlags(c)
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(FlagError)
	return root
}

// Execute runs a command line and reports its error.
func (p *Program) Execute(ctx context.Context, s *Streams, args []string) error {
	s.CommandLine, s.Program = args, p.Name
	ctx, flush := s.Redact(ctx)
	defer flush()
	err := p.run(ctx, s, args)
	s.Report(err)
	return err
}

// run runs the command of a command line. A panic is reported by the stream that replaces secrets,
// which the text of the go runtime does not pass.
func (p *Program) run(ctx context.Context, s *Streams, args []string) (err error) {
	root := p.RootFor(s, args)
	defer runtime.KeepAlive(root) // with what PreRun has allocated
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "internal error: %v\n%s", p, debug.Stack())
			err = ErrSilent
		}
	}()
	root.SetArgs(p.words(args))
	return root.ExecuteContext(ctx)
}

// words returns a command line as the commands read it.
func (p *Program) words(args []string) []string {
	args = joinShorts(args)
	if p.Words != nil {
		args = p.Words(args)
	}
	return args
}

// Nested runs a command line within a command, whose error it returns.
func (p *Program) Nested(ctx context.Context, s *Streams, args []string) error {
	s.CommandLine = args
	root := p.Root(s)
	root.SetArgs(p.words(args))
	return root.ExecuteContext(ctx)
}

// Matching returns the ids that begin with what was typed.
func Matching[T any](all []T, typed string, id func(T) string) []string {
	var ids []string
	for _, x := range all {
		if id := id(x); id != "" && strings.HasPrefix(id, typed) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Version returns the module's version that the build recorded, or the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// NewVersion returns a func that makes the command version of a program.
func NewVersion(program string) func(*Streams) *cobra.Command {
	return func(s *Streams) *cobra.Command {
		return &cobra.Command{
			Use:   "version",
			Short: "Print the version",
			Args:  Arguments(),
			RunE:  func(*cobra.Command, []string) error { return s.WriteTo("", versionLine(program)) },
		}
	}
}

// versionLine is what the command version and the flag --version print.
func versionLine(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)\n", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// flagGroup is the annotation of a flag with the heading that it has in the help text.
const flagGroup = "qtype_group"

// AddFlags adds flags under a heading of the help text.
func AddFlags(f *pflag.FlagSet, heading string, add func()) {
	before := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	add()
	f.VisitAll(func(flag *pflag.Flag) {
		if !before[flag.Name] {
			_ = f.SetAnnotation(flag.Name, flagGroup, []string{heading}) // fails only for an unknown flag
		}
	})
}

// Heading returns the heading of a flag in the help text; empty for none.
func Heading(flag *pflag.Flag) string { return strings.Join(flag.Annotations[flagGroup], "") }

// GroupHelp lets the help text of a command have its flags under their headings, those without one at the end.
func GroupHelp(command *cobra.Command) {
	command.SetUsageFunc(func(c *cobra.Command) error { // also of the commands below it
		command.SetUsageFunc(nil)
		if c == command {
			c.SetUsageTemplate(groupedUsage(c))
		}
		return c.Usage()
	})
}

// groupedUsage returns the template of GroupHelp.
func groupedUsage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var headings []string
	groups := map[string]*pflag.FlagSet{}
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		heading := cmp.Or(Heading(flag), "Other")
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			groups[heading].SortFlags = false
			headings = append(headings, heading)
		}
		groups[heading].AddFlag(flag)
	})
	var text []string
	for _, heading := range headings {
		text = append(text, fmt.Sprintf("%s:\n%s", heading, strings.TrimRight(groups[heading].FlagUsages(), "\n")))
	}
	const ungrouped = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	return strings.Replace(c.UsageTemplate(), ungrouped, strings.Join(text, "\n\n"), 1)
}

// NewHelp returns the command help. Unlike that of cobra, it fails for an unknown command.
func NewHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			c, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return Matching(c.Commands(), typed, (*cobra.Command).Name), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return noCommand(c, rest)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
