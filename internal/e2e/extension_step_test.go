package e2e_test

import (
	"strings"
	"testing"
)

// uppercaseSpec and uppercaseStep are the files of a new type of step: a chat model
// answers within a conversation, and the answer is written in upper case.
const (
	uppercaseSpec = `package spec

// Uppercase answers in capital letters.
type Uppercase struct {
	StepBase ` + "`in:\"question: text; QT348 exactly 1\" out:\"answer: text; QT349 exactly 1; QT368 text\"`" + `
	Concurrent
	// Model is the id of the chat model to call.
	Model Ref[ModelEntity] ` + "`yaml:\"model\" jsonschema:\"required\"`" + `
	// Memory is the id of the memory that holds the conversation.
	Memory Ref[*Memory] ` + "`yaml:\"memory\"`" + `
}
`
	uppercaseStep = `package steps

import (
	"context"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// uppercase is an LLMInference whose answer is in capital letters.
type uppercase struct {
	*llmInference
}

func buildUppercase(s *spec.Uppercase, env *Env) (Runner, error) {
	r, err := buildLLMInference(&spec.LLMInference{StepBase: s.StepBase, Model: s.Model, Memory: s.Memory}, env)
	if err != nil {
		return nil, err
	}
	return &uppercase{r.(*llmInference)}, nil
}

// Process calls the model once.
func (s *uppercase) Process(ctx context.Context, row *Row, emit Emit) error {
	return s.llmInference.Process(ctx, row, func(row *Row) error {
		text, err := s.out.read(row)
		if err != nil {
			return err
		}
		s.out.write(row, strings.ToUpper(text.(string)))
		return emit(row)
	})
}
`
	// byRolePolicy is the file of a new policy, which evicts messages that are not a
	// prefix of the window.
	byRolePolicy = `package window

import (
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// lastTokensByRole keeps the newest messages of each role within a number of tokens.
type lastTokensByRole struct {
	KeepAll
	max int
}

func newLastTokensByRole(l Limits) Policy { return &lastTokensByRole{max: l.int("max_tokens_by_role")} }

func (p *lastTokensByRole) Evict(v *View, _, _ int) Eviction {
	used := map[chat.Role]int{}
	var leave []int
	for i := len(v.Entries) - 1; i >= 0; i-- {
		e := v.Entries[i]
		if used[e.Message.Role] += e.Tokens; used[e.Message.Role] > p.max {
			leave = append([]int{i}, leave...)
		}
	}
	return EvictIndexes(leave)
}

func (p *lastTokensByRole) Usage(_, tokens int) (int, int, store.Unit) { return tokens, 0, store.InTokens }
`
	uppercaseApp = `id: shop
models:
  - {type: Model, id: writer, provider: mock, rules: [{match: "^(.*)$", text: "you wrote $1"}]}
  - {type: Model, id: other, provider: mock}
memories:
  - {id: chat, policy: last_n_tokens_by_role, max_tokens_by_role: 1000}
flows:
  - id: main
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: Uppercase, id: shout, model: writer, memory: chat, concurrency_config: {num_workers: 4}, inputs: [question], outputs: [answer]}
`
)

