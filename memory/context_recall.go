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
	recallMessages = 256     // messages that one turn waits to have embedded; the rest comes with the next turn
	recallTokens   = 200_000 // their tokens
	pieceBytes     = 2_000   // of a message's text that get a vector of their own
	maxPieces      = 16      // of one message; what stands behind them is not searched
)

// recall finds the flushed messages that are most similar to the newest user
// message. A model that fails costs the turn nothing but them: the answer tells why.
func (t *Turn) recall(question string) (found []unitText, problem string, err error) {
	s, problem, err := t.embedPending()
	if err != nil || s == nil || s.vectors.Len() == 0 || strings.TrimSpace(question) == "" {
		return nil, problem, err
	}
	block := t.memory.context.retrieval
	vectors, err := block.Embedder.Embed(t.ctx, []string{pieces(question)[0]})
	switch {
	case t.ctx.Err() != nil:
		return nil, "", context.Cause(t.ctx)
	case err != nil || len(vectors) != 1:
		return nil, t.embedderFailed(err), nil
	}
	first, floor := t.firstSent(), t.base.floor()
	matches := s.vectors.Nearest(vectors[0], block.TopK, func(seq int64) bool { return seq >= floor && seq < first })
	for rank, match := range matches {
		for e, err := range t.memory.store.Entries(t.ctx, t.key, Query{From: match.Of, To: match.Of, Live: true}) {
			if err != nil {
				return nil, "", err
			}
			found = append(found, unitText{text: quoted(e), rank: rank, seq: e.Seq})
		}
	}
	slices.SortFunc(found, func(a, b unitText) int { return int(a.seq - b.seq) })
	return found, problem, nil
}

// quoted is a message as a model reads it among others: who said it and when,
// and its text, of which no line but the first begins at the margin.
func quoted(e *Entry) string {
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
func (t *Turn) embedPending() (*shelf, string, error) {
	m := t.memory
	for attempt := 0; ; attempt++ {
		s, err := m.shelf(t.ctx, t.key, t.base)
		var failed *embedderError
		if errors.As(err, &failed) {
			return nil, t.embedderFailed(failed.error), nil
		}
		if err != nil {
			return nil, "", err
		}
		p, err := t.pending(s.about.To, recallTokens)
		if err != nil || p.to < p.from {
			return s, "", err
		}
		batch, problem, err := t.embed(p)
		if err != nil || problem != "" {
			return s, problem, err
		}
		err = m.keepVectors(t.ctx, t.key, s, batch)
		switch {
		case err == nil && (p.more || batch.more) && attempt == 0:
			return t.reread("more messages are to be embedded with the next turn")
		case err == nil:
			return t.reread("")
		case !errors.Is(err, ErrConflict) || attempt == maxFolds:
			return nil, "", err
		}
	}
}

// reread is the shelf after vectors were added to it.
func (t *Turn) reread(problem string) (*shelf, string, error) {
	s, err := t.memory.shelf(t.ctx, t.key, t.base)
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
func (t *Turn) embed(p pending) (vectorBatch, string, error) {
	b := vectorBatch{to: p.to}
	var texts []string
	var of []int64
	for i := range p.messages {
		if i == recallMessages {
			b.to, b.more = p.seqs[i]-1, true
			break
		}
		msg := &p.messages[i]
		if result(msg.Role) || len(msg.ToolCalls) > 0 {
			continue
		}
		for _, piece := range pieces(msg.Text()) {
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

// pieces are the parts of a text that get vectors, cut at blanks; none of a text
// that says nothing.
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
