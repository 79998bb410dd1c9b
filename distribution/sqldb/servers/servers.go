// Package servers opens the databases that are no part of the core: DuckDB, PostgreSQL, MySQL, MariaDB, SQL Server,
// Amazon Athena, Google BigQuery and Snowflake.
package servers

import (
	"maps"
	"time"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
)

// connectTime is the default time limit for connecting.
const connectTime = 30 * time.Second

// Drivers returns the table of the databases of the core and of all others. The caller may change it.
func Drivers() sqldb.Drivers {
	plain := func(v any) any { return v }
	plainColumn := func(string) func(any) any { return plain }
	all := sqldb.Core()
	maps.Copy(all, sqldb.Drivers{
		sqlquery.PostgreSQL: {Open: openPostgres, Argument: postgresArgument, Value: postgresValue, Reason: postgresReason},
		sqlquery.MySQL:      {Open: openMySQL, Argument: sqldb.TextArgument, Value: mysqlValue, Reason: mysqlReason},
		sqlquery.SQLServer:  {Open: openSQLServer, Argument: sqlServerArgument, Value: sqlServerValue, Reason: sqlServerReason},
		sqlquery.Athena:     {Open: openAthena, Argument: func(v any) any { return literal(v) }, Value: athenaValue, Host: athenaHost},
		sqlquery.BigQuery:   {Open: openBigQuery, Argument: plain, Value: plainColumn, Host: bigQueryHost},
		sqlquery.Snowflake:  {Open: openSnowflake, Argument: plain, Value: snowflakeValue, Host: snowflakeHost},
		sqlquery.DuckDB:     {Open: openDuckDB, Argument: plain, Value: plainColumn, Idle: duckDBIdle, Program: duckDBProgram},
	})
	for _, dialect := range []sqlquery.Dialect{sqlquery.Athena, sqlquery.BigQuery, sqlquery.Snowflake, sqlquery.DuckDB} {
		d := all[dialect]
		d.Reason = remoteReason(dialect.Title())
		all[dialect] = d
	}
	return all
}
