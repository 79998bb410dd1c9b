package sqlquery

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect is a family of databases with the same SQL syntax.
type Dialect string

// Supported dialects.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgresql"
	MySQL      Dialect = "mysql" // and MariaDB
	SQLServer  Dialect = "mssql" // and Azure SQL
	Athena     Dialect = "athena"
	BigQuery   Dialect = "bigquery"
	Snowflake  Dialect = "snowflake"
	DuckDB     Dialect = "duckdb"
)

// family is what is declared of a dialect.
type family struct {
	dialect Dialect
	title   string   // for messages
	names   []string // the beginnings of its URLs
	drivers []string // what may follow a name after +
	isFile  bool     // the database is a file, and has no users
	port    int      // where its servers listen; 0 for none
	auths   []string // types of auths that it accepts
	options []string // of its URLs, sorted
	values  map[string][]string
	syntax  syntax
	check   func(*scanner) error // checks a statement, in place of reads
	reads   []string             // the first words of statements; nil if sessions only read
	writes  []string             // reserved words of statements that change data, where reads does not exclude them
}

// syntax is how statements are written.
type syntax struct {
	placeholder string // before the number of a parameter; ? is not numbered
	suffix      string // after it
	nested      bool   // comments in comments
	hash        bool   // # begins a comment
	slashes     bool   // // begins a comment
	blankDash   bool   // -- begins a comment only before a blank
	backslash   string // quotes in which a backslash escapes
	escapes     bool   // E'…' has backslashes
	backticks   bool   // `name`
	brackets    bool   // [name]
	doubled     bool   // ]] in [name] is a bracket
	dollar      bool   // $$…$$ and $tag$…$tag$
	triple      bool   // '''…''' and """…""", and r'…' without backslashes
	question    bool   // ? is an operator
	marks       string // characters that begin a parameter of the database
}

