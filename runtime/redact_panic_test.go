package runtime

import (
	"context"
	"testing"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/tool"
)

// brokenTool panics with a text.
type brokenTool struct {
	tool.Tool
	text string
}

func (b brokenTool) Call(context.Context, map[string]any) (any, error) { panic(b.text) }

// TestRedactedTool_Panic has a tool whose panic has a secret.
func TestRedactedTool_Panic(t *testing.T) {
	r := redact.New()
	r.Add("marker-7716-secret")
	for text, want := range map[string]string{"cannot use marker-7716-secret": "cannot use ***", "a bug": "a bug"} {
		func() {
			defer func() {
				if p := recover(); p != want {
					t.Errorf("the panic is %v, want %q", p, want)
				}
			}()
			_, _ = (&redactedTool{Tool: brokenTool{text: text}, redactor: r}).Call(t.Context(), nil)
		}()
	}
}
