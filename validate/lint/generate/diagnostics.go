package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// mistakes are documents with one mistake each, and what QType (Python) prints
// for them: the title and how it ended, app.qtype.yaml, python.txt.
//
//go:embed mistakes/*.txtar
var mistakes embed.FS

// pythonVersion is the release of QType (Python) whose output is quoted.
const pythonVersion = "0.1.18"

// mistake is one of them with what both sides say.
type mistake struct {
	title    string
	document string
	python   string // what QType (Python) prints, shortened
	ended    string // its exit status and how many lines it printed
	faults   diag.List
}

// diagnosticsPage sets our messages beside those of QType (Python).
func diagnosticsPage() (string, error) {
	names, err := fs.Glob(mistakes, "mistakes/*.txtar")
	if err != nil {
		return "", err
	}
	var all []mistake
	for _, name := range names {
		m, err := read(name)
		if err != nil {
			return "", err
		}
		all = append(all, m)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Messages, side by side

<!-- Made by make generate from lint/generate/mistakes; changes here are lost. -->

%d common mistakes: what `+"`qtype validate app.qtype.yaml`"+` says, beside what
QType (Python) %s printed for the same file. The left side is made anew with
every change; the right side was recorded with Python 3.11, lines cut at 160
characters and long output in the middle. All files and the full blocks follow
below the table.

| | Mistake | qtype | QType (Python) |
| --- | --- | --- | --- |
`, len(all), pythonVersion)
	for i, m := range all {
		fmt.Fprintf(&b, "| [%d](#%d) | %s | %s | %s |\n", i+1, i+1, cell(m.title), qtypeOutput(m.faults), pythonOutput(m))
	}
	b.WriteString("\n## In full\n")
	for i, m := range all {
		var text bytes.Buffer
		if err := diag.Text(&text, m.faults, diag.TextOptions{}); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n### %d\n\n%s:\n\n%s\n%s", i+1, m.title, fenced("yaml qtype:ignore", m.document), fenced("text", text.String()))
	}
	return b.String(), nil
}

// read reads a mistake and checks its document.
func read(name string) (mistake, error) {
	text, err := mistakes.ReadFile(name)
	if err != nil {
		return mistake{}, err
	}
	archive := txtar.Parse(text)
	title, ended, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "\n")
	if len(archive.Files) != 2 || title == "" {
		return mistake{}, fmt.Errorf("%s: a title, app.qtype.yaml and python.txt are expected", name)
	}
	document := archive.Files[0]
	opts := loader.Options{
		NoDotEnv: true, Lookup: func(string) (string, bool) { return "", false },
		Open: func(_ context.Context, path string) (io.ReadCloser, error) {
			if path != document.Name {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(document.Data)), nil
		},
	}
	results := lint.Check(context.Background(), []lint.Document{{Path: document.Name}}, opts)
	return mistake{title, string(document.Data), string(archive.Files[1].Data), ended, lint.Faults(results)}, nil
}

// qtypeOutput is one line for each finding, with the hint.
func qtypeOutput(faults diag.List) string {
	lines := make([]string, len(faults))
	for i, d := range faults {
		hint := ""
		if d.Hint != "" {
			hint = "; " + d.Hint
		}
		lines[i] = fmt.Sprintf("%s %s:%d:%d: %s%s", d.Severity, d.Code, d.Span.Start.Line, d.Span.Start.Column, d.Message, hint)
	}
	return lined(lines)
}

// pythonOutput is what QType (Python) printed and how much that was.
func pythonOutput(m mistake) string {
	return lined(strings.Split(strings.TrimRight(m.python, "\n"), "\n")) + "<br>(" + m.ended + ")"
}

// lined puts lines of code into a cell of a table.
func lined(lines []string) string {
	for i, line := range lines {
		lines[i] = "<code>" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;", "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "~", "&#126;").
			Replace(line) + "</code>"
	}
	return strings.Join(lines, "<br>")
}
