// Package bigquery runs queries of Google BigQuery, over its JSON API.
package bigquery

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
	"github.com/qtype-dev/qtype/internal/httpx"
)

// Limits of a request.
const (
	pageSize   = 10_000 // rows; the service also ends pages at 10 MB
	startTime  = 1_000  // milliseconds until the service answers that a query has not ended
	answerTime = 10_000 // the same for a query that runs, which can be canceled
)

// Config describes where queries run.
type Config struct {
	Endpoint  string                        // the address of the service, without a path
	Authorize func(req *http.Request) error // adds credentials to a request
	Project   string                        // that pays for the queries
	Dataset   string                        // of tables without one in the query, or project.dataset; may be empty
	Location  string                        // of the dataset; empty lets the service find it
	MaxBytes  string                        // the most bytes that a query may bill; empty means no limit
}

// Service runs queries. It is safe for concurrent use.
type Service struct {
	config Config
	client *remote.Client
}

// New returns a Service. It calls nothing.
func New(c Config) *Service {
	return &Service{c, remote.NewClient(func(req *http.Request, _ []byte) error { return c.Authorize(req) }, failure)}
}

// Close closes idle HTTP connections.
func (s *Service) Close() error {
	s.client.Close()
	return nil
}

// failure returns the error of an answer that is not a success.
func failure(status int, data []byte) (error, bool) { //nolint:revive // as remote.Client
	var answer struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	_ = json.Unmarshal(data, &answer) // else the status is all that is known
	again := false
	for _, e := range answer.Error.Errors {
		again = again || e.Reason == "rateLimitExceeded" || e.Reason == "backendError"
	}
	if answer.Error.Message == "" {
		return fmt.Errorf("status %d %s", status, http.StatusText(status)), again
	}
	return fmt.Errorf("%s", httpx.SingleLine(answer.Error.Message, 500)), again
}

// object is a JSON object of a request.
type object = map[string]any

// response is the answer about a query.
type response struct {
	JobComplete  bool
	JobReference struct{ ProjectID, JobID, Location string }
	Schema       struct{ Fields []field }
	Rows         []row
	PageToken    string
}

// field is a column, or a field of a STRUCT.
type field struct {
	Name, Type, Mode string
	Fields           []field
}

// row is a row, or the value of a STRUCT.
type row struct {
	F []struct{ V json.RawMessage }
}

// Query runs a query with a ? for each value.
func (s *Service) Query(ctx context.Context, text string, values []any) (driver.Rows, error) {
	in := object{"query": text, "useLegacySql": false, "timeoutMs": startTime, "maxResults": pageSize,
		"formatOptions": object{"useInt64Timestamp": true}, "requestId": rand.Text()} // the id makes repetitions harmless
	if len(values) > 0 {
		in["parameterMode"], in["queryParameters"] = "POSITIONAL", parameters(values)
	}
	if s.config.Dataset != "" {
		in["defaultDataset"] = s.dataset()
	}
	if s.config.Location != "" {
		in["location"] = s.config.Location
	}
	if s.config.MaxBytes != "" {
		in["maximumBytesBilled"] = s.config.MaxBytes
	}
	var answer response
	if _, err := s.client.Call(ctx, remote.Request{Method: http.MethodPost, Address: s.address("queries"), In: in, Starts: true}, &answer); err != nil {
		return nil, err
	}
	if err := s.wait(ctx, &answer); err != nil {
		return nil, err
	}
	return s.rows(ctx, answer), nil
}

// dataset returns the default dataset, which may be of another project.
func (s *Service) dataset() object {
	project, name, ok := strings.Cut(s.config.Dataset, ".")
	if !ok {
		project, name = s.config.Project, s.config.Dataset
	}
	return object{"projectId": project, "datasetId": name}
}

// address returns the address of a resource of the project.
func (s *Service) address(parts ...string) string {
	path := s.config.Endpoint + "/bigquery/v2/projects/" + url.PathEscape(s.config.Project)
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return path
}

// results requests the results of a job, or a page of them.
func (s *Service) results(ctx context.Context, job response, page string) (answer response, err error) {
	query := url.Values{"maxResults": {strconv.Itoa(pageSize)}, "timeoutMs": {strconv.Itoa(answerTime)}, "formatOptions.useInt64Timestamp": {"true"}}
	if job.JobReference.Location != "" {
		query.Set("location", job.JobReference.Location)
	}
	if page != "" {
		query.Set("pageToken", page)
	}
	_, err = s.client.Call(ctx, remote.Request{Method: http.MethodGet, Address: s.address("queries", job.JobReference.JobID) + "?" + query.Encode()}, &answer)
	return answer, err
}

// wait waits until a query has ended. If ctx ends first, the query is canceled.
func (s *Service) wait(ctx context.Context, answer *response) error {
	var poll remote.Poll
	job := *answer
	for !answer.JobComplete {
		err := poll.Wait(ctx)
		if err == nil {
			*answer, err = s.results(ctx, job, "")
		}
		if err != nil {
			address := s.address("jobs", job.JobReference.JobID, "cancel")
			if job.JobReference.Location != "" {
				address += "?location=" + url.QueryEscape(job.JobReference.Location)
			}
			s.client.Stop(ctx, remote.Request{Method: http.MethodPost, Address: address})
			return err
		}
	}
	answer.JobReference = job.JobReference
	return nil
}

// rows returns the results of a query.
func (s *Service) rows(ctx context.Context, job response) driver.Rows {
	r := &remote.Rows[row]{Page: remote.Page[row]{Rows: job.Rows, Next: job.PageToken}}
	r.More = func(next string) (remote.Page[row], error) {
		answer, err := s.results(ctx, job, next)
		return remote.Page[row]{Rows: answer.Rows, Next: answer.PageToken}, err
	}
	for _, f := range job.Schema.Fields {
		r.List = append(r.List, remote.Column{Name: f.Name, Type: f.Type})
	}
	r.Decode = func(one row, into []driver.Value) error {
		for i := range min(len(one.F), len(into), len(job.Schema.Fields)) {
			v, err := decode(job.Schema.Fields[i], one.F[i].V)
			if err != nil {
				return err
			}
			into[i] = v
		}
		return nil
	}
	return r
}
