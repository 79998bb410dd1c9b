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

// heavy are modules that take long to compile. The core has none of them.
var heavy = []string{
	"google.golang.org/grpc", "google.golang.org/genproto", "google.golang.org/api", "cloud.google.com/go/storage", "gocloud.dev",
	"github.com/Azure", "github.com/aws", "github.com/tmc/langchaingo", "go.temporal.io", "github.com/knights-analytics", "github.com/gomlx",
	"github.com/santhosh-tekuri/jsonschema", "github.com/xuri/excelize", "github.com/getkin/kin-openapi",
}

// program is a package of the command.
type program struct {
	ImportPath, Dir string
	GoFiles         []string
	Standard        bool
}

// notForChecks are what checking a document does not need: qtype-check has none of them.
var notForChecks = []string{
	"github.com/redis", "github.com/jackc/pgx", "modernc.org/sqlite", "github.com/parquet-go", "github.com/aws", "github.com/microsoft/go-mssqldb", "github.com/go-sql-driver",
	"go.opentelemetry.io", "google.golang.org", "github.com/prometheus", "github.com/modelcontextprotocol", "github.com/a2aproject", "golang.org/x/oauth2",
	"github.com/itchyny/gojq", "github.com/charmbracelet", "charm.land", "github.com/tmc/langchaingo",
	module, module + "/runtime", module + "/steps", module + "/memory", module + "/index", module + "/tool",
}

// packagesOfProgram returns the packages of a command.
func packagesOfProgram(t *testing.T, command string) []program {
	t.Helper()
	out, err := testkit.Command(t, "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Standard", "./cmd/"+command).Output()
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

// The core has none of the heavy modules.
func TestLayers_HeavyModules(t *testing.T) {
	for _, p := range packagesOfProgram(t, "qtype") {
		if isOneOf(p.ImportPath, heavy) {
			t.Errorf("the command imports %s: make it a part of the distribution, or use something lighter", p.ImportPath)
		}
	}
}

// The program that only checks has no clients of servers, and nothing that runs flows.
func TestLayers_ProgramOfChecks(t *testing.T) {
	all := packagesOfProgram(t, "qtype-check")
	for _, p := range all {
		if isOneOf(p.ImportPath, notForChecks) {
			t.Errorf("qtype-check imports %s: internal/authoring, apptest and eval must not need it", p.ImportPath)
		}
	}
	// The notices and the SBOM of a release are those of qtype.
	whole := packagesOfProgram(t, "qtype")
	for _, p := range all {
		if p.ImportPath != module+"/cmd/qtype-check" && !slices.ContainsFunc(whole, func(q program) bool { return q.ImportPath == p.ImportPath }) {
			t.Errorf("qtype-check imports %s, which qtype does not have", p.ImportPath)
		}
	}
	if len(all) > 360 {
		t.Errorf("qtype-check has %d packages", len(all))
	}
}

// isOneOf reports whether a package is one of others or below one of them.
func isOneOf(pkg string, others []string) bool {
	return slices.ContainsFunc(others, func(m string) bool { return pkg == m || m != module && strings.HasPrefix(pkg, m+"/") })
}

// No package variable compiles a pattern or a template: every start of the program would pay
// for it, also that of a command which does not use it.
func TestLayers_LazyVariables(t *testing.T) {
	seen := 0
	for _, p := range packagesOfProgram(t, "qtype") {
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
