package telemetry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

var (
	thumbs     = &spec.ThumbsFeedback{FeedbackBase: spec.FeedbackBase{Explanation: true}}
	stars      = &spec.RatingFeedback{Scale: 5}
	categories = &spec.CategoryFeedback{Categories: []string{"right", "slow", "wrong"}, AllowMultiple: true}
)

const (
	traceID = "0123456789abcdef0123456789abcdef"
	spanID  = "0123456789abcdef"
)

func TestCheckFeedback(t *testing.T) {
	one := &spec.CategoryFeedback{Categories: []string{"right", "wrong"}}
	tests := []struct {
		configured spec.Feedback
		answer     string
		want       string
	}{
		{thumbs, `{"type": "thumbs", "value": false, "explanation": "slow"}`, ""},
		{thumbs, `{"type": "thumbs"}`, "feedback: value: it is missing; expected true or false"},
		{thumbs, `{"type": "stars"}`, `feedback: type: "stars" is not one of thumbs, rating, category`},
		{thumbs, `{"type": "rating", "score": 1}`, "feedback: type: the flow collects thumbs, not rating"},
		{nil, `{"type": "thumbs", "value": true}`, "feedback: type: the flow collects no feedback"},
		{stars, `{"type": "rating", "score": 5}`, ""},
		{stars, `{"type": "rating"}`, "feedback: score: it is missing"},
		{stars, `{"type": "rating", "score": 6}`, "feedback: score: 6 is not a whole number from 1 to 5"},
		{stars, `{"type": "rating", "score": 0}`, "feedback: score: 0 is not a whole number from 1 to 5"},
		{stars, `{"type": "rating", "score": 2.5}`, "feedback: score: 2.5 is not a whole number from 1 to 5"},
		{stars, `{"type": "rating", "score": 1, "explanation": "x"}`, "feedback: explanation: the flow does not collect explanations"},
		{categories, `{"type": "category", "categories": ["right", "slow"]}`, ""},
		{categories, `{"type": "category"}`, "feedback: categories: none is chosen"},
		{categories, `{"type": "category", "categories": ["funny"]}`, `feedback: categories: "funny" is not one of right, slow, wrong`},
		{categories, `{"type": "category", "categories": ["slow", "slow"]}`, `feedback: categories: "slow" is chosen twice`},
		{one, `{"type": "category", "categories": ["right", "wrong"]}`, "feedback: categories: only one may be chosen"},
		{thumbs, `{"type": "thumbs", "value": true, "explanation": "` + strings.Repeat("x", 10_001) + `"}`, "feedback: explanation: it is longer than 10000 bytes"},
	}
	for _, tt := range tests {
		var a appstate.Answer
		testkit.Must(t, json.Unmarshal([]byte(tt.answer), &a))
		err := telemetry.CheckFeedback(tt.configured, a)
		if fmt.Sprint(err) != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%.80s: %v, want %s", tt.answer, err, tt.want)
		}
		if _, ok := errors.AsType[*telemetry.FeedbackError](err); err != nil && !ok {
			t.Errorf("%.80s: %T", tt.answer, err)
		}
	}
}

// ratingServer notes one request.
type ratingServer struct {
	path    string
	headers http.Header
	body    string
	status  int
}

