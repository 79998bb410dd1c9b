package a2a_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/a2a"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// flowsOf returns the flows for tests by their ids.
func flowsOf(t testing.TB) map[string]*schema.Flow {
	t.Helper()
	app, err := runtimetest.Open(t.Context(), "../agui/testdata/agents.qtype.yaml", runtime.Options{Store: memory.NewInProcess()})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	flows := map[string]*schema.Flow{}
	for _, f := range app.Spec().Flows {
		flows[f.ID] = schema.NewFlow(f)
	}
	return flows
}

func TestAnswersOf(t *testing.T) {
	approval := &runs.Request{ID: "a", Kind: runs.Approval}
	client := &runs.Request{ID: "c", Kind: runs.ClientTool}
	for _, tt := range []struct {
		name    string
		part    *sdk.Part
		pending []*runs.Request
		want    string // the answers as JSON, or the error
	}{
		{"approve", sdk.NewTextPart(" Approve. "), []*runs.Request{approval}, `[{"id":"a","approved":true}]`},
		{"reject", sdk.NewTextPart("no"), []*runs.Request{approval}, `[{"id":"a","approved":false}]`},
		{"unclear", sdk.NewTextPart("perhaps"), []*runs.Request{approval}, "approve"},
		{"result as text", sdk.NewTextPart("12 degrees"), []*runs.Request{client}, `[{"id":"c","result":"12 degrees"}]`},
		{"result as JSON", sdk.NewTextPart(`{"x":1}`), []*runs.Request{client}, `[{"id":"c","result":{"x":1}}]`},
		{"data", sdk.NewDataPart(map[string]any{"approved": false, "reason": "r"}), []*runs.Request{approval}, `[{"id":"a","approved":false,"reason":"r"}]`},
		{"several", sdk.NewDataPart(map[string]any{"answers": []any{map[string]any{"id": "a", "approved": true}, map[string]any{"id": "c", "error": "e"}}}),
			[]*runs.Request{approval, client}, `[{"id":"a","approved":true},{"id":"c","error":"e"}]`},
		{"which", sdk.NewTextPart("yes"), []*runs.Request{approval, client}, "2 answers"},
		{"unknown", sdk.NewDataPart(map[string]any{"id": "x", "approved": true}), []*runs.Request{approval}, `request "x"`},
		{"wrong kind", sdk.NewDataPart(map[string]any{"result": 1}), []*runs.Request{approval}, "approval"},
		{"list", sdk.NewDataPart([]any{1}), []*runs.Request{approval}, "object"},
		{"file", sdk.NewRawPart([]byte("x")), []*runs.Request{approval}, "text or a data part"},
		{"empty", sdk.NewTextPart("  "), []*runs.Request{approval}, "no answer"},
	} {
		got, err := a2a.AnswersOf(sdk.NewMessage(sdk.MessageRoleUser, tt.part), tt.pending)
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: error %q", tt.name, err)
			}
			continue
		}
		if raw, _ := json.Marshal(got); string(raw) != tt.want {
			t.Errorf("%s: %s", tt.name, raw)
		}
	}
}

// FuzzMessage reads messages of clients: they never cause a panic.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"messageId":"1","role":"ROLE_USER","parts":[{"text":"hello"}]}`,
		`{"messageId":"1","role":"ROLE_USER","parts":[{"data":{"order":1}},{"raw":"AAEC","mediaType":"image/png"},null]}`,
		`{"messageId":"1","role":"ROLE_USER","parts":[{"url":"data:text/plain;base64,eA=="},{"data":[1,{"a":null}]}]}`,
		`{"messageId":"1","role":"ROLE_USER","parts":[{"text":"{\"order\": 3}"}],"metadata":{"skill":7}}`,
		`{"messageId":"1","role":"ROLE_USER","parts":[{"data":{"answers":[{"id":"a","approved":true},4]}}]}`,
	} {
		f.Add(seed)
	}
	flows := flowsOf(f)
	pending := []*runs.Request{{ID: "a", Kind: runs.Approval}, {ID: "c", Kind: runs.ClientTool}}
	f.Fuzz(func(t *testing.T, body string) {
		m := &sdk.Message{}
		if json.Unmarshal([]byte(body), m) != nil {
			return
		}
		_, _ = a2a.AnswersOf(m, pending)
		_, _ = a2a.AnswersOf(m, pending[:1])
		for _, id := range []string{"talk", "greet", "find_receipt"} {
			_, _ = a2a.ReadInputs(m, flows[id])
		}
	})
}
