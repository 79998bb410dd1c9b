package batchtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// google answers a request about files or batches of the Gemini API. Files are uploaded in two requests.
func (s *Server) google(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	kind, id, _ := parts(path)
	id, action, _ := strings.Cut(id, ":")
	switch {
	case r.Header.Get("X-Goog-Api-Key") == "" && !r.URL.Query().Has("upload_id"): // the id is a credential
		refuseGoogle(w, 403, "PERMISSION_DENIED", "no key")
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.uploadGoogle(w, r, body)
	case kind == "files":
		s.fileGoogle(w, r, id, action)
	case kind == "models":
		s.createGoogle(w, body)
	case id == "":
		page, more := s.page(r.URL.Query().Get("pageToken"))
		list := map[string]any{"operations": rendered(page, s.googleBatch)}
		if more {
			list["nextPageToken"] = page[len(page)-1].id
		}
		reply(w, 200, list)
	case s.find("batches/"+id) == nil:
		refuseGoogle(w, 404, "NOT_FOUND", "no such batch")
	default:
		s.batchGoogle(w, r, s.find("batches/"+id), action)
	}
}

// refuseGoogle answers with an error in Google's form.
func refuseGoogle(w http.ResponseWriter, code int, status, message string) {
	reply(w, code, map[string]any{"error": map[string]any{"code": code, "status": status, "message": message}})
}

// uploadGoogle announces a file, or stores it.
func (s *Server) uploadGoogle(w http.ResponseWriter, r *http.Request, body []byte) {
	switch upload := r.URL.Query().Get("upload_id"); {
	case upload == "":
		size := r.Header.Get("X-Goog-Upload-Header-Content-Length")
		if r.Header.Get("X-Goog-Upload-Protocol") != "resumable" || r.Header.Get("X-Goog-Upload-Command") != "start" || size == "" {
			refuseGoogle(w, 400, "INVALID_ARGUMENT", "not an upload")
			return
		}
		id := s.newID("upload")
		s.files[id] = []byte(size)
		w.Header().Set("X-Goog-Upload-Url", "http://"+r.Host+"/upload/v1beta/files?upload_id="+id+"&upload_protocol=resumable")
	case r.Header.Get("X-Goog-Upload-Command") != "upload, finalize" || string(s.files[upload]) != strconv.Itoa(len(body)):
		refuseGoogle(w, 400, "INVALID_ARGUMENT", "not all of the file")
	default:
		delete(s.files, upload)
		id := "files/" + s.newID("in")
		s.files[id] = body
		w.Header().Set("X-Goog-Upload-Status", "final")
		reply(w, 200, map[string]any{"file": map[string]any{"name": id, "state": "ACTIVE"}})
	}
}

// fileGoogle answers a request about a file. Only results can be downloaded.
func (s *Server) fileGoogle(w http.ResponseWriter, r *http.Request, id, action string) {
	b := s.find("batches/" + strings.TrimPrefix(id, "out-"))
	_, ok := s.files["files/"+id]
	switch {
	case !ok && b == nil:
		refuseGoogle(w, 404, "NOT_FOUND", "no such file")
	case r.Method == http.MethodDelete:
		delete(s.files, "files/"+id)
		reply(w, 200, map[string]any{})
	case b == nil || action != "download" || r.URL.Query().Get("alt") != "media":
		refuseGoogle(w, 400, "INVALID_ARGUMENT", "not a file of results")
	default:
		s.results(w, b)
	}
}

// createGoogle creates a batch of a file.
func (s *Server) createGoogle(w http.ResponseWriter, body []byte) {
	var in struct {
		Batch struct {
			Name  string `json:"displayName"`
			Input struct {
				File string `json:"fileName"`
			} `json:"inputConfig"`
		} `json:"batch"`
	}
	file, isOpen := []byte(nil), false
	if json.Unmarshal(body, &in) == nil {
		file, isOpen = s.files[in.Batch.Input.File]
	}
	b := &batch{id: "batches/" + s.newID("job"), name: in.Batch.Name, method: "generateContent", input: in.Batch.Input.File, format: format{line: googleLine}}
	for text := range strings.Lines(string(file)) {
		var l struct {
			Key     string          `json:"key"`
			Request json.RawMessage `json:"request"`
		}
		if json.Unmarshal([]byte(text), &l) != nil || l.Key == "" || len(l.Request) == 0 {
			isOpen = false
			break
		}
		b.calls = append(b.calls, call{l.Key, l.Request})
	}
	switch {
	case !isOpen || in.Batch.Name == "" || len(b.calls) == 0:
		refuseGoogle(w, 400, "INVALID_ARGUMENT", "not a batch")
	case s.isTooLarge(b.calls):
		refuseGoogle(w, 413, "INVALID_ARGUMENT", "the file is too large")
	case s.faults.Full > 0 && s.waiting()+len(b.calls) > s.faults.Full:
		refuseGoogle(w, 429, "RESOURCE_EXHAUSTED", "too many calls are enqueued")
	default:
		s.created(w, b, s.googleBatch)
	}
}

// waiting returns the number of calls in batches that have not ended.
func (s *Server) waiting() (calls int) {
	for _, b := range s.batches {
		if b.state == "in_progress" {
			calls += len(b.calls)
		}
	}
	return calls
}

// batchGoogle answers a request about a batch.
func (s *Server) batchGoogle(w http.ResponseWriter, r *http.Request, b *batch, action string) {
	switch {
	case r.Method == http.MethodDelete, action == "cancel" && s.cancel(b):
		reply(w, 200, map[string]any{})
	case action == "cancel":
		refuseGoogle(w, 400, "FAILED_PRECONDITION", "the batch has ended")
	default:
		s.look(b)
		reply(w, 200, s.googleBatch(b))
	}
}

// googleBatch returns a batch as Google does. One that has expired has no results.
func (s *Server) googleBatch(b *batch) map[string]any {
	words := map[string]string{"in_progress": "RUNNING", "completed": "SUCCEEDED", "cancelled": "CANCELLED", "expired": "EXPIRED", "failed": "FAILED"}
	about := map[string]any{"displayName": b.name, "state": "BATCH_STATE_" + words[b.state], "createTime": b.created.UTC().Format(time.RFC3339Nano),
		"inputConfig": map[string]string{"fileName": b.input}, "batchStats": map[string]string{"requestCount": strconv.Itoa(len(b.calls))}}
	made := map[string]any{"name": b.id, "metadata": about, "done": b.state != "in_progress"}
	if b.state == "completed" {
		about["batchStats"] = map[string]string{"requestCount": strconv.Itoa(len(b.calls)), "successfulRequestCount": strconv.Itoa(strings.Count(string(b.results), "\n"))}
		output := map[string]string{"responsesFile": "files/out-" + strings.TrimPrefix(b.id, "batches/")}
		made["response"], about["output"] = output, output
	}
	return made
}

// googleLine returns a line of results.
func googleLine(id string, status int, answer []byte) []byte {
	if status == 200 {
		return line(map[string]any{"key": id, "response": json.RawMessage(answer)})
	}
	return line(map[string]any{"key": id, "error": map[string]any{"code": map[int]int{400: 3, 429: 8, 500: 13}[status], "message": "refused"}})
}
