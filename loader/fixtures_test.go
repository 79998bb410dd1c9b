package loader_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
)

// TestFixtures loads a tree of documents whose index.tsv lists the rules that each
// of them breaks. The environment variable QTYPE_FIXTURES names its folder.
func TestFixtures(t *testing.T) {
	root := os.Getenv("QTYPE_FIXTURES")
	if root == "" {
		t.Skip("QTYPE_FIXTURES names no folder of fixtures")
	}
	index, err := os.Open(filepath.Join(root, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	in := csv.NewReader(index)
	in.Comma, in.LazyQuotes, in.FieldsPerRecord = '\t', true, -1
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, row := range rows[1:] {
		path, expected, rule, variables := row[0], row[3], row[4], row[6]
		if expected != "valid" && expected != "invalid" && expected != "load_error" {
			continue
		}
		_, list := loader.Load(t.Context(), filepath.Join(root, path), loader.Options{Lookup: fixtureEnv(variables), Strict: rule == "QT005"})
		ours := rule < "QT2" && rule != "-" && rule != "QT110" && rule != "QT114"
		hit := slices.Contains(codes(list), rule) || rule == "QT104" && slices.Contains(codes(list), "QT106")
		if ours != hit || !ours && list.Errors() > 0 {
			t.Errorf("%s: expected %s %s, got %v", path, expected, rule, list)
			continue
		}
		good++
	}
	t.Logf("%d fixtures as expected", good)
}

// fixtureEnv reads a row's variables: NAME for any value, NAME=value, unset:NAME.
func fixtureEnv(list string) func(string) (string, bool) {
	values := map[string]string{}
	for item := range strings.SplitSeq(strings.ReplaceAll(list, "(optional)", ""), ",") {
		name, value, given := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" || name == "-" || strings.HasPrefix(name, "unset:") {
			continue
		}
		if !given {
			value = "x"
		}
		values[name] = value
	}
	return env(values)
}
