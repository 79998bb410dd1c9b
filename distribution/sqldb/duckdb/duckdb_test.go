package duckdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program returns DuckDB's command line program.
func program(t *testing.T) string {
	t.Helper()
	return testkit.External(t, "QTYPE_DUCKDB", "DuckDB's command line program")
}

// written returns a new file on which the program has run statements.
func written(t *testing.T, statements string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop & co.duckdb")
	cmd := exec.Command(program(t), "-init", os.DevNull, "-batch", "-bail", file)
	cmd.Stdin = strings.NewReader(statements)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// open returns the source of a query of a file.
func open(t *testing.T, file, query string) *sqldb.Source {
	t.Helper()
	program(t)
	s, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "duckdb:///"+file, query, sqldb.Access{})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

// rows returns the rows of a query as text: type and value of each cell.
func rows(t *testing.T, s *sqldb.Source, args ...any) ([]string, error) {
	t.Helper()
	c, err := s.Query(t.Context(), args)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var all []string
	for c.Next() {
		cells, err := c.Values()
		if err != nil {
			return all, err
		}
		var row []string
		for _, v := range cells {
			row = append(row, fmt.Sprintf("%T=%s", v, value.JSON(v)))
		}
		all = append(all, strings.Join(row, " "))
	}
	return all, c.Err()
}

// TestTypes reads values of each type.
func TestTypes(t *testing.T) {
	cases := []struct{ expression, want string }{
		{"true", "bool=true"},
		{"(-128)::TINYINT", "int64=-128"},
		{"9223372036854775807::BIGINT", "int64=9223372036854775807"},
		{"18446744073709551615::UBIGINT", "value.Decimal=18446744073709551615"},
		{"170141183460469231731687303715884105727::HUGEINT", "value.Decimal=170141183460469231731687303715884105727"},
		{"5::HUGEINT", "int64=5"},
		{"12.50::DECIMAL(8,2)", "value.Decimal=12.50"},
		{"'-0.00000000000000000000000000000000000001'::DECIMAL(38,38)", "value.Decimal=-0.00000000000000000000000000000000000001"},
		{"0.1::FLOAT", "float64=0.1"},
		{"1e300::FLOAT8", "float64=1e+300"},
		{"'nan'::FLOAT8", `float64="NaN"`},
		{"'-inf'::FLOAT8", `float64="-Infinity"`},
		{"'öl' || chr(10) || '\"\\'", `string="öl\n\"\\"`},
		{"DATE '2024-02-29'", `value.Date="2024-02-29"`},
		{"DATE '0044-03-15 (BC)'", `string="-0043-03-15"`},
		{"DATE 'infinity'", `string="infinity"`},
		{"TIME '12:30:05.5'", `string="12:30:05.5"`},
		{"TIMETZ '12:30:05+02'", `string="12:30:05+02"`},
		{"TIMESTAMP '2024-02-29 12:30:05.123456'", `value.DateTime="2024-02-29T12:30:05.123456"`},
		{"TIMESTAMP_NS '2024-02-29 12:30:05.123456789'", `value.DateTime="2024-02-29T12:30:05.123456789"`},
		{"TIMESTAMP_S '2024-02-29 12:30:05'", `value.DateTime="2024-02-29T12:30:05"`},
		{"TIMESTAMPTZ '2024-02-29 12:30:05.5+02:30'", `value.DateTime="2024-02-29T10:00:05.5Z"`},
		{"TIMESTAMP '12024-02-29 12:30:05'", `string="+12024-02-29T12:30:05"`},
		{"UUID '5f362496-264a-47e1-bc55-4ddd6c8b1ffa'", `string="5f362496-264a-47e1-bc55-4ddd6c8b1ffa"`},
		{`'\x00\xFFa'::BLOB`, `[]uint8={"base64":"AP9h"}`},
		{"INTERVAL '1 month 2 days 3.5 seconds'", `string="1 month 2 days 00:00:03.5"`},
		{"'x'::ENUM('x', 'it''s (')", `string="x"`},
		{"BITSTRING '101'", `string="101"`},
		{`'{"a": [1]}'::JSON`, `string="{\"a\": [1]}"`},
		{"NULL", "<nil>=null"},
		{"[1, NULL, 3]", "[]interface {}=[1,null,3]"},
		{"[]::INTEGER[]", "[]interface {}=[]"},
		{"[1.5, 2]::DECIMAL(3,1)[2]", "[]interface {}=[1.5,2.0]"},
		{"[[1], [2, 3]]", "[]interface {}=[[1],[2,3]]"},
		{`{'a': 1, 'b "c" )': [DATE '2024-02-29'], 'd': {'e': '\xFF\x5C'::BLOB}, 'x': 'x'::ENUM('x', ',')}`,
			`*value.Record={"a":1,"b \"c\" )":["2024-02-29"],"d":{"e":{"base64":"/1w="}},"x":"x"}`},
		{"MAP {'x': 1, 'y': NULL}", `*value.Record={"x":1,"y":null}`},
		{"MAP {DATE '2024-02-29': {'n': 1.50::DECIMAL(4,2)}}", `*value.Record={"2024-02-29":{"n":1.50}}`},
		{"union_value(num := 2)", `string="2"`},
		{"row(1, 'a')", `string="(1, a)"`},
		{"repeat('ab', 100000)", `string="` + strings.Repeat("ab", 100_000) + `"`},
	}
	var columns []string
	for _, c := range cases {
		columns = append(columns, c.expression+" AS v")
	}
	c, err := open(t, "", "SELECT "+strings.Join(columns, ", ")).Query(t.Context(), nil)
	testkit.Must(t, err)
	defer c.Close()
	if !c.Next() {
		t.Fatal(c.Err())
	}
	cells, err := c.Values()
	testkit.Must(t, err)
	for i, c := range cases {
		if d := cmp.Diff(c.want, fmt.Sprintf("%T=%s", cells[i], value.JSON(cells[i]))); d != "" {
			t.Errorf("%s: %s", c.expression, d)
		}
	}
}

// TestParameters passes a value of each type to a query.
func TestParameters(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 30, 5, 123_456_000, time.UTC)
	for _, c := range []struct {
		arg       any
		typ, want string
	}{
		{nil, "INTEGER", "<nil>=null"},
		{"O'Hara'); DROP TABLE t; --\n.shell true\n$$", "VARCHAR", `string="O'Hara'); DROP TABLE t; --\n.shell true\n$$"`},
		{int64(-9223372036854775808), "BIGINT", "int64=-9223372036854775808"},
		{true, "BOOLEAN", "bool=true"},
		{value.Decimal("-12345678901234567890.10"), "DECIMAL(38,2)", "value.Decimal=-12345678901234567890.10"},
		{[]byte{0, 0xff, '\''}, "BLOB", `[]uint8={"base64":"AP8n"}`},
		{value.Date{Year: 2024, Month: 2, Day: 29}, "DATE", `value.Date="2024-02-29"`},
		{value.Time(time.Hour), "TIME", `string="01:00:00"`},
		{value.DateTime{Time: at}, "TIMESTAMP", `value.DateTime="2024-02-29T12:30:05.123456"`},
		{value.DateTime{Time: at, Zoned: true}, "TIMESTAMP WITH TIME ZONE", `value.DateTime="2024-02-29T12:30:05.123456Z"`},
		{[]any{int64(3), int64(1), nil}, "BIGINT[]", "[]interface {}=[3,1,null]"},
		{[]any{int64(3), "x"}, "VARCHAR[]", `[]interface {}=["3","x"]`},
		{value.NewRecord("", value.Field{Name: "a", Value: int64(1)}), "VARCHAR", `string="{\"a\":1}"`},
	} {
		got, err := rows(t, open(t, "", "SELECT :v AS v, typeof(:v) AS t"), c.arg)
		if d := cmp.Diff([]string{c.want + ` string=` + string(value.JSON(c.typ))}, got); err != nil || d != "" {
			t.Errorf("%v: %v\n%s", c.arg, err, d)
		}
	}
	got, err := rows(t, open(t, "", "SELECT {'n':n} AS r FROM range(5) AS s(n) WHERE n IN :list AND n > :least ORDER BY n DESC"), []any{int64(1), int64(2), int64(4)}, int64(1))
	if d := cmp.Diff([]string{`*value.Record={"n":4}`, `*value.Record={"n":2}`}, got); err != nil || d != "" {
		t.Error(err, d)
	}
	got, err = rows(t, open(t, "", "SELECT :v AS v, typeof(:v) = typeof(1::FLOAT8) AS t"), 0.1)
	if d := cmp.Diff([]string{"float64=0.1 bool=true"}, got); err != nil || d != "" {
		t.Error(err, d)
	}
	_, err = rows(t, open(t, "", "SELECT :v AS v"), value.Decimal(strings.Repeat("9", 39)))
	if want := "duckdb://: the value of :v has more than 38 digits, which DuckDB does not accept"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestStatements runs queries of each accepted form, and others, on one file.
func TestStatements(t *testing.T) {
	file := written(t, `CREATE TABLE t AS SELECT i, i % 2 = 0 AS even FROM range(1, 5) r(i); CREATE VIEW v AS SELECT i FROM t WHERE even;
		CREATE MACRO below(n) AS TABLE SELECT i FROM t WHERE i < n; CREATE MACRO twice(n) AS n * 2;`)
	for query, want := range map[string]string{
		"SELECT i AS a, i AS a FROM t ORDER BY i DESC LIMIT 1;":             "int64=4 int64=4",
		"WITH x AS (SELECT max(i) AS m FROM t) SELECT m FROM x -- the most": "int64=4",
		"FROM t SELECT count(*)":                                   "int64=4",
		"VALUES (1), (2)":                                          "int64=1\nint64=2",
		"(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1":               "int64=1\nint64=2",
		"SELECT * FROM v ORDER BY i":                               "int64=2\nint64=4",
		"SELECT twice(i) AS n FROM below(3) ORDER BY n":            "int64=2\nint64=4",
		"SELECT unnest([7]) AS n, * FROM generate_series(1, 1)":    "int64=7 int64=1",
		"SELECT column_name FROM (DESCRIBE t)":                     "string=\"i\"\nstring=\"even\"",
		"SELECT table_name FROM information_schema.tables":         "string=\"t\"\nstring=\"v\"",
		"SELECT 'a;b' AS s, $$ ; .shell true\n.exit $$ AS d":       `string="a;b" string=" ; .shell true\n.exit "`,
		"SELECT /* ; /* nested */ */ 1 AS n -- ; SELECT 2":         "int64=1",
		"SELECT [1, 2, 3][2:] AS l, {a: 1} AS s, x: 5 ":            "[]interface {}=[2,3] *value.Record={\"a\":1} int64=5",
		"SELECT '-- :a' AS s, \"i\"::VARCHAR AS t FROM t LIMIT 1":  `string="-- :a" string="1"`,
		"SELECT sum(i) FILTER (even) AS n FROM t":                  "int64=6",
		"SELECT list_transform([1, 2], lambda x: x + 1) AS l":      "[]interface {}=[2,3]",
		"SELECT value->>'$' AS v FROM json_each('[1, 2]') LIMIT 1": `string="1"`,
		"SELECT i FROM t WHERE false":                              "",
	} {
		got, err := rows(t, open(t, file, query))
		if all := strings.Join(got, "\n"); err != nil || all != want {
			t.Errorf("%s: %v\n got %s\nwant %s", query, err, all, want)
		}
	}
}

// TestHostile checks that queries neither write, nor reach other files and services, nor stop the
// next query.
func TestHostile(t *testing.T) {
	file := written(t, `CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1);
		CREATE VIEW logs AS FROM enable_logging(storage = 'file', storage_config = {'path': 'logs'});
		CREATE VIEW files AS FROM glob('/*');
		CREATE MACRO read_all(x) AS TABLE FROM read_text(x);
		CREATE MACRO read_csv(x) AS TABLE FROM t;`)
	folder := filepath.Dir(file)
	secret := filepath.Join(folder, "secret.csv")
	testkit.Must(t, os.WriteFile(secret, []byte("a,b\n1,sesame\n"), 0o600))
	before, err := os.ReadFile(file)
	testkit.Must(t, err)
	for query, want := range map[string]string{
		"SELECT * FROM read_csv('" + secret + "')":                   "the table function read_csv is not allowed",
		"SELECT * FROM '" + secret + "'":                             "file system operations are disabled",
		"SELECT * FROM read_text('" + secret + "')":                  "the table function read_text is not allowed",
		"SELECT (SELECT max(content) FROM READ_TEXT('/etc/passwd'))": "the table function read_text is not allowed",
		"WITH x AS (FROM glob('/*')) FROM x":                         "the table function glob is not allowed",
		"SELECT * FROM system.main.read_blob('" + secret + "')":      "the table function read_blob is not allowed",
		"SELECT * FROM sniff_csv('" + secret + "')":                  "the table function sniff_csv is not allowed",
		"FROM query('FROM glob(''/*'')')":                            "the table function query is not allowed",
		"FROM query_table(['" + secret + "'])":                       "the table function query_table is not allowed",
		"FROM enable_logging(storage = 'file')":                      "the table function enable_logging is not allowed",
		"FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)":        "the table function arrow_scan is not allowed",
		"FROM json_execute_serialized_sql('{}')":                     "the table function json_execute_serialized_sql is not allowed",
		"FROM duckdb_secrets()":                                      "the table function duckdb_secrets is not allowed",
		"FROM read_duckdb('" + file + "')":                           "the table function read_duckdb is not allowed",
		"FROM checkpoint()":                                          "the table function checkpoint is not allowed",
		"FROM logs":                                                  "the table function enable_logging is not allowed",
		"FROM files":                                                 "file system operations are disabled",
		"FROM read_all('" + secret + "')":                            "file system operations are disabled",
		"SELECT getenv('HOME')":                                      "getenv is disabled",
		"SELECT * FROM 'https://example.com/x.parquet'":              "disabled",
		"WITH x AS (SELECT 1) INSERT INTO t SELECT 1":                "Only SELECT statements",
		"WITH x AS (SELECT 1) DELETE FROM t":                         "Only SELECT statements",
		"FROM t SELECT 1 RETURNING a":                                "syntax error",
		"SELECT nextval('none')":                                     "none",
		"SELECT nothing FROM t":                                      `Referenced column "nothing" not found`,
		"SELECT error('wrong')":                                      "wrong",
		"SELECT list(hash(i)) FROM range(100000000) r(i)":            "Out of Memory",
	} {
		s := open(t, file+"?memory_limit=50MB", query)
		_, err := rows(t, s)
		var reported *sqldb.Error
		if !errors.As(err, &reported) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: got %v, want … %s", query, err, want)
		}
	}
	for _, query := range []string{
		"COPY t TO 'x.csv'", "ATTACH 'x.duckdb'", "INSTALL httpfs", "LOAD httpfs", "PRAGMA enable_profiling", "SET threads = 1", "CREATE TABLE x (a INTEGER)",
		"INSERT INTO t VALUES (2)", "EXPORT DATABASE 'x'", "CALL enable_logging()", ".shell true", "EXPLAIN ANALYZE SELECT 1", "CHECKPOINT", "IMPORT DATABASE 'x'",
		"SELECT 1; DROP TABLE t", "PREPARE p AS SELECT 1", "USE memory", "RESET threads", "SELECT $1", "SELECT ?", "SELECT $name", "",
	} {
		if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "duckdb:///"+file, query, sqldb.Access{}); err == nil || !strings.Contains(err.Error(), "query line 1, column ") {
			t.Errorf("%s: got %v", query, err)
		}
	}
	after, err := os.ReadFile(file)
	testkit.Must(t, err)
	names, err := os.ReadDir(folder)
	testkit.Must(t, err)
	if !bytes.Equal(before, after) || len(names) != 2 {
		t.Errorf("the file or its folder has changed: %v", names)
	}
}

