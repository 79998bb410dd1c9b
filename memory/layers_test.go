package memory_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// anyPolicy is in place of the files of the policies, which do not refer to each other.
const anyPolicy = "policy_*"

// layers are the files of the package. A file refers to declarations in its own
// file and in the files before it.
var layers = []string{
	"entry", "window", "tokens", "message", "balance", "owner", "store", "pairing", "clock", "listing", "observed_store", "event_log", "inprocess", "replace",
	"eviction", "edited", "compaction", "view", "correction",
	"policy", "kept", anyPolicy, "policies",
	"transition", "variables", "session_table", "context", "audit",
	"memory", "load", "commit", "timeline", "lease", "open_calls",
	"budget", "turn_report", "turn", "question", "turn_commit", "turn_variables", "shared", "idempotency", "room", "turn_context", "call", "calibration",
	"write", "read", "expiry", "forget_user", "rewind", "edit", "pin", "fork", "ephemeral", "import", "similar",
}

// TestFiles_ReferToEarlierFiles type-checks the package and reports references
// from a file to a later one.
func TestFiles_ReferToEarlierFiles(t *testing.T) {
	fset := token.NewFileSet()
	pkg, err := build.ImportDir(".", 0)
	testkit.Must(t, err)
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		if layerOf(strings.TrimSuffix(name, ".go")) < 0 {
			t.Errorf("%s is not in layers", name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		testkit.Must(t, err)
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: stubImporter{}, Error: func(error) {}} // other packages are not needed
	checked, _ := config.Check("memory", fset, files, info)
	fileOf := func(pos token.Pos) string {
		return strings.TrimSuffix(filepath.Base(fset.Position(pos).Filename), ".go")
	}
	backward := map[string][]string{}
	forward := 0
	for id, object := range info.Uses {
		if object.Pkg() != checked || !object.Pos().IsValid() {
			continue
		}
		from, to := fileOf(id.Pos()), fileOf(object.Pos())
		if from == to || layerOf(from) > layerOf(to) {
			forward++
			continue
		}
		edge := from + " -> " + to
		backward[edge] = append(backward[edge], id.Name)
	}
	if forward < 500 {
		t.Errorf("only %d references were found", forward)
	}
	for edge, names := range backward {
		t.Errorf("%s: %s", edge, strings.Join(names, ", "))
	}
}

// layerOf returns the index of a file in layers, -1 for none.
func layerOf(file string) int {
	if strings.HasPrefix(file, "policy_") {
		file = anyPolicy
	}
	return slices.Index(layers, file)
}

// stubImporter returns empty packages.
type stubImporter struct{}

func (stubImporter) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// TestPolicies_HaveABuilder checks that every row of spec.Policies has a builder,
// every builder a row, and every limit of a row a key of spec.Memory.
func TestPolicies_HaveABuilder(t *testing.T) {
	var rows []spec.Policy
	for _, row := range spec.Policies() {
		rows = append(rows, row.Name)
	}
	built := memory.PolicyBuilders()
	slices.Sort(rows)
	slices.Sort(built)
	if !slices.Equal(rows, built) {
		t.Errorf("the policies with a row are %v, those with a builder are %v", rows, built)
	}
}
