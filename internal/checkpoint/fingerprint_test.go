package checkpoint_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/spec"
)

// newFlow returns a flow with a step that calls a model, and the parts that tests
// change.
func newFlow() (*spec.Flow, *spec.LLMInference, *spec.Model) {
	in, out := &spec.Variable{ID: "in", Type: spec.Type{Name: "text"}}, &spec.Variable{ID: "out", Type: spec.Type{Name: "text"}}
	m := &spec.Model{ID: "gpt", Provider: "openai"}
	s := &spec.LLMInference{SystemMessage: "Be brief.", Model: spec.Ref[spec.ModelEntity]{ID: "gpt", To: m}}
	s.ID = "ask"
	s.Inputs = []spec.Ref[*spec.Variable]{{ID: "in", To: in}}
	s.Outputs = []spec.Ref[*spec.Variable]{{ID: "out", To: out}}
	return &spec.Flow{ID: "main", Variables: []*spec.Variable{in, out}, Steps: []*spec.StepItem{{Step: s}}}, s, m
}

func TestFingerprint(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.LLMInference, *spec.Model)
		want   []string // the parts that change
	}{
		"nothing":       {func(*spec.LLMInference, *spec.Model) {}, nil},
		"a setting":     {func(s *spec.LLMInference, _ *spec.Model) { s.SystemMessage = "Be long." }, []string{"step ask"}},
		"the model":     {func(_ *spec.LLMInference, m *spec.Model) { m.ModelID = "gpt-6-sol" }, []string{"model gpt"}},
		"a type":        {func(s *spec.LLMInference, _ *spec.Model) { s.Outputs[0].To.Type.Name = "int" }, []string{"flow main", "step ask"}},
		"a timeout":     {func(s *spec.LLMInference, _ *spec.Model) { s.Timeout = spec.Duration(time.Second) }, nil},
		"an own ignore": {func(s *spec.LLMInference, _ *spec.Model) { s.OnError = "skip" }, nil},
	} {
		opts := checkpoint.FingerprintOptions{Ignore: []string{"on_error"}}
		flow, _, _ := newFlow()
		was := checkpoint.Fingerprint(flow, opts)
		flow, s, m := newFlow()
		c.change(s, m)
		is := checkpoint.Fingerprint(flow, opts)
		if got := slices.Sorted(maps.Keys(is)); !slices.Equal(got, []string{"flow main", "model gpt", "step ask"}) {
			t.Fatalf("%s: the parts are %q", name, got)
		}
		var changed []string
		for _, part := range slices.Sorted(maps.Keys(is)) {
			if is[part] != was[part] {
				changed = append(changed, part)
			}
		}
		if !slices.Equal(changed, c.want) {
			t.Errorf("%s: got %q, want %q", name, changed, c.want)
		}
		if same := checkpoint.Sum(was) == checkpoint.Sum(is); same != (c.want == nil) {
			t.Errorf("%s: equal sums: %v", name, same)
		}
	}
}

// TestFingerprint_Values counts what decides the result of a step, but no credentials.
func TestFingerprint_Values(t *testing.T) {
	query := func(address string) spec.Entity { return &spec.SQLSource{Connection: spec.NewSecret(address)} }
	program := func(name, text string) spec.Entity {
		return &spec.CommandTool{Env: map[string]spec.Secret{name: spec.NewSecret(text)}}
	}
	search := func(year any) spec.Entity { return &spec.DocumentSearch{Filters: map[string]any{"year": year}} }
	called := func(onError string, batch int) spec.Entity {
		inner := &spec.Collect{}
		inner.OnError, inner.BatchConfig = onError, &spec.BatchConfig{BatchSize: batch}
		flow := &spec.Flow{ID: "inner", Steps: []*spec.StepItem{{Step: inner}}}
		return &spec.InvokeFlow{Flow: spec.Ref[*spec.Flow]{ID: "inner", To: flow}}
	}
	own := func(onError string) spec.Entity {
		s := &spec.InvokeFlow{}
		s.OnError = onError
		return s
	}
	for name, c := range map[string]struct {
		was, is spec.Entity
		changed bool
	}{
		"another database":             {query("sqlite:///a.db"), query("sqlite:///b.db"), true},
		"a file with an at sign":       {query("sqlite:///a@1/x.db"), query("sqlite:///b@1/x.db"), true},
		"another server":               {query("postgresql://u:p@a/shop"), query("postgresql://u:p@b/shop"), true},
		"another option":               {query("postgresql://a/shop?options=x"), query("postgresql://a/shop?options=y"), true},
		"a rotated password":           {query("postgresql://u:p@a/shop"), query("postgresql://u:q@a/shop"), false},
		"a rotated option":             {query("postgresql://a/shop?sslpassword=x"), query("postgresql://a/shop?sslpassword=y"), false},
		"an environment variable":      {program("LIMIT", "100"), program("LIMIT", "200"), true},
		"an address of a variable":     {program("SHOP", "http://a/x"), program("SHOP", "http://b/x"), true},
		"a rotated token":              {program("SHOP_TOKEN", "abc"), program("SHOP_TOKEN", "def"), false},
		"a rotated key of a service":   {program("SHOP", "sk-1234567890abcdef"), program("SHOP", "sk-234567890abcdefg"), false},
		"a number for a text":          {search("2020"), search(2020), true},
		"a boolean for a text":         {search("true"), search(true), true},
		"a list of numbers for texts":  {search([]any{"1", "2"}), search([]any{1, 2}), true},
		"failures of a step in a flow": {called("fail", 2), called("skip", 2), true},
		"batches of a step in a flow":  {called("fail", 2), called("fail", 3), true},
		"failures of the step":         {own("fail"), own("skip"), false},
	} {
		opts := checkpoint.FingerprintOptions{IgnoreRoot: []string{"on_error", "batch_config"}}
		was, is := checkpoint.Sum(checkpoint.Fingerprint(c.was, opts)), checkpoint.Sum(checkpoint.Fingerprint(c.is, opts))
		if changed := was != is; changed != c.changed {
			t.Errorf("%s: changed: %v", name, changed)
		}
	}
}

// TestFingerprint_Extra counts what is added for an entity, and keeps two entities
// with one id apart.
func TestFingerprint_Extra(t *testing.T) {
	flow, s, _ := newFlow()
	s.Model.To.Base().Fallbacks = []spec.Ref[spec.ModelEntity]{{ID: "gpt", To: &spec.Model{ID: "gpt", Provider: "mock"}}}
	server := "a"
	opts := checkpoint.FingerprintOptions{Extra: func(e spec.Entity) []string {
		if m, ok := e.(*spec.Model); ok && m.Provider == "mock" {
			return []string{server}
		}
		return nil
	}}
	was := checkpoint.Fingerprint(flow, opts)
	server = "b"
	is := checkpoint.Fingerprint(flow, opts)
	if len(is) != 4 || is["model gpt"] != was["model gpt"] || is["model gpt (2)"] == was["model gpt (2)"] {
		t.Errorf("was %v, is %v", was, is)
	}
}
