package lint_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// fixFiles fixes files in place and returns the remaining diagnostics.
func fixFiles(t testing.TB, paths ...string) []lint.Result {
	t.Helper()
	changes, results, err := lint.Fix(t.Context(), lint.Finder{Paths: paths}, options())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if err := c.Write(); err != nil {
			t.Fatal(err)
		}
	}
	return results
}

const memories = "memories:\n  - {id: chat_memory}\n  - {id: chat_memory_2}\n"

func TestFix(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a key", "id: shop\ndescripton: 'it''s' # a shop\n", "id: shop\ndescription: 'it''s' # a shop\n"},
		{"a key in quotes", "id: shop\n\"descripton\": a\n", "id: shop\n\"description\": a\n"},
		{"a key behind a wider letter", "{id: 'ünïcödé 漢字', descripton: a}\n", "{id: 'ünïcödé 漢字', description: a}\n"},
		{"not a key that is there", "id: shop\ndescription: a\ndescripton: b\n", ""},
		{"one key twice misspelt: the first", "id: shop\ndescripton: a\ndescriptio: b\n", "id: shop\ndescription: a\ndescriptio: b\n"},
		{"a number as a text", "id: shop\ndescription: 010\n", "id: shop\ndescription: \"010\"\n"},
		{"a tag", "id: shop\nmodels: !inclde m.yaml\n", "id: shop\nmodels: !include m.yaml\n"},
		{"one where a list is needed", strings.Replace(valid, "inputs: [message], outputs: [reply]}", "inputs: message, outputs: 'reply'}", 1), strings.Replace(valid, "outputs: [reply]}", "outputs: ['reply']}", 1)},
		{"not a list of references", "id: shop\nmodels: assistant\n", ""},
		{"an ambiguous value", strings.Replace(valid, "provider: openai", "provider: opneai", 1), valid},
		{"the case of a type", strings.Replace(valid, "type: LLMInference", "type: 'llminference'", 1), strings.Replace(valid, "type: LLMInference", "type: 'LLMInference'", 1)},
		{"an id", broken, valid},
		{"an id of two that are near", "id: shop\n" + memories + valid[len("id: shop\n"):len(valid)-2] + ", memory: chat_memory_1}\n", ""},
		{"a type of another language", strings.Replace(valid, "message, type: ChatMessage", "message, type: 'list[string]'", 1), strings.Replace(valid, "message, type: ChatMessage", "message, type: 'list[text]'", 1)},
		{"visible only after another fix", "id: shop\nflows:\n  - id: f\n    step: [{id: e, type: Echo}]\n    variabels: [{id: a, tpye: text}]\n", "id: shop\nflows:\n  - id: f\n    steps: [{id: e, type: Echo}]\n    variables: [{id: a, type: text}]\n"},
		{"a comment that is no longer needed", "id: shop # qtype:ignore QT105\n# qtype:ignore QT202: once\n  # another\n", "id: shop\n  # another\n"},
		{"one code of a comment", "id: 42 # qtype:ignore QT105, QT202: the shop's own number\n", "id: 42 # qtype:ignore QT105: the shop's own number\n"},
		{"an ignored diagnostic", "id: shop\ndescripton: a # qtype:ignore QT103\n", ""},
		{"Windows line endings", strings.ReplaceAll(broken, "\n", "\r\n"), strings.ReplaceAll(valid, "\n", "\r\n")},
		{"a byte order mark and no end of line", "\ufeffid: shop\ndescripton: a", "\ufeffid: shop\ndescription: a"},
		{"an anchor whose alias is correct", "id: shop\nmodels: [{id: m, type: Model, provider: openai, model_id: &x opneai}, {id: n, type: Model, provider: *x}]\n", ""},
		{"an alias for a list", "id: shop\ndescription: &x v\nflows: [{id: f, inputs: *x, variables: [{id: v, type: text}]}]\n", ""},
		{"an alias", "id: &x shop\ndescription: *x\nmodels: [{id: m, type: Model, provider: *x}]\n", ""},
		{"a text with a variable", "id: shop\nmodels: [{id: m, type: Model, provider: '${X:-opneai}'}]\n", ""},
		{"invalid YAML", "id: [\ndescripton: a", ""},
		{"not UTF-8 text", "id: a\x00", ""},
		{"not a flow in place of a condition", strings.Replace(routed, "flow: reply", "then: reply", 1), routed},
		{"words of other languages in a case", strings.Replace(routed, "when: n > 1, flow: reply", "if: n > 1, then: reply", 1), routed},
		{"not a text in place of a number", strings.Replace(valid, "{type: LLMInference", "{type: LLMInference, batch_size: many", 1), ""},
		{"a key of another system", strings.Replace(prompted, "system_message", "system_prompt", 1), prompted},
		{"braces of another language of templates", placeholder("{{ name }}"), placeholder("{name}")},
		{"a placeholder", placeholder("{nmae}"), placeholder("{name}")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.text
			}
			folder(t, map[string]string{"app.yaml": c.text})
			results := fixFiles(t, "app.yaml")
			if d := cmp.Diff(c.want, testkit.ReadFile(t, "app.yaml")); d != "" {
				t.Error(d)
			}
			for _, d := range lint.Diagnostics(results) {
				if len(d.Fixes) > 0 && c.text != c.want {
					t.Errorf("not fixed: %v", d)
				}
			}
			if changes, _, err := lint.Fix(t.Context(), lint.Finder{Paths: []string{"app.yaml"}}, options()); len(changes) > 0 || err != nil {
				t.Errorf("the second run has changes: %v %v", changes, err)
			}
			if left, _ := filepath.Glob(".*"); len(left) > 0 {
				t.Errorf("temporary files: %v", left)
			}
		})
	}
}

