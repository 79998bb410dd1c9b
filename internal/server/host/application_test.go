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
		var description struct{ Paths map[string]any }
		testkit.Must(t, json.Unmarshal(a.OpenAPI(tt.who), &description))
		if description.Paths["/flows/open"] == nil || (description.Paths["/flows/staff"] != nil) != slices.Contains(tt.visibleTo, "staff") {
			t.Errorf("%s sees the paths %v", tt.who.Name, description.Paths)
		}
	}
}

const talking = `id: shop
models: [{type: Model, id: clerk, provider: mock, rules: [{echo: true}]}]
flows:
  - id: talk
    interface: {type: Conversational, session_inputs: [language, tone]}
    variables: [{id: message, type: ChatMessage}, {id: language, type: text}, {id: tone, type: text}, {id: prompt, type: text}, {id: answer, type: ChatMessage}]
    inputs: [message, language, tone]
    outputs: [answer]
    steps:
      - {type: PromptTemplate, id: ask, template: "{language} {tone} {message}", inputs: [language, tone, message], outputs: [prompt]}
      - {type: LLMInference, id: reply, model: clerk, inputs: [prompt], outputs: [answer]}
`

// Two requests of a session that set different inputs at the same time do not lose one of them,
// and the first value of each is kept.
func TestInputs_Concurrent(t *testing.T) {
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", talking), qtype.WithEphemeral())
	testkit.Must(t, err)
	defer func() { _ = app.Close(context.Background()) }()
	flow, err := host.NewApplication(app).Flow(access.Principal{}, "talk")
	testkit.Must(t, err)
	inputs := host.NewInputs(app.State)
	known := func() *host.SessionInputs {
		s, err := inputs.Known(t.Context(), flow, "s")
		testkit.Must(t, err)
		return s
	}
	first, second := known(), known()
	testkit.Must(t, inputs.Apply(t.Context(), first, map[string]any{"language": "en"}))
	row := map[string]any{"language": "fr", "tone": "calm"}
	testkit.Must(t, inputs.Apply(t.Context(), second, row))
	later := map[string]any{}
	testkit.Must(t, inputs.Apply(t.Context(), known(), later))
	for name, values := range map[string]map[string]any{"the second request": row, "a later one": later} {
		if values["language"] != "en" || values["tone"] != "calm" {
			t.Errorf("%s has %v", name, values)
		}
	}
}
