package main

import (
	"bytes"
	"context"
	_ "embed" // newcomers.txtar
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// newcomersArchive has a document, TITLE.yaml, and the output for it, TITLE.txt, for each error,
// and TITLE.before with what an early version did, if that is known.
//
//go:embed newcomers.txtar
var newcomersArchive []byte

// newcomerError is a document with an error of new users.
type newcomerError struct {
	title       string
	document    string
	output      string // the recorded output
	before      string // what an early version did; empty if not known
	diagnostics diag.List
}

// newcomerErrors reads the archive and checks the documents.
func newcomerErrors() []newcomerError {
	var all []newcomerError
	for _, f := range txtar.Parse(newcomersArchive).Files {
		title, isDocument := strings.CutSuffix(f.Name, ".yaml")
		switch {
		case isDocument:
			all = append(all, newcomerError{title: title, document: string(f.Data), diagnostics: checkText(f.Data)})
		case len(all) == 0:
		case strings.HasSuffix(f.Name, ".before"):
			all[len(all)-1].before = strings.TrimSpace(string(f.Data))
		default:
			all[len(all)-1].output = string(f.Data)
		}
	}
	return all
}

// checkText checks a document as the file app.qtype.yaml, without an environment.
func checkText(text []byte) diag.List {
	const name = "app.qtype.yaml"
	opts := loader.Options{
		NoDotEnv: true, Lookup: func(string) (string, bool) { return "", false },
		Open: func(_ context.Context, path string) (io.ReadCloser, error) {
			if path != name {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(text)), nil
		},
	}
	return lint.Diagnostics(lint.Check(context.Background(), []lint.Document{{Path: name}}, opts))
}

// blocks returns the diagnostics as qtype validate prints them.
func (m newcomerError) blocks() (string, error) {
	var text bytes.Buffer
	err := diag.Text(&text, m.diagnostics, diag.TextOptions{})
	return text.String(), err
}

// newcomersTable returns the table of the errors of new users for the page of diagnostics.
func newcomersTable() string {
	var b strings.Builder
	all := newcomerErrors()
	fmt.Fprintf(&b, `
## Errors of newcomers

%d errors of people who know other systems, and what is reported. The right answer is part
of the report wherever there is one; "fixed" marks those that `+"`--fix`"+` corrects. "Before"
is what an early version did, where that is known.

| Error | Written | Reported | Before |
| --- | --- | --- | --- |
`, len(all))
	for _, m := range all {
		written := map[string]bool{}
		var lines []string
		for _, d := range m.diagnostics {
			if line := strings.TrimSpace(d.Span.File.Line(d.Span.Start.Line)); !written[line] {
				written[line] = true
				lines = append(lines, line)
			}
		}
		fixed := ""
		if m.diagnostics.Fixable() > 0 {
			fixed = "<br>fixed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s%s | %s |\n", cell(m.title), lined(lines), qtypeOutput(m.diagnostics), fixed, cell(m.before))
	}
	return b.String()
}
