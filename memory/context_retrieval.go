package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/vectors"
)

const (
	embedBatchMessages = 256     // messages that one turn waits to have embedded; the rest comes with the next turn
	embedBatchTokens   = 200_000 // their tokens
	chunkBytes         = 2_000   // of a message's text that get a vector of their own
	maxChunks          = 16      // of one message; what stands behind them is not searched
)

// retrieve finds the flushed messages that are most similar to the newest user
// message. A model that fails costs the turn nothing but them: the answer tells why.
func (t *Turn) retrieve(question string) (found []contextUnit, problem string, err error) {
	s, problem, err := t.embedPending()
	if err != nil || s == nil || s.vectors.Len() == 0 || strings.TrimSpace(question) == "" {
		return nil, problem, err
	}
	block := t.memory.context.retrieval
	vectors, err := block.Embedder.Embed(t.ctx, []string{chunkText(question)[0]})
	switch {
	case t.ctx.Err() != nil:
		return nil, "", context.Cause(t.ctx)
	case err != nil || len(vectors) != 1:
		return nil, t.embedderFailed(err), nil
	}
	first, floor := t.firstSent(), t.base.minSeq()
	matches := s.vectors.Nearest(vectors[0], block.TopK, func(seq int64) bool { return seq >= floor && seq < first })
	for rank, match := range matches {
		for e, err := range t.memory.store.Entries(t.ctx, t.key, Query{From: match.ID, To: match.ID, Live: true}) {
			if err != nil {
				return nil, "", err
			}
			found = append(found, contextUnit{text: quoteMessage(e), rank: rank, seq: e.Seq})
		}
	}
	slices.SortFunc(found, func(a, b contextUnit) int { return int(a.seq - b.seq) })
	return found, problem, nil
}

// quoteMessage is a message as a model reads it among others: who said it and when,
// and its text, of which no line but the first begins at the margin.
func quoteMessage(e *Entry) string {
	return fmt.Sprintf("- %s, turn %d: %s", e.Message.Role, e.Turn, strings.Join(lines(e.Message.Text()), "\n  "))
}

func (t *Turn) embedderFailed(err error) string {
	if err == nil {
		err = errors.New("it answered another number of vectors than texts")
	}
	problem := "the embedding model failed: " + oneLine(err.Error())
	t.memory.context.warn(fmt.Sprintf("memory %s, retrieval: %s; nothing is lost, and the next turn tries again", t.memory.id, problem))
	return problem
}

// embedPending makes vectors of what left the window since the last time, and
// answers all that the session has; nil where they cannot be had.
func (t *Turn) embedPending() (*sessionVectors, string, error) {
	m := t.memory
	for attempt := 0; ; attempt++ {
		s, err := m.loadVectors(t.ctx, t.key, t.base)
		var failed *embedderError
		if errors.As(err, &failed) {
			return nil, t.embedderFailed(failed.error), nil
		}
		if err != nil {
			return nil, "", err
		}
		p, err := t.pending(s.about.To, embedBatchTokens)
		if err != nil || p.to < p.from {
			return s, "", err
		}
		batch, problem, err := t.embed(p)
		if err != nil || problem != "" {
			return s, problem, err
		}
		err = m.addVectors(t.ctx, t.key, s, batch)
		switch {
		case err == nil && (p.more || batch.more) && attempt == 0:
			return t.reloadVectors("more messages are to be embedded with the next turn")
		case err == nil:
			return t.reloadVectors("")
		case !errors.Is(err, ErrConflict) || attempt == maxSummaryCalls:
			return nil, "", err
		}
	}
}

// reloadVectors is the shelf after vectors were added to it.
func (t *Turn) reloadVectors(problem string) (*sessionVectors, string, error) {
	s, err := t.memory.loadVectors(t.ctx, t.key, t.base)
	return s, problem, err
}

// vectorBatch is what is added to a companion in one change.
type vectorBatch struct {
	vectors vectors.Vectors
	to      int64 // the newest message that was looked at
	more    bool  // there were more messages than one turn waits for
}

// embed makes vectors of messages: of what users and assistants said. Calls of
// tools and their results belong together and say little by themselves, so
// neither is found again.
func (t *Turn) embed(p evictedMessages) (vectorBatch, string, error) {
	b := vectorBatch{to: p.to}
	var texts []string
	var of []int64
	for i := range p.messages {
		if i == embedBatchMessages {
			b.to, b.more = p.seqs[i]-1, true
			break
		}
		msg := &p.messages[i]
		if result(msg.Role) || len(msg.ToolCalls) > 0 {
			continue
		}
		for _, piece := range chunkText(msg.Text()) {
			texts, of = append(texts, piece), append(of, p.seqs[i])
		}
	}
	if len(texts) == 0 {
		return b, "", nil
	}
	vectors, err := t.memory.context.retrieval.Embedder.Embed(t.ctx, texts)
	switch {
	case t.ctx.Err() != nil:
		return b, "", context.Cause(t.ctx)
	case err != nil || len(vectors) != len(texts):
		return b, t.embedderFailed(err), nil
	}
	for i, v := range vectors {
		if err := b.vectors.Add(of[i], v); err != nil {
			return b, t.embedderFailed(fmt.Errorf("it answered %w", err)), nil
		}
	}
	return b, "", nil
}

// chunkText are the parts of a text that get vectors, cut at blanks; none of a text
// that says nothing.
func chunkText(text string) []string {
	text = strings.TrimSpace(text)
	var out []string
	for text != "" && len(out) < maxChunks {
		end := len(text)
		if end > chunkBytes {
			end = chunkBytes
			for !utf8.RuneStart(text[end]) {
				end--
			}
			if blank := strings.LastIndexAny(text[:end], " \n\t"); blank > chunkBytes/2 {
				end = blank
			}
		}
		out = append(out, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	return out
}
