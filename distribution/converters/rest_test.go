package converters_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/distribution/converters"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/diag"
)

// unknown is a name that no sample has.
const unknown = "zz_unknown"

// TestFile_NothingLost changes each value of the samples, and adds a key to each of their mappings:
// the document or the report must differ, and the report or the document must name the key.
func TestFile_NothingLost(t *testing.T) {
	for _, kind := range []convert.Kind{convert.AIRefinery, convert.XFlow, convert.PromptFlow, convert.LangGraph, convert.PromptFoo, convert.OpenAIEvals} {
		for _, path := range append(samples(t, kind, ".yaml", ".yml", ".json"), evaluations(t, kind)...) {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(path)
				testkit.Must(t, err)
				loseNothing(t, kind, path, string(text))
			})
		}
	}
	for _, path := range samples(t, convert.PromptFlow, ".prompty") {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(path)
			testkit.Must(t, err)
			loseNothing(t, convert.PromptFlow, path, string(text))
		})
	}
}

// TestFile_NothingLostOfPrograms adds a setting, which does not exist, to each call and annotation of the
// samples that is converted: the report must name it.
func TestFile_NothingLostOfPrograms(t *testing.T) {
	for _, c := range []struct {
		kind   convert.Kind
		ext    string
		places string // what a setting is added after
		added  string
	}{
		{convert.LangChain4j, ".java", `(?:ChatModel|Memory|AiServices)\b[^;]*?\.builder\([^()]*\)`, "." + unknown + "(1)"},
		{convert.LangChain4j, ".java", `@(?:SystemMessage|UserMessage|Tool|AiService|RegisterAiService|V)\(`, unknown + " = 1, "},
		{convert.LangGraph, ".py", `\b(?:ChatOpenAI|init_chat_model|create_agent|create_react_agent|StateGraph|trim_messages|bind_tools|with_structured_output|add_node|compile|Field|SystemMessage|llm\.invoke)\(`, unknown + "=1, "},
	} {
		for _, path := range samples(t, c.kind, c.ext) {
			if filepath.Base(path) == "wrong.py" { // only the first of its calls of trim_messages is converted, which is reported
				continue
			}
			text, err := os.ReadFile(path)
			testkit.Must(t, err)
			for _, at := range regexp.MustCompile(c.places).FindAllIndex(text, -1) {
				changed := string(text[:at[1]]) + c.added + string(text[at[1]:])
				file := testkit.WriteFile(t, filepath.Base(path), changed)
				if document, list := convert.File(convert.With(t.Context(), converters.Converters()), c.kind, file); document != "" && !strings.Contains(outcome("", list), unknown) {
					t.Errorf("%s: %s is not reported after %s", path, unknown, text[at[0]:at[1]])
				}
			}
		}
	}
}

// samples returns the files of a kind in testdata that have one of the extensions.
func samples(t *testing.T, kind convert.Kind, extensions ...string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", string(kind), "*"))
	testkit.Must(t, err)
	return slices.DeleteFunc(all, func(path string) bool {
		return strings.Contains(path, ".golden.") || !slices.Contains(extensions, filepath.Ext(path))
	})
}

// unread are places whose change must make no difference: what branches.yaml writes again before it is read, the name of an only
// variant, the package of a class, and a mapping that with two keys is no provider any more.
var unread = regexp.MustCompile(`^/states/1/data/r$|^/run/name$|^/(providers|targets)/0(/[^/]+)?/label$|/class$|^/providers/0$`)

// evaluations returns the configurations of evaluations that package evals has.
func evaluations(t *testing.T, kind convert.Kind) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.yaml", "*.json", "registry/evals/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("evals/testdata", string(kind), pattern))
		testkit.Must(t, err)
		all = append(all, found...)
	}
	return all
}

