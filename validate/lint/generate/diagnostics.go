package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/qtype-dev/qtype/spec/diag"
)

// examples are documents with one error each and the output of QType (Python): a
// title, its exit status and number of lines, app.qtype.yaml, python.txt.
//
//go:embed examples/*.txtar
var examples embed.FS

// pythonVersion is the release of QType (Python) that is quoted.
const pythonVersion = "0.1.18"

// example is an invalid document with both outputs.
type example struct {
	title       string
	document    string
	python      string // shortened output of QType (Python)
	ended       string // its exit status and number of lines
	diagnostics diag.List
}

// diagnosticsPage compares the output with that of QType (Python).
func diagnosticsPage() (string, error) {
	names, err := fs.Glob(examples, "examples/*.txtar")
	if err != nil {
		return "", err
	}
	var all []example
	for _, name := range names {
		m, err := read(name)
		if err != nil {
			return "", err
		}
		all = append(all, m)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Diagnostics compared with QType (Python)

<!-- Generated from validate/lint/generate/examples by make generate. DO NOT EDIT. -->

The output of `+"`qtype validate app.qtype.yaml`"+` for %d common errors, next to that of
QType (Python) %s for the same file. The left side is generated; the right side was
recorded with Python 3.11, with lines cut at 160 characters and long output cut in the
middle. The files and the full output follow the table.

| | Error | qtype | QType (Python) |
| --- | --- | --- | --- |
`, len(all), pythonVersion)
	for i, m := range all {
		fmt.Fprintf(&b, "| [%d](#%d) | %s | %s | %s |\n", i+1, i+1, cell(m.title), qtypeOutput(m.diagnostics), pythonOutput(m))
	}
	b.WriteString(newcomersTable())
	b.WriteString("\n## Full output\n")
	for i, m := range all {
		var text bytes.Buffer
		if err := diag.Text(&text, m.diagnostics, diag.TextOptions{}); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n### %d\n\n%s:\n\n%s\n%s", i+1, m.title, fenced("yaml qtype:ignore", m.document), fenced("text", text.String()))
	}
	return b.String(), nil
}

// read reads an example and checks its document.
func read(name string) (example, error) {
	text, err := examples.ReadFile(name)
	if err != nil {
		return example{}, err
	}
	archive := txtar.Parse(text)
	title, ended, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "\n")
	if len(archive.Files) != 2 || title == "" {
		return example{}, fmt.Errorf("%s: expected a title, app.qtype.yaml and python.txt", name)
	}
	document := archive.Files[0]
	return example{title, string(document.Data), string(archive.Files[1].Data), ended, checkText(document.Data)}, nil
}

// qtypeOutput returns a line for each diagnostic, with its hint.
func qtypeOutput(list diag.List) string {
	lines := make([]string, len(list))
	for i, d := range list {
		hint := ""
		if d.Hint != "" {
			hint = "; " + d.Hint
		}
		lines[i] = fmt.Sprintf("%s %s:%d:%d: %s%s", d.Severity, d.Code, d.Span.Start.Line, d.Span.Start.Column, d.Message, hint)
	}
	return lined(lines)
}

func pythonOutput(m example) string {
	return lined(strings.Split(strings.TrimRight(m.python, "\n"), "\n")) + "<br>(" + m.ended + ")"
}

// lined formats lines as code in a table cell.
func lined(lines []string) string {
	for i, line := range lines {
		lines[i] = "<code>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;", "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "~", "&#126;").
			Replace(line) + "</code>"
	}
	return strings.Join(lines, "<br>")
}
