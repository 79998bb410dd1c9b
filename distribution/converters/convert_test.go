package converters_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/converters"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the goldens")

// TestFile_Goldens converts the files of testdata and compares the documents and
// diagnostics with the golden files next to them.
func TestFile_Goldens(t *testing.T) {
	for _, kind := range convert.Kinds() {
		files, err := filepath.Glob(filepath.Join("testdata", string(kind), "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.Contains(path, ".golden") || filepath.Ext(path) == "" && filepath.Base(path) != "clinic" { // other folders have what the files name
				continue
			}
			t.Run(path, func(t *testing.T) { golden(t, kind, path) })
		}
	}
}

func golden(t *testing.T, kind convert.Kind, path string) {
	text, list := convert.File(convert.With(t.Context(), converters.Converters()), kind, path)
	again, _ := convert.File(convert.With(t.Context(), converters.Converters()), kind, path)
	if text != again {
		t.Error("the second conversion has another result")
	}
	var printed bytes.Buffer
	if err := diag.Text(&printed, list, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	compare(t, path+".golden.yaml", text)
	compare(t, path+".golden.txt", printed.String())
	if text == "" {
		if list.Errors() == 0 {
			t.Error("no document and no error")
		}
		return
	}
	for _, d := range list {
		if d.Span.File == nil || d.Span.Start.Line == 0 {
			t.Errorf("%s has no position", d.Error())
		}
	}
	if problems := validateText(t, path+".golden.yaml", text); len(problems) > 0 {
		t.Errorf("the document is not valid:\n%s", problems)
	}
}

// credential is the environment, in which the variables of converted security schemes are set.
func credential(name string) (string, bool) {
	set := strings.HasPrefix(name, "SHOP_") || strings.HasPrefix(name, "OLD_")
	return "secret", set
}

// validateText validates a document and returns the diagnostics, warnings included, but for
// that of a memory that is small in the original too.
func validateText(t *testing.T, name, text string) string {
	t.Helper()
	loaded, problems := loader.LoadBytes(t.Context(), name, []byte(text), loader.Options{NoDotEnv: true, Lookup: credential})
	problems = append(problems, validate.Check(loaded.Document)...)
	problems = slices.DeleteFunc(problems, func(d diag.Diagnostic) bool { return d.Code == "QT443" })
	var printed bytes.Buffer
	if err := diag.Text(&printed, problems, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return printed.String()
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// TestFile_PythonNames checks that functions that Python cannot import become tools of the caller.
func TestFile_PythonNames(t *testing.T) {
	const program = "def search(q: str) -> str:\n    \"\"\"Finds it.\"\"\"\n    return q\na = create_react_agent(model=\"gpt-4o\", tools=[search])\n"
	for name, test := range map[string]struct{ text, want string }{
		"agent.py":    {program, "module_path: agent\n"},
		"my-agent.py": {program, "the name of the file, my-agent, cannot be imported by Python"},
		"empty.py":    {strings.Replace(program, "def search", "def ", 1), "type: ClientTool"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		document, list := convert.File(convert.With(t.Context(), converters.Converters()), "langgraph", path)
		if got := document + list.Error(); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q is not in\n%s", name, test.want, got)
		}
		if problems := validateText(t, "made.yaml", document); problems != "" {
			t.Errorf("%s: %s", name, problems)
		}
	}
}

// TestFile_Addresses checks that only an address of a server becomes that of a model.
func TestFile_Addresses(t *testing.T) {
	for _, test := range []struct {
		name, text string // with ADDRESS
		kind       convert.Kind
	}{
		{"a.py", "from langchain_openai import ChatOpenAI\nllm = ChatOpenAI(model=\"gpt-4o\", base_url=\"ADDRESS\")\n", "langgraph"},
		{"A.java", "class A { ChatModel m = OpenAiChatModel.builder().modelName(\"gpt-4o\").baseUrl(\"ADDRESS\").build(); }\n", "langchain4j"},
		{"a.prompty", "---\nname: A\nmodel:\n  configuration: {type: azure_openai, azure_endpoint: \"ADDRESS\", azure_deployment: d}\n---\nsystem:\nhi\n", "promptflow"},
	} {
		for address, want := range map[string]string{
			"https://models.example/v1": "base_url: https://models.example/v1",
			"http7//l":                  `"http7//l" is not the address of a server`,
			"https://":                  `"https://" is not the address of a server`,
		} {
			path := filepath.Join(t.TempDir(), test.name)
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(test.text, "ADDRESS", address)), 0o600); err != nil {
				t.Fatal(err)
			}
			document, list := convert.File(convert.With(t.Context(), converters.Converters()), test.kind, path)
			var printed bytes.Buffer
			if err := diag.Text(&printed, list, diag.TextOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := document + printed.String(); !strings.Contains(got, want) || document == "" {
				t.Errorf("%s with %s: %q is not in\n%s", test.name, address, want, got)
			}
			if problems := validateText(t, "made.yaml", document); problems != "" {
				t.Errorf("%s with %s: %s", test.name, address, problems)
			}
		}
	}
}
