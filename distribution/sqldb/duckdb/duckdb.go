// Package duckdb runs queries of DuckDB files in processes of DuckDB's command line program.
//
// A connection of the pool is a process that opens the file for reading. Statements are sent to
// its standard input. Texts of a document, the query and its values, are sent in base64: they cannot
// end a statement of this package. The query is executed by DuckDB's function query, which accepts one
// SELECT; before, its syntax tree and its plan are checked for functions that reach something
// other than the file.
package duckdb

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

// Config describes a database.
type Config struct {
	Program     string   // file of DuckDB's command line program
	Env         []string // its environment
	Supervisor  *subprocess.Supervisor
	File        string // empty for a database in memory
	Threads     string // of a process
	MemoryLimit string // of a process, such as 1GB

	// Time returns the value of a date, or of a date and time in UTC or without a zone.
	Time func(t time.Time, isDate, zoned bool) any
}

// Open returns a pool of processes, without starting one.
func Open(c Config) *sql.DB { return sql.OpenDB(&connector{Config: c}) }

type connector struct {
	Config

	mu    sync.Mutex
	known bool // the version of the program was checked
}

// Connect starts a process and opens the file.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.checkVersion(ctx); err != nil {
		return nil, err
	}
	p, err := start(ctx, c.Config)
	if err != nil {
		return nil, err
	}
	return &conn{process: p, config: c.Config}, nil
}

// The first version whose program writes its output after each statement, and not when a buffer is full.
const oldestMajor, oldestMinor = 1, 5

// checkVersion returns an error if the program is too old, or is another one.
func (c *connector) checkVersion(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return nil
	}
	out, err := subprocess.Program{Path: c.Program, Args: []string{"--version"}, Env: c.Env, Supervisor: c.Supervisor}.Run(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s --version: %w", c.Program, err)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	var major, minor int
	if n, _ := fmt.Sscanf(text, "v%d.%d", &major, &minor); n != 2 {
		return fmt.Errorf("%s --version printed %.50q, not a version of DuckDB", c.Program, text)
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return fmt.Errorf("%s is DuckDB %s: version %d.%d or later is needed", c.Program, text, oldestMajor, oldestMinor)
	}
	c.known = true
	return nil
}

// Driver returns the driver, which opens nothing by name.
func (c *connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

// Open returns an error: connections are opened by a connector.
func (noDriver) Open(string) (driver.Conn, error) { return nil, errors.New("use Open") }

// errReadOnly is the error of everything but queries.
var errReadOnly = errors.New("these connections only run queries")

// conn is a connection: a process. It runs one query at a time.
type conn struct {
	process *process
	config  Config
	checked string // the query whose syntax tree was accepted
}

// Prepare returns a statement. The query is checked when it runs.
func (c *conn) Prepare(query string) (driver.Stmt, error) { return &stmt{c, query}, nil }

// IsValid reports whether the process can run another query.
func (c *conn) IsValid() bool { return !c.process.ended() }

// Close ends the process.
func (c *conn) Close() error {
	c.process.close()
	return nil
}

// Begin returns an error.
func (c *conn) Begin() (driver.Tx, error) { return nil, errReadOnly }

// stmt is a query in which Parameter names the values.
type stmt struct {
	conn  *conn
	query string
}

// Close has no effect.
func (s *stmt) Close() error { return nil }

// NumInput returns that the number of values is not checked.
func (s *stmt) NumInput() int { return -1 }

// CheckNamedValue accepts values of every type.
func (s *stmt) CheckNamedValue(*driver.NamedValue) error { return nil }

// Exec returns an error.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errReadOnly }

// Query returns an error: database/sql calls QueryContext.
func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errReadOnly }

// QueryContext runs the query. When ctx ends, the process is killed.
func (s *stmt) QueryContext(ctx context.Context, named []driver.NamedValue) (driver.Rows, error) {
	values, err := literals(named)
	if err != nil {
		return nil, err
	}
	p := s.conn.process
	stop := context.AfterFunc(ctx, p.kill)
	r, err := s.conn.rows(s.query, values)
	if err != nil {
		stop()
		return nil, err
	}
	r.stop = stop
	return r, nil
}

// rows checks the query and starts to read its results.
func (c *conn) rows(query string, values []string) (*rows, error) {
	if query != c.checked {
		if err := c.process.checkSyntax(query); err != nil {
			return nil, err
		}
		c.checked = query
	}
	columns, err := c.process.describe(query, values)
	if err != nil {
		return nil, err
	}
	list, names := make([]string, len(columns)), make([]string, len(columns))
	for i, col := range columns {
		names[i] = "c" + itoa(i)
		list[i] = col.typ.text(names[i])
	}
	mark := c.process.mark
	lines := "SELECT '" + mark + rowMark + "' || CAST(json_array(" + strings.Join(list, ", ") + ") AS VARCHAR) AS line" +
		" FROM query(" + encoded(query) + ") AS rows(" + strings.Join(names, ", ") + ")"
	if err := c.process.send(lines + " UNION ALL SELECT '" + mark + completeMark + "';"); err != nil {
		return nil, err
	}
	r := &rows{process: c.process, columns: columns, config: c.config, lines: lines}
	// The first row or the error of the query is read now: most queries fail before their first row.
	if r.read(); r.end != nil && !errors.Is(r.end, io.EOF) {
		return nil, r.end
	}
	return r, nil
}

// rows are the results of a query.
type rows struct {
	process *process
	config  Config
	columns []column
	lines   string // the query that returns the rows as lines
	line    []byte // the next row
	end     error  // after the last row; nil before
	stop    func() bool
}

// Columns returns the names of the columns.
func (r *rows) Columns() []string {
	names := make([]string, len(r.columns))
	for i, c := range r.columns {
		names[i] = c.name
	}
	return names
}

// ColumnTypeDatabaseTypeName returns the type of a column.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.columns[i].typ.name }

// Next reads a row.
func (r *rows) Next(into []driver.Value) error {
	if r.end != nil {
		return r.end
	}
	if err := r.decode(r.line, into); err != nil {
		return err
	}
	r.read()
	return nil
}

// read reads the next row, or sets why there is none.
func (r *rows) read() {
	complete := false
	for {
		text, err := r.process.line()
		if err != nil {
			r.end = r.process.failure(err)
			return
		}
		rest, marked := bytes.CutPrefix(text, []byte(r.process.mark))
		switch {
		case !marked: // not of this package
		case string(rest) == completeMark:
			complete = true
		case string(rest) == endMark:
			if r.end = r.process.failure(nil); r.end == nil {
				r.end = io.EOF
				if !complete {
					r.end = r.cause()
				}
			}
			return
		default:
			if r.line, marked = bytes.CutPrefix(rest, []byte(rowMark)); marked {
				return
			}
		}
	}
}

// cause returns the error that ended the rows. The program reports an error only before the first row: the query is run
// again, with one row for all.
func (r *rows) cause() error {
	err := r.process.run("SELECT max(length(line)) FROM ("+r.lines+");", func([]byte) {})
	if err == nil {
		err = errors.New("the query ended before its last row, and DuckDB reports no error")
	}
	return err
}

// Close ends the process if rows remain: nothing else stops a query.
func (r *rows) Close() error {
	r.stop()
	if r.end == nil {
		r.process.kill()
	}
	return nil
}
