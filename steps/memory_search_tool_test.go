package steps

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	memorysearch "github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

// searchTool makes a tool with a scope, and a memory with messages of two users.
func searchTool(t *testing.T, scope spec.Scope) tool.Tool {
	counter, err := tokenizer.For("o200k_base")
	testkit.Must(t, err)
	now := time.Date(2024, time.May, 1, 12, 0, 0, 0, time.UTC)
	m, err := memory.New(memory.Config{ID: "chat", Counter: counter, Now: func() time.Time { return now }}, memory.NewInProcess())
	testkit.Must(t, err)
	for _, added := range [][2]string{{"ada/1", "my parcel was blue"}, {"ada/2", "the parcel is red"}, {"bob/1", "a secret parcel"}} {
		msg := chat.Text(chat.User, added[1])
		msg.Name = "Ada"
		testkit.Must(t, m.Append(t.Context(), added[0], msg))
		now = now.AddDate(0, 0, 1)
	}
	declared := &spec.MemoryTool{ToolBase: spec.ToolBase{ID: "recall", Name: "recall"}, Search: true, Scope: scope}
	return NewMemorySearchTool(declared, memorysearch.New(m))
}

func inSession(ctx context.Context) context.Context {
	return withCallContext(ctx, "ask", &Row{Session: "ada/1"})
}

func TestMemorySearchTool_Contract(t *testing.T) {
	tooltest.Run(t, tooltest.Case{Context: inSession, Tool: searchTool(t, spec.ScopeSession), Args: map[string]any{"query": "parcel"}})
}

func TestMemorySearchTool_Scopes(t *testing.T) {
	for _, test := range []struct {
		scope spec.Scope
		args  map[string]any
		want  string
	}{
		{spec.ScopeSession, map[string]any{"query": "parcels"}, `[{"author":"Ada","content":"my parcel was blue","time":"2024-05-01T12:00:00Z"}]`},
		{spec.ScopeUser, map[string]any{"query": "red parcel", "limit": json.Number("1")}, `[{"author":"Ada","content":"the parcel is red","time":"2024-05-02T12:00:00Z"}]`},
		{spec.ScopeUser, map[string]any{"query": "parcel", "since": "2024-05-02", "until": "2024-05-03"}, `[{"author":"Ada","content":"the parcel is red","time":"2024-05-02T12:00:00Z"}]`},
		{spec.ScopeUser, map[string]any{"query": "secret"}, `[]`},
		{spec.ScopeApp, map[string]any{"query": "secret"}, `[{"author":"Ada","content":"a secret parcel","time":"2024-05-03T12:00:00Z"}]`},
		{spec.ScopeUser, map[string]any{"query": `"AND NEAR(`}, `[]`},
	} {
		got, err := searchTool(t, test.scope).Call(inSession(t.Context()), test.args)
		testkit.Must(t, err)
		raw, err := json.Marshal(got)
		testkit.Must(t, err)
		if string(raw) != test.want {
			t.Errorf("%s %v: %s, want %s", test.scope, test.args, raw, test.want)
		}
	}
}

func TestMemorySearchTool_Errors(t *testing.T) {
	recall := searchTool(t, spec.ScopeSession)
	for _, test := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"query": " "}, "query"},
		{map[string]any{}, "query"},
		{map[string]any{"query": "a", "since": "yesterday"}, "since"},
	} {
		if _, err := recall.Call(inSession(t.Context()), test.args); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.args, err)
		}
	}
	if _, err := recall.Call(t.Context(), map[string]any{"query": "a"}); err == nil {
		t.Error("a call outside of a step is accepted")
	}
}
