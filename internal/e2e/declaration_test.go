package e2e_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestStepTypesAreDeclaredOnce parses the module's source and reports every type
// switch, type assertion and list over types of steps outside the table of builders
// in package steps: what a step uses is declared in its struct in spec, and all
// other code reads spec.Plan.
func TestStepTypesAreDeclaredOnce(t *testing.T) {
	names := map[string]bool{}
	for _, s := range spec.StepTypes() {
		names[spec.TypeName(s)] = true
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch dir := filepath.ToSlash(path); {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "testdata" || dir == "spec"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || dir == "steps/build.go":
			return nil
		}
		for _, found := range stepTypeUses(t, path, names) {
			t.Errorf("%s: read spec.Plan or a tag of the step's struct instead", found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stepTypeUses lists the places in a file that decide by the type of a step.
func stepTypeUses(t *testing.T, path string, names map[string]bool) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	report := func(n ast.Node, what string, types []string) {
		found = append(found, fmt.Sprintf("%s: %s over %s", files.Position(n.Pos()), what, strings.Join(types, ", ")))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			if types := stepTypesIn(n.List, names); len(types) > 0 {
				report(n, "a case", types)
			}
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				if types := stepTypesIn([]ast.Expr{n.Type}, names); len(types) > 0 {
					report(n, "a type assertion", types)
				}
			}
		case *ast.CompositeLit:
			if types := stepTypesIn(n.Elts, names); len(types) > 1 {
				report(n, "a list", types)
			}
		}
		return true
	})
	return found
}

// stepTypesIn lists the types of steps among expressions: *spec.Agent, or "Agent".
func stepTypesIn(list []ast.Expr, names map[string]bool) []string {
	var types []string
	for _, e := range list {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Key
		}
		name := ""
		switch e := e.(type) {
		case *ast.BasicLit:
			name, _ = strconv.Unquote(e.Value)
		case *ast.StarExpr:
			if s, ok := e.X.(*ast.SelectorExpr); ok {
				name = selectorOfSpec(s)
			}
		case *ast.CallExpr: // (*spec.Agent)(nil)
			if p, ok := e.Fun.(*ast.ParenExpr); ok {
				return append(types, stepTypesIn([]ast.Expr{p.X}, names)...)
			}
		}
		if names[name] {
			types = append(types, name)
		}
	}
	return types
}

// selectorOfSpec is the name that a selector takes from package spec.
func selectorOfSpec(s *ast.SelectorExpr) string {
	if x, ok := s.X.(*ast.Ident); ok && x.Name == "spec" {
		return s.Sel.Name
	}
	return ""
}
