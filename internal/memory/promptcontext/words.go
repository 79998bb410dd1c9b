package promptcontext

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/memory/segments"
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
		total += c.byKey[k].size()
	}
	for len(c.order) > maxWordIndexes || total > maxCachedWords && len(c.order) > 1 {
		total -= c.byKey[c.order[0]].size()
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
	left     int             // documents of stored words that were never part of the index
	unstored bool            // whether stored words are not used, as they can be neither read nor deleted

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
	maxIndexBytes  = 4 << 20   // of the texts of one index
	maxCachedWords = 256 << 20 // of all indexes that one memory caches
	documentBytes  = 250       // of a document of an index, about
)

// size returns about how many bytes the index has in memory.
func (x *wordIndex) size() int { return x.bytes + documentBytes*x.corpus.Next() }

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
	deleted string
	docs    map[ranking.Place]int // its passages, also those that were removed, without those of stored words
	aligned alignment

	words    *segments.Index // stored words that were added; nil for none
	from, to int             // the documents of them
	skipped  int64           // position before the newest messages, if older ones have no stored words; else 0
}

// find returns the document of a passage, also of one that was removed.
func (x *wordIndex) find(s *wordSession, at ranking.Place) (doc int, found bool) {
	if doc, found = s.docs[at]; !found && s.words != nil {
		doc, found = x.corpus.Find(at, s.from, s.to)
	}
	return doc, found
}

// searched is a session whose messages from first to last may be retrieved; read yields those from a position on.
type searched struct {
	key         memory.Key
	head        memory.Head
	first, last int64
	read        func(from int64) iter.Seq2[*memory.Entry, error]
}

