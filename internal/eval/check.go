package eval

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/spec/value"
)

// checker checks an evaluation against its application.
type checker struct {
	evaluation *Evaluation
	request    *Request
	app        *spec.Application
	folder     string
	path       string // of the application
	open       Opener
	list       diag.List
	state      mockstate.Tables // of the file
}

func (c *checker) check(ctx context.Context, declared *spec.Evaluation) {
	if c.app == nil || len(c.app.Flows) == 0 {
		c.list.Add(ruleUnknown.At(spanOf(declared, "app"), "%q is not an application with a flow", filepath.ToSlash(c.path)))
		return
	}
	id, place := c.request.Flow, source.Span{}
	if id == "" {
		id, place = declared.Flow, spanOf(declared, "flow")
	}
	c.evaluation.Flow = c.app.Flows[0]
	if id != "" {
		i := slices.IndexFunc(c.app.Flows, func(f *spec.Flow) bool { return f.ID == id })
		if i < 0 {
			c.unknown(place, "flow", id, spec.IDs(c.app.Flows))
			return
		}
		c.evaluation.Flow = c.app.Flows[i]
	}
	if !declared.Position().Complete("flow") && c.request.Flow == "" {
		return // an error that is reported already
	}
	state := []mockstate.Tables{declared.State}
	for _, u := range apptest.NonNil(declared.Users) {
		state = append(state, u.State)
	}
	c.list = append(c.list, apptest.CheckToolMocks(c.app, declared.Tools, state...)...)
	c.evaluation.Tools = apptest.NonNil(declared.Tools)
	c.state = declared.State
	c.users(declared)
	c.attacks(declared)
	c.metrics(declared.Metrics, declared.Position().Complete("metrics"))
	c.variants(ctx, declared.Variants)
	c.generateAttacks(declared)
}

// unknown reports a name that is not one of names.
func (c *checker) unknown(place source.Span, noun, name string, names []string) {
	d := ruleUnknown.At(place, "no %s has the id %q", noun, name)
	if len(names) > 0 && diag.Nearest(name, names) == "" {
		d = d.WithHint("available: %s", strings.Join(names, ", "))
	}
	c.list.Add(d.WithNearest(name, names))
}

// metrics checks the metrics. Without any, it is exact, if all of them could be read.
func (c *checker) metrics(declared []*spec.Metric, complete bool) {
	if len(declared) == 0 && c.evaluation.Attacks == nil {
		if !complete {
			return
		}
		declared = []*spec.Metric{{Type: "exact", Expected: "expected"}}
		if len(c.evaluation.Users) > 0 {
			declared = []*spec.Metric{{Type: "checks"}}
		}
	}
	if c.evaluation.Attacks != nil && complete && !slices.ContainsFunc(declared, func(m *spec.Metric) bool { return m != nil && m.Type == "safe" }) {
		one := 1.0
		declared = append([]*spec.Metric{{Type: "safe", Min: &one}}, declared...)
	}
	seen := map[string]bool{}
	for _, m := range declared {
		if m == nil {
			continue // a value with an error that is reported already
		}
		row, known := spec.LookupMetric(m.Type)
		if !known {
			if m.Type != "" {
				var names []string
				for _, r := range spec.Metrics() {
					names = append(names, r.Name)
				}
				d := ruleUnknown.At(spanOf(m, "type"), "unknown type of metric %q", m.Type)
				if diag.Nearest(m.Type, names) == "" {
					d = d.WithHint("available: %s", strings.Join(names, ", "))
				}
				c.list.Add(d.WithNearest(m.Type, names))
			}
			continue
		}
		if seen[m.Name()] {
			c.list.Add(ruleUnknown.At(spanOf(m, "id"), "duplicate metric %q", m.Name()).WithHint("give it another id"))
		}
		seen[m.Name()] = true
		c.metric(m, row)
	}
}

// metric checks the keys of one metric.
func (c *checker) metric(m *spec.Metric, row spec.MetricRow) {
	c.rubric(m)
	before := len(c.list)
	c.keys(m, row)
	made := &Metric{Declared: m, Row: row}
	if m.Check != nil && m.Check.Data != "" {
		made.Labelled = relative(c.folder, m.Check.Data)
	}
	if slices.Contains(row.Keys, "output") {
		made.Output = c.output(m)
	}
	if m.Sources != "" && slices.Contains(row.Keys, "sources") {
		made.Sources = c.outputNamed(m, "sources", m.Sources)
	}
	if slices.Contains(row.Keys, "expected") {
		_, column := m.Position().Lookup("expected")
		_, fixed := m.Position().Lookup("value")
		made.Fixed = fixed
		if column && fixed {
			c.list.Add(ruleInvalid.At(spanOf(m, "value"), "the metric has expected and value").WithHint("use one of them"))
		}
	}
	c.forUsers(m, row, made.Fixed)
	if len(c.list) > before || !m.Position().Complete(row.Required...) {
		return
	}
	if slices.Contains(row.Required, "model") {
		made.Model, _ = ModelOf(c.app, m.Model) // an error is that of settings
	}
	if row.Judges && !c.judges(m, made) {
		return
	}
	if err := settings(m, row, c.app); err != nil {
		place := spanOf(m, "type")
		if len(row.Required) > 0 {
			place = spanOf(m, row.Required[0])
		}
		c.list.Add(ruleInvalid.At(place, "%s", err))
		return
	}
	c.evaluation.Metrics = append(c.evaluation.Metrics, made)
}

