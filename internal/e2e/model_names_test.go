package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// withModelNames are the folders whose code may have names of models: the catalogue, what
// counts the tokens of families that have left the catalogue, and examples in samples,
// converted documents and help texts.
var withModelNames = []string{"internal/catalogue/", "internal/tokenizer/", "internal/convert/", "internal/command/commandtest/", "distribution/converters/", "validate/", "internal/model/mock/", "internal/command/eval.go", "internal/cli/author/", "spec/reranker.go"}

// modelWord is what may be the name of a model in a text.
var modelWord = regexp.MustCompile(`[a-zA-Z][\w.:@/-]*\d[\w.:@/-]*`)

// TestNames_Models finds names of models in the code outside of the catalogue: what holds
// for a model belongs into its row.
func TestNames_Models(t *testing.T) {
	for _, path := range filesExcept(t, withModelNames, "*.go") {
		if strings.HasSuffix(path, "_test.go") {
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

// filesExcept lists the files of the module that match a pattern of git, without those whose
// paths begin with one of the prefixes.
func filesExcept(t *testing.T, prefixes []string, pattern string) []string {
	t.Helper()
	out, err := testkit.Command(t, "git", "ls-files", "--cached", "--others", "--exclude-standard", pattern).Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
	})
}

// withOldNames are the files that may name models of the past: facts about these models,
// recordings, documents of other systems and what is converted from them, and minified code.
var withOldNames = []string{
	"CHANGELOG.md", "docs/decisions/", "docs/parity.md", "docs/howto/langchain4j.md", "docs/convert.md",
	"internal/catalogue/", "internal/tokenizer/", "internal/splitter/counter.go", "internal/model/modeltest/conformance/", "internal/model/anthropic/features_test.go", "internal/lsp/feature_test.go",
	"validate/rules_catalogue", "validate/rules/QT60", "docs/rules.md", "spec/hosted_test.go", "spec/model_api_test.go", "loader/catalogue_test.go", "internal/modelparams/", "internal/model/provider/testdata/usages.jsonl",
	"internal/model/bedrock/items_test.go", "internal/model/openai/responses_return_test.go", "internal/command/testdata/script/models_checked.txtar",
	"distribution/index/parity/testdata/", "internal/mcpserver/testdata/original-session.txt", "internal/memoryview/replay/testdata/LangChain4jMemory.java",
	"internal/convert/", "distribution/converters/", "distribution/cmd/qtype/testdata/examples/", "distribution/cmd/qtype/testdata/pages/convert/", "distribution/cmd/qtype/testdata/script/convert", "internal/server/ui/dist/",
}

// TestNames_ShuttingDown lists the names of models that do not answer, or will not in 60 days.
// Only a release, which has QTYPE_RELEASE set, fails for them.
func TestNames_ShuttingDown(t *testing.T) {
	report := t.Logf
	if os.Getenv("QTYPE_RELEASE") != "" {
		report = t.Errorf
	}
	end := time.Now().AddDate(0, 0, 60).Format(time.DateOnly)
	for _, path := range filesExcept(t, withOldNames, "*") {
		text, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(text) {
			continue // deleted, or not a text
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			for _, word := range modelWord.FindAllString(line, -1) {
				if m := modelIn(providerOf(line), word); m != nil && (m.Status == catalogue.Retired || m.Shutdown != "" && m.Shutdown < end) {
					report("%s:%d: %s of %s shuts down on %s; use %s", path, number, m.ID, m.Provider, m.Shutdown, m.Replacement)
				}
			}
		}
	}
}

// providerKey is the key of a model's provider in a line of a document.
var providerKey = regexp.MustCompile(`provider: ([a-z-]+)`)

// providerOf returns the provider that a line names: the same model ends at each on another day.
func providerOf(line string) string {
	if found := providerKey.FindStringSubmatch(line); found != nil && (*catalogue.Catalogue)(nil).HasProvider(found[1]) {
		return found[1]
	}
	return ""
}

// modelIn returns the model that a word names, also after a colon: openai:NAME, ${MODEL:-NAME}.
func modelIn(provider, word string) *catalogue.Model {
	for rest := word; len(rest) > 3; { // shorter names are words of other languages, too: o1
		if m, ok := catalogue.Lookup(provider, strings.Trim(rest, ".:/-")); ok {
			return m
		}
		var found bool
		if _, rest, found = strings.Cut(rest, ":"); !found {
			break
		}
	}
	return nil
}
