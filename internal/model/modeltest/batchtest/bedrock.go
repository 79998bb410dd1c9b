package batchtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// The limits of jobs: the form of names and tokens, and the least number of records.
var (
	jobName  = regexp.MustCompile(`^[a-zA-Z0-9]{1,63}(-*[a-zA-Z0-9+.-]){0,63}$`)
	jobToken = regexp.MustCompile(`^[a-zA-Z0-9]{1,256}(-*[a-zA-Z0-9]){0,256}$`)
	roleARN  = regexp.MustCompile(`^arn:aws:iam::\d{12}:role/.+$`)
)

const leastRecords = 100

// bedrock answers a request about jobs of batch inference.
func (s *Server) bedrock(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	id, action, _ := strings.Cut(strings.Trim(path, "/"), "/")
	b := s.find("arn:aws:bedrock:us-east-1:111122223333:model-invocation-job/" + id)
	switch {
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "):
		refuseAWS(w, 403, "AccessDeniedException", "not signed")
	case strings.HasSuffix(r.URL.Path, "/model-invocation-jobs"):
		s.listJobs(w, r.URL.Query())
	case id == "":
		s.createJob(w, body)
	case b == nil:
		refuseAWS(w, 404, "ResourceNotFoundException", "no such job")
	case action == "stop" && !s.cancel(b):
		refuseAWS(w, 400, "ConflictException", "the job has ended")
	case action == "stop":
		reply(w, 200, map[string]any{})
	default:
		if len(b.calls) < leastRecords {
			b.state = "failed"
		}
		s.look(b)
		s.deliver(b)
		reply(w, 200, s.bedrockJob(b))
	}
}

func refuseAWS(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	reply(w, status, map[string]any{"message": message})
}

// listJobs answers with a page of the jobs whose names contain a text, newest first.
func (s *Server) listJobs(w http.ResponseWriter, query url.Values) {
	page, more := s.page(query.Get("nextToken"))
	jobs := []any{}
	for _, b := range page {
		if strings.Contains(b.name, query.Get("nameContains")) {
			jobs = append(jobs, s.bedrockJob(b))
		}
	}
	list := map[string]any{"invocationJobSummaries": jobs}
	if more {
		list["nextToken"] = page[len(page)-1].id
	}
	reply(w, 200, list)
}

// recordsOf returns the calls of a file; nil if a line is none.
func recordsOf(file string) (calls []call) {
	seen := map[string]bool{}
	for text := range strings.Lines(file) {
		var l struct {
			ID    string          `json:"recordId"`
			Input json.RawMessage `json:"modelInput"`
		}
		if json.Unmarshal([]byte(text), &l) != nil || l.ID == "" || len(l.Input) == 0 || seen[l.ID] {
			return nil
		}
		seen[l.ID] = true
		calls = append(calls, call{l.ID, l.Input})
	}
	return calls
}

// createJob creates a job of a file. Another request with its token makes none.
func (s *Server) createJob(w http.ResponseWriter, body []byte) {
	var in struct {
		Name  string `json:"jobName"`
		Token string `json:"clientRequestToken"`
		Role  string `json:"roleArn"`
		Model string `json:"modelId"`
		Type  string `json:"modelInvocationType"`
		Input struct {
			S3 struct {
				URI    string `json:"s3Uri"`
				Format string `json:"s3InputFormat"`
			} `json:"s3InputDataConfig"`
		} `json:"inputDataConfig"`
		Output struct {
			S3 struct {
				URI string `json:"s3Uri"`
			} `json:"s3OutputDataConfig"`
		} `json:"outputDataConfig"`
	}
	isValid := json.Unmarshal(body, &in) == nil && jobName.MatchString(in.Name) && jobToken.MatchString(in.Token) &&
		roleARN.MatchString(in.Role) && in.Model != "" && in.Type == "Converse" &&
		in.Input.S3.Format == "JSONL" && strings.HasSuffix(in.Input.S3.URI, ".jsonl") && strings.HasPrefix(in.Output.S3.URI, "s3://")
	file, exists := s.load(in.Input.S3.URI)
	if !isValid || !exists {
		refuseAWS(w, 400, "ValidationException", "not a job")
		return
	}
	for _, b := range s.batches {
		if b.token == in.Token {
			reply(w, 200, map[string]string{"jobArn": b.id})
			return
		} else if b.name == in.Name {
			refuseAWS(w, 400, "ConflictException", "the name is used")
			return
		}
	}
	s.serial++
	unmade := func(string, int, []byte) []byte { return nil } // a job has no lines of records that it has not made
	b := &batch{
		id:   fmt.Sprintf("arn:aws:bedrock:us-east-1:111122223333:model-invocation-job/%012d", s.serial),
		name: in.Name, token: in.Token, method: in.Type, format: format{line: bedrockLine, unmade: unmade},
	}
	base := in.Input.S3.URI[strings.LastIndexByte(in.Input.S3.URI, '/')+1:]
	b.output = strings.TrimSuffix(in.Output.S3.URI, "/") + fmt.Sprintf("/%012d/%s.out", s.serial, base)
	if b.calls = recordsOf(string(file)); b.calls == nil {
		refuseAWS(w, 400, "ValidationException", "not a record")
		return
	}
	if s.faults.Full > 0 && s.waiting()+len(b.calls) > s.faults.Full {
		refuseAWS(w, 400, "ServiceQuotaExceededException", "too many records are in jobs")
		return
	}
	s.created(w, b, s.bedrockJob)
}

// deliver writes the answers of a job that has ended to the bucket.
func (s *Server) deliver(b *batch) {
	if b.state != "in_progress" && b.state != "failed" && !b.emptied && !b.read && len(b.results)+len(b.refused) > 0 {
		b.read = true
		s.save(b.output, append(b.results, b.refused...))
	}
}

// bedrockJob returns a job as Bedrock does.
func (s *Server) bedrockJob(b *batch) map[string]any {
	words := map[string]string{
		"in_progress": "InProgress", "completed": "Completed", "cancelled": "Stopped", "expired": "Expired", "failed": "Failed",
	}
	made := map[string]any{
		"jobArn": b.id, "jobName": b.name, "status": words[b.state], "totalRecordCount": len(b.calls),
		"submitTime": b.created.UTC().Format(time.RFC3339Nano),
	}
	if b.state == "failed" {
		made["message"] = fmt.Sprintf("the job contains less records (%d) than the required minimum of: %d", len(b.calls), leastRecords)
	}
	if b.state == "completed" {
		made["successRecordCount"] = strings.Count(string(b.results), "\n")
	}
	return made
}

// bedrockLine returns a line of results.
func bedrockLine(id string, status int, answer []byte) []byte {
	if status == 200 {
		return line(map[string]any{"recordId": id, "modelInput": map[string]any{}, "modelOutput": json.RawMessage(answer)})
	}
	failed := map[string]any{"errorCode": status, "errorMessage": "refused"}
	return line(map[string]any{"recordId": id, "modelInput": map[string]any{}, "error": failed})
}