// forUsers reports a metric that users cannot have, or that only users have. fixed reports that the expected value is in the document.
func (c *checker) forUsers(m *spec.Metric, row spec.MetricRow, fixed bool) {
	switch users := len(c.evaluation.Users) > 0 || c.evaluation.Attacks != nil; {
	case row.Name == "safe" && c.evaluation.Attacks == nil:
		c.list.Add(ruleInvalid.At(spanOf(m, "type"), "the evaluation has no attacks that could be resisted"))
	case m.When != "" && users:
		c.list.Add(ruleInvalid.At(spanOf(m, "when"), "the evaluation has no data with a column %q", m.When))
	case row.Name == "checks" && (!users || c.evaluation.Attacks != nil):
		c.list.Add(ruleInvalid.At(spanOf(m, "type"), "the evaluation has no users whose checks could be met"))
	case users && slices.Contains(row.Keys, "expected") && !fixed && row.Name != "judge":
		c.list.Add(ruleInvalid.At(spanOf(m, "type"), "simulated users have no column with an expected value").WithHint("set value: with the value for all users"))
	}
}

// judges checks the chat models of a metric and what they decide.
func (c *checker) judges(m *spec.Metric, made *Metric) bool {
	var err error
	if made.Judges, err = judgesOf(m, c.app); err != nil && m.Position().Complete("model", "judges") {
		c.list.Add(ruleInvalid.At(spanOfEither(m, "judges", "model", "type"), "%s", err))
	}
	if bad := checkLabels(m); bad != nil && m.Position().Complete("labels", "check", "threshold") {
		err = bad
		c.list.Add(ruleInvalid.At(spanOfEither(m, "check", "labels", "type"), "%s", bad))
	}
	return err == nil
}

// spanOfEither returns the position of the first of some keys that a metric has.
func spanOfEither(m *spec.Metric, keys ...string) source.Span {
	for _, key := range keys {
		if field, ok := m.Position().Lookup(key); ok {
			return field.Span()
		}
	}
	return m.Position().Span()
}

// rubric reports placeholders in a text that the judge reads as it is written.
func (c *checker) rubric(m *spec.Metric) {
	for _, text := range spec.VerbatimTexts(m) {
		found := text.Placeholders(func(name string) bool {
			return slices.ContainsFunc(c.evaluation.Flow.Variables, func(v *spec.Variable) bool { return v.ID == name })
		})
		if len(found) > 0 {
			c.list.Add(ruleVerbatim.At(spanOf(m, text.Key), "%s is no template: the model reads %s as it is written", text.Key, found[0].Text).
				WithHint("the judge gets the inputs, the output and the expected value beside it"))
		}
	}
}

// keys rejects keys that the metric does not read, and reports missing ones.
func (c *checker) keys(m *spec.Metric, row spec.MetricRow) {
	if m.Position() == nil {
		return
	}
	common := []string{"id", "type", "when", "min", "max", "max_regression"}
	for _, key := range []string{"output", "expected", "value", "ignore_case", "not", "pattern", "schema", "tolerance", "relative_tolerance", "model", "judges", "rubric", "labels", "votes", "check", "sources", "threshold"} {
		field, found := m.Position().Lookup(key)
		switch {
		case found && !slices.Contains(row.Keys, key):
			d := ruleInvalid.At(field.Key, "a metric of type %s does not read %s", row.Name, key)
			c.list.Add(d.WithHint("its keys: %s", strings.Join(slices.Concat(common, row.Keys), ", ")))
		case !found && slices.Contains(row.Required, key) && m.Position().Complete(key):
			c.list.Add(ruleInvalid.At(spanOf(m, "type"), "a metric of type %s needs %s", row.Name, key))
		}
	}
}

