package batchtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// backgroundCall is what a call in the background has beside that of one which is made at once.
type backgroundCall struct {
	Background bool `json:"background"`
	Options    struct {
		Window string `json:"completion_window"`
	} `json:"background_options"`
	Store    *bool             `json:"store"`
	Stream   bool              `json:"stream"`
	Tier     string            `json:"service_tier"`
	Metadata map[string]string `json:"metadata"`
}

// isBackground reports whether a request is a call in the background.
func isBackground(r *http.Request, body []byte) bool {
	var in backgroundCall
	return r.Method == http.MethodPost && r.URL.Path == "/v1/responses" && json.Unmarshal(body, &in) == nil && in.Background
}

// createResponse begins a call in the background.
func (s *Server) createResponse(w http.ResponseWriter, _ *http.Request, _ string, body []byte) {
	var in backgroundCall
	_ = json.Unmarshal(body, &in) // isBackground has
	isWindow, isStandard := in.Options.Window == "2h" || in.Options.Window == "8h", in.Tier == "" || in.Tier == "auto" || in.Tier == "default"
	plain := withoutBackground(body)
	status, answer := s.answer("/v1/responses", plain)
	switch {
	case s.faults.Refused, !isWindow, !isStandard, in.Stream, in.Store == nil || !*in.Store:
		refuse(w, 400, "invalid_request_error", "a window needs store, the standard service tier and no stream")
		return
	case status != http.StatusOK:
		reply(w, status, json.RawMessage(answer))
		return
	}
	b := &batch{id: s.newID("resp"), method: "/v1/responses", calls: []call{{in.Metadata["qtype_call"], plain}}}
	b.format = format{line: func(_ string, status int, answer []byte) []byte {
		var made map[string]any
		_ = json.Unmarshal(answer, &made) // an object
		if status != http.StatusOK {
			code := map[int]string{429: "rate_limit_exceeded", 500: "server_error"}[status]
			made = map[string]any{"object": "response", "status": "failed", "output": []any{}, "error": map[string]any{"code": code, "message": "overloaded"}}
		}
		made["id"], made["background"], made["metadata"] = b.id, true, in.Metadata
		b.state, _ = made["status"].(string)
		return line(made)
	}}
	s.created(w, b, response)
}

// withoutBackground returns a call as one that is made at once.
func withoutBackground(body []byte) []byte {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(body, &all) // isBackground has
	delete(all, "background")
	delete(all, "background_options")
	delete(all, "metadata")
	all["store"] = json.RawMessage("false")
	return bytes.TrimSpace(line(all))
}

// response returns a response as the API does.
func response(b *batch) map[string]any {
	var made map[string]any
	if text := slices.Concat(b.results, b.refused); json.Unmarshal(text, &made) == nil {
		return made
	}
	state := b.state
	if state == "in_progress" && b.looks == 0 {
		state = "queued"
	}
	return map[string]any{"id": b.id, "object": "response", "status": state, "background": true, "output": []any{}}
}

// response answers a request about a response.
func (s *Server) response(w http.ResponseWriter, r *http.Request, path string, _ []byte) {
	_, id, action := parts(path)
	b := s.find(id)
	switch {
	case b == nil:
		refuse(w, 404, "invalid_request_error", "no such response")
		return
	case r.Method == http.MethodDelete:
		b.lost = true
	case action == "cancel":
		s.cancel(b)
	default:
		s.look(b)
	}
	reply(w, 200, response(b))
}

// Stored returns how many responses in the background were not deleted.
func (s *Server) Stored() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		if strings.HasPrefix(b.id, "resp_") && !b.lost {
			n++
		}
	}
	return n
}
