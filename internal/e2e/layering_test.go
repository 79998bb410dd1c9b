package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

const module = "github.com/qtype-dev/qtype"

// facade is the root package in the table of layers.
const facade = "qtype"

// layer is a group of packages. A package imports only from its own layer and
// from the layers before it, except those in never.
type layer struct {
	name     string
	packages []string // relative to the module; each includes its subpackages
	never    string   // a layer that this one must not import
}

// layers is the module from the bottom to the top. A checker needs no driver and
// no database, and a running application needs no parser: checking is never
// imported by parts and execution, and imports neither. ARCHITECTURE.md shows the
// same table.
var layers = []layer{
	{"language", []string{
		"docs", "examples", "spec", "internal/catalogue", "internal/citation", "internal/containment", "internal/expression", "internal/filter", "internal/httpx", "internal/jsonpath", "internal/jsontext", "internal/mediatype", "internal/modelparams", "internal/parts",
		"internal/prompttemplate", "internal/redact", "internal/remotefs", "internal/ruletext", "internal/servertest", "internal/sqlitefile", "internal/sqlquery", "internal/subprocess",
		"internal/rowcounts", "internal/terminal", "internal/testkit", "internal/textfmt", "internal/timer", "internal/tokenizer", "internal/trust", "internal/typeschema", "internal/words", "internal/wordvectors",
	}, ""},
	{"checking", []string{
		"loader", "validate", "internal/convert", "internal/diagram", "internal/docgen", "internal/lint", "internal/lsp",
		"internal/reference", "internal/scaffold", "internal/schemagen", "internal/semdiff", "internal/yamlformat",
	}, ""},
	{"parts", []string{
		"index", "memory", "model", "tool", "internal/accesstoken", "internal/appstate", "internal/auditlog", "internal/awsauth", "internal/azureauth", "internal/documents", "internal/googleauth", "internal/index", "internal/mediafile", "internal/memory", "internal/memoryconfig", "internal/memoryview", "internal/model", "internal/recording", "internal/records", "internal/secrets",
		"internal/rerank", "internal/sharedlimit", "internal/signin", "internal/splitter", "internal/sqldb", "internal/storage", "internal/tool", "internal/vectors", "internal/waves",
	}, "checking"},
	{"execution", []string{"steps", "runtime", "part", "internal/checkpoint", "internal/stepcache", "internal/telemetry"}, "checking"},
	{"faces", []string{"internal/apptest", "internal/authoring", "internal/batch", "internal/cacheview", "internal/chatui", "internal/cleanup", "internal/clienttool", "internal/durable", "internal/erasure", "internal/estimate", "internal/eval", "internal/indexview", "internal/localruns", "internal/mcpserver", "internal/playground", "internal/runtimetest", "internal/runview", "internal/server", "internal/traceview"}, ""},
	{"front", []string{facade, "command", "cmd/qtype", "cmd/qtype-check", "internal/cli", "internal/command", "internal/e2e"}, ""},
}

// layerOf returns the index of the layer of a package, or -1. The longest entry
// that contains the package decides.
func layerOf(pkg string) int {
	for p := pkg; p != "."; p = path.Dir(p) {
		for i, l := range layers {
			if slices.Contains(l.packages, p) {
				return i
			}
		}
	}
	return -1
}

func TestLayering_Imports(t *testing.T) {
	packages := listPackages(t)
	for pkg, imports := range packages {
		from := layerOf(pkg)
		if from < 0 {
			t.Errorf("package %s has no layer: add it to the table of this test and to ARCHITECTURE.md", pkg)
			continue
		}
		for _, used := range imports {
			to := layerOf(used)
			switch {
			case to < 0: // reported for the package itself
			case to > from:
				t.Errorf("%s (%s) imports %s (%s), a higher layer", pkg, layers[from].name, used, layers[to].name)
			case layers[to].name == layers[from].never:
				t.Errorf("%s (%s) imports %s (%s): these layers must not import each other", pkg, layers[from].name, used, layers[to].name)
			}
		}
	}
	for _, l := range layers {
		for _, p := range l.packages {
			if _, ok := packages[p]; !ok && !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), func(q string) bool { return strings.HasPrefix(q, p+"/") }) {
				t.Errorf("layer %s lists %s, which is not a package", l.name, p)
			}
		}
	}
}

// TestLayering_Documentation compares the table of ARCHITECTURE.md with layers.
func TestLayering_Documentation(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, l := range layers {
		row := regexp.MustCompile(`(?m)^\| ` + l.name + ` \|([^|]*)\|`).FindSubmatch(text)
		if row == nil {
			t.Errorf("ARCHITECTURE.md has no row for layer %s", l.name)
			continue
		}
		var got []string
		for _, m := range quoted.FindAllSubmatch(row[1], -1) {
			got = append(got, string(m[1]))
		}
		want := slices.Sorted(slices.Values(l.packages))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("ARCHITECTURE.md, layer %s:\ngot  %v\nwant %v", l.name, got, want)
		}
	}
}

// listPackages returns the packages of the module and what each imports from it,
// without test files. Paths are relative to the module.
func listPackages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := testkit.Command(t, "go", "list", "-e", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var local []string
		for _, i := range p.Imports {
			if i == module || strings.HasPrefix(i, module+"/") {
				local = append(local, relative(i))
			}
		}
		found[relative(p.ImportPath)] = local
	}
	return found
}

// relative returns a path within the module; the root package is facade.
func relative(importPath string) string {
	if importPath == module {
		return facade
	}
	return strings.TrimPrefix(importPath, module+"/")
}
