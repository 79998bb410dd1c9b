package googleai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// vertexBatches is the API of batch inference of Vertex AI: a job reads a file of calls in a bucket, and writes files with
// the answers. It implements wire.Batches. See
// https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/capabilities/batch-prediction-from-cloud-storage,
// https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/partner-models/claude/batch and
// https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.batchPredictionJobs.
type vertexBatches struct {
	*wire.Server
	config  VertexBatchConfig
	root    *url.URL // of all jobs
	folder  wire.BatchFolder
	uploads wire.Uploads
}

// VertexBatchConfig is the VertexConfig of batches.
type VertexBatchConfig struct {
	VertexConfig
	Folder    string // the address of a folder in a bucket: gs://bucket/folder
	Publisher string // google or anthropic
}

// NewVertexBatches makes the API of batches. It calls nothing.
func NewVertexBatches(c VertexBatchConfig) (wire.Batches, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "batch", Example: vertexExample})
	if err != nil {
		return nil, err
	}
	root := s.Base.JoinPath("v1", "projects", c.Project, "locations", c.Location, "batchPredictionJobs")
	return &vertexBatches{Server: s, config: c, root: root, folder: wire.NewBatchFolder(s, c.Folder)}, nil
}

// Limits returns how much a batch can have: 200,000 calls and a file of 1 GB.
func (b *vertexBatches) Limits() wire.BatchLimits {
	return wire.BatchLimits{Calls: 200_000, Bytes: 1_000_000_000}
}

// Method returns the method of a call.
func (b *vertexBatches) Method(u *url.URL) string {
	_, method, _ := strings.Cut(path.Base(u.Path), ":")
	if method == "generateContent" || method == "rawPredict" {
		return method
	}
	return ""
}

// Head returns nil: calls have no headers of their own.
func (b *vertexBatches) Head(http.Header) http.Header { return nil }

// at returns a request; rest is what follows the path of all jobs.
func (b *vertexBatches) at(method, rest string) wire.Exchange {
	r := wire.Exchange{Method: method, URL: b.root.String() + rest, Header: http.Header{}}
	if b.Key != "" {
		r.Header.Set("Authorization", "Bearer "+b.Key)
	}
	return r
}

// job returns a request about a job, the last part of whose name is its id.
func (b *vertexBatches) job(method, name, action string) wire.Exchange {
	return b.at(method, "/"+segment(path.Base(name))+action)
}

// jobName returns the name of the job of a batch.
func jobName(name string) string { return "qtype-" + name }

// Create uploads the file and creates the job. A line has the id of its call beside the call; the answers repeat it.
func (b *vertexBatches) Create(ctx context.Context, batch *wire.Batch) (string, error) {
	name, key := jobName(batch.Name), "key"
	if b.config.Publisher == "anthropic" {
		key = "custom_id"
	}
	upload := func() (string, error) {
		return b.folder.Upload(ctx, name+".jsonl", batch, func(buf []byte, _ int, c wire.BatchCall) []byte {
			buf = fmt.Appendf(buf, `{%q:%q,"request":`, key, c.ID)
			return append(append(buf, c.Body...), "}\n"...)
		})
	}
	return b.uploads.Use(batch.Name, upload, func(file string) (string, error) {
		var made vertexJob
		modelName := b.Info.Name[strings.LastIndexByte(b.Info.Name, '/')+1:]
		err := b.ExchangeJSON(ctx, b.at(http.MethodPost, ""), map[string]any{
			"displayName": name, "model": "publishers/" + b.config.Publisher + "/models/" + modelName,
			"inputConfig": map[string]any{"instancesFormat": "jsonl", "gcsSource": map[string]any{"uris": []string{file}}},
			"outputConfig": map[string]any{
				"predictionsFormat": "jsonl", "gcsDestination": map[string]string{"outputUriPrefix": b.folder.Address + name},
			},
		}, &made)
		if err == nil && made.Name == "" {
			err = b.BatchError("the answer to the creation of a batch has no name")
		}
		return made.Name, err
	})
}

// vertexJob is a job.
type vertexJob struct {
	Name    string    `json:"name"`
	Display string    `json:"displayName"`
	State   string    `json:"state"`
	Created time.Time `json:"createTime"`
	Error   *status   `json:"error"`
	Stats   struct {
		Succeeded wire.Count `json:"successfulCount"`
		Failed    wire.Count `json:"failedCount"`
	} `json:"completionStats"`
}

// made returns how many calls have a result.
func (j *vertexJob) made() int { return int(j.Stats.Succeeded + j.Stats.Failed) }

// vertexPage is a page of the list of jobs, which has no documented order.
type vertexPage struct {
	Jobs []vertexJob `json:"batchPredictionJobs"`
	Next string      `json:"nextPageToken"`
}

