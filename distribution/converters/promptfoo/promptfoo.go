// Package promptfoo converts configurations of promptfoo: the prompts and providers become variants of an application, the tests
// rows, and the assertions metrics.
package promptfoo

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/evalset"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
)

// conversion is the conversion of one configuration.
type conversion struct {
	*evalset.Set
	root  *input.Node
	value func(name string) (*input.Node, error)
	text  func(name string) (string, error)
	roots []*input.Node // of other files
}

// Convert converts a configuration. It returns nil if nothing can be converted.
func Convert(ctx context.Context, r *input.Report, root *input.Node, in convert.Input) *document.App {
	if root.Kind != input.Map || !slices.ContainsFunc([]string{"prompts", "providers", "targets", "tests", "scenarios"}, root.Has) {
		r.Malformed(root, "not a configuration of promptfoo: it has no prompts, providers or tests")
		return nil
	}
	c := &conversion{Set: evalset.New(r, "promptfoo_app"), root: root,
		value: func(name string) (*input.Node, error) { return in.Value(ctx, name) },
		text: func(name string) (string, error) {
			file, err := in.Text(ctx, name)
			if err != nil {
				return "", err
			}
			return string(file.Text), nil
		}}
	c.App.Description = r.Text(root, "description")
	r.Skip(root, "it says where results go", "outputPath", "sharing", "writeLatestResults", "$schema", "tags", "metadata")
	if o := r.Map(root, "evaluateOptions"); o != nil {
		if n := o.Get("repeat"); n != nil {
			if c.Evaluation.Trials = r.PositiveInt(o, "repeat"); c.Evaluation.Trials > spec.MaxTrials {
				c.Evaluation.Trials = spec.MaxTrials
				r.Assumed(n, "an evaluation has at most %d trials", spec.MaxTrials)
			}
		}
		r.Skip(o, "--workers and --record decide how rows are run", "maxConcurrency", "delay", "cache",
			"showProgressBar", "timeoutMs", "maxEvalTimeMs", "generateSuggestions", "eventSource")
	}
	r.Skip(root, "--workers and --record decide how rows are run", "commandLineOptions")
	if n := root.Get("redteam"); n != nil {
		r.Unsupported(n.Use(), "redteam is not converted: attacks in the evaluation file are the counterpart")
	}
	c.prompts()
	c.providers()
	c.tests()
	app := c.Finish(root)
	for _, other := range c.roots {
		r.Rest(other)
	}
	return app
}

// list returns the elements of a value that may be a single one.
func list(n *input.Node) []*input.Node {
	if n == nil {
		return nil
	}
	if n.Kind == input.List {
		return n.Elements()
	}
	return []*input.Node{n}
}

// file returns the name of a file that a text refers to.
func file(text string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(text, "file://"); ok {
		return name, true
	}
	ext := path.Ext(text)
	known := []string{".txt", ".md", ".j2", ".json", ".yaml", ".yml", ".csv", ".jsonl", ".js", ".cjs", ".mjs", ".ts", ".py"}
	return text, !strings.ContainsAny(text, "\n{ ") && slices.Contains(known, ext)
}

// prompts reads the prompts.
func (c *conversion) prompts() {
	for _, n := range list(c.root.Get("prompts")) {
		label, raw := "", n
		if n.Kind == input.Map {
			label = c.Text(n, "label")
			raw = n.Get("raw")
			for _, key := range []string{"id", "file"} {
				if raw == nil && n.Get(key) != nil {
					raw = n.Get(key)
				}
			}
			if id := n.Get("id"); id != nil && raw != id {
				c.Skip(n, "a prompt is named by its label", "id")
			}
			if raw == nil {
				c.Malformed(n, "a prompt has no raw and no id")
				continue
			}
		}
		name, isFile := file(raw.Text)
		if !isFile {
			c.prompt(raw, label, raw.Text)
			continue
		}
		switch text, err := c.text(name); {
		case strings.ContainsAny(name, "*?"):
			c.Unsupported(raw, "the prompts %s are not read: name each file", name)
		case !slices.Contains([]string{".txt", ".md", ".j2", ".json", ".yaml", ".yml"}, path.Ext(name)):
			c.Unsupported(raw, "the prompt %s is a program; it is not converted", name)
		case err != nil:
			c.Unsupported(raw, "the prompt %s cannot be read: %s", name, err)
		case path.Ext(name) == ".txt":
			for i, part := range strings.Split(strings.ReplaceAll("\n"+text, "\r\n", "\n"), "\n---\n") {
				own := label
				if i > 0 {
					own = strings.TrimSpace(fmt.Sprintf("%s %d", label, i+1))
				}
				c.prompt(raw, own, strings.TrimSpace(part))
			}
		case path.Ext(name) == ".yaml", path.Ext(name) == ".yml":
			messages, err := c.value(name)
			if err != nil {
				c.Unsupported(raw, "the prompt %s cannot be read: %s", name, err)
				continue
			}
			c.prompt(raw, label, evalset.JSON(messages.Use()))
		default:
			c.prompt(raw, label, strings.TrimSpace(text))
		}
	}
}

