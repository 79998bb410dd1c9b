package evalrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// metric is a metric that is ready to score results.
type metric struct {
	declared *spec.Metric
	row      spec.MetricRow
	output   *spec.Variable   // nil for a metric of the whole row
	model    spec.ModelEntity // the embedding model that scores results; nil for none
	judges   []*spec.Model    // the chat models that score results
	labelled string           // the file by which the judges are checked; empty for none
	sources  *spec.Variable   // with the passages; nil for those that the answer cites
	fixed    bool             // the expected value is in the document
	score    scorer
}

// rate reports whether each result passes or fails.
func (m *metric) rate() bool {
	if m.row.Rate || m.declared.Threshold != nil {
		return true
	}
	for _, score := range m.declared.Labels {
		if score != 0 && score != 1 {
			return false
		}
	}
	return m.declared.Labels != nil
}

// Score is the value of a metric for one result.
type Score struct {
	Value  float64 `json:"value"`            // from 0 to 1, or in the unit of the metric; 0 or 1 for a metric that is a rate
	Raw    float64 `json:"raw,omitempty"`    // the score that a threshold was applied to
	Reason string  `json:"reason,omitempty"` // why the result failed, or what the judge wrote
	Label  string  `json:"label,omitempty"`  // the verdict of a judge with labels, or of a preference: output, expected or tie

	Votes map[string]int `json:"votes,omitempty"` // by label, if there are several
	Tie   bool           `json:"tie,omitempty"`   // as many votes have another label, or the orders disagree
	Error string         `json:"error,omitempty"` // why there is no value
}

// sample is a result to score.
type sample struct {
	output   any            // of the metric's variable
	variable *spec.Variable // its declaration
	expected any            // nil if there is none
	known    bool           // there is an expected value
	inputs   map[string]any // of the row
	usage    Usage
	seconds  float64
	judges   *judges
	recorded *recording.Session // of the calls of judges; nil for none
	with     *conversation      // nil without a simulated user
	outputs  map[string]any     // of the flow, by id
	metric   *metric
	spent    *float64          // money for the models that score the result
	cited    []citation.Source // the passages that the answers of the flow cite
}

// scorer computes a metric. An error means that there is no value.
type scorer func(context.Context, *sample) (Score, error)

// builder makes the scorer of a metric that is checked.
type builder func(*spec.Metric) scorer

// builders is the one table of the types of metrics, by their names in spec.Metrics.
var builders = sync.OnceValue(func() map[string]builder {
	return map[string]builder{
		"exact":            compared(exact),
		"contains":         compared(contains),
		"starts_with":      compared(startsWith),
		"regexp":           matching,
		"is_json":          parsing,
		"json_schema":      conforming,
		"numeric":          compared(numeric),
		"levenshtein":      compared(levenshtein),
		"rouge_l":          compared(rougeL),
		"bleu":             compared(bleu),
		"similarity":       similar,
		"judge":            judged,
		"preference":       preferred,
		"relevance":        relevant,
		"faithfulness":     faithful,
		"source_recall":    sourced(recall),
		"source_precision": sourced(precision),
		"checks":           checked,
		"safe":             resisted,
		"latency":          measured(func(s *sample) float64 { return s.seconds }),
		"tokens":           measured(func(s *sample) float64 { return float64(s.usage.Input + s.usage.Output) }),
		"cost":             costs,
	}
})

// maxReason is the length of a reason in characters.
const maxReason = 300

func failed(format string, args ...any) Score {
	return Score{Reason: textfmt.Ellipsis(fmt.Sprintf(format, args...), maxReason)}
}

func passed() Score { return Score{Value: 1} }

// lacksExpected reports that a row has no expected value.
func (s *sample) lacksExpected(m *spec.Metric) error {
	if s.known {
		return nil
	}
	return fmt.Errorf("the row has no column %q with the expected value", m.Expected)
}

// compared makes the scorer of a metric that compares an output with the expected value.
func compared(compare func(*spec.Metric, *sample) (Score, error)) builder {
	return func(m *spec.Metric) scorer {
		return func(_ context.Context, s *sample) (Score, error) {
			if err := s.lacksExpected(m); err != nil {
				return Score{}, err
			}
			list, several := s.expected.([]any)
			if !several || len(list) == 0 || s.variable == nil || !isText(s.variable) {
				return compare(m, s)
			}
			var best Score
			for i, item := range list { // one of the texts is enough
				one := *s
				one.expected = item
				score, err := compare(m, &one)
				if err != nil {
					return Score{}, err
				}
				if i == 0 || score.Value > best.Value {
					best = score
				}
			}
			return best, nil
		}
	}
}

