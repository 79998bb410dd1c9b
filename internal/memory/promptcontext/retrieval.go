package promptcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	embedBatchMessages = 256     // messages that one turn waits to have embedded; the rest follows in the next turn
	embedBatchTokens   = 200_000 // their tokens
	maxEmbedAttempts   = 4       // after conflicts with other processes
	questionBytes      = 2_000   // of a question that get a vector
	maxCandidates      = 200     // passages that are tried without a number of messages
	maxRetrievedTokens = 4_000   // of the passages without one
	readAhead          = 64      // passages whose messages are read together
	maxReadGap         = 8       // positions between messages that one query reads
)

// retrieve finds the passages of evicted messages that are most relevant for the newest user
// message, by words and meaning. If the model fails, words alone are compared: problem is the reason.
func (t *turnContext) retrieve(question string) (found []contextUnit, problem string, err error) {
	stored, problem, err := t.embedPending(t.own())
	if err != nil || strings.TrimSpace(question) == "" {
		return nil, problem, err
	}
	others, otherProblem, err := t.othersVectors()
	problem = cmp.Or(problem, otherProblem)
	if err != nil {
		return nil, problem, err
	}
	var query []float32
	hasEvicted := t.session.FirstSent() > t.session.Head().State.FirstPosition()
	if hasEvicted && stored != nil && stored.vectors.Len() > 0 || slices.ContainsFunc(others, func(o otherVectors) bool { return o.stored != nil && o.stored.vectors.Len() > 0 }) {
		var queryProblem string
		if query, queryProblem, err = t.embedQuestion(question); err != nil {
			return nil, "", err
		}
		problem = cmp.Or(problem, queryProblem)
	}
	all, index, err := t.rank(question, query, stored, others)
	if err != nil {
		return nil, "", err
	}
	if found, err = t.quotes(all, index); err != nil {
		return nil, "", err
	}
	t.source.words.put(t.session.Key(), index)
	return found, problem, nil
}

// embedQuestion returns the vector of a question; nil, and why, if the model fails.
func (t *turnContext) embedQuestion(question string) (vector []float32, problem string, err error) {
	ctx, text := t.session.Context(), strings.TrimSpace(question)
	if len(text) > questionBytes {
		text = strings.ToValidUTF8(text[:questionBytes], "")
	}
	vectors, err := t.source.retrieval.Embedder.Embed(ctx, []string{text}, true)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil || len(vectors) != 1:
		return nil, t.embedderProblem(err), nil
	}
	return vectors[0], "", nil
}

// sourceMatch is a passage that is relevant for the newest message.
type sourceMatch struct {
	doc   int   // in the index
	seq   int64 // the place of its message in the conversation
	part  int   // its number in the message
	text  int64 // where the newest text of the message is
	key   memory.Key
	other string // its session, if that is not the turn's
}

// quotes returns the passages of matches, the newest messages first. What was deleted meanwhile is
// left out. Without a number of messages, passages are taken while there is room: one without
// room is skipped.
func (t *turnContext) quotes(matches []sourceMatch, x *wordIndex) (found []contextUnit, err error) {
	read := map[textPlace]*memory.Entry{}
	found = make([]contextUnit, 0, len(matches))
	room := math.MaxInt
	if t.source.retrieval.TopK == 0 {
		room = maxRetrievedTokens
	}
	for rank, match := range matches {
		q := x.quoted[match.doc]
		if q.tokens > room {
			continue
		}
		if q.text == "" {
			if _, known := read[match.place()]; !known {
				if err := t.readTexts(nextMatches(matches[rank:], x.quoted, room), read); err != nil {
					return nil, err
				}
			}
			if q = passageOf(read[match.place()], match.part); q.text == "" {
				continue
			}
			x.keepQuote(match.doc, quotedPassage{q.text, x.quoted[match.doc].tokens, q.time})
			q = x.quoted[match.doc]
		}
		if q.tokens == 0 {
			q.tokens = t.session.Count(q.text + "\n")
			x.quoted[match.doc] = q
		}
		if t.source.retrieval.TopK == 0 {
			if q.tokens > room {
				continue
			}
			room -= q.tokens
		}
		unit := contextUnit{text: q.text, tokens: q.tokens, rank: rank, time: q.time, session: match.other, part: match.part}
		if match.other == "" {
			unit.seq = match.seq
		}
		found = append(found, unit)
	}
	slices.SortStableFunc(found, func(a, b contextUnit) int {
		return cmp.Or(b.time.Compare(a.time), strings.Compare(a.session, b.session), cmp.Compare(b.seq, a.seq), cmp.Compare(a.part, b.part))
	})
	return found, nil
}

