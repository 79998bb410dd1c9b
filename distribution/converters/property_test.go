package converters_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/distribution/converters"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/diag"
)

func convertText(t testing.TB, kind convert.Kind, text string) (string, diag.List) {
	t.Helper()
	name := "file.yaml"
	if kind == convert.LangChain4j {
		name = "File.java"
	}
	path := testkit.WriteFile(t, name, text)
	return convert.File(convert.With(t.Context(), converters.Converters()), kind, path)
}

// TestRules checks that the wrong example of each code is reported with the code,
// and the right one is not reported.
func TestRules(t *testing.T) {
	for _, rule := range convert.Rules() {
		for _, example := range []struct {
			text  string
			wrong bool
		}{{rule.Wrong, true}, {rule.Right, false}} {
			kind := convert.XFlow
			if strings.HasPrefix(example.text, "memory_config") {
				kind = convert.AIRefinery
			}
			_, list := convertText(t, kind, example.text)
			switch {
			case example.wrong && (len(list) != 1 || list[0].Code != rule.Code):
				t.Errorf("%s: diagnostics of the wrong example: %v", rule.Code, list)
			case !example.wrong && len(list) > 0:
				t.Errorf("%s: diagnostics of the right example: %v", rule.Code, list)
			}
		}
		if rule.Title == "" || rule.Doc == "" {
			t.Errorf("%s has no title or no description", rule.Code)
		}
	}
}

// drawState draws a state of a workflow with random transitions.
func drawState(t *rapid.T, name string, all []string) map[string]any {
	to := func(s map[string]any) map[string]any {
		switch rapid.IntRange(0, 5).Draw(t, "how") {
		case 0:
			s["end"] = true
		case 1: // neither
		default:
			s["transition"] = rapid.SampledFrom(all).Draw(t, "to")
		}
		return s
	}
	condition := func() string {
		return rapid.SampledFrom([]string{
			`${ .a == "x" }`, `${ .n > 3 }`, `${ .b }`, `${ .b | not }`, `${ .rec.deep.text != null }`, `${ .list | length > 1 }`,
			`${ any(.list[]; .price > 2) }`, `${ (.m // 0) < 5 and .a != "y" }`, `${ .out == null or .flag }`, `${ .nope | group_by(.x) }`,
			`${ .a | IN("x", "y") }`, `${ .list | sort_by(.price) | .[0].price > 1 }`, `${ .tags | index("v") }`, `${ .grid[0][1] > 1 }`, `${ fn:many }`, `${ $CONST.limit < .n }`,
			`${ [.flag, .b] | all }`, `${ .a[0:1] == "x" }`, `${ ."x-y" == 1 }`, `${ .len > 1 }`, `${ [.list[].price] | add > 3 }`, ``, `# nothing`, `${ . }`, `${ $agentOutcome.returnValues != null }`,
		}).Draw(t, "condition")
	}
	s := map[string]any{"name": name, "type": rapid.SampledFrom([]string{"inject", "aiagent", "switch", "sleep", "operation", "callback", "parallel", "foreach"}).Draw(t, "type")}
	switch s["type"] {
	case "inject":
		s["data"] = map[string]any{rapid.SampledFrom([]string{"a", "out", "x-y", "if", "len", "é", "S1", "practice"}).Draw(t, "key"): rapid.SampledFrom([]any{"text", `${ .a }`, `${ "\(.n)!" }`, 3, 2.5, true, nil,
			[]any{[]any{1}}, []any{"a", nil}, []any{"a"}, `${ .list | map(.name) }`, `${ [.list[] | {price, n: .name}] }`, map[string]any{"a b": []any{[]any{1}}, "c": "${X} $"}, `${ $CONST }`, `${ $CONST.names }`}).Draw(t, "value")}
	case "switch":
		var cases []any
		for range rapid.IntRange(0, 3).Draw(t, "cases") {
			cases = append(cases, to(map[string]any{"condition": condition()}))
		}
		s["dataConditions"] = cases
		if rapid.Bool().Draw(t, "default") {
			s["defaultCondition"] = to(map[string]any{})
		}
	case "aiagent":
		s["aiModel"], s["agentName"] = "gpt-4o", name
		s["userMessage"] = rapid.SampledFrom([]string{"hello", `${ .a }`, `Say ${ .rec.deep.text } and ${ .m // 1 }`, `${ .list | map(.price) | tojson }`}).Draw(t, "say")
		if rapid.Bool().Draw(t, "output") {
			s["output"] = map[string]any{"type": "object", "properties": map[string]any{
				"out": map[string]any{"type": "string"}, "flag": map[string]any{"type": "boolean"}, "n": map[string]any{"type": "number"}}, "required": []string{"flag", "n"}}
			if name := rapid.SampledFrom([]string{"", "out", "a", "len", "x y"}).Draw(t, "field"); name != "" {
				s["output"].(map[string]any)["properties"].(map[string]any)[name] = rapid.SampledFrom([]map[string]any{
					{"type": "array", "items": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}, {"$ref": "#/properties/flag"}, {"$ref": "#"},
					{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "null"}}}, {"type": "array", "items": map[string]any{"type": []any{"string", "null"}}},
					{"allOf": []any{map[string]any{"properties": map[string]any{"z": map[string]any{"type": "string"}}}}}, {"type": "object"}, {"enum": []any{1, 2}}, {}}).Draw(t, "schema")
			}
		}
		if rapid.Bool().Draw(t, "memory") {
			s["memory"] = map[string]any{"memoryId": "m", "maxMessages": 3}
		}
		var cases []any
		for range rapid.IntRange(0, 2).Draw(t, "outcomes") {
			cases = append(cases, to(map[string]any{"condition": condition()}))
		}
		s["agentOutcomes"] = cases
	}
	if s["type"] != "switch" {
		to(s)
		if rapid.IntRange(0, 3).Draw(t, "catches") == 0 {
			s["onErrors"] = []any{to(map[string]any{"errorRef": "E"})}
		}
	}
	drawActions(t, s)
	return s
}

