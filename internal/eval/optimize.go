package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/recording/calls"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// MaxCombinations is the maximum number of combinations of values.
const MaxCombinations = 256

// Optimization is what an optimization changes, checked.
type Optimization struct {
	Declared   *spec.Optimization
	Metric     *Metric
	Texts      []*Text
	Examples   []*Text     // system messages to which examples may be added
	Choices    []*Choice   // by address
	Model      *spec.Model // that rewrites texts; nil without texts
	Recordings *calls.File // nil if the file declares none
}

// Text is a text that a model rewrites.
type Text struct {
	*Place
	Now string // in the document
}

// Choice is a place with the values that it may have.
type Choice struct {
	*Place
	Values []any
}

// optimization checks what is optimized.
func (c *checker) optimization(ctx context.Context, o *spec.Optimization) {
	if o == nil || c.evaluation.Flow == nil {
		return
	}
	made := &Optimization{Declared: o}
	c.evaluation.Optimization = made
	at := func(key string) source.Span { return o.Position().Field(key).Span() }
	if o.Train+o.Validation > 0.9 && o.Position().Complete("train", "validation") {
		c.list.Add(ruleInvalid.At(at("validation"), "train and validation are %v of the rows together", o.Train+o.Validation).
			WithHint("leave at least 0.1 held out"))
	}
	metrics := c.evaluation.Metrics
	if i := slices.IndexFunc(metrics, func(m *Metric) bool { return o.Metric == "" || m.Declared.Name() == o.Metric }); i >= 0 {
		made.Metric = metrics[i]
	} else if o.Metric != "" && c.list.Errors() == 0 {
		var names []string
		for _, m := range metrics {
			names = append(names, m.Declared.Name())
		}
		c.unknown(at("metric"), "metric", o.Metric, names)
	}
	c.choices(ctx, made)
	c.texts(made)
	if len(made.Texts) > 0 && o.Position().Complete("model") {
		if err := c.rewriter(made); err != nil {
			c.list.Add(ruleInvalid.At(at("model"), "%s", err))
		}
	}
	if field, given := o.Position().Lookup("recordings"); given && o.Position().Complete("recordings") {
		var err error
		if made.Recordings, err = apptest.OpenRecordings(c.folder, o.Recordings); err != nil {
			c.list.Add(ruleInvalid.At(field.Span(), "%s", err))
		}
	}
}

// texts finds the texts that a model rewrites.
func (c *checker) texts(made *Optimization) {
	o := made.Declared
	for i, address := range o.Texts {
		place := o.Position().Field("texts").Index(i).Span()
		if slices.Contains(o.Texts[:i], address) || o.Values[address] != nil {
			c.list.Add(ruleInvalid.At(place, "%s is twice among texts and values", address))
			continue
		}
		if t, err := c.text(address); err != nil {
			c.list.Add(ruleInvalid.At(place, "%s", err))
		} else {
			made.Texts = append(made.Texts, t)
		}
	}
	c.examples(made)
	if len(o.Texts) == 0 && len(o.Values) == 0 && len(o.Examples) == 0 && o.Position().Complete("texts", "values", "examples") {
		for _, address := range c.prompts() {
			if t, err := c.text(address); err == nil { // others are not for rewriting
				made.Texts = append(made.Texts, t)
			}
		}
		if len(made.Texts) == 0 {
			c.list.Add(ruleInvalid.At(o.Position().Span(), "flow %s has no system message or template that could be rewritten", c.evaluation.Flow.ID).
				WithHint("name texts or values"))
		}
	}
	for i, part := range o.Keep {
		if !slices.ContainsFunc(made.Texts, func(t *Text) bool { return strings.Contains(t.Now, part) }) && o.Position().Complete("texts") {
			c.list.Add(ruleInvalid.At(o.Position().Field("keep").Index(i).Span(), "no text has the part %q", textfmt.Ellipsis(part, 60)))
		}
	}
}