// passageOf returns a passage of a message as it is sent; one without a text if the message, nil for a deleted one,
// does not have it.
func passageOf(e *memory.Entry, part int) quotedPassage {
	if e == nil {
		return quotedPassage{}
	}
	parts := ranking.Passages(e.Message.Text())
	if part >= len(parts) {
		return quotedPassage{}
	}
	return quotedPassage{text: quote(e, parts[part]), time: e.Time}
}

// nextMatches returns the first matches, up to a number, that have room together as far as their sizes are known, and whose
// texts are not.
func nextMatches(matches []sourceMatch, known []quotedPassage, room int) (next []sourceMatch) {
	for _, match := range matches {
		q := known[match.doc]
		if q.tokens > room {
			continue
		}
		room -= q.tokens
		if q.text != "" {
			continue
		}
		if next = append(next, match); len(next) == readAhead {
			break
		}
	}
	return next
}

// textPlace is where the newest text of a message is.
type textPlace struct {
	key memory.Key
	seq int64
}

func (m *sourceMatch) place() textPlace { return textPlace{m.key, m.text} }

// readTexts adds the messages of matches to read, nil for those that were deleted. Those that are near each other are
// read together.
func (t *turnContext) readTexts(matches []sourceMatch, read map[textPlace]*memory.Entry) error {
	wanted := map[memory.Key][]int64{}
	for i := range matches {
		at := matches[i].place()
		if _, known := read[at]; !known {
			read[at] = nil
			wanted[at.key] = append(wanted[at.key], at.seq)
		}
	}
	for key, positions := range wanted {
		slices.Sort(positions)
		for len(positions) > 0 {
			n := 1
			for n < len(positions) && positions[n]-positions[n-1] <= maxReadGap {
				n++
			}
			for e, err := range t.session.Store().Entries(t.session.Context(), key, store.Query{From: positions[0], To: positions[n-1], Live: true}) {
				if err != nil {
					return err
				}
				if at := (textPlace{key, e.Seq}); slices.Contains(positions[:n], e.Seq) {
					read[at] = e
				}
			}
			positions = positions[n:]
		}
	}
	return nil
}

// quote returns a passage with its date and author; all lines but the first are indented.
func quote(e *memory.Entry, p ranking.Passage) string {
	author := cmp.Or(textfmt.OneLine(e.Message.Name), string(e.Message.Role))
	return fmt.Sprintf("- %s %s: %s", e.Time.UTC().Format(time.DateOnly), author, strings.Join(lines(p.String()), "\n  "))
}

// otherVectors are the vectors of another session of the user.
type otherVectors struct {
	key    memory.Key
	stored *sessionVectors // nil without a model
	head   memory.SessionHead
}

// othersVectors returns the vectors of the other sessions of the scope, up to a number, the
// newest sessions first. When a session begins, messages of the others get vectors that
// have none.
func (t *turnContext) othersVectors() (all []otherVectors, problem string, err error) {
	scope := t.source.retrieval.Scope
	if !t.session.IsShared(scope) {
		return nil, "", nil
	}
	var sessions []memory.SessionHead
	for l, err := range t.session.Others(scope) {
		if err != nil {
			return nil, "", err
		}
		sessions = append(sessions, l)
	}
	slices.SortStableFunc(sessions, func(a, b memory.SessionHead) int { return b.Head.State.LastSaid.Compare(a.Head.State.LastSaid) })
	calls, total := 0, int64(0)
	if t.session.Head().State.Turns == 0 {
		calls = maxSummaryCalls
	}
	for _, l := range sessions {
		of := t.other(l)
		stored, why, err := t.completeVectors(of, l.Head.State.Last, &calls)
		problem = cmp.Or(problem, why)
		if err != nil {
			return nil, "", err
		}
		all = append(all, otherVectors{of.key, stored, l})
		if total += l.Head.State.Last; total >= maxMessages {
			break
		}
	}
	return all, problem, nil
}

// completeVectors returns the vectors of another session. It computes missing ones up to
// a position while calls are left; nil if the model cannot be used.
func (t *turnContext) completeVectors(of embedded, last int64, calls *int) (stored *sessionVectors, problem string, err error) {
	if t.source.retrieval.Embedder == nil {
		return nil, "", nil
	}
	stored, err = t.loadVectors(of)
	for err == nil && stored.meta.To < last && *calls > 0 {
		*calls--
		next, why, failed := t.embedPending(of)
		switch {
		case failed != nil || next == nil:
			return nil, why, failed
		case next.meta.To > stored.meta.To && *calls == 0 && next.meta.To < last:
			problem = "more messages of earlier sessions will be embedded when the next session begins"
		case next.meta.To == stored.meta.To:
			*calls = 0
			problem = why
		}
		stored = next
	}
	var failed *embedderError
	if errors.As(err, &failed) {
		return nil, t.embedderProblem(failed.error), nil
	}
	return stored, problem, err
}

