package host_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `id: shop
flows:
  - {id: open, variables: [{id: a, type: text}, {id: b, type: text}], inputs: [a], outputs: [b], steps: [{id: s, type: PromptTemplate, template: "{a}", inputs: [a], outputs: [b]}]}
  - {id: staff, allow: [bo], variables: [{id: a, type: text}, {id: b, type: text}], inputs: [a], outputs: [b], steps: [{id: s2, type: PromptTemplate, template: "{a}", inputs: [a], outputs: [b]}]}
`

func TestApplication(t *testing.T) {
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", document), qtype.WithEphemeral())
	testkit.Must(t, err)
	defer func() { _ = app.Close(context.Background()) }()
	a := host.NewApplication(app)
	ada, bo := access.Principal{Name: "ada"}, access.Principal{Name: "bo"}
	for _, tt := range []struct {
		who       access.Principal
		id, code  string
		visibleTo []string
	}{
		{ada, "open", "", []string{"open"}},
		{bo, "staff", "", []string{"open", "staff"}},
		{ada, "staff", "not_allowed", []string{"open"}},
		{ada, "opne", "unknown_flow", []string{"open"}},
	} {
		f, err := a.Flow(tt.who, tt.id)
		p := problem.Of(err)
		if tt.code == "" && (err != nil || f.ID() != tt.id) || tt.code != "" && (p == nil || p.Code != tt.code) {
			t.Errorf("%s calls %s: %v, %v", tt.who.Name, tt.id, f, err)
		}
		if got := a.IDs(tt.who); !slices.Equal(got, tt.visibleTo) {
			t.Errorf("%s sees %v", tt.who.Name, got)
		}
	}
	var description struct{ Paths map[string]any }
	testkit.Must(t, json.Unmarshal(a.OpenAPI(), &description))
	if description.Paths["/flows/open"] == nil {
		t.Errorf("paths %v", description.Paths)
	}
}
