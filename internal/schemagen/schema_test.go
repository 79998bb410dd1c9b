package schemagen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/schemagen"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/testkit/diagtest"
)

func TestSchema_UpToDate(t *testing.T) {
	want, err := schemagen.Generate("../../spec")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) || authoring.Schema() != string(want) {
		t.Error("schema.json, or its copy in internal/authoring, is not up to date: run make generate")
	}
	again, err := schemagen.Generate("../../spec")
	if err != nil || !bytes.Equal(again, want) {
		t.Error("two runs gave different schemas")
	}
}

// TestExtend makes the schema without the source of package spec: the descriptions are in the generated one.
func TestExtend(t *testing.T) {
	got, err := schemagen.Extend(authoring.Schema(), nil)
	testkit.Must(t, err)
	if diff := cmp.Diff(authoring.Schema(), got); diff != "" {
		t.Error(diff)
	}
}

func TestGenerate_MissingSource(t *testing.T) {
	if _, err := schemagen.Generate("nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v, want an error that names the folder", err)
	}
}

// compile compiles schema.json, which validates it, too.
func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../schema.json")
	if err != nil {
		t.Fatalf("schema.json is no schema: %v", err)
	}
	return s
}

// TestSchema_Descriptions checks that every definition and key has a description
// that does not start with a Go name.
func TestSchema_Descriptions(t *testing.T) {
	text, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Definitions map[string]struct {
			Properties map[string]struct{ Description string }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Definitions) < 50 {
		t.Fatalf("only %d definitions", len(doc.Definitions))
	}
	for name, def := range doc.Definitions {
		for key, p := range def.Properties {
			if p.Description == "" || strings.HasPrefix(p.Description, "Is ") {
				t.Errorf("%s.%s is described as %q", name, key, p.Description)
			}
		}
	}
}

// parseAsEditor parses YAML as an editor does: tagged values such as !include,
// dates and ${VAR} are strings.
func parseAsEditor(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return plain(v)
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
	case map[any]any:
		m := map[string]any{}
		for k, e := range v {
			m[fmt.Sprint(k)] = plain(e)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case time.Time:
		return v.Format(time.DateOnly)
	}
	return v
}

func TestSchema_Examples(t *testing.T) {
	s := compile(t)
	files, err := filepath.Glob("../../examples/*/*.qtype.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v (%v)", files, err)
	}
	for _, file := range append(files, "../../validate/testdata/additions.qtype.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(parseAsEditor(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if strings.HasPrefix(file, "../../examples/") && !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=../../schema.json\n")) {
			t.Errorf("%s does not start with the modeline of the schema", file)
		}
	}
}

