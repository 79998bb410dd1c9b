package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// batches is the API of batch inference: a job reads a file of calls in a bucket, and writes one with the answers. It
// implements wire.Batches. See https://docs.aws.amazon.com/bedrock/latest/APIReference/API_CreateModelInvocationJob.html,
// https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html and batch-inference-results.html.
type batches struct {
	*wire.Server
	config  BatchConfig
	root    string // the address of the control plane
	folder  wire.BatchFolder
	uploads wire.Uploads
}

// BatchConfig is the Config of batches.
type BatchConfig struct {
	Config
	Folder string // the address of a folder in a bucket: s3://bucket/folder
	Role   string // the ARN of the role that reads and writes it
	Least  int    // calls of a batch
}

// NewBatches makes the API of batches. It calls nothing.
func NewBatches(c BatchConfig) (wire.Batches, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "batch", Example: example})
	if err != nil {
		return nil, err
	}
	root := *s.Base
	root.Host = strings.Replace(root.Host, "bedrock-runtime", "bedrock", 1) // jobs have a host of their own
	return &batches{Server: s, config: c, root: strings.TrimRight(root.String(), "/"), folder: wire.NewBatchFolder(s, c.Folder)}, nil
}

// Limits returns how much a batch can have: by the default quotas 50,000 calls and a file of 1 GB.
func (b *batches) Limits() wire.BatchLimits {
	return wire.BatchLimits{Least: b.config.Least, Calls: 50_000, Bytes: 1_000_000_000}
}

// converseType is the type of jobs whose calls are those of Converse.
const converseType = "Converse"

// Method returns the method of a call.
func (b *batches) Method(u *url.URL) string {
	if path.Base(u.Path) == "converse" {
		return converseType
	}
	return ""
}

// Head returns nil: calls have no headers of their own.
func (b *batches) Head(http.Header) http.Header { return nil }

// at returns a request; rest is the path, which may have a query.
func (b *batches) at(method, rest string) wire.Exchange {
	return wire.Exchange{Method: method, URL: b.root + rest, Header: header(b.Key)}
}

// job returns a request about a job, the last part of whose ARN is its id.
func (b *batches) job(method, arn, rest string) wire.Exchange {
	return b.at(method, "/model-invocation-job/"+url.PathEscape(path.Base(arn))+rest)
}

// jobName returns the name of the job of a batch.
func jobName(b *wire.Batch) string { return "qtype-" + b.Name }

// Create uploads the file and creates the job. Bedrock ignores another request with the same token.
func (b *batches) Create(ctx context.Context, batch *wire.Batch) (string, error) {
	name := jobName(batch)
	upload := func() (string, error) {
		return b.folder.Upload(ctx, name+".jsonl", batch, func(buf []byte, _ int, c wire.BatchCall) []byte {
			buf = fmt.Appendf(buf, `{"recordId":%q,"modelInput":`, c.ID)
			return append(append(buf, c.Body...), "}\n"...)
		})
	}
	return b.uploads.Use(batch.Name, upload, func(file string) (string, error) {
		var made jobObject
		err := b.ExchangeJSON(ctx, b.at(http.MethodPost, "/model-invocation-job"), map[string]any{
			"jobName": name, "clientRequestToken": batch.Name, "roleArn": b.config.Role, "modelId": b.Info.Name, "modelInvocationType": batch.Method,
			"inputDataConfig":  map[string]any{"s3InputDataConfig": map[string]string{"s3Uri": file, "s3InputFormat": "JSONL"}},
			"outputDataConfig": map[string]any{"s3OutputDataConfig": map[string]string{"s3Uri": b.folder.Address}},
		}, &made)
		failure, ok := errors.AsType[*model.Error](err)
		if ok && failure.Code == "ServiceQuotaExceededException" { // with a status of 400: too many jobs wait
			failure.Status, failure.Temporary = http.StatusTooManyRequests, true
		}
		if err == nil && made.ARN == "" {
			err = b.BatchError("the answer to the creation of a batch has no ARN")
		}
		return made.ARN, err
	})
}

