package servers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

var (
	postgres = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Postgres("-c", "fsync=off") }}
	mariadb  = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.MariaDB() }}
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(postgres.Around(mariadb.Around(moto.Around(bigQuery.Around(m)))))
}

// testDatabase is a database with test tables.
type testDatabase struct {
	name    string
	address string // for Open
	types   string // the columns of the table `all`
	values  string // of its one full row, and of one of nulls
	series  string // a query of the numbers 1 to :n
	db      *sql.DB
}

// testDatabases starts all databases, each with the same two tables.
func testDatabases(t *testing.T) []*testDatabase {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop & co.db")
	all := []*testDatabase{
		{name: "sqlite", address: "sqlite:///" + file,
			types:  "i INTEGER, f REAL, d DECIMAL(8,2), b BOOLEAN, t TEXT, day DATE, at TIMESTAMP, tod TEXT, raw BLOB, js TEXT",
			values: "7, 2.5, '12.50', 1, 'öl', '2024-02-29', '2024-02-29 12:30:00', '12:30:05', x'00ff', '{\"a\": [1]}'",
			series: "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < :n) SELECT n FROM s"},
		{name: "postgres", address: strings.Replace(postgres.Get(t).URL(), "postgres:", "postgresql+psycopg2:", 1),
			types:  "i int, f double precision, d numeric(8,2), b boolean, t text, day date, at timestamp, tod time, raw bytea, js jsonb",
			values: `7, 2.5, 12.50, true, 'öl', '2024-02-29', '2024-02-29 12:30:00', '12:30:05', '\x00ff', '{"a": [1]}'`,
			series: "SELECT n FROM generate_series(1, :n) AS n"},
		{name: "mariadb", address: fmt.Sprintf("mysql+pymysql://shop:%s@%s/shop?charset=utf8mb4", servertest.Password, mariadb.Get(t).Address()),
			types:  "i int, f double precision, d decimal(8,2), b tinyint(1), t varchar(20), day date, at datetime, tod time, raw varbinary(10), js json",
			values: "7, 2.5, 12.50, 1, 'öl', '2024-02-29', '2024-02-29 12:30:00', '12:30:05', x'00ff', '{\"a\": [1]}'",
			series: "SELECT seq AS n FROM seq_1_to_1000000 WHERE seq <= :n"},
	}
	drivers := []string{"sqlite", "pgx", "mysql"}
	names := []string{file, postgres.Get(t).URL(), fmt.Sprintf("shop:%s@tcp(%s)/shop", servertest.Password, mariadb.Get(t).Address())}
	for i, h := range all {
		db, err := sql.Open(drivers[i], names[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		h.db = db
		h.exec(t, "DROP TABLE IF EXISTS every_type", "CREATE TABLE every_type ("+h.types+")",
			"INSERT INTO every_type VALUES ("+h.values+")",
			"INSERT INTO every_type VALUES (null, null, null, null, null, null, null, null, null, null)")
	}
	return all
}

func (h *testDatabase) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := h.db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %s: %v", h.name, s, err)
		}
	}
}

func open(t *testing.T, address, text string) *sqldb.Source {
	t.Helper()
	s, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), address, text, sqldb.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// queryRows returns the rows of a query as text: type and value of each cell.
func queryRows(t *testing.T, s *sqldb.Source, args ...any) ([]string, error) {
	t.Helper()
	c, err := s.Query(t.Context(), args)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var rows []string
	for c.Next() {
		cells, err := c.Values()
		if err != nil {
			return rows, err
		}
		var row []string
		for _, v := range cells {
			row = append(row, fmt.Sprintf("%T=%s", v, value.JSON(v)))
		}
		rows = append(rows, strings.Join(row, " "))
	}
	return rows, c.Err()
}

