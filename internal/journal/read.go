package journal

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
)

// index tells where the frames of each finished row stand.
type index struct {
	first  int64                    // the first row of the run
	at     []int64                  // by row: where its last frame stands, 0 where it is not finished
	more   map[int64][]int64        // the frames before the last, of rows that have several
	rows   int64                    // how many are finished
	failed map[int64]bool           // those of them that failed
	groups map[BatchKey]*partialRow // the finished groups
}

// scan reads the whole file and finds the end of what is sound.
func (j *Journal) scan() error {
	in := &frames{in: bufio.NewReaderSize(j.file, 256<<10)}
	mark := make([]byte, len(magic))
	if _, err := io.ReadFull(in.in, mark); err != nil || string(mark) != magic {
		return &Error{Reason: "is not a journal of qtype"}
	}
	in.at = int64(len(magic))
	kind, text, err := in.next()
	if err != nil || kind != kindHeader {
		return &Error{Reason: "has no header that can be read; delete it and begin again"}
	}
	if err := json.Unmarshal(text, &j.header); err != nil {
		return &Error{Reason: "has a header of another version of qtype; delete it and begin again", Err: err}
	}
	j.index = index{first: j.header.Offset + 1, more: map[int64][]int64{}, failed: map[int64]bool{}, groups: map[BatchKey]*partialRow{}}
	open, openGroups := map[int64]*partialRow{}, map[BatchKey]*partialRow{}
	for {
		at := in.at
		j.end = at
		kind, text, err := in.next()
		switch {
		case errors.Is(err, errTruncated):
			return nil
		case err != nil:
			return err
		case kind == kindSession:
			clear(open) // they are begun again
			clear(openGroups)
		case kind == kindResults:
			if err := j.index.add(at, text, open); err != nil {
				return err
			}
		case kind == kindGroup:
			if err := j.index.addGroup(at, text, openGroups); err != nil {
				return err
			}
		}
	}
}

// partialRow is a row or a group of which some results are known.
type partialRow struct {
	at     []int64 // its frames
	failed bool    // one of the results failed
}

// add takes note of a frame of results.
func (x *index) add(at int64, text []byte, open map[int64]*partialRow) error {
	p := &body{b: text}
	row, flags := p.head()
	if p.bad || row < x.first {
		return &Error{Reason: "is damaged; delete it and begin again", Err: errDamaged}
	}
	b := open[row]
	if b == nil {
		b = &partialRow{}
	}
	b.failed = b.failed || flags&flagFailed != 0
	if flags&flagLast == 0 {
		b.at = append(b.at, at)
		open[row] = b
		return nil
	}
	delete(open, row)
	x.finish(row, at, b)
	return nil
}

// addGroup takes note of a frame of results of a group.
func (x *index) addGroup(at int64, text []byte, open map[BatchKey]*partialRow) error {
	p := &body{b: text}
	g, flags := p.group()
	if p.bad {
		return &Error{Reason: "is damaged; delete it and begin again", Err: errDamaged}
	}
	b := open[g]
	if b == nil {
		b = &partialRow{}
		open[g] = b
	}
	b.at, b.failed = append(b.at, at), b.failed || flags&flagFailed != 0
	if flags&flagLast != 0 {
		delete(open, g)
		x.groups[g] = b
	}
	return nil
}

// finish takes note of a finished row, in the place of what was known of it.
func (x *index) finish(row, at int64, b *partialRow) {
	for int64(len(x.at)) <= row-x.first {
		x.at = append(x.at, 0)
	}
	if x.at[row-x.first] == 0 {
		x.rows++
	}
	x.at[row-x.first] = at
	delete(x.more, row)
	delete(x.failed, row)
	if b.at != nil {
		x.more[row] = b.at
	}
	if b.failed {
		x.failed[row] = true
	}
}

// errTruncated says that the frames end: the process that wrote them was ended.
var errTruncated = errors.New("torn")