// TestErrors checks that a process runs further queries after one that failed.
func TestErrors(t *testing.T) {
	s := open(t, "", "SELECT CASE WHEN i = :bad THEN error('no ' || i) ELSE i END AS n, pid: :bad FROM range(100000) r(i)")
	for bad := range int64(3) {
		_, err := rows(t, s, 99_000+bad)
		if want := fmt.Sprintf("no %d", 99_000+bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if got, err := rows(t, s, int64(-1)); err != nil || len(got) != 100_000 || got[0] != "int64=0 int64=-1" || got[99_999] != "int64=99999 int64=-1" {
			t.Errorf("%d rows, %v", len(got), err)
		}
	}
}

// TestFiles checks the errors of files that cannot be opened, and that a file that was read can be written.
func TestFiles(t *testing.T) {
	text := testkit.WriteFile(t, "text.duckdb", strings.Repeat("this is no database\n", 1000))
	for file, want := range map[string]string{
		"/nothing/none.duckdb": "duckdb:////nothing/none.duckdb: no such file",
		filepath.Dir(text):     "is a directory, not a database",
		text:                   "not a valid DuckDB database file",
	} {
		if _, err := rows(t, open(t, file, "SELECT 1")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", file, err)
		}
	}
	file := written(t, "CREATE TABLE t AS SELECT 1 AS a")
	s := open(t, file, "SELECT a FROM t ORDER BY a")
	writer := exec.Command(program(t), "-init", os.DevNull, "-batch", file)
	in, err := writer.StdinPipe()
	testkit.Must(t, err)
	out, err := writer.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, writer.Start())
	_, err = io.WriteString(in, "SELECT 'open';\n")
	testkit.Must(t, err)
	_, err = out.Read(make([]byte, 4))
	testkit.Must(t, err)
	if _, err := rows(t, s); err == nil || !strings.HasSuffix(err.Error(), ": another process has opened the file for writing: DuckDB opens a file either once for writing, or any number of times for reading") {
		t.Errorf("got %v", err)
	}
	_, err = io.WriteString(in, "INSERT INTO t VALUES (2);\n")
	testkit.Must(t, errors.Join(err, in.Close()))
	_, _ = io.Copy(io.Discard, out)
	testkit.Must(t, writer.Wait())
	if got, err := rows(t, s); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for { // the idle process ends
		again := exec.Command(program(t), "-init", os.DevNull, "-batch", "-bail", file, "INSERT INTO t VALUES (3)")
		if err = again.Run(); err == nil || time.Now().After(deadline) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if got, rowsErr := rows(t, s); err != nil || rowsErr != nil || len(got) != 3 {
		t.Errorf("%v, %v, %v", got, err, rowsErr)
	}
}

// TestCanceled checks that a query ends with its row, and one whose rows are not all read.
func TestCanceled(t *testing.T) {
	s := open(t, "", "SELECT count(*) AS n FROM range(1000000000) a(i), range(:n) b(j) WHERE hash(i) > j")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	time.AfterFunc(300*time.Millisecond, func() { cancel(stopped) })
	from := time.Now()
	if _, err := s.Query(ctx, []any{int64(1_000_000)}); !errors.Is(err, stopped) || time.Since(from) > 10*time.Second {
		t.Errorf("got %v after %s", err, time.Since(from))
	}
	if got, err := rows(t, s, int64(0)); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	many := open(t, "", "SELECT i FROM range(1000000000) r(i)")
	for range 2 {
		c, err := many.Query(t.Context(), nil)
		testkit.Must(t, err)
		if !c.Next() {
			t.Error(c.Err())
		}
		c.Close()
	}
}

// TestPython reads a file that DuckDB's library for Python wrote.
func TestPython(t *testing.T) {
	program(t)
	script := testkit.WriteFile(t, "write.py", `
import duckdb, sys
c = duckdb.connect()
c.execute("ATTACH '%s' AS f (STORAGE_VERSION 'v1.0.0')" % sys.argv[1])
c.execute("CREATE TABLE f.orders AS SELECT i AS id, (i * 1.10)::DECIMAL(9, 2) AS total, 'öl ' || i AS name, [i, NULL] AS items, {'day': DATE '2024-02-29' + i::INTEGER} AS r FROM range(1000) t(i)")
c.execute("DETACH f")
print(duckdb.connect(sys.argv[2]).execute("SELECT 1").fetchone()[0])
`)
	folder := t.TempDir()
	file, newer := filepath.Join(folder, "orders.duckdb"), filepath.Join(folder, "newer.duckdb")
	servertest.Tables(t, script, file, newer)
	got, err := rows(t, open(t, file, "SELECT * FROM orders WHERE id IN :ids ORDER BY id"), []any{int64(1), int64(999)})
	want := []string{`int64=1 value.Decimal=1.10 string="öl 1" []interface {}=[1,null] *value.Record={"day":"2024-03-01"}`,
		`int64=999 value.Decimal=1098.90 string="öl 999" []interface {}=[999,null] *value.Record={"day":"2026-11-24"}`}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	if _, err := rows(t, open(t, newer, "SELECT 1")); err != nil && !strings.Contains(err.Error(), "was written by a newer version of DuckDB: install that version of the program duckdb") {
		t.Error(err)
	}
}

// TestProgram checks the errors without the program, and of documents that may not start it.
func TestProgram(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"PATH": t.TempDir()}[name] }
	_, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "duckdb:///x.duckdb", "SELECT 1", sqldb.Access{Env: awsauth.Options{Getenv: getenv}})
	if want := `duckdb:///x.duckdb: program "duckdb" not found in PATH: queries of DuckDB run in its command line program, version 1.5 or later; install it (pip install duckdb-cli), or set QTYPE_DUCKDB to its file`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "duckdb:///x.duckdb", "SELECT 1", sqldb.Access{Env: awsauth.Options{Getenv: func(name string) string {
		return map[string]string{"QTYPE_DUCKDB": "/nothing/duckdb"}[name]
	}}})
	if want := "duckdb:///x.duckdb: QTYPE_DUCKDB: program /nothing/duckdb not found"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for address, want := range map[string]string{
		"duckdb:///x?threads=0":               `invalid option threads "0": use a number from 1 to 256`,
		"duckdb:///x?memory_limit=80%25":      `invalid option memory_limit "80%": use a number with MB or GB, such as 4GB`,
		"duckdb:///x?access_mode=read_write":  `invalid option access_mode "read_write": use one of read_only, READ_ONLY`,
		"duckdb://x.duckdb":                   "a DuckDB URL has no host: write duckdb:///x.duckdb with three slashes",
		"duckdb:///x?motherduck_token=sesame": `unknown option "motherduck_token" of a duckdb URL; use one of access_mode, memory_limit, threads`,
	} {
		if _, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, "SELECT 1", sqldb.Access{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
	restricted := trust.With(t.Context(), &trust.Policy{Level: trust.Untrusted, Base: "https://example.com/app.qtype.yaml"})
	if _, err := sqldb.Open(sqldb.WithDrivers(restricted, servers.Drivers()), "duckdb:///x.duckdb", "SELECT 1", sqldb.Access{}); err == nil || !strings.Contains(err.Error(), "--allow-program duckdb") {
		t.Errorf("got %v", err)
	}
}

// TestCrash checks the error of a process that ends, and that another runs the next query.
func TestCrash(t *testing.T) {
	duckdb := program(t)
	flag := filepath.Join(t.TempDir(), "crashed")
	wrapper := filepath.Join(t.TempDir(), "duckdb")
	testkit.Must(t, os.WriteFile(wrapper, []byte(fmt.Sprintf("#!/bin/sh\nif [ \"$1\" != --version ] && [ ! -e '%s' ]; then touch '%s'; echo 'Segmentation fault' >&2; exit 139; fi\nexec '%s' \"$@\"\n", flag, flag, duckdb)), 0o700))
	s, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "duckdb://", "SELECT 1 AS n", sqldb.Access{Env: awsauth.Options{Getenv: func(name string) string {
		if name == "QTYPE_DUCKDB" {
			return wrapper
		}
		return os.Getenv(name)
	}}})
	testkit.Must(t, err)
	defer func() { testkit.Must(t, s.Close()) }()
	if _, err := rows(t, s); err == nil || err.Error() != "duckdb://: Segmentation fault" {
		t.Errorf("got %v", err)
	}
	if got, err := rows(t, s); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestVersion checks the errors of programs that are too old, or others.
func TestVersion(t *testing.T) {
	for output, want := range map[string]string{
		"echo v1.4.4 x":      " is DuckDB v1.4.4: version 1.5 or later is needed",
		"echo GNU tool":      ` --version printed "GNU", not a version of DuckDB`,
		"echo no >&2; false": " --version: exit status 1: no",
	} {
		file := filepath.Join(t.TempDir(), "duckdb")
		testkit.Must(t, os.WriteFile(file, []byte("#!/bin/sh\n"+output+"\n"), 0o700))
		s, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "duckdb://", "SELECT 1 AS n", sqldb.Access{Env: awsauth.Options{Getenv: func(name string) string {
			return map[string]string{"QTYPE_DUCKDB": file, "PATH": os.Getenv("PATH")}[name]
		}}})
		testkit.Must(t, err)
		if _, err := rows(t, s); err == nil || err.Error() != "duckdb://: "+file+want {
			t.Errorf("got %v, want %s", err, want)
		}
		testkit.Must(t, s.Close())
	}
}
