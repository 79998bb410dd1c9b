// Package checkpoint records the progress of long runs, so that a run that was
// interrupted can be resumed without repeating finished rows.
//
// A flow is divided into segments by its batch steps, whose results belong to no
// single row. At the end of each segment a Recorder saves the results of each row in
// a Store; a resumed run takes them from there with Segment.Replay.
//
// A Journal is a Store in one file, to which frames are only appended. A row is
// finished when the frame with its last results is complete in the file. Nothing
// else marks it, so results and mark cannot get separated. Frames reach the
// operating system within milliseconds and survive the end of the process from
// then on; they reach the disk within a fraction of a second (see Journal.Sync).
//
// The package has the only encoding of rows and values (RowEncoder) and the only
// fingerprint of declarations (Fingerprint); the step cache uses both.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// flushAfter is how long a finished row waits in memory for others that are
	// written with it.
	flushAfter = time.Millisecond
	// flushPause is the time after a write in which rows wait. Rows that are
	// finished less often are written immediately.
	flushPause = 200 * time.Microsecond
	// flushBytes is the size of waiting rows that are written immediately.
	flushBytes = 64 << 10
	// syncAfter is how long written rows wait until they are synced to the disk. It
	// limits what a power failure costs.
	syncAfter = 200 * time.Millisecond
)

// Journal is the checkpoint file of one run. Save is safe for concurrent use, Load is
// for one goroutine for each segment; all other methods are for one goroutine.
type Journal struct {
	path   string
	header Header
	file   *os.File
	chain  *chain
	index  index // the rows that were finished when the file was opened
	end    int64 // where the frames ended when it was opened

	mu      sync.Mutex
	buf     []byte      // frames that are not written
	written time.Time   // the time of the last write
	flusher *time.Timer // writes the frames; nil if none is due
	syncer  *time.Timer // syncs the file; nil if none is due
	syncing sync.WaitGroup
	closed  bool
	err     error // the first error of a write, which all later calls return

	replayMu sync.Mutex
	replays  map[int]*replay // by segment
}

// Error reports why a journal cannot be used.
type Error struct {
	Path   string // the file
	Reason string // one line
	Err    error  // the cause, or nil
}

// Error returns the file and the reason.
func (e *Error) Error() string { return e.Path + ": " + e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrBusy reports that another process is writing the journal.
var ErrBusy = errors.New("another run is writing it")

// ErrUnauthentic reports that a journal was not written with the key, or was changed.
var ErrUnauthentic = errors.New("not written with the key")

// Create creates a journal, or replaces the one at path. Its frames are authenticated by key,
// see UserKey; without one, they are only protected against damage.
func Create(path string, h Header, key []byte) (*Journal, error) {
	f, err := openRegular(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, wrapError(path, err)
	}
	h.Keyed = key != nil
	j := &Journal{path: path, header: h, file: f, index: newIndex(), chain: newChain(key)}
	if err := j.writeHeader(); err != nil {
		if !errors.Is(err, ErrBusy) {
			_ = os.Remove(path) // a later run would find half a journal
		}
		_ = f.Close() // the first error matters
		return nil, wrapError(path, err)
	}
	return j, nil
}

func (j *Journal) writeHeader() error {
	if err := lock(j.file); err != nil {
		return err
	}
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	text, err := json.Marshal(j.header)
	if err != nil {
		return err
	}
	first := j.chain.appendSealed(nil, append(fmt.Appendf(nil, "%s%d\n", magic, format), frame(kindHeader, text)...))
	if _, err := j.file.Write(first); err != nil {
		return err
	}
	j.end = int64(len(first))
	return j.file.Sync()
}

// Open opens a journal to resume its run. What was not written completely at the end is
// removed. The error is an *Error. It wraps os.ErrNotExist if there is no journal, or an empty one,
// ErrBusy if another process is writing it, and ErrUnauthentic if it was not written with this key.
func Open(path string, key []byte) (*Journal, error) {
	f, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return nil, wrapError(path, err)
	}
	j := &Journal{path: path, file: f, chain: newChain(key)}
	if err := j.openSession(); err != nil {
		_ = f.Close() // the first error matters
		return nil, wrapError(path, err)
	}
	return j, nil
}

func (j *Journal) openSession() error {
	if err := lock(j.file); err != nil {
		return err
	}
	if info, err := j.file.Stat(); err == nil && info.Size() == 0 {
		return os.ErrNotExist // the process was stopped before it wrote something
	}
	if err := j.scan(); err != nil {
		return err
	}
	if err := j.file.Truncate(j.end); err != nil {
		return err
	}
	if _, err := j.file.Seek(j.end, io.SeekStart); err != nil {
		return err
	}
	_, err := j.file.Write(j.chain.appendSealed(nil, frame(kindSession, nil)))
	return err
}

