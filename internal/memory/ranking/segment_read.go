package ranking

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
)

// ErrDamaged is returned for pieces that are not those of a segment of this form.
var ErrDamaged = errors.New("a stored index of words is damaged")

// SegmentError reports that a segment of a session could not be read.
type SegmentError struct {
	Session int32 // its number
	Err     error // why
}

// Error returns why the segment could not be read.
func (e *SegmentError) Error() string { return e.Err.Error() }

// Unwrap returns why the segment could not be read.
func (e *SegmentError) Unwrap() error { return e.Err }

// Pieces reads a piece of a segment by its number, from 0.
type Pieces func(ctx context.Context, number int) ([]byte, error)

// segment is a segment of a corpus.
type segment struct {
	session    int32
	read       Pieces
	first      uint32 // its first document
	docs       int
	dictionary []dictionaryPiece
	lists      int // number of the first piece with lists

	recent int // number of the piece with lists that was read last
	bytes  []byte
}

// dictionaryPiece is a piece of a dictionary.
type dictionaryPiece struct {
	term   string // its first one
	number int
	at     storedList // of the first term
	known  bool       // whether the corpus knows its terms
}

// storedList is where a segment has the documents of a term.
type storedList struct {
	in                 *segment
	list, offset, size int
}

// AddSegment adds the documents of a segment, which follow those that the corpus has of the session. Without aside, or if they are
// not from a position to another one, documents are removed at once. The error is a *SegmentError.
func (c *Corpus) AddSegment(ctx context.Context, session int32, read Pieces, from, to int64, aside bool) error {
	if err := c.addSegment(ctx, session, read); err != nil {
		return &SegmentError{session, err}
	}
	first := int(c.segments[len(c.segments)-1].first)
	c.addDocuments(session, first, func(r *record) bool { return r.seq >= from && r.seq <= to && (aside || !r.aside) })
	return nil
}

// addSegment adds the documents of a segment, which are removed until addDocuments.
func (c *Corpus) addSegment(ctx context.Context, session int32, read Pieces) error {
	header, err := read(ctx, 0)
	if err != nil {
		return err
	}
	c.init()
	r := reader{rest: header}
	s := &segment{session: session, read: read, first: uint32(len(c.docs)), docs: r.number(maxDocs - len(c.docs))}
	if r.number(1<<10) != c.vectorBytes() {
		return ErrDamaged
	}
	authors := make([]int32, r.number(len(header)))
	for i := range authors {
		authors[i] = c.author(r.text())
	}
	columns := (s.docs + columnDocs - 1) / columnDocs
	s.dictionary = make([]dictionaryPiece, r.number(len(header)))
	s.lists = 1 + columns + len(s.dictionary)
	for i := range s.dictionary {
		s.dictionary[i] = dictionaryPiece{term: r.text(), number: 1 + columns + i, at: storedList{in: s, list: r.number(maxDocs), offset: r.number(listBytes)}}
	}
	if r.bad || s.docs == 0 || len(authors) == 0 {
		return ErrDamaged
	}
	for i := range columns {
		b, err := read(ctx, 1+i)
		if err != nil {
			return err
		}
		if !c.addColumns(session, b, min(columnDocs, s.docs-i*columnDocs), authors) {
			return ErrDamaged
		}
	}
	c.segments = append(c.segments, s)
	return nil
}

// Reserve makes room for documents.
func (c *Corpus) Reserve(n int) {
	c.init()
	c.docs, c.lengths, c.wholes = slices.Grow(c.docs, n), slices.Grow(c.lengths, n), slices.Grow(c.wholes, n)
	c.previous, c.next = slices.Grow(c.previous, n), slices.Grow(c.next, n)
	c.inner, c.dead = slices.Grow(c.inner, n), slices.Grow(c.dead, n)
	if c.meanings != nil {
		c.meanings.Reserve(n)
	}
}

// addColumns adds n documents of a piece of the columns, which are removed until addDocuments. It returns false for a damaged piece.
func (c *Corpus) addColumns(session int32, b []byte, n int, authors []int32) bool {
	r, first := reader{rest: b}, len(c.docs)
	var seq, seconds int64
	for range n {
		seq += int64(r.uvarint())
		c.docs = append(c.docs, record{session: session, before: -1, after: -1, seq: seq})
	}
	docs := c.docs[first:]
	for i := range docs {
		seconds += r.varint()
		docs[i].seconds = seconds
	}
	for i := range docs {
		docs[i].part = uint16(r.number(MaxPassages))
	}
	for i := range docs {
		v := r.number(len(authors)<<flagBits - 1)
		docs[i].author, docs[i].aside, docs[i].asks = authors[v>>flagBits], v&asideFlag != 0, v&asksFlag != 0
	}
	for range n {
		c.lengths = append(c.lengths, uint16(r.uvarint()))
	}
	for range n {
		c.wholes = append(c.wholes, uint16(r.uvarint()))
	}
	for range n {
		c.previous, c.next = append(c.previous, -1), append(c.next, -1)
		c.inner, c.dead = append(c.inner, false), append(c.dead, true)
	}
	size := c.vectorBytes()
	if r.bad || len(r.rest) != n*size {
		return false
	}
	for ; len(r.rest) > 0; r.rest = r.rest[size:] {
		if c.meanings.AppendEncoded(r.rest[:size]) != nil {
			return false
		}
	}
	return true
}

