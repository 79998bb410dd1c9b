package waves

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// applicationID marks files of this package.
const applicationID = 0x71747776 // qtwv

// migrations are the tables: the calls, the batches that they are sent in, and the results of calls of
// models and tools as steps record them.
var migrations = []string{`
CREATE TABLE batches (
  id INTEGER PRIMARY KEY, wave INTEGER NOT NULL, name TEXT NOT NULL, model TEXT NOT NULL, method TEXT NOT NULL, head TEXT NOT NULL,
  count INTEGER NOT NULL, since INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, remote TEXT NOT NULL DEFAULT '', state TEXT NOT NULL DEFAULT '',
  canceled INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0);
CREATE TABLE calls (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, model TEXT NOT NULL, method TEXT NOT NULL, head TEXT NOT NULL, body BLOB, size INTEGER NOT NULL,
  batch INTEGER, tries INTEGER NOT NULL DEFAULT 0, status INTEGER NOT NULL DEFAULT 0, answer BLOB, at_once INTEGER NOT NULL DEFAULT 0);
CREATE INDEX calls_batch ON calls (batch);
CREATE INDEX calls_waiting ON calls (model, method, head) WHERE batch IS NULL AND status = 0;
CREATE TABLE results (key TEXT PRIMARY KEY, result BLOB NOT NULL);
`,
	`ALTER TABLE calls ADD COLUMN most INTEGER NOT NULL DEFAULT 0;`, // of calls in its batch, since one was refused as a whole; 0 for the limit of the provider
	`ALTER TABLE calls ADD COLUMN task TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
CREATE INDEX calls_task ON calls (task) WHERE task <> '';`, // the run of the call, and whether that has ended; see Shared
}

// The changes that are made most often.
const (
	noteCall     = "INSERT INTO calls (id, model, method, head, body, size, task) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
	answerCall   = "INSERT INTO calls (id, model, method, head, size, status, answer, task, at_once) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (id) DO UPDATE SET status = excluded.status, answer = excluded.answer, body = NULL, at_once = 1"
	recordResult = "INSERT OR REPLACE INTO results (key, result) VALUES (?, ?)"
)

// statements are prepared.
type statements struct{ lookup, note, answer, recorded, record *sql.Stmt }

func prepare(ctx context.Context, write, read *sql.DB) (s statements, err error) {
	for _, p := range []struct {
		to   **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&s.lookup, read, "SELECT status, answer, at_once, coalesce(batch, 0) FROM calls WHERE id = ?"},
		{&s.note, write, noteCall},
		{&s.answer, write, answerCall},
		{&s.recorded, read, "SELECT result FROM results WHERE key = ?"},
		{&s.record, write, recordResult},
	} {
		if *p.to, err = p.db.PrepareContext(ctx, p.text); err != nil {
			return s, err
		}
	}
	return s, nil
}

// group is what the calls of a batch share.
type group struct{ model, method, head string }

// call is a call that waits for a batch.
type call struct {
	id string
	group
	body []byte
	task string // the run of a Shared that makes it; empty for none
}

// conn opens the file.
func (r *Run) conn() (*sqlitefile.Conn[statements], error) {
	c, err := r.file.Open(context.Background(), true)
	if err != nil {
		return nil, r.storeError(err)
	}
	return c, nil
}

// storeError names the file in an error.
func (r *Run) storeError(err error) error {
	if err == nil {
		return nil
	}
	_, message := sqlitefile.Diagnose(err)
	return fmt.Errorf("%s: %s", r.file.Path(), message)
}

// noteSize is the number of calls that are stored together.
const noteSize = 256

// lookup returns what is stored of a call.
func (r *Run) lookup(id string) (a answer, err error) {
	c, err := r.conn()
	if err != nil {
		return a, err
	}
	err = c.Statements.lookup.QueryRowContext(context.Background(), id).Scan(&a.status, &a.body, &a.atOnce, &a.batch)
	if errors.Is(err, sql.ErrNoRows) {
		return a, nil
	}
	a.noted = true
	return a, r.storeError(err)
}

// note stores a call.
func (r *Run) note(c call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = append(r.noted, c)
	if len(r.noted) < noteSize {
		return nil
	}
	return r.flush()
}

