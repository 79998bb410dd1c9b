package source_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/catalogue/source"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestRead_Embedded checks that the embedded catalogue is models.jsonl, every row.
func TestRead_Embedded(t *testing.T) {
	text, err := os.ReadFile("../models.jsonl")
	testkit.Must(t, err)
	rows, err := source.Read(text)
	testkit.Must(t, err)
	if d := cmp.Diff(rows.Models, catalogue.All()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(rows.Servers, catalogue.Servers()); d != "" {
		t.Error(d)
	}
	again, err := source.Lines(rows)
	testkit.Must(t, err)
	if string(again) != string(text) {
		t.Error("models.jsonl is not in the form that generate writes: run go generate ./internal/catalogue")
	}
}

// TestRead_Size checks that the program contains at most 150 kB.
func TestRead_Size(t *testing.T) {
	info, err := os.Stat("../models.zip")
	testkit.Must(t, err)
	if info.Size() > 150_000 {
		t.Errorf("%d bytes", info.Size())
	}
}

// TestRead_Reference compares every fact of the reference list with the row, where the
// list is there: QTYPE_MODELS_REFERENCE is its file.
func TestRead_Reference(t *testing.T) {
	file := os.Getenv("QTYPE_MODELS_REFERENCE")
	if file == "" {
		t.Skip("QTYPE_MODELS_REFERENCE is not set")
	}
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	rows, err := source.Read(text)
	testkit.Must(t, err)
	if d := cmp.Diff(rows.Models, catalogue.All()); d != "" {
		t.Error(d)
	}
	t.Logf("%d models, %d servers", len(rows.Models), len(rows.Servers))
}

// TestRead_LiteLLM reads prices by tier and length, and skips what is not a model of a provider.
func TestRead_LiteLLM(t *testing.T) {
	rows, err := source.Read([]byte(`{
		"gpt-6-sol": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 922000, "max_output_tokens": 128000, "input_cost_per_token": 0.000002, "output_cost_per_token": 0.00001,
			"input_cost_per_token_batches": 0.000001, "input_cost_per_token_above_272k_tokens": 0.000004, "input_cost_per_token_above_272k_tokens_priority": 0.000008, "supports_vision": true, "deprecation_date": "2027-05-01"},
		"gemini/new": {"litellm_provider": "gemini", "mode": "chat", "max_input_tokens": "8192", "input_cost_per_token": "0.000001", "output_cost_per_token": " 2e-6 "},
		"elsewhere/new": {"litellm_provider": "elsewhere", "mode": "chat"},
		"painter": {"litellm_provider": "openai", "mode": "image_generation"}}`))
	testkit.Must(t, err)
	if len(rows.Models) != 2 || rows.Models[0].ID != "new" || rows.Models[0].Provider != "google-ai" || len(rows.Skipped) != 2 {
		t.Fatalf("rows = %+v", rows)
	}
	if m := rows.Models[0]; m.ContextWindow != 8192 || *m.Prices.Input != 1 || *m.Prices.Output != 2 {
		t.Errorf("row with texts = %+v", m)
	}
	m := rows.Models[1]
	if *m.Prices.Input != 2 || *m.Prices.Batch.Input != 1 || *m.Prices.LongContext[0].Priority.Input != 8 || m.Prices.LongContext[0].Above != 272_000 || m.Shutdown != "2027-05-01" || !slices.Contains(m.Input, "image") {
		t.Errorf("row = %+v", m)
	}
}

// TestRead_ModelsDev reads models.dev's api.json.
func TestRead_ModelsDev(t *testing.T) {
	rows, err := source.Read([]byte(`{"google": {"id": "google", "models": {"gemini-9": {"id": "gemini-9", "reasoning": true, "tool_call": true,
		"modalities": {"input": ["text"], "output": ["text"]}, "limit": {"context": 1000, "output": 100},
		"cost": {"input": 1, "output": 2, "cache_read": 0.1, "context_over_200k": {"input": 2, "output": 4}}}}}}`))
	testkit.Must(t, err)
	m := rows.Models[0]
	if m.Provider != "google-ai" || m.ContextWindow != 1000 || *m.Prices.CachedInput != 0.1 || *m.Prices.LongContext[0].Output != 4 || m.Reasoning.Mode != catalogue.ReasonsOptional {
		t.Errorf("row = %+v", m)
	}
}

// TestRead_Encoding: a name is never changed to be read.
func TestRead_Encoding(t *testing.T) {
	if _, err := source.Read([]byte("{\"openai\": {\"models\": {\"z\xffz\": {\"cost\": {\"input\": 1}}}}}")); err == nil || err.Error() != "the file is not UTF-8 text" {
		t.Errorf("the error is %v", err)
	}
}

// TestRead_Invalid leaves out the rows with wrong values, and reads the others.
func TestRead_Invalid(t *testing.T) {
	for name, c := range map[string]struct {
		text, invalid string
		priced        bool
	}{
		"negative price": {`{"openai": {"models": {"a": {"id": "a", "cost": {"input": 1}}, "b": {"id": "b", "cost": {"input": -1}}}}}`, "openai/b: a price cannot be negative: -1", true},
		"wrong type":     {`{"openai": {"models": {"a": {"id": "a", "cost": {"input": 1}}, "b": {"limit": {"context": "x"}}}}}`, "openai/b: not in the expected form", true},
		"huge price":     {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1}, "b": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e305}}`, "openai/b: a price is dollars", true},
		"null price":     {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": null}}`, "", false},
		"price in words": {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": "1"}, "b": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1, "output_cost_per_token": "free"}}`, `openai/b: output_cost_per_token is not a number: "free"`, true},
		"price NaN":      {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1}, "b": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": "NaN"}}`, `openai/b: input_cost_per_token is not a number: "NaN"`, true},
		"price list":     {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1}, "b": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": [1]}}`, "openai/b: input_cost_per_token is not a number: [1]", true},
		"limit in words": {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1}, "b": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": "many"}}`, `openai/b: max_input_tokens is not a number: "many"`, true},
		"huge limit":     {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1}, "b": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 1e300}}`, "openai/b: max_input_tokens is not a number of tokens: 1e300", true},
		"models.yaml":    {"catalogue:\n  - {provider: openai, id: a, shutdown_date: 2027-01-31, prices: {input: 1}}\n  - {provider: openai, id: b, foo: 1}\n", "row 2: unknown field", true},
		"no object":      {`{"openai": {"models": {"a": {"id": "a", "cost": {"input": 1}}, "b": null}}}`, "openai/b: not in the expected form", true},
		"a control sign": {`{"openai": {"models": {"a": {"id": "a", "cost": {"input": 1}}, "b\u001b": {"cost": {"input": 1}}}}}`, "control characters", true},
		"one line":       {"\ufeff" + `{"provider":"openai","id":"a","prices":{"input":1}}`, "", true},
		"empty lines":    {`{"provider":"openai","id":"a","prices":{"input":1}}` + "\r\n\n" + `{"provider":"openai","id":"b","prices":{"input":-1}}` + "\n", "openai/b: a price cannot be negative", true},
		"no mapping":     {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1}}\n  - 5\n", "row 2: a row must be a mapping", true},
		"key twice":      {`{"openai": {"models": {"a": {"id": "a", "cost": {"input": 2}}, "a": {"id": "a", "cost": {"input": 1}}}}}`, "openai/models/a: the file has this key again", true},
		"fact twice":     {`{"a": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2, "input_cost_per_token": 1}}`, "a/input_cost_per_token: the file has this key again", true},
		"duplicate":      {"catalogue:\n  - {provider: openai, id: a, prices: {input: 1}}\n  - {provider: openai, id: A}\n", "openai/A: another row", true},
	} {
		rows, err := source.Read([]byte(c.text))
		if err != nil || len(rows.Models) != 1 || rows.Models[0].ID != "a" || (rows.Models[0].Prices != nil) != c.priced || rows.Models[0].ContextWindow < 0 || !strings.Contains(strings.Join(rows.Invalid, ""), c.invalid) {
			t.Errorf("%s: %+v, %v", name, rows, err)
		}
	}
}

// TestRead_Other rejects other files.
func TestRead_Other(t *testing.T) {
	for _, text := range []string{"", "hello", "7", "{}", "[]", "catalogue: []", "catalogue: 7", "catalogue: [{provider: openai, id: a, foo: 1}]", `{"a": 1}`, "[1]", `[{"provider": "x", "id": "y", "new_key": 1}]`, `{"provider":"a"` + "\n{"} {
		rows, err := source.Read([]byte(text))
		if err == nil || strings.Contains(err.Error(), "source.") || strings.Contains(err.Error(), "interface") {
			t.Errorf("%q = %+v, %v", text, rows, err)
		}
	}
}

// TestUpdates writes new models, and what differs of others.
func TestUpdates(t *testing.T) {
	price := func(n float64) *catalogue.Prices {
		return &catalogue.Prices{TierRates: catalogue.TierRates{Rates: catalogue.Rates{Input: &n}}}
	}
	updates := source.Updates([]catalogue.Model{
		{Provider: "openai", ID: "gpt-6-sol", ContextWindow: 1_050_000, Prices: price(2)},
		{Provider: "openai", ID: "gpt-6-luna", MaxOutput: 5, Prices: price(99)},
		{Provider: "openai", ID: "gpt-9"},
	}, nil)
	want := []catalogue.Model{{Provider: "openai", ID: "gpt-6-luna", MaxOutput: 5, Prices: price(99)}, {Provider: "openai", ID: "gpt-9"}}
	if d := cmp.Diff(want, updates); d != "" {
		t.Error(d)
	}
	text, err := source.YAML(updates, "a file")
	if err != nil || !source.Written(text) || !strings.Contains(string(text), `  - {"provider":"openai","id":"gpt-9"}`) {
		t.Errorf("%s, %v", text, err)
	}
	if again, err := source.Read(text); err != nil || len(again.Models) != 2 {
		t.Errorf("what was written is read as %+v, %v", again, err)
	}
}
