package validate_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestCheck_CatalogueIsLazy checks, in a separate process, that only a document with a
// model that is called reads the catalogue.
func TestCheck_CatalogueIsLazy(t *testing.T) {
	if os.Getenv("QTYPE_TEST_CATALOGUE") == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheck_CatalogueIsLazy$", "-test.v")
		command.Env = append(os.Environ(), "QTYPE_TEST_CATALOGUE=1")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	check := func(text string) {
		result, list := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte(text), loader.Options{NoDotEnv: true})
		if list = append(list, validate.Check(result.Document)...); list.Errors() > 0 {
			t.Fatal(list)
		}
	}
	check("id: shop\nflows:\n  - id: f\n    variables: [{id: a, type: text}, {id: b, type: text}]\n    inputs: [a]\n    outputs: [b]\n    steps:\n      - {type: PromptTemplate, id: p, template: \"{a}\", inputs: [a], outputs: [b]}\n")
	check("id: shop\nmodels:\n  - {type: Model, id: m, provider: mock, rules: [{echo: true}]}\n")
	if catalogue.Loaded() {
		t.Error("the catalogue was read for documents without models")
	}
	if _, ok := catalogue.Lookup("openai", "gpt-6-sol"); !ok || !catalogue.Loaded() {
		t.Error("the catalogue was not read by a lookup")
	}
}