// drawActions adds what a state that calls functions has.
func drawActions(t *rapid.T, s map[string]any) {
	path := rapid.SampledFrom([]string{`${ .a }`, `${ .out }`, `${ .list }`, `${ .flag }`, `${ .fresh }`, `${ .x.y }`, `.n`})
	action := func() map[string]any {
		ref := map[string]any{"refName": rapid.SampledFrom([]string{"f", "g", "many", "len"}).Draw(t, "function")}
		if rapid.Bool().Draw(t, "arguments") {
			ref["arguments"] = map[string]any{rapid.SampledFrom([]string{"x", "a", "a b"}).Draw(t, "argument"): rapid.SampledFrom([]any{`${ .a }`, `${ .rec }`, `${ .list }`, 3, nil,
				`${ "\(.n)!" }`, []any{1, 2}, map[string]any{"k": `${ .flag }`}}).Draw(t, "value")}
		}
		a := map[string]any{"functionRef": ref}
		if rapid.Bool().Draw(t, "filtered") {
			filter := map[string]any{"toStateData": path.Draw(t, "to")}
			if rapid.Bool().Draw(t, "part") {
				filter["results"] = `${ .part }`
			}
			a["actionDataFilter"] = filter
		}
		if rapid.IntRange(0, 3).Draw(t, "when") == 0 {
			a["condition"] = rapid.SampledFrom([]string{`${ .flag }`, `${ .a == "x" }`, `${ .list[0].price > 2 }`}).Draw(t, "condition")
		}
		return a
	}
	actions := func() []any {
		var all []any
		for range rapid.IntRange(0, 2).Draw(t, "actions") {
			all = append(all, action())
		}
		return all
	}
	switch s["type"] {
	case "operation":
		s["actions"] = actions()
	case "callback":
		s["action"], s["eventRef"] = action(), "answered"
		if rapid.Bool().Draw(t, "event") {
			s["eventDataFilter"] = map[string]any{"toStateData": path.Draw(t, "to"), "data": `${ .part }`}
		}
	case "parallel":
		s["branches"] = []any{map[string]any{"name": "one", "actions": actions()}, map[string]any{"name": "two", "actions": actions()}}
	case "foreach":
		s["inputCollection"] = rapid.SampledFrom([]any{`${ .list }`, `${ .names }`, `${ [1, 2] }`, `${ .a }`}).Draw(t, "from")
		s["iterationParam"] = rapid.SampledFrom([]string{"item", "element", "x-y"}).Draw(t, "item")
		s["actions"] = actions()
		if rapid.Bool().Draw(t, "collects") {
			s["outputCollection"] = path.Draw(t, "to")
		}
	}
}

