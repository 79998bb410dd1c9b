package catalogue_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestCatalogue_Unread: a check of documents without models, or with mocks only, does not use the built-in catalogue.
func TestCatalogue_Unread(t *testing.T) {
	reads := catalogue.CountReads()
	for _, text := range []string{
		"id: shop\nflows:\n  - id: f\n    variables: [{id: a, type: text}, {id: b, type: text}]\n    inputs: [a]\n    outputs: [b]\n    steps:\n      - {type: PromptTemplate, id: p, template: \"{a}\", inputs: [a], outputs: [b]}\n",
		"id: shop\nmodels:\n  - {type: Model, id: m, provider: mock, rules: [{echo: true}]}\n",
	} {
		result, list := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte(text), loader.Options{NoDotEnv: true})
		if list = append(list, validate.Check(result.Document)...); list.Errors() > 0 {
			t.Fatal(list)
		}
	}
	if n := reads.Load(); n > 0 {
		t.Errorf("the catalogue was used %d times", n)
	}
	if _, ok := catalogue.Lookup("openai", "gpt-6-sol"); !ok || reads.Load() == 0 {
		t.Error("the catalogue was not used by a lookup")
	}
}
