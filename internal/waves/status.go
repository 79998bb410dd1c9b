package waves

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"
)

// Suffix ends the name of the file of a run's calls, beside the output.
const Suffix = ".qtype-batches"

// Files returns the files of a run's calls, which may not exist.
func Files(output string) []string {
	return []string{output + Suffix, output + Suffix + "-wal", output + Suffix + "-shm"}
}

// Status is how far the batches of a run are.
type Status struct {
	Wave     int64       `json:"wave"`              // the newest one, from 1
	Batches  int         `json:"batches"`           // of all waves
	Open     []OpenBatch `json:"open,omitempty"`    // those that have not ended, the oldest first
	Expected time.Time   `json:"expected,omitzero"` // when the open ones end, by those that have ended; zero if none has
}

// OpenBatch is a batch that has not ended.
type OpenBatch struct {
	ID    string    `json:"id,omitempty"`    // the provider's; empty before it is known
	Model string    `json:"model"`           // the id of the model
	State string    `json:"state,omitempty"` // the provider's word
	Calls int       `json:"calls"`
	Since time.Time `json:"since"` // when it was planned
}

// Waiting returns the number of calls that wait for a batch.
func (s *Status) Waiting() (calls int) {
	for i := range s.Open {
		calls += s.Open[i].Calls
	}
	return calls
}

// Status returns how far the batches are.
func (r *Run) Status(ctx context.Context) (s Status, err error) {
	c, err := r.conn()
	if err != nil {
		return s, err
	}
	if err := c.Read.QueryRowContext(ctx, "SELECT coalesce(max(wave), 0), count(*) FROM batches").Scan(&s.Wave, &s.Batches); err != nil {
		return s, r.storeError(err)
	}
	open, err := r.live()
	if err != nil || len(open) == 0 {
		return s, err
	}
	for _, b := range open {
		s.Open = append(s.Open, OpenBatch{b.remote, b.model, b.state, b.count, b.since})
	}
	usual, err := usualTime(ctx, c.Read)
	if usual > 0 {
		s.Expected = s.Open[len(s.Open)-1].Since.Add(usual)
	}
	return s, r.storeError(err)
}

// usualTime returns how long batches have taken, as the median of the newest; 0 if none has ended.
func usualTime(ctx context.Context, db *sql.DB) (time.Duration, error) {
	rows, err := db.QueryContext(ctx, "SELECT ended - since FROM batches WHERE ended > 0 ORDER BY id DESC LIMIT 20")
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }() // only read
	var all []int64
	for rows.Next() {
		var took int64
		if err := rows.Scan(&took); err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	if len(all) == 0 {
		return 0, rows.Err()
	}
	slices.SortFunc(all, cmp.Compare)
	return time.Duration(all[len(all)/2]) * time.Millisecond, rows.Err()
}

// Inspect returns the status of the run with an output; nil if it has no batches.
func Inspect(ctx context.Context, output string) (*Status, error) {
	r := New(output + Suffix)
	if !r.Exists() {
		return nil, nil
	}
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	return &s, r.Close()
}
