package servers_test

import (
	"net/http"
	"strings"
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

// bigQuery is an emulator of BigQuery.
var bigQuery = servertest.Shared{Start: servertest.BigQuery}

// openAt returns the source of a query of BigQuery at an address.
func openAt(t *testing.T, address, query, emulator string) *sqldb.Source {
	t.Helper()
	source, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, query, sqldb.Access{Env: awsauth.Options{Getenv: func(name string) string {
		if name == "BIGQUERY_EMULATOR_HOST" {
			return emulator
		}
		return ""
	}}})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// TestBigQuery runs queries at an emulator.
func TestBigQuery(t *testing.T) {
	address := bigQuery.Get(t).Address()
	at := time.Date(2024, 2, 29, 12, 30, 5, 500_000_000, time.UTC)
	for _, c := range []struct {
		query string
		args  []any
		want  string
	}{
		{"SELECT 7 AS i, 2.5 AS f, NUMERIC '12.50' AS d, TRUE AS b, 'öl' AS t, DATE '2024-02-29' AS day", nil,
			`int64=7 float64=2.5 value.Decimal=12.5 bool=true string="öl" value.Date="2024-02-29"`},
		{"SELECT DATETIME '2024-02-29 12:30:05.5' AS at, TIMESTAMP '2024-02-29 12:30:05.5+00' AS zoned", nil,
			`value.DateTime="2024-02-29T12:30:05.5" value.DateTime="2024-02-29T12:30:05.5Z"`},
		{"SELECT [1, 2] AS l, CAST(NULL AS STRING) AS n", nil, `[]interface {}=[1,2] <nil>=null`},
		{"SELECT STRUCT(1 AS a, 'x' AS b) AS s", nil, `*value.Record={"a":1,"b":"x"}`},
		{"SELECT :t AS t, :i + 1 AS i, :f AS f, :b AS b, :day AS day, :at AS at, :zoned AS zoned",
			[]any{"O'Hara", int64(3), 0.5, true, value.Date{Year: 2024, Month: 2, Day: 29}, value.DateTime{Time: at}, value.DateTime{Time: at, Zoned: true}},
			`string="O'Hara" int64=4 float64=0.5 bool=true value.Date="2024-02-29" value.DateTime="2024-02-29T12:30:05.5" value.DateTime="2024-02-29T12:30:05.5Z"`},
		{"SELECT x FROM UNNEST([1, 2, 3]) AS x WHERE x IN UNNEST(:list) ORDER BY x DESC", []any{[]any{int64(3), int64(1)}}, "int64=3\nint64=1"},
	} {
		rows, err := queryRows(t, openAt(t, "bigquery://shop", c.query, "http://"+address), c.args...)
		got := strings.Join(rows, "\n")
		got = strings.ReplaceAll(got, "=12.500000000 ", "=12.5 ") // BigQuery returns 12.5, some versions of the emulator all nine decimal places
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.query, err, got, c.want)
		}
	}
	if _, err := queryRows(t, openAt(t, "bigquery://shop", "SELECT nothing FROM no_table", address)); err == nil || !strings.HasPrefix(err.Error(), "bigquery://shop/: ") {
		t.Errorf("got %v", err)
	}
}

