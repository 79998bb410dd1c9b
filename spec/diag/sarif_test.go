package diag_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// TestSARIF_MatchesSchema validates the output against the published schema of
// SARIF 2.1.0, named by QTYPE_SARIF_SCHEMA: a JSON file, or a Go file with the
// schema in a constant, such as the Go module that .ci/run downloads contains.
func TestSARIF_MatchesSchema(t *testing.T) {
	path := os.Getenv("QTYPE_SARIF_SCHEMA")
	if path == "" {
		t.Skip("SKIPPED: set QTYPE_SARIF_SCHEMA to check SARIF output, as .ci/run does")
	}
	schema := sarifSchema(t, path)
	root := &source.File{Path: "docs/a b%.yaml", Text: []byte("id: 42\nmodels: !include m.yaml\n")}
	inner := &source.File{Path: "m.yaml", Text: []byte("x: 1\n"), From: at(root, 2)}
	rule := diag.Rule{Code: "QT1", Severity: diag.Error, Title: "a title", Doc: "a text"}
	for name, list := range map[string]diag.List{
		"nothing": nil,
		"everything": {
			rule.At(at(root, 1), "a message with \x1b").WithSuggestion("x").WithFix("y").WithRelated(at(root, 2), "first declared here"),
			rule.At(at(inner, 1), "inside").WithSuggestion("only a suggestion").WithSeverity(diag.Warning),
			rule.At(source.Span{File: root}, "without a line"),
			{Code: "QT999", Severity: diag.Warning, Message: "no position and no rule", Hint: "a hint"},
			{Code: "QT021", Severity: diag.Warning, Message: "to be removed", Span: at(root, 1), Fixes: []diag.Fix{{Span: at(root, 1)}}},
		},
	} {
		var log bytes.Buffer
		if err := diag.SARIF(&log, list, diag.Tool{Version: "1.0.0", Rules: []diag.Rule{rule}}); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(&log)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v\n%v", name, err, value)
		}
	}
	if err := schema.Validate(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{"results": []any{}}}}); err == nil {
		t.Error("the schema accepts a run without a tool, so it is not the schema of SARIF")
	}
}

func sarifSchema(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".go") {
		text = []byte(longestText(t, path, text))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("sarif.json", value); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// longestText returns the longest string literal of a Go file.
func longestText(t *testing.T, path string, source []byte) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	longest := ""
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && len(lit.Value) > len(longest) {
			longest = lit.Value
		}
		return true
	})
	text, err := strconv.Unquote(longest)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
