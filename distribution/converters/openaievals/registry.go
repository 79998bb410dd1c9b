package openaievals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/evalset"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// registry converts the first eval of a file of the registry.
func (c *conversion) registry() *document.App {
	var chosen *input.Node
	for _, p := range c.root.Entries() {
		switch {
		case p.Value.Kind != input.Map:
			c.Malformed(p.Value, "%s is no eval", p.Key)
		case p.Value.Has("class") && chosen == nil:
			chosen = p.Value
			c.App.Comments = append(c.App.Comments, "Eval: "+p.Key+".")
		case p.Value.Has("class"):
			c.Unsupported(p.Value.Use(), "the file has several evals; %s is not converted: put it into a file of its own", p.Key)
		default:
			if about := p.Value.Get("description"); about != nil && c.App.Description == "" {
				c.App.Description = document.OneLine(about.Text)
			}
			p.Value.Get("id").Use()
			p.Value.Get("description").Use()
			c.Skip(p.Value, "it describes the eval", "metrics", "disclaimer")
		}
	}
	if chosen == nil {
		c.Malformed(c.root, "not an eval: it has neither testing_criteria nor a class")
		return nil
	}
	class, args := base(c.Text(chosen, "class")), c.Map(chosen, "args")
	if args == nil {
		c.Malformed(chosen, "the eval has no args with its samples")
		return nil
	}
	c.Skip(args, "models answer as the document says", "max_tokens", "n_samples")
	if n := args.Get("num_few_shot"); n != nil && n.Text != "0" {
		c.Unsupported(n, "the examples of %s are not converted: add them to the system message",
			cmp.Or(c.Text(args, "few_shot_jsonl"), "another file"))
	}
	c.samples(args.Get("samples_jsonl"), args)
	for i, sample := range c.of {
		c.sample(i, sample)
		c.metric(i, sample, chosen, args, class)
	}
	c.RestByName(c.of, func(string) bool { return false })
	return c.Finish(c.root)
}

// samples reads the rows: a file in the folder data of the registry, or beside this one.
func (c *conversion) samples(n, args *input.Node) {
	if n == nil {
		c.Malformed(args, "the eval has no samples_jsonl")
		return
	}
	var err error
	for _, name := range []string{"data/" + n.Text, n.Text} {
		var read *input.Node
		if read, err = c.value(name); err == nil {
			c.of = read.Elements()
			return
		}
	}
	c.Unsupported(n, "the samples %s cannot be read: %s", n.Text, err)
}

// sample adds a row with its message.
func (c *conversion) sample(i int, sample *input.Node) {
	row := map[string]any{}
	given := sample.Get("input")
	var p evalset.Prompt
	if given != nil && given.Kind == input.List {
		p = c.prompt(given.Elements(), false)
	} else {
		p.User = given.Scalar()
	}
	switch {
	case i == 0:
		c.Prompts = []evalset.Prompt{{System: p.System, User: "{{input}}"}}
		if strings.Contains(p.System, "{{") {
			c.Prompts[0].System = ""
		}
	case p.System == c.Prompts[0].System:
	default:
		c.Assumed(sample, "the samples have several system messages; those that differ from the first one precede the message of the user")
	}
	if p.System != c.Prompts[0].System {
		p.User = p.System + "\n\n" + p.User
	}
	row[c.Variable("input")] = p.User
	c.Evaluation.Rows = append(c.Evaluation.Rows, row)
}

