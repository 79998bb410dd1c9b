package waves

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// Log keeps the changes of the file of a run where other processes find them. It is safe for concurrent use.
type Log interface {
	// Add adds changes, in their order.
	Add(changes []Change) error
	// Sync returns when the changes that were added are stored. An error ends the run before it does what may be paid.
	Sync() error
}

// Change is a statement that has changed the file of a run, with its values.
type Change struct {
	Text   string
	Values []any // as package database/sql/driver converts them
}

// Replay repeats the changes of another process, in their order.
func (r *Run) Replay(changes []Change) error {
	c, err := r.conn()
	if err != nil {
		return err
	}
	return r.storeError(c.Change(context.Background(), func(tx *sql.Tx) error {
		for _, made := range changes {
			if _, err := tx.ExecContext(context.Background(), made.Text, made.Values...); err != nil {
				return err
			}
		}
		return nil
	}))
}

// transaction is a transaction that notes its changes for the Log.
type transaction struct {
	*sql.Tx
	isKept  bool
	changes []Change
	failed  error // a value is of no type of a database
}

// keep notes a change.
func (t *transaction) keep(text string, values []any) {
	if !t.isKept {
		return
	}
	made := Change{Text: text}
	for _, v := range values {
		plain, err := driver.DefaultParameterConverter.ConvertValue(v)
		if err != nil && t.failed == nil {
			t.failed = err
		}
		made.Values = append(made.Values, plain)
	}
	t.changes = append(t.changes, made)
}

// ExecContext executes a statement that changes the file.
func (t *transaction) ExecContext(ctx context.Context, text string, values ...any) (sql.Result, error) {
	t.keep(text, values)
	return t.Tx.ExecContext(ctx, text, values...)
}

// run executes a prepared statement that changes the file.
func (t *transaction) run(prepared *sql.Stmt, text string, values ...any) error {
	t.keep(text, values)
	_, err := t.StmtContext(context.Background(), prepared).ExecContext(context.Background(), values...)
	return err
}

// store runs do in a transaction. The Log gets its changes before those of the next one.
func (r *Run) store(do func(*transaction) error) error {
	_, err := r.storeChanges(do)
	return err
}

// storeChanges is store. It reports whether the Log has got changes.
func (r *Run) storeChanges(do func(*transaction) error) (logged bool, err error) {
	c, err := r.conn()
	if err != nil {
		return false, err
	}
	var failed error // of the Log
	err = c.Change(context.Background(), func(tx *sql.Tx) error {
		t := &transaction{Tx: tx, isKept: r.Log != nil}
		if err := do(t); err != nil || len(t.changes) == 0 {
			return err
		}
		if failed = t.failed; failed == nil {
			failed = r.Log.Add(t.changes)
		}
		logged = failed == nil
		return failed
	})
	if failed != nil {
		return false, failed
	}
	return logged, r.storeError(err)
}

// change runs do in a transaction. It is stored on the disk, or by the Log, when change returns.
func (r *Run) change(do func(*transaction) error) error {
	logged, err := r.storeChanges(do)
	switch {
	case err != nil:
		return err
	case logged:
		return r.Log.Sync()
	case r.Log != nil:
		return nil
	}
	c, err := r.conn()
	if err != nil {
		return err
	}
	_, err = c.Write.ExecContext(context.Background(), "PRAGMA wal_checkpoint(FULL)")
	return r.storeError(err)
}
