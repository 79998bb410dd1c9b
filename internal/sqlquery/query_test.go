package sqlquery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/sqlquery"
)

func TestBound(t *testing.T) {
	for _, c := range []struct{ text, sqlite, postgres, mysql string }{
		{"SELECT :a, :b, :a", "SELECT ?, ?, ?|a b a", "SELECT $1, $2, $1|a b", "SELECT ?, ?, ?|a b a"},
		{"x=:größe_2;", "x=?;|größe_2", "x=$1;|größe_2", "x=?;|größe_2"},
		{"(:a)-:b", "(?)-?|a b", "($1)-$2|a b", "(?)-?|a b"},
		{"':a' \":b\" :c", "':a' \":b\" ?|c", "':a' \":b\" $1|c", "':a' \":b\" ?|c"},
		{"'it''s :a' :b", "'it''s :a' ?|b", "'it''s :a' $1|b", "'it''s :a' ?|b"},
		{`'a\' :b '' c`, `'a\' ? '' c|b`, `'a\' $1 '' c|b`, `query line 1, column 1: unclosed quote`},
		{`e'a\' :b ' :c`, `query line 1, column 10: unclosed quote`, `e'a\' :b ' $1|c`, `e'a\' :b ' ?|c`},
		{"-- :a 'open\n:b", "-- :a 'open\n?|b", "-- :a 'open\n$1|b", "-- :a 'open\n?|b"},
		{"/* :a /* */ :b", "/* :a /* */ ?|b", "query line 1, column 1: unclosed comment", "/* :a /* */ ?|b"},
		{"/* /* */ :a */ :b", "/* /* */ ? */ ?|a b", "/* /* */ :a */ $1|b", "/* /* */ ? */ ?|a b"},
		{":a::int", "?::int|a", "$1::int|a", "?::int|a"},
		{"x::y, ar[1:2], ar[x:y], 'x'::c", "x::y, ar[1:2], ar[x:y], 'x'::c|", "x::y, ar[1:2], ar[x:y], 'x'::c|", "x::y, ar[1:2], ar[x:y], 'x'::c|"},
		{`\:a :b \::c`, ":a ? ::c|b", ":a $1 ::c|b", ":a ? ::c|b"},
		{"$$ :a $$ :b", "$$ ? $$ ?|a b", "$$ :a $$ $1|b", "$$ ? $$ ?|a b"},
		{"$q$ $$ :a $q$ :b", "query line 1, column 1: this SQLite parameter", "$q$ $$ :a $q$ $1|b", "$q$ $$ ? $q$ ?|a b"},
		{"# :a\n:b", "# ?\n?|a b", "# $1\n$2|a b", "# :a\n?|b"},
		{"5 --1 :a", "5 --1 :a|", "5 --1 :a|", "5 --1 ?|a"},
		{"`:a` :b", "`:a` ?|b", "`$1` $2|a b", "`:a` ?|b"},
		{"[:a] :b", "[:a] ?|b", "[$1] $2|a b", "[?] ?|a b"},
		{"x ? y", "query line 1, column 3: ? is not", "x ? y|", "query line 1, column 3: ? is not"},
		{"x = $1", "query line 1, column 5: this SQLite parameter", "query line 1, column 5: a numbered parameter", "x = $1|"},
		{"@x := 1", "query line 1, column 1: this SQLite parameter", "@x := 1|", "@x := 1|"},
		{"SELECT 1;\n -- done\n;", "SELECT 1;\n -- done\n;|", "SELECT 1;\n -- done\n;|", "SELECT 1;\n -- done\n;|"},
		{"SELECT 1;\n DROP TABLE x", "query line 2, column 2: unexpected second", "query line 2, column 2: unexpected second", "query line 2, column 2: unexpected second"},
		{"SELECT 1; 'x'", "query line 1, column 11: unexpected second", "query line 1, column 11: unexpected second", "query line 1, column 11: unexpected second"},
		{" \n", "query line 1, column 1: the query is empty", "query line 1, column 1: the query is empty", "query line 1, column 1: the query is empty"},
		{"/* open", "query line 1, column 1: unclosed comment", "query line 1, column 1: unclosed comment", "query line 1, column 1: unclosed comment"},
		{"$a$ :b", "query line 1, column 1: this SQLite", "query line 1, column 1: unclosed quote", "$a$ ?|b"},
	} {
		for d, want := range map[sqlquery.Dialect]string{sqlquery.SQLite: c.sqlite, sqlquery.PostgreSQL: c.postgres, sqlquery.MySQL: c.mysql} {
			var got string
			if q, err := sqlquery.Parse(c.text, d); err != nil {
				got = err.Error()
			} else {
				text, order := q.Bound()
				got = text + "|" + strings.Join(order, " ")
			}
			if got != want && !(strings.HasPrefix(want, "query line") && strings.HasPrefix(got, want)) {
				t.Errorf("%s: %q:\n got %s\nwant %s", d, c.text, got, want)
			}
		}
	}
}

