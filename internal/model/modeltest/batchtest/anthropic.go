package batchtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// anthropic answers a request about message batches.
func (s *Server) anthropic(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	id, action, _ := strings.Cut(strings.Trim(path, "/"), "/")
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		refuse(w, 400, "invalid_request_error", "no version")
	case id == "" && r.Method == http.MethodPost:
		s.createMessages(w, r, body)
	case id == "":
		page, more := s.page(r.URL.Query().Get("after_id"))
		list := map[string]any{"data": rendered(page, s.messageBatch), "has_more": more}
		if len(page) > 0 {
			list["last_id"] = page[len(page)-1].id
		}
		reply(w, 200, list)
	case s.find(id) == nil:
		refuse(w, 404, "not_found_error", "no such batch")
	case r.Method == http.MethodDelete:
		reply(w, 200, map[string]any{"id": id, "type": "message_batch_deleted"})
	case action == "results":
		b := s.find(id)
		s.results(w, b, b.refused...)
	case action == "cancel":
		if !s.cancel(s.find(id)) {
			refuse(w, 400, "invalid_request_error", "the batch has ended")
			return
		}
		reply(w, 200, s.messageBatch(s.find(id)))
	default:
		s.look(s.find(id))
		reply(w, 200, s.messageBatch(s.find(id)))
	}
}

// createMessages creates a message batch.
func (s *Server) createMessages(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Requests []struct {
			ID     string          `json:"custom_id"`
			Params json.RawMessage `json:"params"`
		} `json:"requests"`
	}
	if err := json.Unmarshal(body, &in); err != nil || len(in.Requests) == 0 {
		refuse(w, 400, "invalid_request_error", "not a batch")
		return
	}
	b := &batch{id: s.newID("msgbatch"), method: "/v1/messages", betas: r.Header.Get("Anthropic-Beta"), format: format{line: anthropicLine, unmade: anthropicLine}}
	for _, c := range in.Requests {
		b.calls = append(b.calls, call{c.ID, c.Params})
	}
	if s.isTooLarge(b.calls) {
		refuse(w, 413, "request_too_large", "the batch is too large")
		return
	}
	s.created(w, b, s.messageBatch)
}

// messageBatch returns a batch as Anthropic does, whose counts are zero before the end.
func (s *Server) messageBatch(b *batch) map[string]any {
	counts, state := map[string]any{"processing": len(b.calls), "succeeded": 0}, "in_progress"
	if b.state != "in_progress" {
		errored, expired := bytes.Count(b.results, []byte(`"errored"`)), bytes.Count(b.results, []byte(`"expired"`))
		counts, state = map[string]any{"processing": 0, "succeeded": len(b.calls) - errored - expired, "errored": errored, "expired": expired}, "ended"
	}
	if b.state == "cancelled" {
		counts = map[string]any{"canceled": len(b.calls)}
	}
	return map[string]any{"id": b.id, "type": "message_batch", "processing_status": state, "request_counts": counts, "created_at": b.created.UTC().Format(time.RFC3339Nano)}
}

// anthropicLine returns a line of results; a status of 0 is that of a call that was not made.
func anthropicLine(id string, status int, answer []byte) []byte {
	result := map[string]any{"type": "succeeded", "message": json.RawMessage(answer)}
	switch {
	case status == 0:
		result = map[string]any{"type": "expired"}
	case status != 200:
		result = map[string]any{"type": "errored", "error": map[string]any{"type": "error", "error": map[string]any{"type": kindOf(status), "message": "refused"}}}
	}
	return line(map[string]any{"custom_id": id, "result": result})
}

// kindOf returns Anthropic's word for a status.
func kindOf(status int) string {
	switch status {
	case 429:
		return "rate_limit_error"
	case 400:
		return "invalid_request_error"
	}
	return "api_error"
}
