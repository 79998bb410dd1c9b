package loader_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/diagtest"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// write creates files in a new folder and returns the path of the first one.
func write(t *testing.T, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(folder, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, files[0])
}

// load loads a document of one file with nothing in the environment.
func load(t *testing.T, text string) (*loader.Result, diag.List) {
	t.Helper()
	return loader.LoadBytes(t.Context(), "app.yaml", []byte(text), loader.Options{Lookup: noEnv, NoDotEnv: true})
}

// codes lists the codes of a list.
func codes(list diag.List) []string {
	var all []string
	for _, d := range list {
		all = append(all, d.Code)
	}
	return all
}

// TestExamplesOfRules loads every rule's examples as `qtype explain` shows them.
func TestExamplesOfRules(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range loader.Rules() {
		t.Run(rule.Code, func(t *testing.T) {
			if seen[rule.Code] {
				t.Error("declared twice")
			}
			seen[rule.Code] = true
			if rule.Title == "" || rule.Doc == "" {
				t.Error("no title or no explanation")
			}
			if rule.Wrong == "" {
				return // not the found of a document's text
			}
			count := func(text string) (n int, first string) {
				path := write(t, "app.qtype.yaml", text, "notes.txt", "words\n", "latin1.txt", "caf\xe9\n", "models.yaml", "[]\n")
				_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
				for _, d := range list {
					if d.Code == rule.Code {
						n++
						if d.Severity != rule.Severity || d.Span.Start.Line == 0 {
							t.Errorf("%s without its severity or place: %v", d.Severity, d)
						}
					}
				}
				return n, strings.Join(codes(list), " ")
			}
			if n, all := count(rule.Wrong); n != 1 || all != rule.Code {
				t.Errorf("the wrong example gives %q", all)
			}
			if n, all := count(rule.Right); n != 0 || all != "" {
				t.Errorf("the right example gives %q", all)
			}
		})
	}
}

func TestWantedErrors(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.qtype.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no documents", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			result, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
			diagtest.Check(t, result.Files, list)
		})
	}
}

// goWords are what a user must never read: Go types, validator tags and the
// parser's own words.
var goWords = regexp.MustCompile(`spec\.|\*?reflect|interface \{|oneof|omitempty|gte?=|lte?=|http_url|go-yaml|libyaml|<nil>|%!|\bstruct\b|!!map|!!seq`)

func TestMessagesSpeakToUsers(t *testing.T) {
	_, list := loader.Load(t.Context(), "testdata/errors.qtype.yaml", loader.Options{Lookup: noEnv})
	for _, d := range list {
		if word := goWords.FindString(d.Error()); word != "" {
			t.Errorf("%q in %v", word, d)
		}
		if strings.ContainsAny(d.Message+d.Hint, "\n\r") || d.Message == "" {
			t.Errorf("not one line: %q", d.Message)
		}
		if d.Span.Start.Line == 0 || d.Span.End.Line < d.Span.Start.Line {
			t.Errorf("without a place: %v", d)
		}
	}
}