func normalized(m *spec.Metric, text string) string {
	if m.IgnoreCase {
		return strings.ToLower(text)
	}
	return text
}

// exact compares values of the declared type, and texts without white space around them.
func exact(m *spec.Metric, s *sample) (Score, error) {
	want, got := s.expected, s.output
	if !isText(s.variable) {
		if x, err := value.Coerce(s.variable.Type, want); err == nil {
			want = x
		}
		if bytes.Equal(value.JSON(want), value.JSON(got)) {
			return passed(), nil
		}
		return failed("expected %s, got %s", value.JSON(want), value.JSON(got)), nil
	}
	wanted, text := strings.TrimSpace(value.Text(want)), strings.TrimSpace(value.Text(got))
	if normalized(m, wanted) == normalized(m, text) {
		return passed(), nil
	}
	return failed("expected %q, got %q", wanted, text), nil
}

// isText reports whether the values of a variable are compared as texts.
func isText(v *spec.Variable) bool {
	return v.Type.Is("text") || v.Type.Is("ChatMessage") || v.Type.Name == spec.Any
}

// errEmptyExpected is why a metric has no value: all texts contain the empty one.
var errEmptyExpected = errors.New("the expected text is empty")

func contains(m *spec.Metric, s *sample) (Score, error) {
	want, text := value.Text(s.expected), value.Text(s.output)
	if want == "" {
		return Score{}, errEmptyExpected
	}
	if strings.Contains(normalized(m, text), normalized(m, want)) {
		return passed(), nil
	}
	return failed("%q does not contain %q", text, want), nil
}

// numeric compares numbers, also such in texts.
func numeric(m *spec.Metric, s *sample) (Score, error) {
	want, err := number(s.expected)
	if err != nil {
		return Score{}, fmt.Errorf("the expected value is not a number: %q", value.Text(s.expected))
	}
	got, err := number(s.output)
	if err != nil {
		return failed("%q is not a number", value.Text(s.output)), nil //nolint:nilerr // a wrong output is a score
	}
	if math.Abs(got-want) <= max(m.Tolerance, m.RelativeTolerance*math.Abs(want)) {
		return passed(), nil
	}
	return failed("expected %v, got %v", want, got), nil
}

func number(v any) (float64, error) {
	n, err := json.Number(strings.TrimSpace(value.Text(v))).Float64()
	if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
		err = errors.New("not a finite number")
	}
	return n, err
}

// matching makes the scorer of a regular expression.
func matching(m *spec.Metric) scorer {
	pattern, err := eval.Pattern(m)
	return func(_ context.Context, s *sample) (Score, error) {
		if err != nil {
			return Score{}, err
		}
		if text := value.Text(s.output); !pattern.MatchString(text) {
			return failed("%q does not match %s", text, m.Pattern), nil
		}
		return passed(), nil
	}
}

// conforming makes the scorer of a JSON schema.
func conforming(m *spec.Metric) scorer {
	schema, err := eval.ResultSchema(m)
	return func(_ context.Context, s *sample) (Score, error) {
		if err != nil {
			return Score{}, err
		}
		text := value.JSON(s.output)
		if isText(s.variable) {
			text = []byte(value.Text(s.output))
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return failed("%q is not JSON", text), nil //nolint:nilerr // a wrong output is a score
		}
		if err := schema.Validate(v); err != nil {
			return failed("%s", reasonOf(err)), nil
		}
		return passed(), nil
	}
}

// reasonOf returns the innermost reason of a validation error, after the place in the schema.
func reasonOf(err error) string {
	place, reason := "", err.Error()
	for {
		rest, nested := strings.CutPrefix(reason, "validating ")
		at, inner, found := strings.Cut(rest, ": ")
		if !nested || !found {
			return place + reason
		}
		if reason = inner; at != "root" {
			place = strings.TrimPrefix(at, "/") + ": "
		}
	}
}

// measured makes the scorer of a number of the row.
func measured(read func(*sample) float64) builder {
	return func(*spec.Metric) scorer {
		return func(_ context.Context, s *sample) (Score, error) { return Score{Value: read(s)}, nil }
	}
}

// costs makes the scorer of the cost, which needs the prices of all models.
func costs(*spec.Metric) scorer {
	return func(_ context.Context, s *sample) (Score, error) {
		if len(s.usage.Unpriced) > 0 {
			return Score{}, fmt.Errorf("model %s has no prices", s.usage.Unpriced[0])
		}
		return Score{Value: s.usage.Money}, nil
	}
}
