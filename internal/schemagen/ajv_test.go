package schemagen_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// ajvScript validates documents with Ajv, the validator of most JavaScript tools,
// in its strict mode except for its advice on style. Keywords that only editors
// use, such as markdownDescription, are declared.
const ajvScript = `
const Ajv = require("ajv"), formats = require("ajv-formats");
const {schema, documents} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const ajv = new (Ajv.default ?? Ajv)({strict: true, strictRequired: false, strictTypes: false, strictTuples: false, allErrors: true});
(formats.default ?? formats)(ajv);
ajv.addVocabulary(["markdownDescription", "enumDescriptions", "markdownEnumDescriptions", "defaultSnippets", "deprecationMessage", "patternErrorMessage", "errorMessage"]);
const check = ajv.compile(schema);
console.log(JSON.stringify(documents.map(d => check(d) ? [] : check.errors.map(e => ({at: e.instancePath, message: e.message})))));
`

type ajvError struct{ At, Message string }

// withAjv returns the errors of each document. It requires node, and a node_modules
// folder with ajv and ajv-formats in the environment variable QTYPE_AJV.
func withAjv(t *testing.T, documents []any) [][]ajvError {
	t.Helper()
	modules := os.Getenv("QTYPE_AJV")
	if modules == "" {
		t.Skip("SKIPPED, NOT TESTED: QTYPE_AJV names no node_modules folder with ajv and ajv-formats; .ci/run does")
	}
	text, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(map[string]any{"schema": json.RawMessage(text), "documents": documents})
	if err != nil {
		t.Fatal(err)
	}
	cmd := testkit.Command(t, "node", "-e", ajvScript)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output answers it bare
			stderr = exit.Stderr
		}
		t.Fatalf("%v\n%s", err, stderr)
	}
	var found [][]ajvError
	if err := json.Unmarshal(out, &found); err != nil || len(found) != len(documents) {
		t.Fatalf("%d answers to %d documents (%v)", len(found), len(documents), err)
	}
	return found
}

func TestAjv_AcceptsValidDocuments(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.qtype.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v (%v)", files, err)
	}
	files = append(files, "../../validate/testdata/additions.qtype.yaml")
	if os.Getenv("QTYPE_FIXTURES") != "" {
		files = append(files, validFixtures(t)...)
	}
	documents := make([]any, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents[i] = parseAsEditor(t, text)
	}
	for i, errs := range withAjv(t, documents) {
		if len(errs) > 0 {
			t.Errorf("%s: %v", files[i], errs)
		}
	}
	t.Logf("%d documents tried", len(files))
}

// TestAjv_RejectsInvalidDocuments checks that errors are at the invalid key.
func TestAjv_RejectsInvalidDocuments(t *testing.T) {
	cases := []struct{ document, at string }{
		{"{}", ""},
		{"{id: 5}", "/id"},
		{"{id: a, memories: [{id: m, token_limit: many}]}", "/memories/0/token_limit"},
		{"{id: a, models: [{type: Model, id: m, provider: openia}]}", "/models/0/provider"},
		{"{id: a, tools: [{type: APITool, id: t, name: n, description: d}]}", "/tools/0"},
		{"{id: a, auths: [{type: api_key, id: k, api_key: {name: x}}]}", "/auths/0/api_key"},
		{stepDocument("Explode, id: s, batch_config: {batch_size: 3}"), "/flows/0/steps/0"},
		{stepDocument("Decoder, id: s, format: yaml"), "/flows/0/steps/0/format"},
	}
	documents := make([]any, len(cases))
	for i, c := range cases {
		if err := yaml.Unmarshal([]byte(c.document), &documents[i]); err != nil {
			t.Fatal(err)
		}
		documents[i] = plain(documents[i])
	}
	for i, errs := range withAjv(t, documents) {
		if !slices.ContainsFunc(errs, func(f ajvError) bool { return f.At == cases[i].at }) {
			t.Errorf("%s: want an error at %q, got %v", cases[i].document, cases[i].at, errs)
		}
		if len(errs) > 8 { // Ajv repeats an error on each level, but must not report all types of steps.
			t.Errorf("%s: %d errors: %v", cases[i].document, len(errs), errs)
		}
	}
}
