package schemagen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// documentWithStep returns a document with the lines of a step.
func documentWithStep(lines string) string {
	return "id: app\nflows:\n  - id: flow\n    steps:\n      - " + strings.ReplaceAll(lines, "\n", "\n        ") + "\n"
}

// requiredStepTypes are proposals that an editor must show for the type of a step.
var requiredStepTypes = []string{"Agent", "Decoder", "Echo", "LLMInference", "PromptTemplate", "VectorSearch"}

func TestEditor_Completion(t *testing.T) {
	e := start(t)
	for _, c := range []struct {
		name, document string
		want, not      []string
	}{
		{"a memory's keys", "id: app\nmemories:\n  - id: m\n    ch█\n",
			[]string{"chat_history_token_ratio", "token_limit", "token_flush_size"}, []string{"memory", "model", "provider"}},
		{"the sections", "id: app\n█\n", []string{"memories", "models", "flows", "tools"}, []string{"steps", "token_limit"}},
		{"the sections after an include", "id: app\nmodels: !include models.yaml\nmemories:\n  - id: m\n    █\n",
			[]string{"token_limit"}, nil},
		{"step types", documentWithStep("type: █"), requiredStepTypes, []string{"Model", "APITool", "text"}},
		{"only the type while it is not selected", documentWithStep("█"), []string{"type"}, []string{"model", "template", "json_path"}},
		{"only the keys of the step", documentWithStep("type: LLMInference\nid: respond\n█"),
			[]string{"model", "memory", "system_message", "inputs", "outputs"}, []string{"template", "tools", "json_path", "path", "type"}},
		{"only the keys of another step", documentWithStep("type: PromptTemplate\nid: fill\n█"),
			[]string{"template", "inputs", "outputs"}, []string{"model", "memory", "tools"}},
		{"the values of an enumeration", "id: app\nmodels:\n  - type: Model\n    id: m\n    provider: █\n",
			[]string{"openai", "mock", "anthropic", "langchaingo:mistral"}, nil},
		{"a default", "id: app\nmemories:\n  - id: m\n    token_limit: █\n", []string{"100000"}, nil},
		{"types of variables", "id: app\nflows:\n  - id: flow\n    variables:\n      - id: v\n        type: █\n",
			[]string{"text", "int", "ChatMessage", "list[text]"}, nil},
		{"credentials without a type", "id: app\nauths:\n  - id: key\n    █\n", []string{"type"}, nil},
		{"readers", documentWithStep("type: DocumentSource\nid: read\nreader_module: █"), []string{"directory", "web"}, []string{"embedded"}},
		{"the arguments of a reader", documentWithStep("type: DocumentSource\nid: read\nreader_module: directory\nargs:\n  █"),
			[]string{"input_dir", "recursive"}, []string{"sitemap_url"}},
		{"a list of models", "- type: Model\n  █\n", []string{"provider", "model_id"}, []string{"flows", "widget"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := e.open(c.document).complete()
			for _, w := range c.want {
				if _, ok := got[w]; !ok {
					t.Errorf("%q is not proposed: %v", w, labels(got))
				}
			}
			for _, n := range c.not {
				if _, ok := got[n]; ok {
					t.Errorf("%q must not be proposed", n)
				}
			}
		})
	}
}

// TestEditor_InsertsDefaults checks the text and description of completions.
func TestEditor_InsertsDefaults(t *testing.T) {
	got := start(t).open("id: app\nmemories:\n  - id: m\n    ch█\n").complete()["chat_history_token_ratio"]
	if got.InsertText != "chat_history_token_ratio: ${1:0.7}" {
		t.Errorf("inserts %q, want the key with its default", got.InsertText)
	}
	if !strings.Contains(string(got.Documentation), "share of token_limit") {
		t.Errorf("is documented as %s", got.Documentation)
	}
}

func TestEditor_Hover(t *testing.T) {
	e := start(t)
	for _, c := range []struct{ name, document, want string }{
		{"a key", "id: app\nmemories:\n  - id: m\n    chat_history█_token_ratio: 0.5\n", "share of token\\_limit for chat messages"},
		{"a reference", documentWithStep("type: LLMInference\nid: s\nmem█ory: m\nmodel: x"), "memory that holds the conversation"},
		{"a key with an invalid value", "id: app\nmemories:\n  - id: m\n    token_li█mit: lots\n", "For the policy flush"},
		{"a step type", documentWithStep("type: LLMInfer█ence\nid: s\nmodel: m"), "Calls a chat model"},
		{"a key of a nested part", "id: app\nflows:\n  - id: f\n    interface:\n      session_in█puts: [a]\n", "keep their first value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := e.open(c.document).hover(); !strings.Contains(got, c.want) {
				t.Errorf("hover is %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestEditor_Diagnostics(t *testing.T) {
	e := start(t)
	// Line 0 of every document is the modeline.
	for _, c := range []struct {
		name, document, message string
		line, from, to          int
	}{
		{"a misspelt key", "id: app\nmemories:\n  - id: m\n    chat_history_token_ration: 0.5\n",
			"chat_history_token_ration is not allowed", 4, 4, 29},
		{"a key of another step", documentWithStep("type: Echo\nid: s\nmemory: m"), "memory is not allowed", 7, 8, 14},
		{"a missing key", documentWithStep("type: LLMInference\nid: s"), `Missing property "model"`, 5, 8, 9},
		{"an unknown step type", documentWithStep("type: LLMInfrence\nid: s"), "LLMInference", 5, 14, 25},
		{"a number out of range", "id: app\nmemories:\n  - id: m\n    chat_history_token_ratio: 1.5\n", "above the maximum of 1", 4, 30, 33},
		{"a text for a number", "id: app\nmemories:\n  - id: m\n    token_limit: lots\n", "expected an integer", 4, 17, 21},
		{"an invalid enumeration value", "id: app\nmodels:\n  - {type: Model, id: m, provider: openia}\n", "openai", 3, 35, 41},
		{"an entity instead of an id", documentWithStep("type: LLMInference\nid: s\nmodel: {id: m}"), "expected the id", 7, 15, 22},
		{"an invalid type", "id: app\nflows:\n  - id: f\n    variables:\n      - {id: v, type: 'list[text'}\n", "expected a type", 5, 22, 33},
		{"a text for a list", "id: app\nmemories: chat\n", "expected a list", 2, 10, 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := e.open(c.document).diagnostics()
			if len(found) != 1 {
				t.Fatalf("got %d diagnostics, want one: %+v", len(found), found)
			}
			d := found[0]
			if !strings.Contains(d.Message, c.message) {
				t.Errorf("got %q, want %q in it", d.Message, c.message)
			}
			want := struct{ Start, End position }{position{c.line, c.from}, position{c.line, c.to}}
			if d.Range != want {
				t.Errorf("points at %v, want %v", d.Range, want)
			}
		})
	}
}

func TestEditor_AcceptsExamples(t *testing.T) {
	e := start(t)
	files, err := filepath.Glob("../../examples/*/*.qtype.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v (%v)", files, err)
	}
	documents := []string{
		"id: app\nmodels: !include models.yaml\nflows:\n  - !include flow.yaml\n",
		"id: app\nmemories:\n  - {id: m, token_limit: '${LIMIT:-5000}'}\nflows:\ntypes:\n",
		"- {id: v, type: text}\n",
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	for _, d := range documents {
		if found := e.open(d).diagnostics(); len(found) > 0 {
			t.Errorf("%.60q…: %+v", d, found)
		}
	}
}
