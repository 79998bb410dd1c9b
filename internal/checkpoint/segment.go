package checkpoint

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"

	"github.com/qtype-dev/qtype/steps"
)

// Key identifies a row within a segment, the part of a flow between two batch
// steps.
type Key struct {
	Segment int      // the number of batch steps before it
	Row     int64    // the number of the input row, in segment 0
	Digest  [16]byte // a hash of what the row has, and of its occurrence number among equal rows, in later segments
}

// Row is one row at the end of a segment.
type Row struct {
	Data   []byte // the encoded row
	Failed bool   // the row has failed
}

// Store stores checkpoints. A Journal is a Store.
type Store interface {
	// Save adds results of the row with the key. With the last of them the row is
	// finished. Save must not retain the rows. Several goroutines may call it
	// concurrently; its error ends the run.
	Save(key Key, rows []Row, last bool) error
	// Load calls take for each result that the row with the key has from an earlier
	// run, and reports whether that row is finished. For each segment only one
	// goroutine calls it.
	Load(key Key, take func(data []byte) error) (found bool, err error)
}

// SegmentConfig describes the checkpoints of one segment of a run.
type SegmentConfig struct {
	Store   Store
	Number  int                       // the number of batch steps before the segment
	Inputs  []int                     // the slots that its steps or later ones read, which identify its rows
	Outputs []int                     // the slots that are read after it, which are saved
	Code    func(*steps.Error) string // returns the kind of a row's failure
	Redo    func(*steps.Error) bool   // reports whether a row that failed so is not finished; may be nil
	NewRow  func() *steps.Row         // returns a row whose values are unset
}

// Segment saves the results of the rows of a segment, and finds those of an earlier
// run. Replay is for one goroutine, each Recorder for another.
type Segment struct {
	cfg  SegmentConfig
	keys RowEncoder // of what a digest is made

	// The number of rows with each digest: of those made of several input rows, and
	// of those made of the newest input row.
	total, current map[Key]int
	number         int64 // the newest input row

	replaying struct { // the row of Replay
		row  *steps.Row
		from RowDecoder
		push steps.Emit
	}
	take func(data []byte) error // takeSaved

	mu      sync.Mutex
	pending map[int64]Key // the keys of the rows in the segment, by their ordinals
}

// NewSegment returns the checkpoints of a segment.
func NewSegment(cfg SegmentConfig) *Segment {
	s := &Segment{
		cfg: cfg, keys: RowEncoder{Slots: cfg.Inputs, Code: cfg.Code, Anonymous: true},
		total: map[Key]int{}, current: map[Key]int{}, pending: map[int64]Key{},
	}
	s.take = s.takeSaved // once, as most rows of a run have nothing to take
	return s
}

// Replay passes the results that a row has from an earlier run to push. If the row is
// not finished, Replay notes its key for the recorder that receives its results.
func (s *Segment) Replay(row *steps.Row, push steps.Emit) (found bool, err error) {
	key := s.key(row)
	s.replaying.row, s.replaying.from, s.replaying.push = row, RowDecoder{Slots: s.cfg.Outputs}, push
	found, err = s.cfg.Store.Load(key, s.take)
	if !found && err == nil {
		s.mu.Lock()
		s.pending[row.Ordinal] = key
		s.mu.Unlock()
	}
	return found, err
}

// takeSaved passes on one result of the row of Replay.
func (s *Segment) takeSaved(data []byte) error {
	saved := s.cfg.NewRow()
	if err := s.replaying.from.Decode(data, saved); err != nil {
		return err
	}
	saved.Ordinal, saved.Replayed = s.replaying.row.Ordinal, true
	return s.replaying.push(saved)
}

// key identifies a row. In later segments a row is identified by what it has:
// its position may differ in another run, because failed rows are retried or
// batches end by time.
func (s *Segment) key(row *steps.Row) Key {
	if s.cfg.Number == 0 {
		return Key{Row: row.Number}
	}
	s.keys.Reset()
	key := Key{Segment: s.cfg.Number}
	sum := sha256.Sum256(s.keys.Append(nil, row))
	copy(key.Digest[:], sum[:])
	counts := s.total
	if row.Number > 0 {
		if counts = s.current; row.Number != s.number { // the rows of one input row follow each other
			s.number = row.Number
			clear(s.current)
		}
	}
	n := counts[key]
	counts[key] = n + 1
	for i := range 8 {
		key.Digest[i] ^= byte(n >> (8 * i))
	}
	return key
}

// takePending removes and returns the key of a row.
func (s *Segment) takePending(ordinal int64) (Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, ok := s.pending[ordinal]
	delete(s.pending, ordinal)
	return key, ok
}

// NewRecorder returns a Recorder, which serves one goroutine.
func (s *Segment) NewRecorder() *Recorder {
	return &Recorder{segment: s, rows: RowEncoder{Slots: s.cfg.Outputs, Code: s.cfg.Code}}
}

// maxBuffered is the number of results of one row that are saved together.
const maxBuffered = 1024

// Recorder saves the results of rows, one row after the other.
type Recorder struct {
	segment *Segment
	key     Key
	skip    bool // nothing is saved of this row
	rows    RowEncoder
	made    []Row
	text    []byte
}

// Begin starts with the results of the row with this ordinal.
func (r *Recorder) Begin(ordinal int64) {
	key, ok := r.segment.takePending(ordinal)
	r.key, r.skip = key, !ok
	r.made, r.text = r.made[:0], r.text[:0]
	r.rows.Reset()
}

// Add adds a result before it leaves the segment.
func (r *Recorder) Add(row *steps.Row) error {
	if redo := r.segment.cfg.Redo; row.Err != nil && redo != nil && redo(row.Err) {
		r.skip = true
	}
	if r.skip {
		return nil
	}
	if len(r.made) >= maxBuffered {
		if err := r.segment.cfg.Store.Save(r.key, r.made, false); err != nil {
			return err
		}
		r.made, r.text = r.made[:0], r.text[:0]
	}
	start := len(r.text)
	r.text = r.rows.Append(r.text, row)
	r.made = append(r.made, Row{Data: r.text[start:], Failed: row.Err != nil})
	return nil
}

// End finishes the row: all its results were added.
func (r *Recorder) End() error {
	if r.skip {
		return nil
	}
	return r.segment.cfg.Store.Save(r.key, r.made, true)
}

// chain authenticates the frames of a journal: a seal is the HMAC of all bytes since the last
// one and of that one, so that frames cannot be made, changed, moved or removed without the key, except at
// the end. Without a key it only finds damage.
type chain struct {
	mac  hash.Hash
	last []byte // the last seal; nil at the beginning of the file
}

func newChain(key []byte) *chain { return &chain{mac: hmac.New(sha256.New, key)} }

// add adds bytes of the file.
func (c *chain) add(b []byte) { _, _ = c.mac.Write(b) } // never returns an error

// seal ends a part of the file and returns its seal.
func (c *chain) seal() []byte {
	c.add(c.last)
	c.last = c.mac.Sum(nil)
	c.mac.Reset()
	return c.last
}

// appendSealed appends frames and the frame with their seal to b.
func (c *chain) appendSealed(b, frames []byte) []byte {
	c.add(frames)
	return append(append(b, frames...), frame(kindSeal, c.seal())...)
}

// reset forgets what was added since the last seal.
func (c *chain) reset() { c.mac.Reset() }
