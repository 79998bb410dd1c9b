package promptcontext

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxWordIndexes is the number of sessions whose words one memory caches.
const maxWordIndexes = 256

// wordCache has the words of the messages that the sessions used last may retrieve.
type wordCache struct {
	mu    sync.Mutex
	byKey map[memory.Key]*wordIndex
	order []memory.Key // least recently used first
}

// take removes the index of a session from the cache, so that one turn uses it.
func (c *wordCache) take(key memory.Key) *wordIndex {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.byKey[key]
	if x == nil {
		return newWordIndex()
	}
	delete(c.byKey, key)
	c.order = slices.DeleteFunc(c.order, func(k memory.Key) bool { return k == key })
	return x
}

func (c *wordCache) put(key memory.Key, x *wordIndex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[memory.Key]*wordIndex{}
	}
	c.byKey[key] = x
	c.order = append(slices.DeleteFunc(c.order, func(k memory.Key) bool { return k == key }), key)
	total := 0
	for _, k := range c.order {
		total += c.byKey[k].bytes
	}
	for len(c.order) > maxWordIndexes || total > maxTextBytes && len(c.order) > 1 {
		total -= c.byKey[c.order[0]].bytes
		delete(c.byKey, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *wordCache) drop(key memory.Key) { _ = c.take(key) }

// wordIndex has the words of the messages that a session may retrieve: its own and those
// of other sessions. It is the same as one that is built from the store.
type wordIndex struct {
	corpus   ranking.Corpus
	sessions map[string]*wordSession
	keys     []memory.Key    // of sessions by number
	quoted   []quotedPassage // of each document
	bytes    int             // of their texts

	similar   []ranking.Similarity // of the last ranking; nil without a model
	similarAt []int32              // 1 + where each document is in similar while a session is added, else 0
}

func newWordIndex() *wordIndex {
	return &wordIndex{sessions: map[string]*wordSession{}}
}

// quotedPassage is a document as it is sent. Its message has not changed since: the documents of a session with
// an edited message are added again, and those of a deleted one are not found.
type quotedPassage struct {
	text   string // empty if it is to be read
	tokens int    // of the text with a line end; 0 before it was retrieved
	time   time.Time
}

const (
	maxIndexBytes = 4 << 20  // of the texts of one index
	maxTextBytes  = 64 << 20 // of those of all indexes that one memory caches
)

// keepQuote keeps a passage, so that the turns that send it do not read it.
func (x *wordIndex) keepQuote(doc int, q quotedPassage) {
	if x.bytes += len(q.text); x.bytes > maxIndexBytes {
		for other := range x.quoted {
			x.quoted[other].text = ""
		}
		x.bytes = len(q.text)
	}
	x.quoted[doc] = q
}

// wordSession is how much of a session is in an index.
type wordSession struct {
	number  int32
	version int64 // when it was added
	first   int64 // positions of the messages
	last    int64
	rewound string
	edited  string
	docs    map[ranking.Place]int // its passages, also those that were removed
	aligned alignment
}

// update makes the messages of a session from first to last those of the index. read
// yields those from a position on that may be retrieved.
func (x *wordIndex) update(key memory.Key, h memory.Head, first, last int64, read func(from int64) iter.Seq2[*memory.Entry, error]) error {
	first = max(first, last-maxMessages+1)
	s := x.sessions[key.Session]
	if s != nil && (h.Version < s.version || h.Version-s.version >= maxChangesPerGeneration || first < s.first || h.State.Edited != s.edited) {
		x.corpus.Remove(s.number, 0, math.MaxInt64)
		s = nil
	}
	if s == nil {
		s = &wordSession{number: int32(len(x.keys)), version: h.Version, first: first, last: first - 1, rewound: h.State.Rewound, edited: h.State.Edited,
			docs: map[ranking.Place]int{}}
		x.sessions[key.Session] = s
		x.keys = append(x.keys, key)
	}
	x.remove(s, h.State, first, last)
	if last <= s.last {
		return nil
	}
	for e, err := range read(s.last + 1) {
		if err != nil {
			return err
		}
		if e.Seq > last {
			break
		}
		if e.Seq > s.last {
			x.add(s, e)
		}
	}
	s.last = last
	return nil
}

// add adds a message that may be retrieved.
func (x *wordIndex) add(s *wordSession, e *memory.Entry) {
	msg, first := &e.Message, x.corpus.Next()
	if !isRetrieved(msg) || !x.corpus.Add(ranking.Document{Session: s.number, Seq: e.Seq, Time: e.Time, Name: msg.Name, Text: msg.Text()}) {
		return
	}
	x.quoted = append(x.quoted, make([]quotedPassage, x.corpus.Next()-first)...)
	for i, p := range ranking.Passages(msg.Text()) {
		place := ranking.Place{Seq: e.Seq, Part: i}
		if _, again := s.docs[place]; again {
			s.aligned = alignment{}
		}
		s.docs[place] = first + i
		x.keepQuote(first+i, quotedPassage{text: quote(e, p), time: e.Time})
	}
}

// remove removes the messages of a session that may not be retrieved any more.
func (x *wordIndex) remove(s *wordSession, state store.State, first, last int64) {
	if first > s.first {
		x.corpus.Remove(s.number, 0, first-1)
		s.first, s.last = first, max(s.last, first-1)
	}
	if last < s.last { // the window goes back further than before
		x.corpus.Remove(s.number, last+1, math.MaxInt64)
		s.last = last
	}
	if state.Rewound != s.rewound {
		s.rewound = state.Rewound
		gone, edits := state.WasRewound(), state.Edits()
		for _, at := range x.corpus.Session(s.number) {
			if gone(edits.Current(at.Seq)) {
				x.corpus.Remove(s.number, at.Seq, at.Seq)
			}
		}
	}
}

// keep removes the sessions that are not used any more. It reports false if the index
// should be built again.
func (x *wordIndex) keep(used map[string]bool) bool {
	for session, s := range x.sessions {
		if !used[session] {
			x.corpus.Remove(s.number, 0, math.MaxInt64)
			delete(x.sessions, session)
		}
	}
	return x.corpus.Dead() <= x.corpus.Len()+maxMessages
}

// isRetrieved reports whether a message may be retrieved: tool calls and their results
// say little on their own.
func isRetrieved(m *chat.Message) bool {
	return m.Role != chat.Tool && m.Role != chat.Function && m.Role != chat.System && !m.HasCalls()
}

// rank orders the passages of messages that left the window, and of other sessions, by their
// relevance for a question with a vector. The caller puts the index back into the cache.
func (t *turnContext) rank(question string, query []float32, stored *sessionVectors, others []otherVectors) ([]sourceMatch, *wordIndex, error) {
	s, cache := t.session, &t.source.words
	x := cache.take(s.Key())
	head, used := s.Head(), map[string]bool{s.Key().Session: true}
	if err := x.update(s.Key(), head, head.State.FirstPosition(), s.FirstSent()-1, s.Evicted); err != nil {
		return nil, nil, err
	}
	for _, o := range others {
		used[o.key.Session] = true
		if err := x.update(o.key, o.head.Head, o.head.Head.State.FirstPosition(), o.head.Head.State.Last, func(from int64) iter.Seq2[*memory.Entry, error] {
			return s.EntriesOf(o.head, from)
		}); err != nil {
			return nil, nil, err
		}
	}
	if !x.keep(used) {
		cache.drop(s.Key())
		return t.rank(question, query, stored, others)
	}
	edits := map[string]store.Edits{s.Key().Session: head.State.Edits()}
	x.similar = x.similar[:0]
	x.addSimilar(s.Key(), query, stored, head.State)
	for _, o := range others {
		edits[o.key.Session] = o.head.Head.State.Edits()
		x.addSimilar(o.key, query, o.stored, o.head.Head.State)
	}
	q := ranking.Query{Text: question, Similar: x.similar, Limit: cmp.Or(t.source.retrieval.TopK, maxCandidates), MinScore: t.source.retrieval.MinScore, Now: s.Now()}
	if len(x.similar) == 0 {
		q.Similar = nil // the vectors of words are compared
	}
	if head.State.Pinned != "" {
		q.Match = func(doc int) bool { return !x.isPinned(doc, s.Key(), head.State) }
	}
	results := x.corpus.Rank(q)
	all := make([]sourceMatch, 0, len(results))
	for _, r := range results {
		number, at := x.corpus.At(r.Doc)
		match := sourceMatch{doc: r.Doc, seq: at.Seq, part: at.Part, key: x.keys[number]}
		match.text = edits[match.key.Session].Current(at.Seq)
		if match.key != s.Key() {
			match.other = match.key.Session
		}
		all = append(all, match)
	}
	return all, x, nil
}

// isPinned reports whether a message is one of a session that its window still has, because
// it is pinned.
func (x *wordIndex) isPinned(doc int, key memory.Key, state store.State) bool {
	number, at := x.corpus.At(doc)
	return x.keys[number] == key && state.IsPinned(at.Seq)
}

// addSimilar adds the similarities of the messages of a session. The vector of an edited message
// is that of its newest text.
func (x *wordIndex) addSimilar(key memory.Key, query []float32, stored *sessionVectors, state store.State) {
	if stored == nil {
		return
	}
	docs := x.sessions[key.Session].align(stored, state)
	x.similarAt = append(x.similarAt, make([]int32, x.corpus.Next()-len(x.similarAt))...)
	first, row := len(x.similar), 0
	for _, score := range stored.vectors.Scores(query) {
		doc := docs[row]
		row++
		switch {
		case doc < 0:
		case x.similarAt[doc] > 0:
			one := &x.similar[x.similarAt[doc]-1]
			one.Score = max(one.Score, score)
		default:
			x.similar = append(x.similar, ranking.Similarity{Doc: int(doc), Score: score})
			x.similarAt[doc] = int32(len(x.similar))
		}
	}
	for _, one := range x.similar[first:] {
		x.similarAt[one.Doc] = 0
	}
}

// alignment is which documents of a session the vectors of its companion belong to.
type alignment struct {
	ids    []int64 // of the vectors
	edited string
	docs   []int32 // of each vector, -1 for none
}

// align returns the document of each vector, -1 for none. Documents that were removed are found too. It looks for those
// of vectors that were added, or had none, since the last time.
func (s *wordSession) align(stored *sessionVectors, state store.State) []int32 {
	a, ids := &s.aligned, stored.vectors.IDs()
	if known := len(a.ids); a.edited != state.Edited || known > len(ids) || !slices.Equal(a.ids, ids[:known]) {
		*a = alignment{edited: state.Edited, docs: a.docs[:0]}
	}
	edits := state.Edits()
	for i, id := range ids {
		if i == len(a.docs) {
			a.docs = append(a.docs, -1)
		}
		if a.docs[i] >= 0 {
			continue
		}
		at := ranking.PlaceOf(id)
		original := edits.Original(at.Seq)
		doc, found := s.docs[ranking.Place{Seq: original, Part: at.Part}]
		if found && edits.Current(original) == at.Seq {
			a.docs[i] = int32(doc)
		}
	}
	a.ids = ids
	return a.docs
}