// wrapError makes an *Error with the path of the file.
func wrapError(path string, err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		known.Path = path
		return known
	}
	reason := err.Error()
	perr, _ := errors.AsType[*os.PathError](err)
	switch {
	case errors.Is(err, os.ErrNotExist):
		reason = "no such file"
	case perr != nil && (perr.Op == "write" || perr.Op == "sync"):
		reason = "cannot be written: " + perr.Err.Error()
	case perr != nil:
		reason = "cannot be used: " + perr.Err.Error()
	}
	return &Error{Path: path, Reason: reason, Err: err}
}

// Header returns the description of the run.
func (j *Journal) Header() Header { return j.header }

// Path returns the path of the file.
func (j *Journal) Path() string { return j.path }

// Save adds results of a row; see Store.
func (j *Journal) Save(key Key, rows []Row, last bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil || j.closed {
		return j.err
	}
	var err error
	if j.buf, err = appendResults(j.buf, key, rows, last); err != nil {
		return wrapError(j.path, err)
	}
	if now := time.Now(); len(j.buf) >= flushBytes || now.Sub(j.written) >= flushPause {
		return j.flush(now)
	}
	if j.flusher == nil {
		j.flusher = time.AfterFunc(flushAfter, j.flushLate)
	}
	return nil
}

// flushLate writes the frames that wait.
func (j *Journal) flushLate() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flusher = nil
	if !j.closed {
		_ = j.flush(time.Now()) // the next Save returns the error
	}
}

func (j *Journal) flush(now time.Time) error {
	if j.err != nil || len(j.buf) == 0 {
		return j.err
	}
	j.written = now
	j.chain.add(j.buf)
	j.buf = append(j.buf, frame(kindSeal, j.chain.seal())...)
	_, err := j.file.Write(j.buf)
	j.buf = j.buf[:0]
	if err != nil {
		j.err = wrapError(j.path, err)
		return j.err
	}
	if j.syncer == nil {
		j.syncing.Add(1)
		j.syncer = time.AfterFunc(syncAfter, j.syncLate)
	}
	return nil
}

// syncLate syncs the file without holding up Save.
func (j *Journal) syncLate() {
	defer j.syncing.Done()
	j.mu.Lock()
	j.syncer = nil
	j.mu.Unlock()
	if err := j.file.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.err == nil && !j.closed {
			j.err = wrapError(j.path, err)
		}
	}
}

// Sync writes everything and syncs the file to the disk.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.flush(time.Now()); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		j.err = wrapError(j.path, err)
	}
	return j.err
}

// Rows returns the number of input rows that were finished when the journal was
// opened, and how many of them have failed.
func (j *Journal) Rows() (finished, failed int64) {
	return j.index.rows, int64(len(j.index.failed))
}

// Empty reports whether no row was finished when the journal was opened.
func (j *Journal) Empty() bool { return j.index.rows == 0 && len(j.index.later) == 0 }

// ForgetFailed makes the rows that have failed unfinished, so that they are retried.
func (j *Journal) ForgetFailed() { j.index.forgetFailed() }

// Load reads the results that a row had when the journal was opened; see Store.
func (j *Journal) Load(key Key, take func(data []byte) error) (found bool, err error) {
	offsets := j.index.frames(key)
	if offsets == nil {
		return false, nil
	}
	from, err := j.replay(key.Segment)
	if err != nil {
		return true, wrapError(j.path, err)
	}
	var stopped error // an error of take, which is returned as it is
	for _, at := range offsets {
		err := from.rows(at, func(data []byte) error {
			stopped = take(data)
			return stopped
		})
		if stopped != nil {
			return true, stopped
		}
		if err != nil {
			return true, wrapError(j.path, err)
		}
	}
	return true, nil
}

// replay returns the reader of a segment's rows. Each segment has its own: its
// rows are in the file in about the order in which they are loaded.
func (j *Journal) replay(segment int) (*replay, error) {
	j.replayMu.Lock()
	defer j.replayMu.Unlock()
	if r := j.replays[segment]; r != nil {
		return r, nil
	}
	r, err := newReplay(j.path)
	if err != nil {
		return nil, err
	}
	if j.replays == nil {
		j.replays = map[int]*replay{}
	}
	j.replays[segment] = r
	return r, nil
}

// Close closes the journal, from which its run can be resumed.
func (j *Journal) Close() error {
	err := j.Sync()
	j.stop()
	return errors.Join(err, j.file.Close())
}

// Remove deletes the journal of a run that is complete. The file stays locked until it is
// deleted, where the system deletes open files.
func (j *Journal) Remove() error {
	j.stop()
	err := removeLocked(j.file)
	if closed := j.file.Close(); !errors.Is(closed, os.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// stop ends the work in the background and closes the readers.
func (j *Journal) stop() {
	j.mu.Lock()
	j.closed = true
	if j.flusher != nil {
		j.flusher.Stop()
	}
	if j.syncer != nil && j.syncer.Stop() {
		j.syncing.Done()
	}
	j.mu.Unlock()
	j.syncing.Wait()
	for _, r := range j.replays {
		_ = r.file.Close() // only read
	}
}
