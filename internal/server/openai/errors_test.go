package openai_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/runs"
)

// All errors below /v1 have OpenAI's form, also those of access control.
func TestErrors_Form(t *testing.T) {
	s := keyed(t, access.Limits{BodyBytes: 2000})
	const key, ada, boss = "Authorization", "Bearer ada-key-0123456789", "Bearer boss-key-0123456789"
	const body = `{"model":"talk","messages":[{"role":"user","content":"hi"}]}`
	for _, tt := range []struct {
		method, path, body, auth string
		status                   int
		typ, code                string
	}{
		{"POST", "/v1/chat/completions", body, "", 401, "authentication_error", "invalid_api_key"},
		{"POST", "/v1/chat/completions", body, "Bearer wrong", 401, "authentication_error", "invalid_api_key"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "talk", "guarded", 1), ada, 403, "permission_error", "not_allowed"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "talk", "none", 1), ada, 404, "invalid_request_error", "model_not_found"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "talk", "stock", 1), ada, 404, "invalid_request_error", "model_not_found"},
		{"POST", "/v1/chat/completions", `{"model":`, ada, 400, "invalid_request_error", "malformed_json"},
		{"POST", "/v1/chat/completions", `[]`, ada, 400, "invalid_request_error", "invalid_request"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "hi", strings.Repeat("x", 3000), 1), ada, 413, "invalid_request_error", "body_too_large"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "hi", "limit", 1), ada, 429, "rate_limit_error", "rate_limit_exceeded"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "hi", "broken", 1), ada, 503, "server_error", "model_unavailable"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "hi", "refuse", 1), ada, 422, "invalid_request_error", "model_failed"},
		{"POST", "/v1/embeddings", `{"model":"talk","input":"x"}`, ada, 404, "invalid_request_error", "model_not_found"},
		{"GET", "/v1/models/none", "", ada, 404, "invalid_request_error", "model_not_found"},
		{"GET", "/v1/responses/resp_1", "", ada, 404, "invalid_request_error", "not_found"},
		{"DELETE", "/v1/models", "", ada, 405, "invalid_request_error", "method_not_allowed"},
		{"POST", "/v1/chat/completions", strings.Replace(body, "talk", "guarded", 1), boss, 200, "", ""},
	} {
		r := s.do(tt.method, tt.path, tt.body, key, tt.auth)
		var f failure
		r.into(t, &f)
		if r.status != tt.status || f.Error.Type != tt.typ || f.Error.Code != tt.code || tt.status != 200 && f.Error.Message == "" {
			t.Errorf("%s %s %.40s: %d %s", tt.method, tt.path, tt.body, r.status, r.body)
		}
		if retried := tt.status == 429 || tt.status == 503; tt.status != 200 && (r.header.Get("X-Should-Retry") == "false") == retried {
			t.Errorf("%d %s: X-Should-Retry: %q", r.status, r.body, r.header.Get("X-Should-Retry"))
		}
		if tt.status == 429 && r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if ct := r.header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("content type %q", ct)
		}
	}
	if r := s.do("GET", "/flows", ""); !strings.Contains(r.header.Get("Content-Type"), "problem+json") {
		t.Errorf("outside /v1: %s", r.body)
	}
	if r := s.do("POST", "/v1/chat/completions", body, key, ada, "Content-Type", "text/plain"); r.status != 415 {
		t.Errorf("text/plain: %d %s", r.status, r.body)
	}
}

// Callers do not see the runs and sessions of others.
func TestErrors_OtherCaller(t *testing.T) {
	s := keyed(t, access.Limits{})
	const key, ada, boss = "Authorization", "Bearer ada-key-0123456789", "Bearer boss-key-0123456789"
	calls := s.asked("["+question+"]", "", key, ada)
	if r := s.post("/v1/chat/completions", `{"model":"work","messages":`+history(question, calls, "a", "b")+weather+`}`, key, boss); r.status != 400 {
		t.Errorf("results of another caller: %d %s", r.status, r.body)
	}
	first := s.respond(`{"model":"talk","input":"one"}`, key, ada)
	if r := s.post("/v1/responses", `{"model":"talk","input":"two","previous_response_id":`+quote(first.ID)+`}`, key, boss); r.status != 400 {
		t.Errorf("response of another caller: %d %s", r.status, r.body)
	}
}

func TestErrors_RateLimit(t *testing.T) {
	s := keyed(t, access.Limits{Rate: 0.001, Burst: 1})
	const key, ada = "Authorization", "Bearer ada-key-0123456789"
	s.do("GET", "/v1/models", "", key, ada)
	r := s.do("GET", "/v1/models", "", key, ada)
	var f failure
	r.into(t, &f)
	if r.status != 429 || f.Error.Type != "rate_limit_error" || f.Error.Code != "rate_limit_exceeded" || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
}

// The run of a client that has gone is cancelled, or finishes if the flow declares it.
func TestStream_Disconnect(t *testing.T) {
	for model, want := range map[string]runs.Status{"talk": runs.Cancelled, "once": runs.Succeeded} {
		s := serve(t, nil, server.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"slow"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"one "`) {
				break
			}
		}
		cancel()
		_ = resp.Body.Close()
		list := s.own.Host().Runs.List("", nil)
		if len(list) != 1 {
			t.Fatalf("%d runs", len(list))
		}
		if err := list[0].Wait(t.Context()); err != nil || list[0].State().Status != want {
			t.Errorf("%s: %v, run %+v", model, err, list[0].State())
		}
	}
}

// While the model is slow, comments keep the connection.
func TestStream_Heartbeat(t *testing.T) {
	s := serve(t, nil, server.Options{Heartbeat: 1})
	r := s.post("/v1/chat/completions", `{"model":"talk","stream":true,"messages":[{"role":"user","content":"slow"}]}`)
	if !strings.Contains(r.body, ": waiting\n\n") || !strings.Contains(r.body, "twenty") || !strings.HasSuffix(r.body, "data: [DONE]\n") {
		t.Errorf("%.300s", r.body)
	}
}
