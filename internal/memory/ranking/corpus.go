// Package ranking orders the messages of conversations by their relevance for a text.
// The search of memories and the context block retrieval share it.
//
// A message is found by its words, which are compared by their English stems and weighed
// by BM25, and by the similarity of vectors: those of an embedding model, or else those of
// package wordvectors. Both also consider the messages before and
// after it, the names of authors and the dates that the text mentions. The score of a message is the
// sum of its share of the words and of how far its similarity is above the mean. The same messages and text give the same
// order. docs/memory.md has the measured recall.
package ranking

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/internal/words"
	"github.com/qtype-dev/qtype/internal/wordvectors"
)

// Document is a message. A long one is divided into Passages, which are the documents of the corpus.
type Document struct {
	Session int32     // number of its session, chosen by the caller
	Seq     int64     // position in the session
	Time    time.Time // when it was written
	Name    string    // of the author; empty for none
	Text    string    // is not kept
	Aside   bool      // a call or a result of a tool, which AddSegment can leave out
}

// record is what a Corpus keeps of a document.
type record struct {
	session       int32
	before, after int32 // documents of the same session around it, -1 for none
	author        int32 // index in authors
	seq           int64
	seconds       int64  // Unix time
	part          uint16 // number of the passage in the message
	aside         bool
	asks          bool // has a question mark
}

// A posting is the number of a document and how often a term occurs in it.
const (
	countBits = 6
	maxCount  = 1<<countBits - 1
	maxDocs   = 1 << (32 - countBits)
)

// Corpus is a set of messages. Its methods must not be called concurrently. The zero value is empty.
type Corpus struct {
	docs           []record
	lengths        []uint16 // of each document: words
	wholes         []uint16 // words of its message
	previous, next []int32  // its neighbors: the documents around it that are of the same conversation, -1 for none
	inner          []bool   // whether the documents up to reach before and after it are its neighbors
	dead           []bool
	oldest         int // document that was not removed

	live     int
	total    int64            // of the lengths
	words    map[string]known // words of a large corpus, up to maxWords
	ids      map[string]int32 // of terms
	postings [][]uint32       // of each term, ascending
	terms    []string
	prefixes map[string][]int32 // terms by their first bytes
	initials map[byte][]int32   // by the first one
	last     map[int32]int32    // newest document of each session
	authors  []author
	named    map[string]int32 // authors by name
	first    int64            // times of the oldest and newest document
	newest   int64

	meanings *vectors.Matrix // a vector of each document; nil without a model

	segments []*segment
	stored   map[int32][]storedList // documents of terms that are not read yet
	ctx      context.Context        // of the call that reads them
	failed   error                  // why they could not be read
}

// known is what is known of a word, and the number of its term.
type known struct {
	*form
	term int32
}

const (
	wordsFrom = 1 << 13 // documents of a corpus that keeps what is known of its words
	maxWords  = 1 << 15 // words that it keeps, with 350 bytes each
)

type author struct{ words []string }

// Len returns the number of documents.
func (c *Corpus) Len() int { return c.live }

// Next returns the number of the first passage of the message that is added next.
func (c *Corpus) Next() int { return len(c.docs) }

// Dead returns the number of removed documents that still use memory.
func (c *Corpus) Dead() int { return len(c.docs) - c.live }

// At returns the session and the place of a document.
func (c *Corpus) At(doc int) (session int32, at Place) {
	return c.docs[doc].session, Place{c.docs[doc].seq, int(c.docs[doc].part)}
}

// Place is where a passage is in a session.
type Place struct {
	Seq  int64 // position of the message
	Part int   // number of the passage, from 0
}

// ID identifies a place in its session.
func (p Place) ID() int64 { return p.Seq*MaxPassages + int64(p.Part) }

// PlaceOf returns the place with an ID.
func PlaceOf(id int64) Place { return Place{id / MaxPassages, int(id % MaxPassages)} }

