package author

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// NewExplain returns qtype explain.
func NewExplain(s *cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain a diagnostic code, with examples",
		Example: `  qtype explain QT202
  qtype explain 202
  qtype explain        # lists all codes`,
		Args: cli.OptionalArgument("code"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return cli.Matching(Rules(), strings.ToUpper(typed), func(r diag.Rule) string { return r.Code }), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return s.WriteTo("", diag.ListRules(Rules()))
			}
			rule, err := diag.FindRule(Rules(), args[0])
			if err != nil {
				return terminal.Usagef("%s", err)
			}
			return s.WriteTo("", rule.Explain())
		},
	}
}

// Rules returns the rules of documents, of the converter and of tests.
func Rules() []diag.Rule {
	return slices.Concat(lint.Rules(), input.Rules(), apptest.Rules(), eval.Rules())
}