func (t *turnContext) embedderProblem(err error) string {
	if err == nil {
		err = errors.New("it returned another number of vectors than texts")
	}
	return t.problemText(Retrieval, "the embedding model failed: "+textfmt.OneLine(strings.ToValidUTF8(err.Error(), "\uFFFD")))
}

// embedPending computes vectors of the messages that left the window since the
// last time, and returns all vectors of the session; nil if they are unavailable.
func (t *turnContext) embedPending(of embedded) (*sessionVectors, string, error) {
	if t.source.retrieval.Embedder == nil {
		return nil, "", nil
	}
	for attempt := 0; ; attempt++ {
		stored, err := t.loadVectors(of)
		var failed *embedderError
		if errors.As(err, &failed) {
			return nil, t.embedderProblem(failed.error), nil
		}
		if err != nil {
			return nil, "", err
		}
		p, err := t.unembedded(of, stored.meta)
		if err != nil || p.to < p.from {
			return stored, "", err
		}
		if !t.ahead {
			waited, err := t.source.ahead.wait(t.session.Context(), of.key)
			if err != nil {
				return nil, "", err
			}
			if waited {
				attempt--
				continue
			}
		}
		batch, problem, err := t.embed(of, p)
		if err != nil || problem != "" {
			return stored, problem, err
		}
		err = t.addVectors(of, stored, batch)
		switch {
		case err == nil:
			if p.edited && attempt == 0 {
				continue // the messages that left the window since
			}
			if (p.more || batch.more) && attempt == 0 {
				problem = "more messages will be embedded in the next turn"
			}
			stored, err := t.loadVectors(of)
			return stored, problem, err
		case !errors.Is(err, store.ErrConflict) || attempt == maxEmbedAttempts:
			return nil, "", err
		}
	}
}

// unembedded returns the texts that have no vector: those of edited messages first.
func (t *turnContext) unembedded(of embedded, meta vectorMeta) (evictedMessages, error) {
	p, err := t.edited(of, meta)
	if err == nil && len(p.messages) == 0 {
		return of.pending(meta.To)
	}
	return p, err
}

// edited returns the texts of edited messages that have vectors of the text before.
func (t *turnContext) edited(of embedded, meta vectorMeta) (evictedMessages, error) {
	p := evictedMessages{from: 1, to: meta.To, edited: true}
	s := t.session
	for message, text := range of.edits.All {
		if message > meta.To || text <= meta.Edited {
			continue
		}
		for e, err := range s.Store().Entries(s.Context(), of.key, store.Query{From: text, To: text, Live: true}) {
			if err != nil {
				return p, err
			}
			p.messages, p.seqs = append(p.messages, e.Message), append(p.seqs, e.Seq)
		}
	}
	return p, nil
}

// vectorBatch is what is added to the stored vectors in one change.
type vectorBatch struct {
	vectors vectors.Vectors
	to      int64 // position of the newest message that it covers
	edited  int64 // position of the newest text of an edited message in it
	more    bool  // there were more messages than one turn waits for
}

// embed computes vectors of the messages of users and assistants. Tool calls and
// their results say little on their own and are not retrieved.
func (t *turnContext) embed(source embedded, p evictedMessages) (vectorBatch, string, error) {
	b := vectorBatch{to: p.to}
	var texts []string
	var of []int64
	for i := range p.messages {
		if i == embedBatchMessages {
			b.more = true
			if !p.edited {
				b.to = p.seqs[i] - 1
			}
			break
		}
		id := source.edits.Current(p.seqs[i])
		if p.edited || id != p.seqs[i] {
			b.edited = max(b.edited, id)
		}
		msg := &p.messages[i]
		if !isRetrieved(msg) {
			continue
		}
		for part, p := range ranking.Passages(msg.Text()) {
			texts, of = append(texts, p.String()), append(of, ranking.Place{Seq: id, Part: part}.ID())
		}
	}
	if len(texts) == 0 {
		return b, "", nil
	}
	ctx := t.session.Context()
	embedded, err := t.source.retrieval.Embedder.Embed(ctx, texts, false)
	switch {
	case ctx.Err() != nil:
		return b, "", context.Cause(ctx)
	case err != nil || len(embedded) != len(texts):
		return b, t.embedderProblem(err), nil
	}
	for i, v := range embedded {
		if err := b.vectors.Add(of[i], v); err != nil {
			return b, t.embedderProblem(fmt.Errorf("it returned %w", err)), nil
		}
	}
	return b, "", nil
}