// Time returns when a document was written, with a precision of seconds.
func (c *Corpus) Time(doc int) time.Time { return time.Unix(c.docs[doc].seconds, 0) }

// Add adds a message; those of one session are added in their order. It returns false,
// and adds nothing, if the corpus is full.
func (c *Corpus) Add(d Document) bool {
	parts := Passages(d.Text)
	if len(c.docs)+len(parts) > maxDocs {
		return false
	}
	c.init()
	first, whole := len(c.docs), 0
	for i, p := range parts {
		c.addPassage(&d, i, p)
		whole += int(c.lengths[first+i])
	}
	for range parts {
		c.wholes = append(c.wholes, uint16(min(whole, math.MaxUint16)))
	}
	c.findInner(first, len(c.docs))
	return true
}

// init makes an empty corpus ready.
func (c *Corpus) init() {
	if c.ids != nil {
		return
	}
	c.words, c.ids, c.last, c.named = map[string]known{}, map[string]int32{}, map[int32]int32{}, map[string]int32{}
	c.prefixes, c.initials, c.stored = map[string][]int32{}, map[byte][]int32{}, map[int32][]storedList{}
	if !wordvectors.Default().Empty() {
		c.meanings = vectors.NewMatrix(vectors.Int4, wordvectors.Dimensions)
	}
}

func (c *Corpus) addPassage(d *Document, part int, p Passage) {
	doc := int32(len(c.docs))
	r := record{session: d.Session, before: -1, after: -1, seq: d.Seq, part: uint16(part), seconds: d.Time.Unix(), author: c.author(d.Name), aside: d.Aside,
		asks: strings.ContainsAny(p.Text, "?？")}
	var meaning wordvectors.Vector
	length := 0
	for word := range passageWords(p) {
		f := c.word(word)
		if !f.stop {
			length++
		}
		c.addTerm(f.term, uint32(doc))
		meaning.Add(&f.meaning)
	}
	if c.meanings != nil {
		c.meanings.Append(meaning[:])
	}
	for _, word := range c.authors[r.author].words {
		c.addTerm(c.term(stem(word)), uint32(doc))
	}
	c.docs = append(c.docs, r)
	c.lengths = append(c.lengths, uint16(min(length, math.MaxUint16)))
	c.previous, c.next, c.dead = append(c.previous, -1), append(c.next, -1), append(c.dead, false)
	c.inner = append(c.inner, false)
	last, found := c.last[d.Session]
	if !found {
		last = -1
	}
	c.last[d.Session] = c.addDocument(doc, last)
}

// addDocument counts a document and gives it its place in its session, whose newest document is last, -1 for none. It returns the
// one that is it then.
func (c *Corpus) addDocument(doc, last int32) int32 {
	r := &c.docs[doc]
	if c.live == 0 && c.oldest == 0 || r.seconds < c.first {
		c.first = r.seconds
	}
	c.newest = max(c.newest, r.seconds)
	c.live++
	c.total += int64(c.lengths[doc])
	before, after := last, int32(-1)
	for before >= 0 && c.docs[before].seq > r.seq {
		before, after = c.docs[before].before, before
	}
	if before >= 0 {
		c.link(before, doc)
	}
	if after < 0 {
		return doc
	}
	c.link(doc, after)
	return last
}

// link makes documents of a session follow each other. They are neighbors if they are of the same conversation.
func (c *Corpus) link(before, after int32) {
	a, b := &c.docs[before], &c.docs[after]
	a.after, b.before = after, before
	c.next[before], c.previous[after] = -1, -1
	if apart := a.seconds - b.seconds; max(apart, -apart) <= int64(neighborsWithin/time.Second) {
		c.next[before], c.previous[after] = after, before
	}
}

// word returns what is known of a word, whose term gets a number.
func (c *Corpus) word(word string) known {
	if k, found := c.words[word]; found {
		return k
	}
	f := lexicon().form(word)
	k := known{f, c.term(f.stem)}
	if len(c.docs) >= wordsFrom && len(c.words) < maxWords {
		c.words[f.word] = k
	}
	return k
}

