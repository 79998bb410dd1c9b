package postgres

import "github.com/jackc/pgx/v5"

// Statement returns a query of every append or turn, and its number of arguments.
func (s *Store) Statement(name string) (text string, args int) {
	switch name {
	case "live by id":
		return s.sql(selectLiveByID), 3
	case "range":
		return s.sql(selectRange), 5
	case "head":
		return s.sql(selectHead), 2
	case "page":
		return s.sql(selectSessionsBetween), 4
	}
	return s.sql(selectSessions), 3
}

// Trace sets a tracer of queries. Call it before the first use.
func (s *Store) Trace(t pgx.QueryTracer) { s.config.ConnConfig.Tracer = t }