// Page returns the batches, and the token of the next page.
func (p *vertexPage) Page() (all []wire.ListedBatch, next string) {
	for _, j := range p.Jobs {
		all = append(all, wire.ListedBatch{ID: j.Name, Name: j.Display})
	}
	return all, p.Next
}

// Find looks for the job in the list of those with its name.
func (b *vertexBatches) Find(ctx context.Context, batch *wire.Batch, _ func(string) bool) (string, error) {
	name := jobName(batch.Name)
	list := func(token string) (wire.Exchange, wire.BatchList) {
		query := url.Values{"filter": {"displayName=" + strconv.Quote(name)}, "pageSize": {"100"}}
		if token != "" {
			query.Set("pageToken", token)
		}
		return b.at(http.MethodGet, "?"+query.Encode()), &vertexPage{}
	}
	return b.FindBatch(ctx, batch.Since, list, func(listed wire.ListedBatch) (bool, error) { return listed.Name == name, nil })
}

// read reads a job.
func (b *vertexBatches) read(ctx context.Context, id string) (found vertexJob, err error) {
	err = b.ExchangeJSON(ctx, b.job(http.MethodGet, id, ""), nil, &found)
	return found, err
}

// State returns the state of a batch. One that has failed may have results.
func (b *vertexBatches) State(ctx context.Context, id string) (wire.BatchState, error) {
	found, err := b.read(ctx, id)
	state := wire.BatchState{Word: strings.ToLower(strings.TrimPrefix(found.State, "JOB_STATE_")), Made: found.made()}
	switch state.Word {
	case "succeeded", "partially_succeeded", "cancelled", "expired":
		state.Ended, state.Canceled = true, state.Word == "cancelled"
	case "failed":
		if state.Ended = true; found.made() == 0 {
			state.Failed = &wire.BatchFailed{Message: "the provider refused the batch without a reason"}
			if e := found.Error; e != nil {
				state.Failed.Message, state.Failed.Full = cmp.Or(e.Message, state.Failed.Message), statusOf(e.Code) == http.StatusTooManyRequests
			}
		}
	}
	return state, err
}

// Results reads the files with the answers, which a job that was not begun does not have.
func (b *vertexBatches) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	found, err := b.read(ctx, id)
	switch {
	case err != nil:
		return err
	case path.Base(found.Display) != found.Display || strings.Trim(found.Display, ".") == "":
		return b.BatchError("%q is not the name of a batch", found.Display)
	}
	files, err := b.folder.EachFile(ctx, found.Display+"/", func(line []byte) error { return takeVertexResult(line, take) })
	if err == nil && files == 0 && strings.HasSuffix(found.State, "SUCCEEDED") {
		err = b.NoFile(b.folder.Address + found.Display)
	}
	return err
}

// errorCode finds the code in the status of a line, such as `Bad Request: {"error": {"code": 400, …}}`.
var errorCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"code":\s*(\d+)`) })

// takeVertexResult reads a line of results. One that cannot be read, such as the last one of a file that was cut
// off, is no result.
func takeVertexResult(line []byte, take func(wire.BatchResult) error) error {
	var got struct {
		Key      string          `json:"key"`
		ID       string          `json:"custom_id"`
		Status   json.RawMessage `json:"status"`
		Response json.RawMessage `json:"response"`
	}
	if isRead := json.Unmarshal(line, &got) == nil; !isRead || got.Key+got.ID == "" {
		return nil
	}
	result := wire.BatchResult{ID: cmp.Or(got.Key, got.ID)}
	message := string(got.Status)
	if text := ""; json.Unmarshal(got.Status, &text) == nil {
		message = text
	}
	switch {
	case message != "" && message != "null":
		result.Status = http.StatusInternalServerError
		if code := errorCode().FindStringSubmatch(message); code != nil {
			number, _ := strconv.Atoi(code[1]) // digits
			result.Status = statusOf(number)
		}
		if result.Body = []byte(message[strings.IndexByte(message+"{", '{'):]); !json.Valid(result.Body) {
			result.Body, _ = json.Marshal(map[string]any{"error": map[string]any{"code": result.Status, "message": message}}) // texts always encode
		}
	case len(got.Response) > len("null"):
		result.Status, result.Body = http.StatusOK, got.Response
	}
	return take(result)
}

// Cancel cancels a batch.
func (b *vertexBatches) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.job(http.MethodPost, id, ":cancel"), struct{}{}, new(json.RawMessage))
}

// Delete removes the job. The files stay in the bucket of the user.
func (b *vertexBatches) Delete(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.job(http.MethodDelete, id, ""), nil, new(json.RawMessage))
}
