// Package athena is a driver of database/sql for queries of Amazon Athena, over its JSON API.
package athena

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// Limits of requests.
const (
	requestTime  = 30 * time.Second // of one request
	stopTime     = 5 * time.Second  // for the request that stops a query
	initialPoll  = 100 * time.Millisecond
	maxPoll      = 2 * time.Second
	maxAnswer    = 64 << 20 // bytes
	maxAttempts  = 5
	initialDelay = 200 * time.Millisecond
	maxDelay     = 10 * time.Second
	connections  = 16 // kept to the service
)

// Config describes where queries run. The service writes their results to a folder in S3.
type Config struct {
	Endpoint  string                                  // the address of the service
	Sign      func(req *http.Request, b []byte) error // signs a request with its body
	Database  string                                  // of tables without a database in the query; may be empty
	Catalog   string                                  // of the database; empty means the service's default
	Output    string                                  // s3:// address for results; empty means that of the work group
	WorkGroup string                                  // empty means the service's default
}

// Connector opens connections, which share HTTP connections. It is safe for concurrent use.
type Connector struct {
	config Config
	client *http.Client
	policy httpx.Policy
}

// NewConnector returns a Connector. It calls nothing.
func NewConnector(c Config) *Connector {
	client := &http.Client{Transport: httpx.Transport(connections), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Connector{config: c, client: client, policy: httpx.Policy{MaxAttempts: maxAttempts, InitialDelay: initialDelay, MaxDelay: maxDelay}}
}

// Connect returns a connection, without a request.
func (c *Connector) Connect(context.Context) (driver.Conn, error) { return conn{c}, nil }

// Driver returns the driver, which opens nothing by name.
func (c *Connector) Driver() driver.Driver { return noDriver{} }

// Close closes idle HTTP connections.
func (c *Connector) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

type noDriver struct{}

// Open returns an error: connections are opened by a Connector.
func (noDriver) Open(string) (driver.Conn, error) { return nil, errors.New("use a Connector") }

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

// call sends a request for an operation, again while the service is overloaded or not
// reachable, and decodes its answer.
func (c *Connector) call(ctx context.Context, operation string, in, answer any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	attempts := c.policy.Start()
	for {
		again, after, err := c.attempt(ctx, operation, body, answer)
		if err == nil || !again || !attempts.Next(ctx, after) {
			return err
		}
	}
}

// attempt sends one request. It reports whether another may succeed, and after which time.
func (c *Connector) attempt(ctx context.Context, operation string, body []byte, answer any) (again bool, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the endpoint is not an address")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AmazonAthena."+operation)
	if err := c.config.Sign(req, body); err != nil {
		return false, 0, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return true, 0, errors.New(httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return true, 0, errors.New(httpx.Reason(err))
	}
	if resp.StatusCode != http.StatusOK {
		failure := failureOf(data, resp.Status)
		return isTemporary(failure.Type, resp.StatusCode), httpx.RetryAfter(resp.Header, time.Now()), failure
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return false, 0, errors.New("the answer is not the JSON that was expected")
	}
	return false, 0, nil
}

// failureOf returns the error of an answer that is not a success.
func failureOf(data []byte, status string) *Error {
	var answer struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(data, &answer) // else the status is all that is known
	if answer.Type == "" && answer.Message == "" {
		return &Error{Message: "status " + status}
	}
	return &Error{Type: answer.Type, Message: httpx.SingleLine(answer.Message, 500)}
}

func isTemporary(kind string, status int) bool {
	switch kind {
	case "TooManyRequestsException", "ThrottlingException", "InternalServerException":
		return true
	}
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// object is a JSON object of a request.
type object = map[string]any

// start starts a query and returns its id.
func (c *Connector) start(ctx context.Context, query string, parameters []string) (string, error) {
	in := object{"QueryString": query, "ClientRequestToken": rand.Text() + rand.Text()} // the token makes repetitions harmless
	place := object{}
	set(place, "Database", c.config.Database)
	set(place, "Catalog", c.config.Catalog)
	if len(place) > 0 {
		in["QueryExecutionContext"] = place
	}
	if c.config.Output != "" {
		in["ResultConfiguration"] = object{"OutputLocation": c.config.Output}
	}
	set(in, "WorkGroup", c.config.WorkGroup)
	if len(parameters) > 0 {
		in["ExecutionParameters"] = parameters
	}
	var answer struct{ QueryExecutionId string } //nolint:revive,staticcheck // the service's name
	if err := c.call(ctx, "StartQueryExecution", in, &answer); err != nil {
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
func (c *Connector) wait(ctx context.Context, id string) (hasHeader bool, err error) {
	for delay := initialPoll; ; delay = min(2*delay, maxPoll) {
		var answer struct {
			QueryExecution struct {
				StatementType string
				Status        struct {
					State             string
					StateChangeReason string
				}
			}
		}
		err := c.call(ctx, "GetQueryExecution", object{"QueryExecutionId": id}, &answer)
		if err != nil {
			c.stop(ctx, id)
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
		select {
		case <-ctx.Done():
			c.stop(ctx, id)
			return false, ctx.Err()
		case <-time.After(delay):
		}
	}
}

// stop stops a query whose results are not needed any more. An error has no effect: the query ends
// by itself.
func (c *Connector) stop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	_, _, _ = c.attempt(ctx, "StopQueryExecution", stopBody(id), &struct{}{})
}

func stopBody(id string) []byte {
	body, _ := json.Marshal(object{"QueryExecutionId": id}) // a text has no error
	return body
}