func TestQuery_Types(t *testing.T) {
	want := map[string]string{
		"sqlite": `int64=7 float64=2.5 float64=12.5 int64=1 string="öl" value.Date="2024-02-29" ` +
			`value.DateTime="2024-02-29T12:30:00" string="12:30:05" []uint8={"base64":"AP8="} string="{\"a\": [1]}"`,
		"postgres": `int64=7 float64=2.5 value.Decimal=12.50 bool=true string="öl" value.Date="2024-02-29" ` +
			`value.DateTime="2024-02-29T12:30:00" string="12:30:05" []uint8={"base64":"AP8="} string="{\"a\": [1]}"`,
		"mariadb": `int64=7 float64=2.5 value.Decimal=12.50 int64=1 string="öl" string="2024-02-29" ` +
			`string="2024-02-29 12:30:00" string="12:30:05" []uint8={"base64":"AP8="} string="{\"a\": [1]}"`,
	}
	for _, h := range testDatabases(t) {
		rows, err := queryRows(t, open(t, h.address, "SELECT * FROM every_type"))
		null := strings.TrimSpace(strings.Repeat("<nil>=null ", 10))
		if err != nil || len(rows) != 2 || rows[0] != want[h.name] || rows[1] != null {
			t.Errorf("%s: %v\n got %s\nwant %s\n     %s", h.name, err, strings.Join(rows, "\n     "), want[h.name], null)
		}
	}
	// A number of single precision has the digits that the database shows.
	const single = `float64=0.1 float64=16777216 <nil>=null`
	rows, err := queryRows(t, open(t, testDatabases(t)[1].address, "SELECT 0.1::real AS a, 16777216::real AS b, NULL::real AS c"))
	if err != nil || len(rows) != 1 || rows[0] != single {
		t.Errorf("real: %v, %v; want %s", rows, err, single)
	}
}

// TestQuery_Parameters checks that values are bound, not inserted into the statement.
func TestQuery_Parameters(t *testing.T) {
	evil := `'; DROP TABLE every_type; -- " \' :t`
	day := value.Date{Year: 2024, Month: 2, Day: 29}
	noon := value.DateTime{Time: time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)}
	for _, h := range testDatabases(t) {
		h.exec(t, "INSERT INTO every_type (i, t) VALUES (1, 'it''s')")
		for _, c := range []struct {
			where string
			args  []any
			want  string
		}{
			{"t = :t", []any{evil}, ""},
			{"t = :t", []any{"it's"}, "int64=1"},
			{"i = :i and :i < 8", []any{int64(7)}, "int64=7"},
			{"f = :f", []any{2.5}, "int64=7"},
			{"b = :b", []any{true}, "int64=7"},
			{"day = :day", []any{day}, "int64=7"},
			{"at >= :at and at <= :at", []any{noon}, "int64=7"},
			{"raw = :raw", []any{[]byte{0, 255}}, "int64=7"},
			{"t = ':t' or t = :t /* :no -- */", []any{"öl"}, "int64=7"},
		} {
			s := open(t, h.address, "SELECT i FROM every_type WHERE "+c.where)
			args := c.args
			for len(args) < len(s.Parameters()) { // a ? for each use
				args = append(args, c.args[0])
			}
			rows, err := queryRows(t, s, args...)
			if got := strings.Join(rows, " "); err != nil || got != c.want {
				t.Errorf("%s: %s: got %s, %v; want %s", h.name, c.where, got, err, c.want)
			}
		}
	}
}

func TestQuery_PostgresArrays(t *testing.T) {
	h := testDatabases(t)[1]
	for text, want := range map[string]string{
		"SELECT 1 AS x WHERE 7 = ANY(:ids)":                                "int64=1",
		"SELECT ARRAY[1,NULL,3]::int[] AS x WHERE 7 = ANY(:ids)":           `[]interface {}=["1",null,"3"]`,
		"SELECT ARRAY[[1,2],[NULL,4],[5,6]] AS x WHERE 7 = ANY(:ids)":      `[]interface {}=[["1","2"],[null,"4"],["5","6"]]`,
		"SELECT ARRAY[[['a'],['b,\"c']]]::text[] AS x WHERE 7 = ANY(:ids)": `[]interface {}=[[["a"],["b,\"c"]]]`,
		"SELECT '{}'::int[] AS x WHERE 7 = ANY(:ids)":                      `[]interface {}=[]`,
		"SELECT :ids::jsonb AS x":                                          `string="[7, 8]"`,
		"SELECT '12:30'::time::text || :ids::int[]::text AS x":             `string="12:30:00{7,8}"`,
	} {
		rows, err := queryRows(t, open(t, h.address, text), []any{int64(7), int64(8)})
		if err != nil || strings.Join(rows, " ") != want {
			t.Errorf("%s: %v, %v; want %s", text, rows, err, want)
		}
	}
	_, err := queryRows(t, open(t, h.address, "SELECT i FROM every_type WHERE t = :ids"), []any{int64(7)})
	if err == nil || !strings.HasSuffix(err.Error(), ": the value of :ids does not have the type text, which the database expects") {
		t.Errorf("a list as a text: %v", err)
	}
	rows, err := queryRows(t, open(t, h.address, "SELECT :n AS x, '2024-02-29 12:30+02'::timestamptz AS at"), int64(5))
	if want := `string="5" value.DateTime="2024-02-29T10:30:00Z"`; err != nil || rows[0] != want {
		t.Errorf("a number as a text, and a time with a zone: %v, %v; want %s", rows, err, want)
	}
}