// loseNothing checks a sample, whose text is YAML or has YAML between two lines ---.
func loseNothing(t *testing.T, kind convert.Kind, path, text string) {
	t.Helper()
	head, rest := text, ""
	if filepath.Ext(path) == ".prompty" {
		head, rest, _ = strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---")
	}
	root := parse(t, head)
	if root == nil {
		return // what cannot be read is reported
	}
	folder := t.TempDir()
	testkit.Must(t, os.CopyFS(folder, os.DirFS(filepath.Dir(path))))
	at := filepath.Join(folder, filepath.Base(path))
	run := func() (text string, list diag.List) {
		whole := dump(t, root)
		if rest != "" {
			whole = "---\n" + whole + "---" + rest
		}
		testkit.Must(t, os.WriteFile(at, []byte(whole), 0o600))
		app, evaluation, list := convert.Files(convert.With(t.Context(), converters.Converters()), kind, at)
		if evaluation != nil {
			app += evaluation.YAML("app.yaml", "rows.jsonl") + evaluation.Lines()
		}
		return app, list
	}
	document, list := run()
	before := outcome(document, list)
	if document == "" {
		return // what cannot be converted at all is reported
	}
	shift := 0
	if rest != "" {
		shift = 1 // the line ---
	}
	isReported := func(n *yaml.Node) bool {
		if n.Value == "$schema" { // it has no other meaning than the kind
			return true
		}
		width := 0
		if n.Kind == yaml.ScalarNode { // a diagnostic may be about a part of a text
			width = len(n.Value) + 1
		}
		return slices.ContainsFunc(list, func(d diag.Diagnostic) bool {
			at := d.Span.Start
			return at.Line == n.Line+shift && at.Column >= n.Column && at.Column <= n.Column+width
		})
	}
	visit(root.Content[0], "", isReported, func(n *yaml.Node, where string) {
		old, content := *n, n.Content
		switch {
		case n.Kind == yaml.ScalarNode && old.Tag != "!!null":
			n.Value, n.Tag, n.Style = "zz-"+old.Value, "!!str", yaml.DoubleQuotedStyle
			if outcome(run()) == before && !unread.MatchString(where) {
				t.Errorf("%s: another value than %q changes neither the document nor the report", where, old.Value)
			}
		case n.Kind == yaml.MappingNode:
			n.Content = append(slices.Clone(content), &yaml.Node{Kind: yaml.ScalarNode, Value: unknown}, &yaml.Node{Kind: yaml.ScalarNode, Value: "1", Tag: "!!int"})
			if document, list := run(); document != "" && !strings.Contains(outcome(document, list), unknown) && !unread.MatchString(where) {
				t.Errorf("%s: the key %s is neither in the document nor in the report", where, unknown)
			}
		}
		*n = old
	})
}

// parse returns a tree with the positions in the text that dump writes; nil if it is not YAML.
func parse(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var written, root yaml.Node
	if yaml.Unmarshal([]byte(text), &written) != nil {
		return nil
	}
	testkit.Must(t, yaml.Unmarshal([]byte(dump(t, &written)), &root))
	return &root
}

func dump(t *testing.T, root *yaml.Node) string {
	t.Helper()
	text, err := yaml.Dump(root, yaml.WithV3Defaults())
	testkit.Must(t, err)
	return string(text)
}

// outcome returns what a user gets, without positions.
func outcome(document string, list diag.List) string {
	for _, d := range list {
		document += d.Code + " " + d.Message + "\n"
	}
	return document
}

// visit calls a function for each value that is not reported, with its path. An alias is not followed.
func visit(n *yaml.Node, where string, isReported func(*yaml.Node) bool, do func(n *yaml.Node, where string)) {
	do(n, where)
	for i, child := range n.Content {
		name := fmt.Sprint(i)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 || isReported(n.Content[i-1]) {
				continue
			}
			name = n.Content[i-1].Value
		}
		if !isReported(child) {
			visit(child, where+"/"+name, isReported, do)
		}
	}
}
