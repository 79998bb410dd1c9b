package lint

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// ErrInvalid reports that documents have errors, which were printed.
var ErrInvalid = errors.New("documents have errors")

// Printer writes the results of checks.
type Printer struct {
	Out         io.Writer
	Format      string   // text, json, sarif or github
	Version     string   // of the program, for sarif
	Paths       []string // what was checked
	Strict      bool     // warnings are errors
	Quiet       bool     // errors only
	Fix         bool     // fixes are applied
	Diagnostics diag.TextOptions
}

// maxNamed is the maximum number of valid documents that are listed by name.
const maxNamed = 20

// Write writes the diagnostics of results. took is the time of the check; 0 if it was not measured. It returns
// ErrInvalid if there is an error.
func (p *Printer) Write(results []Result, took time.Duration) error {
	results = p.Severities(results)
	list := Diagnostics(results)
	var err error
	switch p.Format {
	case "json":
		err = diag.JSON(p.Out, list)
	case "sarif":
		err = diag.SARIF(p.Out, list, diag.Tool{Version: p.Version, Rules: Rules()})
	case "github":
		err = diag.GitHub(p.Out, list)
	default:
		err = p.text(results, list, took)
	}
	if err == nil && list.Errors() > 0 {
		err = ErrInvalid
	}
	return err
}

// Severities returns the results with warnings as errors if the printer is strict.
func (p *Printer) Severities(results []Result) []Result {
	if !p.Strict {
		return results
	}
	strict := slices.Clone(results)
	for i := range strict {
		strict[i].Diagnostics = strict[i].Diagnostics.AsErrors()
	}
	return strict
}

// text writes the diagnostics as blocks, the valid documents and a summary.
func (p *Printer) text(results []Result, list diag.List, took time.Duration) error {
	if err := diag.Text(p.Out, list, p.Diagnostics); err != nil {
		return err
	}
	files, valid := 0, 0
	for _, r := range results {
		files += r.Files
		if r.IsValid() {
			valid++
		}
	}
	if !p.Quiet {
		p.valid(results, valid, len(list) == 0, took)
	}
	if len(list) > 0 {
		fmt.Fprintf(p.Out, "\n%s in %s%s%s\n", countText(list), textfmt.Count(files, "file"), textfmt.Took(took), fixableNote(list, p.Fix))
	}
	return nil
}

// valid lists the valid documents, or counts them if they are many. It adds the time
// if no summary follows.
func (p *Printer) valid(results []Result, valid int, all bool, took time.Duration) {
	timed := ""
	if all {
		timed = textfmt.Took(took)
	}
	switch {
	case len(results) == 0:
		fmt.Fprintf(p.Out, "no documents in %s\n", terminal.Clean(textfmt.List(p.Paths)))
	case valid > maxNamed:
		fmt.Fprintf(p.Out, "%s are valid%s\n", textfmt.Count(valid, "document"), timed)
	default:
		if len(results) > 1 && all {
			timed = textfmt.Took(took / time.Duration(len(results)))
		}
		for _, r := range results {
			if r.IsValid() {
				fmt.Fprintf(p.Out, "%s is valid: %s%s\n", terminal.Clean(r.Document.String()), r.Summary, timed)
				for _, note := range r.Notes {
					fmt.Fprintf(p.Out, "note: %s\n", terminal.Clean(note))
				}
			}
		}
	}
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
