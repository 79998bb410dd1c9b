package lint

//go:generate go run ./generate -out ../../docs

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// The rules about comments that silence others.
var (
	ruleMalformed = diag.Rule{
		Code: "QT020", Severity: diag.Warning, Title: "a qtype:ignore comment is not understood",
		Doc: "The comment # qtype:ignore QT905 at the end of a line silences that code on the line; on a line of its own it silences the code on the next line. " +
			"Several codes are separated by commas, and a reason may follow after a colon: # qtype:ignore QT905, QT915: filled by the caller.",
		Wrong: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE} # qtype:ignore unset\n",
		Right: "id: shop\ndescription: ${QTYPE_NO_SUCH_VARIABLE} # qtype:ignore QT005\n",
	}
	ruleUseless = diag.Rule{
		Code: "QT021", Severity: diag.Warning, Title: "a qtype:ignore comment silences nothing",
		Doc: "What it silenced is mended, or stands on another line. Take the comment out, so that it does not hide the next fault there. " +
			"It is told only where the document has no errors, because an error can keep other rules from being applied.",
		Wrong: "id: shop # qtype:ignore QT905\n",
		Right: "id: shop\n",
	}
)

// Rules are all codes that a check reports: those of reading, of meaning and of
// this package, in order.
func Rules() []diag.Rule {
	all := slices.Concat(loader.Rules(), validate.Rules(), []diag.Rule{ruleMalformed, ruleUseless})
	slices.SortStableFunc(all, func(a, b diag.Rule) int { return strings.Compare(a.Code, b.Code) })
	return all
}
