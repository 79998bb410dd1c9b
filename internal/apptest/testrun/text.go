package testrun

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Printer prints tests while they run, and their results.
type Printer struct {
	Out         io.Writer
	Quiet       bool // print failed tests only
	Diagnostics diag.TextOptions
}

// Started prints the name of a file, or why it cannot be run.
func (p *Printer) Started(r *Report) {
	switch {
	case r.Diagnostics.Errors() > 0:
		fmt.Fprintf(p.Out, "%s cannot be run\n", terminal.Clean(r.Path))
		p.blocks(r.Diagnostics)
	case !p.Quiet:
		fmt.Fprintln(p.Out, terminal.Clean(r.Path))
	}
}

// Finished prints the outcome of a test.
func (p *Printer) Finished(o *Outcome) {
	switch {
	case !o.Passed():
		fmt.Fprintf(p.Out, "  ✗ %s%s%s\n", terminal.Clean(o.Name), o.rate(), textfmt.Took(o.Took))
		p.blocks(o.Diagnostics)
		for line := range strings.Lines(o.Details) {
			fmt.Fprintf(p.Out, "    %s\n", terminal.Clean(strings.TrimSuffix(line, "\n")))
		}
	case !p.Quiet:
		fmt.Fprintf(p.Out, "  ✓ %s%s%s\n", terminal.Clean(o.Name), o.rate(), textfmt.Took(o.Took))
	}
}

// rate returns how many trials passed; empty for a single one.
func (o *Outcome) rate() string {
	if o.Trials < 2 {
		return ""
	}
	return fmt.Sprintf(", %d of %d trials", o.PassedTrials, o.Trials)
}

// Ended prints the warnings of a file.
func (p *Printer) Ended(r *Report) {
	if r.Diagnostics.Warnings() > 0 && r.Diagnostics.Errors() == 0 {
		p.blocks(r.Diagnostics)
	}
}

// blocks prints diagnostics between the lines of tests.
func (p *Printer) blocks(list diag.List) {
	_ = diag.Text(p.Out, list, p.Diagnostics) // there is nowhere to report an error
	fmt.Fprintln(p.Out)
}

// Summary prints the result of all tests in a format: text, json, junit or github.
func (p *Printer) Summary(reports []Report, format string, took time.Duration) error {
	switch format {
	case "json":
		return JSON(p.Out, reports)
	case "junit":
		return JUnit(p.Out, reports)
	case "github":
		return diag.GitHub(p.Out, AllDiagnostics(reports))
	}
	passed, failed := Passed(reports)
	if p.Quiet && failed == 0 || passed+failed == 0 {
		return nil
	}
	sum := textfmt.Count(passed+failed, "test") + ": "
	if failed > 0 {
		sum += fmt.Sprintf("%d failed, ", failed)
	}
	_, err := fmt.Fprintf(p.Out, "%s%d passed%s\n", sum, passed, textfmt.Took(took))
	return err
}
