package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// tree is a temporary copy of the module, in which a test extends the language as
// CONTRIBUTING.md describes.
type tree struct {
	t      *testing.T
	folder string
}

// newTree copies the module. The tests that compile a copy run in CI only.
func newTree(t *testing.T) tree {
	t.Helper()
	if os.Getenv("QTYPE_CI") == "" {
		t.Skip("compiles a copy of the module; set QTYPE_CI to run it")
	}
	t.Setenv("GOFLAGS", "-trimpath -vet=off") // the copy shares the build cache with later runs; vet would check all dependencies
	tracked, err := testkit.Command(t, "git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	c := tree{t, t.TempDir()}
	for path := range strings.Lines(string(tracked)) {
		path = strings.TrimSpace(path)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // deleted but not committed
		}
		c.write(path, string(text))
	}
	return c
}

func (c tree) write(path, text string) {
	c.t.Helper()
	path = filepath.Join(c.folder, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// insert adds a text before the first occurrence of another one in a file.
func (c tree) insert(path, before, text string) {
	c.t.Helper()
	old, err := os.ReadFile(filepath.Join(c.folder, path))
	if err != nil {
		c.t.Fatal(err)
	}
	start, end, found := strings.Cut(string(old), before)
	if !found {
		c.t.Fatalf("%s has no %q", path, before)
	}
	c.write(path, start+text+before+end)
}

// run runs a command in the copy and returns its output, standard error included.
func (c tree) run(name string, args ...string) (string, error) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir = c.folder
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustRun is run for commands that must succeed.
func (c tree) mustRun(name string, args ...string) string {
	c.t.Helper()
	out, err := c.run(name, args...)
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// A provider is one row and one builder: without the builder or the docs a test
// fails, with them the whole program knows the provider.
func TestExtension_Provider(t *testing.T) {
	c := newTree(t)
	c.insert("spec/provider.go", "\t\t{\n\t\t\tName: \"google-ai\"", `		{
			Name: "deepseek", Doc: "DeepSeek's service", Client: NativeClient, ModelIDRequired: true, Tools: true,
			Key: ServiceKey, KeyEnv: []string{"DEEPSEEK_API_KEY"}, Auths: keys,
			BaseURL: "https://api.deepseek.com/v1", BaseURLDoc: "the address before `+"`/chat/completions`"+`",
		},
`)
	expectFailure := func(pkg, want string) {
		t.Helper()
		if out, err := c.run("go", "test", pkg); err == nil || !strings.Contains(out, want) {
			t.Errorf("go test %s: %v, want %q in\n%s", pkg, err, want, out)
		}
	}
	expectFailure("./distribution/model/providers", "deepseek: client kind 1, but builder: false")
	c.insert("internal/model/provider/builders.go", "\t\t\"google-ai\":", "\t\t\"deepseek\":  {Chat: plain(openai.New)},\n")
	expectFailure("./distribution/model/providers", "docs/models.md is out of date")
	expectFailure("./internal/schemagen", "schema.json")
	c.mustRun("go", "test", "./distribution/model/providers", "-run", "TestDocs", "-update")
	c.mustRun("go", "generate", "./internal/schemagen")
	c.mustRun("go", "test", "./distribution/model/providers", "./internal/schemagen")

	c.write("app/shop.qtype.yaml", `id: shop
models:
  - {type: Model, id: writer, provider: deepseek, model_id: deepseek-v4-flash, offline: practice}
  - {type: Model, id: practice, provider: mock}
flows:
  - id: main
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: writer, inputs: [question], outputs: [answer]}]
`)
	c.write("app/wrong.qtype.yaml", "- {type: Model, id: writer, provider: deepsek, model_id: deepseek-v4-flash}\n")
	c.mustRun("go", "build", "-o", "qtype", "./cmd/qtype")
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"validate", "app/shop.qtype.yaml"}, "is valid"},
		{[]string{"validate", "app/wrong.qtype.yaml"}, `did you mean "deepseek"?`},
		{[]string{"run", "app/shop.qtype.yaml", "-i", `"Hi"`, "--ephemeral"}, "[mock] I received 1 message"},
		{[]string{"schema"}, `"deepseek"`},
		{[]string{"visualize", "app/shop.qtype.yaml"}, "deepseek · deepseek-v4-flash"},
	} {
		if out, _ := c.run("./qtype", step.args...); !strings.Contains(out, step.want) {
			t.Errorf("qtype %s: want %q in\n%s", strings.Join(step.args, " "), step.want, out)
		}
	}
}
