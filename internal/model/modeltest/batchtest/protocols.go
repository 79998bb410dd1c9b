package batchtest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"time"
)

// openai answers a request about files or batches.
func (s *Server) openai(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case r.Method == http.MethodPost && path == "/files":
		s.upload(w, r, body)
	case parts[0] == "files" && r.Method == http.MethodDelete:
		delete(s.files, parts[1])
		reply(w, 200, map[string]any{"id": parts[1], "object": "file", "deleted": true})
	case parts[0] == "files":
		content, ok := s.files[parts[1]]
		if b := s.find(strings.TrimPrefix(parts[1], "out_")); b != nil {
			content = s.content(b)
		}
		if !ok {
			refuse(w, 404, "invalid_request_error", "no such file")
			return
		}
		_, _ = w.Write(content) // the client has gone otherwise
	case r.Method == http.MethodPost && path == "/batches":
		s.create(w, body)
	case path == "/batches":
		s.list(w, r)
	default:
		b := s.find(parts[1])
		if b == nil {
			refuse(w, 404, "invalid_request_error", "no such batch")
			return
		}
		if len(parts) == 2 {
			s.look(b)
		} else if !s.cancel(b) {
			refuse(w, 409, "invalid_request_error", "the batch has ended")
			return
		}
		reply(w, 200, s.openaiBatch(b))
	}
}

// upload stores a file.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, body []byte) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		refuse(w, 400, "invalid_request_error", err.Error())
		return
	}
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 28)
	if err != nil || len(form.File["file"]) != 1 || form.Value["purpose"][0] != "batch" || !strings.HasSuffix(form.File["file"][0].Filename, ".jsonl") {
		refuse(w, 400, "invalid_request_error", "not a file of a batch")
		return
	}
	file, err := form.File["file"][0].Open()
	if err != nil {
		refuse(w, 500, "server_error", err.Error())
		return
	}
	content, _ := io.ReadAll(file) // in memory
	id := s.newID("file")
	s.files[id] = content
	reply(w, 200, map[string]any{"id": id, "object": "file", "purpose": "batch", "status": "processed"})
}

// create creates a batch of a file.
func (s *Server) create(w http.ResponseWriter, body []byte) {
	var in struct {
		Input    string            `json:"input_file_id"`
		Endpoint string            `json:"endpoint"`
		Window   string            `json:"completion_window"`
		Metadata map[string]string `json:"metadata"`
	}
	if json.Unmarshal(body, &in) != nil || in.Window != "24h" || s.files[in.Input] == nil {
		refuse(w, 400, "invalid_request_error", "not a batch")
		return
	}
	b := &batch{id: s.newID("batch"), name: in.Metadata["qtype_batch"], method: in.Endpoint, input: in.Input}
	seen := map[string]bool{}
	for text := range bytes.Lines(s.files[in.Input]) {
		var l struct {
			ID     string          `json:"custom_id"`
			Method string          `json:"method"`
			URL    string          `json:"url"`
			Body   json.RawMessage `json:"body"`
		}
		if json.Unmarshal(text, &l) != nil || l.Method != http.MethodPost || l.URL != in.Endpoint || seen[l.ID] || len(l.ID) > 64 {
			refuse(w, 400, "invalid_request_error", "a line of the file is wrong: "+string(text))
			return
		}
		seen[l.ID] = true
		b.calls = append(b.calls, call{l.ID, l.Body})
	}
	if s.isTooLarge(b.calls) {
		refuse(w, 413, "invalid_request_error", "the file is too large")
		return
	}
	s.add(b)
	if s.chance(s.faults.Ambiguous) {
		refuse(w, 504, "server_error", "gateway timeout")
		return
	}
	reply(w, 200, s.openaiBatch(b))
}

// list lists the batches, newest first, in pages of two.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all := slices.Clone(s.batches)
	slices.Reverse(all)
	if after := r.URL.Query().Get("after"); after != "" {
		all = all[slices.IndexFunc(all, func(b *batch) bool { return b.id == after })+1:]
	}
	page := []any{}
	for _, b := range all[:min(2, len(all))] {
		page = append(page, s.openaiBatch(b))
	}
	reply(w, 200, map[string]any{"object": "list", "data": page, "has_more": len(all) > 2})
}