// metric adds what the class of the eval compares.
func (c *conversion) metric(i int, sample, chosen, args *input.Node, class string) {
	var ideal any
	if n := sample.Get("ideal"); n != nil && n.Kind == input.List {
		var all []string
		for _, item := range n.Elements() {
			all = append(all, item.Scalar())
		}
		if ideal = all; len(all) == 1 {
			ideal = all[0]
		}
	} else if n != nil {
		ideal = n.Scalar()
	}
	add := func(id string, b *document.Block) {
		if ideal == nil || ideal == "" {
			c.Malformed(sample, "the sample has no ideal answer")
			return
		}
		c.Evaluation.Check(i, id, document.Metric{ID: id, Block: b, Fixed: "value", Column: "expected"}, ideal)
	}
	switch class {
	case "Match":
		add("match", evalset.Keys("type", "starts_with"))
	case "Includes":
		b := evalset.Keys("type", "contains")
		if ignore := args.Get("ignore_case"); ignore != nil && strings.EqualFold(ignore.Text, "true") {
			b.Set("ignore_case", document.Number("true"))
		}
		add("includes", b)
	case "FuzzyMatch":
		c.Assumed(chosen.Get("class"), "FuzzyMatch also accepts a part of the ideal answer, and ignores punctuation; "+
			"here the answer contains the ideal one, in any case")
		add("fuzzy_match", evalset.Keys("type", "contains", "ignore_case", document.Number("true")))
	case "JsonMatch":
		c.Assumed(chosen.Get("class"), "JSON is compared as text")
		add("json_match", evalset.Keys("type", "exact"))
	case "JsonValidator":
		c.Evaluation.Check(i, "is_json", document.Metric{ID: "is_json", Block: evalset.Keys("type", "is_json")}, nil)
	case "Translate":
		add("bleu", evalset.Keys("type", "bleu"))
	case "ModelBasedClassify":
		c.classify(i, sample, args, ideal)
	default:
		c.Unsupported(chosen.Get("class"), "the class %s is a program; it is not converted", class)
		args.Use()
	}
}

// classify adds the metric of an eval that a model grades.
func (c *conversion) classify(i int, sample, args *input.Node, ideal any) {
	args.Get("eval_type").Use()
	name := c.Text(args, "modelgraded_spec")
	rubrics := map[string]string{
		"fact":     "The output agrees with the expected answer in its facts: it may say more or less, and must not contradict.",
		"closedqa": "The output meets the criterion of the expected text.",
		"humor":    "The output is funny.",
	}
	labels := c.Labels([]string{"yes"}, []string{"no"})
	rubric, known := rubrics[name]
	switch read, err := c.value("modelgraded/" + name + ".yaml"); {
	case known:
	case err != nil:
		c.Unsupported(args.Get("modelgraded_spec"), "the spec %s cannot be read: copy it to modelgraded/%s.yaml "+
			"beside the folder of the eval", name, name)
		return
	default:
		spec := read.Get(name)
		if rubric = spec.Get("prompt").Scalar(); rubric == "" {
			c.Malformed(args.Get("modelgraded_spec"), "the spec %s has no prompt", name)
			return
		}
		rubric = strings.NewReplacer("{completion}", "(the output)", "{input}", "(the input)", "{ideal}", "(the expected text)").Replace(rubric)
		if scores := spec.Get("choice_scores"); scores != nil && scores.Kind == input.Map {
			best, most := "", 0.0
			for _, p := range scores.Entries() {
				if x := number(p.Value, 0); best == "" || x > most {
					best, most = p.Key, x
				}
			}
			labels = &document.Block{Inline: true}
			for _, p := range scores.Entries() {
				labels.Set(p.Key, document.Number(fmt.Sprintf("%.3g", max(number(p.Value, 0)/max(most, 1), 0))))
			}
			c.Labels([]string{best}, nil)
			if most > 1 {
				c.Assumed(args.Get("modelgraded_spec"), "the scores of %s are divided by %v: they are from 0 to 1 here", name, most)
			}
		}
	}
	b := evalset.Keys("type", "judge", "model", c.Judge(args, "", ""), "rubric", rubric, "labels", labels)
	if slices.Contains([]string{"closedqa"}, name) {
		ideal = sample.Get("criteria").Scalar()
	}
	if text, ok := ideal.(string); ok && text != "" {
		c.Evaluation.Check(i, name, document.Metric{ID: name, Block: b, Fixed: "value", Column: "expected"}, text)
		return
	}
	c.Evaluation.Check(i, name+" alone", document.Metric{ID: name, Block: b}, nil)
}