// updateSession makes the messages of a session those of an index: those whose words are stored, and the newest of the others.
func (t *turnContext) updateSession(x *wordIndex, of searched) error {
	s, h, last := x.sessions[of.key.Session], of.head, of.last
	if s != nil && (h.Version < s.version || h.Version-s.version >= maxChangesPerGeneration || of.first < s.first || h.State.Edited != s.edited || segments.Returned(s.deleted, h.State) ||
		s.skipped > 0 && t.source.storing.known(of.key) >= s.skipped) {
		x.corpus.Remove(s.number, 0, math.MaxInt64)
		s = nil
	}
	if s == nil {
		s = &wordSession{number: int32(len(x.keys)), version: h.Version, first: of.first, last: of.first - 1, rewound: h.State.Rewound,
			edited: h.State.Edited, deleted: h.State.Deleted, docs: map[ranking.Place]int{}}
		x.sessions[of.key.Session] = s
		x.keys = append(x.keys, of.key)
		if err := t.addStored(x, s, of); err != nil {
			return err
		}
	}
	if s.deleted != h.State.Deleted {
		s.deleted = h.State.Deleted
		t.source.storing.learn(of.key, storedWords{})
	}
	x.remove(s, h.State, of.first, last)
	if last <= s.last {
		return nil
	}
	if last-maxMessages > s.last {
		s.skipped, s.last = last-maxMessages, last-maxMessages
	}
	for e, err := range of.read(s.last + 1) {
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

// addStored adds stored words of the messages of a session, if these are not few enough to read all of them. Edited messages, whose words are stored where their texts are, are read.
func (t *turnContext) addStored(x *wordIndex, s *wordSession, of searched) error {
	ctx := t.session.Context()
	if x.unstored || of.last-of.first < maxMessages {
		return nil
	}
	words, err := segments.Open(ctx, t.session.Store(), of.key, of.head)
	if err != nil {
		return err
	}
	t.source.storing.learn(of.key, storedWords{words.To(), words.To()})
	if words.To() < s.first {
		return nil
	}
	live := x.corpus.Len()
	s.words, s.from, s.last, s.rewound = words, x.corpus.Next(), min(words.To(), of.last), ""
	if err := words.AddTo(ctx, &x.corpus, s.number, s.first, s.last, false); err != nil {
		return err
	}
	s.to = x.corpus.Next()
	x.left += s.to - s.from - (x.corpus.Len() - live)
	x.quoted = append(x.quoted, make([]quotedPassage, s.to-s.from)...)
	return x.addEdited(s, of)
}

// addEdited adds edited messages whose texts have stored words.
func (x *wordIndex) addEdited(s *wordSession, of searched) error {
	edits := of.head.State.Edits()
	for _, text := range edits.Texts() {
		x.corpus.Remove(s.number, text.From, text.To)
	}
	for message := range edits.All {
		if message < s.first || message > s.last {
			continue
		}
		for e, err := range of.read(message) {
			if err != nil {
				return err
			}
			if e.Seq == message {
				x.add(s, e)
			}
			break
		}
	}
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
	return x.corpus.Dead()-x.left <= x.corpus.Len()+maxMessages
}

// isRetrieved reports whether a message may be retrieved: tool calls and their results
// say little on their own.
func isRetrieved(m *chat.Message) bool {
	return m.Role != chat.System && !segments.IsAside(m)
}

// rank orders the passages of messages that left the window, and of other sessions, by their
// relevance for a question with a vector. The caller puts the index back into the cache.
func (t *turnContext) rank(question string, query []float32, stored *sessionVectors, others []otherVectors) ([]sourceMatch, *wordIndex, error) {
	unstored := false
	for attempt := 1; ; attempt++ {
		x := t.source.words.take(t.session.Key())
		x.unstored = unstored
		fits, err := t.update(x, others)
		if err == nil && !fits {
			continue // with an empty index
		}
		var all []sourceMatch
		if err == nil {
			all, err = t.rankIn(x, question, query, stored, others)
		}
		if !segments.IsUnusable(err) {
			return all, x, err
		}
		if unstored = !x.discard(t.session.Context(), err) || attempt >= maxEmbedAttempts; unstored && t.session.Context().Err() != nil {
			return nil, nil, context.Cause(t.session.Context())
		}
	}
}

// discard deletes the stored words of the session with an error, if no other process has replaced them. It reports whether it could.
func (x *wordIndex) discard(ctx context.Context, unusable error) bool {
	failed, ok := errors.AsType[*ranking.SegmentError](unusable)
	if !ok {
		return true
	}
	s := x.sessions[x.keys[failed.Session].Session]
	return s == nil || s.number != failed.Session || s.words == nil || s.words.Discard(ctx) == nil
}

// update makes the messages that the turn may retrieve those of an index. It reports false if the index should be built again.
func (t *turnContext) update(x *wordIndex, others []otherVectors) (bool, error) {
	s, head := t.session, t.session.Head()
	used := map[string]bool{s.Key().Session: true}
	if err := t.updateSession(x, searched{s.Key(), head, head.State.FirstPosition(), s.FirstSent() - 1, s.Evicted}); err != nil {
		return false, err
	}
	for _, o := range others {
		used[o.key.Session] = true
		state := o.head.Head.State
		if err := t.updateSession(x, searched{o.key, o.head.Head, state.FirstPosition(), state.Last, func(from int64) iter.Seq2[*memory.Entry, error] {
			return s.EntriesOf(o.head, from)
		}}); err != nil {
			return false, err
		}
	}
	return x.keep(used), nil
}

// rankIn is rank with an index that is up to date.
func (t *turnContext) rankIn(x *wordIndex, question string, query []float32, stored *sessionVectors, others []otherVectors) ([]sourceMatch, error) {
	s, head := t.session, t.session.Head()
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
	results, err := x.corpus.Rank(s.Context(), q)
	if err != nil {
		return nil, err
	}
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
	return all, nil
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
	docs := x.align(x.sessions[key.Session], stored, state)
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
func (x *wordIndex) align(s *wordSession, stored *sessionVectors, state store.State) []int32 {
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
		doc, found := x.find(s, ranking.Place{Seq: original, Part: at.Part})
		if found && edits.Current(original) == at.Seq {
			a.docs[i] = int32(doc)
		}
	}
	a.ids = ids
	return a.docs
}
