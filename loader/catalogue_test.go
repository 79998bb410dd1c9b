package loader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

const catalogued = "id: shop\nmodels:\n  - {type: Model, id: writer, provider: openai, model_id: gpt-6-sol}\n  - {type: Model, id: local, provider: ollama, model_id: our-model}\n"

// loadCatalogued loads a document with a models.yaml next to it.
func loadCatalogued(t *testing.T, rows string, opts loader.Options) (writer, local *spec.Model, problems string) {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(catalogued), 0o600))
	if rows != "" {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, loader.CatalogueFile), []byte(rows), 0o600))
	}
	result, list := loader.Load(t.Context(), path, opts)
	var texts []string
	for _, d := range list {
		texts = append(texts, d.Error())
	}
	models := result.Document.Application.Models
	return models[0].Base(), models[1].Base(), strings.ReplaceAll(strings.Join(texts, "\n"), folder+string(filepath.Separator), "")
}

// TestCatalogue_Rows checks that rows change what they say, and add models.
func TestCatalogue_Rows(t *testing.T) {
	writer, local, problems := loadCatalogued(t, "catalogue:\n  - {provider: openai, id: gpt-6-sol, prices: {input: 1.5, output: 6}}\n  - {provider: ollama, id: our-model, context_window: 32_768}\n", loader.Options{})
	known, ok := writer.Known()
	if problems != "" || !ok || *known.Prices.Input != 1.5 || known.Prices.Batch != nil || known.ContextWindow != 1_050_000 || !known.Reasoning.Reasons() {
		t.Errorf("gpt-6-sol = %+v, %s", known, problems)
	}
	if known, ok := local.Known(); !ok || known.ContextWindow != 32_768 || known.Prices != nil {
		t.Errorf("our-model = %+v", known)
	}
}

// TestCatalogue_OneField checks that a row changes only what it has, also to no, none and zero.
func TestCatalogue_OneField(t *testing.T) {
	before, _, _ := loadCatalogued(t, "", loader.Options{})
	built, _ := before.Known()
	writer, _, problems := loadCatalogued(t, "\ufeffcatalogue:\n  - {provider: openai, id: gpt-6-sol, reasoning: {default_on: false}, tools: {parallel: false}, rejected_parameters: [], max_output: 0, shutdown_date: ''}\n", loader.Options{})
	got, ok := writer.Known()
	if problems != "" || !ok || !built.Reasoning.DefaultOn || got.Reasoning.DefaultOn || got.Tools.Parallel != catalogue.No || len(got.Rejected) > 0 || got.MaxOutput != 0 || got.Shutdown != "" {
		t.Fatalf("%+v, %s", got, problems)
	}
	if *got.Prices.Input != *built.Prices.Input || got.ContextWindow != built.ContextWindow || got.Reasoning.Mode != built.Reasoning.Mode || got.PricedByUser {
		t.Errorf("the others changed: %+v", got)
	}
}

// TestCatalogue_Servers checks that rows hold for models behind any server, and that no list price does.
func TestCatalogue_Servers(t *testing.T) {
	const rows = "catalogue:\n  - {provider: openai, id: gpt-5.5, context_window: 777}\n  - {provider: openai, id: gpt-4.1, prices: {input: 3}}\n" +
		"  - {provider: openai, id: gpt-4.1, base_url: 'https://gateway.example/v1/', prices: {input: 4}}\n  - {provider: openai, id: our-model, base_url: 'https://gateway.example', context_window: 9}\n"
	for name, c := range map[string]struct {
		model, url, env string
		window          int
		price           float64 // 0 for none
	}{
		"limits at another server":      {"gpt-5.5", "http://127.0.0.1:1/v1", "", 777, 0},
		"limits by the environment":     {"gpt-5.5", "", "http://127.0.0.1:1/v1", 777, 0},
		"limits at OpenAI":              {"gpt-5.5", "https://eu.api.openai.com/v1", "", 777, 5},
		"OpenAI by the environment":     {"gpt-5.5", "", "https://api.openai.com/v1", 777, 5},
		"prices at another server":      {"gpt-4.1", "http://127.0.0.1:1/v1", "", 1_047_576, 3},
		"prices of an address":          {"gpt-4.1", "https://Gateway.example/v1", "", 1_047_576, 4},
		"prices of another path":        {"gpt-4.1", "https://gateway.example/v2", "", 1_047_576, 3},
		"prices without an address":     {"gpt-4.1", "", "", 1_047_576, 3},
		"a model of a host":             {"our-model", "https://gateway.example/v1", "", 9, 0},
		"a model of a host elsewhere":   {"our-model", "https://api.example/v1", "", 0, 0},
		"no list prices of another one": {"gpt-6-luna", "", "http://127.0.0.1:1/v1", 1_050_000, 0},
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, "app.qtype.yaml")
		testkit.Must(t, os.WriteFile(path, []byte("id: shop\nmodels:\n  - {type: Model, id: m, provider: openai, model_id: "+c.model+", base_url: '"+c.url+"'}\n"), 0o600))
		testkit.Must(t, os.WriteFile(filepath.Join(folder, loader.CatalogueFile), []byte(rows), 0o600))
		t.Setenv("OPENAI_BASE_URL", c.env)
		result, list := loader.Load(t.Context(), path, loader.Options{})
		testkit.Must(t, list.Err())
		m, window, price := result.Document.Application.Models[0].Base(), 0, 0.0
		if known, ok := m.Known(); ok {
			window = known.ContextWindow
		}
		if prices := m.CallPrices(); prices != nil {
			price = *prices.Input
		}
		if window != c.window || price != c.price || m.HasUserPrices() != (c.price == 3 || c.price == 4) {
			t.Errorf("%s: window %d, price %g, of the user: %t", name, window, price, m.HasUserPrices())
		}
		if c.env == "http://127.0.0.1:1/v1" && m.UsesResponses() {
			t.Errorf("%s: the Responses API of an unknown server", name)
		}
	}
}

