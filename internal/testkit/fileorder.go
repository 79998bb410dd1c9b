package testkit

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
)

// CheckFileOrder type-checks the package in the current folder, and reports files that are
// not in order and references from a file to a later one. order has the names of the files
// without .go; a name that ends with an underscore is that of all files that begin with it,
// which do not refer to each other. least is the fewest references that must be found.
func CheckFileOrder(t *testing.T, order []string, least int) {
	t.Helper()
	fset := token.NewFileSet()
	pkg, err := build.ImportDir(".", 0)
	Must(t, err)
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		if indexOfFile(order, strings.TrimSuffix(name, ".go")) < 0 {
			t.Errorf("%s is not in the order of the files", name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		Must(t, err)
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}} // other packages are not needed
	checked, _ := config.Check(pkg.Name, fset, files, info)
	fileOf := func(pos token.Pos) string {
		return strings.TrimSuffix(filepath.Base(fset.Position(pos).Filename), ".go")
	}
	backward, forward := map[string][]string{}, 0
	for id, object := range info.Uses {
		if object.Pkg() != checked || !object.Pos().IsValid() {
			continue
		}
		from, to := fileOf(id.Pos()), fileOf(object.Pos())
		if from == to || indexOfFile(order, from) > indexOfFile(order, to) {
			forward++
			continue
		}
		edge := from + " -> " + to
		backward[edge] = append(backward[edge], id.Name)
	}
	if forward < least {
		t.Errorf("only %d references were found", forward)
	}
	for edge, names := range backward {
		t.Errorf("%s: %s", edge, strings.Join(names, ", "))
	}
}

// indexOfFile returns the place of a file in an order, -1 for none.
func indexOfFile(order []string, file string) int {
	return slices.IndexFunc(order, func(name string) bool {
		return name == file || strings.HasSuffix(name, "_") && strings.HasPrefix(file, name)
	})
}

// emptyPackages imports packages without declarations.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}
