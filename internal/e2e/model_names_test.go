package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// withModelNames are the folders whose code may have names of models: the catalogue, what
// counts the tokens of families that have left the catalogue, and examples in samples,
// converted documents and help texts.
var withModelNames = []string{"internal/catalogue/", "internal/tokenizer/", "internal/convert/", "validate/", "model/mock/", "cmd/qtype/eval.go", "internal/cli/author/", "spec/reranker.go"}

// modelWord is what may be the name of a model in a text.
var modelWord = regexp.MustCompile(`[a-zA-Z][\w.:@/-]*\d[\w.:@/-]*`)

// TestNames_Models finds names of models in the code outside of the catalogue: what holds
// for a model belongs into its row.
func TestNames_Models(t *testing.T) {
	files, err := testkit.Command(t, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	for path := range strings.Lines(string(files)) {
		path = strings.TrimSpace(path)
		if strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(withModelNames, func(p string) bool { return strings.HasPrefix(path, p) }) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			continue // deleted, or of another version
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			for _, word := range modelWord.FindAllString(text, -1) {
				if _, known := catalogue.Lookup("", strings.Trim(word, ".:/-")); known {
					t.Errorf("%s: %q is the name of a model", set.Position(literal.Pos()), word)
				}
			}
			return true
		})
	}
}