// examples finds the system messages to which examples may be added.
func (c *checker) examples(made *Optimization) {
	o := made.Declared
	for i, address := range o.Examples {
		t, err := c.text(address)
		switch {
		case err != nil:
		case !strings.HasSuffix(address, ".system_message"):
			err = fmt.Errorf("%s is not a system message", address)
		case o.Values[address] != nil || slices.Contains(o.Examples[:i], address):
			err = fmt.Errorf("%s is twice among values and examples", address)
		case made.Metric != nil && (!slices.Contains(made.Metric.Row.Keys, "expected") || made.Metric.Fixed):
			err = fmt.Errorf("metric %s compares with no column: examples need an expected value in each row", made.Metric.Declared.Name())
		}
		if err != nil {
			c.list.Add(ruleInvalid.At(o.Position().Field("examples").Index(i).Span(), "%s", err))
			continue
		}
		made.Examples = append(made.Examples, t)
	}
}

func (c *checker) text(address string) (*Text, error) {
	p, err := FindPlace(c.app, address)
	if err != nil {
		return nil, err
	}
	now, err := p.Text()
	return &Text{p, now}, err
}

// prompts returns the addresses of the system messages and templates of the flow.
func (c *checker) prompts() (all []string) {
	for s := range c.evaluation.Flow.Plan().All() {
		for _, key := range []string{"system_message", "template"} {
			if address := s.Step.EntityID() + "." + key; !slices.Contains(all, address) {
				if _, ok := s.Step.Position().Lookup(key); ok {
					all = append(all, address)
				}
			}
		}
	}
	return all
}

// rewriter finds the model that rewrites texts.
func (c *checker) rewriter(made *Optimization) error {
	if id := made.Declared.Model; id != "" {
		found, err := ModelOf(c.app, id)
		if err != nil {
			return err
		}
		chat, ok := found.(*spec.Model)
		if !ok {
			return fmt.Errorf("model %s is not a chat model", id)
		}
		made.Model = chat
		return nil
	}
	for s := range c.evaluation.Flow.Plan().All() {
		for _, m := range s.Models() {
			chat, ok := m.(*spec.Model)
			if !ok || chat == made.Model {
				continue
			}
			if made.Model != nil {
				return errors.New("the flow calls several chat models: name the model that rewrites texts")
			}
			made.Model = chat
		}
	}
	if made.Model == nil {
		return errors.New("the flow calls no chat model: name the model that rewrites texts")
	}
	return nil
}

// choices finds the places of values, and checks that the document is valid with each of the values.
func (c *checker) choices(ctx context.Context, made *Optimization) {
	o, all := made.Declared, 1
	for _, address := range slices.Sorted(maps.Keys(o.Values)) {
		field := o.Position().Field("values").Field(address)
		p, err := FindPlace(c.app, address)
		if err == nil && len(o.Values[address]) == 0 {
			err = errors.New("there are no values to choose from")
		}
		if err != nil {
			c.list.Add(ruleInvalid.At(field.Span(), "%s", err))
			continue
		}
		for i, v := range o.Values[address] {
			if err := c.tryValue(ctx, p, v); err != nil {
				c.list.Add(ruleInvalid.At(field.Index(i).Span(), "%s cannot be %s: %s", address, flowValue(v), err))
			}
		}
		made.Choices = append(made.Choices, &Choice{p, o.Values[address]})
		all = min(all*len(o.Values[address]), MaxCombinations+1)
	}
	if all > MaxCombinations {
		c.list.Add(ruleInvalid.At(o.Position().Field("values").Span(), "the values have more than %d combinations", MaxCombinations))
	}
}

// tryValue reports why the document is invalid with a value.
func (c *checker) tryValue(ctx context.Context, p *Place, v any) error {
	texts, err := Texts(map[*Place]any{p: v})
	if err != nil {
		return err
	}
	_, list := c.open(ctx, c.path, Change{Texts: texts})
	return FirstError(list)
}

// FirstError returns the first error of a list without its position, which is one of a changed text.
func FirstError(list diag.List) error {
	for _, d := range list {
		if d.Severity == diag.Error {
			return errors.New(d.Message)
		}
	}
	return nil
}
