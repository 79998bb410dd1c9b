package agui_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/server/agui"
)

// TestParse_WrongTypes checks that errors name members of the body, not types of Go.
func TestParse_WrongTypes(t *testing.T) {
	for body, want := range map[string]string{
		`{"threadId":5,"runId":"r","messages":[]}`:                              "/threadId: expected a text",
		`{"threadId":"t","runId":"r","messages":"hi"}`:                          "/messages: expected a list",
		`{"threadId":"t","runId":"r","messages":[],"context":[{"value":true}]}`: "/context/value: expected a text",
		`[]`: "the body must be a JSON object",
	} {
		if _, err := agui.Parse([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
