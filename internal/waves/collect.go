package waves

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

type callSeq = iter.Seq2[wire.BatchCall, error]

// headOf decodes the headers of a group.
func headOf(text string) (h http.Header) {
	_ = json.Unmarshal([]byte(text), &h) // was encoded by RoundTrip
	return h
}

const (
	// maxTries is how often a call is sent that a batch has not made, or that has failed for a time.
	maxTries = 3
	// maxReads is how often the results of a batch are read if some are missing.
	maxReads = 5
	// takeSize is the number of results that are stored together.
	takeSize = 500
	// holdTime is how long no batch is created after the provider has refused one because it has too many.
	holdTime = time.Minute
)

// passes reports whether a status is that of an error which passes, or of a call that was not made.
func passes(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status < 100 || status >= 500
}

// collect stores the results of a batch that has ended. Its calls without one are sent again,
// but not before the results are complete, or were read maxReads times: what is missing was paid for. The error says
// that somebody has canceled the batch: the calls are sent again when the run is continued.
func (r *Run) collect(ctx context.Context, b *batch, api *modelBatches, state wire.BatchState) error {
	var results []wire.BatchResult
	ignored, count := 0, 0
	store := func() error {
		n, err := r.take(b, results)
		ignored += n
		results = results[:0]
		return err
	}
	var stored error
	err := api.Results(ctx, b.remote, func(res wire.BatchResult) error {
		if res.Status > 0 { // it was made
			count++
		}
		if results = append(results, res); len(results) >= takeSize {
			stored = store()
		}
		return stored
	})
	if stored == nil {
		stored = store()
	}
	if stored != nil {
		return stored
	}
	switch {
	case isGone(err):
		return r.gone(ctx, b, api, err)
	case err != nil:
		return r.passing(ctx, b, err)
	}
	if count < state.Made && r.countOne(api.short, b) < maxReads {
		r.report("wave %d: batch %s has %d of %s; reading them again", b.wave, b.remote, count, textfmt.Count(int64(state.Made), "result"))
		return nil
	}
	if state.Canceled && !b.canceled && r.shared != nil {
		return r.failAll(b, http.StatusBadRequest, "the batch was canceled at the provider")
	}
	again, err := r.end(b, `{"error":{"message":"the batch has no result of the call","type":"batch_result_missing"}}`)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.counts.Repeated, r.counts.Ignored = r.counts.Repeated+again, r.counts.Ignored+ignored
	r.mu.Unlock()
	line, what := "wave %d: batch %s is %s: %s", "answered"
	args := []any{b.wave, b.remote, b.state, textfmt.Count(int64(b.count-again), "answer")}
	if again > 0 {
		line, args = line+", %s again", append(args, textfmt.Count(int64(again), "call"))
		what = b.state + ", to be sent again"
	}
	r.reportBatch(b, what, line, args...)
	_ = api.Delete(ctx, b.remote) // otherwise the provider does after some days
	if state.Canceled && again > 0 && !b.canceled {
		return fmt.Errorf("wave %d: batch %s was canceled at the provider: %s left, to be sent again when the run is continued", b.wave, b.remote, textfmt.Count(int64(again), "call"))
	}
	return nil
}

// take stores results, and returns how many are of no call of the batch. The first result of a call counts.
func (r *Run) take(b *batch, results []wire.BatchResult) (ignored int, err error) {
	if len(results) == 0 {
		return 0, nil
	}
	err = r.change(func(tx *transaction) error {
		ignored = 0
		for _, res := range results {
			if passes(res.Status) && !r.isLast(tx.Tx, res.ID) { // end sends it again
				continue
			}
			status, body := res.Status, res.Body
			if status < 100 {
				status, body = http.StatusServiceUnavailable, []byte(`{"error":{"message":"no batch has made the call","type":"batch_expired"}}`)
			}
			done, err := tx.ExecContext(context.Background(), "UPDATE calls SET status = ?, answer = ?, body = NULL WHERE id = ? AND batch = ? AND status = 0", status, body, res.ID, b.id)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil || n > 0 {
				continue
			}
			var known bool
			if err := tx.QueryRowContext(context.Background(), "SELECT EXISTS (SELECT 1 FROM calls WHERE id = ? AND batch = ?)", res.ID, b.id).Scan(&known); err != nil {
				return err
			}
			if !known {
				ignored++
			}
		}
		return nil
	})
	return ignored, err
}

// isLast reports whether a call was sent as often as it may be.
func (r *Run) isLast(tx *sql.Tx, id string) bool {
	var tries int
	err := tx.QueryRowContext(context.Background(), "SELECT tries FROM calls WHERE id = ?", id).Scan(&tries)
	return errors.Is(err, sql.ErrNoRows) || tries >= maxTries
}

