package promptcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	embedBatchMessages = 256     // messages that one turn waits to have embedded; the rest follows in the next turn
	embedBatchTokens   = 200_000 // their tokens
	maxEmbedAttempts   = 4       // after conflicts with other processes
	pieceBytes         = 2_000   // of a message's text that get a vector
	maxPieces          = 16      // of one message; the text after them is not searched
)

// retrieve finds the evicted messages that are most relevant for the newest user
// message, by words and meaning. If the model fails, the turn continues without them: problem is the reason.
func (t *turnContext) retrieve(question string) (found []contextUnit, problem string, err error) {
	stored, problem, err := t.embedPending(t.own())
	if err != nil || stored == nil || strings.TrimSpace(question) == "" {
		return nil, problem, err
	}
	others, otherProblem, err := t.othersVectors()
	problem = cmp.Or(problem, otherProblem)
	if err != nil || stored.vectors.Len() == 0 && len(others) == 0 {
		return nil, problem, err
	}
	s, block := t.session, t.source.retrieval
	query, err := block.Embedder.Embed(s.Context(), pieces(question)[:1])
	switch {
	case s.Context().Err() != nil:
		return nil, "", context.Cause(s.Context())
	case err != nil || len(query) != 1:
		return nil, t.embedderProblem(err), nil
	}
	all, err := t.rank(question, query[0], stored, others)
	if err != nil {
		return nil, "", err
	}
	found, err = t.quotes(all)
	return found, problem, err
}

// sourceMatch is a message that is relevant for the newest one.
type sourceMatch struct {
	seq   int64 // its place in the conversation
	text  int64 // where its newest text is
	key   memory.Key
	other string // its session, if that is not the turn's
}

// quotes returns the messages of matches, those of other sessions first, each session in
// its order. What was deleted meanwhile is left out.
func (t *turnContext) quotes(matches []sourceMatch) (found []contextUnit, err error) {
	s := t.session
	for rank, match := range matches {
		for e, err := range s.Store().Entries(s.Context(), match.key, store.Query{From: match.text, To: match.text, Live: true}) {
			if err != nil {
				return nil, err
			}
			unit := contextUnit{text: quote(e), rank: rank, time: e.Time, session: match.other}
			if match.other == "" {
				unit.seq = match.seq
			} else {
				unit.text = quoteEarlier(e)
			}
			found = append(found, unit)
		}
	}
	slices.SortStableFunc(found, func(a, b contextUnit) int {
		return cmp.Or(-cmp.Compare(min(len(a.session), 1), min(len(b.session), 1)), a.time.Compare(b.time), cmp.Compare(a.seq, b.seq))
	})
	return found, nil
}

// quoteEarlier is quote for a message of another session.
func quoteEarlier(e *memory.Entry) string {
	return fmt.Sprintf("- %s, %s: %s", e.Message.Role, e.Time.Format(time.DateOnly), strings.Join(lines(e.Message.Text()), "\n  "))
}

// otherVectors are the vectors of another session of the user.
type otherVectors struct {
	key    memory.Key
	stored *sessionVectors
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
	calls, total := 0, 0
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
		if stored == nil {
			return all, problem, nil
		}
		all = append(all, otherVectors{of.key, stored, l})
		if total += stored.vectors.Len(); total >= maxVectors {
			break
		}
	}
	return all, problem, nil
}

// completeVectors returns the vectors of another session. It computes missing ones up to
// a position while calls are left; nil if the model cannot be used.
func (t *turnContext) completeVectors(of embedded, last int64, calls *int) (stored *sessionVectors, problem string, err error) {
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

// quote returns a message with its role and turn; all lines but the first are indented.
func quote(e *memory.Entry) string {
	return fmt.Sprintf("- %s, turn %d: %s", e.Message.Role, e.Turn, strings.Join(lines(e.Message.Text()), "\n  "))
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
	for attempt := 0; ; attempt++ {
		stored, err := t.loadVectors(of)
		var failed *embedderError
		if errors.As(err, &failed) {
			return nil, t.embedderProblem(failed.error), nil
		}
		if err != nil {
			return nil, "", err
		}
		p, err := t.edited(of, stored.meta)
		if err == nil && len(p.messages) == 0 {
			p, err = of.pending(stored.meta.To)
		}
		if err != nil || p.to < p.from {
			return stored, "", err
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
		for _, piece := range pieces(msg.Text()) {
			texts, of = append(texts, piece), append(of, id)
		}
	}
	if len(texts) == 0 {
		return b, "", nil
	}
	ctx := t.session.Context()
	embedded, err := t.source.retrieval.Embedder.Embed(ctx, texts)
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

// pieces returns the parts of a text that get vectors, cut at white space; none
// for a blank text.
func pieces(text string) []string {
	text = strings.TrimSpace(text)
	var out []string
	for text != "" && len(out) < maxPieces {
		end := len(text)
		if end > pieceBytes {
			end = pieceBytes
			for !utf8.RuneStart(text[end]) {
				end--
			}
			if blank := strings.LastIndexAny(text[:end], " \n\t"); blank > pieceBytes/2 {
				end = blank
			}
		}
		out = append(out, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	return out
}
