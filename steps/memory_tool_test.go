package steps

import (
	"context"
	"testing"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

func TestMemoryTool_Contract(t *testing.T) {
	counter, err := tokenizer.For("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	m, err := memory.New(memory.Config{ID: "chat", Counter: counter}, memory.NewInProcess())
	if err != nil {
		t.Fatal(err)
	}
	plan := &spec.Variable{ID: "plan", Type: spec.Type{Name: "text"}}
	declared := &spec.MemoryTool{ToolBase: spec.ToolBase{ID: "note_plan", Name: "note_plan", Inputs: []*spec.Variable{plan}, Outputs: []*spec.Variable{plan}}}
	tooltest.Run(t, tooltest.Case{
		Context: func(ctx context.Context) context.Context {
			return withCallContext(ctx, "ask", &Row{Session: "me"})
		},
		Tool: NewMemoryTool(declared, m), Args: map[string]any{"plan": "basic"},
	})
}
