package telemetry_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// getJSON requests a JSON document of a server.
func getJSON(t testing.TB, url string, into any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	testkit.Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", url, resp.Status, text)
	}
	testkit.Must(t, json.Unmarshal(text, into))
}

// eventually repeats f until it is true, at most a minute: Phoenix stores spans in the
// background.
func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatal("it did not happen within a minute")
}

// TestPhoenix sends a trace and feedback to a real Phoenix and reads both through its API.
func TestPhoenix(t *testing.T) {
	server, err := servertest.Phoenix()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close()) })
	base := "http://" + server.Address()
	document := withTelemetry(`telemetry: {id: traces, endpoint: "%s", args: {project_name: shop}}`, base)
	app := open(t, document)
	e := openExporter(t, app, nil)
	results := run(e.Context(t.Context()), t, app, "talk", "question", "Weather?")
	e.Flush(t.Context())

	type span struct {
		Name       string         `json:"name"`
		SpanKind   string         `json:"span_kind"`
		StatusCode string         `json:"status_code"`
		Attributes map[string]any `json:"attributes"`
		Context    struct {
			TraceID string `json:"trace_id"`
			SpanID  string `json:"span_id"`
		} `json:"context"`
	}
	var page struct {
		Data []span `json:"data"`
	}
	eventually(t, func() bool {
		page.Data = nil
		projects := struct {
			Data []struct{ Name string } `json:"data"`
		}{}
		if getJSON(t, base+"/v1/projects", &projects); len(projects.Data) < 2 {
			return false
		}
		getJSON(t, base+"/v1/projects/shop/spans?limit=100", &page)
		return len(page.Data) == 12
	})
	kinds := map[string]string{}
	var flow, model span
	for _, s := range page.Data {
		kinds[s.Name] = s.SpanKind
		switch s.Name {
		case "flow.talk":
			flow = s
		case "chat small":
			model = s
		}
	}
	for name, want := range map[string]string{"flow.talk": "CHAIN", "step.respond": "AGENT", "chat small": "LLM", "execute_tool weather": "TOOL"} {
		if kinds[name] != want {
			t.Errorf("span %s has the kind %q, want %q", name, kinds[name], want)
		}
	}
	id := results[0].Trace
	if flow.Context.SpanID != id.Span || flow.Context.TraceID != id.Trace || flow.StatusCode != "OK" || model.Attributes["llm.model_name"] != "small" {
		t.Errorf("the flow is %+v, the model %+v", flow, model)
	}
	checkPhoenixFeedback(t, base, document, id.Trace, id.Span)
	if t.Failed() {
		text, _ := os.ReadFile(server.Folder + "/log")
		t.Logf("%s", text)
	}
}

// checkPhoenixFeedback sends feedback on a span and reads it as an annotation.
func checkPhoenixFeedback(t *testing.T, base, document, trace, span string) {
	t.Helper()
	f, err := telemetry.NewFeedback(open(t, document), "")
	testkit.Must(t, err)
	up := true
	testkit.Must(t, f.Send(t.Context(), thumbs, trace, span, appstate.Answer{Type: "thumbs", Value: &up, Explanation: "nice"}))
	var page struct {
		Data []struct {
			SpanID        string `json:"span_id"`
			Name          string `json:"name"`
			AnnotatorKind string `json:"annotator_kind"`
			Result        struct {
				Label       string  `json:"label"`
				Score       float64 `json:"score"`
				Explanation string  `json:"explanation"`
			} `json:"result"`
		} `json:"data"`
	}
	eventually(t, func() bool {
		getJSON(t, base+"/v1/projects/shop/span_annotations?span_ids="+span, &page)
		return len(page.Data) > 0
	})
	a := page.Data[0]
	if a.SpanID != span || a.Name != "user_feedback" || a.AnnotatorKind != "HUMAN" || a.Result.Label != "👍" || a.Result.Score != 1 || a.Result.Explanation != "nice" {
		t.Errorf("the annotation is %+v", a)
	}
	err = f.Send(t.Context(), thumbs, trace, "00000000000000ff", appstate.Answer{Type: "thumbs", Value: &up})
	var failed *telemetry.SinkError
	if !errors.As(err, &failed) || failed.Status != http.StatusNotFound || failed.Provider != "Phoenix" {
		t.Errorf("feedback on an unknown span: %v", err)
	}
}