const routed = `id: shop
flows:
  - {id: reply, variables: [{id: n, type: int}], inputs: [n], outputs: [n], steps: [{type: Echo, id: pass, inputs: [n], outputs: [n]}]}
  - id: main
    variables: [{id: n, type: int}]
    inputs: [n]
    outputs: [n]
    steps: [{type: Switch, id: choose, cases: [{when: n > 1, flow: reply}], inputs: [n], outputs: [n]}]
`

var prompted = valid[:len(valid)-2] + ", system_message: Be brief.}\n"

func placeholder(name string) string {
	return `id: greeter
flows:
  - id: greet
    variables: [{id: name, type: text}, {id: greeting, type: text}]
    inputs: [name]
    outputs: [greeting]
    steps:
      - id: write
        type: PromptTemplate
        template: |
          Dear {name},
          or rather ` + name + `!
        inputs: [name]
        outputs: [greeting]
`
}

func TestFix_IncludedFiles(t *testing.T) {
	folder(t, map[string]string{
		"a/app.yaml":    "id: a\nmodels: !include ../models.yaml\nflows: !include flows.yaml\n",
		"a/app2.yaml":   "id: a\nmodels: !include ../models.yaml\n",
		"models.yaml":   "- {id: assistant, type: Model, provider: openai, modle_id: x}\n",
		"a/flows.yaml":  "- id: f\n  variables: [{id: q, type: text}, {id: r, type: text}]\n  steps: [{id: s, type: LLMInference, model: asistant, inputs: [q], outputs: [r]}]\n",
		"../other.yaml": "- {id: assistant, type: Model, provider: openai, modle_id: x}\n",
		"b.yaml":        "id: b\nmodels: !include ../other.yaml\n",
	})
	defer os.Remove("../other.yaml")
	before := testkit.ReadFile(t, "a/flows.yaml")
	fixFiles(t, "a/app.yaml", "a/app2.yaml", "b.yaml")
	if got := testkit.ReadFile(t, "models.yaml"); !strings.Contains(got, "model_id: x") {
		t.Errorf("the form of an included file is fixed, got %s", got)
	}
	if got := testkit.ReadFile(t, "a/flows.yaml"); got != before {
		t.Errorf("references of an included file are not fixed, got %s", got)
	}
	if got := testkit.ReadFile(t, "../other.yaml"); !strings.Contains(got, "modle_id") {
		t.Errorf("files above the working directory are not fixed, got %s", got)
	}
}

