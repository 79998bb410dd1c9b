// Package journal keeps what a long run has finished, so that a run that was
// interrupted can go on where it was: which rows of the input are done and what
// became of them.
//
// A journal is one file that is only ever added to. A row is finished when the
// frame with all of its results is whole in the file; there is no other mark,
// so a result can be lost only together with the mark that would have kept the
// row from being done again. Frames reach the operating system within
// milliseconds, and survive the end of the process from then on; they reach the
// disk within a fraction of a second (see Sync).
package journal

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// flushAfter is how long a finished row may wait in this process's memory
	// for others that are given to the operating system with it.
	flushAfter = time.Millisecond
	// flushPause is how soon after one time rows are given to the system again:
	// what is finished more slowly than that does not wait.
	flushPause = 200 * time.Microsecond
	// flushBytes is how many bytes of them may.
	flushBytes = 64 << 10
	// syncAfter is how long what was written may wait for the disk: it bounds
	// what a power failure costs.
	syncAfter = 200 * time.Millisecond
)

// Result is one row that came out of the run.
type Result struct {
	Values  []any    // the cells of the output: nil, string, int64, float64, bool, []byte or json.RawMessage
	Failure *Failure // why the row failed, nil where it did not
}

// BatchKey names a row that was made of several rows of the input.
type BatchKey struct {
	Leg    int      // how many steps that make such rows are in front
	Digest [16]byte // what the row holds
}

// Failure tells why a row failed.
type Failure struct {
	Step    string // the way to the step, empty for a row that could not be read
	Code    string // the kind of failure
	Message string // the whole error, as a person reads it
}

// Journal is the journal of one run. Add and AddGroup may be called by several
// goroutines at once; everything else is for one.
type Journal struct {
	path   string
	header Header
	file   *os.File
	index  index
	end    int64 // where the frames end that were there when it was opened

	mu      sync.Mutex
	buf     []byte      // frames that the operating system does not have
	written time.Time   // when it was last given some
	flusher *time.Timer // gives it the rest; nil where none is under way
	syncer  *time.Timer // brings it to the disk; nil where none is under way
	syncing sync.WaitGroup
	closed  bool
	err     error // the first failure to write; all that follows fails with it
}

// Error says why a journal cannot be used.
type Error struct {
	Path   string // the file
	Reason string // what is wrong, in a user's words
	Err    error  // what lies below, where there is something
}

// Error is "file: reason".
func (e *Error) Error() string { return e.Path + ": " + e.Reason }

// Unwrap is what lies below.
func (e *Error) Unwrap() error { return e.Err }

// ErrBusy says that another process writes the journal.
var ErrBusy = errors.New("another run is writing it")

// Create begins a journal; one that is there is replaced.
func Create(path string, h Header) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault(path, err)
	}
	j := &Journal{path: path, header: h, file: f}
	if err := j.begin(h); err != nil {
		_ = f.Close() // it was not written to
		return nil, err
	}
	return j, nil
}

func (j *Journal) begin(h Header) error {
	if err := lock(j.file); err != nil {
		return fault(j.path, err)
	}
	if err := j.file.Truncate(0); err != nil {
		return fault(j.path, err)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return fault(j.path, err)
	}
	first := append([]byte(magic), frame(kindHeader, text)...)
	if _, err := j.file.Write(first); err != nil {
		return fault(j.path, err)
	}
	if err := j.file.Sync(); err != nil {
		return fault(j.path, err)
	}
	j.end = int64(len(first))
	j.index.first = h.Offset + 1
	return nil
}

// Open opens a journal to go on with it. What the last process had not written
// to its end is cut off. The error is an *Error; os.ErrNotExist is below it
// where there is no journal, ErrBusy where another process writes it.
func Open(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fault(path, err)
	}
	j := &Journal{path: path, file: f}
	if err := j.resume(); err != nil {
		_ = f.Close() // it was not written to
		return nil, fault(path, err)
	}
	return j, nil
}

func (j *Journal) resume() error {
	if err := lock(j.file); err != nil {
		return err
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
	_, err := j.file.Write(frame(kindSession, nil))
	return err
}

// fault names the file and says what is wrong in a user's words.
func fault(path string, err error) error {
	var known *Error
	if errors.As(err, &known) {
		known.Path = path
		return known
	}
	reason := err.Error()
	var perr *os.PathError
	switch {
	case errors.Is(err, os.ErrNotExist):
		reason = "no such file"
	case errors.As(err, &perr) && (perr.Op == "write" || perr.Op == "sync"):
		reason = "cannot be written: " + perr.Err.Error()
	case errors.As(err, &perr):
		reason = "cannot be used: " + perr.Err.Error()
	}
	return &Error{Path: path, Reason: reason, Err: err}
}

// Header is what the run is of.
func (j *Journal) Header() Header { return j.header }

// Path is the file.
func (j *Journal) Path() string { return j.path }

// Add keeps results of a row of the input; last says that they are all, and so
// that the row is finished. Nothing is known of a row before its last results.
func (j *Journal) Add(row int64, results []Result, last bool) error {
	return j.add(func(b []byte) []byte { return appendRow(b, row) }, results, last)
}

// AddGroup keeps results of a group, as Add does those of a row.
func (j *Journal) AddGroup(g BatchKey, results []Result, last bool) error {
	return j.add(func(b []byte) []byte { return appendGroup(b, g) }, results, last)
}

// add keeps results of what begin names.
func (j *Journal) add(begin func([]byte) []byte, results []Result, last bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil || j.closed {
		return j.err
	}
	start := len(j.buf)
	j.buf = append(j.buf, make([]byte, frameHead)...)
	var err error
	if j.buf, err = appendResults(begin(j.buf), start+frameHead, results, last); err != nil {
		j.buf = j.buf[:start]
		return fault(j.path, err)
	}
	seal(j.buf[start:])
	if now := time.Now(); len(j.buf) >= flushBytes || now.Sub(j.written) >= flushPause {
		return j.flush(now)
	}
	if j.flusher == nil {
		j.flusher = time.AfterFunc(flushAfter, j.flushLate)
	}
	return nil
}

// flushLate gives the operating system what waits.
func (j *Journal) flushLate() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flusher = nil
	if !j.closed {
		_ = j.flush(time.Now()) // kept in err for the next Add
	}
}

func (j *Journal) flush(now time.Time) error {
	if j.err != nil || len(j.buf) == 0 {
		return j.err
	}
	j.written = now
	_, err := j.file.Write(j.buf)
	j.buf = j.buf[:0]
	if err != nil {
		j.err = fault(j.path, err)
		return j.err
	}
	if j.syncer == nil {
		j.syncing.Add(1)
		j.syncer = time.AfterFunc(syncAfter, j.syncLate)
	}
	return nil
}

// syncLate brings what was written to the disk while rows go on.
func (j *Journal) syncLate() {
	defer j.syncing.Done()
	j.mu.Lock()
	j.syncer = nil
	j.mu.Unlock()
	if err := j.file.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.err == nil && !j.closed {
			j.err = fault(j.path, err)
		}
	}
}

// Sync brings everything to the disk now.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.flush(time.Now()); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		j.err = fault(j.path, err)
	}
	return j.err
}

// Close keeps the journal for another run.
func (j *Journal) Close() error {
	err := j.Sync()
	j.fail()
	return errors.Join(err, j.file.Close())
}

// Remove takes the journal away: the run is done.
func (j *Journal) Remove() error {
	j.fail()
	err := os.Remove(j.path)
	return errors.Join(err, j.file.Close())
}

// fail ends what goes on in the background.
func (j *Journal) fail() {
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
}
