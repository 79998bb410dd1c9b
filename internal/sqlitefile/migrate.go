package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// errForeign reports a database that another program created.
var errForeign = errors.New("not a qtype database: another program created it")

// tooNewError reports a file with more migrations than this program has.
type tooNewError struct{ version, supported int }

func (e *tooNewError) Error() string {
	return fmt.Sprintf("written by a newer version of qtype (format %d, this version supports up to %d)", e.version, e.supported)
}

// migrate applies the missing migrations in one transaction. The file's
// user_version counts those applied, so a migration must never change.
func migrate(ctx context.Context, db *sql.DB, applicationID int32, migrations []string) error {
	current, err := version(ctx, db, applicationID, len(migrations))
	if err != nil || current == len(migrations) {
		return err
	}
	return change(ctx, db, func(tx *sql.Tx) error {
		current, err := version(ctx, tx, applicationID, len(migrations))
		if err != nil {
			return err
		}
		for _, statements := range migrations[current:] {
			if _, err := tx.ExecContext(ctx, statements); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(migrations), applicationID))
		return err
	})
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns how many migrations were applied to the file.
func version(ctx context.Context, db querier, applicationID int32, newest int) (int, error) {
	var current, tables int
	var owner int32
	row := db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)")
	if err := row.Scan(&current, &owner, &tables); err != nil {
		return 0, err
	}
	switch {
	case owner == 0 && current == 0 && tables == 0:
		return 0, nil
	case owner != applicationID:
		return 0, errForeign
	case current > newest:
		return 0, &tooNewError{current, newest}
	}
	return current, nil
}