// Dates that ISO 8601 writes with a sign, or not at all, are texts: they are not read as
// other dates.
func TestQuery_PostgresDates(t *testing.T) {
	h := testDatabases(t)[1]
	for text, want := range map[string]string{
		"SELECT '0044-03-15 BC'::date AS x":               `string="-0043-03-15"`,
		"SELECT '0044-03-15 12:30 BC'::timestamp AS x":    `string="-0043-03-15T12:30:00"`,
		"SELECT '12024-02-29'::date AS x":                 `string="+12024-02-29"`,
		"SELECT 'infinity'::date AS x":                    `string="infinity"`,
		"SELECT '-infinity'::timestamptz AS x":            `string="-infinity"`,
		"SELECT 'NaN'::numeric AS x":                      `value.Decimal=NaN`,
		"SELECT 12345678901234567890.0123456789::numeric": `value.Decimal=12345678901234567890.0123456789`,
	} {
		rows, err := queryRows(t, open(t, h.address, text))
		if err != nil || len(rows) != 1 || rows[0] != want {
			t.Errorf("%s: %v, %v; want %s", text, rows, err, want)
		}
	}
}

// TestOpen_Login checks that connections use the user and the password of the login.
func TestOpen_Login(t *testing.T) {
	for i, h := range testDatabases(t)[1:] {
		u, err := sqlquery.ParseURL(h.address)
		if err != nil {
			t.Fatal(err)
		}
		bare := fmt.Sprintf("%s://guest:wrong@%s:%d/%s", u.Name, u.Host, u.Port, u.Database)
		calls := 0
		s, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), bare, "SELECT 1 AS x", sqldb.Access{Login: func(_ context.Context, got *sqlquery.URL) (string, string, error) {
			if calls++; got.Host != u.Host {
				t.Errorf("%s: host %q", h.name, got.Host)
			}
			return u.User, u.Password, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := queryRows(t, s)
		if want := "int64=1"; err != nil || calls != 1 || len(rows) != 1 || rows[0] != want {
			t.Errorf("%s: %v, %v after %d calls; want %s", h.name, rows, err, calls, want)
		}
		failed, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), bare, "SELECT 1 AS x", sqldb.Access{Login: func(context.Context, *sqlquery.URL) (string, string, error) {
			return "", "", errors.New("no credentials")
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := queryRows(t, failed); err == nil || !strings.Contains(err.Error(), "no credentials") {
			t.Errorf("%s: got %v", h.name, err)
		}
		if err := errors.Join(s.Close(), failed.Close()); err != nil {
			t.Error(i, err)
		}
	}
	_, err := sqldb.Open(sqldb.WithDrivers(t.Context(), servers.Drivers()), "sqlite:///x.db", "SELECT 1", sqldb.Access{Login: func(context.Context, *sqlquery.URL) (string, string, error) { return "", "", nil }})
	if want := "an SQLite file has no users: remove auth"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestQuery_ReadOnly checks that the database rejects changes.
func TestQuery_ReadOnly(t *testing.T) {
	for _, h := range testDatabases(t) {
		for _, text := range []string{"INSERT INTO every_type (i) VALUES (99)", "UPDATE every_type SET i = 99", "DELETE FROM every_type"} {
			_, err := queryRows(t, open(t, h.address, text))
			var dbErr *sqldb.Error
			if !errors.As(err, &dbErr) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %s: %v", h.name, text, err)
			}
		}
		var n int
		if err := h.db.QueryRowContext(t.Context(), "SELECT count(*) FROM every_type WHERE i = 7").Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: the table was changed: %d, %v", h.name, n, err)
		}
	}
}

func TestQuery_Errors(t *testing.T) {
	all := testDatabases(t)
	for _, c := range []struct {
		testDatabase  int
		address, text string // an empty address means that of the test database
		want          string
	}{
		{0, "", "SELECT nam FROM every_type", "no such column: nam"},
		{0, "", "BEGIN; -- no more", "returns no rows"},
		{0, "sqlite:///" + t.TempDir() + "/none.db", "SELECT 1", "no such file"},
		{0, "sqlite:///" + t.TempDir(), "SELECT 1", "is a directory"},
		{0, "sqlite:///" + textFile(t), "SELECT 1 FROM x", "file is not a database"},
		{1, "", "SELECT 1,\n  nam FROM every_type WHERE i = :i AND t = :ü", `query line 2, column 3: column "nam" does not exist`},
		{1, "", "SELECT :i::int, :i, bad FROM every_type", "query line 1, column 21: "},
		{1, "", "SET work_mem = '4MB'", "returns no rows"},
		{1, "postgresql://postgres:secr3t-wrong@" + postgres.Get(t).Address() + "/postgres", "SELECT 1", "password authentication failed"},
		{1, "postgresql://postgres:secr3t-wrong@127.0.0.1:1/postgres", "SELECT 1", "refused"},
		{2, "", "SELECT nam FROM every_type", "Unknown column 'nam'"},
		{2, "", "SET @x = 1", "returns no rows"},
		{2, "mysql://shop:secr3t-wrong@" + mariadb.Get(t).Address() + "/shop", "SELECT 1", "Access denied for user 'shop'"},
		{2, "mariadb+mariadbconnector://shop:secr3t-wrong@127.0.0.1:1/shop", "SELECT 1", "refused"},
	} {
		address := c.address
		if address == "" {
			address = all[c.testDatabase].address
		}
		s := open(t, address, c.text)
		_, err := queryRows(t, s, make([]any, len(s.Parameters()))...)
		var dbErr *sqldb.Error
		switch {
		case !errors.As(err, &dbErr) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: got %v, want … %s", c.text, err, c.want)
		case strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secr3t") || strings.Contains(err.Error(), servertest.Password):
			t.Errorf("%s: the error has several lines, or contains the password: %v", c.text, err)
		}
	}
}

func textFile(t *testing.T) string {
	t.Helper()
	return testkit.WriteFile(t, "text.db", strings.Repeat("this is no database\n", 100))
}

// TestCursor_Streams reads a million rows in constant memory.
func TestCursor_Streams(t *testing.T) {
	testkit.SkipWithRace(t)
	const rows, most = 1_000_000, 24 << 20
	for _, h := range testDatabases(t) {
		s := open(t, h.address, h.series)
		c, err := s.Query(t.Context(), []any{int64(rows)})
		if err != nil {
			t.Errorf("%s: %v", h.name, err)
			continue
		}
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		n, peak := 0, uint64(0)
		for c.Next() {
			if _, err := c.Values(); err != nil {
				t.Fatal(err)
			}
			if n++; n%250_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			}
		}
		if err := c.Err(); err != nil || n != rows {
			t.Errorf("%s: %d rows, %v", h.name, n, err)
		}
		c.Close()
		if peak > most {
			t.Errorf("%s: %d bytes are held in the middle of the rows", h.name, peak)
		}
	}
}

