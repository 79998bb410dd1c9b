package factory_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
)

// TestHosted: a tool of the provider is offered with its settings, and cannot be called.
func TestHosted(t *testing.T) {
	f := factory.New(factory.Options{})
	t.Cleanup(f.Close)
	made, err := f.Tool(&spec.HostedTool{ToolBase: spec.ToolBase{ID: "web"}, Hosted: "web_search", Settings: map[string]any{"max_uses": 3}})
	testkit.Must(t, err)
	if info := made.Info(); info.Name != "web" || info.Hosted != "web_search" || string(info.Settings) != `{"max_uses":3}` {
		t.Errorf("got %+v", info)
	}
	if _, err := made.Call(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the provider of the model runs web_search") {
		t.Errorf("got %v", err)
	}
}