// TestSchema_Fixtures validates all valid fixtures.
func TestSchema_Fixtures(t *testing.T) {
	files := validFixtures(t)
	s := compile(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(parseAsEditor(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Logf("%d valid documents tried", len(files))
}

// validFixtures returns the paths of the valid fixtures.
func validFixtures(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, f := range diagtest.Fixtures(t) {
		if f.Valid {
			files = append(files, f.Path)
		}
	}
	if len(files) == 0 {
		t.Fatal("no document was found")
	}
	return files
}

// stepDocument returns a document with one step, in flow style after `type:`.
func stepDocument(text string) string {
	return "{id: a, flows: [{id: f, steps: [{type: " + text + "}]}]}"
}

func TestSchema_InvalidDocuments(t *testing.T) {
	s := compile(t)
	for _, c := range []struct{ document, at string }{
		{"{}", ""},
		{"text", ""},
		{"{id: a, flow: []}", ""},
		{"{id: 5}", "/id"},
		{"{id: a, memories: text}", "/memories"},
		{"{id: a, memories: [text]}", "/memories/0"},
		{"{id: a, memories: [{id: m, token_limit: 0}]}", "/memories/0/token_limit"},
		{"{id: a, memories: [{id: m, token_limit: many}]}", "/memories/0/token_limit"},
		{"{id: a, memories: [{id: m, token_limit: 1.5}]}", "/memories/0/token_limit"},
		{"{id: a, memories: [{id: m, chat_history_token_ratio: 0}]}", "/memories/0/chat_history_token_ratio"},
		{"{id: a, memories: [{id: m, chat_history_token_ratio: 1.01}]}", "/memories/0/chat_history_token_ratio"},
		{"{id: a, memories: [{id: m, chat_history_token_ration: 0.5}]}", "/memories/0"},
		{"{id: a, models: [{id: m, provider: openai}]}", "/models/0"},
		{"{id: a, models: [{type: Model, id: m, provider: openia}]}", "/models/0/provider"},
		{"{id: a, models: [{type: Model, id: m, provider: openai, base_url: localhost}]}", "/models/0/base_url"},
		{"{id: a, models: [{type: Model, id: m, provider: openai, timeout: 5 minutes}]}", "/models/0/timeout"},
		{"{id: a, models: [{type: EmbeddingModel, id: m, provider: openai}]}", "/models/0"},
		{"{id: a, auths: [{id: k, api_key: {name: x}}]}", "/auths/0/api_key"},
		{"{id: a, auths: [{id: k, token: x, host: y}]}", "/auths/0"},
		{"{id: a, tools: [{type: APITool, id: t, name: n, description: d}]}", "/tools/0"},
		{"{id: a, types: [{id: t, properties: {n: 5}}]}", "/types/0/properties/n"},
		{"{id: a, types: [{id: t, properties: {n: 'list[int'}}]}", "/types/0/properties/n"},
		{"{id: a, flows: [{id: f, variables: [{id: v, type: 'list[list[int]]'}]}]}", "/flows/0/variables/0/type"},
		{"{id: a, flows: [{id: f, interface: {type: Chat}}]}", "/flows/0/interface/type"},
		{"{id: a, flows: [{id: f, feedback: {type: rating, scale: 11}}]}", "/flows/0/feedback/scale"},
		{"{id: a, flows: [{id: f, steps: [s]}]}", "/flows/0/steps/0"},
		{"{id: a, flows: [{id: f, steps: [{$ref: s, id: t}]}]}", "/flows/0/steps/0"},
		{stepDocument("LLMInfrence, id: s"), "/flows/0/steps/0/type"},
		{stepDocument("LLMInference, id: s"), "/flows/0/steps/0"},
		{stepDocument("LLMInference, id: s, model: {id: m}"), "/flows/0/steps/0/model"},
		{stepDocument("Echo, id: s, template: x"), "/flows/0/steps/0"},
		{stepDocument("Echo, id: s, inputs: [{id: v}]"), "/flows/0/steps/0/inputs/0"},
		{stepDocument("FileSource, id: s, path: {url: x}"), "/flows/0/steps/0/path"},
		{stepDocument("InvokeFlow, id: s, flow: f, input_bindings: {a: 5}, output_bindings: {}"), "/flows/0/steps/0/input_bindings/a"},
		{"[{id: v, type: text}, {id: w}]", "/1"},
		{"[{type: Model, id: m}]", "/0"},
		{"[{id: t, properties: {}}, {id: u}]", "/1"},
	} {
		var invalid *jsonschema.ValidationError
		err := s.Validate(parseAsEditor(t, []byte(c.document)))
		if !errors.As(err, &invalid) {
			t.Errorf("%s: accepted", c.document)
			continue
		}
		if !slices.Contains(errorLocations(invalid), c.at) {
			t.Errorf("%s: errors at %q, want %q", c.document, errorLocations(invalid), c.at)
		}
	}
}

// errorLocations returns the JSON pointers of the innermost errors.
func errorLocations(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		var at strings.Builder
		for _, part := range e.InstanceLocation {
			at.WriteString("/" + part)
		}
		return []string{at.String()}
	}
	var all []string
	for _, c := range e.Causes {
		all = append(all, errorLocations(c)...)
	}
	return all
}

func TestSchema_ValidDocuments(t *testing.T) {
	s := compile(t)
	for _, document := range []string{
		"{id: a}",
		"{id: a, memories: [{id: m, token_limit: '${LIMIT:-5000}', chat_history_token_ratio: 1}]}",
		"{id: a, memories: [{id: m, token_limit: '5000'}], flows: , types: ~}",
		"{id: a, models: !include models.yaml, flows: [!include flows/one.yaml]}",
		"{id: a, models: [{type: Model, id: m, provider: '${PROVIDER}', timeout: 1m30s}]}",
		"{id: a, types: [{id: t, properties: {n: 'list[list[int?]]?', o: t}}]}",
		"{id: a, flows: [{id: f, variables: [{id: v, type: 'list[text]?', optional: yes}], steps: [{$ref: s}]}]}",
		"{id: a, references: [!include other.yaml, {id: b}, [{id: v, type: text}]]}",
		"[]",
		"[{id: v, type: text}]",
		"[{id: k, region: eu-west-1}, {type: vertex, id: w, profile_name: x}, {id: y, service_account_file: z}]",
		"[{type: APITool, id: t, name: n, description: d, endpoint: 'https://x', method: POST}]",
		stepDocument("LLMInference, id: s, model: {$ref: m}, inputs: [a, {$ref: b}]"),
		stepDocument("FileSource, id: s, path: {uri: x.csv}"),
		stepDocument("VectorSearch, id: s, index: i, default_top_k: ~, filters: {a: [1]}"),
	} {
		if err := s.Validate(parseAsEditor(t, []byte(document))); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}
