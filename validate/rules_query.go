package validate

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec"
)

// queryRules are about SQL in documents.
func queryRules() []rule { return []rule{queryReadable(), queryNames(), connectionUsable()} }

// dialectOf is the family of a step's database; false where the document does
// not tell, because the URL is a secret or not known here.
func dialectOf(s *spec.SQLSource) (sqlquery.Dialect, bool) {
	u, err := sqlquery.ParseURL(s.Connection.Reveal())
	if err != nil {
		return "", false
	}
	return u.Dialect, true
}

func queryReadable() rule {
	return rule{code: "QT460", title: "SQLSource: a query that cannot be sent",
		doc: "A query is one statement. Its quotes and comments are closed, and values come in by the names of inputs (:name), never by ? or $1.",
		sample: sample{in: "id: int", out: "name: text",
			steps: "- {type: SQLSource, id: ask, query: ⟦\"select name from people where id = ?\"│\"select name from people where id = :id\"⟧, connection: \"sqlite:///people.db\", inputs: [id], outputs: [name]}"},
		check: on(func(p *ruleContext, s *spec.SQLSource) {
			d, known := dialectOf(s)
			if !known {
				return
			}
			if _, err := sqlquery.Parse(s.Query, d); err != nil {
				p.report(placeOf(s, "query", "id"), "step %q (SQLSource): %s", s.ID, err)
			}
		})}
}

func queryNames() rule {
	return rule{code: "QT461", title: "SQLSource: the query uses a name that is not an input",
		doc: "Each :name in a query stands for the value of the step's input of that name. In quotes and comments, and as a cast (::), a colon means what it means in SQL; write \\: for one that is not a parameter.",
		sample: sample{in: "person: int", out: "name: text",
			steps: "- {type: SQLSource, id: ask, query: \"select name from people where id = ⟦:persn│:person⟧\", connection: \"sqlite:///people.db\", inputs: [person], outputs: [name]}"},
		check: on(func(p *ruleContext, s *spec.SQLSource) {
			inputs := map[string]bool{}
			var names []string
			for _, in := range s.Common().AllInputs() {
				inputs[in.ID] = true
				names = append(names, in.ID)
			}
			for _, name := range queryParameters(s) {
				if !inputs[name] {
					p.list.Add(p.reportAt(placeOf(s, "query", "id"), "step %q (SQLSource): the query uses :%s, which is not an input of the step", s.ID, name).
						WithNearest(name, names))
				}
			}
		})}
}

// queryParameters are the names that a query needs; where the database is not
// known, those that every dialect would see.
func queryParameters(s *spec.SQLSource) []string {
	dialects := sqlquery.Dialects()
	if d, known := dialectOf(s); known {
		dialects = []sqlquery.Dialect{d}
	}
	var names []string
	for i, d := range dialects {
		q, err := sqlquery.Parse(s.Query, d)
		switch {
		case err != nil:
			return nil
		case i == 0:
			names = q.Names()
		default:
			seen := q.Names()
			names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(seen, n) })
		}
	}
	return names
}

func connectionUsable() rule {
	return rule{code: "QT462", warning: true, title: "SQLSource: a connection that cannot be opened",
		doc: "A connection is the URL of an SQLite file (sqlite:///people.db, with four slashes before an absolute path), of a PostgreSQL (postgresql://user@host/database), or of a MySQL or MariaDB server (mysql://user@host/database). A run with another ends at once.",
		sample: sample{out: "name: text",
			steps: "- {type: SQLSource, id: ask, query: select name from people, connection: ⟦\"sqlite://people.db\"│\"sqlite:///people.db\"⟧, outputs: [name]}"},
		check: on(func(p *ruleContext, s *spec.SQLSource) {
			text := s.Connection.Reveal()
			if text == "" || strings.Contains(text, "${") {
				return
			}
			if _, err := sqlquery.ParseURL(text); err != nil {
				p.report(placeOf(s, "connection", "id"), "the connection of step %q (SQLSource): %s", s.ID, err)
			}
		})}
}