// addDocuments makes documents of a session from one on, which were removed, part of the corpus, if they are kept.
func (c *Corpus) addDocuments(session int32, first int, keep func(*record) bool) {
	last, found := c.last[session]
	if !found {
		last = -1
	}
	for doc := first; doc < len(c.docs); doc++ {
		if r := &c.docs[doc]; keep(r) {
			c.dead[doc] = false
			last = c.addDocument(int32(doc), last)
		}
	}
	if last >= 0 {
		c.last[session] = last
	}
	c.findInner(first, len(c.docs))
	c.skipDead()
}

// documents returns the documents that have a term. It reads those of segments when they are asked for first.
func (c *Corpus) documents(id int32) []uint32 {
	lists := c.stored[id]
	if len(lists) == 0 {
		return c.postings[id]
	}
	all := slices.Clone(c.postings[id]) // a later list may not be readable
	for _, l := range lists {
		documents, err := l.read(c.ctx)
		if err != nil {
			c.failed = &SegmentError{l.in.session, err}
			return nil
		}
		at, _ := slices.BinarySearch(all, l.in.first<<countBits)
		all = slices.Insert(all, at, documents...)
	}
	delete(c.stored, id)
	c.postings[id] = all
	return all
}

// read returns the documents of a list.
func (l storedList) read(ctx context.Context) ([]uint32, error) {
	b, err := l.in.readLists(ctx, l.in.lists+l.list)
	if err != nil {
		return nil, err
	}
	if l.offset > len(b) || l.size > len(b)-l.offset {
		return nil, ErrDamaged
	}
	r, doc := reader{rest: b[l.offset : l.offset+l.size]}, uint32(0)
	out := make([]uint32, 0, l.size)
	for len(r.rest) > 0 {
		v, count := r.uvarint(), uint32(1)
		doc += uint32(v >> 1)
		if v&1 == 1 {
			count = min(uint32(r.uvarint()), maxCount)
		}
		if r.bad || int(doc) >= l.in.docs {
			return nil, ErrDamaged
		}
		out = append(out, (l.in.first+doc)<<countBits|count)
	}
	return out, nil
}

// readLists returns a piece with lists. Terms that begin alike are in the same one.
func (s *segment) readLists(ctx context.Context, number int) ([]byte, error) {
	if s.bytes != nil && s.recent == number {
		return s.bytes, nil
	}
	b, err := s.read(ctx, number)
	if err == nil && len(b) <= listBytes {
		s.recent, s.bytes = number, b
	}
	return b, err
}

// learn makes the corpus know the terms of segments from one up to another one, without it.
func (c *Corpus) learn(from, to string) {
	for _, s := range c.segments {
		i := sort.Search(len(s.dictionary), func(i int) bool { return s.dictionary[i].term > from })
		for i = max(i-1, 0); i < len(s.dictionary) && s.dictionary[i].term < to; i++ {
			if p := &s.dictionary[i]; !p.known && c.failed == nil {
				if err := c.learnPiece(s, p); err != nil {
					c.failed = &SegmentError{s.session, err}
				}
			}
		}
	}
}

// learnPiece makes the corpus know the terms of a piece.
func (c *Corpus) learnPiece(s *segment, p *dictionaryPiece) error {
	b, err := s.read(c.ctx, p.number)
	if err != nil {
		return err
	}
	r, at := reader{rest: b}, p.at
	for begun := false; len(r.rest) > 0; begun = true {
		term, v := r.text(), r.uvarint()
		if r.bad || term == "" {
			return ErrDamaged
		}
		if at.offset += at.size; at.offset < 0 {
			return ErrDamaged
		}
		if begun && v&1 == 1 {
			at.list, at.offset = at.list+1, 0
		}
		at.size = int(v >> 1)
		id := c.term(term)
		c.stored[id] = append(c.stored[id], at)
	}
	p.known = true
	return nil
}

// learnPrefix makes the corpus know the terms of segments that begin with a text.
func (c *Corpus) learnPrefix(prefix string) { c.learn(prefix, prefix+"\xff") }

// learnTerm makes the corpus know a term of segments.
func (c *Corpus) learnTerm(term string) { c.learn(term, term+"\x00") }

// readAll reads all terms and documents of the segments, in the order of the pieces.
func (c *Corpus) readAll() error {
	c.learn("", "\xff")
	ids := slices.SortedFunc(maps.Keys(c.stored), func(a, b int32) int { return strings.Compare(c.terms[a], c.terms[b]) })
	for _, id := range ids {
		c.documents(id)
	}
	return c.takeFailure()
}

// takeFailure returns why pieces could not be read.
func (c *Corpus) takeFailure() error {
	err := c.failed
	c.failed = nil
	return err
}

// reader reads numbers and texts. After the end, or where there is another thing, it is bad and returns zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	return v & r.took(n)
}

// took ends the reading of n bytes; it returns 0 if there was no number, else a mask.
func (r *reader) took(n int) uint64 {
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return ^uint64(0)
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// number returns a number up to a greatest one.
func (r *reader) number(most int) int {
	v := r.uvarint()
	if v > uint64(max(most, 0)) {
		r.bad = true
		return 0
	}
	return int(v)
}

func (r *reader) text() string {
	n := r.number(len(r.rest))
	if n > len(r.rest) {
		r.bad, n = true, 0
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}
