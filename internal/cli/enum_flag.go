package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// AddLineFormat adds --format for commands that list things.
func AddLineFormat(c *cobra.Command) *EnumFlag {
	format := NewEnumFlag("text", "json")
	c.Flags().Var(format, "format", "output format: text, or json with one object a line")
	return format
}

// EnumFlag is a flag with a fixed set of values.
type EnumFlag struct {
	Value  string
	values []string
}

// NewEnumFlag returns a flag whose default is the first value. An empty first value
// means that the default is decided elsewhere; it cannot be given.
func NewEnumFlag(values ...string) *EnumFlag { return &EnumFlag{Value: values[0], values: values} }

// String returns the value.
func (c *EnumFlag) String() string { return c.Value }

// Set sets the value.
func (c *EnumFlag) Set(v string) error {
	if !slices.Contains(c.known(), v) {
		return errors.New("unknown value")
	}
	c.Value = v
	return nil
}

// Type returns the values for the help text.
func (c *EnumFlag) Type() string { return strings.Join(c.known(), "|") }

// known returns the values that may be given.
func (c *EnumFlag) known() []string {
	if c.values[0] == "" {
		return c.values[1:]
	}
	return c.values
}

// AddTo adds the flag to a command, with shell completion.
func (c *EnumFlag) AddTo(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, c.complete) // fails only for an unknown flag
}

// complete returns the values for shell completion.
func (c *EnumFlag) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.known(), cobra.ShellCompDirectiveNoFileComp
}

// YAMLFiles completes the names of documents.
func YAMLFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// habitualCommands are commands of other programs, by the command that does the same.
func habitualCommands() map[string]string {
	return map[string]string{
		"lint": "validate", "check": "validate", "verify": "validate", "format": "fmt", "new": "init", "create": "init",
		"exec": "run", "start": "run", "batch": "run", "predict": "run", "repl": "chat", "talk": "chat", "ui": "serve", "server": "serve", "api": "serve",
		"tests": "test", "evaluate": "eval", "graph": "visualize", "draw": "visualize", "plan": "visualize", "import": "convert", "price": "cost",
		"sessions": "memory list", "session": "memory show", "history": "memory history", "skills": "generate skills", "prune": "clean", "gc": "clean",
	}
}

// habitualCommand returns the command line that a word in the place of a command
// probably means; empty if there is none.
func habitualCommand(c *cobra.Command, word string) string {
	if c.HasParent() {
		return ""
	}
	meant := habitualCommands()[word]
	if lower := strings.ToLower(word); strings.HasSuffix(lower, ".yaml") || strings.HasSuffix(lower, ".yml") {
		meant = "run " + word
	}
	first, _, _ := strings.Cut(meant, " ")
	if !slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == first }) {
		return ""
	}
	return c.Name() + " " + meant
}

// habitualFlag returns what to do in place of a flag that other programs have; empty if
// there is nothing.
func habitualFlag(c *cobra.Command, name string) string {
	if !slices.Contains([]string{"run", "chat", "serve", "eval"}, c.Name()) {
		return ""
	}
	switch name {
	case "workers", "jobs", "parallel", "concurrency", "threads":
		return "a step declares its number of workers: concurrency_config: {num_workers: 4}"
	case "model", "temperature", "max-tokens", "provider":
		return "the document declares its models, with model_id and inference_params"
	case "prompt", "message", "text", "var", "param":
		return "inputs are given by -i, and rows by -I"
	case "api-key", "key":
		return "keys are read from the environment, or from a file .env next to the document"
	}
	return ""
}

// originalFlag is a flag of QType (Python) that is accepted so that its command lines work.
type originalFlag struct {
	command, name, short string
	note                 string // why it has no effect; empty if that is what the command does anyway
}

// originalFlags is the table of these flags.
var originalFlags = []originalFlag{
	{"run", "progress", "", ""},
	{"run", "show-output", "", "--show-output has no effect: results are shown unless -o names a file"},
	{"validate", "print", "p", "--print has no effect: qtype visualize and qtype schema show documents"},
	{"visualize", "no-display", "", ""},
}

// addOriginalFlags adds the flags to the commands, without help.
func addOriginalFlags(s *Streams, root *cobra.Command) {
	for _, o := range originalFlags {
		c, _, err := root.Find([]string{o.command})
		if err != nil || c == root { // it has no such command
			continue
		}
		c.Flags().BoolP(o.name, o.short, false, "flag of QType (Python), without effect")
		_ = c.Flags().MarkHidden(o.name) // fails only for an unknown flag
		run := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			if o.note != "" && c.Flags().Changed(o.name) {
				fmt.Fprintln(s.Err, o.note)
			}
			return run(c, args)
		}
	}
}

// joinShorts replaces -nd in a command line of QType (Python), which would be two flags here.
func joinShorts(args []string) []string {
	i := slices.Index(args, "-nd")
	if i < 0 || !slices.Contains(args[:i], "visualize") {
		return args
	}
	joined := slices.Clone(args)
	joined[i] = "--no-display"
	return joined
}
