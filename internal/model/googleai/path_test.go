package googleai_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// A name stays within the collection of its model.
func TestNew_PathOfModel(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-3":           "/v1beta/models/gemini-3:generateContent",
		"models/gemini-3":    "/v1beta/models/gemini-3:generateContent",
		"tunedModels/mine-1": "/v1beta/tunedModels/mine-1:generateContent",
		"../../etc":          "/v1beta/models/..%2F..%2Fetc:generateContent",
		"models/../x?y#z":    "/v1beta/models/..%2Fx%3Fy%23z:generateContent",
	} {
		s := modeltest.Serve(t, modeltest.Respond(200, "application/json", `{"candidates":[{"content":{"parts":[{"text":"One"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"Two"}]},"finishReason":"STOP"}],"usageMetadata":[]}`))
		m, err := googleai.New(modeltest.Target{Info: model.Info{ID: "m", Name: name}, URL: s.URL, HTTP: s.Client()}.Config())
		if err != nil {
			t.Fatal(err)
		}
		got, err := model.Call(t.Context(), m, model.Request{}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if path := s.Requests()[0].Path; path != want || got.Message.Text() != "One" {
			t.Errorf("%s: called %s, got %q", name, path, got.Message.Text())
		}
	}
}