// TestFile_RandomWorkflow checks that any graph of states, also with cycles, is
// converted to a document that is valid without warnings.
func TestFile_RandomWorkflow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var names []string
		for i := range rapid.IntRange(1, 6).Draw(rt, "states") {
			names = append(names, fmt.Sprintf("S%d", i))
		}
		states := []any{}
		for _, name := range names {
			states = append(states, drawState(rt, name, names))
		}
		text, err := json.MarshalIndent(map[string]any{"id": "w", "start": "S0", "states": states, "constants": map[string]any{"limit": 3, "names": []any{"x", "y"}},
			"functions": []any{map[string]any{"name": "many", "type": "expression", "operation": ".list | length > 2"}}}, "", "  ")
		if err != nil {
			rt.Fatal(err)
		}
		document, _ := convertText(t, convert.XFlow, string(text))
		if document == "" {
			rt.Fatalf("no document for\n%s", text)
		}
		if problems := validateText(t, "made.yaml", document); problems != "" {
			rt.Fatalf("%s\nin\n%s\nconverted from\n%s", problems, document, text)
		}
	})
}

// TestFile_RandomProgram checks that the lines of programs in any order, with some left out, give a
// document that is valid without warnings, or none.
func TestFile_RandomProgram(t *testing.T) {
	for _, kind := range []convert.Kind{convert.LangChain4j, convert.LangGraph} {
		var lines []string
		files, err := filepath.Glob(filepath.Join("testdata", string(kind), "*"))
		testkit.Must(t, err)
		for _, path := range files {
			if text, err := os.ReadFile(path); err == nil && !strings.Contains(path, ".golden") {
				lines = append(lines, strings.Split(string(text), "\n")...)
			}
		}
		rapid.Check(t, func(rt *rapid.T) {
			from := rapid.IntRange(0, len(lines)-1).Draw(rt, "from")
			picked := slices.Clone(lines[from:min(len(lines), from+rapid.IntRange(1, 60).Draw(rt, "count"))])
			for range rapid.IntRange(0, 6).Draw(rt, "changes") {
				i, j := rapid.IntRange(0, len(picked)-1).Draw(rt, "i"), rapid.IntRange(0, len(lines)-1).Draw(rt, "j")
				picked[i] = lines[j]
			}
			text := strings.Join(picked, "\n")
			document, list := convertText(t, kind, text)
			if document == "" && list.Errors() == 0 {
				rt.Fatalf("no document and no error for\n%s", text)
			}
			if document == "" {
				return
			}
			if problems := validateText(t, "made.yaml", document); problems != "" {
				rt.Fatalf("%s\nin\n%s\nconverted from\n%s", problems, document, text)
			}
		})
	}
}

// FuzzConvert checks that no text makes the converter panic, and that its documents
// are valid.
func FuzzConvert(f *testing.F) {
	for _, pattern := range []string{"testdata/xflow/*.yaml", "testdata/airefinery/*.yaml", "testdata/*/*.json", "testdata/langchain4j/*", "testdata/langgraph/*.py"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for i, path := range files {
			if !testkit.InCI() && i%4 != 0 { // each file takes as long as it has formats to be tried
				continue
			}
			if text, err := os.ReadFile(path); err == nil && !strings.Contains(path, ".golden") {
				f.Add(text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range convert.Kinds() {
			document, list := convertText(t, kind, string(text))
			if document == "" && list.Errors() == 0 {
				t.Errorf("no document and no error: %v", list)
			}
			if document == "" {
				continue
			}
			if problems := validateText(t, "made.yaml", document); strings.Contains(problems, "error[") {
				t.Errorf("%s\nof\n%s", problems, document)
			}
		}
	})
}