// jobObject is a job.
type jobObject struct {
	ARN       string    `json:"jobArn"`
	Name      string    `json:"jobName"`
	Status    string    `json:"status"`
	Message   string    `json:"message"`
	Submitted time.Time `json:"submitTime"`
	Succeeded int       `json:"successRecordCount"`
	Errored   int       `json:"errorRecordCount"`
}

// jobPage is a page of the list of jobs.
type jobPage struct {
	Jobs []jobObject `json:"invocationJobSummaries"`
	Next string      `json:"nextToken"`
}

// Page returns the batches, and the token of the next page.
func (p *jobPage) Page() (all []wire.ListedBatch, next string) {
	for _, j := range p.Jobs {
		all = append(all, wire.ListedBatch{ID: j.ARN, Name: j.Name, Created: j.Submitted})
	}
	return all, p.Next
}

// Find looks for the job in the list of those with its name.
func (b *batches) Find(ctx context.Context, batch *wire.Batch, _ func(string) bool) (string, error) {
	name := jobName(batch)
	list := func(token string) (wire.Exchange, wire.BatchList) {
		query := url.Values{"nameContains": {name}, "sortBy": {"CreationTime"}, "sortOrder": {"Descending"}}
		if token != "" {
			query.Set("nextToken", token)
		}
		return b.at(http.MethodGet, "/model-invocation-jobs?"+query.Encode()), &jobPage{}
	}
	return b.FindBatch(ctx, batch.Since, list, func(listed wire.ListedBatch) (bool, error) { return listed.Name == name, nil })
}

// read reads a job.
func (b *batches) read(ctx context.Context, id string) (found jobObject, err error) {
	err = b.ExchangeJSON(ctx, b.job(http.MethodGet, id, ""), nil, &found)
	return found, err
}

// State returns the state of a batch. One that has expired, or was stopped, may have begun.
func (b *batches) State(ctx context.Context, id string) (wire.BatchState, error) {
	found, err := b.read(ctx, id)
	state := wire.BatchState{Word: strings.ToLower(found.Status), Made: found.Succeeded + found.Errored}
	switch state.Word {
	case "completed", "partiallycompleted", "stopped", "expired":
		state.Ended, state.Canceled = true, state.Word == "stopped"
	case "failed":
		state.Ended, state.Failed = true, &wire.BatchFailed{Message: "the provider refused the batch without a reason"}
		if found.Message != "" {
			state.Failed.Message = found.Message
		}
	}
	return state, err
}

// Results reads the file with the answers, which a job that was not begun does not have.
func (b *batches) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	found, err := b.read(ctx, id)
	switch {
	case err != nil:
		return err
	case path.Base(found.Name) != found.Name:
		return b.BatchError("%q is not the name of a batch", found.Name)
	}
	err = b.folder.EachLine(ctx, path.Base(id)+"/"+found.Name+".jsonl.out", func(line []byte) error { return takeResult(line, take) })
	failure, ok := errors.AsType[*model.Error](err)
	if ok && failure.Status == http.StatusNotFound && (found.Status == "Stopped" || found.Status == "Expired") { // it has made none
		return nil
	}
	return err
}

// takeResult reads a line of results. One that cannot be read, such as the last one of a file that was cut
// off, is no result.
func takeResult(line []byte, take func(wire.BatchResult) error) error {
	var got struct {
		ID     string          `json:"recordId"`
		Output json.RawMessage `json:"modelOutput"`
		Error  *struct {
			Code    int    `json:"errorCode"`
			Message string `json:"errorMessage"`
		} `json:"error"`
	}
	if isRead := json.Unmarshal(line, &got) == nil; !isRead || got.ID == "" {
		return nil
	}
	result := wire.BatchResult{ID: got.ID}
	switch {
	case got.Error != nil:
		result.Status = got.Error.Code
		result.Body, _ = json.Marshal(map[string]string{"message": got.Error.Message}) // texts always encode
	case !slices.Contains([]string{"", "null"}, string(got.Output)):
		result.Status, result.Body = http.StatusOK, got.Output
	}
	return take(result)
}

// Cancel stops a batch.
func (b *batches) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.job(http.MethodPost, id, "/stop"), struct{}{}, new(json.RawMessage))
}

// Delete does nothing: jobs stay in the list, and files in the bucket of the user.
func (b *batches) Delete(context.Context, string) error { return nil }