// TestFix_OtherDocument checks that a fix which is refused in one document does not keep
// those of another document from being applied.
func TestFix_OtherDocument(t *testing.T) {
	const flow = "id: shop\nflows:\n  - id: main\n    variables: [{id: question, type: text}, {id: answer, type: text}]\n    inputs: [question]\n    outputs: [answer]\n    steps:\n"
	const step = "      - {type: PromptTemplate, id: %s, template: \"{question}\", inputs: [question], outputs: [%s]}\n"
	// With the fix, the second step would overwrite what the first one writes (QT917).
	harmful := testkit.WriteFile(t, "harmful.qtype.yaml", flow+fmt.Sprintf(step, "one", "answer")+fmt.Sprintf(step, "two", "answr"))
	harmless := testkit.WriteFile(t, "harmless.qtype.yaml", flow+fmt.Sprintf(step, "one", "answr"))
	fixFiles(t, harmful, harmless)
	if text, err := os.ReadFile(harmful); err != nil || !strings.Contains(string(text), "answr") {
		t.Errorf("fixed to %s, %v", text, err)
	}
	if text, err := os.ReadFile(harmless); err != nil || strings.Contains(string(text), "answr") {
		t.Errorf("not fixed: %s, %v", text, err)
	}
}

// TestFix_OneHarmful checks that a fix which causes a diagnostic keeps only itself from being
// applied.
func TestFix_OneHarmful(t *testing.T) {
	path := testkit.WriteFile(t, "app.qtype.yaml", `id: shop
models: [{type: Model, id: model, provider: mock}]
flows:
  - id: main
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [qestion]
    outputs: [anwser]
    steps:
      - {type: PromptTemplate, id: ask, template: "{quesiton}", inputs: [question], outputs: [answer]}
      - {type: LLMInference, id: reply, model: modle, inputs: [questoin], outputs: [answr]}
`)
	fixFiles(t, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"inputs: [question]\n", "{question}", "model: model, inputs: [question]", "[answr]"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestFix_Pages(t *testing.T) {
	text := "# qtype:ignore\n\n```yaml\n" + broken + "```\n\n- more\n\n  ```yml\n  id: shop # qtype:ignore QT105\n  # qtype:ignore QT105\n  flow: []\n  models: []\n  ```\n\n" + "```yaml\n" + broken + "```\n"
	folder(t, map[string]string{"page.md": text})
	fixFiles(t, "page.md")
	want := strings.NewReplacer(broken, valid, "  id: shop # qtype:ignore QT105\n  # qtype:ignore QT105\n  flow:", "  id: shop\n  flows:").Replace(text)
	if d := cmp.Diff(want, testkit.ReadFile(t, "page.md")); d != "" {
		t.Error(d)
	}
}

func TestChange_Write_KeepsModeAndLink(t *testing.T) {
	folder(t, map[string]string{"real.yaml": broken})
	if err := os.Chmod("real.yaml", 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", "app.yaml"); err != nil {
		t.Skip(err)
	}
	fixFiles(t, "app.yaml", "real.yaml")
	info, err := os.Lstat("app.yaml")
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
	info, err = os.Stat("real.yaml")
	if err != nil || info.Mode().Perm() != 0o640 || testkit.ReadFile(t, "real.yaml") != valid {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestChange_Write_Refuses(t *testing.T) {
	folder(t, map[string]string{"app.yaml": broken})
	changes, _, err := lint.Fix(t.Context(), lint.Finder{Paths: []string{"app.yaml"}}, options())
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	write(t, "app.yaml", valid+"# more\n")
	if err := changes[0].Write(); err == nil || err.Error() != "app.yaml changed on disk; not fixed" {
		t.Errorf("a changed file: %v", err)
	}
	write(t, "app.yaml", broken)
	if os.Getuid() == 0 {
		return // root may write all files
	}
	if err := os.Chmod("app.yaml", 0o400); err != nil {
		t.Fatal(err)
	}
	if err := changes[0].Write(); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a read-only file: %v", err)
	}
}

// TestChange_DiffApplies checks that git applies the diff to the result of Fix.
func TestChange_DiffApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	for _, text := range []string{broken, strings.TrimSuffix(broken, "\n"), strings.ReplaceAll(broken, "\n", "\r\n")} {
		folder(t, map[string]string{"specs/app.yaml": text})
		changes, _, err := lint.Fix(t.Context(), lint.Finder{Paths: []string{"specs/app.yaml"}}, options())
		if err != nil || len(changes) != 1 {
			t.Fatal(changes, err)
		}
		shown, masked := changes[0].Diff()
		if masked {
			t.Error("a diff without secrets is masked")
		}
		write(t, "a.diff", string(shown))
		if out, err := testkit.Command(t, git, "apply", "a.diff").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, shown)
		}
		applied := testkit.ReadFile(t, "specs/app.yaml")
		write(t, "specs/app.yaml", text)
		fixFiles(t, "specs/app.yaml")
		if d := cmp.Diff(applied, testkit.ReadFile(t, "specs/app.yaml")); d != "" {
			t.Error(d)
		}
	}
}

