package checkpoint

import (
	"bufio"
	"cmp"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/steps"
)

// index finds the frames of finished rows. Of segment 0, which has most rows, it
// has pages of offsets.
type index struct {
	pages  map[int64]*page    // by row / pageRows
	more   map[int64][]int64  // the frames before the last, of rows that have several
	rows   int64              // the number of finished rows in segment 0
	failed map[int64]bool     // those of them that have failed
	later  map[Key]partialRow // the finished rows of later segments
}

// pageRows is the number of rows of a page.
const pageRows = 1024

// page has the offset of the last frame of each of its rows, 0 for a row that is
// not finished.
type page [pageRows]int64

func newIndex() index {
	return index{pages: map[int64]*page{}, more: map[int64][]int64{}, failed: map[int64]bool{}, later: map[Key]partialRow{}}
}

// partialRow is a row of which some results are known.
type partialRow struct {
	at     []int64 // the offsets of its frames
	failed bool    // one of its results has failed
}

// entry returns where the offset of a row is; nil if its page is missing.
func (x *index) entry(row int64) *int64 {
	if p := x.pages[row>>10]; p != nil {
		return &p[row&(pageRows-1)]
	}
	return nil
}

// frames returns the offsets of a row's frames; nil if it is not finished.
func (x *index) frames(key Key) []int64 {
	if key.Segment > 0 {
		return x.later[key].at
	}
	at := x.entry(key.Row)
	if at == nil || *at == 0 {
		return nil
	}
	return append(slices.Clone(x.more[key.Row]), *at)
}

// finish notes a finished row and replaces what was known of it.
func (x *index) finish(key Key, r partialRow) {
	if key.Segment > 0 {
		x.later[key] = r
		return
	}
	if x.pages[key.Row>>10] == nil {
		x.pages[key.Row>>10] = &page{}
	}
	at := x.entry(key.Row)
	if *at == 0 {
		x.rows++
	}
	last := len(r.at) - 1
	*at = r.at[last]
	delete(x.more, key.Row)
	delete(x.failed, key.Row)
	if last > 0 {
		x.more[key.Row] = r.at[:last]
	}
	if r.failed {
		x.failed[key.Row] = true
	}
}

// forgetFailed makes the rows that have failed unfinished.
func (x *index) forgetFailed() {
	for row := range x.failed {
		*x.entry(row) = 0
		x.rows--
	}
	clear(x.failed)
	for key, r := range x.later {
		if r.failed {
			delete(x.later, key)
		}
	}
}

// scan reads the whole file, and finds the end of the last frames that are complete: those with a
// seal after them.
func (j *Journal) scan() error {
	in := &frames{in: bufio.NewReaderSize(j.file, 256<<10), chain: j.chain}
	if err := in.checkFormat(); err != nil {
		return err
	}
	kind, body, err := in.next()
	if err != nil || kind != kindHeader {
		return &Error{Reason: "has no readable header; delete it to start over"}
	}
	if err := json.Unmarshal(body, &j.header); err != nil {
		return &Error{Reason: "has no readable header; delete it to start over", Err: err}
	}
	j.index = newIndex()
	return j.scanRows(in)
}

// scanRows reads the frames after the header.
func (j *Journal) scanRows(in *frames) error {
	open := map[Key]partialRow{} // rows that are not finished
	var waiting []savedResults   // without a seal yet
	for sealed := false; ; {
		at := in.at
		kind, body, err := in.next()
		switch {
		case errors.Is(err, errTruncated) && !sealed:
			return &Error{Reason: "has no readable header; delete it to start over"}
		case errors.Is(err, errTruncated):
			j.chain.reset() // what follows is removed
			return nil
		case err != nil:
			return err
		case kind == kindSeal:
			if !hmac.Equal(j.chain.seal(), body) {
				return j.unauthentic()
			}
			sealed, j.end = true, in.at
			j.index.addAll(waiting, open)
			waiting = waiting[:0]
		case kind == kindSession:
			waiting = append(waiting, savedResults{session: true})
		case kind == kindResults:
			r := savedResults{at: at}
			p := &reader{text: body}
			if r.key, r.flags = p.readKey(); p.bad {
				return &Error{Reason: "is damaged; delete it to start over"}
			}
			waiting = append(waiting, r)
		}
	}
}