// TestBound_Dialects checks the syntax of dialects that differ from SQLite, PostgreSQL and MySQL.
func TestBound_Dialects(t *testing.T) {
	for _, c := range []struct {
		dialect    sqlquery.Dialect
		text, want string
	}{
		{sqlquery.SQLServer, "SELECT :a, :b, :a", "SELECT @p1, @p2, @p1|a b"},
		{sqlquery.SQLServer, "SELECT [a]]:b], @@VERSION /* /* :c */ :d */ FROM t -- :e", "SELECT [a]]:b], @@VERSION /* /* :c */ :d */ FROM t -- :e|"},
		{sqlquery.SQLServer, "SELECT @x", "query line 1, column 8: this SQL Server parameter is not supported: use the name of an input, such as :name"},
		{sqlquery.SQLServer, "WITH x AS (SELECT 1 AS n) DELETE FROM t", "query line 1, column 27: a query of SQL Server only reads: DELETE is not allowed"},
		{sqlquery.SQLServer, "SELECT * into copy FROM t", "query line 1, column 10: a query of SQL Server only reads: INTO is not allowed"},
		{sqlquery.SQLServer, `SELECT [into], 'into', "update" FROM inserted -- delete`, `SELECT [into], 'into', "update" FROM inserted -- delete|`},
		{sqlquery.SQLServer, "EXEC sp_who", "query line 1, column 1: a query of SQL Server begins with one of SELECT, WITH"},
		{sqlquery.BigQuery, `SELECT 'it\'s :a', r'\', :b # :c`, `SELECT 'it\'s :a', r'\', ? # :c|b`},
		{sqlquery.BigQuery, `SELECT """a "quoted" :a""", rb'x\', :b`, `SELECT """a "quoted" :a""", rb'x\', ?|b`},
		{sqlquery.BigQuery, "SELECT ARRAY[:a, 2], `p.d.t:x`", "SELECT ARRAY[?, 2], `p.d.t:x`|a"},
		{sqlquery.BigQuery, "SELECT '''open", "query line 1, column 8: unclosed quote"},
		{sqlquery.BigQuery, "SELECT @x", "query line 1, column 8: this BigQuery parameter is not supported: use the name of an input, such as :name"},
		{sqlquery.BigQuery, "MERGE t USING s ON FALSE WHEN NOT MATCHED THEN INSERT ROW", "query line 1, column 1: a query of BigQuery begins with one of SELECT, WITH, FROM"},
		{sqlquery.Snowflake, "SELECT v:name, $1, 'a\\':b' // :c\nFROM t WHERE x = :d", "SELECT v:name, $1, 'a\\':b' // :c\nFROM t WHERE x = ?|d"},
		{sqlquery.Snowflake, "SELECT $$ :a $$, :b", "SELECT $$ :a $$, ?|b"},
		{sqlquery.Snowflake, "SELECT \"v\":name AS n", "SELECT \"v\":name AS n|"},
		{sqlquery.DuckDB, "SELECT {'a':a, b: :b}, $$ :c $$, x::INT, l[1:n] FROM t WHERE a = :a AND b = :b",
			"SELECT {'a':a, b: getvariable('qtype1')}, $$ :c $$, x::INT, l[1:n] FROM t WHERE a = getvariable('qtype2') AND b = getvariable('qtype1')|b a"},
		{sqlquery.DuckDB, "SELECT $1", "query line 1, column 8: this DuckDB parameter is not supported: use the name of an input, such as :name"},
		{sqlquery.DuckDB, "COPY t TO 'x'", "query line 1, column 1: a query of DuckDB begins with one of SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE"},
		{sqlquery.Snowflake, "CALL p()", "query line 1, column 1: a query of Snowflake begins with one of SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE, DESC"},
	} {
		var got string
		if q, err := sqlquery.Parse(c.text, c.dialect); err != nil {
			got = err.Error()
		} else {
			text, order := q.Bound()
			got = text + "|" + strings.Join(order, " ")
		}
		if got != c.want {
			t.Errorf("%s: %s:\n got %s\nwant %s", c.dialect, c.text, got, c.want)
		}
	}
}

