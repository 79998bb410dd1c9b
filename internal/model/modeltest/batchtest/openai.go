package batchtest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// openai answers a request about files or batches.
func (s *Server) openai(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	kind, id, action := parts(path)
	switch {
	case kind == "files":
		s.file(w, r, id, body)
	case r.Method == http.MethodPost && id == "":
		s.create(w, body)
	default:
		s.batch(w, r, id, action, s.openaiBatch)
	}
}

// parts splits a path into a kind of objects, an id and an action, which may be empty.
func parts(path string) (kind, id, action string) {
	all := append(strings.Split(strings.Trim(path, "/"), "/"), "", "")
	return all[0], all[1], all[2]
}

// batch lists batches, or answers a request about one, in the form of render.
func (s *Server) batch(w http.ResponseWriter, r *http.Request, id, action string, render func(*batch) map[string]any) {
	b := s.find(id)
	switch {
	case id == "":
		page, more := s.page(r.URL.Query().Get("after"))
		reply(w, 200, map[string]any{"object": "list", "data": rendered(page, render), "has_more": more})
	case b == nil:
		refuse(w, 404, "invalid_request_error", "no such batch")
	case action == "cancel" && !s.cancel(b):
		refuse(w, 409, "invalid_request_error", "the batch has ended")
	default:
		if action == "" {
			s.look(b)
		}
		reply(w, 200, render(b))
	}
}

// file answers a request about files.
func (s *Server) file(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	content, ok := s.files[id]
	switch {
	case r.Method == http.MethodPost && id == "":
		s.upload(w, r, body)
	case !ok:
		refuse(w, 404, "invalid_request_error", "no such file")
	case r.Method == http.MethodDelete:
		delete(s.files, id)
		reply(w, 200, map[string]any{"id": id, "object": "file", "deleted": true})
	case strings.HasSuffix(r.URL.Path, "/content"):
		if b := s.find(strings.TrimPrefix(id, "out_")); b != nil {
			s.results(w, b)
			return
		}
		_, _ = w.Write(content) // the client has gone otherwise
	default:
		delete(s.pending, id) // is read now
		reply(w, 200, map[string]any{"id": id, "object": "file", "purpose": "batch", "status": "processed"})
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
	id, status := s.newID("file"), "processed"
	if isAzure(r) {
		status, s.pending[id] = "pending", true
	}
	s.files[id] = content
	reply(w, 200, map[string]any{"id": id, "object": "file", "purpose": "batch", "status": status, "bytes": len(content), "created_at": time.Now().Unix(),
		"filename": form.File["file"][0].Filename, "sample_type": "batch_request", "source": "upload"})
}

// fileLine is a line of a file of calls.
type fileLine struct {
	ID     string          `json:"custom_id"`
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Body   json.RawMessage `json:"body"`
}

// readLines reads a file of calls, as far as its lines have different ids and a call that check accepts. wrong is the
// number of the first one that it does not; 0 for none.
func readLines(file []byte, check func(fileLine) bool) (calls []call, wrong int) {
	seen := map[string]bool{}
	for text := range bytes.Lines(file) {
		var l fileLine
		if json.Unmarshal(text, &l) != nil || seen[l.ID] || l.ID == "" || len(l.ID) > 64 || len(l.Body) == 0 || !check(l) {
			return calls, len(calls) + 1
		}
		seen[l.ID] = true
		calls = append(calls, call{l.ID, l.Body})
	}
	return calls, 0
}

// creation is a request for a batch.
type creation struct {
	Input    string            `json:"input_file_id"`
	Endpoint string            `json:"endpoint"`
	Window   string            `json:"completion_window"`
	Metadata map[string]string `json:"metadata"`
}

// create creates a batch of a file.
func (s *Server) create(w http.ResponseWriter, body []byte) {
	var in creation
	if json.Unmarshal(body, &in) != nil || in.Window != "24h" || s.files[in.Input] == nil {
		refuse(w, 400, "invalid_request_error", "not a batch")
		return
	}
	calls, wrong := readLines(s.files[in.Input], func(l fileLine) bool { return l.Method == http.MethodPost && l.URL == in.Endpoint })
	switch {
	case wrong > 0:
		refuse(w, 400, "invalid_request_error", "a line of the file is wrong")
		return
	case s.isTooLarge(calls):
		refuse(w, 413, "invalid_request_error", "the file is too large")
		return
	}
	b := &batch{id: s.newID("batch"), name: in.Metadata["qtype_batch"], method: in.Endpoint, input: in.Input, format: format{line: openaiLine, unmade: openaiLine}, calls: calls}
	s.created(w, b, s.openaiBatch)
}

// created adds a batch, and answers its creation.
func (s *Server) created(w http.ResponseWriter, b *batch, render func(*batch) map[string]any) {
	s.add(b)
	if s.chance(s.faults.Ambiguous) {
		refuse(w, 504, "server_error", "gateway timeout")
		return
	}
	reply(w, 200, render(b))
}

// openaiBatch returns a batch as OpenAI does.
func (s *Server) openaiBatch(b *batch) map[string]any {
	made := map[string]any{"id": b.id, "object": "batch", "endpoint": b.method, "input_file_id": b.input, "completion_window": "24h", "status": b.state,
		"created_at": b.created.Unix(), "metadata": map[string]string{"qtype_batch": b.name}, "errors": nil, "request_counts": map[string]int{"completed": bytes.Count(b.results, []byte("\n")), "failed": bytes.Count(b.refused, []byte(`"status_code":`))}, "output_file_id": nil, "error_file_id": nil}
	if b.state == "failed" {
		failed := map[string]any{"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "param": nil, "line": nil}
		switch {
		case s.faults.Unnamed, s.faults.Refused:
			failed["code"], failed["message"] = "invalid_request", "malformed"
		case b.wrong > 0:
			failed = map[string]any{"code": "invalid_json_line", "message": "malformed", "param": nil, "line": b.wrong}
		}
		made["errors"] = map[string]any{"object": "list", "data": []any{failed}}
	}
	if len(b.results) > 0 {
		made["output_file_id"] = s.store("out_"+b.id, b.results)
	}
	if len(b.refused) > 0 {
		made["error_file_id"] = s.store("err_"+b.id, b.refused)
	}
	return made
}

// store stores a file of results, and returns its id.
func (s *Server) store(id string, content []byte) string {
	s.files[id] = content
	return id
}

// openaiLine returns a line of results; a status of 0 is that of a call that was not made.
func openaiLine(id string, status int, answer []byte) []byte {
	if status == 0 {
		return line(map[string]any{"id": "batch_req", "custom_id": id, "response": nil, "error": map[string]any{"code": "batch_expired", "message": "not executed"}})
	}
	return line(map[string]any{"id": "batch_req", "custom_id": id, "response": map[string]any{"status_code": status, "request_id": "r", "body": json.RawMessage(answer)}, "error": nil})
}

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
