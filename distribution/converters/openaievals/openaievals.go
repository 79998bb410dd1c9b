// Package openaievals converts evals of OpenAI: those of the Evals API with their runs, as JSON, and those of the registry of OpenAI Evals.
package openaievals

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/evalset"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// conversion is the conversion of one eval.
type conversion struct {
	*evalset.Set
	root  *input.Node
	value func(name string) (*input.Node, error)
	rows  *input.Node   // the source of the items: that of the first run that has rows
	items []*input.Node // of the rows
	of    []*input.Node // what their places name: {item: …} of the API, and the samples of the registry
}

// Convert converts an eval. It returns nil if nothing can be converted.
func Convert(ctx context.Context, r *input.Report, root *input.Node, in convert.Input) *document.App {
	c := &conversion{Set: evalset.New(r, "eval_app"), root: root}
	c.value = func(name string) (*input.Node, error) { return in.Within("evals").Value(ctx, name) }
	switch {
	case root.Kind != input.Map:
		r.Malformed(root, "not an eval: expected a mapping, not %s", root.Describe())
		return nil
	case root.Has("testing_criteria") || root.Has("eval"):
		return c.api()
	}
	return c.registry()
}

// api converts an eval of the Evals API: the eval itself, with data_source or runs beside its keys, or {eval: …, runs: […]}.
func (c *conversion) api() *document.App {
	eval := c.root
	if inner := c.Map(c.root, "eval"); inner != nil {
		eval = inner
	}
	c.App.Description = c.Text(eval, "name")
	for _, n := range []*input.Node{eval, c.root} {
		c.Skip(n, "it describes the eval", "id", "object", "created_at", "metadata", "shared_with_openai")
	}
	if config := c.Map(eval, "data_source_config"); config != nil {
		if kind := c.Text(config, "type"); kind != "custom" {
			c.Unsupported(config.Get("type"), "the rows of %s are at OpenAI: export them, and pass them by --data", kind)
		}
		c.Skip(config, "the rows have the types of the flow", "item_schema", "schema", "include_sample_schema", "metadata")
	}
	var runs []*input.Node
	c.Nested = true
	for _, from := range slices.Compact([]*input.Node{c.root, eval}) {
		if n := c.Map(from, "run"); n != nil {
			runs = append(runs, n)
		}
		runs = append(runs, c.List(from, "runs")...)
		if from.Get("data_source") != nil && !slices.Contains(runs, from) {
			runs = append(runs, from)
		}
	}
	for _, run := range runs {
		c.run(run)
	}
	for i, item := range c.items {
		row := map[string]any{}
		c.columns(row, "", item)
		c.Evaluation.Rows = append(c.Evaluation.Rows, row)
		for _, g := range c.List(eval, "testing_criteria") {
			if c.AsMap(g, "a grader") != nil {
				c.grader(i, g)
			}
		}
	}
	if len(c.items) == 0 {
		for _, g := range c.List(eval, "testing_criteria") {
			c.Unsupported(g, "the grader is not converted: the file has no rows for which it could be made")
		}
	}
	return c.Finish(c.root)
}

// columns adds the values of an item to a row, also those within others: a.b.
func (c *conversion) columns(row map[string]any, before string, item *input.Node) {
	for _, p := range item.Entries() {
		row[c.Variable(before+p.Key)] = evalset.Text(p.Value.Use())
		if p.Value.Kind == input.Map {
			c.columns(row, before+p.Key+".", p.Value)
		}
	}
}

// run reads a run: its model, its messages and, of the first one, its rows.
func (c *conversion) run(run *input.Node) {
	source := c.Map(run, "data_source")
	if source == nil {
		return
	}
	c.Skip(run, "it describes a run", "id", "object", "status", "created_at", "report_url", "eval_id", "metadata")
	c.constant(source, "type", "completions", "responses")
	name := c.Text(source, "model")
	parameters := c.parameters(c.Map(source, "sampling_params"))
	if name != "" {
		id, known := c.App.ModelFor(c.IDs, "", name, parameters)
		if !known {
			c.Assumed(source.Get("model"), "the provider of the model %s is a guess", name)
		}
		c.Models = append(c.Models, evalset.Model{ID: id, Label: cmp.Or(c.Text(run, "name"), name)})
	} else if n := run.Get("name"); n != nil {
		n.Use()
	}
	if m := c.Map(source, "input_messages"); m != nil {
		c.messages(m)
	}
	c.source(source.Get("source"))
}