// end ends a batch. Calls without an answer are sent again, unless they were sent as often as they may be: then
// message is their answer.
func (r *Run) end(b *batch, message string) (again int, err error) {
	r.ended.Add(1)
	err = r.change(func(tx *transaction) error {
		_, err := tx.ExecContext(context.Background(), "DELETE FROM calls WHERE batch = ? AND dropped = 1", b.id)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(context.Background(), "UPDATE calls SET status = ?, answer = ?, body = NULL WHERE batch = ? AND status = 0 AND tries >= ?", http.StatusServiceUnavailable, message, b.id, maxTries)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(context.Background(), "UPDATE calls SET batch = NULL WHERE batch = ? AND status = 0", b.id)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		again = int(n)
		if err == nil {
			_, err = tx.ExecContext(context.Background(), "UPDATE batches SET done = 1, state = ?, ended = ? WHERE id = ?", b.state, time.Now().UnixMilli(), b.id)
		}
		return err
	})
	return again, err
}

// The states of batches that the provider has refused as a whole, instead of its word.
const (
	stateFull    = "full"    // it has too many calls waiting, or the batch is too large
	stateRefused = "refused" // for another reason, which is that of no call
)

// refusedError reports a provider that refuses batches of a model, whatever their calls are.
type refusedError struct{ model, message string }

// Error says what the provider says.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the provider refuses batches of model %s: %s; --resume sends the calls again, and with --finish-after 1s makes them at once", e.model, e.message)
}

// refused ends a batch that the provider has refused as a whole, or not created. It costs nothing. Calls that the
// provider names have failed, and the others are sent again: in smaller batches if it names none, until one of a single
// call is refused, which then is the reason if the provider has made other batches of the model.
func (r *Run) refused(b *batch, api *modelBatches, why *wire.BatchFailed) error {
	most, failed := max(b.count/2, 1), 0
	var refuses bool // the provider refuses batches of the model
	if b.state = stateRefused; why.Full {
		b.state = stateFull
		r.hold(b, api, most)
	}
	message, _ := json.Marshal(map[string]any{"error": map[string]string{"message": why.Message, "type": "invalid_request_error"}}) // texts always encode
	err := r.change(func(tx *transaction) (err error) {
		if failed, err = failNamed(tx, b, why.Lines); err != nil {
			return err
		}
		if api.limits.Least > 1 && b.count < 2*api.limits.Least && failed == 0 && !why.Full { // it cannot be divided
			refuses = true
		} else if isReason := b.count == 1 && failed == 0 && !why.Full; isReason {
			accepts, _, err := history(tx.Tx, b.model, b.single)
			if refuses = !accepts; err != nil {
				return err
			}
			if accepts {
				failed = 1
				return failCalls(tx, b, http.StatusBadRequest, why.Message)
			}
		}
		if refuses && r.shared != nil { // other runs go on
			return failCalls(tx, b, http.StatusBadRequest, "the provider refuses batches of the model: "+why.Message)
		}
		if failed > 0 {
			most, b.state = b.count, "failed"
		}
		_, err = tx.ExecContext(context.Background(), "UPDATE calls SET tries = 1, most = ? WHERE batch = ? AND status = 0", most, b.id) // they were not made
		return err
	})
	if err != nil {
		return err
	}
	again, err := r.end(b, string(message))
	switch {
	case err != nil:
		return err
	case refuses && !b.canceled && r.shared == nil:
		return &refusedError{b.model, why.Message}
	}
	r.reportBatch(b, "refused: "+why.Message, "wave %d: batch %s was refused: %s; %s again", b.wave, cmp.Or(b.remote, "of "+textfmt.Count(int64(b.count), "call")), why.Message, textfmt.Count(int64(again), "call"))
	return nil
}

// hold lets the next batches of a model, of at most so many calls, wait after the provider had no room for one that it had created.
// Otherwise the batch was too large, also for an idle provider.
func (r *Run) hold(b *batch, api *modelBatches, most int) {
	if b.remote == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	api.hold, api.limits.Calls = time.Now().Add(min(holdTime, 4*r.Poll(20))), most
}

// failCalls fails the calls of a batch that have no answer.
func failCalls(tx *transaction, b *batch, status int, message string) error {
	answer, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message, "type": "invalid_request_error"}}) // texts always encode
	_, err := tx.ExecContext(context.Background(), "UPDATE calls SET status = ?, answer = ?, body = NULL WHERE batch = ? AND status = 0", status, answer, b.id)
	return err
}

// failNamed fails the calls of a batch for which the provider has refused it, and returns how many these are.
func failNamed(tx *transaction, b *batch, lines map[int]string) (failed int, err error) {
	for line, text := range lines {
		message, _ := json.Marshal(map[string]any{"error": map[string]string{"message": text, "type": "invalid_request_error"}}) // texts always encode
		done, err := tx.ExecContext(context.Background(), "UPDATE calls SET status = 400, answer = ?, body = NULL WHERE number = (SELECT number FROM calls WHERE batch = ? ORDER BY number LIMIT 1 OFFSET ?)", message, b.id, line-1)
		if err != nil {
			return 0, err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return 0, err
		}
		failed += int(n)
	}
	return failed, nil
}