// openaiBatch returns a batch as OpenAI does.
func (s *Server) openaiBatch(b *batch) map[string]any {
	made := map[string]any{"id": b.id, "object": "batch", "endpoint": b.method, "input_file_id": b.input, "completion_window": "24h", "status": b.state,
		"created_at": b.created.Unix(), "metadata": map[string]string{"qtype_batch": b.name}, "errors": nil, "request_counts": map[string]int{"completed": bytes.Count(b.results, []byte("\n"))}, "output_file_id": nil, "error_file_id": nil}
	if b.line > 0 {
		made["errors"] = map[string]any{"object": "list", "data": []any{map[string]any{"code": "invalid_json_line", "message": "malformed", "param": nil, "line": b.line}}}
	} else if b.state == "failed" {
		made["errors"] = map[string]any{"object": "list", "data": []any{map[string]any{"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "param": nil, "line": nil}}}
	}
	if len(b.results) > 0 {
		s.files["out_"+b.id] = b.results
		made["output_file_id"] = "out_" + b.id
	}
	if len(b.refused) > 0 {
		s.files["err_"+b.id] = b.refused
		made["error_file_id"] = "err_" + b.id
	}
	return made
}

// openaiLine returns a line of results; a status of 0 is that of a call that was not made.
func openaiLine(id string, status int, answer []byte) []byte {
	if status == 0 {
		return line(map[string]any{"id": "batch_req", "custom_id": id, "response": nil, "error": map[string]any{"code": "batch_expired", "message": "not executed"}})
	}
	return line(map[string]any{"id": "batch_req", "custom_id": id, "response": map[string]any{"status_code": status, "request_id": "r", "body": json.RawMessage(answer)}, "error": nil})
}

// anthropic answers a request about message batches.
func (s *Server) anthropic(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	id, action, _ := strings.Cut(strings.Trim(path, "/"), "/")
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		refuse(w, 400, "invalid_request_error", "no version")
	case id == "" && r.Method == http.MethodPost:
		s.createMessages(w, r, body)
	case id == "":
		s.listMessages(w, r)
	case s.find(id) == nil:
		refuse(w, 404, "not_found_error", "no such batch")
	case r.Method == http.MethodDelete:
		reply(w, 200, map[string]any{"id": id, "type": "message_batch_deleted"})
	case action == "results":
		b := s.find(id)
		_, _ = w.Write(slices.Concat(s.content(b), b.refused)) // the client has gone otherwise
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
	b := &batch{id: s.newID("msgbatch"), method: "/v1/messages", betas: r.Header.Get("Anthropic-Beta")}
	for _, c := range in.Requests {
		b.calls = append(b.calls, call{c.ID, c.Params})
	}
	if s.isTooLarge(b.calls) {
		refuse(w, 413, "request_too_large", "the batch is too large")
		return
	}
	s.add(b)
	if s.chance(s.faults.Ambiguous) {
		refuse(w, 504, "timeout_error", "gateway timeout")
		return
	}
	reply(w, 200, s.messageBatch(b))
}

// listMessages lists the batches, newest first, in pages of two.
func (s *Server) listMessages(w http.ResponseWriter, r *http.Request) {
	all := slices.Clone(s.batches)
	slices.Reverse(all)
	if after := r.URL.Query().Get("after_id"); after != "" {
		all = all[slices.IndexFunc(all, func(b *batch) bool { return b.id == after })+1:]
	}
	page, last := []any{}, ""
	for _, b := range all[:min(2, len(all))] {
		page, last = append(page, s.messageBatch(b)), b.id
	}
	reply(w, 200, map[string]any{"data": page, "has_more": len(all) > 2, "last_id": last})
}

// messageBatch returns a batch as Anthropic does, whose counts are zero before the end.
func (s *Server) messageBatch(b *batch) map[string]any {
	counts, state := map[string]any{"processing": len(b.calls), "succeeded": 0}, "in_progress"
	if b.state != "in_progress" {
		counts, state = map[string]any{"processing": 0, "succeeded": len(b.calls)}, "ended"
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
