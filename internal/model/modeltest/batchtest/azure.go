package batchtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// isAzure reports whether a request is one to a resource of Azure OpenAI.
func isAzure(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/openai/") }

// azure answers a request about files or batches.
func (s *Server) azure(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	isV1 := strings.HasPrefix(path, "/v1")
	kind, id, action := parts(strings.TrimPrefix(path, "/v1"))
	switch {
	case r.Header.Get("Api-Key") == "" && r.Header.Get("Authorization") == "":
		refuse(w, 401, "Unauthorized", "no credential")
	case isV1 == r.URL.Query().Has("api-version"):
		refuse(w, 404, "invalid_request_error", "Resource not found")
	case kind == "files":
		s.file(w, r, id, body)
	case r.Method == http.MethodPost && id == "":
		s.createAzure(w, body, isV1)
	default:
		s.batch(w, r, id, action, s.azureBatch)
	}
}

// createAzure creates a batch of a file that was read. What is wrong with its lines shows later.
func (s *Server) createAzure(w http.ResponseWriter, body []byte, isV1 bool) {
	var in creation
	if json.Unmarshal(body, &in) != nil || in.Window != "24h" || s.files[in.Input] == nil {
		refuse(w, 400, "invalid_request_error", "not a batch")
		return
	}
	if s.pending[in.Input] {
		refuse(w, 400, "invalid_request_error", "the input file is in 'pending' state")
		return
	}
	var deployment string
	calls, wrong := readLines(s.files[in.Input], func(l fileLine) bool {
		var set struct {
			Model string `json:"model"`
		}
		_ = json.Unmarshal(l.Body, &set) // without a deployment then
		if deployment == "" {
			deployment = set.Model
		}
		return l.Method == http.MethodPost && l.URL == in.Endpoint && deployment != "" && set.Model == deployment
	})
	b := &batch{id: s.newID("batch"), name: in.Metadata["qtype_batch"], method: "/v1" + strings.TrimPrefix(in.Endpoint, "/v1"), input: in.Input, format: format{line: openaiLine}, calls: calls}
	isChat := in.Endpoint == "/chat/completions" || in.Endpoint == "/v1/chat/completions" && isV1
	if b.wrong = wrong; !isChat && in.Endpoint != "/v1/responses" || wrong == 0 && s.isTooLarge(calls) {
		refuse(w, 413, "invalid_request_error", "the file is too large, or its endpoint is not one for batches")
		return
	}
	s.created(w, b, s.azureBatch)
}

// azureBatch returns a batch as Azure does: with a time as a text, a state in upper case and an empty file of errors.
func (s *Server) azureBatch(b *batch) map[string]any {
	made := s.openaiBatch(b)
	made["status"] = strings.ToUpper(b.state[:1]) + b.state[1:]
	made["created_at"] = b.created.UTC().Format(time.RFC3339Nano)
	if b.state == "in_progress" {
		made["request_counts"] = map[string]any{"total": nil, "completed": nil, "failed": nil}
	} else {
		made["error_file_id"] = s.store("err_"+b.id, b.refused)
	}
	return made
}
