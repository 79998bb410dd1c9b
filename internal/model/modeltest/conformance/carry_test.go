package conformance_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
)

// TestCarried_Continued: only a text that follows that of another answer may be without what came with it.
func TestCarried_Continued(t *testing.T) {
	text := "It arrives (note " + conformance.Ref("abcd") + ")."
	for name, c := range map[string]struct {
		back string
		want bool
	}{
		"unchanged":                {text, false},
		"after another answer":     {"Half (note " + conformance.Ref("efgh") + "). " + text, true},
		"after a text of the same": {"Half (note " + conformance.Ref("abcd") + "). " + text, false},
		"after an unknown text":    {"Half. " + text, false},
		"gone":                     {"Half (note " + conformance.Ref("efgh") + ").", false},
	} {
		if got := conformance.IsContinued("abcd", text, c.back); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