// constant reads a text that means nothing by itself, and reports one that it does not know.
func (c *conversion) constant(n *input.Node, key string, known ...string) {
	if v := n.Get(key); v != nil && !slices.Contains(known, v.Scalar()) {
		c.Assumed(v.Use(), "%s %s is read as %s", key, v.Describe(), known[0])
	}
}

// parameters reads the parameters of a model; p may be nil.
func (c *conversion) parameters(p *input.Node) *document.Block {
	b := &document.Block{Inline: true}
	if p == nil {
		return b
	}
	for _, key := range []string{"temperature", "top_p", "seed", "max_completion_tokens", "max_completions_tokens", "max_output_tokens"} {
		v := p.Get(key)
		switch {
		case v == nil:
		case v.Kind != input.Int && v.Kind != input.Float:
			c.Malformed(v, "%s must be a number, not %s", key, v.Describe())
		case strings.HasPrefix(key, "max_"):
			b.Set("max_tokens", document.Number(v.Text))
		default:
			b.Set(key, document.Number(v.Text))
		}
	}
	return b
}

// messages reads the prompt of a run. Runs with the same one share it.
func (c *conversion) messages(m *input.Node) {
	if kind := c.Text(m, "type"); kind != "template" {
		c.Unsupported(m, "messages of the type %s are not converted", kind)
		m.Use()
		return
	}
	p := c.prompt(c.List(m, "template"), true)
	if len(c.Prompts) == 0 {
		c.Prompts = []evalset.Prompt{p}
	} else if c.Prompts[0].System != p.System || c.Prompts[0].User != p.User {
		c.Unsupported(m, "a run has other messages than the first one: add them as prompts of its variant")
	}
}

// prompt makes the prompt of messages. places are those of the API: {{item.name}}.
func (c *conversion) prompt(messages []*input.Node, places bool) (p evalset.Prompt) {
	for i, n := range messages {
		if c.AsMap(n, "a message") == nil {
			continue
		}
		role, text := c.Text(n, "role"), c.content(n)
		c.constant(n, "type", "message")
		if places {
			text = strings.NewReplacer("{{item.", "{{", "{{ item.", "{{ ").Replace(text)
		}
		name := c.Text(n, "name") // of examples, which are system messages with a name
		switch {
		case (role == "system" || role == "developer") && name == "":
			p.System, p.At = strings.TrimSpace(p.System+"\n\n"+text), n
		case i == len(messages)-1:
			c.constant(n, "role", "user")
			p.User = strings.TrimSpace(p.User + "\n\n" + text)
		default:
			c.Assumed(n, "messages before the last one are put at the beginning of the message of the user")
			p.User = strings.TrimSpace(p.User + "\n\n" + strings.TrimPrefix(cmp.Or(name, role), "example_") + ": " + text)
		}
	}
	return p
}

// content returns the text of a message: a text, or parts of which some are texts.
func (c *conversion) content(n *input.Node) string {
	content := n.Get("content")
	if content == nil || content.Kind < input.List {
		return content.Scalar()
	}
	var all []string
	parts := []*input.Node{content}
	if content.Kind == input.List {
		parts = content.Elements()
	}
	for _, part := range parts {
		if text := part.Get("text"); text != nil {
			c.constant(part, "type", "text", "input_text", "output_text")
			all = append(all, text.Text)
		} else {
			c.Unsupported(part.Use(), "a part of a message that is no text is not converted")
		}
	}
	return strings.Join(all, "\n")
}

