package openai

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// NewMistralBatches makes the batch API of Mistral. It calls nothing.
func NewMistralBatches(c Config) (wire.Batches, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "batch", Example: "https://api.mistral.ai/v1"})
	if err != nil {
		return nil, err
	}
	own := dialect{
		path: "/batch/jobs", limits: wire.BatchLimits{Calls: 100_000, Bytes: 510_000_000}, // a file of 512 MB
		methods: map[string]string{"/chat/completions": "/v1/chat/completions", "/embeddings": "/v1/embeddings"},
		creation: func(b *wire.Batch, file string) map[string]any {
			return map[string]any{"input_files": []string{file}, "endpoint": b.Method, "model": c.Info.Name, "metadata": map[string]string{batchKey: b.Name}, "timeout_hours": 24}
		},
		job: func() job { return &mistralJob{} },
		list: func(token string) (url.Values, wire.BatchList) {
			number, _ := strconv.Atoi(token) // the first page without one
			return url.Values{"page": {strconv.Itoa(number)}, "page_size": {"100"}, "order_by": {"-created"}}, &mistralPage{number: number}
		},
	}
	return &batches{Server: s, dialect: own, root: strings.TrimSuffix(s.Base.String(), "/"), header: bearer(s.Key)}, nil
}

// mistralJob is a batch.
type mistralJob struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Created  createdAt         `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
	Input    []string          `json:"input_files"`
	Output   string            `json:"output_file"`
	Refused  string            `json:"error_file"`
	Done     int               `json:"succeeded_requests"`
	Failed   int               `json:"failed_requests"`
	Errors   []struct {
		Message string `json:"message"`
	} `json:"errors"`
}

// state returns the id and the state. One that took too long, or has failed, may have results.
func (j *mistralJob) state() (string, wire.BatchState) {
	state := wire.BatchState{Word: strings.ToLower(j.Status), Made: j.Done + j.Failed}
	switch state.Word {
	case "success", "timeout_exceeded", "cancelled":
		state.Ended, state.Canceled = true, state.Word == "cancelled"
	case "failed":
		if state.Ended = true; j.Output == "" && j.Refused == "" {
			state.Failed = &wire.BatchFailed{Message: "the provider refused the batch without a reason"}
			if len(j.Errors) > 0 {
				state.Failed.Message = j.Errors[0].Message
			}
		}
	}
	return j.ID, state
}

// files returns the files.
func (j *mistralJob) files() (input, results []string) { return j.Input, []string{j.Output, j.Refused} }

// mistralPage is a page of the list of batches.
type mistralPage struct {
	number int
	Data   []mistralJob `json:"data"`
}

// Page returns the batches, and the number of the next page, which may be empty.
func (p *mistralPage) Page() (all []wire.ListedBatch, next string) {
	for _, j := range p.Data {
		all = append(all, wire.ListedBatch{ID: j.ID, Name: j.Metadata[batchKey], Created: j.Created.Time})
		next = strconv.Itoa(p.number + 1)
	}
	return all, next
}
