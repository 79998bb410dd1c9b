package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// httpClients are the functions that make an HTTP client or use one of net/http, and what it does with
// redirects: the credentials of a request are for the server of the first address only.
var httpClients = map[string]string{
	"internal/batch/on_end.go:post":                          "follows none",
	"distribution/index/remote/client.go:NewClient":          "follows none",
	"internal/accesstoken/accesstoken.go:Client":             "follows none",
	"internal/cli/author/models.go:readSource":               "httpx.CheckRedirect; sends no credentials",
	"internal/estimate/estimate.go:Run":                      "sends nothing",
	"internal/recording/http.go:Client":                      "the transport of the client of a tool or model, which decides",
	"distribution/buckets/google.go:openGoogle":              "follows none",
	"distribution/buckets/s3.go:openS3":                      "follows none",
	"internal/remotefs/http.go:http":                         "httpx.LimitHeaders",
	"internal/rerank/server.go:NewClient":                    "follows none",
	"internal/server/access/control.go:New":                  "of the operator; sends no credentials",
	"internal/server/access/token.go:fetch":                  "the transport of newTokenVerifier",
	"internal/server/access/token.go:newTokenVerifier":       "of the operator; sends no credentials",
	"distribution/sqldb/remote/client.go:NewClient":          "follows none",
	"internal/telemetry/exporter.go:newClient":               "follows none",
	"internal/telemetry/feedback.go:NewFeedback":             "httpx.CheckRedirect",
	"internal/model/wire/wire.go:NewServer":                  "follows none",
	"distribution/model/langchain/transport.go:fixTransport": "follows none",
	"internal/waves/transport.go:client":                     "wire.NewServer follows none",
	"internal/model/provider/provider.go:withDefaults":       "wire.NewServer and fixTransport follow none",
	"runtime/new.go:New":                                     "of models and tools, which decide",
	"tool/ssrf_guard.go:newHTTPClient":                       "httpx.CheckRedirect",
}

// TestHTTPClients finds all HTTP clients of the module. A new one is made by httpx or package tool, or
// listed with what it does with redirects.
func TestHTTPClients(t *testing.T) {
	found := map[string]bool{}
	walkSource(t, func(path string) error { return findClients(path, found) }, "testkit")
	for _, place := range slices.Sorted(maps.Keys(found)) {
		if httpClients[place] == "" {
			t.Errorf("%s makes an HTTP client that is not listed: set CheckRedirect, such as to httpx.CheckRedirect, and add it to the table", place)
		}
	}
	for place := range httpClients {
		if !found[place] {
			t.Errorf("%s is listed, but makes no HTTP client", place)
		}
	}
}

// findClients adds the functions of a file that make an HTTP client, or use a default one: path:function.
func findClients(path string, found map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declared := range file.Decls {
		name := "declaration"
		if f, ok := declared.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			var used ast.Expr
			switch n := n.(type) {
			case *ast.CompositeLit:
				if isOf(n.Type, "Client") {
					used = n.Type
				}
			case *ast.SelectorExpr:
				for _, global := range []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"} {
					if isOf(n, global) {
						used = n
					}
				}
			}
			if used != nil {
				found[filepath.ToSlash(path)+":"+name] = true
			}
			return true
		})
	}
	return nil
}

// isOf reports whether an expression is a name of package net/http.
func isOf(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "http"
}

// walkSource calls visit with each source file of the program; left out are tests, benchmarks and
// folders with the names given.
func walkSource(t *testing.T, visit func(path string) error, leftOut ...string) {
	t.Helper()
	leftOut = append(leftOut, "testdata", "node_modules", "bench")
	testkit.Must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(name, ".") && name != "." || strings.HasSuffix(name, "test") || slices.Contains(leftOut, name)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return visit(path)
	}))
}
