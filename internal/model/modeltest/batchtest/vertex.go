package batchtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// vertexJobs is the path of the jobs of a project.
const vertexJobs = "/v1/projects/p/locations/us-central1/batchPredictionJobs"

// vertex answers a request about jobs of batch inference of Vertex AI.
func (s *Server) vertex(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	id, action, _ := strings.Cut(strings.Trim(path, "/"), ":")
	b := s.find("projects/p/locations/us-central1/batchPredictionJobs/" + id)
	switch {
	case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
		refuseGoogle(w, 401, "UNAUTHENTICATED", "no token")
	case r.Method == http.MethodPost && id == "":
		s.createVertex(w, body)
	case id == "":
		s.listVertex(w, r)
	case b == nil:
		refuseGoogle(w, 404, "NOT_FOUND", "no such job")
	case r.Method == http.MethodDelete, action == "cancel" && s.cancel(b):
		reply(w, 200, map[string]any{})
	case action == "cancel":
		refuseGoogle(w, 400, "FAILED_PRECONDITION", "the job has ended")
	default:
		s.look(b)
		s.deliver(b)
		reply(w, 200, s.vertexJob(b))
	}
}

// listVertex answers with a page of the jobs with a name.
func (s *Server) listVertex(w http.ResponseWriter, r *http.Request) {
	name, _ := strconv.Unquote(strings.TrimPrefix(r.URL.Query().Get("filter"), "displayName="))
	page, more := s.page(r.URL.Query().Get("pageToken"))
	jobs := []any{}
	for _, b := range page {
		if b.name == name {
			jobs = append(jobs, s.vertexJob(b))
		}
	}
	list := map[string]any{"batchPredictionJobs": jobs}
	if more {
		list["nextPageToken"] = page[len(page)-1].id
	}
	reply(w, 200, list)
}

// createVertex creates a job of a file. The lines of Claude have a custom_id.
func (s *Server) createVertex(w http.ResponseWriter, body []byte) {
	var in struct {
		Name  string `json:"displayName"`
		Model string `json:"model"`
		Input struct {
			Format string `json:"instancesFormat"`
			Source struct {
				URIs []string `json:"uris"`
			} `json:"gcsSource"`
		} `json:"inputConfig"`
		Output struct {
			Format      string `json:"predictionsFormat"`
			Destination struct {
				Prefix string `json:"outputUriPrefix"`
			} `json:"gcsDestination"`
		} `json:"outputConfig"`
	}
	isValid := json.Unmarshal(body, &in) == nil && in.Name != "" && strings.HasPrefix(in.Model, "publishers/") &&
		in.Input.Format == "jsonl" && in.Output.Format == "jsonl" &&
		len(in.Input.Source.URIs) == 1 && strings.HasPrefix(in.Output.Destination.Prefix, "gs://")
	if !isValid {
		refuseGoogle(w, 400, "INVALID_ARGUMENT", "not a job")
		return
	}
	file, exists := s.load(in.Input.Source.URIs[0])
	isClaude := strings.HasPrefix(in.Model, "publishers/anthropic/")
	s.serial++
	unmade := func(string, int, []byte) []byte { return nil }
	b := &batch{
		id:   fmt.Sprintf("projects/p/locations/us-central1/batchPredictionJobs/%d", s.serial),
		name: in.Name, method: "generateContent", format: format{line: vertexLine("key"), unmade: unmade},
	}
	if isClaude {
		b.method, b.line = "rawPredict", vertexLine("custom_id")
	}
	b.output = fmt.Sprintf("%s/prediction-model-%d/predictions.jsonl", in.Output.Destination.Prefix, s.serial)
	for text := range strings.Lines(string(file)) {
		var l struct {
			Key     string          `json:"key"`
			ID      string          `json:"custom_id"`
			Request json.RawMessage `json:"request"`
		}
		if json.Unmarshal([]byte(text), &l) != nil || (l.ID != "") != isClaude || l.Key+l.ID == "" || len(l.Request) == 0 {
			exists = false
			break
		}
		b.calls = append(b.calls, call{l.Key + l.ID, l.Request})
	}
	switch {
	case !exists || len(b.calls) == 0:
		refuseGoogle(w, 400, "INVALID_ARGUMENT", "not a file of calls")
	case s.faults.Full > 0 && s.waiting()+len(b.calls) > s.faults.Full:
		refuseGoogle(w, 429, "RESOURCE_EXHAUSTED", "too many jobs")
	default:
		s.created(w, b, s.vertexJob)
	}
}

// vertexJob returns a job as Vertex AI does.
func (s *Server) vertexJob(b *batch) map[string]any {
	words := map[string]string{
		"in_progress": "RUNNING", "completed": "SUCCEEDED", "cancelled": "CANCELLED", "expired": "EXPIRED", "failed": "FAILED",
	}
	made := map[string]any{
		"name": b.id, "displayName": b.name, "state": "JOB_STATE_" + words[b.state],
		"createTime": b.created.UTC().Format(time.RFC3339Nano),
	}
	if b.state == "completed" {
		made["completionStats"] = map[string]string{"successfulCount": strconv.Itoa(strings.Count(string(b.results), "\n"))}
	}
	if b.state == "failed" {
		made["error"] = map[string]any{"code": 3, "message": "refused"}
	}
	return made
}

// vertexLine returns what makes a line of results with the id of a call in a field.
func vertexLine(key string) func(id string, status int, answer []byte) []byte {
	return func(id string, status int, answer []byte) []byte {
		if status == 200 {
			return line(map[string]any{key: id, "status": "", "request": map[string]any{}, "response": json.RawMessage(answer)})
		}
		failed := fmt.Sprintf(`Bad Request: {"error": {"code": %d, "message": "refused"}}`, status)
		return line(map[string]any{key: id, "status": failed, "request": map[string]any{}, "response": map[string]any{}})
	}
}
