package e2e_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// Groups of documents that both programs check.
const (
	groupExamples = "its examples"
	groupTests    = "its tests"
	groupPages    = "blocks of its documentation"
	groupChanged  = "its tutorials with an error"
)

// parityDocument is a document that both programs check.
type parityDocument struct {
	name, group string
	path        string // relative to the folder of the comparison
	text        string
}

// block is a fenced block of YAML of a Markdown page.
var block = regexp.MustCompile("(?ms)^```ya?ml[^\n]*\n(.*?)^```")

// parityDocuments returns the documents of the source distribution in a folder, those in
// its pages, and its tutorials with one error each. It writes those that are not files yet.
func parityDocuments(t *testing.T, folder string) []parityDocument {
	t.Helper()
	var all []parityDocument
	testkit.Must(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		text := testkit.ReadFile(t, path)
		name = filepath.ToSlash(name)
		switch {
		case strings.HasSuffix(name, ".qtype.yaml"):
			group := groupExamples
			if strings.HasPrefix(name, "tests/") {
				group = groupTests
			}
			all = append(all, parityDocument{name, group, name, text})
			if strings.HasPrefix(name, "examples/tutorials/") {
				all = append(all, withErrors(name, text)...)
			}
		case strings.HasSuffix(name, ".md") && (name == "README.md" || strings.HasPrefix(name, "docs/")) && !strings.HasPrefix(name, "docs/components/"):
			for i, found := range block.FindAllStringSubmatch(text, -1) {
				block := fmt.Sprintf("%s:%d", strings.TrimSuffix(name, ".md"), i+1)
				all = append(all, parityDocument{block, groupPages, filepath.ToSlash(strings.NewReplacer("/", "_", ":", "_").Replace(block)) + ".yaml", found[1]})
			}
		}
		return err
	}))
	for _, d := range all {
		path := filepath.Join(folder, d.path)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		testkit.Must(t, os.WriteFile(path, []byte(d.text), 0o600))
	}
	slices.SortFunc(all, func(a, b parityDocument) int { return strings.Compare(a.name, b.name) })
	return all
}

// changes are the rules by which a valid document gets an error.
func changes() map[string]func(string) string {
	replace := func(pattern, with string) func(string) string {
		return func(text string) string {
			at := regexp.MustCompile(pattern).FindStringIndex(text)
			if at == nil {
				return text
			}
			return text[:at[0]] + with + text[at[1]:]
		}
	}
	return map[string]func(string) string{
		"unknown key":       func(text string) string { return text + "\ncolour: red\n" },
		"key twice":         func(text string) string { return text + "\nid: again\n" },
		"no id":             replace(`(?m)^id:.*\n`, ""),
		"unknown model":     replace(`(?m)^        model: \w+`, "        model: no_such_model"),
		"unknown step":      replace(`type: (LLMInference|PromptTemplate|Construct|InvokeTool)`, "type: NoSuchStep"),
		"unknown type":      replace(`type: (text|ChatMessage|int)\b`, "type: string"),
		"unclosed bracket":  func(text string) string { return text + "\nflows: [\n" },
		"unknown flow kind": replace(`type: Conversational`, "type: Dialogue"),
	}
}

// withErrors returns a document with each error that changes it.
func withErrors(name, text string) []parityDocument {
	var all []parityDocument
	rules := changes()
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		if changed := rules[rule](text); changed != text {
			path := strings.TrimSuffix(name, ".qtype.yaml") + "." + strings.ReplaceAll(rule, " ", "-") + ".yaml"
			all = append(all, parityDocument{strings.TrimSuffix(name, ".qtype.yaml") + ", " + rule, groupChanged, path, changed})
		}
	}
	return all
}

// parityRun is a flow of a document with an input, which both programs run.
type parityRun struct {
	name, document, flow string
	inputs               map[string]any
}

// notCompared are examples that are not run: QType (Python) reaches their services by
// clients whose protocols the servers of this test do not have.
func notCompared() []string {
	return []string{"legacy/rag", "legacy/vertex/hello_world_chat", "legacy/vertex/hello_world_completion", "legacy/vertex/hello_world_completion_with_auth"}
}

// parityRuns returns the flows of the examples that are valid here with an input each, and
// further inputs: unusual ones, and those of the wrong type.
func parityRuns(t *testing.T, folder string) []parityRun {
	t.Helper()
	var all []parityRun
	known := originalExamples()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if e := known[name]; e.rejected != "" || e.library || slices.Contains(notCompared(), name) {
			continue
		}
		program, list := qtype.Check(t.Context(), filepath.Join(folder, document(name)))
		if list.Errors() > 0 {
			t.Fatal(list)
		}
		flows := slices.Clone(program.Document.Application.Flows)
		slices.SortStableFunc(flows, func(a, b *spec.Flow) int { return min(len(a.Inputs), 1) - min(len(b.Inputs), 1) })
		for _, f := range flows {
			inputs := map[string]any{}
			for _, ref := range f.Inputs {
				inputs[ref.ID] = originalInput(t, f, ref.To)
			}
			all = append(all, parityRun{name + " " + f.ID, document(name), f.ID, inputs})
		}
	}
	for _, more := range []parityRun{
		{"fenced JSON", "data_processing/decode_json", "decode_product", map[string]any{"json_string": "```json\n{\"name\":\"Lamp\",\"price\":19.5}\n```"}},
		{"no JSON", "data_processing/decode_json", "decode_product", map[string]any{"json_string": "none"}},
		{"an empty list", "data_processing/explode_items", "main", map[string]any{"items": []string{}}},
		{"no field", "language_features/optional_variables", "extract_optional_field", map[string]any{"user_profile": `{"name":"Ann"}`}},
		{"an object", "language_features/optional_variables", "extract_optional_field", map[string]any{"user_profile": map[string]any{"email": "ann@shop.example"}}},
		{"a text", "tutorials/02_conversational_chat", "simple_chat_example", map[string]any{"user_message": "Hello"}},
		{"no input", "tutorials/01_hello_world", "", map[string]any{}},
		{"an unknown flow", "tutorials/01_hello_world", "no_such_flow", map[string]any{"question": "Why?"}},
		{"an unknown input", "tutorials/01_hello_world", "", map[string]any{"question": "Why?", "colour": "red"}},
		{"a text for a number", "tutorials/04_tools_and_function_calling", "calculate_deadline", map[string]any{"days_until_due": "soon"}},
	} {
		more.name, more.document = more.document+" with "+more.name, document(more.document)
		all = append(all, more)
	}
	return all
}
