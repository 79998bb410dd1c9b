// Package athena runs queries of Amazon Athena, over its JSON API.
package athena

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
	"github.com/qtype-dev/qtype/internal/httpx"
)

// maxParameter is the length of the longest value that the service accepts for a placeholder.
const maxParameter = 1024

// Config describes where queries run. The service writes their results to a folder in S3.
type Config struct {
	Endpoint  string                                  // the address of the service
	Sign      func(req *http.Request, b []byte) error // signs a request with its body
	Database  string                                  // of tables without a database in the query; may be empty
	Catalog   string                                  // of the database; empty means the service's default
	Output    string                                  // s3:// address for results; empty means that of the work group
	WorkGroup string                                  // empty means the service's default
}

// Service runs queries. It is safe for concurrent use.
type Service struct {
	config Config
	client *remote.Client
}

// New returns a Service. It calls nothing.
func New(c Config) *Service { return &Service{c, remote.NewClient(c.Sign, failure)} }

// Close closes idle HTTP connections.
func (s *Service) Close() error {
	s.client.Close()
	return nil
}

// Error is an error that the service reports.
type Error struct {
	Type    string // such as InvalidRequestException; empty for a query that failed
	Message string // the message of the service, on one line
}

// Error returns the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Type
	}
	return e.Message
}

// failure returns the error of an answer that is not a success.
func failure(status int, data []byte) (error, bool) { //nolint:revive // as remote.Client
	var answer struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(data, &answer) // else the status is all that is known
	if answer.Type == "" && answer.Message == "" {
		return &Error{Message: fmt.Sprintf("status %d %s", status, http.StatusText(status))}, false
	}
	again := false
	switch answer.Type {
	case "TooManyRequestsException", "ThrottlingException", "InternalServerException":
		again = true
	}
	return &Error{Type: answer.Type, Message: httpx.SingleLine(answer.Message, 500)}, again
}

// request returns the request of an operation.
func (s *Service) request(operation string, in any) remote.Request {
	return remote.Request{Method: http.MethodPost, Address: s.config.Endpoint, In: in,
		Header: map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AmazonAthena." + operation}}
}

// call sends a request for an operation and decodes its answer.
func (s *Service) call(ctx context.Context, operation string, in, answer any) error {
	_, err := s.client.Call(ctx, s.request(operation, in), answer)
	return err
}

// object is a JSON object of a request.
type object = map[string]any

// Query runs a query. Values are literals of SQL as text.
func (s *Service) Query(ctx context.Context, text string, values []any) (driver.Rows, error) {
	parameters := make([]string, len(values))
	for i, v := range values {
		literal, ok := v.(string)
		switch {
		case !ok:
			return nil, &remote.ParameterError{At: i, Reason: "is not a literal"}
		case utf8.RuneCountInString(literal) > maxParameter:
			return nil, &remote.ParameterError{At: i, Reason: fmt.Sprintf("has more than %d characters", maxParameter)}
		}
		parameters[i] = literal
	}
	id, err := s.start(ctx, text, parameters)
	if err != nil {
		return nil, err
	}
	hasHeader, err := s.wait(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.rows(ctx, id, hasHeader)
}

// start starts a query and returns its id.
func (s *Service) start(ctx context.Context, query string, parameters []string) (string, error) {
	in := object{"QueryString": query, "ClientRequestToken": rand.Text() + rand.Text()} // the token makes repetitions harmless
	place := object{}
	set(place, "Database", s.config.Database)
	set(place, "Catalog", s.config.Catalog)
	if len(place) > 0 {
		in["QueryExecutionContext"] = place
	}
	if s.config.Output != "" {
		in["ResultConfiguration"] = object{"OutputLocation": s.config.Output}
	}
	set(in, "WorkGroup", s.config.WorkGroup)
	if len(parameters) > 0 {
		in["ExecutionParameters"] = parameters
	}
	var answer struct{ QueryExecutionId string } //nolint:revive,staticcheck // the service's name
	r := s.request("StartQueryExecution", in)
	r.Starts = true
	if _, err := s.client.Call(ctx, r, &answer); err != nil {
		return "", err
	}
	if answer.QueryExecutionId == "" {
		return "", errors.New("the service has not started the query")
	}
	return answer.QueryExecutionId, nil
}

func set(in object, name, value string) {
	if value != "" {
		in[name] = value
	}
}

// wait waits until a query has ended, and reports whether its results begin with a row of
// names. If ctx ends first, the query is stopped.
func (s *Service) wait(ctx context.Context, id string) (hasHeader bool, err error) {
	var poll remote.Poll
	for {
		var answer struct {
			QueryExecution struct {
				StatementType string
				Status        struct {
					State             string
					StateChangeReason string
				}
			}
		}
		err := s.call(ctx, "GetQueryExecution", object{"QueryExecutionId": id}, &answer)
		if err != nil {
			s.stop(ctx, id)
			return false, err
		}
		switch e := answer.QueryExecution; e.Status.State {
		case "SUCCEEDED":
			return e.StatementType == "DML", nil
		case "FAILED", "CANCELLED":
			if e.Status.StateChangeReason == "" {
				return false, fmt.Errorf("the query is %s", e.Status.State)
			}
			return false, &Error{Message: httpx.SingleLine(e.Status.StateChangeReason, 500)}
		}
		if err := poll.Wait(ctx); err != nil {
			s.stop(ctx, id)
			return false, err
		}
	}
}

// stop stops a query whose results are not needed any more.
func (s *Service) stop(ctx context.Context, id string) {
	s.client.Stop(ctx, s.request("StopQueryExecution", object{"QueryExecutionId": id}))
}
