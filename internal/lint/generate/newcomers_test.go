package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

var update = flag.Bool("update", false, "rewrite the output in newcomersFile")

// newcomersFile has a document, TITLE.yaml, and the output for it, TITLE.txt, for each error.
const newcomersFile = "testdata/newcomers.txtar"

// newcomerError is a document with an error of new users.
type newcomerError struct {
	title       string
	output      string // the recorded output
	diagnostics diag.List
}

// newcomerErrors checks the documents of the archive.
func newcomerErrors(archive *txtar.Archive) []newcomerError {
	var all []newcomerError
	for _, f := range archive.Files {
		if title, isDocument := strings.CutSuffix(f.Name, ".yaml"); isDocument {
			all = append(all, newcomerError{title: title, diagnostics: checkText(f.Data)})
		} else {
			all[len(all)-1].output = string(f.Data)
		}
	}
	return all
}

// readNewcomers returns the archive.
func readNewcomers(t *testing.T) *txtar.Archive {
	t.Helper()
	return txtar.Parse([]byte(testkit.ReadFile(t, newcomersFile)))
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

// TestNewcomers compares the output for the errors of new users.
func TestNewcomers(t *testing.T) {
	archive := readNewcomers(t)
	all := newcomerErrors(archive)
	if len(all) < 70 {
		t.Errorf("%d errors", len(all))
	}
	for _, m := range all {
		got, err := m.blocks()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == m.title+".txt" })
			archive.Files[i].Data = []byte(got)
			continue
		}
		if d := cmp.Diff(m.output, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", m.title, d)
		}
	}
	if *update {
		if err := os.WriteFile(newcomersFile, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewcomers_Answer checks that each error is reported with what to do.
func TestNewcomers_Answer(t *testing.T) {
	for _, m := range newcomerErrors(readNewcomers(t)) {
		answered := false
		for _, d := range m.diagnostics {
			answered = answered || d.Hint != "" || strings.Contains(d.Message, " needs ") || strings.Contains(d.Message, " takes ") || strings.Contains(d.Message, " one of ") || strings.Contains(d.Message, "has no ") && d.Severity == diag.Error
		}
		if !answered {
			t.Errorf("%s: no diagnostic has what to do: %v", m.title, m.diagnostics)
		}
	}
}