// output returns the output that a metric evaluates; nil after an error.
func (c *checker) output(m *spec.Metric) *spec.Variable {
	var outputs []*spec.Variable
	for _, ref := range c.evaluation.Flow.Outputs {
		outputs = append(outputs, ref.To)
	}
	var ids []string
	for _, v := range outputs {
		ids = append(ids, v.ID)
	}
	switch {
	case m.Output == "" && len(outputs) == 1:
		return outputs[0]
	case m.Output == "" && !m.Position().Complete("output"):
		return nil // reported already
	case m.Output == "":
		c.list.Add(ruleInvalid.At(spanOf(m, "type"), "flow %s has %d outputs", c.evaluation.Flow.ID, len(ids)).
			WithHint("declare metrics with output: one of %s", strings.Join(ids, ", ")))
		return nil
	}
	return c.outputNamed(m, "output", m.Output)
}

// outputNamed returns the output that a key of a metric names; nil after an error.
func (c *checker) outputNamed(m *spec.Metric, key, id string) *spec.Variable {
	var ids []string
	for _, ref := range c.evaluation.Flow.Outputs {
		if ref.To.ID == id {
			return ref.To
		}
		ids = append(ids, ref.To.ID)
	}
	c.unknown(spanOf(m, key), "output of flow "+c.evaluation.Flow.ID, id, ids)
	return nil
}

// variants checks the variants and opens their applications.
func (c *checker) variants(ctx context.Context, declared []*spec.Variant) {
	if len(declared) == 0 {
		declared = []*spec.Variant{{ID: "base"}}
	}
	seen := map[string]bool{}
	for _, v := range declared {
		if v == nil || v.ID == "" {
			continue // reported already
		}
		if seen[v.ID] {
			c.list.Add(ruleUnknown.At(spanOf(v, "id"), "duplicate variant %q", v.ID))
			continue
		}
		seen[v.ID] = true
		if v.Position().Complete("app", "models", "prompts", "inputs", "env") {
			c.variant(ctx, v)
		}
	}
}

// recordings opens the file of recorded calls.
func (c *checker) recordings(declared *spec.Evaluation) {
	field, given := declared.Position().Lookup("recordings")
	if !given || !declared.Position().Complete("recordings") {
		return
	}
	var err error
	if c.evaluation.Recordings, err = apptest.OpenRecordings(c.folder, declared.Recordings); err != nil {
		c.list.Add(ruleInvalid.At(field.Span(), "%s", err))
	}
}

// inputTypes reports inputs of a variant with which each row would fail. Media may be the names of files.
func (c *checker) inputTypes(v *spec.Variant, flow *spec.Flow) {
	for _, ref := range flow.Inputs {
		x, given := v.Inputs[ref.To.ID]
		of := ref.To.Type
		if !given || x == nil || !of.IsPrimitive() || of.IsMedia() {
			continue
		}
		if _, err := value.Coerce(of, x); err != nil {
			c.list.Add(ruleInvalid.At(v.Position().Field("inputs").Field(ref.To.ID).Span(), "input %s: %s", ref.To.ID, err))
		}
	}
}

func (c *checker) variant(ctx context.Context, v *spec.Variant) {
	path := c.path
	if v.App != "" {
		path = relative(c.folder, v.App)
		if _, err := os.Stat(path); err != nil {
			c.list.Add(ruleUnknown.At(spanOf(v, "app"), "application %q not found", v.App))
			return
		}
	}
	var problems diag.List
	app, found := c.open(ctx, path, Change{Env: v.Env, Edit: func(d *spec.Document) {
		if problems = apply(v, d); c.evaluation.Attacks != nil {
			addCanary(d)
		}
	}})
	c.list = append(c.list, problems...)
	for _, d := range found {
		if d.Severity == diag.Error {
			c.list.Add(d)
		}
	}
	if len(problems) > 0 || found.Errors() > 0 {
		return
	}
	i := slices.IndexFunc(app.Flows, func(f *spec.Flow) bool { return f.ID == c.evaluation.Flow.ID })
	if i < 0 {
		c.list.Add(ruleUnknown.At(spanOf(v, "app"), "application %q has no flow %s", v.App, c.evaluation.Flow.ID))
		return
	}
	var inputs []string
	for _, ref := range app.Flows[i].Inputs {
		inputs = append(inputs, ref.To.ID)
	}
	for _, name := range slices.Sorted(maps.Keys(v.Inputs)) {
		if t := c.evaluation.Talk; t != nil && name == t.Message {
			c.list.Add(ruleInvalid.At(spanOf(v, "inputs"), "%s is what the users say", name))
			continue
		}
		if !slices.Contains(inputs, name) {
			c.unknown(spanOf(v, "inputs"), "input of flow "+c.evaluation.Flow.ID, name, inputs)
		}
	}
	c.inputTypes(v, app.Flows[i])
	c.evaluation.Variants = append(c.evaluation.Variants, &Variant{v, app})
}
