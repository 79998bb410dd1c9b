package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

func newExplain(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain a diagnostic code, with examples",
		Example: `  qtype explain QT202
  qtype explain 202
  qtype explain        # lists all codes`,
		Args: optionalArgument("code"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return matching(allRules(), strings.ToUpper(typed), func(r diag.Rule) string { return r.Code }), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return s.WriteTo("", ruleList())
			}
			return explainCode(s, fullCode(args[0]))
		},
	}
}

// allRules returns the rules of documents, of the converter and of tests.
func allRules() []diag.Rule {
	return slices.Concat(lint.Rules(), convert.Rules(), apptest.Rules(), eval.Rules())
}

func codes() []string {
	var all []string
	for _, r := range allRules() {
		all = append(all, r.Code)
	}
	return all
}

func ruleList() string {
	var b strings.Builder
	for _, r := range allRules() {
		fmt.Fprintf(&b, "%s  %-7s  %s\n", r.Code, r.Severity, r.Title)
	}
	return b.String()
}

// fullCode returns a code as it is declared, also for 202, qt202 and QT-202.
func fullCode(code string) string {
	upper := strings.ToUpper(strings.TrimSpace(code))
	number := strings.TrimLeft(strings.TrimPrefix(upper, "QT"), "- ")
	if number != "" && strings.Trim(number, "0123456789") == "" {
		return fmt.Sprintf("QT%03s", number)
	}
	return upper
}

func explainCode(s *streams, code string) error {
	all := allRules()
	i := slices.IndexFunc(all, func(r diag.Rule) bool { return r.Code == code })
	if i < 0 {
		return usagef("no diagnostic has the code %q%s", code, diag.DidYouMean(code, codes()))
	}
	r := all[i]
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n\n%s\n", r.Code, r.Severity, r.Title, strings.TrimSpace(r.Doc))
	for _, example := range []struct{ name, text string }{{"Wrong", r.Wrong}, {"Right", r.Right}} {
		if text := strings.Trim(example.text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n\n    %s\n", example.name, strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	return s.WriteTo("", b.String())
}
