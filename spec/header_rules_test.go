package spec_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestHeaderConflict: a model cannot set headers of a connection, those that its client sets, and one
// header twice.
func TestHeaderConflict(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"accept-encoding":   {"br", "the header accept-encoding is set by qtype"},
		"Accept-Encoding":   {"gzip", "the header Accept-Encoding is set by qtype"},
		"CONTENT-LENGTH":    {"5", "the header CONTENT-LENGTH is set by qtype"},
		"hOsT":              {"other.example", "the header hOsT is set by qtype"},
		"transfer-encoding": {"chunked", "the header transfer-encoding is set by qtype"},
		"connection":        {"x-team", "the header connection is set by qtype"},
		"x-api-key":         {"k", "the header x-api-key is set by qtype; credentials are an auth"},
		"x-lines":           {"a\r\nx-other: b", "the header x-lines has a value that HTTP cannot carry"},
		"x team":            {"a", `invalid header "x team"`},
		"X-Team":            {"b", "X-Team and x-team are the same header"},
		"user-agent":        {"shop", ""},
		"":                  {"a", `invalid header ""`},
	} {
		m := spec.Model{Headers: map[string]spec.Secret{"x-team": spec.NewSecret("a"), name: spec.NewSecret(c.value)}}
		at, problem := m.HeaderConflict()
		if name == "X-Team" {
			name = "x-team" // the second one
		}
		if problem != c.want || c.want != "" && at != name {
			t.Errorf("%s: %s, want %s", at, problem, c.want)
		}
	}
	a := spec.ChromaArguments{Headers: map[string]string{"Host": "other.example"}, Space: "l2"}
	if all := a.CheckArguments(); len(all) != 1 || all[0].Key != "headers" {
		t.Errorf("arguments of an index: %v", all)
	}
}
