package e2e_test

import (
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// publicPackages are the packages that programs of others may import. Each of them is a promise:
// docs/go.md describes them.
var publicPackages = []string{
	facade, "command", "index", "index/indextest", "index/store", "loader", "memory", "memory/search", "memory/store", "memory/storetest",
	"memory/transcript", "model", "model/modeltest", "part", "runtime", "spec", "spec/chat", "spec/diag", "spec/source", "spec/value",
	"steps", "tool", "tool/tooltest", "validate",
}

// notAPI are the other packages outside internal: programs, and files that are embedded where they are.
var notAPI = []string{"cmd/qtype", "cmd/qtype-check", "docs", "examples"}

// apiFile has the exported declarations of publicPackages, and apiLeaksFile those that mention
// types of internal packages, which a caller cannot name.
const (
	apiFile      = "internal/e2e/testdata/api/api.txt"
	apiLeaksFile = "internal/e2e/testdata/api/leaks.txt"
)

var updateAPI = flag.Bool("api", false, "rewrite the files of the API")

// TestAPI compares the exported declarations with the file, so that a review sees each change of
// them, and lists those that mention internal types.
func TestAPI(t *testing.T) {
	for name := range listPackages(t) {
		if !strings.HasPrefix(name, "internal/") && !slices.Contains(notAPI, name) && !slices.Contains(publicPackages, name) {
			t.Errorf("package %s is public: move it below internal, or add it here and to docs/go.md", name)
		}
	}
	paths := []string{module}
	for _, name := range publicPackages[1:] {
		paths = append(paths, module+"/"+name)
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports}, paths...)
	testkit.Must(t, err)
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	api, leaks := &strings.Builder{}, &strings.Builder{}
	for _, p := range loaded {
		name := relative(p.PkgPath)
		fmt.Fprintln(api, name)
		for _, line := range declarations(p.Types) {
			fmt.Fprintln(api, "\t"+line)
			if strings.Contains(line, "internal/") {
				fmt.Fprintln(leaks, name+"\t"+line)
			}
		}
	}
	compareAPI(t, apiFile, api.String())
	compareAPI(t, apiLeaksFile, leaks.String())
}

func compareAPI(t *testing.T, file, got string) {
	t.Helper()
	if *updateAPI {
		testkit.Must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	before := strings.Split(testkit.ReadFile(t, file), "\n")
	after := strings.Split(got, "\n")
	changes := map[string]int{}
	for _, line := range before {
		changes[line]--
	}
	for _, line := range after {
		changes[line]++
	}
	for _, line := range slices.Sorted(maps.Keys(changes)) {
		if n := changes[line]; n != 0 {
			t.Errorf("%s: %+d %s; go test ./internal/e2e -run TestAPI -api writes the file", file, n, line)
		}
	}
}

// declarations returns the exported declarations of a package, one to a line: also each exported
// field and method.
func declarations(p *types.Package) []string {
	named := func(other *types.Package) string {
		if other == p {
			return ""
		}
		if strings.HasPrefix(other.Path(), module) {
			return relative(other.Path())
		}
		return path.Base(other.Path())
	}
	var lines []string
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		if of, isType := o.(*types.TypeName); isType {
			lines = append(lines, typeLines(of, named)...)
			continue
		}
		lines = append(lines, types.ObjectString(o, named))
	}
	return lines
}

// typeLines describes a type: its kind, exported fields and methods.
func typeLines(of *types.TypeName, named types.Qualifier) []string {
	name := of.Name()
	if of.IsAlias() {
		return []string{types.ObjectString(of, named)}
	}
	var lines []string
	switch under := of.Type().Underlying().(type) {
	case *types.Struct:
		lines = append(lines, "type "+name+" struct")
		for f := range under.Fields() {
			if f.Exported() {
				lines = append(lines, name+"."+f.Name()+" "+types.TypeString(f.Type(), named))
			}
		}
	case *types.Interface:
		lines = append(lines, "type "+name+" interface")
		for m := range under.Methods() {
			lines = append(lines, name+"."+m.Name()+strings.TrimPrefix(types.TypeString(m.Type(), named), "func"))
		}
	default:
		lines = append(lines, "type "+name+" "+types.TypeString(under, named))
	}
	methods := types.NewMethodSet(types.NewPointer(of.Type()))
	for s := range methods.Methods() {
		_, isInterface := of.Type().Underlying().(*types.Interface)
		if f := s.Obj(); token.IsExported(f.Name()) && !isInterface && len(s.Index()) == 1 {
			lines = append(lines, "func ("+name+") "+f.Name()+strings.TrimPrefix(types.TypeString(f.Type(), named), "func"))
		}
	}
	return lines
}