// answerAtOnce stores the answer to a call that was made at once.
func (r *Run) answerAtOnce(c call, a answer) error {
	db, err := r.conn()
	if err != nil {
		return err
	}
	err = r.store(func(tx *transaction) error {
		return tx.run(db.Statements.answer, answerCall, c.id, c.model, c.method, c.head, len(c.body), a.status, a.body, c.task)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.AtOnce++
	return err
}

// flush stores the calls that were noted. The mutex is locked.
func (r *Run) flush() error {
	if len(r.noted) == 0 {
		return nil
	}
	db, err := r.conn()
	if err != nil {
		return err
	}
	err = r.store(func(tx *transaction) error {
		for _, c := range r.noted {
			if err := tx.run(db.Statements.note, noteCall, c.id, c.model, c.method, c.head, c.body, len(c.body), c.task); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil { // otherwise the next flush stores them
		r.noted = r.noted[:0]
	}
	return err
}

// Recorded returns the result of a call of a model or tool in an earlier pass, nil if there is none. It is
// a part of steps.CallLog.
func (r *Run) Recorded(key string) (result []byte) {
	c, err := r.conn()
	if err == nil {
		if err = c.Statements.recorded.QueryRowContext(context.Background(), key).Scan(&result); errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		err = r.storeError(err)
	}
	if err != nil {
		r.fail(err)
		return nil
	}
	return result
}

// Record stores the result of a call of a model or tool.
func (r *Run) Record(_ context.Context, key string, result []byte) error {
	c, err := r.conn()
	if err == nil {
		err = r.store(func(tx *transaction) error { return tx.run(c.Statements.record, recordResult, key, result) })
	}
	if err == nil && r.Log != nil { // it may have been paid
		err = r.Log.Sync()
	}
	if err != nil {
		r.fail(err)
	}
	return err
}

// batch is a batch as it is stored.
type batch struct {
	id, wave int64
	name     string
	group
	count  int
	since  time.Time
	tries  int
	remote string // the provider's id; empty before it is known
	state  string
	// canceled is set if the run has canceled it: its calls are sent again when the run is continued.
	canceled bool
	single   bool // it is one call; see wire.BatchLimits
}

// live returns the batches that have not ended, without those that were lost in this process.
func (r *Run) live() (all []*batch, err error) {
	c, err := r.conn()
	if err != nil {
		return nil, err
	}
	rows, err := c.Read.QueryContext(context.Background(), "SELECT id, wave, name, model, method, head, count, since, tries, remote, state, canceled FROM batches WHERE done = 0 ORDER BY id")
	if err != nil {
		return nil, r.storeError(err)
	}
	defer func() { _ = rows.Close() }() // only read
	for rows.Next() {
		var b batch
		var since int64
		if err := rows.Scan(&b.id, &b.wave, &b.name, &b.model, &b.method, &b.head, &b.count, &since, &b.tries, &b.remote, &b.state, &b.canceled); err != nil {
			return nil, r.storeError(err)
		}
		b.since = time.UnixMilli(since)
		if api, err := r.api(b.model); err == nil {
			b.single = api.limits.Single
		}
		if !r.isLost(b.id) {
			all = append(all, &b)
		}
	}
	return all, r.storeError(rows.Err())
}

// calls reads the calls of a batch in their order.
func (r *Run) calls(b *batch) iter.Seq2[wire.BatchCall, error] {
	return func(yield func(wire.BatchCall, error) bool) {
		c, err := r.conn()
		if err != nil {
			yield(wire.BatchCall{}, err)
			return
		}
		rows, err := c.Read.QueryContext(context.Background(), "SELECT id, coalesce(body, '') FROM calls WHERE batch = ? ORDER BY number", b.id)
		if err != nil {
			yield(wire.BatchCall{}, r.storeError(err))
			return
		}
		defer func() { _ = rows.Close() }() // only read
		for rows.Next() {
			var made wire.BatchCall
			if err := rows.Scan(&made.ID, &made.Body); err != nil {
				yield(made, r.storeError(err))
				return
			}
			if !yield(made, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(wire.BatchCall{}, r.storeError(err))
		}
	}
}

// planning is how calls are assigned to batches.
type planning struct {
	limits func(model string) wire.BatchLimits
	hold   func(model string) bool // whether a model has to wait
	tries  int                     // calls that were sent less often have to wait
	left   int                     // how many calls are assigned, at most
}

// plan assigns the calls that wait to new batches.
func (r *Run) plan(p planning) (planned int, err error) {
	err = r.change(func(tx *transaction) error {
		groups, err := waiting(tx.Tx, p.tries)
		if err != nil || len(groups) == 0 {
			return err
		}
		var wave int64
		if err := tx.QueryRowContext(context.Background(), "SELECT coalesce(max(wave), 0) + 1 FROM batches").Scan(&wave); err != nil {
			return err
		}
		for _, g := range groups {
			if p.hold(g.model) {
				continue
			}
			n, err := p.divide(tx, g, wave)
			if err != nil {
				return err
			}
			planned += n
		}
		return nil
	})
	return planned, err
}

// part is the calls of a group that may be in batches of a size.
type part struct {
	group
	most int // of calls; 0 for the limit of the provider
}

// waiting returns the calls that are in no batch, those that were tried alone after the others.
func waiting(tx *sql.Tx, tries int) (all []part, err error) {
	rows, err := tx.QueryContext(context.Background(), "SELECT DISTINCT model, method, head, most FROM calls WHERE batch IS NULL AND status = 0 AND tries >= ? ORDER BY model, method, head, most DESC", tries)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // only read
	for rows.Next() {
		var g part
		if err := rows.Scan(&g.model, &g.method, &g.head, &g.most); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, rows.Err()
}

// lineSize is what a batch adds to each call, at most.
const lineSize = 256

// querier is a *sql.DB or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, text string, values ...any) *sql.Row
}

// history reports whether the provider has accepted a batch of a model, and whether it has refused one. One of a single call is
// accepted when it is created.
func history(tx querier, model string, single bool) (accepts, refuses bool, err error) {
	err = tx.QueryRowContext(context.Background(), "SELECT EXISTS (SELECT 1 FROM batches WHERE model = ?1 AND (done = 1 OR ?4 AND remote <> '') AND state NOT IN (?2, ?3)), EXISTS (SELECT 1 FROM batches WHERE model = ?1 AND state = ?2)", model, stateRefused, stateFull, single).Scan(&accepts, &refuses)
	return accepts, refuses, err
}

// divide assigns calls to batches within the limits of their model. If the provider has refused batches of the model, and
// accepted none, one call shows whether it does: one by chance, as each may be the reason.
func (p *planning) divide(tx *transaction, g part, wave int64) (made int, err error) {
	limits, order := p.limits(g.model), "number"
	accepts, refuses, err := history(tx.Tx, g.model, limits.Single)
	if err != nil {
		return 0, err
	}
	isTrial := refuses && !accepts && limits.Least <= 1
	if g.most > 0 {
		limits.Calls = min(limits.Calls, g.most)
	}
	limits.Calls = max(limits.Calls, limits.Least)
	if isTrial {
		var isOpen bool
		if err := tx.QueryRowContext(context.Background(), "SELECT EXISTS (SELECT 1 FROM batches WHERE model = ? AND done = 0 AND count = 1)", g.model).Scan(&isOpen); err != nil || isOpen {
			return 0, err
		}
		limits.Calls, order = 1, "random()"
	}
	for {
		limits.Calls = min(limits.Calls, p.left)
		first, last, count, err := p.prefix(tx.Tx, g, limits, order)
		if err != nil || count == 0 || count < limits.Least {
			return made, err
		}
		added, err := tx.ExecContext(context.Background(), "INSERT INTO batches (wave, name, model, method, head, count, since) VALUES (?, ?, ?, ?, ?, ?, ?)", wave, newName(), g.model, g.method, g.head, count, time.Now().UnixMilli())
		if err != nil {
			return made, err
		}
		id, err := added.LastInsertId()
		if err != nil {
			return made, err
		}
		_, err = tx.ExecContext(context.Background(), "UPDATE calls SET batch = ?, tries = tries + 1 WHERE batch IS NULL AND status = 0 AND model = ? AND method = ? AND head = ? AND most = ? AND number BETWEEN ? AND ? AND tries >= ?", id, g.model, g.method, g.head, g.most, first, last, p.tries)
		if err != nil {
			return made, err
		}
		p.left -= count
		if made++; isTrial {
			return made, nil
		}
	}
}

// prefix returns the numbers of the first and the last call of those that fit into a batch, and how many they are.
func (p *planning) prefix(tx *sql.Tx, g part, limits wire.BatchLimits, order string) (first, last int64, count int, err error) {
	rows, err := tx.QueryContext(context.Background(), "SELECT number, size FROM calls WHERE batch IS NULL AND status = 0 AND model = ? AND method = ? AND head = ? AND most = ? AND tries >= ? ORDER BY "+order+" LIMIT ?", g.model, g.method, g.head, g.most, p.tries, limits.Calls) //nolint:gosec // order is "number" or "random()"
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = rows.Close() }() // only read
	sum := int64(0)
	for rows.Next() {
		var number, size int64
		if err := rows.Scan(&number, &size); err != nil {
			return 0, 0, 0, err
		}
		if sum += size + lineSize; sum > limits.Bytes && count > 0 {
			break
		}
		if count == 0 {
			first = number
		}
		last, count = number, count+1
	}
	return first, last, count, rows.Err()
}

// update changes a batch.
func (r *Run) update(b *batch) error {
	return r.change(func(tx *transaction) error {
		_, err := tx.ExecContext(context.Background(), "UPDATE batches SET tries = ?, remote = ?, state = ?, canceled = ? WHERE id = ?", b.tries, b.remote, b.state, b.canceled, b.id)
		return err
	})
}

// isRemote reports whether the provider's id of a batch is known.
func (r *Run) isRemote(id string) bool {
	c, err := r.conn()
	if err != nil {
		return false
	}
	var n int
	err = c.Read.QueryRowContext(context.Background(), "SELECT count(*) FROM batches WHERE remote = ?", id).Scan(&n)
	return err == nil && n > 0
}
