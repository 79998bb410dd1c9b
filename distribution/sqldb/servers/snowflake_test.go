package servers_test

import (
	"compress/gzip"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

// service is an HTTP server that answers requests by their method and path, and records them.
type service struct {
	address string
	answer  func(r serviceRequest) (status int, body string)

	mu   sync.Mutex
	sent []serviceRequest
}

// serviceRequest is a request that a service got.
type serviceRequest struct {
	Line   string // method, path and the query without ids
	Token  string
	Kind   string // of the token
	Body   map[string]any
	Number int // of the requests with this line, from 1
}

func newService(t *testing.T, answer func(serviceRequest) (int, string)) *service {
	t.Helper()
	s := &service{answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.address = strings.TrimPrefix(server.URL, "http://")
	return s
}

// ServeHTTP answers a request.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	query.Del("requestId")
	one := serviceRequest{Line: strings.TrimSuffix(r.Method+" "+r.URL.Path+"?"+query.Encode(), "?"),
		Token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Kind: r.Header.Get("X-Snowflake-Authorization-Token-Type")}
	_ = json.NewDecoder(r.Body).Decode(&one.Body) // most have none
	s.mu.Lock()
	for _, other := range s.sent {
		if other.Line == one.Line {
			one.Number++
		}
	}
	one.Number++
	s.sent = append(s.sent, one)
	s.mu.Unlock()
	status, body := s.answer(one)
	if strings.Contains(one.Line, "partition=") { // the service compresses partitions
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
		return
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// lines returns the requests.
func (s *service) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.sent {
		all = append(all, r.Line)
	}
	return all
}

func (s *service) has(line string) func() bool {
	return func() bool { return strings.Contains(strings.Join(s.lines(), "\n")+"\n", line+"\n") }
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // a condition of another goroutine
	}
}

// The statement of a test is answered after two questions, in two partitions.
func snowflakeAnswer(r serviceRequest) (int, string) {
	running := `{"statementHandle":"h1","message":"in progress"}`
	switch {
	case strings.HasPrefix(r.Line, "POST /api/v2/statements?") && r.Number == 1:
		return http.StatusServiceUnavailable, "<html>"
	case strings.HasPrefix(r.Line, "POST /api/v2/statements?"):
		return http.StatusAccepted, running
	case r.Line == "GET /api/v2/statements/h1" && r.Number == 1:
		return http.StatusAccepted, running
	case r.Line == "GET /api/v2/statements/h1":
		return http.StatusOK, `{"statementHandle":"h1","resultSetMetaData":{"partitionInfo":[{"rowCount":1},{"rowCount":1}],"rowType":[
			{"name":"I","type":"fixed","scale":0},{"name":"D","type":"fixed","scale":2},{"name":"BIG","type":"fixed","scale":0},{"name":"F","type":"real"},
			{"name":"B","type":"boolean"},{"name":"T","type":"text"},{"name":"DAY","type":"date"},{"name":"TOD","type":"time"},{"name":"AT","type":"timestamp_ntz"},
			{"name":"LOCAL","type":"timestamp_ltz"},{"name":"ZONED","type":"timestamp_tz"},{"name":"RAW","type":"binary"},{"name":"JS","type":"variant"}]},
			"data":[["7","12.50","99999999999999999999","2.5","true","öl","19782","45005.500000000","1709209805.500000000","-62198755200.000000000","1709209805.500000000 1500","00FF","{\"a\": [1]}"]]}`
	case r.Line == "GET /api/v2/statements/h1?partition=1":
		return http.StatusOK, `{"data":[[null,null,null,null,null,null,null,null,null,null,null,null,null]]}`
	}
	return http.StatusNotFound, `{"code":"1","message":"unexpected ` + r.Line + `"}`
}

func TestSnowflake(t *testing.T) {
	s := newService(t, snowflakeAnswer)
	source := open(t, "snowflake://ada:pat-1@"+s.address+"/shop/public?warehouse=small&role=reader&protocol=http",
		"SELECT * FROM orders WHERE a = :a AND b = :b AND c = :c AND d = :d AND e = :e AND f = :f AND g = :g AND h = :h AND i = :i AND j = :j")
	at := time.Date(2024, 2, 29, 12, 30, 5, 500_000_000, time.UTC)
	rows, err := queryRows(t, source, "O'Hara", int64(3), 0.5, true, nil, []byte{0, 0xff}, value.Date{Year: 2024, Month: 2, Day: 29},
		value.DateTime{Time: at}, value.DateTime{Time: at, Zoned: true}, []any{int64(1)})
	testkit.Must(t, err)
	want := []string{
		`int64=7 value.Decimal=12.50 value.Decimal=99999999999999999999 float64=2.5 bool=true string="öl" value.Date="2024-02-29" string="12:30:05.5" ` +
			`value.DateTime="2024-02-29T12:30:05.5" string="-0001-01-01T00:00:00" value.DateTime="2024-02-29T12:30:05.5Z" []uint8={"base64":"AP8="} string="{\"a\": [1]}"`,
		strings.TrimSpace(strings.Repeat("<nil>=null ", 13)),
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
	start := "POST /api/v2/statements?async=true&nullable=true&retry=true"
	lines := []string{start, start, "GET /api/v2/statements/h1", "GET /api/v2/statements/h1", "GET /api/v2/statements/h1?partition=1"}
	if d := cmp.Diff(lines, s.lines()); d != "" {
		t.Error(d)
	}
	binding := func(typ string, v any) map[string]any { return map[string]any{"type": typ, "value": v} }
	wantBody := map[string]any{"database": "shop", "schema": "public", "warehouse": "small", "role": "reader",
		"statement": "SELECT * FROM orders WHERE a = ? AND b = ? AND c = ? AND d = ? AND e = ? AND f = ? AND g = ? AND h = ? AND i = ? AND j = ?",
		"bindings": map[string]any{"1": binding("TEXT", "O'Hara"), "2": binding("FIXED", "3"), "3": binding("REAL", "0.5"), "4": binding("BOOLEAN", "true"),
			"5": binding("TEXT", nil), "6": binding("BINARY", "00ff"), "7": binding("DATE", "1709164800000"), "8": binding("TIMESTAMP_NTZ", "1709209805500000000"),
			"9": binding("TIMESTAMP_LTZ", "1709209805500000000"), "10": binding("TEXT", "[1]")}}
	if d := cmp.Diff(wantBody, s.sent[1].Body); d != "" {
		t.Error(d)
	}
	if got := s.sent[0]; got.Token != "pat-1" || got.Kind != "" {
		t.Errorf("token %q of kind %q", got.Token, got.Kind)
	}
}

// TestSnowflake_Key checks the token that is signed with a private key.
func TestSnowflake_Key(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.Must(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, "key.p8")
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	s := newService(t, func(serviceRequest) (int, string) {
		return http.StatusOK, `{"resultSetMetaData":{"rowType":[{"name":"X","type":"fixed"}]},"data":[["1"]]}`
	})
	address := "snowflake://ada@" + s.address + "/shop?protocol=http&private_key_file="
	rows, err := queryRows(t, open(t, address+file, "SELECT 1 AS x"))
	if err != nil || len(rows) != 1 || rows[0] != "int64=1" {
		t.Fatalf("%v, %v", rows, err)
	}
	parts := strings.Split(s.sent[0].Token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	testkit.Must(t, err)
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	testkit.Must(t, rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature))
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	testkit.Must(t, err)
	var claims struct {
		Iss, Sub string
		Iat, Exp int64
	}
	testkit.Must(t, json.Unmarshal(payload, &claims))
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	testkit.Must(t, err)
	digest := sha256.Sum256(public)
	if want := "127.ADA"; claims.Sub != want || claims.Iss != want+".SHA256:"+base64.StdEncoding.EncodeToString(digest[:]) || claims.Exp-claims.Iat != 3600 {
		t.Errorf("claims %+v", claims)
	}
	if s.sent[0].Kind != "KEYPAIR_JWT" {
		t.Errorf("kind %q", s.sent[0].Kind)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "text"), []byte("no key"), 0o600))
	for name, want := range map[string]string{"none": "private_key_file: cannot be read: no such file", "text": "private_key_file: the file is not in PEM format"} {
		if _, err := queryRows(t, open(t, address+filepath.Join(folder, name), "SELECT 1 AS x")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestSnowflake_Errors(t *testing.T) {
	s := newService(t, func(serviceRequest) (int, string) {
		return http.StatusUnprocessableEntity, `{"code":"000904","message":"SQL compilation error: error line 1 at position 7\ninvalid identifier 'X' of pat-1"}`
	})
	address := "snowflake://ada:pat-1@" + s.address + "/shop?protocol=http"
	if _, err := queryRows(t, open(t, address, "SELECT x FROM t")); err == nil || !strings.HasSuffix(err.Error(), "/shop: SQL compilation error: error line 1 at position 7 invalid identifier 'X' of ***") {
		t.Errorf("got %v", err)
	}
	if _, err := queryRows(t, open(t, "snowflake://ada@acc/shop", "SELECT 1 AS x")); err == nil || !strings.Contains(err.Error(), "no token: set an auth") {
		t.Errorf("got %v", err)
	}
	if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, "CALL p()", sqldb.Access{}); err == nil || !strings.Contains(err.Error(), "a query of Snowflake begins with") {
		t.Errorf("got %v", err)
	}
	login := sqldb.Access{Kind: "bearer_token", Login: func(context.Context, *sqlquery.URL) (string, string, error) { return "", "from-auth", nil }}
	source, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, "SELECT 1 AS x", login)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = source.Close() })
	_, _ = queryRows(t, source)
	if got := s.sent[len(s.sent)-1].Token; got != "from-auth" {
		t.Errorf("token %q", got)
	}
}

// TestServices_Cancelled checks that a query is stopped when its row is canceled.
func TestServices_Cancelled(t *testing.T) {
	stopped := errors.New("stopped")
	for _, c := range []struct{ address, running, stop string }{
		{"snowflake://ada:pat@%s/shop?protocol=http", `{"statementHandle":"h1"}`, "POST /api/v2/statements/h1/cancel"},
		{"bigquery://project/shop", `{"jobComplete":false,"jobReference":{"jobId":"j1","location":"EU"}}`, "POST /bigquery/v2/projects/project/jobs/j1/cancel?location=EU"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newService(t, func(r serviceRequest) (int, string) {
			if r.Line == c.stop {
				return http.StatusOK, "{}"
			}
			cancel(stopped)
			return http.StatusAccepted, c.running
		})
		address := c.address
		if strings.Contains(address, "%s") {
			address = fmt.Sprintf(address, s.address)
		}
		source := openAt(t, address, "SELECT 1 AS x", s.address)
		if _, err := source.Query(ctx, nil); !errors.Is(err, stopped) {
			t.Errorf("%s: got %v", c.address, err)
		}
		eventually(t, c.address+": the query was not stopped", s.has(c.stop))
	}
}