// TestBigQuery_Protocol checks requests, waits, pages and values that the emulator does not have.
func TestBigQuery_Protocol(t *testing.T) {
	s := newService(t, func(r serviceRequest) (int, string) {
		job := `"jobReference":{"projectId":"shop","jobId":"j1","location":"EU"}`
		switch {
		case strings.HasPrefix(r.Line, "POST ") && r.Number == 1:
			return http.StatusForbidden, `{"error":{"message":"slow down","errors":[{"reason":"rateLimitExceeded"}]}}`
		case strings.HasPrefix(r.Line, "POST "):
			return http.StatusOK, `{"jobComplete":false,` + job + `}`
		case strings.Contains(r.Line, "pageToken=next"):
			return http.StatusOK, `{"jobComplete":true,"rows":[{"f":[{"v":null},{"v":[]},{"v":null},{"v":null},{"v":null}]}]}`
		}
		return http.StatusOK, `{"jobComplete":true,` + job + `,"pageToken":"next","schema":{"fields":[{"name":"d","type":"BIGNUMERIC"},
			{"name":"l","type":"RECORD","mode":"REPEATED","fields":[{"name":"a","type":"INTEGER"},{"name":"b","type":"DATE","mode":"REPEATED"}]},
			{"name":"js","type":"JSON"},{"name":"zoned","type":"TIMESTAMP"},{"name":"raw","type":"BYTES"}]},
			"rows":[{"f":[{"v":"12345678901234567890.10"},{"v":[{"v":{"f":[{"v":"1"},{"v":[{"v":"2024-02-29"}]}]}}]},{"v":"{\"a\":1}"},{"v":"1709209805500000"},{"v":"AP8="}]}]}`
	})
	source := openAt(t, "bigquery://shop/lake.sales?location=EU&maximum_bytes_billed=1000000", "SELECT * FROM t WHERE a = :a AND b IN UNNEST(:b) AND c = :c AND d = :d", s.address)
	rows, err := queryRows(t, source, value.NewRecord("", value.Field{Name: "x", Value: int64(1)}), []any{"a", int64(1)}, nil, []byte{0, 0xff})
	testkit.Must(t, err)
	want := []string{
		`value.Decimal=12345678901234567890.10 []interface {}=[{"a":1,"b":["2024-02-29"]}] string="{\"a\":1}" value.DateTime="2024-02-29T12:30:05.5Z" []uint8={"base64":"AP8="}`,
		"<nil>=null []interface {}=[] <nil>=null <nil>=null <nil>=null",
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	id, _ := s.sent[0].Body["requestId"].(string)
	if again := s.sent[1].Body["requestId"]; id == "" || again != id {
		t.Errorf("the repetition has the id %v, not %q", again, id)
	}
	delete(s.sent[0].Body, "requestId")
	typ := func(name string) map[string]any { return map[string]any{"type": name} }
	of := func(v any) map[string]any { return map[string]any{"value": v} }
	wantBody := map[string]any{"query": "SELECT * FROM t WHERE a = ? AND b IN UNNEST(?) AND c = ? AND d = ?", "useLegacySql": false, "timeoutMs": 1_000.0, "maxResults": 10_000.0,
		"formatOptions": map[string]any{"useInt64Timestamp": true}, "location": "EU", "maximumBytesBilled": "1000000", "parameterMode": "POSITIONAL",
		"defaultDataset": map[string]any{"projectId": "lake", "datasetId": "sales"},
		"queryParameters": []any{map[string]any{"parameterType": typ("JSON"), "parameterValue": of(`{"x":1}`)},
			map[string]any{"parameterType": map[string]any{"type": "ARRAY", "arrayType": typ("STRING")}, "parameterValue": map[string]any{"arrayValues": []any{of("a"), of("1")}}},
			map[string]any{"parameterType": typ("STRING"), "parameterValue": of(nil)}, map[string]any{"parameterType": typ("BYTES"), "parameterValue": of("AP8=")}}}
	if d := cmp.Diff(wantBody, s.sent[0].Body); d != "" {
		t.Error(d)
	}
	page := "GET /bigquery/v2/projects/shop/queries/j1?formatOptions.useInt64Timestamp=true&location=EU&maxResults=10000"
	lines := []string{"POST /bigquery/v2/projects/shop/queries", "POST /bigquery/v2/projects/shop/queries", page + "&timeoutMs=10000", page + "&pageToken=next&timeoutMs=10000"}
	if d := cmp.Diff(lines, s.lines()); d != "" {
		t.Error(d)
	}
	if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "bigquery://shop/sales", "INSERT INTO t VALUES (1)", sqldb.Access{}); err == nil || !strings.Contains(err.Error(), "a query of BigQuery begins with") {
		t.Errorf("got %v", err)
	}
}
