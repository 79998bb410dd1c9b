package author

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/reference"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// NewExplain returns qtype explain.
func NewExplain(s *cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE | TYPE | TYPE.KEY]",
		Short: "Explain a diagnostic code, a type of the language or a key",
		Long: `Explain a diagnostic code with examples, a type of the language with its keys, or one key.
A type is Agent, Memory, api_key or another one with a section in the reference.
Without an argument all codes and types are listed.`,
		Example: `  qtype explain QT202
  qtype explain Memory
  qtype explain Memory.ttl`,
		Args: cli.OptionalArgument("code or type"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			codes := cli.Matching(Rules(), strings.ToUpper(typed), func(r diag.Rule) string { return r.Code })
			return append(codes, cli.Matching(reference.Names(), typed, func(name string) string { return name })...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			l := spec.LanguageOf(c.Context())
			if len(args) == 0 {
				return s.WriteTo("", diag.ListRules(append(Rules(), validate.RulesOf(l)...))+"\n"+reference.List())
			}
			text, err := explain(l, args[0])
			if err != nil {
				return terminal.Usagef("%s", err)
			}
			return s.WriteTo("", text)
		},
	}
}

// explain returns the text about a code, a type or a key.
func explain(l *spec.Language, name string) (string, error) {
	own := validate.RulesOf(l)
	if i := slices.IndexFunc(own, func(r diag.Rule) bool { return strings.EqualFold(r.Code, name) }); i >= 0 {
		return own[i].Explain(), nil
	}
	if diag.IsCode(name) {
		rule, err := diag.FindRule(Rules(), name)
		return rule.Explain(), err
	}
	return reference.Explain(l, name)
}

// Rules returns the rules of documents, of the converter and of tests.
func Rules() []diag.Rule {
	return slices.Concat(lint.Rules(), input.Rules(), apptest.Rules(), eval.Rules())
}