// source reads the rows of a run.
func (c *conversion) source(n *input.Node) {
	if n == nil {
		return
	}
	if c.rows != nil {
		content := n.Get("content")
		if content != nil && content.Kind == input.List && len(content.Items) == 0 {
			c.constant(n, "type", "file_content")
			return
		}
		if n.Use(); n.Fingerprint() != c.rows.Fingerprint() {
			c.Unsupported(n, "a run has other rows than the first one: convert it from a file of its own")
		}
		return
	}
	var content []*input.Node
	switch kind := n.Get("type").Scalar(); kind {
	case "file_content":
		content = c.List(n, "content")
	case "file_id":
		name := c.Text(n, "id") + ".jsonl"
		read, err := c.value(name)
		if err != nil {
			c.Unsupported(n, "the rows are in a file at OpenAI: download it as %s beside this one, and convert again", name)
			return
		}
		content = read.Elements()
	default:
		c.Unsupported(n.Use(), "rows of the type %s are not converted", kind)
	}
	for _, row := range content {
		if item := row.Get("item"); item != nil && item.Kind == input.Map {
			c.items = append(c.items, item)
			if s := row.Get("sample"); s != nil {
				c.Unsupported(s.Use(), "stored answers are not converted: the application answers")
			}
		} else {
			c.Malformed(row, "a row has no item")
		}
	}
	if len(c.items) > 0 {
		c.rows = n
	}
}

// criteria are the texts of graders that have places. output is what stands for the answer of the model.
func (c *conversion) fill(row int, n *input.Node, output string) string {
	text := n.Scalar()
	filled, ok := evalset.Fill(text, func(name string) (string, bool) {
		if name == "sample.output_text" {
			return output, output != ""
		}
		at := c.items[row]
		for key := range strings.SplitSeq(strings.TrimPrefix(name, "item."), ".") {
			if at = at.Get(key); at == nil {
				return "", false
			}
		}
		return evalset.Text(at.Use()), strings.HasPrefix(name, "item.")
	})
	if !ok {
		c.Unsupported(n, "a place of the text is not converted: %s", document.OneLine(text))
	}
	return filled
}

// isOutput reports whether a grader looks at the whole answer, and reports another input.
func (c *conversion) isOutput(g *input.Node) bool {
	n := cmp.Or(g.Get("input"), g)
	text := strings.ReplaceAll(n.Scalar(), " ", "")
	if text == "{{sample.output_text}}" {
		return true
	}
	c.Unsupported(g.Use(), "the grader looks at %s, not at the answer: it is not converted", document.OneLine(n.Scalar()))
	return false
}

// grader adds the metric of a grader to a row.
func (c *conversion) grader(row int, g *input.Node) {
	kind, name := c.Text(g, "type"), strings.ToLower(document.Slug(c.Text(g, "name")))
	c.Skip(g, "it describes the grader", "id")
	add := func(b *document.Block, key, fixed string, expected any) {
		column := "expected"
		if fixed == "rubric" {
			column = fixed
		}
		m := document.Metric{ID: cmp.Or(name, kind), Block: b, Fixed: fixed, Column: column}
		c.Evaluation.Check(row, fmt.Sprintf("%s %d:%d", key, g.Span.Start.Line, g.Span.Start.Column), m, expected)
	}
	threshold := document.Number("0.5")
	if t := g.Get("pass_threshold"); t != nil && kind != "score_model" {
		if x := number(t, -1); x < 0 || x > 1 {
			c.Malformed(t, "pass_threshold is not from 0 to 1")
		} else {
			threshold = document.Number(t.Text)
		}
	}
	switch kind {
	case "string_check":
		operation := c.Text(g, "operation")
		b := map[string]*document.Block{"eq": evalset.Keys("type", "exact"), "ne": evalset.Keys("type", "exact", "not", document.Number("true")),
			"like": evalset.Keys("type", "contains"), "ilike": evalset.Keys("type", "contains", "ignore_case", document.Number("true"))}[operation]
		if b == nil {
			c.Malformed(g, "unknown operation %q", operation)
			return
		}
		reference := c.fill(row, g.Get("reference"), "")
		if c.isOutput(g) {
			add(b, operation, "value", reference)
		}
	case "text_similarity":
		metric := c.Text(g, "evaluation_metric")
		b := map[string]*document.Block{"fuzzy_match": evalset.Keys("type", "levenshtein"), "bleu": evalset.Keys("type", "bleu"),
			"rouge_l": evalset.Keys("type", "rouge_l"), "cosine": evalset.Keys("type", "similarity", "model", "")}[metric]
		reference := c.fill(row, g.Get("reference"), "")
		switch {
		case b == nil:
			c.Unsupported(g, "the metric %s has no counterpart", metric)
		case c.isOutput(g):
			if metric == "cosine" {
				b.Entries[1].Value = c.Embedder()
			}
			if metric == "fuzzy_match" {
				c.Assumed(g, "fuzzy_match is the share of equal characters here")
			}
			add(b.Set("threshold", threshold), metric, "value", reference)
		}
	case "label_model", "score_model":
		c.modelGrader(row, g, kind, threshold, add)
	case "multi":
		c.Unsupported(g, "the formula of a multi grader is not converted; each of its graders is a metric")
		g.Get("calculate_output").Use()
		for _, p := range c.Map(g, "graders").Entries() {
			c.grader(row, p.Value)
		}
	default:
		c.Unsupported(g.Use(), "the grader %s has no counterpart", kind)
	}
}

