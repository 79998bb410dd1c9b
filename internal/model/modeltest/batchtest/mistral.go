package batchtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// mistral answers a request about batches of Mistral.
func (s *Server) mistral(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	_, id, action := parts(path)
	switch {
	case r.Header.Get("Authorization") == "":
		refuse(w, 401, "invalid_request_error", "Unauthorized")
	case r.Method == http.MethodPost && id == "":
		s.createMistral(w, body)
	case id == "":
		s.listMistral(w, r)
	default:
		s.batch(w, r, id, action, s.mistralBatch)
	}
}

// createMistral creates a batch of a file.
func (s *Server) createMistral(w http.ResponseWriter, body []byte) {
	var in struct {
		Input    []string          `json:"input_files"`
		Endpoint string            `json:"endpoint"`
		Model    string            `json:"model"`
		Hours    int               `json:"timeout_hours"`
		Metadata map[string]string `json:"metadata"`
	}
	const mostHours = 7 * 24
	isRead := json.Unmarshal(body, &in) == nil && len(in.Input) == 1 && s.files[in.Input[0]] != nil
	if !isRead || in.Model == "" || in.Hours < 1 || in.Hours > mostHours || in.Endpoint != "/v1/chat/completions" && in.Endpoint != "/v1/embeddings" {
		refuse(w, 422, "invalid_request_error", "not a batch")
		return
	}
	calls, wrong := readLines(s.files[in.Input[0]], func(l fileLine) bool { return l.URL == "" && l.Method == "" })
	switch {
	case wrong > 0:
		refuse(w, 422, "invalid_request_error", "line "+strconv.Itoa(wrong)+" of the file is wrong")
	case s.isTooLarge(calls):
		refuse(w, 413, "invalid_request_error", "the file is too large")
	default:
		b := &batch{id: s.newID("job"), name: in.Metadata["qtype_batch"], method: in.Endpoint, input: in.Input[0], calls: calls}
		b.format = format{line: mistralLine, unmade: func(string, int, []byte) []byte { return nil }}
		s.created(w, b, s.mistralBatch)
	}
}

// listMistral lists the batches, in pages of two. A page may be empty.
func (s *Server) listMistral(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("order_by") != "-created" {
		refuse(w, 422, "invalid_request_error", "no order")
		return
	}
	all := slices.Clone(s.batches)
	slices.Reverse(all)
	number, _ := strconv.Atoi(r.URL.Query().Get("page")) // the first one otherwise
	from := min(2*number, len(all))
	reply(w, 200, map[string]any{"object": "list", "data": rendered(all[from:min(from+2, len(all))], s.mistralBatch), "total": len(all)})
}

// mistralBatch returns a batch as Mistral does.
func (s *Server) mistralBatch(b *batch) map[string]any {
	words := map[string]string{"in_progress": "RUNNING", "completed": "SUCCESS", "cancelled": "CANCELLED", "expired": "TIMEOUT_EXCEEDED", "failed": "FAILED"}
	made := map[string]any{"id": b.id, "object": "batch", "endpoint": b.method, "input_files": []string{b.input}, "status": words[b.state], "errors": []any{},
		"created_at": b.created.Unix(), "metadata": map[string]string{"qtype_batch": b.name}, "total_requests": len(b.calls),
		"completed_requests": len(b.calls), "succeeded_requests": bytes.Count(b.results, []byte("\n")), "failed_requests": 0, "output_file": nil, "error_file": nil}
	if b.state == "failed" {
		made["errors"] = []any{map[string]any{"message": "malformed", "count": 1}}
	}
	if len(b.results) > 0 {
		made["output_file"] = s.store("out_"+b.id, b.results)
	}
	if len(b.refused) > 0 {
		made["error_file"] = s.store("err_"+b.id, b.refused)
	}
	return made
}

// mistralLine returns a line of results. That of a failed call has the error as a text.
func mistralLine(id string, status int, answer []byte) []byte {
	if status == 200 {
		return line(map[string]any{"custom_id": id, "response": map[string]any{"status_code": status, "body": json.RawMessage(answer)}, "error": nil})
	}
	return line(map[string]any{"custom_id": id, "response": map[string]any{"status_code": status, "body": nil}, "error": "refused"})
}
