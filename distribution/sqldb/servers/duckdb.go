package servers

import (
	"cmp"
	"database/sql"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/distribution/sqldb/duckdb"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/subprocess"
)

// duckDBProgram is the name of DuckDB's command line program, and the variable with another name or path.
const (
	duckDBProgram  = "duckdb"
	duckDBVariable = "QTYPE_DUCKDB"
)

// duckDBIdle is how long an unused process stays open: meanwhile, other processes cannot open the
// file for writing.
const duckDBIdle = time.Second

// openDuckDB returns the pool for queries of a DuckDB file, which run in processes of DuckDB's
// program.
func openDuckDB(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	name := a.Env.Getenv(duckDBVariable)
	program, err := subprocess.Find(cmp.Or(name, duckDBProgram), ".", a.Env.Getenv("PATH"))
	switch {
	case err != nil && name != "":
		return nil, fmt.Errorf("%s: %w", duckDBVariable, err)
	case err != nil:
		return nil, fmt.Errorf("%w: queries of DuckDB run in its command line program, version 1.5 or later; install it (pip install duckdb-cli), or set %s to its file", err, duckDBVariable)
	}
	return duckdb.Open(duckdb.Config{Program: program, Env: subprocess.Environment(a.Env.Getenv, nil), Supervisor: a.Supervisor, File: u.Database,
		Threads: cmp.Or(u.Options["threads"], "2"), MemoryLimit: cmp.Or(u.Options["memory_limit"], "1GB"), Time: sqldb.TimeValue}), nil
}