// frames reads one frame after the other.
type frames struct {
	in  *bufio.Reader
	at  int64 // where the next frame begins
	buf []byte
}

// next is the next frame; its body is good until the next call.
func (f *frames) next() (kind byte, text []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, nil, torn(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return 0, nil, errTruncated
	}
	if f.buf, err = readN(f.in, f.buf[:0], int(n)); err != nil {
		return 0, nil, torn(err)
	}
	if crc32.Checksum(f.buf, castagnoli()) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, nil, errTruncated
	}
	f.at += frameHead + int64(n)
	return f.buf[0], f.buf[1:], nil
}

// readN reads n bytes without trusting n before they are there.
func readN(in io.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		step := min(n-len(buf), 1<<20)
		start := len(buf)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(in, buf[start:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}

// Rows is how many rows were finished when the journal was opened, and how
// many of them failed.
func (j *Journal) Rows() (finished, failed int64) {
	return j.index.rows, int64(len(j.index.failed))
}

// Finished tells whether a row of the input was finished when the journal was opened.
func (j *Journal) Finished(row int64) bool {
	i := row - j.index.first
	return i >= 0 && i < int64(len(j.index.at)) && j.index.at[i] > 0
}

// Last is the highest row that was finished when the journal was opened, 0 for none.
func (j *Journal) Last() int64 {
	for i := len(j.index.at) - 1; i >= 0; i-- {
		if j.index.at[i] > 0 {
			return j.index.first + int64(i)
		}
	}
	return 0
}

// Groups is how many groups were finished when the journal was opened.
func (j *Journal) Groups() int64 { return int64(len(j.index.groups)) }

// FinishedGroup tells whether a group was finished when the journal was opened.
func (j *Journal) FinishedGroup(g BatchKey) bool { return j.index.groups[g] != nil }

// ForgetFailed takes the rows and groups that failed for unfinished: they are done again.
func (j *Journal) ForgetFailed() {
	for row := range j.index.failed {
		j.index.at[row-j.index.first] = 0
		j.index.rows--
	}
	clear(j.index.failed)
	for g, b := range j.index.groups {
		if b.failed {
			delete(j.index.groups, g)
		}
	}
}

// Replay reads what became of rows that were finished when the journal was
// opened. It is for rows in ascending order, mostly.
type Replay struct {
	journal *Journal
	file    *os.File
	in      frames
}

// Replay begins to read.
func (j *Journal) Replay() (*Replay, error) {
	f, err := os.Open(j.path)
	if err != nil {
		return nil, fault(j.path, err)
	}
	return &Replay{journal: j, file: f, in: frames{in: bufio.NewReaderSize(f, 32<<10)}}, nil
}

// Close ends the reading.
func (r *Replay) Close() error { return r.file.Close() }

// Row hands on the results of a finished row, piece by piece.
func (r *Replay) Row(row int64, take func([]Result) error) error {
	x := &r.journal.index
	for _, at := range append(slices.Clone(x.more[row]), x.at[row-x.first]) {
		if err := r.frame(at, take); err != nil {
			return err
		}
	}
	return nil
}

// Group hands on the results of a finished group, piece by piece.
func (r *Replay) Group(g BatchKey, take func([]Result) error) error {
	for _, at := range r.journal.index.groups[g].at {
		if err := r.frame(at, take); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replay) frame(at int64, take func([]Result) error) error {
	if r.in.at != at {
		if _, err := r.file.Seek(at, io.SeekStart); err != nil {
			return fault(r.journal.path, err)
		}
		r.in.in.Reset(r.file)
		r.in.at = at
	}
	kind, text, err := r.in.next()
	if err != nil {
		return fault(r.journal.path, fmt.Errorf("what was finished cannot be read: %w", err))
	}
	p := &body{b: text}
	if kind == kindGroup {
		p.group()
	} else {
		p.head()
	}
	results, err := p.results()
	if err != nil {
		return fault(r.journal.path, err)
	}
	return take(results)
}
