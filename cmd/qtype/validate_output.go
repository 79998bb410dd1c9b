package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// maxNamed is for how many valid documents each is named; of more, only how
// many they are.
const maxNamed = 20

// tell writes the faults in the format that was asked for.
func (v *validateCommand) tell(results []lint.Result, took time.Duration) error {
	results = v.withSeverities(results)
	faults := lint.Diagnostics(results)
	var err error
	switch v.format.value {
	case "json":
		err = diag.JSON(v.out, faults)
	case "sarif":
		err = diag.SARIF(v.out, faults, diag.Tool{Version: version(), Rules: lint.Rules()})
	case "github":
		err = diag.GitHub(v.out, faults)
	default:
		err = v.text(results, faults, took)
	}
	if err == nil && faults.Errors() > 0 {
		err = errSilent
	}
	return err
}

// withSeverities answers the results with the severities that were asked for.
func (v *validateCommand) withSeverities(results []lint.Result) []lint.Result {
	if !v.strict {
		return results
	}
	strict := slices.Clone(results)
	for i := range strict {
		strict[i].Diagnostics = strict[i].Diagnostics.AsErrors()
	}
	return strict
}

// text prints blocks and the closing line of look.md.
func (v *validateCommand) text(results []lint.Result, faults diag.List, took time.Duration) error {
	if err := diag.Text(v.out, faults, v.diagText(v.outTerminal)); err != nil {
		return err
	}
	files, valid := 0, 0
	for _, r := range results {
		files += r.Files
		if len(r.Diagnostics) == 0 {
			valid++
		}
	}
	if !v.quiet {
		v.valid(results, valid, len(faults) == 0, took)
	}
	if len(faults) > 0 {
		fmt.Fprintf(v.out, "\n%s in %s%s%s\n", countText(faults), count(files, "file"), milliseconds(took), fixableNote(faults, v.fix))
	}
	return nil
}

// valid names the valid documents, or counts them where they are many. The time
// stands here where nothing else follows.
func (v *validateCommand) valid(results []lint.Result, valid int, all bool, took time.Duration) {
	timed := ""
	if all {
		timed = milliseconds(took)
	}
	switch {
	case len(results) == 0:
		fmt.Fprintf(v.out, "there is no document in %s\n", clean(joinNames(v.find.Paths)))
	case valid > maxNamed:
		fmt.Fprintf(v.out, "%s are valid%s\n", count(valid, "document"), timed)
	default:
		if len(results) > 1 && all {
			timed = milliseconds(took / time.Duration(len(results)))
		}
		for _, r := range results {
			if len(r.Diagnostics) == 0 {
				fmt.Fprintf(v.out, "%s is valid: %s%s\n", clean(r.Document.String()), r.Summary, timed)
			}
		}
	}
}

// milliseconds is " (18 ms)"; nothing where no time was taken.
func milliseconds(took time.Duration) string {
	if took == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d ms)", max(took.Milliseconds(), 1))
}

// fixableNote tells how many faults --fix mends, where it was not asked for.
func fixableNote(faults diag.List, asked bool) string {
	n := faults.Fixable()
	if n == 0 || asked {
		return ""
	}
	return "; " + show.Thousands(n) + " can be mended by --fix"
}

// countText is "2 errors, 1 warning".
func countText(faults diag.List) string {
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
