package tool_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

func TestEnvironment(t *testing.T) {
	declared := map[string]spec.Secret{"A": spec.NewSecret("one"), "B": spec.NewSecret("two"), "C": spec.NewSecret("three")}
	got, err := tool.Environment(declared, nil)
	if d := cmp.Diff(map[string]string{"A": "one", "B": "two", "C": "three"}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for range 50 { // the order of maps is random, that of errors must not be
		_, err := tool.Environment(declared, func(spec.Secret) (string, error) { return "", errors.New("no manager") })
		if err == nil || err.Error() != "env A: no manager" {
			t.Fatalf("got %v", err)
		}
	}
}

func TestValidateArgs_FirstUnknownArgument(t *testing.T) {
	for range 50 {
		_, err := tool.Info{ID: "find"}.ValidateArgs(map[string]any{"c": 1, "a": 1, "b": 1})
		if err == nil || err.Error() != "tool find: argument a: is not an argument of this tool" {
			t.Fatalf("got %v", err)
		}
	}
}
