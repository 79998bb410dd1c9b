package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// maxNamed is the maximum number of valid documents that are listed by name.
const maxNamed = 20

// write writes the diagnostics in the format of --format.
func (v *validateCommand) write(results []lint.Result, took time.Duration) error {
	results = v.withSeverities(results)
	list := lint.Diagnostics(results)
	var err error
	switch v.format.value {
	case "json":
		err = diag.JSON(v.Out, list)
	case "sarif":
		err = diag.SARIF(v.Out, list, diag.Tool{Version: version(), Rules: lint.Rules()})
	case "github":
		err = diag.GitHub(v.Out, list)
	default:
		err = v.text(results, list, took)
	}
	if err == nil && list.Errors() > 0 {
		err = errSilent
	}
	return err
}

// withSeverities returns the results with warnings as errors if --strict is set.
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

// text writes the diagnostics as blocks, the valid documents and a summary.
func (v *validateCommand) text(results []lint.Result, list diag.List, took time.Duration) error {
	if err := diag.Text(v.Out, list, v.diagText(v.OutTerminal)); err != nil {
		return err
	}
	files, valid := 0, 0
	for _, r := range results {
		files += r.Files
		if r.IsValid() {
			valid++
		}
	}
	if !v.quiet {
		v.valid(results, valid, len(list) == 0, took)
	}
	if len(list) > 0 {
		fmt.Fprintf(v.Out, "\n%s in %s%s%s\n", countText(list), textfmt.Count(files, "file"), milliseconds(took), fixableNote(list, v.fix))
	}
	return nil
}

// valid lists the valid documents, or counts them if they are many. It adds the time
// if no summary follows.
func (v *validateCommand) valid(results []lint.Result, valid int, all bool, took time.Duration) {
	timed := ""
	if all {
		timed = milliseconds(took)
	}
	switch {
	case len(results) == 0:
		fmt.Fprintf(v.Out, "no documents in %s\n", terminal.Clean(textfmt.List(v.find.Paths)))
	case valid > maxNamed:
		fmt.Fprintf(v.Out, "%s are valid%s\n", textfmt.Count(valid, "document"), timed)
	default:
		if len(results) > 1 && all {
			timed = milliseconds(took / time.Duration(len(results)))
		}
		for _, r := range results {
			if r.IsValid() {
				fmt.Fprintf(v.Out, "%s is valid: %s%s\n", terminal.Clean(r.Document.String()), r.Summary, timed)
				for _, note := range r.Notes {
					fmt.Fprintf(v.Out, "note: %s\n", terminal.Clean(note))
				}
			}
		}
	}
}

// milliseconds returns " (18 ms)"; empty if no time was measured.
func milliseconds(took time.Duration) string {
	if took == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d ms)", max(took.Milliseconds(), 1))
}

// fixableNote returns how many diagnostics --fix can fix, unless it was given.
func fixableNote(list diag.List, fix bool) string {
	n := list.Fixable()
	if n == 0 || fix {
		return ""
	}
	return "; " + textfmt.Thousands(n) + " fixable with --fix"
}

// countText returns "2 errors, 1 warning".
func countText(list diag.List) string {
	var parts []string
	if n := list.Errors(); n > 0 {
		parts = append(parts, textfmt.Count(n, "error"))
	}
	if n := list.Warnings(); n > 0 {
		parts = append(parts, textfmt.Count(n, "warning"))
	}
	return strings.Join(parts, ", ")
}
