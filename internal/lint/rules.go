package lint

//go:generate go run ./generate -out ../../docs

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// The rules of ignore comments.
var (
	ruleMalformed = diag.Rule{
		Code: "QT020", Severity: diag.Warning, Title: "malformed qtype:ignore comment",
		Doc: "The comment # qtype:ignore QT917 at the end of a line ignores that code on the line; on a separate line it applies to the next line. " +
			"Several codes are separated by commas, and a reason may follow after a colon: # qtype:ignore QT917, QT915: filled by the caller.",
		Wrong: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE} # qtype:ignore unset\n",
		Right: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE} # qtype:ignore QT005\n",
	}
	ruleUnused = diag.Rule{
		Code: "QT021", Severity: diag.Warning, Title: "unused qtype:ignore comment",
		Doc: "The ignored diagnostic was fixed, or is on another line. Remove the comment, so that it does not hide a future diagnostic. " +
			"Unused comments are reported only if the document has no errors, because an error can keep other rules from being applied.",
		Wrong: "id: shop # qtype:ignore QT917\n",
		Right: "id: shop\n",
	}
)

// Rules lists all codes that a check reports, in order: those of the loader, of
// package validate and of this package.
func Rules() []diag.Rule {
	all := slices.Concat(loader.Rules(), validate.Rules(), []diag.Rule{ruleMalformed, ruleUnused})
	slices.SortStableFunc(all, func(a, b diag.Rule) int { return strings.Compare(a.Code, b.Code) })
	return all
}
