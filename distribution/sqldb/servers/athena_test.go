package servers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

// moto implements the API of Athena. It runs no SQL: results are registered before.
var moto = servertest.Shared{Start: servertest.S3}

// athenaService is a server before moto that records requests and may answer them itself.
type athenaService struct {
	address string

	mu     sync.Mutex
	sent   map[string][]map[string]any // bodies, by operation
	answer map[string][]func(w http.ResponseWriter)
}

// newAthena starts the service; its queries return the rows, of which the first has the names.
func newAthena(t *testing.T, types []string, rows ...[]any) *athenaService {
	t.Helper()
	address, err := url.Parse("http://" + moto.Get(t).Address())
	testkit.Must(t, err)
	s := &athenaService{sent: map[string][]map[string]any{}, answer: map[string][]func(http.ResponseWriter){}}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.ModifyResponse = func(r *http.Response) error { // moto calls each statement a DDL
		data, err := io.ReadAll(r.Body)
		data = bytes.ReplaceAll(data, []byte(`"StatementType": "DDL"`), []byte(`"StatementType": "DML"`))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		r.Header.Set("Content-Length", fmt.Sprint(len(data)))
		return err
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, proxy) }))
	t.Cleanup(front.Close)
	s.address = front.URL
	register(t, address.String(), types, rows)
	return s
}

// register sets the results of the next query.
func register(t *testing.T, address string, types []string, rows [][]any) {
	t.Helper()
	var columns, lines []map[string]any
	for i, typ := range types {
		columns = append(columns, map[string]any{"Name": rows[0][i], "Label": rows[0][i], "Type": typ})
	}
	for _, cells := range rows {
		var data []map[string]any
		for _, cell := range cells {
			one := map[string]any{}
			if cell != nil {
				one["VarCharValue"] = cell
			}
			data = append(data, one)
		}
		lines = append(lines, map[string]any{"Data": data})
	}
	body, err := json.Marshal(map[string]any{"region": "eu-west-1", "results": []any{map[string]any{"rows": lines, "column_info": columns}}})
	testkit.Must(t, err)
	resp, err := http.Post(address+"/moto-api/static/athena/query-results", "application/json", bytes.NewReader(body))
	testkit.Must(t, err)
	testkit.Must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status)
	}
}

// serve records a request, and answers it or forwards it.
func (s *athenaService) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	data, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(data))
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonAthena.")
	var body map[string]any
	_ = json.Unmarshal(data, &body)
	body["authorization"] = r.Header.Get("Authorization")
	s.mu.Lock()
	s.sent[operation] = append(s.sent[operation], body)
	var own func(http.ResponseWriter)
	if list := s.answer[operation]; len(list) > 0 {
		own, s.answer[operation] = list[0], list[1:]
	}
	s.mu.Unlock()
	if own != nil {
		own(w)
		return
	}
	next.ServeHTTP(w, r)
}

// requests returns the bodies of the requests of an operation.
func (s *athenaService) requests(operation string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[operation]
}

// answers sets the answers to the next requests of an operation.
func (s *athenaService) answers(operation string, status int, bodies ...string) {
	for _, body := range bodies {
		s.answer[operation] = append(s.answer[operation], func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
}

// open returns the source of a query.
func (s *athenaService) open(t *testing.T, query string) *sqldb.Source {
	t.Helper()
	source, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "awsathena+rest://AKID:sesame@athena.eu-west-1.amazonaws.com:443/sales?s3_staging_dir=s3://bucket/results/&work_group=primary&catalog_name=lake",
		query, sqldb.Access{Env: awsauth.Options{Getenv: s.getenv}})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = source.Close() })
	return source
}

func (s *athenaService) getenv(name string) string {
	if name == "AWS_ENDPOINT_URL_ATHENA" {
		return s.address
	}
	return ""
}

