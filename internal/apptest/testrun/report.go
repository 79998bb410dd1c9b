package testrun

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Report is the result of a test file.
type Report struct {
	Path        string     // of the test file
	Diagnostics diag.List  // the errors of a file that could not be run; warnings
	Outcomes    []*Outcome // of the tests, in order
	Recorded    bool       // the file declares recordings
}

// Passed returns the numbers of passed and failed tests. A file that could not be
// run counts as a failed test.
func Passed(reports []Report) (passed, failed int) {
	for _, r := range reports {
		if r.Diagnostics.Errors() > 0 {
			failed++
		}
		for _, o := range r.Outcomes {
			if o.Passed() {
				passed++
			} else {
				failed++
			}
		}
	}
	return passed, failed
}

// AllDiagnostics returns the diagnostics of all reports.
func AllDiagnostics(reports []Report) diag.List {
	var all diag.List
	for _, r := range reports {
		all = append(all, r.Diagnostics...)
		for _, o := range r.Outcomes {
			all = append(all, o.Diagnostics...)
		}
	}
	return all
}

// JSON writes one line for each test, and one for each file that could not be run.
func JSON(w io.Writer, reports []Report) error {
	type line struct {
		File        string          `json:"file"`
		Name        string          `json:"name,omitempty"`
		Flow        string          `json:"flow,omitempty"`
		Passed      bool            `json:"passed"`
		MS          float64         `json:"ms"`
		Trials      int             `json:"trials,omitempty"`
		PassedOf    *int            `json:"passed_trials,omitempty"`
		Diagnostics json.RawMessage `json:"faults"`
		Details     string          `json:"details,omitempty"`
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, r := range reports {
		if r.Diagnostics.Errors() > 0 {
			diagnostics, err := diagnosticsJSON(r.Diagnostics)
			if err != nil {
				return err
			}
			if err := e.Encode(line{File: r.Path, Diagnostics: diagnostics}); err != nil {
				return err
			}
		}
		for _, o := range r.Outcomes {
			diagnostics, err := diagnosticsJSON(o.Diagnostics)
			if err != nil {
				return err
			}
			l := line{File: r.Path, Name: o.Name, Flow: o.Flow, Passed: o.Passed(), MS: milliseconds(o.Took), Diagnostics: diagnostics, Details: o.Details}
			if o.Trials > 1 {
				l.Trials, l.PassedOf = o.Trials, &o.PassedTrials
			}
			if err := e.Encode(l); err != nil {
				return err
			}
		}
	}
	return nil
}

func diagnosticsJSON(list diag.List) (json.RawMessage, error) {
	var b strings.Builder
	err := diag.JSON(&b, list)
	return json.RawMessage(b.String()), err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// The elements of a JUnit report that CI systems read. There is no formal
// specification.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []JUnitSuite `xml:"testsuite"`
	}
	// JUnitSuite are the cases of a file.
	JUnitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []JUnitCase `xml:"testcase"`
	}
	// JUnitCase is a test, or a metric of an evaluation.
	JUnitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *JUnitFailure `xml:"failure"`
		Error   *JUnitFailure `xml:"error"`
	}
	// JUnitFailure is why a case has failed.
	JUnitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a JUnit report. A file that could not be run is a test case with an
// error.
func JUnit(w io.Writer, reports []Report) error {
	var suites []JUnitSuite
	var total time.Duration
	for _, r := range reports {
		s := JUnitSuite{Name: r.Path}
		var took time.Duration
		if r.Diagnostics.Errors() > 0 {
			c := JUnitCase{Name: "the file can be run", Class: r.Path, File: r.Path, Time: formatSeconds(0)}
			c.Error = junitFailureOf(r.Diagnostics)
			s.Cases = append(s.Cases, c)
		}
		for _, o := range r.Outcomes {
			took += o.Took
			c := JUnitCase{Name: o.Name, Class: r.Path, File: r.Path, Line: o.Position.Start.Line, Time: formatSeconds(o.Took)}
			if !o.Passed() {
				c.Failure = junitFailureOf(o.Diagnostics)
				if o.Details != "" {
					c.Failure.Text += "\n" + o.Details
				}
			}
			s.Cases = append(s.Cases, c)
		}
		s.Time = formatSeconds(took)
		total += took
		suites = append(suites, s)
	}
	return WriteJUnit(w, total, suites...)
}

// WriteJUnit writes suites, whose cases are counted, as a JUnit report.
func WriteJUnit(w io.Writer, took time.Duration, suites ...JUnitSuite) error {
	all := junitSuites{Time: formatSeconds(took), Suites: suites}
	for i := range all.Suites {
		s := &all.Suites[i]
		s.Tests, s.Failures, s.Errors = len(s.Cases), 0, 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				s.Failures++
			}
			if c.Error != nil {
				s.Errors++
			}
		}
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitFailureOf returns the first error, with all diagnostics as its text: warnings can precede it.
func junitFailureOf(diagnostics diag.List) *JUnitFailure {
	first := diagnostics[max(0, slices.IndexFunc(diagnostics, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }))]
	var lines []string
	for _, f := range diagnostics {
		lines = append(lines, f.Error())
	}
	return &JUnitFailure{Message: first.Message, Type: first.Code, Text: strings.Join(lines, "\n")}
}

func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

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