// prompt adds a prompt: a text, or messages as JSON.
func (c *conversion) prompt(at *input.Node, label, text string) {
	p := evalset.Prompt{Label: label, User: text, At: at}
	var messages []struct{ Role, Content string }
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &messages) == nil {
		p.User = ""
		for i, m := range messages {
			switch {
			case m.Role == "system" || m.Role == "developer":
				p.System = strings.TrimSpace(p.System + "\n\n" + m.Content)
			case i == len(messages)-1:
				p.User = strings.TrimSpace(p.User + "\n\n" + m.Content)
			default:
				c.Assumed(at, "messages before the last one are put at the beginning of the message of the user")
				p.User = strings.TrimSpace(p.User + "\n\n" + m.Role + ": " + m.Content)
			}
		}
	} else if strings.HasPrefix(text, "[{") || strings.HasPrefix(text, "[\n") {
		c.Assumed(at, "the prompt seems to be messages as JSON, which cannot be read; it is the message of the user as it is")
	}
	c.Prompts = append(c.Prompts, p)
}

// providers reads the models.
func (c *conversion) providers() {
	key := "providers"
	if !c.root.Has(key) {
		key = "targets"
	}
	for _, n := range list(c.root.Get(key)) {
		if m, ok := c.provider(n); ok {
			c.Models = append(c.Models, m)
		}
	}
}

// requestParameters are the parameters of models that have the same name in promptfoo.
var requestParameters = []string{"temperature", "max_tokens", "max_completion_tokens", "top_p", "presence_penalty",
	"frequency_penalty", "seed"}

// provider reads a model: a text, a mapping with the key id, or a mapping of the text to its settings.
func (c *conversion) provider(n *input.Node) (m evalset.Model, ok bool) {
	id, config := n.Text, (*input.Node)(nil)
	if n.Kind == input.Map {
		if !n.Has("id") && len(n.Pairs) == 1 && n.Pairs[0].Value.Kind == input.Map {
			id, n = n.Pairs[0].Key, n.Entries()[0].Value
		} else {
			id = c.RequiredText(n, "id", "a provider")
		}
		m.Label = c.Text(n, "label")
		config = c.Map(n, "config")
	}
	if id == "" {
		return m, false
	}
	provider, name, known := modelOf(id)
	if !known {
		c.Unsupported(n, "the provider %s is no model of the language; it is not converted", id)
		n.Use()
		return m, false
	}
	parameters := &document.Block{Inline: true}
	for _, key := range requestParameters {
		v := config.Get(key)
		switch {
		case v == nil:
		case v.Kind == input.Int || v.Kind == input.Float:
			parameters.Set(key, document.Number(v.Text))
		default:
			c.Malformed(v, "%s must be a number, not %s", key, v.Describe())
		}
	}
	if config != nil {
		c.Skip(config, "keys are those of the environment", "apiKey", "apiKeyEnvar", "organization")
	}
	if provider == "mock" {
		m.ID = c.IDs.New("echo", "echo")
		rules := []*document.Block{evalset.Keys("match", "(?s)^(.*)$", "text", "$1")}
		c.App.Models = append(c.App.Models, evalset.Keys("type", "Model", "id", m.ID, "provider", "mock", "rules", rules))
	} else {
		m.ID, known = c.App.ModelFor(c.IDs, provider, name, parameters)
	}
	if !known {
		c.Assumed(n, "the provider %s is taken as openai", provider)
	}
	if address := config.Get("apiBaseUrl"); address != nil && c.IsAddress(address.Span, address.Text) {
		c.App.Models[len(c.App.Models)-1].Set("base_url", address.Text)
	}
	if m.Label == "" {
		m.Label = name
	}
	return m, true
}

