package command

import (
	"context"
	"database/sql"

	"github.com/rogpeppe/go-internal/testscript"
)

// sqlite executes a statement on a database of a script: sqlite FILE STATEMENT.
func sqlite(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(err)
	ts.Check(db.Close())
}
