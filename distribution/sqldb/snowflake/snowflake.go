// Package snowflake runs queries of Snowflake, over its SQL API.
package snowflake

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
	"github.com/qtype-dev/qtype/internal/httpx"
)

// Config describes where queries run.
type Config struct {
	Endpoint  string                        // the address of the account, without a path
	Authorize func(req *http.Request) error // adds credentials to a request
	Database  string                        // of names without one in the query; may be empty
	Schema    string                        // the same
	Warehouse string                        // which runs queries; empty means the default of the user
	Role      string                        // of the session; empty means the default of the user
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
	var answer struct{ Message string }
	_ = json.Unmarshal(data, &answer) // else the status is all that is known
	if answer.Message == "" {
		return fmt.Errorf("status %d %s", status, http.StatusText(status)), false
	}
	return errors.New(httpx.SingleLine(answer.Message, 500)), false
}

// object is a JSON object of a request.
type object = map[string]any

// response is the answer about a statement.
type response struct {
	StatementHandle   string
	Data              [][]*string
	ResultSetMetaData struct {
		RowType       []column
		PartitionInfo []struct{}
	}
}

// column describes a column.
type column struct {
	Name, Type string
	Scale      int // digits after the point of a FIXED
}

// Query runs a query with a ? for each value.
func (s *Service) Query(ctx context.Context, text string, values []any) (driver.Rows, error) {
	in := object{"statement": text}
	for name, v := range map[string]string{"database": s.config.Database, "schema": s.config.Schema, "warehouse": s.config.Warehouse, "role": s.config.Role} {
		if v != "" {
			in[name] = v
		}
	}
	if len(values) > 0 {
		in["bindings"] = bindings(values)
	}
	// The id and retry make repetitions harmless. The answer comes at once, so that the statement can be canceled.
	query := url.Values{"requestId": {uuid()}, "retry": {"true"}, "nullable": {"true"}, "async": {"true"}}
	start := s.request(http.MethodPost, s.address()+"?"+query.Encode(), in)
	start.Starts = true
	var answer response
	status, err := s.client.Call(ctx, start, &answer)
	if err != nil {
		return nil, err
	}
	if answer, err = s.wait(ctx, status, answer); err != nil {
		return nil, err
	}
	return s.rows(ctx, answer), nil
}

// uuid returns a random UUID of version 4, which the service requires.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// address returns the address of the statements, or of one.
func (s *Service) address(parts ...string) string {
	path := s.config.Endpoint + "/api/v2/statements"
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return path
}

func (s *Service) request(method, address string, in any) remote.Request {
	return remote.Request{Method: method, Address: address, In: in, Header: map[string]string{"Accept": "application/json"}}
}

// wait waits until a statement has ended. If ctx ends first, it is canceled.
func (s *Service) wait(ctx context.Context, status int, answer response) (response, error) {
	var poll remote.Poll
	handle := answer.StatementHandle
	for status == http.StatusAccepted {
		err := poll.Wait(ctx)
		if err == nil {
			answer = response{}
			status, err = s.client.Call(ctx, s.request(http.MethodGet, s.address(handle), nil), &answer)
		}
		if err != nil {
			s.client.Stop(ctx, s.request(http.MethodPost, s.address(handle, "cancel"), nil))
			return response{}, err
		}
	}
	answer.StatementHandle = handle
	return answer, nil
}

// rows returns the results of a statement, which are in partitions.
func (s *Service) rows(ctx context.Context, first response) driver.Rows {
	meta := first.ResultSetMetaData
	next := func(number int) string {
		if number < len(meta.PartitionInfo) {
			return strconv.Itoa(number)
		}
		return ""
	}
	r := &remote.Rows[[]*string]{Page: remote.Page[[]*string]{Rows: first.Data, Next: next(1)}}
	r.More = func(number string) (remote.Page[[]*string], error) {
		var answer response
		_, err := s.client.Call(ctx, s.request(http.MethodGet, s.address(first.StatementHandle)+"?partition="+number, nil), &answer)
		n, _ := strconv.Atoi(number) // written by next
		return remote.Page[[]*string]{Rows: answer.Data, Next: next(n + 1)}, err
	}
	for _, c := range meta.RowType {
		r.List = append(r.List, remote.Column{Name: c.Name, Type: c.Type})
	}
	r.Decode = func(row []*string, into []driver.Value) error {
		for i := range min(len(row), len(into), len(meta.RowType)) {
			if row[i] == nil {
				continue
			}
			v, err := decode(meta.RowType[i], *row[i])
			if err != nil {
				return fmt.Errorf("column %s of type %s has the unexpected value %.100q", meta.RowType[i].Name, meta.RowType[i].Type, *row[i])
			}
			into[i] = v
		}
		return nil
	}
	return r
}