// modelOf splits the name of a provider, such as openai:chat:gpt-4o.
func modelOf(id string) (provider, name string, known bool) {
	parts := strings.Split(id, ":")
	provider, rest := parts[0], parts[1:]
	for len(rest) > 1 && slices.Contains([]string{"chat", "responses", "completion", "messages", "realtime"}, rest[0]) {
		rest = rest[1:]
	}
	name = strings.Join(rest, ":")
	switch provider {
	case "openai", "anthropic", "google", "mistral", "groq":
		return provider, name, name != ""
	case "vertex":
		return "google", name, name != ""
	case "azure", "azureopenai":
		return "azure-openai", name, name != ""
	case "echo":
		return "mock", "echo", true
	}
	return "", "", false
}

// tests reads the tests and scenarios.
func (c *conversion) tests() {
	defaults := c.Map(c.root, "defaultTest")
	for _, n := range list(c.root.Get("tests")) {
		c.testOrFile(n, defaults, nil)
	}
	for _, n := range list(c.root.Get("scenarios")) {
		if c.AsMap(n, "a scenario") == nil {
			continue
		}
		for _, config := range list(n.Get("config")) {
			for _, t := range list(n.Get("tests")) {
				c.testOrFile(t, defaults, config)
			}
		}
	}
	if len(c.Evaluation.Rows) == 0 && defaults != nil {
		c.test(&input.Node{Kind: input.Map, Span: defaults.Span}, defaults, nil)
	}
}

// testOrFile reads a test, or the file with tests that a text names.
func (c *conversion) testOrFile(n, defaults, scenario *input.Node) {
	if n.Kind == input.Map && !n.Has("path") {
		c.test(n, defaults, scenario)
		return
	}
	named := n
	if n.Kind == input.Map {
		if named = n.Get("path"); named == nil {
			c.Malformed(n, "the path of the tests is empty")
			return
		}
	}
	name, _ := file(named.Text)
	switch path.Ext(name) {
	case ".csv":
		text, err := c.text(name)
		if err == nil {
			err = c.csv(named, text, defaults, scenario)
		}
		if err != nil {
			c.Unsupported(named, "the tests %s cannot be read: %s", name, err)
		}
	case ".yaml", ".yml", ".json", ".jsonl":
		tests, err := c.value(name)
		if err != nil {
			c.Unsupported(named, "the tests %s cannot be read: %s", name, err)
			return
		}
		c.roots = append(c.roots, tests)
		for _, t := range list(tests) {
			if c.AsMap(t, "a test") != nil {
				c.test(t, defaults, scenario)
			}
		}
	default:
		c.Unsupported(named, "the tests %s are not converted: they are no list, CSV, JSON or YAML", named.Describe())
	}
}

// csv reads tests in a CSV file, in which __expected has assertions.
func (c *conversion) csv(at *input.Node, text string, defaults, scenario *input.Node) error {
	records, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))).ReadAll()
	if err != nil || len(records) == 0 {
		return cmp.Or(err, errors.New("the file is empty"))
	}
	for _, record := range records[1:] {
		vars := &input.Node{Kind: input.Map, Span: at.Span}
		asserts := &input.Node{Kind: input.List, Span: at.Span}
		test := &input.Node{Kind: input.Map, Span: at.Span}
		for i, cell := range record {
			name := strings.TrimSpace(records[0][i])
			v := &input.Node{Kind: input.Text, Text: cell, Span: at.Span}
			switch {
			case strings.HasPrefix(name, "__expected"):
				if strings.TrimSpace(cell) != "" {
					asserts.Items = append(asserts.Items, shorthand(v))
				}
			case name == "__description":
				test.Pairs = append(test.Pairs, input.Pair{Key: "description", Value: v})
			case strings.HasPrefix(name, "__metadata:"):
				c.Ignored(at.Span, "the column %s of the tests is ignored: it is a note", name)
			case strings.HasPrefix(name, "__"):
				if cell != "" {
					c.Unsupported(at, "the column %s of the tests is not converted", name)
				}
			default:
				vars.Pairs = append(vars.Pairs, input.Pair{Key: name, Value: v})
			}
		}
		test.Pairs = append(test.Pairs, input.Pair{Key: "vars", Value: vars}, input.Pair{Key: "assert", Value: asserts})
		c.test(test, defaults, scenario)
	}
	return nil
}