func TestAthena(t *testing.T) {
	s := newAthena(t, []string{"integer", "double", "decimal", "boolean", "varchar", "date", "timestamp", "timestamp with time zone", "varbinary", "array"},
		[]any{"i", "f", "d", "b", "t", "day", "at", "zoned", "raw", "list"},
		[]any{"7", "2.5", "12.50", "true", "öl", "2024-02-29", "2024-02-29 12:30:00.000", "2024-02-29 12:30:00.000 Europe/Berlin", "00 ff", "[1, 2]"},
		[]any{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil})
	source := s.open(t, "SELECT * FROM orders WHERE day >= :day AND name = :name AND n > :n AND x > :x -- all of them")
	args := []any{value.Date{Year: 2024, Month: 2, Day: 1}, "O'Hara", int64(3), 0.5}
	rows, err := queryRows(t, source, args...)
	testkit.Must(t, err)
	want := []string{
		`int64=7 float64=2.5 value.Decimal=12.50 bool=true string="öl" value.Date="2024-02-29" value.DateTime="2024-02-29T12:30:00" ` +
			`value.DateTime="2024-02-29T11:30:00Z" []uint8={"base64":"AP8="} string="[1, 2]"`,
		strings.TrimSpace(strings.Repeat("<nil>=null ", 10)),
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	sent := s.requests("StartQueryExecution")[0]
	delete(sent, "ClientRequestToken")
	if signed := sent["authorization"].(string); !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=AKID/") || !strings.Contains(signed, "/eu-west-1/athena/aws4_request") {
		t.Errorf("the signature is %s", signed)
	}
	delete(sent, "authorization")
	wantSent := map[string]any{
		"QueryString":           "SELECT * FROM orders WHERE day >= ? AND name = ? AND n > ? AND x > ? -- all of them",
		"QueryExecutionContext": map[string]any{"Database": "sales", "Catalog": "lake"},
		"ResultConfiguration":   map[string]any{"OutputLocation": "s3://bucket/results/"},
		"WorkGroup":             "primary",
		"ExecutionParameters":   []any{"DATE '2024-02-01'", "'O''Hara'", "3", "5E-01"},
	}
	if d := cmp.Diff(wantSent, sent); d != "" {
		t.Error(d)
	}
	if _, err := queryRows(t, source, args[0], strings.Repeat("x", 1100), args[2], args[3]); err == nil || !strings.HasSuffix(err.Error(),
		"/sales: the value of :name has more than 1024 characters, which Athena does not accept") {
		t.Errorf("got %v", err)
	}
}

// TestAthena_Waits checks overload, states before the end, and pages.
func TestAthena_Waits(t *testing.T) {
	s := newAthena(t, []string{"bigint"}, []any{"n"}, []any{"1"})
	s.answers("StartQueryExecution", http.StatusBadRequest, `{"__type":"TooManyRequestsException","Message":"slow down"}`)
	s.answers("GetQueryExecution", http.StatusOK, `{"QueryExecution":{"Status":{"State":"QUEUED"}}}`, `{"QueryExecution":{"Status":{"State":"RUNNING"}}}`)
	s.answers("GetQueryResults", http.StatusOK,
		`{"NextToken":"more","ResultSet":{"ResultSetMetadata":{"ColumnInfo":[{"Name":"n","Type":"bigint"}]},"Rows":[{"Data":[{"VarCharValue":"n"}]},{"Data":[{"VarCharValue":"5"}]}]}}`,
		`{"NextToken":"last","ResultSet":{"Rows":[]}}`)
	rows, err := queryRows(t, s.open(t, "SELECT n FROM t"))
	testkit.Must(t, err)
	if d := cmp.Diff([]string{"int64=5", `string="n"`, "int64=1"}, rows); d != "" { // moto's page has its names
		t.Error(d)
	}
	starts := s.requests("StartQueryExecution")
	if len(starts) != 2 || starts[0]["ClientRequestToken"] != starts[1]["ClientRequestToken"] {
		t.Errorf("the repetition has another token: %v", starts)
	}
}

func TestAthena_Errors(t *testing.T) {
	s := newAthena(t, nil, []any{})
	s.answers("GetQueryExecution", http.StatusOK, `{"QueryExecution":{"Status":{"State":"FAILED","StateChangeReason":"line 1:8: Column 'x'\ncannot be resolved"}}}`)
	_, err := queryRows(t, s.open(t, "SELECT x FROM t"))
	var reported *sqldb.Error
	if want := "line 1:8: Column 'x' cannot be resolved"; !errors.As(err, &reported) || reported.Reason != want {
		t.Errorf("got %v, want %s", err, want)
	}
	s.answers("StartQueryExecution", http.StatusBadRequest, `{"__type":"InvalidRequestException","Message":"no bucket for sesame"}`)
	if _, err := queryRows(t, s.open(t, "SELECT x FROM t")); err == nil || !strings.HasSuffix(err.Error(), ": no bucket for ***") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"INSERT INTO t VALUES (1)", "/* SELECT */ drop table t", "EXPLAIN ANALYZE SELECT 1", ""} {
		if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "awsathena+rest://@/db?work_group=w&region_name=eu-west-1", text, sqldb.Access{}); err == nil || !strings.Contains(err.Error(), "query line 1, column ") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestAthena_Cancelled checks that a query is stopped when its row is cancelled.
func TestAthena_Cancelled(t *testing.T) {
	s := newAthena(t, nil, []any{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	s.answer["GetQueryExecution"] = []func(http.ResponseWriter){func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"QueryExecution":{"Status":{"State":"RUNNING"}}}`)
		cancel(stopped)
	}}
	if _, err := s.open(t, "SELECT 1").Query(ctx, nil); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	deadline := time.After(10 * time.Second)
	for len(s.requests("StopQueryExecution")) == 0 {
		select {
		case <-deadline:
			t.Fatal("the query was not stopped")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