// TestQuery_Canceled cancels a query that hangs, before and between its rows.
func TestQuery_Canceled(t *testing.T) {
	slow := []string{
		"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT count(*) FROM s",
		"SELECT pg_sleep(1000000)", "SELECT sleep(1000000)",
	}
	for i, h := range testDatabases(t) {
		s := open(t, h.address, slow[i])
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		c, err := s.Query(ctx, nil)
		if err == nil {
			for c.Next() {
				t.Errorf("%s: there is a row", h.name)
			}
			err = c.Err()
			c.Close()
		}
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", h.name, err)
		}
		// The pool is still usable.
		again := open(t, h.address, h.series)
		if rows, err := queryRows(t, again, int64(2)); err != nil || len(rows) != 2 {
			t.Errorf("%s: %v, %v", h.name, rows, err)
		}
	}
}

// TestSource_Pool checks that connections are reused, and that a query inside the rows
// of another does not wait for it.
func TestSource_Pool(t *testing.T) {
	h := testDatabases(t)[1]
	s := open(t, h.address, "SELECT pg_backend_pid() AS pid, :i::int AS i FROM generate_series(1, 3)")
	pid := func() any {
		c, err := s.Query(t.Context(), []any{int64(1)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Next()
		cells, err := c.Values()
		if err != nil {
			t.Fatal(err)
		}
		return cells[0]
	}
	first := pid()
	for range 10 {
		if again := pid(); again != first {
			t.Errorf("another connection: %v after %v", again, first)
		}
	}
	outer, err := s.Query(t.Context(), []any{int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	outer.Next()
	if inner := pid(); inner == first {
		t.Error("the inner query has the connection of the outer")
	}
}

// TestSource_Reconnects restarts the server.
func TestSource_Reconnects(t *testing.T) {
	server, err := servertest.Postgres("-c", "fsync=off")
	servertest.Need(t, err)
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := open(t, server.URL(), "SELECT 1 AS x")
	if _, err := queryRows(t, s); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := queryRows(t, s); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a server that is gone: %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if rows, err := queryRows(t, s); err != nil || len(rows) != 1 {
		t.Errorf("after the restart: %v, %v", rows, err)
	}
}