func (r *ratingServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.path, r.headers = req.URL.RequestURI(), req.Header
	var v any
	if json.NewDecoder(req.Body).Decode(&v) == nil {
		text, _ := json.Marshal(v)
		r.body = string(text)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write([]byte("no\nsuch span"))
}

func TestFeedback_Providers(t *testing.T) {
	score, up := 4.0, true
	tests := map[string]struct {
		declared   string
		configured spec.Feedback
		answer     appstate.Answer
		path       string
		header     [2]string
		body       string
	}{
		"Phoenix": {`telemetry: {id: t, endpoint: "%s/v1/traces", args: {api_key: k}}`, thumbs, appstate.Answer{Type: "thumbs", Value: &up},
			"/v1/span_annotations?sync=true", [2]string{"Authorization", "Bearer k"},
			`{"data":[{"annotator_kind":"HUMAN","name":"user_feedback","result":{"label":"👍","score":1},"span_id":"0123456789abcdef"}]}`},
		"Langfuse rating": {`telemetry: {id: t, provider: Langfuse, endpoint: "%s", args: {public_key: pk, secret_key: sk}}`, stars, appstate.Answer{Type: "rating", Score: &score},
			"/api/public/scores", [2]string{"Authorization", "Basic cGs6c2s="},
			`{"dataType":"NUMERIC","name":"user_feedback","observationId":"0123456789abcdef","traceId":"0123456789abcdef0123456789abcdef","value":4}`},
		"Langfuse categories": {`telemetry: {id: t, provider: Langfuse, endpoint: "%s", args: {public_key: pk, secret_key: sk}}`, categories, appstate.Answer{Type: "category", Categories: []string{"right", "slow"}},
			"/api/public/scores", [2]string{"Authorization", "Basic cGs6c2s="},
			`{"dataType":"CATEGORICAL","name":"user_feedback","observationId":"0123456789abcdef","traceId":"0123456789abcdef0123456789abcdef","value":"right, slow"}`},
		"Arize": {`telemetry: {id: t, provider: Arize, endpoint: "http://127.0.0.1:1", args: {space_id: s, api_key: k, api_endpoint: "%s", project_id: p1}}`, stars, appstate.Answer{Type: "rating", Score: &score},
			"/v2/spans/annotate", [2]string{"Authorization", "Bearer k"},
			`{"annotations":[{"record_id":"0123456789abcdef","values":[{"label":"4","name":"user_feedback","score":4}]}],"project_id":"p1"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			received := &ratingServer{status: http.StatusOK}
			server := newServer(t, received.ServeHTTP)
			f, err := telemetry.NewFeedback(open(t, withTelemetry(tt.declared, server.URL)), "")
			testkit.Must(t, err)
			testkit.Must(t, f.Send(t.Context(), tt.configured, traceID, spanID, tt.answer))
			if received.path != tt.path || received.headers.Get(tt.header[0]) != tt.header[1] || received.body != tt.body {
				t.Errorf("%s %s %s\n%s", received.path, tt.header[0], received.headers.Get(tt.header[0]), received.body)
			}
			received.status = http.StatusNotFound
			err = f.Send(t.Context(), tt.configured, traceID, spanID, tt.answer)
			if failed, ok := errors.AsType[*telemetry.SinkError](err); !ok || failed.Status != http.StatusNotFound || !strings.HasSuffix(err.Error(), ": HTTP 404: no such span") {
				t.Errorf("an error of the provider: %v", err)
			}
		})
	}
}

func TestFeedback_Errors(t *testing.T) {
	f, err := telemetry.NewFeedback(open(t, withTelemetry(`telemetry: {id: t, endpoint: "http://user:geheim@%s"}`, servertest.Refused(t))), "")
	testkit.Must(t, err)
	up := appstate.Answer{Type: "thumbs", Value: new(bool)}
	for _, ids := range [][2]string{{"x", spanID}, {traceID, "x"}, {traceID, "0000000000000000"}, {strings.ToUpper(traceID), spanID}} {
		err := f.Send(t.Context(), thumbs, ids[0], ids[1], up)
		if _, ok := errors.AsType[*telemetry.FeedbackError](err); !ok {
			t.Errorf("%q: %v", ids, err)
		}
	}
	err = f.Send(t.Context(), thumbs, traceID, spanID, up)
	if _, ok := errors.AsType[*telemetry.SinkError](err); !ok || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("an unreachable provider: %v", err)
	}
	for _, declared := range []string{"", `telemetry: {id: t, provider: OTLP, endpoint: "http://%s"}`} {
		if f, err := telemetry.NewFeedback(open(t, withTelemetry(declared, "127.0.0.1:1")), ""); f != nil || err != nil {
			t.Errorf("%q accepts feedback: %v", declared, err)
		}
	}
}
