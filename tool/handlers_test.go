package tool_test

import (
	"context"
	"testing"

	"github.com/qtype-dev/qtype/tool"
)

// approver returns an Approver that gives a reason, by which tests recognize it.
func approver(reason string) tool.Approver {
	return func(context.Context, tool.Request) (bool, string, error) { return false, reason, nil }
}

// client returns a ClientHandler whose result tests recognize.
func client(result string) tool.ClientHandler {
	return func(context.Context, tool.Request) (any, error) { return result, nil }
}

// The handlers of a run replace those of the application, each for itself.
func TestHandlers(t *testing.T) {
	own := func(id string) tool.ClientHandler {
		if id == "locate" {
			return client("run")
		}
		return nil
	}
	for _, tt := range []struct {
		name            string
		h               *tool.Handlers
		approve, locate string
		other           string
	}{
		{"none", nil, "app", "app", "app"},
		{"empty", &tool.Handlers{}, "app", "app", "app"},
		{"approval", &tool.Handlers{Approve: approver("run")}, "run", "app", "app"},
		{"client tool", &tool.Handlers{Client: own}, "app", "run", "app"},
	} {
		ctx := t.Context()
		if tt.h != nil {
			ctx = tool.WithHandlers(ctx, *tt.h)
		}
		_, reason, _ := tool.ApproverOf(ctx, approver("app"))(ctx, tool.Request{})
		locate, _ := tool.ClientHandlerOf(ctx, "locate", client("app"))(ctx, tool.Request{})
		other, _ := tool.ClientHandlerOf(ctx, "other", client("app"))(ctx, tool.Request{})
		if reason != tt.approve || locate != tt.locate || other != tt.other {
			t.Errorf("%s: approval by %s, locate by %v, other by %v", tt.name, reason, locate, other)
		}
	}
	if tool.ApproverOf(t.Context(), nil) != nil || tool.ClientHandlerOf(t.Context(), "a", nil) != nil {
		t.Error("there is a handler without any")
	}
}

func TestCallerTools(t *testing.T) {
	if got := tool.CallerTools(t.Context()); got != nil {
		t.Errorf("tools without any: %v", got)
	}
	if got := tool.CallerTools(tool.WithCallerTools(t.Context(), make([]tool.RawTool, 2))); len(got) != 2 {
		t.Errorf("%d tools", len(got))
	}
}