// TestExtension_StepAndPolicy adds a type of step and a memory policy to a copy of the
// module, each by one declaration, one file and one line in a table, as CONTRIBUTING.md
// describes. Before they are complete tests of the module fail; then the whole program
// treats them as its own.
func TestExtension_StepAndPolicy(t *testing.T) {
	c := newTree(t)
	expectFailure := func(pkg, test, want string) {
		t.Helper()
		if out, err := c.run("go", "test", pkg, "-run", test); err == nil || !strings.Contains(out, want) {
			t.Errorf("go test %s -run %s: %v, want %q in\n%s", pkg, test, err, want, out)
		}
	}
	// The declarations alone.
	c.write("spec/uppercase.go", uppercaseSpec)
	c.insert("spec/union.go", "of[VectorSearch](", `of[Uppercase]("Uppercase"), `)
	c.insert("spec/policy.go", "		{Name: PolicyUnbounded", `		{Name: "last_n_tokens_by_role", Doc: "the newest messages of each role", Limits: []PolicyLimit{
			{Key: "max_tokens_by_role", Unit: UnitTokens, Stricter: LowerIsStricter, Doc: "the maximum number of tokens of one role"},
		}},
`)
	c.insert("spec/memory.go", "	// Tokenizer counts", "	// MaxTokensByRole is for the policy last_n_tokens_by_role: the maximum number of tokens of one role.\n	MaxTokensByRole int `yaml:\"max_tokens_by_role\" validate:\"gt=0\"`\n")
	expectFailure("./validate", "TestSignatureCodes", "QT348 Uppercase inputs: count")
	expectFailure("./memory", "Polic", "last_n_tokens_by_role")
	expectFailure("./internal/schemagen", "Schema", "schema.json")
	// The behavior.
	c.write("steps/uppercase.go", uppercaseStep)
	c.insert("steps/build.go", "	return table\n", "	add(builderFor(buildUppercase))\n")
	c.write("internal/memory/window/policy_last_n_tokens_by_role.go", byRolePolicy)
	c.insert("internal/memory/window/policies.go", "		spec.PolicyUnbounded:", "		\"last_n_tokens_by_role\": {Build: newLastTokensByRole},\n")
	c.insert("validate/testdata/codes.txt", "QT350 ", "QT348 Uppercase inputs: count\nQT349 Uppercase outputs: count\n")
	c.insert("validate/testdata/codes.txt", "QT370 ", "QT368 Uppercase outputs: type\n")
	c.mustRun("go", "generate", "./internal/schemagen")
	c.mustRun("go", "test", "./validate", "-run", "TestSignatureCodes|TestEveryRule|TestRules")
	c.mustRun("go", "build", "-o", "qtype", "./cmd/qtype")
	c.write("app/shop.qtype.yaml", uppercaseApp)
	c.write("app/changed.qtype.yaml", strings.NewReplacer("model: writer", "model: other", "by_role: 1000", "by_role: 10").Replace(uppercaseApp))
	c.write("app/wrong.qtype.yaml", strings.NewReplacer("outputs: [answer]}", "outputs: [answer, question], cache_config: {version: \"1\"}}", "by_role: 1000", "by_role: 0").Replace(uppercaseApp))
	c.write("app/tight.qtype.yaml", strings.Replace(uppercaseApp, "by_role: 1000", "by_role: 12", 1))
	c.write("app/budget.qtype.yaml", strings.Replace(uppercaseApp, "    inputs: [question]", "    budget: {calls: 2}\n    inputs: [question]", 1))
	c.write("app/rows.jsonl", `{"session":"a","question":"one"}
{"session":"b","question":"two"}
{"session":"a","question":"three"}
{"session":"a","question":"four"}
`)
	c.write("app/talk.jsonl", `{"role":"user","content":"one two three four five six seven eight nine ten eleven twelve"}
{"role":"assistant","content":"short"}
{"role":"user","content":"next"}
`)
	for _, step := range []struct {
		name string
		args []string
		want []string
	}{
		{"valid", []string{"validate", "app/shop.qtype.yaml"}, []string{"1 warning in 1 file"}},
		{"demands, limits and cache key", []string{"validate", "app/wrong.qtype.yaml"}, []string{
			`step "shout" (Uppercase) needs exactly 1 output, has 2`, "QT349", "max_tokens_by_role", "QT916"}},
		{"rows of a session in order", []string{"run", "app/shop.qtype.yaml", "-I", "app/rows.jsonl", "--session-column", "session", "--ephemeral"}, []string{
			"YOU WROTE ONE", "YOU WROTE TWO", "YOU WROTE THREE", "YOU WROTE FOUR"}},
		{"budget", []string{"run", "app/budget.qtype.yaml", "-I", "app/rows.jsonl", "--session-column", "session", "--ephemeral"}, []string{"budget"}},
		{"schema", []string{"schema"}, []string{`"Uppercase"`, "last_n_tokens_by_role", "max_tokens_by_role"}},
		{"diagram", []string{"visualize", "app/shop.qtype.yaml"}, []string{"shout", "writer", "chat", "last_n_tokens_by_role · 1,000 tokens"}},
		{"diff", []string{"diff", "app/shop.qtype.yaml", "app/changed.qtype.yaml"}, []string{"shout", "model", "max_tokens_by_role", "fewer tokens"}},
		{"replay", []string{"memory", "replay", "app/tight.qtype.yaml", "--memory", "chat", "--in", "app/talk.jsonl", "--format", "json"}, []string{
			`"evicted":[{"role":"user","content":"one two`, `"content":"short"`}},
	} {
		out, _ := c.run("./qtype", step.args...)
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: qtype %s: want %q in\n%s", step.name, strings.Join(step.args, " "), want, out)
			}
		}
	}
	c.testHover()
}

// testHover checks that the language server of the copy describes the new step.
func (c tree) testHover() {
	c.t.Helper()
	c.write("internal/lsp/uppercase_test.go", `package lsp

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

func TestUppercaseIsDescribed(t *testing.T) {
	schema, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLanguage(nil, string(schema), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := l.structs[reflect.TypeFor[spec.Uppercase]()]
	if s == nil || s.tag != "Uppercase" || !strings.Contains(s.doc, "capital letters") || s.byName["memory"] == nil {
		t.Errorf("the language server has %+v", s)
	}
}
`)
	c.mustRun("go", "test", "./internal/lsp", "-run", "TestUppercaseIsDescribed")
}