// TestCatalogue_Problems checks that errors have their place.
func TestCatalogue_Problems(t *testing.T) {
	for name, c := range map[string]struct{ rows, want string }{
		"not ours":      {"- {type: Model, id: other, provider: mock}\n", ""},
		"unknown key":   {"catalogue:\n  - {provider: openai, id: a,\n     windw: 5}\n", `models.yaml:3:6`},
		"unknown price": {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, ouput: 2}}\n", `models.yaml:2:50`},
		"wrong type":    {"catalogue:\n  - {provider: openai, id: a, context_window: large}\n", `models.yaml:2:47`},
		"wrong price":   {"catalogue:\n  - {provider: openai, id: a, prices: {input: -1}}\n", `models.yaml:2:47: prices.input cannot be negative`},
		"no id":         {"catalogue:\n  - {provider: openai}\n", `a row needs the key id`},
		"wrong date":    {"catalogue:\n  - {provider: openai, id: a, shutdown_date: tomorrow}\n", `shutdown_date must be a date`},
		"no list":       {"catalogue: 7\n", `must be a list of rows`},
		"a text":        {"catalogue: [gpt]\n", `a row must be a mapping`},
		"wrong output":  {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, output: high}}\n", `models.yaml:2:58: prices.output must be a number, not a text`},
		"wrong tier":    {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, batch: {output: high}}}\n", `models.yaml:2:66: prices.batch.output must be a number, not a text`},
		"wrong long":    {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, long_context: [{above_input_tokens: 5, output: high}]}}\n", `models.yaml:2:`},
		"only a list":   {"- {provider: openai, id: a, context_window: 5}\n", `has no key "catalogue"`},
		"below models":  {"models:\n  - {provider: openai, id: a, context_window: 5}\n", `has no key "catalogue"`},
		"another typo":  {"catalouge:\n  - {provider: openai, id: a, context_window: 5}\n", `has no key "catalogue"`},
		"spaces":        {"catalogue:\n  - {provider: openai, id: 'a '}\n", `models.yaml:2:28: id has spaces around it`},
		"near provider": {"catalogue:\n  - {provider: OpenAI, id: a}\n", `did you mean "openai"?`},
		"no provider":   {"catalogue:\n  - {provider: opnai, id: a}\n", `no model has the provider "opnai"`},
		"twice":         {"catalogue:\n  - {provider: openai, id: a}\n  - {provider: openai, id: A}\n", `another row has the provider openai and the id A`},
		"wrong mode":    {"catalogue:\n  - {provider: openai, id: a, reasoning: {mode: sometimes}}\n", `mode is none, optional or always, not "sometimes"`},
		"wrong control": {"catalogue:\n  - {provider: openai, id: a, reasoning: {control: x}}\n", `control is`},
		"nearest key":   {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, batch: {ouput: 2}}}\n", `models.yaml:2:58: prices.batch has no key "ouput"; did you mean "output"?`},
		"other case":    {"catalogue:\n  - {provider: openai, id: a, Context_Window: 5}\n", `models.yaml:2:31: a row of the catalogue has no key "Context_Window"; did you mean "context_window"?`},
		"all at once":   {"catalogue:\n  - {provider: openai, id: a, windw: 5, tools: {parallel: maybe}}\n", `models.yaml:2:59: tools.parallel must be true or false, not a text`},
		"no value":      {"catalogue:\n  - {provider: openai, id: a, context_window: }\n", `context_window has no value`},
		"a fraction":    {"catalogue:\n  - {provider: openai, id: a, context_window: 1.5}\n", `models.yaml:2:47: context_window must be a whole number, not 1.5`},
		"another base":  {"catalogue:\n  - {provider: openai, id: a, context_window: 010}\n", `context_window must be a whole number, not 010`},
		"too large":     {"catalogue:\n  - {provider: openai, id: a, max_output: 99999999999999999999}\n", `max_output must be a whole number`},
		"no number":     {"catalogue:\n  - {provider: openai, id: a, prices: {input: .nan}}\n", `prices.input must be a number, not .nan`},
		"dated price":   {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, scheduled: [{from: 2027-02-31}]}}\n", `models.yaml:2:69: from must be a date`},
		"a day":         {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, off_peak: {input: 1, windows: [{weekdays: [0], hours_utc: [\"00:00-06:00\"]}]}}}\n", `weekdays are numbers from 1`},
		"a time":        {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, off_peak: {input: 1, windows: [{weekdays: [1], hours_utc: [\"6-7\"]}]}}}\n", `hours_utc are times`},
		"long order":    {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, long_context: [{above_input_tokens: 9, input: 1}, {above_input_tokens: 5, input: 1}]}}\n", `above_input_tokens must be`},
		"a factor":      {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, uplifts: {mars: 2}}}\n", `uplifts has us, eu, regional`},
		"factor zero":   {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1, uplifts: {us: 0}}}\n", `a factor is above 0`},
		"modality":      {"catalogue:\n  - {provider: openai, id: a, input_modalities: [text, smell]}\n", `models.yaml:2:56: input_modalities has text, image`},
		"condition":     {"catalogue:\n  - {provider: openai, id: a, rejected_parameters: [{parameters: [top_p], when: often}]}\n", `when is one of`},
		"negative":      {"catalogue:\n  - {provider: openai, id: a, inference_profiles: {us: {id: b, input: -1, output: 1}}}\n", `inference_profiles.us.input cannot be negative`},
		"another key":   {"catalogue:\n  - {provider: openai, id: a}\nmodels: []\n", `the key "models" is not read`},
		"not YAML":      {"catalogue: [\n", `QT002`},
		"plain text":    {"hello world\n", `models.yaml:1:1: models.yaml must have the key "catalogue" with a list of rows, and is a text`},
		"a number":      {"\n  42\n", `models.yaml:2:3: models.yaml must have the key "catalogue" with a list of rows, and is a number`},
		"list of texts": {"- gpt-6-sol\n", `models.yaml:1:1: models.yaml has no key "catalogue"`},
		"list of lists": {"- [a]\n", `models.yaml:1:1: models.yaml has no key "catalogue"`},
		"list without":  {"- {id: a, context_window: 5}\n", `models.yaml:1:1: models.yaml has no key "catalogue"`},
		"one row":       {"provider: openai\nid: a\n", `models.yaml:1:1: models.yaml has no key "catalogue"`},
		"empty":         {"# nothing\n", ""},
		"nothing":       {"null\n", ""},
		"another":       {"version: 2\nmodels:\n  - {name: orders}\n", ""},
		"a template":    {"{{ config() }}\n{% if\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, problems := loadCatalogued(t, c.rows, loader.Options{})
			if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
				t.Errorf("problems %q, want %q", problems, c.want)
			}
		})
	}
}

// TestCatalogue_Restricted checks that the file next to a restricted document is not read, and
// that the variable names one for every document.
func TestCatalogue_Restricted(t *testing.T) {
	const rows = "catalogue:\n  - {provider: ollama, id: our-model, context_window: 5}\n"
	policy := &trust.Policy{Level: trust.Sandboxed}
	if _, local, problems := loadCatalogued(t, rows, loader.Options{Policy: policy}); problems != "" {
		t.Error(problems)
	} else if known, ok := local.Known(); ok {
		t.Errorf("the row of a restricted document is used: %+v", known)
	}
	named := filepath.Join(t.TempDir(), "mine.yaml")
	testkit.Must(t, os.WriteFile(named, []byte(rows), 0o600))
	t.Setenv(loader.CatalogueVariable, named)
	if _, local, problems := loadCatalogued(t, "", loader.Options{Policy: policy}); problems != "" {
		t.Error(problems)
	} else if known, ok := local.Known(); !ok || known.ContextWindow != 5 {
		t.Error("the row of the user is not used")
	}
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(catalogued), 0o600))
	testkit.Must(t, os.Symlink(named+".missing", filepath.Join(folder, loader.CatalogueFile)))
	if _, list := loader.Load(t.Context(), filepath.Join(folder, "app.qtype.yaml"), loader.Options{}); !strings.Contains(fmt.Sprint(list), "models.yaml does not exist") {
		t.Errorf("a link to nothing: %v", list)
	}
	t.Setenv(loader.CatalogueVariable, named+".missing")
	if _, _, problems := loadCatalogued(t, "", loader.Options{}); !strings.Contains(problems, "mine.yaml.missing") {
		t.Errorf("problems %q", problems)
	}
}