// shorthand returns the assertion of a cell, such as "contains: Paris" or "similar(0.8): Paris".
func shorthand(cell *input.Node) *input.Node {
	scalar := func(text string) *input.Node { return &input.Node{Kind: input.Text, Text: text, Span: cell.Span} }
	made := &input.Node{Kind: input.Map, Span: cell.Span}
	kind, rest, found := strings.Cut(strings.TrimSpace(cell.Text), ":")
	kind, threshold, _ := strings.Cut(strings.TrimSuffix(kind, ")"), "(")
	switch {
	case kind == "fn" || kind == "eval":
		kind = "javascript"
	case kind == "grade":
		kind = "llm-rubric"
	case slices.Contains([]string{"is-json", "is-refusal"}, kind) && !found:
	case !found || !isAssertion(kind):
		kind, rest = "equals", cell.Text
	}
	made.Pairs = append(made.Pairs, input.Pair{Key: "type", Value: scalar(kind)})
	if rest = strings.TrimSpace(rest); rest != "" {
		value := scalar(rest)
		if strings.HasSuffix(kind, "-any") || strings.HasSuffix(kind, "-all") {
			value = &input.Node{Kind: input.List, Span: cell.Span}
			for part := range strings.SplitSeq(rest, ",") {
				value.Items = append(value.Items, scalar(strings.TrimSpace(part)))
			}
		}
		made.Pairs = append(made.Pairs, input.Pair{Key: "value", Value: value})
	}
	if threshold != "" {
		n := scalar(threshold)
		n.Kind = input.Float
		made.Pairs = append(made.Pairs, input.Pair{Key: "threshold", Value: n})
	}
	return made
}

// test adds the rows of a test: one for each combination of the values of its variables.
func (c *conversion) test(n, defaults, scenario *input.Node) {
	c.Skip(n, "it is a note", "metadata")
	vars := map[string][]*input.Node{}
	for _, from := range []*input.Node{defaults, scenario, n} {
		if v := from.Get("vars"); v != nil && v.Kind == input.Map {
			for _, p := range v.Entries() {
				vars[p.Key] = c.values(p.Value)
			}
		} else if v != nil {
			c.Unsupported(v, "vars of other files are not converted")
		}
	}
	combinations := []map[string]string{{}}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		var next []map[string]string
		for _, row := range combinations {
			for _, v := range vars[name] {
				longer := maps.Clone(row)
				longer[name] = c.varText(v)
				next = append(next, longer)
			}
		}
		if combinations = next; len(combinations) > maxRows {
			c.Unsupported(n, "the variables have more than %d combinations", maxRows)
			return
		}
	}
	var asserts []*input.Node
	for _, from := range []*input.Node{defaults, scenario, n} {
		asserts = append(asserts, list(from.Get("assert"))...)
	}
	about := c.Text(n, "description")
	for _, row := range combinations {
		at := len(c.Evaluation.Rows)
		columns := map[string]any{}
		for name, text := range row {
			columns[c.Variable(name)] = text
		}
		if about != "" {
			columns["test"] = about
		}
		c.Evaluation.Rows = append(c.Evaluation.Rows, columns)
		for _, a := range asserts {
			c.assertion(at, a, row)
		}
	}
}

// maxRows is the number of rows that one test may make.
const maxRows = 10_000

// values returns the values of a variable: several, if it is a list of scalars.
func (c *conversion) values(n *input.Node) []*input.Node {
	if n.Kind == input.List && len(n.Items) > 0 && !slices.ContainsFunc(n.Items, func(i *input.Node) bool { return i.Kind >= input.List }) {
		return n.Elements()
	}
	return []*input.Node{n}
}

// varText returns the text of a variable, which may be that of a file.
func (c *conversion) varText(n *input.Node) string {
	name, isFile := strings.CutPrefix(n.Text, "file://")
	if n.Kind != input.Text || !isFile {
		return evalset.Text(n.Use())
	}
	if !slices.Contains([]string{".txt", ".md", ".json", ".yaml", ".yml", ".csv", ".html", ".xml"}, path.Ext(name)) {
		c.Unsupported(n, "the value %s is not text; it is not converted", n.Text)
		return ""
	}
	text, err := c.text(name)
	if err != nil {
		c.Unsupported(n, "the value %s cannot be read: %s", n.Text, err)
	}
	return text
}