// term returns the number of a term.
func (c *Corpus) term(term string) int32 {
	id, known := c.ids[term]
	if !known {
		id = int32(len(c.postings))
		term = strings.Clone(term)
		c.ids[term] = id
		c.postings, c.terms = append(c.postings, nil), append(c.terms, term)
		c.initials[term[0]] = append(c.initials[term[0]], id)
		if len(term) >= minPrefix {
			c.prefixes[term[:minPrefix]] = append(c.prefixes[term[:minPrefix]], id)
		}
	}
	return id
}

func (c *Corpus) addTerm(id int32, doc uint32) {
	list := c.postings[id]
	if n := len(list); n > 0 && list[n-1]>>countBits == doc {
		if list[n-1]&maxCount < maxCount {
			list[n-1]++
		}
		return
	}
	c.postings[id] = append(list, doc<<countBits|1)
}

// author returns the number of an author.
func (c *Corpus) author(name string) int32 {
	n, known := c.named[name]
	if !known {
		n = int32(len(c.authors))
		c.named[name] = n
		var s author
		for t := range words.All(cut(name, maxNameBytes)) {
			s.words = append(s.words, t.Term)
		}
		c.authors = append(c.authors, s)
	}
	return n
}

// findInner finds the inner documents near changed ones: those between reach links on each side.
func (c *Corpus) findInner(from, to int) {
	run := 0 // links in a row
	for i := max(from-2*reach, 0); i < min(to+2*reach, len(c.docs)); i++ {
		if c.next[i] == int32(i+1) {
			run++
		} else {
			run = 0
		}
		if doc := i + 1 - reach; doc >= from-reach && doc >= 0 {
			c.inner[doc] = run >= 2*reach
		}
	}
}

// Remove removes the documents of a session from a position up to another one.
func (c *Corpus) Remove(session int32, from, to int64) {
	doc, found := c.last[session]
	if !found {
		return
	}
	first, last := doc, int32(-1) // of those that are removed
	for ; doc >= 0; doc = c.docs[doc].before {
		r := &c.docs[doc]
		if r.seq < from {
			break
		}
		if r.seq > to {
			continue
		}
		switch {
		case r.before >= 0 && r.after >= 0:
			c.link(r.before, r.after)
		case r.after >= 0:
			c.docs[r.after].before, c.previous[r.after] = -1, -1
		case r.before >= 0:
			c.docs[r.before].after, c.next[r.before] = -1, -1
			c.last[session] = r.before
		default:
			delete(c.last, session)
		}
		first, last = doc, max(last, doc)
		c.dead[doc], c.previous[doc], c.next[doc] = true, -1, -1
		c.live--
		c.total -= int64(c.lengths[doc])
	}
	if last >= 0 {
		c.findInner(int(first), int(last)+1)
	}
	c.skipDead()
}

// skipDead counts the oldest documents that were removed.
func (c *Corpus) skipDead() {
	for c.oldest < len(c.docs) && c.dead[c.oldest] {
		c.oldest++
	}
}

// Find returns the document of a session with a place, of those from first up to end, which are in the order of their places.
func (c *Corpus) Find(at Place, first, end int) (doc int, found bool) {
	i, found := slices.BinarySearchFunc(c.docs[first:end], at, func(r record, at Place) int {
		return cmp.Or(cmp.Compare(r.seq, at.Seq), cmp.Compare(int(r.part), at.Part))
	})
	return first + i, found
}

// Session yields the documents of a session with their places, the newest first.
func (c *Corpus) Session(session int32) iter.Seq2[int, Place] {
	return func(yield func(int, Place) bool) {
		doc, found := c.last[session]
		for ; found && doc >= 0; doc = c.docs[doc].before {
			if !yield(int(doc), Place{c.docs[doc].seq, int(c.docs[doc].part)}) {
				return
			}
		}
	}
}
