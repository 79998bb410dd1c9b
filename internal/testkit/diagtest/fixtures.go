package diagtest

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Fixture is a document with the result that checking it has.
type Fixture struct {
	Name   string // the path relative to the folder of fixtures
	Path   string // the path
	Valid  bool   // whether it has no error
	Rule   string // the code of the expected diagnostic; "-" for none
	Strict bool   // whether to load it with strict YAML rules
	env    map[string]string
}

// Lookup returns an environment variable, as os.LookupEnv does.
func (f Fixture) Lookup(name string) (string, bool) {
	value, ok := f.env[name]
	return value, ok
}

// Fixtures reads index.tsv of the folder that the environment variable QTYPE_FIXTURES
// names. If it is not set, the test is skipped.
func Fixtures(t *testing.T) []Fixture {
	t.Helper()
	root := os.Getenv("QTYPE_FIXTURES")
	if root == "" {
		t.Skip("SKIPPED: QTYPE_FIXTURES is not set to a folder with an index.tsv")
	}
	index, err := os.Open(filepath.Join(root, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	in := csv.NewReader(index)
	in.Comma, in.LazyQuotes, in.FieldsPerRecord = '\t', true, -1
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []Fixture
	for _, row := range rows[1:] {
		name, expected, rule, variables := row[0], row[3], row[4], row[6]
		if expected != "valid" && expected != "invalid" && expected != "load_error" {
			continue
		}
		f := Fixture{Name: name, Path: filepath.Join(root, name), Valid: expected == "valid", Rule: rule, Strict: rule == "QT005", env: parseEnv(variables)}
		if _, err := os.Stat(f.Path); err != nil {
			t.Errorf("%s is missing", name)
			continue
		}
		all = append(all, f)
	}
	return all
}

// parseEnv parses a list of variables: NAME for any value, NAME=value, unset:NAME, with
// (optional) after a name that has a default.
func parseEnv(list string) map[string]string {
	values := map[string]string{}
	for _, item := range strings.FieldsFunc(strings.ReplaceAll(list, "(optional)", ""), func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, given := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" || name == "-" || strings.HasPrefix(name, "unset:") {
			continue
		}
		if !given {
			value = "x"
		}
		values[name] = value
	}
	return values
}