// TestFix_IsSafe checks for documents with random errors that fixed YAML is still
// YAML, that only fixable documents change, that the number of fixable diagnostics
// shrinks, and that a second run changes nothing.
func TestFix_IsSafe(t *testing.T) {
	folder(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(placeholder("{name}") + "memories: # of chats\n  - id: \"chat_memory\"\n    token_limit: 500\nmodels: [{id: 'assistant', type: Model, provider: openai}]\n")
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			i := rapid.IntRange(0, len(text)-2).Draw(t, "at")
			switch rapid.SampledFrom([]string{"swap", "drop", "repeat", "change"}).Draw(t, "how") {
			case "swap":
				text[i], text[i+1] = text[i+1], text[i]
			case "drop":
				text = append(text[:i:i], text[i+1:]...)
			case "repeat":
				text = append(text[:i+1:i+1], text[i:]...)
			default:
				text[i] = rapid.SampledFrom([]byte("abcxyz_ :-[]{}#'\"\n")).Draw(t, "letter")
			}
		}
		if err := os.WriteFile("app.yaml", text, 0o600); err != nil {
			t.Fatal(err)
		}
		find := lint.Finder{Paths: []string{"app.yaml"}}
		documents, _ := find.Find(t.Context())
		before := lint.Diagnostics(lint.Check(t.Context(), documents, options()))
		changes, results, err := lint.Fix(t.Context(), find, options())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if err := c.Write(); err != nil {
				t.Fatal(err)
			}
		}
		fixed, _ := os.ReadFile("app.yaml")
		var tree any
		if yaml.Unmarshal(text, &tree) == nil && yaml.Unmarshal(fixed, &tree) != nil {
			t.Fatalf("no longer YAML:\n%s\nfrom\n%s", fixed, text)
		}
		if len(changes) == 0 && string(fixed) != string(text) || len(changes) > 0 && before.Fixable() == 0 {
			t.Fatalf("%d changes", len(changes))
		}
		if again, _, _ := lint.Fix(t.Context(), find, options()); len(again) > 0 {
			text, _ := again[0].Diff()
			t.Fatalf("changes of the second run:\n%s", text)
		}
		if n := lint.Diagnostics(results).Fixable(); n > 0 && len(changes) > 0 && n >= before.Fixable() {
			t.Fatalf("%d fixable before, %d after", before.Fixable(), n)
		}
	})
}

func TestChange_Diff_HidesSecrets(t *testing.T) {
	folder(t, map[string]string{"app.yaml": "id: shop\nauths:\n  - {id: a, tpye: api_key, api_key: sk-one}\n  - id: b\n    type: api_key\n    api_key: 'sk-two'\ndescripton: a shop\n"})
	changes, _, err := lint.Fix(t.Context(), lint.Finder{Paths: []string{"app.yaml"}}, options())
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	shown, masked := changes[0].Diff()
	if !masked || strings.Contains(string(shown), "sk-") || !strings.Contains(string(shown), "***") || !strings.Contains(string(shown), "+description: a shop") {
		t.Errorf("masked: %v\n%s", masked, shown)
	}
	fixFiles(t, "app.yaml")
	if got := testkit.ReadFile(t, "app.yaml"); strings.Contains(got, "***") || !strings.Contains(got, "api_key: 'sk-two'\ndescription:") {
		t.Errorf("the file has %s", got)
	}
}