// modelGrader adds the metric of a grader that is a model.
func (c *conversion) modelGrader(row int, g *input.Node, kind string, threshold document.Number,
	add func(b *document.Block, key, fixed string, expected any)) {
	b := evalset.Keys("type", "judge", "model", c.Judge(cmp.Or(g.Get("model"), g), "", c.Text(g, "model")))
	var rubric []string
	for _, m := range c.List(g, "input") {
		c.constant(m, "role", "system", "developer", "user", "assistant")
		c.constant(m, "type", "message")
		text := strings.ReplaceAll(strings.ReplaceAll(c.content(m), "{{ ", "{{"), " }}", "}}")
		if text = c.fill(row, &input.Node{Kind: input.Text, Text: text, Span: m.Span}, "(the output)"); text != "" {
			rubric = append(rubric, text)
		}
	}
	text := strings.Join(rubric, "\n")
	if kind == "label_model" {
		var all, good []string
		for _, l := range c.List(g, "labels") {
			all = append(all, l.Text)
		}
		for _, l := range c.List(g, "passing_labels") {
			good = append(good, l.Text)
		}
		if len(all) < 2 || len(good) == 0 {
			c.Malformed(g, "a label_model needs two labels, of which one passes")
			return
		}
		add(b.Set("labels", c.Labels(good, all)), kind, "rubric", text)
		return
	}
	c.Skip(g, "the judge answers as its model does", "sampling_params")
	low, high := 0.0, 1.0
	if scale := c.List(g, "range"); len(scale) == 2 {
		low, high = number(scale[0], low), number(scale[1], high)
	}
	limit := low + (high-low)/2
	if t := g.Get("pass_threshold"); t != nil {
		limit = number(t, limit)
	}
	if high > low {
		threshold = document.Number(fmt.Sprintf("%.3g", min(max((limit-low)/(high-low), 0), 1)))
	}
	if high > low && (low != 0 || high != 1) {
		c.Assumed(g, "the scores from %v to %v are from 0 to 1 here", low, high)
		text += fmt.Sprintf("\nWhere a score from %v to %v is asked for, answer with that score minus %v, divided by %v.",
			low, high, low, high-low)
	}
	add(b.Set("threshold", threshold), kind, "rubric", text)
}

// number returns the value of a number, or another one if it is none.
func number(n *input.Node, otherwise float64) float64 {
	if x, err := strconv.ParseFloat(n.Text, 64); err == nil {
		return x
	}
	return otherwise
}

// base returns the last part of the class of an eval.
func base(class string) string { return path.Base(strings.ReplaceAll(class, ":", "/")) }
