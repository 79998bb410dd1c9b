package postgres

import "github.com/jackc/pgx/v5"

// Statement is what the store asks for on every append and every turn, and how
// many arguments it takes.
func (s *Store) Statement(name string) (text string, args int) {
	switch name {
	case "live by id":
		return s.sql(selectLiveByID), 3
	case "range":
		return s.sql(selectRange), 5
	case "head":
		return s.sql(selectHead), 2
	}
	return s.sql(selectSessions), 3
}

// Trace lets a tracer see what is sent. It is called before the first use.
func (s *Store) Trace(t pgx.QueryTracer) { s.config.ConnConfig.Tracer = t }
