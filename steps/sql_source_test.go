package steps_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// orders is a table of an SQLite file.
func orders(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // errors of the statements are checked
	for _, s := range []string{
		"CREATE TABLE orders (no TEXT, customer TEXT, total DECIMAL(8,2), paid BOOLEAN, placed DATE, items JSON, note TEXT, qty INTEGER)",
		`INSERT INTO orders VALUES ('007', 'ada', '12.50', 1, '2024-02-29', '["pen","ink"]', 'ok', 3)`,
		`INSERT INTO orders VALUES ('008', 'ada', '7', 0, '2024-03-01', '[]', NULL, NULL)`,
		`INSERT INTO orders VALUES ('009', 'bob', 'many', 0, '2024-03-02', '{', 'ok', 1)`,
		"CREATE TABLE times (no TIMESTAMP, note DATETIME)",
		`INSERT INTO times VALUES ('2024-02-29 12:30:00+02:00', '2024-02-29 12:30:00')`,
	} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return "sqlite:///" + path
}

// selecting builds a SQLSource.
func selecting(t testing.TB, l layout, address, query string, inputs, outputs []string) (steps.Runner, error) {
	t.Helper()
	s := &spec.SQLSource{StepBase: l.base("ask", inputs, outputs), Query: query, Connection: spec.NewSecret(address)}
	return steps.Build(s, &steps.Env{Slots: l, Database: func(s *spec.SQLSource) (*sqldb.Source, error) {
		source, err := sqldb.Open(t.Context(), s.Connection.Reveal(), s.Query, sqldb.Access{})
		if err == nil {
			t.Cleanup(func() { _ = source.Close() })
		}
		return source, err
	}})
}

func TestSQLSource(t *testing.T) {
	address := orders(t)
	order := valuetest.Custom(t, "Order", []string{"sku: text"})
	l := declare(t, []*spec.CustomType{order}, "customer: text", "no: text", "total: float", "paid: boolean", "placed: date",
		"items: list[text]", "note: text?", "qty: int?", "number: int", "missing: text?", "wanted: text", "Customer: text")
	const ada = "SELECT * FROM orders WHERE customer = :customer ORDER BY no"
	for _, c := range []struct {
		what, query     string
		inputs, outputs []string
		row             map[string]any
		want            []string
	}{
		{"types, NULL, order, and what the row had", ada, []string{"customer"},
			[]string{"no", "total", "paid", "placed", "items", "note", "qty"}, map[string]any{"customer": "ada", "wanted": "kept"},
			[]string{`{"customer":"ada","no":"007","total":12.5,"paid":true,"placed":"2024-02-29","items":["pen","ink"],"note":"ok","qty":3,"wanted":"kept"}`,
				`{"customer":"ada","no":"008","total":7,"paid":false,"placed":"2024-03-01","items":[],"note":null,"qty":null,"wanted":"kept"}`}},
		{"times with a zone and without", "SELECT * FROM times", nil, []string{"no", "note"}, nil, []string{`{"no":"2024-02-29T10:30:00Z","note":"2024-02-29T12:30:00"}`}},
		{"no rows", ada, []string{"customer"}, []string{"no"}, map[string]any{"customer": "' OR 1=1 --"}, nil},
		{"a result row that does not fit fails alone", "SELECT no, total FROM orders ORDER BY no DESC", nil, []string{"no", "total"}, nil,
			[]string{`error: result row 1: total: expected float, got "many"`, `{"no":"008","total":7}`, `{"no":"007","total":12.5}`}},
		{"a number is read as what is declared", "SELECT CAST(no AS INTEGER) AS number, qty AS no FROM orders WHERE no = '007'", nil,
			[]string{"number", "no"}, nil, []string{`{"no":"3","number":7}`}},
		{"NULL where a value is needed", "SELECT note AS no FROM orders WHERE no = '008'", nil, []string{"no"}, nil,
			[]string{`error: result row 1: no: expected text, got null`}},
		{"an unset input fails the row", ada, []string{"customer"}, []string{"no"}, nil, []string{`error: variable customer is not set`}},
		{"a null input is NULL", "SELECT :note IS NULL AS number", []string{"note"}, []string{"number"}, map[string]any{"note": nil},
			[]string{`{"note":null,"number":1}`}},
		{"a missing column", "SELECT no, qty FROM orders", nil, []string{"no", "wanted"}, nil,
			[]string{`error: the query returns no column "wanted"; columns are no, qty`}},
		{"an optional output needs no column", "SELECT 'x' AS no", nil, []string{"no", "missing"}, nil, []string{`{"no":"x","missing":null}`}},
		{"capitals differ", "SELECT 'x' AS NO, 'low' AS customer, 'up' AS \"Customer\"", nil, []string{"no", "Customer"}, nil, []string{`{"no":"x","Customer":"up"}`}},
		{"one name twice", "SELECT 1 AS number, 2 AS number", nil, []string{"number"}, nil,
			[]string{`error: the query returns two columns "number"; name them with AS`}},
	} {
		r, err := selecting(t, l, address, c.query, c.inputs, c.outputs)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		expect(t, c.what, drive(t, l, r, l.row(c.row)), c.want...)
	}
}

func TestSQLSource_BuildErrors(t *testing.T) {
	l := declare(t, nil, "name: text", "age: int")
	for query, want := range map[string]string{
		"SELECT :nam AS age":           "the query uses :nam, which is not an input; inputs are name",
		"SELECT 1 AS age; SELECT 2":    "query line 1, column 18: unexpected second statement: a query is one statement",
		"SELECT 'x AS age":             "query line 1, column 8: unclosed quote",
		"SELECT ? AS age WHERE :name;": "query line 1, column 8: ? is not supported: use the name of an input, such as :name",
	} {
		if _, err := selecting(t, l, "sqlite://", query, []string{"name"}, []string{"age"}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
	if _, err := selecting(t, l, "oracle://u:secr3t@h/db", "SELECT 1", nil, []string{"age"}); err == nil || !strings.Contains(err.Error(), `"oracle"`) ||
		strings.Contains(err.Error(), "secr3t") {
		t.Errorf("oracle: %v", err)
	}
}