// unauthentic returns the error for frames whose seal does not belong to the key.
func (j *Journal) unauthentic() error {
	reason := "was changed, or written by another user or on another computer, so that its rows are not used; delete it to start over"
	if j.header.Keyed {
		reason = "was not written with the key in " + filepath.Join(trust.StateFolder(), keyFile) +
			": it is of another user or computer, or was changed; use that key (QTYPE_HOME names its folder), or delete the file to start over"
	}
	return &Error{Reason: reason, Err: ErrUnauthentic}
}

// checkFormat reads the first line.
func (f *frames) checkFormat() error {
	first, err := f.in.Peek(len(magic) + 8)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	line, _, found := strings.Cut(string(first), "\n")
	version, ok := strings.CutPrefix(line, magic)
	n, err := strconv.Atoi(version)
	switch {
	case !found, !ok, err != nil:
		return &Error{Reason: "is not a journal of qtype"}
	case n != format:
		return &Error{Reason: fmt.Sprintf("has journal format %d, and this version of qtype reads format %d: "+
			"finish the run with the version that started it, or delete the file to start over", n, format)}
	}
	f.chain.add([]byte(line + "\n"))
	discarded, err := f.in.Discard(len(line) + 1)
	f.at = int64(discarded)
	return err
}

// savedResults is a frame of results.
type savedResults struct {
	at      int64
	key     Key
	flags   byte
	session bool // another process has opened the file; the other fields are zero
}

// addAll notes the frames that a seal has confirmed.
func (x *index) addAll(all []savedResults, open map[Key]partialRow) {
	for _, s := range all {
		if s.session {
			clear(open) // their rows start over
			continue
		}
		r := open[s.key]
		r.at, r.failed = append(r.at, s.at), r.failed || s.flags&flagFailed != 0
		if s.flags&flagLast == 0 {
			open[s.key] = r
			continue
		}
		delete(open, s.key)
		x.finish(s.key, r)
	}
}

// replay reads the results of finished rows, mostly in the order of the file.
type replay struct {
	file *os.File
	in   frames
}

func newReplay(path string) (*replay, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &replay{file: f, in: frames{in: bufio.NewReaderSize(f, 32<<10)}}, nil
}

// rows calls take for each row of the results at an offset.
func (r *replay) rows(at int64, take func(data []byte) error) error {
	if r.in.at != at {
		if _, err := r.file.Seek(at, io.SeekStart); err != nil {
			return err
		}
		r.in.in.Reset(r.file)
		r.in.at = at
	}
	_, body, err := r.in.next()
	if err != nil {
		return fmt.Errorf("finished rows cannot be read: %w", err)
	}
	p := &reader{text: body}
	p.readKey()
	for range p.uvarint() {
		data := p.bytes()
		if p.bad {
			return &Error{Reason: "is damaged; delete it to start over"}
		}
		if err := take(data); err != nil {
			return err
		}
	}
	return nil
}

// None is larger than the ordinal of any row.
const None = math.MaxInt64

// InflightRows records the results of rows at the end of a segment, and finishes
// each row as soon as the segment has nothing of it left. It is for one goroutine.
type InflightRows struct {
	segment *Segment
	rows    []inflightRow // not finished, in the order of their ordinals
	spare   []*Recorder
}

type inflightRow struct {
	ordinal  int64
	recorder *Recorder
}

// NewInflightRows returns the in-flight rows of a segment.
func (s *Segment) NewInflightRows() *InflightRows { return &InflightRows{segment: s} }

// Begin notes a row that enters the segment.
func (f *InflightRows) Begin(ordinal int64) {
	if len(f.spare) == 0 {
		f.spare = append(f.spare, f.segment.NewRecorder())
	}
	r := f.spare[len(f.spare)-1]
	f.spare = f.spare[:len(f.spare)-1]
	r.Begin(ordinal)
	f.rows = append(f.rows, inflightRow{ordinal, r})
}

// Record adds a result of a row. Rows that are not in flight are ignored: they
// were replayed.
func (f *InflightRows) Record(row *steps.Row) error {
	i, found := slices.BinarySearchFunc(f.rows, row.Ordinal, func(r inflightRow, ordinal int64) int {
		return cmp.Compare(r.ordinal, ordinal)
	})
	if !found {
		return nil
	}
	return f.rows[i].recorder.Add(row)
}

// FinishBefore finishes the rows before the given ordinal.
func (f *InflightRows) FinishBefore(ordinal int64) error {
	n := 0
	for ; n < len(f.rows) && f.rows[n].ordinal < ordinal; n++ {
		if err := f.rows[n].recorder.End(); err != nil {
			return err
		}
		f.spare = append(f.spare, f.rows[n].recorder)
	}
	f.rows = append(f.rows[:0], f.rows[n:]...)
	return nil
}