// families returns the table of dialects, in the order of messages.
func families() []family {
	booleans := []string{"true", "false", "1", "0"}
	return []family{
		{dialect: SQLite, title: "SQLite", names: []string{"sqlite"}, drivers: []string{"pysqlite", "aiosqlite", "pysqlcipher"}, isFile: true,
			options: []string{"cache", "mode", "timeout", "uri"},
			values:  map[string][]string{"mode": {"ro", "rw", "rwc", "memory"}, "cache": {"shared", "private"}, "uri": booleans[:2]},
			syntax:  syntax{placeholder: "?", backticks: true, brackets: true, marks: "@$"}, check: (*scanner).checkSQLite},
		{dialect: PostgreSQL, title: "PostgreSQL", names: []string{"postgresql", "postgres"},
			drivers: []string{"psycopg2", "psycopg", "psycopg2cffi", "psycopg_async", "asyncpg", "pg8000"}, port: 5432,
			auths: []string{"basic", "bearer_token", "aws"},
			options: []string{"application_name", "client_encoding", "connect_timeout", "host", "options", "port", "sslcert", "sslkey",
				"sslmode", "sslpassword", "sslrootcert", "target_session_attrs"},
			values: map[string][]string{"sslmode": {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
				"client_encoding": {"utf8", "UTF8", "utf-8", "UTF-8"}},
			syntax: syntax{placeholder: "$", nested: true, escapes: true, dollar: true, question: true}},
		{dialect: MySQL, title: "MySQL", names: []string{"mysql", "mariadb"},
			drivers: []string{"pymysql", "mysqldb", "mysqlconnector", "mariadbconnector", "aiomysql", "asyncmy", "cymysql"}, port: 3306,
			auths: []string{"basic", "bearer_token", "aws"},
			options: []string{"charset", "collation", "connect_timeout", "read_timeout", "sql_mode", "ssl_ca", "ssl_cert", "ssl_key",
				"ssl_verify_cert", "ssl_verify_identity", "unix_socket", "write_timeout"},
			values: map[string][]string{"charset": {"utf8mb4", "utf8"}, "ssl_verify_cert": booleans, "ssl_verify_identity": booleans},
			syntax: syntax{placeholder: "?", hash: true, blankDash: true, backslash: `'"`, backticks: true}},
		{dialect: SQLServer, title: "SQL Server", names: []string{"mssql", "sqlserver"}, drivers: []string{"pyodbc", "pymssql", "aioodbc"}, port: 1433,
			auths:   []string{"basic", "bearer_token", "azure"},
			options: []string{"app_name", "connect_timeout", "driver", "encrypt", "trust_server_certificate"},
			values:  map[string][]string{"encrypt": {"yes", "no", "strict"}, "trust_server_certificate": {"yes", "no"}},
			syntax:  syntax{placeholder: "@p", nested: true, brackets: true, doubled: true, marks: "@"},
			reads:   []string{"SELECT", "WITH"}, writes: []string{"INSERT", "UPDATE", "DELETE", "MERGE", "INTO", "EXEC", "EXECUTE", "DROP", "ALTER", "CREATE", "TRUNCATE"}},
		{dialect: Athena, title: "Athena", names: []string{"awsathena"}, drivers: []string{"rest", "pandas", "arrow", "s3fs", "polars", "aiosqlalchemy"},
			auths:   []string{"aws"},
			options: []string{"catalog_name", "region_name", "s3_staging_dir", "work_group"},
			syntax:  syntax{placeholder: "?", backticks: true},
			reads:   []string{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE"}},
		{dialect: BigQuery, title: "BigQuery", names: []string{"bigquery"}, auths: []string{"vertex", "bearer_token"},
			options: []string{"location", "maximum_bytes_billed"},
			syntax:  syntax{placeholder: "?", hash: true, backslash: `'"`, backticks: true, triple: true, marks: "@"},
			reads:   []string{"SELECT", "WITH", "FROM"}},
		{dialect: Snowflake, title: "Snowflake", names: []string{"snowflake"}, auths: []string{"bearer_token"},
			options: []string{"private_key_file", "protocol", "role", "warehouse"},
			values:  map[string][]string{"protocol": {"http", "https"}},
			syntax:  syntax{placeholder: "?", slashes: true, backslash: `'`, dollar: true},
			reads:   []string{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC"}},
		{dialect: DuckDB, title: "DuckDB", names: []string{"duckdb"}, isFile: true,
			options: []string{"access_mode", "memory_limit", "threads"},
			values:  map[string][]string{"access_mode": {"read_only", "READ_ONLY"}},
			syntax:  syntax{placeholder: "getvariable('qtype", suffix: "')", nested: true, escapes: true, dollar: true, marks: "$"},
			reads:   []string{"SELECT", "WITH", "FROM", "VALUES", "DESCRIBE", "SUMMARIZE"}},
	}
}

// Dialects returns the dialects in the order of messages.
func Dialects() []Dialect {
	var all []Dialect
	for _, f := range families() {
		all = append(all, f.dialect)
	}
	return all
}

// family returns what is declared of a dialect.
func (d Dialect) family() family {
	all := families()
	if i := slices.IndexFunc(all, func(f family) bool { return f.dialect == d }); i >= 0 {
		return all[i]
	}
	return family{dialect: d, title: string(d), syntax: syntax{placeholder: "?"}}
}

// Title returns the name of the databases, for messages.
func (d Dialect) Title() string { return d.family().title }

// Port returns the port of a server that listens where such servers do; 0 for those without one.
func (d Dialect) Port() int { return d.family().port }

// IsFile reports whether databases of the dialect are files.
func (d Dialect) IsFile() bool { return d.family().isFile }

// CheckAuth returns an error if a database of the dialect cannot be used with a type of auth,
// such as basic.
func (d Dialect) CheckAuth(kind string) error {
	f := d.family()
	switch {
	case slices.Contains(f.auths, kind):
		return nil
	case f.isFile:
		return fmt.Errorf("%s %s file has no users: remove auth", article(f.title), f.title)
	}
	return fmt.Errorf("the auth of %s must be of type %s", f.title, strings.Join(f.auths, ", "))
}

// article returns the article before a name.
func article(name string) string {
	if strings.HasPrefix(name, "SQL") {
		return "an"
	}
	return "a"
}