// TestOrigin checks the origin of every character of the bound text.
func TestOrigin(t *testing.T) {
	const text = "SELECT :a,\n  'é :x', :bb -- ü\n FROM t WHERE x = :a"
	q, err := sqlquery.Parse(text, sqlquery.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	bound, _ := q.Bound()
	for i, r := range []rune(bound) {
		line, column, ok := q.Origin(text, i+1)
		if !ok {
			t.Fatalf("character %d has no place", i+1)
		}
		at := []rune(strings.Split(text, "\n")[line-1] + "\n")[column-1]
		if at != r && at != ':' {
			t.Errorf("character %d, %q, is at %d:%d, of %q", i+1, r, line, column, at)
		}
	}
	for _, n := range []int{0, -1, len(bound) + 1} {
		if _, _, ok := q.Origin(text, n); ok {
			t.Errorf("character %d has a place", n)
		}
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite://":                                      "sqlite|||0||",
		"sqlite:///":                                     "sqlite|||0||",
		"sqlite:///:memory:":                             "sqlite|||0||",
		"sqlite:///data/a b%20c.db":                      "sqlite|||0|data/a b%20c.db|",
		"sqlite:////var/a.db?mode=ro":                    "sqlite|||0|/var/a.db|mode=ro",
		"sqlite+pysqlite:///a@b:c.db":                    "sqlite|||0|a@b:c.db|",
		"postgresql://":                                  "postgresql|||0||",
		"postgresql+psycopg2://u:p@h/db":                 "postgresql|u:p|h|0|db|",
		"postgres://u:p%40%2F%3ax@h:5433/":               "postgresql|u:p@/:x|h|5433||",
		"postgresql://u:p@ss@h/db":                       "postgresql|u:p@ss|h|0|db|",
		"postgresql://h/db?options=-c%20x%3D1&host=/tmp": "postgresql||h|0|db|host=/tmp options=-c x=1",
		"postgresql://u@[::1]:5432/db":                   "postgresql|u|::1|5432|db|",
		"mysql+pymysql://u:p/w@h:3307/db":                "mysql|u:p/w|h|3307|db|",
		"mariadb+mariadbconnector://u@h/db?charset=utf8": "mysql|u|h|0|db|charset=utf8",
		"MySQL://h/db?email=a@b":                         `error: unknown option "email" of a mysql URL; use one of charset, `,
		"mysql://h/db?charset=latin1":                    `error: invalid option charset "latin1": use one of utf8mb4, utf8`,
		"mysql://h/db?connect_timeout=-1":                `error: invalid option connect_timeout "-1": use a number of seconds`,
		"mysql://h/db?charset=utf8&charset=utf8":         `error: duplicate option "charset"`,
		"mysql+oursql://h/db":                            `error: unknown driver "oursql" of mysql; use one of pymysql, `,
		"oracle://u:secret@h/db":                         `error: unsupported database dialect "oracle"; use one of sqlite, postgresql, postgres, mysql, mariadb, mssql, sqlserver, awsathena, bigquery, snowflake`,
		"mssql+pyodbc://u:p@h:1433/db?driver=ODBC+Driver+18+for+SQL+Server&encrypt=no": "mssql|u:p|h|1433|db|driver=ODBC Driver 18 for SQL Server encrypt=no",
		"mssql+pymssql://u:p@h/db?encrypt=maybe":                                       `error: invalid option encrypt "maybe": use one of yes, no, strict`,
		"bigquery://project/sales?location=EU":                                         "bigquery||project|0|sales|location=EU",
		"bigquery://":                                                                  "bigquery|||0||",
		"bigquery://u:p@project/sales":                                                 "error: a URL of BigQuery has no user",
		"bigquery://p/sales?maximum_bytes_billed=1GB":                                  "error: invalid option maximum_bytes_billed",
		"bigquery+rest://p/sales":                                                      `error: unknown driver "rest": a URL of BigQuery begins with bigquery://`,
		"snowflake://ada:tok/en@org-acc/shop/public?warehouse=small&role=reader":       "snowflake|ada:tok/en|org-acc|0|shop/public|role=reader warehouse=small",
		"snowflake:///shop":                                                            "error: a URL of Snowflake needs an account",
		"snowflake://acc/shop?private_key_file=k.pem":                                  "error: a URL of Snowflake with private_key_file needs the user",
		"awsathena+rest://:@athena.x.amazonaws.com:443/db?s3_staging_dir=s3://b/f/&work_group=primary&catalog_name=c": "athena||athena.x.amazonaws.com|443|db|catalog_name=c s3_staging_dir=s3://b/f/ work_group=primary",
		"awsathena://key:secret@/db?work_group=w&region_name=eu-west-1":                                               "athena|key:secret||0|db|region_name=eu-west-1 work_group=w",
		"awsathena+rest://@athena.x.amazonaws.com/db":                                                                 `error: a URL of Athena needs s3_staging_dir=s3://bucket/folder/`,
		"awsathena+rest://@/db?s3_staging_dir=/tmp":                                                                   `error: invalid option s3_staging_dir "/tmp": expected s3://`,
		"awsathena+rest://key@/db?work_group=w":                                                                       `error: the user of a URL of Athena is an access key`,
		"awsathena+jdbc://@/db?work_group=w":                                                                          `error: unknown driver "jdbc" of awsathena; use one of rest, `,
		"sqlite://file.db":                                                                                            `error: a SQLite URL has no host: write sqlite:///file.db with three slashes`,
		"postgresql://h:70000/db":                                                                                     `error: invalid port "70000": use a number from 1 to 65535`,
		"postgresql://u:%zz@h/db":                                                                                     "error: invalid % in the user or the password",
		"postgresql://h/db?a=%zz":                                                                                     "error: invalid options",
		"people.db":                                                                                                   "error: invalid database URL",
		"":                                                                                                            "error: invalid database URL",
	} {
		var got string
		if u, err := sqlquery.ParseURL(text); err != nil {
			got = "error: " + err.Error()
			if strings.Contains(got, "secret") {
				t.Errorf("%s: the error contains the password: %s", text, got)
			}
		} else {
			var options []string
			for name, v := range u.Options {
				options = append(options, name+"="+v)
			}
			slices.Sort(options)
			user := strings.TrimSuffix(u.User+":"+u.Password, ":")
			got = fmt.Sprintf("%s|%s|%s|%d|%s|%s", u.Dialect, user, u.Host, u.Port, u.Database, strings.Join(options, " "))
			if p := u.Password; p != "" && strings.Contains(u.String(), ":"+p) {
				t.Errorf("%s: %s contains the password", text, u)
			}
		}
		if got != want && !(strings.HasPrefix(want, "error") && strings.HasPrefix(got, want)) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// FuzzParse checks that parsing any text terminates, and that the segments add up to
// the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"SELECT :a", "'", "$x$ :a $x$", `\:a :b`, "/*/", "a:b::c", "é:é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range sqlquery.Dialects() {
			q, err := sqlquery.Parse(text, d)
			if err != nil {
				continue
			}
			bound, order := q.Bound()
			for _, name := range order {
				if !strings.Contains(text, ":"+name) {
					t.Errorf("%q has no parameter %q", text, name)
				}
			}
			if len(order) == 0 && strings.ReplaceAll(text, `\:`, ":") != bound && !strings.Contains(text, `\`) {
				t.Errorf("%q became %q", text, bound)
			}
		}
		if u, err := sqlquery.ParseURL(text); err == nil {
			_ = u.String()
		}
	})
}

// TestParse_SQLite: a query of SQLite reaches no file but that of its connection, which
// ATTACH and VACUUM INTO would create, also in a connection that only reads.
func TestParse_SQLite(t *testing.T) {
	for text, reason := range map[string]string{
		"attach '/tmp/other.db' as x":                     "ATTACH is not supported",
		" /* a */ -- b\n ATTACH DATABASE 'other.db' AS x": "ATTACH is not supported",
		"\ufeffattach 'other.db' as x":                    "ATTACH is not supported",
		"detach main":                                     "DETACH is not supported",
		"vacuum into 'copy.db'":                           "VACUUM is not supported",
		"pragma query_only = 0":                           "of PRAGMA, only those that list",
		"PRAGMA journal_mode(wal)":                        "of PRAGMA, only those that list",
		"pragma /* table_list */ query_only(0)":           "of PRAGMA, only those that list",
		"pragma main . journal_mode":                      "of PRAGMA, only those that list",
		"pragma table_list = 1":                           "of PRAGMA, only those that list",
		"pragma":                                          "of PRAGMA, only those that list",
		"pragma table_info(people)":                       "",
		"PRAGMA main.index_list ( people );":              "",
		"pragma database_list":                            "",
		"(select 1)":                                      "",
		"with a as (select 1) select * from a":            "",
		"select 'attach', vacuum from attachments":        "",
	} {
		_, err := sqlquery.Parse(text, sqlquery.SQLite)
		if (err == nil) != (reason == "") || err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", text, err, reason)
		}
	}
}
