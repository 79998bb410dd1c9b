package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// heavy are modules that take long to compile and that the program without build tags does
// not need (docs/decisions/080-weight-of-the-program.md).
var heavy = []string{
	"google.golang.org/grpc", "google.golang.org/genproto", "google.golang.org/api", "cloud.google.com/go/storage", "gocloud.dev",
	"github.com/Azure", "github.com/aws/aws-sdk-go-v2/service/s3", "go.temporal.io", "github.com/knights-analytics", "github.com/gomlx",
	"github.com/santhosh-tekuri/jsonschema", "github.com/xuri/excelize", "github.com/getkin/kin-openapi",
}

// program is a package of the command.
type program struct {
	ImportPath, Dir string
	GoFiles         []string
	Standard        bool
}

// packagesOfProgram returns the packages of the command without build tags.
func packagesOfProgram(t *testing.T) []program {
	t.Helper()
	out, err := testkit.Command(t, "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Standard", "./cmd/qtype").Output()
	testkit.Must(t, err)
	var all []program
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p program
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// The program without build tags has none of the heavy modules.
func TestLayers_HeavyModules(t *testing.T) {
	for _, p := range packagesOfProgram(t) {
		i := slices.IndexFunc(heavy, func(m string) bool { return p.ImportPath == m || strings.HasPrefix(p.ImportPath, m+"/") })
		if i >= 0 {
			t.Errorf("the command imports %s: put it behind a build tag, or use something lighter", p.ImportPath)
		}
	}
}

// No package variable compiles a pattern or a template: every start of the program would pay
// for it, also that of a command which does not use it.
func TestLayers_LazyVariables(t *testing.T) {
	seen := 0
	for _, p := range packagesOfProgram(t) {
		if p.ImportPath != module && !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		for _, name := range p.GoFiles {
			seen++
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			testkit.Must(t, err)
			for _, call := range eagerCalls(file) {
				t.Errorf("%s: use sync.OnceValue", fset.Position(call.Pos()))
			}
		}
	}
	if seen < 500 {
		t.Errorf("only %d files were read", seen)
	}
}

// eagerCalls returns the calls that compile a pattern or a template for a package variable.
func eagerCalls(file *ast.File) (found []*ast.CallExpr) {
	for _, d := range file.Decls {
		declaration, ok := d.(*ast.GenDecl)
		if !ok || declaration.Tok != token.VAR {
			continue
		}
		ast.Inspect(declaration, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok {
					if of, ok := f.X.(*ast.Ident); ok && slices.Contains([]string{"regexp.MustCompile", "regexp2.MustCompile", "template.Must", "template.New"}, of.Name+"."+f.Sel.Name) {
						found = append(found, n)
						return false
					}
				}
			}
			return true
		})
	}
	return found
}
